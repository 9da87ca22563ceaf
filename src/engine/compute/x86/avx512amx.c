/* x86/avx512amx.c: products of several tokens with the tile unit (AMX int8), the rest as avx512vnni.c.
 *
 * The contract adds float(dot) of every run of 32 (16) columns to a float, so a tile spans one run, and what
 * the unit has multiplied passes through memory into AVX-512 registers run by run. That passage is the limit:
 * three instructions (convert, scale times scale, fma) for sixteen results, in 1.5 cycles on two ports, and
 * the tile needs one. It decides the shape: two panels times twelve tokens leave the accumulators, 24
 * registers, where they are, and load each token's activations and scale once for both panels. A tile of 32 x
 * 32 results would keep them in memory and wait for its stores. Tokens beyond a multiple of twelve go four at
 * a time in tiles of their own, the last one to three to the kernels of avx512vnni.c.
 *
 *     for each chunk of 512 columns:     unpacked once for all tokens, 8 KB a panel: signed values in the
 *         for each group of tokens:      tile's order, a float scale (and minimum) for each run and row
 *             for each run:              C = A · B; acc = fma(float(C), scale * x_scale, acc)
 *
 * Values are signed here, so no dot needs a correction for codes that are too large. */
#include "compute/kernels.h"

#ifdef KERNELS_X86
#include <string.h>

#include "compute/panel.h"
#include "compute/tile.h"
#include "compute/x86/v_avx512.h"
#include "compute/x86/codes_avx512.h"
#ifndef tile_configure /* a test brings a model of it */
#include "compute/x86/tile_unit.h"
#endif

enum {
    PANELS = 2,
    TOKENS = 12,       /* of a group */
    FEW = 4,           /* of a group behind the last whole one */
    MOST_TOKENS = 128, /* in a call, so that unpacking costs little */
    CHUNK = 512,       /* columns: whole blocks of every type */
    MOST_RUNS = CHUNK / 16,
};

/* ---- the tiles' shapes ---- */

/* Tiles 0 and 1 are a run of both panels; 2 the activations of TOKENS, 3 and 4 their dots; 5, 6 and 7 the
 * same of FEW. */
