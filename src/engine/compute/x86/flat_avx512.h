/* flat_avx512.h: products of many tokens in front of block types (for avx512vnni.c).
 *
 * vpdpbusd, shifts, masks and conversions share ports, and a tile of four tokens that unpacks codes and
 * scales for itself spends a third of them on that. So 512 columns of two panels are unpacked at a time for
 * all tokens of the job: a byte a code, a float a scale, and what each token's sum makes of a run, 24 KB that
 * stay in L1 while the tokens pass, six at a time. What is left of a run of 32 is eight vpdpbusd, a
 * conversion, a multiplication and an fma for sixteen results. Codes of eight bits are read where they lie.
 *
 * What is unpacked no longer depends on the type, only on the width of its runs and on minima, so types share
 * these tiles. */
#define FLAT_PANELS 2
#define FLAT_TOKENS 6   /* of a tile: twelve dots and twelve sums are most registers */
#define FLAT_MOST   128 /* tokens of a job */
#define FLAT_COLS   512 /* whole blocks of every type */
#define FLAT_RUNS   (FLAT_COLS / 16)

typedef struct flat {
    size_t first_block, n_steps; /* blocks of 32 columns: where these are in the row */
    const uint8_t *codes;        /* as panels of 8 bits, the second one panel_bytes behind */
    size_t panel_bytes;
    _Alignas(64) uint8_t unpacked[FLAT_PANELS][FLAT_COLS * PANEL_ROWS];
    float scale[FLAT_RUNS][FLAT_PANELS][PANEL_ROWS], minimum[FLAT_RUNS][FLAT_PANELS][PANEL_ROWS];
    /* Of each token and run: where its dots start, -(sum * zero); or its x_scale * float(sum), of minima. */
    union {
        int32_t start[FLAT_RUNS];
        float x_sum[FLAT_RUNS];
    } of_token[FLAT_MOST];
    float acc[FLAT_MOST][FLAT_PANELS][PANEL_ROWS];
} flat;

/* ---- unpacking ---- */

/* Blocks [block, block + n) of panel p. */
INLINE void flat_panel(flat *c, const mul_job *j, const wfmt *f, size_t p, size_t block, size_t n)
{
    const size_t n_steps = f->block / ACTS_BLOCK, n_runs = f->block / f->run;
    const uint8_t *s = (const uint8_t *)(j->scales + p * j->panel_scales) + block * panel_scale_bytes(f);
    const uint8_t *w = j->w + p * j->panel_bytes + block * n_steps * panel_step_bytes(f);
    uint8_t *to = c->unpacked[p];
    for (size_t i = 0; f->bits < 8 && i < n * n_steps; i++, w += panel_step_bytes(f)) {
        UNROLL
        for (size_t k = 0; k < 8; k++, to += 64) _mm512_store_si512(to, group(f, w, k));
    }
    for (size_t i = 0; i < n; i++, s += panel_scale_bytes(f)) {
        __m512 d = block_d(f, s), m = wfmt_has_min(f) ? block_m(f, s) : d;
        for (size_t r = 0; r < n_runs; r++) {
            _mm512_store_ps(c->scale[i * n_runs + r][p], run_scale(f, s, r, d));
            if (wfmt_has_min(f)) _mm512_store_ps(c->minimum[i * n_runs + r][p], run_min(f, s, r, m));
        }
    }
}

/* Sixteen runs of a token from `run` of the chunk on, as far as there are. */
INLINE void flat_token(flat *c, const mul_job *j, const wfmt *f, size_t t, size_t run)
{
    const size_t per_block = ACTS_BLOCK / f->run, left = c->n_steps * per_block - run;
    const __mmask16 there = left < 16 ? (__mmask16)((1u << left) - 1) : 0xFFFF;
    size_t at = t * j->n_blocks + c->first_block + run / per_block;
    __m512i sum = _mm512_maskz_loadu_epi32(there, per_block == 1 ? j->sum + at : j->sum16 + 2 * at);
    if (!wfmt_has_min(f)) {
        sum = _mm512_slli_epi32(sum, f->zero ? (unsigned)__builtin_ctz(f->zero) : 0);
        _mm512_storeu_si512(c->of_token[t].start + run, _mm512_sub_epi32(_mm512_setzero_si512(), sum));
        return;
    }
    __m512 x = _mm512_maskz_loadu_ps(per_block == 1 ? there : there & 0xFF, j->scale + at);
    if (per_block == 2)
        x = _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7), x);
    _mm512_storeu_ps(c->of_token[t].x_sum + run, _mm512_mul_ps(x, _mm512_cvtepi32_ps(sum)));
}

