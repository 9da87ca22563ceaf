/* door.h: the way by which one request came, and by which its answer goes.
 *
 * Handlers know a gateway_request (request.h) and never its door, so an endpoint is served by every door
 * alike. A door says what was asked, and carries one answer: a reply, or begin + event* + end.
 *
 *     door_http.c   HTTP/1.1 and HTTP/2; a stream's events are Server-Sent Events
 *     door_ws.c     one of many requests of a WebSocket; each event is a message
 *
 * A new one gives its door_ops to requests that it makes with door_enter:
 *
 *     struct mine { door door; ... } *m = ...;
 *     m->door.ops = &MINE;
 *     door_enter(g, &m->door, clock_ns());       // it may be answered before this returns
 *
 * A door ends its memory in `reply`, `end` or `drop`, of which exactly one comes, and it calls door_leave
 * when its client has gone before. Loop thread. */
#ifndef REQUEST_DOOR_H
#define REQUEST_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "http/http.h"
#include "messages/event.h"

struct api_error;
struct gateway;
struct gateway_request;

enum { DOOR_LATER = -1 };

/* A request that the gateway makes itself: to refresh an entry of the cache, or to compare an answer. */
typedef enum { BACKGROUND_NONE, BACKGROUND_REFRESH, BACKGROUND_AUDIT } background_kind;

typedef struct door door;
typedef struct door_ops {
    bool takes_lines; /* a stream may also be lines of JSON (request_lines_begin) */
    const char *(*method)(const door *d);
    const char *(*path)(const door *d);
    const char *(*query)(const door *d);
    const char *(*header)(const door *d, const char *lower_name); /* NULL: none */
    const char *(*body)(const door *d, size_t *ret_len);          /* whole; "" where it comes in pieces */
    /* Once it is let in, and before its body is read: unpack it, and parse it ahead if it is long. 0; an HTTP status
     * with *e filled; or DOOR_LATER: door_go_on follows. NULL: bodies come plain by this door. */
    int (*unpack)(door *d, struct api_error *e);
    void (*pause)(door *d, bool paused); /* of a body in pieces */
    /* The final answer, whole. */
    void (*reply)(door *d, int status, const http_header *headers, size_t n, const void *body, size_t len);
    void (*begin)(door *d, int status, const http_header *headers, size_t n);
    void (*event)(door *d, const event *e); /* borrowed; in the door's own form */
    void (*flush)(door *d);                 /* behind the events that came together; NULL: nothing to do */
    void (*end)(door *d);
    size_t (*unsent)(const door *d); /* bytes of the answer that its client has not taken */
    void (*drop)(door *d);           /* the gateway goes: no answer comes */
} door_ops;

struct door {
    const door_ops *ops;
    bool local;                 /* its client is on this machine, and no browser: a Unix socket */
    background_kind background; /* of a request without a client (answers/revalidate.h) */
    const void *connection;     /* only to be compared (capacity.h); NULL: none */
    const char *from;           /* its client's address; NULL: none, or a Unix socket. Borrowed */
    const char *key;            /* the API key that the client shows; NULL: its headers say. Borrowed */
    bool
        has_timeout; /* the transport's own deadline (grpc-timeout); the sooner of it and of the header's counts */
    uint64_t timeout_ms;              /* from its arrival */
    bool lines;                       /* its stream is lines of JSON, not Server-Sent Events */
    bool body_follows;                /* its body is still coming, of an endpoint that takes it in pieces */
    const struct gateway_request *of; /* that it asks in another form, whose key is its own; NULL: none */
    struct gateway_request *rq;       /* from door_enter until the final call */
};

/* A request comes in by d, whose last byte came at received_ns. */
void door_enter(struct gateway *g, door *d, uint64_t received_ns);
/* How long a body or a message may be, by any transport, where no sound and no document is taken. */
size_t door_body_bytes(const struct gateway *g);
/* Its body is ready, or e says what is wrong with it. d->rq may have been answered when this returns. */
void door_go_on(door *d, const struct api_error *e);
/* Its client has left before the answer was complete; d->rq is gone then, and none of d's ops is called. */
void door_leave(door *d);

#endif
