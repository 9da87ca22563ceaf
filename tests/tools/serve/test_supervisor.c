/* When the supervisor starts its child again, and how soon. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve/supervisor.h"

enum { EXITED = 1 << 8 }; /* a wait status: of an exit with code 1; a signal's is its number */

static void the_first_restart_is_at_once_and_later_ones_wait(void **state)
{
    uint64_t memory = 0;
    assert_int_equal(supervisor_wait_ms(&memory, 5, false), 0);
    assert_int_equal(supervisor_wait_ms(&memory, 5, false), 100);
    assert_int_equal(supervisor_wait_ms(&memory, 5, false), 200);
    for (int i = 0; i < 20; i++) supervisor_wait_ms(&memory, 5, false);
    assert_int_equal(supervisor_wait_ms(&memory, 5, false), 10000);
    assert_int_equal(supervisor_wait_ms(&memory, 59999, true), 1000); /* clients were served in between */
    assert_int_equal(supervisor_wait_ms(&memory, 60000, true), 0);
    assert_int_equal(supervisor_wait_ms(&memory, 5, true), 100);
}

static void crashes_are_restarted_and_exits_are_meant(void **state)
{
    const supervisor_life first = {0}, served = {.ready = true}, later = {.n = 2},
                          later_served = {.n = 2, .ready = true}, stopping = {.n = 2, .stopping = true};
    assert_true(supervisor_restarts(&first, SIGSEGV)); /* while it starts */
    assert_true(supervisor_restarts(&served, SIGKILL));
    assert_true(supervisor_restarts(&later, SIGABRT));
    assert_false(supervisor_restarts(&first, SIGTERM)); /* of the whole group, before there was a handler */
    assert_false(supervisor_restarts(&stopping, SIGSEGV)); /* a crash in a drain ends it */
    assert_false(supervisor_restarts(&first, EXITED));     /* a wrong configuration */
    assert_false(supervisor_restarts(&later_served, EXITED));
    assert_false(supervisor_restarts(&later, 0));
    assert_true(supervisor_restarts(&later, EXITED)); /* it served before: somebody edits the configuration */
    assert_false(supervisor_restarts(&stopping, EXITED));
}

/* What `timeout` sends twice is one wish to stop. */
static void signals_of_one_moment_are_one(void **state)
{
    uint64_t last = 0, ms = 1000000;
    assert_false(supervisor_repeats(&last, 5000 * ms));
    assert_true(supervisor_repeats(&last, 5000 * ms));
    assert_true(supervisor_repeats(&last, 5249 * ms));
    assert_false(supervisor_repeats(&last, 5250 * ms)); /* and no row of them is endless */
    assert_true(supervisor_repeats(&last, 5251 * ms));
    assert_false(supervisor_repeats(&last, 5500 * ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_restart_is_at_once_and_later_ones_wait),
        cmocka_unit_test(signals_of_one_moment_are_one),
        cmocka_unit_test(crashes_are_restarted_and_exits_are_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
