/* head.c: heads of encoders; see head.h. */
#include "net/head.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* ---- loading ------------------------------------------------------------------------------------------ */

static int load_words(head *h, const model *m, const embed *e, isa set, shoal_err *err)
{
    const tensor *b = model_tensor(m, "output.bias");
    h->n_out = h->c->n_vocab;
    if (!h->c->tied) return proj_load(&h->out, m, "", (const char *[]){"output"}, 1, set, err);
    h->tied = &e->words;
    return b && b->data ? proj_load_vector(&h->bias, m, "output.bias", h->n_out, err) : 0;
}

static int check_shapes(const head *h, shoal_err *err)
{
    size_t width = h->c->n_embd;
    if (h->dense.n_parts > 0) {
        if (h->dense.cols != width)
            return err_set(err, SHOAL_EFORMAT,
                           "the head's dense layer has %zu columns, the model is %zu wide", h->dense.cols,
                           width);
        width = h->dense.rows;
    }
    const proj *last = h->tied ? h->tied : &h->out;
    if (last->n_parts > 0 && (last->cols != width || last->rows < h->n_out))
        return err_set(err, SHOAL_EFORMAT, "the head's last matrix should be %zu rows of %zu", h->n_out,
                       width);
    return 0;
}

int head_load(head *h, const model *m, const model_config *c, const embed *e, isa set, shoal_err *err)
{
    bool words = c->task == TASK_FILL_MASK;
    const char *const dense[] = {words ? "mlm" : "cls"};
    *h = (head){.c = c, .n_out = c->n_embd};
    if (c->task == TASK_EMBED) return 0;
    int rc = c->head.dense ? proj_load(&h->dense, m, "", dense, 1, set, err) : 0;
    if (rc == 0 && c->head.norm)
        rc = norm_load(&h->norm, m, dense[0], ".norm", h->dense.n_parts ? h->dense.rows : c->n_embd, &c->norm,
                       err);
    if (rc == 0 && words) rc = load_words(h, m, e, set, err);
    if (rc == 0 && !words) {
        rc = proj_load(&h->out, m, "", (const char *[]){"cls.output"}, 1, set, err);
        h->n_out = c->head.n_labels;
    }
    return rc ? rc : check_shapes(h, err);
}

int head_make_space(head *h, size_t max_inputs, size_t max_tokens, shoal_err *err)
{
    bool per_token = h->c->task == TASK_TAG || h->c->task == TASK_FILL_MASK;
    size_t n = h->max_rows = per_token ? max_tokens : max_inputs, all;
    if (size_mul(n, h->n_out, &all)) return err_nomem(err);
    h->picked = mem_calloc64(n * h->c->n_embd, sizeof(float));
    h->hidden = mem_calloc64(n * (h->dense.n_parts ? h->dense.rows : 1), sizeof(float));
    h->values = calloc(all, sizeof(float)); /* perhaps a vocabulary a token: touched as far as it is used */
    h->row = calloc(n, sizeof *h->row);
    return h->picked && h->hidden && h->values && h->row ? 0 : err_nomem(err);
}

void head_done(head *h)
{
    proj_done(&h->dense);
    proj_done(&h->out);
    norm_done(&h->norm);
    free(h->bias);
    free(h->picked);
    free(h->hidden);
    free(h->values);
    free(h->row);
    *h = (head){0};
}

/* ---- the step ----------------------------------------------------------------------------------------- */

size_t head_rows(const head *h, const net_input *it)
{
    switch (h->c->task) {
    case TASK_TAG: return it->n;
    case TASK_FILL_MASK: return it->at ? it->n_at : it->n;
    default: return 1;
    }
}

size_t head_lay_out(head *h, const net_input *items, size_t n_items, const uint32_t *first)
{
    size_t n = 0;
    for (size_t i = 0; i < n_items; i++) {
        size_t want = head_rows(h, &items[i]);
        bool some = h->c->task == TASK_FILL_MASK && items[i].at;
        assert(n + want <= h->max_rows);
        for (size_t k = 0; k < want; k++) {
            assert(!some || items[i].at[k] < items[i].n);
            h->row[n++] = first[i] + (some ? items[i].at[k] : (uint32_t)k);
        }
    }
    return n;
}

