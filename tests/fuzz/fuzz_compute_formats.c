/* Bytes as a type's blocks: taken apart, put together, packed, multiplied at every instruction set; and the
 * same bytes as floats to quantise. First byte: the type; second: columns. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compute/compute.h"
#include "compute/formats.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_COLS = 1024, N_TOKENS = 3 };

typedef struct product {
    const wmat *w;
    acts *a;
    const float *x;
    float *y;
} product;

static void multiply(void *arg, team_member *m)
{
    product *p = arg;
    size_t cols = wmat_cols(p->w);
    acts_load(m, p->a, wmat_type(p->w), p->x, N_TOKENS, cols, cols);
    acts_mul(m, p->a, p->w, p->y, wmat_rows(p->w), false);
}

static void same_bits(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0 && (a[i] == a[i] || b[i] == b[i])) abort();
}

/* y[N_TOKENS][rows] at one instruction set; NULL when memory was refused. */
static float *run(isa set, const wmat *w, const float *x)
{
    shoal_err err;
    team *t = NULL;
    product p = {.w = w, .x = x, .y = calloc(N_TOKENS * wmat_rows(w), sizeof *p.y)};
    bool ok =
        holds(p.y && acts_new(&p.a, N_TOKENS, wmat_cols(w), &err) == 0 && team_new(&t, 1, set, &err) == 0);
    if (ok) team_run(t, multiply, &p);
    team_free(t);
    acts_free(p.a);
    if (ok) return p.y;
    free(p.y);
    return NULL;
}

static void products(const wmat *w)
{
    static float x[N_TOKENS * MAX_COLS];
    for (size_t i = 0; i < N_TOKENS * wmat_cols(w); i++) x[i] = (float)((int)(i * 37 % 101) - 50) / 16;
    float *spec = run(ISA_SCALAR, w, x);
    for (int i = ISA_SCALAR + 1; spec && i < ISA_COUNT; i++) {
        if (!isa_usable((isa)i)) continue;
        float *wide = run((isa)i, w, x);
        if (wide) same_bits(wide, spec, N_TOKENS * wmat_rows(w));
        free(wide);
    }
    free(spec);
}

/* Every bit of a block is read, and comes back. */
static void blocks(dtype t, const uint8_t *src, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks && !dtype_is_float(t); i++, src += dtype_block_bytes(t)) {
        wblock b;
        uint8_t back[2 * WBLOCK_MAX];
        formats_get(t, src, &b);
        formats_put(t, &b, back);
        if (memcmp(back, src, dtype_block_bytes(t)) != 0) abort();
    }
}

static void matrix(dtype t, const uint8_t *src, size_t rows, size_t cols)
{
    wmat *w = NULL;
    shoal_err err;
    size_t row_bytes = cols / dtype_block(t) * dtype_block_bytes(t);
    if (!holds(wmat_new(&w, t, rows, cols, src, NULL, ISA_SCALAR, &err) == 0)) return;
    for (size_t r = 0; r < rows; r++) {
        float want[MAX_COLS], got[MAX_COLS];
        dtype_to_f32(t, src + r * row_bytes, want, cols);
        wmat_row(w, r, got);
        same_bits(got, want, cols);
    }
    products(w);
    wmat_free(w);
}

static void quantise(dtype t, const uint8_t *src, size_t size)
{
    float x[256], back[256];
    uint8_t packed[1024];
    memset(x, 0, sizeof x);
    memcpy(x, src, size < sizeof x ? size : sizeof x);
    size_t n = 256 / dtype_block(t) * dtype_block(t);
    dtype_from_f32(t, x, packed, n);
    dtype_to_f32(t, packed, back, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    dtype t = (dtype)(data[0] % DT_COUNT);
    size_t block = dtype_block(t), most = block == 1 ? 70 : MAX_COLS / block;
    size_t cols = block * (1 + data[1] % most), row_bytes = cols / block * dtype_block_bytes(t);
    size_t rows = (size - 2) / row_bytes;
    quantise(t, data + 2, size - 2);
    if (rows == 0 || rows > 64) return 0;
    uint8_t *copy = malloc(rows * row_bytes); /* an over-read is seen */
    if (!holds(copy)) return 0;
    memcpy(copy, data + 2, rows * row_bytes);
    blocks(t, copy, rows * cols / block);
    matrix(t, copy, rows, cols);
    free(copy);
    return 0;
}
