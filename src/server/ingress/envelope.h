/* envelope.h: one request as one message: what a message of a WebSocket asks (ws_ingress.h has the form), and what other
 * transports of messages (MQTT) fill from their own fields.
 *
 *     envelope a;
 *     if (envelope_parse(&a, bytes, n, &e) != 0) ...     // a.id is set all the same where it could be read
 *     m->ingress.key = a.key;
 *     envelope_done(&a);
 *
 * Deadline, key and correlation are members, so no transport makes up headers for them. Pure. */
#ifndef INGRESS_ENVELOPE_H
#define INGRESS_ENVELOPE_H

#include "messages/api_error.h"
#include "json/json.h"

enum { ENVELOPE_ID_MAX = 64, ENVELOPE_HEADERS_MAX = 64, ENVELOPE_TIMEOUT_MAX_MS = 86400000 };

typedef struct envelope {
    char id[ENVELOPE_ID_MAX + 1];      /* correlation: the client's name for the request; "": not said */
    bool cancels;                      /* the request of this id, and asks nothing */
    const char *method, *path, *query; /* query "" when none */
    json_t *headers;                   /* an object of texts, or NULL */
    buf body;
    const char *key; /* the API key that it shows itself; NULL: its connection's counts */
    bool has_timeout;
    uint64_t timeout_ms; /* from its arrival; not over ENVELOPE_TIMEOUT_MAX_MS */
    json_t *root;        /* what the others are borrowed from */
    char *target;        /* path and query */
} envelope;

/* 0, or the status of *e. envelope_done is due in either case. */
int envelope_parse(envelope *ret, const char *bytes, size_t n, api_error *e);
void envelope_done(envelope *a);
/* In any letter case; NULL: none. */
const char *envelope_header(const envelope *a, const char *name);

#endif
