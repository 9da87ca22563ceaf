/* stage.c: the layers of a stage and the pages that its steps name; see stage.h. */
#include "infer/stage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/sys.h"
#include "infer/weights_mapping.h"
#include "infer/step_cost.h"
#include "infer/step_cost_file.h"
#include "infer/core_lease.h"

#define STEP_TOKENS 256      /* beside the batch; batch.h's BATCH_CHUNK_MAX */
#define SOON_NS     5000000u /* what a step asks the arbiter for */

struct stage {
    const model_config *c;
    const net_ops *ops;
    weights_mapping mapping;
    team *team;
    step_cost step_cost;
    step_cost_file step_cost_file;
    kv *kv;
    core_lease lease;
    stage_facts facts;
    net_item *items; /* [max_items], as is the next */
    kv_seq *seqs;
    uint32_t *writer; /* [n_pages]: which item of the step writes the page, counted from 1; 0: none */
    bool *left;       /* [states + 1]: the step leaves this state */
};

int stage_check_part(const model_config *c, net_layers part, shoal_err *err)
{
    const net_ops *ops = net_ops_for(c, err);
    if (!ops) return SHOAL_EUNSUPPORTED;
    if (!ops->walk)
        return err_set(err, SHOAL_EINVALID,
                       "only networks that generate from their prompt alone can be cut "
                       "into stages");
    if (part.first >= part.end || part.end > c->n_layer)
        return err_set(err, SHOAL_EINVALID,
                       "layers %zu:%zu of a model with %zu: give FIRST:END, with END "
                       "behind the last of them",
                       part.first, part.end, c->n_layer);
    return 0;
}

static int make_cache(stage *s, const model *m, const stage_options *o, shoal_err *err)
{
    kv_shape shape = s->ops->kv_part(m, o->part);
    int rc = kv_shape_keep_as(&shape, o->kv_type, err);
    if (rc) return rc;
    rc = kv_new(&s->kv, &shape, o->kv_bytes ? o->kv_bytes : KV_DEFAULT_BYTES, err);
    if (rc) return rc;
    size_t max_batch = o->max_batch ? o->max_batch : 32, n_ctx = s->c->n_ctx;
    if (o->n_ctx && o->n_ctx < n_ctx) n_ctx = o->n_ctx;
    s->facts = (stage_facts){.first = o->part.first,
                             .end = o->part.end,
                             .n_layer = s->c->n_layer,
                             .n_embd = s->c->n_embd,
                             .n_ctx = n_ctx,
                             .n_pages = s->kv->n_pages,
                             .max_items = max_batch,
                             .max_tokens = max_batch + STEP_TOKENS};
    s->items = calloc(max_batch, sizeof *s->items);
    s->seqs = calloc(max_batch, sizeof *s->seqs);
    s->writer = calloc(s->kv->n_pages, sizeof *s->writer);
    s->left = calloc((size_t)s->kv->states.n + 1, sizeof *s->left);
    return s->items && s->seqs && s->writer && s->left ? 0 : err_nomem(err);
}

static int make_team(stage *s, int n_threads, isa set, shoal_err *err)
{
    int rc = team_new(&s->team, n_threads, set, err);
    if (rc == 0) core_lease_watch(&s->lease, s->team);
    s->step_cost.n_members = n_threads;
    s->step_cost.n_cores = sys_core_count();
    return rc;
}

static int stage_start(stage *s, model *m, const stage_options *o, shoal_err *err)
{
    isa set;
    int rc = stage_check_part(s->c, o->part, err);
    if (rc) return rc;
    if (o->part.first == 0)
        return err_set(err, SHOAL_EINVALID,
                       "layers from 0 on belong to the first stage, which needs the "
                       "addresses of the others");
    s->ops = net_ops_for(s->c, err);
    s->lease.arbiter = o->arbiter;
    if ((rc = isa_choose(&set, err)) != 0) return rc;
    rc = make_team(s, o->n_threads > 0 ? o->n_threads : sys_core_count(), set, err);
    if (rc == 0) rc = make_cache(s, m, o, err);
    if (rc) return rc;
    net_limits limits = {
        .part = o->part, .n_ctx = s->facts.n_ctx, .max_tokens = s->facts.max_tokens, .max_rows = 1};
    rc = weights_mapping_load(&s->mapping, s->ops, m, s->team, &limits, err);
    if (rc == 0)
        step_cost_file_open(&s->step_cost_file, &s->mapping.store, &s->mapping.head, set, &s->step_cost);
    return rc;
}

int stage_new(stage **ret, model *m, const stage_options *o, shoal_err *err)
{
    stage *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->c = model_get_config(m);
    int rc = stage_start(s, m, o, err);
    if (rc) {
        stage_free(s);
        return rc;
    }
    model_drop_weights(m);
    *ret = s;
    return 0;
}

