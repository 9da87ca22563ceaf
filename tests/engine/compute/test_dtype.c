/* Element types: rounding, the GGUF blocks, names and numbers. */
#include <math.h>

#include "check.h"
#include "gguf_blocks.h"

static void f16_round_trips_every_value(void **state)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = f16_to_f32((uint16_t)h);
        if (f != f) continue;
        assert_int_equal(f32_to_f16(f), h);
    }
    assert_true(isnan(f16_to_f32(f32_to_f16((float)NAN))));
}

/* Between two neighbours the nearer wins, in the middle the even one. */
static void f16_rounds_to_nearest_even(void **state)
{
    for (uint32_t h = 0; h < 0x7BFF; h++) {
        double a = (double)f16_to_f32((uint16_t)h), b = (double)f16_to_f32((uint16_t)(h + 1));
        float middle = (float)((a + b) / 2); /* exact: one more bit */
        assert_int_equal(f32_to_f16(middle), h & 1 ? h + 1 : h);
        assert_int_equal(f32_to_f16(nextafterf(middle, 0)), h);
        assert_int_equal(f32_to_f16(nextafterf(middle, (float)INFINITY)), h + 1);
        assert_int_equal(f32_to_f16(-nextafterf(middle, 0)), h | 0x8000);
    }
    assert_int_equal(f32_to_f16(65519.0f), 0x7BFF);
    assert_int_equal(f32_to_f16(65520.0f), 0x7C00);
    assert_int_equal(f32_to_f16(1e30f), 0x7C00);
    assert_int_equal(f32_to_f16((float)INFINITY), 0x7C00);
    assert_int_equal(f32_to_f16(1e-30f), 0);
}

