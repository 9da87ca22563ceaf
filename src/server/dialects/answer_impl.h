/* answer_impl.h: single chunks of a stream, for the files that write an answer; see answer.h. */
#ifndef DIALECTS_ANSWER_IMPL_H
#define DIALECTS_ANSWER_IMPL_H

#include "dialects/answer.h"

/* Tokens of the prompt that were computed, and whose KV pages the next request with the same prefix finds. */
uint64_t answer_cache_writes(const gen_answer *a);
/* ,"schema":{...} where the choice was judged. */
void answer_put_verdict(buf *out, const gen_choice *c);
/* parts hold n_logprobs tokens; NULL: none. */
void answer_put_text_chunk(buf *out, const answer_form *f, size_t k, const char *text, size_t n,
                           const buf *parts, size_t n_logprobs);
void answer_put_reasoning_chunk(buf *out, const answer_form *f, size_t k, const char *text, size_t n);
/* name NULL: a further piece of the arguments. */
void answer_put_call_chunk(buf *out, const answer_form *f, size_t k, size_t index, const char *name,
                           const char *arguments, size_t n);

#endif
