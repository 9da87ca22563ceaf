/* engine.h: one model, one engine thread, many requests.
 *
 * The engine owns a thread that loops: take new requests, choose a batch (running streams' decode
 * steps first, then chunks of prefill up to a budget), run one step on the team, hand out results.
 * Submit and cancel from any thread. Events arrive on the engine thread: copy what you need and
 * return at once. After EVENT_DONE the request is forgotten by the engine.
 *
 *     engine *e; engine_new(&e, model, &(engine_options){.n_threads = 2}, &err);
 *     engine_generate(e, &req, on_event, user, &id, &err);   ... events ...
 *     engine_free(e);
 */
#ifndef INFER_ENGINE_H
#define INFER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "time/linear_cost.h"
#include "base/err.h"
#include "compute/compute.h"
#include "grammar/grammar.h"
#include "model/model.h"
#include "net/attention/kv_type.h"

typedef struct engine engine;

typedef struct engine_options {
    int n_threads;    /* 0: sys_core_count() */
    size_t max_batch; /* sequences decoding together; 0: 32 */
    size_t max_queue; /* requests waiting; 0: 256. Over it: SHOAL_EFULL at submit */
    size_t n_ctx;    /* 0: the model's, as far as kv_bytes has room; of decoders that embed 8192 at most. Else
                           SHOAL_ELIMIT where it has not */
    size_t kv_bytes; /* hard ceiling of the KV cache; 0: kv_default_bytes */
    kv_type kv_type; /* what keys and values are kept as */
    size_t prefill_chunk; /* most tokens of prefill beside decode steps; 0: batch.h's rule */
    /* This is the first stage of a network whose other layers are elsewhere (infer/shards.h); it outlives the
     * engine. No adapters. NULL: the whole network is here */
    const struct shards *shards;
    arbiter *arbiter; /* NULL: the machine is ours */
    /* On the engine thread, with true before the events of one step of decoding and with false behind the
     * last: whoever passes them on to another thread can wake it once. NULL: nobody does */
    void (*burst)(void *user, bool begins);
    void *burst_user;
    const char *adapter;    /* path of the one that requests without a name run with; NULL: none */
    float adapter_strength; /* 0: 1 */
    /* Guesses of the next tokens (draft.h), which change how fast replies come and nothing else. */
    bool no_drafts;
    struct profile *
        profile; /* where the time of steps goes (compute/profile.h); it outlives the engine. NULL: untaken */
    double draft_price; /* a guess is computed when its chance is over this, 0 .. 1; 0: over what it costs,
                           which is measured */
} engine_options;

/* Takes its weights from `m` (packed, then model_drop_weights); m must outlive the engine. */
int engine_new(engine **ret, model *m, const engine_options *opts, shoal_err *err);
/* Cancels everything and joins the thread; what is submitted later is refused. Other calls stay allowed,
 * so that callers may leave in their own time before engine_free. */
void engine_stop(engine *e);
void engine_free(engine *e); /* cancels everything (EVENT_DONE with SHOAL_ECANCELLED), joins the thread */
size_t engine_ctx(const engine *e);
size_t engine_width(const engine *e); /* generations that run together; 1 of a model that does not decode */

/* ---- adapters (model/adapter.h) ---- */

/* Requests may name it from now on; strength 1: as it was trained. Any thread, while the engine serves: what
 * runs is not disturbed. SHOAL_EINVALID when the name is taken or is none; adapter_open's errors. */
int engine_adapter_load(engine *e, const char *name, const char *path, float strength, shoal_err *err);
/* No new request gets it; those that have it end with it. SHOAL_ENOTFOUND. */
int engine_adapter_unload(engine *e, const char *name, shoal_err *err);
/* The i-th in order of names: its name, and (NULL is fine) its digest in hex; false behind the last. Any
 * thread. */
bool engine_adapter_name(engine *e, size_t i, char ret_name[64], char ret_digest[65]);

typedef struct logit_bias {
    int32_t id;
    float bias;
} logit_bias;

