/* q8_avx512.h: lanes of four bytes in one register, for attn_q8_body.h. */

#define KEY_EXCESS    128 /* codes are vpdpbusd's unsigned side */
#define KEY_QUERIES   4
#define KEY_CHAINS    2
#define VALUE_QUERIES 2
#define VALUE_GROUPS  4

typedef __m512i vi;

INLINE vi v_int(int32_t i)
{
    return _mm512_set1_epi32(i);
}
INLINE vi v_bytes(const void *p)
{
    return _mm512_loadu_si512(p);
}
INLINE vi v_add_int(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}
INLINE vi v_four(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}
INLINE vi v_dot_key(vi sum, vi key, const int8_t *q)
{
    return _mm512_dpbusd_epi32(sum, key, v_four(q));
}
INLINE vi v_dot_value(vi sum, vi value, const int8_t *w)
{
    return _mm512_dpbusd_epi32(sum, v_four(w), value);
}
INLINE vf v_from_int(vi a)
{
    return _mm512_cvtepi32_ps(a);
}
INLINE void v_store_i8(int8_t *p, vf v)
{
    _mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
}
INLINE uint32_t v_max_bits(vf v)
{
    return _mm512_reduce_max_epu32(_mm512_castps_si512(v));
}
