/* The kernels of the tile unit over a model of it, so that they are tested where no processor has one: the
 * scalar kernels' bits, and no instruction that would trap. Where there is one, test_mul.c runs them for
 * real. */
#define kernels_avx512amx kernels_model
#define probe_avx512amx   probe_model
#include "tile_model.h"

#include "base/buf.h"
#include "compute/wmat.h"
#include "compute/x86/avx512amx.c"

#ifdef KERNELS_X86

/* Activations of a product, quantised, and its results. */
typedef struct product {
    wmat *w;
    float *x, *scale, *x_sum;
    int8_t *q;
    int32_t *sum, *sum16;
    slabs slabs;
    size_t n_tokens, ldo;
} product;

static acts_loaded loaded(const product *p)
{
    const wfmt *f = &wfmt_table[p->w->type];
    return (acts_loaded){.type = p->w->type,
                         .n_tokens = p->n_tokens,
                         .cols = p->w->cols,
                         .group = wfmt_is_wide(f) ? f->run : ACTS_BLOCK,
                         .q = p->q,
                         .scale = p->scale,
                         .sum = p->sum,
                         .sum16 = p->sum16,
                         .x_sum = p->x_sum,
                         .slabs = p->slabs};
}

static void quantise(product *p)
{
    dtype t = p->w->type;
    size_t run = wfmt_table[t].run, n = p->n_tokens * p->w->cols;
    if (wfmt_is_wide(&wfmt_table[t]))
        kernels_scalar.quantise_wide(p->x, n / run, run, p->q, p->scale, p->sum);
    else
        kernels_scalar.quantise(p->x, n / ACTS_BLOCK, p->q, p->scale, p->sum, p->sum16);
    for (size_t i = 0; wfmt_has_min(&wfmt_table[t]) && i < n / ACTS_BLOCK; i++)
        p->x_sum[i] = p->scale[i] * (float)p->sum[i];
    acts_loaded a = loaded(p);
    if (kernels_model.form.wanted(t, p->n_tokens)) kernels_model.form.make(&a, 0, p->n_tokens);
}

static void product_init(product *p, dtype t, const void *src, size_t rows, size_t cols, size_t n_tokens)
{
    size_t n = n_tokens * cols / ACTS_BLOCK;
    shoal_err err;
    if (wmat_new(&p->w, t, rows, cols, src, NULL, ISA_SCALAR, &err) != 0) fail_msg("%s", err.message);
    p->n_tokens = n_tokens;
    p->ldo = p->w->n_panels * PANEL_ROWS + 3;
    p->x = draw_floats(rows + cols + n_tokens, n_tokens * cols, 2.0f);
    p->q = malloc(n * ACTS_BLOCK + 1);
    p->scale = malloc((n + 1) * sizeof *p->scale);
    p->sum = malloc((n + 1) * sizeof *p->sum);
    p->sum16 = malloc((n + 1) * 2 * sizeof *p->sum16);
    p->x_sum = malloc((n + 1) * sizeof *p->x_sum);
    size_t slab_bytes = (cols + SLAB_COLS - 1) / SLAB_COLS * SLAB_COLS * n_tokens;
    p->slabs = (slabs){.q = mem_calloc64(1, slab_bytes + TILE_BYTES), /* a last tile is read whole */
                       .scale = malloc((n + 1) * sizeof(float)),
                       .sums = malloc((n + 1) * sizeof(float)),
                       .n_tokens = n_tokens};
    if (!dtype_is_float(t)) quantise(p);
}

static void product_done(product *p)
{
    wmat_free(p->w);
    free(p->x);
    free(p->q);
    free(p->scale);
    free(p->sum);
    free(p->sum16);
    free(p->x_sum);
    free(p->slabs.q);
    free(p->slabs.scale);
    free(p->slabs.sums);
}

