/* wide_avx512.h: products and activations of types of our own, whose groups of 64 to 256 columns share a
 * scale (for avx512vnni.c).
 *
 * Between two uses of a scale lie 16 to 64 instructions of the multiplier for each sum, so the floats stay in
 * memory and nearly all registers hold sums: two panels times twelve tokens are 24 of them, with a register
 * for each panel's codes and one for an activation. The latency of vpdpbusd is hidden several times over, and
 * unpacking nibbles is paid by twelve tokens. How wide a group is is not a constant: types share kernels. */
#define WIDE_SUMS   24
#define WIDE_PANELS 2
#define WIDE_TOKENS 12 /* of a tile */
#define WIDE_MOST   96 /* tokens of a job */

/* X for each sum of the largest tile: number t * P + p. They are variables with names of their own, because
 * the compiler (gcc 12) leaves an array that lives through a loop in memory. */
#define WIDE_EACH(X) \
    X(0)             \
    X(1)             \
    X(2)             \
    X(3)             \
    X(4)             \
    X(5)             \
    X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)

/* Sums have the type of vpdpbusd's result: a cast in a loop would be a copy. */
INLINE __v16si wide_dot(__v16si sum, __m512i codes, __m512i x)
{
    return (__v16si)_mm512_dpbusd_epi32((__m512i)sum, codes, x);
}

/* -(sum * zero) of a token's group: what its codes are too large by. */
INLINE __v16si wide_start(const wfmt *f, const int32_t *at)
{
    __m512i sum = _mm512_set1_epi32(*at);
    sum = _mm512_slli_epi32(sum, (unsigned)__builtin_ctz(f->zero));
    return (__v16si)_mm512_sub_epi32(_mm512_setzero_si512(), sum);
}

/* acc[16] with a token's group: fma(sum, scale * x_scale, acc). `before`: all ones, or nothing in front of
 * the first group. */
INLINE __m512 wide_sum(const float *acc, __mmask16 before, __v16si sum, __m512 scale, const float *x_scale)
{
    __m512 by = _mm512_mul_ps(scale, _mm512_set1_ps(*x_scale));
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps((__m512i)sum), by, _mm512_maskz_loadu_ps(before, acc));
}

/* What the job adds, to a whole sum; see store_tile. */
INLINE void wide_store(float *out, __m512 v, __m512 bias, __mmask16 has_bias, __mmask16 adds)
{
    v = _mm512_mask_add_ps(v, has_bias, v, bias);
    _mm512_storeu_ps(out, adds ? _mm512_add_ps(_mm512_loadu_ps(out), v) : v);
}

/* What the compiler shall not know to be the same every time, or it keeps all that follows from it in memory.
 */
#define WIDE_ANEW(p) __asm__("" : "+r"(p))

/* Group by group, and there line by line: a line has four columns of bytes, or eight of nibbles. Three tokens
 * share a pointer, since an address may add a row, or two, by itself: twelve pointers would not be registers.
 */
