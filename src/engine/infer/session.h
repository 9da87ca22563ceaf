/* session.h: one generation request inside the engine: its tokens, its place in the KV cache, and how
 * its tokens become events.
 *
 * Made on the caller's thread, owned by the engine thread from submit on. Everything it will need is
 * allocated when it is made. */
#ifndef INFER_SESSION_H
#define INFER_SESSION_H

#include <stdbool.h>

#include "grammar/grammar.h"
#include "infer/decoding/ballot.h"
#include "infer/decoding/draft.h"
#include "infer/engine.h"
#include "infer/input.h"
#include "infer/job_queue.h"
#include "infer/decoding/sampler.h"
#include "infer/decoding/stop.h"
#include "net/attention/kv.h"
#include "chat/thinking.h"

struct beam_set;

typedef struct session {
    job job; /* first */
    gen_event_fn fn;
    void *user;
    const model_config *config;
    int32_t *ids; /* [max_ids], prompt and reply */
    size_t n_prompt, n_ids, max_ids;
    bool ignore_eos, progress;
    size_t min_tokens; /* as in gen_request */
    int32_t end;       /* one more token that ends it; -1: none */
    sampler sampler;
    stop_matcher stop;
    thinking thinking;
    size_t n_thought;             /* tokens before the answer */
    const toolcall_syntax *calls; /* as in gen_request */
    bool may_call;                /* likewise */
    detok detok;
    buf text; /* the newest token's */
    grammar *grammar;
    gen_rule rule;
    kv_seq kv;
    /* A reply that began elsewhere. Its tokens lie in ids, those of a search, which is made again, in begun
     */
    bool resumed; /* and EVENT_RESUMED, with these texts, is still to come */
    buf resumed_text, resumed_thought;
    int32_t *begun;
    size_t n_begun;
    struct beam_set *beams; /* of a beam search: they compute, this one waits for them */
    adapter *adapter;       /* its reference; NULL: none */
    ballot *ballot;         /* its tokens are chosen together with other models; NULL: alone */
    input *source;          /* of an encoder-decoder */
    void *cross;            /* what the decoder reads of it, n_cross positions; NULL until it is encoded */
    size_t n_cross;
    /* a probe (engine_logits) samples nothing: rows of logits go to probe_out[n_probe][n_vocab] */
    float *probe_out;
    /* a prompt that is judged: what is thought of the tokens behind its last n_probe rows, n_top a token */
    token_logprob *judged, *judged_top;
    bool only_judges;
    size_t n_probe; /* rows that are wanted, at the end of the prompt; 0: none (any more) */
    /* the step that runs */
    bool aloft;        /* it waits for rows that are at other stages: it keeps its slot */
    bool picked;       /* for the step that is planned */
    uint64_t launched; /* the last step it was in; 0: none since it has its slot */
    unsigned n_losses; /* stages that were lost with it since its last token */
    size_t n_planned;  /* tokens that are known */
    bool has_next;
    sample next;
    /* guesses of the next tokens, which lie behind the n_ids known ones */
    draft draft;
    float *draft_rows[DRAFT_MAX + 1]; /* logits of the step, good until the next one */
    /* progress */
    uint64_t admitted_ns, first_token_ns; /* 0: not yet */
    double cpu_ms;                        /* of cores, so far */
    size_t n_cached, n_generated;
    size_t n_drafted, n_accepted;
    size_t n_stint; /* of these since it got its slot in the batch */
    double prob_sum;
    finish_reason finish; /* FINISH_NONE while it runs */
} session;

/* 0, or SHOAL_EUNSUPPORTED: stop strings and forms of reply need one. */
int session_check_tokenizer(const model *m, shoal_err *err);
/* r is checked and copied; source and adapter are taken, whatever comes of it (NULL: none). n_ctx bounds
 * prompt plus reply. vocab is for constrained requests. */
int session_new(session **ret, const model *m, const gen_request *r, input *source, adapter *adapter,
                size_t n_ctx, const grammar_vocab *vocab, shoal_err *err);
void session_free(session *s); /* its pages must be released before */

/* The whole reply of a beam search: events for each token. SHOAL_EINVALID: it was to begin otherwise. */
int session_take_all(session *s, const int32_t *ids, size_t n, float logprob, uint64_t now_ns);
/* Its source has to be encoded first. */
bool session_waits(const session *s);
/* Give up what was encoded; it is encoded again when it is needed. */
void session_drop_cross(session *s);
/* Tokens that are not in the cache yet; 1 while decoding. */
size_t session_pending(const session *s);
/* The sampled token s->next: an EVENT_TOKEN, and s->finish when it was the last. */
void session_take(session *s, uint64_t now_ns);
/* Before its next token is chosen of these logits: what may not come next is GEN_NEVER. Any thread. */
void session_mask(const session *s, float *logits, size_t n_vocab);
/* Row `at` of the wanted ones, behind which `id` stands, was judged so. */
void session_judge(session *s, size_t at, int32_t id, const sample *how);
/* All wanted rows are judged: an EVENT_JUDGED for each token, then none is wanted any more. False, and
 * nothing was told: one of them is no finite number. */
bool session_tell_judged(session *s);
/* Its ballot was cast: an EVENT_BALLOT. */
void session_tell_ballot(const session *s);
/* It can do nothing until others have cast theirs. */
bool session_awaits(const session *s);
/* How far it is with its input, for those who asked. */
void session_tell_progress(const session *s);
/* The last event. status 0 needs s->finish. message NULL: the code's text. */
void session_end(session *s, int status, const char *message, uint64_t now_ns);

#endif