typedef struct tile_config {
    uint8_t palette, start_row, zero[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

#define CONFIG(run)                                                        \
    {                                                                      \
        .palette = 1, .row_bytes = {64, 64, run, 64, 64, run, 64, 64},     \
        .rows = {run / 4, run / 4, TOKENS, TOKENS, TOKENS, FEW, FEW, FEW}, \
    }
static const tile_config config_run64 = CONFIG(64), config_run32 = CONFIG(32), config_run16 = CONFIG(16);

/* Columns in one tile: a run, or a part of a run of our own types. */
static inline size_t piece_of(const size_t run)
{
    return run <= 32 ? run : run % 64 ? 32 : 64;
}

static bool in_tiles(dtype t, size_t n_tokens)
{
    return !dtype_is_float(t) && n_tokens >= FEW;
}

static void avx512amx_enter(dtype t, size_t n_tokens)
{
    size_t piece = piece_of(wfmt_table[t].run);
    if (in_tiles(t, n_tokens))
        tile_configure(piece == 64 ? &config_run64 : piece == 32 ? &config_run32 : &config_run16);
}

static void avx512amx_leave(dtype t, size_t n_tokens)
{
    if (in_tiles(t, n_tokens)) tile_release();
}

/* ---- a chunk of columns ---- */

typedef struct chunk {
    size_t first_run, n_runs;                               /* where it is in the row */
    _Alignas(64) int8_t values[PANELS][CHUNK * PANEL_ROWS]; /* four columns of sixteen rows a line */
    float scale[MOST_RUNS][PANELS][PANEL_ROWS];
    float minimum[MOST_RUNS][PANELS][PANEL_ROWS];
} chunk;

/* Group k of 32 columns: sixteen rows, four signed values each. */
INLINE __m512i values(const wfmt *f, const uint8_t *step, const size_t k)
{
    __m512i codes = group(f, step, k);
    return f->zero ? _mm512_sub_epi8(codes, _mm512_set1_epi8((char)f->zero)) : codes;
}

/* Blocks [block, block + n) of panel p. */
INLINE void unpack_panel(chunk *c, const mul_job *j, const wfmt *f, size_t p, size_t block, size_t n)
{
    const size_t n_steps = f->block / ACTS_BLOCK, n_runs = f->block / f->run;
    const uint8_t *s = (const uint8_t *)(j->scales + p * j->panel_scales) + block * panel_scale_bytes(f);
    const uint8_t *w = j->w + p * j->panel_bytes + block * n_steps * panel_step_bytes(f);
    int8_t *to = c->values[p];
    for (size_t i = 0; i < n * n_steps; i++, w += panel_step_bytes(f), to += ACTS_BLOCK * PANEL_ROWS) {
        UNROLL
        for (size_t k = 0; k < 8; k++) _mm512_store_si512(to + k * 64, values(f, w, k));
    }
    for (size_t i = 0; i < n; i++, s += panel_scale_bytes(f)) {
        __m512 d = block_d(f, s), m = wfmt_has_min(f) ? block_m(f, s) : d;
        for (size_t r = 0; r < n_runs; r++) {
            _mm512_store_ps(c->scale[i * n_runs + r][p], run_scale(f, s, r, d));
            if (wfmt_has_min(f)) _mm512_store_ps(c->minimum[i * n_runs + r][p], run_min(f, s, r, m));
        }
    }
}

/* ---- a group of tokens times a chunk ---- */

/* Into dots[p][token][16]: those of one run, piece by piece. q: the first token's activations of the run. */
#define TILE_RUN(a, c0, c1)                                           \
    do {                                                              \
        tile_zero(c0);                                                \
        if (P > 1) tile_zero(c1);                                     \
        for (size_t k = 0; k < run; k += piece) {                     \
            tile_load(a, q + k, ldq);                                 \
            tile_load(0, c->values[0] + at + k * PANEL_ROWS, 64);     \
            tile_dot(c0, a, 0);                                       \
            if (P > 1) {                                              \
                tile_load(1, c->values[1] + at + k * PANEL_ROWS, 64); \
                tile_dot(c1, a, 1);                                   \
            }                                                         \
        }                                                             \
        tile_store(c0, dots, 64);                                     \
        if (P > 1) tile_store(c1, dots + T * PANEL_ROWS, 64);         \
    } while (0)

INLINE void tile_run(int32_t *dots, const chunk *c, size_t at, const int8_t *q, size_t ldq, const size_t run,
                     const size_t P, const size_t T)
{
    const size_t piece = piece_of(run);
    if (T == TOKENS)
        TILE_RUN(2, 3, 4);
    else
        TILE_RUN(5, 6, 7);
}

/* acc = fma(dot, scale * x_scale, acc). x[t / 4][t % 4 * ldx]: scales of the tokens. */
INLINE void add_dots(__m512 *acc, const int32_t *dots, const float scale[PANELS][PANEL_ROWS],
                     const float *const *x, size_t ldx, const size_t P, const size_t T)
{
    __m512 s[PANELS];
    UNROLL
    for (size_t p = 0; p < P; p++) s[p] = _mm512_load_ps(scale[p]);
    UNROLL
    for (size_t t = 0; t < T; t++) {
        __m512 xt = _mm512_set1_ps(x[t / 4][t % 4 * ldx]);
        UNROLL
        for (size_t p = 0; p < P; p++) {
            __m512 dot = _mm512_cvtepi32_ps(_mm512_load_si512(dots + (p * T + t) * PANEL_ROWS));
            acc[t * P + p] = _mm512_fmadd_ps(dot, _mm512_mul_ps(s[p], xt), acc[t * P + p]);
        }
    }
}

/* acc = fma(minimum, x_scale * float(sum), acc). x: those products of the first token. */
INLINE void add_minima(__m512 *acc, const float minimum[PANELS][PANEL_ROWS], const float *x, const size_t P,
                       const size_t T)
{
    __m512 m[PANELS];
    UNROLL
    for (size_t p = 0; p < P; p++) m[p] = _mm512_load_ps(minimum[p]);
    UNROLL
    for (size_t t = 0; t < T; t++) {
        __m512 xt = _mm512_set1_ps(x[t * MOST_RUNS]);
        UNROLL
        for (size_t p = 0; p < P; p++) acc[t * P + p] = _mm512_fmadd_ps(m[p], xt, acc[t * P + p]);
    }
}

/* x[t][run] = x_scale * float(sum) of T tokens from token t0 on; lanes run over runs. */
INLINE void scale_sums(float (*x)[MOST_RUNS], const mul_job *j, const chunk *c, size_t t0, const size_t run,
                       const size_t T)
{
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    for (size_t t = t0; t < t0 + T; t++, x++) {
        for (size_t r = 0; r < c->n_runs; r += 16) {
            size_t left = c->n_runs - r, first = c->first_run + r;
            __mmask16 part = left < 16 ? v_first(left) : (__mmask16)-1;
            __m512 sum, scale;
            if (run == 32) {
                sum = _mm512_cvtepi32_ps(_mm512_maskz_loadu_epi32(part, j->sum + t * j->n_blocks + first));
                scale = _mm512_maskz_loadu_ps(part, j->scale + t * j->n_blocks + first);
            } else {
                sum = _mm512_cvtepi32_ps(
                    _mm512_maskz_loadu_epi32(part, j->sum16 + t * j->n_blocks * 2 + first));
                __m256 half = _mm256_maskz_loadu_ps((__mmask8)(left < 16 ? (1u << left / 2) - 1 : 255),
                                                    j->scale + t * j->n_blocks + first / 2);
                scale = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(half));
            }
            _mm512_store_ps(*x + r, _mm512_mul_ps(scale, sum));
        }
    }
}

/* Results of T tokens so far: nothing in the first chunk. */
INLINE void load_acc(__m512 *acc, const float *out, size_t ldo, bool first, const size_t P, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++, out += ldo) {
        UNROLL
        for (size_t p = 0; p < P; p++)
            acc[t * P + p] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(out + p * PANEL_ROWS);
    }
}

