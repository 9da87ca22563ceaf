/* avx2_body.h: the products and the quantiser of 256 bits, included once by each instruction set of that
 * width. A panel's sixteen rows are two registers.
 *
 * The includer defines TARGET, FN(name) and HAS_DPBUSD. With it, dpbusd(sum, codes, x) adds the four products
 * of unsigned codes and signed activations in each lane. Without it there is only vpmaddubsw, which saturates
 * at 16 bits, so no sum of products may pass 32767. Codes of up to six bits stay unsigned, and as many groups
 * are added in 16 bits as their largest code c allows, 2 * c * 127 each: all eight of nibbles, four of Q5
 * (31496), two of Q6_K (32004). Q8_0 and IQ4 take the absolute value of w as unsigned and give its sign to x:
 * 2 * 128 * 127 = 32512, one group at a time. That is exact for w = -128 too, whose absolute value 0x80 is
 * 128 as an unsigned byte. */
#include <string.h>

#include "compute/panel.h"
#include "compute/tile.h"
#include "compute/x86/v_avx2.h"
#include "compute/vec_body.h"
#include "compute/x86/q8_avx2.h"
#include "compute/attn_q8_body.h"
#include "compute/x86/quantise_avx2.h"

/* Eight rows are a half panel: h is 0 or 1. Tiles run H half panels times T tokens with acc[t * H + h]; the
 * others follow one after the other. */
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

/* ---- bias, and what is added to ---- */

/* Eight rows from `row` of the job on, of token t. */
INLINE void end_eight(const mul_job *j, size_t t, size_t row, __m256 v)
{
    float *out = j->out + t * j->ldo + row;
    if (j->bias) v = _mm256_add_ps(v, _mm256_loadu_ps(j->bias + row));
    _mm256_storeu_ps(out, j->add ? _mm256_add_ps(_mm256_loadu_ps(out), v) : v);
}

/* A tile whose kernel only stores its sums. In the kernel itself the branches cost the sums of nibbles their
 * registers: 33 to 25 multiply-adds a cycle of Q4_0. */
TARGET static void FN(end_tile)(const mul_job *j, mul_fn *mul)
{
    _Alignas(32) float sums[TILE_MAX * PANEL_ROWS];
    if (!j->bias && !j->add) {
        mul(j);
        return;
    }
    const size_t width = j->n_panels * PANEL_ROWS;
    mul_job part = *j;
    part.out = sums;
    part.ldo = width;
    mul(&part);
    for (size_t t = 0; t < j->n_tokens; t++)
        for (size_t row = 0; row < width; row += HALF_ROWS)
            end_eight(j, t, row, _mm256_load_ps(sums + t * width + row));
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

#define FLOAT_TILES(name, kernel) TILES(kernel)
DTYPE_FLOATS(FLOAT_TILES)

/* ---- block types ---- */

/* Everything below is inlined with a constant row of formats.h, so that its questions cost nothing. */

/* Four activations of one token in every lane. */
INLINE __m256i four(const int8_t *q)
{
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm256_set1_epi32(v);
}

/* step points at the half panel: the first or second half of each line */
INLINE __m256i line(const uint8_t *step, size_t i)
{
    return _mm256_load_si256((const void *)(step + i * 64));
}

/* v's bytes moved so that bit `from` comes to bit `to`, and masked */
INLINE __m256i move_bits(__m256i v, const size_t from, const size_t to, char mask)
{
    v = from > to   ? _mm256_srli_epi16(v, (int)(from - to))
        : from < to ? _mm256_slli_epi16(v, (int)(to - from))
                    : v;
    return _mm256_and_si256(v, _mm256_set1_epi8(mask));
}

/* Whether the values are taken with their sign (see above), not as codes. */
INLINE bool is_signed(const wfmt *f)
{
    return !HAS_DPBUSD && wfmt_is_byte(f);
}

/* Group k of 32 columns: eight rows, four codes each, or values where is_signed. */
INLINE __m256i group(const wfmt *f, const uint8_t *step, const size_t k)
{
    if (f->bits == 8)
        return is_signed(f) ? _mm256_xor_si256(line(step, k), _mm256_set1_epi8(-128)) : line(step, k);
    __m256i low = f->bits < 4 ? move_bits(line(step, k / 4), k % 4 * 2, 0, 3)
                              : move_bits(line(step, k / 2), k % 2 * 4, 0, 15);
    if (f->bits == 5) return _mm256_or_si256(low, move_bits(line(step, 4), k, 4, 0x10));
    if (f->bits == 6) return _mm256_or_si256(low, move_bits(line(step, 4 + k / 4), k % 4 * 2, 4, 0x30));
    if (f->bits == 3) return _mm256_or_si256(low, move_bits(line(step, 2), k, 2, 4));
    if (!f->values) return low;
    __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)f->values));
    if (!is_signed(f)) table = _mm256_add_epi8(table, _mm256_set1_epi8((char)f->zero));
    return _mm256_shuffle_epi8(table, low);
}