/* The job of all of it; out starts as sevens, so that a write past the rows shows. */
static mul_job whole(const product *p, float *out)
{
    const wmat *w = p->w;
    const wfmt *f = &wfmt_table[w->type];
    size_t group = wfmt_is_wide(f) ? f->run : ACTS_BLOCK;
    for (size_t i = 0; i < p->n_tokens * p->ldo; i++) out[i] = 7.0f;
    return (mul_job){.w = w->w,
                     .panel_bytes = w->panel_bytes,
                     .scales = w->scales,
                     .panel_scales = w->panel_scales,
                     .n_panels = w->n_panels,
                     .n_tokens = p->n_tokens,
                     .cols = w->cols,
                     .group = group,
                     .n_blocks = w->cols / group,
                     .x = p->x,
                     .ldx = w->cols,
                     .q = p->q,
                     .scale = p->scale,
                     .sum = p->sum,
                     .sum16 = p->sum16,
                     .x_sum = p->x_sum,
                     .slabs = p->slabs,
                     .out = out,
                     .ldo = p->ldo};
}

/* By tiles as large as a table allows, between its enter and leave. */
static float *run(const product *p, const kernels *k)
{
    bool wide = wfmt_is_wide(&wfmt_table[p->w->type]);
    const tile *most = p->n_tokens == 1 ? &k->one : wide ? &k->wide : &k->many;
    float *out = malloc(p->n_tokens * p->ldo * sizeof *out);
    mul_job all = whole(p, out);
    if (k->enter) k->enter(p->w->type, p->n_tokens);
    for (size_t i = 0; i < all.n_panels; i += most->panels) {
        for (size_t t = 0; t < all.n_tokens; t += most->tokens) {
            mul_job part = mul_job_part(&all, i, t, min_size(most->panels, all.n_panels - i),
                                        min_size(most->tokens, all.n_tokens - t));
            k->mul[p->w->type](&part);
        }
    }
    if (k->leave) k->leave(p->w->type, p->n_tokens);
    return out;
}

static void compare(dtype t, const void *src, size_t rows, size_t cols, size_t n_tokens)
{
    product p;
    char what[120];
    snprintf(what, sizeof what, "%s rows=%zu cols=%zu tokens=%zu", dtype_name(t), rows, cols, n_tokens);
    product_init(&p, t, src, rows, cols, n_tokens);
    float *spec = run(&p, &kernels_scalar), *tiles = run(&p, &kernels_model);
    assert_same_bits(tiles, spec, n_tokens * p.ldo, what);
    assert_false(model.configured);
    free(spec);
    free(tiles);
    product_done(&p);
}

static uint8_t *draw_weights(dtype t, size_t rows, size_t cols)
{
    float *f = draw_floats(rows + cols, rows * cols, 0.3f);
    uint8_t *w = malloc(rows * cols / dtype_block(t) * dtype_block_bytes(t));
    dtype_from_f32(t, f, w, rows * cols);
    free(f);
    return w;
}

/* One panel, two, and three, so that a call has one or two; chunks of columns whole and cut. */
static void products_by_tiles_equal_scalar_bit_for_bit(void **state)
{
    static const size_t tokens[] = {1,  2,  3,  4,  5,   7,   8,   11,  12,  13,  16,
                                    19, 24, 27, 40, 127, 128, 129, 135, 192, 200, 263};
    static const size_t rows[] = {5, 32, 33, 48};
    for (int t = 0; t < DT_COUNT; t++) {
        size_t block = dtype_block((dtype)t), n = 0;
        for (size_t k = 0; k < sizeof tokens / sizeof *tokens; k++, n++) {
            size_t cols = block > 1 ? block * (1 + (n * 7 + (size_t)t) % (block == 32    ? 37
                                                                          : block == 256 ? 5
                                                                                         : 11))
                                    : 1 + n * 5;
            uint8_t *w = draw_weights((dtype)t, rows[n % 4], cols);
            compare((dtype)t, w, rows[n % 4], cols, tokens[k]);
            free(w);
        }
    }
}

/* All codes and all scales, NaN and infinity among them. */
static void any_bytes_are_weights(void **state)
{
    size_t rows = 160, n_tokens = 200;
    for (int t = 0; t < DT_COUNT; t++) {
        size_t cols = dtype_block((dtype)t), n = rows * dtype_block_bytes((dtype)t);
        uint8_t *w = malloc(n);
        for (size_t i = 0; i < n; i++) w[i] = (uint8_t)rng_mix(i);
        compare((dtype)t, w, rows, cols, n_tokens);
        free(w);
    }
}

