/* The clock for the silence of peers: it runs while the loop waits, and not while the loop could not hear. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "wire/env_uv.h"
#include "wire/listening.h"

enum { MS = 1000000 };

static void open_loop(uv_loop_t *loop)
{
    assert_int_equal(uv_loop_init(loop), 0);
    listening_open(loop);
}

static void close_loop(uv_loop_t *loop)
{
    listening_close();
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

static void stand_still(uv_timer_t *t)
{
    usleep(300000);
    uv_close((uv_handle_t *)t, NULL);
}

static void close_timer(uv_timer_t *t)
{
    uv_close((uv_handle_t *)t, NULL);
}

static void run_timer(uv_loop_t *loop, uv_timer_cb fn, uint64_t ms)
{
    uv_timer_t t;
    uv_update_time(loop);
    uv_timer_init(loop, &t);
    uv_timer_start(&t, fn, ms, 0);
    uv_run(loop, UV_RUN_DEFAULT);
}

static void listening_counts_what_the_loop_waits(void **state)
{
    uv_loop_t loop;
    open_loop(&loop);
    uint64_t start = listening_ns();
    run_timer(&loop, close_timer, 100);
    assert_true(listening_ns() - start >= 97 * MS); /* libuv counts in whole milliseconds */
    close_loop(&loop);
}

static void listening_leaves_out_a_long_callback(void **state)
{
    uv_loop_t loop;
    open_loop(&loop);
    uint64_t start = listening_ns(), start_real = clock_ns();
    run_timer(&loop, stand_still, 1);
    uint64_t heard = listening_ns() - start, passed = clock_ns() - start_real;
    assert_true(passed - heard >= (300 - LISTENING_SLACK_MS - 2) * (uint64_t)MS);
    close_loop(&loop);
}

/* Seen from inside the callback, too: that is where a timer asks how long a peer was silent. */
static void ask_inside(uv_timer_t *t)
{
    uint64_t before = listening_ns();
    usleep(300000);
    *(uint64_t *)t->data = listening_ns() - before;
    uv_close((uv_handle_t *)t, NULL);
}

static void listening_stands_still_inside_a_long_callback(void **state)
{
    uv_loop_t loop;
    uv_timer_t t;
    uint64_t heard = UINT64_MAX;
    open_loop(&loop);
    uv_timer_init(&loop, &t);
    t.data = &heard;
    uv_timer_start(&t, ask_inside, 1, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(heard <= (uint64_t)LISTENING_SLACK_MS * MS);
    close_loop(&loop);
}

static void beat(uv_timer_t *t)
{
    static int n;
    if (++n == 1) assert_int_equal(write(*(int *)t->data, "x", 1), 1);
    if (n == 50) uv_close((uv_handle_t *)t, NULL);
}

/* In a process of its own: which of its time it was stopped the parent knows. */
static int beat_while_stopped(int ready)
{
    uv_loop_t loop;
    uv_timer_t t;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    uv_loop_init(&loop);
    listening_open(&loop);
    uint64_t start = listening_ns(), start_real = clock_ns();
    uv_timer_init(&loop, &t);
    t.data = &ready;
    uv_timer_start(&t, beat, 10, 10);
    uv_run(&loop, UV_RUN_DEFAULT);
    uint64_t heard = listening_ns() - start, passed = clock_ns() - start_real;
    return passed - heard >= 250 * (uint64_t)MS ? 0 : 1;
}

static void listening_leaves_out_the_time_in_which_the_process_was_stopped(void **state)
{
    int ends[2], status = -1;
    char x;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) _exit(beat_while_stopped(ends[1]));
    assert_int_equal(read(ends[0], &x, 1), 1);
    kill(pid, SIGSTOP);
    usleep(300000);
    kill(pid, SIGCONT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(ends[0]);
    close(ends[1]);
}

static void env_without_a_loop_has_the_monotonic_clock(void **state)
{
    uint64_t before = clock_ns(), now = listening_ns();
    assert_true(now >= before && now <= clock_ns());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listening_counts_what_the_loop_waits),
        cmocka_unit_test(listening_leaves_out_a_long_callback),
        cmocka_unit_test(listening_stands_still_inside_a_long_callback),
        cmocka_unit_test(listening_leaves_out_the_time_in_which_the_process_was_stopped),
        cmocka_unit_test(env_without_a_loop_has_the_monotonic_clock),
    };
    return cmocka_run_group_tests_name("listening", tests, NULL, NULL);
}
