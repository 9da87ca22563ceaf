/* Buckets of distances: the values that T5's and DeBERTa's reference functions give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>

#include "net/attention/distance.h"

/* 32 buckets up to 128: exact below 8 (16 one way), then by sixteenths of the logarithm. */
static void distance_buckets_are_exact_then_logarithmic(void **state)
{
    (void)state;
    const bucket_conf c = {.n = 32, .max_distance = 128};
    const struct {
        long by;
        size_t both, back;
    } cases[] = {{0, 0, 0},      {-1, 1, 1},     {1, 17, 0},      {-7, 7, 7},   {-8, 8, 8},    {-11, 8, 11},
                 {-12, 9, 12},   {-15, 9, 15},   {-16, 10, 16},   {16, 26, 0},  {-32, 12, 21}, {-64, 14, 26},
                 {-127, 15, 31}, {-128, 15, 31}, {-5000, 15, 31}, {5000, 31, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(distance_bucket(&c, cases[i].by, true), cases[i].both);
        assert_int_equal(distance_bucket(&c, cases[i].by, false), cases[i].back);
    }
}

/* 256 buckets a side up to 512: exact up to 128. */
static void distance_log_buckets_are_odd_and_grow(void **state)
{
    (void)state;
    const long cases[][2] = {{0, 0}, {1, 1}, {127, 127}, {128, 128}, {129, 129}, {256, 192}, {511, 255}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(distance_log_bucket(cases[i][0], 256, 512), cases[i][1]);
        assert_int_equal(distance_log_bucket(-cases[i][0], 256, 512), -cases[i][1]);
    }
    for (long by = 1; by < 2000; by++)
        assert_true(distance_log_bucket(by, 256, 512) >= distance_log_bucket(by - 1, 256, 512));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance_buckets_are_exact_then_logarithmic),
        cmocka_unit_test(distance_log_buckets_are_odd_and_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
