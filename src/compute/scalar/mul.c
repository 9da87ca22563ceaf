/* scalar/mul.c: the specification of the products. One output at a time, columns in order. */
#include <math.h>
#include <string.h>

#include "compute/scalar/scalar.h"

/* acc[16] = one panel times one token; w, scales and the token's activations start at block 0. */

static void panel_f32(const float *w, const float *x, size_t cols, float *acc)
{
    for (size_t c = 0; c < cols; c++)
        for (size_t r = 0; r < PANEL_ROWS; r++) acc[r] = fmaf(w[c * PANEL_ROWS + r], x[c], acc[r]);
}

static void panel_f16(const uint16_t *w, const float *x, size_t cols, float *acc)
{
    for (size_t c = 0; c < cols; c++)
        for (size_t r = 0; r < PANEL_ROWS; r++)
            acc[r] = fmaf(f16_to_f32(w[c * PANEL_ROWS + r]), x[c], acc[r]);
}

static void panel_bf16(const uint16_t *w, const float *x, size_t cols, float *acc)
{
    for (size_t c = 0; c < cols; c++)
        for (size_t r = 0; r < PANEL_ROWS; r++) {
            uint32_t bits = (uint32_t)w[c * PANEL_ROWS + r] << 16;
            float f;
            memcpy(&f, &bits, sizeof f);
            acc[r] = fmaf(f, x[c], acc[r]);
        }
}

static int32_t dot_q8(const uint8_t *w, const int8_t *q)
{
    int32_t dot = 0;
    for (size_t c = 0; c < 32; c++) dot += ((int32_t)w[c / 4 * 64 + c % 4] - 128) * q[c];
    return dot;
}

/* The nibbles as they are stored, 0..15. */
static int32_t dot_q4(const uint8_t *w, const int8_t *q)
{
    int32_t dot = 0;
    for (size_t c = 0; c < 32; c++) dot += (w[c / 8 * 64 + c % 4] >> (c & 4) & 15) * q[c];
    return dot;
}

static void panel_q8_0(const mul_job *j, const uint8_t *w, const uint16_t *scales, size_t t, float *acc)
{
    for (size_t b = 0; b < j->n_blocks; b++, w += 512, scales += PANEL_ROWS) {
        const int8_t *q = j->q + t * j->cols + b * 32;
        float scale = j->scale[t * j->n_blocks + b];
        for (size_t r = 0; r < PANEL_ROWS; r++)
            acc[r] = fmaf((float)dot_q8(w + r * 4, q), f16_to_f32(scales[r]) * scale, acc[r]);
    }
}

static void panel_q4_0(const mul_job *j, const uint8_t *w, const uint16_t *scales, size_t t, float *acc)
{
    for (size_t b = 0; b < j->n_blocks; b++, w += 256, scales += PANEL_ROWS) {
        const int8_t *q = j->q + t * j->cols + b * 32;
        float scale = j->scale[t * j->n_blocks + b];
        int32_t sum = j->sum[t * j->n_blocks + b];
        for (size_t r = 0; r < PANEL_ROWS; r++)
            acc[r] = fmaf((float)(dot_q4(w + r * 4, q) - 8 * sum), f16_to_f32(scales[r]) * scale, acc[r]);
    }
}

/* Q4_1 adds its minimum times the activations' sum after the block's product. */
static void panel_q4_1(const mul_job *j, const uint8_t *w, const uint16_t *scales, size_t t, float *acc)
{
    for (size_t b = 0; b < j->n_blocks; b++, w += 256, scales += 2 * PANEL_ROWS) {
        const int8_t *q = j->q + t * j->cols + b * 32;
        float scale = j->scale[t * j->n_blocks + b], total = scale * (float)j->sum[t * j->n_blocks + b];
        for (size_t r = 0; r < PANEL_ROWS; r++) {
            acc[r] = fmaf((float)dot_q4(w + r * 4, q), f16_to_f32(scales[r]) * scale, acc[r]);
            acc[r] = fmaf(f16_to_f32(scales[PANEL_ROWS + r]), total, acc[r]);
        }
    }
}

/* For each token and panel of the job: acc = its sixteen outputs, starting at zero. */
#define EACH_PANEL(j, ...)                                         \
    for (size_t t = 0; t < (j)->n_tokens; t++) {                   \
        for (size_t p = 0; p < (j)->n_panels; p++) {               \
            const uint8_t *w = (j)->w + p * (j)->panel_bytes;      \
            float *acc = (j)->out + t * (j)->ldo + p * PANEL_ROWS; \
            memset(acc, 0, PANEL_ROWS * sizeof *acc);              \
            __VA_ARGS__;                                           \
        }                                                          \
    }

void mul_f32_scalar(const mul_job *j)
{
    EACH_PANEL(j, panel_f32((const float *)(const void *)w, j->x + t * j->ldx, j->cols, acc))
}

void mul_f16_scalar(const mul_job *j)
{
    EACH_PANEL(j, panel_f16((const uint16_t *)(const void *)w, j->x + t * j->ldx, j->cols, acc))
}

void mul_bf16_scalar(const mul_job *j)
{
    EACH_PANEL(j, panel_bf16((const uint16_t *)(const void *)w, j->x + t * j->ldx, j->cols, acc))
}

void mul_q8_0_scalar(const mul_job *j)
{
    EACH_PANEL(j, panel_q8_0(j, w, j->scales + p * j->panel_scales, t, acc))
}
void mul_q4_0_scalar(const mul_job *j)
{
    EACH_PANEL(j, panel_q4_0(j, w, j->scales + p * j->panel_scales, t, acc))
}
void mul_q4_1_scalar(const mul_job *j)
{
    EACH_PANEL(j, panel_q4_1(j, w, j->scales + p * j->panel_scales, t, acc))
}

static void quantise_block(const float *x, int8_t *q, float *scale, int32_t *sum)
{
    uint32_t max_bits = 0; /* |x| as integers order like the floats, and NaN is above all */
    for (int i = 0; i < 32; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7FFFFFFFu;
        max_bits = bits > max_bits ? bits : max_bits;
    }
    float max;
    memcpy(&max, &max_bits, sizeof max);
    *scale = max_bits >= 0x7F800000u ? (float)NAN : max < ACTS_TINY ? 0.0f : max / 127.0f;
    float inverse = *scale > 0 ? 127.0f / max : 0.0f;
    *sum = 0;
    for (int i = 0; i < 32; i++) {
        /* 1.5 * 2^23 rounds half to even; |x| * inverse is below 127.5 by construction */
        float f = *scale > 0 ? (x[i] * inverse + 0x1.8p+23f) - 0x1.8p+23f : 0.0f;
        f = f > 127.0f ? 127.0f : f < -127.0f ? -127.0f : f;
        q[i] = (int8_t)f;
        *sum += q[i];
    }
}

void quantise_scalar(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum)
{
    for (size_t b = 0; b < n_blocks; b++) quantise_block(x + b * 32, q + b * 32, scale + b, sum + b);
}
