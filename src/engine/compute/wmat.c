/* wmat.c: packing a matrix into panels of sixteen rows, and reading rows back. */
#include "compute/wmat.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/progress.h"
#include "compute/panel.h"
#include "compute/weights.h"

/* ---- sizes -------------------------------------------------------------------------------------- */

/* Sizes of a panel; false when they overflow. */
static bool layout(wmat *w)
{
    const wfmt *f = &wfmt_table[w->type];
    size_t total;
    if (size_mul(w->cols, (size_t)PANEL_ROWS * f->bits, &total)) return false;
    w->panel_bytes = total / 8;
    w->panel_scales = w->cols / f->block * panel_scale_bytes(f) / 2;
    w->n_panels = w->rows / PANEL_ROWS + (w->rows % PANEL_ROWS != 0);
    return !size_mul(w->n_panels, w->panel_bytes + w->panel_scales * 2, &total) && total < SIZE_MAX - 128;
}

static size_t codes_bytes(const wmat *w)
{
    return w->n_panels * w->panel_bytes;
}

static size_t scales_bytes(const wmat *w)
{
    return w->n_panels * w->panel_scales * sizeof *w->scales;
}

bool wmat_sizes(dtype t, size_t rows, size_t cols, size_t *ret_codes, size_t *ret_scales)
{
    wmat w = {.type = t, .rows = rows, .cols = cols};
    if (rows == 0 || cols == 0 || cols % dtype_block(t) != 0 || !layout(&w)) return false;
    *ret_codes = codes_bytes(&w);
    *ret_scales = scales_bytes(&w);
    return true;
}

size_t wmat_packed_bytes(dtype t, size_t rows, size_t cols)
{
    size_t codes, scales;
    return wmat_sizes(t, rows, cols, &codes, &scales) ? codes + scales + 126 : SIZE_MAX;
}

/* ---- rows --------------------------------------------------------------------------------------- */

typedef struct pack_job {
    wmat *w;
    const wmat_part *parts;
    size_t row_bytes;     /* of the matrix' type */
    uint8_t *room;        /* of all members; NULL: no part is turned */
    size_t room_bytes;    /* of each: rows of a panel, then one as floats */
    atomic_bool unusable; /* a turned row was */
} pack_job;

static size_t row_bytes(dtype t, size_t cols)
{
    return cols / dtype_block(t) * dtype_block_bytes(t);
}

static bool any_turned(const wmat_part *parts, size_t n_parts)
{
    for (size_t i = 0; i < n_parts; i++)
        if (parts[i].turn) return true;
    return false;
}

static int start_job(pack_job *ret, wmat *w, const wmat_part *parts, size_t n_parts, size_t n_members,
                     shoal_err *err)
{
    *ret = (pack_job){.w = w, .parts = parts, .row_bytes = row_bytes(w->type, w->cols)};
    if (!any_turned(parts, n_parts)) return 0;
    size_t bytes;
    if (size_mul(ret->row_bytes + w->cols, PANEL_ROWS, &ret->room_bytes) ||
        size_mul(ret->room_bytes, n_members, &bytes) || !(ret->room = malloc(bytes)))
        return err_nomem(err);
    return 0;
}

static bool all_finite(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i])) return false;
    return true;
}

/* room: of a row's bytes, then (behind a panel of them) of cols floats. NULL when it cannot be had. */
static const uint8_t *turn_row(const pack_job *j, const wmat_turn *turn, const void *src, uint8_t *room,
                               float *values)
{
    size_t cols = j->w->cols;
    dtype_to_f32(turn->from, src, values, cols);
    if (!all_finite(values, cols)) return NULL;
    turn->write(j->w->type, values, room, cols);
    dtype_to_f32(j->w->type, room, values, cols);
    return all_finite(values, cols) ? room : NULL;
}

/* Where the matrix's row lies; rows come one after the other, so *part is mostly the right one. `room` is the
 * member's, for the r-th of a panel. */
static const uint8_t *source_row(const pack_job *j, size_t *part, size_t *first, size_t row, uint8_t *room,
                                 size_t r)
{
    while (row - *first >= j->parts[*part].rows) *first += j->parts[(*part)++].rows;
    const wmat_part *p = &j->parts[*part];
    size_t bytes = p->turn ? row_bytes(p->turn->from, j->w->cols) : j->row_bytes;
    const uint8_t *src = (const uint8_t *)p->src + (row - *first) * bytes;
    if (!p->turn) return src;
    float *values = (float *)(void *)(room + (j->room_bytes - j->w->cols * sizeof *values));
    return turn_row(j, p->turn, src, room + r * j->row_bytes, values);
}

