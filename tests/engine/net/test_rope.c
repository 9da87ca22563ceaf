/* Rotary tables against the formulas of rope.h, in the C library's double arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <math.h>

#include "net/attention/rope.h"

#define DIM   16
#define N_CTX 96
#define BASE  10000.0

static double plain(size_t i)
{
    return pow(BASE, -2.0 * (double)i / DIM);
}

/* by(i, n): the frequency of pair i in a text of n tokens; magnitude: of cos and sin. */
static void check(const rope_conf *r, const float *factors, double (*by)(size_t i, size_t n),
                  double magnitude)
{
    rope_table t;
    shoal_err err = {0};
    assert_int_equal(rope_init(&t, r, N_CTX, factors, &err), 0);
    assert_int_equal(t.half, DIM / 2);
    for (size_t p = 0; p < N_CTX; p++) {
        for (size_t i = 0; i < DIM / 2; i++) {
            double angle = (double)p * by(i, p + 1), c = cos(angle) * magnitude, s = sin(angle) * magnitude;
            if (fabs(t.cos[p * t.half + i] - c) > 2e-7 || fabs(t.sin[p * t.half + i] - s) > 2e-7)
                fail_msg("position %zu, pair %zu: (%g, %g) should be (%g, %g)", p, i, t.cos[p * t.half + i],
                         t.sin[p * t.half + i], c, s);
        }
    }
    rope_done(&t);
}

static double by_plain(size_t i, size_t n)
{
    (void)n;
    return plain(i);
}

static void rope_turns_pairs_by_powers_of_theta(void **state)
{
    (void)state;
    check(&(rope_conf){.dim = DIM, .theta = BASE}, NULL, by_plain, 1);
}

static double by_linear(size_t i, size_t n)
{
    (void)n;
    return plain(i) / 4;
}

static void rope_linear_divides_frequencies(void **state)
{
    (void)state;
    check(&(rope_conf){.dim = DIM, .theta = BASE, .scaling = ROPE_LINEAR, .factor = 4}, NULL, by_linear, 1);
}

static const float factors[DIM / 2] = {1, 1.5f, 2, 3, 4, 4, 8, 8};

static double by_factors(size_t i, size_t n)
{
    (void)n;
    return plain(i) / (double)factors[i];
}

static void rope_takes_the_factors_of_a_file_instead_of_llama3(void **state)
{
    (void)state;
    rope_conf r = {.dim = DIM,
                   .theta = BASE,
                   .scaling = ROPE_LLAMA3,
                   .factor = 8,
                   .low_freq = 1,
                   .high_freq = 4,
                   .original_ctx = 32};
    check(&r, factors, by_factors, 1);
}

static double by_llama3(size_t i, size_t n)
{
    double f = plain(i), turns = 32 * f / (2 * M_PI);
    (void)n;
    if (turns > 4) return f;
    if (turns < 1) return f / 8;
    double smooth = (turns - 1) / (4 - 1);
    return (1 - smooth) * f / 8 + smooth * f;
}

static void rope_llama3_moves_smoothly_between_bands(void **state)
{
    (void)state;
    rope_conf r = {.dim = DIM,
                   .theta = BASE,
                   .scaling = ROPE_LLAMA3,
                   .factor = 8,
                   .low_freq = 1,
                   .high_freq = 4,
                   .original_ctx = 32};
    check(&r, NULL, by_llama3, 1);
}

/* As the paper's appendix has it; with an original context of 32 the ramp goes from pair 0 to pair 2. */
static double by_yarn(size_t i, size_t n)
{
    (void)n;
    double low = floor(DIM * log(32 / (32 * 2 * M_PI)) / (2 * log(BASE)));
    double high = ceil(DIM * log(32 / (1 * 2 * M_PI)) / (2 * log(BASE)));
    low = low < 0 ? 0 : low;
    double ramp = ((double)i - low) / (high - low);
    ramp = ramp > 1 ? 1 : ramp;
    return plain(i) * (1 - ramp) + plain(i) / 4 * ramp;
}

static void rope_yarn_ramps_from_kept_to_divided(void **state)
{
    (void)state;
    rope_conf r = {.dim = DIM,
                   .theta = BASE,
                   .scaling = ROPE_YARN,
                   .factor = 4,
                   .beta_fast = 32,
                   .beta_slow = 1,
                   .original_ctx = 32};
    check(&r, NULL, by_yarn, 0.1 * log(4) + 1);
    r.attn_factor = 1.25;
    check(&r, NULL, by_yarn, 1.25);
}

static const float short_by[DIM / 2] = {1, 1, 1.1f, 1.2f, 1.3f, 1.5f, 2, 2},
                                  long_by[DIM / 2] = {1, 2, 3, 4, 5, 6, 7, 8};

static double by_long(size_t i, size_t n)
{
    return plain(i) / (double)(n > 32 ? long_by : short_by)[i];
}

static void rope_long_changes_factors_past_the_original_context(void **state)
{
    (void)state;
    rope_conf r = {.dim = DIM,
                   .theta = BASE,
                   .scaling = ROPE_LONG,
                   .factor = 4,
                   .original_ctx = 32,
                   .short_by = short_by,
                   .long_by = long_by};
    check(&r, NULL, by_long, sqrt(1 + log(4) / log(32)));
}

static double by_dynamic(size_t i, size_t n)
{
    double theta = BASE;
    if (n > 32) theta *= pow(4 * (double)n / 32 - 3, (double)DIM / (DIM - 2));
    return pow(theta, -2.0 * (double)i / DIM);
}

static void rope_dynamic_grows_theta_with_the_length(void **state)
{
    (void)state;
    rope_conf r = {.dim = DIM, .theta = BASE, .scaling = ROPE_DYNAMIC, .factor = 4, .original_ctx = 32};
    check(&r, NULL, by_dynamic, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rope_turns_pairs_by_powers_of_theta),
        cmocka_unit_test(rope_linear_divides_frequencies),
        cmocka_unit_test(rope_takes_the_factors_of_a_file_instead_of_llama3),
        cmocka_unit_test(rope_llama3_moves_smoothly_between_bands),
        cmocka_unit_test(rope_yarn_ramps_from_kept_to_divided),
        cmocka_unit_test(rope_long_changes_factors_past_the_original_context),
        cmocka_unit_test(rope_dynamic_grows_theta_with_the_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