/* Sums as large as they get: codes and activations at their ends. */
static void the_largest_sums_are_exact(void **state)
{
    size_t rows = 32, cols = 768, n_tokens = 200;
    for (int t = 0; t < DT_COUNT; t++) {
        if (dtype_is_float((dtype)t)) continue;
        float *f = draw_floats(1, rows * cols, 1.0f);
        for (size_t i = 0; i < rows * cols; i++) f[i] = i / cols % 2 || i % 3 ? 1.0f : -1.0f;
        uint8_t *w = malloc(rows * cols / dtype_block((dtype)t) * dtype_block_bytes((dtype)t));
        dtype_from_f32((dtype)t, f, w, rows * cols);
        free(f);
        product p;
        product_init(&p, (dtype)t, w, rows, cols, n_tokens);
        for (size_t i = 0; i < n_tokens * cols; i++) p.x[i] = i / cols % 2 ? 1.0f : i % 3 ? -1.0f : 1.0f;
        quantise(&p);
        float *spec = run(&p, &kernels_scalar), *tiles = run(&p, &kernels_model);
        assert_same_bits(tiles, spec, n_tokens * p.ldo, dtype_name((dtype)t));
        free(spec);
        free(tiles);
        product_done(&p);
        free(w);
    }
}

/* The proof that runs in a child where there is a unit holds over the model too. */
static void the_probe_proves(void **state)
{
    assert_true(probe_model());
    assert_false(model.configured);
}

/* Single tokens and floats need no tiles; then a member does not take them. */
static void only_products_by_tiles_configure_them(void **state)
{
    avx512amx_enter(DT_Q8_0, 1);
    assert_false(model.configured);
    avx512amx_enter(DT_F16, 64);
    avx512amx_enter(DT_Q6_K, 64);
    assert_false(model.configured);
    avx512amx_enter(DT_Q8_0, 64);
    assert_true(model.configured);
    avx512amx_leave(DT_Q8_0, 64);
    assert_false(model.configured);
}

/* Which tokens go by tiles: products of 64 rows and 512 columns, of which a run of 32 fills half of each tile. */
static void the_tiles_do_what_they_are_faster_at(void **state)
{
    static const struct {
        dtype type;
        size_t tokens, in_tiles;
    } cases[] = {
        {DT_Q4_K, 191, 0},    {DT_Q4_K, 192, 192}, {DT_Q8_0, 199, 192}, {DT_Q8_0, 200, 208},
        {DT_S4_128, 15, 0},   {DT_S4_128, 16, 16}, {DT_S8_128, 19, 16}, {DT_S8_256, 20, 32},
        {DT_S8_64, 131, 128}, {DT_Q6_K, 256, 0},   {DT_F16, 256, 0},
    };
    size_t rows = 64, cols = 512;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dtype t = cases[k].type;
        uint8_t *w = draw_weights(t, rows, cols);
        product p;
        product_init(&p, t, w, rows, cols, cases[k].tokens);
        uint64_t before = model.multiply_adds;
        free(run(&p, &kernels_model));
        size_t tile_cols = wfmt_table[t].run == 32 ? 2 * cols : cols;
        assert_int_equal(model.multiply_adds - before, rows * tile_cols * cases[k].in_tiles);
        product_done(&p);
        free(w);
    }
}

/* ---- what the processor would refuse ---- */

static bool refused(void (*misuse)(void))
{
    jmp_buf back;
    volatile bool trapped = true;
    model_catch = &back;
    if (setjmp(back) == 0) {
        misuse();
        trapped = false;
    }
    model_catch = NULL;
    model_release();
    return trapped;
}

static const tile_config *changed(size_t byte, uint8_t value)
{
    static tile_config c;
    c = whole_tiles;
    ((uint8_t *)&c)[byte] = value;
    return &c;
}

#define MISUSE(name, ...)  \
    static void name(void) \
    {                      \
        __VA_ARGS__;       \
    }
