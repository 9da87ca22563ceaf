/* Products: every instruction set, tiling and thread count gives the scalar kernels' bits. */
#include <math.h>

#include "check.h"
#include "compute/kernels.h"

typedef struct product {
    dtype t;
    size_t rows, cols, n_tokens, ldx, ldy;
    bool bias, accumulate;
    const float *x;
    const void *w;
    const float *b;
    wmat *packed;
    acts *a;
    float *y;
} product;

static void multiply(void *arg, team_member *m)
{
    product *p = arg;
    acts_load(m, p->a, p->t, p->x, p->n_tokens, p->cols, p->ldx);
    acts_mul(m, p->a, p->packed, p->y, p->ldy, p->accumulate);
}

/* y starts as sevens, so that a write past the rows shows. */
static float *run(product *p, isa set, int n_threads)
{
    team *t = new_team(n_threads, set);
    shoal_err err;
    assert_int_equal(wmat_new(&p->packed, p->t, p->rows, p->cols, p->w, p->bias ? p->b : NULL, set, &err), 0);
    assert_int_equal(acts_new(&p->a, p->n_tokens, p->cols, &err), 0);
    p->y = malloc(p->n_tokens * p->ldy * sizeof *p->y);
    for (size_t i = 0; i < p->n_tokens * p->ldy; i++) p->y[i] = 7.0f;
    team_run(t, multiply, p);
    acts_free(p->a);
    wmat_free(p->packed);
    team_free(t);
    return p->y;
}

static void *draw_weights(dtype t, size_t rows, size_t cols, uint64_t seed)
{
    float *f = draw_floats(seed, rows * cols, 0.3f);
    uint8_t *w = malloc(rows * cols / dtype_block(t) * dtype_block_bytes(t));
    dtype_from_f32(t, f, w, rows * cols);
    free(f);
    return w;
}

static void compare_with(product *p, const float *spec, isa set, int n_threads)
{
    char what[160];
    snprintf(what, sizeof what, "%s %s rows=%zu cols=%zu tokens=%zu threads=%d bias=%d accumulate=%d",
             isa_name(set), dtype_name(p->t), p->rows, p->cols, p->n_tokens, n_threads, p->bias,
             p->accumulate);
    float *wide = run(p, set, n_threads);
    assert_same_bits(wide, spec, p->n_tokens * p->ldy, what);
    free(wide);
}

/* On every instruction set. Where few sizes do, one of them will: all share rows among threads alike. */
static void compare_all(product *p, int n_threads)
{
    isa one = ISA_SCALAR;
    if (few_sizes()) assert_int_equal(isa_choose(&one, NULL), 0);
    float *spec = run(p, one, 1);
    EACH_WIDE_ISA(set) if (!few_sizes() || set == one) compare_with(p, spec, set, n_threads);
    free(spec);
}

static void compare_case(dtype t, size_t rows, size_t cols, size_t n_tokens)
{
    uint64_t seed = rows * 1000003 + cols * 101 + n_tokens;
    size_t ldx = cols + seed % 5;
    float *x = draw_floats(seed, n_tokens * ldx, 4.0f), *b = draw_floats(seed + 1, rows, 1.0f);
    void *w = draw_weights(t, rows, cols, seed + 2);
    product p = {.t = t,
                 .rows = rows,
                 .cols = cols,
                 .n_tokens = n_tokens,
                 .ldx = ldx,
                 .ldy = rows + seed % 3,
                 .bias = seed & 1,
                 .accumulate = seed & 2,
                 .x = x,
                 .w = w,
                 .b = b};
    compare_all(&p, 1 + (int)(seed % 4));
    free(x);
    free(b);
    free(w);
}

/* Whole blocks of every type. */
enum { ANY_COLS = 768 };

/* A width that differs with n: any for floats, one to five blocks of 32, one or two super-blocks, one to
 * three groups of our own types. */
