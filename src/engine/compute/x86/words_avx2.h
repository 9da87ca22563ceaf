/* words_avx2.h: products of many tokens in front of weights of eight bits, without vpdpbusd (for avx2_body.h).
 *
 * Two products of a weight and an activation do not fit 16 bits, so vpmaddubsw needs a sign for each and a
 * widening addition. Words of 16 bits have room for more, and leave half of the multiplications to additions, of
 * which a core does twice as many (Winograd 1968, "A new algorithm for inner product"):
 *
 *     w0 x0 + w1 x1 = (w0 + x1) (w1 + x0) - w0 w1 - x0 x1
 *
 * So four columns of eight rows and a token are two vpaddw, a vpmaddwd and an addition. What is subtracted is a
 * number for each row and one for each token, and all of it is exact. On Zen 4 that is 29 multiply-adds a cycle
 * with its loads, 24 by vpmaddwd of words alone, whose additions stand in the way of its products, and 20 by signs.
 *
 * 512 columns of a panel are made words once (16 KB, which stay in L1) while all tokens of the job pass, and the
 * activations once when they are loaded (acts_form). Of each four columns the first and third are a pair, the second and
 * fourth the other: shifts make them. Types with runs of 32 share the tiles, and so do our own types, whose sums
 * stay in registers over a whole group. */
#define WORDS_LEAST 8 /* tokens that pay for unpacking */
#define WORDS_COLS  512
#define WORDS_RUNS  (WORDS_COLS / ACTS_BLOCK)

typedef struct words {
    size_t first_group, n_groups; /* groups of columns with a scale: where these are in the row */
    _Alignas(64) int16_t w[WORDS_COLS][PANEL_ROWS]; /* four columns: first pairs, then second ones */
    int32_t start[WORDS_RUNS][PANEL_ROWS];          /* of a row and group: -(w0 w1 + w2 w3 + ...) */
    float scale[WORDS_RUNS][PANEL_ROWS];
    float acc[FLAT_PANELS][FLAT_TOKENS][PANEL_ROWS];
} words;

/* The pairs of each four bytes, as words. */
INLINE __m256i first_pair(__m256i bytes)
{
    return _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8);
}
INLINE __m256i second_pair(__m256i bytes)
{
    return _mm256_srai_epi16(bytes, 8);
}

/* 32 columns: a line of first pairs and one of second ones for each four; start[h] -= their products. */
INLINE void words_step(int16_t *to, const wfmt *f, const uint8_t *step, __m256i start[2])
{
    UNROLL
    for (size_t k = 0; k < 8; k++, to += 64) {
        UNROLL
        for (size_t h = 0; h < 2; h++) {
            __m256i w = group(f, step + h * 32, k), first = first_pair(w), second = second_pair(w);
            _mm256_store_si256((void *)(to + h * 16), first);
            _mm256_store_si256((void *)(to + 32 + h * 16), second);
            start[h] = _mm256_sub_epi32(start[h], _mm256_madd_epi16(first, second));
        }
    }
}

