/* proj.h: one or more weight matrices that read the same input, as one projection.
 *
 * q, k and v (or gate and up) are stored apart but always run together. Their rows are joined into
 * one matrix at load when their types agree, which saves activations' loads and barriers on every
 * step; matrices of different types stay apart behind the same call. */
#ifndef NET_PROJ_H
#define NET_PROJ_H

#include "base/err.h"
#include "compute/compute.h"
#include "model/model.h"

#define PROJ_PARTS_MAX 3

typedef struct proj {
    size_t rows, cols;
    size_t n_parts;
    wmat *part[PROJ_PARTS_MAX];
    size_t first_row[PROJ_PARTS_MAX];
    /* The model's matrices that it is made of, in the order of its rows: what adapters change. */
    size_t n_stems;
    const tensor *stem[PROJ_PARTS_MAX]; /* the model's, without data: their names and sides */
} proj;

/* Load "<prefix><stem>.weight" for each stem, and "<prefix><stem>.bias" where the model has it. */
int proj_load(proj *p, const model *m, const char *prefix, const char *const *stems, size_t n_stems, isa set,
              shoal_err *err);

/* One tensor of any number of dimensions as a matrix: its slowest dimension is the rows, all others are the
 * columns. */
int proj_load_flat(proj *p, const model *m, const char *prefix, const char *stem, isa set, shoal_err *err);

/* The same of number `expert` of n_expert in tensors [n_expert][rows][cols]; experts have no biases. */
int proj_load_expert(proj *p, const model *m, const char *prefix, const char *const *stems, size_t n_stems,
                     size_t expert, size_t n_expert, isa set, shoal_err *err);
void proj_done(proj *p); /* a zeroed one is fine */

/* A small vector of the model as floats (norm weights): malloc'd [n], SHOAL_EFORMAT when it is missing
 * or has another size. */
int proj_load_vector(float **ret, const model *m, const char *name, size_t n, shoal_err *err);
/* A matrix [rows][cols] as floats, aligned; fewer rows than the file has are fine. */
int proj_load_table(float **ret, const model *m, const char *name, size_t rows, size_t cols, shoal_err *err);

#endif
