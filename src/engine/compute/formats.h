/* formats.h: one row per element type, from which everything else follows (for compute/ and the quantiser).
 *
 * A block type stores unsigned codes of 2 to 8 bits and scales. A weight is
 *
 *     value  = code - zero, or values[code] where the type has a table
 *     weight = scale * value            (+ minimum, where the type has minima)
 *
 * and a run of 16 or 32 neighbouring weights, in types of our own 64 to 256, shares its scale. Where they lie
 * in a GGUF block is said by planes: a plane gives every code `bits` of its bits, the low plane the lower
 * ones. It is cut into chunks of weights; a chunk's first bytes hold the lowest bits of as many weights, then
 * the next bits the following weights. For example Q4_0's nibbles (chunk 32, bits 4, so 16 bytes): byte i has
 * weight i low and weight i + 16 high. Layouts and numbers: the GGUF specification and ggml's block
 * definitions.
 *
 *     const wfmt *f = &wfmt_table[DT_Q4_K];        a constant that kernels fold
 *     wblock b;
 *     formats_get(DT_Q4_K, src, &b);               b.code[256], b.d, b.m, b.scale[8], b.min[8]
 */
#ifndef COMPUTE_FORMATS_H
#define COMPUTE_FORMATS_H

#include "compute/compute.h"

#define WBLOCK_MAX 256 /* most weights in a block */
#define WRUNS_MAX  16  /* most runs in a block */

typedef enum scales_kind {
    SCALES_NONE,     /* float types */
    SCALES_F16,      /* scale = d */
    SCALES_F16_MIN,  /* scale = d, minimum = m */
    SCALES_E8,       /* scale = 2^(d - 128), d one byte */
    SCALES_SUB,      /* scale = d * an int8 of the run */
    SCALES_SUB_MIN,  /* scale = d * a uint8 of the run, minimum = -(m * another) */
    SCALES_SUB_MIN4, /* the same, the two integers in one byte: scale low, minimum high */
} scales_kind;

/* How a super-block of 256 writes the integers of its runs. */
typedef enum sub_kind {
    SUB_NONE,
    SUB_INT8, /* Q6_K: 16 int8 */
    SUB_4_4,  /* Q2_K: 16 bytes, scale low, minimum high */
    SUB_6,    /* Q3_K: 16 numbers of 6 bits less 32 in 12 bytes */
    SUB_6_6,  /* Q4_K, Q5_K: 8 scales and 8 minima of 6 bits in 12 bytes */
    SUB_6_XS, /* IQ4_XS: 8 numbers of 6 bits less 32 in 6 bytes, the high bits first */
} sub_kind;

typedef struct wplane {
    uint8_t at, bits; /* offset in the block, bits of each code; bits is 0 when there is no plane */
    uint16_t chunk;   /* weights whose codes lie in chunk * bits / 8 bytes */
} wplane;

typedef struct wfmt {
    const char *name;
    uint32_t gguf, file_type; /* tensor type and general.file_type (of the plain mixture) in GGUF */
    uint16_t block, bytes;    /* weights in a block, and its bytes */
    uint8_t bits, zero;       /* of a code; what to subtract from it */
    uint16_t run;             /* weights that share a scale */
    uint8_t scales, sub;      /* scales_kind, sub_kind */
    uint8_t d_at, m_at, sub_at;
    wplane low, high;
    const int8_t *values; /* [16], or NULL; values[code] + zero fits an unsigned byte */
} wfmt;

/* The steps of IQ4_NL and IQ4_XS, and twice those of the E2M1 numbers in MXFP4 (OCP MX specification 1.0). */
static const int8_t values_nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
static const int8_t values_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

#define WFMT_FLOAT(n, number, file, size)                                                                   \
    {                                                                                                       \
        .name = n, .gguf = number, .file_type = file, .block = 1, .bytes = size, .bits = size * 8, .run = 1 \
    }

/* Types of our own, for speed: a scale is applied once in so many weights that the multiplier is never idle.
 * The number is 1000 * bits + the weights of a group, in GGUF far from those of others, who refuse it. A
 * group is f16 d, then int8 q[n], or nibbles in the order of Q4_0's. */
#define WFMT_S8(n)                                                                        \
    {                                                                                     \
        "S8_" #n, 8000 + n, 8000 + n, n, 2 + n, 8, 128, n, SCALES_F16, .low = { 2, 8, n } \
    }
#define WFMT_S4(n)                                                                           \
    {                                                                                        \
        "S4_" #n, 4000 + n, 4000 + n, n, 2 + n / 2, 4, 8, n, SCALES_F16, .low = { 2, 4, 32 } \
    }

