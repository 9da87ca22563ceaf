#include "model/quantize_block.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 32, HALF = BLOCK / 2, MAX_CODE = 15 };

/* A block's best scale so far: x ≈ d * q + m. */
typedef struct fit {
    uint16_t d, m; /* as halves */
    uint8_t q[BLOCK];
    double error;
} fit;

static int code(float v)
{
    int q = (int)floorf(v + 0.5f);
    return q < 0 ? 0 : q > MAX_CODE ? MAX_CODE : q;
}

static void weigh(const float *x, float *w)
{
    float sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += x[i] * x[i];
    for (int i = 0; i < BLOCK; i++) w[i] = sqrtf(sum / BLOCK + x[i] * x[i]);
}

/* Round x to the codes of scale d and offset m (both as stored) and keep the fit if it is better. */
static void keep_better(fit *best, const float *x, const float *w, uint16_t d16, uint16_t m16)
{
    float d = f16_to_f32(d16), m = f16_to_f32(m16);
    fit f = {.d = d16, .m = m16};
    for (int i = 0; i < BLOCK; i++) {
        f.q[i] = (uint8_t)(d != 0 ? code((x[i] - m) / d) : 0);
        double e = (double)(x[i] - (d * f.q[i] + m));
        f.error += (double)w[i] * e * e;
    }
    if (f.error < best->error) *best = f;
}

/* Q4_0: x ≈ d * (q - 8). The scale's sign puts the largest magnitude on code 0 (-8). */
static void try_q4_0(fit *best, const float *x, const float *w, float d)
{
    double qx = 0, qq = 0;
    for (int i = 0; i < BLOCK; i++) {
        int q = code(x[i] / d + 8) - 8;
        qx += (double)w[i] * q * (double)x[i];
        qq += (double)w[i] * q * q;
    }
    float refit = qq > 0 ? (float)(qx / qq) : d;
    const float scales[] = {d, refit};
    for (int s = 0; s < 2; s++) {
        uint16_t d16 = f32_to_f16(scales[s]);
        keep_better(best, x, w, d16, f32_to_f16(-8 * f16_to_f32(d16)));
    }
}

static float largest(const float *x)
{
    float v = 0;
    for (int i = 0; i < BLOCK; i++)
        if (fabsf(x[i]) > fabsf(v)) v = x[i];
    return v;
}

static void put_q4_0(const float *x, uint8_t *out)
{
    float w[BLOCK], max = largest(x);
    fit best = {.error = INFINITY};
    weigh(x, w);
    memset(best.q, 8, sizeof best.q);
    /* Both signs: the largest weight may sit on -8 or, with a slightly larger scale, on +7. */
    for (int step = -12; max != 0 && step <= 24; step++) {
        float d = max / (-8.0f + 0.1f * (float)step);
        try_q4_0(&best, x, w, d);
        try_q4_0(&best, x, w, -d);
    }
    memcpy(out, &best.d, 2);
    for (int i = 0; i < HALF; i++) out[2 + i] = (uint8_t)(best.q[i] | best.q[i + HALF] << 4);
}

/* Q4_1: x ≈ d * q + m. Given codes, the best d and m are a weighted linear regression of x on q. */
static void try_q4_1(fit *best, const float *x, const float *w, float min, float d)
{
    double sw = 0, sq = 0, sx = 0, sqq = 0, sqx = 0;
    keep_better(best, x, w, f32_to_f16(d), f32_to_f16(min));
    for (int i = 0; i < BLOCK; i++) {
        int q = code((x[i] - min) / d);
        sw += (double)w[i];
        sq += (double)w[i] * q;
        sx += (double)w[i] * (double)x[i];
        sqq += (double)w[i] * q * q;
        sqx += (double)w[i] * q * (double)x[i];
    }
    double det = sw * sqq - sq * sq;
    if (det <= 0) return;
    keep_better(best, x, w, f32_to_f16((float)((sw * sqx - sq * sx) / det)),
                f32_to_f16((float)((sqq * sx - sq * sqx) / det)));
}

static void put_q4_1(const float *x, uint8_t *out)
{
    float w[BLOCK], min = x[0], max = x[0];
    fit best = {.error = INFINITY};
    weigh(x, w);
    for (int i = 1; i < BLOCK; i++) {
        min = fminf(min, x[i]);
        max = fmaxf(max, x[i]);
    }
    if (max == min) keep_better(&best, x, w, 0, f32_to_f16(min));
    for (int step = -10; max != min && step <= 10; step++)
        try_q4_1(&best, x, w, min, (max - min) / (15.0f + 0.2f * (float)step));
    memcpy(out, &best.d, 2);
    memcpy(out + 2, &best.m, 2);
    for (int i = 0; i < HALF; i++) out[4 + i] = (uint8_t)(best.q[i] | best.q[i + HALF] << 4);
}

void quantize_row(dtype t, const float *src, void *dst, size_t n)
{
    if (t != DT_Q4_0 && t != DT_Q4_1) {
        dtype_from_f32(t, src, dst, n);
        return;
    }
    uint8_t *out = dst;
    for (size_t i = 0; i < n; i += BLOCK, out += dtype_block_bytes(t)) {
        if (t == DT_Q4_0) put_q4_0(src + i, out);
        else put_q4_1(src + i, out);
    }
}
