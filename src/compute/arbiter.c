/* arbiter.c: one page of shared memory that says who has the cores.
 *
 * `holder` is the truth: the slot that has the cores, or NOBODY. Whoever releases them hands them
 * straight to the waiter with the earliest deadline (nobody can slip in between) and wakes it through
 * the futex word of its slot. Everything is changed under one robust mutex, in an order that leaves
 * a state `repair` can finish when a process dies in between:
 *     grant: holder = s, then waiting[s] = 0, then word[s] = 1, then wake.
 * A process that dies while it holds or waits leaves that in the page until the agent reaps its slot.
 *
 * A step takes milliseconds, so a holder that keeps the cores for LEASE_MS is stopped or stuck, and its
 * waiters take them: models must not stand still because one does. If it was only slow, two teams share
 * the cores for a while, which costs time and nothing else; its late release then finds another holder
 * and changes nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "compute/compute.h"

#define SLOTS      64
#define NOBODY     (-1)
#define LEASE_MS   250
#define PAGE_MAGIC 0x53484F42u /* another layout gets another number */

typedef struct place {
    _Alignas(64) _Atomic uint32_t word; /* futex: 0 while waiting, 1 when granted */
    int waiting;
    uint64_t deadline_ns;
} place;

typedef struct page {
    uint32_t magic;
    pthread_mutex_t lock; /* guards all below but the words */
    int holder;
    uint64_t n_grants; /* how often the cores have changed hands */
    place slots[SLOTS];
} page;

struct arbiter {
    page *page;
    int slot; /* NOBODY for the agent */
};

static bool is_granted(place *s)
{
    return atomic_load_explicit(&s->word, memory_order_acquire) != 0;
}

/* False when LEASE_MS went by without a grant. */
static bool await_grant(place *s)
{
    const struct timespec lease = {.tv_sec = LEASE_MS / 1000, .tv_nsec = LEASE_MS % 1000 * 1000000L};
    while (!is_granted(s))
        if (syscall(SYS_futex, &s->word, FUTEX_WAIT, 0, &lease, NULL, 0) != 0 && errno == ETIMEDOUT)
            return is_granted(s);
    return true;
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Finish a grant; called under the lock. */
static void grant(page *p, int s)
{
    p->holder = s;
    p->n_grants++;
    p->slots[s].waiting = 0;
    atomic_store_explicit(&p->slots[s].word, 1, memory_order_release);
    futex_wake(&p->slots[s].word);
}

/* The cores go to the earliest waiter; called under the lock by the holder or for a dead one. */
static void pass_on(page *p)
{
    int next = NOBODY;
    for (int s = 0; s < SLOTS; s++) {
        if (!p->slots[s].waiting) continue;
        if (next == NOBODY || p->slots[s].deadline_ns < p->slots[next].deadline_ns) next = s;
    }
    if (next == NOBODY)
        p->holder = NOBODY;
    else
        grant(p, next);
}

/* The last owner of the lock died inside it: finish its grant, or start the one it did not reach. */
static void repair(page *p)
{
    if (p->holder < NOBODY || p->holder >= SLOTS) p->holder = NOBODY;
    if (p->holder == NOBODY)
        pass_on(p);
    else if (p->slots[p->holder].waiting || !atomic_load(&p->slots[p->holder].word))
        grant(p, p->holder);
}

static void lock(page *p)
{
    if (pthread_mutex_lock(&p->lock) != EOWNERDEAD) return;
    pthread_mutex_consistent(&p->lock);
    repair(p);
}

static void unlock(page *p)
{
    pthread_mutex_unlock(&p->lock);
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
    p->holder = NOBODY;
    p->magic = PAGE_MAGIC;
}

int arbiter_create(arbiter **ret, int *ret_fd, shoal_err *err)
{
    /* not close-on-exec: workers inherit it */
    int fd = memfd_create("shoal-arbiter", 0);
    if (fd < 0) return err_set(err, SHOAL_EIO, "no anonymous file for the arbiter's page");
    int rc = 0;
    if (ftruncate(fd, sizeof(page)) != 0) rc = err_set(err, SHOAL_EIO, "the arbiter's page has no room");
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

int arbiter_join(arbiter **ret, int fd, int slot, shoal_err *err)
{
    if (slot < 0 || slot >= SLOTS) return err_set(err, SHOAL_EINVALID, "the arbiter has no slot %d", slot);
    struct stat st;
    if (fstat(fd, &st) != 0 || (size_t)st.st_size != sizeof(page))
        return err_set(err, SHOAL_EINVALID, "file descriptor %d is not an arbiter's page", fd);
    arbiter *a;
    int rc = map_page(&a, fd, slot, err);
    if (rc != 0) return rc;
    if (a->page->magic != PAGE_MAGIC) {
        arbiter_close(a);
        return err_set(err, SHOAL_EINVALID, "the arbiter's page is of another version");
    }
    arbiter_reap(a, slot); /* what an earlier owner of the slot may have left */
    *ret = a;
    return 0;
}

void arbiter_close(arbiter *a)
{
    if (!a) return;
    munmap(a->page, sizeof *a->page);
    free(a);
}

void arbiter_acquire(arbiter *a, uint64_t deadline_ns)
{
    page *p = a->page;
    place *s = &p->slots[a->slot];
    lock(p);
    bool free_now = p->holder == NOBODY;
    atomic_store_explicit(&s->word, free_now, memory_order_relaxed);
    s->deadline_ns = deadline_ns;
    if (free_now)
        p->holder = a->slot;
    else
        s->waiting = 1;
    uint64_t seen = p->n_grants += free_now;
    unlock(p);
    while (!free_now && !await_grant(s)) {
        lock(p);
        if (s->waiting && p->n_grants == seen) pass_on(p);
        seen = p->n_grants;
        unlock(p);
    }
}

void arbiter_release(arbiter *a)
{
    lock(a->page);
    if (a->page->holder == a->slot) pass_on(a->page);
    unlock(a->page);
}

void arbiter_reap(arbiter *a, int slot)
{
    if (slot < 0 || slot >= SLOTS) return;
    page *p = a->page;
    lock(p);
    p->slots[slot].waiting = 0;
    if (p->holder == slot) pass_on(p);
    unlock(p);
}
