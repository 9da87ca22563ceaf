/* wmat.c: packing a matrix into panels of sixteen rows, and reading rows back. */
#include "compute/wmat.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static bool is_float(dtype t)
{
    return dtype_block(t) == 1;
}

static uint16_t load16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static void store16(uint8_t *p, uint16_t v)
{
    memcpy(p, &v, sizeof v);
}

/* Where in a block's groups weight `c` (0..31) of row r lies; nibble blocks: which byte. */
static size_t at_q8(size_t r, size_t c)
{
    return c / 4 * 64 + r * 4 + c % 4;
}
static size_t at_q4(size_t r, size_t c)
{
    return c / 8 * 64 + r * 4 + c % 4;
}

static void pack_float_row(const wmat *w, const uint8_t *src, size_t r, uint8_t *panel)
{
    size_t bytes = dtype_block_bytes(w->type);
    for (size_t c = 0; c < w->cols; c++) memcpy(panel + (c * PANEL_ROWS + r) * bytes, src + c * bytes, bytes);
}

static void pack_q8_0_row(const wmat *w, const uint8_t *src, size_t r, uint8_t *panel, uint16_t *scales)
{
    for (size_t b = 0; b < w->cols / 32; b++, src += 34, panel += 512) {
        scales[b * PANEL_ROWS + r] = load16(src);
        for (size_t c = 0; c < 32; c++) panel[at_q8(r, c)] = src[2 + c] ^ 0x80; /* + 128 */
    }
}

/* Nibble c of a GGUF block: low halves are 0..15, high halves 16..31. */
static uint8_t nibble(const uint8_t *q, size_t c)
{
    return c < 16 ? q[c] & 15 : q[c - 16] >> 4;
}

static void pack_q4_row(const wmat *w, const uint8_t *src, size_t r, uint8_t *panel, uint16_t *scales)
{
    size_t n_scales = w->type == DT_Q4_1 ? 2 : 1, bytes = dtype_block_bytes(w->type);
    for (size_t b = 0; b < w->cols / 32; b++, src += bytes, panel += 256) {
        for (size_t s = 0; s < n_scales; s++)
            scales[(b * n_scales + s) * PANEL_ROWS + r] = load16(src + 2 * s);
        const uint8_t *q = src + 2 * n_scales;
        for (size_t c = 0; c < 32; c++) panel[at_q4(r, c)] |= (uint8_t)(nibble(q, c) << (c & 4));
    }
}

static void pack(wmat *w, const uint8_t *src)
{
    size_t row_bytes = w->cols / dtype_block(w->type) * dtype_block_bytes(w->type);
    for (size_t i = 0; i < w->rows; i++, src += row_bytes) {
        size_t p = i / PANEL_ROWS, r = i % PANEL_ROWS;
        uint8_t *panel = w->w + p * w->panel_bytes;
        uint16_t *scales = w->scales ? w->scales + p * w->panel_scales : NULL;
        if (is_float(w->type))
            pack_float_row(w, src, r, panel);
        else if (w->type == DT_Q8_0)
            pack_q8_0_row(w, src, r, panel, scales);
        else
            pack_q4_row(w, src, r, panel, scales);
    }
}

/* Sizes of a panel; false when they overflow. */
static bool layout(wmat *w)
{
    size_t row_bits = w->type == DT_F32 ? 32 : is_float(w->type) ? 16 : w->type == DT_Q8_0 ? 8 : 4, total;
    if (size_mul(w->cols, PANEL_ROWS * row_bits, &total)) return false;
    w->panel_bytes = total / 8;
    w->panel_scales = is_float(w->type) ? 0 : w->cols / 32 * PANEL_ROWS * (w->type == DT_Q4_1 ? 2 : 1);
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

/* Put a block back into its GGUF form, so that there is one dequantiser only (dtype_to_f32). */
static void unpack_block(const wmat *w, const uint8_t *block, const uint16_t *scales, size_t r, uint8_t *out)
{
    if (w->type == DT_Q8_0) {
        store16(out, scales[r]);
        for (size_t c = 0; c < 32; c++) out[2 + c] = block[at_q8(r, c)] ^ 0x80;
        return;
    }
    size_t n_scales = w->type == DT_Q4_1 ? 2 : 1;
    for (size_t s = 0; s < n_scales; s++) store16(out + 2 * s, scales[s * PANEL_ROWS + r]);
    for (size_t c = 0; c < 16; c++) {
        unsigned low = block[at_q4(r, c)] >> (c & 4) & 15u, high = block[at_q4(r, c + 16)] >> (c & 4) & 15u;
        out[2 * n_scales + c] = (uint8_t)(low | high << 4);
    }
}

void wmat_row(const wmat *w, size_t row, float *out)
{
    size_t p = row / PANEL_ROWS, r = row % PANEL_ROWS, bytes = dtype_block_bytes(w->type);
    const uint8_t *panel = w->w + p * w->panel_bytes;
    if (is_float(w->type)) {
        for (size_t c = 0; c < w->cols; c++)
            dtype_to_f32(w->type, panel + (c * PANEL_ROWS + r) * bytes, out + c, 1);
        return;
    }
    size_t n_blocks = w->cols / 32, block_bytes = w->panel_bytes / n_blocks,
           block_scales = w->panel_scales / n_blocks;
    const uint16_t *scales = w->scales + p * w->panel_scales;
    uint8_t block[34];
    for (size_t b = 0; b < n_blocks; b++) {
        unpack_block(w, panel + b * block_bytes, scales + b * block_scales, r, block);
        dtype_to_f32(w->type, block, out + b * 32, 32);
    }
}
