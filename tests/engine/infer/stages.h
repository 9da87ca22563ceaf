/* stages.h: a model in stages within one process, for tests: rows are handed over in memory. */
#ifndef TESTS_INFER_STAGES_H
#define TESTS_INFER_STAGES_H

#include "helper.h"
#include "infer/shards.h"

#define STAGES_MAX 8

typedef struct stages {
    shards table;
    model *m[STAGES_MAX];
    stage *s[STAGES_MAX]; /* those behind the first */
    size_t n, n_embd;
    float *back[SHARDS_MAX]; /* steps that are under way: their wanted rows */
    size_t n_back[SHARDS_MAX], first_back, under_way, most_under_way;
    unsigned n_received, n_received_full; /* full: every stage had a step to compute or to receive */
    unsigned n_sent, lose_every, n_lost;  /* every so many steps a stage is lost; 0: never */
    unsigned most_lost;                   /* but no more often; 0: for ever */
    bool lost;
    int64_t spoil; /* the step whose rows come back as no numbers; -1: none */
} stages;

static inline void stages_drop(stages *x)
{
    for (; x->under_way > 0; x->under_way--, x->first_back++) free(x->back[x->first_back % SHARDS_MAX]);
}

static inline bool stages_ready(void *user, unsigned wait_ms)
{
    stages *x = user;
    bool there = !x->lost;
    (void)wait_ms;
    stages_drop(there ? &(stages){0} : x);
    x->lost = false;
    return there;
}

static inline int stages_send(void *user, const stage_step *step, const float *rows, size_t n_rows)
{
    stages *x = user;
    x->n_sent++;
    bool may = x->most_lost == 0 || x->n_lost < x->most_lost;
    if (may && x->lose_every && x->n_sent % x->lose_every == 0) {
        x->lost = true;
        x->n_lost++;
        for (size_t i = 0; i < x->n; i++) stage_reset(x->s[i]);
        return SHOAL_EUNAVAILABLE;
    }
    assert_true(x->under_way < x->table.n_stages);
    float *all = malloc((n_rows + 1) * x->n_embd * sizeof *all);
    memcpy(all, rows, n_rows * x->n_embd * sizeof *all);
    for (size_t i = 0; i < x->n; i++) must(stage_run(x->s[i], step, all, n_rows, &err));
    size_t at = (x->first_back + x->under_way++) % SHARDS_MAX;
    if (x->under_way > x->most_under_way) x->most_under_way = x->under_way;
    x->n_back[at] = stage_keep_wanted(step, all, x->n_embd);
    x->back[at] = all;
    if (x->spoil == (int64_t)x->n_sent && x->n_back[at] > 0) all[0] = NAN;
    return 0;
}

static inline int stages_receive(void *user, float *rows, size_t n_wanted)
{
    stages *x = user;
    size_t at = x->first_back % SHARDS_MAX;
    assert_true(x->under_way > 0);
    x->n_received++;
    x->n_received_full += x->under_way == x->table.n_stages;
    assert_int_equal(x->n_back[at], n_wanted);
    memcpy(rows, x->back[at], n_wanted * x->n_embd * sizeof *rows);
    free(x->back[at]);
    x->first_back++;
    x->under_way--;
    return 0;
}

/* The model at path, cut in front of the layers cuts[0 .. n_cuts). */
static inline void stages_open(stages *x, const char *path, const size_t *cuts, size_t n_cuts,
                               engine_options o)
{
    *x = (stages){.n = n_cuts, .spoil = -1};
    x->table = (shards){.n_stages = n_cuts + 1,
                        .part = {0, cuts[0]},
                        .n_ctx = SIZE_MAX,
                        .n_pages = SIZE_MAX,
                        .max_items = SIZE_MAX,
                        .max_tokens = SIZE_MAX,
                        .user = x,
                        .ready = stages_ready,
                        .send = stages_send,
                        .receive = stages_receive};
    for (size_t i = 0; i < n_cuts; i++) {
        stage_facts f;
        must(model_open(&x->m[i], path, &(model_options){.no_tokenizer = true}, &err));
        size_t end = i + 1 < n_cuts ? cuts[i + 1] : model_get_config(x->m[i])->n_layer;
        stage_options so = {.part = {cuts[i], end},
                            .n_threads = 1 + (int)(i % 2),
                            .n_ctx = o.n_ctx,
                            .max_batch = o.max_batch,
                            .kv_bytes = o.kv_bytes,
                            .kv_type = o.kv_type ? o.kv_type : rig_kv_type};
        must(stage_new(&x->s[i], x->m[i], &so, &err));
        stage_get_facts(x->s[i], &f);
        x->n_embd = f.n_embd;
        if (f.n_ctx < x->table.n_ctx) x->table.n_ctx = f.n_ctx;
        if (f.n_pages < x->table.n_pages) x->table.n_pages = f.n_pages;
        if (f.max_items < x->table.max_items) x->table.max_items = f.max_items;
        if (f.max_tokens < x->table.max_tokens) x->table.max_tokens = f.max_tokens;
    }
}

static inline void stages_close(stages *x)
{
    stages_drop(x);
    for (size_t i = 0; i < x->n; i++) {
        stage_free(x->s[i]);
        model_free(x->m[i]);
    }
}

#endif
