/* scalar/mul.c: the specification of the products. One output at a time, columns in order.
 * A block type's integers are unpacked once for all tokens of the tile. */
#include <math.h>
#include <string.h>

#include "compute/panel.h"
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

/* value[16][32] = the integers of 32 columns; inlined per number of bits, so that the loops are plain. */
static inline void unpack_as(unsigned bits, const wfmt *f, const uint8_t *step, int8_t value[][ACTS_BLOCK])
{
    for (size_t r = 0; r < PANEL_ROWS; r++)
        for (size_t k = 0; k < ACTS_BLOCK / 4; k++) {
            uint32_t codes = panel_group(bits, step, r, k);
            for (size_t i = 0; i < 4; i++) value[r][k * 4 + i] = (int8_t)wfmt_value(f, codes >> 8 * i & 0xFF);
        }
}

static void unpack(const wfmt *f, const uint8_t *step, int8_t value[][ACTS_BLOCK])
{
    switch (f->bits) {
    case 2: unpack_as(2, f, step, value); break;
    case 3: unpack_as(3, f, step, value); break;
    case 4: unpack_as(4, f, step, value); break;
    case 5: unpack_as(5, f, step, value); break;
    case 6: unpack_as(6, f, step, value); break;
    default: unpack_as(8, f, step, value); break;
    }
}

/* scale[16], minimum[16] of run i of a block whose scales are at s */
static void run_scales(const wfmt *f, const uint8_t *s, size_t i, float *scale, float *minimum)
{
    const uint16_t *d = (const void *)s;
    const uint8_t *sub = s + (wfmt_has_min(f) ? 64 : 32) + i * PANEL_ROWS;
    size_t to_min = (size_t)f->block / f->run * PANEL_ROWS;
    for (size_t r = 0; r < PANEL_ROWS; r++) {
        scale[r] = f->scales == SCALES_E8 ? e8_to_f32(s[r]) : f16_to_f32(d[r]);
        if (f->scales == SCALES_SUB) scale[r] *= (float)(int8_t)sub[r];
        if (!wfmt_has_min(f)) continue;
        minimum[r] = f16_to_f32(d[PANEL_ROWS + r]);
        if (f->scales == SCALES_F16_MIN) continue;
        bool both = f->scales == SCALES_SUB_MIN4;
        scale[r] *= (float)(both ? sub[r] & 15 : sub[r]);
        minimum[r] = -(minimum[r] * (float)(both ? sub[r] >> 4 : sub[to_min + r]));
    }
}

static int32_t dot(const int8_t *w, const int8_t *q, size_t n)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += w[i] * q[i];
    return sum;
}

/* acc[16] += columns `first`.. of the run, for one token */
static void add_run(const mul_job *j, const wfmt *f, size_t t, size_t first, const int8_t value[][ACTS_BLOCK],
                    const float *scale, const float *minimum, float *acc)
{
    size_t b = t * j->n_blocks + first / ACTS_BLOCK, at = first % ACTS_BLOCK;
    const int8_t *q = j->q + t * j->cols + first;
    float x_scale = j->scale[b];
    int32_t sum = f->run == ACTS_BLOCK ? j->sum[b] : j->sum16[2 * b + at / f->run];
    for (size_t r = 0; r < PANEL_ROWS; r++) {
        acc[r] = fmaf((float)dot(value[r] + at, q, f->run), scale[r] * x_scale, acc[r]);
        if (wfmt_has_min(f)) acc[r] = fmaf(minimum[r], x_scale * (float)sum, acc[r]);
    }
}

