/* recurrent.c: stacked recurrent cells over series, and a classifier of where they end: LSTM (Hochreiter &
 * Schmidhuber 1997) and GRU (Cho et al. 2014, arXiv:1406.1078, with the reset behind the product, as PyTorch
 * and cuDNN have it).
 *
 * What a cell makes of its input is one product over all rows of all series; what it makes of its state goes
 * row by row, each series by one member. A row's bits depend on the rows before it alone, so a series that
 * comes in pieces, its state carried along, has the bits of the whole. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/progress.h"
#include "net/block.h"
#include "net/passes.h"

#define ROWS_MAX 8192 /* of one series at once; longer ones come in pieces */

typedef struct cell {
    proj in;      /* [gates * hidden][n_in], with its bias */
    float *w, *b; /* [gates * hidden][hidden] and its bias, of the state */
} cell;

typedef struct recurrent {
    const model_config *c;
    net_limits limits;
    size_t n_gates, hidden;
    cell *cells; /* [n_layer] */
    proj out;
    acts *acts;
    /* one step's work space */
    float *x, *gates, *h;   /* [max_positions][n_input], [n_gates * hidden], [hidden] */
    float *picked, *values; /* [max_positions][hidden], [n_labels] */
    float *work;            /* [members][(n_gates + 2) * hidden] */
    /* [max_inputs + 1]: each series' first row; [max_positions]: rows that are wanted. */
    uint32_t *first, *row;
} recurrent;

typedef struct step {
    recurrent *r;
    net_input *items;
    size_t n_items, n_rows, n_wanted;
} step;

static void recurrent_free(net *n);

size_t net_state_floats(const model_config *c)
{
    return c->n_layer * c->series.n_hidden * (c->series.cell == CELL_LSTM ? 2 : 1);
}

/* ---- loading ------------------------------------------------------------------------------------------ */

static int load_cell(recurrent *r, cell *k, const model *m, size_t i, isa set, shoal_err *err)
{
    char prefix[32], name[64];
    size_t rows = r->n_gates * r->hidden, cols = i ? r->hidden : r->c->series.n_input;
    snprintf(prefix, sizeof prefix, "rnn.%zu.", i);
    int rc = proj_load(&k->in, m, prefix, (const char *[]){"w_ih"}, 1, set, err);
    if (rc) return rc;
    if (k->in.rows != rows || k->in.cols != cols)
        return err_set(err, SHOAL_EFORMAT, "%sw_ih.weight should be %zu rows of %zu", prefix, rows, cols);
    snprintf(name, sizeof name, "%sw_hh.weight", prefix);
    if ((rc = proj_load_table(&k->w, m, name, rows, r->hidden, err))) return rc;
    snprintf(name, sizeof name, "%sw_hh.bias", prefix);
    return proj_load_vector(&k->b, m, name, rows, err);
}

static int load_weights(recurrent *r, const model *m, isa set, shoal_err *err)
{
    r->cells = calloc(r->c->n_layer, sizeof *r->cells);
    if (!r->cells) return err_nomem(err);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->c->n_layer; i++) rc = load_cell(r, &r->cells[i], m, i, set, err);
    if (rc == 0) rc = proj_load(&r->out, m, "", (const char *[]){"cls.output"}, 1, set, err);
    if (rc == 0 && (r->out.rows != r->c->head.n_labels || r->out.cols != r->hidden))
        rc = err_set(err, SHOAL_EFORMAT, "cls.output.weight should be %zu rows of %zu", r->c->head.n_labels,
                     r->hidden);
    return rc;
}

static int make_space(recurrent *r, size_t n_members, shoal_err *err)
{
    size_t n = r->limits.max_positions, in = r->c->series.n_input, h = r->hidden;
    r->x = mem_calloc64(n * in, sizeof(float));
    r->gates = mem_calloc64(n * r->n_gates * h, sizeof(float));
    r->h = mem_calloc64(n * h, sizeof(float));
    r->picked = mem_calloc64(n * h, sizeof(float));
    r->values = mem_calloc64(n * r->c->head.n_labels, sizeof(float));
    r->work = mem_calloc64(n_members * (r->n_gates + 2) * h, sizeof(float));
    r->first = calloc(r->limits.max_inputs + 1, sizeof *r->first);
    r->row = calloc(n, sizeof *r->row);
    if (!r->x || !r->gates || !r->h || !r->picked || !r->values || !r->work || !r->first || !r->row)
        return err_nomem(err);
    return acts_new(&r->acts, n, in > h ? in : h, err);
}

