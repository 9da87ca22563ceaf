/* flat.h: products of many tokens (for mul_body.h, where there are dots of int8).
 *
 * Four tokens do not pay for unpacking: of the 250 instructions of Q5_K's loop 150 are that. So 512 columns
 * of a panel are unpacked at a time, a signed byte a value and a float a scale, 8 + 2 KB that stay in L1
 * while all tokens of the job pass, four at a time. No dot needs a correction then, and what is unpacked
 * depends on the type by the width of its runs and by minima alone, so types share these tiles. A half panel
 * is 64 bytes a step of eight columns: of each of its two strips columns 0..3 and 4..7 of four rows, w and u.
 *
 * The includer has FLAT_PAIRS. Where it is 1 (smmla), w and u are turned into low, rows 0 and 1 with eight
 * columns each, and high, rows 2 and 3; the tokens' activations are laid in pairs, once for all panels of a
 * job; and sums stay as smmla gives them, row and row's other token, until all columns are through: scales
 * lie doubled, {s0 s0 s1 s1}, times {x0 x1 x0 x1}. Where it is 0 (sdot), activations are read where they are.
 */
#define FLAT_TOKENS 64 /* in a job */
#define FLAT_LEAST  16 /* tokens that pay for unpacking */
#define FLAT_COLS   512
#define FLAT_RUNS   (FLAT_COLS / 16)
#define FLAT_TIMES  (FLAT_PAIRS ? 2 : 1) /* floats a scale */

typedef struct flat {
    size_t first_block, n_steps; /* blocks of 32 columns: where these are in the row */
    _Alignas(64) int8_t values[2][FLAT_COLS * PANEL_ROWS / 2]; /* [half panel] */
    float scale[FLAT_RUNS][PANEL_ROWS * FLAT_TIMES], minimum[FLAT_RUNS][PANEL_ROWS * FLAT_TIMES];
#if FLAT_PAIRS
    /* of each four tokens [step][pair][eight columns of both], and of each pair and run its scales and scaled
     * sums */
    _Alignas(64) int8_t q[FLAT_TOKENS / 4][FLAT_COLS * 4];
    float x[FLAT_TOKENS / 2][FLAT_RUNS][2], x_sum[FLAT_TOKENS / 2][FLAT_RUNS][2];
#endif
} flat;

/* ---- a panel ---- */

INLINE void flat_store_scale(float *to, size_t strip, float32x4_t s)
{
#if FLAT_PAIRS
    vst1q_f32(to + strip * 8, vzip1q_f32(s, s));
    vst1q_f32(to + strip * 8 + 4, vzip2q_f32(s, s));
#else
    vst1q_f32(to + strip * 4, s);
#endif
}

/* Eight columns of one strip. */
INLINE void flat_store_values(int8_t *to, const wfmt *f, const uint8_t *step, const size_t k)
{
    int8x16_t w = group(f, step, 2 * k), u = group(f, step, 2 * k + 1);
    if (excess(f)) {
        w = vsubq_s8(w, vdupq_n_s8((int8_t)excess(f)));
        u = vsubq_s8(u, vdupq_n_s8((int8_t)excess(f)));
    }
#if FLAT_PAIRS
    int32x4_t a = vreinterpretq_s32_s8(w), b = vreinterpretq_s32_s8(u);
    w = vreinterpretq_s8_s32(vzip1q_s32(a, b));
    u = vreinterpretq_s8_s32(vzip2q_s32(a, b));
#endif
    vst1q_s8(to, w);
    vst1q_s8(to + 16, u);
}

