/* mul_body.h: the products, included once by each instruction set of arm/.
 *
 * A panel's sixteen rows are four strips of four rows, one register each. A tile runs S strips times T
 * tokens with acc[t * S + s]; S and T are constant, so that its accumulators are registers (32 of them).
 * Weights are signed here: values of a table and Q8_0 (whose codes get their sign back by one exclusive or)
 * as they are, all others as codes of at most 63 with one correction a run. No product of a weight and an
 * activation passes 128 * 127, so that the sum of two fits 16 bits (32512).
 *
 * The includer defines FN(name) and the integer dots of a tile:
 *   TILE_TOKENS                    most tokens in a tile of block types, 2 or 4
 *   dots_x                         the activations of T tokens for 32 columns
 *   dots                           the sums of S strips times T tokens
 *   x_load(x, job, t, b, T)        activations of columns 32b.. of the tokens from t on
 *   dots_clear(d, S, T)
 *   dots_add(d, x, k, w, u, S, T)  columns 8k..8k+3 (w[S]) and 8k+4..8k+7 (u[S]), four rows a register
 *   dots_get(d, s, t, S, T)        the four sums of strip s and token t, after the run's last add
 *   FLAT_PAIRS                     for flat.h; undefined: many tokens go as four do */

#define STRIP_ROWS 4
#define STRIPS     (PANEL_ROWS / STRIP_ROWS)
#define TILE_MAX   16 /* registers of floats in a tile */

#define MOST_PANELS 4 /* in a job of one token */
#define MOST_TOKENS 4 /* in a tile of packed codes, or of floats */

INLINE void store_tile(const mul_job *j, const float32x4_t *acc, size_t first, size_t token, const size_t S,
                       const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        UNROLL
        for (size_t s = 0; s < S; s++)
            vst1q_f32(j->out + (token + t) * j->ldo + (first + s) * STRIP_ROWS, acc[t * S + s]);
    }
}

/* ---- float weights: one fma a column ---- */

INLINE float32x4_t load_f32(const uint8_t *w, size_t i)
{
    return vld1q_f32((const float *)(const void *)w + i);
}
INLINE float32x4_t load_f16(const uint8_t *w, size_t i)
{
    return v_f16_to_f32(vld1_u16((const uint16_t *)(const void *)w + i));
}
INLINE float32x4_t load_bf16(const uint8_t *w, size_t i)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16((const uint16_t *)(const void *)w + i), 16));
}

/* `first` is the first strip, `token` the first token. */
#define FLOAT_TILE(type)                                                                                  \
    INLINE void tile_##type(const mul_job *j, size_t first, size_t token, const size_t S, const size_t T) \
    {                                                                                                     \
        float32x4_t acc[TILE_MAX];                                                                        \
        const float *x = j->x + token * j->ldx;                                                           \
        UNROLL for (size_t i = 0; i < S * T; i++) acc[i] = vdupq_n_f32(0);                                \
        for (size_t c = 0; c < j->cols; c++) {                                                            \
            UNROLL for (size_t s = 0; s < S; s++)                                                         \
            {                                                                                             \
                const uint8_t *panel = j->w + (first + s) / STRIPS * j->panel_bytes;                      \
                float32x4_t w = load_##type(panel, c * PANEL_ROWS + (first + s) % STRIPS * STRIP_ROWS);   \
                UNROLL for (size_t t = 0; t < T; t++) acc[t * S + s] =                                    \
                    vfmaq_n_f32(acc[t * S + s], w, x[t * j->ldx + c]);                                    \
            }                                                                                             \
        }                                                                                                 \
        store_tile(j, acc, first, token, S, T);                                                           \
    }

FLOAT_TILE(f32)
FLOAT_TILE(f16)
FLOAT_TILE(bf16)

/* ---- block types ---- */

/* Everything below is inlined with a constant row of formats.h, so that its questions cost nothing. */

/* step points at the strip: a quarter of each line */
INLINE uint8x16_t line(const uint8_t *step, size_t i)
{
    return vld1q_u8(step + i * 64);
}

