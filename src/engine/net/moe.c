/* moe.c: rows sorted by expert; see moe.h. */
#include "net/moe.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* ---- loading ---------------------------------------------------------------------------------------- */

int moe_load(moe *e, const model *m, const char *prefix, isa set, shoal_err *err)
{
    const ffn_conf *c = &model_get_config(m)->ffn;
    *e = (moe){.c = c, .width = model_get_config(m)->n_embd};
    const char *const both[] = {"ffn_gate_exps", "ffn_up_exps"};
    int rc = proj_load(&e->router, m, prefix, (const char *[]){"ffn_gate_inp"}, 1, set, err);
    if (rc) return rc;
    e->in = calloc(c->n_expert, sizeof *e->in);
    e->down = calloc(c->n_expert, sizeof *e->down);
    if (!e->in || !e->down) return err_nomem(err);
    for (size_t i = 0; rc == 0 && i < c->n_expert; i++) {
        rc = proj_load_expert(&e->in[i], m, prefix, c->gated ? both : both + 1, c->gated ? 2 : 1, i,
                              c->n_expert, set, err);
        if (rc == 0)
            rc = proj_load_expert(&e->down[i], m, prefix, (const char *[]){"ffn_down_exps"}, 1, i,
                                  c->n_expert, set, err);
    }
    return rc;
}

void moe_done(moe *e)
{
    for (size_t i = 0; e->c && i < e->c->n_expert; i++) {
        if (e->in) proj_done(&e->in[i]);
        if (e->down) proj_done(&e->down[i]);
    }
    proj_done(&e->router);
    free(e->in);
    free(e->down);
    *e = (moe){0};
}

int moe_space_init(moe_space *s, const model_config *c, size_t max_tokens, shoal_err *err)
{
    const ffn_conf *f = &c->ffn;
    size_t n = max_tokens, k = n * f->n_used, ff = f->n_ff_expert;
    s->logits = mem_calloc64(n * f->n_expert, sizeof(float));
    s->weight = calloc(k, sizeof *s->weight);
    s->expert = calloc(k, sizeof *s->expert);
    s->place = calloc(k, sizeof *s->place);
    s->token = calloc(k, sizeof *s->token);
    s->first = calloc(f->n_expert + 1, sizeof *s->first);
    s->x = mem_calloc64(k * c->n_embd, sizeof(float));
    s->ff = mem_calloc64(k * ff * (f->gated ? 2 : 1), sizeof(float));
    s->act = f->gated ? mem_calloc64(k * ff, sizeof(float)) : NULL;
    s->out = mem_calloc64(k * c->n_embd, sizeof(float));
    if (!s->logits || !s->weight || !s->expert || !s->place || !s->token || !s->first || !s->x || !s->ff ||
        (f->gated && !s->act) || !s->out)
        return err_nomem(err);
    return acts_new(&s->acts, k, ff > c->n_embd ? ff : c->n_embd, err);
}

