/* arm/neon.c: NEON as every Armv8 processor has it; integer dots by multiplying to 16 bits. */
#include "compute/kernels.h"

#ifdef KERNELS_ARM
#define FN(name) name##_neon

#include "compute/arm/v_neon.h"
#include "compute/panel.h"
#include "compute/tile.h"
#include "compute/vec_body.h"
#include "compute/arm/q8_neon.h"
#include "compute/attn_q8_body.h"

/* ---- dots ---------------------------------------------------------------------------------------- */

/* smull and smlal add two products in 16 bits (32512 at most), sadalp adds pairs to 32 bits. */

#define TILE_TOKENS 2 /* four would not leave registers for two sums a strip and token */

typedef struct dots_x {
    int32x4_t q[TILE_TOKENS][2]; /* [token][half of the block]: four activations a lane */
} dots_x;
typedef struct dots {
    int32x4_t low[8], high[8]; /* [t * S + s]: rows 0 and 1, rows 2 and 3, two lanes a row */
} dots;

INLINE void x_load(dots_x *x, const mul_job *j, size_t token, size_t b, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        const int8_t *q = j->q + (token + t) * j->cols + b * 32;
        x->q[t][0] = vreinterpretq_s32_s8(vld1q_s8(q));
        x->q[t][1] = vreinterpretq_s32_s8(vld1q_s8(q + 16));
    }
}

INLINE void dots_clear(dots *d, const size_t S, const size_t T)
{
    UNROLL
    for (size_t i = 0; i < S * T; i++) d->low[i] = d->high[i] = vdupq_n_s32(0);
}

/* Lane 0..3 in every lane; the instruction wants its number spelled out. */
INLINE int8x16_t lane_everywhere(int32x4_t x, size_t lane)
{
    switch (lane) {
    case 0: return vreinterpretq_s8_s32(vdupq_laneq_s32(x, 0));
    case 1: return vreinterpretq_s8_s32(vdupq_laneq_s32(x, 1));
    case 2: return vreinterpretq_s8_s32(vdupq_laneq_s32(x, 2));
    default: return vreinterpretq_s8_s32(vdupq_laneq_s32(x, 3));
    }
}

INLINE void dots_add(dots *d, const dots_x *x, size_t k, const int8x16_t *w, const int8x16_t *u,
                     const size_t S, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        int8x16_t a = lane_everywhere(x->q[t][k / 2], k % 2 * 2);
        int8x16_t b = lane_everywhere(x->q[t][k / 2], k % 2 * 2 + 1);
        UNROLL
        for (size_t s = 0; s < S; s++) {
            int16x8_t low = vmull_s8(vget_low_s8(w[s]), vget_low_s8(a)), high = vmull_high_s8(w[s], a);
            low = vmlal_s8(low, vget_low_s8(u[s]), vget_low_s8(b));
            high = vmlal_high_s8(high, u[s], b);
            d->low[t * S + s] = vpadalq_s16(d->low[t * S + s], low);
            d->high[t * S + s] = vpadalq_s16(d->high[t * S + s], high);
        }
    }
}

INLINE int32x4_t dots_get(const dots *d, size_t s, size_t t, const size_t S, const size_t T)
{
    return vpaddq_s32(d->low[t * S + s], d->high[t * S + s]);
}

#include "compute/arm/mul_body.h"

/* An fma, a conversion from F16 and a product of bytes, from values the compiler cannot know. */
bool probe_neon(void)
{
    volatile float three = 3.0f;
    volatile uint16_t half_one = 0x3C00;
    volatile int8_t least = -128, most = 127;
    vf f = v_fma(v_set1(three), v_set1(three), v_set1(1.0f));
    int16x8_t i = vmlal_s8(vmull_s8(vdup_n_s8(least), vdup_n_s8(most)), vdup_n_s8(least), vdup_n_s8(most));
    float32x4_t h = vmulq_f32(v_f16_to_f32(vdup_n_u16(half_one)), vcvtq_f32_s32(vpaddlq_s16(i)));
    f.a = vaddq_f32(f.a, h);
    return v_tree(f) == 16 * 10 - 4 * 4 * 128 * 127;
}

const kernels kernels_neon = ARM_KERNELS;
#else
typedef int empty_neon; /* not an AArch64 machine */
#endif