static void bf16_rounds_to_nearest_even(void **state)
{
    static const struct {
        float in;
        uint16_t out;
    } cases[] = {
        {1.0f, 0x3F80}, {0x1.01p0f, 0x3F80}, {0x1.010002p0f, 0x3F81}, {0x1.03p0f, 0x3F82}, {-2.0f, 0xC000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint16_t h;
        dtype_from_f32(DT_BF16, &cases[i].in, &h, 1);
        assert_int_equal(h, cases[i].out);
    }
    float nan = (float)NAN, back;
    uint16_t h;
    dtype_from_f32(DT_BF16, &nan, &h, 1);
    dtype_to_f32(DT_BF16, &h, &back, 1);
    assert_true(isnan(back));
}

static void names_and_numbers_round_trip(void **state)
{
    for (int t = 0; t < DT_COUNT; t++) {
        dtype back;
        assert_int_equal(dtype_from_gguf(dtype_to_gguf((dtype)t), &back), 0);
        assert_int_equal(back, t);
        assert_true(dtype_parse(dtype_name((dtype)t), &back));
        assert_int_equal(back, t);
    }
    dtype t;
    assert_true(dtype_parse("q4_1", &t) && t == DT_Q4_1);
    assert_false(dtype_parse("q9", &t));
    assert_int_equal(dtype_from_gguf(16, &t), SHOAL_EUNSUPPORTED); /* IQ2_XXS */
}

/* Blocks written out by hand after the format's definition. */
static void blocks_decode_as_gguf_defines_them(void **state)
{
    float out[32];
    uint8_t q8[34] = {0x00, 0x38 /* 0.5 */, 0x80, 0x7F, 0x01};
    dtype_to_f32(DT_Q8_0, q8, out, 32);
    assert_true(out[0] == -64.0f && out[1] == 63.5f && out[2] == 0.5f && out[3] == 0.0f);

    uint8_t q4[18] = {0x00, 0x3C /* 1 */, 0xF0, 0x08};
    dtype_to_f32(DT_Q4_0, q4, out, 32);
    assert_true(out[0] == -8.0f && out[16] == 7.0f && out[1] == 0.0f && out[17] == -8.0f);

    uint8_t q41[20] = {0x00, 0x3C, 0x00, 0xC0 /* -2 */, 0xF0};
    dtype_to_f32(DT_Q4_1, q41, out, 32);
    assert_true(out[0] == -2.0f && out[16] == 13.0f && out[1] == -2.0f);
}

static const struct {
    dtype t;
    const uint8_t *bytes;
    size_t n_bytes;
    const float *values;
} references[] = {
    {DT_F32, bytes_f32, sizeof bytes_f32, values_f32},
    {DT_F16, bytes_f16, sizeof bytes_f16, values_f16},
    {DT_BF16, bytes_bf16, sizeof bytes_bf16, values_bf16},
    {DT_Q8_0, bytes_q8_0, sizeof bytes_q8_0, values_q8_0},
    {DT_Q4_0, bytes_q4_0, sizeof bytes_q4_0, values_q4_0},
    {DT_Q4_1, bytes_q4_1, sizeof bytes_q4_1, values_q4_1},
};

static void reference_files_decode_to_the_reference_values(void **state)
{
    for (size_t k = 0; k < sizeof references / sizeof *references; k++) {
        float out[64];
        assert_int_equal(64 / dtype_block(references[k].t) * dtype_block_bytes(references[k].t),
                         references[k].n_bytes);
        dtype_to_f32(references[k].t, references[k].bytes, out, 64);
        assert_same_bits(out, references[k].values, 64, dtype_name(references[k].t));
    }
}

static void quantising_writes_the_reference_quantisers_bytes(void **state)
{
    for (size_t k = 0; k < sizeof references / sizeof *references; k++) {
        uint8_t out[256];
        dtype_from_f32(references[k].t, values_f32, out, 64);
        assert_memory_equal(out, references[k].bytes, references[k].n_bytes);
    }
}

static void quantising_stays_within_half_a_step(void **state)
{
    static const struct {
        dtype t;
        float steps;
    } cases[] = {{DT_Q8_0, 127.0f}, {DT_Q4_0, 8.0f}, {DT_Q4_1, 7.5f}};
    for (size_t c = 0; c < 3; c++) {
        float *x = draw_floats(c + 1, 32 * 50, 3.0f), back[32 * 50];
        uint8_t packed[34 * 50];
        dtype_from_f32(cases[c].t, x, packed, 32 * 50);
        dtype_to_f32(cases[c].t, packed, back, 32 * 50);
        /* Q4_0 lacks +8, so its far side may be one whole step off */
        float half = 3.0f / cases[c].steps * (cases[c].t == DT_Q4_0 ? 1.0f : 0.5f) * 1.01f + 2e-3f;
        for (size_t i = 0; i < 32 * 50; i++) assert_true(fabsf(back[i] - x[i]) <= half);
        free(x);
    }
}

static void quantising_takes_anything(void **state)
{
    enum { N = 768 };
    float x[N] = {0};
    uint8_t packed[N * 2];
    for (int t = 0; t < DT_COUNT; t++) {
        if (dtype_is_float((dtype)t)) continue;
        assert_true(N % dtype_block((dtype)t) == 0 &&
                    N / dtype_block((dtype)t) * dtype_block_bytes((dtype)t) <= sizeof packed);
        dtype_from_f32((dtype)t, x, packed, N);
        x[3] = (float)NAN;
        dtype_from_f32((dtype)t, x, packed, N);
        x[5] = (float)INFINITY;
        x[6] = -1e38f;
        dtype_from_f32((dtype)t, x, packed, N);
        memset(x, 0, sizeof x);
        x[0] = 1e-45f;
        dtype_from_f32((dtype)t, x, packed, N);
        x[0] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_round_trips_every_value),
        cmocka_unit_test(f16_rounds_to_nearest_even),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(names_and_numbers_round_trip),
        cmocka_unit_test(blocks_decode_as_gguf_defines_them),
        cmocka_unit_test(reference_files_decode_to_the_reference_values),
        cmocka_unit_test(quantising_writes_the_reference_quantisers_bytes),
        cmocka_unit_test(quantising_stays_within_half_a_step),
        cmocka_unit_test(quantising_takes_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
