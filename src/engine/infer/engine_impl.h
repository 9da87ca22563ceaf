/* engine_impl.h: what the files of the engine share: engine.c starts loop.c, which calls encode.c and
 * decode.c, these step.c. Inside infer/ only. */
#ifndef INFER_ENGINE_IMPL_H
#define INFER_ENGINE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "infer/batch.h"
#include "infer/decoding/draft.h"
#include "infer/engine.h"
#include "infer/weights_mapping.h"
#include "infer/input.h"
#include "infer/step_cost_file.h"
#include "infer/job_queue.h"
#include "infer/session.h"
#include "infer/shards.h"
#include "infer/core_lease.h"
#include "net/adapters.h"
#include "net/net.h"

/* Weights may be any bits, but no answer is made of such numbers. */
#define ENGINE_NOT_FINITE "the model computed a value that is not a finite number; its weights may be damaged"

#define PROBE_ROWS 64 /* rows of logits that engine_logits gets a step, */
#define DRAFT_ROWS 32 /* and that guesses get, of the same */
/* Positions of a ragged batch, unless one input has more: from 64 to 256 of MiniLM what lies between the
 * products stays in L2 (2 MiB), with 512 they take 5 % more cycles each, with 1,024 10 %. */
#define ENC_BATCH_TOKENS 256

typedef struct learnt_cost {
    linear_cost cost;                        /* engine thread */
    _Atomic double fixed_ms, unit_ms, reach; /* its line, for all threads */
} learnt_cost;

typedef struct engine_counters {
    atomic_size_t n_running, kv_pages_used, kv_pages_kept, kv_pages_total;
    _Atomic uint64_t n_requests, n_failed, n_cancelled, n_prompt_tokens, n_generated_tokens, n_steps;
    _Atomic uint64_t n_drafted, n_accepted;
    _Atomic double prefill_tokens_per_s, decode_tokens_per_s, step_ms;
    learnt_cost prefill, decode; /* of prompts, by tokens; of steps, by streams */
    _Atomic double fresh_share;  /* of prompt tokens: not found in the cache */
} engine_counters;

typedef struct enc_job {
    job job; /* first */
    enc_result_fn fn;
    void *user;
    input *in;
    adapter *adapter; /* its reference; NULL: none */
} enc_job;

/* What an encode step works on: a job, or the source of a session that runs. */
typedef struct enc_entry {
    enc_job *job;
    session *session;
} enc_entry;

/* Sequences that compute together. Under shards several such steps are under way at a time: `aloft`, while
 * their rows are at the other stages. */
typedef struct engine_step {
    struct engine *e;
    net_item *items; /* [max_batch], as are all */
    session **item_session, **item_of;
    session **steppers;   /* who computes: those that run, and the lanes of beam searches for these */
    session **stepper_of; /* the running one that a stepper belongs to: itself or its search; NULL: over */
    batch_entry *entries;
    size_t n_steppers, n_items, n_rows; /* n_rows: wanted */
    size_t n_prefill, n_decode;         /* tokens of input, and items of one token, */
    size_t n_drafted, n_accepted;       /* guesses of the next ones, and those that came true */
    uint64_t start_ns;
} engine_step;

struct engine {
    model *m;
    const model_config *c;
    engine_options o;         /* defaults filled in */
    size_t n_ctx, max_tokens; /* max_tokens: of a step */
    team *team;               /* whose first members run a step: so many as step_cost says */
    step_cost step_cost;
    step_cost_file step_cost_file;
    core_lease lease;
    const net_ops *ops;
    weights_mapping mapping;
    /* NET_DECODES */
    kv *kv;
    sampler_space *spaces; /* one a member */
    session **running;     /* [max_batch], oldest first; changed under `lock`, by the engine thread */
    size_t n_running;
    batch_slot *slots;  /* [max_batch] */
    engine_step *steps; /* [depth]; those aloft are first_aloft ..., modulo depth */
    size_t depth, first_aloft, n_aloft;
    uint64_t n_launched;
    draft_book book; /* as far as there are drafts, as is the next */
    draft_cost draft_cost;
    uint64_t company_ns; /* when two requests were last here at a time */
    double beside_ms;    /* what a token of a prompt adds to a step that decodes; 0: not known */
    /* Under shards (e->o.shards) */
    float *hidden;          /* [max_tokens][n_embd] */
    stage_item *sent_items; /* [max_batch], as is the next */
    stage_copy *copies;     /* of pages, that the next step brings to the others */
    size_t n_copies;
    /* NET_ENCODES */
    net_input *enc_inputs; /* [enc_max], as is the next */
    enc_entry *enc_batch;
    size_t enc_max, enc_positions; /* inputs of one ragged batch, and positions that there is room for */

