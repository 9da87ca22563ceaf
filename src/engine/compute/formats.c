/* formats.c: GGUF blocks taken apart and put together, by the rows of formats.h. Little-endian, as every
 * machine that this tree runs on. */
#include "compute/formats.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "compute/bits.h"

static uint16_t load16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static void store16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* ---- planes ---------------------------------------------------------------------------------- */

/* code[n] = the low plane's bits */
static inline void get_low(const wplane *p, const uint8_t *restrict src, size_t n, uint8_t *restrict code)
{
    size_t bytes = (size_t)p->chunk * p->bits / 8, mask = (1u << p->bits) - 1;
    for (src += p->at; n > 0; n -= p->chunk, src += bytes)
        for (unsigned s = 0; s < 8; s += p->bits, code += bytes)
            for (size_t i = 0; i < bytes; i++) code[i] = src[i] >> s & mask;
}

/* code[n] |= the high plane's bits, moved up by `shift` */
static inline void get_high(const wplane *p, const uint8_t *restrict src, unsigned shift, size_t n,
                            uint8_t *restrict code)
{
    size_t bytes = (size_t)p->chunk * p->bits / 8, mask = (1u << p->bits) - 1;
    for (src += p->at; n > 0; n -= p->chunk, src += bytes)
        for (unsigned s = 0; s < 8; s += p->bits, code += bytes)
            for (size_t i = 0; i < bytes; i++) code[i] |= (uint8_t)((src[i] >> s & mask) << shift);
}

static void put_plane(const wplane *p, const uint8_t *code, unsigned shift, size_t n, uint8_t *dst)
{
    size_t bytes = (size_t)p->chunk * p->bits / 8, mask = (1u << p->bits) - 1;
    for (dst += p->at; n > 0; n -= p->chunk, dst += bytes)
        for (unsigned s = 0; s < 8; s += p->bits, code += bytes)
            for (size_t i = 0; i < bytes; i++) dst[i] |= (uint8_t)((code[i] >> shift & mask) << s);
}

/* Types of 8 bits store their values, we their codes: value + 128. */
static inline void flip_signs(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] ^= 0x80;
}

/* ---- the integers of the runs ------------------------------------------------------------------ */

/* Number i of 8 scales and minima of 6 bits: the first four scales and minima keep theirs in bytes 0..3
 * and 4..7; the others have four bits in bytes 8..11 and two on top of the first ones. */
static void get_6_6(const uint8_t *p, wblock *b)
{
    for (int i = 0; i < 4; i++) {
        b->scale[i] = p[i] & 63;
        b->min[i] = p[i + 4] & 63;
        b->scale[i + 4] = (uint8_t)((p[i + 8] & 15) | p[i] >> 6 << 4);
        b->min[i + 4] = (uint8_t)(p[i + 8] >> 4 | p[i + 4] >> 6 << 4);
    }
}

static void put_6_6(const wblock *b, uint8_t *p)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)((b->scale[i] & 63) | b->scale[i + 4] >> 4 << 6);
        p[i + 4] = (uint8_t)((b->min[i] & 63) | b->min[i + 4] >> 4 << 6);
        p[i + 8] = (uint8_t)((b->scale[i + 4] & 15) | b->min[i + 4] << 4);
    }
}

/* Sixteen of 6 bits: four low ones in bytes 0..7 (i, then i + 8 above), two high ones in bytes 8..11
 * (i, i + 4, i + 8, i + 12). */
static void get_6(const uint8_t *p, wblock *b)
{
    for (int i = 0; i < 16; i++) {
        int low = p[i % 8] >> i / 8 * 4 & 15, high = p[8 + i % 4] >> i / 4 * 2 & 3;
        b->scale[i] = (uint8_t)((low | high << 4) - 32);
    }
}

static void put_6(const wblock *b, uint8_t *p)
{
    for (int i = 0; i < 16; i++) {
        int v = (b->scale[i] + 32) & 63;
        p[i % 8] |= (uint8_t)((v & 15) << i / 8 * 4);
        p[8 + i % 4] |= (uint8_t)(v >> 4 << i / 4 * 2);
    }
}

/* Eight of 6 bits: two high ones in 16 bits, four low ones in the four bytes after them. */
static void get_6_xs(const uint8_t *p, wblock *b)
{
    unsigned high = load16(p);
    for (int i = 0; i < 8; i++) {
        unsigned low = p[2 + i / 2] >> i % 2 * 4 & 15u;
        b->scale[i] = (uint8_t)((low | (high >> 2 * i & 3) << 4) - 32);
    }
}

static void put_6_xs(const wblock *b, uint8_t *p)
{
    unsigned high = 0;
    for (int i = 0; i < 8; i++) {
        unsigned v = (b->scale[i] + 32u) & 63;
        p[2 + i / 2] |= (uint8_t)((v & 15) << i % 2 * 4);
        high |= v >> 4 << 2 * i;
    }
    store16(p, (uint16_t)high);
}

