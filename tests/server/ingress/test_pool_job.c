/* Work that the event loop leaves to the thread pool: large jobs run one at a time, and dropped values are freed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "ingress/pool_job.h"

enum { N = 12 };

typedef struct counted {
    pool_job job; /* first */
    int number;
    bool ran;
} counted;

static atomic_int n_at_once, n_at_once_most;
static int done_order[N], n_done;

static void count_run(pool_job *j)
{
    counted *c = (counted *)j;
    int n = atomic_fetch_add(&n_at_once, 1) + 1;
    if (n > n_at_once_most) n_at_once_most = n;
    c->ran = true;
    usleep(1000);
    atomic_fetch_sub(&n_at_once, 1);
}

static void count_done(pool_job *j)
{
    done_order[n_done++] = ((counted *)j)->number;
}

static void large_jobs_run_one_at_a_time_in_order(void **state)
{
    uv_loop_t loop;
    counted jobs[N] = {0};
    n_done = n_at_once_most = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    for (int i = 0; i < N; i++) {
        jobs[i].number = i;
        assert_int_equal(pool_job_start(&jobs[i].job, &loop, true, count_run, count_done), 0);
    }
    pool_job_leave(&jobs[3].job); /* they wait for their turn */
    pool_job_leave(&jobs[N - 1].job);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(n_at_once_most, 1);
    assert_int_equal(n_done, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(done_order[i], i);
        assert_int_equal(jobs[i].ran, i != 3 && i != N - 1);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void start_another(pool_job *j)
{
    static counted more;
    count_done(j);
    more = (counted){.number = 7};
    assert_int_equal(pool_job_start(&more.job, j->req.loop, true, count_run, count_done), 0);
}

static void a_job_may_start_another_when_it_is_done(void **state)
{
    uv_loop_t loop;
    counted first = {.number = 1}, second = {.number = 2};
    n_done = n_at_once_most = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(pool_job_start(&first.job, &loop, true, count_run, start_another), 0);
    assert_int_equal(pool_job_start(&second.job, &loop, true, count_run, count_done), 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(n_done, 3);
    assert_int_equal(done_order[1], 2);
    assert_int_equal(done_order[2], 7);
    assert_int_equal(n_at_once_most, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void what_was_dropped_is_freed(void **state)
{
    uv_loop_t loop;
    json_t *values[N];
    counted job = {.number = 1};
    n_done = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    for (int i = 0; i < N; i++) {
        values[i] = json_array();
        pool_job_drop_json(&loop, json_incref(values[i]));
        if (i == N / 2) assert_int_equal(pool_job_start(&job.job, &loop, false, count_run, count_done), 0);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(n_done, 1);
    for (int i = 0; i < N; i++) {
        assert_int_equal(values[i]->refcount, 1);
        json_decref(values[i]);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_jobs_run_one_at_a_time_in_order),
        cmocka_unit_test(a_job_may_start_another_when_it_is_done),
        cmocka_unit_test(what_was_dropped_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
