/* avx2_flat.h: products of more tokens than a tile has (for avx2_body.h).
 *
 * Four tokens do not pay for unpacking the codes of most types: a third of the instructions of Q5_K are that.
 * So 512 columns of a panel are unpacked at a time, a byte a code and a float a scale, 12 KB that stay in L1
 * while all tokens of the job pass, four at a time. What is unpacked no longer depends on the type, only on
 * the width of its runs, on minima, and without vpdpbusd on how many products fit 16 bits; so types share
 * these tiles.
 *
 * Sums of floats stay in memory, where they are met once a run: sixteen registers are few. */
#define FLAT_TOKENS 64                   /* in a job: with 512 columns 32 KB of activations */
#define FLAT_PANELS (HAS_DPBUSD ? 2 : 4) /* in a job */
#define FLAT_COLS   512
#define FLAT_RUNS   (FLAT_COLS / 16)
#define FLAT_CODES  (FLAT_COLS * PANEL_ROWS)

typedef struct flat {
    size_t first_block, n_steps;            /* blocks of 32 columns: where these are in the row */
    _Alignas(64) uint8_t codes[FLAT_CODES]; /* as a panel of 8 bits */
    float scale[FLAT_RUNS][PANEL_ROWS], minimum[FLAT_RUNS][PANEL_ROWS];
    /* Of each token and run: where its dots start, -(sum * zero); or its x_scale * float(sum), of minima. */
    union {
        int32_t start[FLAT_RUNS];
        float x_sum[FLAT_RUNS];
    } of_token[FLAT_TOKENS];
    float acc[FLAT_PANELS][FLAT_TOKENS][PANEL_ROWS];
} flat;

/* Tokens that pay for unpacking. */
INLINE size_t flat_least(const wfmt *f)
{
    return HAS_DPBUSD || (f->bits == 4 && !f->values) ? 12 : 8;
}

/* ---- unpacking ---- */

/* The scales of n blocks from s on, a row of sixteen a run, and the minima where the type has them. */
INLINE void flat_scales(const wfmt *f, const uint8_t *s, size_t n, float (*scale)[PANEL_ROWS],
                        float (*minimum)[PANEL_ROWS])
{
    const size_t n_runs = f->block / f->run;
    for (size_t i = 0; i < n; i++, s += panel_scale_bytes(f)) {
        for (size_t h = 0; h < 2; h++) {
            __m256 d = block_d(f, s, h), m = wfmt_has_min(f) ? block_m(f, s, h) : d;
            for (size_t r = 0; r < n_runs; r++) {
                _mm256_store_ps(scale[i * n_runs + r] + h * HALF_ROWS, run_scale(f, s, r, h, d));
                if (wfmt_has_min(f))
                    _mm256_store_ps(minimum[i * n_runs + r] + h * HALF_ROWS, run_min(f, s, r, h, m));
            }
        }
    }
}

/* Blocks [block, block + n) of panel p. */
INLINE void flat_panel(flat *c, const mul_job *j, const wfmt *f, size_t p, size_t block, size_t n)
{
    const size_t n_steps = f->block / ACTS_BLOCK;
    const uint8_t *s = (const uint8_t *)(j->scales + p * j->panel_scales) + block * panel_scale_bytes(f);
    const uint8_t *w = j->w + p * j->panel_bytes + block * n_steps * panel_step_bytes(f);
    uint8_t *to = c->codes;
    for (size_t i = 0; i < n * n_steps; i++, w += panel_step_bytes(f)) {
        UNROLL
        for (size_t k = 0; k < 16; k++, to += 32)
            _mm256_store_si256((void *)to, group(f, w + k % 2 * 32, k / 2));
    }
    flat_scales(f, s, n, c->scale, c->minimum);
}

/* Whether products are summed in 16 bits over a whole run, from a start of -(sum * zero) on: half of a run's sum in
 * each lane, so that the largest of 16 columns in six bits is 8 * 32 * 127, and of 32 in five 16 * 16 * 127. What
 * is in between may wrap. */
INLINE bool by_lanes(const wfmt *f)
{
    return !HAS_DPBUSD && f->zero;
}

