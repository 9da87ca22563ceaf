/* Waves of joins: when they begin, end, and are not waited for any longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/placement/join_burst.h"

static void few_machines_are_no_wave(void **state)
{
    join_burst w = {0};
    assert_false(join_burst_is_on(&w, 5000));
    for (uint64_t ms = 5000; ms < 5000 + JOIN_BURST_N - 1; ms++) join_burst_note(&w, ms);
    assert_false(join_burst_is_on(&w, 5100));
    for (uint64_t i = 0; i < 20; i++) { /* one now and then */
        join_burst_note(&w, 10000 + i * JOIN_BURST_MS / (JOIN_BURST_N - 1) + i);
        assert_false(join_burst_is_on(&w, 10000 + i * JOIN_BURST_MS / (JOIN_BURST_N - 1) + i));
    }
}

static void a_wave_is_over_when_nobody_has_come_for_a_while(void **state)
{
    join_burst w = {0};
    uint64_t last = 0;
    for (uint64_t ms = 1000; ms < 9000; ms += 50) join_burst_note(&w, last = ms);
    assert_true(join_burst_is_on(&w, last));
    assert_true(join_burst_is_on(&w, last + JOIN_BURST_MS / 2));
    assert_false(join_burst_is_on(&w, last + JOIN_BURST_MS));
    for (int i = 0; i < JOIN_BURST_N; i++) join_burst_note(&w, last + 60000); /* and the next one begins */
    assert_true(join_burst_is_on(&w, last + 60000));
}

static void a_wave_without_end_is_not_waited_for(void **state)
{
    join_burst w = {0};
    uint64_t ms = 1000;
    for (int i = 0; i < JOIN_BURST_N; i++) join_burst_note(&w, ms);
    assert_true(join_burst_is_on(&w, ms));
    for (; ms < 1000 + JOIN_BURST_MAX_MS; ms += 100) {
        join_burst_note(&w, ms);
        assert_true(join_burst_is_on(&w, ms));
    }
    for (; ms < 1000 + 2 * JOIN_BURST_MAX_MS; ms += 100) {
        join_burst_note(&w, ms);
        assert_false(join_burst_is_on(&w, ms));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_machines_are_no_wave),
        cmocka_unit_test(a_wave_is_over_when_nobody_has_come_for_a_while),
        cmocka_unit_test(a_wave_without_end_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