void head_point_out(const head *h, net_input *items, size_t n_items)
{
    const float *at = h->c->task == TASK_EMBED ? h->picked : h->values;
    for (size_t i = 0; i < n_items; i++) {
        items[i].values = at;
        items[i].rows = head_rows(h, &items[i]);
        items[i].cols = h->n_out;
        at += items[i].rows * items[i].cols;
    }
}

/* out[width] = mean of n rows, in order of position */
static void mean_rows(const vec_kernels *v, const float *x, size_t n, size_t width, float *out)
{
    memcpy(out, x, width * sizeof *out);
    for (size_t t = 1; t < n; t++) v->add(out, out, x + t * width, width);
    for (size_t i = 0; i < width; i++) out[i] /= (float)n;
}

static void normalize(const vec_kernels *v, float *x, size_t n)
{
    float length = sqrtf(v->dot(x, x, n));
    if (length < 1e-12f) length = 1e-12f;
    for (size_t i = 0; i < n; i++) x[i] /= length;
}

/* The row that stands for each input. */
static void pool(lane *l, const head *h, const uint32_t *first, rows *x, rows *picked)
{
    size_t i, end, width = x->width;
    rows_use(l, {x, READ_ALL}, {picked, WRITE_MINE});
    rows_share(l, picked, &i, &end);
    for (; i < end; i++) {
        size_t n = first[i + 1] - first[i];
        const float *in = rows_at(x, first[i]);
        float *out = rows_at(picked, i);
        switch (h->c->head.pool) {
        case POOL_MEAN: mean_rows(l->v, in, n, width, out); break;
        case POOL_CLS: memcpy(out, in, width * sizeof *out); break;
        case POOL_LAST: memcpy(out, in + (n - 1) * width, width * sizeof *out); break;
        }
        if (h->c->task == TASK_EMBED && h->c->head.normalize) normalize(l->v, out, width);
    }
}

static void head_pick(lane *l, const head *h, rows *x, rows *picked)
{
    size_t i, end;
    rows_use(l, {x, READ_ALL}, {picked, WRITE_MINE});
    rows_share(l, picked, &i, &end);
    for (; i < end; i++) memcpy(rows_at(picked, i), rows_at(x, h->row[i]), x->width * sizeof(float));
}

/* Dense layer, activation and norm, as far as there are any; where they end. */
static rows *refine(lane *l, const head *h, rows *in, rows *hidden)
{
    rows *at = in;
    if (h->dense.n_parts > 0) {
        blk_linear(l, &h->dense, in, hidden, false);
        blk_activate(l, h->c->head.act, false, hidden, hidden);
        at = hidden;
    }
    if (h->norm.w) blk_norm(l, &h->norm, at, at);
    return at;
}

static void add_bias(lane *l, const head *h, rows *values)
{
    size_t t, end;
    rows_use(l, {values, READ_MINE | WRITE_MINE});
    rows_share(l, values, &t, &end);
    for (; t < end; t++) l->v->add(rows_at(values, t), rows_at(values, t), h->bias, h->n_out);
}

void blk_head(lane *l, const head *h, const uint32_t *first, size_t n_rows, rows *x)
{
    model_task task = h->c->task;
    rows picked = rows_of(h->picked, n_rows, x->width);
    rows hidden = rows_of(h->hidden, n_rows, h->dense.n_parts ? h->dense.rows : 1);
    rows values = rows_of(h->values, n_rows, h->n_out), *in = x;
    if (n_rows == 0) return;
    if (task == TASK_FILL_MASK)
        head_pick(l, h, x, in = &picked);
    else if (task != TASK_TAG)
        pool(l, h, first, x, in = &picked);
    if (task == TASK_EMBED) return;
    in = refine(l, h, in, &hidden);
    blk_linear(l, h->tied ? h->tied : &h->out, in, &values, false);
    if (h->bias) add_bias(l, h, &values);
}