/* The starts of 32 columns: of columns 0 and 1 of each four low, of 2 and 3 high. */
INLINE void lane_starts(int32_t *start, const wfmt *f, const int8_t *q)
{
    __m256i x = _mm256_loadu_si256((const void *)q),
            v = _mm256_maddubs_epi16(_mm256_set1_epi8((char)f->zero), x);
    v = _mm256_add_epi16(v, _mm256_shuffle_epi32(v, 0x4E));
    v = _mm256_add_epi16(v, _mm256_shuffle_epi32(v, 0xB1));
    v = _mm256_sub_epi16(_mm256_setzero_si256(), v);
    __m128i first = _mm256_castsi256_si128(v), second = _mm256_extracti128_si256(v, 1);
    if (f->run == ACTS_BLOCK) first = _mm_add_epi16(first, second);
    start[0] = _mm_cvtsi128_si32(first);
    if (f->run < ACTS_BLOCK) start[1] = _mm_cvtsi128_si32(second);
}

/* What the tokens' sums make of the chunk's runs. */
INLINE void flat_sums(flat *c, const mul_job *j, const wfmt *f)
{
    const size_t per_block = ACTS_BLOCK / f->run;
    for (size_t t = 0; t < j->n_tokens; t++) {
        size_t at = t * j->n_blocks + c->first_block;
        const int8_t *q = j->q + t * j->cols + c->first_block * ACTS_BLOCK;
        const int32_t *sum = per_block == 1 ? j->sum + at : j->sum16 + 2 * at;
        for (size_t i = 0; by_lanes(f) && i < c->n_steps; i++)
            lane_starts(c->of_token[t].start + i * per_block, f, q + i * ACTS_BLOCK);
        for (size_t r = 0; !by_lanes(f) && r < c->n_steps * per_block; r++) {
            if (wfmt_has_min(f))
                c->of_token[t].x_sum[r] = j->scale[at + r / per_block] * (float)sum[r];
            else
                c->of_token[t].start[r] = -(sum[r] * f->zero);
        }
    }
}

/* ---- a tile ---- */

/* dot[t * H + h], which start as lanes of 16 bits, of n groups of four columns */
INLINE void lane_dots(__m256i *dot, const uint8_t *w, const int8_t *q, size_t cols, const size_t n,
                      const size_t H, const size_t T)
{
#if !HAS_DPBUSD
    UNROLL
    for (size_t k = 0; k < n; k++) {
        __m256i codes[2];
        UNROLL
        for (size_t h = 0; h < H; h++) codes[h] = line(w + h * 32, k);
        UNROLL
        for (size_t t = 0; t < T; t++) {
            __m256i x = four(q + t * cols + k * 4);
            UNROLL
            for (size_t h = 0; h < H; h++)
                dot[t * H + h] = add_pairs(dot[t * H + h], _mm256_maddubs_epi16(codes[h], x));
        }
    }
    UNROLL
    for (size_t i = 0; i < H * T; i++) dot[i] = pairs_to_dots(dot[i]);
#endif
}

/* H half panels of a run times T tokens: dot[t * H + h]. */
INLINE void flat_dots(__m256i *dot, const mul_job *j, const wfmt *f, const uint8_t *w, const int8_t *q,
                      const int32_t *of, const size_t H, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        UNROLL
        for (size_t h = 0; h < H; h++)
            dot[t * H + h] = wfmt_has_min(f) ? _mm256_setzero_si256() : _mm256_set1_epi32(of[t * FLAT_RUNS]);
    }
    if (by_lanes(f)) {
        lane_dots(dot, w, q, j->cols, f->run / 4, H, T);
        return;
    }
    mul_job part = *j;
    part.q = q;
    add_groups(&part, f, true, dot, w, 0, 0, f->run / 4, H, T);
}

/* T tokens from `first` on times H half panels, from h0 on, of panel p, which is unpacked. f: a type with the
 * same runs. */
