/* The cost line: what it learns, forgets and never says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>

#include "time/linear_cost.h"

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 0.02 * fabs(b) + 1e-9;
}

/* One batch of 5,000 tokens among short calls must not make the short ones look long. */
static void cost_tells_fixed_from_per_unit(void **state)
{
    linear_cost c = {0};
    assert_true(linear_cost_line_ms(linear_cost_line_of(&c), 1, 100) == 0);
    linear_cost_learn(&c, 10, 12, 1);
    assert_true(is_near(linear_cost_line_ms(linear_cost_line_of(&c), 1, 10), 12));
    linear_cost_learn(&c, 5000, 2 + 5000, 2);
    linear_cost_learn(&c, 10, 12, 3);
    linear_cost_line l = linear_cost_line_of(&c);
    assert_true(is_near(l.fixed_ms, 2) && is_near(l.unit_ms, 1));
    assert_true(is_near(linear_cost_line_ms(l, 3, 40), 46));
}

/* One slow call of 3 tokens: what 1,300 take is not known, and may be no more than 24 do. */
static void cost_reaches_as_far_as_what_was_seen(void **state)
{
    linear_cost c = {0};
    assert_true(linear_cost_line_least_ms(linear_cost_line_of(&c), 1, 100) == 0);
    linear_cost_learn(&c, 3, 300, 1);
    linear_cost_line l = linear_cost_line_of(&c);
    assert_true(is_near(linear_cost_line_ms(l, 1, 1300), 130000));
    assert_true(is_near(linear_cost_line_least_ms(l, 1, 1300), 2400));
    assert_true(is_near(linear_cost_line_least_ms(l, 1, 5), 500));
    assert_true(is_near(linear_cost_line_least_ms(l, 4, 1300), 9600));
    linear_cost_learn(&c, 1300, 500, 2);
    assert_true(is_near(linear_cost_line_least_ms(linear_cost_line_of(&c), 1, 1300),
                        linear_cost_line_ms(linear_cost_line_of(&c), 1, 1300)));
}

static void cost_forgets_by_samples_and_by_time(void **state)
{
    linear_cost c = {0}, old = {0};
    for (uint64_t i = 0; i < 50; i++) linear_cost_learn(&c, 10 + (double)(i % 3), 1000, i);
    old = c;
    for (uint64_t i = 0; i < 60; i++) linear_cost_learn(&c, 10 + (double)(i % 3), 1, 50 + i);
    assert_true(linear_cost_line_ms(linear_cost_line_of(&c), 1, 10) < 20);
    linear_cost_learn(&old, 10, 1, 120 * 1000000000ull); /* two minutes later one sample is enough */
    assert_true(linear_cost_line_ms(linear_cost_line_of(&old), 1, 10) < 20);
}

static void cost_is_never_below_zero(void **state)
{
    linear_cost c = {0};
    double sizes[] = {1, 100, 3, 70, 0, 5}, ms[] = {50, 1, 40, 2, 60, 0};
    for (uint64_t i = 0; i < 6; i++) {
        linear_cost_learn(&c, sizes[i], ms[i], i);
        linear_cost_line l = linear_cost_line_of(&c);
        assert_true(l.fixed_ms >= 0 && l.unit_ms >= 0 && isfinite(l.fixed_ms) && isfinite(l.unit_ms));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cost_tells_fixed_from_per_unit),
        cmocka_unit_test(cost_reaches_as_far_as_what_was_seen),
        cmocka_unit_test(cost_forgets_by_samples_and_by_time),
        cmocka_unit_test(cost_is_never_below_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
