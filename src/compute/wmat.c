/* wmat.c: packing a matrix into panels of sixteen rows, and reading rows back. */
#include "compute/wmat.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "compute/panel.h"

static void pack(wmat *w, const uint8_t *src)
{
    size_t row_bytes = w->cols / dtype_block(w->type) * dtype_block_bytes(w->type);
    for (size_t i = 0; i < w->rows; i++, src += row_bytes) {
        size_t p = i / PANEL_ROWS;
        uint16_t *scales = w->scales ? w->scales + p * w->panel_scales : NULL;
        panel_put_row(w->type, src, w->cols, i % PANEL_ROWS, w->w + p * w->panel_bytes, (uint8_t *)scales);
    }
}

/* Sizes of a panel; false when they overflow. */
static bool layout(wmat *w)
{
    const wfmt *f = &wfmt_table[w->type];
    size_t total;
    if (size_mul(w->cols, (size_t)PANEL_ROWS * f->bits, &total)) return false;
    w->panel_bytes = total / 8;
    w->panel_scales = w->cols / f->block * panel_scale_bytes(f) / 2;
    w->n_panels = w->rows / PANEL_ROWS + (w->rows % PANEL_ROWS != 0);
    return !size_mul(w->n_panels, w->panel_bytes + w->panel_scales * 2, &total);
}

static bool allocate(wmat *w, bool bias)
{
    w->w = mem_calloc64(w->n_panels, w->panel_bytes);
    if (w->panel_scales) w->scales = mem_calloc64(w->n_panels, w->panel_scales * sizeof *w->scales);
    if (bias) w->bias = mem_calloc64(w->rows, sizeof *w->bias);
    w->bytes = sizeof *w + w->n_panels * (w->panel_bytes + w->panel_scales * sizeof *w->scales) +
               (bias ? w->rows * sizeof *w->bias : 0);
    return w->w && (!w->panel_scales || w->scales) && (!bias || w->bias);
}

/* One layout serves every instruction set so far; `set` is where one that wants another (AMX tiles)
 * would differ. */
int wmat_new(wmat **ret, dtype t, size_t rows, size_t cols, const void *src, const float *bias, isa set,
             shoal_err *err)
{
    if (rows == 0 || cols == 0 || cols % dtype_block(t) != 0)
        return err_set(err, SHOAL_EINVALID, "a %s matrix of %zu rows cannot have %zu columns", dtype_name(t),
                       rows, cols);
    wmat *w = calloc(1, sizeof *w);
    if (!w) return err_nomem(err);
    w->type = t;
    w->rows = rows;
    w->cols = cols;
    if (!layout(w) || !allocate(w, bias != NULL)) {
        wmat_free(w);
        return err_nomem(err);
    }
    pack(w, src);
    if (bias) memcpy(w->bias, bias, rows * sizeof *bias);
    *ret = w;
    return 0;
}

void wmat_free(wmat *w)
{
    if (!w) return;
    free(w->w);
    free(w->scales);
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
