/* ollama.h: Ollama's API under /api, for clients that speak it.
 *
 * Each request becomes one of our own, which comes in as an ingress request of its own and whose answer goes out
 * in Ollama's form: so keys, limits, routes, caches and ensembles are those of every request. dialects/ollama.h
 * has the translation. */
#ifndef COMPAT_OLLAMA_H
#define COMPAT_OLLAMA_H

#include "request/request.h"

void ollama_chat(gateway_request *rq);
void ollama_generate(gateway_request *rq);
void ollama_embed(gateway_request *rq);
void ollama_embeddings(gateway_request *rq); /* the older form of embed */
void ollama_tags(gateway_request *rq);
void ollama_ps(gateway_request *rq);
void ollama_show(gateway_request *rq);
void ollama_version(gateway_request *rq);
/* What the alias `name` of the configuration stands for, which rq remembers; "NAME" and "NAME:latest" are one name.
 * NULL: it is no alias. */
const char *ollama_find_alias(gateway_request *rq, const char *name);

/* Is it the name of something served, of an alias or of a model of the store? */
bool ollama_is_known(gateway_request *rq, const char *name);

#endif
