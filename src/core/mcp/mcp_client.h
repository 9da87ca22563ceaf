/* mcp_client.h: calls of tools of the MCP servers that the configuration names, and of no others.
 *
 *     mcp_client *m;
 *     rc = mcp_open(&m, loop, rules, n_rules, err);                       reads the files of headers and variables
 *     mcp_call *c = mcp_start(m, &(mcp_ask){.server = "weather", .done = on_tools});               its tools
 *     c = mcp_start(m, &(mcp_ask){.server = "weather", .tool = "forecast", .arguments = "{...}", .done = on_result});
 *     mcp_free(m);                                                        and run the loop until it has nothing left
 *
 * A server is spoken to with the first call: over HTTP each message is a request; a program is started, and again when it
 * has ended. What it sends is bounded by its rule: time, bytes. It can ask nothing of this side: no roots, no sampling.
 * Redirects are not followed, and certificates are verified, as by hosts.h. Loop thread. */
#ifndef MCP_MCP_CLIENT_H
#define MCP_MCP_CLIENT_H

#include <jansson.h>
#include <uv.h>

#include "mcp/mcp_rule.h"

typedef struct mcp_client mcp_client;
typedef struct mcp_call mcp_call;

typedef struct mcp_end { /* borrowed until the callback returns */
    int status; /* 0, SHOAL_EUNAVAILABLE, SHOAL_EDEADLINE, SHOAL_EPROTOCOL, SHOAL_ELIMIT, SHOAL_ENOMEM */
    const char *message; /* one sentence, "" on success: it names the server */
    const json_t
        *result; /* of tools/list, all pages in one "tools"; or of tools/call. NULL after a failure */
    double ms;
} mcp_end;

typedef struct mcp_ask {
    const char *server, *tool; /* tool NULL: which tools there are. Borrowed until done */
    const char *arguments;     /* JSON; copied */
    uint64_t deadline_ns;      /* of base/clock.h; 0: the rule's timeout alone */
    const char *request_id;    /* for the log; borrowed during the call */
    void *user;
    void (*done)(void *user, const mcp_end *e); /* once, later, from the loop; the call is gone after it */
} mcp_ask;

/* rules must outlive it. note (may be NULL) hears of each call: tool NULL of a list. SHOAL_EINVALID: "mcp_servers[0]...". */
typedef void mcp_note_fn(void *user, const char *server, const char *tool, int status, double ms);
int mcp_open(mcp_client **ret, uv_loop_t *loop, const mcp_rule *rules, size_t n, mcp_note_fn *note,
             void *user, shoal_err *err);
mcp_call *mcp_start(mcp_client *m, const mcp_ask *a); /* NULL: out of memory, and no callback follows */
void mcp_cancel(mcp_call *c);                         /* no callback follows; accepts NULL */
void mcp_free(mcp_client *m);                         /* cancels what is open; accepts NULL */

const mcp_rule *mcp_server_rule(const mcp_client *m, const char *server);

#endif
