/* tile.h: choose the tile a job wants (for the instruction sets of x86/ and arm/).
 *
 * A kernel body is an always_inline function of (job, P, T) with P panels and T tokens constant, so
 * that its accumulators are registers; here each pair becomes a function mul_TYPE_ROWSxTOKENS_ISA,
 * and mul_TYPE_ISA picks one. Names count rows: two panels times four tokens is 32x4. It walks all tokens of
 * its job, so that the next tile begins while the sums of the last one are still being made: 4 % of a product
 * with 384 columns. */
#define TILE_ONE_PANELS  4
#define TILE_MANY_PANELS 2
#define TILE_MANY_TOKENS 4

#define TILE(type, rows, tokens, panels)                                           \
    TARGET static void FN(mul_##type##_##rows##x##tokens)(const mul_job *j)        \
    {                                                                              \
        mul_job part = *j;                                                         \
        for (;;) {                                                                 \
            if (part.next) ahead_fetch_at_once(part.next);                         \
            body_##type(&part, panels, tokens);                                    \
            if (part.n_tokens <= tokens) return;                                   \
            part = mul_job_part(&part, 0, tokens, panels, part.n_tokens - tokens); \
        }                                                                          \
    }

/* Short constant loops over registers must be unrolled to stay in registers; clang does so itself. */
#if defined(__clang__)
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define TILES(type)                                                                                 \
    TILE(type, 16, 1, 1)                                                                            \
    TILE(type, 32, 1, 2)                                                                            \
    TILE(type, 48, 1, 3)                                                                            \
    TILE(type, 64, 1, 4)                                                                            \
    TILE(type, 16, 2, 1)                                                                            \
    TILE(type, 16, 3, 1)                                                                            \
    TILE(type, 16, 4, 1)                                                                            \
    TILE(type, 32, 2, 2)                                                                            \
    TILE(type, 32, 3, 2)                                                                            \
    TILE(type, 32, 4, 2)                                                                            \
    static void FN(mul_##type)(const mul_job *j)                                                    \
    {                                                                                               \
        static mul_fn *const one[TILE_ONE_PANELS] = {FN(mul_##type##_16x1), FN(mul_##type##_32x1),  \
                                                     FN(mul_##type##_48x1), FN(mul_##type##_64x1)}; \
        static mul_fn *const some[TILE_MANY_PANELS][TILE_MANY_TOKENS - 1] = {                       \
            {FN(mul_##type##_16x2), FN(mul_##type##_16x3), FN(mul_##type##_16x4)},                  \
            {FN(mul_##type##_32x2), FN(mul_##type##_32x3), FN(mul_##type##_32x4)}};                 \
        size_t n = j->n_tokens, rest = n % TILE_MANY_TOKENS;                                        \
        if (rest == 0) {                                                                            \
            some[j->n_panels - 1][TILE_MANY_TOKENS - 2](j);                                         \
            return;                                                                                 \
        }                                                                                           \
        mul_job part = *j;                                                                          \
        part.n_tokens = n - rest;                                                                   \
        if (n > rest) some[j->n_panels - 1][TILE_MANY_TOKENS - 2](&part);                           \
        part = mul_job_part(j, 0, n - rest, j->n_panels, rest);                                     \
        if (rest == 1)                                                                              \
            one[j->n_panels - 1](&part);                                                            \
        else if (rest > 1)                                                                          \
            some[j->n_panels - 1][rest - 2](&part);                                                 \
    }
