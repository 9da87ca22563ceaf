/* arbiter.c: one page of shared memory that says who has which share of the cores.
 *
 * `has` of the slots is the truth: as many cores as each has. Whoever gives some back hands them straight to
 * the waiters, earliest deadline first (nobody can slip in between; who wants more than are free keeps those
 * behind it waiting), and wakes each through the futex word of its slot. Everything is changed under one
 * robust mutex, in an order that leaves a state `repair` can finish when a process dies in between:
 *
 *     grant: has[s] = cores, then waiting[s] = 0, then word[s] = 1, then wake
 *
 * A process that dies while it holds or waits leaves that in the page until the agent reaps its slot.
 *
 * Beside the slots the page holds each worker's progress (base/progress.h), so that the agent sees without
 * asking which of them get on.
 *
 * The page is writable by every worker, so the agent trusts nothing in it and waits for nothing in it: the
 * file is sealed (nobody can cut it off under a mapping), reaping is a flag that whoever takes the lock next
 * acts upon, and of the lock the agent only reads who is inside. A worker waits for the lock LOCK_MS at most;
 * then it takes its step without asking, and asks without waiting until the lock is free again.
 *
 * A step takes milliseconds, so a holder that keeps the cores for LEASE_MS is stopped or stuck, and its
 * waiters take them: models must not stand still because one does. If it was only slow, two teams share
 * the cores for a while, which costs time and nothing else; its late release then finds that it has none
 * and changes nothing.
 *
 * `busy_ns` says for others, without the lock, when a slot last had or wanted cores: how many compete. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/core_domains.h"
#include "base/progress.h"
#include "base/sys.h"
#include "compute/compute.h"

#define SLOTS      64
#define NOBODY     (-1)
#define ANYWHERE   (-1)
#define RIGHT_NOW  UINT64_MAX
#define LATELY_NS  300000u /* between two steps of a worker that is busy; less than between two calls */
#define LEASE_MS   250
#define LOCK_MS    50          /* a turn inside the lock takes microseconds */
#define PAGE_MAGIC 0x53484F47u /* another layout gets another number */

typedef struct place {
    _Alignas(64) _Atomic uint32_t word; /* futex: 0 while waiting, 1 when granted */
    _Atomic uint32_t dead;          /* the agent's word, until somebody under the lock has acted upon it */
    int waiting, wants;             /* wants: cores, of who waits */
    int has;                        /* cores; 0: none */
    int domain;                     /* in which they are, or were; ANYWHERE */
    uint64_t deadline_ns, since_ns; /* since_ns: it has them */
    _Atomic uint64_t busy_ns;       /* it had or wanted cores then; RIGHT_NOW: it does; 0: never */
} place;

typedef struct page {
    uint32_t magic;
    _Atomic int inside;    /* the slot that has the lock; NOBODY */
    _Atomic uint32_t turn; /* how often the lock was taken */
    _Atomic uint32_t any_dead;
    _Atomic uint32_t wanted; /* somebody waits: for who holds the cores to see; not more than a hint */
    _Atomic int n_slots;     /* those behind were never joined */
    int n_cores;             /* does not change, as the domains do not */
    core_domains domains;
    pthread_mutex_t lock; /* guards what in the slots is not atomic */
    place slots[SLOTS];
    progress_counts progress[SLOTS];
} page;

struct arbiter {
    page *page;
    int slot;       /* NOBODY for the agent */
    int n_cores;    /* as the page said when we came */
    bool impatient; /* the lock was not to be had lately: do not wait for it */
};

static bool is_granted(place *s)
{
    return atomic_load_explicit(&s->word, memory_order_acquire) != 0;
}

typedef enum { GRANTED, WOKEN, LEASE_OVER } wait_end;

