/* x86/avx512vnni.c: AVX-512 with VNNI. A panel's sixteen rows are one register. */
#include "compute/kernels.h"

#ifdef KERNELS_X86
#include <string.h>

#include "compute/x86/tile.h"
#include "compute/x86/v_avx512.h"
#include "compute/x86/vec_body.h"

#define TILE_MAX 8 /* panels times tokens: eight accumulators hide the latency of fma and vpdpbusd */

/* ---- float weights: one fma a column ---- */

INLINE __m512 load_f32(const uint8_t *w, size_t c)
{
    return _mm512_load_ps(w + c * 64);
}
INLINE __m256i load_half(const uint8_t *w, size_t c)
{
    return _mm256_load_si256((const void *)(w + c * 32));
}
INLINE __m512 load_f16(const uint8_t *w, size_t c)
{
    return _mm512_cvtph_ps(load_half(w, c));
}

INLINE __m512 load_bf16(const uint8_t *w, size_t c)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_half(w, c)), 16));
}

/* acc[t * P + p] is panel p of token t. */
INLINE void store_tile(const mul_job *j, const __m512 *acc, const size_t P, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        UNROLL
        for (size_t p = 0; p < P; p++) _mm512_storeu_ps(j->out + t * j->ldo + p * PANEL_ROWS, acc[t * P + p]);
    }
}

#define FLOAT_BODY(type)                                                        \
    INLINE void body_##type(const mul_job *j, const size_t P, const size_t T)   \
    {                                                                           \
        __m512 acc[TILE_MAX];                                                   \
        UNROLL for (size_t i = 0; i < P * T; i++) acc[i] = _mm512_setzero_ps(); \
        for (size_t c = 0; c < j->cols; c++) {                                  \
            UNROLL for (size_t p = 0; p < P; p++)                               \
            {                                                                   \
                __m512 w = load_##type(j->w + p * j->panel_bytes, c);           \
                UNROLL for (size_t t = 0; t < T; t++)                           \
                {                                                               \
                    __m512 x = _mm512_set1_ps(j->x[t * j->ldx + c]);            \
                    acc[t * P + p] = _mm512_fmadd_ps(w, x, acc[t * P + p]);     \
                }                                                               \
            }                                                                   \
        }                                                                       \
        store_tile(j, acc, P, T);                                               \
    }

FLOAT_BODY(f32)
FLOAT_BODY(f16)
FLOAT_BODY(bf16)

/* ---- quantised weights: vpdpbusd takes the stored (biased, unsigned) weights, four columns at once ---- */

/* Four activations of one token in every lane. */
INLINE __m512i four(const int8_t *q)
{
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm512_set1_epi32(v);
}

INLINE __m512 load_scales(const uint16_t *s)
{
    return _mm512_cvtph_ps(_mm256_load_si256((const void *)s));
}

/* Start the block's integer sums with the correction for the weights' bias, -(sum << shift). The
 * shift is done in the vector: a broadcast from memory is free, one from an integer register is not. */
INLINE void start_dots(const mul_job *j, __m512i *dot, size_t b, unsigned shift, const size_t P,
                       const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        __m512i sum = _mm512_set1_epi32(j->sum[t * j->n_blocks + b]);
        __m512i start = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sum, shift));
        UNROLL
        for (size_t p = 0; p < P; p++) dot[t * P + p] = start;
    }
}

INLINE void add_group(const mul_job *j, __m512i *dot, __m512i w, size_t p, size_t col, const size_t P,
                      const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++)
        dot[t * P + p] = _mm512_dpbusd_epi32(dot[t * P + p], w, four(j->q + t * j->cols + col));
}

/* acc = fma(dot, w_scale * x_scale, acc) */
INLINE void end_dots(const mul_job *j, __m512 *acc, const __m512i *dot, size_t b, size_t p, __m512 ws,
                     const size_t P, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        __m512 s = _mm512_mul_ps(ws, _mm512_set1_ps(j->scale[t * j->n_blocks + b]));
        acc[t * P + p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[t * P + p]), s, acc[t * P + p]);
    }
}

INLINE void body_q8_0(const mul_job *j, const size_t P, const size_t T)
{
    __m512 acc[TILE_MAX];
    __m512i dot[TILE_MAX];
    UNROLL
    for (size_t i = 0; i < P * T; i++) acc[i] = _mm512_setzero_ps();
    for (size_t b = 0; b < j->n_blocks; b++) {
        start_dots(j, dot, b, 7, P, T);
        UNROLL
        for (size_t g = 0; g < 8; g++) {
            UNROLL
            for (size_t p = 0; p < P; p++) {
                __m512i w = _mm512_load_si512(j->w + p * j->panel_bytes + b * 512 + g * 64);
                add_group(j, dot, w, p, b * 32 + g * 4, P, T);
            }
        }
        UNROLL
        for (size_t p = 0; p < P; p++)
            end_dots(j, acc, dot, b, p, load_scales(j->scales + p * j->panel_scales + b * PANEL_ROWS), P, T);
    }
    store_tile(j, acc, P, T);
}