void moe_space_done(moe_space *s)
{
    acts_free(s->acts);
    void *all[] = {s->logits, s->weight, s->expert, s->place, s->token,
                   s->first,  s->x,      s->ff,     s->act,   s->out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    *s = (moe_space){0};
}

/* ---- the step --------------------------------------------------------------------------------------- */

/* One token's experts, in the order of their numbers, and what each counts. logits are overwritten. */
static void moe_choose(const moe *e, const vec_kernels *v, float *logits, uint32_t *expert, float *weight)
{
    size_t n = e->c->n_expert, k = e->c->n_used;
    float sum = 0;
    v->softmax(logits, n);
    for (size_t i = 0; i < k; i++) {
        size_t best = v->argmax(logits, n), at = i;
        float w = logits[best];
        sum += w;
        logits[best] = -(float)INFINITY;
        for (; at > 0 && expert[at - 1] > best; at--) {
            expert[at] = expert[at - 1];
            weight[at] = weight[at - 1];
        }
        expert[at] = (uint32_t)best;
        weight[at] = w;
    }
    if (!e->c->sum_to_one) return;
    for (size_t i = 0; i < k; i++) weight[i] /= sum;
}

/* Places by expert, then by token: a counting sort. */
static void sort_places(const moe *e, const moe_space *s, size_t n)
{
    size_t k = n * e->c->n_used;
    memset(s->first, 0, (e->c->n_expert + 1) * sizeof *s->first);
    for (size_t i = 0; i < k; i++) s->first[s->expert[i] + 1]++;
    for (size_t i = 0; i < e->c->n_expert; i++) s->first[i + 1] += s->first[i];
    for (size_t i = 0; i < k; i++) {
        size_t at = s->first[s->expert[i]]++;
        s->place[i] = (uint32_t)at;
        s->token[at] = (uint32_t)(i / e->c->n_used);
    }
    for (size_t i = e->c->n_expert; i > 0; i--) s->first[i] = s->first[i - 1];
    s->first[0] = 0;
}

/* One entry for all experts of a layer. */
static void profile_experts(const lane *l, const proj *experts, const proj *one, size_t part, size_t n_tokens,
                            const char *name)
{
    profile_entry *e = profile_to_matmul(l->profile, experts[0].part[part], one->part[part], n_tokens);
    if (!e->name[0]) buf_copy_str(e->name, sizeof e->name, name);
}

/* All members: each expert's rows of x times its matrices, with no barrier between experts. */
static void multiply(lane *l, const char *name, const proj *experts, size_t n_expert, const uint32_t *first,
                     rows *x, rows *y)
{
    for (size_t part = 0; part < experts[0].n_parts; part++) {
        dtype t = wmat_type(experts[0].part[part]);
        if (part == 0 || t != wmat_type(experts[0].part[part - 1])) {
            rows_load(l, t, x);
            rows_use(l, {y, WRITE_PARTS});
        }
        for (size_t i = 0; i < n_expert; i++) {
            size_t n = first[i + 1] - first[i];
            if (n > 0 && l->profile) profile_experts(l, experts, &experts[i], part, n, name);
            if (n > 0) rows_mul_some(l, experts[i].part[part], first[i], n, y, experts[i].first_row[part]);
        }
    }
}

static void moe_gather(lane *l, const moe_space *s, rows *x, rows *picked)
{
    size_t i, end;
    rows_use(l, {x, READ_ALL}, {picked, WRITE_MINE});
    rows_share(l, picked, &i, &end);
    for (; i < end; i++) memcpy(rows_at(picked, i), rows_at(x, s->token[i]), x->width * sizeof(float));
}

/* y = sum of weight * out over a token's places, by expert's number. */
static void add_up(lane *l, const moe *e, const moe_space *s, rows *out, rows *y)
{
    size_t t, end, k = e->c->n_used;
    rows_use(l, {out, READ_ALL}, {y, WRITE_MINE});
    rows_share(l, y, &t, &end);
    for (; t < end; t++) {
        float *sum = rows_at(y, t);
        memset(sum, 0, y->width * sizeof *sum);
        for (size_t i = t * k; i < (t + 1) * k; i++)
            l->v->axpy(sum, s->weight[i], rows_at(out, s->place[i]), y->width);
    }
}

/* The rows made here start with nothing in flight: each is first written behind a barrier of this call. */
void blk_moe(lane *l, const moe *e, const moe_space *s, rows *x, rows *y)
{
    const ffn_conf *c = e->c;
    size_t n = x->n, k = n * c->n_used, t, end;
    rows logits = rows_of(s->logits, n, c->n_expert), choice = {.n = n}, order = {.n = n};
    rows picked = rows_of(s->x, k, e->width), out = rows_of(s->out, k, e->width);
    rows ff = rows_of(s->ff, k, c->n_ff_expert * (c->gated ? 2 : 1)),
         act = rows_of(s->act, k, c->n_ff_expert);
    acts *before = l->acts;
    assert(x != y && x->width == e->width && y->width == e->width);
    blk_linear(l, &e->router, x, &logits, false);
    rows_profile(l, PROFILE_ROUTE);
    rows_use(l, {&logits, READ_MINE | WRITE_MINE}, {&choice, WRITE_MINE});
    rows_share(l, &logits, &t, &end);
    for (; t < end; t++) {
        moe_choose(e, l->v, rows_at(&logits, t), s->expert + t * c->n_used, s->weight + t * c->n_used);
    }
    rows_use(l, {&choice, READ_ALL}, {&order, WRITE_PARTS});
    if (member_index(l->m) == 0) sort_places(e, s, n);
    rows_use(l, {&order, READ_ALL});
    moe_gather(l, s, x, &picked);
    l->acts = s->acts;
    multiply(l, "ffn_up_exps", e->in, c->n_expert, s->first, &picked, &ff);
    blk_activate(l, c->act, c->gated, c->gated ? &act : &ff, &ff);
    multiply(l, "ffn_down_exps", e->down, c->n_expert, s->first, c->gated ? &act : &ff, &out);
    l->acts = before;
    rows_profile(l, PROFILE_ROUTE);
    add_up(l, e, s, &out, y);
}