/* The same of codes that were unpacked to a byte each (flat), which lie as those of 8 bits do. */
INLINE __m256i codes_of(const wfmt *f, const bool flat, const uint8_t *step, const size_t k)
{
    return flat ? line(step, k) : group(f, step, k);
}

/* h: which half of the sixteen */
INLINE __m256 halves(const uint8_t *s, size_t h)
{
    return _mm256_cvtph_ps(_mm_load_si128((const void *)(s + h * 16)));
}

INLINE __m128i eight(const uint8_t *s, size_t h)
{
    return _mm_loadl_epi64((const void *)(s + h * HALF_ROWS));
}

INLINE __m256 bytes_to_ps(__m128i v, const bool with_sign)
{
    return _mm256_cvtepi32_ps(with_sign ? _mm256_cvtepi8_epi32(v) : _mm256_cvtepu8_epi32(v));
}

/* 2^(e - 128); numbers below 2^-126 have no exponent of their own */
INLINE __m256 powers(const uint8_t *s, size_t h)
{
    __m256i e = _mm256_cvtepu8_epi32(eight(s, h));
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    return _mm256_castsi256_ps(
        _mm256_blendv_epi8(normal, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}

/* What a block's runs share: d, and -m (m itself where it is the minimum). */
INLINE __m256 block_d(const wfmt *f, const uint8_t *s, size_t h)
{
    return f->scales == SCALES_E8 ? powers(s, h) : halves(s, h);
}

INLINE __m256 block_m(const wfmt *f, const uint8_t *s, size_t h)
{
    __m256 m = halves(s + 32, h);
    return f->scales == SCALES_F16_MIN ? m : _mm256_xor_ps(m, _mm256_set1_ps(-0.0f));
}

/* The scales and minima of run i of the block whose scales are at s. */
INLINE __m256 run_scale(const wfmt *f, const uint8_t *s, size_t i, size_t h, __m256 d)
{
    if (f->sub == SUB_NONE) return d;
    __m128i v = eight(s + (f->scales == SCALES_SUB ? 32 : 64) + i * PANEL_ROWS, h);
    if (f->scales == SCALES_SUB_MIN4) v = _mm_and_si128(v, _mm_set1_epi8(15));
    return _mm256_mul_ps(d, bytes_to_ps(v, f->scales == SCALES_SUB));
}

INLINE __m256 run_min(const wfmt *f, const uint8_t *s, size_t i, size_t h, __m256 m)
{
    if (f->sub == SUB_NONE) return m;
    size_t n = f->scales == SCALES_SUB_MIN ? (size_t)f->block / f->run : 0;
    __m128i v = eight(s + 64 + (n + i) * PANEL_ROWS, h);
    if (n == 0) v = _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(15));
    return _mm256_mul_ps(m, bytes_to_ps(v, false));
}

INLINE int32_t run_sum(const mul_job *j, const wfmt *f, size_t t, size_t b, const size_t half)
{
    size_t at = t * j->n_blocks + b;
    return f->run == ACTS_BLOCK ? j->sum[at] : j->sum16[2 * at + half];
}

#if HAS_DPBUSD
/* dot[t * H + h] += groups [first, first + n) of half panels h */
INLINE void add_groups(const mul_job *j, const wfmt *f, const bool flat, __m256i *dot, const uint8_t *w,
                       size_t b, size_t first, const size_t n, const size_t H, const size_t T)
{
    UNROLL
    for (size_t k = first; k < first + n; k++) {
        __m256i codes[2];
        const int8_t *q = j->q + b * ACTS_BLOCK + k * 4;
        UNROLL
        for (size_t h = 0; h < H; h++) codes[h] = codes_of(f, flat, w + h * 32, k);
        UNROLL
        for (size_t t = 0; t < T; t++) {
            __m256i x = four(q + t * j->cols);
            UNROLL
            for (size_t h = 0; h < H; h++) dot[t * H + h] = dpbusd(dot[t * H + h], codes[h], x);
        }
    }
}
#else
/* a + b, in this order: left to itself the compiler (gcc 12) turns a chain of additions into a tree, whose
 * leaves do not fit into sixteen registers. */
INLINE __m256i add_pairs(__m256i a, __m256i b)
{
    a = _mm256_add_epi16(a, b);
    __asm__("" : "+x"(a));
    return a;
}
INLINE __m256i add_dots(__m256i a, __m256i b)
{
    a = _mm256_add_epi32(a, b);
    __asm__("" : "+x"(a));
    return a;
}

INLINE __m256i pairs_to_dots(__m256i pairs)
{
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* Sixteen bits' worth of groups of one half panel: pairs of products, not yet summed to dots. */
INLINE __m256i products(const wfmt *f, __m256i w, __m256i x)
{
    return is_signed(f) ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
                        : _mm256_maddubs_epi16(w, x);
}

INLINE void add_groups(const mul_job *j, const wfmt *f, const bool flat, __m256i *dot, const uint8_t *w,
                       size_t b, size_t first, const size_t n, const size_t H, const size_t T)
{
    /* groups that fit into 16 bits, by the largest code: a table's is at most 28 */
    const size_t at_once = is_signed(f) ? 1 : f->bits == 6 ? 2 : f->bits == 5 || f->values ? 4 : n;
    UNROLL
    for (size_t k = first; k < first + n; k += at_once) {
        __m256i pairs[TILE_MAX];
        UNROLL
        for (size_t i = 0; i < at_once; i++) {
            __m256i codes[2];
            const int8_t *q = j->q + b * ACTS_BLOCK + (k + i) * 4;
            UNROLL
            for (size_t h = 0; h < H; h++) codes[h] = codes_of(f, flat, w + h * 32, k + i);
            UNROLL
            for (size_t t = 0; t < T; t++) {
                __m256i x = four(q + t * j->cols);
                UNROLL
                for (size_t h = 0; h < H; h++) {
                    __m256i p = products(f, codes[h], x);
                    pairs[t * H + h] = i == 0 ? p : add_pairs(pairs[t * H + h], p);
                }
            }
        }
        UNROLL
        for (size_t t = 0; t < H * T; t++) dot[t] = add_dots(dot[t], pairs_to_dots(pairs[t]));
    }
}
#endif

/* dot[t * H + h] of run `half` of block b; w: the first half panel's codes of the block. The sums start with
 * the correction for codes that are too large, -(sum * zero). */
INLINE void run_dots(const mul_job *j, const wfmt *f, const bool flat, int zero, __m256i *dot,
                     const uint8_t *w, size_t b, const size_t half, const size_t H, const size_t T)
{
    const size_t n_groups = f->run / 4;
    const bool corrected = !is_signed(f) && f->zero;
    UNROLL
    for (size_t t = 0; t < T; t++) {
        UNROLL
        for (size_t h = 0; h < H; h++)
            dot[t * H + h] =
                corrected ? _mm256_set1_epi32(-zero * run_sum(j, f, t, b, half)) : _mm256_setzero_si256();
    }
    add_groups(j, f, flat, dot, w, b, half * n_groups, n_groups, H, T);
}

/* acc = fma(dot, scale * x_scale, acc), then acc = fma(minimum, x_scale * float(sum), acc), of half panel h
 */
INLINE void end_run(const mul_job *j, const wfmt *f, __m256 *acc, const __m256i *dot, size_t b,
                    const size_t half, __m256 scale, __m256 minimum, const size_t H, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        float x = j->scale[t * j->n_blocks + b];
        __m256 *a = &acc[t * H];
        *a = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[t * H]), _mm256_mul_ps(scale, _mm256_set1_ps(x)), *a);
        if (!wfmt_has_min(f)) continue;
        float x_sum =
            f->run == ACTS_BLOCK ? j->x_sum[t * j->n_blocks + b] : x * (float)run_sum(j, f, t, b, half);
        *a = _mm256_fmadd_ps(minimum, _mm256_set1_ps(x_sum), *a);
    }
}

