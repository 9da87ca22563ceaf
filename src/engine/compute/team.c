/* team.c: fork and join.
 *
 * A run takes the first `active` members. Each of them but the caller waits for a number of its own, on a cache line
 * of its own, to change; the caller writes these numbers, and members that are not in the run see nothing. A member
 * that has spun for a while without a run sleeps on its number (futex). Sleeping cannot miss a run: a member sets its
 * bit in `asleep` before it looks at its number a last time, and team_run writes the numbers before it reads the bits,
 * both by a read-modify-write of `asleep`.
 *
 * How long members spin between two runs follows from how far the last two were apart: steps of a stream that decodes
 * follow each other within microseconds, and a sleeping member takes longer to wake than that; where runs are further
 * apart than members would spin, they sleep almost at once.
 *
 * At a barrier each member raises a number of its own, on a cache line of its own, and waits until those of
 * all others are as high: with two members one line travels each way at the same time, and nothing is added
 * up. A member may be one barrier ahead of others, never two. Members that sat out get the caller's number when a run
 * takes them again.
 *
 * Waiting at a barrier spins, and then yields: all members are inside one run, so nobody is far away. How long it spins
 * follows from what came of it: two members that share a core because another program has the other one gain
 * nothing by spinning (measured: a step of 130 us took 1500 when every barrier spun to its end, beside
 * compilers), so each spin in vain makes the next a quarter as long, and each that saw the others come, which
 * says that they run at the same time, makes it twice as long. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/progress.h"
#include "base/signal_stack.h"
#include "base/sys.h"
#include "compute/kernels.h"
#include "compute/profile.h"

#define PATIENCE_MIN 32
#define NEAR_NS      40000 /* runs that are closer than this are worth spinning for */
#define YIELDS       1000  /* of the core; on an idle machine they take about half a millisecond */

struct team_member {
    _Alignas(64) team *t;
    int index;
    pthread_t thread;
    int patience; /* pauses of its next spin at a barrier, PATIENCE_MIN to team.spins */
    _Alignas(64) _Atomic uint32_t n_runs;  /* that it was called to; only this on its line. Futex */
    _Alignas(64) _Atomic unsigned arrived; /* barriers that it has reached; only this on its line */
};

struct team {
    int n;
    int active; /* members of the next run, and of this one */
    int called; /* members of the last run of several: their numbers are those of member 0 */
    isa isa;
    int spins; /* pauses before giving up the core; a pause is 40 to 140 cycles, so 1000 is 20 to 50 us */
    int n_threads_started;
    uint64_t ended_ns;                     /* the last run */
    void (*fn)(void *arg, team_member *m); /* written before n_runs, read after it */
    void *arg;
    bool quit;
    void (*at_barrier)(void *user); /* member 0's */
    void *at_barrier_user;
    profile *profile; /* of this run; NULL: none */
    team *ones;       /* whose members are each a team by themselves; NULL when n is 1 */
    _Alignas(64) _Atomic int n_running;
    _Alignas(64) _Atomic uint64_t asleep; /* a bit for each member */
    _Atomic int spins_between;            /* two runs */
    team_member members[TEAM_MAX];
};