/* The integer part of a nibble block: one load gives columns 8g..8g+3 and 8g+4..8g+7. */
INLINE void dots_q4(const mul_job *j, __m512i *dot, size_t b, const size_t P, const size_t T)
{
    __m512i low = _mm512_set1_epi8(15);
    UNROLL
    for (size_t g = 0; g < 4; g++) {
        UNROLL
        for (size_t p = 0; p < P; p++) {
            __m512i w = _mm512_load_si512(j->w + p * j->panel_bytes + b * 256 + g * 64);
            add_group(j, dot, _mm512_and_si512(w, low), p, b * 32 + g * 8, P, T);
            add_group(j, dot, _mm512_and_si512(_mm512_srli_epi16(w, 4), low), p, b * 32 + g * 8 + 4, P, T);
        }
    }
}

INLINE void body_q4_0(const mul_job *j, const size_t P, const size_t T)
{
    __m512 acc[TILE_MAX];
    __m512i dot[TILE_MAX];
    UNROLL
    for (size_t i = 0; i < P * T; i++) acc[i] = _mm512_setzero_ps();
    for (size_t b = 0; b < j->n_blocks; b++) {
        start_dots(j, dot, b, 3, P, T);
        dots_q4(j, dot, b, P, T);
        UNROLL
        for (size_t p = 0; p < P; p++)
            end_dots(j, acc, dot, b, p, load_scales(j->scales + p * j->panel_scales + b * PANEL_ROWS), P, T);
    }
    store_tile(j, acc, P, T);
}

/* After the product: acc = fma(minimum, x_scale * float(sum), acc) */
INLINE void add_minima(const mul_job *j, __m512 *acc, size_t b, size_t p, __m512 m, const size_t P,
                       const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        float total = j->scale[t * j->n_blocks + b] * (float)j->sum[t * j->n_blocks + b];
        acc[t * P + p] = _mm512_fmadd_ps(m, _mm512_set1_ps(total), acc[t * P + p]);
    }
}

INLINE void body_q4_1(const mul_job *j, const size_t P, const size_t T)
{
    __m512 acc[TILE_MAX];
    __m512i dot[TILE_MAX];
    UNROLL
    for (size_t i = 0; i < P * T; i++) acc[i] = _mm512_setzero_ps();
    for (size_t b = 0; b < j->n_blocks; b++) {
        UNROLL
        for (size_t i = 0; i < P * T; i++) dot[i] = _mm512_setzero_si512();
        dots_q4(j, dot, b, P, T);
        UNROLL
        for (size_t p = 0; p < P; p++) {
            const uint16_t *s = j->scales + p * j->panel_scales + b * 2 * PANEL_ROWS;
            end_dots(j, acc, dot, b, p, load_scales(s), P, T);
            add_minima(j, acc, b, p, load_scales(s + PANEL_ROWS), P, T);
        }
    }
    store_tile(j, acc, P, T);
}

TILES(f32)
TILES(f16)
TILES(bf16)
TILES(q8_0)
TILES(q4_0)
TILES(q4_1)

/* ---- activations ---- */

TARGET static void quantise_block(const float *x, int8_t *q, float *scale, int32_t *sum)
{
    __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
    __m512i bits = _mm512_set1_epi32(0x7FFFFFFF);
    __m512i m = _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(a), bits),
                                 _mm512_and_si512(_mm512_castps_si512(b), bits));
    uint32_t max_bits = _mm512_reduce_max_epu32(m);
    float max;
    memcpy(&max, &max_bits, sizeof max);
    if (max_bits >= 0x7F800000u || max < ACTS_TINY) {
        *scale = max_bits >= 0x7F800000u ? (float)NAN : 0.0f;
        *sum = 0;
        memset(q, 0, 32);
        return;
    }
    *scale = max / 127.0f;
    __m512 inverse = _mm512_set1_ps(127.0f / max);
    __m512i limit = _mm512_set1_epi32(127), lowest = _mm512_set1_epi32(-127);
    __m512i i = _mm512_cvtps_epi32(_mm512_mul_ps(a, inverse)),
            k = _mm512_cvtps_epi32(_mm512_mul_ps(b, inverse));
    i = _mm512_max_epi32(lowest, _mm512_min_epi32(limit, i));
    k = _mm512_max_epi32(lowest, _mm512_min_epi32(limit, k));
    *sum = _mm512_reduce_add_epi32(_mm512_add_epi32(i, k));
    _mm_storeu_si128((__m128i *)(void *)q, _mm512_cvtepi32_epi8(i));
    _mm_storeu_si128((__m128i *)(void *)(q + 16), _mm512_cvtepi32_epi8(k));
}

TARGET static void FN(quantise)(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum)
{
    for (size_t b = 0; b < n_blocks; b++) quantise_block(x + b * 32, q + b * 32, scale + b, sum + b);
}

/* 255 * 127 * 4 in every lane, from values the compiler cannot know. */
TARGET bool probe_avx512vnni(void)
{
    volatile int unsigned_bytes = -1, signed_bytes = 0x7F7F7F7F;
    __m512i d = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi32(unsigned_bytes),
                                    _mm512_set1_epi32(signed_bytes));
    __m512 f = _mm512_fmadd_ps(_mm512_cvtepi32_ps(d), _mm512_set1_ps(2.0f), _mm512_set1_ps(1.0f));
    return v_tree(v_keep(f, 15)) == 15 * (2.0f * 4 * 255 * 127 + 1) && probe_avx2();
}

const kernels kernels_avx512vnni = {
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
typedef int empty_avx512vnni; /* not an x86 machine */
#endif
