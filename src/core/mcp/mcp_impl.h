/* mcp_impl.h: what mcp_client.c and the two ways to a server share: one exchange, and the program. */
#ifndef MCP_MCP_IMPL_H
#define MCP_MCP_IMPL_H

#include "base/list.h"
#include "mcp/mcp_answer.h"
#include "mcp/mcp_client.h"
#include "wire/http_out.h"

enum { MCP_SESSION_MAX = 256, MCP_VERSION_MAX = 16, MCP_LINE_SLACK = 65536 };

typedef struct mcp_server mcp_server;
typedef struct mcp_rpc mcp_rpc;

/* A message that was sent, and its answer; id 0: a notification, which has none. */
struct mcp_rpc {
    list_node link; /* in the server's */
    mcp_server *s;
    int64_t id;
    http_out_call *out; /* over HTTP */
    mcp_events events;
    buf body;
    bool streams;
    char session[MCP_SESSION_MAX]; /* that the server gave */
    char with[MCP_SESSION_MAX];    /* that it was sent with */
    bool opens;                    /* initialize: its answer says which session there is */
    mcp_message answer;            /* root NULL: not yet */
    size_t answer_bytes;           /* of its JSON */
    int fault;                     /* of reading it */
    shoal_err why;
    void *user;
    /* Once; the rpc is gone after it. status 0: result, an object; NULL of a notification. lost: the session that it was sent
     * with is not known there any more. */
    void (*done)(void *user, int status, const char *message, const json_t *result, bool lost);
};

typedef struct mcp_program { /* lives until its handles are closed */
    uv_process_t process;
    uv_pipe_t in, out;
    mcp_server *s; /* NULL: nobody's any more */
    buf line;
    int n_handles;
    bool runs;
} mcp_program;

/* Calls in a row that were given up. */
typedef struct mcp_late {
    unsigned n;
    uint64_t since_ns; /* when the first of them began, or last_ns if that is later */
    uint64_t last_ns;  /* when one last was not */
} mcp_late;

typedef enum mcp_state { MCP_CLOSED, MCP_OPENING, MCP_OPEN } mcp_state;

struct mcp_server {
    mcp_client *m;
    const mcp_rule *rule;
    buf headers; /* "Name: value\r\n" each */
    char **env;  /* of the program; ends with NULL */
    mcp_state state;
    char session[MCP_SESSION_MAX], version[MCP_VERSION_MAX];
    int64_t last_id;
    mcp_program *program;
    mcp_late unheard;    /* calls during which the program said nothing */
    mcp_late unanswered; /* calls of tools, whatever else it said */
    mcp_rpc *opening;
    uint64_t opening_ns; /* when the latest handshake began */
    list_node rpcs, calls;
};

struct mcp_client {
    uv_loop_t *loop;
    http_out *out;
    mcp_server *servers;
    size_t n;
    mcp_note_fn *note;
    void *user;
};

/* ---- exchanges (mcp_http.c, mcp_stdio.c) -------------------------------------------------------------- */

/* Send a request, or a notification, whose `done` follows later. params: JSON. NULL: out of memory. */
mcp_rpc *mcp_rpc_send(mcp_server *s, bool notification, const char *method, const char *params,
                      void (*done)(void *user, int status, const char *message, const json_t *result,
                                   bool lost),
                      void *user);
void mcp_rpc_cancel(mcp_rpc *r); /* no `done`; accepts NULL */
void mcp_rpc_end(mcp_rpc *r, int status, const char *message, bool lost);

bool mcp_http_send(mcp_rpc *r, const buf *message); /* false: out of memory */
/* The message as a line to the program, which runs. SHOAL_E... */
int mcp_stdio_send(mcp_server *s, const buf *message);
int mcp_stdio_start(mcp_server *s, shoal_err *err);
void mcp_stdio_stop(mcp_server *s); /* kills it */
/* The program has ended, or what it sends is not to be read on: every exchange ends so. */
void mcp_server_broken(mcp_server *s, int status, const char *message);
/* Messages of a program. */
void mcp_server_heard(mcp_server *s, const char *text, size_t n);

#endif
