/* formats_quantise.c: the plain quantiser: every run's scale is what its extreme weights ask for. For Q4_0
 * and Q4_1 it is the ggml reference's rule, operation by operation. */
#include <math.h>
#include <string.h>

#include "compute/formats.h"

/* As an integer in [min, max]; NaN gives min, so hostile weights cannot overflow the conversion. */
static int clamp_int(float f, int min, int max)
{
    if (!(f > (float)min)) return min;
    return f < (float)max ? (int)f : max;
}

static float inverse_of(float f)
{
    return f != 0 ? 1.0f / f : 0.0f;
}

/* The element farthest from zero, the first among equals. */
static float farthest(const float *x, size_t n)
{
    float far = 0;
    for (size_t i = 0; i < n; i++) far = fabsf(x[i]) > fabsf(far) ? x[i] : far;
    return far;
}

/* The scale and minimum that a run wants. A minimum that is stored unsigned is at most zero. */
static void wish(const wfmt *f, const float *x, float *scale, float *minimum)
{
    *minimum = 0;
    if (!wfmt_has_min(f)) { /* the farthest element becomes exactly the lowest value */
        int lowest = f->values ? wfmt_value(f, 0) : -(int)f->zero;
        *scale = farthest(x, f->run) / (float)(lowest ? lowest : -12);
        return;
    }
    float min = x[0], max = x[0];
    for (size_t i = 1; i < f->run; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    if (f->scales != SCALES_F16_MIN && !(min < 0)) min = 0;
    *scale = (max - min) / (float)((1 << f->bits) - 1);
    *minimum = min;
}

/* The whole power of two at or below the number that brings the farthest element to 4..8 (OCP MX 6.3). */
static uint16_t exponent_for(float scale)
{
    float far = fabsf(scale) * 12;
    if (!(far >= 0x1p-124f)) return 0;
    int e;
    frexpf(far, &e); /* far in [2^(e-1), 2^e) */
    return (uint16_t)(isinf(far) ? 254 : e - 3 + 127);
}

/* Integers for v[n] as multiples of a shared F16 number: the farthest becomes `far_code`. */
static uint16_t share(const float *v, size_t n, int far_code, int min, int max, uint8_t *ret)
{
    float d = farthest(v, n) / (float)far_code, inverse = inverse_of(d);
    for (size_t i = 0; i < n; i++) ret[i] = (uint8_t)clamp_int(rintf(v[i] * inverse), min, max);
    return f32_to_f16(d);
}

static void share_subs(const wfmt *f, const float *scale, const float *minimum, wblock *b)
{
    size_t n = (size_t)f->block / f->run;
    if (f->scales == SCALES_SUB) {
        int lowest = f->sub == SUB_INT8 ? -128 : -32;
        b->d = share(scale, n, lowest, lowest, -lowest - 1, b->scale);
        return;
    }
    int top = f->sub == SUB_4_4 ? 15 : 63;
    float depth[WRUNS_MAX];
    for (size_t i = 0; i < n; i++) depth[i] = -minimum[i];
    b->d = share(scale, n, top, 0, top, b->scale);
    b->m = share(depth, n, top, 0, top, b->min);
}

static uint8_t nearest_value(const wfmt *f, float v)
{
    uint8_t best = 0;
    float error = INFINITY;
    for (unsigned i = 0; i < 16; i++) {
        float e = fabsf(v - (float)f->values[i]);
        if (!(e < error)) continue;
        error = e;
        best = (uint8_t)i;
    }
    return best;
}

static void choose_codes(const wfmt *f, const float *x, float scale, float minimum, uint8_t *code)
{
    float inverse = inverse_of(scale), top = (float)((1 << f->bits) - 1);
    for (size_t i = 0; i < f->run; i++)
        code[i] = f->values
                      ? nearest_value(f, x[i] * inverse)
                      : (uint8_t)clamp_int((x[i] - minimum) * inverse + ((float)f->zero + 0.5f), 0, (int)top);
}

static void of_8_bits(const float *x, size_t n, wblock *b)
{
    float d = fabsf(farthest(x, n)) / 127.0f, inverse = inverse_of(d);
    b->d = f32_to_f16(d);
    for (size_t i = 0; i < n; i++) b->code[i] = (uint8_t)(clamp_int(roundf(x[i] * inverse), -127, 127) + 128);
}

void formats_quantise(dtype t, const float *src, wblock *ret)
{
    const wfmt *f = &wfmt_table[t];
    float scale[WRUNS_MAX], minimum[WRUNS_MAX];
    size_t n = (size_t)f->block / f->run;
    memset(ret, 0, sizeof *ret);
    if (f->bits == 8) {
        of_8_bits(src, f->block, ret);
        return;
    }
    for (size_t i = 0; i < n; i++) wish(f, src + i * f->run, &scale[i], &minimum[i]);
    if (f->sub != SUB_NONE) {
        share_subs(f, scale, minimum, ret);
        formats_scales(t, ret, scale, minimum);
    } else if (f->scales == SCALES_E8) {
        ret->d = exponent_for(scale[0]);
        scale[0] = e8_to_f32((uint8_t)ret->d);
    } else { /* the codes are chosen for the scale before it is rounded, as the reference does */
        ret->d = f32_to_f16(scale[0]);
        ret->m = f32_to_f16(minimum[0]);
    }
    for (size_t i = 0; i < n; i++)
        choose_codes(f, src + i * f->run, scale[i], minimum[i], ret->code + i * f->run);
}
