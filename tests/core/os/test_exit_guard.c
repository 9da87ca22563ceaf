/* A process whose main thread waits for ever: it ends all the same, with the right status. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/exit_guard.h"
#include "logging/log.h"

enum { FOR_EVER_MS = 3600000, SOON_MS = 20, PATIENCE_S = 120 };

static int pipe_to_parent[2];

static int set_back_s; /* so far the system's time of day is behind the one that this process read */

#ifndef __SANITIZE_ADDRESS__ /* which has one of its own */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret);
    if (clock == CLOCK_REALTIME) ret->tv_sec += set_back_s;
    return rc;
}
#endif

/* Stands for the loop's: it says which signal came. */
static void on_signal(int signum)
{
    char c = (char)signum;
    if (write(pipe_to_parent[1], &c, 1) != 1) _exit(99);
}

static void child(uint64_t stop_ms, uint64_t cut_ms, uint64_t stopping_ms, int code)
{
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    close(pipe_to_parent[0]);
    exit_guard_start(&(exit_guard){.component = "test", .stop_ms = stop_ms, .cut_ms = cut_ms});
    if (stopping_ms) exit_guard_stopping(stopping_ms, code);
    on_signal(0); /* ready */
    for (;;) pause();
}

static pid_t start(uint64_t stop_ms, uint64_t cut_ms, uint64_t stopping_ms, int code)
{
    assert_int_equal(pipe(pipe_to_parent), 0);
    pid_t pid = fork();
    if (pid == 0) child(stop_ms, cut_ms, stopping_ms, code);
    assert_true(pid > 0);
    close(pipe_to_parent[1]);
    return pid;
}

static void expect_heard(char signum)
{
    char c = -1;
    assert_int_equal(read(pipe_to_parent[0], &c, 1), 1);
    assert_int_equal(c, signum);
}

static void expect_status(pid_t pid, int code)
{
    int status;
    char c;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
    assert_int_equal(read(pipe_to_parent[0], &c, 1), 0);
    close(pipe_to_parent[0]);
}

static void one_signal_gives_the_time_to_stop(void **state)
{
    pid_t pid = start(SOON_MS, FOR_EVER_MS, 0, 0);
    expect_heard(0);
    kill(pid, SIGTERM);
    expect_heard(SIGTERM);
    expect_status(pid, 0);
}

static void a_second_signal_cuts(void **state)
{
    pid_t pid = start(FOR_EVER_MS, SOON_MS, 0, 0);
    expect_heard(0);
    kill(pid, SIGTERM);
    expect_heard(SIGTERM);
    kill(pid, SIGINT);
    expect_heard(SIGINT);
    expect_status(pid, 128 + SIGINT);
}

static void a_third_signal_ends_it_at_once(void **state)
{
    pid_t pid = start(FOR_EVER_MS, FOR_EVER_MS, 0, 0);
    expect_heard(0);
    for (int i = 0; i < 2; i++) {
        kill(pid, SIGTERM);
        expect_heard(SIGTERM);
    }
    kill(pid, SIGTERM);
    expect_status(pid, 128 + SIGTERM);
}

/* The process stops for a reason of its own, or its drain is over before the time is. */
static void the_end_of_the_drain_shortens_the_time(void **state)
{
    pid_t pid = start(FOR_EVER_MS, FOR_EVER_MS, SOON_MS, 7);
    expect_heard(0);
    expect_status(pid, 7);
}

/* A first signal that only announces the stop: the one after it is the first that counts. */
static void an_announcement_does_not_count(void **state)
{
    assert_int_equal(pipe(pipe_to_parent), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sigaction sa = {.sa_handler = on_signal};
        sigset_t term, none;
        sigemptyset(&term);
        sigaddset(&term, SIGTERM);
        sigaction(SIGTERM, &sa, NULL);
        exit_guard_start(&(exit_guard){.component = "test", .stop_ms = FOR_EVER_MS, .cut_ms = SOON_MS});
        sigprocmask(SIG_BLOCK, &term, &none); /* it may come before we wait for it */
        on_signal(0);
        sigsuspend(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        exit_guard_announced(FOR_EVER_MS);
        on_signal(1);
        for (;;) pause();
    }
    close(pipe_to_parent[1]);
    expect_heard(0);
    kill(pid, SIGTERM);
    expect_heard(SIGTERM);
    expect_heard(1);
    kill(pid, SIGTERM);
    expect_heard(SIGTERM);
    kill(pid, SIGTERM);
    expect_heard(SIGTERM);
    expect_status(pid, 128 + SIGTERM);
}

/* While the guard waits, the time of day is set back by an hour: it does not wait an hour longer. */
static void a_clock_that_is_set_back_delays_nothing(void **state)
{
    set_back_s = 3600;
    pid_t pid = start(SOON_MS, FOR_EVER_MS, 0, 0);
    set_back_s = 0;
    alarm(PATIENCE_S);
    expect_heard(0);
    kill(pid, SIGTERM);
    expect_heard(SIGTERM);
    expect_status(pid, 0);
    alarm(0);
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_signal_gives_the_time_to_stop),
        cmocka_unit_test(a_second_signal_cuts),
        cmocka_unit_test(a_third_signal_ends_it_at_once),
        cmocka_unit_test(the_end_of_the_drain_shortens_the_time),
        cmocka_unit_test(an_announcement_does_not_count),
        cmocka_unit_test(a_clock_that_is_set_back_delays_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
