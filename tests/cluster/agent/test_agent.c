/* The agent with the real program: processes start, die, come back, and leave nothing behind. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "logging/log.h"
#include "base/file.h"
#include "agent/agent.h"
#include "cluster/registry.h"

#define MODEL SHOAL_SOURCE_DIR "/tests/data/hf/bert-intent"

enum { PATIENCE_MS = 60000 };

/* $SHOAL_BIN, or build/shoal next to build/tests/THIS. */
static const char *program(void)
{
    static char path[4200];
    const char *given = getenv("SHOAL_BIN");
    if (given) return given;
    ssize_t n = readlink("/proc/self/exe", path, 4096);
    if (n <= 0) return NULL;
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    strcat(path, "/../shoal");
    return access(path, X_OK) == 0 ? path : NULL;
}

typedef struct bench {
    uv_loop_t loop;
    uv_timer_t tick; /* wakes uv_run so that `wait_for` can look at its condition */
    registry *g;
    agent *a;
    char run_dir[256];
    bool gone;
    int n_changes;
} bench;

static void ticked(uv_timer_t *t) {}

static void changed(void *user, const registry_event *e)
{
    ((bench *)user)->n_changes += e->what == REGISTRY_CHANGE;
}

static void bench_open(bench *b, const worker_spec *specs, size_t n)
{
    *b = (bench){0};
    log_setup(LOG_OFF, false);
    assert_int_equal(uv_loop_init(&b->loop), 0);
    uv_timer_init(&b->loop, &b->tick);
    uv_timer_start(&b->tick, ticked, 5, 5);
    shoal_err err = {0};
    assert_int_equal(registry_new(&b->g, &b->loop, &err), 0);
    assert_int_equal(registry_listen(b->g, changed, b, &err), 0);
    agent_options o = {.program = program(), .workers = specs, .n_workers = n, .log_level = "off"};
    if (agent_new(&b->a, &b->loop, b->g, &o, &err) != 0) fail_msg("agent_new: %s", err.message);
    snprintf(b->run_dir, sizeof b->run_dir, "%s", agent_run_dir(b->a));
}

static void all_gone(void *user)
{
    ((bench *)user)->gone = true;
}

static void bench_stop(bench *b)
{
    agent_stop(b->a, 5000, all_gone, b);
    while (!b->gone) uv_run(&b->loop, UV_RUN_ONCE);
}

