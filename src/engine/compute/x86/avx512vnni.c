/* x86/avx512vnni.c: AVX-512 with VNNI. A panel's sixteen rows are one register. */
#include "compute/kernels.h"

#ifdef KERNELS_X86
#include <string.h>

#include "compute/panel.h"
#include "compute/tile.h"
#include "compute/x86/v_avx512.h"
#include "compute/x86/codes_avx512.h"
#include "compute/x86/quantise_avx512.h"
#include "compute/vec_body.h"
#include "compute/x86/q8_avx512.h"
#include "compute/attn_q8_body.h"

/* Bytes of a panel that are asked for ahead; 512 to 1,024 are as good. A core's own prefetching ends with each
 * page of 4 KiB, and a tile's panels are as many pages. */
#define CODES_AHEAD 768

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

/* acc[t * P + p] is panel p of token t. A bias that there is not is masked; what was there is only read where
 * it is added: lines that are only written cost another core's reads, or memory's, less. */
INLINE void store_tile(const mul_job *j, const __m512 *acc, const size_t P, const size_t T)
{
    const __mmask16 has_bias = j->bias ? 0xFFFF : 0;
    const bool adds = j->add;
    static const float none[TILE_MAX * PANEL_ROWS]; /* read masked, so that no line of `out` is */
    const float *bias = j->bias ? j->bias : none;
    float *out = j->out;
    const size_t ldo = j->ldo;
    __m512 b[TILE_MAX];
    UNROLL
    for (size_t p = 0; p < P; p++) b[p] = _mm512_maskz_loadu_ps(has_bias, bias + p * PANEL_ROWS);
    UNROLL
    for (size_t t = 0; t < T; t++, out += ldo) {
        UNROLL
        for (size_t p = 0; p < P; p++) {
            __m512 v = _mm512_mask_add_ps(acc[t * P + p], has_bias, acc[t * P + p], b[p]);
            if (adds) v = _mm512_add_ps(_mm512_loadu_ps(out + p * PANEL_ROWS), v);
            _mm512_storeu_ps(out + p * PANEL_ROWS, v);
        }
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

#define FLOAT_TILES(name, kernel) TILES(kernel)
DTYPE_FLOATS(FLOAT_TILES)

/* ---- block types: vpdpbusd takes codes (unsigned, too large by `zero`), four columns at once ---- */

/* Everything below is inlined with a constant row of formats.h, so that its questions cost nothing. */

/* Four activations of one token in every lane. */
INLINE __m512i four(const int8_t *q)
{
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm512_set1_epi32(v);
}

/* The sum of token t's activations over run `half` of block b, in every lane. */
INLINE __m512i run_sum(const mul_job *j, const wfmt *f, size_t t, size_t b, const size_t half)
{
    size_t at = t * j->n_blocks + b;
    return _mm512_set1_epi32(f->run == ACTS_BLOCK ? j->sum[at] : j->sum16[2 * at + half]);
}

/* dot[t * P + p] of run `half` of block b; w: panel 0's codes of the block. The sums start with the
 * correction for codes that are too large, -(sum * zero). The shift is done in the vector: a broadcast
 * from memory is free, one from an integer register is not. */
INLINE void run_dots(const mul_job *j, const wfmt *f, __m512i *dot, const uint8_t *w, size_t b,
                     const size_t half, const size_t P, const size_t T)
{
    const size_t n_groups = f->run / 4;
    UNROLL
    for (size_t t = 0; t < T; t++) {
        __m512i start = _mm512_setzero_si512();
        if (f->zero)
            start = _mm512_sub_epi32(
                start, _mm512_slli_epi32(run_sum(j, f, t, b, half), (unsigned)__builtin_ctz(f->zero)));
        UNROLL
        for (size_t p = 0; p < P; p++) dot[t * P + p] = start;
    }
    UNROLL
    for (size_t k = 0; k < n_groups; k++) {
        UNROLL
        for (size_t p = 0; p < P; p++) {
            __m512i codes = group(f, w + p * j->panel_bytes, half * n_groups + k);
            const int8_t *q = j->q + b * ACTS_BLOCK + (half * n_groups + k) * 4;
            UNROLL
            for (size_t t = 0; t < T; t++)
                dot[t * P + p] = _mm512_dpbusd_epi32(dot[t * P + p], codes, four(q + t * j->cols));
        }
    }
}

/* acc = fma(dot, scale * x_scale, acc), then acc = fma(minimum, x_scale * float(sum), acc) */
INLINE void end_run(const mul_job *j, const wfmt *f, __m512 *acc, const __m512i *dot, size_t b,
                    const size_t half, size_t p, __m512 scale, __m512 minimum, const size_t P, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        __m512 x = _mm512_set1_ps(j->scale[t * j->n_blocks + b]);
        __m512 *a = &acc[t * P + p];
        *a = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[t * P + p]), _mm512_mul_ps(scale, x), *a);
        if (!wfmt_has_min(f)) continue;
        __m512 x_sum = f->run == ACTS_BLOCK ? _mm512_set1_ps(j->x_sum[t * j->n_blocks + b])
                                            : _mm512_mul_ps(x, _mm512_cvtepi32_ps(run_sum(j, f, t, b, half)));
        *a = _mm512_fmadd_ps(minimum, x_sum, *a);
    }
}

