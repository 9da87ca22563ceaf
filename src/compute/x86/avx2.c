/* x86/avx2.c: AVX2 with FMA and F16C. A panel's sixteen rows are two registers.
 *
 * There is no vpdpbusd, and vpmaddubsw saturates at 16 bits, so no sum of two products may pass 32767:
 *   Q8_0: |w| <= 128 as unsigned, times x with w's sign, |x| <= 127: 2 * 128 * 127 = 32512. Exact, for
 *         w = -128 too: its absolute value 0x80 is 128 as an unsigned byte, and the sign goes to x.
 *   Q4:   nibbles <= 15: 2 * 15 * 127 = 3810, and the eight groups of a block add up to 30480. */
#include "compute/kernels.h"

#ifdef KERNELS_X86
#include <string.h>

#include "compute/x86/tile.h"
#include "compute/x86/v_avx2.h"
#include "compute/x86/vec_body.h"

/* Eight rows are a half panel: h is 0 or 1. Tiles run H half panels times T tokens with
 * acc[t * H + h]; with several tokens the sixteen registers hold no more than one half panel (integer
 * types) or one panel (float types), and the other halves follow one after the other. */
#define TILE_MAX  8
#define HALF_ROWS 8

INLINE void store_tile(const mul_job *j, const __m256 *acc, size_t first, const size_t H, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        UNROLL
        for (size_t h = 0; h < H; h++)
            _mm256_storeu_ps(j->out + t * j->ldo + (first + h) * HALF_ROWS, acc[t * H + h]);
    }
}

/* ---- float weights ---- */

INLINE __m128i load_half(const uint8_t *w, size_t i)
{
    return _mm_load_si128((const void *)(w + i * 16));
}
INLINE __m256 load_f32(const uint8_t *w, size_t i)
{
    return _mm256_load_ps((const void *)(w + i * 32));
}
INLINE __m256 load_f16(const uint8_t *w, size_t i)
{
    return _mm256_cvtph_ps(load_half(w, i));
}

INLINE __m256 load_bf16(const uint8_t *w, size_t i)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_half(w, i)), 16));
}

/* `first` is the first half panel; each register of weights serves T tokens. */
#define FLOAT_BODY(type)                                                                      \
    INLINE void halves_##type(const mul_job *j, size_t first, const size_t H, const size_t T) \
    {                                                                                         \
        __m256 acc[TILE_MAX];                                                                 \
        UNROLL for (size_t i = 0; i < H * T; i++) acc[i] = _mm256_setzero_ps();               \
        for (size_t c = 0; c < j->cols; c++) {                                                \
            UNROLL for (size_t h = 0; h < H; h++)                                             \
            {                                                                                 \
                const uint8_t *panel = j->w + (first + h) / 2 * j->panel_bytes;               \
                __m256 w = load_##type(panel, c * 2 + (first + h) % 2);                       \
                UNROLL for (size_t t = 0; t < T; t++)                                         \
                {                                                                             \
                    __m256 x = _mm256_set1_ps(j->x[t * j->ldx + c]);                          \
                    acc[t * H + h] = _mm256_fmadd_ps(w, x, acc[t * H + h]);                   \
                }                                                                             \
            }                                                                                 \
        }                                                                                     \
        store_tile(j, acc, first, H, T);                                                      \
    }                                                                                         \
    INLINE void body_##type(const mul_job *j, const size_t P, const size_t T)                 \
    {                                                                                         \
        if (T == 1)                                                                           \
            halves_##type(j, 0, 2 * P, 1);                                                    \
        else                                                                                  \
            for (size_t p = 0; p < P; p++) halves_##type(j, 2 * p, 2, T);                     \
    }

FLOAT_BODY(f32)
FLOAT_BODY(f16)
FLOAT_BODY(bf16)

/* ---- quantised weights ---- */

/* Four activations of one token in every lane. */
INLINE __m256i four(const int8_t *q)
{
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm256_set1_epi32(v);
}

