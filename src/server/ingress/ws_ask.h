/* ws_ask.h: what one message of a WebSocket asks (door_ws.h has the form).
 *
 *     ws_ask a;
 *     if (ws_ask_parse(&a, bytes, n, &e) != 0) ...       // a.id is set all the same where it could be read
 *     ws_ask_done(&a);
 *
 * Pure. */
#ifndef INGRESS_WS_ASK_H
#define INGRESS_WS_ASK_H

#include "messages/api_error.h"
#include "json/json.h"

enum { WS_ID_MAX = 64, WS_HEADERS_MAX = 64 };

typedef struct ws_ask {
    char id[WS_ID_MAX + 1]; /* "": not said */
    bool cancels;
    const char *method, *path, *query; /* query "" when none */
    json_t *headers;                   /* an object of texts, or NULL */
    buf body;
    json_t *root; /* what the others are borrowed from */
    char *target; /* path and query */
} ws_ask;

/* 0, or the status of *e. ws_ask_done is due in either case. */
int ws_ask_parse(ws_ask *ret, const char *bytes, size_t n, api_error *e);
void ws_ask_done(ws_ask *a);
/* In any letter case; NULL: none. */
const char *ws_ask_header(const ws_ask *a, const char *name);

#endif
