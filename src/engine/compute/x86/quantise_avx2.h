/* quantise_avx2.h: activations to int8 in 256 bits, in blocks of 32 (eight at a time: one lane a block where scales
 * are made, so that there is one division for all) and in the groups of types of our own (for avx2_body.h). */

INLINE uint32_t max_of(__m256i v)
{
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

INLINE int32_t sum_of(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1));
    return _mm_cvtsi128_si32(s);
}

/* No |x| * inverse comes to 127.5: the inverse is of the largest. */
INLINE __m256i to_int(const float *x, __m256 inverse)
{
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
}

INLINE __m256i magnitude(const float *x)
{
    return _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x)), _mm256_set1_epi32(0x7FFFFFFF));
}

/* q[32] = x · inverse; the sums of both halves */
INLINE void quantise_32(const float *x, __m256 inverse, int8_t *q, __m256i *first, __m256i *second)
{
    __m256i a = to_int(x, inverse), b = to_int(x + 8, inverse), c = to_int(x + 16, inverse),
            d = to_int(x + 24, inverse);
    *first = _mm256_add_epi32(a, b);
    *second = _mm256_add_epi32(c, d);
    /* packs work within 128-bit lanes; the permutation puts the groups of four back in order */
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)(void *)q, bytes);
}

INLINE __m256i magnitude_32(const float *x)
{
    return _mm256_max_epu32(_mm256_max_epu32(magnitude(x), magnitude(x + 8)),
                            _mm256_max_epu32(magnitude(x + 16), magnitude(x + 24)));
}

/* The scale of a block whose largest magnitude is there, and what to multiply with; false: all become zeros.
 */
INLINE bool scale_for(__m256i magnitudes, float *scale, __m256 *inverse)
{
    uint32_t max_bits = max_of(magnitudes);
    float max;
    memcpy(&max, &max_bits, sizeof max);
    bool none = max_bits >= 0x7F800000u || max < ACTS_TINY;
    *scale = max_bits >= 0x7F800000u ? (float)NAN : none ? 0.0f : max / 127.0f;
    *inverse = _mm256_set1_ps(none ? 0.0f : 127.0f / max);
    return !none;
}

TARGET static void quantise_block(const float *x, int8_t *q, float *scale, int32_t *sum, int32_t *sum16)
{
    __m256 inverse;
    __m256i first, second;
    if (!scale_for(magnitude_32(x), scale, &inverse)) {
        *sum = sum16[0] = sum16[1] = 0;
        memset(q, 0, ACTS_BLOCK);
        return;
    }
    quantise_32(x, inverse, q, &first, &second);
    sum16[0] = sum_of(first);
    sum16[1] = sum_of(second);
    *sum = sum16[0] + sum16[1];
}

/* [a0|a2, b0|b2, a1|a3, b1|b3] of every four lanes, where | is the larger one */
INLINE __m256i max_of_two(__m256i a, __m256i b)
{
    return _mm256_max_epu32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}

