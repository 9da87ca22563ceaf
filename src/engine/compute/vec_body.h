/* vec_body.h: the vector kernels on sixteen lanes, included once by each instruction set that has them.
 *
 * The includer defines TARGET (the function attribute), FN(name) (name with the instruction set
 * behind it), the type vf of sixteen floats and the v_* operations on it (x86/v_avx2.h, x86/v_avx512.h,
 * arm/v_neon.h). Operation by operation these are the loops of scalar/vec.c and the polynomials of math.c.
 * Tails are loaded with zeros behind them and stored in part. */

#define LANES 16

INLINE vf v_exp(vf x)
{
    x = v_min(v_set1(EXP_HI), v_max(v_set1(EXP_LO), x));
    vf t = v_fma(x, v_set1(EXP_LOG2E), v_set1(EXP_MAGIC));
    vf n = v_sub(t, v_set1(EXP_MAGIC));
    vf r = v_fma(n, v_set1(-EXP_LN2_HI), x);
    r = v_fma(n, v_set1(-EXP_LN2_LO), r);
    vf p = v_set1(EXP_P4);
    p = v_fma(p, r, v_set1(EXP_P3));
    p = v_fma(p, r, v_set1(EXP_P2));
    p = v_fma(p, r, v_set1(EXP_P1));
    p = v_fma(p, r, v_set1(EXP_P0));
    p = v_add(v_fma(p, v_mul(r, r), r), v_set1(1.0f));
    return v_scale_exp2(p, t);
}

INLINE vf v_tanh(vf x)
{
    vf a = v_abs(x), z = v_mul(x, x);
    vf p = v_set1(TANH_P5);
    p = v_fma(p, z, v_set1(TANH_P4));
    p = v_fma(p, z, v_set1(TANH_P3));
    p = v_fma(p, z, v_set1(TANH_P2));
    p = v_fma(p, z, v_set1(TANH_P1));
    p = v_fma(p, z, v_set1(TANH_P0));
    vf small = v_fma(v_mul(x, z), p, x);
    vf e = v_exp(v_add(a, a));
    vf big = v_sub(v_set1(1.0f), v_div(v_set1(2.0f), v_add(e, v_set1(1.0f))));
    return v_if_less(a, v_set1(TANH_SMALL), small, v_or_sign(big, x));
}

/* gelu.c's, the terms being registers of eight knots */
INLINE vf v_gelu(vf x, const float terms[GELU_TERMS][GELU_KNOTS])
{
    vf t = v_min(v_set1(GELU_END), v_abs(x));
    vf at = v_fma(t, v_set1(1.0f / GELU_STEP), v_set1(GELU_MAGIC));
    vf r = v_fma(v_sub(at, v_set1(GELU_MAGIC)), v_set1(-GELU_STEP), t);
    vf p = v_pick8(terms[GELU_TERMS - 1], at);
    UNROLL
    for (size_t i = GELU_TERMS - 1; i > 0; i--) p = v_fma(p, r, v_pick8(terms[i - 1], at));
    return v_fma(v_neg(t), p, v_max(v_set1(0.0f), x));
}

/* Run `whole` on full groups of sixteen and `part` on what is left (`k` elements); both see `i`. */
#define EACH_GROUP(n, whole, part)                  \
    do {                                            \
        size_t i = 0;                               \
        for (; i + LANES <= (n); i += LANES) whole; \
        if (i < (n)) {                              \
            size_t k = (n)-i;                       \
            part;                                   \
        }                                           \
    } while (0)

/* x[i] = f(x[i]) */
#define MAP(x, n, f) \
    EACH_GROUP(n, v_store((x) + i, f(v_load((x) + i))), v_store_part((x) + i, f(v_load_part((x) + i, k)), k))

TARGET static float FN(dot)(const float *a, const float *b, size_t n)
{
    vf s = v_set1(0.0f);
    EACH_GROUP(n, s = v_fma(v_load(a + i), v_load(b + i), s),
               s = v_fma(v_load_part(a + i, k), v_load_part(b + i, k), s));
    return v_tree(s);
}

TARGET static void FN(axpy)(float *y, float a, const float *x, size_t n)
{
    vf s = v_set1(a);
    EACH_GROUP(n, v_store(y + i, v_fma(s, v_load(x + i), v_load(y + i))),
               v_store_part(y + i, v_fma(s, v_load_part(x + i, k), v_load_part(y + i, k)), k));
}