/* Blocks [block, block + n) of the job's panels and tokens. */
INLINE void flat_unpack(flat *c, const mul_job *j, const wfmt *f, size_t block, size_t n)
{
    const size_t n_steps = f->block / ACTS_BLOCK;
    c->first_block = block * n_steps;
    c->n_steps = n * n_steps;
    c->codes = f->bits == 8 ? j->w + c->first_block * panel_step_bytes(f) : c->unpacked[0];
    c->panel_bytes = f->bits == 8 ? j->panel_bytes : sizeof c->unpacked[0];
    for (size_t p = 0; p < j->n_panels; p++) flat_panel(c, j, f, p, block, n);
    for (size_t t = 0; t < j->n_tokens; t++)
        for (size_t run = 0; run < c->n_steps * (ACTS_BLOCK / f->run); run += 16) flat_token(c, j, f, t, run);
}

/* ---- a tile ---- */

/* acc[T][P] += a run of `f` whose number in the chunk is r; w: panel 0's codes, q: the first token's
 * activations and x its scale, `of` what is unpacked of its run. */
INLINE void flat_run(__m512 *acc, const flat *c, const wfmt *f, size_t r, const uint8_t *w, const int8_t *q,
                     const float *x, const int32_t *of, const mul_job *j, const size_t P, const size_t T)
{
    const size_t of_stride = sizeof c->of_token[0] / sizeof *of;
    __m512i dot[FLAT_PANELS * FLAT_TOKENS];
    UNROLL
    for (size_t t = 0; t < T; t++) {
        UNROLL
        for (size_t p = 0; p < P; p++)
            dot[t * P + p] = wfmt_has_min(f) ? _mm512_setzero_si512() : _mm512_set1_epi32(of[t * of_stride]);
    }
    UNROLL
    for (size_t k = 0; k < f->run / 4u; k++) {
        __m512i codes[FLAT_PANELS];
        UNROLL
        for (size_t p = 0; p < P; p++) codes[p] = line(w + p * c->panel_bytes, k);
        UNROLL
        for (size_t t = 0; t < T; t++) {
            UNROLL
            for (size_t p = 0; p < P; p++)
                dot[t * P + p] = _mm512_dpbusd_epi32(dot[t * P + p], codes[p], four(q + t * j->cols + k * 4));
        }
    }
    UNROLL
    for (size_t p = 0; p < P; p++) {
        __m512 scale = _mm512_load_ps(c->scale[r][p]);
        UNROLL
        for (size_t t = 0; t < T; t++) {
            __m512 *a = &acc[t * P + p];
            __m512 by = _mm512_mul_ps(scale, _mm512_set1_ps(x[t * j->n_blocks]));
            *a = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[t * P + p]), by, *a);
        }
    }
    if (!wfmt_has_min(f)) return;
    UNROLL
    for (size_t p = 0; p < P; p++) {
        __m512 minimum = _mm512_load_ps(c->minimum[r][p]);
        UNROLL
        for (size_t t = 0; t < T; t++) {
            __m512 x_sum = _mm512_set1_ps(((const float *)of)[t * of_stride]);
            acc[t * P + p] = _mm512_fmadd_ps(minimum, x_sum, acc[t * P + p]);
        }
    }
}

/* Tokens [first, first + T) of the job times what is unpacked. f: a type with the same runs. */
INLINE void flat_tile(const mul_job *j, flat *c, const wfmt *f, size_t first, ahead *next, const size_t P,
                      const size_t T)
{
    const size_t n_runs = ACTS_BLOCK / f->run;
    const int8_t *q = j->q + first * j->cols + c->first_block * ACTS_BLOCK;
    const float *x = j->scale + first * j->n_blocks + c->first_block;
    const int32_t *of = c->of_token[first].start;
    const uint8_t *w = c->codes;
    __m512 acc[FLAT_PANELS * FLAT_TOKENS];
    UNROLL
    for (size_t i = 0; i < P * T; i++)
        acc[i] = c->first_block == 0 ? _mm512_setzero_ps() : _mm512_load_ps(c->acc[first + i / P][i % P]);
    for (size_t r = 0; r < c->n_steps * n_runs; x++) {
        ahead_fetch(next);
        UNROLL
        for (size_t half = 0; half < n_runs; half++, r++, q += f->run, w += f->run * PANEL_ROWS, of++)
            flat_run(acc, c, f, r, w, q, x, of, j, P, T);
    }
    if (c->first_block + c->n_steps == j->n_blocks) {
        mul_job part = mul_job_part(j, 0, first, P, T);
        store_tile(&part, acc, P, T);
        return;
    }
    UNROLL
    for (size_t i = 0; i < P * T; i++) _mm512_store_ps(c->acc[first + i / P][i % P], acc[i]);
}

typedef void flat_fn(const mul_job *j, flat *c, size_t first, ahead *next);
typedef void unpack_fn(flat *c, const mul_job *j, size_t block, size_t n);

/* Tiles of so many tokens, of one panel and of two. */
typedef struct flat_size {
    size_t tokens;
    flat_fn *mul[FLAT_PANELS];
} flat_size;

