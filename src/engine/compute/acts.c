/* acts.c: activations, quantised once, and their product with a packed matrix. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/progress.h"
#include "compute/formats.h"
#include "compute/wmat.h"

#define LINE_BYTES    64
#define AHEAD_MOST    (256 << 10) /* bytes of panels asked for: no more than L2 keeps beside what is at work */
#define SHARE_TOKENS  16          /* see tile.share */
#define SHARE_PANELS  2           /* panels that a member takes at a time, at most */
#define BEHIND_BLOCKS 16 /* read, but not used, behind the last slab: lines of a whole tile of tokens */

struct acts {
    size_t row_blocks; /* room of a token */
    bool is_window;    /* its memory is another's */
    /* of the load that is current; written by member 0 before the barrier */
    bool quantised;
    size_t n_tokens, cols, ldx, group;
    const float *x; /* float form: the caller's */
    int8_t *q;      /* quantised form: [n_tokens][cols], and a scale and sums for each block */
    float *scale;
    int32_t *sum, *sum16; /* of a block, and of its halves */
    float *x_sum;         /* scale * sum; types without minima have none */
    int16_t *words;       /* [n_tokens][cols], and a number for each block: acts_form */
    int32_t *words_start;
};

int acts_new(acts **ret, size_t max_tokens, size_t max_cols, shoal_err *err)
{
    size_t n_blocks, row_blocks = max_cols / ACTS_BLOCK + 1;
    if (size_mul(row_blocks, max_tokens, &n_blocks)) return err_nomem(err);
    acts *a = calloc(1, sizeof *a);
    if (!a) return err_nomem(err);
    a->row_blocks = row_blocks;
    a->q = mem_calloc64(n_blocks, ACTS_BLOCK);
    a->scale = mem_calloc64(n_blocks, sizeof *a->scale);
    a->sum = mem_calloc64(n_blocks, sizeof *a->sum);
    a->sum16 = mem_calloc64(n_blocks, 2 * sizeof *a->sum16);
    a->x_sum = mem_calloc64(n_blocks, sizeof *a->x_sum);
    a->words = mem_calloc64(n_blocks + BEHIND_BLOCKS, ACTS_BLOCK * sizeof *a->words);
    a->words_start = mem_calloc64(n_blocks, sizeof *a->words_start);
    if (!a->q || !a->scale || !a->sum || !a->sum16 || !a->x_sum || !a->words || !a->words_start) {
        acts_free(a);
        return err_nomem(err);
    }
    *ret = a;
    return 0;
}

void acts_free(acts *a)
{
    if (!a) return;
    if (!a->is_window) {
        free(a->q);
        free(a->scale);
        free(a->sum);
        free(a->sum16);
        free(a->x_sum);
        free(a->words);
        free(a->words_start);
    }
    free(a);
}

int acts_new_window(acts **ret, shoal_err *err)
{
    acts *a = calloc(1, sizeof *a);
    if (!a) return err_nomem(err);
    a->is_window = true;
    *ret = a;
    return 0;
}

void acts_aim(acts *window, const acts *of, size_t first)
{
    size_t at = first * of->row_blocks;
    assert(window->is_window);
    *window = (acts){.row_blocks = of->row_blocks,
                     .is_window = true,
                     .q = of->q + at * ACTS_BLOCK,
                     .scale = of->scale + at,
                     .sum = of->sum + at,
                     .sum16 = of->sum16 + 2 * at,
                     .x_sum = of->x_sum + at,
                     .words = of->words + at * ACTS_BLOCK,
                     .words_start = of->words_start + at};
}

/* Activations that share a scale in front of weights of type t. */
static size_t group_of(dtype t)
{
    const wfmt *f = &wfmt_table[t];
    return wfmt_is_wide(f) ? f->run : ACTS_BLOCK;
}

/* Where a second form of the load that is current is: slabs need less than the bytes of words. */
static slabs slabs_of(const acts *a, size_t n_tokens, size_t cols)
{
    size_t n_slabs = (cols + SLAB_COLS - 1) / SLAB_COLS;
    int8_t *q = (int8_t *)a->words;
    return (slabs){.q = q,
                   .scale = (float *)a->words_start,
                   .sums = (float *)(void *)(q + n_slabs * SLAB_COLS * n_tokens),
                   .n_tokens = n_tokens};
}