INLINE __m256i pairs_to_dots(__m256i pairs)
{
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* acc[t * H + h] = fma(dot + correction, w_scale * x_scale, acc) for one half panel */
INLINE void end_dots(const mul_job *j, __m256 *acc, const __m256i *dot, size_t b, size_t h, __m256 ws,
                     int bias, const size_t H, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        __m256i fix = _mm256_set1_epi32(bias * j->sum[t * j->n_blocks + b]);
        __m256 s = _mm256_mul_ps(ws, _mm256_set1_ps(j->scale[t * j->n_blocks + b]));
        __m256 d = _mm256_cvtepi32_ps(_mm256_add_epi32(dot[t * H + h], fix));
        acc[t * H + h] = _mm256_fmadd_ps(d, s, acc[t * H + h]);
    }
}

/* dot[t * H + h] of block b of one half panel */
INLINE void dots_q8_0(const mul_job *j, __m256i *dot, size_t b, const uint8_t *w, size_t h, const size_t H,
                      const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) dot[t * H + h] = _mm256_setzero_si256();
    UNROLL
    for (size_t g = 0; g < 8; g++) {
        __m256i biased = _mm256_load_si256((const void *)(w + g * 64));
        __m256i s = _mm256_xor_si256(biased, _mm256_set1_epi8(-128)), a = _mm256_abs_epi8(s);
        UNROLL
        for (size_t t = 0; t < T; t++) {
            __m256i x = _mm256_sign_epi8(four(j->q + t * j->cols + b * 32 + g * 4), s);
            dot[t * H + h] = _mm256_add_epi32(dot[t * H + h], pairs_to_dots(_mm256_maddubs_epi16(a, x)));
        }
    }
}

INLINE void dots_q4(const mul_job *j, __m256i *dot, size_t b, const uint8_t *w, size_t h, const size_t H,
                    const size_t T)
{
    __m256i low = _mm256_set1_epi8(15);
    UNROLL
    for (size_t t = 0; t < T; t++) dot[t * H + h] = _mm256_setzero_si256();
    UNROLL
    for (size_t g = 0; g < 4; g++) {
        __m256i v = _mm256_load_si256((const void *)(w + g * 64));
        __m256i l = _mm256_and_si256(v, low), u = _mm256_and_si256(_mm256_srli_epi16(v, 4), low);
        UNROLL
        for (size_t t = 0; t < T; t++) {
            const int8_t *q = j->q + t * j->cols + b * 32 + g * 8;
            __m256i pairs =
                _mm256_add_epi16(_mm256_maddubs_epi16(l, four(q)), _mm256_maddubs_epi16(u, four(q + 4)));
            dot[t * H + h] = _mm256_add_epi16(dot[t * H + h], pairs);
        }
    }
    UNROLL
    for (size_t t = 0; t < T; t++) dot[t * H + h] = pairs_to_dots(dot[t * H + h]);
}

/* acc = fma(minimum, x_scale * float(sum), acc) */
INLINE void add_minima(const mul_job *j, __m256 *acc, size_t b, size_t h, __m256 m, const size_t H,
                       const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        float total = j->scale[t * j->n_blocks + b] * (float)j->sum[t * j->n_blocks + b];
        acc[t * H + h] = _mm256_fmadd_ps(m, _mm256_set1_ps(total), acc[t * H + h]);
    }
}

/* dots: its integer part; block_bytes and n_scales: its layout; bias: of the stored integers */
#define QUANT_BODY(type, dots, block_bytes, n_scales, bias)                                         \
    INLINE void halves_##type(const mul_job *j, size_t first, const size_t H, const size_t T)       \
    {                                                                                               \
        __m256 acc[TILE_MAX];                                                                       \
        __m256i dot[TILE_MAX];                                                                      \
        UNROLL for (size_t i = 0; i < H * T; i++) acc[i] = _mm256_setzero_ps();                     \
        for (size_t b = 0; b < j->n_blocks; b++) {                                                  \
            UNROLL for (size_t h = 0; h < H; h++)                                                   \
            {                                                                                       \
                size_t p = (first + h) / 2, half = (first + h) % 2;                                 \
                const uint8_t *w = j->w + p * j->panel_bytes + b * (block_bytes) + half * 32;       \
                const uint16_t *s = j->scales + p * j->panel_scales + b * (n_scales)*PANEL_ROWS;    \
                dots(j, dot, b, w, h, H, T);                                                        \
                end_dots(j, acc, dot, b, h, load_f16((const void *)s, half), bias, H, T);           \
                if ((n_scales) == 2)                                                                \
                    add_minima(j, acc, b, h, load_f16((const void *)(s + PANEL_ROWS), half), H, T); \
            }                                                                                       \
        }                                                                                           \
        store_tile(j, acc, first, H, T);                                                            \
    }                                                                                               \
    INLINE void body_##type(const mul_job *j, const size_t P, const size_t T)                       \
    {                                                                                               \
        if (T == 1)                                                                                 \
            for (size_t p = 0; p < P; p++) halves_##type(j, 2 * p, 2, 1);                           \
        else                                                                                        \
            for (size_t h = 0; h < 2 * P; h++) halves_##type(j, h, 1, T);                           \
    }

