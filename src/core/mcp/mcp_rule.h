/* mcp_rule.h: servers of the Model Context Protocol as the configuration names them. Pure; mcp_client.h asks.
 *
 *     mcp_servers:
 *       - name: weather
 *         url: https://mcp.lan:8443/mcp                 Streamable HTTP
 *         headers: [{name: authorization, file: weather.token}]
 *         tools: [forecast]                             what may be called; nothing else is
 *       - name: notes
 *         command: [/usr/bin/notes-mcp, --read-only]    or a program, by its standard input and output
 *         tools: [find_note] */
#ifndef MCP_MCP_RULE_H
#define MCP_MCP_RULE_H

#include "hosts/host_rule.h"

typedef struct mcp_rule {
    const char *name;
    const char *url;      /* NULL: command */
    const char **command; /* the program's file and its arguments; n 0: url */
    size_t n_command;
    host_header *headers; /* of every request */
    size_t n_headers;
    host_header *env; /* further variables of the program; it has PATH, HOME and LANG */
    size_t n_env;
    const char *ca;
    const char **tools; /* that may be offered to models and called */
    size_t n_tools;
    uint64_t timeout_ms;             /* of an answer */
    uint64_t max_bytes;              /* of an answer */
    uint64_t text_bytes;             /* of it that a model reads */
    uint64_t max_tools, tools_bytes; /* that it may list, all pages together */
} mcp_rule;

/* SHOAL_EINVALID begins with where: "mcp_servers[0].url: ...". */
int mcp_rule_check(const mcp_rule *r, const char *where, shoal_err *err);
const mcp_rule *mcp_rule_find(const mcp_rule *all, size_t n, const char *name); /* NULL: there is none */

#endif
