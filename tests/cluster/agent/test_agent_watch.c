/* An agent and workers that hang in each way, or work slowly: this program is the workers, too, and its
 * model's name says what one does. It counts in a page of shared memory, as a worker does in the arbiter's.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "logging/log.h"
#include "base/progress.h"
#include "agent/agent.h"
#include "time/env_sim.h"

enum { N_SLOTS = 4, PAGE_FD = 3, WAIT_S = 120, TURN_MS = 10 };

typedef struct page {
    progress_counts slots[N_SLOTS];
    _Atomic int inside;
    _Atomic uint32_t n_locks;
    _Atomic int n_done[N_SLOTS]; /* steps of "slow" */
    _Atomic bool queues;
} page;

/* ---- the worker --------------------------------------------------------------------------------------- */

static uint64_t own_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A step of 90 ms of its own time, as long as it may be. */
static void work_slowly(page *p, int slot)
{
    for (;;) {
        for (uint64_t start = own_ms(); own_ms() - start < 90;) continue;
        progress_tick();
        atomic_fetch_add(&p->n_done[slot], 1);
    }
}

static void be_worker(const char *model, int slot)
{
    page *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE_FD, 0);
    if (p == MAP_FAILED) _exit(2);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    progress_publish(&p->slots[slot]);
    progress_begin();
    atomic_store(&p->slots[slot].loops, strcmp(model, "starts") != 0);
    /* The first thread is the loop's: another one has to work. */
    pid_t pid = getpid();
    if (strcmp(model, "stops") == 0) kill(pid, SIGSTOP);
    if (strcmp(model, "locks") == 0) {
        progress_end();
        atomic_store(&p->inside, slot);
        kill(pid, SIGSTOP);
    }
    if (strcmp(model, "queues") == 0) atomic_store(&p->queues, true);
    if (strcmp(model, "rests") == 0) progress_end();
}

typedef struct thread_arg {
    page *p;
    int slot;
    const char *model;
} thread_arg;

static void run_thread(void *arg)
{
    thread_arg *x = arg;
    if (strcmp(x->model, "spins") == 0)
        for (volatile unsigned i = 0;; i++) continue;
    if (strcmp(x->model, "slow") == 0) work_slowly(x->p, x->slot);
    for (;;) pause();
}

static void worker_main(int argc, char **argv)
{
    thread_arg x = {.slot = 0};
    uv_thread_t t;
    for (int i = 2; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--name") == 0) x.model = argv[i + 1];
        if (strcmp(argv[i], "--arbiter-slot") == 0) x.slot = atoi(argv[i + 1]);
    }
    be_worker(x.model, x.slot);
    x.p = mmap(NULL, sizeof *x.p, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE_FD, 0);
    uv_thread_create(&t, run_thread, &x);
    for (;;) pause();
}

/* ---- the agent ---------------------------------------------------------------------------------------- */

typedef struct bench {
    uv_loop_t loop;
    registry *g;
    agent *a;
    page *p;
    const char *model;
    int fd;
    uv_timer_t tick;
    env_sim *sim; /* NULL: real time */
    bool stopped;
} bench;

static progress_counts *counters(void *user, int slot)
{
    return &((page *)user)->slots[slot];
}

static bool queues(void *user, int slot)
{
    return atomic_load(&((page *)user)->queues);
}

static int inside(void *user, uint64_t *ret)
{
    page *p = user;
    *ret = atomic_load(&p->n_locks);
    return atomic_load(&p->inside);
}

static void reap(void *user, int slot)
{
    page *p = user;
    progress_clear(&p->slots[slot]);
    atomic_store(&p->inside, -1);
}

static void on_tick(uv_timer_t *t) {}

static void turn(bench *b)
{
    uv_run(&b->loop, UV_RUN_ONCE);
    if (b->sim) env_sim_run(b->sim, TURN_MS);
}

