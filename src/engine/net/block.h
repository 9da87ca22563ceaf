/* block.h: the parts that passes are made of: norms, linear layers, activations, ways to join a branch.
 *
 * A block is called by all members, each with its lane; it says through the lane which rows it reads and
 * writes, so it needs no barrier around it (rows.h). What it computes for a row depends on that row alone. */
#ifndef NET_BLOCK_H
#define NET_BLOCK_H

#include "model/model.h"
#include "net/proj.h"
#include "net/rows.h"

/* ---- norms ---------------------------------------------------------------------------------------- */

typedef struct norm {
    /* [width]; w NULL: there is none. b only of NORM_LAYER, zeros where the model has no bias. */
    float *w, *b;
    size_t width;
    norm_kind kind;
    float eps;
} norm;

/* "<prefix><stem>.weight" and perhaps ".bias", of `width` values. */
int norm_load(norm *n, const model *m, const char *prefix, const char *stem, size_t width, const norm_conf *c,
              shoal_err *err);
void norm_done(norm *n); /* a zeroed one is fine */
/* y[width] = norm(x); y may be x */
void norm_row(const norm *n, const vec_kernels *v, float *y, const float *x);
/* Every row; y may be x. */
void blk_norm(lane *l, const norm *n, rows *y, rows *x);

/* ---- linear --------------------------------------------------------------------------------------- */

/* y = x · wᵀ + bias, or y += that; y is not x. Rows that have an adapter (lane.adapters) which changes a
 * matrix of p get scale * B (A x) on top, after the product is complete, so that a row's bits depend on
 * itself and its adapter alone. */
void blk_linear(lane *l, const proj *p, rows *x, rows *y, bool add);

/* ---- activations and sums --------------------------------------------------------------------------- */

/* x[n] = act(x) */
void act_row(const vec_kernels *v, activation act, float *x, size_t n);
/* y[n] = act(gate) * up; gate is overwritten unless act is ACT_SILU */
void act_gate_row(const vec_kernels *v, activation act, float *y, float *gate, const float *up, size_t n);
/* Columns that one member passes over in less time than a barrier and a half take. */
#define BLK_ALONE_COLS 2048
/* Every row: y = act(x) in place (gated false: y is x, or this lane's own), or y[width] = act(x[0..width)) *
 * x[width..2 width). */
void blk_activate(lane *l, activation act, bool gated, rows *y, rows *x);
/* x[n] = cap * tanh(x / cap) (Gemma 2, arXiv:2408.00118) */
void cap_row(const vec_kernels *v, float *x, size_t n, float cap);
/* x += scale * y, every row. */
void blk_add(lane *l, rows *x, rows *y, float scale);

#endif
