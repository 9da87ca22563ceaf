/* v_avx512.h: sixteen floats in one register (for x86/ only; vec_body.h says what is needed). */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "compute/kernels.h"
#include "compute/poly.h"

#define TARGET   __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define INLINE   TARGET __attribute__((always_inline, unused)) static inline
#define FN(name) name##_avx512vnni

#define ATTN_QUERIES 4  /* 32 of sixteen floats: queries that share a key */
#define MIX_SUMS     16 /* sums of sixteen columns in registers */

typedef __m512 vf;

INLINE vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
INLINE void v_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}
INLINE __mmask16 v_first(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}
INLINE vf v_load_part(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(v_first(n), p);
}
INLINE void v_store_part(float *p, vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, v_first(n), v);
}
INLINE vf v_keep(vf v, size_t n)
{
    return _mm512_maskz_mov_ps(v_first(n), v);
}
INLINE vf v_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}
INLINE vf v_load_f16_part(const uint16_t *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(v_first(n), p));
}
INLINE void v_store_f16(uint16_t *p, vf v)
{
    _mm256_storeu_si256((void *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
INLINE vf v_set1(float f)
{
    return _mm512_set1_ps(f);
}
INLINE vf v_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
INLINE vf v_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
INLINE vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
INLINE vf v_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
INLINE vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
INLINE vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
INLINE vf v_abs(vf a)
{
    return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a);
}
INLINE vf v_neg(vf a)
{
    return _mm512_xor_ps(_mm512_set1_ps(-0.0f), a);
}
INLINE vf v_or_sign(vf a, vf sign)
{
    return _mm512_or_ps(a, _mm512_and_ps(_mm512_set1_ps(-0.0f), sign));
}

/* bit i: lane i is equal */
INLINE unsigned v_equal(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

INLINE vf v_if_less(vf a, vf b, vf yes, vf no)
{
    return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), yes);
}

/* eight[the low three bits of lane i] */
INLINE vf v_pick8(const float *eight, vf at)
{
    return _mm512_permutexvar_ps(_mm512_castps_si512(at), _mm512_broadcast_f32x8(_mm256_loadu_ps(eight)));
}

/* p * 2^n in two factors, n being in the low bits of t = n + EXP_MAGIC */
INLINE vf v_scale_exp2(vf p, vf t)
{
    /* p times a power of two rounds once at most, so one scaling is what the two factors of math.c give. */
    return _mm512_scalef_ps(p, v_sub(t, v_set1(EXP_MAGIC)));
}

#define V_PAIRS /* pairs taken apart and put together */

/* elements 0, 2, 4, ... of a and b, and 1, 3, 5, ... */
INLINE vf v_evens(vf a, vf b)
{
    return _mm512_permutex2var_ps(
        a, _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), b);
}
INLINE vf v_odds(vf a, vf b)
{
    return _mm512_permutex2var_ps(
        a, _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31), b);
}
/* a[0], b[0], a[1], b[1], ...: the first sixteen, and the last */
INLINE vf v_zip_low(vf a, vf b)
{
    return _mm512_permutex2var_ps(
        a, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), b);
}
INLINE vf v_zip_high(vf a, vf b)
{
    return _mm512_permutex2var_ps(
        a, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), b);
}

/* the largest lane; none is NaN */
INLINE float v_top(vf v)
{
    return _mm512_reduce_max_ps(v);
}

/* out[i * 16 + j] = k[j * ldk + i] for four i and four j */
INLINE void v_turn4(float *out, const float *k, size_t ldk)
{
    __m128 a = _mm_loadu_ps(k), b = _mm_loadu_ps(k + ldk), c = _mm_loadu_ps(k + 2 * ldk),
           d = _mm_loadu_ps(k + 3 * ldk);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(out, a);
    _mm_storeu_ps(out + 16, b);
    _mm_storeu_ps(out + 32, c);
    _mm_storeu_ps(out + 48, d);
}

/* lanes + 8, + 4, + 2, + 1 */
INLINE float v_tree(vf v)
{
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
