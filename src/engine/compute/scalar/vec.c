/* scalar/vec.c: the specification of the vector kernels: sixteen lanes, one tree, plain loops. */
#include <math.h>

#include "compute/poly.h"
#include "compute/scalar/scalar.h"

#define LANES 16

static float tree(float *l)
{
    for (int w = LANES / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++) l[i] += l[i + w];
    return l[0];
}

float dot_scalar(const float *a, const float *b, size_t n)
{
    float l[LANES] = {0};
    for (size_t i = 0; i < n; i++) l[i % LANES] = fmaf(a[i], b[i], l[i % LANES]);
    return tree(l);
}

static float sum(const float *x, size_t n)
{
    float l[LANES] = {0};
    for (size_t i = 0; i < n; i++) l[i % LANES] += x[i];
    return tree(l);
}

/* sum of (x - mean)² */
static float spread(const float *x, float mean, size_t n)
{
    float l[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        float d = x[i] - mean;
        l[i % LANES] = fmaf(d, d, l[i % LANES]);
    }
    return tree(l);
}

void axpy_scalar(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = fmaf(a, x[i], y[i]);
}

void add_scalar(float *y, const float *x, const float *z, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = x[i] + z[i];
}

void end_rows_scalar(float *y, size_t ldy, const float *x, size_t ldx, size_t n_rows, size_t n,
                     const float *bias, bool add)
{
    for (size_t r = 0; r < n_rows; r++, y += ldy, x += ldx)
        for (size_t i = 0; i < n; i++) {
            float v = bias ? x[i] + bias[i] : x[i];
            y[i] = add ? y[i] + v : v;
        }
}

void rms_norm_scalar(float *y, const float *x, const float *w, size_t n, float eps)
{
    float r = 1.0f / sqrtf(dot_scalar(x, x, n) / (float)n + eps);
    for (size_t i = 0; i < n; i++) y[i] = x[i] * r * w[i];
}

void layer_norm_scalar(float *y, const float *x, const float *w, const float *b, size_t n_rows, size_t n,
                       float eps)
{
    for (size_t t = 0; t < n_rows; t++, y += n, x += n) {
        float mean = sum(x, n) / (float)n;
        float r = 1.0f / sqrtf(spread(x, mean, n) / (float)n + eps);
        for (size_t i = 0; i < n; i++) y[i] = fmaf((x[i] - mean) * r, w[i], b[i]);
    }
}

float attn_weigh_scalar(float *s, size_t n, float *ret_most)
{
    float max = -(float)INFINITY;
    for (size_t i = 0; i < n; i++) max = s[i] > max ? s[i] : max;
    for (size_t i = 0; i < n; i++) s[i] = math_expf(s[i] - max);
    float total = sum(s, n), r = 1.0f / total;
    for (size_t i = 0; i < n; i++) s[i] *= r;
    *ret_most = max;
    return total;
}

void softmax_scalar(float *x, size_t n)
{
    float most;
    attn_weigh_scalar(x, n, &most);
}