/* The codes of a step that comes soon; w: panel 0's codes of this one. */
INLINE void ask_for_codes(const mul_job *j, const wfmt *f, const uint8_t *w, const size_t P)
{
    UNROLL
    for (size_t p = 0; p < P; p++) {
        UNROLL
        for (size_t at = 0; at < panel_step_bytes(f); at += 64)
            __builtin_prefetch(w + p * j->panel_bytes + CODES_AHEAD + at);
    }
}

/* One block of `f`: for super-blocks eight steps of 32 columns, else one. */
INLINE void add_block(const mul_job *j, const wfmt *f, __m512 *acc, size_t block, const size_t P,
                      const size_t T)
{
    const size_t n_steps = f->block / ACTS_BLOCK, n_runs = ACTS_BLOCK / f->run;
    const uint8_t *s = (const uint8_t *)j->scales + block * panel_scale_bytes(f);
    __m512i dot[TILE_MAX];
    __m512 d[TILE_MAX], m[TILE_MAX];
    UNROLL
    for (size_t p = 0; p < P; p++) {
        d[p] = block_d(f, s + p * j->panel_scales * 2);
        m[p] = wfmt_has_min(f) ? block_m(f, s + p * j->panel_scales * 2) : _mm512_setzero_ps();
    }
    for (size_t i = 0; i < n_steps; i++) {
        size_t b = block * n_steps + i;
        const uint8_t *w = j->w + b * panel_step_bytes(f);
        if (T == 1) ask_for_codes(j, f, w, P);
        UNROLL
        for (size_t half = 0; half < n_runs; half++) {
            run_dots(j, f, dot, w, b, half, P, T);
            UNROLL
            for (size_t p = 0; p < P; p++) {
                const uint8_t *subs = s + p * j->panel_scales * 2;
                __m512 scale = run_scale(f, subs, i * n_runs + half, d[p]);
                __m512 minimum = wfmt_has_min(f) ? run_min(f, subs, i * n_runs + half, m[p]) : m[p];
                end_run(j, f, acc, dot, b, half, p, scale, minimum, P, T);
            }
        }
    }
}

INLINE void body_blocks(const mul_job *j, const wfmt *f, const size_t P, const size_t T)
{
    __m512 acc[TILE_MAX];
    UNROLL
    for (size_t i = 0; i < P * T; i++) acc[i] = _mm512_setzero_ps();
    for (size_t i = 0, n = j->cols / f->block; i < n; i++) add_block(j, f, acc, i, P, T);
    store_tile(j, acc, P, T);
}

