/* Confidence maps: what they promise, on random samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "ensemble/confidence.h"

enum { N = 4000 };

/* Right in said^2 of the cases: the model thinks too well of itself. */
static void draw(confidence_sample *s, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        double said = (double)(rng_mix(seed * 7919 + 2 * i) >> 40) / (1 << 24);
        double u = (double)(rng_mix(seed * 7919 + 2 * i + 1) >> 40) / (1 << 24);
        s[i] = (confidence_sample){said, u < said * said};
    }
}

static void nothing_is_fitted_to_nothing(void **state)
{
    confidence_map m;
    confidence_fit(&m, NULL, 0);
    assert_int_equal(m.n_points, 0);
    assert_true(confidence_of(&m, 0.3) == 0.3 && confidence_of(NULL, 0.3) == 0.3);
}

static void a_map_rises_and_is_nearer_the_truth(void **state)
{
    confidence_sample *s = calloc(N, sizeof *s), *other = calloc(N, sizeof *other);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        confidence_map m;
        draw(s, N, seed);
        draw(other, N, seed + 1000);
        confidence_fit(&m, s, N);
        assert_in_range(m.n_points, 2, CONFIDENCE_POINTS_MAX);
        for (size_t i = 1; i < m.n_points; i++)
            assert_true(m.points[i].said > m.points[i - 1].said && m.points[i].is > m.points[i - 1].is);
        for (double x = 0.05; x < 1; x += 0.05) {
            assert_true(confidence_of(&m, x) >= confidence_of(&m, x - 0.05));
            assert_true(confidence_of(&m, x) >= 0 && confidence_of(&m, x) <= 1);
        }
        assert_true(confidence_error(NULL, other, N, 10) > 0.1);
        assert_true(confidence_error(&m, other, N, 10) < 0.05);
    }
    free(s);
    free(other);
}

static void a_threshold_keeps_its_promise(void **state)
{
    confidence_sample *s = calloc(N, sizeof *s);
    confidence_map m;
    draw(s, N, 3);
    confidence_fit(&m, s, N);
    double last = 0;
    for (double accuracy = 0.4; accuracy < 0.95; accuracy += 0.1) {
        double t;
        assert_true(confidence_threshold(&m, s, N, accuracy, &t));
        confidence_risk r = confidence_risk_at(&m, s, N, t);
        assert_true(1 - r.risk >= accuracy && r.coverage > 0 && t >= last);
        last = t;
    }
    for (double share = 0; share <= 1; share += 0.25) {
        double t = confidence_threshold_for_share(&m, s, N, share);
        assert_true(1 - confidence_risk_at(&m, s, N, t).coverage <= share);
    }
    confidence_sample wrong[] = {{0.5, false}, {0.9, false}};
    double t;
    confidence_fit(&m, wrong, 2);
    assert_false(confidence_threshold(&m, wrong, 2, 0.5, &t));
    free(s);
}

/* What the map has seen flatters it; what it has not seen is still far better than what the model says. */
static void the_error_of_what_was_not_seen_is_honest(void **state)
{
    confidence_sample *s = calloc(N, sizeof *s), *same = calloc(N, sizeof *same);
    confidence_map m;
    double unseen = -1, seen_sum = 0, unseen_sum = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        draw(s, 500, seed);
        assert_int_equal(confidence_error_unseen(&unseen, s, 500, 10, NULL), 0);
        assert_true(unseen > 0 && unseen < confidence_error(NULL, s, 500, 10) / 2);
        for (size_t i = 0; i < 500; i++) same[i] = s[i];
        confidence_fit(&m, same, 500);
        seen_sum += confidence_error(&m, same, 500, 10);
        unseen_sum += unseen;
    }
    assert_true(seen_sum < unseen_sum);
    assert_int_equal(confidence_error_unseen(&unseen, s, 1, 10, NULL), 0);
    assert_int_equal(confidence_error_unseen(&unseen, s, 0, 10, NULL), 0);
    assert_true(unseen == 0);
    free(s);
    free(same);
}

static void equal_confidences_are_one_point(void **state)
{
    confidence_sample s[] = {{0.5, true}, {0.5, false}, {0.5, true}, {0.5, true}};
    confidence_map m;
    confidence_fit(&m, s, 4);
    assert_int_equal(m.n_points, 1);
    assert_true(confidence_of(&m, 0.1) == 0.75 && confidence_of(&m, 0.9) == 0.75);
    assert_true(confidence_of(&m, 0.0 / 0.0 * 1) == 0.75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_fitted_to_nothing),
        cmocka_unit_test(a_map_rises_and_is_nearer_the_truth),
        cmocka_unit_test(a_threshold_keeps_its_promise),
        cmocka_unit_test(the_error_of_what_was_not_seen_is_honest),
        cmocka_unit_test(equal_confidences_are_one_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
