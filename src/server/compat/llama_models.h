/* llama_models.h: GET /models/sse: what becomes of models, as the router of llama-server tells it.
 *
 *     data: {"model":"home-chat-s","event":"model_status","data":{"status":"loading"}}
 *     data: {"model":"smollm2","event":"download_progress","data":{"model.gguf":{"done":4096,"total":271000000}}}
 *     data: {"model":"smollm2","event":"download_finished"}        or download_failed
 *     data: {"model":"smollm2","event":"model_remove"}
 *
 * A model is loaded while a replica of it is ready, loading while one starts, else unloaded. The stream has changes only; GET
 * /models has what is. A key hears of the models that it may use. Loop thread. */
#ifndef COMPAT_LLAMA_MODELS_H
#define COMPAT_LLAMA_MODELS_H

#include "request/request.h"

void llama_models_sse(gateway_request *rq);

#endif
