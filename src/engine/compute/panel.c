/* panel.c: rows into panels and back; panel.h has the layout. */
#include "compute/panel.h"

#define GROUP 4 /* columns */

static void or_word(uint8_t *step, size_t line, size_t row, uint32_t v)
{
    v |= panel_word(step, line, row);
    memcpy(step + line * 64 + row * 4, &v, sizeof v);
}

/* The opposite of panel_group. */
static void put_group(unsigned bits, uint8_t *step, size_t row, size_t k, uint32_t codes)
{
    if (bits == 8)
        or_word(step, k, row, codes);
    else if (bits < 4)
        or_word(step, k / 4, row, (codes & 0x03030303u) << k % 4 * 2);
    else
        or_word(step, k / 2, row, (codes & 0x0F0F0F0Fu) << k % 2 * 4);
    if (bits == 5) or_word(step, 4, row, (codes >> 4 & 0x01010101u) << k);
    if (bits == 6) or_word(step, 4 + k / 4, row, (codes >> 4 & 0x03030303u) << k % 4 * 2);
    if (bits == 3) or_word(step, 2, row, (codes >> 2 & 0x01010101u) << k);
}

static void put_scales(const wfmt *f, const wblock *b, size_t row, uint8_t *scales)
{
    size_t n = (size_t)f->block / f->run;
    if (f->scales == SCALES_E8) {
        scales[row] = (uint8_t)b->d;
        return;
    }
    memcpy(scales + row * 2, &b->d, 2);
    if (wfmt_has_min(f)) memcpy(scales + 32 + row * 2, &b->m, 2);
    if (f->sub == SUB_NONE) return;
    uint8_t *subs = scales + (wfmt_has_min(f) ? 64 : 32) + row;
    for (size_t i = 0; i < n; i++, subs += PANEL_ROWS) {
        *subs = f->scales == SCALES_SUB_MIN4 ? (uint8_t)(b->scale[i] | b->min[i] << 4) : b->scale[i];
        if (f->scales == SCALES_SUB_MIN) subs[n * PANEL_ROWS] = b->min[i];
    }
}

static void get_scales(const wfmt *f, const uint8_t *scales, size_t row, wblock *b)
{
    size_t n = (size_t)f->block / f->run;
    if (f->scales == SCALES_E8) {
        b->d = scales[row];
        return;
    }
    memcpy(&b->d, scales + row * 2, 2);
    if (wfmt_has_min(f)) memcpy(&b->m, scales + 32 + row * 2, 2);
    if (f->sub == SUB_NONE) return;
    const uint8_t *subs = scales + (wfmt_has_min(f) ? 64 : 32) + row;
    for (size_t i = 0; i < n; i++, subs += PANEL_ROWS) {
        bool both = f->scales == SCALES_SUB_MIN4;
        b->scale[i] = both ? *subs & 15 : *subs;
        if (wfmt_has_min(f)) b->min[i] = both ? *subs >> 4 : subs[n * PANEL_ROWS];
    }
}

/* ---- whole panels: the same lines from eight codes at a time ------------------------------------- */

static inline uint64_t eight(const uint8_t *code)
{
    uint64_t v;
    memcpy(&v, code, sizeof v);
    return v;
}

static inline void panel_put_word(uint8_t *step, size_t line, size_t row, uint32_t v)
{
    memcpy(step + line * 64 + row * 4, &v, sizeof v);
}

/* Of two groups, the first low: four bits of each. */
static inline uint32_t nibbles(uint64_t v)
{
    return (uint32_t)((v & 0x0F0F0F0F) | (v >> 28 & 0xF0F0F0F0));
}

/* Two bits each of four groups, from bit `at` of the codes on. */
static inline uint32_t twos(const uint8_t *code, unsigned at)
{
    uint64_t a = eight(code) >> at & 0x0303030303030303, b = eight(code + 8) >> at & 0x0303030303030303;
    return (uint32_t)(a | a >> 30 | b << 4 | b >> 26);
}

/* Bit `at` of all eight groups. */
static inline uint32_t ones(const uint8_t *code, unsigned at)
{
    uint32_t v = 0;
    for (unsigned j = 0; j < 4; j++) {
        uint64_t pair = eight(code + 8 * j) >> at & 0x0101010101010101;
        v |= (uint32_t)(pair | pair >> 31) << 2 * j;
    }
    return v;
}