static void bench_close(bench *b)
{
    if (!b->gone) bench_stop(b);
    agent_free(b->a);
    registry_free(b->g);
    uv_close((uv_handle_t *)&b->tick, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
}

/* Turn the loop until the replica is in that state. */
static void wait_for(bench *b, const replica *r, replica_state s)
{
    uint64_t start = clock_ns();
    while (r->state != s) {
        if (clock_ms_since(start) > PATIENCE_MS)
            fail_msg("%s is %s (%s), not %s", r->id, replica_state_name(r->state), r->reason,
                     replica_state_name(s));
        uv_run(&b->loop, UV_RUN_ONCE);
    }
}

static bool process_exists(int pid)
{
    return kill(pid, 0) == 0 || errno != ESRCH;
}

typedef struct answer {
    bool ended;
    int status, n_results;
} answer;

static void on_answer(void *user, const uint8_t *msg, size_t n)
{
    Shoal__V1__ClassifyReply *m = shoal__v1__classify_reply__unpack(NULL, n, msg);
    if (m) ((answer *)user)->n_results = (int)m->n_results;
    shoal__v1__classify_reply__free_unpacked(m, NULL);
}

static void on_end(void *user, grpc_status status, const char *message)
{
    ((answer *)user)->ended = true;
    ((answer *)user)->status = (int)status;
}

static answer classify(bench *b, replica *r)
{
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT, *ptr = &in;
    Shoal__V1__ClassifyRequest q = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    in.text = "turn on the light";
    q.inputs = &ptr;
    q.n_inputs = 1;
    uint8_t bytes[256];
    size_t n = shoal__v1__classify_request__pack(&q, bytes);
    answer a = {0};
    grpc_client_events ev = {.user = &a, .message = on_answer, .end = on_end};
    assert_non_null(grpc_call_start(r->channel, "/shoal.v1.Worker/Classify", bytes, n, NULL, 0, 0, &ev));
    while (!a.ended) uv_run(&b->loop, UV_RUN_ONCE);
    return a;
}

static bool missing_program(void)
{
    if (program()) return false;
    fprintf(stderr, "SKIP agent: build/shoal is not built (or set SHOAL_BIN)\n");
    return true;
}

static void agent_brings_a_killed_worker_back_while_others_serve(void **state)
{
    if (missing_program()) skip();
    bench b;
    worker_spec spec = {.model = "intent", .path = MODEL, .n_replicas = 2, .n_threads = 1};
    bench_open(&b, &spec, 1);
    assert_int_equal(registry_count(b.g), 2);
    replica *first = registry_at(b.g, 0), *second = registry_at(b.g, 1);
    assert_string_equal(first->id, "intent/0");
    assert_false(registry_all_ready(b.g));
    wait_for(&b, first, REPLICA_READY);
    wait_for(&b, second, REPLICA_READY);
    assert_true(registry_all_ready(b.g));
    assert_string_equal(first->info->name, "intent");
    assert_int_equal(first->info->pid, first->process.pid);

    int old = first->process.pid;
    kill(old, SIGKILL);
    while (first->process.n_crashes == 0) uv_run(&b.loop, UV_RUN_ONCE);
    answer a = classify(&b, second);
    assert_int_equal(a.status, GRPC_OK);
    assert_int_equal(a.n_results, 1);
    wait_for(&b, first, REPLICA_READY); /* not by its old state: the crash was counted after it */
    assert_int_not_equal(first->process.pid, old);
    assert_int_equal(first->info->pid, first->process.pid);
    assert_int_equal(first->process.n_crashes, 1);
    assert_int_equal(first->process.n_restarts, 1);
    assert_int_equal(second->process.n_crashes, 0);
    a = classify(&b, first);
    assert_int_equal(a.status, GRPC_OK);
    bench_close(&b);
}

static void agent_leaves_no_process_and_no_socket(void **state)
{
    if (missing_program()) skip();
    bench b;
    worker_spec spec = {.model = "intent", .path = MODEL, .n_replicas = 2, .n_threads = 1};
    bench_open(&b, &spec, 1);
    wait_for(&b, registry_at(b.g, 0), REPLICA_READY); /* the other may still be starting */
    int pids[2] = {registry_at(b.g, 0)->process.pid, registry_at(b.g, 1)->process.pid};
    assert_true(file_exists(b.run_dir));
    bench_stop(&b);
    for (int i = 0; i < 2; i++) assert_false(process_exists(pids[i]));
    bench_close(&b);
    assert_false(file_exists(b.run_dir));
}

static void agent_shows_why_a_worker_can_never_start(void **state)
{
    if (missing_program()) skip();
    bench b;
    char wrong[65];
    memset(wrong, 'b', 64);
    wrong[64] = '\0';
    worker_spec specs[] = {
        {.model = "pinned", .path = MODEL, .sha256 = wrong, .n_threads = 1},
        {.model = "absent", .path = "/nowhere/model.gguf", .n_threads = 1},
        {.model = "good", .path = MODEL, .n_threads = 1},
    };
    bench_open(&b, specs, 3);
    wait_for(&b, registry_at(b.g, 0), REPLICA_FAILED);
    wait_for(&b, registry_at(b.g, 1), REPLICA_FAILED);
    wait_for(&b, registry_at(b.g, 2), REPLICA_READY);
    assert_non_null(strstr(registry_at(b.g, 0)->reason, wrong));
    assert_non_null(strstr(registry_at(b.g, 1)->reason, "/nowhere/model.gguf"));
    assert_int_equal(registry_at(b.g, 0)->process.n_restarts, 0);
    assert_false(registry_all_ready(b.g));
    assert_true(b.n_changes >= 3);
    bench_close(&b);
}

/* Who is wanted as before stays, with its process; who is not goes; other options are another worker. */
static void agent_changes_its_workers_as_it_is_told(void **state)
{
    if (missing_program()) skip();
    bench b;
    shoal_err err;
    worker_spec specs[] = {{.model = "a", .path = MODEL, .n_threads = 1},
                           {.model = "b", .path = MODEL, .n_replicas = 2, .n_threads = 1}};
    bench_open(&b, specs, 1);
    const replica *a = registry_get(b.g, "a/0");
    wait_for(&b, a, REPLICA_READY);
    int pid = a->process.pid;
    assert_int_equal(agent_set(b.a, specs, 2, &err), 0);
    assert_int_equal(registry_count(b.g), 3);
    wait_for(&b, registry_get(b.g, "b/1"), REPLICA_READY);
    int second = registry_get(b.g, "b/1")->process.pid;
    specs[1].n_replicas = 1;
    assert_int_equal(agent_set(b.a, specs, 2, &err), 0);
    while (registry_get(b.g, "b/1")) uv_run(&b.loop, UV_RUN_ONCE);
    assert_false(process_exists(second));
    assert_int_equal(a->process.pid, pid);

    uint64_t before = a->generation;
    strcpy(specs[0].options, "max_batch=2");
    assert_int_equal(agent_set(b.a, specs, 2, &err), 0);
    while (!registry_get(b.g, "a/0") || registry_get(b.g, "a/0")->generation == before)
        uv_run(&b.loop, UV_RUN_ONCE);
    wait_for(&b, registry_get(b.g, "a/0"), REPLICA_READY);
    assert_int_not_equal(registry_get(b.g, "a/0")->process.pid, pid);
    assert_true(registry_get(b.g, "a/0")->generation > before);
    assert_int_equal(agent_set(b.a, NULL, 0, &err), 0);
    while (registry_count(b.g) > 0) uv_run(&b.loop, UV_RUN_ONCE);
    bench_close(&b);
}

/* A standby is loaded, polled and ready, and in no place where calls look; it serves without starting again.
 */
static void agent_keeps_standbys_ready_and_lets_them_serve(void **state)
{
    if (missing_program()) skip();
    bench b;
    shoal_err err;
    worker_spec spec = {.model = "a", .path = MODEL, .n_replicas = 2, .n_standby = 1, .n_threads = 1};
    bench_open(&b, &spec, 1);
    const replica *serves = registry_get(b.g, "a/0"), *stands = registry_get(b.g, "a/1");
    wait_for(&b, serves, REPLICA_READY);
    wait_for(&b, stands, REPLICA_READY);
    assert_true(stands->standby && !serves->standby);
    assert_int_equal(registry_find(b.g, "a")->n_ready, 1);
    assert_true(registry_all_ready(b.g));
    int pid = stands->process.pid;
    uint64_t generation = stands->generation;
    spec.n_standby = 0;
    assert_int_equal(agent_set(b.a, &spec, 1, &err), 0);
    assert_int_equal(registry_find(b.g, "a")->n_ready, 2);
    spec.n_standby = 2;
    assert_int_equal(agent_set(b.a, &spec, 1, &err), 0);
    assert_int_equal(registry_find(b.g, "a")->n_ready, 2); /* where nobody serves, those that stand by do */
    spec.n_standby = 1;
    assert_int_equal(agent_set(b.a, &spec, 1, &err), 0);
    assert_int_equal(registry_find(b.g, "a")->n_ready, 1);
    assert_int_equal(stands->process.pid, pid);
    assert_true(stands->generation == generation);
    kill(pid, SIGKILL); /* one that stands by comes back as one that stands by */
    while (stands->generation == generation) uv_run(&b.loop, UV_RUN_ONCE);
    wait_for(&b, stands, REPLICA_READY);
    assert_int_equal(registry_find(b.g, "a")->n_ready, 1);
    bench_close(&b);
}

static void agent_polls_stats_of_ready_replicas(void **state)
{
    if (missing_program()) skip();
    bench b;
    worker_spec spec = {.model = "intent", .path = MODEL, .n_threads = 1};
    bench_open(&b, &spec, 1);
    replica *r = registry_at(b.g, 0);
    wait_for(&b, r, REPLICA_READY);
    while (!r->stats) uv_run(&b.loop, UV_RUN_ONCE);
    assert_true(r->stats->rss_bytes > 0);
    bench_close(&b);
}

static bool is_at(const replica *r, int old_pid)
{
    return r->state == REPLICA_READY && r->process.pid != old_pid && !r->silent;
}

/* Alive, but it will never answer: first it gets no new calls, then it is replaced. */
static void agent_replaces_a_stopped_worker(void **state)
{
    if (missing_program()) skip();
    bench b;
    worker_spec spec = {.model = "intent", .path = MODEL, .n_threads = 1};
    bench_open(&b, &spec, 1);
    replica *r = registry_at(b.g, 0);
    wait_for(&b, r, REPLICA_READY);
    int old = r->process.pid;
    kill(old, SIGSTOP);
    while (!r->silent) uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(r->state, REPLICA_READY);
    uint64_t start = clock_ns();
    while (r->state == REPLICA_READY) uv_run(&b.loop, UV_RUN_ONCE);
    if (clock_ms_since(start) > 30000) fail_msg("a stopped worker was called slow");
    while (!is_at(r, old)) uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(classify(&b, r).status, GRPC_OK);
    bench_close(&b);
}

/* Mostly stopped, as on a machine with too much to do: it answers late, and is left alone. */
static void agent_leaves_a_slow_worker_alone(void **state)
{
    if (missing_program()) skip();
    bench b;
    worker_spec spec = {.model = "intent", .path = MODEL, .n_threads = 1};
    bench_open(&b, &spec, 1);
    replica *r = registry_at(b.g, 0);
    wait_for(&b, r, REPLICA_READY);
    int old = r->process.pid;
    for (int i = 0; i < 4; i++) {
        kill(old, SIGSTOP);
        while (!r->silent) uv_run(&b.loop, UV_RUN_ONCE);
        kill(old, SIGCONT);
        while (r->silent) uv_run(&b.loop, UV_RUN_ONCE);
    }
    assert_int_equal(r->process.pid, old);
    assert_int_equal(r->process.n_crashes, 0);
    assert_int_equal(classify(&b, r).status, GRPC_OK);
    bench_close(&b);
}

/* Our own loop stands still, not the worker: its answer waits in the socket. */
static void agent_does_not_blame_a_worker_for_its_own_delay(void **state)
{
    if (missing_program()) skip();
    bench b;
    worker_spec spec = {.model = "intent", .path = MODEL, .n_threads = 1};
    bench_open(&b, &spec, 1);
    replica *r = registry_at(b.g, 0);
    wait_for(&b, r, REPLICA_READY);
    int old = r->process.pid;
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 60; k++) uv_run(&b.loop, UV_RUN_ONCE); /* 5 ms each: a poll is on its way */
        usleep(700000);
        uv_run(&b.loop, UV_RUN_ONCE);
    }
    assert_int_equal(r->process.pid, old);
    assert_int_equal(r->process.n_crashes, 0);
    bench_close(&b);
}

