/* q8_neon.h: lanes of four bytes in four registers, for attn_q8_body.h; by sdot where the instruction set has
 * it. */

#define KEY_EXCESS    0 /* codes are made signed */
#define KEY_QUERIES   2
#define KEY_CHAINS    1
#define VALUE_QUERIES 1
#define VALUE_GROUPS  2

typedef struct vi {
    int32x4_t a, b, c, d; /* lanes 0..3, 4..7, 8..11 and 12..15 */
} vi;

INLINE vi v_int(int32_t i)
{
    int32x4_t v = vdupq_n_s32(i);
    return (vi){v, v, v, v};
}
INLINE vi v_bytes(const void *p)
{
    const int8_t *b = p;
    return (vi){vreinterpretq_s32_s8(vld1q_s8(b)), vreinterpretq_s32_s8(vld1q_s8(b + 16)),
                vreinterpretq_s32_s8(vld1q_s8(b + 32)), vreinterpretq_s32_s8(vld1q_s8(b + 48))};
}
INLINE vi v_add_int(vi x, vi y)
{
    return (vi){vaddq_s32(x.a, y.a), vaddq_s32(x.b, y.b), vaddq_s32(x.c, y.c), vaddq_s32(x.d, y.d)};
}
INLINE int8x16_t v_four(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

/* sum + four products in each lane, of bytes of at most 127: two of them fit 16 bits */
INLINE int32x4_t dot_bytes(int32x4_t sum, int8x16_t x, int8x16_t y)
{
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(sum, x, y);
#else
    int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(y)), high = vmull_high_s8(x, y);
    return vpadalq_s16(sum, vpaddq_s16(low, high));
#endif
}
INLINE int32x4_t dot_key4(int32x4_t sum, int32x4_t key, int8x16_t q)
{
    return dot_bytes(sum, veorq_s8(vreinterpretq_s8_s32(key), vdupq_n_s8(-128)), q);
}
INLINE vi v_dot_key(vi sum, vi key, const int8_t *q)
{
    int8x16_t x = v_four(q);
    return (vi){dot_key4(sum.a, key.a, x), dot_key4(sum.b, key.b, x), dot_key4(sum.c, key.c, x),
                dot_key4(sum.d, key.d, x)};
}
INLINE vi v_dot_value(vi sum, vi value, const int8_t *w)
{
    int8x16_t x = v_four(w);
    return (vi){dot_bytes(sum.a, vreinterpretq_s8_s32(value.a), x),
                dot_bytes(sum.b, vreinterpretq_s8_s32(value.b), x),
                dot_bytes(sum.c, vreinterpretq_s8_s32(value.c), x),
                dot_bytes(sum.d, vreinterpretq_s8_s32(value.d), x)};
}
INLINE vf v_from_int(vi x)
{
    return EACH1(vcvtq_f32_s32, x);
}
INLINE void v_store_i8(int8_t *p, vf v)
{
    int16x8_t low = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(v.a)), vmovn_s32(vcvtnq_s32_f32(v.b)));
    int16x8_t high = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(v.c)), vmovn_s32(vcvtnq_s32_f32(v.d)));
    vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
INLINE uint32_t v_max_bits(vf v)
{
    uint32x4_t x = vmaxq_u32(vreinterpretq_u32_f32(v.a), vreinterpretq_u32_f32(v.b));
    uint32x4_t y = vmaxq_u32(vreinterpretq_u32_f32(v.c), vreinterpretq_u32_f32(v.d));
    return vmaxvq_u32(vmaxq_u32(x, y));
}
