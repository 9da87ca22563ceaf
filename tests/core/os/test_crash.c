/* The line that a dying process writes, read from children that die. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/signal_stack.h"
#include "os/crash.h"

static char text[8192], crashes[64];

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

static void *thread_that_overflows(void *arg)
{
    volatile char top[1] = {0};
    signal_stack_open();
    signal_stack_open(); /* as a pool's thread does with each job */
    exit(deeper(top));
}

static void overflow_in_a_thread(void)
{
    pthread_t thread;
    crash_keep(crashes);
    crash_enter("chat", "id-1");
    if (pthread_create(&thread, NULL, thread_that_overflows, NULL) != 0) _exit(1);
    pthread_join(thread, NULL);
}

static void *thread_with_a_stack(void *arg)
{
    stack_t *s = arg;
    signal_stack_open();
    sigaltstack(NULL, s);
    return NULL;
}

/* A stack each, which goes with its thread. */
static void in_a_thousand_threads(void)
{
    unsigned char there;
    stack_t s;
    size_t n_left = 0;
    void *last = NULL;
    for (int i = 0; i < 1000; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, thread_with_a_stack, &s) != 0) _exit(1);
        pthread_join(thread, NULL);
        if ((s.ss_flags & SS_DISABLE) || s.ss_size < SIGNAL_STACK_BYTES) _exit(2);
        n_left += last && last != s.ss_sp && mincore(last, 1, &there) == 0;
        last = s.ss_sp;
    }
    _exit(n_left > 10 ? 3 : 0); /* something else may lie where one was */
}

static void in_a_fork(void)
{
    pid_t pid = fork();
    if (pid == 0) raise(SIGILL); /* a probe of instructions, say */
    int status = 0;
    waitpid(pid, &status, 0);
    _exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL ? 0 : 1);
}

static pthread_barrier_t both;

static void *fault_with_the_other(void *arg)
{
    pthread_barrier_wait(&both);
    null_write();
    return arg;
}

static void in_two_threads(void)
{
    pthread_t other;
    pthread_barrier_init(&both, NULL, 2);
    if (pthread_create(&other, NULL, fault_with_the_other, NULL) != 0) _exit(1);
    fault_with_the_other(NULL);
}