static void agent_waits_longer_only_for_a_worker_that_never_served(void **state)
{
    uint64_t never = 0, served = 0, w = 0;
    assert_int_equal(agent_restart_wait_ms(&never, 10, false), 0);
    for (int i = 0; i < 20; i++) {
        uint64_t next = agent_restart_wait_ms(&never, 10, false);
        assert_true(next >= w && next <= 5000);
        w = next;
    }
    assert_int_equal(w, 5000);
    for (int i = 0; i < 20; i++) assert_true(agent_restart_wait_ms(&served, 400, true) <= 500);
    assert_int_equal(agent_restart_wait_ms(&never, 400, true), 500);
    for (int i = 0; i < 20; i++) assert_true(agent_restart_wait_ms(&served, 1600, true) <= 100);
    assert_int_equal(agent_restart_wait_ms(&never, 1600, true), 100);
    assert_int_equal(agent_restart_wait_ms(&never, 60000, true), 0);
}

static void agent_backs_off_from_a_program_that_is_missing(void **state)
{
    bench b = {0};
    log_setup(LOG_OFF, false);
    assert_int_equal(uv_loop_init(&b.loop), 0);
    uv_timer_init(&b.loop, &b.tick);
    shoal_err err;
    assert_int_equal(registry_new(&b.g, &b.loop, &err), 0);
    worker_spec spec = {.model = "m", .path = MODEL};
    agent_options o = {.program = "/nowhere/shoal", .workers = &spec, .n_workers = 1};
    assert_int_equal(agent_new(&b.a, &b.loop, b.g, &o, &err), 0);
    assert_int_equal(registry_at(b.g, 0)->state, REPLICA_DOWN);
    assert_non_null(strstr(registry_at(b.g, 0)->reason, "/nowhere/shoal"));
    bench_close(&b);
}

