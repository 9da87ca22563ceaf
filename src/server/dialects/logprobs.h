/* logprobs.h: log-probabilities of tokens in OpenAI's two forms. */
#ifndef DIALECTS_LOGPROBS_H
#define DIALECTS_LOGPROBS_H

#include <stdbool.h>

#include "base/buf.h"
#include "dialects/answer.h"

/* Append d's tokens to parts (see gen_choice.logprobs); the first begins at byte `offset`, and what is
 * returned is where the last one ends. Tokens are counted, not the text of the deltas: half a character waits
 * for its other half, so how much text has come depends on when a delta was sent. */
size_t logprobs_add(buf parts[ANSWER_LOGPROB_PARTS], bool chat, const Shoal__V1__Delta *d, size_t offset);
/* Bytes of d's tokens. */
size_t logprobs_bytes(const Shoal__V1__Delta *d);
/* What is left of `all` behind the first n tokens; borrowed from it. */
void logprobs_after(buf ret[ANSWER_LOGPROB_PARTS], const buf all[ANSWER_LOGPROB_PARTS], size_t n);
/* The value of "logprobs": an object, or null when there are none. */
void logprobs_put(buf *out, bool chat, const buf parts[ANSWER_LOGPROB_PARTS]);

#endif