static void quantise_share(team_member *m, const acts *a, dtype type, const float *x, size_t n_tokens,
                           size_t cols, size_t ldx)
{
    const kernels *k = kernels_for(member_isa(m));
    size_t group = group_of(type), n_blocks = cols / group, begin, end;
    acts_loaded done = {.type = type,
                        .n_tokens = n_tokens,
                        .cols = cols,
                        .group = group,
                        .q = a->q,
                        .scale = a->scale,
                        .sum = a->sum,
                        .sum16 = a->sum16,
                        .x_sum = a->x_sum,
                        .words = a->words,
                        .words_start = a->words_start};
    bool second = k->form.make && k->form.wanted(type, n_tokens);
    if (second) done.slabs = slabs_of(a, n_tokens, cols);
    member_share(m, n_tokens, 1, &begin, &end);
    size_t step = ldx == cols ? end - begin : 1; /* rows without gaps are one long row */
    for (size_t t = begin; t < end; t += step) {
        size_t at = t * n_blocks, n = step * n_blocks;
        const float *from = x + t * ldx;
        if (group == ACTS_BLOCK)
            k->quantise(from, n, a->q + at * group, a->scale + at, a->sum + at, a->sum16 + 2 * at);
        else
            k->quantise_wide(from, n, group, a->q + at * group, a->scale + at, a->sum + at);
        for (size_t i = at; wfmt_has_min(&wfmt_table[type]) && i < at + n; i++)
            a->x_sum[i] = a->scale[i] * (float)a->sum[i];
    }
    if (second) k->form.make(&done, begin, end);
}

void acts_load(team_member *m, acts *a, dtype t, const float *x, size_t n_tokens, size_t cols, size_t ldx)
{
    bool quantised = !dtype_is_float(t);
    if (member_index(m) == 0) {
        a->quantised = quantised;
        a->n_tokens = n_tokens;
        a->cols = cols;
        a->ldx = ldx;
        a->group = group_of(t);
        a->x = x;
    }
    if (quantised) quantise_share(m, a, t, x, n_tokens, cols, ldx);
    team_barrier(m);
}

/* Move a tile out of the buffer: add what there is to add, and leave rows past the end alone. */
static void acts_finish(const vec_kernels *v, const mul_job *j, const wmat *w, size_t row, float *y,
                        size_t ldy, bool accumulate)
{
    size_t width = j->n_panels * PANEL_ROWS, n = w->rows - row < width ? w->rows - row : width;
    v->end_rows(y + row, ldy, j->out, j->ldo, j->n_tokens, n, w->bias ? w->bias + row : NULL, accumulate);
}