/* Whoever waits for such a worker gives up after some deaths, so each of these is one. */
static void agent_counts_starts_that_come_to_nothing(void **state)
{
    static const char *const programs[] = {"/nowhere/shoal", "/bin/true", "/bin/false"};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        bench b = {0};
        log_setup(LOG_OFF, false);
        assert_int_equal(uv_loop_init(&b.loop), 0);
        uv_timer_init(&b.loop, &b.tick);
        uv_timer_start(&b.tick, ticked, 5, 5);
        shoal_err err;
        assert_int_equal(registry_new(&b.g, &b.loop, &err), 0);
        worker_spec spec = {.model = "m", .path = MODEL};
        agent_options o = {.program = programs[i], .workers = &spec, .n_workers = 1};
        assert_int_equal(agent_new(&b.a, &b.loop, b.g, &o, &err), 0);
        const replica *r = registry_at(b.g, 0);
        uint64_t start = clock_ns();
        while (r->process.n_crashes < 3 || r->state != REPLICA_DOWN) {
            if (clock_ms_since(start) > PATIENCE_MS)
                fail_msg("%s: %u crashes", programs[i], (unsigned)r->process.n_crashes);
            uv_run(&b.loop, UV_RUN_ONCE);
        }
        bench_close(&b);
    }
}

