/* The line that a dying process writes, read from children that die. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "os/crash.h"

static char text[8192];

/* The child's standard error in `text`; how it ended. */
static int run(void (*fn)(void), bool json)
{
    int ends[2], status = 0;
    size_t n = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit none = {0};
        setrlimit(RLIMIT_CORE, &none);
        for (int s = 1; s < 32; s++) signal(s, SIG_DFL); /* cmocka's */
        dup2(ends[1], STDERR_FILENO);
        crash_open("gateway", json);
        fn();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0;) n += (size_t)got;
    text[n] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void null_write(void)
{
    volatile uintptr_t at = 0x10;
    *(volatile int *)at = 1;
}

static void in_a_request(void)
{
    crash_enter("chat", "id \"1\"=2");
    abort();
}

static void behind_a_request(void)
{
    crash_enter("classify", "abc");
    crash_leave();
    raise(SIGSEGV);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winfinite-recursion"
static int deeper(volatile char *above)
{
    volatile char room[4096];
    room[0] = above[0];
    return deeper(room) + room[0];
}
#pragma GCC diagnostic pop

static void overflow(void)
{
    volatile char top[1] = {0};
    exit(deeper(top));
}

static void in_a_fork(void)
{
    pid_t pid = fork();
    if (pid == 0) raise(SIGILL); /* a probe of instructions, say */
    int status = 0;
    waitpid(pid, &status, 0);
    _exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL ? 0 : 1);
}

static bool died_of(int status, int sig)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == sig;
}

static bool says(const char *what)
{
    if (strstr(text, what)) return true;
    print_message("no %s in: %s\n", what, text);
    return false;
}

static void a_fault_is_one_line_and_the_process_dies_of_it(void **state)
{
    assert_true(died_of(run(null_write, false), SIGSEGV));
    assert_true(says(" level=error component=gateway event=crash pid=") &&
                says(" signal=11 name=SEGV address=0x10 "));
    assert_true(says(" backtrace=\"") && says("os_test_crash+0x") && says("Z level=") &&
                says(" uptime_ms="));
    assert_null(strstr(text, "request_id"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void the_request_under_way_is_named(void **state)
{
    assert_true(died_of(run(in_a_request, false), SIGABRT));
    assert_true(
        says(" endpoint=chat request_id=id__1__2 request=in_handler ")); /* nothing can end the value */
    assert_true(died_of(run(behind_a_request, false), SIGSEGV));
    assert_true(says(" request_id=abc request=latest ") && says(" address=0x0 ")); /* somebody sent it */
}

static void it_is_json_where_the_log_is(void **state)
{
    assert_true(died_of(run(in_a_request, true), SIGABRT));
    json_t *j = json_loads(text, 0, NULL);
    assert_non_null(j);
    assert_string_equal(json_string_value(json_object_get(j, "event")), "crash");
    assert_int_equal(json_integer_value(json_object_get(j, "signal")), SIGABRT);
    assert_string_equal(json_string_value(json_object_get(j, "endpoint")), "chat");
    assert_true(strlen(json_string_value(json_object_get(j, "backtrace"))) > 0);
    int year = 0, month = 0, day = 0;
    assert_int_equal(
        sscanf(json_string_value(json_object_get(j, "time")), "%4d-%2d-%2dT", &year, &month, &day), 3);
    assert_true(year >= 2026 && month >= 1 && month <= 12 && day >= 1 && day <= 31);
    json_decref(j);
}

static void a_stack_overflow_is_reported(void **state)
{
    assert_true(died_of(run(overflow, false), SIGSEGV));
    assert_true(says("event=crash"));
}

static void a_forked_child_reports_nothing(void **state)
{
    int status = run(in_a_fork, false);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_string_equal(text, "");
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0; /* which have reports of their own */
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_is_one_line_and_the_process_dies_of_it),
        cmocka_unit_test(the_request_under_way_is_named),
        cmocka_unit_test(it_is_json_where_the_log_is),
        cmocka_unit_test(a_stack_overflow_is_reported),
        cmocka_unit_test(a_forked_child_reports_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