static size_t odd_cols(dtype t, size_t n)
{
    size_t block = dtype_block(t);
    return block == 1 ? 1 + n * 3 % 67 : block * (1 + n % (block == 32 ? 5 : block == 256 ? 2 : 3));
}

static void products_equal_scalar_bit_for_bit(void **state)
{
    for (int t = 0; t < DT_COUNT; t++) {
        for (size_t rows = 1; rows <= 50; rows += size_step())
            compare_case((dtype)t, rows, odd_cols((dtype)t, rows), 1 + rows % 17);
        for (size_t n_tokens = 1; n_tokens <= 17; n_tokens += size_step())
            compare_case((dtype)t, 130, odd_cols((dtype)t, 2), n_tokens);
    }
}

/* Kernels that take many tokens at once cut columns and tokens into pieces: whole ones, and what is left
 * over. Where few sizes do, each type meets one of them. */
static void products_of_many_tokens_equal_scalar_bit_for_bit(void **state)
{
    enum { N = 6 };
    static const size_t tokens[N] = {24, 31, 64, 67, 130, 200};
    for (int t = 0; t < DT_COUNT; t++) {
        size_t block = dtype_block((dtype)t);
        for (size_t k = few_sizes() ? (size_t)t % N : 0; k < N; k += size_step()) {
            size_t cols = block == 256 ? 256 * (2 + k % 3) : (512 + 32 * (k * 5 % 17)) / block * block;
            compare_case((dtype)t, 30 + k * 5, cols, tokens[k]);
        }
    }
}

/* One token alone and the same token in a batch have the same bits. */
static void a_token_does_not_depend_on_its_batch(void **state)
{
    isa set;
    assert_int_equal(isa_choose(&set, NULL), 0);
    for (int t = 0; t < DT_COUNT; t++) {
        enum { cols = ANY_COLS };
        float *x = draw_floats(5, 7 * cols, 1.0f);
        void *w = draw_weights((dtype)t, 70, cols, 6);
        product p = {
            .t = (dtype)t, .rows = 70, .cols = cols, .n_tokens = 7, .ldx = cols, .ldy = 70, .x = x, .w = w};
        float *batch = run(&p, set, 2);
        for (size_t k = 0; k < 7; k++) {
            product one = p;
            one.n_tokens = 1;
            one.x = x + k * cols;
            float *alone = run(&one, set, 3);
            assert_same_bits(alone, batch + k * 70, 70, dtype_name((dtype)t));
            free(alone);
        }
        free(batch);
        free(x);
        free(w);
    }
}

/* Foreign Q8_0 files may hold -128, and the largest sums of all instruction sets are reached here. */
static void extreme_weights_stay_exact(void **state)
{
    static const int8_t values[] = {-128, 127, -127, 0, 1, -1};
    size_t rows = 37, cols = 64, n_tokens = 9;
    uint8_t *w = malloc(rows * cols / 32 * 34);
    float *x = malloc(n_tokens * cols * sizeof *x);
    for (size_t pattern = 0; pattern < 12; pattern++) {
        for (size_t b = 0; b < rows * cols / 32; b++) {
            w[b * 34] = 0;
            w[b * 34 + 1] = 0x3C;
            for (size_t i = 0; i < 32; i++)
                w[b * 34 + 2 + i] = (uint8_t)values[(pattern + (pattern > 5 ? b + i : 0)) % 6];
        }
        for (size_t i = 0; i < n_tokens * cols; i++) x[i] = (pattern & 1) || i % 3 ? 1.0f : -1.0f;
        for (size_t i = 0; i < cols; i++) x[i] = -1.0f;
        product p = {.t = DT_Q8_0,
                     .rows = rows,
                     .cols = cols,
                     .n_tokens = n_tokens,
                     .ldx = cols,
                     .ldy = rows,
                     .x = x,
                     .w = w};
        compare_all(&p, 1);
        float *y = run(&p, ISA_SCALAR, 1);
        if (pattern == 0) assert_true(fabsf(y[0] - 128.0f * (float)cols) < 0.01f);
        free(y);
    }
    free(w);
    free(x);
}