static wait_end await_grant(place *s)
{
    const struct timespec lease = {.tv_sec = LEASE_MS / 1000, .tv_nsec = LEASE_MS % 1000 * 1000000L};
    bool over = !is_granted(s) && syscall(SYS_futex, &s->word, FUTEX_WAIT, 0, &lease, NULL, 0) != 0 &&
                errno == ETIMEDOUT;
    return is_granted(s) ? GRANTED : over ? LEASE_OVER : WOKEN;
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Slots to look at. */
static int slots_of(const page *p)
{
    int n = atomic_load_explicit(&p->n_slots, memory_order_relaxed);
    return n < 0 || n > SLOTS ? SLOTS : n;
}

/* The domain that gives the cores: the worker's last one if it has enough, since its caches are warm; else the one with
 * the most free cores. ANYWHERE: no domain has enough, or there is only one. Under the lock. */
static int choose_domain(const page *p, int slot, int n_cores)
{
    const core_domains *d = &p->domains;
    int n_free[CORE_DOMAINS_MAX] = {0}, last = p->slots[slot].domain, best = ANYWHERE;
    if (d->n < 2 || d->n > CORE_DOMAINS_MAX) return ANYWHERE;
    for (int i = 0; i < d->n; i++) n_free[i] = d->of[i].n_cpus;
    for (int s = 0, n = slots_of(p); s < n; s++) {
        const place *at = &p->slots[s];
        if (s != slot && at->has > 0 && at->domain >= 0 && at->domain < d->n) n_free[at->domain] -= at->has;
    }
    if (last >= 0 && last < d->n && n_free[last] >= n_cores) return last;
    for (int i = 0; i < d->n; i++)
        if (n_free[i] >= n_cores && (best == ANYWHERE || n_free[i] > n_free[best])) best = i;
    return best;
}

/* Begin a grant, or finish it; under the lock. */
static void grant(arbiter *a, int s, int n_cores)
{
    place *at = &a->page->slots[s];
    at->domain = choose_domain(a->page, s, n_cores);
    at->since_ns = clock_ns();
    at->has = n_cores;
    at->waiting = 0;
    atomic_store_explicit(&at->word, 1, memory_order_release);
    if (s != a->slot) futex_wake(&at->word);
}

static int cores_wanted(const arbiter *a, const place *at)
{
    return at->wants < 1 || at->wants > a->n_cores ? a->n_cores : at->wants;
}

typedef struct line {
    int first; /* who waits with the earliest deadline; NOBODY */
    int n_waiting, n_free;
} line;

/* Under the lock. */
static line arbiter_look(const arbiter *a)
{
    const page *p = a->page;
    line l = {.first = NOBODY, .n_free = a->n_cores};
    for (int s = 0, n = slots_of(p); s < n; s++) {
        const place *at = &p->slots[s];
        if (at->has > 0) l.n_free -= at->has < l.n_free ? at->has : l.n_free;
        if (!at->waiting) continue;
        l.n_waiting++;
        if (l.first == NOBODY || at->deadline_ns < p->slots[l.first].deadline_ns) l.first = s;
    }
    return l;
}

/* The cores that are free go to those who wait, as far as they reach; under the lock. */
static void pass_on(arbiter *a)
{
    for (;;) {
        line l = arbiter_look(a);
        int n_cores = l.first == NOBODY ? 0 : cores_wanted(a, &a->page->slots[l.first]);
        bool fits = n_cores > 0 && n_cores <= l.n_free;
        atomic_store_explicit(&a->page->wanted, l.n_waiting > fits, memory_order_relaxed);
        if (!fits) return;
        grant(a, l.first, n_cores);
    }
}

/* The last owner of the lock died inside it: finish its grant, or start those it did not reach. */
static void repair(arbiter *a)
{
    for (int s = 0; s < SLOTS; s++) {
        place *at = &a->page->slots[s];
        if (at->has > 0 && (at->waiting || !is_granted(at))) grant(a, s, at->has);
    }
    pass_on(a);
}

/* What processes that died held and waited for. */
static void bury(arbiter *a)
{
    page *p = a->page;
    if (!atomic_exchange(&p->any_dead, 0)) return;
    for (int s = 0; s < SLOTS; s++) {
        if (!atomic_exchange(&p->slots[s].dead, 0)) continue;
        p->slots[s].waiting = p->slots[s].has = 0;
        atomic_store_explicit(&p->slots[s].busy_ns, 0, memory_order_relaxed);
    }
    pass_on(a);
}

/* Tries again and again, rather than a timed wait: its clock would be one that somebody may set. */
static int timed_lock(arbiter *a)
{
    const struct timespec pause = {.tv_nsec = 100000};
    uint64_t start = clock_ns();
    int rc = pthread_mutex_trylock(&a->page->lock);
    for (int i = 0; rc == EBUSY && !a->impatient && clock_ms_since(start) < LOCK_MS; i++) {
        if (i < 100)
            sched_yield();
        else
            nanosleep(&pause, NULL);
        rc = pthread_mutex_trylock(&a->page->lock);
    }
    return rc;
}

/* False when the lock is not to be had: go on without. */
static bool lock(arbiter *a)
{
    page *p = a->page;
    int rc = timed_lock(a);
    a->impatient = rc != 0 && rc != EOWNERDEAD;
    if (a->impatient) return false;
    atomic_fetch_add_explicit(&p->turn, 1, memory_order_relaxed);
    atomic_store_explicit(&p->inside, a->slot, memory_order_release);
    if (rc == EOWNERDEAD) {
        pthread_mutex_consistent(&p->lock);
        repair(a);
    }
    bury(a);
    return true;
}

static void unlock(arbiter *a)
{
    atomic_store_explicit(&a->page->inside, NOBODY, memory_order_release);
    pthread_mutex_unlock(&a->page->lock);
}

static int map_page(arbiter **ret, int fd, int slot, shoal_err *err)
{
    arbiter *a = malloc(sizeof *a);
    if (!a) return err_nomem(err);
    page *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        free(a);
        return err_set(err, SHOAL_EIO, "the arbiter's page cannot be mapped");
    }
    *a = (arbiter){.page = p, .slot = slot};
    *ret = a;
    return 0;
}

