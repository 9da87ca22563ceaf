/* Files of calibrations: written, read back, and refused with a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "ensemble/calibration.h"

static void what_is_written_is_read_back(void **state)
{
    confidence_sample s[200];
    calibration c = {.model = "home \"s\"", .digest = "9f2c", .min_confidence = 0.5}, back;
    buf text = {0};
    for (size_t i = 0; i < 200; i++) {
        double said = rng_uniform(1, i);
        s[i] = (confidence_sample){said, rng_uniform(2, i) < said};
    }
    calibration_fit(&c, s, 200);
    assert_true(c.n == 200 && c.mean > 0.25 && c.mean < 0.5 && c.spread > 0.3 && c.spread < 0.5);
    calibration_put(&text, &c);
    assert_int_equal(calibration_parse(&back, text.data, text.len, "f", NULL), 0);
    assert_string_equal(back.model, c.model);
    assert_string_equal(back.digest, c.digest);
    assert_int_equal(back.n, 200);
    assert_int_equal(back.map.n_points, c.map.n_points);
    assert_true(back.mean - c.mean < 1e-5 && c.mean - back.mean < 1e-5);
    for (double x = 0; x <= 1; x += 0.01) {
        double d = confidence_of(&c.map, x) - confidence_of(&back.map, x);
        assert_true(d < 1e-4 && d > -1e-4);
    }
    buf_done(&text);
}

static void a_fit_of_nothing_has_no_points(void **state)
{
    calibration c = {.min_confidence = 0.5};
    calibration_fit(&c, NULL, 0);
    assert_true(c.n == 0 && c.map.n_points == 0 && c.mean == 0 && c.spread == 0);
}

static void what_is_no_calibration_is_refused(void **state)
{
    static const char *const bad[][2] = {
        {"[]", "no object"},
        {"{\"points\": []}", "1 to 32 pairs"},
        {"{\"points\": [[0.1, 2]]}", "from 0 to 1"},
        {"{\"points\": [[0.1]]}", "from 0 to 1"},
        {"{\"points\": [[0.2, 0.1], [0.1, 0.2]]}", "must rise"},
        {"{\"points\": [[0.1, 0.5], [0.2, 0.4]]}", "must rise"},
        {"{\"points\": [[0.1, 0.5]], \"min_confidence\": 1.5}", "min_confidence"},
        {"{\"points\": [[0.1, 0.5]], \"spread\": -1}", "spread"},
        {"{\"points\": [[0.1, 0.5]], \"mean\": \"x\"}", "mean"},
        {"{\"points\": [[0.1, 0.5]], \"model\": "
         "\"12345678901234567890123456789012345678901234567890123456789012345\"}",
         "too long"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        calibration c;
        shoal_err err = {0};
        assert_true(calibration_parse(&c, bad[i][0], strlen(bad[i][0]), "f", &err) < 0);
        if (!strstr(err.message, bad[i][1])) fail_msg("%s: %s", bad[i][0], err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_fit_of_nothing_has_no_points),
        cmocka_unit_test(what_is_no_calibration_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
