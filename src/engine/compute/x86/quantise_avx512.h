/* quantise_avx512.h: activations to int8, sixteen blocks at a time: one lane a block where scales are made,
 * so that there is one division for all (for x86/ only; behind v_avx512.h). */

/* |x| as integers order like the floats, and NaN is above all */
INLINE __m512i magnitude(const float *x)
{
    return _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
}

INLINE __m512i block_max(const float *x)
{
    return _mm512_max_epu32(magnitude(x), magnitude(x + 16));
}

/* [a0|a2, b0|b2, a1|a3, b1|b3] of every four lanes, where | is the larger one */
INLINE __m512i max_of_two(__m512i a, __m512i b)
{
    return _mm512_max_epu32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

/* Lane 4 i + k: the largest of every fourth lane of block k, over part i of sixteen bytes. x: four blocks */
INLINE __m512i max_of_four(const float *x)
{
    __m512i a = max_of_two(block_max(x), block_max(x + ACTS_BLOCK));
    __m512i b = max_of_two(block_max(x + 2 * ACTS_BLOCK), block_max(x + 3 * ACTS_BLOCK));
    return _mm512_max_epu32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

INLINE __m512i fold_parts(__m512i a, __m512i b)
{
    return _mm512_max_epu32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}

/* Lane b: the largest magnitude of block b. */
INLINE __m512i max_of_sixteen(const float *x)
{
    const size_t four = (size_t)4 * ACTS_BLOCK;
    __m512i low = fold_parts(max_of_four(x), max_of_four(x + four));
    return fold_parts(low, fold_parts(max_of_four(x + 2 * four), max_of_four(x + 3 * four)));
}

/* No |x| * inverse comes to 127.5: scale and inverse are of the largest. */
INLINE void round_block(const float *x, __m512 inverse, int8_t *q)
{
    __m512i a = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), inverse));
    __m512i b = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16), inverse));
    _mm_storeu_si128((void *)q, _mm512_cvtepi32_epi8(a));
    _mm_storeu_si128((void *)(q + 16), _mm512_cvtepi32_epi8(b));
}

TARGET static void quantise_block(const float *x, int8_t *q, float *scale, int32_t *sum, int32_t *sum16)
{
    uint32_t max_bits = _mm512_reduce_max_epu32(block_max(x));
    float max;
    memcpy(&max, &max_bits, sizeof max);
    if (max_bits >= 0x7F800000u || max < ACTS_TINY) {
        *scale = max_bits >= 0x7F800000u ? (float)NAN : 0.0f;
        *sum = sum16[0] = sum16[1] = 0;
        memset(q, 0, ACTS_BLOCK);
        return;
    }
    *scale = max / 127.0f;
    round_block(x, _mm512_set1_ps(127.0f / max), q);
    for (size_t half = 0; half < 2; half++)
        sum16[half] =
            _mm512_reduce_add_epi32(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)(q + half * 16))));
    *sum = sum16[0] + sum16[1];
}

INLINE __m512i round_16(const float *x, __m512 inverse)
{
    return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), inverse));
}

/* Sixteens of bytes in order: packing works within 128-bit lanes, the permutation puts fours back. */
INLINE __m512i pack_64(__m512i a, __m512i b, __m512i c, __m512i d)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i low = _mm512_packs_epi32(a, b), high = _mm512_packs_epi32(c, d);
    return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(low, high));
}

/* Two blocks of bytes to q; what each four of them add up to. */
INLINE __m512i round_two(const float *x, const float *inverse, int8_t *q)
{
    __m512 a = _mm512_set1_ps(inverse[0]), b = _mm512_set1_ps(inverse[1]);
    __m512i bytes = pack_64(round_16(x, a), round_16(x + 16, a), round_16(x + 32, b), round_16(x + 48, b));
    _mm512_storeu_si512(q, bytes);
    return _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), bytes);
}

/* [a0+a2, b0+b2, a1+a3, b1+b3] of every four lanes */
INLINE __m512i add_32(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

/* Eight blocks; their sum16. Sixteen bytes are 128 bits of what round_two gives, whose four lanes are added
 * by turning: lane 4 L + k is then of part L of pair k. */
INLINE __m512i round_eight(const float *x, const float *inverse, int8_t *q)
{
    const __m512i turned = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i four[4];
    UNROLL
    for (size_t i = 0; i < 4; i++) four[i] = round_two(x + 64 * i, inverse + 2 * i, q + 64 * i);
    __m512i a = add_32(four[0], four[1]), b = add_32(four[2], four[3]);
    __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    return _mm512_permutexvar_epi32(turned, all);
}

/* Sixteen blocks; false, with nothing written, where one of them is not finite or tiny. */
INLINE bool quantise_sixteen(const float *x, int8_t *q, float *scale, int32_t *sum, int32_t *sum16)
{
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    _Alignas(64) float inverse[16];
    __m512i bits = max_of_sixteen(x), tiny = _mm512_castps_si512(_mm512_set1_ps(ACTS_TINY));
    if (_mm512_cmpge_epu32_mask(bits, _mm512_set1_epi32(0x7F800000)) | _mm512_cmplt_epu32_mask(bits, tiny))
        return false;
    __m512 max = _mm512_castsi512_ps(bits), top = _mm512_set1_ps(127.0f);
    _mm512_store_ps(inverse, _mm512_div_ps(top, max));
    _mm512_storeu_ps(scale, _mm512_div_ps(max, top));
    __m512i low = round_eight(x, inverse, q), high = round_eight(x + 256, inverse + 8, q + 256);
    _mm512_storeu_si512(sum16, low);
    _mm512_storeu_si512(sum16 + 16, high);
    _mm512_storeu_si512(sum, _mm512_add_epi32(_mm512_permutex2var_epi32(low, evens, high),
                                              _mm512_permutex2var_epi32(low, odds, high)));
    return true;
}

TARGET static void FN(quantise)(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum,
                                int32_t *sum16)
{
    for (size_t b = 0; b < n_blocks;) {
        size_t end = n_blocks - b < 16 ? n_blocks : b + 16;
        if (end == b + 16 &&
            quantise_sixteen(x + b * ACTS_BLOCK, q + b * ACTS_BLOCK, scale + b, sum + b, sum16 + 2 * b))
            b = end;
        for (; b < end; b++)
            quantise_block(x + b * ACTS_BLOCK, q + b * ACTS_BLOCK, scale + b, sum + b, sum16 + 2 * b);
    }
}