static int recurrent_load(net **ret, const model *m, team *t, const net_limits *limits, shoal_err *err)
{
    recurrent *r = calloc(1, sizeof *r);
    if (!r) return err_nomem(err);
    r->c = model_get_config(m);
    r->limits = *limits;
    r->n_gates = r->c->series.cell == CELL_LSTM ? 4 : 3;
    r->hidden = r->c->series.n_hidden;
    int rc = load_weights(r, m, team_isa(t), err);
    if (rc == 0) rc = make_space(r, (size_t)team_size(t), err);
    if (rc) {
        recurrent_free((net *)r);
        return rc;
    }
    *ret = (net *)r;
    return 0;
}

static void recurrent_free(net *n)
{
    recurrent *r = (recurrent *)n;
    if (!r) return;
    for (size_t i = 0; r->cells && i < r->c->n_layer; i++) {
        proj_done(&r->cells[i].in);
        free(r->cells[i].w);
        free(r->cells[i].b);
    }
    proj_done(&r->out);
    acts_free(r->acts);
    void *all[] = {r->cells, r->x, r->gates, r->h, r->picked, r->values, r->work, r->first, r->row};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(r);
}

/* ---- the cells ---------------------------------------------------------------------------------------- */

static float sigmoid(float x)
{
    return 1.0f / (1.0f + math_expf(-x));
}

/* One row: input, forget, cell, output; x: what the input gave, u: what the state gave, [4][n] both. */
static void lstm_row(const vec_kernels *v, const float *x, float *u, float *h, float *c, size_t n)
{
    for (size_t i = 0; i < 4 * n; i++) u[i] += x[i];
    v->tanh(u + 2 * n, n);
    for (size_t i = 0; i < n; i++) {
        float keep = sigmoid(u[n + i]) * c[i], add = sigmoid(u[i]) * u[2 * n + i];
        h[i] = c[i] = keep + add;
    }
    v->tanh(h, n);
    for (size_t i = 0; i < n; i++) h[i] *= sigmoid(u[3 * n + i]);
}

/* One row: reset, update, new, [3][n]. */
static void gru_row(const vec_kernels *v, const float *x, float *u, float *h, size_t n)
{
    float *fresh = u + 2 * n;
    for (size_t i = 0; i < n; i++) fresh[i] = fresh[i] * sigmoid(u[i] + x[i]) + x[2 * n + i];
    v->tanh(fresh, n);
    for (size_t i = 0; i < n; i++) {
        float z = sigmoid(u[n + i] + x[n + i]);
        h[i] = (1.0f - z) * fresh[i] + z * h[i];
    }
}

/* All rows of one series through cell i. work: [(n_gates + 2) * hidden] */
static void run_series(const step *s, const vec_kernels *v, size_t i, size_t item, float *work)
{
    recurrent *r = s->r;
    const cell *k = &r->cells[i];
    bool lstm = r->c->series.cell == CELL_LSTM;
    size_t n = r->hidden, gates = r->n_gates * n, kept = lstm ? 2 * n : n;
    float *state = work, *u = work + 2 * n, *carried = s->items[item].state;
    if (carried)
        memcpy(state, carried + i * kept, kept * sizeof *state);
    else
        memset(state, 0, kept * sizeof *state);
    for (size_t t = r->first[item]; t < r->first[item + 1]; t++) {
        const float *x = r->gates + t * gates;
        for (size_t j = 0; j < gates; j++) u[j] = v->dot(k->w + j * n, state, n) + k->b[j];
        if (lstm)
            lstm_row(v, x, u, state, state + n, n);
        else
            gru_row(v, x, u, state, n);
        memcpy(r->h + t * n, state, n * sizeof *state);
        progress_add(gates * n);
    }
    if (carried) memcpy(carried + i * kept, state, kept * sizeof *state);
}

/* ---- the step ------------------------------------------------------------------------------------------ */

static void read_series(lane *l, const step *s, rows *x)
{
    size_t n_members = (size_t)member_count(l->m);
    rows_use(l, {x, WRITE_PARTS});
    for (size_t i = (size_t)member_index(l->m); i < s->n_items; i += n_members)
        memcpy(rows_at(x, s->r->first[i]), s->items[i].features,
               s->items[i].n_features * x->width * sizeof(float));
}

