/* x86/dots_avx2.h: dots of int8 rows in 256 bits, for avx2_body.h. With vpdpbusd a row is the unsigned side,
 * too large by 128, which makes 128 * sum(q) too much; without it both sides go to 16 bits, where vpmaddwd
 * cannot overflow. */

#define DOT_ROWS 4

#if HAS_DPBUSD
#define DOT_EXCESS 128
INLINE __m256i dot_i8_step(__m256i acc, const int8_t *q, const int8_t *row)
{
    __m256i w = _mm256_xor_si256(_mm256_loadu_si256((const void *)row), _mm256_set1_epi8(-128));
    return dpbusd(acc, w, _mm256_loadu_si256((const void *)q));
}
#else
#define DOT_EXCESS 0
INLINE __m256i widen(const int8_t *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)p));
}
INLINE __m256i dot_i8_step(__m256i acc, const int8_t *q, const int8_t *row)
{
    acc = _mm256_add_epi32(acc, _mm256_madd_epi16(widen(q), widen(row)));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(widen(q + 16), widen(row + 16)));
}
#endif

/* y[DOT_ROWS] = dot of q and each row over n values, a multiple of 32 */
INLINE void dot_i8_rows(int32_t *y, const int8_t *q, const int8_t *rows, size_t n, size_t d)
{
    __m256i acc[DOT_ROWS];
    UNROLL
    for (size_t r = 0; r < DOT_ROWS; r++) acc[r] = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += 32) {
        UNROLL
        for (size_t r = 0; r < DOT_ROWS; r++) acc[r] = dot_i8_step(acc[r], q + i, rows + r * d + i);
    }
    __m256i sums = _mm256_hadd_epi32(_mm256_hadd_epi32(acc[0], acc[1]), _mm256_hadd_epi32(acc[2], acc[3]));
    __m128i all = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    _mm_storeu_si128((void *)y, all);
}

INLINE int32_t dot_i8_one(const int8_t *q, const int8_t *row, size_t n)
{
    __m256i acc = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += 32) acc = dot_i8_step(acc, q + i, row + i);
    return sum_of(acc);
}

TARGET static void FN(dots_i8)(int32_t *y, const int8_t *q, const int8_t *rows, size_t n_rows, size_t d)
{
    size_t wide = d / 32 * 32, r = 0;
    int32_t excess = 0;
    for (size_t i = 0; i < wide; i++) excess += DOT_EXCESS * q[i];
    for (; r + DOT_ROWS <= n_rows; r += DOT_ROWS) dot_i8_rows(y + r, q, rows + r * d, wide, d);
    for (; r < n_rows; r++) y[r] = dot_i8_one(q, rows + r * d, wide);
    for (r = 0; r < n_rows; r++) {
        y[r] -= excess;
        for (size_t i = wide; i < d; i++) y[r] += q[i] * rows[r * d + i];
    }
}
