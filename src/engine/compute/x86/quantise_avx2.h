/* quantise_avx2.h: activations to int8 in 256 bits, in blocks of 32 and in the groups of types of our own
 * (for avx2_body.h). */

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

INLINE __m256i to_int(const float *x, __m256 inverse)
{
    __m256i i = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
    return _mm256_max_epi32(_mm256_set1_epi32(-127), _mm256_min_epi32(_mm256_set1_epi32(127), i));
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

TARGET static void FN(quantise)(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum,
                                int32_t *sum16)
{
    for (size_t b = 0; b < n_blocks; b++)
        quantise_block(x + b * ACTS_BLOCK, q + b * ACTS_BLOCK, scale + b, sum + b, sum16 + 2 * b);
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
