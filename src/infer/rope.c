/* rope.c: tables of rotary angles; see rope.h. In double and with compute/math.c's functions, so that every
 * machine has the same bits. */
#include "infer/rope.h"

#include <stdlib.h>

#include "base/buf.h"
#include "compute/compute.h"

#define TWO_PI 6.283185307179586476925286766559

static double llama3_scale(const model_config *c, double f)
{
    double wavelength = TWO_PI / f;
    double ctx = (double)c->pos.rope.original_ctx;
    if (wavelength < ctx / c->pos.rope.high_freq) return f;
    if (wavelength > ctx / c->pos.rope.low_freq) return f / c->pos.rope.factor;
    double smooth =
        (ctx / wavelength - c->pos.rope.low_freq) / (c->pos.rope.high_freq - c->pos.rope.low_freq);
    return (1 - smooth) * f / c->pos.rope.factor + smooth * f;
}

static double frequency(const model_config *c, const float *factors, size_t i)
{
    double f = math_pow(c->pos.rope.theta, -2.0 * (double)i / (double)c->pos.rope.dim);
    if (factors) {
        f /= (double)factors[i];
    } else if (c->pos.rope.scaling == ROPE_LLAMA3) {
        f = llama3_scale(c, f);
    }
    return c->pos.rope.scaling == ROPE_LINEAR ? f / c->pos.rope.factor : f;
}

int rope_init(rope_table *t, const model_config *c, size_t n_ctx, const float *factors, shoal_err *err)
{
    size_t half = c->pos.rope.dim / 2, n;
    if (size_mul(n_ctx, half, &n))
        return err_set(err, SHOAL_ELIMIT, "a context of %zu tokens is absurd", n_ctx);
    *t = (rope_table){.n_ctx = n_ctx, .half = half};
    t->cos = mem_calloc64(n ? n : 1, sizeof(float));
    t->sin = mem_calloc64(n ? n : 1, sizeof(float));
    if (!t->cos || !t->sin) {
        rope_done(t);
        return err_nomem(err);
    }
    for (size_t i = 0; i < half; i++) {
        double f = frequency(c, factors, i);
        for (size_t p = 0; p < n_ctx; p++) {
            double s, k;
            math_sincos((double)p * f, &s, &k);
            t->sin[p * half + i] = (float)s;
            t->cos[p * half + i] = (float)k;
        }
    }
    return 0;
}

void rope_done(rope_table *t)
{
    free(t->cos);
    free(t->sin);
    *t = (rope_table){0};
}