/* Blocks [block, block + n) of panel p. */
INLINE void flat_unpack(flat *c, const mul_job *j, const wfmt *f, size_t p, size_t block, size_t n)
{
    const size_t n_steps = f->block / ACTS_BLOCK, n_runs = f->block / f->run;
    const uint8_t *s = (const uint8_t *)(j->scales + p * j->panel_scales) + block * panel_scale_bytes(f);
    const uint8_t *w = j->w + p * j->panel_bytes + block * n_steps * panel_step_bytes(f);
    for (size_t i = 0; i < n * n_steps; i++, w += panel_step_bytes(f)) {
        for (size_t strip = 0; strip < STRIPS; strip++) {
            UNROLL
            for (size_t k = 0; k < 4; k++)
                flat_store_values(c->values[strip / 2] + (i * 4 + k) * 64 + strip % 2 * 32, f, w + strip * 16,
                                  k);
        }
    }
    for (size_t i = 0; i < n; i++, s += panel_scale_bytes(f)) {
        for (size_t strip = 0; strip < STRIPS; strip++) {
            float32x4_t d = block_d(f, s, strip), m = wfmt_has_min(f) ? block_m(f, s, strip) : d;
            for (size_t r = 0; r < n_runs; r++) {
                flat_store_scale(c->scale[i * n_runs + r], strip, run_scale(f, s, r, strip, d));
                if (wfmt_has_min(f))
                    flat_store_scale(c->minimum[i * n_runs + r], strip, run_min(f, s, r, strip, m));
            }
        }
    }
}

INLINE int32_t flat_sum(const mul_job *j, const wfmt *f, size_t t, size_t b, const size_t half)
{
    size_t i = t * j->n_blocks + b;
    return f->run == ACTS_BLOCK ? j->sum[i] : j->sum16[2 * i + half];
}

#if FLAT_PAIRS
/* ---- pairs of tokens: smmla ---- */

/* Block b's eight columns k of two tokens behind each other, k = 0..3; q: the first token's 32. */
INLINE void flat_pair_block(int8_t *to, const int8_t *q, size_t ldq)
{
    UNROLL
    for (size_t i = 0; i < 2; i++) {
        int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(q + i * 16));
        int64x2_t b = vreinterpretq_s64_s8(vld1q_s8(q + ldq + i * 16));
        vst1q_s8(to + i * 32, vreinterpretq_s8_s64(vzip1q_s64(a, b)));
        vst1q_s8(to + i * 32 + 16, vreinterpretq_s8_s64(vzip2q_s64(a, b)));
    }
}

/* Tokens [0, n) of the job, four by four. */
INLINE void flat_pair(flat *c, const mul_job *j, const wfmt *f, size_t n)
{
    const size_t n_runs = ACTS_BLOCK / f->run;
    for (size_t t = 0; t < n; t++) {
        const float *x = j->scale + t * j->n_blocks + c->first_block;
        float(*to)[2] = c->x[t / 2], (*sums)[2] = c->x_sum[t / 2];
        for (size_t r = 0; r < c->n_steps * n_runs; r++) {
            to[r][t % 2] = x[r / n_runs];
            if (!wfmt_has_min(f)) continue;
            int32_t sum = flat_sum(j, f, t, c->first_block + r / n_runs, r % n_runs);
            sums[r][t % 2] = x[r / n_runs] * (float)sum;
        }
    }
    for (size_t t = 0; t < n; t += 2) {
        const int8_t *q = j->q + t * j->cols + c->first_block * ACTS_BLOCK;
        int8_t *to = c->q[t / 4] + t / 2 % 2 * 64;
        for (size_t i = 0; i < c->n_steps; i++) flat_pair_block(to + i * 128, q + i * ACTS_BLOCK, j->cols);
    }
}

INLINE float32x4_t flat_twice(const float *pair)
{
    return vreinterpretq_f32_u64(vld1q_dup_u64((const uint64_t *)(const void *)pair));
}

/* acc[pair][strip][low, high] of half panel h and tokens [t, t + 4), from the results so far or back to them
 */
