/* v_neon.h: sixteen floats in four registers (for arm/ only; vec_body.h says what is needed). The includer
 * defines FN; what its file is compiled for, cmake/modules.cmake says, since clang's arm_neon.h asks the
 * command line and not the function.
 *
 * Armv8.0 has all of it: fused multiply-add, conversions from and to F16, exact division. */
#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "compute/bits.h"
#include "compute/kernels.h"
#include "compute/poly.h"

#define TARGET
#define INLINE __attribute__((always_inline, unused)) static inline

#define ATTN_QUERIES 1 /* 8 of sixteen floats: queries that share a key */
#define MIX_SUMS     4 /* sums of sixteen columns in registers */

typedef struct vf {
    float32x4_t a, b, c, d; /* lanes 0..3, 4..7, 8..11 and 12..15 */
} vf;

/* f(x) and f(x, y) on all four quarters */
#define EACH1(f, x)    ((vf){f((x).a), f((x).b), f((x).c), f((x).d)})
#define EACH2(f, x, y) ((vf){f((x).a, (y).a), f((x).b, (y).b), f((x).c, (y).c), f((x).d, (y).d)})

INLINE vf v_load(const float *p)
{
    return (vf){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}

INLINE void v_store(float *p, vf v)
{
    vst1q_f32(p, v.a);
    vst1q_f32(p + 4, v.b);
    vst1q_f32(p + 8, v.c);
    vst1q_f32(p + 12, v.d);
}

INLINE vf v_load_part(const float *p, size_t n)
{
    float part[16] = {0};
    memcpy(part, p, n * sizeof *p);
    return v_load(part);
}

INLINE void v_store_part(float *p, vf v, size_t n)
{
    float part[16];
    v_store(part, v);
    memcpy(p, part, n * sizeof *p);
}

INLINE vf v_keep(vf v, size_t n)
{
    float part[16];
    v_store(part, v);
    return v_load_part(part, n);
}

INLINE float32x4_t v_f16_to_f32(uint16x4_t h)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(h));
}
INLINE vf v_load_f16(const uint16_t *p)
{
    return (vf){v_f16_to_f32(vld1_u16(p)), v_f16_to_f32(vld1_u16(p + 4)), v_f16_to_f32(vld1_u16(p + 8)),
                v_f16_to_f32(vld1_u16(p + 12))};
}
INLINE vf v_load_f16_part(const uint16_t *p, size_t n)
{
    uint16_t part[16] = {0};
    memcpy(part, p, n * sizeof *p);
    return v_load_f16(part);
}
INLINE uint16x4_t v_f32_to_f16(float32x4_t f)
{
    return vreinterpret_u16_f16(vcvt_f16_f32(f));
}
INLINE void v_store_f16(uint16_t *p, vf v)
{
    vst1_u16(p, v_f32_to_f16(v.a));
    vst1_u16(p + 4, v_f32_to_f16(v.b));
    vst1_u16(p + 8, v_f32_to_f16(v.c));
    vst1_u16(p + 12, v_f32_to_f16(v.d));
}
INLINE vf v_set1(float f)
{
    float32x4_t v = vdupq_n_f32(f);
    return (vf){v, v, v, v};
}
INLINE vf v_add(vf x, vf y)
{
    return EACH2(vaddq_f32, x, y);
}
INLINE vf v_sub(vf x, vf y)
{
    return EACH2(vsubq_f32, x, y);
}
INLINE vf v_mul(vf x, vf y)
{
    return EACH2(vmulq_f32, x, y);
}
INLINE vf v_div(vf x, vf y)
{
    return EACH2(vdivq_f32, x, y);
}
INLINE vf v_fma(vf x, vf y, vf z)
{
    return (vf){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
                vfmaq_f32(z.d, x.d, y.d)};
}

/* The second operand when either is NaN, as maxps and math.c; fmax here would give NaN. */
INLINE float32x4_t v_max4(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcgtq_f32(x, y), x, y);
}
INLINE float32x4_t v_min4(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcltq_f32(x, y), x, y);
}
INLINE vf v_max(vf x, vf y)
{
    return EACH2(v_max4, x, y);
}
INLINE vf v_min(vf x, vf y)
{
    return EACH2(v_min4, x, y);
}
INLINE vf v_abs(vf x)
{
    return EACH1(vabsq_f32, x);
}
INLINE vf v_neg(vf x)
{
    return EACH1(vnegq_f32, x);
}

