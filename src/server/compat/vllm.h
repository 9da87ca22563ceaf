/* vllm.h: what vLLM's clients ask of a server besides OpenAI's API; its tokens are llama.h's. */
#ifndef COMPAT_VLLM_H
#define COMPAT_VLLM_H

#include "request/request.h"

void vllm_ping(gateway_request *rq);    /* 200 while the server runs, as SageMaker asks */
void vllm_version(gateway_request *rq); /* {"version"} */
void vllm_load(gateway_request *rq);    /* {"server_load"}: requests that are being answered */

#endif
