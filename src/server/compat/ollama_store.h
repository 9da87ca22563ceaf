/* ollama_store.h: Ollama's requests about models that lie there: POST /api/pull, DELETE /api/delete.
 *
 * A download's steps come as Ollama's lines: "pulling manifest", a line now and then for each file,
 * "verifying sha256 digest", "success"; with "stream": false the last one alone. What it fetches lies in the
 * store and is loaded when somebody asks for it. */
#ifndef COMPAT_OLLAMA_STORE_H
#define COMPAT_OLLAMA_STORE_H

#include "request/request.h"

void ollama_pull(gateway_request *rq);
void ollama_delete(gateway_request *rq);

#endif
