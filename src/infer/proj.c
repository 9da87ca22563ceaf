/* proj.c: matrices that read the same input, loaded and multiplied as one; see proj.h. Packing copies, so the
 * file's bytes are not needed afterwards. */
#include "infer/proj.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static const tensor *find(const model *m, const char *prefix, const char *stem, const char *suffix)
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

/* The biases of ts[0..n) one after the other, zeros where one has none; NULL when none has. */
static int join_biases(float **ret, const model *m, const char *prefix, const char *const *stems, size_t n,
                       size_t rows, shoal_err *err)
{
    float *bias = NULL;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const tensor *w = find(m, prefix, stems[i], "weight");
        const tensor *b = find(m, prefix, stems[i], "bias");
        if (b) {
            if (b->dims[0] != tensor_rows(w)) {
                free(bias);
                return err_set(err, SHOAL_EFORMAT, "%s has %zu values for %zu rows", b->name, b->dims[0],
                               tensor_rows(w));
            }
            if (!bias && !(bias = calloc(rows, sizeof *bias))) return err_nomem(err);
            dtype_to_f32(b->type, b->data, bias + at, b->dims[0]);
        }
        at += tensor_rows(w);
    }
    *ret = bias;
    return 0;
}

/* One packed matrix of the rows of stems[0..n), which have one type. */
static int pack(proj *p, const model *m, const char *prefix, const char *const *stems, size_t n, isa set,
                shoal_err *err)
{
    size_t rows = 0, bytes = 0;
    const tensor *first = find(m, prefix, stems[0], "weight");
    for (size_t i = 0; i < n; i++) {
        const tensor *t = find(m, prefix, stems[i], "weight");
        rows += tensor_rows(t);
        bytes += t->bytes;
    }
    float *bias = NULL;
    uint8_t *joined = NULL;
    const void *src = first->data;
    int rc = join_biases(&bias, m, prefix, stems, n, rows, err);
    if (rc == 0 && n > 1) {
        joined = malloc(bytes);
        if (!joined) rc = err_nomem(err);
        for (size_t i = 0, at = 0; joined && i < n; i++) {
            const tensor *t = find(m, prefix, stems[i], "weight");
            memcpy(joined + at, t->data, t->bytes);
            at += t->bytes;
        }
        src = joined;
    }
    if (rc == 0) rc = wmat_new(&p->part[p->n_parts], first->type, rows, p->cols, src, bias, set, err);
    if (rc == 0) {
        p->first_row[p->n_parts++] = p->rows;
        p->rows += rows;
    }
    free(joined);
    free(bias);
    return rc;
}

int proj_load(proj *p, const model *m, const char *prefix, const char *const *stems, size_t n_stems, isa set,
              shoal_err *err)
{
    *p = (proj){0};
    bool same = true;
    for (size_t i = 0; i < n_stems; i++) {
        const tensor *t = find(m, prefix, stems[i], "weight"), *t0 = find(m, prefix, stems[0], "weight");
        if (!t) return err_set(err, SHOAL_EFORMAT, "%s%s.weight is missing", prefix, stems[i]);
        if (t->dims[0] != t0->dims[0]) {
            return err_set(err, SHOAL_EFORMAT, "%s has %zu columns, its neighbours %zu", t->name, t->dims[0],
                           t0->dims[0]);
        }
        same = same && t->type == t0->type;
        p->cols = t->dims[0];
    }
    int rc = 0;
    if (same) {
        rc = pack(p, m, prefix, stems, n_stems, set, err);
    } else {
        for (size_t i = 0; rc == 0 && i < n_stems; i++) rc = pack(p, m, prefix, &stems[i], 1, set, err);
    }
    if (rc) proj_done(p);
    return rc;
}

void proj_done(proj *p)
{
    for (size_t i = 0; i < p->n_parts; i++) wmat_free(p->part[i]);
    *p = (proj){0};
}

void proj_mul(team_member *m, const proj *p, acts *a, const float *x, size_t n_tokens, float *y, size_t ldy,
              bool accumulate)
{
    for (size_t i = 0; i < p->n_parts; i++) {
        dtype t = wmat_type(p->part[i]);
        if (i == 0 || t != wmat_type(p->part[i - 1])) {
            if (i > 0) team_barrier(m); /* others may still read the activations of the part before */
            acts_load(m, a, t, x, n_tokens, p->cols, p->cols);
        }
        acts_mul(m, a, p->part[i], y + p->first_row[i], ldy, accumulate);
    }
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