static void init_page(page *p)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&p->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    p->n_cores = sys_core_count();
    core_domains_read(&p->domains, "/sys/devices/system/cpu");
    for (int s = 0; s < SLOTS; s++) p->slots[s].domain = ANYWHERE;
    atomic_store(&p->inside, NOBODY);
    p->magic = PAGE_MAGIC;
}

int arbiter_create(arbiter **ret, int *ret_fd, shoal_err *err)
{
    int fd = memfd_create("shoal-arbiter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return err_set(err, SHOAL_EIO, "no anonymous file for the arbiter's page");
    int rc = 0;
    if (ftruncate(fd, sizeof(page)) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        rc = err_set(err, SHOAL_EIO, "the arbiter's page has no room");
    arbiter *a = NULL;
    if (rc == 0) rc = map_page(&a, fd, NOBODY, err);
    if (rc != 0) {
        close(fd);
        return rc;
    }
    init_page(a->page);
    *ret = a;
    *ret_fd = fd;
    return 0;
}

int arbiter_open(arbiter **ret, int fd, shoal_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || (size_t)st.st_size != sizeof(page))
        return err_set(err, SHOAL_EINVALID, "file descriptor %d is not an arbiter's page", fd);
    arbiter *a;
    int rc = map_page(&a, fd, NOBODY, err);
    if (rc != 0) return rc;
    if (a->page->magic != PAGE_MAGIC) {
        arbiter_close(a);
        return err_set(err, SHOAL_EINVALID, "the arbiter's page is of another version");
    }
    *ret = a;
    return 0;
}

int arbiter_join(arbiter **ret, int fd, int slot, shoal_err *err)
{
    if (slot < 0 || slot >= SLOTS) return err_set(err, SHOAL_EINVALID, "the arbiter has no slot %d", slot);
    arbiter *a;
    int rc = arbiter_open(&a, fd, err);
    if (rc != 0) return rc;
    a->slot = slot;
    a->n_cores = a->page->n_cores > 0 ? a->page->n_cores : 1;
    int n = atomic_load(&a->page->n_slots);
    while (n <= slot && !atomic_compare_exchange_weak(&a->page->n_slots, &n, slot + 1)) {
    }
    arbiter_reap(a, slot); /* what an earlier owner of the slot may have left */
    if (lock(a)) unlock(a);
    *ret = a;
    return 0;
}

void arbiter_close(arbiter *a)
{
    if (!a) return;
    munmap(a->page, sizeof *a->page);
    free(a);
}

/* A place in the queue, and the cores if they are free. Under the lock; true when they are ours. */
static bool queue_up(arbiter *a, uint64_t deadline_ns, int n_cores)
{
    place *s = &a->page->slots[a->slot];
    s->has = 0; /* else a release found no lock */
    atomic_store_explicit(&s->word, 0, memory_order_relaxed);
    s->deadline_ns = deadline_ns;
    s->wants = n_cores;
    s->waiting = 1;
    pass_on(a);
    return is_granted(s);
}

/* Who has cores for too long has them no more. Under the lock. */
static void enforce_leases(arbiter *a)
{
    page *p = a->page;
    uint64_t now = clock_ns();
    if (is_granted(&p->slots[a->slot])) return;
    /* It is not after a burial that came late, for an earlier process of our slot. */
    p->slots[a->slot].waiting = 1;
    for (int s = 0; s < SLOTS; s++) {
        if (p->slots[s].has <= 0 || now - p->slots[s].since_ns < LEASE_MS * 1000000u) continue;
        p->slots[s].has = 0;
        atomic_store_explicit(&p->slots[s].busy_ns, 0, memory_order_relaxed);
    }
    pass_on(a);
}

void arbiter_acquire(arbiter *a, uint64_t deadline_ns, int n_cores)
{
    place *s = &a->page->slots[a->slot];
    atomic_store_explicit(&s->busy_ns, RIGHT_NOW, memory_order_relaxed);
    if (!lock(a)) return;
    bool ours = queue_up(a, deadline_ns, n_cores);
    unlock(a);
    while (!ours) {
        wait_end how = await_grant(s);
        progress_tick();
        if (how == GRANTED || !lock(a)) return;
        if (how == LEASE_OVER) enforce_leases(a);
        unlock(a);
        ours = is_granted(s);
    }
}

void arbiter_release(arbiter *a)
{
    place *s = &a->page->slots[a->slot];
    atomic_store_explicit(&s->busy_ns, clock_ns(), memory_order_relaxed);
    if (!lock(a)) return; /* the lease ends it */
    if (s->has > 0) {
        s->has = 0;
        pass_on(a);
    }
    unlock(a);
}

int arbiter_crowd(const arbiter *a)
{
    const page *p = a->page;
    uint64_t now = clock_ns();
    int n = 1;
    for (int s = 0, end = slots_of(p); s < end; s++) {
        uint64_t busy = atomic_load_explicit(&p->slots[s].busy_ns, memory_order_relaxed);
        n += s != a->slot && busy != 0 && (busy == RIGHT_NOW || now < busy + LATELY_NS);
    }
    return n;
}

const cpu_set_t *arbiter_cpus(const arbiter *a)
{
    const core_domains *d = &a->page->domains;
    int domain = a->page->slots[a->slot].domain;
    if (d->n < 2 || d->n > CORE_DOMAINS_MAX) return NULL;
    return domain >= 0 && domain < d->n ? &d->of[domain].cpus : &d->all;
}

bool arbiter_is_wanted(const arbiter *a)
{
    return atomic_load_explicit(&a->page->wanted, memory_order_relaxed);
}

void arbiter_reap(arbiter *a, int slot)
{
    if (slot < 0 || slot >= SLOTS) return;
    page *p = a->page;
    int expected = slot;
    atomic_compare_exchange_strong(&p->inside, &expected, NOBODY);
    progress_clear(&p->progress[slot]);
    atomic_store(&p->slots[slot].dead, 1);
    atomic_store(&p->any_dead, 1);
    for (int s = 0; s < SLOTS; s++) futex_wake(&p->slots[s].word); /* whoever waits does the burial */
}

int arbiter_inside(const arbiter *a, uint64_t *ret_turn)
{
    int inside = atomic_load_explicit(&a->page->inside, memory_order_acquire);
    *ret_turn = atomic_load_explicit(&a->page->turn, memory_order_relaxed);
    return inside >= 0 && inside < SLOTS ? inside : NOBODY;
}

bool arbiter_queues(const arbiter *a, int slot)
{
    if (slot < 0 || slot >= SLOTS) return false;
    place *s = &a->page->slots[slot];
    return atomic_load_explicit(&s->busy_ns, memory_order_relaxed) == RIGHT_NOW && !is_granted(s);
}

progress_counts *arbiter_progress(const arbiter *a, int slot)
{
    return slot >= 0 && slot < SLOTS ? &a->page->progress[slot] : NULL;
}
