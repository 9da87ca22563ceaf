/* When a worker that nobody watches is taken for stuck: pure, from looks of every half a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/stuck.h"

enum { LOOK_MS = 500 };
#define MS UINT64_C(1000000)

typedef struct clocks {
    stuck s;
    stuck_sample now;
} clocks;

static clocks begin(void)
{
    clocks c = {.now = {.now_ns = 5 * MS, .progress = 7, .works = true}};
    assert_false(stuck_look(&c.s, &c.now));
    return c;
}

/* After so many looks of that distance, in which a thread waited for a core for so long each. */
static int look_until_stuck(clocks *c, uint64_t every_ms, uint64_t delay_ms, int most)
{
    for (int n = 1; n <= most; n++) {
        c->now.now_ns += every_ms * MS;
        c->now.run_delay_ns += delay_ms * MS;
        if (stuck_look(&c->s, &c->now)) return n;
    }
    return 0;
}

static void who_stands_still_at_work_is_stuck(void **state)
{
    clocks c = begin();
    assert_int_equal(look_until_stuck(&c, LOOK_MS, 0, 1000), STUCK_MS / LOOK_MS);
}

static void who_gets_on_or_has_nothing_to_do_is_not(void **state)
{
    clocks c = begin();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(look_until_stuck(&c, LOOK_MS, 0, STUCK_MS / LOOK_MS - 1), 0);
        c.now.progress++;
        assert_int_equal(look_until_stuck(&c, LOOK_MS, 0, 1), 0);
    }
    c.now.works = false;
    assert_int_equal(look_until_stuck(&c, LOOK_MS, 0, 1000), 0);
    c.now.works = true;
    assert_int_equal(look_until_stuck(&c, LOOK_MS, 0, 1000), STUCK_MS / LOOK_MS);
}

static void who_waits_for_a_core_is_not(void **state)
{
    clocks c = begin();
    assert_int_equal(look_until_stuck(&c, LOOK_MS, LOOK_MS / 20, 1000), 0);
    assert_int_equal(look_until_stuck(&c, LOOK_MS, 0, 1000), STUCK_MS / LOOK_MS);
}

/* The sum falls by what it had waited, and nobody knows how long others waited: that look does not count. */
static void a_thread_that_ends_is_no_sign(void **state)
{
    clocks c = begin();
    assert_int_equal(look_until_stuck(&c, LOOK_MS, 3 * LOOK_MS, 1), 0);
    c.now.run_delay_ns -= LOOK_MS * MS;
    assert_int_equal(look_until_stuck(&c, LOOK_MS, 0, 1), 0);
    assert_int_equal(look_until_stuck(&c, LOOK_MS, 0, 1000), STUCK_MS / LOOK_MS);
}

/* The process was stopped, by a debugger say: each look counts for a second at most. */
static void time_in_which_nobody_looked_does_not_count(void **state)
{
    clocks c = begin();
    assert_int_equal(look_until_stuck(&c, 3600 * 1000, 0, 1), 0);
    assert_int_equal(look_until_stuck(&c, LOOK_MS, 0, 1000), (STUCK_MS - STUCK_LOOK_MAX_MS) / LOOK_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_stands_still_at_work_is_stuck),
        cmocka_unit_test(who_gets_on_or_has_nothing_to_do_is_not),
        cmocka_unit_test(who_waits_for_a_core_is_not),
        cmocka_unit_test(a_thread_that_ends_is_no_sign),
        cmocka_unit_test(time_in_which_nobody_looked_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