/* With a frame pointer, by which the unwinder finds the caller's registers. */
__attribute__((noinline)) static void smash(size_t n)
{
    volatile char room[n];
    room[n - 1] = 1;
    if (!room[n - 1]) return;
#if defined(__x86_64__)
    __asm__ volatile("movq $16, %rbp\n\tud2");
#elif defined(__aarch64__)
    __asm__ volatile("mov x29, #16\n\tudf #0");
#endif
    abort();
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
    assert_true(says(" backtrace=\"") && says("os_test_crash+0x") && says("Z level=") && says(" uptime_ms="));
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

static void two_faults_at_once_are_one_report(void **state)
{
    for (int i = 0; i < 20; i++) {
        assert_true(died_of(run(in_two_threads, false), SIGSEGV));
        assert_true(says("event=crash") && says("os_test_crash+0x"));
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    }
}

static void a_forked_child_reports_nothing(void **state)
{
    int status = run(in_a_fork, false);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_string_equal(text, "");
}

/* ---- the report --------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/crash-XXXXXX";

static void with_a_report(void)
{
    static char wide[4000];
    crash_keep(crashes);
    memset(wide, 'w', sizeof wide - 1);
    for (int i = 0; i < 40; i++) {
        crash_step_begin(i % 2 ? "decode" : "prefill", 3, (size_t)i);
        if (i < 39) crash_step_end();
    }
    crash_fact("model", "first");
    crash_fact("model", "a \"name\"\n");
    crash_fact("wide", wide);
    crash_enter("chat", "id-1");
    abort();
}

static json_t *only_report(void)
{
    char name[CRASH_NAME_BYTES], path[200], *said = strstr(text, "report=");
    assert_non_null(said);
    assert_int_equal(sscanf(said, "report=%63s", name), 1);
    assert_true(crash_is_report(name));
    snprintf(path, sizeof path, "%s/%s", crashes, name);
    json_t *j = json_load_file(path, 0, NULL);
    assert_non_null(j);
    unlink(path);
    return j;
}

static void a_report_has_facts_steps_and_frames(void **state)
{
    char build[CRASH_BUILD_BYTES];
    assert_true(died_of(run(with_a_report, false), SIGABRT));
    json_t *j = only_report(), *facts = json_object_get(j, "facts"), *steps = json_object_get(j, "steps");
    assert_string_equal(json_string_value(json_object_get(facts, "model")), "a__name__");
    assert_int_equal(strlen(json_string_value(json_object_get(facts, "wide"))), CRASH_FACT_BYTES - 1);
    assert_true(json_integer_value(json_object_get(facts, "limit_files")) > 0);
    assert_int_equal(json_array_size(steps), CRASH_STEPS);
    json_t *last = json_array_get(steps, 0), *before = json_array_get(steps, 1);
    assert_string_equal(json_string_value(json_object_get(last, "kind")), "decode");
    assert_int_equal(json_integer_value(json_object_get(last, "tokens")), 39);
    assert_int_equal(json_integer_value(json_object_get(last, "jobs")), 3);
    assert_null(json_object_get(last, "took_us"));
    assert_non_null(json_object_get(before, "took_us"));
    assert_string_equal(json_string_value(json_object_get(j, "request_id")), "id-1");
    crash_build(build);
    size_t i, n_own = 0;
    json_t *f;
    json_array_foreach(json_object_get(j, "frames"), i, f) n_own +=
        strcmp(json_string_value(json_object_get(f, "build_id")), build) == 0;
    assert_true(strlen(build) >= 16 && n_own > 0);
    json_decref(j);
}

static void a_thread_that_overflows_leaves_a_report(void **state)
{
    assert_true(died_of(run(overflow_in_a_thread, false), SIGSEGV));
    assert_true(says("event=crash") && says("endpoint=chat"));
    json_t *j = only_report();
    assert_int_equal(json_integer_value(json_object_get(j, "signal")), SIGSEGV);
    assert_true(json_array_size(json_object_get(j, "frames")) > 10);
    json_decref(j);
    int status = run(in_a_thousand_threads, false);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void with_a_smashed_stack(void)
{
    crash_keep(crashes);
    crash_fact("model", "m");
    smash(strlen(crashes));
}

static void a_smashed_stack_leaves_a_report_without_frames(void **state)
{
    int status = run(with_a_smashed_stack, false);
    assert_true(died_of(status, SIGILL) || died_of(status, SIGABRT));
#if defined(__x86_64__)
    assert_true(says(" backtrace=\"\"\n"));
#endif
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    json_t *j = only_report();
    assert_string_equal(json_string_value(json_object_get(json_object_get(j, "facts"), "model")), "m");
    assert_true(json_is_array(json_object_get(j, "frames")));
    json_decref(j);
}

static void a_folder_that_others_may_write_into_is_not_used(void **state)
{
    char link[80];
    snprintf(link, sizeof link, "%s/state/link", folder);
    assert_int_equal(chmod(crashes, 0770), 0);
    assert_true(died_of(run(with_a_report, false), SIGABRT));
    assert_true(says("event=crash") && !strstr(text, "report="));
    assert_int_equal(chmod(crashes, 0700), 0);
    assert_int_equal(symlink(crashes, link), 0);
    strcpy(crashes, link);
    assert_true(died_of(run(with_a_report, false), SIGABRT));
    assert_null(strstr(text, "report="));
    assert_int_equal(unlink(link), 0);
    snprintf(crashes, sizeof crashes, "%s/state/crashes", folder);
}

static void the_oldest_reports_give_way(void **state)
{
    char path[200];
    for (int i = 0; i < 30; i++) {
        snprintf(path, sizeof path, "%s/%011d-worker-7.json", crashes, i);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fclose(f);
    }
    snprintf(path, sizeof path, "%s/somebody's", crashes);
    fclose(fopen(path, "w"));
    assert_true(died_of(run(with_a_report, false), SIGABRT));
    json_decref(only_report());
    char name[CRASH_NAME_BYTES];
    assert_true(crash_find(crashes, "worker", 7, 29, name));
    assert_string_equal(name, "00000000029-worker-7.json");
    assert_false(crash_find(crashes, "worker", 8, 0, name) || crash_find(NULL, "worker", 7, 0, name));
    assert_false(crash_find(crashes, "worker", 7, 30, name)); /* of an earlier process of that id */
    assert_true(crash_is_fatal(SIGBUS) && !crash_is_fatal(SIGKILL) && !crash_is_fatal(0));
    assert_int_equal(unlink(path), 0);
    for (int i = 0, there = 0; i <= 30; i++) {
        snprintf(path, sizeof path, "%s/%011d-worker-7.json", crashes, i);
        there += unlink(path) == 0;
        if (i == 30) assert_int_equal(there, CRASH_REPORTS - 1);
    }
}

static void nowhere(void)
{
    crash_keep("/proc/no-folder/crashes");
    abort();
}

static void read_only(void)
{
    crash_keep(crashes);
    const struct rlimit none = {0};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    abort();
}

static void without_a_place_there_is_the_line_alone(void **state)
{
    assert_true(died_of(run(nowhere, false), SIGABRT));
    assert_true(says("event=crash") && !strstr(text, "report="));
    assert_true(died_of(run(read_only, false), SIGABRT));
    assert_true(says("event=crash") && !strstr(text, "report="));
    assert_int_equal(rmdir(crashes), 0); /* half of one is removed */
}

static int open_folder(void **state)
{
    if (!mkdtemp(folder)) return -1;
    snprintf(crashes, sizeof crashes, "%s/state/crashes", folder);
    return 0;
}

static int close_folder(void **state)
{
    snprintf(crashes, sizeof crashes, "%s/state", folder);
    return rmdir(crashes) || rmdir(folder);
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
        cmocka_unit_test(two_faults_at_once_are_one_report),
        cmocka_unit_test(a_forked_child_reports_nothing),
        cmocka_unit_test(a_report_has_facts_steps_and_frames),
        cmocka_unit_test(a_thread_that_overflows_leaves_a_report),
        cmocka_unit_test(a_smashed_stack_leaves_a_report_without_frames),
        cmocka_unit_test(a_folder_that_others_may_write_into_is_not_used),
        cmocka_unit_test(the_oldest_reports_give_way),
        cmocka_unit_test(without_a_place_there_is_the_line_alone),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
