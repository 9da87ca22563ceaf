/* widen.c: see widen.h. */
#include "model/widen.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { CHUNK = 256 };

static float from_f64(const uint8_t *p)
{
    double v;
    memcpy(&v, p, sizeof v);
    return (float)v;
}

/* 1 sign, 4 exponent (bias 7) and 3 fraction bits; all ones is no number, and there is no infinity. */
static float from_e4m3(const uint8_t *p)
{
    int e = *p >> 3 & 15, m = *p & 7;
    float v = e == 15 && m == 7 ? NAN : e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9);
    return *p & 128 ? -v : v;
}

/* 1 sign, 5 exponent (bias 15) and 2 fraction bits: the upper half of an IEEE half. */
static float from_e5m2(const uint8_t *p)
{
    uint16_t half = (uint16_t)(*p << 8);
    float v;
    dtype_to_f32(DT_F16, &half, &v, 1);
    return v;
}

static const struct {
    const char *name;
    size_t bytes;
    dtype to;
    float (*read)(const uint8_t *);
} kinds[] = {
    {"F64", 8, DT_F32, from_f64},
    {"F8_E4M3", 1, DT_F16, from_e4m3},
    {"F8_E5M2", 1, DT_F16, from_e5m2},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static size_t widen_find(const char *name)
{
    size_t k = 0;
    while (k < KINDS && strcmp(kinds[k].name, name) != 0) k++;
    return k;
}

bool widen_type(const char *dtype_name, dtype *ret, size_t *ret_bytes)
{
    size_t k = widen_find(dtype_name);
    if (k == KINDS) return false;
    *ret = kinds[k].to;
    *ret_bytes = kinds[k].bytes;
    return true;
}

void widen_values(const char *dtype_name, const void *src, void *dst, size_t n)
{
    float chunk[CHUNK];
    size_t k = widen_find(dtype_name), step;
    for (size_t i = 0; k < KINDS && i < n; i += step) {
        step = n - i < CHUNK ? n - i : CHUNK;
        for (size_t j = 0; j < step; j++)
            chunk[j] = kinds[k].read((const uint8_t *)src + (i + j) * kinds[k].bytes);
        dtype_from_f32(kinds[k].to, chunk, (uint8_t *)dst + i * dtype_block_bytes(kinds[k].to), step);
    }
}
