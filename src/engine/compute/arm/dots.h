/* arm/dots.h: dots of int8 rows, by sdot where the instruction set has it. */

INLINE int32x4_t dot_i8_add(int32x4_t sum, int8x16_t q, int8x16_t w)
{
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(sum, q, w);
#else
    sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(q), vget_low_s8(w)));
    return vpadalq_s16(sum, vmull_high_s8(q, w));
#endif
}

static void FN(dots_i8)(int32_t *y, const int8_t *q, const int8_t *rows, size_t n_rows, size_t d)
{
    size_t wide = d / 32 * 32;
    for (size_t r = 0; r < n_rows; r++) {
        const int8_t *row = rows + r * d;
        int32x4_t a = vdupq_n_s32(0), b = vdupq_n_s32(0);
        for (size_t i = 0; i < wide; i += 32) {
            a = dot_i8_add(a, vld1q_s8(q + i), vld1q_s8(row + i));
            b = dot_i8_add(b, vld1q_s8(q + i + 16), vld1q_s8(row + i + 16));
        }
        y[r] = vaddvq_s32(vaddq_s32(a, b));
        for (size_t i = wide; i < d; i++) y[r] += q[i] * row[i];
    }
}
