/* cli_process.h: asks a running Shoal's /v1/process and shows its answer. */
#ifndef COMMAND_CLI_PROCESS_H
#define COMMAND_CLI_PROCESS_H

#include <jansson.h>

#include "client/http_client.h"

/* Of an address of this machine: the socket there for commands of this server's own user (own_socket.h), if there is one. */
void cli_process_own(http_where *where);

/* The server that was named: `server`, or NULL for SHOAL_HOST of the environment; NULL: none was. */
const char *cli_process_named(const char *server);
/* Where the server is that a command means: the one that was named, as http_where_parse takes it, else the address
 * of cli_home_find's configuration, and without one http://127.0.0.1:8080. */
int cli_process_where(http_where *ret, const char *server, shoal_err *err);

/* Does anything listen there? The error of who finds nobody says what to do. */
int cli_process_reach(const http_where *where, shoal_err *err);

typedef struct cli_process_ask {
    const char *text, *pipeline;    /* text NULL: none; pipeline NULL: the only one */
    const buf *audio, *image, *csv; /* files that stages read; NULL: none */
    const char *session;            /* of lines that belong together; NULL: none */
    const char *devices; /* what --devices FILE holds: a JSON array or lines; NULL: the pipeline's own */
    const char *key;     /* of the API; NULL: none */
    /* The answer's text as it comes; NULL: all comes in one piece. */
    void (*live)(void *user, const char *text, size_t n);
    void *user;
} cli_process_ask;

/* The answer as it came, appended to ret_json; the errors say what to do when nobody listens. */
int cli_process_send(const http_where *where, const cli_process_ask *ask, buf *ret_json, shoal_err *err);

/* What GET of that path answers, appended; errors as above. key may be NULL. */
int cli_process_get(const http_where *where, const char *path, const char *key, buf *ret_json,
                    shoal_err *err);

/* The same for a POST of {}. */
int cli_process_post(const http_where *where, const char *path, const char *key, buf *ret_json,
                     shoal_err *err);

/* The same for a POST of `body`, JSON. */
int cli_process_post_json(const http_where *where, const char *path, const char *body, const char *key,
                          buf *ret_json, shoal_err *err);

/* What these do, for who asks otherwise: append the headers that carry the key (NULL: none); the error of an
 * address where nobody listens (err: why); that of an answer with this status and body (NULL: no JSON). */
int cli_process_headers(buf *out, const char *key, shoal_err *err);
int cli_process_nobody(shoal_err *err);
/* After such an error, or without memory, the lines that are still to be sent fail as well. */
bool cli_process_ends(int rc, const shoal_err *err);
int cli_process_refused(int status, const json_t *answer, shoal_err *err);

/* An answer on stdout: its text (unless that was shown already), calls and results; what was understood
 * where it has none of these; stages that failed. With `trace` what was understood in any case, and every stage
 * that ran, for how long and why. */
void cli_process_print(const json_t *answer, bool without_text, bool trace);

/* Inside cli_process*.c: the exchange of a streamed answer (cli_process_live.c), which ends as one in one
 * piece would: the answer is appended to ret_body, and that of an error, too. */
int cli_process_live(const http_where *where, const http_ask *ask, const cli_process_ask *p, int *ret_status,
                     buf *ret_body, shoal_err *err);

#endif
