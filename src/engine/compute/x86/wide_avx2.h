/* wide_avx2.h: products of types of our own (for avx2_body.h). A tile is a panel, two registers, times up to four
 * tokens: eight sums in registers over a whole group of columns, the floats in memory. How wide a group is is not
 * a constant: types share kernels. Many tokens in front of eight bits go by words_avx2.h. */

INLINE void wide_panel(const mul_job *j, const wfmt *f, size_t p, const size_t T)
{
    const uint8_t *w = j->w + p * j->panel_bytes;
    const uint8_t *s = (const uint8_t *)(j->scales + p * j->panel_scales);
    const size_t n_steps = j->group / ACTS_BLOCK;
    __m256 acc[TILE_MAX];
    UNROLL
    for (size_t i = 0; i < 2 * T; i++) acc[i] = _mm256_setzero_ps();
    for (size_t g = 0; g < j->n_blocks; g++, s += PANEL_ROWS * 2) {
        __m256i sums[TILE_MAX];
        UNROLL
        for (size_t t = 0; t < T; t++)
            sums[2 * t] = sums[2 * t + 1] = is_signed(f)
                                                ? _mm256_setzero_si256()
                                                : _mm256_set1_epi32(-f->zero * j->sum[t * j->n_blocks + g]);
        for (size_t i = 0; i < n_steps; i++, w += panel_step_bytes(f))
            add_groups(j, f, false, sums, w, g * n_steps + i, 0, 8, 2, T);
        UNROLL
        for (size_t h = 0; h < 2; h++)
            end_run(j, f, acc + h, sums + h, g, 0, halves(s, h), _mm256_setzero_ps(), 2, T);
    }
    store_tile(j, acc, 2 * p, 2, T);
}

#define WIDE_PASS(name, kernel, tokens)                                                            \
    TARGET static void FN(pass_##kernel##_16x##tokens)(const mul_job *j)                           \
    {                                                                                              \
        for (size_t p = 0; p < j->n_panels; p++) wide_panel(j, &wfmt_table[DT_##name], p, tokens); \
    }
#define WIDE_TILES(name, kernel)                                                                            \
    WIDE_PASS(name, kernel, 1)                                                                              \
    WIDE_PASS(name, kernel, 2)                                                                              \
    WIDE_PASS(name, kernel, 3)                                                                              \
    WIDE_PASS(name, kernel, 4)                                                                              \
    static void FN(tiles_##kernel)(const mul_job *j)                                                        \
    {                                                                                                       \
        static mul_fn *const pass[TILE_MANY_TOKENS] = {FN(pass_##kernel##_16x1), FN(pass_##kernel##_16x2),  \
                                                       FN(pass_##kernel##_16x3), FN(pass_##kernel##_16x4)}; \
        for (size_t t = 0; t < j->n_tokens; t += TILE_MANY_TOKENS) {                                        \
            mul_job part = mul_job_part(j, 0, t, j->n_panels, min_size(TILE_MANY_TOKENS, j->n_tokens - t)); \
            FN(end_tile)(&part, pass[part.n_tokens - 1]);                                                   \
        }                                                                                                   \
    }
WIDE_TILES(S8_128, s8)
WIDE_TILES(S4_128, s4)

static void FN(all_s8)(const mul_job *j)
{
#if !HAS_DPBUSD
    if (j->n_tokens >= WORDS_LEAST) {
        by_words(j, j->group, FN(words_s8), FN(words_wide));
        return;
    }
#endif
    FN(tiles_s8)(j);
}
static void FN(all_s4)(const mul_job *j)
{
    FN(tiles_s4)(j);
}
