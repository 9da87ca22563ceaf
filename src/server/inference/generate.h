/* generate.h: POST /v1/chat/completions, /v1/completions, /v1/translate and /v1/summarize, streamed and not.
 */
#ifndef INFERENCE_GENERATE_H
#define INFERENCE_GENERATE_H

#include "inference/conversation.h"
#include "request/request.h"

/* Each answers rq now or later; it is not to be touched afterwards. Loop thread. */
void generate_chat(gateway_request *rq);
void generate_completions(gateway_request *rq);
void generate_translate(gateway_request *rq);
/* A chat request with a conversation that has been loaded; takes k. */
void generate_conversation(conversation *k);
void generate_summarize(gateway_request *rq);
/* A chat request in the form that `parse` reads; the body is borrowed. */
void generate_body(gateway_request *rq, generate_parse parse, const char *body, size_t len);
/* A completion that somebody else has read; takes spec. */
void generate_spec(gateway_request *rq, gen_spec *spec);

#endif