/* Lane k of each four: the largest of every fourth lane of block k. x: four blocks */
INLINE __m256i max_of_four(const float *x)
{
    __m256i a = max_of_two(magnitude_32(x), magnitude_32(x + ACTS_BLOCK));
    __m256i b = max_of_two(magnitude_32(x + 2 * ACTS_BLOCK), magnitude_32(x + 3 * ACTS_BLOCK));
    return _mm256_max_epu32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/* Lane b: the largest magnitude of block b. */
INLINE __m256i max_of_eight(const float *x)
{
    __m256i a = max_of_four(x), b = max_of_four(x + (size_t)4 * ACTS_BLOCK);
    return _mm256_max_epu32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

/* [a0+a2, b0+b2, a1+a3, b1+b3] of every four lanes */
INLINE __m256i add_two(__m256i a, __m256i b)
{
    return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}

/* Lane k of each four: what the four lanes of s[k] there add up to. */
INLINE __m256i add_four(const __m256i s[4])
{
    __m256i a = add_two(s[0], s[1]), b = add_two(s[2], s[3]);
    return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/* A block of bytes to q; what each four of them add up to. */
INLINE __m256i round_block(const float *x, float inverse, int8_t *q)
{
    __m256i first, second;
    quantise_32(x, _mm256_set1_ps(inverse), q, &first, &second);
    __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_loadu_si256((const void *)q));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* Four blocks and their sums. */
INLINE void round_four(const float *x, const float *inverse, int8_t *q, int32_t *sum, int32_t *sum16)
{
    __m256i fours[4];
    UNROLL
    for (size_t i = 0; i < 4; i++) fours[i] = round_block(x + i * ACTS_BLOCK, inverse[i], q + i * ACTS_BLOCK);
    __m256i all = add_four(fours);
    __m128i first = _mm256_castsi256_si128(all), second = _mm256_extracti128_si256(all, 1);
    _mm_storeu_si128((void *)sum, _mm_add_epi32(first, second));
    _mm_storeu_si128((void *)sum16, _mm_unpacklo_epi32(first, second));
    _mm_storeu_si128((void *)(sum16 + 4), _mm_unpackhi_epi32(first, second));
}

/* Eight blocks; false, with nothing written, where one of them is not finite or tiny. */
INLINE bool quantise_eight(const float *x, int8_t *q, float *scale, int32_t *sum, int32_t *sum16)
{
    _Alignas(32) float inverse[8];
    __m256i bits = max_of_eight(x), tiny = _mm256_castps_si256(_mm256_set1_ps(ACTS_TINY));
    __m256i odd = _mm256_or_si256(_mm256_cmpgt_epi32(bits, _mm256_set1_epi32(0x7F7FFFFF)),
                                  _mm256_cmpgt_epi32(tiny, bits));
    if (_mm256_movemask_epi8(odd)) return false;
    __m256 max = _mm256_castsi256_ps(bits), top = _mm256_set1_ps(127.0f);
    _mm256_store_ps(inverse, _mm256_div_ps(top, max));
    _mm256_storeu_ps(scale, _mm256_div_ps(max, top));
    for (size_t i = 0; i < 8; i += 4)
        round_four(x + i * ACTS_BLOCK, inverse + i, q + i * ACTS_BLOCK, sum + i, sum16 + 2 * i);
    return true;
}

TARGET static void FN(quantise)(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum,
                                int32_t *sum16)
{
    for (size_t b = 0; b < n_blocks;) {
        size_t end = n_blocks - b < 8 ? n_blocks : b + 8;
        if (end == b + 8 &&
            quantise_eight(x + b * ACTS_BLOCK, q + b * ACTS_BLOCK, scale + b, sum + b, sum16 + 2 * b))
            b = end;
        for (; b < end; b++)
            quantise_block(x + b * ACTS_BLOCK, q + b * ACTS_BLOCK, scale + b, sum + b, sum16 + 2 * b);
    }
}

TARGET static void quantise_group(const float *x, size_t n, int8_t *q, float *scale, int32_t *sum)
{
    __m256 inverse;
    __m256i m = magnitude_32(x), all = _mm256_setzero_si256(), first, second;
    for (size_t i = 32; i < n; i += 32) m = _mm256_max_epu32(m, magnitude_32(x + i));
    if (!scale_for(m, scale, &inverse)) {
        *sum = 0;
        memset(q, 0, n);
        return;
    }
    for (size_t i = 0; i < n; i += 32) {
        quantise_32(x + i, inverse, q + i, &first, &second);
        all = _mm256_add_epi32(all, _mm256_add_epi32(first, second));
    }
    *sum = sum_of(all);
}

TARGET static void FN(quantise_wide)(const float *x, size_t n_groups, size_t group, int8_t *q, float *scale,
                                     int32_t *sum)
{
    for (size_t g = 0; g < n_groups; g++)
        quantise_group(x + g * group, group, q + g * group, scale + g, sum + g);
}
