/* Vector kernels and the contract's mathematics. */
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

typedef struct buffers {
    float *y, *a, *b, *c;
} buffers;

/* Each case runs one kernel on n elements; what it returns is compared too. */
static float run_dot(const vec_kernels *v, buffers u, size_t n)
{
    return v->dot(u.a, u.b, n);
}
static float run_axpy(const vec_kernels *v, buffers u, size_t n)
{
    return v->axpy(u.y, 1.7f, u.a, n), 0;
}
static float run_add(const vec_kernels *v, buffers u, size_t n)
{
    return v->add(u.y, u.y, u.a, n), 0;
}
static float run_end(const vec_kernels *v, buffers u, size_t n)
{
    v->end_rows(u.y, n / 2, u.a, n / 2, 2, n / 2, u.b, true);
    v->end_rows(u.y, n / 3, u.a, n / 2, 2, n / 3, NULL, true);
    v->end_rows(u.y, n / 3, u.y, n / 2, 1, n / 4, u.c, false);
    return v->end_rows(u.y + n / 2, n / 4, u.a, 1, 2, n / 4, NULL, false), 0;
}
static float run_rms(const vec_kernels *v, buffers u, size_t n)
{
    return v->rms_norm(u.y, u.a, u.b, n, 1e-5f), 0;
}
static float run_layer(const vec_kernels *v, buffers u, size_t n)
{
    return v->layer_norm(u.y, u.a, u.b, u.c, 1, n, 1e-5f), 0;
}
static float run_softmax(const vec_kernels *v, buffers u, size_t n)
{
    v->softmax(u.y, n);
    return 0;
}
static float run_weigh(const vec_kernels *v, buffers u, size_t n)
{
    float most, total = v->attn_weigh(u.y, n, &most);
    return total + most;
}
static float run_join(const vec_kernels *v, buffers u, size_t n)
{
    return v->attn_join(u.y, 0.3f, u.a, 0.7f, n), 0;
}
static float run_silu(const vec_kernels *v, buffers u, size_t n)
{
    return v->silu_mul(u.y, u.a, u.b, n), 0;
}
static float run_gelu_erf(const vec_kernels *v, buffers u, size_t n)
{
    return v->gelu_erf(u.y, n), 0;
}
static float run_gelu_tanh(const vec_kernels *v, buffers u, size_t n)
{
    return v->gelu_tanh(u.y, n), 0;
}
static float run_relu(const vec_kernels *v, buffers u, size_t n)
{
    return v->relu(u.y, n), 0;
}
static float run_tanh(const vec_kernels *v, buffers u, size_t n)
{
    return v->tanh(u.y, n), 0;
}
static float run_rope_halves(const vec_kernels *v, buffers u, size_t n)
{
    return v->rope(u.y, 1, n, n / 2 * 2, u.a, u.b, false), 0;
}
static float run_rope_pairs(const vec_kernels *v, buffers u, size_t n)
{
    return v->rope(u.y, 1, n, n / 2 * 2, u.a, u.b, true), 0;
}

static const struct {
    const char *name;
    float (*run)(const vec_kernels *v, buffers u, size_t n);
} cases[] = {
    {"dot", run_dot},
    {"axpy", run_axpy},
    {"add", run_add},
    {"end_rows", run_end},
    {"rms_norm", run_rms},
    {"layer_norm", run_layer},
    {"softmax", run_softmax},
    {"attn_weigh", run_weigh},
    {"attn_join", run_join},
    {"silu_mul", run_silu},
    {"gelu_erf", run_gelu_erf},
    {"gelu_tanh", run_gelu_tanh},
    {"relu", run_relu},
    {"tanh", run_tanh},
    {"rope halves", run_rope_halves},
    {"rope pairs", run_rope_pairs},
};

#define N_MAX 300

/* Exactly n elements in each buffer, so that a sanitizer sees a read past the tail. */
static buffers draw_buffers(size_t n, float scale)
{
    return (buffers){draw_floats(1, n, scale), draw_floats(2, n, scale), draw_floats(3, n, scale),
                     draw_floats(4, n, scale)};
}

static void free_buffers(buffers u)
{
    free(u.y);
    free(u.a);
    free(u.b);
    free(u.c);
}

static void compare(size_t k, isa set, size_t n, buffers one, buffers two)
{
    char what[80];
    snprintf(what, sizeof what, "%s %s n=%zu", isa_name(set), cases[k].name, n);
    float r = cases[k].run(vec_kernels_for(ISA_SCALAR), one, n),
          s = cases[k].run(vec_kernels_for(set), two, n);
    assert_same_bits(&s, &r, 1, what);
    assert_same_bits(two.y, one.y, n, what);
}