static void run_cell(lane *l, const step *s, size_t i, rows *in, rows *gates, rows *h)
{
    size_t n_members = (size_t)member_count(l->m), me = (size_t)member_index(l->m);
    float *work = s->r->work + me * (s->r->n_gates + 2) * s->r->hidden;
    blk_linear(l, &s->r->cells[i].in, in, gates, false);
    rows_use(l, {gates, READ_ALL}, {h, WRITE_PARTS});
    for (size_t item = me; item < s->n_items; item += n_members) run_series(s, l->v, i, item, work);
}

static void recurrent_run_step(void *arg, team_member *m)
{
    const step *s = arg;
    recurrent *r = s->r;
    lane l;
    size_t i, end;
    rows_open(&l, m, r->acts);
    rows x = rows_of(r->x, s->n_rows, r->c->series.n_input), h = rows_of(r->h, s->n_rows, r->hidden);
    rows gates = rows_of(r->gates, s->n_rows, r->n_gates * r->hidden);
    rows picked = rows_of(r->picked, s->n_wanted, r->hidden);
    rows values = rows_of(r->values, s->n_wanted, r->c->head.n_labels);
    read_series(&l, s, &x);
    for (i = 0; i < r->c->n_layer; i++) run_cell(&l, s, i, i ? &h : &x, &gates, &h);
    rows_use(&l, {&h, READ_ALL}, {&picked, WRITE_MINE});
    for (rows_share(&l, &picked, &i, &end); i < end; i++)
        memcpy(rows_at(&picked, i), rows_at(&h, r->row[i]), h.width * sizeof(float));
    blk_linear(&l, &r->out, &picked, &values, false);
}

static void lay_out(step *s)
{
    recurrent *r = s->r;
    for (size_t i = 0; i < s->n_items; i++) {
        size_t n = s->items[i].n_features;
        assert(n > 0 && s->items[i].width == r->c->series.n_input &&
               s->n_rows + n <= r->limits.max_positions);
        r->first[i] = (uint32_t)s->n_rows;
        s->n_rows += n;
        for (size_t k = s->items[i].every ? 0 : n - 1; k < n; k++)
            r->row[s->n_wanted++] = (uint32_t)(r->first[i] + k);
    }
    r->first[s->n_items] = (uint32_t)s->n_rows;
}

static void recurrent_encode(net *n, team *t, net_input *items, size_t n_items)
{
    recurrent *r = (recurrent *)n;
    step s = {.r = r, .items = items, .n_items = n_items};
    const float *at = r->values;
    assert(n_items <= r->limits.max_inputs);
    if (n_items == 0) return;
    lay_out(&s);
    team_run(t, recurrent_run_step, &s);
    for (size_t i = 0; i < n_items; i++) {
        items[i].values = at;
        items[i].rows = items[i].every ? items[i].n_features : 1;
        items[i].cols = r->c->head.n_labels;
        at += items[i].rows * items[i].cols;
    }
}

static int recurrent_positions(const model_config *c, const net_input *in, size_t *ret, shoal_err *err)
{
    if (!in->features) return err_set(err, SHOAL_EINVALID, "this model reads series of numbers, not text");
    if (in->width != c->series.n_input)
        return err_set(err, SHOAL_EINVALID, "rows of %zu numbers; this model reads rows of %zu", in->width,
                       c->series.n_input);
    if (in->n_features == 0) return err_set(err, SHOAL_EINVALID, "the series is empty");
    if (in->n_features > ROWS_MAX)
        return err_set(err, SHOAL_ELIMIT, "a series of %zu rows; at most %d are read at once", in->n_features,
                       ROWS_MAX);
    *ret = in->n_features;
    return 0;
}

static size_t recurrent_longest(const model_config *c, size_t n_ctx)
{
    (void)c, (void)n_ctx;
    return ROWS_MAX;
}

const net_ops recurrent_ops = {.name = "recurrent",
                               .roles = NET_ENCODES,
                               .load = recurrent_load,
                               .free = recurrent_free,
                               .encode = recurrent_encode,
                               .positions = recurrent_positions,
                               .longest = recurrent_longest};