/* 32 codes of row `row` into a step. */
__attribute__((always_inline)) static inline void put_codes(unsigned bits, const uint8_t *code, size_t row,
                                                            uint8_t *step)
{
    if (bits == 8)
        for (size_t k = 0; k < 8; k++) memcpy(step + k * 64 + row * 4, code + k * 4, 4);
    else if (bits < 4)
        for (size_t i = 0; i < 2; i++) panel_put_word(step, i, row, twos(code + 16 * i, 0));
    else
        for (size_t i = 0; i < 4; i++) panel_put_word(step, i, row, nibbles(eight(code + 8 * i)));
    if (bits == 5) panel_put_word(step, 4, row, ones(code, 4));
    if (bits == 6)
        for (size_t i = 0; i < 2; i++) panel_put_word(step, 4 + i, row, twos(code + 16 * i, 4));
    if (bits == 3) panel_put_word(step, 2, row, ones(code, 2));
}

/* 32 columns of all rows. */
__attribute__((always_inline)) static inline void put_step(unsigned bits, const wblock *b, size_t at,
                                                           uint8_t *step)
{
    for (size_t r = 0; r < PANEL_ROWS; r++) put_codes(bits, b[r].code + at, r, step);
}

/* One block of columns, taken apart, of all rows. */
static void put_block(const wfmt *f, const wblock *b, uint8_t *codes)
{
    for (size_t at = 0; at < f->block; at += ACTS_BLOCK, codes += panel_step_bytes(f)) {
        switch (f->bits) {
        case 2: put_step(2, b, at, codes); break;
        case 3: put_step(3, b, at, codes); break;
        case 4: put_step(4, b, at, codes); break;
        case 5: put_step(5, b, at, codes); break;
        case 6: put_step(6, b, at, codes); break;
        default: put_step(8, b, at, codes);
        }
    }
}

static void put_float_panel(size_t bytes, const uint8_t *const *src, size_t cols, uint8_t *panel)
{
    for (size_t c = 0; c < cols; c++)
        for (size_t r = 0; r < PANEL_ROWS; r++, panel += bytes) {
            if (bytes == 2)
                memcpy(panel, src[r] + c * 2, 2);
            else
                memcpy(panel, src[r] + c * 4, 4);
        }
}

void panel_put(dtype t, const uint8_t *const src[PANEL_ROWS], size_t cols, uint8_t *codes, uint8_t *scales)
{
    const wfmt *f = &wfmt_table[t];
    if (f->scales == SCALES_NONE) {
        put_float_panel(f->bytes, src, cols, codes);
        return;
    }
    wblock b[PANEL_ROWS];
    for (size_t c = 0; c < cols / f->block; c++, scales += panel_scale_bytes(f)) {
        for (size_t r = 0; r < PANEL_ROWS; r++) {
            formats_get(t, src[r] + c * f->bytes, &b[r]);
            put_scales(f, &b[r], r, scales);
        }
        put_block(f, b, codes);
        codes += f->block / ACTS_BLOCK * panel_step_bytes(f);
    }
}

static void put_float_row(size_t bytes, const uint8_t *src, size_t cols, size_t row, uint8_t *panel)
{
    for (size_t c = 0; c < cols; c++) memcpy(panel + (c * PANEL_ROWS + row) * bytes, src + c * bytes, bytes);
}

void panel_put_row(dtype t, const uint8_t *src, size_t cols, size_t row, uint8_t *codes, uint8_t *scales)
{
    const wfmt *f = &wfmt_table[t];
    if (f->scales == SCALES_NONE) {
        put_float_row(f->bytes, src, cols, row, codes);
        return;
    }
    wblock b;
    for (size_t c = 0; c < cols; c += f->block, src += f->bytes, scales += panel_scale_bytes(f)) {
        formats_get(t, src, &b);
        put_scales(f, &b, row, scales);
        for (size_t k = 0; k < (size_t)f->block / GROUP; k++) {
            uint32_t word;
            memcpy(&word, b.code + k * GROUP, sizeof word);
            put_group(f->bits, codes + k / 8 * panel_step_bytes(f), row, k % 8, word);
        }
        codes += f->block / ACTS_BLOCK * panel_step_bytes(f);
    }
}

void panel_get_row(dtype t, const uint8_t *codes, const uint8_t *scales, size_t cols, size_t row, float *out)
{
    const wfmt *f = &wfmt_table[t];
    if (f->scales == SCALES_NONE) {
        for (size_t c = 0; c < cols; c++)
            dtype_to_f32(t, codes + (c * PANEL_ROWS + row) * f->bytes, out + c, 1);
        return;
    }
    wblock b = {0};
    for (size_t c = 0; c < cols; c += f->block, scales += panel_scale_bytes(f)) {
        get_scales(f, scales, row, &b);
        for (size_t k = 0; k < (size_t)f->block / GROUP; k++) {
            uint32_t word = panel_group(f->bits, codes + k / 8 * panel_step_bytes(f), row, k % 8);
            memcpy(b.code + k * GROUP, &word, sizeof word);
        }
        codes += f->block / ACTS_BLOCK * panel_step_bytes(f);
        formats_weights(t, &b, out + c);
    }
}