/* What an encoder reads: one sequence of tokens, or features of another kind. Several in the queue run as one
 * ragged batch. */
typedef struct enc_request {
    const int32_t *ids;      /* copied at submit */
    const uint8_t *type_ids; /* NULL: zeros */
    size_t n_ids;
    const float *features; /* [n_features][width] instead of ids: log-mel frames, pixels, a series */
    size_t n_features, width;
    const uint32_t *at; /* fill-mask: the n_at tokens whose words are asked for; NULL: all. Copied too */
    size_t n_at;
    uint64_t deadline_ns;
    int latency;         /* how urgent it is: 0 interactive, 1 realtime, 2 batch (job_queue.h) */
    const char *adapter; /* its name; NULL: the model as it is. Unknown: SHOAL_ENOTFOUND */
} enc_request;

/* Zero means: greedy, no limits, no penalties. */
typedef struct sampling {
    float temperature;        /* 0: greedy (the lowest id wins a tie) */
    int top_k;                /* 0: off */
    float top_p;              /* 0 or 1: off */
    float min_p;              /* 0: off */
    float repetition_penalty; /* 0 or 1: off; divides positive logits of seen tokens (Keskar 2019) */
    float presence_penalty, frequency_penalty; /* OpenAI's, over generated tokens */
    uint64_t seed;
    const logit_bias *bias;
    size_t n_bias;
} sampling;

/* What may come next, where it follows from what came before: Whisper's timestamps, words that are not to be
 * said. mask writes GEN_NEVER to the logits of tokens that may not follow the reply ids[0..n), and may read
 * the others; log-probabilities are of what is left. It is called for one token at a time, on any of the
 * engine's threads, must be a function of its arguments, and lives until EVENT_DONE. */
#define GEN_NEVER (-1e30f)
typedef struct gen_rule {
    void (*mask)(void *user, const int32_t *ids, size_t n, float *logits, size_t n_vocab);
    void *user;
} gen_rule;

typedef struct gen_request {
    const int32_t *ids; /* copied at submit */
    size_t n_ids;
    /* What the model's encoder reads first; needed by encoder-decoders, else NULL. */
    const enc_request *source;
    size_t max_tokens; /* 0, or more than there is room for: to the end of the context */
    sampling sampling;
    const char *const *stop; /* strings that end the text (not part of it, nor of a thought) */
    size_t n_stop;
    const int32_t *end; /* a token that ends it beside those that end any of the model's; NULL: none */
    bool ignore_eos;
    size_t min_tokens;        /* no token that ends it comes before so many; not with form */
    bool logprobs;            /* report the chosen token's log-probability (of the raw distribution) */
    int n_top;                /* and this many alternatives (0..20) */
    const grammar_spec *form; /* what the reply must be; NULL: any text */
    /* Of form, where engine_grammar has made it: taken, *grammar is NULL then; else NULL. */
    grammar **grammar;
    gen_rule rule;        /* mask NULL: none */
    uint64_t deadline_ns; /* clock_ns time; 0: none. Missed: EVENT_DONE with SHOAL_EDEADLINE */
    int latency;          /* how urgent it is: 0 interactive, 1 realtime, 2 batch (job_queue.h) */
    uint64_t group;       /* requests with the same number share the slots of one; 0: it is alone */
    size_t n_beams;       /* over 1: beam search, greedy and without sampling, stop strings or form; the reply
                             comes whole. BEAM_MAX at most */
    float length_penalty; /* of beams: a reply's score is its log-probability / length^penalty */
    bool early_stopping;  /* of beams: as soon as n_beams replies have ended */
    const thinking_form *thinking; /* a thought comes apart from the text (NULL: the model does not think) */
    bool in_thought;               /* the prompt ends within one */
    /* How calls of tools are written (NULL: none are looked for). Control tokens that are markers of this, or
     * of thoughts, are shown although they are no text. */
    const toolcall_syntax *calls;
    bool may_call;       /* tools are on offer: a call may end the thought that it begins in */
    const char *adapter; /* of the reply and of reading the source (whose own is not looked at); as above */
    bool progress;       /* EVENT_PROGRESS is wanted */
    bool keeps_pages;    /* a conversation that may go on: its pages are kept before others' (kv.h) */
    /* Each token is chosen from a mean of several models' distributions (ballot.h): EVENT_BALLOT tells this
     * one's, and the generation rests until engine_ballot brings the mean. geometric: of logarithms. No beams
     */
    bool votes, geometric;
    /* The prompt is judged: EVENT_JUDGED tells how likely each of its tokens from this one on was behind
     * those before it (1 or more, n_ids at most; 0: it is not), all of them before the first token. Not with
     * beams or votes, nor of a reply that is resumed. */
    size_t judge_from;
    bool only_judges; /* and that is all: no token is chosen; the end of a reply is judged as one more */
    /* The reply goes on that an engine of the same model began for the same request: its first tokens, and
     * prob_sum as the last of them had it. What follows is what would have followed there, to the bit. A
     * beam search is made again and has to find these tokens. SHOAL_EINVALID when the request cannot have
     * had them; SHOAL_ELIMIT when there is less room for the reply than max_tokens: it might end earlier. */
    const int32_t *resume_ids;
    size_t n_resume;
    double resume_prob_sum;
    unsigned n_deaths; /* workers that died on it lately, also before its first token (batch.h, replays) */
} gen_request;