/* Weights and activations of one magnitude reach the largest code, and the largest sums of any pair of columns, of
 * every instruction set and type. Bit 0 of a pattern changes the sign of weights each two columns, bit 1 each token,
 * bit 2 of activations each two columns. */
static void largest_sums_stay_exact(void **state)
{
    enum { rows = 35, cols = ANY_COLS, n_tokens = 25 };
    float *f = malloc(rows * cols * sizeof *f), *x = malloc(n_tokens * cols * sizeof *x);
    uint8_t *w = malloc(rows * cols * sizeof *f);
    for (size_t t = 0; t < DT_COUNT; t++) {
        for (size_t pattern = 0; pattern < 8; pattern++) {
            for (size_t i = 0; i < rows * cols; i++) f[i] = (pattern & 1) && i / 2 % 2 ? 1.0f : -1.0f;
            for (size_t i = 0; i < n_tokens * cols; i++)
                x[i] = ((pattern & 2) && i / cols % 2) != ((pattern & 4) && i / 2 % 2) ? -1.0f : 1.0f;
            dtype_from_f32((dtype)t, f, w, rows * cols);
            product p = {.t = (dtype)t,
                         .rows = rows,
                         .cols = cols,
                         .n_tokens = n_tokens,
                         .ldx = cols,
                         .ldy = rows,
                         .x = x,
                         .w = w};
            compare_all(&p, 1);
        }
    }
    free(f);
    free(x);
    free(w);
}

static void bad_activations_do_not_crash(void **state)
{
    float special[] = {(float)NAN, (float)INFINITY, -(float)INFINITY, 1e38f,    1e-45f,
                       0.0f,       -0.0f,           1e-31f,           0x1p-100f};
    size_t rows = 20, cols = ANY_COLS;
    for (int t = 0; t < DT_COUNT; t++) {
        void *w = draw_weights((dtype)t, rows, cols, 9);
        for (size_t s = 0; s < sizeof special / sizeof *special; s++) {
            float *x = draw_floats(s, 3 * cols, special[s] > -1 && special[s] < 1 ? 0.0f : 1.0f);
            x[5] = x[cols + 40] = special[s];
            product p = {.t = (dtype)t,
                         .rows = rows,
                         .cols = cols,
                         .n_tokens = 3,
                         .ldx = cols,
                         .ldy = rows,
                         .x = x,
                         .w = w};
            compare_all(&p, 2);
            free(x);
        }
        free(w);
    }
}

static void random_bytes_are_weights_too(void **state)
{
    size_t rows = 33, cols = ANY_COLS;
    for (int t = 0; t < DT_COUNT; t++) {
        size_t n = rows * cols / dtype_block((dtype)t) * dtype_block_bytes((dtype)t);
        uint8_t *w = malloc(n);
        for (size_t i = 0; i < n; i++) w[i] = (uint8_t)rng_mix(i);
        float *x = draw_floats(4, 4 * cols, 1.0f);
        product p = {.t = (dtype)t,
                     .rows = rows,
                     .cols = cols,
                     .n_tokens = 4,
                     .ldx = cols,
                     .ldy = rows,
                     .x = x,
                     .w = w};
        compare_all(&p, 2);
        free(x);
        free(w);
    }
}