/* Blocks [block, block + n) of panel p, `cols` columns each. */
INLINE void words_panel(words *c, const mul_job *j, const wfmt *f, size_t p, size_t block, size_t n,
                        size_t cols)
{
    const size_t n_steps = j->group / ACTS_BLOCK;
    const uint8_t *s = (const uint8_t *)(j->scales + p * j->panel_scales) + block * panel_scale_bytes(f);
    const uint8_t *w = j->w + p * j->panel_bytes + block * cols / ACTS_BLOCK * panel_step_bytes(f);
    int16_t *to = c->w[0];
    for (size_t g = 0; g < c->n_groups; g++) {
        __m256i start[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        for (size_t i = 0; i < n_steps; i++, w += panel_step_bytes(f), to += ACTS_BLOCK * PANEL_ROWS)
            words_step(to, f, w, start);
        for (size_t h = 0; h < 2; h++) _mm256_store_si256((void *)(c->start[g] + h * HALF_ROWS), start[h]);
    }
    flat_scales(f, s, n, c->scale, NULL);
}

/* Words of 32 activations, first pairs and then second ones, and the products of both in eight lanes. */
INLINE __m256i words_block(int16_t *to, const int8_t *q)
{
    __m256i x = _mm256_loadu_si256((const void *)q), first = first_pair(x), second = second_pair(x);
    _mm256_storeu_si256((void *)to, first);
    _mm256_storeu_si256((void *)(to + 16), second);
    return _mm256_madd_epi16(first, second);
}

static bool FN(words_wanted)(dtype t, size_t n_tokens)
{
    return wfmt_is_byte(&wfmt_table[t]) && n_tokens >= WORDS_LEAST;
}

TARGET static void FN(words_make)(const acts_loaded *a, size_t t, size_t end)
{
    const size_t group = a->group, n_groups = (end - t) * (a->cols / group);
    const int8_t *q = a->q + t * a->cols;
    int16_t *to = a->words + t * a->cols;
    int32_t *start = a->words_start + t * (a->cols / group);
    size_t g = 0;
    for (; group == ACTS_BLOCK && g + 4 <= n_groups; g += 4) {
        __m256i fours[4];
        UNROLL
        for (size_t i = 0; i < 4; i++, q += ACTS_BLOCK, to += ACTS_BLOCK) fours[i] = words_block(to, q);
        __m256i all = add_four(fours);
        __m128i sums = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
        _mm_storeu_si128((void *)(start + g), _mm_sub_epi32(_mm_setzero_si128(), sums));
    }
    for (; g < n_groups; g++) {
        __m256i all = _mm256_setzero_si256();
        for (size_t i = 0; i < group; i += ACTS_BLOCK, q += ACTS_BLOCK, to += ACTS_BLOCK)
            all = _mm256_add_epi32(all, words_block(to, q));
        start[g] = -sum_of(all);
    }
}

/* A pair of one token in every lane. */
INLINE __m256i pair(const int16_t *x)
{
    int32_t v;
    memcpy(&v, x, sizeof v);
    return _mm256_set1_epi32(v);
}

/* dot[t * 2 + h] += 32 columns */
INLINE void words_dots(__m256i *dot, const int16_t *w, const int16_t *x, size_t ldx, const size_t T)
{
    UNROLL
    for (size_t k = 0; k < 8; k++, w += 64, x += 2) {
        __m256i first[2] = {_mm256_load_si256((const void *)w), _mm256_load_si256((const void *)(w + 16))};
        __m256i second[2] = {_mm256_load_si256((const void *)(w + 32)),
                             _mm256_load_si256((const void *)(w + 48))};
        __asm__("" : "+x"(first[0]), "+x"(first[1]), "+x"(second[0]), "+x"(second[1]));
        UNROLL
        for (size_t t = 0; t < T; t++) {
            __m256i x_first = pair(x + t * ldx), x_second = pair(x + t * ldx + 16);
            UNROLL
            for (size_t h = 0; h < 2; h++) {
                __m256i a = _mm256_add_epi16(first[h], x_second), b = _mm256_add_epi16(second[h], x_first);
                dot[2 * t + h] = add_dots(dot[2 * t + h], _mm256_madd_epi16(a, b));
            }
        }
    }
}

/* T tokens from `first` on times the unpacked panel p; n_steps: of 32 columns in a group. */
INLINE void words_tile(const mul_job *j, words *c, size_t p, size_t first, const size_t n_steps,
                       const size_t T)
{
    const size_t n_groups = c->n_groups, n_blocks = j->n_blocks, cols = j->cols;
    const size_t at = first * n_blocks + c->first_group;
    const int16_t *w = c->w[0], *x = j->words + first * cols + c->first_group * j->group;
    const int32_t *x_start = j->words_start + at;
    const float *x_scale = j->scale + at;
    float *acc = c->acc[p][first];
    for (size_t g = 0; g < n_groups; g++, x_start++, x_scale++) {
        __m256i dot[2 * TILE_MANY_TOKENS];
        /* Or the compiler makes a pointer of every address, and keeps sums that it has no registers for. */
        __asm__("" : "+r"(x), "+r"(x_start), "+r"(x_scale), "+r"(acc));
        UNROLL
        for (size_t i = 0; i < 2 * T; i++)
            dot[i] = _mm256_add_epi32(_mm256_load_si256((const void *)(c->start[g] + i % 2 * HALF_ROWS)),
                                      _mm256_set1_epi32(x_start[i / 2 * n_blocks]));
        for (size_t i = 0; i < n_steps; i++, w += ACTS_BLOCK * PANEL_ROWS, x += ACTS_BLOCK)
            words_dots(dot, w, x, cols, T);
        UNROLL
        for (size_t h = 0; h < 2; h++) {
            __m256 scale = _mm256_load_ps(c->scale[g] + h * HALF_ROWS);
            UNROLL
            for (size_t t = 0; t < T; t++) {
                float *a = acc + t * PANEL_ROWS + h * HALF_ROWS;
                __m256 by = _mm256_mul_ps(scale, _mm256_set1_ps(x_scale[t * n_blocks]));
                _mm256_store_ps(a,
                                _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[2 * t + h]), by, _mm256_load_ps(a)));
            }
        }
    }
}

