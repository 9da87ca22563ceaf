/* exit_guard.c: see exit_guard.h. The handler only counts and posts a semaphore, which a thread waits for. */
#define _GNU_SOURCE
#include "os/exit_guard.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signal_stack.h"
#include "logging/log.h"

enum { SIGNALS_HEARD = 2, LOG_MAX_S = 2 };

/* A signal's handler has no argument: so this is one of the few things that a process has one of. */
static struct {
    exit_guard o;
    sem_t changed;
    bool runs;
    struct sigaction before[2]; /* of SIGTERM and SIGINT */
    atomic_int n_signals, signum, code;
    atomic_ullong stop_at_ns; /* 0: it does not stop */
} guard;

static const int SIGNALS[2] = {SIGTERM, SIGINT};

static void call_before(int signum)
{
    for (int i = 0; i < 2; i++)
        if (SIGNALS[i] == signum && guard.before[i].sa_handler != SIG_IGN &&
            guard.before[i].sa_handler != SIG_DFL)
            guard.before[i].sa_handler(signum);
}

static void exit_guard_on_signal(int signum)
{
    int saved = errno;
    atomic_store(&guard.signum, signum);
    if (atomic_fetch_add(&guard.n_signals, 1) >= SIGNALS_HEARD) _exit(128 + signum);
    call_before(signum);
    sem_post(&guard.changed);
    errno = saved;
}

/* The earlier of both. */
static void stop_within(uint64_t ms)
{
    uint64_t at = clock_ns() + ms * 1000000u, now = atomic_load(&guard.stop_at_ns);
    while ((now == 0 || at < now) && !atomic_compare_exchange_weak(&guard.stop_at_ns, &now, at)) continue;
}

static void force_exit(void)
{
    int n = atomic_load(&guard.n_signals);
    int code = n > 1 ? 128 + atomic_load(&guard.signum) : atomic_load(&guard.code);
    signal(SIGALRM, SIG_DFL); /* should even the log's lock be held */
    alarm(LOG_MAX_S);
    LOG(LOG_WARN, guard.o.component, "exit_forced",
        LOG_S("reason", "a thread did not end in time, so the process ends with it"), LOG_I("code", code));
    _exit(code);
}

/* True: something has changed. False: the time is over. */
static bool wait_change(uint64_t stop_at_ns)
{
    uint64_t now = clock_ns();
    struct timespec until;
    if (stop_at_ns == 0) return sem_wait(&guard.changed) == 0 || errno == EINTR;
    if (now >= stop_at_ns) return false;
    clock_gettime(CLOCK_MONOTONIC, &until); /* clock_ns's: the time of day may be set meanwhile */
    uint64_t ns = (uint64_t)until.tv_nsec + (stop_at_ns - now);
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    return sem_clockwait(&guard.changed, CLOCK_MONOTONIC, &until) == 0 || clock_ns() < stop_at_ns;
}

static void *guard_main(void *arg)
{
    signal_stack_open();
    int seen = 0;
    while (wait_change(atomic_load(&guard.stop_at_ns))) {
        int n = atomic_load(&guard.n_signals);
        if (n > 0 && seen == 0) stop_within(guard.o.stop_ms);
        if (n > 1 && seen <= 1) stop_within(guard.o.cut_ms);
        seen = n;
    }
    force_exit();
    return NULL;
}

static bool start_thread(void)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals stay the loop's */
    bool fine = pthread_attr_init(&attr) == 0;
    if (fine) {
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        fine = pthread_create(&thread, &attr, guard_main, NULL) == 0;
        pthread_attr_destroy(&attr);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return fine;
}

void exit_guard_start(const exit_guard *g)
{
    if (guard.runs || sem_init(&guard.changed, 0, 0) != 0) return;
    guard.o = *g;
    guard.runs = start_thread();
    for (int i = 0; guard.runs && i < 2; i++) {
        struct sigaction mine;
        if (sigaction(SIGNALS[i], NULL, &guard.before[i]) != 0) continue;
        mine = guard.before[i];
        mine.sa_handler = exit_guard_on_signal;
        sigaction(SIGNALS[i], &mine, NULL);
    }
}

int exit_guard_signals(void)
{
    return atomic_load(&guard.n_signals);
}

void exit_guard_announced(uint64_t stop_ms)
{
    if (!guard.runs) return;
    atomic_fetch_sub(&guard.n_signals, 1);
    atomic_store(&guard.stop_at_ns, 0);
    stop_within(stop_ms);
    sem_post(&guard.changed);
}

void exit_guard_stopping(uint64_t stop_ms, int code)
{
    if (!guard.runs) return;
    atomic_store(&guard.code, code);
    stop_within(stop_ms);
    sem_post(&guard.changed);
}
