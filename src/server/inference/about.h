/* about.h: what a parsed request is about, for the rules of routes. Strings are the spec's. */
#ifndef INFERENCE_ABOUT_H
#define INFERENCE_ABOUT_H

#include "messages/encode_parse.h"
#include "dialects/openai.h"
#include "request/routed.h"

/* Of a chat: the last message of the user, and the bytes of all messages; of a completion: its first prompt.
 */
void about_generation(routed_about *ret, const gen_spec *s, const char *task);
/* The first text; a rerank's first document. */
void about_encoding(routed_about *ret, const encode_spec *s);

#endif