static const wfmt wfmt_table[DT_COUNT] = {
    [DT_F32] = WFMT_FLOAT("F32", 0, 0, 4),
    [DT_F16] = WFMT_FLOAT("F16", 1, 1, 2),
    [DT_BF16] = WFMT_FLOAT("BF16", 30, 32, 2),
    /* f16 d, int8 q[32] */
    [DT_Q8_0] = {"Q8_0", 8, 7, 32, 34, 8, 128, 32, SCALES_F16, .low = {2, 8, 32}},
    /* f16 d, nibbles */
    [DT_Q4_0] = {"Q4_0", 2, 2, 32, 18, 4, 8, 32, SCALES_F16, .low = {2, 4, 32}},
    /* f16 d, f16 m, nibbles */
    [DT_Q4_1] = {"Q4_1", 3, 3, 32, 20, 4, 0, 32, SCALES_F16_MIN, .m_at = 2, .low = {4, 4, 32}},
    /* f16 d, 32 fifth bits in order, nibbles */
    [DT_Q5_0] = {"Q5_0", 6, 8, 32, 22, 5, 16, 32, SCALES_F16, .low = {6, 4, 32}, .high = {2, 1, 8}},
    /* f16 d, f16 m, 32 fifth bits in order, nibbles */
    [DT_Q5_1] = {"Q5_1", 7, 9, 32, 24, 5, 0, 32, SCALES_F16_MIN, .m_at = 2, .low = {8, 4, 32},
                 .high = {4, 1, 8}},
    /* 16 bytes of scales and minima, 64 of codes, f16 d, f16 m */
    [DT_Q2_K] = {"Q2_K", 10, 10, 256, 84, 2, 0, 16, SCALES_SUB_MIN4, SUB_4_4, .d_at = 80, .m_at = 82,
                 .low = {16, 2, 128}},
    /* 32 bytes of third bits, 64 of low bits, 12 of scales, f16 d */
    [DT_Q3_K] = {"Q3_K", 11, 11, 256, 110, 3, 4, 16, SCALES_SUB, SUB_6, .d_at = 108, .sub_at = 96,
                 .low = {32, 2, 128}, .high = {0, 1, 256}},
    /* f16 d, f16 m, 12 bytes of scales and minima, 128 of nibbles */
    [DT_Q4_K] = {"Q4_K", 12, 14, 256, 144, 4, 0, 32, SCALES_SUB_MIN, SUB_6_6, .m_at = 2, .sub_at = 4,
                 .low = {16, 4, 64}},
    /* f16 d, f16 m, 12 bytes of scales and minima, 32 of fifth bits, 128 of nibbles */
    [DT_Q5_K] = {"Q5_K", 13, 16, 256, 176, 5, 0, 32, SCALES_SUB_MIN, SUB_6_6, .m_at = 2, .sub_at = 4,
                 .low = {48, 4, 64}, .high = {16, 1, 256}},
    /* 128 bytes of nibbles, 64 of the fifth and sixth bits, int8 scales[16], f16 d */
    [DT_Q6_K] = {"Q6_K", 14, 18, 256, 210, 6, 32, 16, SCALES_SUB, SUB_INT8, .d_at = 208, .sub_at = 192,
                 .low = {0, 4, 128}, .high = {128, 2, 128}},
    /* f16 d, nibbles */
    [DT_IQ4_NL] = {"IQ4_NL", 20, 25, 32, 18, 4, 128, 32, SCALES_F16, .low = {2, 4, 32}, .values = values_nl},
    /* f16 d, 6 bytes of scales, 128 of nibbles */
    [DT_IQ4_XS] = {"IQ4_XS", 23, 30, 256, 136, 4, 128, 32, SCALES_SUB, SUB_6_XS, .sub_at = 2,
                   .low = {8, 4, 32}, .values = values_nl},
    /* one exponent, nibbles */
    [DT_MXFP4] = {"MXFP4", 39, 38, 32, 17, 4, 16, 32, SCALES_E8, .low = {1, 4, 32}, .values = values_e2m1},
    [DT_S8_64] = WFMT_S8(64),
    [DT_S8_96] = WFMT_S8(96),
    [DT_S8_128] = WFMT_S8(128),
    [DT_S8_256] = WFMT_S8(256),
    [DT_S4_64] = WFMT_S4(64),
    [DT_S4_96] = WFMT_S4(96),
    [DT_S4_128] = WFMT_S4(128),
};

/* Whether it is one of our own types. */
static inline bool wfmt_is_wide(const wfmt *f)
{
    return f->run > 32;
}

/* Whether its values need eight bits with their sign. */
static inline bool wfmt_is_byte(const wfmt *f)
{
    return f->zero == 128;
}

/* Whether the scales come with a minimum for each run. */
static inline bool wfmt_has_min(const wfmt *f)
{
    return f->scales == SCALES_F16_MIN || f->scales == SCALES_SUB_MIN || f->scales == SCALES_SUB_MIN4;
}

static inline int wfmt_value(const wfmt *f, unsigned code)
{
    return f->values ? f->values[code] : (int)code - (int)f->zero;
}

/* One block, taken apart. Unused fields are zero; codes are set as far as the block has weights. */
typedef struct wblock {
    uint16_t d, m; /* F16; SCALES_E8: the exponent */
    uint8_t scale[WRUNS_MAX], min[WRUNS_MAX];
    _Alignas(4) uint8_t code[WBLOCK_MAX];
} wblock;

/* Any bytes are a valid block. src and dst: f->bytes. */
void formats_get(dtype t, const uint8_t *src, wblock *ret);
void formats_put(dtype t, const wblock *b, uint8_t *dst);
/* scale[n], minimum[n] of a block's n = block / run runs; minimum only where wfmt_has_min. */
void formats_scales(dtype t, const wblock *b, float *scale, float *minimum);
/* dst[block] = the weights */
void formats_weights(dtype t, const wblock *b, float *dst);
/* The plain quantiser: dst = src[block] */
void formats_quantise(dtype t, const float *src, wblock *ret);

/* 2^(e - 128): half of the E8M0 number, since values_e2m1 are doubled. */
float e8_to_f32(uint8_t e);

#endif