/* v's bits moved so that bit `from` comes to bit `to`, and masked */
INLINE uint8x16_t move_bits(uint8x16_t v, const int from, const int to, const uint8_t mask)
{
    const int left = 0xFF >> (from > to ? from - to : 0) << (to > from ? to - from : 0) & 0xFF;
    v = from > to ? v >> (uint8_t)(from - to) : from < to ? v << (uint8_t)(to - from) : v;
    return left & ~mask ? vandq_u8(v, vdupq_n_u8(mask)) : v;
}

/* Group k of 32 columns, four codes of four rows. */
INLINE uint8x16_t codes(const wfmt *f, const uint8_t *step, const size_t k)
{
    const int two = (int)(k % 4 * 2), one = (int)k;
    if (f->bits == 8) return line(step, k);
    uint8x16_t low = f->bits < 4 ? move_bits(line(step, k / 4), two, 0, 3)
                                 : move_bits(line(step, k / 2), (int)(k % 2 * 4), 0, 15);
    if (f->bits == 5) return vorrq_u8(low, move_bits(line(step, 4), one, 4, 0x10));
    if (f->bits == 6) return vorrq_u8(low, move_bits(line(step, 4 + k / 4), two, 4, 0x30));
    if (f->bits == 3) return vorrq_u8(low, move_bits(line(step, 2), one, 2, 4));
    return low;
}

/* The same as signed numbers: values, or codes that are too large by excess(f). */
INLINE int8x16_t group(const wfmt *f, const uint8_t *step, const size_t k)
{
    uint8x16_t c = codes(f, step, k);
    if (f->values) return vqtbl1q_s8(vld1q_s8(f->values), c);
    return vreinterpretq_s8_u8(f->bits == 8 ? veorq_u8(c, vdupq_n_u8(0x80)) : c);
}

INLINE int excess(const wfmt *f)
{
    return f->values || f->bits == 8 ? 0 : f->zero;
}

INLINE float32x4_t halves(const uint8_t *s)
{
    return v_f16_to_f32(vld1_u16((const uint16_t *)(const void *)s));
}

/* Four bytes in the low half. */
INLINE uint16x4_t four(const uint8_t *s)
{
    return vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vld1_dup_u32((const uint32_t *)(const void *)s))));
}

/* 2^(e - 128); numbers below 2^-126 have no exponent of their own */
INLINE float32x4_t powers(const uint8_t *s)
{
    uint32x4_t e = vmovl_u16(four(s)), two = vdupq_n_u32(2);
    uint32x4_t normal = vshlq_n_u32(vsubq_u32(e, vdupq_n_u32(1)), 23);
    uint32x4_t small = vshlq_u32(vdupq_n_u32(0x00200000), vreinterpretq_s32_u32(vminq_u32(e, two)));
    return vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(e, two), small, normal));
}

/* What a block's runs share, for one strip: d, and -m (m itself where it is the minimum). */
INLINE float32x4_t block_d(const wfmt *f, const uint8_t *s, size_t strip)
{
    return f->scales == SCALES_E8 ? powers(s + strip * STRIP_ROWS) : halves(s + strip * 8);
}

INLINE float32x4_t block_m(const wfmt *f, const uint8_t *s, size_t strip)
{
    float32x4_t m = halves(s + 32 + strip * 8);
    return f->scales == SCALES_F16_MIN ? m : vnegq_f32(m);
}

/* The scales and minima of run i of the block whose scales are at s. */
INLINE float32x4_t run_scale(const wfmt *f, const uint8_t *s, size_t i, size_t strip, float32x4_t d)
{
    if (f->sub == SUB_NONE) return d;
    uint16x4_t v = four(s + (f->scales == SCALES_SUB ? 32 : 64) + i * PANEL_ROWS + strip * STRIP_ROWS);
    if (f->scales == SCALES_SUB) {
        int16x4_t with_sign = vshr_n_s16(vshl_n_s16(vreinterpret_s16_u16(v), 8), 8);
        return vmulq_f32(d, vcvtq_f32_s32(vmovl_s16(with_sign)));
    }
    if (f->scales == SCALES_SUB_MIN4) v = vand_u16(v, vdup_n_u16(15));
    return vmulq_f32(d, vcvtq_f32_u32(vmovl_u16(v)));
}

