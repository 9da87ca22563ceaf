/* quantize_block.c: the search for scales of Q4_0 and Q4_1; quantize_block.h has the reason and the gain.
 * Layout (the ggml project's): F16 scale, for Q4_1 F16 minimum, then 16 bytes with weight i low,
 * weight i + 16 high. */
#include "model/quantize_block.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 32, HALF = BLOCK / 2, MAX_CODE = 15 };

/* The best codes so far: x ≈ d * (q - zero) + m, where m is 0 for Q4_0 and zero is 0 for Q4_1. */
typedef struct fit {
    float d, m, error;
    uint8_t q[BLOCK];
} fit;

/* A block with its weights and the sums that every candidate needs. */
typedef struct block {
    const float *x;
    float w[BLOCK], wx[BLOCK];
    float sw, swx, swxx;
} block;

static void block_init(block *b, const float *x)
{
    float sum = 0;
    *b = (block){.x = x};
    for (int i = 0; i < BLOCK; i++) sum += x[i] * x[i];
    for (int i = 0; i < BLOCK; i++) {
        b->w[i] = sqrtf(sum / BLOCK + x[i] * x[i]);
        b->wx[i] = b->w[i] * x[i];
        b->sw += b->w[i];
        b->swx += b->wx[i];
        b->swxx += b->wx[i] * x[i];
    }
}

/* The nearest code, 0 for NaN; no libm call, since this runs some thirty times a weight. */
static uint8_t code(float v)
{
    return (uint8_t)(!(v > 0) ? 0 : v >= MAX_CODE ? MAX_CODE : (int)(v + 0.5f));
}

/* Q4_0. The least squares scale for given codes is qx/qq, and its error swxx - qx²/qq. */
static void try_q4_0(const block *b, float inverse, fit *best)
{
    fit f;
    float qx = 0, qq = 0;
    for (int i = 0; i < BLOCK; i++) {
        f.q[i] = code(b->x[i] * inverse + 8);
        float q = (float)(f.q[i] - 8);
        qx += b->wx[i] * q;
        qq += b->w[i] * q * q;
    }
    if (qq <= 0) return;
    f.d = qx / qq;
    f.m = 0;
    f.error = b->swxx - qx * f.d;
    if (f.error < best->error) *best = f;
}

static float largest(const float *x)
{
    float v = 0;
    for (int i = 0; i < BLOCK; i++)
        if (fabsf(x[i]) > fabsf(v)) v = x[i];
    return v;
}

static void put_codes(const fit *f, uint8_t *out)
{
    for (int i = 0; i < HALF; i++) out[i] = (uint8_t)(f->q[i] | f->q[i + HALF] << 4);
}

static void put_q4_0(const float *x, uint8_t *out)
{
    block b;
    float max = largest(x);
    fit best = {.error = INFINITY};
    block_init(&b, x);
    memset(best.q, 8, sizeof best.q);
    /* Both signs: the largest weight may sit on -8 or, with a slightly larger scale, on +7. */
    for (int step = -4; max != 0 && step <= 9; step++) {
        float inverse = (-8 + 0.25f * (float)step) / max;
        try_q4_0(&b, inverse, &best);
        try_q4_0(&b, -inverse, &best);
    }
    uint16_t d = f32_to_f16(best.d);
    memcpy(out, &d, 2);
    put_codes(&best, out + 2);
}

/* Q4_1. For given codes the best d and m are the weighted linear regression of x on q. */
static void try_q4_1(const block *b, float min, float inverse, fit *best)
{
    fit f;
    float sq = 0, sqq = 0, sqx = 0;
    for (int i = 0; i < BLOCK; i++) {
        f.q[i] = code((b->x[i] - min) * inverse);
        float q = (float)f.q[i];
        sq += b->w[i] * q;
        sqq += b->w[i] * q * q;
        sqx += b->wx[i] * q;
    }
    float det = b->sw * sqq - sq * sq;
    if (det <= 0) return;
    f.d = (b->sw * sqx - sq * b->swx) / det;
    f.m = (sqq * b->swx - sq * sqx) / det;
    f.error = b->swxx - f.d * sqx - f.m * b->swx;
    if (f.error < best->error) *best = f;
}

static void put_q4_1(const float *x, uint8_t *out)
{
    block b;
    float min = x[0], max = x[0];
    block_init(&b, x);
    for (int i = 1; i < BLOCK; i++) {
        min = fminf(min, x[i]);
        max = fmaxf(max, x[i]);
    }
    fit best = {.m = min, .error = INFINITY}; /* what a block of equal values keeps */
    for (int step = -5; max != min && step <= 5; step++)
        try_q4_1(&b, min, (MAX_CODE + 0.4f * (float)step) / (max - min), &best);
    uint16_t d = f32_to_f16(best.d), m = f32_to_f16(best.m);
    memcpy(out, &d, 2);
    memcpy(out + 2, &m, 2);
    put_codes(&best, out + 4);
}

void quantize_row(dtype t, const float *src, void *dst, size_t n)
{
    if (t != DT_Q4_0 && t != DT_Q4_1) {
        dtype_from_f32(t, src, dst, n);
        return;
    }
    uint8_t *out = dst;
    for (size_t i = 0; i < n; i += BLOCK, out += dtype_block_bytes(t)) {
        if (t == DT_Q4_0)
            put_q4_0(src + i, out);
        else
            put_q4_1(src + i, out);
    }
}
