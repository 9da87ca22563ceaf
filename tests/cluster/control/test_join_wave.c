/* Waves of joins: when they begin, end, and are not waited for any longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/placement/join_wave.h"

static void few_machines_are_no_wave(void **state)
{
    join_wave w = {0};
    assert_false(join_wave_is_on(&w, 5000));
    for (uint64_t ms = 5000; ms < 5000 + JOIN_WAVE_N - 1; ms++) join_wave_note(&w, ms);
    assert_false(join_wave_is_on(&w, 5100));
    for (uint64_t i = 0; i < 20; i++) { /* one now and then */
        join_wave_note(&w, 10000 + i * JOIN_WAVE_MS / (JOIN_WAVE_N - 1) + i);
        assert_false(join_wave_is_on(&w, 10000 + i * JOIN_WAVE_MS / (JOIN_WAVE_N - 1) + i));
    }
}

static void a_wave_is_over_when_nobody_has_come_for_a_while(void **state)
{
    join_wave w = {0};
    uint64_t last = 0;
    for (uint64_t ms = 1000; ms < 9000; ms += 50) join_wave_note(&w, last = ms);
    assert_true(join_wave_is_on(&w, last));
    assert_true(join_wave_is_on(&w, last + JOIN_WAVE_MS / 2));
    assert_false(join_wave_is_on(&w, last + JOIN_WAVE_MS));
    for (int i = 0; i < JOIN_WAVE_N; i++) join_wave_note(&w, last + 60000); /* and the next one begins */
    assert_true(join_wave_is_on(&w, last + 60000));
}

static void a_wave_without_end_is_not_waited_for(void **state)
{
    join_wave w = {0};
    uint64_t ms = 1000;
    for (int i = 0; i < JOIN_WAVE_N; i++) join_wave_note(&w, ms);
    assert_true(join_wave_is_on(&w, ms));
    for (; ms < 1000 + JOIN_WAVE_MAX_MS; ms += 100) {
        join_wave_note(&w, ms);
        assert_true(join_wave_is_on(&w, ms));
    }
    for (; ms < 1000 + 2 * JOIN_WAVE_MAX_MS; ms += 100) {
        join_wave_note(&w, ms);
        assert_false(join_wave_is_on(&w, ms));
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