/* out of one panel, all tokens: block after block, run after run */
static void panel_blocks(const mul_job *j, const wfmt *f, const uint8_t *w, const uint8_t *scales, float *out)
{
    int8_t value[PANEL_ROWS][ACTS_BLOCK];
    float scale[PANEL_ROWS], minimum[PANEL_ROWS];
    for (size_t t = 0; t < j->n_tokens; t++) memset(out + t * j->ldo, 0, PANEL_ROWS * sizeof *out);
    for (size_t c = 0; c < j->cols; c += f->run) {
        if (c % ACTS_BLOCK == 0) unpack(f, w + c / ACTS_BLOCK * panel_step_bytes(f), value);
        run_scales(f, scales + c / f->block * panel_scale_bytes(f), c % f->block / f->run, scale, minimum);
        for (size_t t = 0; t < j->n_tokens; t++) add_run(j, f, t, c, value, scale, minimum, out + t * j->ldo);
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

void mul_bf16_scalar(const mul_job *j){
    EACH_PANEL(j, panel_bf16((const uint16_t *)(const void *)w, j->x + t * j->ldx, j->cols, acc))}

#define MUL_BLOCKS(name, kernel)                                                                       \
    void mul_##kernel##_scalar(const mul_job *j)                                                       \
    {                                                                                                  \
        for (size_t p = 0; p < j->n_panels; p++)                                                       \
            panel_blocks(j, &wfmt_table[DT_##name], j->w + p * j->panel_bytes,                         \
                         (const uint8_t *)(j->scales + p * j->panel_scales), j->out + p * PANEL_ROWS); \
    }
DTYPE_BLOCKS(MUL_BLOCKS)

    /* ---- types of our own: one scale for all columns of a group ---- */

    /* dot[t][16] += 32 columns of `value` from column `first` on */
    static void add_step(const mul_job *j, size_t first, const int8_t value[][ACTS_BLOCK],
                         int32_t (*sums)[PANEL_ROWS])
{
    for (size_t t = 0; t < j->n_tokens; t++)
        for (size_t r = 0; r < PANEL_ROWS; r++)
            sums[t][r] += dot(value[r], j->q + t * j->cols + first, ACTS_BLOCK);
}

/* out of one panel: group after group */
static void panel_wide(const mul_job *j, const wfmt *f, const uint8_t *w, const uint16_t *scales, float *out)
{
    enum { MOST_TOKENS = 4 };
    int8_t value[PANEL_ROWS][ACTS_BLOCK];
    for (size_t t = 0; t < j->n_tokens; t++) memset(out + t * j->ldo, 0, PANEL_ROWS * sizeof *out);
    for (size_t g = 0; g < j->n_blocks; g++, scales += PANEL_ROWS) {
        int32_t sums[MOST_TOKENS][PANEL_ROWS] = {0};
        for (size_t c = 0; c < j->group; c += ACTS_BLOCK, w += panel_step_bytes(f)) {
            unpack(f, w, value);
            add_step(j, g * j->group + c, value, sums);
        }
        for (size_t t = 0; t < j->n_tokens; t++)
            for (size_t r = 0; r < PANEL_ROWS; r++)
                out[t * j->ldo + r] =
                    fmaf((float)sums[t][r], f16_to_f32(scales[r]) * j->scale[t * j->n_blocks + g],
                         out[t * j->ldo + r]);
    }
}

/* f: any type of so many bits; how wide a group is says the job. */
static void mul_wide(const mul_job *j, const wfmt *f)
{
    for (size_t p = 0; p < j->n_panels; p++)
        panel_wide(j, f, j->w + p * j->panel_bytes, j->scales + p * j->panel_scales, j->out + p * PANEL_ROWS);
}

void mul_s8_scalar(const mul_job *j)
{
    mul_wide(j, &wfmt_table[DT_S8_128]);
}

void mul_s4_scalar(const mul_job *j)
{
    mul_wide(j, &wfmt_table[DT_S4_128]);
}

/* ---- activations ---- */

/* scale, and what to multiply x[n] with: 0 where all become zeros */
static float scale_for(const float *x, size_t n, float *scale)
{
    uint32_t max_bits = 0; /* |x| as integers order like the floats, and NaN is above all */
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7FFFFFFFu;
        max_bits = bits > max_bits ? bits : max_bits;
    }
    float max;
    memcpy(&max, &max_bits, sizeof max);
    *scale = max_bits >= 0x7F800000u ? (float)NAN : max < ACTS_TINY ? 0.0f : max / 127.0f;
    return *scale > 0 ? 127.0f / max : 0.0f;
}

static int8_t to_q8(float x, float inverse)
{
    if (!(inverse > 0)) return 0;
    /* 1.5 * 2^23 rounds half to even; |x| * inverse is below 127.5 by construction */
    float f = (x * inverse + 0x1.8p+23f) - 0x1.8p+23f;
    return (int8_t)(f > 127.0f ? 127.0f : f < -127.0f ? -127.0f : f);
}

static void quantise_block(const float *x, int8_t *q, float *scale, int32_t *sum, int32_t *sum16)
{
    float inverse = scale_for(x, ACTS_BLOCK, scale);
    sum16[0] = sum16[1] = 0;
    for (int i = 0; i < ACTS_BLOCK; i++) {
        q[i] = to_q8(x[i], inverse);
        sum16[i / 16] += q[i];
    }
    *sum = sum16[0] + sum16[1];
}

void quantise_scalar(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum, int32_t *sum16)
{
    for (size_t b = 0; b < n_blocks; b++)
        quantise_block(x + b * ACTS_BLOCK, q + b * ACTS_BLOCK, scale + b, sum + b, sum16 + 2 * b);
}

void quantise_wide_scalar(const float *x, size_t n_groups, size_t group, int8_t *q, float *scale,
                          int32_t *sum)
{
    for (size_t g = 0; g < n_groups; g++, x += group, q += group) {
        float inverse = scale_for(x, group, scale + g);
        sum[g] = 0;
        for (size_t i = 0; i < group; i++) {
            q[i] = to_q8(x[i], inverse);
            sum[g] += q[i];
        }
    }
}
