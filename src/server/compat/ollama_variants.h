/* ollama_variants.h: Ollama's requests that make models of others: POST /api/create, POST /api/copy.
 *
 * A variant is a name with parameters, a system message and a template over a model, an adapter, an alias, an ensemble or a
 * route: it takes no memory and no worker. Requests of any API that name it are requests to that model, with what they
 * leave out filled in (model_resolve_variant). The model manager keeps variants in the state folder. */
#ifndef COMPAT_OLLAMA_VARIANTS_H
#define COMPAT_OLLAMA_VARIANTS_H

#include "dialects/ollama.h"
#include "request/request.h"

void ollama_create(gateway_request *rq);
void ollama_copy(gateway_request *rq);
/* GET, HEAD and POST /api/blobs/sha256:HEX, by which Ollama's command names a file of a Modelfile. No bytes are taken: the
 * file is that of a model which is here, or it is refused. */
void ollama_blob(gateway_request *rq);
/* NULL: `name` is no variant. Borrowed until the next turn of the loop. */
const json_t *ollama_variant_find(const gateway_request *rq, const char *name);

#endif
