/* vec_body.h: the vector kernels on sixteen lanes, included once by each x86 instruction set.
 *
 * The includer defines TARGET (the function attribute), FN(name) (name with the instruction set
 * behind it), the type vf of sixteen floats and the v_* operations on it (v_avx2.h, v_avx512.h).
 * Operation by operation these are the loops of scalar/vec.c and the polynomials of math.c. Tails are
 * loaded with zeros behind them and stored in part. */

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

INLINE vf v_erf(vf x)
{
    vf a = v_abs(x), z = v_mul(x, x);
    vf p = v_set1(ERF_P6);
    p = v_fma(p, z, v_set1(ERF_P5));
    p = v_fma(p, z, v_set1(ERF_P4));
    p = v_fma(p, z, v_set1(ERF_P3));
    p = v_fma(p, z, v_set1(ERF_P2));
    p = v_fma(p, z, v_set1(ERF_P1));
    p = v_fma(p, z, v_set1(ERF_P0));
    vf small = v_fma(x, p, x);
    vf c = v_min(v_set1(ERF_BIG), a);
    vf q = v_set1(ERF_Q8);
    q = v_fma(q, c, v_set1(ERF_Q7));
    q = v_fma(q, c, v_set1(ERF_Q6));
    q = v_fma(q, c, v_set1(ERF_Q5));
    q = v_fma(q, c, v_set1(ERF_Q4));
    q = v_fma(q, c, v_set1(ERF_Q3));
    q = v_fma(q, c, v_set1(ERF_Q2));
    q = v_fma(q, c, v_set1(ERF_Q1));
    q = v_fma(q, c, v_set1(ERF_Q0));
    vf big = v_sub(v_set1(1.0f), v_exp(v_neg(q)));
    return v_if_less(a, v_set1(ERF_SMALL), small, v_or_sign(big, x));
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

INLINE float sum(const float *x, size_t n)
{
    vf s = v_set1(0.0f);
    EACH_GROUP(n, s = v_add(s, v_load(x + i)), s = v_add(s, v_load_part(x + i, k)));
    return v_tree(s);
}

/* sum of (x - mean)²; the lanes behind the tail must stay out, so they are cut to zero again */
INLINE float spread(const float *x, float mean, size_t n)
{
    vf s = v_set1(0.0f), m = v_set1(mean);
    EACH_GROUP(
        n,
        {
            vf d = v_sub(v_load(x + i), m);
            s = v_fma(d, d, s);
        },
        {
            vf d = v_keep(v_sub(v_load_part(x + i, k), m), k);
            s = v_fma(d, d, s);
        });
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

TARGET static void FN(rms_norm)(float *y, const float *x, const float *w, size_t n, float eps)
{
    vf r = v_set1(1.0f / __builtin_sqrtf(FN(dot)(x, x, n) / (float)n + eps));
    EACH_GROUP(n, v_store(y + i, v_mul(v_mul(v_load(x + i), r), v_load(w + i))),
               v_store_part(y + i, v_mul(v_mul(v_load_part(x + i, k), r), v_load_part(w + i, k)), k));
}

TARGET static void FN(layer_norm)(float *y, const float *x, const float *w, const float *b, size_t n,
                                  float eps)
{
    float mean = sum(x, n) / (float)n;
    vf m = v_set1(mean), r = v_set1(1.0f / __builtin_sqrtf(spread(x, mean, n) / (float)n + eps));
    EACH_GROUP(n, v_store(y + i, v_fma(v_mul(v_sub(v_load(x + i), m), r), v_load(w + i), v_load(b + i))),
               v_store_part(y + i,
                            v_fma(v_mul(v_sub(v_load_part(x + i, k), m), r), v_load_part(w + i, k),
                                  v_load_part(b + i, k)),
                            k));
}

/* The maximum is exact in any order. Lanes behind a tail repeat the running maximum. */
INLINE float largest(const float *x, size_t n)
{
    float l[LANES], max = -(float)INFINITY;
    vf m = v_set1(max);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) m = v_max(v_load(x + i), m);
    v_store(l, m);
    for (size_t j = 0; j < LANES; j++) max = l[j] > max ? l[j] : max;
    for (; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

TARGET static float FN(softmax)(float *x, size_t n)
{
    float max = largest(x, n);
    vf m = v_set1(max);
    EACH_GROUP(n, v_store(x + i, v_exp(v_sub(v_load(x + i), m))),
               v_store_part(x + i, v_exp(v_sub(v_load_part(x + i, k), m)), k));
    float total = sum(x, n);
    vf r = v_set1(1.0f / total);
    EACH_GROUP(n, v_store(x + i, v_mul(v_load(x + i), r)),
               v_store_part(x + i, v_mul(v_load_part(x + i, k), r), k));
    return max + math_logf(total);
}

INLINE vf v_silu_mul(vf g, vf u)
{
    return v_mul(v_div(g, v_add(v_set1(1.0f), v_exp(v_neg(g)))), u);
}

INLINE vf v_gelu_erf(vf x)
{
    vf e = v_erf(v_mul(x, v_set1(GELU_SQRT_HALF)));
    return v_mul(v_mul(x, v_set1(0.5f)), v_add(v_set1(1.0f), e));
}

INLINE vf v_gelu_tanh(vf x)
{
    vf u = v_mul(v_set1(GELU_C0), v_fma(v_mul(v_mul(x, x), x), v_set1(GELU_C1), x));
    return v_mul(v_mul(x, v_set1(0.5f)), v_add(v_set1(1.0f), v_tanh(u)));
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

INLINE void rotate_halves(float *x, size_t half, const float *cos, const float *sin)
{
    size_t i = 0;
    for (; i + LANES <= half; i += LANES) {
        vf a = v_load(x + i), b = v_load(x + half + i), c = v_load(cos + i), s = v_load(sin + i);
        v_store(x + i, v_fma(a, c, v_neg(v_mul(b, s))));
        v_store(x + half + i, v_fma(a, s, v_mul(b, c)));
    }
    for (; i < half; i++) {
        float a = x[i], b = x[half + i];
        x[i] = __builtin_fmaf(a, cos[i], -(b * sin[i]));
        x[half + i] = __builtin_fmaf(a, sin[i], b * cos[i]);
    }
}

INLINE void rotate_pairs(float *x, size_t half, const float *cos, const float *sin)
{
    for (size_t i = 0; i < half; i++) {
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

/* q[d] against sixteen keys. */
INLINE vf score_tile(const float *q, const float *kt, size_t d)
{
    vf c0 = v_set1(0.0f), c1 = c0, c2 = c0, c3 = c0;
    size_t t = 0;
    for (; t + 4 <= d; t += 4, kt += 4 * LANES) {
        c0 = v_fma(v_set1(q[t]), v_load(kt), c0);
        c1 = v_fma(v_set1(q[t + 1]), v_load(kt + LANES), c1);
        c2 = v_fma(v_set1(q[t + 2]), v_load(kt + 2 * LANES), c2);
        c3 = v_fma(v_set1(q[t + 3]), v_load(kt + 3 * LANES), c3);
    }
    if (t < d) c0 = v_fma(v_set1(q[t]), v_load(kt), c0);
    if (t + 1 < d) c1 = v_fma(v_set1(q[t + 1]), v_load(kt + LANES), c1);
    if (t + 2 < d) c2 = v_fma(v_set1(q[t + 2]), v_load(kt + 2 * LANES), c2);
    return v_add(v_add(c0, c1), v_add(c2, c3));
}

TARGET static void FN(attn_scores)(float *s, size_t lds, const float *q, size_t ldq, size_t n_q,
                                   const float *kt, size_t d, float scale)
{
    for (size_t h = 0; h < n_q; h++)
        v_store(s + h * lds, v_mul(score_tile(q + h * ldq, kt, d), v_set1(scale)));
}

/* 32 columns of two queries: four sums that do not wait for each other, held in registers. */
INLINE void mix_two(float *y, size_t ldy, const float *p, size_t ldp, const float *v, size_t ldv, size_t n)
{
    vf a = v_load(y), b = v_load(y + LANES), c = v_load(y + ldy), e = v_load(y + ldy + LANES);
    for (size_t i = 0; i < n; i++, v += ldv) {
        vf v0 = v_load(v), v1 = v_load(v + LANES), p0 = v_set1(p[i]), p1 = v_set1(p[ldp + i]);
        a = v_fma(p0, v0, a);
        b = v_fma(p0, v1, b);
        c = v_fma(p1, v0, c);
        e = v_fma(p1, v1, e);
    }
    v_store(y, a);
    v_store(y + LANES, b);
    v_store(y + ldy, c);
    v_store(y + ldy + LANES, e);
}

/* 64 columns of one query. */
INLINE void mix_one(float *y, const float *p, const float *v, size_t ldv, size_t n)
{
    vf a = v_load(y), b = v_load(y + LANES), c = v_load(y + 2 * LANES), e = v_load(y + 3 * LANES);
    for (size_t i = 0; i < n; i++, v += ldv) {
        vf s = v_set1(p[i]);
        a = v_fma(s, v_load(v), a);
        b = v_fma(s, v_load(v + LANES), b);
        c = v_fma(s, v_load(v + 2 * LANES), c);
        e = v_fma(s, v_load(v + 3 * LANES), e);
    }
    v_store(y, a);
    v_store(y + LANES, b);
    v_store(y + 2 * LANES, c);
    v_store(y + 3 * LANES, e);
}

TARGET static void FN(attn_mix)(float *y, size_t ldy, const float *p, size_t ldp, size_t n_q, const float *v,
                                size_t ldv, size_t n, size_t d)
{
    for (size_t h = 0; h < n_q;) {
        size_t two = h + 1 < n_q, at = 0;
        float *row = y + h * ldy;
        const float *w = p + h * ldp;
        if (two)
            for (; at + 32 <= d; at += 32) mix_two(row + at, ldy, w, ldp, v + at, ldv, n);
        else
            for (; at + 64 <= d; at += 64) mix_one(row + at, w, v + at, ldv, n);
        for (size_t i = 0; at < d && i < n; i++) {
            FN(axpy)(row + at, w[i], v + i * ldv + at, d - at);
            if (two) FN(axpy)(row + ldy + at, w[ldp + i], v + i * ldv + at, d - at);
        }
        h += 1 + two;
    }
}

#define VEC_KERNELS                                                                             \
    {                                                                                           \
        .dot = FN(dot), .axpy = FN(axpy), .add = FN(add), .rms_norm = FN(rms_norm),             \
        .attn_scores = FN(attn_scores), .attn_mix = FN(attn_mix), .layer_norm = FN(layer_norm), \
        .softmax = FN(softmax), .silu_mul = FN(silu_mul), .gelu_erf = FN(gelu_erf),             \
        .gelu_tanh = FN(gelu_tanh), .relu = FN(relu), .tanh = FN(tanh), .rope = FN(rope)        \
    }
