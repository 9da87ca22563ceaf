/* stream_client.h: a streamed answer that is taken up where it broke off.
 *
 * A gateway may die in the middle of an answer, and so may the connection to it. The events of a generation
 * carry ids; whoever sends the same request again, to the same gateway or to another one, with the last id as
 * Last-Event-ID gets what is missing (docs/http.md). This keeps what has come, as a browser's EventSource
 * would: whole events only, since half of one has no id yet.
 *
 *     stream_client s = {0};
 *     while (stream_client_ask(&s, &gateways[k], &ask, why, sizeof why) == STREAM_BROKEN && patient)
 *         k = (k + 1) % n;                           // elsewhere; what has come is kept
 *     ... s.events: the whole answer, as if one gateway had sent it ...
 *     stream_client_done(&s);
 *
 * Streams without ids (pipelines, stand-ins) begin anew. One thread at a time. */
#ifndef CLIENT_STREAM_CLIENT_H
#define CLIENT_STREAM_CLIENT_H

#include <stddef.h>

#include "client/http_client.h"

enum { STREAM_CLIENT_ID_MAX = 2000 /* letters of an id; an event with a longer one has none */ };

typedef struct stream_client {
    buf events;                        /* what has come, of all tries */
    char id[STREAM_CLIENT_ID_MAX + 1]; /* of the last event; "": it begins at the beginning */
    unsigned n_resumed;                /* tries that went on from an id and were let in */
} stream_client;

typedef enum stream_try {
    STREAM_WHOLE,   /* the last event, [DONE], has come */
    STREAM_BROKEN,  /* it may be asked for again, here or elsewhere */
    STREAM_REFUSED, /* nobody goes on with what has come: the id is not of this request, model or answer */
} stream_try;

/* Ask for the answer, or for what is missing of it; r->headers are sent, too. `why` is a sentence unless the
 * answer is whole. c's status, first_ns and pieces are those of this try. */
stream_try stream_client_ask(stream_client *s, http_client *c, const http_ask *r, char *why, size_t why_cap);

/* The part of it that makes no calls: keep what one try brought, body[n], which answered with this status (0:
 * not at all) and broke off or did not. An error event, and what is no whole event, is not kept. */
stream_try stream_client_take(stream_client *s, int status, const char *body, size_t n, char *why,
                              size_t why_cap);

void stream_client_done(stream_client *s);

#endif
