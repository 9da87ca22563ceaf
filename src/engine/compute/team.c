/* team.c: fork and join.
 *
 * A run is one step of `epoch`: members 1.. see it change, call fn and count themselves out of
 * `n_running`. A member that has spun for a while without a run sleeps on `wake`, which guards
 * nothing but sleeping: the data passes through the atomics. Sleeping cannot miss a run, because a
 * member counts itself a sleeper before it looks at `epoch` a last time, and team_run changes
 * `epoch` before it looks for sleepers (both sequentially consistent).
 *
 * At a barrier each member raises a number of its own, on a cache line of its own, and waits until those of
 * all others are as high: with two members one line travels each way at the same time, and nothing is added
 * up. A member may be one barrier ahead of others, never two.
 *
 * Waiting spins, and then yields: all members are inside one run, so nobody is far away. How long it spins
 * follows from what came of it: two members that share a core because another program has the other one gain
 * nothing by spinning (measured: a step of 130 us took 1500 when every barrier spun to its end, beside
 * compilers), so each spin in vain makes the next a quarter as long, and each that saw the others come, which
 * says that they run at the same time, makes it twice as long. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/progress.h"
#include "base/sys.h"
#include "compute/kernels.h"

#define PATIENCE_MIN 32
#define YIELDS       1000 /* of the core; on an idle machine they take about half a millisecond */

struct team_member {
    _Alignas(64) team *t;
    int index;
    pthread_t thread;
    int patience; /* pauses of its next spin at a barrier, PATIENCE_MIN to team.spins */
    _Alignas(64) _Atomic unsigned arrived; /* barriers that it has reached; only this on its line */
};

struct team {
    int n;
    isa isa;
    int spins; /* pauses before giving up the core; a pause is 40 to 140 cycles, so 1000 is 20 to 50 us */
    int n_threads_started;
    void (*fn)(void *arg, team_member *m); /* written before epoch, read after it */
    void *arg;
    bool quit;
    void (*at_barrier)(void *user); /* member 0's */
    void *at_barrier_user;
    team *ones; /* whose members are each a team by themselves; NULL when n is 1 */
    _Alignas(64) _Atomic unsigned epoch;
    _Alignas(64) _Atomic int n_running;
    _Alignas(64) _Atomic int n_sleeping;
    pthread_mutex_t lock; /* for `wake` */
    pthread_cond_t wake;
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

static void sleep_for_run(team *t, unsigned seen)
{
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->n_sleeping, 1);
    while (atomic_load(&t->epoch) == seen) pthread_cond_wait(&t->wake, &t->lock);
    atomic_fetch_sub(&t->n_sleeping, 1);
    pthread_mutex_unlock(&t->lock);
}

static void await_run(team *t, unsigned seen)
{
    for (int i = 0; i < t->spins; i++) {
        if (atomic_load_explicit(&t->epoch, memory_order_acquire) != seen) return;
        pause_core();
    }
    sleep_for_run(t, seen);
}

static void *member_main(void *arg)
{
    team_member *m = arg;
    team *t = m->t;
    for (unsigned seen = 0;; seen++) {
        await_run(t, seen);
        if (t->quit) return NULL;
        t->fn(t->arg, m);
        atomic_fetch_sub_explicit(&t->n_running, 1, memory_order_release);
    }
}

static void start_run(team *t)
{
    atomic_store_explicit(&t->n_running, t->n_threads_started, memory_order_relaxed);
    atomic_fetch_add(&t->epoch, 1);
    if (atomic_load(&t->n_sleeping) == 0) return;
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
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
    if (t->n > 1) start_run(t);
    fn(arg, &t->members[0]);
    AWAIT(&t->members[0], atomic_load_explicit(&t->n_running, memory_order_acquire) == 0);
}

void team_barrier(team_member *m)
{
    team *t = m->t;
    if (m->index == 0) progress_add(PROGRESS_WORK / 32);
    if (m->index == 0 && t->at_barrier) t->at_barrier(t->at_barrier_user);
    if (t->n == 1) return;
    unsigned round = atomic_load_explicit(&m->arrived, memory_order_relaxed) + 1;
    atomic_store_explicit(&m->arrived, round, memory_order_release);
    for (int i = 0; i < t->n; i++)
        AWAIT(m, (int)(atomic_load_explicit(&t->members[i].arrived, memory_order_acquire) - round) >= 0);
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
    t->ones->n = 1;
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
    t->n = n_threads;
    t->isa = set;
    t->spins =
        n_threads <= sys_core_count() ? 1000 : 20; /* with too few cores a spinner keeps others from work */
    for (int i = 0; i < n_threads; i++)
        t->members[i] = (team_member){.t = t, .index = i, .patience = t->spins};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
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
    start_run(t);
    for (int i = 1; i <= t->n_threads_started; i++) pthread_join(t->members[i].thread, NULL);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    free(t->ones);
    free(t);
}

int team_size(const team *t)
{
    return t->n;
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
    return m->t->n;
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
    size_t units = n / grain + (n % grain != 0), members = (size_t)m->t->n, i = (size_t)m->index;
    size_t each = units / members, extra = units % members;
    size_t first = i * each + (i < extra ? i : extra);
    size_t last = first + each + (i < extra ? 1 : 0);
    *begin = first * grain < n ? first * grain : n;
    *end = last * grain < n ? last * grain : n;
}
