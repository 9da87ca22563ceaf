/* stage.h: some layers of a network, in a process that has nothing else of it.
 *
 * A network that is too large or too slow for one machine is cut between layers. The first stage is an engine
 * (engine_options.shards): it has the embeddings, the head, all requests and the page tables. Every other
 * stage is one of these. It knows no sequence, no token and no request: a step names, for each item, the
 * pages of the cache that are its past, the state behind them (seq_state.h) and the positions to compute, and
 * brings the stream's rows, which become what the stage's layers make of them. So prefixes that are shared, chunks, preemption, beams and
 * replays need nothing here, and a stage that died is replaced by an empty one. How many threads a step gets
 * is learnt here (step_cost.h), and kept for the next process.
 *
 *     stage_new(&s, model, &(stage_options){.part = {8, 16}}, &err);
 *     stage_run(s, &step, rows, n_rows, &err);            rows[n_rows][n_embd], in place
 *     n = stage_keep_wanted(&step, rows, n_embd);         the last stage gives back no others
 *
 * Steps may come from another machine: everything but the rows' values is checked before anything is touched.
 * The values may be any bits, as weights may: what is not finite stays so, and the first stage ends the
 * sequence that it belongs to, and no other. One thread uses a stage. */
#ifndef INFER_STAGE_H
#define INFER_STAGE_H

#include "net/net.h"

typedef struct stage stage;

/* One sequence's part of a step: positions [position, position + n). */
typedef struct stage_item {
    const uint32_t *pages; /* [n_pages], of positions 0 ... up to its last */
    size_t n_pages, position, n;
    size_t n_out; /* the last n_out of them are wanted by the head */
    /* Of a model whose layers have states: the one behind `position`, and where new ones are left. */
    seq_state state;
    const seq_mark *marks; /* [n_marks], by position */
    size_t n_marks;
} stage_item;

typedef struct stage_copy {
    uint32_t from, to; /* pages */
} stage_copy;

typedef struct stage_step {
    const stage_copy *copies; /* done first, in order */
    const stage_item *items;  /* their rows follow one another */
    size_t n_copies, n_items;
} stage_step;

typedef struct stage_options {
    net_layers part;  /* not from layer 0 */
    int n_threads;    /* 0: sys_core_count() */
    size_t n_ctx;     /* 0: the model's */
    size_t max_batch; /* as the first stage has it; 0: 32 */
    size_t kv_bytes;  /* hard ceiling of its cache; 0: 64 MiB */
    kv_type kv_type;  /* as the first stage has it */
    arbiter *arbiter; /* NULL: the machine is ours */
} stage_options;

/* What a first stage has to know of it. */
typedef struct stage_facts {
    size_t first, end, n_layer; /* its layers, of so many */
    size_t n_embd, n_ctx, n_pages, max_items, max_tokens;
} stage_facts;

/* Loads its layers (packed, then model_drop_weights); m must outlive it. SHOAL_EINVALID: no such layers, or a
 * network that cannot be cut. */
int stage_new(stage **ret, model *m, const stage_options *o, shoal_err *err);
void stage_free(stage *s); /* NULL is fine */
void stage_get_facts(const stage *s, stage_facts *ret);
/* rows[n_rows][n_embd], in place. SHOAL_EINVALID says what is wrong with the step; nothing was done then. */
int stage_run(stage *s, const stage_step *step, float *rows, size_t n_rows, shoal_err *err);
/* Another first stage: what the cache holds is gone. */
void stage_reset(stage *s);

/* Rows that the step computes, resp. wants; the sums are of sizes that were checked. */
size_t stage_rows(const stage_step *step);
size_t stage_wanted(const stage_step *step);
/* Move the wanted rows to the front; how many there are. */
size_t stage_keep_wanted(const stage_step *step, float *rows, size_t n_embd);

/* SHOAL_EINVALID unless the network can be cut there: 0 < first < end <= n_layer, or [0, end) of a first
 * stage; of what decodes without a source. */
int stage_check_part(const model_config *c, net_layers part, shoal_err *err);

#endif