INLINE float32x4_t run_min(const wfmt *f, const uint8_t *s, size_t i, size_t strip, float32x4_t m)
{
    if (f->sub == SUB_NONE) return m;
    size_t n = f->scales == SCALES_SUB_MIN ? (size_t)f->block / f->run : 0;
    uint16x4_t v = four(s + 64 + (n + i) * PANEL_ROWS + strip * STRIP_ROWS);
    if (n == 0) v = vshr_n_u16(v, 4);
    return vmulq_f32(m, vcvtq_f32_u32(vmovl_u16(v)));
}

/* What the tile of S strips from `strip` of a panel on and T tokens from `token` on is about. */
typedef struct span {
    const uint8_t *codes, *scales; /* the panel's; codes from the strip on */
    size_t strip, token;
} span;

/* Columns 8k..8k+7 of the 32 whose codes are at `step`. */
INLINE void add_pair(const wfmt *f, dots *d, const dots_x *x, const uint8_t *step, size_t k, const size_t S,
                     const size_t T)
{
    int8x16_t w[STRIPS], u[STRIPS];
    UNROLL
    for (size_t s = 0; s < S; s++) {
        w[s] = group(f, step + s * 16, 2 * k);
        u[s] = group(f, step + s * 16, 2 * k + 1);
    }
    dots_add(d, x, k, w, u, S, T);
}

/* Run `half` of the 32 columns b, of which the codes are at `step`: acc = fma(dot, scale * x_scale, acc),
 * then acc = fma(minimum, x_scale * float(sum), acc). */
INLINE void add_run(const mul_job *j, const wfmt *f, const span *at, float32x4_t *acc, const dots_x *x,
                    const uint8_t *step, size_t b, const size_t half, const float32x4_t *scale,
                    const float32x4_t *minimum, const size_t S, const size_t T)
{
    const size_t n_pairs = f->run / 8;
    dots d;
    dots_clear(&d, S, T);
    UNROLL
    for (size_t k = half * n_pairs; k < (half + 1) * n_pairs; k++) add_pair(f, &d, x, step, k, S, T);
    UNROLL
    for (size_t t = 0; t < T; t++) {
        size_t i = (at->token + t) * j->n_blocks + b;
        float x_scale = j->scale[i];
        int32_t sum = f->run == ACTS_BLOCK ? j->sum[i] : j->sum16[2 * i + half];
        UNROLL
        for (size_t s = 0; s < S; s++) {
            float32x4_t *a = &acc[t * S + s];
            int32x4_t dot = dots_get(&d, s, t, S, T);
            if (excess(f)) dot = vsubq_s32(dot, vdupq_n_s32(excess(f) * sum));
            *a = vfmaq_f32(*a, vcvtq_f32_s32(dot), vmulq_n_f32(scale[s], x_scale));
            if (wfmt_has_min(f)) *a = vfmaq_n_f32(*a, minimum[s], x_scale * (float)sum);
        }
    }
}

/* One block of `f`: for super-blocks eight steps of 32 columns, else one. */
INLINE void add_block(const mul_job *j, const wfmt *f, const span *at, float32x4_t *acc, size_t block,
                      const size_t S, const size_t T)
{
    const size_t n_steps = f->block / ACTS_BLOCK, n_runs = ACTS_BLOCK / f->run;
    const uint8_t *scales = at->scales + block * panel_scale_bytes(f);
    float32x4_t d[STRIPS], m[STRIPS], scale[STRIPS], minimum[STRIPS];
    UNROLL
    for (size_t s = 0; s < S; s++) {
        d[s] = block_d(f, scales, at->strip + s);
        m[s] = wfmt_has_min(f) ? block_m(f, scales, at->strip + s) : d[s];
    }
    for (size_t i = 0; i < n_steps; i++) {
        size_t b = block * n_steps + i;
        dots_x x;
        x_load(&x, j, at->token, b, T);
        UNROLL
        for (size_t half = 0; half < n_runs; half++) {
            UNROLL
            for (size_t s = 0; s < S; s++) {
                scale[s] = run_scale(f, scales, i * n_runs + half, at->strip + s, d[s]);
                minimum[s] =
                    wfmt_has_min(f) ? run_min(f, scales, i * n_runs + half, at->strip + s, m[s]) : m[s];
            }
            add_run(j, f, at, acc, &x, at->codes + b * panel_step_bytes(f), b, half, scale, minimum, S, T);
        }
    }
}