    pthread_t thread;
    bool has_thread;
    /* The queue, the running list, stopping, the grammar vocabulary, adapters; the only lock. */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    job_queue queue;
    job *dropped; /* taken out of the queue, cancelled or late; the engine thread ends them */
    bool stopping;
    uint64_t last_id, accepted_ns; /* accepted_ns: the last submit that was taken */
    grammar_vocab *vocab;          /* made for the first constrained request */
    adapters adapters;
    adapter *standard; /* of requests that name none; NULL: the model as it is */
    engine_counters stats;
};

/* loop.c. The engine thread's whole life: until `stopping`; what then still waits or runs is ended with
 * SHOAL_ECANCELLED. */
void loop_run(engine *e);
/* The session has ended: its place and pages are free before its last event goes out. message NULL: the
 * code's text. */
void loop_end(engine *e, session *s, int status, const char *message);
/* Out of the running ones; back: how it returns into the queue, NULL when it is over. */
void loop_take_out(engine *e, session *s, void (*back)(job_queue *, job *));

/* slots.c. Who rests leaves, who is next comes in. */
void slots_admit(engine *e);
/* Out of the running ones and back into the queue. Its tokens will be computed again where the cache does not
 * know them any more, to the same bits. */
void slots_leave(engine *e, session *s, void (*back)(job_queue *, job *));
bool slots_is_held(const session *s);      /* its rows are elsewhere, or its ballot is: it keeps its slot */
session *slots_youngest(const engine *e);  /* of those that are not held: it makes room for an older one */
void slots_release(engine *e, session *s); /* its pages and those of its lanes */
void slots_note_pages(engine *e);          /* into the statistics */

/* encode.c. One ragged batch of what waits to be encoded, if anything does. */
void encode_step(engine *e);
void encode_fail(engine *e, enc_job *j, int status, const char *message);
void encode_free(enc_job *j); /* NULL is fine */
/* decode.c. Under shards: all stages are there. False: some time has passed, and whoever ran waits to be
 * computed again if a stage was lost. */
bool decode_ready(engine *e);
void decode_abandon(engine *e); /* what is aloft comes back to nobody */
/* decode.c. One step of those who run. */
void decode_elect(engine *e); /* those for whom all have voted get their token */
void decode_step(engine *e);

/* decode.c. s->next was chosen: it is told, and the session ends with it perhaps. False: it did, and is gone.
 */
bool decode_take(engine *e, session *s, uint64_t now_ns);

/* drafts.c. More tokens for those of a planned step whose guesses are worth it. */
void drafts_plan(engine *e, engine_step *w);
/* One row of s's was wanted, or several for its guesses: what was chosen from the first, and from the others
 * as far as the guesses in front of them came true. */
void drafts_take(engine *e, engine_step *w, session *s, uint64_t now_ns);
/* A step without input took so long, and its tokens are known. */
void drafts_measure(engine *e, const engine_step *w, double step_ms);
/* It took so long with all that came of it. */
void drafts_note_cost(engine *e, const engine_step *w, double ms);

/* step.c. The team, as many of it as a step of n_tokens takes, and the note of how long that took. Engine thread. */
team *step_team(engine *e, step_kind k, size_t n_tokens);
void step_note_team(engine *e, step_kind k, size_t n_tokens, uint64_t took_ns);
/* A step of this size (tokens of nothing but input; streams of nothing but decoding) took so long. */
void step_learn(learnt_cost *c, size_t size, double took_ms);
linear_cost_line learnt_cost_line(const learnt_cost *c); /* any thread */
/* A moving average of the last ten or so. */
void step_average(_Atomic double *avg, double newest);
/* When a job that asks for the cores now should have them: its batch's deadline, or soon. */
uint64_t step_deadline(uint64_t earliest_ns, uint64_t soon_ns);

#endif
