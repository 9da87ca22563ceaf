/* The worker's share of threads: long jobs leave some to short ones, wait in order, and go at once when
 * nobody waits for them. Jobs rest until the test lets them go, so nothing depends on time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/pool.h"

enum { N_MAX = 16 };

typedef struct bench bench;

typedef struct test_job {
    pool_job job; /* first */
    bench *b;
    size_t name;
    uv_sem_t go;
} test_job;

struct bench {
    uv_loop_t loop;
    pool pool;
    test_job jobs[N_MAX];
    atomic_size_t n_started;
    size_t started[N_MAX]; /* names; written by one thread at a time under lock */
    uv_mutex_t lock;
    size_t ended[N_MAX], n_ended; /* names, in order */
    bool ran[N_MAX];
};

static void run(pool_job *job)
{
    test_job *j = (test_job *)job;
    uv_mutex_lock(&j->b->lock);
    j->b->started[j->b->n_started] = j->name;
    atomic_fetch_add(&j->b->n_started, 1);
    uv_mutex_unlock(&j->b->lock);
    uv_sem_wait(&j->go);
}

static void done(pool_job *job, bool ran)
{
    test_job *j = (test_job *)job;
    j->b->ran[j->name] = ran;
    j->b->ended[j->b->n_ended++] = j->name;
}

static void bench_open(bench *b)
{
    memset(b, 0, sizeof *b);
    assert_int_equal(uv_loop_init(&b->loop), 0);
    assert_int_equal(uv_mutex_init(&b->lock), 0);
    b->pool.loop = &b->loop;
    for (size_t i = 0; i < N_MAX; i++) {
        b->jobs[i].b = b;
        b->jobs[i].name = i;
        assert_int_equal(uv_sem_init(&b->jobs[i].go, 0), 0);
    }
}

static void bench_close(bench *b)
{
    uv_run(&b->loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < N_MAX; i++) uv_sem_destroy(&b->jobs[i].go);
    uv_mutex_destroy(&b->lock);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    assert_int_equal(b->pool.n_heavy, 0);
    assert_null(b->pool.head);
    assert_null(b->pool.tail);
}

static void start(bench *b, size_t name, bool heavy)
{
    pool_start(&b->pool, &b->jobs[name].job, heavy, run, done);
}

static void let_go(bench *b, size_t name)
{
    uv_sem_post(&b->jobs[name].go);
}

/* Threads start jobs by themselves; the loop has to run for ends. */
static void wait_started(bench *b, size_t n)
{
    while (atomic_load(&b->n_started) < n) uv_run(&b->loop, UV_RUN_NOWAIT);
}

static void wait_ended(bench *b, size_t n)
{
    while (b->n_ended < n) uv_run(&b->loop, UV_RUN_ONCE);
}

static void short_jobs_pass_long_ones(void **state)
{
    bench b;
    bench_open(&b);
    for (size_t i = 0; i < 10; i++) start(&b, i, true);
    start(&b, 10, false);
    start(&b, 11, false);
    wait_started(&b, POOL_HEAVY + 2);
    let_go(&b, 10);
    let_go(&b, 11);
    wait_ended(&b, 2);
    assert_true(b.ended[0] >= 10 && b.ended[1] >= 10);
    assert_int_equal(b.n_started, POOL_HEAVY + 2); /* two threads are free, and no other long job has one */
    for (size_t i = 0; i < 10; i++) let_go(&b, i);
    wait_ended(&b, 12);
    bench_close(&b);
}

static void long_jobs_run_in_the_order_they_came(void **state)
{
    bench b;
    bench_open(&b);
    for (size_t i = 0; i < 8; i++) start(&b, i, true);
    for (size_t i = 0; i < 8; i++) {
        wait_started(&b, i + POOL_HEAVY < 8 ? i + POOL_HEAVY : 8);
        assert_true(b.pool.n_heavy <= POOL_HEAVY);
        let_go(&b, i);
        wait_ended(&b, i + 1);
        assert_int_equal(b.ended[i], i);
    }
    for (size_t i = POOL_HEAVY; i < 8; i++) assert_int_equal(b.started[i], i);
    bench_close(&b);
}

static void what_nobody_waits_for_ends_without_a_thread(void **state)
{
    bench b;
    bench_open(&b);
    for (size_t i = 0; i < 6; i++) start(&b, i, true);
    wait_started(&b, POOL_HEAVY);
    static const size_t dropped[] = {5, 2, 3}; /* the last, the first, one in between */
    for (size_t i = 0; i < 3; i++) {
        pool_drop(&b.pool, &b.jobs[dropped[i]].job);
        assert_int_equal(b.n_ended, i + 1); /* at once */
        assert_int_equal(b.ended[i], dropped[i]);
        assert_false(b.ran[dropped[i]]);
    }
    pool_drop(&b.pool, &b.jobs[0].job); /* it has a thread */
    assert_int_equal(b.n_ended, 3);
    start(&b, 6, true);
    for (size_t i = 0; i < 7; i++) let_go(&b, i);
    wait_ended(&b, 7);
    assert_int_equal(b.n_started, 4);
    assert_true(b.ran[0] && b.ran[1] && b.ran[4] && b.ran[6]);
    bench_close(&b);
}

/* Of short ones that wait for libuv: four have the threads. */
static void short_jobs_that_have_not_begun_are_dropped(void **state)
{
    bench b;
    bench_open(&b);
    for (size_t i = 0; i < 7; i++) start(&b, i, false);
    wait_started(&b, 4);
    pool_drop(&b.pool, &b.jobs[6].job);
    wait_ended(&b, 1);
    assert_int_equal(b.ended[0], 6);
    assert_false(b.ran[6]);
    for (size_t i = 0; i < 6; i++) let_go(&b, i);
    wait_ended(&b, 7);
    assert_int_equal(b.n_started, 6);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_jobs_pass_long_ones),
        cmocka_unit_test(long_jobs_run_in_the_order_they_came),
        cmocka_unit_test(what_nobody_waits_for_ends_without_a_thread),
        cmocka_unit_test(short_jobs_that_have_not_begun_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