static inline void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void sleep_for_run(team_member *m, uint32_t seen)
{
    uint64_t bit = UINT64_C(1) << m->index;
    atomic_fetch_or(&m->t->asleep, bit);
    while (atomic_load(&m->n_runs) == seen)
        syscall(SYS_futex, &m->n_runs, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_and(&m->t->asleep, ~bit);
}

static void await_run(team_member *m, uint32_t seen)
{
    for (int i = 0; i < atomic_load_explicit(&m->t->spins_between, memory_order_relaxed); i++) {
        if (atomic_load_explicit(&m->n_runs, memory_order_acquire) != seen) return;
        pause_core();
    }
    sleep_for_run(m, seen);
}

static void *member_main(void *arg)
{
    signal_stack_open();
    team_member *m = arg;
    team *t = m->t;
    for (uint32_t seen = 0;; seen++) {
        await_run(m, seen);
        if (t->quit) return NULL;
        t->fn(t->arg, m);
        atomic_fetch_sub_explicit(&t->n_running, 1, memory_order_release);
    }
}

static void call_members(team *t, int n)
{
    for (int i = 1; i < n; i++) atomic_fetch_add_explicit(&t->members[i].n_runs, 1, memory_order_release);
    uint64_t asleep = atomic_fetch_or(&t->asleep, 0);
    for (int i = 1; i < n; i++)
        if (asleep >> i & 1) syscall(SYS_futex, &t->members[i].n_runs, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Members that sat out would be behind at the first barrier, or, much later, ahead. */
static void catch_up(team *t)
{
    unsigned round = atomic_load_explicit(&t->members[0].arrived, memory_order_relaxed);
    for (int i = t->called; i < t->active; i++)
        atomic_store_explicit(&t->members[i].arrived, round, memory_order_relaxed);
    t->called = t->active;
}

static void start_run(team *t)
{
    bool near = clock_ns() - t->ended_ns < NEAR_NS;
    atomic_store_explicit(&t->spins_between, near || t->spins < PATIENCE_MIN ? t->spins : PATIENCE_MIN,
                          memory_order_relaxed);
    catch_up(t);
    atomic_store_explicit(&t->n_running, t->active - 1, memory_order_relaxed);
    call_members(t, t->active);
}

static void be_patient(team_member *m, int n_spins)
{
    int most = m->t->spins, least = most < PATIENCE_MIN ? most : PATIENCE_MIN;
    if (n_spins >= m->patience)
        m->patience = m->patience / 4 < least ? least : m->patience / 4;
    else if (n_spins > 0)
        m->patience = 2 * m->patience > most ? most : 2 * m->patience;
}

/* Whom we wait for may have no core for a long time, beside busy programs: we would only use up our own, and
 * a member that computes nothing and uses a core is taken for one that hangs (base/progress.h). */
static void wait_longer(int n_yields)
{
    const struct timespec nap = {.tv_nsec = n_yields < 2 * YIELDS ? 50000 : 1000000};
    if (n_yields < YIELDS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

/* Spin, then let others have the core, until the condition holds. */
#define AWAIT(m, condition)                      \
    do {                                         \
        int i_ = 0;                              \
        for (; !(condition); i_++) {             \
            if (i_ < (m)->patience)              \
                pause_core();                    \
            else                                 \
                wait_longer(i_ - (m)->patience); \
        }                                        \
        be_patient((m), i_);                     \
    } while (0)

void team_run(team *t, void (*fn)(void *arg, team_member *m), void *arg)
{
    t->fn = fn;
    t->arg = arg;
    if (t->active > 1) start_run(t);
    fn(arg, &t->members[0]);
    if (t->active < 2) return;
    profile_entry *before = t->profile ? profile_wait(t->profile) : NULL;
    AWAIT(&t->members[0], atomic_load_explicit(&t->n_running, memory_order_acquire) == 0);
    if (before) profile_resume(t->profile, before);
    t->ended_ns = clock_ns();
}

void team_barrier(team_member *m)
{
    team *t = m->t;
    if (m->index == 0) progress_add(PROGRESS_WORK / 32);
    if (m->index == 0 && t->at_barrier) t->at_barrier(t->at_barrier_user);
    if (t->active == 1) return;
    profile *p = member_profile(m);
    profile_entry *before = p ? profile_wait(p) : NULL;
    unsigned round = atomic_load_explicit(&m->arrived, memory_order_relaxed) + 1;
    atomic_store_explicit(&m->arrived, round, memory_order_release);
    for (int i = 0; i < t->active; i++)
        AWAIT(m, (int)(atomic_load_explicit(&t->members[i].arrived, memory_order_acquire) - round) >= 0);
    if (before) profile_resume(p, before);
}

void team_at_barriers(team *t, void (*fn)(void *user), void *user)
{
    t->at_barrier = fn;
    t->at_barrier_user = user;
}

/* Threads take no signals: those belong to the program that hosts us. */
static int start_threads(team *t)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = 0;
    while (rc == 0 && t->n_threads_started < t->n - 1) {
        team_member *m = &t->members[t->n_threads_started + 1];
        rc = pthread_create(&m->thread, NULL, member_main, m);
        if (rc == 0) t->n_threads_started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* Teams of one, for member_alone: they have no threads. */
static bool make_ones(team *t)
{
    t->ones = mem_calloc64(1, sizeof *t->ones);
    if (!t->ones) return false;
    t->ones->n = t->ones->active = 1;
    t->ones->isa = t->isa;
    for (int i = 0; i < t->n; i++) t->ones->members[i].t = t->ones;
    return true;
}

int team_new(team **ret, int n_threads, isa set, shoal_err *err)
{
    if (n_threads < 1 || n_threads > TEAM_MAX)
        return err_set(err, SHOAL_EINVALID, "%d threads asked for, but a team has 1 to %d", n_threads,
                       TEAM_MAX);
    if (!isa_usable(set))
        return err_set(err, SHOAL_EUNSUPPORTED, "this machine cannot run %s kernels", isa_name(set));
    team *t = mem_calloc64(1, sizeof *t);
    if (!t) return err_nomem(err);
    t->n = t->active = t->called = n_threads;
    t->isa = set;
    t->spins =
        n_threads <= sys_core_count() ? 1000 : 20; /* with too few cores a spinner keeps others from work */
    for (int i = 0; i < n_threads; i++)
        t->members[i] = (team_member){.t = t, .index = i, .patience = t->spins};
    if (n_threads > 1 && !make_ones(t)) {
        team_free(t);
        return err_nomem(err);
    }
    if (start_threads(t) != 0) {
        team_free(t);
        return err_set(err, SHOAL_ENOMEM, "the system refused to start %d threads", n_threads - 1);
    }
    *ret = t;
    return 0;
}

void team_free(team *t)
{
    if (!t) return;
    t->quit = true;
    call_members(t, t->n_threads_started + 1);
    for (int i = 1; i <= t->n_threads_started; i++) pthread_join(t->members[i].thread, NULL);
    free(t->ones);
    free(t);
}

void team_use(team *t, int n_members)
{
    t->active = n_members < 1 ? 1 : n_members > t->n ? t->n : n_members;
}

void team_place(team *t, const cpu_set_t *cpus)
{
    pthread_setaffinity_np(pthread_self(), sizeof *cpus, cpus);
    for (int i = 1; i <= t->n_threads_started; i++)
        pthread_setaffinity_np(t->members[i].thread, sizeof *cpus, cpus);
}

void team_set_profile(team *t, profile *p)
{
    t->profile = p;
}

profile *member_profile(const team_member *m)
{
    return m->index == 0 ? m->t->profile : NULL;
}

int team_size(const team *t)
{
    return t->active;
}
isa team_isa(const team *t)
{
    return t->isa;
}
isa member_isa(const team_member *m)
{
    return m->t->isa;
}
int member_index(const team_member *m)
{
    return m->index;
}
int member_count(const team_member *m)
{
    return m->t->active;
}
team_member *member_alone(team_member *m)
{
    return m->t->ones ? &m->t->ones->members[m->index] : m;
}
const vec_kernels *member_vec(const team_member *m)
{
    return vec_kernels_for(m->t->isa);
}

void member_share(const team_member *m, size_t n, size_t grain, size_t *begin, size_t *end)
{
    size_t units = n / grain + (n % grain != 0), members = (size_t)m->t->active, i = (size_t)m->index;
    size_t each = units / members, extra = units % members;
    size_t first = i * each + (i < extra ? i : extra);
    size_t last = first + each + (i < extra ? 1 : 0);
    *begin = first * grain < n ? first * grain : n;
    *end = last * grain < n ? last * grain : n;
}
