/* v_avx2.h: sixteen floats in two registers (for x86/ only; vec_body.h says what is needed). The
 * includer defines TARGET and FN. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "compute/kernels.h"
#include "compute/poly.h"

#define INLINE TARGET __attribute__((always_inline, unused)) static inline

#define ATTN_QUERIES 2 /* queries that share a key */
#define ATTN_CHAINS \
    2              /* of the four of a score at once: 8 of sixteen floats, and what the first two came to */
#define MIX_SUMS 4 /* sums of sixteen columns in registers */

typedef struct vf {
    __m256 a, b; /* lanes 0..7 and 8..15 */
} vf;

#define BOTH(...) ((vf){__VA_ARGS__})

INLINE vf v_load(const float *p)
{
    return BOTH(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}

INLINE void v_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
}

/* all ones in the first n (may be below 0 or above 8) of eight lanes */
INLINE __m256i v_first8(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE vf v_load_part(const float *p, size_t n)
{
    vf v = BOTH(_mm256_maskload_ps(p, v_first8((int)n)), _mm256_setzero_ps());
    if (n > 8) v.b = _mm256_maskload_ps(p + 8, v_first8((int)n - 8));
    return v;
}

INLINE void v_store_part(float *p, vf v, size_t n)
{
    _mm256_maskstore_ps(p, v_first8((int)n), v.a);
    if (n > 8) _mm256_maskstore_ps(p + 8, v_first8((int)n - 8), v.b);
}

INLINE vf v_keep(vf v, size_t n)
{
    return BOTH(_mm256_and_ps(v.a, _mm256_castsi256_ps(v_first8((int)n))),
                _mm256_and_ps(v.b, _mm256_castsi256_ps(v_first8((int)n - 8))));
}

INLINE vf v_load_f16(const uint16_t *p)
{
    return BOTH(_mm256_cvtph_ps(_mm_loadu_si128((const void *)p)),
                _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p + 8))));
}
INLINE vf v_load_f16_part(const uint16_t *p, size_t n)
{
    uint16_t part[16] = {0};
    memcpy(part, p, n * sizeof *p);
    return v_load_f16(part);
}
INLINE void v_store_f16(uint16_t *p, vf v)
{
    _mm_storeu_si128((void *)p, _mm256_cvtps_ph(v.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((void *)(p + 8), _mm256_cvtps_ph(v.b, _MM_FROUND_TO_NEAREST_INT));
}
INLINE vf v_set1(float f)
{
    return BOTH(_mm256_set1_ps(f), _mm256_set1_ps(f));
}
INLINE vf v_add(vf x, vf y)
{
    return BOTH(_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b));
}
INLINE vf v_sub(vf x, vf y)
{
    return BOTH(_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b));
}
INLINE vf v_mul(vf x, vf y)
{
    return BOTH(_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b));
}
INLINE vf v_div(vf x, vf y)
{
    return BOTH(_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b));
}
INLINE vf v_max(vf x, vf y)
{
    return BOTH(_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b));
}
INLINE vf v_min(vf x, vf y)
{
    return BOTH(_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b));
}

INLINE vf v_fma(vf x, vf y, vf z)
{
    return BOTH(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b));
}

INLINE vf v_abs(vf x)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    return BOTH(_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b));
}

INLINE vf v_neg(vf x)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    return BOTH(_mm256_xor_ps(sign, x.a), _mm256_xor_ps(sign, x.b));
}

INLINE vf v_or_sign(vf x, vf s)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    return BOTH(_mm256_or_ps(x.a, _mm256_and_ps(sign, s.a)), _mm256_or_ps(x.b, _mm256_and_ps(sign, s.b)));
}

/* bit i: lane i is equal */
INLINE unsigned v_equal(vf x, vf y)
{
    unsigned a = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_EQ_OQ));
    unsigned b = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_EQ_OQ));
    return a | b << 8;
}

INLINE vf v_if_less(vf x, vf y, vf yes, vf no)
{
    return BOTH(_mm256_blendv_ps(no.a, yes.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
                _mm256_blendv_ps(no.b, yes.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)));
}

/* eight[the low three bits of lane i] */
INLINE vf v_pick8(const float *eight, vf at)
{
    __m256 t = _mm256_loadu_ps(eight);
    return BOTH(_mm256_permutevar8x32_ps(t, _mm256_castps_si256(at.a)),
                _mm256_permutevar8x32_ps(t, _mm256_castps_si256(at.b)));
}

INLINE __m256 v_scale8_exp2(__m256 p, __m256 t)
{
    __m256i k = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(_mm256_set1_ps(EXP_MAGIC)));
    __m256i half = _mm256_srai_epi32(k, 1), bias = _mm256_set1_epi32(127);
    __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(k, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(a)), _mm256_castsi256_ps(b));
}

/* p * 2^n in two factors, n being in the low bits of t = n + EXP_MAGIC */
INLINE vf v_scale_exp2(vf p, vf t)
{
    return BOTH(v_scale8_exp2(p.a, t.a), v_scale8_exp2(p.b, t.b));
}

/* the largest lane; none is NaN */
INLINE float v_top(vf v)
{
    __m256 a = _mm256_max_ps(v.a, v.b);
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
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
    __m256 a = _mm256_add_ps(v.a, v.b);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
