/* tokens.h: a text or messages that are to be tokenised, as llama-server's clients ask ("content") and as vLLM's do
 * ("prompt", "messages"; vllm/entrypoints of vLLM: TokenizeCompletionRequest, TokenizeChatRequest). Pure. */
#ifndef DIALECTS_TOKENS_H
#define DIALECTS_TOKENS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "messages/api_error.h"
#include "shoal/v1/worker.pb-c.h"

typedef struct tokens_ask {
    const char *text; /* borrowed of the body; NULL: its messages, which openai.h reads */
    bool vllm;        /* the names are vLLM's */
    bool special;     /* with the tokens that the tokenizer puts around a text */
    bool plain;       /* what spells a special token is text */
    bool pieces;      /* each token with its text: in place of ids, or with vllm in a list beside them */
} tokens_ask;

/* 0 or the status of *e. */
int tokens_read(tokens_ask *ret, const json_t *root, api_error *e);
/* {"tokens":[...],"count":...,"max_model_len":...} */
void tokens_put(buf *out, const tokens_ask *a, const Shoal__V1__TokenizeReply *r, uint32_t max_model_len);

#endif
