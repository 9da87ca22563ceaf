/* model_resolve.h: from the model a request names to the model that is there. */
#ifndef REQUEST_MODEL_RESOLVE_H
#define REQUEST_MODEL_RESOLVE_H

#include "request/request.h"

/* What `name` of a request stands for: the target of the configuration's alias of that name, or what a variant of
 * that name was made from, which rq remembers for the reply (request_shown_model), or else `name` itself, NULL too.
 * Before routed_find, model_resolve and admission_may_use, which know the names of what is served alone. */
const char *model_resolve_alias(gateway_request *rq, const char *name);

/* Does a model, an adapter of one, an ensemble, a pipeline or a route answer to that name? */
bool model_resolve_serves(const gateway_request *rq, const char *name);

/* The model that a client made of another under that name, or NAME of "NAME:latest": {"from", "parameters", "system",
 * "messages", "template"} (ollama_variants.h). A served model or an alias of that name comes first. NULL: there is none.
 * Borrowed until the next turn of the loop. */
const json_t *model_resolve_variant(const gateway_request *rq, const char *name);

/* The first model that does the task and that the key may use; NULL: none is up. Borrowed until the next turn of the
 * loop. */
const char *model_resolve_first(const gateway_request *rq, const char *task);

/* As calls_info of rq->calls, which asks each decorator in turn. An ensemble, a route or a pipeline comes before a model of
 * the registry of the same name, as in a call.
 * ret_known may be NULL. */
const Shoal__V1__ModelInfo *model_resolve_info(const gateway_request *rq, const char *name, bool *ret_known);

/* A model that does the task (task_fits). Sets *ret_name (NULL on entry: take the only model with that task; the name is of rq then) and notes the
 * model in rq: a name may be "MODEL:ADAPTER", then rq->model is MODEL, and rq->adapter ADAPTER with its
 * digest. *ret_info is NULL when no replica has come up yet; then the call itself waits for one. 0 or an
 * HTTP status. */
int model_resolve(gateway_request *rq, const char *task, const char **ret_name,
                  const Shoal__V1__ModelInfo **ret_info, api_error *e);

#endif