INLINE void flat_load(float32x4_t *acc, const mul_job *j, size_t h, size_t t)
{
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        const float *out = j->out + (t + i / 2 * 2) * j->ldo + (h * 2 + i % 2) * STRIP_ROWS;
        float32x4_t a = vld1q_f32(out), b = vld1q_f32(out + j->ldo);
        acc[i * 2] = vzip1q_f32(a, b);
        acc[i * 2 + 1] = vzip2q_f32(a, b);
    }
}

INLINE void flat_save(const mul_job *j, const float32x4_t *acc, size_t h, size_t t)
{
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        float *out = j->out + (t + i / 2 * 2) * j->ldo + (h * 2 + i % 2) * STRIP_ROWS;
        vst1q_f32(out, vuzp1q_f32(acc[i * 2], acc[i * 2 + 1]));
        vst1q_f32(out + j->ldo, vuzp2q_f32(acc[i * 2], acc[i * 2 + 1]));
    }
}

/* f: a type with the same runs */
INLINE void flat_tile(const mul_job *j, const flat *c, const wfmt *f, size_t h, size_t t)
{
    const size_t n_runs = ACTS_BLOCK / f->run, n_k = f->run / 8;
    const int8_t *q = c->q[t / 4], *w = c->values[h];
    float32x4_t acc[8];
    UNROLL
    for (size_t i = 0; i < 8; i++) acc[i] = vdupq_n_f32(0);
    if (c->first_block > 0) flat_load(acc, j, h, t);
    for (size_t i = 0; i < c->n_steps; i++, q += 128) {
        UNROLL
        for (size_t half = 0; half < n_runs; half++) {
            const size_t r = i * n_runs + half;
            const float *scale = c->scale[r] + h * 16, *minimum = c->minimum[r] + h * 16;
            int32x4_t dot[8];
            UNROLL
            for (size_t d = 0; d < 8; d++) dot[d] = vdupq_n_s32(0);
            UNROLL
            for (size_t k = half * n_k; k < (half + 1) * n_k; k++, w += 64) {
                UNROLL
                for (size_t d = 0; d < 8; d++)
                    dot[d] = vmmlaq_s32(dot[d], vld1q_s8(w + d % 4 * 16), vld1q_s8(q + d / 4 * 64 + k * 16));
            }
            UNROLL
            for (size_t d = 0; d < 8; d++) {
                float32x4_t x = flat_twice(c->x[t / 2 + d / 4][r]);
                acc[d] = vfmaq_f32(acc[d], vcvtq_f32_s32(dot[d]), vmulq_f32(vld1q_f32(scale + d % 4 * 4), x));
                if (wfmt_has_min(f))
                    acc[d] = vfmaq_f32(acc[d], vld1q_f32(minimum + d % 4 * 4),
                                       flat_twice(c->x_sum[t / 2 + d / 4][r]));
            }
        }
    }
    flat_save(j, acc, h, t);
}
#else
/* ---- sdot ---- */

