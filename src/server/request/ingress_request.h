/* ingress_request.h: one request as the transport that received it sees it.
 *
 * Handlers know a gateway_request (request.h) and never its transport, so every transport serves every endpoint
 * alike. An ingress_request says what was asked, and carries one answer: a reply, or begin + event* + end.
 *
 *     http_ingress.c   HTTP/1.1 and HTTP/2; a stream's events are Server-Sent Events
 *     ws_ingress.c     one of many requests of a WebSocket; each event is a message
 *
 * A new transport gives its ingress_request_ops to the requests that it makes with ingress_request_enter:
 *
 *     struct mine { ingress_request ingress; ... } *m = ...;
 *     m->ingress.ops = &MINE;
 *     ingress_request_enter(g, &m->ingress);                   // it may be answered before this returns
 *
 * The transport frees the request in `reply`, `end` or `drop`, of which exactly one comes. It calls
 * ingress_request_leave if the client leaves before. Loop thread. */
#ifndef REQUEST_INGRESS_REQUEST_H
#define REQUEST_INGRESS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_user.h"
#include "base/buf.h"
#include "http/http.h"
#include "messages/event.h"

struct api_error;
struct gateway;
struct gateway_request;

enum { INGRESS_LATER = -1 };

/* A request that the gateway makes itself: to refresh an entry of the cache, or to compare an answer. */
typedef enum { BACKGROUND_NONE, BACKGROUND_REFRESH, BACKGROUND_AUDIT } background_kind;

typedef struct ingress_request ingress_request;
typedef struct ingress_request_ops {
    bool takes_lines; /* a stream may also be lines of JSON (request_lines_begin) */
    const char *(*method)(const ingress_request *in);
    const char *(*path)(const ingress_request *in);
    const char *(*query)(const ingress_request *in);
    const char *(*header)(const ingress_request *in, const char *lower_name); /* NULL: none */
    const char *(*body)(const ingress_request *in, size_t *ret_len); /* whole; "" where it comes in pieces */
    /* Once it is let in, and before its body is read: unpack it, and parse it ahead if it is long. 0; an HTTP status
     * with *e filled; or INGRESS_LATER: ingress_request_resume follows. NULL: this transport's bodies come plain. */
    int (*unpack)(ingress_request *in, struct api_error *e);
    void (*pause)(ingress_request *in, bool paused); /* of a body in pieces */
    /* The final answer, whole. */
    void (*reply)(ingress_request *in, int status, const http_header *headers, size_t n, const void *body,
                  size_t len);
    void (*begin)(ingress_request *in, int status, const http_header *headers, size_t n);
    void (*event)(ingress_request *in, const event *e); /* borrowed; in the transport's own form */
    void (*flush)(ingress_request *in); /* behind the events that came together; NULL: nothing to do */
    void (*end)(ingress_request *in);
    size_t (*unsent)(const ingress_request *in); /* bytes of the answer that its client has not taken */
    void (*drop)(ingress_request *in);           /* the gateway goes: no answer comes */
} ingress_request_ops;

struct ingress_request {
    const ingress_request_ops *ops;
    bool local;                 /* its client is on this machine, and no browser: a Unix socket */
    bool own;                   /* it is a process of this server's user, or of root (http/http_own.h) */
    const file_user *user;      /* that of a process whose files may be loaded for it; NULL: none. Borrowed */
    background_kind background; /* of a request without a client (answers/revalidate.h) */
    const void *connection;     /* only to be compared (capacity.h); NULL: none */
    uint64_t age_ns;            /* since its last byte came */
    const char *from;           /* its client's address; NULL: none, or a Unix socket. Borrowed */
    const char *key;            /* the API key that the client shows; NULL: its headers say. Borrowed */
    const char *key_digest; /* or the SHA-256 of that key, hex, of a request that the gateway makes for it */
    const char *owner;      /* and whose documents it sees (request_owner); NULL: the key's. Both borrowed */
    bool has_timeout;       /* the transport has its own deadline (grpc-timeout); the sooner one counts */
    uint64_t timeout_ms;    /* from its arrival */
    bool lines;             /* its stream is lines of JSON, not Server-Sent Events */
    bool body_follows;      /* its body is still coming, of an endpoint that takes it in pieces */
    const struct gateway_request *of; /* that it asks in another form, whose key is its own; NULL: none */
    struct gateway_request *rq;       /* from ingress_request_enter until the final call */
};

/* Take in a request. */
void ingress_request_enter(struct gateway *g, ingress_request *in);
/* How long a body or a message may be, by any transport, where no sound and no document is taken. */
size_t ingress_request_max_bytes(const struct gateway *g);
/* Its body is ready, or e says what is wrong with it. in->rq may have been answered when this returns. */
void ingress_request_resume(ingress_request *in, const struct api_error *e);
/* Its client has left before the answer was complete; in->rq is gone then, and none of its ops is called. */
void ingress_request_leave(ingress_request *in);

#endif
