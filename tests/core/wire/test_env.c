/* The real env: what a loop that was late finds in its sockets comes before the timers that ask for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "wire/env_uv.h"

typedef struct bench {
    uv_loop_t loop;
    env e;
    env_timer *first, *second;
    uv_poll_t poll;
    int ends[2], n_second, n_late;
    bool read;
} bench;

static void on_second(void *arg)
{
    bench *b = arg;
    b->n_second++;
    b->n_late += !b->read;
    b->e.timer_free(b->second);
    uv_close((uv_handle_t *)&b->poll, NULL);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
    bench *b = p->data;
    b->read = true;
    uv_poll_stop(p);
}

/* Something comes while the loop stands still. */
static void on_first(void *arg)
{
    bench *b = arg;
    assert_int_equal(write(b->ends[1], "x", 1), 1);
    usleep(20000);
    b->e.timer_start(b->second, 0);
    b->e.timer_free(b->first);
}

static void env_uv_reads_before_a_timer_that_a_timer_started(void **state)
{
    for (int i = 0; i < 20; i++) {
        bench b = {0};
        assert_int_equal(uv_loop_init(&b.loop), 0);
        assert_int_equal(pipe(b.ends), 0);
        b.e = env_uv(&b.loop);
        b.first = b.e.timer_new(b.e.user, on_first, &b);
        b.second = b.e.timer_new(b.e.user, on_second, &b);
        uv_poll_init(&b.loop, &b.poll, b.ends[0]);
        b.poll.data = &b;
        uv_poll_start(&b.poll, UV_READABLE, on_readable);
        b.e.timer_start(b.first, 1);
        uv_run(&b.loop, UV_RUN_DEFAULT);
        assert_int_equal(b.n_second, 1);
        assert_int_equal(b.n_late, 0);
        assert_int_equal(uv_loop_close(&b.loop), 0);
        close(b.ends[0]);
        close(b.ends[1]);
    }
}

static void count(void *arg)
{
    ++*(int *)arg;
}

static void env_uv_runs_no_timer_that_was_stopped_or_freed(void **state)
{
    uv_loop_t loop;
    int n = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    env e = env_uv(&loop);
    env_timer *a = e.timer_new(e.user, count, &n), *b = e.timer_new(e.user, count, &n),
              *c = e.timer_new(e.user, count, &n);
    e.timer_start(a, 1);
    e.timer_start(b, 1);
    e.timer_start(c, 1);
    e.timer_stop(a);
    e.timer_stop(NULL);
    e.timer_free(b);
    e.timer_free(NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(n, 1);
    assert_true(e.now_ns(e.user) > 0);
    assert_true(e.random(e.user) != e.random(e.user));
    e.timer_free(a);
    e.timer_free(c);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(env_uv_reads_before_a_timer_that_a_timer_started),
        cmocka_unit_test(env_uv_runs_no_timer_that_was_stopped_or_freed),
    };
    return cmocka_run_group_tests_name("env_uv", tests, NULL, NULL);
}