/* ---- packing ------------------------------------------------------------------------------------ */

/* The last panel may have fewer rows: the others stay zeros. */
static bool pack_panel(const pack_job *j, size_t p, size_t *part, size_t *first, uint8_t *room)
{
    const wmat *w = j->w;
    const uint8_t *src[PANEL_ROWS];
    uint8_t *codes = w->w + p * w->panel_bytes;
    uint8_t *scales = w->scales ? (uint8_t *)(w->scales + p * w->panel_scales) : NULL;
    size_t left = w->rows - p * PANEL_ROWS, n = left < PANEL_ROWS ? left : PANEL_ROWS;
    for (size_t r = 0; r < n; r++)
        if (!(src[r] = source_row(j, part, first, p * PANEL_ROWS + r, room, r))) return false;
    if (n == PANEL_ROWS)
        panel_put(w->type, src, w->cols, codes, scales);
    else
        for (size_t r = 0; r < n; r++) panel_put_row(w->type, src[r], w->cols, r, codes, scales);
    return true;
}

static void pack_panels(pack_job *j, size_t begin, size_t end, uint8_t *room)
{
    size_t part = 0, first = 0;
    for (size_t p = begin; p < end; p++) {
        if (!pack_panel(j, p, &part, &first, room)) {
            atomic_store(&j->unusable, true);
            return;
        }
        progress_add(PANEL_ROWS * j->w->cols);
    }
}

static void pack_share(void *arg, team_member *m)
{
    pack_job *j = arg;
    size_t begin, end;
    member_share(m, j->w->n_panels, 1, &begin, &end);
    pack_panels(j, begin, end, j->room ? j->room + (size_t)member_index(m) * j->room_bytes : NULL);
}

static int unusable(const wmat *w, shoal_err *err)
{
    return err_set(err, SHOAL_EFORMAT,
                   "a matrix of %zu rows of %zu holds what is no finite number, or one too large for %s",
                   w->rows, w->cols, dtype_name(w->type));
}

static int pack(wmat *w, team *t, const wmat_part *parts, size_t n_parts, shoal_err *err)
{
    pack_job j;
    int rc = start_job(&j, w, parts, n_parts, t ? (size_t)team_size(t) : 1, err);
    if (rc) return rc;
    if (t)
        team_run(t, pack_share, &j);
    else
        pack_panels(&j, 0, w->n_panels, j.room);
    free(j.room);
    return atomic_load(&j.unusable) ? unusable(w, err) : 0;
}

/* ---- trust -------------------------------------------------------------------------------------- */

static bool same_last(const pack_job *j, float *there, float *here)
{
    size_t part = 0, first = 0;
    const wmat *w = j->w;
    const uint8_t *row = source_row(j, &part, &first, w->rows - 1, j->room, 0);
    if (!row) return false; /* packing says what is wrong with it */
    dtype_to_f32(w->type, row, here, w->cols);
    wmat_row(w, w->rows - 1, there);
    return memcmp(there, here, w->cols * sizeof *here) == 0;
}

/* Whether what an image has is made of this source, by its last row. Names and sides say nothing of how the
 * source was brought into rows (a folder's matrices may be transposed, widened, cut or put together), and a
 * later version might do it otherwise. */
static int compare_last(wmat *w, const wmat_part *parts, size_t n_parts, bool *ret_same, shoal_err *err)
{
    pack_job j;
    float *rows = malloc(2 * w->cols * sizeof *rows);
    if (!rows) return err_nomem(err);
    int rc = start_job(&j, w, parts, n_parts, 1, err);
    if (rc == 0) {
        *ret_same = same_last(&j, rows, rows + w->cols);
        free(j.room);
    }
    free(rows);
    return rc;
}

/* ---- making ------------------------------------------------------------------------------------- */

/* Zeroed memory of its own. */
static int allocate(wmat *w, shoal_err *err)
{
    w->owned = true;
    w->w = mem_calloc64(w->n_panels, w->panel_bytes);
    if (w->panel_scales) w->scales = mem_calloc64(w->n_panels, w->panel_scales * sizeof *w->scales);
    return w->w && (!w->panel_scales || w->scales) ? 0 : err_nomem(err);
}