/* Bytes that are asked for ahead: a core's own prefetching ends with each page of 4 KiB. Half as much is worth a
 * tenth less with 135 M in four bits. */
#define CODES_AHEAD 4096

INLINE void ask_for_codes(const wfmt *f, const uint8_t *w)
{
    UNROLL
    for (size_t at = 0; at < panel_step_bytes(f); at += 64) __builtin_prefetch(w + CODES_AHEAD + at);
}

/* One block of `f` for H half panels from h0 on: for super-blocks eight steps of 32 columns, else one. */
INLINE void add_block(const mul_job *j, const wfmt *f, __m256 *acc, size_t block, size_t h0, const size_t H,
                      const size_t T)
{
    const size_t n_steps = f->block / ACTS_BLOCK, n_runs = ACTS_BLOCK / f->run;
    size_t p = h0 / 2;
    const uint8_t *s = (const uint8_t *)(j->scales + p * j->panel_scales) + block * panel_scale_bytes(f);
    __m256 d[2], m[2];
    __m256i dot[TILE_MAX];
    UNROLL
    for (size_t h = 0; h < H; h++) {
        d[h] = block_d(f, s, h0 % 2 + h);
        m[h] = wfmt_has_min(f) ? block_m(f, s, h0 % 2 + h) : _mm256_setzero_ps();
    }
    for (size_t i = 0; i < n_steps; i++) {
        size_t b = block * n_steps + i;
        const uint8_t *w = j->w + p * j->panel_bytes + b * panel_step_bytes(f) + h0 % 2 * 32;
        if (T == 1) ask_for_codes(f, w);
        UNROLL
        for (size_t half = 0; half < n_runs; half++) {
            size_t run = i * n_runs + half;
            run_dots(j, f, false, f->zero, dot, w, b, half, H, T);
            UNROLL
            for (size_t h = 0; h < H; h++) {
                __m256 minimum = wfmt_has_min(f) ? run_min(f, s, run, h0 % 2 + h, m[h]) : m[h];
                end_run(j, f, acc + h, dot + h, b, half, run_scale(f, s, run, h0 % 2 + h, d[h]), minimum, H,
                        T);
            }
        }
    }
}