static void vector_kernels_equal_scalar_bit_for_bit(void **state)
{
    static const float scales[] = {1.0f, 12.0f, 1e-3f, 200.0f};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        EACH_WIDE_ISA(set)
        {
            for (size_t n = 1; n < N_MAX; n += n < 70 ? size_step() : 23) {
                buffers one = draw_buffers(n, scales[n % 4]), two = draw_buffers(n, scales[n % 4]);
                compare(k, set, n, one, two);
                free_buffers(one);
                free_buffers(two);
            }
        }
    }
}

static void special_values_agree(void **state)
{
    const float special[] = {(float)NAN, (float)INFINITY, -(float)INFINITY, 0.0f, -0.0f, 1e-45f,
                             3e38f,      -3e38f};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        EACH_WIDE_ISA(set)
        {
            for (size_t s = 0; s < sizeof special / sizeof *special; s++) {
                buffers one = draw_buffers(37, 1.0f), two = draw_buffers(37, 1.0f);
                one.y[3] = one.y[34] = one.a[3] = one.a[35] = special[s];
                two.y[3] = two.y[34] = two.a[3] = two.a[35] = special[s];
                compare(k, set, 37, one, two);
                free_buffers(one);
                free_buffers(two);
            }
        }
    }
}

#define ATTN_ROWS 15 /* queries: a tile of eight, one of four, one of two and one alone */

/* The F16 forms; they also equal the float forms on what the F16 stands for. */
static void compare_attention_f16(isa set, const float *q, const float *p, size_t n_q, size_t n, size_t d)
{
    size_t ld = d + 1, n_y = n_q * ld, n_kv = 16 * d + n * ld;
    const vec_kernels *wide = vec_kernels_for(set), *ref = vec_kernels_for(ISA_SCALAR);
    float *x = draw_floats(6, n_kv, 1.0f), *y = draw_floats(5, n_y, 1.0f), *want = draw_floats(5, n_y, 1.0f);
    uint16_t *half = malloc(n_kv * sizeof *half), *want_half = malloc(n_kv * sizeof *half);
    float s[ATTN_ROWS * 17] = {0}, want_s[ATTN_ROWS * 17] = {0}, *back = malloc(n_kv * sizeof *back);
    wide->to_f16(half, x, n_kv);
    ref->to_f16(want_half, x, n_kv);
    assert_memory_equal(half, want_half, n_kv * sizeof *half);
    dtype_to_f32(DT_F16, half, x, n_kv);
    wide->from_f16(back, half, n_kv);
    assert_memory_equal(back, x, n_kv * sizeof *back);
    ref->from_f16(back, half, n_kv);
    assert_memory_equal(back, x, n_kv * sizeof *back);
    free(back);
    wide->attn_scores_f16(s, 17, q, ld, n_q, half, d, 0.3f);
    ref->attn_scores(want_s, 17, q, ld, n_q, x, d, 0.3f);
    assert_same_bits(s, want_s, sizeof s / sizeof *s, "scores of F16 keys");
    ref->attn_scores_f16(s, 17, q, ld, n_q, half, d, 0.3f);
    assert_same_bits(s, want_s, sizeof s / sizeof *s, "scalar scores of F16 keys");
    wide->attn_mix_f16(y, ld, p, n + 1, n_q, half + 16 * d, ld, n, d);
    ref->attn_mix(want, ld, p, n + 1, n_q, x + 16 * d, ld, n, d);
    assert_same_bits(y, want, n_y, "mix of F16 values");
    free(x);
    free(y);
    free(want);
    free(half);
    free(want_half);
}

