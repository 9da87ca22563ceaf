#include "helper.h"
#include "signal/resample.h"

static const double PI = 3.14159265358979323846;

/* All of x[n] at another rate; free() it. */
static float *resample(uint32_t from, uint32_t to, const float *x, size_t n, size_t block, size_t *ret_n)
{
    resampler *r = NULL;
    assert_int_equal(resampler_new(&r, from, to, NULL), 0);
    float *out = malloc((resampler_room(r, n) + resampler_room(r, 0)) * sizeof *out);
    assert_non_null(out);
    size_t n_out = 0;
    for (size_t at = 0; at < n; at += block) {
        size_t more = n - at < block ? n - at : block, room = resampler_room(r, more);
        size_t got = resampler_push(r, x + at, more, out + n_out);
        assert_true(got <= room);
        n_out += got;
    }
    size_t room = resampler_room(r, 0), got = resampler_finish(r, out + n_out);
    assert_true(got <= room);
    resampler_free(r);
    *ret_n = n_out + got;
    return out;
}

static float *sine(double hz, uint32_t rate, size_t n)
{
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = (float)sin(2 * PI * hz * (double)i / rate);
    return x;
}

/* How far a second of a sine is from the same sine at the other rate, in dB, away from the ends; with
 * `silent` how loud what came out is. */
static double error_db(uint32_t from, uint32_t to, double hz, bool silent)
{
    size_t n;
    float *x = sine(hz, from, from), *y = resample(from, to, x, from, 4096, &n);
    assert_int_equal(n, to);
    size_t edge = to / 4;
    double d = 0;
    for (size_t i = edge; i < n - edge; i++) {
        double want = silent ? 0 : sin(2 * PI * hz * (double)i / to), e = y[i] - want;
        d += e * e;
    }
    free(x);
    free(y);
    return 10 * log10(d / (double)(n - 2 * edge) / 0.5 + 1e-30);
}

static const uint32_t PAIRS[][2] = {{44100, 16000}, {48000, 16000}, {8000, 16000},  {11025, 16000},
                                    {22050, 16000}, {16000, 44100}, {96000, 16000}, {44099, 16000},
                                    {15999, 16000}, {47999, 11987}, {192000, 8000}};

static void a_sine_stays_a_sine(void **state)
{
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        uint32_t from = PAIRS[i][0], to = PAIRS[i][1], lower = from < to ? from : to;
        static const double parts[] = {0.01, 0.25, 0.5, 0.8, 0.9};
        for (size_t k = 0; k < COUNT_OF(parts); k++) {
            double db = error_db(from, to, parts[k] * lower / 2, false);
            if (db > (k < 4 ? -90 : -58)) fail_msg("%u to %u at %g: %g dB", from, to, parts[k], db);
        }
    }
}

static void what_does_not_fit_is_silent_not_folded(void **state)
{
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        uint32_t from = PAIRS[i][0], to = PAIRS[i][1];
        if (from <= to) continue;
        static const double parts[] = {1.0, 1.01, 1.2, 1.7};
        for (size_t k = 0; k < COUNT_OF(parts); k++) {
            double hz = parts[k] * to / 2, db = error_db(from, to, hz, true);
            if (hz >= from / 2) continue;
            if (db > -92) fail_msg("%u to %u at %g: %g dB", from, to, parts[k], db);
        }
    }
}

static void silence_and_levels_stay(void **state)
{
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        size_t n, n_x = PAIRS[i][0];
        float *x = calloc(n_x, sizeof *x), *y = resample(PAIRS[i][0], PAIRS[i][1], x, n_x, 1000, &n);
        for (size_t k = 0; k < n; k++) assert_true(y[k] == 0);
        free(y);
        for (size_t k = 0; k < n_x; k++) x[k] = 0.5f;
        y = resample(PAIRS[i][0], PAIRS[i][1], x, n_x, 1000, &n);
        for (size_t k = n / 4; k < n - n / 4; k++) assert_true(fabsf(y[k] - 0.5f) < 1e-6f);
        free(y);
        free(x);
    }
}