#define CONFIGURED tile_configure(&whole_tiles)
static uint8_t some[MODEL_ROWS * 64];

MISUSE(good_use, CONFIGURED; tile_load(2, some, 64); tile_load(0, some, 64); tile_zero(3); tile_dot(3, 2, 0);
       tile_store(3, some, 64); tile_release())
MISUSE(wide_row, tile_configure(changed(16, 65)))
MISUSE(wider_row, tile_configure(changed(17, 1)))
MISUSE(high_tile, tile_configure(changed(48, 17)))
MISUSE(no_rows, tile_configure(changed(48, 0)))
MISUSE(no_width, tile_configure(changed(16, 0)))
MISUSE(strange_palette, tile_configure(changed(0, 2)))
MISUSE(reserved_byte, tile_configure(changed(5, 1)))
MISUSE(ninth_tile_width, tile_configure(changed(32, 1)))
MISUSE(ninth_tile_rows, tile_configure(changed(56, 1)))
MISUSE(unconfigured_zero, tile_zero(0))
MISUSE(unconfigured_load, tile_load(0, some, 64))
MISUSE(unconfigured_store, tile_store(0, some, 64))
MISUSE(unconfigured_dot, tile_dot(3, 2, 0))
MISUSE(use_after_release, CONFIGURED; tile_release(); tile_load(0, some, 64))
MISUSE(empty_palette, tile_configure(changed(0, 0)); tile_zero(0))
MISUSE(same_tile, CONFIGURED; tile_dot(3, 3, 0))
MISUSE(same_sources, CONFIGURED; tile_dot(3, 2, 2))
MISUSE(other_rows, tile_configure(changed(53, 4)); tile_dot(3, 5, 0))
MISUSE(other_depth, tile_configure(changed(48, 4)); tile_dot(3, 2, 0))
MISUSE(other_width, tile_configure(changed(16, 32)); tile_dot(3, 2, 0))
MISUSE(half_words, tile_configure(changed(20, 30)); tile_dot(3, 2, 0))

static void the_model_refuses_what_the_processor_refuses(void **state)
{
    static void (*const misuses[])(void) = {
        wide_row,          wider_row,          high_tile,        no_rows,           no_width,
        strange_palette,   reserved_byte,      ninth_tile_width, ninth_tile_rows,   unconfigured_zero,
        unconfigured_load, unconfigured_store, unconfigured_dot, use_after_release, empty_palette,
        same_tile,         same_sources,       other_rows,       other_depth,       other_width,
        half_words};
    assert_false(refused(good_use));
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++)
        if (!refused(misuses[i])) fail_msg("misuse %zu was not refused", i);
}

/* A product without its enter does not go on quietly. */
static void products_need_a_configuration(void **state)
{
    uint8_t *w = draw_weights(DT_S8_256, 16, 256);
    product p;
    product_init(&p, DT_S8_256, w, 16, 256, 16);
    float *out = malloc(p.n_tokens * p.ldo * sizeof *out);
    mul_job j = whole(&p, out);
    jmp_buf back;
    model_catch = &back;
    if (setjmp(back) == 0) {
        kernels_model.mul[DT_S8_256](&j);
        model_catch = NULL;
        fail_msg("a product ran without a configuration");
    }
    model_catch = NULL;
    free(out);
    product_done(&p);
    free(w);
}

int main(void)
{
    if (!isa_usable(ISA_AVX512VNNI)) {
        fprintf(stderr, "SKIP tile kernels over the model: they need AVX-512 with VNNI beside the tiles\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_refuses_what_the_processor_refuses),
        cmocka_unit_test(products_by_tiles_equal_scalar_bit_for_bit),
        cmocka_unit_test(any_bytes_are_weights),
        cmocka_unit_test(the_largest_sums_are_exact),
        cmocka_unit_test(the_probe_proves),
        cmocka_unit_test(only_products_by_tiles_configure_them),
        cmocka_unit_test(the_tiles_do_what_they_are_faster_at),
        cmocka_unit_test(products_need_a_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    fprintf(stderr, "SKIP tile kernels over the model: they are of x86-64\n");
    return 0;
}
#endif
