/* mcp_answer.h: what a server of the Model Context Protocol says, read without trust. Pure.
 *
 * Messages are JSON-RPC 2.0, alone (application/json, or a line of a program's output) or as events of a stream
 * (text/event-stream). Of tools only those are taken whose name is allowed and whose schema is an object's; of a result
 * only texts, cut where they are too long. */
#ifndef MCP_MCP_ANSWER_H
#define MCP_MCP_ANSWER_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "mcp/mcp_rule.h"

typedef struct mcp_message {
    bool answers;       /* the request with this id; else it is a request or a notification of the server's */
    int64_t id;         /* answers: of our request; of others' requests `root` has it */
    const char *method; /* root's; NULL: it answers */
    const json_t *result;
    const char *error; /* root's; NULL: none */
    json_t *root;      /* owned */
} mcp_message;

/* One message. SHOAL_EPROTOCOL: it is none; err says why, and never what it has. */
int mcp_message_parse(mcp_message *ret, const char *text, size_t n, shoal_err *err);

/* A tool that may be offered: borrowed from the list's JSON. */
typedef struct mcp_tool {
    const char *name, *description; /* description: "" without */
    const json_t *schema;
} mcp_tool;

/* Of tools/list's result the i-th tool, in its order; false: there is none, or it is none that may be offered. */
bool mcp_tool_at(const json_t *result, size_t i, const mcp_rule *r, mcp_tool *ret);
size_t mcp_tools_count(const json_t *result);      /* as many as it lists */
const char *mcp_next_cursor(const json_t *result); /* NULL: no further page */

/* What a model reads of tools/call's result: its texts, a line each, at most most_bytes of them. SHOAL_EPROTOCOL: it is no
 * result. */
int mcp_result_text(buf *out, const json_t *result, size_t most_bytes, bool *ret_is_error, shoal_err *err);

/* Events of a stream, in pieces of any size. */
typedef struct mcp_events {
    buf line, data;
    size_t most_bytes; /* of one event */
} mcp_events;
/* fn gets each event's data; not 0 ends the push with it. */
int mcp_events_push(mcp_events *e, const char *bytes, size_t n,
                    int (*fn)(void *user, const char *data, size_t n), void *user);
void mcp_events_done(mcp_events *e);

#endif