static void any_cut_of_a_stream_gives_the_same_bits(void **state)
{
    static const size_t blocks[] = {1, 3, 160, 1023, 1024, 1025, 100000};
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        size_t n, n_again, n_x = 7001;
        float *x = sine(333, PAIRS[i][0], n_x), *whole = resample(PAIRS[i][0], PAIRS[i][1], x, n_x, n_x, &n);
        assert_int_equal(n, ((uint64_t)n_x * PAIRS[i][1] + PAIRS[i][0] - 1) / PAIRS[i][0]);
        for (size_t b = 0; b < COUNT_OF(blocks); b++) {
            float *y = resample(PAIRS[i][0], PAIRS[i][1], x, n_x, blocks[b], &n_again);
            assert_int_equal(n, n_again);
            assert_memory_equal(y, whole, n * sizeof *y);
            free(y);
        }
        free(whole);
        free(x);
    }
}

static void lengths_are_exact_and_streams_begin_again(void **state)
{
    static const size_t lengths[] = {0, 1, 2, 3, 159, 160, 161, 441, 1000};
    resampler *r = NULL;
    assert_int_equal(resampler_new(&r, 44100, 16000, NULL), 0);
    float x[1000], out[3000], first[3000];
    for (size_t i = 0; i < COUNT_OF(x); i++) x[i] = (float)(i % 17) / 17;
    for (size_t k = 0; k < COUNT_OF(lengths); k++) {
        size_t n = resampler_push(r, x, lengths[k], out);
        n += resampler_finish(r, out + n);
        assert_int_equal(n, (lengths[k] * 160 + 440) / 441);
    }
    for (int pass = 0; pass < 2; pass++) {
        size_t n = resampler_push(r, x, 1000, pass ? out : first);
        resampler_finish(r, (pass ? out : first) + n);
    }
    assert_memory_equal(out, first, 363 * sizeof *out);
    resampler_free(r);
}

static void equal_rates_copy(void **state)
{
    float x[100];
    size_t n;
    for (size_t i = 0; i < COUNT_OF(x); i++) x[i] = (float)i;
    float *y = resample(16000, 16000, x, 100, 7, &n);
    assert_int_equal(n, 100);
    assert_memory_equal(x, y, sizeof x);
    free(y);
}

static void extreme_ratios_are_bounded_and_others_refused(void **state)
{
    static const uint32_t ends[][2] = {{768000, 1000}, {767999, 1000}, {1000, 767999}};
    float x[3000];
    for (size_t i = 0; i < COUNT_OF(x); i++) x[i] = 0.25f;
    for (size_t k = 0; k < COUNT_OF(ends); k++) {
        size_t n;
        float *y = resample(ends[k][0], ends[k][1], x, 3000, 3000, &n);
        assert_int_equal(n, (3000ull * ends[k][1] + ends[k][0] - 1) / ends[k][0]);
        free(y);
    }
    static const uint32_t bad[][2] = {
        {0, 16000}, {999, 16000}, {16000, 0}, {768001, 16000}, {16000, UINT32_MAX}};
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        resampler *r = NULL;
        shoal_err err = {0};
        assert_int_equal(resampler_new(&r, bad[k][0], bad[k][1], &err), SHOAL_EUNSUPPORTED);
        assert_non_null(strstr(err.message, "Hz"));
        assert_null(r);
    }
}

static void bits_are_the_same_on_every_machine(void **state)
{
    float x[2000];
    uint32_t seed = 1;
    for (size_t i = 0; i < COUNT_OF(x); i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 16) / 65536 - 0.5f;
    }
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        size_t n;
        float *y = resample(PAIRS[i][0], PAIRS[i][1], x, COUNT_OF(x), 100, &n);
        for (size_t k = 0; k < n; k++) {
            uint32_t u;
            memcpy(&u, &y[k], sizeof u);
            h = (h ^ u) * 1099511628211u;
        }
        free(y);
    }
    if (h != 0xd340fe24fad28c67) fail_msg("digest %llx", (unsigned long long)h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sine_stays_a_sine),
        cmocka_unit_test(what_does_not_fit_is_silent_not_folded),
        cmocka_unit_test(silence_and_levels_stay),
        cmocka_unit_test(any_cut_of_a_stream_gives_the_same_bits),
        cmocka_unit_test(lengths_are_exact_and_streams_begin_again),
        cmocka_unit_test(equal_rates_copy),
        cmocka_unit_test(extreme_ratios_are_bounded_and_others_refused),
        cmocka_unit_test(bits_are_the_same_on_every_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
