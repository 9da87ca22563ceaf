/* `shoal calibrate` without a server: thresholds that keep what they promise, tables, JSON and pictures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "json/json.h"
#include "eval/calibrate_report.h"

enum { N = 1000, MEMBERS = 3 };

typedef struct bench {
    calibrate_member m[MEMBERS];
    double said[MEMBERS][N];
    bool right[MEMBERS][N], after[MEMBERS][N];
} bench;

/* Each member knows what it does not know, and the later ones are right more often where it does not. */
static bench *bench_new(uint64_t seed)
{
    static const char *const names[MEMBERS] = {"small", "mid<dle", "large"};
    bench *b = calloc(1, sizeof *b);
    for (size_t k = 0; k < MEMBERS; k++) {
        b->m[k] = (calibrate_member){
            .model = names[k], .said = b->said[k], .right = b->right[k], .after = b->after[k]};
        for (size_t i = 0; i < N; i++) {
            double easy = rng_uniform(seed * 10 + k, i), luck = rng_uniform(seed * 100 + k, i);
            b->said[k][i] = 0.9 + easy / 10;
            b->right[k][i] = luck < easy + 0.1 * (double)k;
        }
    }
    return b;
}

static double alone(const bench *b, size_t k)
{
    size_t n = 0;
    for (size_t i = 0; i < N; i++) n += b->right[k][i];
    return (double)n / N;
}

static void a_cascade_is_at_least_as_good_as_each_member(void **state)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        bench *b = bench_new(seed);
        assert_int_equal(calibrate_fit(b->m, MEMBERS, N, &(calibrate_goal){CALIBRATE_BEST, 0}, NULL), 0);
        double got = calibrate_accuracy(b->m, 0, N, b->m[0].cal.min_confidence);
        for (size_t k = 0; k < MEMBERS; k++) assert_true(got > alone(b, k));
        size_t n_after = 0;
        for (size_t i = 0; i < N; i++) n_after += b->after[0][i];
        assert_true((double)n_after / N == got);
        assert_true(b->m[0].error_said > 0.3 && b->m[0].error_is < 0.1);
        assert_true(b->m[0].cal.n == N && b->m[0].cal.spread > 0);
        free(b);
    }
}

static void goals_are_kept(void **state)
{
    bench *b = bench_new(5);
    shoal_err err = {0};
    for (double share = 0; share < 1; share += 0.25) {
        assert_int_equal(calibrate_fit(b->m, 2, N, &(calibrate_goal){CALIBRATE_SHARE, share}, NULL), 0);
        assert_true(1 - calibrate_risk(b->m, 0, N, b->m[0].cal.min_confidence).coverage <= share + 1e-9);
    }
    double before = 1;
    for (double accuracy = 0.5; accuracy < 0.9; accuracy += 0.1) {
        assert_int_equal(calibrate_fit(b->m, 2, N, &(calibrate_goal){CALIBRATE_ACCURACY, accuracy}, NULL), 0);
        confidence_risk at = calibrate_risk(b->m, 0, N, b->m[0].cal.min_confidence);
        assert_true(1 - at.risk >= accuracy && at.coverage <= before);
        before = at.coverage;
    }
    for (size_t i = 0; i < N; i++) b->right[0][i] = false;
    assert_int_equal(calibrate_fit(b->m, 2, N, &(calibrate_goal){CALIBRATE_ACCURACY, 0.999}, &err),
                     SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, "no threshold reaches"));
    free(b);
}

static void one_case_and_none_are_no_trouble(void **state)
{
    bench *b = bench_new(1);
    for (size_t n = 0; n < 3; n++) {
        buf out = {0};
        calibrate_report r = {"c", b->m, 2, n};
        assert_int_equal(calibrate_fit(b->m, 2, n, &(calibrate_goal){CALIBRATE_BEST, 0}, NULL), 0);
        calibrate_put_table(&r, &out);
        calibrate_put_svg(&r, &out);
        assert_false(out.failed);
        assert_null(strstr(out.data, "nan"));
        buf_done(&out);
    }
    free(b);
}

static void reports_say_what_was_found(void **state)
{
    bench *b = bench_new(2);
    calibrate_report r = {"the \"c\"", b->m, MEMBERS, N};
    buf out = {0};
    json_t *o;
    char line[64];
    assert_int_equal(calibrate_fit(b->m, MEMBERS, N, &(calibrate_goal){CALIBRATE_BEST, 0}, NULL), 0);
    calibrate_put_table(&r, &out);
    for (size_t k = 0; k < 2; k++) {
        snprintf(line, sizeof line, "%9.3f ", b->m[k].cal.min_confidence);
        assert_non_null(strstr(out.data, line));
    }
    assert_non_null(strstr(out.data, "large: alone right in"));
    buf_clear(&out);
    calibrate_put_json(&r, &out);
    assert_int_equal(json_parse(&o, out.data, out.len, "json", NULL), 0);
    const json_t *members = json_object_get(o, "members");
    assert_int_equal(json_array_size(members), MEMBERS);
    assert_true(json_number_value(json_object_get(json_array_get(members, 0), "coverage")) < 1);
    assert_null(json_object_get(json_array_get(members, 2), "coverage"));
    json_decref(o);
    buf_clear(&out);
    calibrate_put_svg(&r, &out);
    assert_non_null(strstr(out.data, "mid&#60;dle in the"));
    assert_null(strstr(out.data, "large in"));
    assert_null(strstr(out.data, "nan"));
    buf_done(&out);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cascade_is_at_least_as_good_as_each_member),
        cmocka_unit_test(goals_are_kept),
        cmocka_unit_test(one_case_and_none_are_no_trouble),
        cmocka_unit_test(reports_say_what_was_found),
    };
    return cmocka_run_group_tests_name("calibrate", tests, NULL, NULL);
}
