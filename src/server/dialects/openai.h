/* openai.h: the OpenAI generation requests as checked structs, and their model calls.
 *
 * A body is parsed once into a gen_spec that owns everything it points to. Choice k of a request with
 * n choices a prompt belongs to prompt k / n and draws with seed + k, so choices differ and stay
 * reproducible. Known fields are checked, those of other servers that are not served are refused, since a parameter
 * that silently does nothing costs its user hours. Pure: no I/O. */
#ifndef DIALECTS_OPENAI_H
#define DIALECTS_OPENAI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "json/sampling.h"
#include "base/sha256.h"
#include "messages/api_error.h"
#include "shoal/v1/worker.pb-c.h"

#define GEN_N_MAX        32
#define GEN_STOP_MAX     16
#define GEN_PROMPTS_MAX  64
#define GEN_CHOICES_MAX  128
#define GEN_TEMPLATE_MAX (256 << 10) /* bytes of a chat template */

typedef struct gen_prompt { /* of /v1/completions: text, or ids when text is NULL */
    const char *text;
    int32_t *ids;
    size_t n_ids;
} gen_prompt;

typedef struct gen_spec {
    arena *mem;
    json_t *root, *messages, *tools; /* messages and tools as the worker gets them; owned */
    const char *model;
    bool chat, stream, include_usage, echo;
    bool
        usage_stats; /* with include_usage: each chunk of a stream says how much there is so far (vLLM's field) */
    bool token_ids;   /* log-probabilities name tokens "token_id:5" (vLLM's field) */
    bool only_prompt; /* with echo: no token is generated */
    bool logprobs, has_seed, ignore_eos;
    bool parse_tool_calls, parallel_calls;
    bool functions; /* asked in the older form: a call is answered as "function_call" */
    Shoal__V1__GenerateRequest__ToolChoice tool_choice; /* with tools, or TOOL_NONE */
    const char *tool_name;                              /* with TOOL_NAMED */
    unsigned n_top;
    const char *messages_json, *tools_json; /* NULL when absent */
    const char *chat_template;              /* in Jinja, in place of the model's; NULL: the model's */
    const char *template_kwargs_json;       /* variables for the template; NULL when absent */
    gen_prompt *prompts;
    size_t n_prompts;    /* 1 for chat */
    size_t n;            /* choices a prompt */
    uint32_t max_tokens; /* 0: to the end of the context */
    uint32_t min_tokens; /* no token that ends the reply before so many */
    Shoal__V1__Sampling sampling;
    /* What holds of `sampling` where neither the request nor the model says it. */
    const sampling_defaults *defaults;
    char **stop;
    size_t n_stop;
    uint32_t n_beams; /* over 1: beam search */
    float length_penalty;
    bool early_stopping;
    const char *texts; /* the answer is a list of texts, and this is what the object is called; else NULL */
    Shoal__V1__GenerateRequest__Constraint constraint;
    const char *schema;
    char **choices; /* the reply is one of these texts */
    size_t n_choices;
    /* The same where it says "strict": false: what cannot be enforced is looked at; else NULL. */
    const json_t *judge;
    int64_t clock;            /* GenerateRequest.clock */
    struct llama_form *llama; /* it is answered as llama-server does (llama.h); NULL: as OpenAI does */
    struct anthropic_form *anthropic; /* or as Anthropic does (anthropic.h) */
} gen_spec;

/* 0 and *ret, to be freed by openai_spec_free; or an HTTP status with *e filled. A seed is drawn when the
 * request gives none. */
int openai_spec_parse_chat(gen_spec **ret, const char *body, size_t len, api_error *e);
int openai_spec_parse_completion(gen_spec **ret, const char *body, size_t len, api_error *e);
/* /v1/translate, /v1/summarize: `object` names the answer. Greedy unless the request says otherwise. */
int openai_spec_parse_texts(gen_spec **ret, const char *object, const char *body, size_t len, api_error *e);
void openai_spec_free(gen_spec *s);

size_t openai_spec_choices(const gen_spec *s); /* n_prompts * n */
/* Give `sampling` what the request did not say: what the model says, else the defaults of the API. NULL: the
 * model says nothing. What was not settled the worker settles by its own model. */
void openai_spec_settle(gen_spec *s, const Shoal__V1__ModelInfo *model);
/* The same request always gets the same answer: greedy, or the client chose the seed. */
bool openai_spec_is_deterministic(const gen_spec *s);
/* Choice k as a model call; *ret and *sampling borrow from s. */
void openai_spec_fill(const gen_spec *s, size_t k, Shoal__V1__GenerateRequest *ret,
                      Shoal__V1__Sampling *sampling);
/* The cache key for the model that will answer; false: not to be cached. Equal messages make equal prompts
 * unless the model's template reads the clock: such answers are not kept. */
bool openai_spec_key(const gen_spec *s, const Shoal__V1__ModelInfo *model, const char *adapter_digest,
                     sha256_digest *ret);
/* What was asked, with the name of the model: equal for requests whose streams are the same bytes, given the
 * model's file, the seed where none was asked for, and the time. False: no memory. */
bool openai_spec_identity(const gen_spec *s, sha256_digest *ret);

#endif