#define FLAT_TILE(name, kernel, rows, tokens, panels)                                                 \
    TARGET static void FN(flat_##kernel##_##rows##x##tokens)(const mul_job *j, flat *c, size_t first, \
                                                             ahead *next)                             \
    {                                                                                                 \
        flat_tile(j, c, &wfmt_table[DT_##name], first, next, panels, tokens);                         \
    }
#define FLAT_TILES(name, kernel)                                   \
    FLAT_TILE(name, kernel, 16, 1, 1)                              \
    FLAT_TILE(name, kernel, 32, 1, 2)                              \
    FLAT_TILE(name, kernel, 16, 2, 1)                              \
    FLAT_TILE(name, kernel, 32, 2, 2)                              \
    FLAT_TILE(name, kernel, 16, 4, 1)                              \
    FLAT_TILE(name, kernel, 32, 4, 2)                              \
    FLAT_TILE(name, kernel, 16, 6, 1)                              \
    FLAT_TILE(name, kernel, 32, 6, 2)                              \
    static const flat_size FN(flats_##kernel)[] = {                \
        {6, {FN(flat_##kernel##_16x6), FN(flat_##kernel##_32x6)}}, \
        {4, {FN(flat_##kernel##_16x4), FN(flat_##kernel##_32x4)}}, \
        {2, {FN(flat_##kernel##_16x2), FN(flat_##kernel##_32x2)}}, \
        {1, {FN(flat_##kernel##_16x1), FN(flat_##kernel##_32x1)}}};
FLAT_TILES(Q8_0, q8_0)
FLAT_TILES(Q4_1, q4_1)
FLAT_TILES(Q6_K, q6_k)
FLAT_TILES(Q2_K, q2_k)

/* ---- a job ---- */

/* Eight tokens are rather twice four than six and two. */
static void flat_tokens(const mul_job *j, flat *c, const flat_size *size, ahead *next)
{
    for (size_t t = 0, left; (left = j->n_tokens - t) > 0; t += size->tokens) {
        while (size->tokens > left || (size->tokens == FLAT_TOKENS && left == FLAT_TOKENS + 2)) size++;
        size->mul[j->n_panels - 1](j, c, t, next);
    }
}

/* Whether so many tokens pay for unpacking; codes of eight bits only have scales to unpack. */
static bool flat_pays(const wfmt *f, size_t n_tokens)
{
    return n_tokens >= (f->bits == 8 ? 4 : 6);
}

/* What lies ahead of a job, dealt out to the blocks of each tile: a few lines are on their way while a block is
 * multiplied. All in front of a tile, the core waited until the last of them could be asked for. */
static ahead flat_ahead(const mul_job *j)
{
    if (!j->next) return (ahead){0};
    ahead next = *j->next;
    next.codes_step = (next.codes_step / j->n_blocks + 63) & ~(size_t)63;
    next.scales_step = (next.scales_step / j->n_blocks + 63) & ~(size_t)63;
    return next;
}

static void by_flat(const mul_job *j, const wfmt *f, unpack_fn *unpack, const flat_size *sizes)
{
    flat c;
    size_t n_blocks = j->cols / f->block, most = FLAT_COLS / f->block;
    size_t n_chunks = (n_blocks + most - 1) / most, even = (n_blocks + n_chunks - 1) / n_chunks;
    ahead next = flat_ahead(j);
    for (size_t block = 0; block < n_blocks; block += even) {
        unpack(&c, j, block, n_blocks - block < even ? n_blocks - block : even);
        flat_tokens(j, &c, sizes, &next);
    }
    if (!j->next) return;
    next.codes_step = j->next->codes_step;
    next.scales_step = j->next->scales_step;
    *j->next = next;
}

/* Flat in the tiles of another type with the same runs. */
#define ALL_FLAT(name, kernel, tiles)                                                          \
    TARGET static void FN(unpack_##kernel)(flat * c, const mul_job *j, size_t block, size_t n) \
    {                                                                                          \
        flat_unpack(c, j, &wfmt_table[DT_##name], block, n);                                   \
    }                                                                                          \
    static void FN(all_##kernel)(const mul_job *j)                                             \
    {                                                                                          \
        if (!flat_pays(&wfmt_table[DT_##name], j->n_tokens))                                   \
            FN(mul_##kernel)(j);                                                               \
        else                                                                                   \
            by_flat(j, &wfmt_table[DT_##name], FN(unpack_##kernel), FN(flats_##tiles));        \
    }
ALL_FLAT(Q8_0, q8_0, q8_0)
ALL_FLAT(Q4_0, q4_0, q8_0)
ALL_FLAT(Q4_1, q4_1, q4_1)
ALL_FLAT(Q5_0, q5_0, q8_0)
ALL_FLAT(Q5_1, q5_1, q4_1)
ALL_FLAT(Q2_K, q2_k, q2_k)
ALL_FLAT(Q3_K, q3_k, q6_k)
ALL_FLAT(Q4_K, q4_k, q4_1)
ALL_FLAT(Q5_K, q5_k, q4_1)
ALL_FLAT(Q6_K, q6_k, q6_k)
ALL_FLAT(IQ4_NL, iq4_nl, q8_0)
ALL_FLAT(IQ4_XS, iq4_xs, q8_0)
ALL_FLAT(MXFP4, mxfp4, q8_0)
