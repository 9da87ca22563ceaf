/* answer.h: what a generation gave, and how it looks as an OpenAI object, as a stream, and in the cache.
 *
 * A gen_answer grows by the worker's deltas. The same struct packs to bytes for the cache and comes back
 * from them, so that an answer from the cache goes through the same writers as a fresh one. Pure: no I/O. */
#ifndef DIALECTS_ANSWER_H
#define DIALECTS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "messages/degraded.h"
#include "dialects/openai.h"
#include "json/schema_check.h"
#include "messages/stream_id.h"

#define ANSWER_CALLS_MAX     32
#define ANSWER_LOGPROB_PARTS 4

typedef struct gen_call {
    buf name, arguments;
} gen_call;

/* Of one choice. */
typedef struct gen_figures {
    uint32_t n_prompt, n_cached, n_generated, n_drafted, n_accepted;
    uint32_t n_stop; /* which of the stop strings ended it, from 1 */
    double prompt_ms, predicted_ms;
} gen_figures;

typedef struct gen_choice {
    buf text, reasoning; /* reasoning: what the model thought before it answered */
    gen_call calls[ANSWER_CALLS_MAX];
    size_t n_calls;
    /* Comma separated JSON: chat has the entries of "content" in [0]; completions have tokens,
     * token_logprobs, top_logprobs and text_offset. */
    buf logprobs[ANSWER_LOGPROB_PARTS];
    uint64_t n_logprobs; /* tokens in them */
    uint64_t n_so_far,
        n_prompt_so_far; /* tokens of it and of its prompt, as its stream grows; 0: it came whole */
    size_t n_refined;    /* characters that a better text replaced */
    size_t
        offset; /* where the next token begins: in characters, the prompt that is given back before them all */
    char finish[16]; /* "" until done */
    buf ids; /* int32: its tokens, of llama-server's form alone, whose log-probabilities are in logprobs[0] */
    gen_figures
        figures; /* n_stop always, n_prompt of Anthropic's form, too, and the others of llama-server's alone */
    bool role_sent; /* the stream's first chunk of this choice is out */
    bool judged;    /* it was held against a schema that is not "strict", and this came of it */
    schema_verdict verdict;
} gen_choice;

typedef struct gen_answer {
    gen_choice *choices;
    size_t n;
    uint64_t n_prompt, n_cached, n_generated;
    uint64_t n_reasoning;           /* of n_generated */
    uint64_t n_drafted, n_accepted; /* tokens that were guessed and computed, and that came true */
} gen_answer;

int answer_init(gen_answer *a, size_t n_choices); /* 0 or SHOAL_ENOMEM */
void answer_done(gen_answer *a);                  /* accepts a zeroed one */
/* Choice k grew by d. */
void answer_add(gen_answer *a, const gen_spec *s, size_t k, const Shoal__V1__Delta *d);
/* The prompt of choice k has so many tokens, as is said before any of it comes. */
void answer_start(gen_answer *a, const gen_spec *s, size_t k, uint32_t n_prompt);
/* What came of choice k is void, and it begins anew; that its first chunk is out stays. */
void answer_restart(gen_answer *a, size_t k);
/* Choice k is complete. */
void answer_close(gen_answer *a, const gen_spec *s, size_t k, const Shoal__V1__Done *d);

/* Holds choice k, which is complete, against the schemas of the request that say "strict": false; nothing
 * where there is none. */
void answer_judge(gen_answer *a, const gen_spec *s, size_t k);

/* Append it all, for answer_unpack in this process. Failures stick in out->failed. */
void answer_pack(buf *out, const gen_answer *a);
/* Only of bytes that answer_pack wrote; 0, SHOAL_EFORMAT or SHOAL_ENOMEM (then *ret is untouched). */
int answer_unpack(gen_answer *ret, const void *data, size_t n);

/* How this response names itself; strings are borrowed. */
typedef struct answer_form {
    bool chat, include_usage;
    bool functions;    /* as gen_spec's */
    const char *texts; /* as gen_spec's */
    const char *model;
    const Shoal__V1__Sampling *sampling; /* as gen_spec's, which outlives this */
    char id[48], fingerprint[20];        /* the second as JSON: a text, or null */
    int64_t created;                     /* seconds since 1970 */
    uint64_t salt;                       /* of the tool calls' ids */
    degraded *degraded; /* said in a stream's first chunk and at each choice's end; NULL: no news */
    const struct llama_form *llama; /* it answers as llama-server does (llama.h); NULL: as others */
    struct response_form *response; /* it answers as the Responses API does (responses.h); NULL: as others */
    struct anthropic_form *anthropic; /* it answers as Anthropic's API does (anthropic.h); NULL: as others */
    const gen_answer *counted;        /* each chunk of a stream has its usage so far; NULL: none has */
    size_t n_each;                    /* choices of a prompt, of which one counts its tokens */
    stream_id *events; /* what the ids of a stream's events say, kept by the writers; NULL: no ids */
} answer_form;

/* digest may be NULL. */
void answer_form_init(answer_form *f, const gen_spec *s, const char *digest, int64_t created);
/* What a model that was not up at the start turned out to be; before anything is put. */
void answer_form_digest(answer_form *f, const char *digest);
/* Its ids follow from the nonce. */
void answer_form_name(answer_form *f, const uint8_t nonce[STREAM_NONCE_BYTES], int64_t created);

#define ANSWER_CALL_ID_BYTES 32
/* The id of choice k's call: follows from the answer's name. */
void answer_call_id(char ret[ANSWER_CALL_ID_BYTES], const answer_form *f, size_t k, size_t index);
/* The message as a later request says it: text and calls, without what the model thought. */
void answer_put_kept(buf *out, const answer_form *f, const gen_choice *c, size_t k);

/* The whole object of a request without "stream". */
void answer_put(buf *out, const answer_form *f, const gen_answer *a);

/* The events of a stream (messages/event.h). The role comes with choice k's first chunk. */
void answer_put_role(buf *out, const answer_form *f, gen_answer *a, size_t k);
void answer_put_delta(buf *out, const answer_form *f, gen_answer *a, const gen_spec *s, size_t k,
                      const Shoal__V1__Delta *d);
void answer_put_finish(buf *out, const answer_form *f, gen_answer *a, size_t k);
/* The usage chunk if it was asked for, and [DONE]. */
/* Another text in place of all that choice k has said: an event "refine". */
void answer_refine(gen_answer *a, size_t k, const Shoal__V1__Refined *r);
void answer_put_refined(buf *out, const answer_form *f, const gen_answer *a, size_t k,
                        const Shoal__V1__Refined *r);
void answer_put_end(buf *out, const answer_form *f, const gen_answer *a);
/* Everything that choice k holds, as chunks: for answers that were not streamed as they came. */
void answer_put_replay(buf *out, const answer_form *f, gen_answer *a, size_t k);

/* What choice k holds beyond what a client had when it left (answer_rest.c). */
typedef enum answer_rest {
    REST_BEHIND,   /* it does not hold as much yet: nothing was put */
    REST_PUT,      /* the rest is put: what comes now is new */
    REST_DIFFERENT /* it began otherwise than what the client had, which cannot be gone on with */
} answer_rest;
answer_rest answer_put_rest(buf *out, const answer_form *f, gen_answer *a, size_t k, const stream_mark *had);

#endif