INLINE float32x4_t v_or_sign4(float32x4_t x, float32x4_t s)
{
    uint32x4_t sign = vandq_u32(vreinterpretq_u32_f32(s), vdupq_n_u32(0x80000000u));
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(x), sign));
}
INLINE vf v_or_sign(vf x, vf s)
{
    return EACH2(v_or_sign4, x, s);
}

INLINE unsigned v_equal4(float32x4_t x, float32x4_t y)
{
    static const uint32_t bit[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vceqq_f32(x, y), vld1q_u32(bit)));
}

/* bit i: lane i is equal */
INLINE unsigned v_equal(vf x, vf y)
{
    return v_equal4(x.a, y.a) | v_equal4(x.b, y.b) << 4 | v_equal4(x.c, y.c) << 8 | v_equal4(x.d, y.d) << 12;
}

INLINE vf v_if_less(vf x, vf y, vf yes, vf no)
{
    return (vf){vbslq_f32(vcltq_f32(x.a, y.a), yes.a, no.a), vbslq_f32(vcltq_f32(x.b, y.b), yes.b, no.b),
                vbslq_f32(vcltq_f32(x.c, y.c), yes.c, no.c), vbslq_f32(vcltq_f32(x.d, y.d), yes.d, no.d)};
}

/* Bytes are looked up, so a lane's number becomes those of its four bytes; both are the same in every call.
 */
INLINE float32x4_t v_pick8_4(uint8x16x2_t eight, float32x4_t at)
{
    uint32x4_t k = vandq_u32(vreinterpretq_u32_f32(at), vdupq_n_u32(7));
    uint32x4_t bytes = vmlaq_u32(vdupq_n_u32(0x03020100u), k, vdupq_n_u32(0x04040404u));
    return vreinterpretq_f32_u8(vqtbl2q_u8(eight, vreinterpretq_u8_u32(bytes)));
}
/* eight[the low three bits of lane i] */
INLINE vf v_pick8(const float *eight, vf at)
{
    uint8x16x2_t t = {{vreinterpretq_u8_f32(vld1q_f32(eight)), vreinterpretq_u8_f32(vld1q_f32(eight + 4))}};
    return (vf){v_pick8_4(t, at.a), v_pick8_4(t, at.b), v_pick8_4(t, at.c), v_pick8_4(t, at.d)};
}

INLINE float32x4_t v_scale_exp2_4(float32x4_t p, float32x4_t t)
{
    int32x4_t k = vsubq_s32(vreinterpretq_s32_f32(t), vreinterpretq_s32_f32(vdupq_n_f32(EXP_MAGIC)));
    int32x4_t half = vshrq_n_s32(k, 1), bias = vdupq_n_s32(127);
    int32x4_t a = vshlq_n_s32(vaddq_s32(half, bias), 23);
    int32x4_t b = vshlq_n_s32(vaddq_s32(vsubq_s32(k, half), bias), 23);
    return vmulq_f32(vmulq_f32(p, vreinterpretq_f32_s32(a)), vreinterpretq_f32_s32(b));
}

/* p * 2^n in two factors, n being in the low bits of t = n + EXP_MAGIC */
INLINE vf v_scale_exp2(vf p, vf t)
{
    return EACH2(v_scale_exp2_4, p, t);
}

/* the largest lane; none is NaN */
INLINE float v_top(vf v)
{
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(v.a, v.b), vmaxq_f32(v.c, v.d)));
}

/* out[i * 16 + j] = k[j * ldk + i] for four i and four j */
INLINE void v_turn4(float *out, const float *k, size_t ldk)
{
    float32x4x2_t ab = vtrnq_f32(vld1q_f32(k), vld1q_f32(k + ldk)),
                  cd = vtrnq_f32(vld1q_f32(k + 2 * ldk), vld1q_f32(k + 3 * ldk));
    vst1q_f32(out, vcombine_f32(vget_low_f32(ab.val[0]), vget_low_f32(cd.val[0])));
    vst1q_f32(out + 16, vcombine_f32(vget_low_f32(ab.val[1]), vget_low_f32(cd.val[1])));
    vst1q_f32(out + 32, vcombine_f32(vget_high_f32(ab.val[0]), vget_high_f32(cd.val[0])));
    vst1q_f32(out + 48, vcombine_f32(vget_high_f32(ab.val[1]), vget_high_f32(cd.val[1])));
}

/* lanes + 8, + 4, + 2, + 1 */
INLINE float v_tree(vf v)
{
    float32x4_t four = vaddq_f32(vaddq_f32(v.a, v.c), vaddq_f32(v.b, v.d));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
