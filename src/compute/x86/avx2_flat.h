/* avx2_flat.h: products of more tokens than a tile has (for avx2_body.h).
 *
 * Four tokens do not pay for unpacking the codes of most types: a third of the instructions of Q5_K are that.
 * So 512 columns of a panel are unpacked at a time, a byte a code and a float a scale, 8 + 4 KB that stay in
 * L1 while all tokens of the job pass, four at a time. What is unpacked no longer depends on the type, only
 * on the width of its runs, on minima, and without vpdpbusd on how many products fit 16 bits; so types share
 * these tiles. */
#define FLAT_TOKENS 64 /* in a job: with 512 columns 32 KB of activations */
#define FLAT_LEAST  12 /* tokens that pay for unpacking */
#define FLAT_COLS   512
#define FLAT_RUNS   (FLAT_COLS / 16)

typedef struct flat {
    size_t first_block, n_steps; /* blocks of 32 columns: where these are in the row */
    int zero;
    _Alignas(64) uint8_t codes[FLAT_COLS * PANEL_ROWS]; /* as a panel of 8 bits */
    float scale[FLAT_RUNS][PANEL_ROWS], minimum[FLAT_RUNS][PANEL_ROWS];
} flat;

/* Blocks [block, block + n) of panel p. */
INLINE void flat_unpack(flat *c, const mul_job *j, const wfmt *f, size_t p, size_t block, size_t n)
{
    const size_t n_steps = f->block / ACTS_BLOCK, n_runs = f->block / f->run;
    const uint8_t *s = (const uint8_t *)(j->scales + p * j->panel_scales) + block * panel_scale_bytes(f);
    const uint8_t *w = j->w + p * j->panel_bytes + block * n_steps * panel_step_bytes(f);
    uint8_t *to = c->codes;
    for (size_t i = 0; i < n * n_steps; i++, w += panel_step_bytes(f), to += ACTS_BLOCK * PANEL_ROWS) {
        UNROLL
        for (size_t k = 0; k < 16; k++)
            _mm256_store_si256((void *)(to + k * 32), group(f, w + k % 2 * 32, k / 2));
    }
    for (size_t i = 0; i < n; i++, s += panel_scale_bytes(f)) {
        for (size_t h = 0; h < 2; h++) {
            __m256 d = block_d(f, s, h), m = wfmt_has_min(f) ? block_m(f, s, h) : d;
            for (size_t r = 0; r < n_runs; r++) {
                _mm256_store_ps(c->scale[i * n_runs + r] + h * HALF_ROWS, run_scale(f, s, r, h, d));
                if (wfmt_has_min(f))
                    _mm256_store_ps(c->minimum[i * n_runs + r] + h * HALF_ROWS, run_min(f, s, r, h, m));
            }
        }
    }
    c->first_block = block * n_steps;
    c->n_steps = n * n_steps;
    c->zero = f->zero;
}

/* out[t][16] += T tokens times what is unpacked. f: a type with the same runs. */
INLINE void flat_tile(const mul_job *j, const flat *c, const wfmt *f, const size_t T)
{
    const size_t n_runs = ACTS_BLOCK / f->run;
    __m256 acc[TILE_MAX];
    __m256i dot[TILE_MAX];
    UNROLL
    for (size_t i = 0; i < 2 * T; i++)
        acc[i] = c->first_block == 0 ? _mm256_setzero_ps()
                                     : _mm256_loadu_ps(j->out + i / 2 * j->ldo + i % 2 * HALF_ROWS);
    for (size_t i = 0; i < c->n_steps; i++) {
        UNROLL
        for (size_t half = 0; half < n_runs; half++) {
            size_t b = c->first_block + i, r = i * n_runs + half;
            run_dots(j, f, true, c->zero, dot, c->codes + i * ACTS_BLOCK * PANEL_ROWS, b, half, 2, T);
            UNROLL
            for (size_t h = 0; h < 2; h++)
                end_run(j, f, acc + h, dot + h, b, half, _mm256_load_ps(c->scale[r] + h * HALF_ROWS),
                        _mm256_load_ps(c->minimum[r] + h * HALF_ROWS), 2, T);
        }
    }
    store_tile(j, acc, 0, 2, T);
}