TARGET static void FN(add)(float *y, const float *x, const float *z, size_t n)
{
    EACH_GROUP(n, v_store(y + i, v_add(v_load(x + i), v_load(z + i))),
               v_store_part(y + i, v_add(v_load_part(x + i, k), v_load_part(z + i, k)), k));
}

/* n floats; both questions are constants where this is used */
INLINE void end_row(float *y, const float *x, const float *bias, size_t n, const bool biased, const bool add)
{
    EACH_GROUP(
        n,
        {
            vf v = v_load(x + i);
            if (biased) v = v_add(v, v_load(bias + i));
            v_store(y + i, add ? v_add(v_load(y + i), v) : v);
        },
        {
            vf v = v_load_part(x + i, k);
            if (biased) v = v_add(v, v_load_part(bias + i, k));
            v_store_part(y + i, add ? v_add(v_load_part(y + i, k), v) : v, k);
        });
}

TARGET static void FN(end_rows)(float *y, size_t ldy, const float *x, size_t ldx, size_t n_rows, size_t n,
                                const float *bias, bool add)
{
    for (size_t r = 0; r < n_rows; r++, y += ldy, x += ldx) {
        if (bias && add)
            end_row(y, x, bias, n, true, true);
        else if (bias)
            end_row(y, x, bias, n, true, false);
        else if (add)
            end_row(y, x, bias, n, false, true);
        else
            end_row(y, x, bias, n, false, false);
    }
}

TARGET static void FN(rms_norm)(float *y, const float *x, const float *w, size_t n, float eps)
{
    vf r = v_set1(1.0f / __builtin_sqrtf(FN(dot)(x, x, n) / (float)n + eps));
    EACH_GROUP(n, v_store(y + i, v_mul(v_mul(v_load(x + i), r), v_load(w + i))),
               v_store_part(y + i, v_mul(v_mul(v_load_part(x + i, k), r), v_load_part(w + i, k)), k));
}

#define NORM_ROWS 4 /* rows that are normalised together */

/* N rows: each waits for its sums, and then for its squares, so several are under way. The lanes behind a
 * tail must stay out of the squares, so they are cut to zero again. */
INLINE void norm_rows(float *y, const float *x, const float *w, const float *b, size_t n, float eps,
                      const size_t N)
{
    vf s[NORM_ROWS], m[NORM_ROWS], r[NORM_ROWS];
    UNROLL
    for (size_t t = 0; t < N; t++) s[t] = v_set1(0.0f);
    EACH_GROUP(n, UNROLL for (size_t t = 0; t < N; t++) s[t] = v_add(s[t], v_load(x + t * n + i)),
               UNROLL for (size_t t = 0; t < N; t++) s[t] = v_add(s[t], v_load_part(x + t * n + i, k)));
    UNROLL
    for (size_t t = 0; t < N; t++) {
        m[t] = v_set1(v_tree(s[t]) / (float)n);
        s[t] = v_set1(0.0f);
    }
    EACH_GROUP(
        n,
        UNROLL for (size_t t = 0; t < N; t++) {
            vf d = v_sub(v_load(x + t * n + i), m[t]);
            s[t] = v_fma(d, d, s[t]);
        },
        UNROLL for (size_t t = 0; t < N; t++) {
            vf d = v_keep(v_sub(v_load_part(x + t * n + i, k), m[t]), k);
            s[t] = v_fma(d, d, s[t]);
        });
    UNROLL
    for (size_t t = 0; t < N; t++) r[t] = v_set1(1.0f / __builtin_sqrtf(v_tree(s[t]) / (float)n + eps));
    EACH_GROUP(
        n,
        UNROLL for (size_t t = 0; t < N; t++) {
            vf d = v_mul(v_sub(v_load(x + t * n + i), m[t]), r[t]);
            v_store(y + t * n + i, v_fma(d, v_load(w + i), v_load(b + i)));
        },
        UNROLL for (size_t t = 0; t < N; t++) {
            vf d = v_mul(v_sub(v_load_part(x + t * n + i, k), m[t]), r[t]);
            v_store_part(y + t * n + i, v_fma(d, v_load_part(w + i, k), v_load_part(b + i, k)), k);
        });
}