INLINE void flat_halves(const mul_job *j, flat *c, const wfmt *f, size_t p, size_t h0, size_t first,
                        const size_t H, const size_t T)
{
    const size_t n_runs = ACTS_BLOCK / f->run, n_blocks = j->n_blocks, end = c->n_steps * n_runs;
    const int8_t *q = j->q + first * j->cols + c->first_block * ACTS_BLOCK;
    const float *x = j->scale + first * n_blocks + c->first_block;
    const int32_t *of = c->of_token[first].start;
    const uint8_t *w = c->codes + h0 * 32;
    float *acc = c->acc[p][first] + h0 * HALF_ROWS;
    for (size_t r = 0; r < end; r++, q += f->run, w += f->run * PANEL_ROWS, of++) {
        __m256i dot[TILE_MAX];
        flat_dots(dot, j, f, w, q, of, H, T);
        UNROLL
        for (size_t h = 0; h < H; h++) {
            __m256 scale = _mm256_load_ps(c->scale[r] + (h0 + h) * HALF_ROWS);
            __m256 minimum = _mm256_load_ps(c->minimum[r] + (h0 + h) * HALF_ROWS);
            UNROLL
            for (size_t t = 0; t < T; t++) {
                float *a = acc + t * PANEL_ROWS + h * HALF_ROWS;
                __m256 by = _mm256_mul_ps(scale, _mm256_set1_ps(x[t * n_blocks + r / n_runs]));
                __m256 v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[t * H + h]), by, _mm256_load_ps(a));
                if (wfmt_has_min(f))
                    v = _mm256_fmadd_ps(minimum, _mm256_set1_ps(((const float *)of)[t * FLAT_RUNS]), v);
                _mm256_store_ps(a, v);
            }
        }
    }
}

/* Both halves at once share each broadcast of activations, but two sums in 16 bits or dots besides them are
 * more than there are registers. */
INLINE void flat_tile(const mul_job *j, flat *c, const wfmt *f, size_t p, size_t first, const size_t T)
{
    if (HAS_DPBUSD || by_lanes(f) || f->bits < 5) {
        flat_halves(j, c, f, p, 0, first, 2, T);
        return;
    }
    for (size_t h = 0; h < 2; h++) flat_halves(j, c, f, p, h, first, 1, T);
}

typedef void flat_fn(const mul_job *j, flat *c, size_t p, size_t first);
/* Blocks [block, block + n) of panel p, and for the first panel of the tokens' sums. */
typedef void unpack_fn(flat *c, const mul_job *j, size_t p, size_t block, size_t n);

