/* q8_avx2.h: lanes of four bytes in two registers, for attn_q8_body.h. Without vpdpbusd, vpmaddubsw
 * multiplies absolute values and gives their signs to the other side: 2 * 127 * 127 fits 16 bits. */

#if HAS_DPBUSD
#define KEY_EXCESS 128 /* codes are vpdpbusd's unsigned side */
#else
#define KEY_EXCESS 0
#endif
#define KEY_QUERIES   2
#define KEY_CHAINS    1
#define VALUE_QUERIES 1
#define VALUE_GROUPS  2

typedef struct vi {
    __m256i a, b; /* lanes 0..7 and 8..15 */
} vi;

INLINE vi v_int(int32_t i)
{
    return (vi){_mm256_set1_epi32(i), _mm256_set1_epi32(i)};
}
INLINE vi v_bytes(const void *p)
{
    return (vi){_mm256_loadu_si256(p), _mm256_loadu_si256((const __m256i *)p + 1)};
}
INLINE vi v_add_int(vi x, vi y)
{
    return (vi){_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
INLINE __m256i v_four(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}

/* sum + what four products of unsigned u (of at most 127 without vpdpbusd) and signed s are in each lane */
INLINE __m256i dot_us(__m256i sum, __m256i u, __m256i s)
{
#if HAS_DPBUSD
    return dpbusd(sum, u, s);
#else
    __m256i pairs = _mm256_maddubs_epi16(u, s);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#endif
}
INLINE __m256i dot_key8(__m256i sum, __m256i key, __m256i q)
{
#if !HAS_DPBUSD
    __m256i k = _mm256_xor_si256(key, _mm256_set1_epi8(-128));
    key = _mm256_abs_epi8(k);
    q = _mm256_sign_epi8(q, k);
#endif
    return dot_us(sum, key, q);
}
INLINE vi v_dot_key(vi sum, vi key, const int8_t *q)
{
    __m256i x = v_four(q);
    return (vi){dot_key8(sum.a, key.a, x), dot_key8(sum.b, key.b, x)};
}
INLINE vi v_dot_value(vi sum, vi value, const int8_t *w)
{
    __m256i x = v_four(w);
    return (vi){dot_us(sum.a, x, value.a), dot_us(sum.b, x, value.b)};
}
INLINE vf v_from_int(vi x)
{
    return BOTH(_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b));
}
INLINE void v_store_i8(int8_t *p, vf v)
{
    __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b));
    words = _mm256_permute4x64_epi64(words, 0xd8); /* packed within halves: 0..3, 8..11, 4..7, 12..15 */
    __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((void *)p, bytes);
}
INLINE uint32_t v_max_bits(vf v)
{
    __m256i m = _mm256_max_epu32(_mm256_castps_si256(v.a), _mm256_castps_si256(v.b));
    __m128i x = _mm_max_epu32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    x = _mm_max_epu32(x, _mm_shuffle_epi32(x, 0x4e));
    x = _mm_max_epu32(x, _mm_shuffle_epi32(x, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(x);
}
