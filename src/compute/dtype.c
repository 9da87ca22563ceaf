/* dtype.c: element types and the GGUF block formats.
 *
 * Blocks as ggml defines them, little-endian (this tree runs on little-endian machines only):
 *   Q8_0  f16 d, int8 q[32]            w = d * q
 *   Q4_0  f16 d, 16 bytes              w = d * (nibble - 8); low nibbles are elements 0..15, high 16..31
 *   Q4_1  f16 d, f16 m, 16 bytes       w = d * nibble + m */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "compute/bits.h"
#include "compute/compute.h"

static const struct {
    const char *name;
    uint32_t gguf;
    size_t block, bytes;
} types[DT_COUNT] = {
#define DTYPE_ROW(e, name, gguf, block, bytes) [e] = {name, gguf, block, bytes},
    DTYPE_TABLE(DTYPE_ROW)
#undef DTYPE_ROW
};

const char *dtype_name(dtype t)
{
    return types[t].name;
}
size_t dtype_block(dtype t)
{
    return types[t].block;
}
size_t dtype_block_bytes(dtype t)
{
    return types[t].bytes;
}
uint32_t dtype_to_gguf(dtype t)
{
    return types[t].gguf;
}

int dtype_from_gguf(uint32_t gguf_type, dtype *ret)
{
    for (int t = 0; t < DT_COUNT; t++) {
        if (types[t].gguf != gguf_type) continue;
        *ret = (dtype)t;
        return 0;
    }
    return SHOAL_EUNSUPPORTED;
}

bool dtype_parse(const char *name, dtype *ret)
{
    for (int t = 0; t < DT_COUNT; t++) {
        if (strcasecmp(types[t].name, name) != 0) continue;
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

/* One block of 32; `half` tells where the high nibble's element is. */
static void block_to_f32(dtype t, const uint8_t *b, float *dst)
{
    float d = f16_to_f32(load16(b));
    if (t == DT_Q8_0) {
        for (int i = 0; i < 32; i++) dst[i] = d * (float)(int8_t)b[2 + i];
        return;
    }
    const uint8_t *q = t == DT_Q4_1 ? b + 4 : b + 2;
    float m = t == DT_Q4_1 ? f16_to_f32(load16(b + 2)) : 0.0f;
    int zero = t == DT_Q4_1 ? 0 : 8;
    for (int i = 0; i < 16; i++) {
        float low = d * (float)((q[i] & 15) - zero), high = d * (float)((q[i] >> 4) - zero);
        dst[i] = t == DT_Q4_1 ? low + m : low;
        dst[i + 16] = t == DT_Q4_1 ? high + m : high;
    }
}

void dtype_to_f32(dtype t, const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    size_t block = types[t].block, bytes = types[t].bytes;
    if (t == DT_F32) {
        if (n) memcpy(dst, src, n * sizeof *dst);
    } else if (t == DT_F16) {
        for (size_t i = 0; i < n; i++) dst[i] = f16_to_f32(load16(p + 2 * i));
    } else if (t == DT_BF16) {
        for (size_t i = 0; i < n; i++) dst[i] = float_of((uint32_t)load16(p + 2 * i) << 16);
    } else {
        for (size_t i = 0; i < n; i += block, p += bytes) block_to_f32(t, p, dst + i);
    }
}

static float abs_max(const float *x)
{
    float m = 0;
    for (int i = 0; i < 32; i++) m = fabsf(x[i]) > m ? fabsf(x[i]) : m;
    return m;
}

/* As an integer in [min, max]; NaN gives min, so hostile weights cannot overflow the conversion. */
static int clamp_int(float f, int min, int max)
{
    if (!(f > (float)min)) return min;
    return f < (float)max ? (int)f : max;
}

static void q8_0_from_f32(const float *x, uint8_t *b)
{
    float d = abs_max(x) / 127.0f, inverse = d != 0 ? 1.0f / d : 0.0f;
    store16(b, f32_to_f16(d));
    for (int i = 0; i < 32; i++) b[2 + i] = (uint8_t)(int8_t)clamp_int(roundf(x[i] * inverse), -127, 127);
}

/* The element farthest from zero becomes exactly -8 (the reference's choice: one more step on its side). */
static void q4_0_from_f32(const float *x, uint8_t *b)
{
    float far = 0;
    for (int i = 0; i < 32; i++) far = fabsf(x[i]) > fabsf(far) ? x[i] : far;
    float d = far / -8.0f, inverse = d != 0 ? 1.0f / d : 0.0f;
    store16(b, f32_to_f16(d));
    for (int i = 0; i < 16; i++) {
        int low = clamp_int(x[i] * inverse + 8.5f, 0, 15),
            high = clamp_int(x[i + 16] * inverse + 8.5f, 0, 15);
        b[2 + i] = (uint8_t)(low | high << 4);
    }
}

static void q4_1_from_f32(const float *x, uint8_t *b)
{
    float min = x[0], max = x[0];
    for (int i = 1; i < 32; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    float d = (max - min) / 15.0f, inverse = d != 0 ? 1.0f / d : 0.0f;
    store16(b, f32_to_f16(d));
    store16(b + 2, f32_to_f16(min));
    for (int i = 0; i < 16; i++) {
        int low = clamp_int((x[i] - min) * inverse + 0.5f, 0, 15);
        int high = clamp_int((x[i + 16] - min) * inverse + 0.5f, 0, 15);
        b[4 + i] = (uint8_t)(low | high << 4);
    }
}

void dtype_from_f32(dtype t, const float *src, void *dst, size_t n)
{
    uint8_t *p = dst;
    size_t block = types[t].block, bytes = types[t].bytes;
    for (size_t i = 0; i < n; i += block, p += bytes) {
        switch (t) {
        case DT_F32: memcpy(p, src + i, sizeof *src); break;
        case DT_F16: store16(p, f32_to_f16(src[i])); break;
        case DT_BF16: store16(p, f32_to_bf16(src[i])); break;
        case DT_Q8_0: q8_0_from_f32(src + i, p); break;
        case DT_Q4_0: q4_0_from_f32(src + i, p); break;
        case DT_Q4_1: q4_1_from_f32(src + i, p); break;
        case DT_COUNT: break;
        }
    }
}