INLINE void store_acc(float *out, size_t ldo, const __m512 *acc, const size_t P, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++, out += ldo) {
        UNROLL
        for (size_t p = 0; p < P; p++) _mm512_storeu_ps(out + p * PANEL_ROWS, acc[t * P + p]);
    }
}

/* The tiles of a run are on their way while the run before is added. */
INLINE void body_group(const mul_job *j, const chunk *c, size_t t, const size_t run, const bool has_min,
                       const size_t P, const size_t T)
{
    _Alignas(64) int32_t dots[2][PANELS * TOKENS * PANEL_ROWS];
    _Alignas(64) float x_sums[TOKENS][MOST_RUNS];
    const size_t n = c->n_runs, ldx = j->n_blocks, line_bytes = run * PANEL_ROWS, first = c->first_run;
    const size_t ldq = j->cols, ldo = j->ldo;
    const int8_t *q = j->q + t * ldq + first * run;
    float *out = j->out + t * ldo;
    const float *x[TOKENS / 4];
    __m512 acc[PANELS * TOKENS];
    UNROLL
    for (size_t i = 0; i < T / 4; i++)
        x[i] = j->scale + (t + i * 4) * ldx + (run > ACTS_BLOCK ? first : first * run / ACTS_BLOCK);
    if (has_min) scale_sums(x_sums, j, c, t, run, T);
    load_acc(acc, out, ldo, first == 0, P, T);
    tile_run(dots[0], c, 0, q, ldq, run, P, T);
    for (size_t r = 0; r < n; r++) {
        if (r + 1 < n)
            tile_run(dots[(r + 1) % 2], c, (r + 1) * line_bytes, q + (r + 1) * run, ldq, run, P, T);
        add_dots(acc, dots[r % 2], c->scale[r], x, ldx, P, T);
        if (has_min) add_minima(acc, c->minimum[r], x_sums[0] + r, P, T);
        UNROLL
        for (size_t i = 0; i < T / 4; i++) x[i] += run >= ACTS_BLOCK || r % 2 == 1;
    }
    store_acc(out, ldo, acc, P, T);
}

typedef void group_fn(const mul_job *j, const chunk *c, size_t t);

#define GROUP(name, run, has_min, panels, tokens)                                                     \
    TARGET static void group_##name##_##panels##x##tokens(const mul_job *j, const chunk *c, size_t t) \
    {                                                                                                 \
        body_group(j, c, t, run, has_min, panels, tokens);                                            \
    }
