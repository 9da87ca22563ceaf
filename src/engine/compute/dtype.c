/* dtype.c: element types by name and number, and their conversion from and to floats. */
#include <string.h>
#include <strings.h>

#include "compute/bits.h"
#include "base/progress.h"
#include "compute/formats.h"

const char *dtype_name(dtype t)
{
    return wfmt_table[t].name;
}
size_t dtype_block(dtype t)
{
    return wfmt_table[t].block;
}
size_t dtype_block_bytes(dtype t)
{
    return wfmt_table[t].bytes;
}
uint32_t dtype_to_gguf(dtype t)
{
    return wfmt_table[t].gguf;
}
uint32_t dtype_file_type(dtype t)
{
    return wfmt_table[t].file_type;
}
bool dtype_is_float(dtype t)
{
    return wfmt_table[t].scales == SCALES_NONE;
}

int dtype_from_gguf(uint32_t gguf_type, dtype *ret)
{
    for (int t = 0; t < DT_COUNT; t++) {
        if (wfmt_table[t].gguf != gguf_type) continue;
        *ret = (dtype)t;
        return 0;
    }
    return SHOAL_EUNSUPPORTED;
}

bool dtype_parse(const char *name, dtype *ret)
{
    for (int t = 0; t < DT_COUNT; t++) {
        if (strcasecmp(wfmt_table[t].name, name) != 0) continue;
        *ret = (dtype)t;
        return true;
    }
    return false;
}

float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = h >> 10 & 31, man = h & 0x3FF;
    if (exp == 31)
        return float_of(sign | 0x7F800000u | man << 13 | (man ? 0x400000u : 0)); /* quiet, as vcvtph2ps */
    if (exp) return float_of(sign | (exp + 112) << 23 | man << 13);
    float f = (float)man * 0x1p-24f; /* subnormal or zero: exact */
    return float_of(sign | bits_of(f));
}

uint16_t f32_to_f16(float f)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, a = u & 0x7FFFFFFF;
    if (a > 0x7F800000u) return (uint16_t)(sign | 0x7E00 | (a >> 13 & 0x3FF));
    if (a >= 0x477FF000u) return (uint16_t)(sign | 0x7C00); /* 65520 and more round to infinity */
    if (a < 0x38800000u) { /* below 2^-14: let the float adder round at 2^-24 */
        float r = float_of(a) + 0.5f;
        return (uint16_t)(sign | (bits_of(r) - bits_of(0.5f)));
    }
    a += 0xFFF + (a >> 13 & 1);
    return (uint16_t)(sign | (a - 0x38000000u) >> 13);
}

static uint16_t f32_to_bf16(float f)
{
    uint32_t u = bits_of(f);
    if ((u & 0x7FFFFFFF) > 0x7F800000u) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

static uint16_t load16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static void store16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

void dtype_to_f32(dtype t, const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    size_t block = wfmt_table[t].block, bytes = wfmt_table[t].bytes;
    if (t == DT_F32) {
        if (n) memcpy(dst, src, n * sizeof *dst);
    } else if (t == DT_F16) {
        for (size_t i = 0; i < n; i++) dst[i] = f16_to_f32(load16(p + 2 * i));
    } else if (t == DT_BF16) {
        for (size_t i = 0; i < n; i++) dst[i] = float_of((uint32_t)load16(p + 2 * i) << 16);
    } else {
        wblock b;
        for (size_t i = 0; i < n; i += block, p += bytes) {
            formats_get(t, p, &b);
            formats_weights(t, &b, dst + i);
        }
    }
    progress_add(n);
}

void dtype_from_f32(dtype t, const float *src, void *dst, size_t n)
{
    uint8_t *p = dst;
    size_t block = wfmt_table[t].block, bytes = wfmt_table[t].bytes;
    if (t == DT_F32) {
        if (n) memcpy(dst, src, n * sizeof *src);
    } else if (t == DT_F16) {
        for (size_t i = 0; i < n; i++) store16(p + 2 * i, f32_to_f16(src[i]));
    } else if (t == DT_BF16) {
        for (size_t i = 0; i < n; i++) store16(p + 2 * i, f32_to_bf16(src[i]));
    } else {
        wblock b;
        for (size_t i = 0; i < n; i += block, p += bytes) {
            formats_quantise(t, src + i, &b);
            formats_put(t, &b, p);
        }
    }
}
