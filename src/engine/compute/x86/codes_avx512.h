/* codes_avx512.h: a panel's codes, scales and minima in registers of sixteen rows (for x86/ only, behind
 * panel.h and v_avx512.h). Everything is inlined with a constant row of formats.h, so that its questions cost
 * nothing. */

INLINE __m512i line(const uint8_t *step, size_t i)
{
    return _mm512_load_si512(step + i * 64);
}

/* v's bytes moved so that bit `from` comes to bit `to`; what crosses a byte is for the caller to mask. */
INLINE __m512i move_bits(__m512i v, const size_t from, const size_t to)
{
    return from > to   ? _mm512_srli_epi16(v, (unsigned)(from - to))
           : from < to ? _mm512_slli_epi16(v, (unsigned)(to - from))
                       : v;
}

/* low | (high & mask) */
INLINE __m512i join(__m512i low, __m512i high, char mask)
{
    return _mm512_ternarylogic_epi64(low, high, _mm512_set1_epi8(mask), 0xF8);
}

/* Group k of 32 columns: sixteen rows, four codes each. */
INLINE __m512i group(const wfmt *f, const uint8_t *step, const size_t k)
{
    if (f->bits == 8) return line(step, k);
    __m512i low = f->bits < 4
                      ? _mm512_and_si512(move_bits(line(step, k / 4), k % 4 * 2, 0), _mm512_set1_epi8(3))
                      : _mm512_and_si512(move_bits(line(step, k / 2), k % 2 * 4, 0), _mm512_set1_epi8(15));
    if (f->bits == 5) return join(low, move_bits(line(step, 4), k, 4), 0x10);
    if (f->bits == 6) return join(low, move_bits(line(step, 4 + k / 4), k % 4 * 2, 4), 0x30);
    if (f->bits == 3) return join(low, move_bits(line(step, 2), k, 2), 4);
    if (!f->values) return low;
    __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)f->values));
    return _mm512_shuffle_epi8(_mm512_add_epi8(table, _mm512_set1_epi8((char)f->zero)), low);
}

INLINE __m512 halves(const uint8_t *s)
{
    return _mm512_cvtph_ps(_mm256_load_si256((const void *)s));
}

INLINE __m512 bytes_to_ps(__m128i v, const bool is_signed)
{
    return _mm512_cvtepi32_ps(is_signed ? _mm512_cvtepi8_epi32(v) : _mm512_cvtepu8_epi32(v));
}

/* 2^(e - 128); numbers below 2^-126 have no exponent of their own */
INLINE __m512 powers(const uint8_t *s)
{
    __m512i e = _mm512_cvtepu8_epi32(_mm_load_si128((const void *)s));
    __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    __m512i small = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    return _mm512_castsi512_ps(
        _mm512_mask_mov_epi32(normal, _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2)), small));
}

/* What a block's runs share: d, and -m (m itself where it is the minimum). */
INLINE __m512 block_d(const wfmt *f, const uint8_t *s)
{
    return f->scales == SCALES_E8 ? powers(s) : halves(s);
}

INLINE __m512 block_m(const wfmt *f, const uint8_t *s)
{
    __m512 m = halves(s + 32);
    return f->scales == SCALES_F16_MIN ? m : _mm512_xor_ps(m, _mm512_set1_ps(-0.0f));
}

/* The scales and minima of run i of the block whose scales are at s. */
INLINE __m512 run_scale(const wfmt *f, const uint8_t *s, size_t i, __m512 d)
{
    if (f->sub == SUB_NONE) return d;
    __m128i v = _mm_load_si128((const void *)(s + (f->scales == SCALES_SUB ? 32 : 64) + i * PANEL_ROWS));
    if (f->scales == SCALES_SUB_MIN4) v = _mm_and_si128(v, _mm_set1_epi8(15));
    return _mm512_mul_ps(d, bytes_to_ps(v, f->scales == SCALES_SUB));
}

INLINE __m512 run_min(const wfmt *f, const uint8_t *s, size_t i, __m512 m)
{
    if (f->sub == SUB_NONE) return m;
    size_t n = f->scales == SCALES_SUB_MIN ? (size_t)f->block / f->run : 0;
    __m128i v = _mm_load_si128((const void *)(s + 64 + (n + i) * PANEL_ROWS));
    if (n == 0) v = _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(15));
    return _mm512_mul_ps(m, bytes_to_ps(v, false));
}