size_t argmax_scalar(const float *x, size_t n)
{
    float max = -(float)INFINITY;
    for (size_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    for (size_t i = 0; i < n; i++) {
        if (x[i] == max) return i;
    }
    return 0;
}

float exp_scaled_scalar(float *y, const float *x, size_t n, float max, float scale)
{
    for (size_t i = 0; i < n; i++) y[i] = math_expf((x[i] - max) * scale);
    return sum(y, n);
}

double exp_sums_scalar(float *sums, const float *x, size_t n, float max, float scale)
{
    float e[EXP_SUMS_BLOCK];
    double total = 0;
    for (size_t at = 0; at < n; at += EXP_SUMS_BLOCK, sums++) {
        *sums = exp_scaled_scalar(e, x + at, n - at < EXP_SUMS_BLOCK ? n - at : EXP_SUMS_BLOCK, max, scale);
        total += (double)*sums;
    }
    return total;
}

void silu_mul_scalar(float *y, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = gate[i] / (1.0f + math_expf(-gate[i])) * up[i];
}

void gelu_erf_scalar(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = gelu(x[i], gelu_erf_terms);
}

void gelu_tanh_scalar(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = gelu(x[i], gelu_tanh_terms);
}

void relu_scalar(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = 0.0f > x[i] ? 0.0f : x[i]; /* NaN stays */
}

void tanh_scalar(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = math_tanhf(x[i]);
}

void rope_scalar(float *x, size_t n_heads, size_t head_dim, size_t rot_dim, const float *cos,
                 const float *sin, bool interleaved)
{
    size_t half = rot_dim / 2, apart = interleaved ? 1 : half, step = interleaved ? 2 : 1;
    for (size_t h = 0; h < n_heads; h++, x += head_dim) {
        for (size_t i = 0; i < half; i++) {
            float *a = x + i * step, *b = a + apart, v = *a, w = *b;
            *a = fmaf(v, cos[i], -(w * sin[i]));
            *b = fmaf(v, sin[i], w * cos[i]);
        }
    }
}

void attn_turn_scalar(float *kt, const float *k, size_t ldk, size_t d)
{
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < LANES; j++) kt[i * LANES + j] = k[j * ldk + i];
}

void attn_scores_scalar(float *s, size_t lds, const float *q, size_t ldq, size_t n_q, const float *kt,
                        size_t d, float scale)
{
    for (size_t h = 0; h < n_q; h++) {
        for (size_t i = 0; i < LANES; i++) {
            float c[4] = {0};
            for (size_t t = 0; t < d; t++) c[t % 4] = fmaf(q[h * ldq + t], kt[t * LANES + i], c[t % 4]);
            s[h * lds + i] = ((c[0] + c[1]) + (c[2] + c[3])) * scale;
        }
    }
}

void attn_mix_scalar(float *y, size_t ldy, const float *p, size_t ldp, size_t n_q, const float *v, size_t ldv,
                     size_t n, size_t d)
{
    for (size_t h = 0; h < n_q; h++)
        for (size_t i = 0; i < n; i++) axpy_scalar(y + h * ldy, p[h * ldp + i], v + i * ldv, d);
}

void attn_scores_f16_scalar(float *s, size_t lds, const float *q, size_t ldq, size_t n_q, const uint16_t *kt,
                            size_t d, float scale)
{
    for (size_t h = 0; h < n_q; h++) {
        for (size_t i = 0; i < LANES; i++) {
            float c[4] = {0};
            for (size_t t = 0; t < d; t++)
                c[t % 4] = fmaf(q[h * ldq + t], f16_to_f32(kt[t * LANES + i]), c[t % 4]);
            s[h * lds + i] = ((c[0] + c[1]) + (c[2] + c[3])) * scale;
        }
    }
}

void attn_mix_f16_scalar(float *y, size_t ldy, const float *p, size_t ldp, size_t n_q, const uint16_t *v,
                         size_t ldv, size_t n, size_t d)
{
    for (size_t h = 0; h < n_q; h++)
        for (size_t i = 0; i < n; i++)
            for (size_t t = 0; t < d; t++)
                y[h * ldy + t] = fmaf(p[h * ldp + i], f16_to_f32(v[i * ldv + t]), y[h * ldy + t]);
}

void attn_join_scalar(float *y, float a, const float *x, float b, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = fmaf(b, x[i], a * y[i]);
}

void from_f16_scalar(float *y, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = f16_to_f32(x[i]);
}

void to_f16_scalar(uint16_t *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = f32_to_f16(x[i]);
}

void dots_i8_scalar(int32_t *y, const int8_t *q, const int8_t *rows, size_t n_rows, size_t d)
{
    for (size_t r = 0; r < n_rows; r++) {
        y[r] = 0;
        for (size_t i = 0; i < d; i++) y[r] += q[i] * rows[r * d + i];
    }
}
