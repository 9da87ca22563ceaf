/* scalar/attn_q8.c: the specification of attention over keys and values of int8. */
#include <math.h>
#include <string.h>

#include "compute/scalar/scalar.h"

#define LANES 16

static float value_at(const uint8_t *tile, size_t i)
{
    float f;
    memcpy(&f, tile + i * sizeof f, sizeof f);
    return f;
}

/* x[n] to codes of -127 to 127; returns their scale. */
static float codes_of(int8_t *q, const float *x, size_t n)
{
    float most = 0;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite &= isfinite(x[i]) != 0;
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    }
    memset(q, 0, n);
    if (!finite) return (float)NAN;
    if (most < ACTS_TINY) return 0;
    float inverse = 127.0f / most;
    for (size_t i = 0; i < n; i++) q[i] = (int8_t)nearbyintf(x[i] * inverse);
    return most * ATTN_ONE_127TH;
}

float attn_quantise_scalar(int8_t *q, int32_t *ret_sum, const float *x, size_t d)
{
    float scale = codes_of(q, x, d);
    *ret_sum = 0;
    for (size_t i = 0; i < d; i++) *ret_sum += q[i];
    return scale;
}

void attn_scores_q8_scalar(float *s, size_t lds, const int8_t *q, const float *scale, const int32_t *sum,
                           size_t n_q, const uint8_t *tile, size_t d)
{
    const uint8_t *codes = tile + ATTN_Q8_SCALES;
    for (size_t h = 0; h < n_q; h++) {
        for (size_t i = 0; i < LANES; i++) {
            int32_t dot = -128 * sum[h];
            for (size_t t = 0; t < d; t++) dot += q[h * d + t] * codes[t / 4 * 4 * LANES + i * 4 + t % 4];
            s[h * lds + i] = (float)dot * value_at(tile, i) * scale[h];
        }
    }
}

float attn_weigh_q8_scalar(float *s, size_t n_tiles, const float *value_scale, float *ret_most)
{
    float most = -(float)INFINITY, total[LANES] = {0}, w[LANES];
    for (size_t i = 0; i < n_tiles * LANES; i++) most = s[i] > most ? s[i] : most;
    for (size_t k = 0; k < n_tiles; k++, s += LANES, value_scale += LANES) {
        for (size_t i = 0; i < LANES; i++) {
            float e = math_expf(s[i] - most);
            total[i] += e;
            w[i] = e > 0 ? e * value_scale[i] : 0;
        }
        float scale = codes_of((int8_t *)s, w, LANES);
        s[ATTN_WEIGHT_SCALE] = scale;
    }
    for (size_t width = LANES / 2; width > 0; width /= 2)
        for (size_t i = 0; i < width; i++) total[i] += total[i + width];
    *ret_most = most;
    return total[0];
}

void attn_mix_q8_scalar(float *y, size_t ldy, const float *w, size_t ldw, size_t n_q, const attn_tiles *v,
                        size_t d)
{
    for (size_t h = 0; h < n_q; h++) {
        for (size_t k = 0; k < v->n; k++) {
            const int8_t *codes = (const int8_t *)v->base + v->page[k] * v->stride + ATTN_Q8_SCALES;
            const float *line = w + h * ldw + k * LANES;
            const int8_t *p = (const int8_t *)line;
            for (size_t t = 0; t < d; t++) {
                int32_t dot = 0;
                for (size_t i = 0; i < LANES; i++) dot += p[i] * codes[(i / 4 * d + t) * 4 + i % 4];
                y[h * ldy + t] = fmaf((float)dot, line[ATTN_WEIGHT_SCALE], y[h * ldy + t]);
            }
        }
    }
}