static const tile *tile_for(const kernels *k, dtype t, size_t n_tokens)
{
    return n_tokens == 1 ? &k->one : wfmt_is_wide(&wfmt_table[t]) ? &k->wide : &k->many;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* n_panels from p on, in front of n_tiles tiles. */
static ahead look_ahead(const wmat *w, size_t p, size_t n_panels, size_t n_tiles)
{
    size_t codes = n_panels * w->panel_bytes, scales = n_panels * w->panel_scales * sizeof *w->scales;
    if (n_panels == 0 || n_tiles < 2 || codes > AHEAD_MOST) return (ahead){0};
    return (ahead){.codes = w->w + p * w->panel_bytes,
                   .scales = w->scales ? (const uint8_t *)(w->scales + p * w->panel_scales) : NULL,
                   .codes_left = codes,
                   .scales_left = scales,
                   .codes_step = codes / n_tiles + LINE_BYTES,
                   .scales_step = scales / n_tiles + LINE_BYTES};
}

/* Panels [p, p_end) times tokens [t, t_end), tile by tile: the weights of a few panels stay in L2
 * while all tokens pass. Whole tiles go where they belong at once, if the kernel adds what there is to add.
 */
static void mul_part(const acts *a, const wmat *w, const kernels *k, size_t p, size_t p_end, size_t t_begin,
                     size_t t_end, float *y, size_t ldy, bool accumulate)
{
    _Alignas(64) float out[TILE_PANEL_TOKENS * PANEL_ROWS];
    size_t n_blocks = a->cols / a->group;
    const tile *tile = tile_for(k, w->type, t_end - t_begin);
    size_t unit = tile->share ? tile->share : tile->tokens, n_tiles = (t_end - t_begin + unit - 1) / unit;
    assert(tile->panels * tile->tokens <= TILE_PANEL_TOKENS && a->group == group_of(w->type));
    mul_job j = {.panel_bytes = w->panel_bytes,
                 .panel_scales = w->panel_scales,
                 .cols = a->cols,
                 .group = a->group,
                 .n_blocks = n_blocks,
                 .slabs = slabs_of(a, a->n_tokens, a->cols),
                 .ldx = a->ldx};
    for (; p < p_end; p += j.n_panels) {
        j.n_panels = min_size(tile->panels, p_end - p);
        j.w = w->w + p * w->panel_bytes;
        j.scales = w->scales ? w->scales + p * w->panel_scales : NULL;
        bool direct = (k->ends || !(accumulate || w->bias)) && (p + j.n_panels) * PANEL_ROWS <= w->rows;
        j.bias = direct && w->bias ? w->bias + p * PANEL_ROWS : NULL;
        j.add = direct && accumulate;
        size_t behind = p + j.n_panels;
        ahead next = look_ahead(w, behind, min_size(tile->panels, p_end - behind), n_tiles);
        j.next = tile->share ? &next : NULL;
        for (size_t t = t_begin; t < t_end; t += j.n_tokens) {
            j.n_tokens = min_size(tile->tokens, t_end - t);
            j.x = a->x + t * a->ldx;
            j.q = a->q + t * a->cols;
            j.scale = a->scale + t * n_blocks;
            j.sum = a->sum + t * n_blocks;
            j.sum16 = a->sum16 + t * n_blocks * 2;
            j.x_sum = a->x_sum + t * n_blocks;
            j.words = a->words + t * a->cols;
            j.words_start = a->words_start + t * n_blocks;
            j.slab_token = t;
            j.out = direct ? y + t * ldy + p * PANEL_ROWS : out;
            j.ldo = direct ? ldy : j.n_panels * PANEL_ROWS;
            if (!j.next) ahead_fetch_at_once(&next);
            k->mul[w->type](&j);
            if (!direct) acts_finish(k->vec, &j, w, p * PANEL_ROWS, y + t * ldy, ldy, accumulate);
            progress_add(j.n_panels * PANEL_ROWS * j.n_tokens * j.cols);
        }
    }
}

/* Add up what each column meets in rows [row, row + n); a member always has the same columns. */
static void acts_watch(const team_member *m, const acts *a, size_t row, size_t n, const wmat *w)
{
    size_t begin, end;
    member_share(m, a->cols, ACTS_BLOCK, &begin, &end);
    for (size_t t = row; t < row + n; t++)
        for (size_t c = begin; c < end; c++) {
            size_t at = t * a->cols + c;
            float v = a->quantised ? (float)a->q[at] * a->scale[at / a->group] : a->x[t * a->ldx + c];
            w->squares[c] += (double)v * (double)v;
        }
}

/* Rows [row, row + n) of what was loaded. */
static void mul_rows(team_member *m, const acts *a, size_t row, size_t n, const wmat *w, float *y, size_t ldy,
                     bool accumulate)
{
    const kernels *k = kernels_for(member_isa(m));
    const tile *tile = tile_for(k, w->type, n);
    size_t members = (size_t)member_count(m), p = 0, p_end = w->n_panels, t = 0, t_end = n;
    size_t grain = tile->share ? tile->share : min_size(tile->tokens, SHARE_TOKENS);
    size_t panels = n == 1 ? 1 : min_size(tile->panels, SHARE_PANELS);
    /* Few panels that do not divide evenly (a small model on many cores): share out the tokens. */
    bool by_tokens =
        w->n_panels < 8 * members && w->n_panels % (panels * members) != 0 && t_end >= 2 * grain * members;
    if (by_tokens)
        member_share(m, n, grain, &t, &t_end);
    else
        member_share(m, w->n_panels, panels, &p, &p_end);
    if (w->squares) acts_watch(m, a, row, n, w);
    if (k->enter) k->enter(w->type, t_end - t);
    mul_part(a, w, k, p, p_end, row + t, row + t_end, y, ldy, accumulate);
    if (k->leave) k->leave(w->type, t_end - t);
}

void acts_mul(team_member *m, const acts *a, const wmat *w, float *y, size_t ldy, bool accumulate)
{
    mul_rows(m, a, 0, a->n_tokens, w, y, ldy, accumulate);
}

void acts_mul_rows(team_member *m, const acts *a, size_t row, size_t n, const wmat *w, float *y, size_t ldy)
{
    mul_rows(m, a, row, n, w, y, ldy, false);
}
