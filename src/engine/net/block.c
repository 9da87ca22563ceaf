/* block.c: norms, linear layers, activations and sums over rows; see block.h. */
#include "net/block.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- norms ---------------------------------------------------------------------------------------- */

int norm_load(norm *n, const model *m, const char *prefix, const char *stem, size_t width, const norm_conf *c,
              shoal_err *err)
{
    char name[128];
    *n = (norm){.width = width, .kind = c->kind, .eps = c->eps};
    snprintf(name, sizeof name, "%s%s.weight", prefix, stem);
    int rc = proj_load_vector(&n->w, m, name, width, err);
    if (rc || n->kind == NORM_RMS) return rc;
    snprintf(name, sizeof name, "%s%s.bias", prefix, stem);
    const tensor *b = model_tensor(m, name);
    if (b && b->data) return proj_load_vector(&n->b, m, name, width, err);
    n->b = calloc(width, sizeof *n->b);
    return n->b ? 0 : err_nomem(err);
}

void norm_done(norm *n)
{
    free(n->w);
    free(n->b);
    *n = (norm){0};
}

/* y[n_rows][width] = norm(x[n_rows][width]) */
static void norm_rows(const norm *n, const vec_kernels *v, float *y, const float *x, size_t n_rows)
{
    if (n->kind == NORM_LAYER) {
        v->layer_norm(y, x, n->w, n->b, n_rows, n->width, n->eps);
        return;
    }
    for (size_t t = 0; t < n_rows; t++, y += n->width, x += n->width)
        v->rms_norm(y, x, n->w, n->width, n->eps);
}

void norm_row(const norm *n, const vec_kernels *v, float *y, const float *x)
{
    norm_rows(n, v, y, x, 1);
}

void blk_norm(lane *l, const norm *n, rows *y, rows *x)
{
    size_t t, end;
    assert(n->w && n->width == x->width && n->width == y->width);
    rows_profile(l, PROFILE_NORM);
    rows_use(l, {x, y->own ? READ_ALL : READ_MINE}, {y, WRITE_MINE});
    rows_share(l, y, &t, &end);
    norm_rows(n, l->v, rows_at(y, t), rows_at(x, t), end - t);
}

/* ---- linear --------------------------------------------------------------------------------------- */

static size_t stem_rows(const tensor *t)
{
    return t->n_dims > 1 ? t->dims[1] : 1;
}

/* y[rows] += scale * B (A x[cols]): dots of one fixed tree, then B's columns in their order. */
static void adapt_row(const vec_kernels *v, const adapter_matrix *d, const float *x, float *y)
{
    for (size_t k = 0; k < d->rank; k++)
        v->axpy(y, d->scale * v->dot(d->a + k * d->cols, x, d->cols), d->b + k * d->rows, d->rows);
}

static void adapt(lane *l, const proj *p, rows *x, rows *y)
{
    size_t t, end;
    rows_use(l, {x, READ_MINE}, {y, READ_MINE | WRITE_MINE});
    for (rows_share(l, y, &t, &end); t < end; t++) {
        float *out = rows_at(y, t);
        for (size_t i = 0; l->adapters[t] && i < p->n_stems; i++) {
            const adapter_matrix *d = adapter_find(l->adapters[t], p->stem[i]);
            if (d) adapt_row(l->v, d, rows_at(x, t), out);
            out += stem_rows(p->stem[i]);
        }
    }
}

static float *thin_at(const lane *l, size_t t, size_t stem)
{
    return l->thin + t * THIN_WIDTH + stem * ADAPTER_RANK_MAX;
}

/* All members: A x of every row into l->thin, one number after the other. */
static void reduce_few(lane *l, const proj *p, rows *x)
{
    size_t n = 0, at = 0, begin, end;
    for (size_t t = 0; t < x->n; t++)
        for (size_t i = 0; l->adapters[t] && i < p->n_stems; i++) {
            const adapter_matrix *d = adapter_find(l->adapters[t], p->stem[i]);
            n += d ? d->rank : 0;
        }
    member_share(l->m, n, 1, &begin, &end);
    for (size_t t = 0; t < x->n; t++)
        for (size_t i = 0; l->adapters[t] && i < p->n_stems; i++) {
            const adapter_matrix *d = adapter_find(l->adapters[t], p->stem[i]);
            for (size_t k = 0; d && k < d->rank; k++, at++)
                if (at >= begin && at < end)
                    thin_at(l, t, i)[k] = d->scale * l->v->dot(d->a + k * d->cols, rows_at(x, t), d->cols);
        }
}