static void agent_refuses_more_workers_than_the_arbiter_has_places(void **state)
{
    uv_loop_t loop;
    registry *g = NULL;
    agent *a = NULL;
    shoal_err err;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(registry_new(&g, &loop, &err), 0);
    worker_spec spec = {.model = "m", .path = MODEL, .n_replicas = 3};
    agent_arbiter arb = {.fd = 0, .n_slots = 2};
    agent_options o = {.program = "/nowhere/shoal", .workers = &spec, .n_workers = 1, .arbiter = &arb};
    assert_int_equal(agent_new(&a, &loop, g, &o, &err), SHOAL_ELIMIT);
    registry_free(g);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agent_brings_a_killed_worker_back_while_others_serve),
        cmocka_unit_test(agent_leaves_no_process_and_no_socket),
        cmocka_unit_test(agent_shows_why_a_worker_can_never_start),
        cmocka_unit_test(agent_changes_its_workers_as_it_is_told),
        cmocka_unit_test(agent_keeps_standbys_ready_and_lets_them_serve),
        cmocka_unit_test(agent_polls_stats_of_ready_replicas),
        cmocka_unit_test(agent_replaces_a_stopped_worker),
        cmocka_unit_test(agent_leaves_a_slow_worker_alone),
        cmocka_unit_test(agent_does_not_blame_a_worker_for_its_own_delay),
        cmocka_unit_test(agent_waits_longer_only_for_a_worker_that_never_served),
        cmocka_unit_test(agent_backs_off_from_a_program_that_is_missing),
        cmocka_unit_test(agent_counts_starts_that_come_to_nothing),
        cmocka_unit_test(agent_refuses_more_workers_than_the_arbiter_has_places),
    };
    return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
