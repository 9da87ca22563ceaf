/* cli_loads.h: asks a running server to load, unload or remove a model, and shows how that goes on.
 *
 * Steps come as lines of JSON (docs/http.md): on a terminal they are one live line, in a pipe a line each,
 * both on standard error.
 *
 *     cli_loads_ask ask = {.path = "/v1/models/load", .body = body, .what = "home-chat", .key = key};
 *     rc = cli_loads_send(&where, &ask, &last, &err);        json_decref(last) */
#ifndef COMMAND_CLI_LOADS_H
#define COMMAND_CLI_LOADS_H

#include <stdbool.h>

#include "json/json.h"
#include "client/http_client.h"

typedef struct cli_loads_ask {
    const char *method; /* NULL: POST */
    const char *path;
    json_t *body; /* borrowed; NULL: none */
    const char *what, *key;
    bool quiet;
} cli_loads_ask;

/* *ret is the last that was said: {"status": "ready", ...}, or the object that was answered; the caller's.
 * SHOAL_EUNAVAILABLE: nobody listens there. What the server refuses is SHOAL_EIO with its sentence. */
int cli_loads_send(const http_where *where, const cli_loads_ask *ask, json_t **ret, shoal_err *err);

#endif