INLINE void halves_blocks(const mul_job *j, const wfmt *f, size_t first, const size_t H, const size_t T)
{
    __m256 acc[TILE_MAX];
    UNROLL
    for (size_t i = 0; i < H * T; i++) acc[i] = _mm256_setzero_ps();
    for (size_t i = 0, n = j->cols / f->block; i < n; i++) add_block(j, f, acc, i, first, H, T);
    store_tile(j, acc, first, H, T);
}

/* Whether both halves of a panel share each broadcast of activations, their accumulators being in memory.
 * With vpdpbusd that is 1.1 to 1.3 times as fast, but for the two types whose codes take most registers to
 * unpack; without it, where pairs of products are not added to dots on the way. */
INLINE bool both_halves(const wfmt *f, const size_t T)
{
    const bool nibbles = f->bits == 4 && !f->values;
    if (!HAS_DPBUSD) return T == 1 ? !nibbles : T > 2 && nibbles;
    return T <= 2 || (f->bits != 3 && !(f->bits == 5 && f->scales == SCALES_F16_MIN));
}

INLINE void body_blocks(const mul_job *j, const wfmt *f, const size_t P, const size_t T)
{
    const size_t H = both_halves(f, T) ? 2 : 1;
    for (size_t h = 0; h < 2 * P; h += H) halves_blocks(j, f, h, H, T);
}

#define BLOCK_TILES(name, kernel)                                               \
    INLINE void body_##kernel(const mul_job *j, const size_t P, const size_t T) \
    {                                                                           \
        body_blocks(j, &wfmt_table[DT_##name], P, T);                           \
    }                                                                           \
    TILES(kernel)
DTYPE_BLOCKS(BLOCK_TILES)

#include "compute/x86/avx2_flat.h"

#include "compute/x86/wide_avx2.h"

#include "compute/x86/dots_avx2.h"

#if HAS_DPBUSD
#define AVX2_WORDS
#else
#define AVX2_WORDS .form = {FN(words_wanted), FN(words_make)},
#endif
#define AVX2_ROW(name, kernel) [DT_##name] = FN(all_##kernel),
#define AVX2_KERNELS                                                                           \
    {                                                                                          \
        .one = {TILE_ONE_PANELS, 1}, .many = {FLAT_PANELS, FLAT_TOKENS},                       \
        .wide = {TILE_MANY_PANELS, FLAT_TOKENS}, .mul = {DTYPE_TABLE(AVX2_ROW)}, .ends = true, \
        .quantise = FN(quantise), .quantise_wide = FN(quantise_wide),                          \
        AVX2_WORDS.vec = &(const vec_kernels)VEC_KERNELS,                                      \
    }
