/* rope.c: tables of rotary angles; see rope.h. In double and with compute/math.c's functions, so that every
 * machine has the same bits. */
#include "net/attention/rope.h"

#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "compute/compute.h"
#include "net/proj.h"

#define TWO_PI 6.283185307179586476925286766559

static double llama3_scale(const rope_conf *r, double f)
{
    double wavelength = TWO_PI / f;
    double ctx = (double)r->original_ctx;
    if (wavelength < ctx / r->high_freq) return f;
    if (wavelength > ctx / r->low_freq) return f / r->factor;
    double smooth = (ctx / wavelength - r->low_freq) / (r->high_freq - r->low_freq);
    return (1 - smooth) * f / r->factor + smooth * f;
}

/* The pair that turns `turns` times within the original context. */
static double yarn_pair(const rope_conf *r, double turns)
{
    double n = (double)r->original_ctx / (turns * TWO_PI);
    return (double)r->dim * math_log(n) / (2 * math_log(r->theta));
}

static double yarn_scale(const rope_conf *r, double f, size_t i)
{
    double low = floor(yarn_pair(r, r->beta_fast > 0 ? r->beta_fast : 32));
    double high = ceil(yarn_pair(r, r->beta_slow > 0 ? r->beta_slow : 1));
    if (low < 0) low = 0;
    if (high > (double)r->dim - 1) high = (double)r->dim - 1;
    if (high == low) high += 0.001;
    double ramp = ((double)i - low) / (high - low);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return f / r->factor * ramp + f * (1 - ramp);
}

static double dynamic_theta(const rope_conf *r, size_t n)
{
    double dim = (double)r->dim, longer = (double)n / (double)r->original_ctx;
    return r->theta * math_pow(r->factor * longer - (r->factor - 1), dim / (dim - 2));
}

/* Of pair i in a text of n tokens. */
static double frequency(const rope_conf *r, const float *factors, size_t i, size_t n)
{
    bool past = r->original_ctx > 0 && n > r->original_ctx;
    double theta = r->scaling == ROPE_DYNAMIC && past && r->dim > 2 ? dynamic_theta(r, n) : r->theta;
    double f = math_pow(theta, -2.0 * (double)i / (double)r->dim);
    if (factors) f /= (double)factors[i];
    switch (r->scaling) {
    case ROPE_LINEAR: return f / r->factor;
    case ROPE_LLAMA3: return factors ? f : llama3_scale(r, f);
    case ROPE_YARN: return yarn_scale(r, f, i);
    case ROPE_LONG: {
        const float *by = past ? r->long_by : r->short_by;
        return by ? f / (double)by[i] : f;
    }
    default: return f;
    }
}

/* What cos and sin are multiplied by. */
static double magnitude(const rope_conf *r)
{
    if (r->scaling != ROPE_YARN && r->scaling != ROPE_LONG) return 1;
    if (r->attn_factor > 0) return r->attn_factor;
    if (r->factor <= 1) return 1;
    if (r->scaling == ROPE_YARN) return 0.1 * math_log(r->factor) + 1;
    return r->original_ctx > 1 ? sqrt(1 + math_log(r->factor) / math_log((double)r->original_ctx)) : 1;
}

/* Positions [0, n_ctx) of pair i; a frequency is made again only where it depends on the length. */
static void fill_pair(rope_table *t, const rope_conf *r, const float *factors, size_t i)
{
    double scale = magnitude(r), f = 0;
    for (size_t p = 0; p < t->n_ctx; p++) {
        bool changes = (r->scaling == ROPE_DYNAMIC && p + 1 > r->original_ctx) ||
                       (r->scaling == ROPE_LONG && p == r->original_ctx);
        double s, k;
        if (p == 0 || changes) f = frequency(r, factors, i, p + 1);
        math_sincos((double)p * f, &s, &k);
        t->sin[p * t->half + i] = (float)(s * scale);
        t->cos[p * t->half + i] = (float)(k * scale);
    }
}

int rope_init(rope_table *t, const rope_conf *r, size_t n_ctx, const float *factors, shoal_err *err)
{
    size_t half = r->dim / 2, n;
    if (size_mul(n_ctx, half, &n))
        return err_set(err, SHOAL_ELIMIT, "a context of %zu tokens is absurd", n_ctx);
    *t = (rope_table){.n_ctx = n_ctx, .half = half, .interleaved = r->interleaved};
    t->cos = mem_calloc64(n ? n : 1, sizeof(float));
    t->sin = mem_calloc64(n ? n : 1, sizeof(float));
    if (!t->cos || !t->sin) {
        rope_done(t);
        return err_nomem(err);
    }
    for (size_t i = 0; i < half; i++) fill_pair(t, r, factors, i);
    return 0;
}

void rope_done(rope_table *t)
{
    free(t->cos);
    free(t->sin);
    *t = (rope_table){0};
}

/* Divisors of frequencies that the configuration does not carry but the file does. */
static int load_factors(float **ret, const model *m, const char *name, size_t n, shoal_err *err)
{
    const tensor *t = model_tensor(m, name);
    *ret = NULL;
    int rc = t && t->data ? proj_load_vector(ret, m, name, n, err) : 0;
    for (size_t i = 0; rc == 0 && *ret && i < n; i++)
        if (!((*ret)[i] > 0 && (*ret)[i] < INFINITY))
            rc = err_set(err, SHOAL_EFORMAT, "%s: value %zu is %g, which divides no frequency", name, i,
                         (double)(*ret)[i]);
    return rc;
}

int rope_load(rope_table *t, const model *m, const rope_conf *conf, size_t n_ctx, shoal_err *err)
{
    rope_conf r = *conf;
    float *factors = NULL, *short_by = NULL, *long_by = NULL;
    int rc = load_factors(&factors, m, "rope_freqs.weight", r.dim / 2, err);
    if (rc == 0 && !r.short_by) rc = load_factors(&short_by, m, "rope_factors_short.weight", r.dim / 2, err);
    if (rc == 0 && !r.long_by) rc = load_factors(&long_by, m, "rope_factors_long.weight", r.dim / 2, err);
    if (short_by) r.short_by = short_by;
    if (long_by) r.long_by = long_by;
    if (rc == 0) rc = rope_init(t, &r, n_ctx, factors, err);
    free(factors);
    free(short_by);
    free(long_by);
    return rc;
}
