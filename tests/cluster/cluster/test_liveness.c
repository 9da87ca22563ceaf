/* Who hangs and who only waits for a core: stories of looks, then real threads. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster/threads.h"

enum { MS = 1000000, LOOK_MS = 100 };

typedef enum kind { WORK, LOOP, START, LOCK } kind;

/* One look each 100 ms, `n` of them alike; then this verdict. */
typedef struct phase {
    int n;
    bool idle, moves, runnable, stopped, queued, on_disk, others_run;
    unsigned cpu_ms, delay_ms;
    liveness_verdict verdict;
} phase;

typedef struct story {
    const char *name;
    kind kind;
    phase phases[6]; /* n 0: the end */
} story;

static const story STORIES[] = {
    {"it works", WORK, {{.n = 100, .moves = true, .cpu_ms = 100, .verdict = LIVENESS_OK}}},
    {"nothing is expected of it", WORK, {{.n = 1000, .idle = true, .verdict = LIVENESS_OK}}},
    {"idle and stopped: nobody minds",
     WORK,
     {{.n = 100, .idle = true, .stopped = true, .verdict = LIVENESS_OK}}},
    {"a long step of its own time",
     WORK,
     {{.n = 1, .cpu_ms = 100, .verdict = LIVENESS_OK}, {.n = 1, .moves = true, .verdict = LIVENESS_OK}}},
    {"it spins on a core of its own",
     WORK,
     {{.n = 1, .runnable = true, .cpu_ms = 100, .verdict = LIVENESS_STARVED},
      {.n = 1, .runnable = true, .cpu_ms = 100, .verdict = LIVENESS_SILENT},
      {.n = 2, .runnable = true, .cpu_ms = 100, .verdict = LIVENESS_SILENT},
      {.n = 1, .runnable = true, .cpu_ms = 100, .verdict = LIVENESS_HUNG}}},
    {"it spins, and gets a tenth of a core",
     WORK,
     {{.n = 14, .runnable = true, .cpu_ms = 10, .delay_ms = 90, .verdict = LIVENESS_STARVED},
      {.n = 35, .runnable = true, .cpu_ms = 10, .delay_ms = 90, .verdict = LIVENESS_SILENT},
      {.n = 1, .runnable = true, .cpu_ms = 10, .delay_ms = 90, .verdict = LIVENESS_HUNG}}},
    {"it gets no core for an hour",
     WORK,
     {{.n = 36000, .runnable = true, .delay_ms = 100, .verdict = LIVENESS_STARVED}}},
    {"it wants a core, and its kernel does not say how long",
     WORK,
     {{.n = 36000, .runnable = true, .verdict = LIVENESS_STARVED}}},
    {"it slept when it was looked at, and had waited",
     WORK,
     {{.n = 1000, .delay_ms = 30, .verdict = LIVENESS_STARVED}}},
    {"others have the cores", WORK, {{.n = 1000, .queued = true, .verdict = LIVENESS_STARVED}}},
    {"a step each ten seconds, beside busy programs",
     WORK,
     {{.n = 99, .runnable = true, .cpu_ms = 1, .delay_ms = 99, .verdict = LIVENESS_STARVED},
      {.n = 1, .moves = true, .cpu_ms = 1},
      {.n = 99, .runnable = true, .cpu_ms = 1, .delay_ms = 99, .verdict = LIVENESS_STARVED}}},
    {"it is stopped while it works",
     WORK,
     {{.n = 1, .stopped = true, .verdict = LIVENESS_SILENT},
      {.n = 2, .stopped = true, .verdict = LIVENESS_HUNG}}},
    {"it was stopped and goes on",
     WORK,
     {{.n = 2, .stopped = true, .verdict = LIVENESS_SILENT},
      {.n = 1, .cpu_ms = 50, .verdict = LIVENESS_OK},
      {.n = 2, .stopped = true, .verdict = LIVENESS_SILENT}}},
    {"all its threads sleep",
     WORK,
     {{.n = 1, .verdict = LIVENESS_OK},
      {.n = 18, .verdict = LIVENESS_SILENT},
      {.n = 1, .verdict = LIVENESS_HUNG}}},
    {"all sleep, and one looks around now and then",
     WORK,
     {{.n = 19, .cpu_ms = 1, .verdict = LIVENESS_SILENT}, {.n = 1, .cpu_ms = 1, .verdict = LIVENESS_HUNG}}},
    {"its model comes from a slow disk",
     WORK,
     {{.n = 290, .on_disk = true, .cpu_ms = 60, .verdict = LIVENESS_STARVED}}},
    {"its disk is gone", WORK, {{.n = 300, .on_disk = true, .verdict = LIVENESS_HUNG}}},
    {"its loop reads a large request",
     LOOP,
     {{.n = 19, .cpu_ms = 100, .verdict = LIVENESS_SILENT}, {.n = 1, .moves = true, .verdict = LIVENESS_OK}}},
    {"its loop spins", LOOP, {{.n = 20, .cpu_ms = 100, .verdict = LIVENESS_HUNG}}},
    {"its loop sleeps, and owes an answer", LOOP, {{.n = 5, .verdict = LIVENESS_HUNG}}},
    {"its loop waits for a thread that has no core",
     LOOP,
     {{.n = 90, .others_run = true, .verdict = LIVENESS_SILENT}}},
    {"its loop waits for a thread that computes for ever",
     LOOP,
     {{.n = 100, .others_run = true, .verdict = LIVENESS_HUNG}}},
    {"its loop gets no core",
     LOOP,
     {{.n = 36000, .runnable = true, .delay_ms = 100, .verdict = LIVENESS_STARVED}}},
    {"a start reads a file of many gigabytes",
     START,
     {{.n = 590, .cpu_ms = 100, .verdict = LIVENESS_SILENT}}},
    {"a start that never ends", START, {{.n = 600, .cpu_ms = 100, .verdict = LIVENESS_HUNG}}},
    {"it has no core inside the lock",
     LOCK,
     {{.n = 1000, .runnable = true, .delay_ms = 100, .verdict = LIVENESS_STARVED}}},
    {"it is stopped inside the lock", LOCK, {{.n = 3, .stopped = true, .verdict = LIVENESS_HUNG}}},
    {"it spins inside the lock", LOCK, {{.n = 5, .cpu_ms = 100, .verdict = LIVENESS_HUNG}}},
};