void stage_free(stage *s)
{
    if (!s) return;
    step_cost_file_close(&s->step_cost_file, &s->mapping.store, &s->step_cost);
    weights_mapping_free(&s->mapping, s->ops);
    kv_free(s->kv);
    team_free(s->team);
    free(s->items);
    free(s->seqs);
    free(s->writer);
    free(s->left);
    free(s);
}

void stage_get_facts(const stage *s, stage_facts *ret)
{
    *ret = s->facts;
}

void stage_reset(stage *s)
{
    if (s->kv->memory_bytes == 0) return;
    madvise(s->kv->memory, s->kv->memory_bytes, MADV_DONTNEED); /* anonymous: zeros from now on */
}

/* ---- what a step may be --------------------------------------------------------------------------- */

size_t stage_rows(const stage_step *step)
{
    size_t n = 0;
    for (size_t i = 0; i < step->n_items; i++) n += step->items[i].n;
    return n;
}

size_t stage_wanted(const stage_step *step)
{
    size_t n = 0;
    for (size_t i = 0; i < step->n_items; i++) n += step->items[i].n_out;
    return n;
}

static int check_item(const stage *s, const stage_item *it, size_t i, size_t n_left, shoal_err *err)
{
    const stage_facts *f = &s->facts;
    if (it->n == 0 || it->n > n_left || it->n_out > it->n)
        return err_set(err, SHOAL_EINVALID, "item %zu has %zu rows, %zu wanted, and %zu rows are left", i,
                       it->n, it->n_out, n_left);
    if (it->position > f->n_ctx || it->n > f->n_ctx - it->position)
        return err_set(err, SHOAL_EINVALID, "item %zu computes positions %zu to %zu of a context of %zu", i,
                       it->position, it->position + it->n, f->n_ctx);
    if (it->n_pages != (it->position + it->n + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS)
        return err_set(err, SHOAL_EINVALID, "item %zu brings %zu pages for %zu positions", i, it->n_pages,
                       it->position + it->n);
    for (size_t k = 0; k < it->n_pages; k++)
        if (it->pages[k] >= f->n_pages)
            return err_set(err, SHOAL_EINVALID, "item %zu names page %u; there are %zu", i, it->pages[k],
                           f->n_pages);
    return 0;
}

/* The state that it goes on from, and where it leaves others. */
static int check_states(const stage *s, const stage_item *it, size_t i, shoal_err *err)
{
    size_t n = s->kv->states.n, last = it->position;
    if (n == 0) return 0;
    if (it->state > n || (it->state == SEQ_STATE_NONE) != (it->position == 0))
        return err_set(err, SHOAL_EINVALID, "item %zu goes on at position %zu from state %u; there are %zu",
                       i, it->position, it->state, n);
    for (size_t k = 0; k < it->n_marks; k++) {
        const seq_mark *m = &it->marks[k];
        if (m->state == SEQ_STATE_NONE || m->state > n || m->position <= last ||
            m->position > it->position + it->n)
            return err_set(err, SHOAL_EINVALID,
                           "item %zu leaves state %u behind position %u; there are %zu, and it computes "
                           "positions %zu to %zu, each once",
                           i, m->state, m->position, n, it->position, it->position + it->n);
        last = m->position;
    }
    return 0;
}

/* Pages of item i from `from` on: noted as its own; false when another has one. */
static bool claim(stage *s, const stage_item *it, size_t i, size_t from)
{
    for (size_t k = from; k < it->n_pages; k++) {
        uint32_t *w = &s->writer[it->pages[k]];
        if (*w != 0) return false;
        *w = (uint32_t)i + 1;
    }
    return true;
}

/* What one item writes no other reads or writes, nor itself as another position: items run side by side. */
static bool apart(stage *s, const stage_step *step)
{
    bool ok = true;
    for (size_t i = 0; ok && i < step->n_items; i++)
        ok = claim(s, &step->items[i], i, step->items[i].position / KV_PAGE_TOKENS);
    for (size_t i = 0; ok && i < step->n_items; i++)
        for (size_t k = 0; ok && k < step->items[i].position / KV_PAGE_TOKENS; k++)
            ok = s->writer[step->items[i].pages[k]] == 0;
    for (size_t i = 0; i < step->n_items; i++)
        for (size_t k = 0; k < step->items[i].n_pages; k++) s->writer[step->items[i].pages[k]] = 0;
    return ok;
}

/* No state is left twice, or left and read. */
static bool states_apart(stage *s, const stage_step *step)
{
    bool ok = true;
    if (s->kv->states.n == 0) return true;
    for (size_t i = 0; i < step->n_items; i++)
        for (size_t k = 0; k < step->items[i].n_marks; k++) {
            bool *left = &s->left[step->items[i].marks[k].state];
            ok = ok && !*left;
            *left = true;
        }
    for (size_t i = 0; i < step->n_items; i++) ok = ok && !s->left[step->items[i].state];
    for (size_t i = 0; i < step->n_items; i++)
        for (size_t k = 0; k < step->items[i].n_marks; k++) s->left[step->items[i].marks[k].state] = false;
    return ok;
}

static int check_step(stage *s, const stage_step *step, size_t n_rows, shoal_err *err)
{
    if (step->n_items > s->facts.max_items || n_rows > s->facts.max_tokens)
        return err_set(err, SHOAL_EINVALID,
                       "a step of %zu items and %zu rows is over the %zu items and %zu "
                       "rows there is room for: give all stages the same --max-batch",
                       step->n_items, n_rows, s->facts.max_items, s->facts.max_tokens);
    size_t left = n_rows;
    for (size_t i = 0; i < step->n_items; i++) {
        int rc = check_item(s, &step->items[i], i, left, err);
        if (rc == 0) rc = check_states(s, &step->items[i], i, err);
        if (rc) return rc;
        left -= step->items[i].n;
    }
    if (left > 0) return err_set(err, SHOAL_EINVALID, "%zu rows belong to no item", left);
    for (size_t i = 0; i < step->n_copies; i++)
        if (step->copies[i].from >= s->facts.n_pages || step->copies[i].to >= s->facts.n_pages)
            return err_set(err, SHOAL_EINVALID, "page %u is to be copied to %u; there are %zu",
                           step->copies[i].from, step->copies[i].to, s->facts.n_pages);
    if (!apart(s, step))
        return err_set(err, SHOAL_EINVALID, "a page is written by one item and used by another");
    if (!states_apart(s, step))
        return err_set(err, SHOAL_EINVALID, "a state is left by one item and used by another");
    return 0;
}

/* ---- the step ------------------------------------------------------------------------------------- */

static void copy_pages(stage *s, const stage_step *step)
{
    if (s->kv->page_bytes == 0) return; /* its layers have nothing but states */
    for (size_t i = 0; i < step->n_copies; i++) {
        stage_copy c = step->copies[i];
        if (c.from != c.to)
            memcpy(s->kv->memory + c.to * s->kv->page_bytes, s->kv->memory + c.from * s->kv->page_bytes,
                   s->kv->page_bytes);
    }
}

/* Prompts want the rows of few of their tokens; streams, and guesses, of all. */
static step_kind stage_kind_of(const stage_step *step)
{
    for (size_t i = 0; i < step->n_items; i++)
        if (step->items[i].n_out < step->items[i].n) return STEP_PREFILL;
    return STEP_DECODE;
}

static void walk(stage *s, const stage_step *step, float *rows, size_t n_rows)
{
    step_kind k = stage_kind_of(step);
    team_use(s->team, core_lease_members(&s->lease, &s->step_cost, k, n_rows));
    core_lease_begin(&s->lease, clock_ns() + SOON_NS, team_size(s->team));
    s->ops->walk(s->mapping.net, s->team, s->kv, s->items, step->n_items, rows);
    step_cost_note(&s->step_cost, k, n_rows, team_size(s->team), core_lease_end(&s->lease));
}

int stage_run(stage *s, const stage_step *step, float *rows, size_t n_rows, shoal_err *err)
{
    int rc = check_step(s, step, n_rows, err);
    if (rc) return rc;
    copy_pages(s, step);
    for (size_t i = 0; i < step->n_items; i++) {
        const stage_item *it = &step->items[i];
        s->seqs[i] = (kv_seq){.pages = (uint32_t *)it->pages,
                              .n_pages = it->n_pages,
                              .n_tokens = it->position,
                              .state = it->state,
                              .marks = (seq_mark *)it->marks,
                              .n_marks = s->kv->states.n > 0 ? it->n_marks : 0};
        s->items[i] = (net_item){.seq = &s->seqs[i], .n = it->n};
    }
    walk(s, step, rows, n_rows);
    return 0;
}

size_t stage_keep_wanted(const stage_step *step, float *rows, size_t n_embd)
{
    size_t at = 0, kept = 0;
    for (size_t i = 0; i < step->n_items; i++) {
        const stage_item *it = &step->items[i];
        at += it->n;
        memmove(rows + kept * n_embd, rows + (at - it->n_out) * n_embd, it->n_out * n_embd * sizeof *rows);
        kept += it->n_out;
    }
    return kept;
}
