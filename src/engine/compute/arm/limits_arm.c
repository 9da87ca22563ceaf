/* arm/limits_arm.c: reading and multiplying and nothing else, with NEON; see limits.h. */
#include "compute/limits.h"

#ifdef KERNELS_ARM
#include <arm_neon.h>

#include "compute/tile.h"

#define WITH(isas) __attribute__((target(isas)))
#define SUMS       16 /* of 32 registers */

static uint64_t read_neon(const void *p, size_t n)
{
    const uint8_t *w = p;
    uint8x16_t sum[8];
    UNROLL
    for (int k = 0; k < 8; k++) sum[k] = vdupq_n_u8(0);
    for (size_t i = 0; i < n; i += 128) {
        UNROLL
        for (int k = 0; k < 8; k++) sum[k] = veorq_u8(sum[k], vld1q_u8(w + i + k * 16));
    }
    UNROLL
    for (int k = 1; k < 8; k++) sum[0] = veorq_u8(sum[0], sum[k]);
    return vgetq_lane_u64(vreinterpretq_u64_u8(sum[0]), 0);
}

/* A loop of one operation on SUMS registers of a type. w may change with each sum, or a compiler
 * would make its product once for all of them. */
#define LOOP(name, with, sum_type, type, zero, given, operation) \
    with static void name(size_t n)                              \
    {                                                            \
        sum_type sum[SUMS];                                      \
        type w = given, x = given;                               \
        UNROLL for (int k = 0; k < SUMS; k++) sum[k] = zero;     \
        for (size_t i = 0; i < n; i++) {                         \
            UNROLL for (int k = 0; k < SUMS; k++)                \
            {                                                    \
                operation;                                       \
                LIMIT_KEEP(sum[k]);                              \
                LIMIT_KEEP(w);                                   \
            }                                                    \
            LIMIT_KEEP(x);                                       \
        }                                                        \
    }

/* Without sdot: two products in 16 bits, added in pairs, as in neon.c. */
LOOP(dot_neon, , int32x4_t, int8x8_t, vdupq_n_s32(0), vdup_n_s8(1),
     sum[k] = vpadalq_s16(sum[k], vmlal_s8(vmull_s8(w, x), x, w)))
LOOP(dot_neondot, WITH("arch=armv8.2-a+dotprod"), int32x4_t, int8x16_t, vdupq_n_s32(0), vdupq_n_s8(1),
     sum[k] = vdotq_s32(sum[k], w, x))
LOOP(dot_neoni8mm, WITH("arch=armv8.2-a+dotprod+i8mm"), int32x4_t, int8x16_t, vdupq_n_s32(0), vdupq_n_s8(1),
     sum[k] = vmmlaq_s32(sum[k], w, x))
LOOP(fma_neon, , float32x4_t, float32x4_t, vdupq_n_f32(0), vdupq_n_f32(0.5f),
     sum[k] = vfmaq_f32(x, sum[k], w))

const limit_loops limits_neon = {read_neon, dot_neon, SUMS * 16, fma_neon, SUMS * 4};
const limit_loops limits_neondot = {read_neon, dot_neondot, SUMS * 16, fma_neon, SUMS * 4};
const limit_loops limits_neoni8mm = {read_neon, dot_neoni8mm, SUMS * 32, fma_neon, SUMS * 4};
#else
typedef int empty_limits_arm; /* not an AArch64 machine */
#endif
