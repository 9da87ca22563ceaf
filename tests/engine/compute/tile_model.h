/* tile_model.h: the tile unit in plain C, with the operations of src/engine/compute/x86/tile_unit.h.
 *
 * The same kernels run over it where there is no AMX. It refuses what the processor answers with #GP or #UD,
 * since a wrong configuration shows nowhere else before it reaches such a machine: model_fault ends the test,
 * or returns to model_catch when a test means to be refused. Source: Intel SDM vol. 2, LDTILECFG, TILELOADD,
 * TILESTORED, TDPBSSD.
 *
 *     tile_configure(&config); tile_zero(2); tile_dot(2, 0, 1); ... tile_release(); */
#ifndef TESTS_COMPUTE_TILE_MODEL_H
#define TESTS_COMPUTE_TILE_MODEL_H

#include "check.h"

enum { MODEL_TILES = 8, MODEL_ROWS = 16, MODEL_ROW_BYTES = 64 };

typedef struct model_tile {
    size_t rows, row_bytes; /* 0: not in use */
    uint8_t at[MODEL_ROWS][MODEL_ROW_BYTES];
} model_tile;

static struct {
    bool configured;
    model_tile tiles[MODEL_TILES];
    size_t n_dots;          /* since the start */
    uint64_t multiply_adds; /* of them */
} model;

static jmp_buf *model_catch;

static _Noreturn void model_fault(const char *why)
{
    if (model_catch) longjmp(*model_catch, 1);
    fail_msg("the tile unit would trap: %s", why);
    abort();
}

static inline void model_require(bool holds, const char *why)
{
    if (!holds) model_fault(why);
}

static inline bool model_zeros(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0) return false;
    return true;
}

/* 64 bytes: palette, start row, 14 zeros, 8 widths (and 8 zeros) of 16 bits, 8 heights and 8 zeros. */
static inline void model_configure(const void *config)
{
    const uint8_t *c = config;
    model_require(c[0] <= 1, "ldtilecfg: there is no such palette");
    model.configured = c[0] == 1;
    memset(model.tiles, 0, sizeof model.tiles);
    if (!model.configured) return;
    model_require(c[1] == 0, "ldtilecfg: a start row is for restarted instructions");
    model_require(model_zeros(c + 2, 14) && model_zeros(c + 32, 16) && model_zeros(c + 56, 8),
                  "ldtilecfg: reserved bytes are not zero");
    for (size_t t = 0; t < MODEL_TILES; t++) {
        size_t row_bytes = c[16 + 2 * t] + 256u * c[17 + 2 * t], rows = c[48 + t];
        model_require(row_bytes <= MODEL_ROW_BYTES, "ldtilecfg: a row is wider than 64 bytes");
        model_require(rows <= MODEL_ROWS, "ldtilecfg: a tile has more than 16 rows");
        model_require((rows == 0) == (row_bytes == 0),
                      "ldtilecfg: rows without width, or width without rows");
        model.tiles[t].rows = rows;
        model.tiles[t].row_bytes = row_bytes;
    }
}

static inline void model_release(void)
{
    memset(model.tiles, 0, sizeof model.tiles);
    model.configured = false;
}

static inline model_tile *model_tile_of(size_t t)
{
    model_require(model.configured, "a tile is used without a configuration");
    model_require(t < MODEL_TILES && model.tiles[t].rows > 0, "the tile is not configured");
    return &model.tiles[t];
}

static inline void model_zero(size_t t)
{
    model_tile *m = model_tile_of(t);
    memset(m->at, 0, sizeof m->at);
}

static inline void model_load(size_t t, const void *base, size_t stride)
{
    model_tile *m = model_tile_of(t);
    memset(m->at, 0, sizeof m->at);
    for (size_t r = 0; r < m->rows; r++) memcpy(m->at[r], (const uint8_t *)base + r * stride, m->row_bytes);
}

static inline void model_store(size_t t, void *base, size_t stride)
{
    const model_tile *m = model_tile_of(t);
    for (size_t r = 0; r < m->rows; r++) memcpy((uint8_t *)base + r * stride, m->at[r], m->row_bytes);
}

/* Word i of row r of c += the four products of signed bytes, for each four columns of a. */
static inline void model_dot_row(model_tile *c, const model_tile *a, const model_tile *b, size_t r)
{
    for (size_t i = 0; i < c->row_bytes / 4; i++) {
        int32_t sum;
        memcpy(&sum, c->at[r] + i * 4, sizeof sum);
        for (size_t k = 0; k < a->row_bytes; k++)
            sum += (int8_t)a->at[r][k] * (int8_t)b->at[k / 4][i * 4 + k % 4];
        memcpy(c->at[r] + i * 4, &sum, sizeof sum);
    }
}

static inline void model_dot(size_t tc, size_t ta, size_t tb)
{
    model_require(tc != ta && ta != tb && tc != tb, "tdpbssd: the tiles are not three");
    model_tile *c = model_tile_of(tc), *a = model_tile_of(ta), *b = model_tile_of(tb);
    model_require(c->row_bytes % 4 == 0 && a->row_bytes % 4 == 0 && b->row_bytes % 4 == 0,
                  "tdpbssd: a row is not whole words");
    model_require(c->rows == a->rows, "tdpbssd: c and a differ in rows");
    model_require(c->row_bytes == b->row_bytes, "tdpbssd: c and b differ in width");
    model_require(a->row_bytes == 4 * b->rows, "tdpbssd: a is not as wide as b is high");
    for (size_t r = 0; r < c->rows; r++) model_dot_row(c, a, b, r);
    for (size_t r = c->rows; r < MODEL_ROWS; r++) memset(c->at[r], 0, MODEL_ROW_BYTES);
    model.n_dots++;
    model.multiply_adds += c->rows * (c->row_bytes / 4) * a->row_bytes;
}

#define tile_configure(config)      model_configure(config)
#define tile_release()              model_release()
#define tile_zero(t)                model_zero(t)
#define tile_load(t, base, stride)  model_load(t, base, stride)
#define tile_store(t, base, stride) model_store(t, base, stride)
#define tile_dot(c, a, b)           model_dot(c, a, b)

#endif