#define GROUPS(name, run, has_min)                                                                \
    GROUP(name, run, has_min, 1, 4)                                                               \
    GROUP(name, run, has_min, 1, 12)                                                              \
    GROUP(name, run, has_min, 2, 4)                                                               \
    GROUP(name, run, has_min, 2, 12)                                                              \
    static group_fn *const groups_##name[PANELS][2] = {{group_##name##_1x4, group_##name##_1x12}, \
                                                       {group_##name##_2x4, group_##name##_2x12}};
GROUPS(run32, 32, false)
GROUPS(run32_min, 32, true)
GROUPS(run16, 16, false)
GROUPS(run16_min, 16, true)
GROUPS(wide, j->group, false)

/* ---- a job ---- */

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Tokens from t on by the tiles of avx512vnni.c. */
static void by_vnni(const mul_job *j, dtype type, size_t t)
{
    const kernels *k = &kernels_avx512vnni;
    bool wide = wfmt_is_wide(&wfmt_table[type]);
    const tile *tile = j->n_tokens - t == 1 ? &k->one : wide ? &k->wide : &k->many;
    for (; t < j->n_tokens; t += tile->tokens) {
        for (size_t p = 0; p < j->n_panels; p += tile->panels) {
            mul_job part = mul_job_part(j, p, t, min_size(tile->panels, j->n_panels - p),
                                        min_size(tile->tokens, j->n_tokens - t));
            k->mul[type](&part);
        }
    }
}

typedef void unpack_fn(chunk *c, const mul_job *j, size_t p, size_t block, size_t n);

static group_fn *const *groups_of(const wfmt *f, size_t n_panels)
{
    if (f->run == 32) return (wfmt_has_min(f) ? groups_run32_min : groups_run32)[n_panels - 1];
    return (wfmt_has_min(f) ? groups_run16_min : groups_run16)[n_panels - 1];
}

static void mul_blocks(const mul_job *j, dtype type, unpack_fn *unpack)
{
    const wfmt *f = &wfmt_table[type];
    group_fn *const *groups = groups_of(f, j->n_panels);
    size_t t = 0, n_blocks = j->cols / f->block, most = CHUNK / f->block;
    chunk c;
    if (!in_tiles(type, j->n_tokens)) {
        by_vnni(j, type, 0);
        return;
    }
    for (size_t block = 0; block < n_blocks; block += most) {
        size_t n = min_size(most, n_blocks - block);
        c.first_run = block * f->block / f->run;
        c.n_runs = n * f->block / f->run;
        for (size_t p = 0; p < j->n_panels; p++) unpack(&c, j, p, block, n);
        for (t = 0; t + TOKENS <= j->n_tokens; t += TOKENS) groups[1](j, &c, t);
        for (; t + FEW <= j->n_tokens; t += FEW) groups[0](j, &c, t);
    }
    by_vnni(j, type, t);
}

#define FLOAT_MUL(name, kernel)                            \
    static void mul_##kernel##_avx512amx(const mul_job *j) \
    {                                                      \
        by_vnni(j, DT_##name, 0);                          \
    }
DTYPE_FLOATS(FLOAT_MUL)

#define BLOCK_MUL(name, kernel)                                                                      \
    TARGET static void unpack_##kernel(chunk *c, const mul_job *j, size_t p, size_t block, size_t n) \
    {                                                                                                \
        unpack_panel(c, j, &wfmt_table[DT_##name], p, block, n);                                     \
    }                                                                                                \
    static void mul_##kernel##_avx512amx(const mul_job *j)                                           \
    {                                                                                                \
        mul_blocks(j, DT_##name, unpack_##kernel);                                                   \
    }
DTYPE_BLOCKS(BLOCK_MUL)

/* ---- types of our own: types of as many bits share kernels ---- */

/* Groups [g, g + n) of panel p. */
INLINE void unpack_wide(chunk *c, const mul_job *j, const wfmt *f, size_t p, size_t g, size_t n)
{
    const size_t n_steps = j->group / ACTS_BLOCK;
    const uint8_t *s = (const uint8_t *)(j->scales + p * j->panel_scales + g * PANEL_ROWS);
    const uint8_t *w = j->w + p * j->panel_bytes + g * n_steps * panel_step_bytes(f);
    int8_t *to = c->values[p];
    for (size_t i = 0; i < n * n_steps; i++, w += panel_step_bytes(f), to += ACTS_BLOCK * PANEL_ROWS) {
        UNROLL
        for (size_t k = 0; k < 8; k++) _mm512_store_si512(to + k * 64, values(f, w, k));
    }
    for (size_t i = 0; i < n; i++) _mm512_store_ps(c->scale[i][p], halves(s + i * PANEL_ROWS * 2));
}

/* type: any of so many bits; how wide a group is says the job. */
INLINE void mul_wide(const mul_job *j, const dtype type)
{
    size_t t = 0, most = CHUNK / j->group;
    chunk c;
    if (j->n_tokens < FEW) {
        by_vnni(j, type, 0);
        return;
    }
    for (size_t g = 0; g < j->n_blocks; g += most) {
        c.first_run = g;
        c.n_runs = min_size(most, j->n_blocks - g);
        for (size_t p = 0; p < j->n_panels; p++) unpack_wide(&c, j, &wfmt_table[type], p, g, c.n_runs);
        for (t = 0; t + TOKENS <= j->n_tokens; t += TOKENS) groups_wide[j->n_panels - 1][1](j, &c, t);
        for (; t + FEW <= j->n_tokens; t += FEW) groups_wide[j->n_panels - 1][0](j, &c, t);
    }
    by_vnni(j, type, t);
}

TARGET static void mul_s8_avx512amx(const mul_job *j)
{
    mul_wide(j, DT_S8_128);
}

TARGET static void mul_s4_avx512amx(const mul_job *j)
{
    mul_wide(j, DT_S4_128);
}

static void quantise_avx512amx(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum,
                               int32_t *sum16)
{
    kernels_avx512vnni.quantise(x, n_blocks, q, scale, sum, sum16);
}

static void quantise_wide_avx512amx(const float *x, size_t n_groups, size_t group, int8_t *q, float *scale,
                                    int32_t *sum)
{
    kernels_avx512vnni.quantise_wide(x, n_groups, group, q, scale, sum);
}

/* ---- the proof ---- */

/* The same job, of both groups and with any bytes as codes, by the tiles and without them. */
static bool proves(dtype t)
{
    enum { N_TOKENS = TOKENS + FEW, COLS = 256, N = N_TOKENS * COLS, PANEL = COLS * PANEL_ROWS };
    static _Alignas(64) uint8_t w[PANELS * PANEL];
    static _Alignas(64) uint16_t scales[PANELS * COLS * 2];
    static int8_t q[N];
    static int32_t sum[N / ACTS_BLOCK], sum16[N / 16];
    static float x_scale[N / ACTS_BLOCK], x_sum[N / ACTS_BLOCK], out[2][N_TOKENS * PANELS * PANEL_ROWS];
    for (size_t i = 0; i < sizeof w; i++) w[i] = (uint8_t)(i * 167 >> 3);
    for (size_t i = 0; i < sizeof scales / 2; i++) scales[i] = 0x3C00; /* 1 */
    for (size_t i = 0; i < N / ACTS_BLOCK; i++) {
        x_scale[i] = 0.5f + (float)i;
        sum[i] = 0;
    }
    for (size_t i = 0; i < N / 16; i++) sum16[i] = 0;
    for (size_t i = 0; i < N; i++) {
        q[i] = (int8_t)((int)(i * 89 % 255) - 127);
        sum[i / ACTS_BLOCK] += q[i];
        sum16[i / 16] += q[i];
    }
    for (size_t i = 0; i < N / ACTS_BLOCK; i++) x_sum[i] = x_scale[i] * (float)sum[i];
    mul_job j = {.w = w,
                 .panel_bytes = PANEL,
                 .scales = scales,
                 .panel_scales = COLS * 2,
                 .n_panels = PANELS,
                 .n_tokens = N_TOKENS,
                 .cols = COLS,
                 .group = ACTS_BLOCK,
                 .n_blocks = COLS / ACTS_BLOCK,
                 .x = x_scale,
                 .q = q,
                 .scale = x_scale,
                 .sum = sum,
                 .sum16 = sum16,
                 .x_sum = x_sum,
                 .out = out[0],
                 .ldo = PANELS * PANEL_ROWS};
    by_vnni(&j, t, 0);
    j.out = out[1];
    avx512amx_enter(t, N_TOKENS);
    kernels_avx512amx.mul[t](&j);
    avx512amx_leave(t, N_TOKENS);
    return memcmp(out[0], out[1], sizeof out[0]) == 0;
}

/* Both configurations, and minima. */
bool probe_avx512amx(void)
{
    return probe_avx512vnni() && proves(DT_Q8_0) && proves(DT_Q6_K) && proves(DT_Q4_K);
}

const kernels kernels_avx512amx = {
#define ROW(name, kernel) [DT_##name] = mul_##kernel##_avx512amx,
    .one = {TILE_ONE_PANELS, 1},
    .many = {PANELS, MOST_TOKENS},
    .wide = {PANELS, MOST_TOKENS},
    .enter = avx512amx_enter,
    .leave = avx512amx_leave,
    .mul = {DTYPE_TABLE(ROW)},
#undef ROW
    .quantise = quantise_avx512amx,
    .quantise_wide = quantise_wide_avx512amx,
    .vec = &vec_avx512vnni,
};
#else
typedef int empty_avx512amx; /* not an x86 machine */
#endif
