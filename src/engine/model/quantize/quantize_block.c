/* quantize_block.c: the search for scales; quantize_block.h has the reason and the gain, compute/formats.h
 * what a block holds. */
#include "model/quantize/quantize_block.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compute/formats.h"

enum { RUN_MAX = WBLOCK_MAX, SUPER_RUN_MAX = 32 };

/* x ≈ scale * value + minimum, and what that costs. */
typedef struct fit {
    float scale, minimum, error;
} fit;

/* A run of weights that share a scale, with how much each error counts. */
typedef struct run {
    const wfmt *f;
    const float *x;
    size_t n;
    float w[RUN_MAX];
    float middle[15]; /* of a table: between neighbouring values */
} run;

/* Sums from which least squares take scale and minimum; v is a weight's value. */
typedef struct sums {
    float w, wv, wvv, wx, wvx;
} sums;

/* `square`: the block's mean of x². */
static void run_init(run *r, const wfmt *f, const float *x, const float *importance, float square)
{
    r->f = f;
    r->x = x;
    r->n = f->run;
    for (size_t i = 0; i < r->n; i++) r->w[i] = importance ? importance[i] : sqrtf(square + x[i] * x[i]);
    for (size_t i = 0; f->values && i < 15; i++) r->middle[i] = 0.5f * (f->values[i] + f->values[i + 1]);
}

/* The nearest code of values that increase with their code; 0 for NaN. No libm call, since this runs some
 * hundred times a weight. */
static int table_code(const run *r, float v)
{
    int code = 0;
    for (int i = 0; i < 15; i++) code += v > r->middle[i];
    return code;
}

/* E2M1 has a sign bit and increasing magnitudes. */
static int e2m1_code(const run *r, float v)
{
    int code = 0;
    for (int i = 0; i < 7; i++) code += fabsf(v) > r->middle[i];
    return v < 0 ? code + 8 : code;
}

/* code[n] = nearest to (x - minimum) / scale; value[n] what they stand for. */
static void run_codes(const run *r, float scale, float minimum, uint8_t *code, float *value)
{
    const wfmt *f = r->f;
    float inverse = scale != 0 ? 1 / scale : 0, zero = f->zero, top = (float)((1 << f->bits) - 1);
    for (size_t i = 0; i < r->n; i++) {
        float v = (r->x[i] - minimum) * inverse;
        if (!f->values) {
            float q = v + zero;
            code[i] = (uint8_t)(!(q > 0) ? 0 : q >= top ? (int)top : (int)(q + 0.5f));
            value[i] = (float)code[i] - zero;
        } else {
            code[i] = (uint8_t)(f->scales == SCALES_E8 ? e2m1_code(r, v) : table_code(r, v));
            value[i] = f->values[code[i]];
        }
    }
}

static void add_sums(const run *r, const float *value, sums *s)
{
    for (size_t i = 0; i < r->n; i++) {
        float wv = r->w[i] * value[i];
        s->w += r->w[i];
        s->wv += wv;
        s->wvv += wv * value[i];
        s->wx += r->w[i] * r->x[i];
        s->wvx += wv * r->x[i];
    }
}

static float run_error(const run *r, const float *value, float scale, float minimum)
{
    float e = 0;
    for (size_t i = 0; i < r->n; i++) {
        float d = r->x[i] - (scale * value[i] + minimum);
        e += r->w[i] * d * d;
    }
    return e;
}

/* ---- one run alone --------------------------------------------------------------------------------- */

/* The best scale and minimum for given values: with minima the weighted linear regression of x on v. One
 * that is stored unsigned is at most 0. */
static fit refit(const run *r, const float *value)
{
    sums s = {0};
    fit ret = {0};
    add_sums(r, value, &s);
    float det = s.w * s.wvv - s.wv * s.wv;
    if (wfmt_has_min(r->f) && det > 0) {
        ret.scale = (s.w * s.wvx - s.wv * s.wx) / det;
        ret.minimum = (s.wvv * s.wx - s.wv * s.wvx) / det;
    }
    bool free_min = r->f->scales == SCALES_F16_MIN && det > 0;
    if (!free_min && !(ret.minimum < 0)) {
        ret.minimum = 0;
        ret.scale = s.wvv > 0 ? s.wvx / s.wvv : 0;
    }
    ret.error = run_error(r, value, ret.scale, ret.minimum);
    return ret;
}

static void try_scale(const run *r, float inverse, float minimum, fit *best)
{
    uint8_t code[RUN_MAX];
    float value[RUN_MAX];
    run_codes(r, 1 / inverse, minimum, code, value);
    fit f = refit(r, value);
    bool possible = r->f->scales != SCALES_SUB_MIN && r->f->scales != SCALES_SUB_MIN4;
    if (f.error < best->error && (possible || f.scale >= 0)) *best = f;
}

/* Without minima, both signs: the largest weight may sit on the lowest code or, with a slightly larger
 * scale, on the highest. */