static liveness_limits limits_of(kind k)
{
    switch (k) {
    case LOOP: return LIVENESS_LOOP;
    case START: return LIVENESS_START;
    case LOCK: return LIVENESS_LOCK;
    default: return LIVENESS_WORK;
    }
}

static void play(const story *st)
{
    liveness l = {.limits = limits_of(st->kind)};
    liveness_sample s = {.now_ns = 1000 * (uint64_t)MS, .progress = 7, .busy = true};
    liveness_look(&l, &s);
    for (const phase *p = st->phases; p < st->phases + 6 && p->n > 0; p++) {
        for (int i = 0; i < p->n; i++) {
            if (l.verdict == LIVENESS_HUNG)
                fail_msg("%s: hung after %d looks of phase %d", st->name, i, (int)(p - st->phases));
            s = (liveness_sample){.now_ns = s.now_ns + LOOK_MS * MS,
                                  .progress = s.progress + p->moves,
                                  .busy = !p->idle,
                                  .runnable = p->runnable,
                                  .stopped = p->stopped,
                                  .queued = p->queued,
                                  .known = true,
                                  .cpu_ns = p->cpu_ms * (uint64_t)MS,
                                  .delay_ns = p->delay_ms * (uint64_t)MS,
                                  .on_disk = p->on_disk,
                                  .others_run = p->others_run};
            liveness_look(&l, &s);
        }
        if (l.verdict != p->verdict)
            fail_msg("%s: %s after phase %d, not %s", st->name, liveness_name(l.verdict),
                     (int)(p - st->phases), liveness_name(p->verdict));
        assert_int_equal(l.why != NULL, l.verdict == LIVENESS_HUNG);
    }
}

static void liveness_tells_the_hung_from_the_starved(void **state)
{
    for (size_t i = 0; i < sizeof STORIES / sizeof *STORIES; i++) play(&STORIES[i]);
}

/* Who looks may get no core either: what is far apart adds up as what is close. */
static void liveness_does_not_count_looks(void **state)
{
    liveness l = {.limits = LIVENESS_WORK};
    liveness_sample s = {.now_ns = MS, .busy = true};
    liveness_look(&l, &s);
    s = (liveness_sample){.now_ns = 10000 * (uint64_t)MS,
                          .busy = true,
                          .known = true,
                          .cpu_ns = 400 * (uint64_t)MS,
                          .delay_ns = 9000 * (uint64_t)MS};
    liveness_look(&l, &s);
    assert_int_equal(l.verdict, LIVENESS_SILENT);
    s.now_ns += 10000 * (uint64_t)MS;
    s.cpu_ns = 0;
    s.runnable = true;
    liveness_look(&l, &s);
    assert_int_equal(l.verdict, LIVENESS_SILENT);
}

