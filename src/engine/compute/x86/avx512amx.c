/* x86/avx512amx.c: products of several tokens with the tile unit (AMX int8), the rest as avx512vnni.c.
 *
 * The contract adds float(dot) of every run to a float, so what the unit has multiplied passes through memory into
 * AVX-512 registers run by run: three instructions (convert, scale times scale, fma) for sixteen results, in 1.5
 * cycles on two ports. A product of whole tiles takes 16 cycles, and its sums are stored in 16. What is loaded into
 * tiles costs most where the core's other thread is busy: a tile of activations or weights then takes as long as a
 * product, and they do not overlap. So four tiles of weights stay while all tokens of the job pass, sixteen at a time:
 *
 *     for each step of columns:       four tiles of weights: signed values, a float scale for each run and row
 *         for sixteen tokens:         their activations, a tile of 64 columns (slabs); C = A · B, four times
 *             for the sixteen before: acc = fma(float(C), scale * x_scale, acc)
 *
 * All tiles are whole, so that one configuration serves all types. Of a run of 32 or 16 columns the tile's other
 * rows are zeros: 16 rows of activations take the unit 16 cycles however short their rows are. */
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
    TOKENS = 16,       /* of a tile */
    MOST_TOKENS = 128, /* in a call, so that unpacking costs little */
    TILE_BYTES = 1024,
    LINE = 64,     /* bytes: four columns of sixteen rows of weights; 64 columns of a token */
    MOST_SUMS = 4, /* dots of a step */
    TILE_DOTS = TOKENS * PANEL_ROWS,
    CODES_AHEAD = 4096, /* bytes of a panel that are asked for before they are unpacked */
    MOST_LINES = 64,    /* of a step's weights */
};

/* ---- the tiles' shapes ---- */