typedef struct token_logprob {
    int32_t id;
    float logprob;
} token_logprob;

typedef struct gen_timings {
    double queue_ms, prefill_ms, decode_ms; /* waiting, until the first token, after it */
    double cpu_ms;                          /* of cores: its share of its steps, by tokens */
    size_t n_prompt;                        /* tokens of the source where there is one */
    size_t n_cached, n_generated;
    size_t n_thought;             /* of n_generated, tokens of the thought and its markers */
    size_t n_drafted, n_accepted; /* guesses that were computed, and those of them that came true */
    double mean_prob; /* mean probability (raw distribution) of the chosen tokens, end token included */
} gen_timings;

typedef enum { FINISH_NONE, FINISH_STOP, FINISH_LENGTH, FINISH_ERROR } finish_reason;

typedef struct gen_event {
    enum { EVENT_TOKEN, EVENT_DONE, EVENT_RESUMED, EVENT_PROGRESS, EVENT_BALLOT, EVENT_JUDGED } kind;
    /* EVENT_TOKEN: one generated token, the end token included (without text). text may be empty
     * while a character or a possible stop string is held back; it then comes with a later token, or
     * with EVENT_DONE. */
    int32_t id;
    const char *text;
    size_t text_len;
    const char *thought; /* what it adds to the thought, which is no part of text */
    size_t thought_len;
    float logprob;
    const token_logprob *top;
    size_t n_top;
    double prob_sum; /* of the reply's tokens up to this one: their probabilities (raw distribution) */
    /* EVENT_RESUMED: before the first token or EVENT_DONE of a reply that was resumed, the text and thought
     * that its first tokens gave, without what of them is still held back */
    /* EVENT_PROGRESS: it has got its slot, or a step is over that gave no token. Of n_input tokens to read,
     * those done; n_cached of the prompt were in the cache at first. A search reports every step */
    size_t n_read, n_input, n_cached;
    /* EVENT_JUDGED: id is the token n_read of the prompt, logprob and top are what was thought of it. Behind
     * the last one, where the prompt alone is judged, n_read is their number and id the likeliest end token
     */
    /* EVENT_BALLOT: text is float[n_vocab], the distribution of token n_read of the reply */
    /* EVENT_DONE; text and thought carry what was still held back */
    int status; /* 0 or SHOAL_E... */
    const char *message;
    finish_reason finish;
    size_t n_stop; /* which of the stop strings ended it, from 1; 0: none did */
    gen_timings timings;
} gen_event;

typedef void (*gen_event_fn)(void *user, const gen_event *ev);

