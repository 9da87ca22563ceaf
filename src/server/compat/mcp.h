/* mcp.h: a server of the Model Context Protocol: what is served, as tools of agents and chat programs.
 *
 * POST /mcp takes one message of JSON-RPC 2.0 and answers it with one JSON object ("Streamable HTTP" of MCP 2026-07-28,
 * and of 2025-03-26 to 2025-11-25 with their handshake). There are no sessions, no streams and no messages from the
 * server, which the protocol leaves to it. Loop thread. */
#ifndef COMPAT_MCP_H
#define COMPAT_MCP_H

#include "request/request.h"

/* Takes the request over and answers it. Calls of tools are requests of our own (ingress/redispatch.h), with the
 * caller's key and limits; what a tool cannot do is a result with "isError", for the model that called it to read. */
void mcp_handle(gateway_request *rq);

#endif