typedef struct tile_config {
    uint8_t palette, start_row, zero[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* Tiles 0 to 3 are weights, 4 and 5 activations, 6 and 7 (and 5) dots. */
static const tile_config whole_tiles = {
    .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

/* Which products take tiles, measured (bench/runs/2026-11-30-amx.md): how many tokens are loaded at least, how many of
 * them a job has, and how many behind its last sixteen are worth a tile. Tiles lower the core's clock by a tenth, for
 * everything that follows, too. With wide groups products of 16 tokens gain more than that. With runs of 32 a whole
 * encoder of one text of 32 or 128 tokens was slower in most rounds, and prompts of 512 (chunks of 256) were faster.
 * Runs of 16 would use a quarter of a tile, and took 0.8 to 1.05 of VNNI's speed. */
typedef struct choice {
    size_t load, least, rest;
} choice;

static choice choice_of(dtype t)
{
    static const choice never = {SIZE_MAX, SIZE_MAX, SIZE_MAX}, run32 = {192, 16, 8}, wide = {16, 16, 4};
    const wfmt *f = &wfmt_table[t];
    return f->run < 32 ? never : wfmt_is_wide(f) ? wide : run32;
}

static bool slabs_wanted(dtype t, size_t n_tokens)
{
    return n_tokens >= choice_of(t).load;
}

/* What a member multiplies may be a part of the load: it is ready for tiles before its jobs decide. */
static bool may_use_tiles(dtype t, size_t n_tokens)
{
    return n_tokens >= choice_of(t).least;
}

static bool in_tiles(dtype t, const mul_job *j)
{
    return j->n_tokens >= choice_of(t).least && slabs_wanted(t, j->slabs.n_tokens);
}

static void avx512amx_enter(dtype t, size_t n_tokens)
{
    if (may_use_tiles(t, n_tokens)) tile_configure(&whole_tiles);
}

static void avx512amx_leave(dtype t, size_t n_tokens)
{
    if (may_use_tiles(t, n_tokens)) tile_release();
}

/* ---- steps: columns and panels whose weights are four tiles ---- */

/* All that follows from how wide a run is; `run` is a constant. */

INLINE size_t step_cols(const size_t run)
{
    return run < 64 ? 64 : run == 64 ? 128 : run;
}

/* Runs of a step, each of which has a dot of its own in every panel. */
INLINE size_t step_runs(const size_t run)
{
    return run == 96 ? 1 : step_cols(run) / run;
}

/* Where group k (0..7) of the i-th 32 columns of a step and panel lies; and tile b. Runs of 32 of a panel have eight
 * lines of zeros between them, which are the other half of both tiles. Groups of 96 begin in the middle of a slab where
 * they are odd, and have eight lines of zeros there or at their end. */
INLINE size_t code_line(const size_t run, size_t p, size_t i, size_t k, size_t odd)
{
    if (run == 32) return 24 * p + 16 * i + k;
    return 32 * p + (run == 96 ? 8 * odd : 0) + 8 * i + k;
}

INLINE size_t tile_line(const size_t run, const size_t b)
{
    return run == 32 ? b / 2 * 24 + b % 2 * 8 : 16 * b;
}

/* A step's weights. Of the dot of panel p and run r: scale[p * step_runs + r]. */
typedef struct step {
    _Alignas(64) int8_t values[MOST_LINES * LINE];
    float scale[MOST_SUMS][PANEL_ROWS], minimum[MOST_SUMS][PANEL_ROWS];
} step;

/* Group k of 32 columns: sixteen rows, four signed values each. */
INLINE __m512i values(const wfmt *f, const uint8_t *codes_of_32, const size_t k)
{
    __m512i codes = group(f, codes_of_32, k);
    if (f->zero == 128) return _mm512_xor_si512(codes, _mm512_set1_epi8(-128));
    return f->zero ? _mm512_sub_epi8(codes, _mm512_set1_epi8((char)f->zero)) : codes;
}

/* A step is unpacked piece by piece: 32 columns of a panel. */
INLINE size_t step_pieces(const size_t run, size_t n_panels)
{
    return n_panels * (step_cols(run) / ACTS_BLOCK);
}

/* Pieces [from, end) of step i: its codes. */
INLINE void unpack_codes(step *to, const mul_job *j, const wfmt *f, size_t i, size_t from, size_t end,
                         const size_t run)
{
    const size_t n = step_cols(run) / ACTS_BLOCK;
    for (; from < end; from++) {
        size_t p = from / n, s = from % n, at = i * n + s;
        if (at * ACTS_BLOCK >= j->cols) continue;
        const uint8_t *w = j->w + p * j->panel_bytes + at * panel_step_bytes(f);
        UNROLL
        for (size_t k = 0; k < f->bits; k++) __builtin_prefetch(w + CODES_AHEAD + k * LINE);
        UNROLL
        for (size_t k = 0; k < 8; k++)
            _mm512_store_si512(to->values + code_line(run, p, s, k, i % 2) * LINE, values(f, w, k));
    }
}

/* Whether the first piece of panel p is one of these. */
INLINE bool piece_is_first(const size_t run, size_t p, size_t from, size_t end)
{
    size_t first = p * (step_cols(run) / ACTS_BLOCK);
    return from <= first && first < end;
}

/* And the scales and minima of panel p, of a block type and of groups of our own types. */
INLINE void unpack_block_scales(step *to, const mul_job *j, const wfmt *f, size_t i, size_t p)
{
    const size_t run = f->run, n_runs = step_runs(run);
    const uint8_t *panel = (const uint8_t *)(j->scales + p * j->panel_scales);
    for (size_t r = 0; r < n_runs; r++) {
        size_t first = (i * n_runs + r) * run;
        if (first >= j->cols) break;
        const uint8_t *s = panel + first / f->block * panel_scale_bytes(f);
        size_t at = first % f->block / run;
        _mm512_store_ps(to->scale[p * n_runs + r], run_scale(f, s, at, block_d(f, s)));
        if (wfmt_has_min(f)) _mm512_store_ps(to->minimum[p * n_runs + r], run_min(f, s, at, block_m(f, s)));
    }
}

INLINE void unpack_group_scales(step *to, const mul_job *j, size_t i, size_t p, const size_t run)
{
    const size_t n_runs = step_runs(run);
    const uint8_t *s = (const uint8_t *)(j->scales + p * j->panel_scales);
    for (size_t r = 0; r < n_runs && i * n_runs + r < j->n_blocks; r++)
        _mm512_store_ps(to->scale[p * n_runs + r], halves(s + (i * n_runs + r) * PANEL_ROWS * 2));
}

/* f: any of our own types of as many bits. */
INLINE void unpack_groups(step *to, const mul_job *j, const wfmt *f, size_t i, size_t from, size_t end,
                          const size_t run)
{
    unpack_codes(to, j, f, i, from, end, run);
    for (size_t p = 0; p < j->n_panels; p++)
        if (piece_is_first(run, p, from, end)) unpack_group_scales(to, j, i, p, run);
}

/* ---- sixteen tokens times a step ---- */

#define PARTS 4 /* of sixteen tokens: a product each, and a quarter of the tokens before to be added */

#define START_DOT(c, a, b) \
    do {                   \
        tile_zero(c);      \
        tile_dot(c, a, b); \
    } while (0)
#define STORE_DOT(c, i) tile_store(c, dots + (i)*TILE_DOTS, LINE)

/* Part k of what makes dots[panel][run][token][16]. q: the tokens' lines in the step's first slab, the next slab
 * slab_bytes behind. */
INLINE void tile_part(int32_t *dots, const int8_t *q, size_t slab_bytes, const size_t run, const size_t P,
                      const size_t k)
{
    const bool two = P > 1;
    if (k == 0) tile_load(4, q, LINE);
    if (run < 64) {
        if (k == 0) START_DOT(6, 4, 0);
        if (k == 1) START_DOT(7, 4, 1);
        if (k == 1) STORE_DOT(6, 0);
        if (k == 2 && two) START_DOT(5, 4, 2);
        if (k == 2) STORE_DOT(7, 1);
        if (k == 3 && two) {
            START_DOT(6, 4, 3);
            STORE_DOT(5, 2);
            STORE_DOT(6, 3);
        }
    } else if (run == 64) {
        if (k == 0) START_DOT(6, 4, 0);
        if (k == 1) {
            tile_load(5, q + slab_bytes, LINE);
            START_DOT(7, 5, 1);
            STORE_DOT(6, 0);
        }
        if (k == 2 && two) START_DOT(6, 4, 2);
        if (k == 2) STORE_DOT(7, 1);
        if (k == 3 && two) {
            START_DOT(7, 5, 3);
            STORE_DOT(6, 2);
            STORE_DOT(7, 3);
        }
    } else if (run == 256) {
        if (k == 0) START_DOT(6, 4, 0);
        if (k == 1) {
            tile_load(5, q + slab_bytes, LINE);
            tile_dot(6, 5, 1);
        }
        if (k == 2) {
            tile_load(4, q + 2 * slab_bytes, LINE);
            tile_dot(6, 4, 2);
        }
        if (k == 3) {
            tile_load(5, q + 3 * slab_bytes, LINE);
            tile_dot(6, 5, 3);
            STORE_DOT(6, 0);
        }
    } else {
        if (k == 0) START_DOT(6, 4, 0);
        if (k == 1 && two) START_DOT(7, 4, 2);
        if (k == 2) {
            tile_load(5, q + slab_bytes, LINE);
            tile_dot(6, 5, 1);
        }
        if (k == 3) {
            if (two) tile_dot(7, 5, 3);
            STORE_DOT(6, 0);
            if (two) STORE_DOT(7, 1);
        }
    }
}

/* Tokens whose dots are made, and wait to be added. */
typedef struct waiting {
    const int32_t *dots;
    const step *of;
    size_t i, t, n; /* the step's number; tokens [t, t + n) of the job */
} waiting;

/* What it takes to add them: scales of P panels and R runs, and where those of the tokens are. */
typedef struct adding {
    __m512 scale[MOST_SUMS], minimum[MOST_SUMS], bias[PANELS];
    const float *x[MOST_SUMS], *sums[MOST_SUMS];
    __mmask16 before, has_bias; /* nothing in front of the first step, and where there is no bias */
    bool add;
} adding;

INLINE void adding_init(adding *s, const mul_job *j, const waiting *a, const size_t run, const bool has_min,
                        const size_t P, const size_t R, const bool last)
{
    const size_t n_runs = step_runs(run), n_tokens = j->slabs.n_tokens;
    s->before = a->i > 0 ? 0xFFFF : 0;
    s->has_bias = last && j->bias ? 0xFFFF : 0;
    s->add = j->add;
    UNROLL
    for (size_t r = 0; r < R; r++) {
        size_t at = a->i * n_runs + r, t = j->slab_token + a->t;
        s->x[r] = j->slabs.scale + at * n_tokens + t;
        s->sums[r] = j->slabs.sums + at * n_tokens + t;
        UNROLL
        for (size_t p = 0; p < P; p++) {
            s->scale[p * R + r] = _mm512_load_ps(a->of->scale[p * n_runs + r]);
            if (has_min) s->minimum[p * R + r] = _mm512_load_ps(a->of->minimum[p * n_runs + r]);
        }
    }
    UNROLL
    for (size_t p = 0; p < P; p++) {
        const float *bias = last && j->bias ? j->bias : a->of->scale[0]; /* read masked */
        s->bias[p] = _mm512_maskz_loadu_ps(s->has_bias, bias + (s->has_bias ? p * PANEL_ROWS : 0));
    }
}

/* acc[n][P][16], of tokens t and on: fma(dot, scale * x_scale, acc), then fma(minimum, x_scale * float(sum), acc).
 * In the last step the results go to `out`. */
INLINE void add_tokens(const adding *s, float *acc, const int32_t *dots, float *out, size_t ldo, size_t t,
                       const size_t n, const size_t run, const bool has_min, const size_t P, const size_t R,
                       const bool last)
{
    UNROLL
    for (size_t i = 0; i < n; i++, t++, out += ldo) {
        UNROLL
        for (size_t p = 0; p < P; p++) {
            float *a = acc + (t * P + p) * PANEL_ROWS;
            __m512 v = _mm512_maskz_load_ps(s->before, a);
            UNROLL
            for (size_t r = 0; r < R; r++) {
                const int32_t *d = dots + (p * step_runs(run) + r) * TILE_DOTS + t * PANEL_ROWS;
                __m512 by = _mm512_mul_ps(s->scale[p * R + r], _mm512_set1_ps(s->x[r][t]));
                v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(d)), by, v);
                if (has_min) v = _mm512_fmadd_ps(s->minimum[p * R + r], _mm512_set1_ps(s->sums[r][t]), v);
            }
            if (!last) {
                _mm512_store_ps(a, v);
                continue;
            }
            v = _mm512_mask_add_ps(v, s->has_bias, v, s->bias[p]);
            if (s->add) v = _mm512_add_ps(_mm512_loadu_ps(out + p * PANEL_ROWS), v);
            _mm512_storeu_ps(out + p * PANEL_ROWS, v);
        }
    }
}

/* The next dots are made (of q: tile_part), and those that wait are added, a quarter of the tokens after each product:
 * the processor looks ahead less far than one of the two is long. */
INLINE void body_tokens(const mul_job *j, float *acc, const waiting *a, int32_t *next, const int8_t *q,
                        size_t slab_bytes, const size_t run, const bool has_min, const size_t P,
                        const size_t R, const bool last)
{
    const size_t quarter = TOKENS / PARTS, ldo = j->ldo;
    adding s;
    adding_init(&s, j, a, run, has_min, P, R, last);
    acc += a->t * P * PANEL_ROWS;
    float *out = j->out + a->t * ldo;
    UNROLL
    for (size_t k = 0; k < PARTS; k++) {
        size_t t = k * quarter;
        if (q) tile_part(next, q, slab_bytes, run, P, k);
        if (t + quarter <= a->n)
            add_tokens(&s, acc, a->dots, out + t * ldo, ldo, t, quarter, run, has_min, P, R, last);
        else
            for (; t < a->n; t++)
                add_tokens(&s, acc, a->dots, out + t * ldo, ldo, t, 1, run, has_min, P, R, last);
    }
}

/* A last step may have half of the runs. q: NULL when there is nothing more to multiply. */
INLINE void add_dots(const mul_job *j, float *acc, const waiting *a, int32_t *next, const int8_t *q,
                     size_t slab_bytes, const size_t run, const bool has_min, const size_t P)
{
    const size_t n_runs = step_runs(run);
    size_t behind = (a->i + 1) * step_cols(run);
    if (behind < j->cols)
        body_tokens(j, acc, a, next, q, slab_bytes, run, has_min, P, n_runs, false);
    else if (n_runs > 1 && behind > j->cols)
        body_tokens(j, acc, a, next, q, slab_bytes, run, has_min, P, n_runs / 2, true);
    else
        body_tokens(j, acc, a, next, q, slab_bytes, run, has_min, P, n_runs, true);
}

/* ---- a job ---- */

/* Pieces [from, end) of step i. */
typedef void unpack_fn(step *to, const mul_job *j, size_t i, size_t from, size_t end);

/* Lines of zeros, which unpacking leaves alone. */
INLINE void clear_zeros(step s[2], const size_t run, const size_t P)
{
    for (size_t p = 0; p < P; p++) {
        for (size_t odd = 0; odd < 2; odd++) {
            if (run == 32) memset(s[odd].values + (24 * p + 8) * LINE, 0, 8 * LINE);
            if (run == 96) memset(s[odd].values + (32 * p + (odd ? 0 : 24)) * LINE, 0, 8 * LINE);
        }
    }
}

INLINE void load_weights(const step *s, const size_t run, const size_t P)
{
    tile_load(0, s->values + tile_line(run, 0) * LINE, LINE);
    tile_load(1, s->values + tile_line(run, 1) * LINE, LINE);
    if (P == 1 && run != 256) return;
    tile_load(2, s->values + tile_line(run, 2) * LINE, LINE);
    tile_load(3, s->values + tile_line(run, 3) * LINE, LINE);
}

/* A step is unpacked while the one before is multiplied, some pieces behind each sixteen tokens. */
INLINE void multiply(const mul_job *j, unpack_fn *unpack, const size_t run, const bool has_min,
                     const size_t P)
{
    const size_t n_steps = (j->cols + step_cols(run) - 1) / step_cols(run), pieces = step_pieces(run, P);
    const size_t slab_bytes = j->slabs.n_tokens * SLAB_COLS, last_slab = (j->cols - 1) / SLAB_COLS;
    const size_t n_groups = (j->n_tokens + TOKENS - 1) / TOKENS;
    _Alignas(64) int32_t dots[2][MOST_SUMS * TILE_DOTS];
    _Alignas(64) float acc[MOST_TOKENS * P * PANEL_ROWS];
    step s[2];
    waiting late = {.of = &s[0]}; /* nothing */
    clear_zeros(s, run, P);
    unpack(&s[0], j, 0, 0, pieces);
    for (size_t i = 0, n = 0; i < n_steps; i++) {
        size_t slab = i * step_cols(run) / SLAB_COLS, next_slab = slab < last_slab ? slab_bytes : 0, done = 0;
        const int8_t *q = j->slabs.q + slab * slab_bytes + j->slab_token * SLAB_COLS;
        load_weights(&s[i % 2], run, P);
        for (size_t g = 0; g < n_groups; g++, n++, q += TILE_BYTES) {
            size_t t = g * TOKENS, end = pieces * (g + 1) / n_groups;
            waiting now = {.dots = dots[n % 2], .of = &s[i % 2], .i = i, .t = t, .n = j->n_tokens - t};
            if (now.n > TOKENS) now.n = TOKENS;
            add_dots(j, acc, &late, dots[n % 2], q, next_slab, run, has_min, P);
            if (i + 1 < n_steps) unpack(&s[(i + 1) % 2], j, i + 1, done, end);
            late = now;
            done = end;
        }
    }
    add_dots(j, acc, &late, NULL, NULL, 0, run, has_min, P);
}

typedef void multiply_fn(const mul_job *j, unpack_fn *unpack);

#define MULTIPLY(name, run, has_min, panels)                                \
    TARGET static void multiply_##name(const mul_job *j, unpack_fn *unpack) \
    {                                                                       \
        multiply(j, unpack, run, has_min, panels);                          \
    }
MULTIPLY(run32_1, 32, false, 1)
MULTIPLY(run32_2, 32, false, 2)
MULTIPLY(run32_min_1, 32, true, 1)
MULTIPLY(run32_min_2, 32, true, 2)
MULTIPLY(run64_1, 64, false, 1)
MULTIPLY(run64_2, 64, false, 2)
MULTIPLY(run96_1, 96, false, 1)
MULTIPLY(run96_2, 96, false, 2)
MULTIPLY(run128_1, 128, false, 1)
MULTIPLY(run128_2, 128, false, 2)
MULTIPLY(run256, 256, false, 1)

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* All tokens by the tiles of avx512vnni.c. */
static void by_vnni(const mul_job *j, dtype type)
{
    const kernels *k = &kernels_avx512vnni;
    bool wide = wfmt_is_wide(&wfmt_table[type]);
    const tile *tile = j->n_tokens == 1 ? &k->one : wide ? &k->wide : &k->many;
    for (size_t t = 0; t < j->n_tokens; t += tile->tokens) {
        for (size_t p = 0; p < j->n_panels; p += tile->panels) {
            mul_job part = mul_job_part(j, p, t, min_size(tile->panels, j->n_panels - p),
                                        min_size(tile->tokens, j->n_tokens - t));
            k->mul[type](&part);
        }
    }
}

/* Products of one panel, and of two at once (NULL: one after the other). */
typedef struct tiles {
    multiply_fn *one, *two;
} tiles;

static void by_tiles(const mul_job *j, unpack_fn *unpack, tiles by)
{
    if (by.two && j->n_panels == PANELS) {
        by.two(j, unpack);
        return;
    }
    for (size_t p = 0; p < j->n_panels; p++) {
        mul_job part = mul_job_part(j, p, 0, 1, j->n_tokens);
        by.one(&part, unpack);
    }
}

/* Whole tiles of tokens, and the rest where it is faster. */
static void multiply_job(const mul_job *j, dtype type, unpack_fn *unpack, tiles by)
{
    size_t rest = j->n_tokens % TOKENS;
    if (!in_tiles(type, j)) {
        by_vnni(j, type);
    } else if (rest == 0 || rest >= choice_of(type).rest) {
        by_tiles(j, unpack, by);
    } else {
        mul_job whole = mul_job_part(j, 0, 0, j->n_panels, j->n_tokens - rest);
        mul_job few = mul_job_part(j, 0, j->n_tokens - rest, j->n_panels, rest);
        by_tiles(&whole, unpack, by);
        by_vnni(&few, type);
    }
}

#define FLOAT_MUL(name, kernel)                            \
    static void mul_##kernel##_avx512amx(const mul_job *j) \
    {                                                      \
        by_vnni(j, DT_##name);                             \
    }
DTYPE_FLOATS(FLOAT_MUL)

/* Runs of 16 never come to tiles. */
#define BLOCK_MUL(name, kernel)                                                                          \
    TARGET static void unpack_##kernel(step *to, const mul_job *j, size_t i, size_t from, size_t end)    \
    {                                                                                                    \
        const wfmt *f = &wfmt_table[DT_##name];                                                          \
        if (f->run < 32) return;                                                                         \
        unpack_codes(to, j, f, i, from, end, 32);                                                        \
        for (size_t p = 0; p < j->n_panels; p++)                                                         \
            if (piece_is_first(32, p, from, end)) unpack_block_scales(to, j, f, i, p);                   \
    }                                                                                                    \
    static void mul_##kernel##_avx512amx(const mul_job *j)                                               \
    {                                                                                                    \
        static const tiles plain = {multiply_run32_1, multiply_run32_2},                                 \
                           min = {multiply_run32_min_1, multiply_run32_min_2};                           \
        multiply_job(j, DT_##name, unpack_##kernel, wfmt_has_min(&wfmt_table[DT_##name]) ? min : plain); \
    }
DTYPE_BLOCKS(BLOCK_MUL)

/* Types of our own: types of as many bits share kernels, and how wide a group is says the job. */

static tiles wide_tiles(size_t group)
{
    switch (group) {
    case 64: return (tiles){multiply_run64_1, multiply_run64_2};
    case 96: return (tiles){multiply_run96_1, multiply_run96_2};
    case 128: return (tiles){multiply_run128_1, multiply_run128_2};
    default: return (tiles){multiply_run256, NULL};
    }
}

#define WIDE_MUL(name, kernel)                                                                        \
    TARGET static void unpack_##kernel(step *to, const mul_job *j, size_t i, size_t from, size_t end) \
    {                                                                                                 \
        const wfmt *f = &wfmt_table[DT_##name];                                                       \
        switch (j->group) {                                                                           \
        case 64: unpack_groups(to, j, f, i, from, end, 64); break;                                    \
        case 96: unpack_groups(to, j, f, i, from, end, 96); break;                                    \
        case 128: unpack_groups(to, j, f, i, from, end, 128); break;                                  \
        default: unpack_groups(to, j, f, i, from, end, 256); break;                                   \
        }                                                                                             \
    }                                                                                                 \
    static void mul_##kernel##_avx512amx(const mul_job *j)                                            \
    {                                                                                                 \
        multiply_job(j, DT_##name, unpack_##kernel, wide_tiles(j->group));                            \
    }
WIDE_MUL(S8_128, s8)
WIDE_MUL(S4_128, s4)

/* ---- activations ---- */

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

/* Slab by slab, since lines of a token lie pages apart. */
TARGET static void slab_lines(const acts_loaded *a, size_t t, size_t n)
{
    const int8_t *q = a->q + t * a->cols;
    int8_t *to = a->slabs.q + t * SLAB_COLS;
    for (size_t c = 0; c < a->cols; c += SLAB_COLS, q += SLAB_COLS, to += a->n_tokens * SLAB_COLS) {
        __mmask64 part = a->cols - c < SLAB_COLS ? 0xFFFFFFFF : ~(__mmask64)0; /* 32 columns or 64 */
        for (size_t i = 0; i < n; i++)
            _mm512_store_si512(to + i * SLAB_COLS, _mm512_maskz_loadu_epi8(part, q + i * a->cols));
    }
}

static void slab_scales(const acts_loaded *a, size_t t, size_t n)
{
    const size_t n_blocks = a->cols / a->group, n_tokens = a->n_tokens;
    const bool has_min = wfmt_has_min(&wfmt_table[a->type]);
    for (size_t b = 0; b < n_blocks; b++) {
        for (size_t i = t; i < t + n; i++) {
            a->slabs.scale[b * n_tokens + i] = a->scale[i * n_blocks + b];
            if (has_min) a->slabs.sums[b * n_tokens + i] = a->x_sum[i * n_blocks + b];
        }
    }
}

static void make_slabs(const acts_loaded *a, size_t t, size_t end)
{
    for (size_t n; t < end; t += n) {
        n = min_size(TOKENS, end - t);
        slab_lines(a, t, n);
        slab_scales(a, t, n);
    }
}

/* ---- the proof ---- */

/* The same job, of both groups and with any bytes as codes, by the tiles and without them. */
static bool proves(dtype t)
{
    enum { N_TOKENS = TOKENS + 8, LOADED = 192, COLS = 256, N = N_TOKENS * COLS, PANEL = COLS * PANEL_ROWS };
    static _Alignas(64) int8_t slab[LOADED * COLS];
    static float slab_scale[LOADED * COLS / ACTS_BLOCK], slab_sums[LOADED * COLS / ACTS_BLOCK];
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
                 .slabs = {slab, slab_scale, slab_sums, LOADED},
                 .out = out[0],
                 .ldo = PANELS * PANEL_ROWS};
    acts_loaded a = {.type = t,
                     .n_tokens = LOADED,
                     .cols = COLS,
                     .group = ACTS_BLOCK,
                     .q = q,
                     .scale = x_scale,
                     .sum = sum,
                     .sum16 = sum16,
                     .x_sum = x_sum,
                     .slabs = j.slabs};
    make_slabs(&a, 0, N_TOKENS);
    by_vnni(&j, t);
    j.out = out[1];
    avx512amx_enter(t, N_TOKENS);
    kernels_avx512amx.mul[t](&j);
    avx512amx_leave(t, N_TOKENS);
    return memcmp(out[0], out[1], sizeof out[0]) == 0;
}

/* Without minima and with them. */
bool probe_avx512amx(void)
{
    return probe_avx512vnni() && proves(DT_Q8_0) && proves(DT_Q4_K);
}

const kernels kernels_avx512amx = {
#define ROW(name, kernel) [DT_##name] = mul_##kernel##_avx512amx,
    .one = {TILE_ONE_PANELS, 1},
    .many = {PANELS, MOST_TOKENS,
             TILE_MANY_TOKENS}, /* shared out as for avx512vnni.c, which takes most of them */
    .wide = {PANELS, MOST_TOKENS},
    .enter = avx512amx_enter,
    .leave = avx512amx_leave,
    .mul = {DTYPE_TABLE(ROW)},
#undef ROW
    .ends = true,
    .quantise = quantise_avx512amx,
    .quantise_wide = quantise_wide_avx512amx,
    .form = {slabs_wanted, make_slabs},
    .vec = &vec_avx512vnni,
};
#else
typedef int empty_avx512amx; /* not an x86 machine */
#endif