/* n_q queries of d against sixteen turned keys, then mixed with n values; rows are one element apart. */
static void compare_attention(isa set, size_t n_q, size_t n, size_t d)
{
    size_t ld = d + 1, n_y = n_q * ld;
    float *q = draw_floats(1, n_q * ld, 2.0f), *kt = draw_floats(2, 16 * d, 1.0f),
          *v = draw_floats(3, n * ld, 1.0f);
    float *p = draw_floats(4, n_q * (n + 1), 1.0f), *y = draw_floats(5, n_y, 1.0f),
          *want = draw_floats(5, n_y, 1.0f);
    float s[ATTN_ROWS * 17] = {0}, want_s[ATTN_ROWS * 17] = {0};
    char what[80];
    snprintf(what, sizeof what, "%s attention n_q=%zu n=%zu d=%zu", isa_name(set), n_q, n, d);
    vec_kernels_for(set)->attn_scores(s, 17, q, ld, n_q, kt, d, 0.3f);
    vec_kernels_for(ISA_SCALAR)->attn_scores(want_s, 17, q, ld, n_q, kt, d, 0.3f);
    assert_same_bits(s, want_s, sizeof s / sizeof *s, what);
    vec_kernels_for(set)->attn_mix(y, ld, p, n + 1, n_q, v, ld, n, d);
    vec_kernels_for(ISA_SCALAR)->attn_mix(want, ld, p, n + 1, n_q, v, ld, n, d);
    assert_same_bits(y, want, n_y, what);
    compare_attention_f16(set, q, p, n_q, n, d);
    free(q);
    free(kt);
    free(v);
    free(p);
    free(y);
    free(want);
}

/* Rows that lie apart, and a width that no instruction divides. */
static void turned_keys_equal_scalar(void **state)
{
    EACH_WIDE_ISA(set)
    {
        for (size_t d = 1; d < 80; d += size_step()) {
            size_t ldk = d + d % 3;
            float *k = draw_floats(d, 15 * ldk + d, 1.0f), *got = draw_floats(1, 16 * d, 1.0f),
                  *want = draw_floats(2, 16 * d, 1.0f);
            vec_kernels_for(set)->attn_turn(got, k, ldk, d);
            vec_kernels_for(ISA_SCALAR)->attn_turn(want, k, ldk, d);
            assert_same_bits(got, want, 16 * d, "turned keys");
            assert_true(want[16 * (d - 1) + 5] == k[5 * ldk + d - 1]);
            free(k);
            free(got);
            free(want);
        }
    }
}

static void attention_equals_scalar_bit_for_bit(void **state)
{
    EACH_WIDE_ISA(set)
    {
        for (size_t d = 1; d < 140; d += d < 70 ? size_step() : 13)
            for (size_t n_q = 1; n_q <= ATTN_ROWS; n_q++)
                compare_attention(set, n_q, 1 + (d * 7 + n_q) % 20, d);
    }
}

static void the_argmax_is_the_first_of_equals(void **state)
{
    const float nan = (float)NAN, inf = (float)INFINITY;
    EACH_WIDE_ISA(set)
    {
        const vec_kernels *k = vec_kernels_for(set), *ref = vec_kernels_for(ISA_SCALAR);
        for (size_t n = 1; n < 1700; n += n < 80 ? size_step() : 61) {
            float *x = draw_floats(n, n, 3.0f);
            for (size_t i = 0; i < n; i++) x[i] = floorf(x[i]); /* many equals */
            assert_int_equal(k->argmax(x, n), ref->argmax(x, n));
            x[n / 2] = nan;
            assert_int_equal(k->argmax(x, n), ref->argmax(x, n));
            x[n - 1] = inf;
            assert_int_equal(k->argmax(x, n), n - 1);
            for (size_t i = 0; i < n; i++) x[i] = nan;
            assert_int_equal(k->argmax(x, n), 0);
            x[n - 1] = -inf;
            assert_int_equal(k->argmax(x, n), n - 1);
            x[n * 2 / 3] = x[n - 1] = 1;
            assert_int_equal(k->argmax(x, n), n * 2 / 3);
            free(x);
        }
    }
}

static void scaled_exponentials_equal_scalar_bit_for_bit(void **state)
{
    EACH_WIDE_ISA(set)
    {
        for (size_t n = 1; n < 150; n += size_step()) {
            float *x = draw_floats(n, n, 30.0f), *y = draw_floats(1, n, 1.0f);
            float *want = draw_floats(1, n, 1.0f);
            float sum = vec_kernels_for(set)->exp_scaled(y, x, n, 25.0f, 1.7f);
            float want_sum = vec_kernels_for(ISA_SCALAR)->exp_scaled(want, x, n, 25.0f, 1.7f);
            assert_same_bits(y, want, n, "exp_scaled");
            assert_same_bits(&sum, &want_sum, 1, "sum of exp_scaled");
            free(x);
            free(y);
            free(want);
        }
    }
}