typedef void flat_fn(const mul_job *j, const flat *c);
typedef void unpack_fn(flat *c, const mul_job *j, size_t p, size_t block, size_t n);

#define FLAT_TILE(name, kernel, tokens)                                                 \
    TARGET static void FN(flat_##kernel##_16x##tokens)(const mul_job *j, const flat *c) \
    {                                                                                   \
        flat_tile(j, c, &wfmt_table[DT_##name], tokens);                                \
    }
#define FLAT_TILES(name, kernel)                                                      \
    FLAT_TILE(name, kernel, 1)                                                        \
    FLAT_TILE(name, kernel, 2)                                                        \
    FLAT_TILE(name, kernel, 3)                                                        \
    FLAT_TILE(name, kernel, 4)                                                        \
    static flat_fn *const FN(flats_##kernel)[TILE_MANY_TOKENS] = {                    \
        FN(flat_##kernel##_16x1), FN(flat_##kernel##_16x2), FN(flat_##kernel##_16x3), \
        FN(flat_##kernel##_16x4)};
FLAT_TILES(Q5_0, q5_0)
FLAT_TILES(Q5_1, q5_1)
FLAT_TILES(Q3_K, q3_k)
FLAT_TILES(Q6_K, q6_k)

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void by_flat(const mul_job *j, const wfmt *f, unpack_fn *unpack, flat_fn *const *tiles)
{
    flat c;
    size_t n_blocks = j->cols / f->block, most = FLAT_COLS / f->block;
    for (size_t p = 0; p < j->n_panels; p++) {
        for (size_t block = 0; block < n_blocks; block += most) {
            unpack(&c, j, p, block, min_size(most, n_blocks - block));
            for (size_t t = 0; t < j->n_tokens; t += TILE_MANY_TOKENS) {
                mul_job part = mul_job_part(j, p, t, 1, min_size(TILE_MANY_TOKENS, j->n_tokens - t));
                tiles[part.n_tokens - 1](&part, &c);
            }
        }
    }
}

/* At most four tokens at a time by their packed codes. */
static void by_tiles(const mul_job *j, mul_fn *mul)
{
    if (j->n_tokens <= TILE_MANY_TOKENS) {
        mul(j);
        return;
    }
    for (size_t t = 0; t < j->n_tokens; t += TILE_MANY_TOKENS) {
        mul_job part = mul_job_part(j, 0, t, j->n_panels, min_size(TILE_MANY_TOKENS, j->n_tokens - t));
        mul(&part);
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
        flat_unpack(c, j, &wfmt_table[DT_##name], p, block, n);                                          \
    }                                                                                                    \
    static void FN(all_##kernel)(const mul_job *j)                                                       \
    {                                                                                                    \
        if (j->n_tokens < FLAT_LEAST)                                                                    \
            by_tiles(j, FN(mul_##kernel));                                                               \
        else                                                                                             \
            by_flat(j, &wfmt_table[DT_##name], FN(unpack_##kernel), FN(flats_##tiles));                  \
    }
DTYPE_FLOATS(ALL_PACKED)
ALL_PACKED(Q8_0, q8_0)
ALL_FLAT(Q5_0, q5_0, q5_0)
ALL_FLAT(Q5_1, q5_1, q5_1)
ALL_FLAT(Q3_K, q3_k, q3_k)
ALL_FLAT(Q5_K, q5_k, q5_1)
ALL_FLAT(Q6_K, q6_k, q6_k)
ALL_PACKED(IQ4_NL, iq4_nl)
ALL_PACKED(IQ4_XS, iq4_xs)
ALL_FLAT(MXFP4, mxfp4, q5_0)
#if HAS_DPBUSD /* which is faster with these from their packed codes */
ALL_PACKED(Q4_0, q4_0)
ALL_PACKED(Q4_1, q4_1)
ALL_PACKED(Q2_K, q2_k)
ALL_PACKED(Q4_K, q4_k)
#else
FLAT_TILES(Q4_0, q4_0)
FLAT_TILES(Q4_1, q4_1)
FLAT_TILES(Q2_K, q2_k)
ALL_FLAT(Q4_0, q4_0, q4_0)
ALL_FLAT(Q4_1, q4_1, q4_1)
ALL_FLAT(Q2_K, q2_k, q2_k)
ALL_FLAT(Q4_K, q4_k, q4_1)
#endif
