/* docs_place.h: where `shoal docs` works: at a server that runs, or at one of its own.
 *
 * With --server that one is asked. Without, the configuration's address is; and where nobody listens there,
 * this program starts a server for itself, on a socket that nobody else knows, with the same configuration:
 * the same models and the same state folder, so that what is added is there when the real one starts.
 *
 *     docs_place at;
 *     if (docs_place_open(&at, server, key, err) == 0 &&
 *         docs_place_call(&at, "GET", "/v1/collections", NULL, 0, &json, err) == 0) puts(json.data);
 *     docs_place_close(&at);
 */
#ifndef CLI_ASK_DOCS_PLACE_H
#define CLI_ASK_DOCS_PLACE_H

#include <sys/types.h>

#include "client/http_client.h"

typedef struct docs_place {
    http_client client;
    buf headers;
    pid_t child;     /* 0: it is not ours */
    char folder[64]; /* with its socket and its log; "" without a child */
} docs_place;

/* server NULL: as above; key may be NULL. Zeroed after a failure. */
int docs_place_open(docs_place *ret, const char *server, const char *key, shoal_err *err);
void docs_place_close(docs_place *at);
/* One exchange; the answer's JSON is appended. What is refused is an error with the server's words:
 * SHOAL_ENOTFOUND for 404, SHOAL_EINVALID for other wrong requests, SHOAL_ELIMIT for 413. */
int docs_place_call(docs_place *at, const char *method, const char *path, const char *body, size_t n,
                    buf *ret_json, shoal_err *err);

#endif