INLINE void wide_tile(const mul_job *j, const wfmt *f, const size_t P, const size_t T)
{
    const size_t cols = j->cols, columns = f->bits == 8 ? 4 : 8;
    const size_t n_blocks = j->n_blocks;
    const uint8_t *w = j->w;
    const int8_t *x0 = j->q, *x1 = x0 + 3 * cols, *x2 = x1 + 3 * cols, *x3 = x2 + 3 * cols;
    const __m512i nibble = _mm512_set1_epi8(15);
    /* Rows of the result may be a multiple of a page apart, and would drive each other out of L1. */
    _Alignas(64) float own[WIDE_SUMS * PANEL_ROWS];
    const __mmask16 has_bias = j->bias ? 0xFFFF : 0, adds = j->add ? 0xFFFF : 0;
    const float *bias = j->bias ? j->bias : j->out;
    for (size_t g = 0; g < n_blocks; g++) {
        const int32_t *z0 = j->sum + g, *z1 = z0 + 3 * n_blocks, *z2 = z1 + 3 * n_blocks,
                      *z3 = z2 + 3 * n_blocks;
        const uint8_t *end = w + j->group / columns * 64;
        __m512i line[TILE_ONE_PANELS], codes[TILE_ONE_PANELS];
        __m512 scale[TILE_ONE_PANELS];
#define WIDE_START(i)      __v16si s##i = i < P * T ? wide_start(f, WIDE_OF(z, i / P, n_blocks)) : (__v16si){0};
#define WIDE_OF(p, t, row) (((t) < 3 ? p##0 : (t) < 6 ? p##1 : (t) < 9 ? p##2 : p##3) + (t) % 3 * (row))
#define WIDE_X(t)          WIDE_OF(x, t, cols)
#define WIDE_LOW(i) \
    if (i < P * T) s##i = wide_dot(s##i, codes[i % P], four(WIDE_X(i / P)));
#define WIDE_HIGH(i) \
    if (i < P * T) s##i = wide_dot(s##i, codes[i % P], four(WIDE_X(i / P) + 4));
#define WIDE_SUM(i) \
    wide_sum(acc + (i)*PANEL_ROWS, before, s##i, scale[(i) % P], WIDE_OF(b, (i) / P, n_blocks))
#define WIDE_END(i) \
    if (i < P * T) _mm512_store_ps(acc + (i)*PANEL_ROWS, WIDE_SUM(i));
#define WIDE_LAST(i) \
    if (i < P * T)   \
        wide_store(j->out + i / P * j->ldo + i % P * PANEL_ROWS, WIDE_SUM(i), ends[i % P], has_bias, adds);
        WIDE_EACH(WIDE_START)
        do {
            UNROLL
            for (size_t p = 0; p < P; p++) {
                __builtin_prefetch(w + p * j->panel_bytes + CODES_AHEAD);
                line[p] = _mm512_load_si512(w + p * j->panel_bytes);
                codes[p] = f->bits == 8 ? line[p] : _mm512_and_si512(line[p], nibble);
            }
            WIDE_EACH(WIDE_LOW)
            if (f->bits == 4) {
                UNROLL
                for (size_t p = 0; p < P; p++)
                    codes[p] = _mm512_and_si512(_mm512_srli_epi16(line[p], 4), nibble);
                WIDE_EACH(WIDE_HIGH)
            }
            x0 += columns;
            x1 += columns;
            x2 += columns;
            x3 += columns;
            w += 64;
        } while (w < end);
        UNROLL
        for (size_t p = 0; p < P; p++)
            scale[p] = halves((const uint8_t *)(j->scales + p * j->panel_scales + g * PANEL_ROWS));
        const __mmask16 before = g > 0 ? 0xFFFF : 0;
        const float *b0 = j->scale + g, *b1 = b0 + 3 * n_blocks, *b2 = b1 + 3 * n_blocks,
                    *b3 = b2 + 3 * n_blocks;
        float *acc = own;
        WIDE_ANEW(acc);
        if (g + 1 < n_blocks) {
            WIDE_EACH(WIDE_END)
            continue;
        }
        __m512 ends[TILE_ONE_PANELS];
        UNROLL
        for (size_t p = 0; p < P; p++) ends[p] = _mm512_maskz_loadu_ps(has_bias, bias + p * PANEL_ROWS);
        WIDE_EACH(WIDE_LAST)
    }
}

#define WIDE_TILE(name, kernel, rows, tokens, panels)                         \
    TARGET static void FN(mul_##kernel##_##rows##x##tokens)(const mul_job *j) \
    {                                                                         \
        wide_tile(j, &wfmt_table[DT_##name], panels, tokens);                 \
    }

/* Tokens of a job by tiles of so many. */
typedef struct wide_size {
    size_t tokens;
    mul_fn *mul[WIDE_PANELS];
} wide_size;

static void wide_tokens(const mul_job *j, const wide_size *size)
{
    for (size_t t = 0; t < j->n_tokens; t += size->tokens) {
        while (size->tokens > j->n_tokens - t) size++;
        mul_job part = mul_job_part(j, 0, t, j->n_panels, size->tokens);
        size->mul[j->n_panels - 1](&part);
    }
}

#define WIDE_SIZE(kernel, tokens)                                          \
    {                                                                      \
        tokens,                                                            \
        {                                                                  \
            FN(mul_##kernel##_16x##tokens), FN(mul_##kernel##_32x##tokens) \
        }                                                                  \
    }
#define WIDE_TILES(name, kernel)                                                                        \
    WIDE_TILE(name, kernel, 16, 1, 1)                                                                   \
    WIDE_TILE(name, kernel, 32, 1, 2)                                                                   \
    WIDE_TILE(name, kernel, 48, 1, 3)                                                                   \
    WIDE_TILE(name, kernel, 64, 1, 4)                                                                   \
    WIDE_TILE(name, kernel, 16, 2, 1)                                                                   \
    WIDE_TILE(name, kernel, 32, 2, 2)                                                                   \
    WIDE_TILE(name, kernel, 16, 3, 1)                                                                   \
    WIDE_TILE(name, kernel, 32, 3, 2)                                                                   \
    WIDE_TILE(name, kernel, 16, 4, 1)                                                                   \
    WIDE_TILE(name, kernel, 32, 4, 2)                                                                   \
    WIDE_TILE(name, kernel, 16, 8, 1)                                                                   \
    WIDE_TILE(name, kernel, 32, 8, 2)                                                                   \
    WIDE_TILE(name, kernel, 16, 12, 1)                                                                  \
    WIDE_TILE(name, kernel, 32, 12, 2)                                                                  \
    static void FN(mul_##kernel)(const mul_job *j)                                                      \
    {                                                                                                   \
        static mul_fn *const one[TILE_ONE_PANELS] = {FN(mul_##kernel##_16x1), FN(mul_##kernel##_32x1),  \
                                                     FN(mul_##kernel##_48x1), FN(mul_##kernel##_64x1)}; \
        static const wide_size sizes[] = {                                                              \
            WIDE_SIZE(kernel, 12), WIDE_SIZE(kernel, 8), WIDE_SIZE(kernel, 4),                          \
            WIDE_SIZE(kernel, 3),  WIDE_SIZE(kernel, 2), WIDE_SIZE(kernel, 1)};                         \
        if (j->n_tokens == 1)                                                                           \
            one[j->n_panels - 1](j);                                                                    \
        else                                                                                            \
            wide_tokens(j, sizes);                                                                      \
    }
WIDE_TILES(S8_128, s8)
WIDE_TILES(S4_128, s4)

/* ---- activations ---- */

/* The first n (32 or 64) of 64 activations as bytes, zeros behind them. */
INLINE __m512i round_bytes(const float *x, __m512 inverse, const size_t n)
{
    const __m512i none = _mm512_setzero_si512();
    if (n == 32) return pack_64(round_16(x, inverse), round_16(x + 16, inverse), none, none);
    return pack_64(round_16(x, inverse), round_16(x + 16, inverse), round_16(x + 32, inverse),
                   round_16(x + 48, inverse));
}

TARGET static void quantise_group(const float *x, size_t n, int8_t *q, float *scale, int32_t *sum)
{
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i m = block_max(x), all = _mm512_setzero_si512();
    for (size_t i = 32; i < n; i += 32) m = _mm512_max_epu32(m, block_max(x + i));
    uint32_t max_bits = _mm512_reduce_max_epu32(m);
    float max;
    size_t i = 0;
    memcpy(&max, &max_bits, sizeof max);
    if (max_bits >= 0x7F800000u || max < ACTS_TINY) {
        *scale = max_bits >= 0x7F800000u ? (float)NAN : 0.0f;
        *sum = 0;
        memset(q, 0, n);
        return;
    }
    *scale = max / 127.0f;
    __m512 inverse = _mm512_set1_ps(127.0f / max);
    for (; i + 64 <= n; i += 64) {
        __m512i bytes = round_bytes(x + i, inverse, 64);
        _mm512_storeu_si512(q + i, bytes);
        all = _mm512_dpbusd_epi32(all, ones, bytes);
    }
    if (i < n) { /* a group of 96 */
        __m512i bytes = round_bytes(x + i, inverse, 32);
        _mm256_storeu_si256((void *)(q + i), _mm512_castsi512_si256(bytes));
        all = _mm512_dpbusd_epi32(all, ones, bytes);
    }
    *sum = _mm512_reduce_add_epi32(all);
}

TARGET static void FN(quantise_wide)(const float *x, size_t n_groups, size_t group, int8_t *q, float *scale,
                                     int32_t *sum)
{
    for (size_t g = 0; g < n_groups; g++)
        quantise_group(x + g * group, group, q + g * group, scale + g, sum + g);
}