static void live_at(wmat *w, const weights_item *it)
{
    w->w = it->codes;
    w->scales = (uint16_t *)(void *)it->scales;
}

/* *ret_packed: an image had the matrix. */
static int move_in(wmat *w, weights *home, uint64_t name, const wmat_part *parts, size_t n_parts,
                   bool *ret_packed, shoal_err *err)
{
    bool same = true;
    weights_item it = {.name = name,
                       .type = w->type,
                       .rows = w->rows,
                       .cols = w->cols,
                       .codes_bytes = codes_bytes(w),
                       .scales_bytes = scales_bytes(w)};
    int rc = weights_place(home, &it, ret_packed, err);
    if (rc == 0) live_at(w, &it);
    if (rc == 0 && *ret_packed) rc = compare_last(w, parts, n_parts, &same, err);
    if (rc || same) return rc;
    *ret_packed = false;
    rc = weights_refuse(home, &it, err);
    if (rc == 0) live_at(w, &it);
    return rc;
}

static int copy_bias(wmat *w, const float *bias, shoal_err *err)
{
    if (!bias) return 0;
    w->bias = mem_calloc64(w->rows, sizeof *w->bias);
    if (!w->bias) return err_nomem(err);
    memcpy(w->bias, bias, w->rows * sizeof *bias);
    return 0;
}

static int wmat_fill(wmat *w, weights *home, uint64_t name, const wmat_part *parts, size_t n_parts,
                     const float *bias, shoal_err *err)
{
    if (!layout(w)) return err_nomem(err);
    bool packed = false;
    int rc = copy_bias(w, bias, err);
    if (rc == 0) rc = home ? move_in(w, home, name, parts, n_parts, &packed, err) : allocate(w, err);
    if (rc) return rc;
    w->bytes = sizeof *w + codes_bytes(w) + scales_bytes(w) + (bias ? w->rows * sizeof *w->bias : 0);
    return packed ? 0 : pack(w, home ? weights_team(home) : NULL, parts, n_parts, err);
}

/* One layout serves every instruction set so far; `set` is where one that wants another (AMX tiles)
 * would differ. */
int wmat_join(wmat **ret, weights *home, uint64_t name, dtype t, const wmat_part *parts, size_t n_parts,
              size_t cols, const float *bias, isa set, shoal_err *err)
{
    size_t rows = 0;
    for (size_t i = 0; i < n_parts; i++)
        if (size_add(rows, parts[i].rows, &rows)) return err_nomem(err);
    if (rows == 0 || cols == 0 || cols % dtype_block(t) != 0)
        return err_set(err, SHOAL_EINVALID, "a %s matrix of %zu rows cannot have %zu columns", dtype_name(t),
                       rows, cols);
    wmat *w = calloc(1, sizeof *w);
    if (!w) return err_nomem(err);
    w->type = t;
    w->rows = rows;
    w->cols = cols;
    int rc = wmat_fill(w, home, name, parts, n_parts, bias, err);
    if (rc) {
        wmat_free(w);
        return rc;
    }
    *ret = w;
    return 0;
}

int wmat_new(wmat **ret, dtype t, size_t rows, size_t cols, const void *src, const float *bias, isa set,
             shoal_err *err)
{
    return wmat_join(ret, NULL, 0, t, &(wmat_part){.src = src, .rows = rows}, 1, cols, bias, set, err);
}

void wmat_free(wmat *w)
{
    if (!w) return;
    if (w->owned) {
        free(w->w);
        free(w->scales);
    }
    free(w->bias);
    free(w);
}

size_t wmat_rows(const wmat *w)
{
    return w->rows;
}
size_t wmat_cols(const wmat *w)
{
    return w->cols;
}
dtype wmat_type(const wmat *w)
{
    return w->type;
}
size_t wmat_bytes(const wmat *w)
{
    return w->bytes;
}

void wmat_row(const wmat *w, size_t row, float *out)
{
    size_t p = row / PANEL_ROWS;
    const uint16_t *scales = w->scales ? w->scales + p * w->panel_scales : NULL;
    panel_get_row(w->type, w->w + p * w->panel_bytes, (const uint8_t *)scales, w->cols, row % PANEL_ROWS,
                  out);
}

void wmat_watch(wmat *w, double *squares)
{
    w->squares = squares;
}

bool wmat_is_watched(const wmat *w)
{
    return w->squares != NULL;
}