/* The grammar of a form, which may take long: a thread that may wait makes it before the request is submitted
 * (gen_request.grammar). Any thread. SHOAL_EUNSUPPORTED without a tokenizer, or the errors of grammar_new. */
int engine_grammar(engine *e, const grammar_spec *form, grammar **ret, shoal_err *err);

/* *ret_id names the request for engine_cancel. Refused at once: bad ids, too long for the context
 * (SHOAL_ELIMIT, with the numbers), bad schema, full queue (SHOAL_EFULL), a deadline that has passed, or that
 * the measured speed cannot meet beside what is there already (SHOAL_EDEADLINE; once a second such a request
 * is tried nevertheless, so that a wrong measure corrects itself). After a refusal no event follows. */
int engine_generate(engine *e, const gen_request *r, gen_event_fn fn, void *user, uint64_t *ret_id,
                    shoal_err *err);
/* The mean for the token at `position` of a reply that votes, [n_vocab], copied. SHOAL_ENOTFOUND: it does not
 * wait for that one (any more); SHOAL_EINVALID: another size than the vocabulary's, or no distribution. Any
 * thread. */
int engine_ballot(engine *e, uint64_t id, size_t position, const float *mean, size_t n);
/* A place in the queue is free at once, a slot in the batch within a step; EVENT_DONE (SHOAL_ECANCELLED) follows
 * unless it is done already. */
void engine_cancel(engine *e, uint64_t id);

/* Its reader does not keep up: the generation rests and leaves its slot to others, until it goes on with the
 * same tokens it would have had. The deadline goes on too. Any thread; an unknown id is ignored. */
void engine_pause(engine *e, uint64_t id, bool paused);

typedef struct enc_result {
    int status;
    const char *message;
    /* classify: logits[1][n_labels]; tag: logits[n_ids][n_labels]; embed: values[1][n_embd], pooled and
     * normalised as the model says; the others: net.h. Borrowed until the callback returns. */
    const float *values;
    size_t rows, cols;
    double queue_ms, compute_ms;
    double cpu_ms; /* of cores: its share of the step, by positions */
} enc_result;
typedef void (*enc_result_fn)(void *user, const enc_result *r);
int engine_encode(engine *e, const enc_request *r, enc_result_fn fn, void *user, uint64_t *ret_id,
                  shoal_err *err);

/* Raw logits of a prompt, for `shoal logits` and tests: out[n_last][n_vocab], the last n_last positions.
 * source: as in gen_request. Blocks; models that decode only. */
int engine_logits(engine *e, const enc_request *source, const int32_t *ids, size_t n_ids, size_t n_last,
                  float *out, shoal_err *err);
/* The same with an adapter; NULL: without. */
int engine_logits_adapted(engine *e, const char *adapter, const enc_request *source, const int32_t *ids,
                          size_t n_ids, size_t n_last, float *out, shoal_err *err);

typedef struct engine_stats {
    size_t n_running, n_waiting, kv_pages_used, kv_pages_total;
    size_t kv_pages_kept; /* nobody's now, and kept for conversations */
    uint64_t n_requests, n_failed, n_cancelled, n_prompt_tokens, n_generated_tokens, n_steps;
    uint64_t n_drafted, n_accepted; /* guesses of tokens that were computed, and that came true */
    double prefill_tokens_per_s, decode_tokens_per_s; /* moving averages, 0 before the first */
    double step_ms;
    double queue_ms;               /* in the queue in all, of who is there now and was there the longest */
    linear_cost_line prefill_cost; /* of a prompt (decoders) or a batch of texts (encoders), by tokens */
    linear_cost_line decode_cost;  /* of a step of nothing but decoding, by streams */
} engine_stats;
void engine_get_stats(const engine *e, engine_stats *ret); /* any thread */

/* softmax or sigmoid of class logits, as the model says: scores[n_labels]. */
void engine_scores(const engine *e, const float *logits, float *ret_scores);
/* fill-mask: the probabilities of all words from a row of logits, in place: row[n_vocab]. */
void engine_word_scores(const engine *e, float *row);

#endif