/* Whole sixteens of blocks and what is left, with blocks that have no scale among them. */
static void activations_are_quantised_alike(void **state)
{
    enum { BLOCKS = 37 };
    const float special[] = {0.0f,      (float)NAN, (float)INFINITY, -(float)INFINITY, 0x1p-110f,
                             0x1p-101f, 3e38f};
    EACH_WIDE_ISA(set)
    {
        for (size_t k = 0; k < 4 * sizeof special / sizeof *special; k++) {
            float *x = draw_floats(k, (size_t)BLOCKS * ACTS_BLOCK, 3.0f), value = special[k / 4];
            size_t at = (const size_t[]){0, 17, 31, 36}[k % 4] * ACTS_BLOCK;
            int8_t q[2][BLOCKS * ACTS_BLOCK];
            float scale[2][BLOCKS];
            int32_t sum[2][BLOCKS], sum16[2][2 * BLOCKS];
            for (size_t i = 0; i < ACTS_BLOCK; i++)
                x[at + i] = i % 3 == 0 || k % 2 ? value : x[at + i] * 0x1p-120f;
            kernels_scalar.quantise(x, BLOCKS, q[0], scale[0], sum[0], sum16[0]);
            kernels_for(set)->quantise(x, BLOCKS, q[1], scale[1], sum[1], sum16[1]);
            assert_memory_equal(q[0], q[1], sizeof *q);
            assert_same_bits(scale[1], scale[0], BLOCKS, isa_name(set));
            assert_memory_equal(sum[0], sum[1], sizeof *sum);
            assert_memory_equal(sum16[0], sum16[1], sizeof *sum16);
            free(x);
        }
    }
}

/* Against the plain product of the dequantised weights in double. */
static void products_are_close_to_the_real_ones(void **state)
{
    size_t rows = 40;
    for (int t = 0; t < DT_COUNT; t++) {
        size_t cols = 256 / dtype_block((dtype)t) * dtype_block((dtype)t);
        float *x = draw_floats(21, 2 * cols, 1.0f), *f = malloc(rows * cols * sizeof *f);
        void *w = draw_weights((dtype)t, rows, cols, 22);
        dtype_to_f32((dtype)t, w, f, rows * cols);
        product p = {.t = (dtype)t,
                     .rows = rows,
                     .cols = cols,
                     .n_tokens = 2,
                     .ldx = cols,
                     .ldy = rows,
                     .x = x,
                     .w = w};
        float *y = run(&p, ISA_SCALAR, 1);
        for (size_t k = 0; k < 2 * rows; k++) {
            double real = 0, size = 0;
            for (size_t c = 0; c < cols; c++) {
                double a = (double)f[k % rows * cols + c] * (double)x[k / rows * cols + c];
                real += a;
                size += a * a;
            }
            assert_true(fabs((double)y[k] - real) <=
                        (dtype_is_float((dtype)t) ? 1e-6 : 0.02) * sqrt(size) + 1e-6);
        }
        free(y);
        free(x);
        free(f);
        free(w);
    }
}

static void rows_read_back_as_they_were(void **state)
{
    size_t rows = 37, cols = ANY_COLS;
    for (int t = 0; t < DT_COUNT; t++) {
        uint8_t *w = draw_weights((dtype)t, rows, cols, 31);
        float want[ANY_COLS], got[ANY_COLS];
        wmat *m;
        assert_int_equal(wmat_new(&m, (dtype)t, rows, cols, w, NULL, ISA_SCALAR, NULL), 0);
        for (size_t r = 0; r < rows; r++) {
            dtype_to_f32((dtype)t, w + r * (cols / dtype_block((dtype)t) * dtype_block_bytes((dtype)t)), want,
                         cols);
            wmat_row(m, r, got);
            assert_same_bits(got, want, cols, dtype_name((dtype)t));
        }
        assert_true(wmat_rows(m) == rows && wmat_cols(m) == cols && wmat_type(m) == (dtype)t);
        /* no type becomes a larger one: 48 rows as packed take little more than they did in the file */
        size_t in_file = cols / dtype_block((dtype)t) * dtype_block_bytes((dtype)t);
        assert_true(wmat_bytes(m) >= rows * in_file && wmat_bytes(m) <= 48 * in_file * 104 / 100 + 256);
        wmat_free(m);
        free(w);
    }
}