static void get_subs(const wfmt *f, const uint8_t *p, wblock *b)
{
    switch ((sub_kind)f->sub) {
    case SUB_NONE: break;
    case SUB_INT8: memcpy(b->scale, p, 16); break;
    case SUB_4_4:
        for (int i = 0; i < 16; i++) {
            b->scale[i] = p[i] & 15;
            b->min[i] = p[i] >> 4;
        }
        break;
    case SUB_6: get_6(p, b); break;
    case SUB_6_6: get_6_6(p, b); break;
    case SUB_6_XS: get_6_xs(p, b); break;
    }
}

static void put_subs(const wfmt *f, const wblock *b, uint8_t *p)
{
    switch ((sub_kind)f->sub) {
    case SUB_NONE: break;
    case SUB_INT8: memcpy(p, b->scale, 16); break;
    case SUB_4_4:
        for (int i = 0; i < 16; i++) p[i] = (uint8_t)((b->scale[i] & 15) | b->min[i] << 4);
        break;
    case SUB_6: put_6(b, p); break;
    case SUB_6_6: put_6_6(b, p); break;
    case SUB_6_XS: put_6_xs(b, p); break;
    }
}

/* ---- blocks ------------------------------------------------------------------------------------ */

/* With a constant type every plane's numbers are constants, too, and its loops become a few wide moves: every
 * weight of a model goes through here when it is packed. */
__attribute__((always_inline)) static inline void get(dtype t, const uint8_t *src, wblock *ret)
{
    const wfmt *f = &wfmt_table[t];
    memset(ret, 0, offsetof(wblock, code));
    ret->d = f->scales == SCALES_E8 ? src[f->d_at] : load16(src + f->d_at);
    if (wfmt_has_min(f)) ret->m = load16(src + f->m_at);
    get_subs(f, src + f->sub_at, ret);
    get_low(&f->low, src, f->block, ret->code);
    if (f->high.bits) get_high(&f->high, src, f->low.bits, f->block, ret->code);
    if (f->bits == 8) flip_signs(ret->code, f->block);
}

void formats_get(dtype t, const uint8_t *src, wblock *ret)
{
    switch (t) {
#define GET_CASE(name, kernel) \
    case DT_##name: get(DT_##name, src, ret); break;
        DTYPE_BLOCKS(GET_CASE)
        DTYPE_WIDE(GET_CASE)
#undef GET_CASE
    default: assert(!"a block type");
    }
}

void formats_put(dtype t, const wblock *b, uint8_t *dst)
{
    const wfmt *f = &wfmt_table[t];
    memset(dst, 0, f->bytes);
    if (f->scales == SCALES_E8)
        dst[f->d_at] = (uint8_t)b->d;
    else
        store16(dst + f->d_at, b->d);
    if (wfmt_has_min(f)) store16(dst + f->m_at, b->m);
    put_subs(f, b, dst + f->sub_at);
    put_plane(&f->low, b->code, 0, f->block, dst);
    if (f->high.bits) put_plane(&f->high, b->code, f->low.bits, f->block, dst);
    if (f->bits == 8) flip_signs(dst + f->low.at, f->block);
}

float e8_to_f32(uint8_t e)
{
    return e < 2 ? float_of(0x00200000u << e) : float_of((uint32_t)(e - 1) << 23);
}

void formats_scales(dtype t, const wblock *b, float *scale, float *minimum)
{
    const wfmt *f = &wfmt_table[t];
    float d = f->scales == SCALES_E8 ? e8_to_f32((uint8_t)b->d) : f16_to_f32(b->d), m = f16_to_f32(b->m);
    for (size_t i = 0; i < (size_t)f->block / f->run; i++) {
        switch ((scales_kind)f->scales) {
        case SCALES_NONE:
        case SCALES_E8:
        case SCALES_F16: scale[i] = d; break;
        case SCALES_F16_MIN:
            scale[i] = d;
            minimum[i] = m;
            break;
        case SCALES_SUB: scale[i] = d * (float)(int8_t)b->scale[i]; break;
        case SCALES_SUB_MIN:
        case SCALES_SUB_MIN4:
            scale[i] = d * (float)b->scale[i];
            minimum[i] = -(m * (float)b->min[i]);
            break;
        }
    }
}

/* dst[16] = scale * (code - zero): what a compiler turns into a few wide operations */
static void weigh16(const uint8_t *code, int zero, float scale, float *dst)
{
    for (size_t i = 0; i < 16; i++) dst[i] = scale * (float)((int)code[i] - zero);
}

void formats_weights(dtype t, const wblock *b, float *dst)
{
    const wfmt *f = &wfmt_table[t];
    float scale[WRUNS_MAX], minimum[WRUNS_MAX];
    formats_scales(t, b, scale, minimum);
    for (size_t i = 0; i < f->block; i += 16) {
        size_t run = i / f->run;
        if (f->values)
            for (size_t j = i; j < i + 16; j++) dst[j] = scale[run] * (float)f->values[b->code[j]];
        else
            weigh16(b->code + i, f->zero, scale[run], dst + i);
        for (size_t j = i; wfmt_has_min(f) && j < i + 16; j++) dst[j] += minimum[run];
    }
}