/* The strips of a tile lie in one panel. */
INLINE void tile_blocks(const mul_job *j, const wfmt *f, size_t first, size_t token, const size_t S,
                        const size_t T)
{
    float32x4_t acc[TILE_MAX];
    size_t p = first / STRIPS, strip = first % STRIPS;
    span at = {j->w + p * j->panel_bytes + strip * 16, (const uint8_t *)(j->scales + p * j->panel_scales),
               strip, token};
    UNROLL
    for (size_t i = 0; i < S * T; i++) acc[i] = vdupq_n_f32(0);
    for (size_t i = 0, n = j->cols / f->block; i < n; i++) add_block(j, f, &at, acc, i, S, T);
    store_tile(j, acc, first, token, S, T);
}

#define BLOCK_TILE(name, kernel)                                                                            \
    INLINE void tile_##kernel(const mul_job *j, size_t first, size_t token, const size_t S, const size_t T) \
    {                                                                                                       \
        tile_blocks(j, &wfmt_table[DT_##name], first, token, S, T);                                         \
    }
DTYPE_BLOCKS(BLOCK_TILE)

#ifdef FLAT_PAIRS
#include "compute/arm/flat.h"
#else
#define FLAT_TOKENS MOST_TOKENS
#endif

/* Types of our own: sums over a whole group of columns. f: any type of so many bits; how wide a group is says
 * the job, so types share kernels. */
INLINE void tile_wide(const mul_job *j, const wfmt *f, size_t first, size_t token, const size_t S,
                      const size_t T)
{
    float32x4_t acc[TILE_MAX];
    const size_t p = first / STRIPS, strip = first % STRIPS, n_steps = j->group / ACTS_BLOCK;
    const uint8_t *w = j->w + p * j->panel_bytes + strip * 16;
    const uint8_t *scales = (const uint8_t *)(j->scales + p * j->panel_scales) + strip * 8;
    UNROLL
    for (size_t i = 0; i < S * T; i++) acc[i] = vdupq_n_f32(0);
    for (size_t g = 0; g < j->n_blocks; g++, scales += PANEL_ROWS * 2) {
        dots d;
        dots_x x;
        dots_clear(&d, S, T);
        for (size_t i = 0; i < n_steps; i++, w += panel_step_bytes(f)) {
            x_load(&x, j, token, g * n_steps + i, T);
            UNROLL
            for (size_t k = 0; k < ACTS_BLOCK / 8; k++) add_pair(f, &d, &x, w, k, S, T);
        }
        UNROLL
        for (size_t t = 0; t < T; t++) {
            size_t at = (token + t) * j->n_blocks + g;
            UNROLL
            for (size_t s = 0; s < S; s++) {
                int32x4_t dot = dots_get(&d, s, t, S, T);
                float32x4_t *a = &acc[t * S + s];
                if (excess(f)) dot = vsubq_s32(dot, vdupq_n_s32(excess(f) * j->sum[at]));
                *a = vfmaq_f32(*a, vcvtq_f32_s32(dot), vmulq_n_f32(halves(scales + s * 8), j->scale[at]));
            }
        }
    }
    store_tile(j, acc, first, token, S, T);
}

INLINE void tile_s8(const mul_job *j, size_t first, size_t token, const size_t S, const size_t T)
{
    tile_wide(j, &wfmt_table[DT_S8_128], first, token, S, T);
}

INLINE void tile_s4(const mul_job *j, size_t first, size_t token, const size_t S, const size_t T)
{
    tile_wide(j, &wfmt_table[DT_S4_128], first, token, S, T);
}

/* ---- the tiles that a job wants ---- */

/* All strips of the job times T tokens from `token` on, S strips at a time. */
#define PASS(type, S, T)                                                                           \
    static void FN(pass_##type##_##S##x##T)(const mul_job *j, size_t token)                        \
    {                                                                                              \
        for (size_t s = 0; s < j->n_panels * STRIPS; s += (S)) tile_##type(j, s, token, (S), (T)); \
    }

typedef void pass_fn(const mul_job *j, size_t token);

/* The job's tokens from `first` on, at most `most` at a time. */
static void each_pass(const mul_job *j, pass_fn *const *pass, size_t first, size_t most)
{
    for (size_t t = first, n; t < j->n_tokens; t += n) {
        n = j->n_tokens - t < most ? j->n_tokens - t : most;
        pass[n - 1](j, t);
    }
}

/* A token alone takes all panels at once: one fma waits for the one before it, so many rows must be under
 * way. */
#define FLOAT_MUL(type)                                                                            \
    PASS(type, 4, 1)                                                                               \
    PASS(type, 8, 1)                                                                               \
    PASS(type, 12, 1)                                                                              \
    PASS(type, 16, 1)                                                                              \
    PASS(type, 4, 2)                                                                               \
    PASS(type, 4, 3)                                                                               \
    PASS(type, 4, 4)                                                                               \
    static void FN(mul_##type)(const mul_job *j)                                                   \
    {                                                                                              \
        static pass_fn *const one[MOST_PANELS] = {FN(pass_##type##_4x1), FN(pass_##type##_8x1),    \
                                                  FN(pass_##type##_12x1), FN(pass_##type##_16x1)}; \
        static pass_fn *const some[MOST_TOKENS] = {FN(pass_##type##_4x1), FN(pass_##type##_4x2),   \
                                                   FN(pass_##type##_4x3), FN(pass_##type##_4x4)};  \
        if (j->n_tokens == 1)                                                                      \
            one[j->n_panels - 1](j, 0);                                                            \
        else                                                                                       \
            each_pass(j, some, 0, MOST_TOKENS);                                                    \
    }

/* Of block types a token alone takes whole panels; several share each load of half a panel; many share the
 * unpacking, too. */
#ifdef FLAT_PAIRS
#define BLOCK_MUL(name, type)                                                                                \
    PASS(type, 4, 1)                                                                                         \
    PASS(type, 2, 2)                                                                                         \
    PASS(type, 2, 3)                                                                                         \
    PASS(type, 2, 4)                                                                                         \
    static void FN(unpack_##type)(flat * c, const mul_job *j, size_t p, size_t block, size_t n)              \
    {                                                                                                        \
        flat_unpack(c, j, &wfmt_table[DT_##name], p, block, n);                                              \
    }                                                                                                        \
    static void FN(mul_##type)(const mul_job *j)                                                             \
    {                                                                                                        \
        static pass_fn *const pass[] = {FN(pass_##type##_4x1), FN(pass_##type##_2x2), FN(pass_##type##_2x3), \
                                        FN(pass_##type##_2x4)};                                              \
        size_t many = j->n_tokens < FLAT_LEAST ? 0 : j->n_tokens / 4 * 4;                                    \
        if (many) by_flat(j, &wfmt_table[DT_##name], FN(unpack_##type), many);                               \
        each_pass(j, pass, many, MOST_TOKENS);                                                               \
    }
#else
#define BLOCK_MUL(name, type)                                                          \
    PASS(type, 4, 1)                                                                   \
    PASS(type, 2, 2)                                                                   \
    static void FN(mul_##type)(const mul_job *j)                                       \
    {                                                                                  \
        static pass_fn *const pass[] = {FN(pass_##type##_4x1), FN(pass_##type##_2x2)}; \
        each_pass(j, pass, 0, 2);                                                      \
    }
#endif

#define EACH_FLOAT(name, kernel) FLOAT_MUL(kernel)
#define EACH_BLOCK(name, kernel) BLOCK_MUL(name, kernel)
DTYPE_FLOATS(EACH_FLOAT)
DTYPE_BLOCKS(EACH_BLOCK)

/* Of our own types the same without unpacking: nibbles cost little. */
#define WIDE_MOST 64 /* tokens in a job */
#if TILE_TOKENS == 4
#define WIDE_MUL(type)                                                                                       \
    PASS(type, 4, 1)                                                                                         \
    PASS(type, 2, 2)                                                                                         \
    PASS(type, 2, 3)                                                                                         \
    PASS(type, 2, 4)                                                                                         \
    static void FN(mul_##type)(const mul_job *j)                                                             \
    {                                                                                                        \
        static pass_fn *const pass[] = {FN(pass_##type##_4x1), FN(pass_##type##_2x2), FN(pass_##type##_2x3), \
                                        FN(pass_##type##_2x4)};                                              \
        each_pass(j, pass, 0, 4);                                                                            \
    }
#else
#define WIDE_MUL(type)                                                                 \
    PASS(type, 4, 1)                                                                   \
    PASS(type, 2, 2)                                                                   \
    static void FN(mul_##type)(const mul_job *j)                                       \
    {                                                                                  \
        static pass_fn *const pass[] = {FN(pass_##type##_4x1), FN(pass_##type##_2x2)}; \
        each_pass(j, pass, 0, 2);                                                      \
    }
#endif
WIDE_MUL(s8)
WIDE_MUL(s4)

/* ---- activations ---- */

INLINE uint32x4_t magnitude(const float *x)
{
    return vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x)));
}

INLINE int32x4_t to_int(const float *x, float inverse)
{
    int32x4_t i = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x), inverse)); /* to nearest, ties to even */
    return vmaxq_s32(vdupq_n_s32(-127), vminq_s32(vdupq_n_s32(127), i));
}

/* q[16] = sixteen activations; returns them summed by fours. */
INLINE int32x4_t quantise16(const float *x, float inverse, int8_t *q)
{
    int32x4_t a = to_int(x, inverse), b = to_int(x + 4, inverse), c = to_int(x + 8, inverse),
              d = to_int(x + 12, inverse);
    int16x8_t low = vcombine_s16(vmovn_s32(a), vmovn_s32(b)), high = vcombine_s16(vmovn_s32(c), vmovn_s32(d));
    vst1q_s8(q, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
    return vaddq_s32(vaddq_s32(a, b), vaddq_s32(c, d));
}

/* The largest magnitude's scale, and what to multiply with; false: all become zeros. */
INLINE bool scale_for(const float *x, size_t n, float *scale, float *inverse)
{
    uint32x4_t m = magnitude(x);
    for (size_t i = 4; i < n; i += 4) m = vmaxq_u32(m, magnitude(x + i));
    uint32_t max_bits = vmaxvq_u32(m);
    float max = float_of(max_bits);
    bool none = max_bits >= 0x7F800000u || max < ACTS_TINY;
    *scale = max_bits >= 0x7F800000u ? (float)NAN : none ? 0.0f : max / 127.0f;
    *inverse = none ? 0.0f : 127.0f / max;
    return !none;
}

static void quantise_block(const float *x, int8_t *q, float *scale, int32_t *sum, int32_t *sum16)
{
    float inverse;
    if (!scale_for(x, ACTS_BLOCK, scale, &inverse)) {
        *sum = sum16[0] = sum16[1] = 0;
        memset(q, 0, ACTS_BLOCK);
        return;
    }
    sum16[0] = vaddvq_s32(quantise16(x, inverse, q));
    sum16[1] = vaddvq_s32(quantise16(x + 16, inverse, q + 16));
    *sum = sum16[0] + sum16[1];
}

static void FN(quantise)(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum,
                         int32_t *sum16)
{
    for (size_t b = 0; b < n_blocks; b++)
        quantise_block(x + b * ACTS_BLOCK, q + b * ACTS_BLOCK, scale + b, sum + b, sum16 + 2 * b);
}

static void quantise_group(const float *x, size_t n, int8_t *q, float *scale, int32_t *sum)
{
    float inverse;
    int32x4_t all = vdupq_n_s32(0);
    *sum = 0;
    if (!scale_for(x, n, scale, &inverse)) {
        memset(q, 0, n);
        return;
    }
    for (size_t i = 0; i < n; i += 16) all = vaddq_s32(all, quantise16(x + i, inverse, q + i));
    *sum = vaddvq_s32(all);
}

static void FN(quantise_wide)(const float *x, size_t n_groups, size_t group, int8_t *q, float *scale,
                              int32_t *sum)
{
    for (size_t g = 0; g < n_groups; g++)
        quantise_group(x + g * group, group, q + g * group, scale + g, sum + g);
}

#include "compute/arm/dots.h"

#define ARM_ROW(name, kernel) [DT_##name] = FN(mul_##kernel),
#define ARM_KERNELS                                                                                  \
    {                                                                                                \
        .one = {MOST_PANELS, 1}, .many = {2, FLAT_TOKENS}, .wide = {2, WIDE_MOST},                   \
        .mul = {DTYPE_TABLE(ARM_ROW)}, .quantise_wide = FN(quantise_wide), .quantise = FN(quantise), \
        .vec = &(const vec_kernels)VEC_KERNELS,                                                      \
    }