TARGET static void FN(layer_norm)(float *y, const float *x, const float *w, const float *b, size_t n_rows,
                                  size_t n, float eps)
{
    size_t t = 0;
    for (; t + NORM_ROWS <= n_rows; t += NORM_ROWS) norm_rows(y + t * n, x + t * n, w, b, n, eps, NORM_ROWS);
    for (; t < n_rows; t++) norm_rows(y + t * n, x + t * n, w, b, n, eps, 1);
}

/* The maximum is exact in any order, so four are under way: one waits for its last comparison. */
INLINE float largest(const float *x, size_t n)
{
    vf a = v_set1(-(float)INFINITY), b = a, c = a, d = a;
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a = v_max(v_load(x + i), a);
        b = v_max(v_load(x + i + LANES), b);
        c = v_max(v_load(x + i + 2 * LANES), c);
        d = v_max(v_load(x + i + 3 * LANES), d);
    }
    for (; i + LANES <= n; i += LANES) a = v_max(v_load(x + i), a);
    float max = v_top(v_max(v_max(a, b), v_max(c, d)));
    for (; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

TARGET static float FN(attn_weigh)(float *x, size_t n, float *ret_most)
{
    float max = largest(x, n);
    vf m = v_set1(max), s = v_set1(0.0f);
    EACH_GROUP(
        n,
        {
            vf e = v_exp(v_sub(v_load(x + i), m));
            v_store(x + i, e);
            s = v_add(s, e);
        },
        {
            vf e = v_keep(v_exp(v_sub(v_load_part(x + i, k), m)), k);
            v_store_part(x + i, e, k);
            s = v_add(s, e);
        });
    float total = v_tree(s);
    vf r = v_set1(1.0f / total);
    EACH_GROUP(n, v_store(x + i, v_mul(v_load(x + i), r)),
               v_store_part(x + i, v_mul(v_load_part(x + i, k), r), k));
    *ret_most = max;
    return total;
}

TARGET static void FN(softmax)(float *x, size_t n)
{
    float most;
    FN(attn_weigh)(x, n, &most);
}

#define ARGMAX_SPAN ((size_t)512)

/* Only the first span with the largest is searched for it; all of them where nothing is over -infinity. */
TARGET static size_t FN(argmax)(const float *x, size_t n)
{
    float max = -(float)INFINITY;
    size_t i = 0, end = n;
    for (size_t at = 0; at < n; at += ARGMAX_SPAN) {
        size_t here = n - at < ARGMAX_SPAN ? n - at : ARGMAX_SPAN;
        float top = largest(x + at, here);
        if (!(top > max)) continue;
        max = top;
        i = at;
        end = at + here;
    }
    vf m = v_set1(max);
    for (; i + LANES <= end; i += LANES) {
        unsigned equal = v_equal(v_load(x + i), m);
        if (equal) return i + (size_t)__builtin_ctz(equal);
    }
    for (; i < end; i++) {
        if (x[i] == max) return i;
    }
    return 0;
}

INLINE vf v_exp_scaled(vf x, vf max, vf scale)
{
    return v_exp(v_mul(v_sub(x, max), scale));
}

TARGET static float FN(exp_scaled)(float *y, const float *x, size_t n, float max, float scale)
{
    vf s = v_set1(0.0f), m = v_set1(max), c = v_set1(scale);
    EACH_GROUP(
        n,
        {
            vf e = v_exp_scaled(v_load(x + i), m, c);
            v_store(y + i, e);
            s = v_add(s, e);
        },
        {
            vf e = v_keep(v_exp_scaled(v_load_part(x + i, k), m, c), k);
            v_store_part(y + i, e, k);
            s = v_add(s, e);
        });
    return v_tree(s);
}

/* exp_scaled's sum of a block, nothing stored. */
INLINE float sum_exp(const float *x, size_t n, vf max, vf scale)
{
    vf s = v_set1(0.0f);
    EACH_GROUP(n, s = v_add(s, v_exp_scaled(v_load(x + i), max, scale)),
               s = v_add(s, v_keep(v_exp_scaled(v_load_part(x + i, k), max, scale), k)));
    return v_tree(s);
}

TARGET static double FN(exp_sums)(float *sums, const float *x, size_t n, float max, float scale)
{
    vf m = v_set1(max), c = v_set1(scale);
    double total = 0;
    for (; n >= EXP_SUMS_BLOCK; n -= EXP_SUMS_BLOCK, x += EXP_SUMS_BLOCK, sums++) {
        *sums = sum_exp(x, EXP_SUMS_BLOCK, m, c);
        total += (double)*sums;
    }
    if (n == 0) return total;
    *sums = sum_exp(x, n, m, c);
    return total + (double)*sums;
}

INLINE vf v_silu_mul(vf g, vf u)
{
    return v_mul(v_div(g, v_add(v_set1(1.0f), v_exp(v_neg(g)))), u);
}

INLINE vf v_gelu_erf(vf x)
{
    return v_gelu(x, gelu_erf_terms);
}

INLINE vf v_gelu_tanh(vf x)
{
    return v_gelu(x, gelu_tanh_terms);
}

INLINE vf v_relu(vf x)
{
    return v_max(v_set1(0.0f), x);
}

TARGET static void FN(silu_mul)(float *y, const float *gate, const float *up, size_t n)
{
    EACH_GROUP(n, v_store(y + i, v_silu_mul(v_load(gate + i), v_load(up + i))),
               v_store_part(y + i, v_silu_mul(v_load_part(gate + i, k), v_load_part(up + i, k)), k));
}

TARGET static void FN(gelu_erf)(float *x, size_t n)
{
    MAP(x, n, v_gelu_erf);
}
TARGET static void FN(gelu_tanh)(float *x, size_t n)
{
    MAP(x, n, v_gelu_tanh);
}
TARGET static void FN(relu)(float *x, size_t n)
{
    MAP(x, n, v_relu);
}
TARGET static void FN(tanh)(float *x, size_t n)
{
    MAP(x, n, v_tanh);
}

/* n (at most sixteen) pairs (x[i], y[i]) turned by their angles */
INLINE void rotate_part(float *x, float *y, const float *cos, const float *sin, size_t n)
{
    vf a = v_load_part(x, n), b = v_load_part(y, n), c = v_load_part(cos, n), s = v_load_part(sin, n);
    v_store_part(x, v_fma(a, c, v_neg(v_mul(b, s))), n);
    v_store_part(y, v_fma(a, s, v_mul(b, c)), n);
}

INLINE void rotate_halves(float *x, size_t half, const float *cos, const float *sin)
{
    size_t i = 0;
    for (; i + LANES <= half; i += LANES) {
        vf a = v_load(x + i), b = v_load(x + half + i), c = v_load(cos + i), s = v_load(sin + i);
        v_store(x + i, v_fma(a, c, v_neg(v_mul(b, s))));
        v_store(x + half + i, v_fma(a, s, v_mul(b, c)));
    }
    if (i < half) rotate_part(x + i, x + half + i, cos + i, sin + i, half - i);
}

INLINE void rotate_pairs(float *x, size_t half, const float *cos, const float *sin)
{
    size_t i = 0;
#ifdef V_PAIRS
    for (; i + LANES <= half; i += LANES) {
        vf first = v_load(x + 2 * i), last = v_load(x + 2 * i + LANES), c = v_load(cos + i),
           s = v_load(sin + i);
        vf a = v_evens(first, last), b = v_odds(first, last);
        vf p = v_fma(a, c, v_neg(v_mul(b, s))), q = v_fma(a, s, v_mul(b, c));
        v_store(x + 2 * i, v_zip_low(p, q));
        v_store(x + 2 * i + LANES, v_zip_high(p, q));
    }
#endif
    for (; i < half; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = __builtin_fmaf(a, cos[i], -(b * sin[i]));
        x[2 * i + 1] = __builtin_fmaf(a, sin[i], b * cos[i]);
    }
}

TARGET static void FN(rope)(float *x, size_t n_heads, size_t head_dim, size_t rot_dim, const float *cos,
                            const float *sin, bool interleaved)
{
    for (size_t h = 0; h < n_heads; h++, x += head_dim) {
        if (interleaved)
            rotate_pairs(x, rot_dim / 2, cos, sin);
        else
            rotate_halves(x, rot_dim / 2, cos, sin);
    }
}

/* ---- attention: keys and values are floats or, with `half`, F16; `half` is constant where these are used */

INLINE vf v_load_kv(const void *p, size_t i, const bool half)
{
    return half ? v_load_f16((const uint16_t *)p + i) : v_load((const float *)p + i);
}
INLINE vf v_load_kv_part(const void *p, size_t i, size_t n, const bool half)
{
    return half ? v_load_f16_part((const uint16_t *)p + i, n) : v_load_part((const float *)p + i, n);
}

#define QUERIES_MAX 4 /* of a tile, where there are registers: ATTN_QUERIES */

/* kt[d][16] = k[16][d] (row stride ldk) turned */
TARGET static void FN(attn_turn)(float *kt, const float *k, size_t ldk, size_t d)
{
    size_t i = 0;
    for (; i + 4 <= d; i += 4)
        for (size_t j = 0; j < LANES; j += 4) v_turn4(kt + i * LANES + j, k + j * ldk + i, ldk);
    for (; i < d; i++)
        for (size_t j = 0; j < LANES; j++) kt[i * LANES + j] = k[j * ldk + i];
}

/* N queries against sixteen keys: four chains for each, and every key is loaded once for all of them. */
INLINE void score_tile(float *s, size_t lds, const float *q, size_t ldq, const void *kt, size_t d,
                       float scale, const size_t N, const bool half)
{
    vf c[QUERIES_MAX][4];
    UNROLL
    for (size_t h = 0; h < N; h++) c[h][0] = c[h][1] = c[h][2] = c[h][3] = v_set1(0.0f);
    size_t t = 0;
    for (; t + 4 <= d; t += 4) {
        UNROLL
        for (size_t i = 0; i < 4; i++) {
            vf k = v_load_kv(kt, (t + i) * LANES, half);
            UNROLL
            for (size_t h = 0; h < N; h++) c[h][i] = v_fma(v_set1(q[h * ldq + t + i]), k, c[h][i]);
        }
    }
    UNROLL
    for (size_t i = 0; i < 3; i++) {
        if (t + i >= d) break;
        vf k = v_load_kv(kt, (t + i) * LANES, half);
        UNROLL
        for (size_t h = 0; h < N; h++) c[h][i] = v_fma(v_set1(q[h * ldq + t + i]), k, c[h][i]);
    }
    UNROLL
    for (size_t h = 0; h < N; h++) {
        vf all = v_add(v_add(c[h][0], c[h][1]), v_add(c[h][2], c[h][3]));
        v_store(s + h * lds, v_mul(all, v_set1(scale)));
    }
}

#ifdef ATTN_CHAINS
/* Chains `first` and the one behind it of two queries, added up. */
INLINE void score_chains(vf *sum, const float *q, size_t ldq, const void *kt, size_t d, const size_t first,
                         const bool half)
{
    vf c[2][2];
    UNROLL
    for (size_t h = 0; h < 2; h++) c[h][0] = c[h][1] = v_set1(0.0f);
    size_t t = first;
    for (; t + 1 < d; t += 4) {
        UNROLL
        for (size_t i = 0; i < 2; i++) {
            vf k = v_load_kv(kt, (t + i) * LANES, half);
            UNROLL
            for (size_t h = 0; h < 2; h++) c[h][i] = v_fma(v_set1(q[h * ldq + t + i]), k, c[h][i]);
        }
    }
    if (t < d) {
        vf k = v_load_kv(kt, t * LANES, half);
        UNROLL
        for (size_t h = 0; h < 2; h++) c[h][0] = v_fma(v_set1(q[h * ldq + t]), k, c[h][0]);
    }
    UNROLL
    for (size_t h = 0; h < 2; h++) sum[h] = v_add(c[h][0], c[h][1]);
}

/* score_tile of two queries where registers are few: a key is loaded once for both. */
INLINE void score_two(float *s, size_t lds, const float *q, size_t ldq, const void *kt, size_t d, float scale,
                      const bool half)
{
    vf low[2], high[2];
    score_chains(low, q, ldq, kt, d, 0, half);
    score_chains(high, q, ldq, kt, d, 2, half);
    UNROLL
    for (size_t h = 0; h < 2; h++) v_store(s + h * lds, v_mul(v_add(low[h], high[h]), v_set1(scale)));
}
#else
INLINE void score_two(float *s, size_t lds, const float *q, size_t ldq, const void *kt, size_t d, float scale,
                      const bool half)
{
    score_tile(s, lds, q, ldq, kt, d, scale, 2, half);
}
#endif

INLINE void score_all(float *s, size_t lds, const float *q, size_t ldq, size_t n_q, const void *kt, size_t d,
                      float scale, const bool half)
{
    size_t h = 0;
    for (; ATTN_QUERIES >= 4 && h + 4 <= n_q; h += 4)
        score_tile(s + h * lds, lds, q + h * ldq, ldq, kt, d, scale, 4, half);
    for (; ATTN_QUERIES >= 2 && h + 2 <= n_q; h += 2)
        score_two(s + h * lds, lds, q + h * ldq, ldq, kt, d, scale, half);
    for (; h < n_q; h++) score_tile(s + h * lds, lds, q + h * ldq, ldq, kt, d, scale, 1, half);
}

TARGET static void FN(attn_scores)(float *s, size_t lds, const float *q, size_t ldq, size_t n_q,
                                   const float *kt, size_t d, float scale)
{
    score_all(s, lds, q, ldq, n_q, kt, d, scale, false);
}

TARGET static void FN(attn_scores_f16)(float *s, size_t lds, const float *q, size_t ldq, size_t n_q,
                                       const uint16_t *kt, size_t d, float scale)
{
    score_all(s, lds, q, ldq, n_q, kt, d, scale, true);
}

/* C groups of sixteen columns, from column `at` on, of N queries: N * C sums that do not wait for each other,
 * in registers, and every value is loaded once for all queries. */
INLINE void mix_tile(float *y, size_t ldy, const float *p, size_t ldp, const void *v, size_t at, size_t ldv,
                     size_t n, const size_t N, const size_t C, const bool half)
{
    vf sum[MIX_SUMS], x[4];
    UNROLL
    for (size_t h = 0; h < N; h++) {
        UNROLL
        for (size_t c = 0; c < C; c++) sum[h * C + c] = v_load(y + h * ldy + at + c * LANES);
    }
    for (size_t i = 0; i < n; i++) {
        UNROLL
        for (size_t c = 0; c < C; c++) x[c] = v_load_kv(v, i * ldv + at + c * LANES, half);
        UNROLL
        for (size_t h = 0; h < N; h++) {
            vf w = v_set1(p[h * ldp + i]);
            UNROLL
            for (size_t c = 0; c < C; c++) sum[h * C + c] = v_fma(w, x[c], sum[h * C + c]);
        }
    }
    UNROLL
    for (size_t h = 0; h < N; h++) {
        UNROLL
        for (size_t c = 0; c < C; c++) v_store(y + h * ldy + at + c * LANES, sum[h * C + c]);
    }
}

/* The last d - at columns, fewer than sixteen, of one query. */
INLINE void mix_part(float *y, const float *p, const void *v, size_t at, size_t ldv, size_t n, size_t d,
                     const bool half)
{
    vf a = v_load_part(y + at, d - at);
    for (size_t i = 0; i < n; i++) a = v_fma(v_set1(p[i]), v_load_kv_part(v, i * ldv + at, d - at, half), a);
    v_store_part(y + at, a, d - at);
}

/* All columns of N queries. */
INLINE void mix_queries(float *y, size_t ldy, const float *p, size_t ldp, const void *v, size_t ldv, size_t n,
                        size_t d, const size_t N, const bool half)
{
    const size_t most = MIX_SUMS / N < 4 ? MIX_SUMS / N : 4;
    size_t at = 0;
    for (; at + most * LANES <= d; at += most * LANES) mix_tile(y, ldy, p, ldp, v, at, ldv, n, N, most, half);
    if (most > 3 && at + 3 * LANES <= d) {
        mix_tile(y, ldy, p, ldp, v, at, ldv, n, N, 3, half);
        at += 3 * LANES;
    } else if (most > 2 && at + 2 * LANES <= d) {
        mix_tile(y, ldy, p, ldp, v, at, ldv, n, N, 2, half);
        at += 2 * LANES;
    } else if (at + LANES <= d) {
        mix_tile(y, ldy, p, ldp, v, at, ldv, n, N, 1, half);
        at += LANES;
    }
    for (size_t h = 0; at < d && h < N; h++) mix_part(y + h * ldy, p + h * ldp, v, at, ldv, n, d, half);
}

INLINE void mix_all(float *y, size_t ldy, const float *p, size_t ldp, size_t n_q, const void *v, size_t ldv,
                    size_t n, size_t d, const bool half)
{
    size_t h = 0;
    /* Narrow heads: sums enough that none waits for the one before. */
    for (; MIX_SUMS >= 16 && d <= 2 * LANES && h + 8 <= n_q; h += 8)
        mix_queries(y + h * ldy, ldy, p + h * ldp, ldp, v, ldv, n, d, 8, half);
    for (; ATTN_QUERIES >= 4 && h + 4 <= n_q; h += 4)
        mix_queries(y + h * ldy, ldy, p + h * ldp, ldp, v, ldv, n, d, 4, half);
    for (; h + 2 <= n_q; h += 2) mix_queries(y + h * ldy, ldy, p + h * ldp, ldp, v, ldv, n, d, 2, half);
    if (h < n_q) mix_queries(y + h * ldy, ldy, p + h * ldp, ldp, v, ldv, n, d, 1, half);
}

TARGET static void FN(attn_mix)(float *y, size_t ldy, const float *p, size_t ldp, size_t n_q, const float *v,
                                size_t ldv, size_t n, size_t d)
{
    mix_all(y, ldy, p, ldp, n_q, v, ldv, n, d, false);
}

TARGET static void FN(attn_mix_f16)(float *y, size_t ldy, const float *p, size_t ldp, size_t n_q,
                                    const uint16_t *v, size_t ldv, size_t n, size_t d)
{
    mix_all(y, ldy, p, ldp, n_q, v, ldv, n, d, true);
}

TARGET static void FN(attn_join)(float *y, float a, const float *x, float b, size_t n)
{
    vf own = v_set1(a), other = v_set1(b);
    EACH_GROUP(
        n, v_store(y + i, v_fma(other, v_load(x + i), v_mul(own, v_load(y + i)))),
        v_store_part(y + i, v_fma(other, v_load_part(x + i, k), v_mul(own, v_load_part(y + i, k))), k));
}

TARGET static void FN(to_f16)(uint16_t *y, const float *x, size_t n)
{
    EACH_GROUP(n, v_store_f16(y + i, v_load(x + i)), {
        uint16_t part[LANES];
        v_store_f16(part, v_load_part(x + i, k));
        memcpy(y + i, part, k * sizeof *y);
    });
}

TARGET static void FN(from_f16)(float *y, const uint16_t *x, size_t n)
{
    EACH_GROUP(n, v_store(y + i, v_load_f16(x + i)), v_store_part(y + i, v_load_f16_part(x + i, k), k));
}

#define VEC_KERNELS                                                                                       \
    {                                                                                                     \
        .dot = FN(dot), .axpy = FN(axpy), .add = FN(add), .end_rows = FN(end_rows),                       \
        .rms_norm = FN(rms_norm), .layer_norm = FN(layer_norm), .softmax = FN(softmax),                   \
        .argmax = FN(argmax), .exp_scaled = FN(exp_scaled), .exp_sums = FN(exp_sums),                     \
        .silu_mul = FN(silu_mul), .gelu_erf = FN(gelu_erf), .gelu_tanh = FN(gelu_tanh), .relu = FN(relu), \
        .tanh = FN(tanh), .rope = FN(rope), .attn_turn = FN(attn_turn), .attn_scores = FN(attn_scores),   \
        .attn_mix = FN(attn_mix), .to_f16 = FN(to_f16), .from_f16 = FN(from_f16),                         \
        .attn_scores_f16 = FN(attn_scores_f16), .attn_mix_f16 = FN(attn_mix_f16), .dots_i8 = FN(dots_i8), \
        .attn_quantise = FN(attn_quantise), .attn_scores_q8 = FN(attn_scores_q8),                         \
        .attn_weigh_q8 = FN(attn_weigh_q8), .attn_mix_q8 = FN(attn_mix_q8), .attn_weigh = FN(attn_weigh), \
        .attn_join = FN(attn_join)                                                                        \
    }
