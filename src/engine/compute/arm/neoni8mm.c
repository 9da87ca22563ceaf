/* arm/neoni8mm.c: NEON with the matrix products of int8 (Armv8.6, FEAT_I8MM).
 *
 * smmla multiplies two rows of eight columns with two tokens' eight activations: twice the products of an
 * sdot. A token alone would waste half of them, so it keeps sdot. */
#include "compute/kernels.h"

#ifdef KERNELS_ARM
#define FN(name) name##_neoni8mm

#include "compute/arm/v_neon.h"
#include "compute/panel.h"
#include "compute/tile.h"
#include "compute/vec_body.h"
#include "compute/arm/q8_neon.h"
#include "compute/attn_q8_body.h"

#include "compute/arm/sdot.h"

#define TILE_TOKENS 4
#define FLAT_PAIRS  1

/* Tokens go in pairs; the last of an odd number is its own partner. */
typedef struct dots_x {
    sdot_x one;           /* T = 1 */
    int8x16_t pair[2][4]; /* [pair][k]: columns 8k..8k+7 of both tokens */
} dots_x;
typedef struct dots {
    sdot_sums one;
    int32x4_t pair[2][2][2]; /* [pair][strip][rows 0, 1 or 2, 3]: row, row's other token, next row, ... */
} dots;

INLINE void x_load(dots_x *x, const mul_job *j, size_t token, size_t b, const size_t T)
{
    if (T == 1) {
        sdot_load(&x->one, j, token, b, 1);
        return;
    }
    UNROLL
    for (size_t t = 0; t < T; t += 2) {
        const int8_t *q = j->q + (token + t) * j->cols + b * 32, *next = t + 1 < T ? q + j->cols : q;
        UNROLL
        for (size_t k = 0; k < 4; k++)
            x->pair[t / 2][k] = vcombine_s8(vld1_s8(q + k * 8), vld1_s8(next + k * 8));
    }
}

INLINE void dots_clear(dots *d, const size_t S, const size_t T)
{
    if (T == 1) {
        sdot_clear(&d->one, S, 1);
        return;
    }
    UNROLL
    for (size_t i = 0; i < 2 * 2 * 2; i++) d->pair[i / 4][i / 2 % 2][i % 2] = vdupq_n_s32(0);
}

INLINE void dots_add(dots *d, const dots_x *x, size_t k, const int8x16_t *w, const int8x16_t *u,
                     const size_t S, const size_t T)
{
    if (T == 1) {
        sdot_add(&d->one, &x->one, k, w, u, S, 1);
        return;
    }
    UNROLL
    for (size_t s = 0; s < S; s++) {
        int32x4_t a = vreinterpretq_s32_s8(w[s]), b = vreinterpretq_s32_s8(u[s]);
        int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(a, b)), high = vreinterpretq_s8_s32(vzip2q_s32(a, b));
        UNROLL
        for (size_t p = 0; 2 * p < T; p++) {
            d->pair[p][s][0] = vmmlaq_s32(d->pair[p][s][0], low, x->pair[p][k]);
            d->pair[p][s][1] = vmmlaq_s32(d->pair[p][s][1], high, x->pair[p][k]);
        }
    }
}

INLINE int32x4_t dots_get(const dots *d, size_t s, size_t t, const size_t S, const size_t T)
{
    if (T == 1) return sdot_get(&d->one, s, 0, S, 1);
    int32x4_t low = d->pair[t / 2][s][0], high = d->pair[t / 2][s][1];
    return t % 2 ? vuzp2q_s32(low, high) : vuzp1q_s32(low, high);
}

#include "compute/arm/mul_body.h"

/* Eight times -128 * 127 in every lane, from values the compiler cannot know. */
bool probe_neoni8mm(void)
{
    volatile int8_t least = -128, most = 127;
    int32x4_t sum = vmmlaq_s32(vdupq_n_s32(0), vdupq_n_s8(least), vdupq_n_s8(most));
    return vaddvq_s32(sum) == 4 * 8 * -128 * 127 && sdot_works();
}

const kernels kernels_neoni8mm = ARM_KERNELS;
#else
typedef int empty_neoni8mm; /* not an AArch64 machine */
#endif