/* Sums of blocks are exp_scaled's, and their total goes in their order. */
static void sums_of_exponentials_equal_scalar_bit_for_bit(void **state)
{
    EACH_WIDE_ISA(set)
    {
        for (size_t n = 1; n < 600; n += 1 + n % 7) {
            float *x = draw_floats(n, n, 60.0f), y[600], sums[5] = {0};
            double want = 0, got = vec_kernels_for(set)->exp_sums(sums, x, n, 25.0f, 1.7f);
            for (size_t b = 0, at = 0; at < n; b++, at += EXP_SUMS_BLOCK) {
                size_t here = n - at < EXP_SUMS_BLOCK ? n - at : EXP_SUMS_BLOCK;
                float sum = vec_kernels_for(ISA_SCALAR)->exp_scaled(y, x + at, here, 25.0f, 1.7f);
                assert_same_bits(&sums[b], &sum, 1, "a block of exp_sums");
                want += (double)sum;
            }
            assert_memory_equal(&got, &want, sizeof got);
            want = vec_kernels_for(ISA_SCALAR)->exp_sums(sums, x, n, 25.0f, 1.7f);
            assert_memory_equal(&got, &want, sizeof got);
            free(x);
        }
    }
}

static double ulps(float got, double want)
{
    float near = fabsf((float)want);
    double ulp = (double)nextafterf(near, (float)INFINITY) - (double)near;
    return fabs((double)got - want) / ulp;
}

static void float_functions_are_accurate(void **state)
{
    double worst_exp = 0, worst_tanh = 0, worst_log = 0;
    for (size_t i = 0; i < 400000; i += size_step()) {
        float x = draw(1, i) * 87.0f, s = draw(2, i) * (i & 1 ? 5.0f : 0.7f),
              p = (float)ldexp(1.0 + rng_uniform(3, i), (int)(i % 200) - 100);
        worst_exp = fmax(worst_exp, ulps(math_expf(x), exp((double)x)));
        worst_tanh = fmax(worst_tanh, ulps(math_tanhf(s), tanh((double)s)));
        worst_log = fmax(worst_log, ulps(math_logf(p), log((double)p)));
    }
    print_message("worst ulp: exp %.2f tanh %.2f log %.2f\n", worst_exp, worst_tanh, worst_log);
    assert_true(worst_exp < 2 && worst_tanh < 2 && worst_log < 1);
}

static void float_functions_know_the_edges(void **state)
{
    assert_true(math_expf(0) == 1.0f && math_expf(1000) == (float)INFINITY && math_expf(-1000) == 0.0f);
    assert_true(math_expf(-(float)INFINITY) == 0.0f && isnan(math_expf((float)NAN)));
    assert_true(math_tanhf(100) == 1.0f && math_tanhf(-100) == -1.0f && math_tanhf(0) == 0.0f);
    assert_true(math_logf(0) == -(float)INFINITY && isnan(math_logf(-1)) && math_logf(1) == 0.0f);
    assert_true(math_exp(1000) == (double)INFINITY && math_exp(-1000) == 0.0 &&
                math_log(0) == -(double)INFINITY);
}

