/* Which processes are taken for hung by their turns: this one's children, which count in the shared page. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "serve/turn_watch.h"

enum { CPU_MS = 100, SOME_LOOKS = 50 };

static turn_watch *w;
static int page_fd;
static progress_counts *page; /* as the process sees it */

static int open_watch(void **state)
{
    if (turn_watch_new(&w, CPU_MS, &page_fd, NULL) != 0) return -1;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
    turn_watch_begin(w);
    return page == MAP_FAILED ? -1 : 0;
}

static int close_watch(void **state)
{
    munmap(page, sizeof *page);
    close(page_fd);
    turn_watch_free(w);
    return 0;
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static uint64_t cpu_ms(pid_t pid)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(pid, &clock) == 0) clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The process does that without end. It is looked at until it is condemned, or has had so many looks and so
 * much of the processor. */
static bool hangs(void (*does)(void), uint64_t at_least_ms)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) does();
    }
    bool hung = false;
    for (int i = 0; !hung && (i < SOME_LOOKS || cpu_ms(pid) < at_least_ms); i++) {
        rest();
        hung = turn_watch_hangs(w, pid);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return hung;
}

static void spin(void)
{
    atomic_store(&page->loops, 1);
    for (volatile unsigned i = 0;; i++) continue;
}

static void turn(void)
{
    atomic_store(&page->loops, 1);
    atomic_fetch_add(&page->loop, 1);
}

static void wait_for_nothing(void)
{
    atomic_store(&page->loops, 1);
    pause();
}

static void stop(void)
{
    atomic_store(&page->loops, 1);
    raise(SIGSTOP);
}

static void spin_at_the_start(void)
{
    for (volatile unsigned i = 0;; i++) continue;
}

static void a_turn_that_computes_without_end_hangs(void **state)
{
    assert_true(hangs(spin, 100 * CPU_MS));
}

static void who_turns_waits_is_stopped_or_starts_does_not(void **state)
{
    assert_false(hangs(turn, 10 * CPU_MS));
    assert_false(hangs(wait_for_nothing, 0));
    assert_false(hangs(stop, 0));
    turn_watch_begin(w);
    assert_false(hangs(spin_at_the_start, 10 * CPU_MS));
}

static void nobody_can_cut_the_page_off(void **state)
{
    assert_int_not_equal(ftruncate(page_fd, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_turn_that_computes_without_end_hangs, open_watch, close_watch),
        cmocka_unit_test_setup_teardown(who_turns_waits_is_stopped_or_starts_does_not, open_watch,
                                        close_watch),
        cmocka_unit_test_setup_teardown(nobody_can_cut_the_page_off, open_watch, close_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