/* acc[t * 2 + s]; f: a type with the same runs */
INLINE void flat_tile(const mul_job *j, const flat *c, const wfmt *f, size_t h, size_t t0)
{
    const size_t n_runs = ACTS_BLOCK / f->run, n_k = f->run / 8;
    const int8_t *w = c->values[h];
    float32x4_t acc[8];
    UNROLL
    for (size_t i = 0; i < 8; i++) acc[i] = vdupq_n_f32(0);
    if (c->first_block > 0) {
        UNROLL
        for (size_t i = 0; i < 8; i++)
            acc[i] = vld1q_f32(j->out + (t0 + i / 2) * j->ldo + (h * 2 + i % 2) * STRIP_ROWS);
    }
    for (size_t i = 0; i < c->n_steps; i++) {
        size_t b = c->first_block + i;
        dots_x x;
        x_load(&x, j, t0, b, 4);
        UNROLL
        for (size_t half = 0; half < n_runs; half++) {
            const size_t r = i * n_runs + half;
            dots d;
            dots_clear(&d, 2, 4);
            UNROLL
            for (size_t k = half * n_k; k < (half + 1) * n_k; k++, w += 64) {
                int8x16_t a[2] = {vld1q_s8(w), vld1q_s8(w + 32)}, e[2] = {vld1q_s8(w + 16), vld1q_s8(w + 48)};
                dots_add(&d, &x, k, a, e, 2, 4);
            }
            UNROLL
            for (size_t t = 0; t < 4; t++) {
                float x_scale = j->scale[(t0 + t) * j->n_blocks + b];
                UNROLL
                for (size_t s = 0; s < 2; s++) {
                    float32x4_t *to = &acc[t * 2 + s],
                                scale = vld1q_f32(c->scale[r] + (h * 2 + s) * STRIP_ROWS);
                    *to =
                        vfmaq_f32(*to, vcvtq_f32_s32(dots_get(&d, s, t, 2, 4)), vmulq_n_f32(scale, x_scale));
                    if (wfmt_has_min(f))
                        *to = vfmaq_n_f32(*to, vld1q_f32(c->minimum[r] + (h * 2 + s) * STRIP_ROWS),
                                          x_scale * (float)flat_sum(j, f, t0 + t, b, half));
                }
            }
        }
    }
    store_tile(j, acc, h * 2, t0, 2, 4);
}

INLINE void flat_pair(flat *c, const mul_job *j, const wfmt *f, size_t n) {}
#endif

/* ---- a job ---- */

typedef void flat_fn(const mul_job *j, const flat *c, size_t h, size_t t);
typedef void unpack_fn(flat *c, const mul_job *j, size_t p, size_t block, size_t n);

/* What is done with types of the same runs. */
typedef struct flat_kind {
    void (*pair)(flat *c, const mul_job *j, size_t n);
    flat_fn *tile;
} flat_kind;

#define FLAT_KIND(name, kernel)                                                              \
    static void FN(flat_##kernel##_2x4)(const mul_job *j, const flat *c, size_t h, size_t t) \
    {                                                                                        \
        flat_tile(j, c, &wfmt_table[DT_##name], h, t);                                       \
    }                                                                                        \
    static void FN(pair_##kernel)(flat * c, const mul_job *j, size_t n)                      \
    {                                                                                        \
        flat_pair(c, j, &wfmt_table[DT_##name], n);                                          \
    }                                                                                        \
    static const flat_kind FN(kind_##kernel) = {FN(pair_##kernel), FN(flat_##kernel##_2x4)};
FLAT_KIND(Q4_0, q4_0)
FLAT_KIND(Q4_1, q4_1)
FLAT_KIND(Q6_K, q6_k)
FLAT_KIND(Q2_K, q2_k)

static const flat_kind *flat_kind_of(const wfmt *f)
{
    if (f->run == ACTS_BLOCK) return wfmt_has_min(f) ? &FN(kind_q4_1) : &FN(kind_q4_0);
    return wfmt_has_min(f) ? &FN(kind_q2_k) : &FN(kind_q6_k);
}

/* Tokens [0, n) of the job, n a multiple of four. */
static void by_flat(const mul_job *j, const wfmt *f, unpack_fn *unpack, size_t n_tokens)
{
    flat c;
    const flat_kind *kind = flat_kind_of(f);
    size_t n_blocks = j->cols / f->block, most = FLAT_COLS / f->block, n;
    for (size_t block = 0; block < n_blocks; block += n) {
        n = n_blocks - block < most ? n_blocks - block : most;
        c.first_block = block * f->block / ACTS_BLOCK;
        c.n_steps = n * f->block / ACTS_BLOCK;
        kind->pair(&c, j, n_tokens);
        for (size_t p = 0; p < j->n_panels; p++) {
            mul_job part = mul_job_part(j, p, 0, 1, n_tokens);
            unpack(&c, j, p, block, n);
            for (size_t t = 0; t < n_tokens; t += 4) {
                kind->tile(&part, &c, 0, t);
                kind->tile(&part, &c, 1, t);
            }
        }
    }
}
