/* llama.h: llama-server's own endpoints, for clients that speak them (dialects/llama.h has the words).
 *
 * llama-server has one model; here a request may name one ("model", or ?model= of a GET), and without a name
 * the only one that generates is meant. A completion is one of ours, which is answered in another form. */
#ifndef COMPAT_LLAMA_H
#define COMPAT_LLAMA_H

#include "request/request.h"

void llama_completion(gateway_request *rq);
void llama_infill(gateway_request *rq);
void llama_tokenize(gateway_request *rq);
void llama_detokenize(gateway_request *rq);
void llama_tokenizer_info(gateway_request *rq); /* vLLM's: control tokens and template */
void llama_template(gateway_request *rq); /* messages as the prompt that they become */
void llama_props(gateway_request *rq);
void llama_slots(gateway_request *rq);
void llama_health(gateway_request *rq);
void llama_embedding(gateway_request *rq); /* llama-server's older form of /v1/embeddings */

#endif