#define FLAT_TILE(name, kernel, tokens)                                                                   \
    TARGET static void FN(flat_##kernel##_16x##tokens)(const mul_job *j, flat *c, size_t p, size_t first) \
    {                                                                                                     \
        flat_tile(j, c, &wfmt_table[DT_##name], p, first, tokens);                                        \
    }
#define FLAT_TILES(name, kernel)                                                      \
    FLAT_TILE(name, kernel, 1)                                                        \
    FLAT_TILE(name, kernel, 2)                                                        \
    FLAT_TILE(name, kernel, 3)                                                        \
    FLAT_TILE(name, kernel, 4)                                                        \
    static flat_fn *const FN(flats_##kernel)[TILE_MANY_TOKENS] = {                    \
        FN(flat_##kernel##_16x1), FN(flat_##kernel##_16x2), FN(flat_##kernel##_16x3), \
        FN(flat_##kernel##_16x4)};
FLAT_TILES(Q4_0, q4_0)
FLAT_TILES(Q4_1, q4_1)
FLAT_TILES(Q5_0, q5_0)
FLAT_TILES(Q5_1, q5_1)
FLAT_TILES(Q2_K, q2_k)
FLAT_TILES(Q3_K, q3_k)
FLAT_TILES(Q6_K, q6_k)
#if HAS_DPBUSD
FLAT_TILES(IQ4_NL, iq4_nl)
#endif

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- a job ---- */

TARGET static void FN(flat_store)(const mul_job *j, float (*acc)[FLAT_TOKENS][PANEL_ROWS])
{
    for (size_t p = 0; p < j->n_panels; p++)
        for (size_t t = 0; t < j->n_tokens; t++)
            for (size_t h = 0; h < 2; h++)
                end_eight(j, t, p * PANEL_ROWS + h * HALF_ROWS, _mm256_load_ps(acc[p][t] + h * HALF_ROWS));
}

static void by_flat(const mul_job *j, const wfmt *f, unpack_fn *unpack, flat_fn *const *tiles)
{
    flat c;
    size_t n_blocks = j->cols / f->block, most = FLAT_COLS / f->block;
    for (size_t p = 0; p < j->n_panels; p++) memset(c.acc[p], 0, j->n_tokens * sizeof c.acc[p][0]);
    for (size_t block = 0; block < n_blocks; block += most) {
        for (size_t p = 0; p < j->n_panels; p++) {
            unpack(&c, j, p, block, min_size(most, n_blocks - block));
            for (size_t t = 0; t < j->n_tokens; t += TILE_MANY_TOKENS)
                tiles[min_size(TILE_MANY_TOKENS, j->n_tokens - t) - 1](j, &c, p, t);
        }
    }
    FN(flat_store)(j, c.acc);
}

/* At most four tokens at a time, and of those several no more panels than a tile has, by their packed codes. */
static void by_tiles(const mul_job *j, mul_fn *mul)
{
    if (j->n_tokens == 1) {
        FN(end_tile)(j, mul);
        return;
    }
    for (size_t p = 0; p < j->n_panels; p += TILE_MANY_PANELS) {
        for (size_t t = 0; t < j->n_tokens; t += TILE_MANY_TOKENS) {
            mul_job part = mul_job_part(j, p, t, min_size(TILE_MANY_PANELS, j->n_panels - p),
                                        min_size(TILE_MANY_TOKENS, j->n_tokens - t));
            FN(end_tile)(&part, mul);
        }
    }
}

#define ALL_PACKED(name, kernel)                   \
    static void FN(all_##kernel)(const mul_job *j) \
    {                                              \
        by_tiles(j, FN(mul_##kernel));             \
    }
/* Flat in the tiles of another type with the same runs. */
#define ALL_FLAT(name, kernel, tiles)                                                                    \
    TARGET static void FN(unpack_##kernel)(flat * c, const mul_job *j, size_t p, size_t block, size_t n) \
    {                                                                                                    \
        const wfmt *f = &wfmt_table[DT_##name];                                                          \
        c->first_block = block * (f->block / ACTS_BLOCK);                                                \
        c->n_steps = n * (f->block / ACTS_BLOCK);                                                        \
        flat_panel(c, j, f, p, block, n);                                                                \
        if (p == 0) flat_sums(c, j, f);                                                                  \
    }                                                                                                    \
    TARGET static void FN(all_##kernel)(const mul_job *j)                                                \
    {                                                                                                    \
        if (j->n_tokens < flat_least(&wfmt_table[DT_##name]))                                            \
            by_tiles(j, FN(mul_##kernel));                                                               \
        else                                                                                             \
            by_flat(j, &wfmt_table[DT_##name], FN(unpack_##kernel), FN(flats_##tiles));                  \
    }
DTYPE_FLOATS(ALL_PACKED)
#if HAS_DPBUSD
ALL_PACKED(Q8_0, q8_0) /* there is nothing to unpack */
ALL_FLAT(IQ4_NL, iq4_nl, iq4_nl)
ALL_FLAT(IQ4_XS, iq4_xs, iq4_nl)
#else
#include "compute/x86/words_avx2.h"
#endif
ALL_FLAT(Q4_0, q4_0, q4_0)
ALL_FLAT(Q4_1, q4_1, q4_1)
ALL_FLAT(Q5_0, q5_0, q5_0)
ALL_FLAT(Q5_1, q5_1, q5_1)
ALL_FLAT(Q2_K, q2_k, q2_k)
ALL_FLAT(Q3_K, q3_k, q3_k)
ALL_FLAT(Q4_K, q4_k, q4_1)
ALL_FLAT(Q5_K, q5_k, q5_1)
ALL_FLAT(Q6_K, q6_k, q6_k)
ALL_FLAT(MXFP4, mxfp4, q5_0)