typedef void words_fn(const mul_job *j, words *c, size_t p, size_t first);
/* Blocks [block, block + n) of panel p. */
typedef void words_unpack_fn(words *c, const mul_job *j, size_t p, size_t block, size_t n);

#define WORDS_TILE(kind, steps, tokens)                                                                   \
    TARGET static void FN(words_##kind##_16x##tokens)(const mul_job *j, words *c, size_t p, size_t first) \
    {                                                                                                     \
        words_tile(j, c, p, first, steps, tokens);                                                        \
    }
#define WORDS_TILES(kind, steps)                                  \
    WORDS_TILE(kind, steps, 1)                                    \
    WORDS_TILE(kind, steps, 2)                                    \
    WORDS_TILE(kind, steps, 3)                                    \
    WORDS_TILE(kind, steps, 4)                                    \
    static words_fn *const FN(words_##kind)[TILE_MANY_TOKENS] = { \
        FN(words_##kind##_16x1), FN(words_##kind##_16x2), FN(words_##kind##_16x3), FN(words_##kind##_16x4)};
WORDS_TILES(runs, 1)
WORDS_TILES(wide, j->group / ACTS_BLOCK)

/* Blocks of the type have `cols` columns. */
static void by_words(const mul_job *j, size_t cols, words_unpack_fn *unpack, words_fn *const *tiles)
{
    words c;
    size_t n_blocks = j->cols / cols, most = WORDS_COLS / cols, n_chunks = (n_blocks + most - 1) / most;
    size_t even = (n_blocks + n_chunks - 1) / n_chunks;
    for (size_t p = 0; p < j->n_panels; p++) memset(c.acc[p], 0, j->n_tokens * sizeof c.acc[p][0]);
    for (size_t block = 0; block < n_blocks; block += even) {
        size_t n = min_size(even, n_blocks - block);
        c.first_group = block * cols / j->group;
        c.n_groups = n * cols / j->group;
        for (size_t p = 0; p < j->n_panels; p++) {
            unpack(&c, j, p, block, n);
            for (size_t t = 0; t < j->n_tokens; t += TILE_MANY_TOKENS)
                tiles[min_size(TILE_MANY_TOKENS, j->n_tokens - t) - 1](j, &c, p, t);
        }
    }
    FN(flat_store)(j, c.acc);
}

#define WORDS_UNPACK(name, kernel, cols)                                                                 \
    TARGET static void FN(words_##kernel)(words * c, const mul_job *j, size_t p, size_t block, size_t n) \
    {                                                                                                    \
        words_panel(c, j, &wfmt_table[DT_##name], p, block, n, cols);                                    \
    }
#define ALL_WORDS(name, kernel)                                                           \
    WORDS_UNPACK(name, kernel, wfmt_table[DT_##name].block)                               \
    static void FN(all_##kernel)(const mul_job *j)                                        \
    {                                                                                     \
        if (j->n_tokens < WORDS_LEAST)                                                    \
            by_tiles(j, FN(mul_##kernel));                                                \
        else                                                                              \
            by_words(j, wfmt_table[DT_##name].block, FN(words_##kernel), FN(words_runs)); \
    }
ALL_WORDS(Q8_0, q8_0)
ALL_WORDS(IQ4_NL, iq4_nl)
ALL_WORDS(IQ4_XS, iq4_xs)
WORDS_UNPACK(S8_128, s8, j->group)