/* The same bits for fewer rows than members: both products are split by what they make. */
static void adapt_few(lane *l, const proj *p, rows *x, rows *y)
{
    size_t begin, end;
    rows_use(l, {x, READ_ALL}, {&l->thin_use, WRITE_PARTS});
    reduce_few(l, p, x);
    rows_use(l, {&l->thin_use, READ_ALL}, {y, READ_ALL | WRITE_PARTS});
    for (size_t t = 0; t < y->n; t++) {
        float *out = rows_at(y, t);
        for (size_t i = 0; l->adapters[t] && i < p->n_stems; out += stem_rows(p->stem[i++])) {
            const adapter_matrix *d = adapter_find(l->adapters[t], p->stem[i]);
            if (d) member_share(l->m, d->rows, 16, &begin, &end);
            for (size_t k = 0; d && begin < end && k < d->rank; k++)
                l->v->axpy(out + begin, thin_at(l, t, i)[k], d->b + k * d->rows + begin, end - begin);
        }
    }
}

/* Does any row's adapter change a matrix of p? Otherwise there is nothing to wait for. */
static bool is_adapted(const lane *l, const proj *p, size_t n)
{
    const adapter *last = NULL;
    for (size_t t = 0; l->adapters && p->n_stems > 0 && t < n; t++) {
        if (!l->adapters[t] || l->adapters[t] == last) continue;
        last = l->adapters[t];
        for (size_t i = 0; i < p->n_stems; i++)
            if (adapter_find(last, p->stem[i])) return true;
    }
    return false;
}

/* Each member its own rows; what is watched is watched by columns. */
static bool goes_apart(const lane *l, const proj *p, const rows *x)
{
    return !x->own && rows_stand_apart(l, x->n) && !wmat_is_watched(p->part[0]);
}

/* "attn_q+attn_k": the matrices' names without their layer and ".weight". */
static void name_product(profile_entry *e, const proj *p, size_t part)
{
    size_t first = p->n_parts > 1 ? part : 0, end = p->n_parts > 1 ? part + 1 : p->n_stems, at = 0;
    for (size_t i = first; i < end && i < p->n_stems; i++) {
        const char *name = strstr(p->stem[i]->name, "blk.");
        name = name ? strchr(name + 4, '.') : NULL;
        name = name ? name + 1 : p->stem[i]->name;
        const char *stop = strstr(name, ".weight");
        int n = stop ? (int)(stop - name) : (int)strlen(name);
        if (at < sizeof e->name)
            at += (size_t)snprintf(e->name + at, sizeof e->name - at, "%s%.*s", at ? "+" : "", n, name);
    }
}

static void profile_product(const lane *l, const proj *p, size_t part, size_t n_tokens)
{
    profile_entry *e = profile_to_matmul(l->profile, p->part[part], p->part[part], n_tokens);
    if (!e->name[0]) name_product(e, p, part);
}

void blk_linear(lane *l, const proj *p, rows *x, rows *y, bool add)
{
    bool apart = goes_apart(l, p, x);
    assert(x != y && p->cols == x->width && p->rows <= y->width && x->n == y->n);
    for (size_t i = 0; i < p->n_parts; i++) {
        dtype t = wmat_type(p->part[i]);
        if (i == 0 || t != wmat_type(p->part[i - 1])) {
            (apart ? rows_load_apart : rows_load)(l, t, x);
            rows_use(l, {y, apart ? WRITE_MINE : WRITE_PARTS});
        }
        if (l->profile) profile_product(l, p, i, x->n);
        rows_mul(l, p->part[i], y, p->first_row[i], add);
    }
    if (!is_adapted(l, p, x->n)) return;
    bool few = l->thin && x->n < (size_t)member_count(l->m) && x->n <= THIN_ROWS;
    (few ? adapt_few : adapt)(l, p, x, y);
}

