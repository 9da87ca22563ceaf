/* Drift: chance raises no alarm, a change does, once, and its end is told, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "ensemble/drift.h"

static int add_many(drift *d, uint64_t seed, int n, double share_sure, drift_change wanted)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        bool sure = rng_uniform(seed, (uint64_t)i) < share_sure;
        found += drift_add(d, sure ? 0.9 : 0.3, sure) == wanted;
    }
    return found;
}

/* Three quarters of the answers go out, at 0.9: mean 0.675, spread 0.39. */
static void chance_is_no_drift(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        drift d;
        drift_init(&d, 0.675, 0.39);
        assert_int_equal(add_many(&d, seed, 5000, 0.75, DRIFT_BEGAN), 0);
    }
}

static void a_change_is_told_once_and_so_is_its_end(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        drift d;
        drift_init(&d, 0.675, 0.39);
        assert_int_equal(add_many(&d, seed, 300, 0.1, DRIFT_BEGAN), 1);
        assert_true(d.is_off && drift_of(&d) < -DRIFT_BEGINS);
        assert_int_equal(add_many(&d, seed + 50, 300, 0.75, DRIFT_ENDED), 1);
        assert_false(d.is_off);
    }
}

static void what_was_passed_on_counts_alike_however_short_it_was_cut(void **state)
{
    drift a, b;
    drift_init(&a, 0.5, 0.2);
    drift_init(&b, 0.5, 0.2);
    drift_add(&a, 0.7, false);
    drift_add(&b, 0.1, false);
    assert_true(drift_of(&a) == drift_of(&b));
}

static void a_member_without_spread_is_watched_too(void **state)
{
    drift d;
    drift_init(&d, 1, 0);
    assert_true(drift_of(&d) == 0);
    int began = 0;
    for (int i = 0; i < 100; i++) began += drift_add(&d, 0.5, true) == DRIFT_BEGAN;
    assert_int_equal(began, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chance_is_no_drift),
        cmocka_unit_test(a_change_is_told_once_and_so_is_its_end),
        cmocka_unit_test(what_was_passed_on_counts_alike_however_short_it_was_cut),
        cmocka_unit_test(a_member_without_spread_is_watched_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
