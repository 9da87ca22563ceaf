/* mcp_tools.h: the tools that an MCP server offers over what is served. Pure. */
#ifndef COMPAT_MCP_TOOLS_H
#define COMPAT_MCP_TOOLS_H

#include <jansson.h>

#include "base/buf.h"
#include "messages/api_error.h"

typedef struct mcp_tool mcp_tool;

/* Of numbers in answers that are handed on: as they came, 0.7 and not 0.69999999999999996. */
enum { ANSWER_DIGITS = 15 };

/* NULL: there is none of this name. */
const mcp_tool *mcp_tool_find(const char *name);
/* How it is asked: method, path[cap] and body, which is appended. 0, or the status of *e: arguments that are missing or
 * of another type. `arguments` NULL: none. */
int mcp_tool_request(const mcp_tool *t, const json_t *arguments, const char **ret_method, char *path,
                     size_t cap, buf *body, api_error *e);
/* What the model that called reads of our answer: the text that is its point, or the answer as JSON. */
void mcp_tool_put_text(buf *out, const mcp_tool *t, const json_t *answer);
/* The entries of tools/list that fit what is served: GET /v1/models' and GET /v1/pipelines' answers. */
void mcp_tools_put(buf *out, const json_t *models, const json_t *pipelines);

#endif
