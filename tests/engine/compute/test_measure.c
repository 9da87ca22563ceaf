/* The measuring calls give numbers; with SHOAL_MEASURE set they print a table for whoever tunes. */
#include "compute/limits.h"
#include "compute/measure.h"

#include "check.h"

static void products_are_measured(void **state)
{
    measure_result r = {0};
    measure_spec s = {
        .isa = ISA_SCALAR, .type = DT_Q4_0, .n_threads = 2, .rows = 20, .cols = 64, .seconds = 0.01};
    assert_int_equal(measure_mul(&r, &s, NULL), 0);
    assert_true(r.seconds > 0 && r.gb_per_s > 0 && r.gmac_per_s > 0);
    s.cols = 33;
    assert_int_equal(measure_mul(&r, &s, NULL), SHOAL_EINVALID);
}

static void the_team_is_measured(void **state)
{
    double run = 0, barrier = 0;
    assert_int_equal(measure_team(&run, &barrier, 2, NULL), 0);
    assert_true(run > 0 && barrier > 0);
}

/* Every set that runs here, and scalar, whose loops are no others'. */
static void the_limits_are_measured(void **state)
{
    for (isa i = ISA_SCALAR; i < ISA_COUNT; i++) {
        if (isa_built(i) && i != ISA_SCALAR) assert_ptr_not_equal(limit_loops_for(i), &limits_scalar);
        if (!isa_usable(i)) continue;
        double read = 0;
        measure_peaks peaks = {0};
        assert_int_equal(measure_read(&read, i, 100001, 2, 0.01, NULL), 0);
        assert_int_equal(measure_multiply(&peaks, i, 2, 0.01, NULL), 0);
        assert_true(read > 0 && peaks.int8 > 0 && peaks.f32 > 0);
    }
    double none = -1;
    assert_int_equal(measure_read(&none, ISA_SCALAR, SIZE_MAX - 5, 1, 0.01, NULL), SHOAL_ENOMEM);
    assert_int_equal(measure_read(&none, ISA_SCALAR, SIZE_MAX / 2, 1, 0.01, NULL), SHOAL_ENOMEM);
    assert_true(none == -1);
}

static void table_for_tuning(void **state)
{
    if (!getenv("SHOAL_MEASURE")) return skip();
    for (int n = 1; n <= 2; n++) {
        double run, barrier;
        measure_team(&run, &barrier, n, NULL);
        printf("threads=%d run %.0f ns barrier %.0f ns\n", n, run, barrier);
        for (isa i = ISA_SCALAR + 1; i < ISA_COUNT; i++) {
            for (int t = 0; t < DT_COUNT && isa_usable(i); t++) {
                measure_result one, many;
                measure_spec s = {.isa = i, .type = (dtype)t, .n_threads = n, .rows = 512, .cols = 1536};
                assert_int_equal(measure_mul(&one, &s, NULL), 0);
                s.n_tokens = 128;
                assert_int_equal(measure_mul(&many, &s, NULL), 0);
                printf("threads=%d %-10s %-4s decode %6.1f GB/s  prefill %7.1f GMAC/s\n", n, isa_name(i),
                       dtype_name((dtype)t), one.gb_per_s, many.gmac_per_s);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_measured),
        cmocka_unit_test(the_team_is_measured),
        cmocka_unit_test(the_limits_are_measured),
        cmocka_unit_test(table_for_tuning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
