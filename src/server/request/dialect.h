/* dialect.h: errors as the clients of a path read them.
 *
 *     OpenAI's          {"error": {"message", "type", "param", "code"}}
 *     Ollama's          {"error": "sentence"}
 *     KServe's          {"error": "sentence"}
 *     llama-server's    {"error": {"code": 404, "message", "type"}} */
#ifndef REQUEST_DIALECT_H
#define REQUEST_DIALECT_H

#include "messages/api_error.h"
#include "base/buf.h"
#include "request/endpoint.h"

/* ENDPOINT_OLLAMA, ENDPOINT_KSERVE, ENDPOINT_LLAMA, ENDPOINT_RESPONSES, or 0, OpenAI's: what is spoken at
 * the path. A path that is none, or not by its request's method, is as the first row's under the same
 * first segment. */
unsigned dialect_of(const endpoint_table *t, const char *path);
void dialect_put_error(buf *out, unsigned dialect, const api_error *e);
/* For when there is no memory to say what is the matter. */
const char *dialect_no_memory(unsigned dialect);

#endif