/* What a worker does to a core takes real time; how long it sleeps or is stopped may be simulated. */
static void bench_open(bench *b, const char *model, bool simulated)
{
    *b = (bench){
        .fd = memfd_create("page", MFD_CLOEXEC), .model = model, .sim = simulated ? env_sim_new(1) : NULL};
    log_setup(LOG_OFF, false);
    assert_true(b->fd >= 0 && ftruncate(b->fd, sizeof *b->p) == 0);
    b->p = mmap(NULL, sizeof *b->p, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
    assert_true(b->p != MAP_FAILED);
    atomic_store(&b->p->inside, -1);
    assert_int_equal(uv_loop_init(&b->loop), 0);
    assert_int_equal(registry_new(&b->g, &b->loop, NULL), 0);
    agent_arbiter shared = {.fd = b->fd,
                            .n_slots = N_SLOTS,
                            .reap = reap,
                            .progress = counters,
                            .queues = queues,
                            .inside = inside,
                            .user = b->p};
    worker_spec spec = {.model = model, .path = "none"};
    agent_options o = {.workers = &spec, .n_workers = 1, .log_level = "off", .arbiter = &shared};
    if (simulated) o.time = env_sim_env(b->sim);
    assert_int_equal(agent_new(&b->a, &b->loop, b->g, &o, NULL), 0);
    uv_timer_init(&b->loop, &b->tick);
    uv_timer_start(&b->tick, on_tick, simulated ? 1 : TURN_MS, simulated ? 1 : TURN_MS);
}

static void on_stopped(void *user)
{
    ((bench *)user)->stopped = true;
}

static void bench_close(bench *b)
{
    agent_stop(b->a, 1, on_stopped, b);
    while (!b->stopped) turn(b);
    uv_close((uv_handle_t *)&b->tick, NULL);
    agent_free(b->a);
    registry_free(b->g);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    if (b->sim) assert_int_equal(env_sim_timers(b->sim), 0);
    env_sim_free(b->sim);
    munmap(b->p, sizeof *b->p);
    close(b->fd);
}

static const replica *worker_of(bench *b)
{
    assert_int_equal(registry_count(b->g), 1);
    return registry_at(b->g, 0);
}

/* It has come to what its model's name says: no simulated time passes before. */
static void wait_for_start(bench *b)
{
    bool locks = strcmp(b->model, "locks") == 0, starts = strcmp(b->model, "starts") == 0;
    while (locks    ? atomic_load(&b->p->inside) < 0
           : starts ? atomic_load(&b->p->slots[0].n_working) == 0
                    : atomic_load(&b->p->slots[0].loops) == 0)
        uv_run(&b->loop, UV_RUN_ONCE);
}

/* Its first life ends, and another one begins. */
static void is_replaced(const char *model, bool simulated)
{
    bench b;
    bench_open(&b, model, simulated);
    wait_for_start(&b);
    for (uint64_t start = clock_ns(); worker_of(&b)->process.n_restarts == 0;) {
        turn(&b);
        if (clock_ms_since(start) > WAIT_S * 1000) fail_msg("the worker that %s lives", model);
    }
    bench_close(&b);
}

static void agent_replaces_a_worker_that_is_stopped_in_a_step(void **state)
{
    is_replaced("stops", true);
}

static void agent_replaces_a_worker_that_spins_in_a_step(void **state)
{
    is_replaced("spins", false);
}

static void agent_replaces_a_worker_whose_threads_wait_for_each_other(void **state)
{
    is_replaced("sleeps", true);
}

static void agent_replaces_a_worker_that_is_stopped_inside_the_lock(void **state)
{
    is_replaced("locks", true);
}

static void run_for_turns(bench *b, int n)
{
    for (int i = 0; i < n; i++) {
        turn(b);
        assert_int_equal(worker_of(b)->process.n_crashes, 0);
    }
}

static void agent_leaves_alone_who_rests_queues_or_starts(void **state)
{
    static const char *const models[] = {"rests", "queues", "starts"};
    for (int i = 0; i < 3; i++) {
        bench b;
        bench_open(&b, models[i], true);
        wait_for_start(&b);
        run_for_turns(&b, 400); /* 4 s: a step that sleeps is found after 2 s */
        bench_close(&b);
    }
}

static void on_one_core(void)
{
    cpu_set_t set, all;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof all, &all);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&set) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Its steps are as long as they may be, and four busy programs have its core: each step takes half a second
 * and more. */
static void agent_does_not_kill_a_worker_that_is_starved(void **state)
{
    enum { N_BUSY = 4, N_STEPS = 6 };
    pid_t pids[N_BUSY];
    cpu_set_t before;
    bench b;
    sched_getaffinity(0, sizeof before, &before);
    on_one_core();
    for (int i = 0; i < N_BUSY; i++) {
        pids[i] = fork();
        if (pids[i] != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile unsigned k = 0;; k++) continue;
    }
    bench_open(&b, "slow", false);
    while (atomic_load(&b.p->n_done[0]) < N_STEPS) run_for_turns(&b, 1);
    bench_close(&b);
    for (int i = 0; i < N_BUSY; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    sched_setaffinity(0, sizeof before, &before);
}

/* Whoever waits for an answer of it can ask. */
static void agent_says_who_is_at_work(void **state)
{
    bench b;
    bench_open(&b, "slow", false);
    while (atomic_load(&b.p->n_done[0]) < 1) run_for_turns(&b, 1);
    const replica *r = worker_of(&b);
    for (int i = 0; i < 20; i++) {
        run_for_turns(&b, 5);
        assert_true(replica_is_at_work(r));
    }
    kill(r->process.pid, SIGSTOP);
    while (replica_is_at_work(r)) run_for_turns(&b, 1);
    bench_close(&b);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "worker") == 0) worker_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agent_replaces_a_worker_that_is_stopped_in_a_step),
        cmocka_unit_test(agent_replaces_a_worker_that_spins_in_a_step),
        cmocka_unit_test(agent_replaces_a_worker_whose_threads_wait_for_each_other),
        cmocka_unit_test(agent_replaces_a_worker_that_is_stopped_inside_the_lock),
        cmocka_unit_test(agent_leaves_alone_who_rests_queues_or_starts),
        cmocka_unit_test(agent_does_not_kill_a_worker_that_is_starved),
        cmocka_unit_test(agent_says_who_is_at_work),
    };
    return cmocka_run_group_tests_name("agent_watch", tests, NULL, NULL);
}