/* ---- activations and sums --------------------------------------------------------------------------- */

/* x * sigmoid(x), through the gated kernel: there is none without. */
static void silu_row(const vec_kernels *v, float *x, size_t n)
{
    static const float one[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (size_t i = 0; i < n; i += 64) v->silu_mul(x + i, x + i, one, n - i < 64 ? n - i : 64);
}

void act_row(const vec_kernels *v, activation act, float *x, size_t n)
{
    switch (act) {
    case ACT_SILU: silu_row(v, x, n); break;
    case ACT_GELU_ERF: v->gelu_erf(x, n); break;
    case ACT_GELU_TANH: v->gelu_tanh(x, n); break;
    case ACT_RELU: v->relu(x, n); break;
    case ACT_TANH: v->tanh(x, n); break;
    case ACT_NONE: break;
    }
}

void act_gate_row(const vec_kernels *v, activation act, float *y, float *gate, const float *up, size_t n)
{
    if (act == ACT_SILU) {
        v->silu_mul(y, gate, up, n);
        return;
    }
    act_row(v, act, gate, n);
    for (size_t i = 0; i < n; i++) y[i] = gate[i] * up[i];
}

void cap_row(const vec_kernels *v, float *x, size_t n, float cap)
{
    for (size_t i = 0; i < n; i++) x[i] /= cap;
    v->tanh(x, n);
    for (size_t i = 0; i < n; i++) x[i] *= cap;
}

/* Each member for itself: x stays as it is, since others read it. */
static void activate_own(lane *l, activation act, bool gated, rows *y, rows *x)
{
    size_t width = y->width;
    rows_use(l, {x, READ_ALL});
    for (size_t t = 0; t < y->n; t++) {
        const float *in = rows_at(x, t);
        memcpy(rows_at(y, t), in, width * sizeof *in);
        if (gated)
            act_gate_row(l->v, act, rows_at(y, t), rows_at(y, t), in + width, width);
        else
            act_row(l->v, act, rows_at(y, t), width);
    }
}

/* A few wide rows are split by columns, which costs a barrier. */
void blk_activate(lane *l, activation act, bool gated, rows *y, rows *x)
{
    rows_profile(l, PROFILE_ACTIVATE);
    if (y->own && x != y) {
        activate_own(l, act, gated, y, x);
        return;
    }
    size_t begin = 0, width = y->width, end = width, t = 0, t_end = y->n;
    bool by_columns = y->n < (size_t)member_count(l->m) && width > BLK_ALONE_COLS;
    assert(x->width == (gated ? 2 * width : width) && (gated || x == y));
    if (by_columns) {
        rows_use(l, {x, READ_ALL | WRITE_PARTS}, {y, WRITE_PARTS}); /* a gate is overwritten */
        member_share(l->m, width, 16, &begin, &end);
    } else {
        rows_use(l, {x, READ_MINE | WRITE_MINE}, {y, WRITE_MINE});
        rows_share(l, y, &t, &t_end);
    }
    for (; t < t_end && begin < end; t++) {
        float *in = rows_at(x, t) + begin, *out = rows_at(y, t) + begin;
        if (gated)
            act_gate_row(l->v, act, out, in, in + width, end - begin);
        else
            act_row(l->v, act, out, end - begin);
    }
}

void blk_add(lane *l, rows *x, rows *y, float scale)
{
    size_t t, end;
    assert(x->width == y->width);
    rows_profile(l, PROFILE_ADD);
    rows_use(l, {x, READ_MINE | WRITE_MINE}, {y, READ_MINE});
    rows_share(l, x, &t, &end);
    for (; t < end; t++) {
        if (scale == 1)
            l->v->add(rows_at(x, t), rows_at(x, t), rows_at(y, t), x->width);
        else
            l->v->axpy(rows_at(x, t), scale, rows_at(y, t), x->width);
    }
}