static double gelu_exactly(double x, bool erf_form)
{
    if (erf_form) return 0.5 * x * erfc(-x * sqrt(0.5));
    return x / (1 + exp(-2 * sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

/* Above zero in ulps, below it in absolute terms: the result goes to nothing there. */
static void gelu_is_accurate(void **state)
{
    const vec_kernels *v = vec_kernels_for(ISA_SCALAR);
    for (int erf_form = 0; erf_form < 2; erf_form++) {
        double worst_ulp = 0, worst_below = 0;
        for (size_t i = 0; i < 400000; i += size_step()) {
            float x = draw(4, i) * (i % 3 ? 8.0f : 0.5f), y = x;
            (erf_form ? v->gelu_erf : v->gelu_tanh)(&y, 1);
            double want = gelu_exactly((double)x, erf_form);
            if (x > 0)
                worst_ulp = fmax(worst_ulp, ulps(y, want));
            else
                worst_below = fmax(worst_below, fabs((double)y - want));
        }
        print_message("gelu %s: %.2f ulp above zero, %.1e below\n", erf_form ? "erf" : "tanh", worst_ulp,
                      worst_below);
        assert_true(worst_ulp < 1.5 && worst_below < 5e-8);
    }
}

static void gelu_knows_the_edges(void **state)
{
    const vec_kernels *v = vec_kernels_for(ISA_SCALAR);
    float x[] = {0.0f, 1e-40f, 100.0f, -100.0f, (float)INFINITY, -(float)INFINITY, (float)NAN}, y[7];
    memcpy(y, x, sizeof x);
    v->gelu_erf(x, 7);
    v->gelu_tanh(y, 7);
    assert_memory_equal(x, y, 6 * sizeof *x);
    assert_true(x[0] == 0.0f && x[1] == 1e-40f / 2 && x[2] == 100.0f && x[3] == 0.0f);
    assert_true(x[4] == (float)INFINITY && x[5] == 0.0f && isnan(x[6]) && isnan(y[6]));
}

static void double_functions_are_accurate(void **state)
{
    for (size_t i = 0; i < 100000; i += size_step()) {
        double u = rng_uniform(7, i), x = (u * 2 - 1) * (i % 3 ? 100.0 : 700.0), s, c;
        assert_true(fabs(math_exp(x) / exp(x) - 1) < 1e-14);
        double p = ldexp(1 + u, (int)(i % 1000) - 500);
        assert_true(fabs(math_log(p) - log(p)) <= 1e-15 * fmax(1, fabs(log(p))));
        assert_true(fabs(math_pow(10000.0, -u) / pow(10000.0, -u) - 1) < 1e-14);
        double angle = (u * 2 - 1) * (i & 1 ? 10.0 : 1e6);
        math_sincos(angle, &s, &c);
        assert_true(fabs(s - sin(angle)) < 1e-14 && fabs(c - cos(angle)) < 1e-14);
    }
}

static void softmax_sums_to_one(void **state)
{
    for (size_t n = 1; n < 100; n += 7) {
        float *x = draw_floats(n, n, 30.0f);
        double total = 0, sum = 0;
        for (size_t i = 0; i < n; i++) total += exp((double)x[i]);
        double first = (double)x[0];
        vec_kernels_for(ISA_SCALAR)->softmax(x, n);
        for (size_t i = 0; i < n; i++) sum += (double)x[i];
        assert_true(fabs(sum - 1) < 1e-5);
        assert_true(fabs((double)x[0] - exp(first) / total) < 1e-6);
        free(x);
    }
    float masked[] = {1.0f, -(float)INFINITY, 1.0f};
    vec_kernels_for(ISA_SCALAR)->softmax(masked, 3);
    assert_true(masked[0] == 0.5f && masked[1] == 0.0f && masked[2] == 0.5f);
}

static void norms_normalise(void **state)
{
    float *x = draw_floats(1, 200, 9.0f), one[200], zero[200] = {0}, y[200];
    for (size_t i = 0; i < 200; i++) one[i] = 1.0f;
    double mean = 0, square = 0;
    vec_kernels_for(ISA_SCALAR)->layer_norm(y, x, one, zero, 1, 200, 0.0f);
    for (size_t i = 0; i < 200; i++) mean += (double)y[i] / 200, square += (double)y[i] * (double)y[i] / 200;
    assert_true(fabs(mean) < 1e-6 && fabs(square - 1) < 1e-5);
    vec_kernels_for(ISA_SCALAR)->rms_norm(y, x, one, 200, 0.0f);
    square = 0;
    for (size_t i = 0; i < 200; i++) square += (double)y[i] * (double)y[i] / 200;
    assert_true(fabs(square - 1) < 1e-5);
    free(x);
}

/* Together, in place, and one by one on scalar. */
static void rows_are_normalised_together(void **state)
{
    enum { ROWS = 11 };
    EACH_WIDE_ISA(set)
    {
        for (size_t n = 1; n < 100; n += 3) {
            float *y = draw_floats(n, ROWS * n, 3.0f), *want = draw_floats(n, ROWS * n, 3.0f),
                  *w = draw_floats(2, n, 1.0f), *b = draw_floats(3, n, 1.0f);
            for (size_t t = 0; t < ROWS; t++)
                vec_kernels_for(ISA_SCALAR)->layer_norm(want + t * n, want + t * n, w, b, 1, n, 1e-5f);
            vec_kernels_for(set)->layer_norm(y, y, w, b, ROWS, n, 1e-5f);
            assert_same_bits(y, want, ROWS * n, isa_name(set));
            free(y);
            free(want);
            free(w);
            free(b);
        }
    }
}

static void rotation_keeps_lengths_and_the_rest_of_the_head(void **state)
{
    float *x = draw_floats(1, 2 * 24, 1.0f), *was = draw_floats(1, 2 * 24, 1.0f), cos_t[8], sin_t[8];
    for (int i = 0; i < 8; i++) {
        double s, c;
        math_sincos(0.3 * i + 0.1, &s, &c);
        cos_t[i] = (float)c;
        sin_t[i] = (float)s;
    }
    vec_kernels_for(ISA_SCALAR)->rope(x, 2, 24, 16, cos_t, sin_t, false);
    for (int h = 0; h < 2; h++) {
        for (int i = 0; i < 8; i++) {
            float *a = x + h * 24 + i, *b = was + h * 24 + i;
            assert_true(fabsf(a[0] * a[0] + a[8] * a[8] - b[0] * b[0] - b[8] * b[8]) < 1e-5f);
            assert_true(fabsf(a[0] - (b[0] * cos_t[i] - b[8] * sin_t[i])) < 1e-6f);
        }
        assert_same_bits(x + h * 24 + 16, was + h * 24 + 16, 8, "rest of the head");
    }
    free(x);
    free(was);
}

/* Whole numbers, so equal means equal; the extremes are what the unsigned trick could overflow at. */
static void dots_of_int8_rows_equal_scalar(void **state)
{
    enum { ROWS = 7 };
    EACH_WIDE_ISA(set)
    {
        for (size_t d = 1; d < N_MAX; d += d < 70 ? size_step() : 23) {
            int8_t *q = malloc(d), *rows = malloc(ROWS * d);
            int32_t got[ROWS], want[ROWS];
            for (size_t i = 0; i < d; i++) q[i] = (int8_t)(d % 3 == 0 ? -127 : (int)(i * 37 % 255) - 127);
            for (size_t i = 0; i < ROWS * d; i++)
                rows[i] = (int8_t)(i < d ? 127 : i < 2 * d ? -127 : (int)(i * i * 11 % 255) - 127);
            vec_kernels_for(ISA_SCALAR)->dots_i8(want, q, rows, ROWS, d);
            vec_kernels_for(set)->dots_i8(got, q, rows, ROWS, d);
            assert_memory_equal(got, want, sizeof want);
            if (d % 3 == 0) assert_int_equal(want[0], -127 * 127 * (int)d);
            free(q);
            free(rows);
        }
    }
}

#ifdef __SANITIZE_ADDRESS__
/* The sanitizer sees what a kernel reads and writes past its vectors (tests/sanitize/vectors.c). */
static void vectors_past_the_end_are_seen(void **state)
{
    for (int set = 1; set < ISA_COUNT; set++) {
        if (!isa_usable((isa)set)) continue;
        for (size_t past = 0; past <= 64; past += 64)
            for (int writes = 0; writes < 2; writes++) {
                size_t n = 64 + past, short_n = 64 * sizeof(float), long_n = 128 * sizeof(float);
                float *a = calloc(1, writes ? long_n : short_n), *y = calloc(1, writes ? short_n : long_n);
                pid_t child = fork();
                if (child == 0) {
                    (void)freopen("/dev/null", "w", stderr);
                    vec_kernels_for((isa)set)->axpy(y, 1, a, n);
                    _exit(0);
                }
                int status;
                assert_int_equal(waitpid(child, &status, 0), child);
                if ((status == 0) != (past == 0))
                    fail_msg("%s: %zu of 64 floats %s: %#x", isa_name((isa)set), n,
                             writes ? "written" : "read", status);
                free(a);
                free(y);
            }
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vector_kernels_equal_scalar_bit_for_bit),
        cmocka_unit_test(turned_keys_equal_scalar),
        cmocka_unit_test(attention_equals_scalar_bit_for_bit),
        cmocka_unit_test(the_argmax_is_the_first_of_equals),
        cmocka_unit_test(scaled_exponentials_equal_scalar_bit_for_bit),
        cmocka_unit_test(sums_of_exponentials_equal_scalar_bit_for_bit),
        cmocka_unit_test(special_values_agree),
        cmocka_unit_test(float_functions_are_accurate),
        cmocka_unit_test(float_functions_know_the_edges),
        cmocka_unit_test(gelu_is_accurate),
        cmocka_unit_test(gelu_knows_the_edges),
        cmocka_unit_test(double_functions_are_accurate),
        cmocka_unit_test(softmax_sums_to_one),
        cmocka_unit_test(norms_normalise),
        cmocka_unit_test(rows_are_normalised_together),
        cmocka_unit_test(rotation_keeps_lengths_and_the_rest_of_the_head),
        cmocka_unit_test(dots_of_int8_rows_equal_scalar),
#ifdef __SANITIZE_ADDRESS__
        cmocka_unit_test(vectors_past_the_end_are_seen),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