/* What it used before the first look at a counter that stands still it may have worked for. */
static void liveness_counts_from_the_look_that_knows(void **state)
{
    liveness l = {.limits = LIVENESS_WORK};
    liveness_sample s = {.now_ns = MS, .busy = true};
    liveness_look(&l, &s);
    s = (liveness_sample){.now_ns = 5000 * (uint64_t)MS, .busy = true};
    liveness_look(&l, &s);
    assert_int_equal(l.verdict, LIVENESS_OK);
    s = (liveness_sample){.now_ns = 5100 * (uint64_t)MS, .busy = true, .known = true};
    liveness_look(&l, &s);
    assert_int_equal(l.verdict, LIVENESS_OK);
}

/* ---- threads --------------------------------------------------------------------------------------- */

static pid_t child(void (*fn)(void))
{
    pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fn();
    _exit(0);
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void rest(void)
{
    for (;;) pause();
}

static void spin(void)
{
    for (volatile unsigned i = 0;; i++) continue;
}

static void threads_see_who_is_stopped(void **state)
{
    threads t;
    liveness_sample s = {0};
    pid_t pid = child(rest);
    int status;
    kill(pid, SIGSTOP);
    waitpid(pid, &status, WUNTRACED);
    assert_true(threads_read(&t, "", pid));
    assert_int_equal(t.n, 1);
    threads_compare(&s, NULL, &t, THREADS_ALL);
    assert_true(s.stopped && !s.known && !s.runnable);
    end_child(pid);
    assert_false(threads_read(&t, "", pid));
    assert_false(threads_read(&t, "", 0));
}

static void threads_see_who_computes(void **state)
{
    threads before, now;
    pid_t pid = child(spin);
    assert_true(threads_read(&before, "", pid));
    for (liveness_sample s = {0}; s.cpu_ns < 20 * MS;) {
        usleep(1000);
        assert_true(threads_read(&now, "", pid));
        s = (liveness_sample){0};
        threads_compare(&s, &before, &now, THREADS_FIRST);
        assert_true(s.known && s.runnable && !s.stopped);
    }
    end_child(pid);
}

static void put(const char *root, int tid, const char *file, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/proc/40/task/%d/%s", root, tid, file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void put_thread(const char *root, int tid, char state, unsigned major, unsigned long cpu,
                       unsigned long delay)
{
    char path[600], line[256];
    const char *parts[] = {"/proc", "/proc/40", "/proc/40/task"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", root, parts[i]);
        mkdir(path, 0700);
    }
    snprintf(path, sizeof path, "%s/proc/40/task/%d", root, tid);
    mkdir(path, 0700);
    snprintf(line, sizeof line, "%d (a) b) %c 1 2 3 4 5 6 7 8 %u 10 50 25 13 14\n", tid, state, major);
    put(root, tid, "stat", line);
    if (cpu == 0) return;
    snprintf(line, sizeof line, "%lu %lu 7\n", cpu, delay);
    put(root, tid, "schedstat", line);
}

static void threads_compare_groups(void **state)
{
    char root[] = "/tmp/shoal-threads-XXXXXX", command[100];
    threads a, b;
    assert_non_null(mkdtemp(root));
    put_thread(root, 40, 'S', 0, 1000, 100);
    put_thread(root, 41, 'R', 3, 5000, 300);
    put_thread(root, 42, 'S', 0, 0, 0); /* a kernel without statistics: 0.75 s of ticks */
    assert_true(threads_read(&a, root, 40));
    assert_int_equal(a.n, 3);
    put_thread(root, 40, 'S', 0, 1000, 150);
    put_thread(root, 41, 'D', 4, 9000, 300);
    assert_true(threads_read(&b, root, 40));
    liveness_sample first = {0}, others = {0}, all = {0};
    threads_compare(&first, &a, &b, THREADS_FIRST);
    threads_compare(&others, &a, &b, THREADS_OTHERS);
    threads_compare(&all, &a, &b, THREADS_ALL);
    assert_true(first.known && first.cpu_ns == 0 && first.delay_ns == 50 && !first.on_disk);
    assert_true(first.others_run && first.others_ns == 4000);
    assert_true(others.cpu_ns == 4000 && others.delay_ns == 0 && others.on_disk && !others.others_run);
    assert_true(all.cpu_ns == 4000 && all.delay_ns == 50 && all.on_disk && all.others_ns == 0);
    for (size_t i = 0; i < b.n; i++)
        if (b.at[i].tid == 42)
            assert_true(b.at[i].cpu_ns == 750 * (uint64_t)MS * 100 / (uint64_t)sysconf(_SC_CLK_TCK));
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(liveness_tells_the_hung_from_the_starved),
        cmocka_unit_test(liveness_does_not_count_looks),
        cmocka_unit_test(liveness_counts_from_the_look_that_knows),
        cmocka_unit_test(threads_see_who_is_stopped),
        cmocka_unit_test(threads_see_who_computes),
        cmocka_unit_test(threads_compare_groups),
    };
    return cmocka_run_group_tests_name("liveness", tests, NULL, NULL);
}
