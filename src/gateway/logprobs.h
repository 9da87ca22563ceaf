/* logprobs.h: log-probabilities of tokens in OpenAI's two forms. */
#ifndef GATEWAY_LOGPROBS_H
#define GATEWAY_LOGPROBS_H

#include <stdbool.h>

#include "base/buf.h"
#include "gateway/answer.h"

/* Append d's tokens to parts (see gen_choice.logprobs). text_offset: bytes of text before this delta. */
void logprobs_add(buf parts[ANSWER_LOGPROB_PARTS], bool chat, const Shoal__V1__Delta *d, size_t text_offset);
/* The value of "logprobs": an object, or null when there are none. */
void logprobs_put(buf *out, bool chat, const buf parts[ANSWER_LOGPROB_PARTS]);

#endif
