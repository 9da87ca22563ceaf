/* dialect.h: errors as the clients of a path read them.
 *
 *     OpenAI's          {"error": {"message", "type", "param", "code"}}
 *     Ollama's          {"error": "sentence"}
 *     KServe's          {"error": "sentence"}
 *     llama-server's    {"error": {"code": 404, "message", "type"}}
 *     Anthropic's       {"type": "error", "error": {"type", "message"}, "request_id"}
 *     JSON-RPC's        {"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message"}} */
#ifndef REQUEST_DIALECT_H
#define REQUEST_DIALECT_H

#include "messages/api_error.h"
#include "base/buf.h"
#include "request/endpoint.h"

/* ENDPOINT_OLLAMA, ENDPOINT_KSERVE, ENDPOINT_LLAMA, ENDPOINT_RESPONSES, ENDPOINT_ANTHROPIC, ENDPOINT_RPC, or 0, OpenAI's: what is
 * spoken at the path. A path that is none is as the first row's that begins with most of its segments. */
unsigned dialect_of(const endpoint_table *t, const char *path);
/* request_id: its name, which some dialects repeat. */
void dialect_put_error(buf *out, unsigned dialect, const api_error *e, const char *request_id);
/* The name of such an event in a stream; "": it has none. */
const char *dialect_error_event(unsigned dialect);
/* For when there is no memory to say what is the matter. */
const char *dialect_no_memory(unsigned dialect);

#endif