static fit fit_scale(const run *r)
{
    float far = 0, lowest = r->f->values ? r->f->values[0] : -(float)r->f->zero;
    for (size_t i = 0; i < r->n; i++)
        if (fabsf(r->x[i]) > fabsf(far)) far = r->x[i];
    fit best = {.error = INFINITY};
    if (!(fabsf(far) > 1e-30f)) return (fit){0};
    float step = r->f->values ? 0.05f * lowest : -0.25f;
    for (int i = -9; i <= 4; i++) {
        float inverse = (lowest + step * (float)i) / far;
        if (r->f->values && i % 2 != 0) continue; /* a table is slower to search and its scale coarser */
        try_scale(r, inverse, 0, &best);
        try_scale(r, -inverse, 0, &best);
    }
    return best;
}

static fit fit_scale_and_min(const run *r)
{
    float min = r->x[0], max = r->x[0], top = (float)((1 << r->f->bits) - 1);
    for (size_t i = 1; i < r->n; i++) {
        min = fminf(min, r->x[i]);
        max = fmaxf(max, r->x[i]);
    }
    if (r->f->scales != SCALES_F16_MIN) min = fminf(min, 0);
    fit best = {.minimum = min, .error = INFINITY}; /* what equal values keep */
    float step = top < 15 ? 0.15f : 0.4f;
    for (int i = -5; max - min > 1e-30f && i <= 5; i++)
        try_scale(r, (top + step * (float)i) / (max - min), min, &best);
    return best;
}

/* ---- a block of one run -------------------------------------------------------------------------------- */

static void single_f16(run *r, wblock *b)
{
    fit best = wfmt_has_min(r->f) ? fit_scale_and_min(r) : fit_scale(r);
    float value[RUN_MAX];
    b->d = f32_to_f16(best.scale);
    b->m = f32_to_f16(best.minimum);
    run_codes(r, f16_to_f32(b->d), f16_to_f32(b->m), b->code, value);
}

/* MXFP4: the power of two at which the farthest weight is 4 to 8 steps away, or a neighbour. */
static void single_e8(run *r, wblock *b)
{
    float far = 0, value[RUN_MAX], least = INFINITY;
    uint8_t code[RUN_MAX];
    for (size_t i = 0; i < r->n; i++) far = fmaxf(far, fabsf(r->x[i]));
    int e = 0;
    frexpf(far, &e);
    for (int k = e - 4; far > 0x1p-120f && k <= e - 2; k++) {
        int stored = k + 127 < 0 ? 0 : k + 127 > 254 ? 254 : k + 127;
        float scale = e8_to_f32((uint8_t)stored);
        run_codes(r, scale, 0, code, value);
        float error = run_error(r, value, scale, 0);
        if (!(error < least)) continue;
        least = error;
        b->d = (uint16_t)stored;
        memcpy(b->code, code, r->n);
    }
}

/* ---- super-blocks -------------------------------------------------------------------------------------- */

typedef struct super {
    const wfmt *f;
    dtype type;
    size_t n_runs;
    run run[WRUNS_MAX];
    float value[WRUNS_MAX][SUPER_RUN_MAX];
    wblock *b;
} super;

static int clamp_int(float v, int low, int high)
{
    return !(v > (float)low) ? low : v >= (float)high ? high : (int)rintf(v);
}

/* The integers of a run's scale: lowest and highest. */
static void sub_range(const wfmt *f, int *low, int *high)
{
    *high = f->sub == SUB_4_4 ? 15 : f->sub == SUB_6_6 ? 63 : f->sub == SUB_INT8 ? 127 : 31;
    *low = wfmt_has_min(f) ? 0 : -*high - 1;
}

/* First guess: the largest wish takes the largest integer. */
static void share_wishes(super *s)
{
    fit wish[WRUNS_MAX];
    float far = 0, deep = 0;
    int low, high;
    sub_range(s->f, &low, &high);
    for (size_t i = 0; i < s->n_runs; i++) {
        wish[i] = wfmt_has_min(s->f) ? fit_scale_and_min(&s->run[i]) : fit_scale(&s->run[i]);
        if (fabsf(wish[i].scale) > fabsf(far)) far = wish[i].scale;
        deep = fmaxf(deep, -wish[i].minimum);
    }
    s->b->d = f32_to_f16(far / (float)(low < 0 ? low : high));
    s->b->m = f32_to_f16(deep / (float)high);
    float d = f16_to_f32(s->b->d), m = f16_to_f32(s->b->m);
    for (size_t i = 0; i < s->n_runs; i++) {
        s->b->scale[i] = (uint8_t)clamp_int(d != 0 ? wish[i].scale / d : 0, low, high);
        s->b->min[i] = (uint8_t)clamp_int(m != 0 ? -wish[i].minimum / m : 0, 0, high);
    }
}

