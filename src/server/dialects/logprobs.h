/* logprobs.h: log-probabilities of tokens in OpenAI's two forms. */
#ifndef DIALECTS_LOGPROBS_H
#define DIALECTS_LOGPROBS_H

#include <stdbool.h>

#include "base/buf.h"
#include "dialects/answer.h"

/* Append d's tokens to parts (see gen_choice.logprobs) as s asks for them; the first begins at character `offset`, and what
 * is returned is where the last one ends. A token that begins within a character has that character's offset. Tokens are counted, not the text of the deltas: half a character waits
 * for its other half, so how much text has come depends on when a delta was sent. */
size_t logprobs_add(buf parts[ANSWER_LOGPROB_PARTS], const gen_spec *s, const Shoal__V1__Delta *d,
                    size_t offset);
/* Characters of d's tokens. */
size_t logprobs_chars(const Shoal__V1__Delta *d);
/* What is left of `all` behind the first n tokens; borrowed from it. */
void logprobs_after(buf ret[ANSWER_LOGPROB_PARTS], const buf all[ANSWER_LOGPROB_PARTS], size_t n);
/* The value of "logprobs": an object, or null when there are none. */
void logprobs_put(buf *out, bool chat, const buf parts[ANSWER_LOGPROB_PARTS]);

#endif
