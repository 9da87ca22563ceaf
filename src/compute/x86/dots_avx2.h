/* x86/dots_avx2.h: dots of int8 rows in 256 bits, for avx2_body.h. With vpdpbusd the query is the unsigned
 * side, too large by 128, and what the row's sum makes of that is taken off again; without it both sides go
 * to 16 bits, where vpmaddwd cannot overflow. */

#if HAS_DPBUSD
INLINE int32_t dot_i8_wide(const int8_t *q, const int8_t *row, size_t n)
{
    __m256i dot = _mm256_setzero_si256(), sum = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += 32) {
        __m256i w = _mm256_loadu_si256((const void *)(row + i));
        __m256i x = _mm256_xor_si256(_mm256_loadu_si256((const void *)(q + i)), _mm256_set1_epi8(-128));
        dot = dpbusd(dot, x, w);
        sum = dpbusd(sum, _mm256_set1_epi8(1), w);
    }
    return sum_of(_mm256_sub_epi32(dot, _mm256_slli_epi32(sum, 7)));
}
#else
INLINE __m256i widen(const int8_t *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)p));
}

INLINE int32_t dot_i8_wide(const int8_t *q, const int8_t *row, size_t n)
{
    __m256i a = _mm256_setzero_si256(), b = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += 32) {
        a = _mm256_add_epi32(a, _mm256_madd_epi16(widen(q + i), widen(row + i)));
        b = _mm256_add_epi32(b, _mm256_madd_epi16(widen(q + i + 16), widen(row + i + 16)));
    }
    return sum_of(_mm256_add_epi32(a, b));
}
#endif

TARGET static void FN(dots_i8)(int32_t *y, const int8_t *q, const int8_t *rows, size_t n_rows, size_t d)
{
    size_t wide = d / 32 * 32;
    for (size_t r = 0; r < n_rows; r++) {
        const int8_t *row = rows + r * d;
        y[r] = dot_i8_wide(q, row, wide);
        for (size_t i = wide; i < d; i++) y[r] += q[i] * row[i];
    }
}
