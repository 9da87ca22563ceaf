/* proj.c: matrices that read the same input, loaded as one; see proj.h. Packing copies, so the
 * file's bytes are not needed afterwards. */
#include "net/proj.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/packed/regroup.h"

static const tensor *proj_find(const model *m, const char *prefix, const char *stem, const char *suffix)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s.%s", prefix, stem, suffix);
    const tensor *t = model_tensor(m, name);
    return t && t->data ? t : NULL;
}

static size_t tensor_rows(const tensor *t)
{
    return t->n_dims > 1 ? t->dims[1] : 1;
}

/* Rows of one projection: a tensor, or one expert's part of one. */
typedef struct piece {
    const tensor *weight, *bias; /* bias: NULL when there is none */
    const void *data;
    size_t rows, cols;
} piece;

/* The pieces' biases one after the other, zeros where one has none; NULL when none has. */
static int join_biases(float **ret, const piece *ps, size_t n, size_t rows, shoal_err *err)
{
    float *bias = NULL;
    for (size_t i = 0, at = 0; i < n; at += ps[i++].rows) {
        const tensor *b = ps[i].bias;
        if (!b) continue;
        if (b->dims[0] != ps[i].rows) {
            free(bias);
            return err_set(err, SHOAL_EFORMAT, "%s has %zu values for %zu rows", b->name, b->dims[0],
                           ps[i].rows);
        }
        if (!bias && !(bias = calloc(rows, sizeof *bias))) return err_nomem(err);
        dtype_to_f32(b->type, b->data, bias + at, b->dims[0]);
    }
    *ret = bias;
    return 0;
}

/* What an image of packed weights tells matrices apart by: the tensors whose rows they are, in order (FNV-1a;
 * of experts, the byte of the tensor at which each begins). */
static uint64_t proj_name_of(const piece *ps, size_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++) {
        for (const char *s = ps[i].weight->name; *s; s++) h = (h ^ (uint8_t)*s) * 0x100000001b3;
        h = (h ^ (uint64_t)((const uint8_t *)ps[i].data - (const uint8_t *)ps[i].weight->data)) *
            0x100000001b3;
    }
    return h;
}

static size_t piece_bytes(const piece *p)
{
    return p->rows * (p->cols / dtype_block(p->weight->type)) * dtype_block_bytes(p->weight->type);
}

/* One packed matrix of the rows of n pieces, which have one type. */
static int pack(proj *p, const model *m, const piece *ps, size_t n, isa set, shoal_err *err)
{
    wmat_part parts[PROJ_PARTS_MAX];
    size_t rows = 0;
    for (size_t i = 0; i < n; i++) {
        parts[i] = (wmat_part){ps[i].data, ps[i].rows, regroup_turn(m, ps[i].weight)};
        rows += ps[i].rows;
    }
    float *bias = NULL;
    int rc = join_biases(&bias, ps, n, rows, err);
    if (rc == 0)
        rc = wmat_join(&p->part[p->n_parts], model_home(m), proj_name_of(ps, n),
                       regroup_type(m, ps[0].weight), parts, n, p->cols, bias, set, err);
    if (rc == 0) {
        p->first_row[p->n_parts++] = p->rows;
        p->rows += rows;
    }
    for (size_t i = 0; rc == 0 && i < n; i++) model_release(m, ps[i].data, piece_bytes(&ps[i]));
    for (size_t i = 0; rc == 0 && model_measured(m) && i < n; i++)
        rc = importance_watch(model_measured(m), ps[i].weight->name, p->part[p->n_parts - 1], err);
    free(bias);
    return rc;
}

/* As one matrix where all types agree, else as one each. */
static int pack_all(proj *p, const model *m, const piece *ps, size_t n, isa set, shoal_err *err)
{
    *p = (proj){.cols = ps[0].cols};
    bool same = true;
    for (size_t i = 0; i < n; i++) {
        const tensor *t = ps[i].weight;
        if (ps[i].cols != p->cols) {
            return err_set(err, SHOAL_EFORMAT, "%s has %zu columns, its neighbours %zu", t->name, ps[i].cols,
                           p->cols);
        }
        same = same && regroup_type(m, t) == regroup_type(m, ps[0].weight);
    }
    int rc = 0;
    if (same) {
        rc = pack(p, m, ps, n, set, err);
    } else {
        for (size_t i = 0; rc == 0 && i < n; i++) rc = pack(p, m, &ps[i], 1, set, err);
    }
    if (rc) proj_done(p);
    return rc;
}

