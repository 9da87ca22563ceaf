/* panel.h: how blocks lie in a panel of sixteen rows (inside compute/ only).
 *
 * The layout is the same for every instruction set, so the scalar kernels read what the wide ones read.
 * Float types: cols × 16 elements, column c of all rows at [c * 16]. Block types: 32 columns after the
 * other take bits * 64 bytes, cut into planes of whole cache lines. Four columns 4k..4k+3 are a group, and
 * row r's byte for column 4k+i is at [r * 4 + i] of a line:
 *
 *     8 bits     8 lines, one a group
 *     4          4 lines of nibbles: group 2j low in line j, group 2j+1 high
 *     5          the same, then a line of fifth bits: group k at bit k
 *     6          the same, then 2 lines of two bits: group k in line k / 4 at bits 2 (k % 4)
 *     2          2 lines of two bits, as above
 *     3          the same, then a line of third bits: group k at bit k
 *
 * The scales are in an array of their own, so that every load of weights is one whole line: for a block
 * d[16] (and m[16]) as F16, or one byte each (SCALES_E8); super-blocks go on with a byte a run and row,
 * scale[n_runs][16] (and min[n_runs][16]). */
#ifndef COMPUTE_PANEL_H
#define COMPUTE_PANEL_H

#include <string.h>

#include "compute/formats.h"
#include "compute/kernels.h"

/* Bytes of 32 columns' codes, and of a block's scales. */
static inline size_t panel_step_bytes(const wfmt *f)
{
    return (size_t)f->bits * 64;
}

static inline size_t panel_scale_bytes(const wfmt *f)
{
    size_t runs = (size_t)f->block / f->run * PANEL_ROWS;
    switch ((scales_kind)f->scales) {
    case SCALES_NONE: break;
    case SCALES_F16: return 32;
    case SCALES_F16_MIN: return 64;
    case SCALES_E8: return 16;
    case SCALES_SUB: return 32 + runs;
    case SCALES_SUB_MIN: return 64 + 2 * runs;
    case SCALES_SUB_MIN4: return 64 + runs;
    }
    return 0;
}

/* Word (four bytes) `row` of line `line`. */
static inline uint32_t panel_word(const uint8_t *step, size_t line, size_t row)
{
    uint32_t v;
    memcpy(&v, step + line * 64 + row * 4, sizeof v);
    return v;
}

/* The codes of group k (0..7) of a row, one a byte. `bits` should be a constant where it matters. */
static inline uint32_t panel_group(unsigned bits, const uint8_t *step, size_t row, size_t k)
{
    if (bits == 8) return panel_word(step, k, row);
    uint32_t low = bits < 4 ? panel_word(step, k / 4, row) >> k % 4 * 2 & 0x03030303u
                            : panel_word(step, k / 2, row) >> k % 2 * 4 & 0x0F0F0F0Fu;
    if (bits == 5) return low | (panel_word(step, 4, row) >> k & 0x01010101u) << 4;
    if (bits == 6) return low | (panel_word(step, 4 + k / 4, row) >> k % 4 * 2 & 0x03030303u) << 4;
    if (bits == 3) return low | (panel_word(step, 2, row) >> k & 0x01010101u) << 2;
    return low;
}

/* Pack row `row` of a panel from src, its cols weights as GGUF has them. The panel starts as zeros. */
void panel_put_row(dtype t, const uint8_t *src, size_t cols, size_t row, uint8_t *codes, uint8_t *scales);
/* The same of a whole panel, row r from src[r], at several times the speed. */
void panel_put(dtype t, const uint8_t *const src[PANEL_ROWS], size_t cols, uint8_t *codes, uint8_t *scales);
/* out[cols] = the row's weights */
void panel_get_row(dtype t, const uint8_t *codes, const uint8_t *scales, size_t cols, size_t row, float *out);

#endif
