/* llama.h: llama-server's own API (llama.cpp, tools/server/README.md) in words of ours, and ours in its.
 * Pure. */
#ifndef API_LLAMA_H
#define API_LLAMA_H

#include "api/api_error.h"
#include "base/buf.h"

/* {"error":{"code":400,"message":"...","type":"invalid_request_error"}} */
void llama_put_error(buf *out, const api_error *e);

#endif
