/* llama.h: llama-server's own API (llama.cpp, tools/server/README.md) in words of ours, and our answers in
 * its.
 *
 * A completion becomes the body of one of ours, whose gen_spec then says that it is answered in this form;
 * the writers of answer.h turn here. Prompts may mix texts and token ids, so the texts among ids are
 * tokenised first, one after the other, by whoever has the model:
 *
 *     llama_ask a;
 *     llama_read(&a, false, bytes, n, &e);
 *     while (llama_next_text(&a, &text, &first)) {
 *         ... tokenise `text` ...
 *         llama_take_tokens(&a, ids, n_ids);
 *     }
 *     llama_spec(&spec, &a, "home-chat-s", &e);     // then as any completion: generate_spec
 *     llama_ask_done(&a);
 *
 * What it says about slots, caches of prompts and limits of work (id_slot, cache_prompt, n_keep, n_discard,
 * n_cache_reuse, t_max_predict_ms, repeat_last_n, ...) is accepted and changes nothing; samplers that there
 * are none of here are refused by name unless they are off. Pure. */
#ifndef DIALECTS_LLAMA_H
#define DIALECTS_LLAMA_H

#include <jansson.h>
#include <stdbool.h>

#include "dialects/answer.h"
#include "messages/api_error.h"
#include "dialects/openai.h"
#include "base/buf.h"

enum { LLAMA_PROBS_MAX = 20, LLAMA_TEXTS_MAX = 256 };

/* How a completion is to be answered; a gen_spec's. */
typedef struct llama_form {
    const gen_spec *spec;
    json_t *prompts;      /* as they were asked for */
    const json_t *fields; /* response_fields, or NULL: all */
    unsigned n_probs;
    int64_t n_predict, seed;                     /* as asked */
    bool return_tokens, timings_per_token, many; /* many: the answer is an array */
} llama_form;

typedef struct llama_ask {
    json_t *root;      /* owned */
    const char *model; /* NULL: none is named */
    json_t *body;      /* of /v1/completions, but for its model and prompt; owned */
    /* Arrays, owned; prompts: texts and arrays of ids, once all texts among ids are gone. */
    json_t *asked, *prompts;
    bool many, plain; /* plain: texts among ids hold no special tokens */
    /* Of /infill: before the gap (with what is given besides), behind it, and of the reply. */
    const char *fill[3];
    buf extra;
    size_t at, part; /* of the next text that is to be tokenised: of prompt `at`, */
    json_t *copy;    /* of which what stands before it is here already; owned */
    bool failed;     /* for want of memory */
    size_t n_texts;
    llama_form form;
} llama_ask;

/* 0 or the status of *e; llama_ask_done is due in either case. infills: of /infill, whose prompt llama_fill
 * makes; what stands around the gap is text, whatever it spells. */
int llama_read(llama_ask *ret, bool infills, const char *bytes, size_t n, api_error *e);
/* Tokens by which families of models know a gap: before the text that precedes it, before the text that
 * follows it, and where the gap is filled. */
#define LLAMA_FILL_FAMILIES 5
extern const char *const LLAMA_FILL[LLAMA_FILL_FAMILIES][3];
/* The prompt, with the ids of these. 0 or SHOAL_ENOMEM. */
int llama_fill(llama_ask *a, const int32_t ids[3]);
void llama_ask_done(llama_ask *a);
/* The next text that stands among ids; first: it begins a prompt, so the tokens that the tokeniser puts
 * before a text go before it. False: there is none any more. */
bool llama_next_text(llama_ask *a, const char **ret_text, bool *ret_first);
/* In its place. */
void llama_take_tokens(llama_ask *a, const int32_t *ids, size_t n);
/* All of it, for this model. 0 and *ret, to be freed by openai_spec_free, or the status of *e. */
int llama_spec(gen_spec **ret, llama_ask *a, const char *model, api_error *e);

/* ---- answers (llama_put.c) ----------------------------------------------------------------------- */

/* Choice k grew by d, and is complete: what answer_add and answer_close keep for this form. */
void llama_add(gen_choice *c, const Shoal__V1__Delta *d);
void llama_close(gen_choice *c, const Shoal__V1__Done *d);

void llama_put(buf *out, const answer_form *f, const gen_answer *a);
/* Events of a stream: what d brings, all that choice k holds, and its end. */
void llama_put_delta(buf *out, const answer_form *f, const gen_answer *a, size_t k,
                     const Shoal__V1__Delta *d);
void llama_put_replay(buf *out, const answer_form *f, const gen_answer *a, size_t k);
void llama_put_finish(buf *out, const answer_form *f, const gen_answer *a, size_t k);

/* {"n_predict":-1,"temperature":0.8,...}: of a request, and what they are without one. */
void llama_put_settings(buf *out, const llama_form *form);
void llama_put_defaults(buf *out, const Shoal__V1__ModelInfo *model);

/* An array of ids, or with pieces (n_ids of them, or none) of objects; a piece that is not UTF-8 is an array of its
 * bytes. */
void llama_put_tokens(buf *out, const Shoal__V1__TokenizeReply *r);

/* {"error":{"code":400,"message":"...","type":"invalid_request_error"}} */
void llama_put_error(buf *out, const api_error *e);

#endif