int proj_load(proj *p, const model *m, const char *prefix, const char *const *stems, size_t n_stems, isa set,
              shoal_err *err)
{
    piece ps[PROJ_PARTS_MAX] = {0};
    *p = (proj){0};
    for (size_t i = 0; i < n_stems; i++) {
        const tensor *t = proj_find(m, prefix, stems[i], "weight");
        if (!t) return err_set(err, SHOAL_EFORMAT, "%s%s.weight is missing", prefix, stems[i]);
        ps[i] = (piece){.weight = t,
                        .bias = proj_find(m, prefix, stems[i], "bias"),
                        .data = t->data,
                        .rows = tensor_rows(t),
                        .cols = t->dims[0]};
    }
    int rc = pack_all(p, m, ps, n_stems, set, err);
    if (rc) return rc;
    p->n_stems = n_stems;
    for (size_t i = 0; i < n_stems; i++) p->stem[i] = ps[i].weight;
    return 0;
}

int proj_load_flat(proj *p, const model *m, const char *prefix, const char *stem, isa set, shoal_err *err)
{
    const tensor *t = proj_find(m, prefix, stem, "weight");
    *p = (proj){0};
    if (!t || t->n_dims < 2) return err_set(err, SHOAL_EFORMAT, "%s%s.weight is missing", prefix, stem);
    piece one = {.weight = t,
                 .bias = proj_find(m, prefix, stem, "bias"),
                 .data = t->data,
                 .rows = t->dims[t->n_dims - 1],
                 .cols = 1};
    for (size_t i = 0; i + 1 < t->n_dims; i++) one.cols *= t->dims[i];
    return pack_all(p, m, &one, 1, set, err);
}

int proj_load_expert(proj *p, const model *m, const char *prefix, const char *const *stems, size_t n_stems,
                     size_t expert, size_t n_expert, isa set, shoal_err *err)
{
    piece ps[PROJ_PARTS_MAX] = {0};
    *p = (proj){0};
    for (size_t i = 0; i < n_stems; i++) {
        const tensor *t = proj_find(m, prefix, stems[i], "weight");
        if (!t || t->n_dims != 3 || t->dims[2] != n_expert) {
            return err_set(err, SHOAL_EFORMAT, "%s%s.weight should hold %zu experts", prefix, stems[i],
                           n_expert);
        }
        size_t bytes = t->bytes / n_expert;
        ps[i] = (piece){.weight = t,
                        .data = (const uint8_t *)t->data + expert * bytes,
                        .rows = t->dims[1],
                        .cols = t->dims[0]};
    }
    return pack_all(p, m, ps, n_stems, set, err);
}

void proj_done(proj *p)
{
    for (size_t i = 0; i < p->n_parts; i++) wmat_free(p->part[i]);
    *p = (proj){0};
}

int proj_load_vector(float **ret, const model *m, const char *name, size_t n, shoal_err *err)
{
    const tensor *t = model_tensor(m, name);
    if (!t || !t->data) return err_set(err, SHOAL_EFORMAT, "%s is missing", name);
    if (t->n_dims != 1 || t->dims[0] != n) {
        return err_set(err, SHOAL_EFORMAT, "%s should have %zu values", name, n);
    }
    float *v = malloc(n * sizeof *v);
    if (!v) return err_nomem(err);
    dtype_to_f32(t->type, t->data, v, n);
    *ret = v;
    return 0;
}

int proj_load_table(float **ret, const model *m, const char *name, size_t rows, size_t cols, shoal_err *err)
{
    const tensor *t = model_tensor(m, name);
    size_t t_rows = t && t->n_dims > 1 ? t->dims[1] : 1, n;
    if (!t || !t->data || t->dims[0] != cols || t_rows < rows || size_mul(rows, cols, &n)) {
        return err_set(err, SHOAL_EFORMAT, "%s should be %zu rows of %zu", name, rows, cols);
    }
    float *v = mem_calloc64(n ? n : 1, sizeof *v);
    if (!v) return err_nomem(err);
    dtype_to_f32(t->type, t->data, v, n);
    *ret = v;
    return 0;
}