#define BLOCK_TILES(name, kernel)                                               \
    INLINE void body_##kernel(const mul_job *j, const size_t P, const size_t T) \
    {                                                                           \
        body_blocks(j, &wfmt_table[DT_##name], P, T);                           \
    }                                                                           \
    TILES(kernel)
DTYPE_BLOCKS(BLOCK_TILES)

#include "compute/x86/flat_avx512.h"

/* ---- types of our own ---- */

#include "compute/x86/wide_avx512.h"

/* ---- dots of int8 rows: a row is the unsigned side, too large by 128: what that makes is 128 * sum(q) ----
 */

#define DOT_ROWS 4

INLINE __m512i dot_i8_step(__m512i acc, __m512i x, __m512i w)
{
    return _mm512_dpbusd_epi32(acc, _mm512_xor_si512(w, _mm512_set1_epi8(-128)), x);
}

/* y[n] = dot of q and each of n rows, DOT_ROWS at most, and `extra` more */
INLINE void dot_i8_rows(int32_t *y, const int8_t *q, const int8_t *rows, size_t d, const size_t n,
                        int32_t extra)
{
    __m512i acc[DOT_ROWS];
    __m256i half[DOT_ROWS];
    size_t i = 0;
    UNROLL
    for (size_t r = 0; r < DOT_ROWS; r++) acc[r] = _mm512_setzero_si512();
    for (; i + 64 <= d; i += 64) {
        __m512i x = _mm512_loadu_si512(q + i);
        UNROLL
        for (size_t r = 0; r < n; r++) acc[r] = dot_i8_step(acc[r], x, _mm512_loadu_si512(rows + r * d + i));
    }
    if (i < d) {
        __mmask64 part = ((__mmask64)1 << (d - i)) - 1;
        __m512i x = _mm512_maskz_loadu_epi8(part, q + i);
        UNROLL
        for (size_t r = 0; r < n; r++)
            acc[r] = dot_i8_step(acc[r], x, _mm512_maskz_loadu_epi8(part, rows + r * d + i));
    }
    UNROLL
    for (size_t r = 0; r < DOT_ROWS; r++)
        half[r] = _mm256_add_epi32(_mm512_castsi512_si256(acc[r]), _mm512_extracti64x4_epi64(acc[r], 1));
    __m256i sums =
        _mm256_hadd_epi32(_mm256_hadd_epi32(half[0], half[1]), _mm256_hadd_epi32(half[2], half[3]));
    __m128i all = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    _mm_mask_storeu_epi32(y, (__mmask8)((1u << n) - 1), _mm_add_epi32(all, _mm_set1_epi32(extra)));
}

TARGET static void FN(dots_i8)(int32_t *y, const int8_t *q, const int8_t *rows, size_t n_rows, size_t d)
{
    int32_t sum = 0;
    size_t r = 0;
    for (size_t i = 0; i < d; i++) sum += q[i];
    for (; r + DOT_ROWS <= n_rows; r += DOT_ROWS)
        dot_i8_rows(y + r, q, rows + r * d, d, DOT_ROWS, -128 * sum);
    for (; r < n_rows; r++) dot_i8_rows(y + r, q, rows + r * d, d, 1, -128 * sum);
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

const vec_kernels vec_avx512vnni = VEC_KERNELS;

const kernels kernels_avx512vnni = {
#define ROW(name, kernel)      [DT_##name] = FN(mul_##kernel),
#define ROW_FLAT(name, kernel) [DT_##name] = FN(all_##kernel),
    .one = {TILE_ONE_PANELS, 1},
    .many = {TILE_MANY_PANELS, FLAT_MOST, TILE_MANY_TOKENS},
    .wide = {WIDE_PANELS, WIDE_MOST},
    .mul = {DTYPE_FLOATS(ROW) DTYPE_BLOCKS(ROW_FLAT) DTYPE_WIDE(ROW)},
#undef ROW
#undef ROW_FLAT
    .ends = true,
    .quantise = FN(quantise),
    .quantise_wide = FN(quantise_wide),
    .vec = &vec_avx512vnni,
};
#else
typedef int empty_avx512vnni; /* not an x86 machine */
#endif