static int stored_scale(const super *s, size_t i)
{
    return wfmt_has_min(s->f) ? s->b->scale[i] : (int8_t)s->b->scale[i];
}

/* With the block's numbers fixed, the best integers of run i among the neighbours of today's. */
static void improve_run(super *s, size_t i)
{
    run *r = &s->run[i];
    int low, high, scale = stored_scale(s, i), min = s->b->min[i], reach = wfmt_has_min(s->f) ? 1 : 0;
    float d = f16_to_f32(s->b->d), m = f16_to_f32(s->b->m), least = INFINITY, value[RUN_MAX];
    uint8_t code[RUN_MAX];
    sub_range(s->f, &low, &high);
    for (int a = scale - 1; a <= scale + 1; a++)
        for (int c = min - reach; c <= min + reach; c++) {
            if (a < low || a > high || c < 0 || c > high) continue;
            run_codes(r, d * (float)a, -(m * (float)c), code, value);
            float error = run_error(r, value, d * (float)a, -(m * (float)c));
            if (!(error < least)) continue;
            least = error;
            s->b->scale[i] = (uint8_t)a;
            s->b->min[i] = (uint8_t)c;
            memcpy(s->b->code + i * r->n, code, r->n);
            memcpy(s->value[i], value, sizeof s->value[i]);
        }
}

/* With codes and integers fixed, x ≈ d * (integer * value) - m * integer is linear in d and m. */
static void refit_block(super *s)
{
    double aa = 0, ac = 0, cc = 0, ax = 0, cx = 0;
    for (size_t i = 0; i < s->n_runs; i++) {
        const run *r = &s->run[i];
        double scale = stored_scale(s, i), min = -(double)s->b->min[i];
        sums k = {0};
        add_sums(r, s->value[i], &k);
        aa += scale * scale * (double)k.wvv;
        ac += scale * min * (double)k.wv;
        cc += min * min * (double)k.w;
        ax += scale * (double)k.wvx;
        cx += min * (double)k.wx;
    }
    double det = aa * cc - ac * ac;
    if (wfmt_has_min(s->f) && det > 1e-9 * aa * cc) {
        double d = (ax * cc - cx * ac) / det, m = (cx * aa - ax * ac) / det;
        if (d > 0 && m >= 0) {
            s->b->d = f32_to_f16((float)d);
            s->b->m = f32_to_f16((float)m);
        }
    } else if (aa > 0 && cc == 0) {
        s->b->d = f32_to_f16((float)(ax / aa));
    }
}

static float super_error(const super *s)
{
    float scale[WRUNS_MAX], minimum[WRUNS_MAX] = {0}, e = 0;
    formats_scales(s->type, s->b, scale, minimum);
    for (size_t i = 0; i < s->n_runs; i++) e += run_error(&s->run[i], s->value[i], scale[i], minimum[i]);
    return e;
}

static void super_block(super *s)
{
    share_wishes(s);
    for (size_t i = 0; i < s->n_runs; i++) improve_run(s, i);
    for (int round = 0; round < 3; round++) {
        wblock before = *s->b;
        float error = super_error(s);
        refit_block(s);
        for (size_t i = 0; i < s->n_runs; i++) improve_run(s, i);
        if (super_error(s) < 0.999f * error) continue;
        if (!(super_error(s) <= error)) *s->b = before; /* rounding to F16 may lose what the fit gained */
        break;
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static float mean_square(const float *x, size_t n)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum / (float)n;
}

static void quantize_super(dtype t, const float *x, const float *importance, wblock *b)
{
    const wfmt *f = &wfmt_table[t];
    super s = {.f = f, .type = t, .n_runs = (size_t)f->block / f->run, .b = b};
    float square = mean_square(x, f->block);
    for (size_t i = 0; i < s.n_runs; i++)
        run_init(&s.run[i], f, x + i * f->run, importance ? importance + i * f->run : NULL, square);
    super_block(&s);
}

static void quantize_one(dtype t, const float *x, const float *importance, wblock *b)
{
    const wfmt *f = &wfmt_table[t];
    *b = (wblock){0};
    if (f->sub != SUB_NONE) {
        quantize_super(t, x, importance, b);
        return;
    }
    run r;
    run_init(&r, f, x, importance, mean_square(x, f->block));
    if (f->scales == SCALES_E8)
        single_e8(&r, b);
    else
        single_f16(&r, b);
}

void quantize_row(dtype t, const float *src, const float *importance, void *dst, size_t n)
{
    uint8_t *out = dst;
    bool wide_codes = wfmt_table[t].bits == 8 && !importance;
    if (dtype_is_float(t) || t == DT_Q8_0 || wide_codes) {
        dtype_from_f32(t, src, dst, n);
        return;
    }
    for (size_t i = 0; i < n; i += dtype_block(t), out += dtype_block_bytes(t)) {
        wblock b;
        quantize_one(t, src + i, importance ? importance + i : NULL, &b);
        formats_put(t, &b, out);
    }
}