/* Sums of squares by column, however many members and whatever the type. */
static void watched_matrices_add_up_their_columns(void **state)
{
    static const dtype types[] = {DT_F32, DT_Q8_0};
    for (size_t k = 0; k < 2; k++) {
        float *x = draw_floats(41, 5 * 70, 1.0f);
        void *w = draw_weights(types[k], 30, 64, 42);
        for (int n = 1; n <= 3; n++) {
            team *team = new_team(n, ISA_SCALAR);
            double squares[64] = {0};
            product p = {.t = types[k], .cols = 64, .n_tokens = 5, .ldx = 70, .ldy = 30, .x = x};
            assert_int_equal(wmat_new(&p.packed, types[k], 30, 64, w, NULL, ISA_SCALAR, NULL), 0);
            assert_int_equal(acts_new(&p.a, 5, 64, NULL), 0);
            p.y = calloc(5 * 30, sizeof *p.y);
            wmat_watch(p.packed, squares);
            team_run(team, multiply, &p);
            team_run(team, multiply, &p);
            for (size_t c = 0; c < 64; c++) {
                double want = 0;
                for (size_t t = 0; t < 5; t++) want += 2 * (double)x[t * 70 + c] * (double)x[t * 70 + c];
                assert_true(fabs(squares[c] - want) <= (k ? 0.02 : 1e-6) * (want + 1));
            }
            free(p.y);
            acts_free(p.a);
            wmat_free(p.packed);
            team_free(team);
        }
        free(x);
        free(w);
    }
}

/* Whoever watches from outside sees that a product gets on, however large it is. */
static void a_large_product_shows_that_it_gets_on(void **state)
{
    enum { ROWS = 256, COLS = 1024, TOKENS = 128, N_TICKS = ROWS * COLS * TOKENS / PROGRESS_WORK };
    float *x = draw_floats(1, (size_t)TOKENS * COLS, 1);
    void *w = draw_weights(DT_Q8_0, ROWS, COLS, 2);
    product p = {.t = DT_Q8_0,
                 .rows = ROWS,
                 .cols = COLS,
                 .n_tokens = TOKENS,
                 .ldx = COLS,
                 .ldy = ROWS,
                 .x = x,
                 .w = w};
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        uint64_t before = progress_count();
        free(run(&p, ISA_SCALAR, n_threads));
        assert_in_range(progress_count() - before, N_TICKS - n_threads, 2 * N_TICKS);
    }
    free(x);
    free(w);
}

static void impossible_matrices_are_refused(void **state)
{
    wmat *m = NULL;
    shoal_err err;
    float f = 0;
    assert_int_equal(wmat_new(&m, DT_Q8_0, 4, 33, &f, NULL, ISA_SCALAR, &err), SHOAL_EINVALID);
    assert_int_equal(wmat_new(&m, DT_F32, 0, 4, &f, NULL, ISA_SCALAR, &err), SHOAL_EINVALID);
    assert_int_equal(wmat_new(&m, DT_F32, SIZE_MAX / 2, SIZE_MAX / 2, &f, NULL, ISA_SCALAR, &err),
                     SHOAL_ENOMEM);
    assert_null(m);
    wmat_free(NULL);
    acts_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_equal_scalar_bit_for_bit),
        cmocka_unit_test(products_of_many_tokens_equal_scalar_bit_for_bit),
        cmocka_unit_test(a_token_does_not_depend_on_its_batch),
        cmocka_unit_test(extreme_weights_stay_exact),
        cmocka_unit_test(largest_sums_stay_exact),
        cmocka_unit_test(activations_are_quantised_alike),
        cmocka_unit_test(bad_activations_do_not_crash),
        cmocka_unit_test(random_bytes_are_weights_too),
        cmocka_unit_test(products_are_close_to_the_real_ones),
        cmocka_unit_test(rows_read_back_as_they_were),
        cmocka_unit_test(watched_matrices_add_up_their_columns),
        cmocka_unit_test(a_large_product_shows_that_it_gets_on),
        cmocka_unit_test(impossible_matrices_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
