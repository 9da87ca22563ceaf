/* kernels.h: the table of kernels that one instruction set fills (inside compute/ only).
 *
 * A packed matrix is a row of panels, sixteen output rows each. The layout is the same for every
 * instruction set, so the scalar kernels read what the wide ones read:
 *
 *   F32, F16, BF16   cols × 16 elements: column c of all rows at [c * 16]
 *   Q8_0             a block of 32 columns is 8 groups of 64 bytes: row r, column 4g+i of the block at
 *                    [g * 64 + r * 4 + i], stored as w + 128, because vpdpbusd wants unsigned weights
 *   Q4_0, Q4_1       a block is 4 groups of 64 bytes: low nibble column 8g+i, high nibble 8g+4+i
 *
 * Block scales (and Q4_1's minima) stay f16, sixteen a block, in an array of their own, so that every
 * load of weights is one whole cache line. The bias of the stored integers costs one correction a
 * block, -128 * sum(x) or -8 * sum(x), which is the same for all rows. */
#ifndef COMPUTE_KERNELS_H
#define COMPUTE_KERNELS_H

#include "compute/compute.h"

#define PANEL_ROWS 16
#define MUL_PANELS 4 /* most panels in one call for one token */
#define MUL_TOKENS 4 /* most tokens in one call, then with at most two panels */

/* A tile of the product: n_panels panels times n_tokens tokens. */
typedef struct mul_job {
    const uint8_t *w; /* first panel's weights; the next one is panel_bytes further */
    size_t panel_bytes;
    const uint16_t
        *scales; /* first panel's scales [n_blocks][16] (Q4_1: [n_blocks][2][16], scale then minimum) */
    size_t panel_scales; /* scales a panel */
    size_t n_panels, n_tokens;
    size_t cols, n_blocks;
    const float *x; /* float weights: x[n_tokens][cols], row stride ldx */
    size_t ldx;
    const int8_t *q;    /* quantised weights: q[n_tokens][cols] */
    const float *scale; /* [n_tokens][n_blocks] */
    const int32_t *sum; /* [n_tokens][n_blocks], sums of q over the block */
    float *out;         /* [n_tokens][n_panels * 16], row stride ldo, any alignment */
    size_t ldo;
} mul_job;

/* (n_panels <= MUL_PANELS and n_tokens == 1) or (n_panels <= 2 and n_tokens <= MUL_TOKENS) */
typedef void mul_fn(const mul_job *job);

typedef struct kernels {
    mul_fn *mul[DT_COUNT];
    /* Q8 activations: q, scale = absmax/127 and sum for each of n_blocks blocks of 32. A block with a
     * NaN or an infinity becomes zeros with scale NaN, one below 2^-100 zeros with scale 0. */
    void (*quantise)(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum);
    vec_kernels vec;
} kernels;

#define ACTS_TINY 0x1p-100f /* 127 / absmax stays finite above it */

/* Static; the scalar ones for a set that is not in this build. */
const kernels *kernels_for(isa i);
isa member_isa(const team_member *m);

extern const kernels kernels_scalar;
#if defined(__x86_64__)
#define KERNELS_X86 1
extern const kernels kernels_avx2;
extern const kernels kernels_avx512vnni;
/* Run the instructions that matter and check their results; may trap where the set is not there. */
bool probe_avx2(void);
bool probe_avx512vnni(void);
#endif

#endif
