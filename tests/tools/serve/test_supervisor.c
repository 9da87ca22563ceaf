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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_restart_is_at_once_and_later_ones_wait),
        cmocka_unit_test(crashes_are_restarted_and_exits_are_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