QUANT_BODY(q8_0, dots_q8_0, 512, 1, 0)
QUANT_BODY(q4_0, dots_q4, 256, 1, -8)
QUANT_BODY(q4_1, dots_q4, 256, 2, 0)

TILES(f32)
TILES(f16)
TILES(bf16)
TILES(q8_0)
TILES(q4_0)
TILES(q4_1)

/* ---- activations ---- */

INLINE uint32_t max_of(__m256i v)
{
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

INLINE int32_t sum_of(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1));
    return _mm_cvtsi128_si32(s);
}

INLINE __m256i to_int(const float *x, __m256 inverse)
{
    __m256i i = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
    return _mm256_max_epi32(_mm256_set1_epi32(-127), _mm256_min_epi32(_mm256_set1_epi32(127), i));
}

INLINE __m256i magnitude(const float *x)
{
    return _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x)), _mm256_set1_epi32(0x7FFFFFFF));
}

TARGET static void quantise_block(const float *x, int8_t *q, float *scale, int32_t *sum)
{
    uint32_t max_bits = max_of(_mm256_max_epu32(_mm256_max_epu32(magnitude(x), magnitude(x + 8)),
                                                _mm256_max_epu32(magnitude(x + 16), magnitude(x + 24))));
    float max;
    memcpy(&max, &max_bits, sizeof max);
    if (max_bits >= 0x7F800000u || max < ACTS_TINY) {
        *scale = max_bits >= 0x7F800000u ? (float)NAN : 0.0f;
        *sum = 0;
        memset(q, 0, 32);
        return;
    }
    *scale = max / 127.0f;
    __m256 inverse = _mm256_set1_ps(127.0f / max);
    __m256i a = to_int(x, inverse), b = to_int(x + 8, inverse), c = to_int(x + 16, inverse),
            d = to_int(x + 24, inverse);
    *sum = sum_of(_mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d)));
    /* packs work within 128-bit lanes; the permutation puts the groups of four back in order */
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)(void *)q, bytes);
}

TARGET static void FN(quantise)(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum)
{
    for (size_t b = 0; b < n_blocks; b++) quantise_block(x + b * 32, q + b * 32, scale + b, sum + b);
}

/* An fma, a conversion from f16 and an integer product, from values the compiler cannot know. */
TARGET bool probe_avx2(void)
{
    volatile float three = 3.0f;
    volatile int half_one = 0x3C003C00, bytes = 0x01010101;
    vf f = v_fma(v_set1(three), v_set1(three), v_set1(1.0f));
    __m256 h = _mm256_cvtph_ps(_mm_set1_epi32(half_one));
    __m256i i = pairs_to_dots(_mm256_maddubs_epi16(_mm256_set1_epi32(bytes), _mm256_set1_epi32(bytes)));
    f.a = _mm256_add_ps(f.a, _mm256_mul_ps(h, _mm256_cvtepi32_ps(i)));
    return v_tree(f) == 16 * 10 + 8 * 4;
}

const kernels kernels_avx2 = {
    .mul = {[DT_F32] = FN(mul_f32),
            [DT_F16] = FN(mul_f16),
            [DT_BF16] = FN(mul_bf16),
            [DT_Q8_0] = FN(mul_q8_0),
            [DT_Q4_0] = FN(mul_q4_0),
            [DT_Q4_1] = FN(mul_q4_1)},
    .quantise = FN(quantise),
    .vec = VEC_KERNELS,
};
#else
typedef int empty_avx2; /* not an x86 machine */
#endif
