/* Drift: chance raises no alarm, a change does, once, and its end is told, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "base/clock.h"
#include "ensemble/confidence_shift.h"
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

/* ---- the distribution of confidences ------------------------------------------------------------------- */

/* Mostly sure: 0.8 and more, at times 0.4. */
static void add_confidences(confidence_shift *s, uint64_t seed, int n, double share_sure)
{
    for (int i = 0; i < n; i++) {
        double u = rng_uniform(seed, 2 * (uint64_t)i), v = rng_uniform(seed, 2 * (uint64_t)i + 1);
        confidence_shift_add(s, (float)(u < share_sure ? 0.8 + 0.2 * v : 0.3 + 0.2 * v));
    }
}

static void chance_does_not_shift_confidences(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        confidence_shift s = {0};
        add_confidences(&s, seed, CONFIDENCE_REFERENCE + CONFIDENCE_WINDOW - 1, 0.9);
        assert_false(confidence_shift_known(&s));
        add_confidences(&s, seed + 50, 3000, 0.9);
        assert_true(confidence_shift_known(&s));
        assert_true(confidence_shift_psi(&s) >= 0 && confidence_shift_psi(&s) < 0.1);
    }
}

static void other_texts_shift_confidences_and_the_old_ones_bring_them_back(void **state)
{
    confidence_shift s = {0};
    add_confidences(&s, 1, CONFIDENCE_REFERENCE + CONFIDENCE_WINDOW, 0.9);
    double before = confidence_shift_psi(&s);
    add_confidences(&s, 2, CONFIDENCE_WINDOW, 0.5);
    assert_true(confidence_shift_psi(&s) > 0.25);
    assert_true(confidence_shift_window_mean(&s) < confidence_shift_reference_mean(&s) - 0.1);
    add_confidences(&s, 3, CONFIDENCE_WINDOW, 0.9);
    assert_true(confidence_shift_psi(&s) < 0.1 && before < 0.1);
}

static void the_index_is_that_of_its_definition(void **state)
{
    confidence_shift s = {0};
    for (int i = 0; i < CONFIDENCE_REFERENCE; i++) confidence_shift_add(&s, 0.95f);
    for (int i = 0; i < CONFIDENCE_WINDOW; i++) confidence_shift_add(&s, i % 2 ? 0.95f : 0.05f);
    /* (0.492 - 0.991) ln(0.492 / 0.991) + (0.492 - 0.00099) ln(0.492 / 0.00099) + 8 (0.00196 - 0.00099) ln(2) */
    assert_true(confidence_shift_psi(&s) > 3.39 && confidence_shift_psi(&s) < 3.41);
    assert_true(confidence_shift_window_mean(&s) > 0.499 && confidence_shift_window_mean(&s) < 0.501);
}

static void what_is_no_confidence_harms_nothing(void **state)
{
    confidence_shift s = {0};
    for (int i = 0; i < 2000; i++) {
        confidence_shift_add(&s, NAN);
        confidence_shift_add(&s, i % 2 ? INFINITY : -3);
        confidence_shift_add(&s, 1);
    }
    assert_true(confidence_shift_known(&s) && confidence_shift_psi(&s) < 0.1);
    assert_int_equal(s.n_window, CONFIDENCE_WINDOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chance_does_not_shift_confidences),
        cmocka_unit_test(other_texts_shift_confidences_and_the_old_ones_bring_them_back),
        cmocka_unit_test(the_index_is_that_of_its_definition),
        cmocka_unit_test(what_is_no_confidence_harms_nothing),
        cmocka_unit_test(chance_is_no_drift),
        cmocka_unit_test(a_change_is_told_once_and_so_is_its_end),
        cmocka_unit_test(what_was_passed_on_counts_alike_however_short_it_was_cut),
        cmocka_unit_test(a_member_without_spread_is_watched_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
