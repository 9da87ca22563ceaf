/* grpc_internal.h: what the files of gRPC share.
 *
 *     grpc_frame.c    bytes of messages, timeouts, statuses
 *     grpc_server.c   the server: which method a request means
 *     grpc_stream.c   a call on it, and messages from a stream of requests
 *     grpc_deadline.c when its calls end by themselves
 *     grpc_channel.c  the client's connection: link, time, keepalive
 *     grpc_client.c   a call on it: what it sends
 *     grpc_reply.c    and what comes back */
#ifndef GRPC_GRPC_INTERNAL_H
#define GRPC_GRPC_INTERNAL_H

#include <nghttp2/nghttp2.h>

#include "grpc/grpc.h"
#include "grpc/grpc_frame.h"
#include "http/http_internal.h"
#include "wire/transport.h"

/* ---- server ---------------------------------------------------------------------------------- */

typedef struct grpc_streams grpc_streams;
struct grpc_streams {
    grpc_streams *next;
    const grpc_stream_method *methods;
    size_t n_methods;
    void *user;
};

struct grpc_server {
    http_server *http; /* NULL: it lives in somebody else's */
    const grpc_method *methods;
    size_t n_methods, max_message;
    grpc_longest longest;                                         /* NULL: max_message of every request */
    void (*on_long)(void *user, grpc_call *c, grpc_reader *body); /* NULL: on_call gets them */
    grpc_streams *streams;
    void *user;
    uv_timer_t due; /* for the first of the calls that have a deadline, by which they are ordered */
    grpc_call *first_due, *last_due;
    void (*closed)(void *user);
    void *closed_user;
};

struct grpc_call {
    grpc_server *server;
    http_request *r;
    uint64_t deadline_ns; /* 0: none, and in no list */
    grpc_call *due_prev, *due_next;
    bool begun;      /* its head is out */
    bool busy, over; /* inside one of its stream's callbacks; ended there */
    bool paused;
    bool gzips, broken;               /* its answers are compressed; memory for one was missing */
    const grpc_stream_method *stream; /* NULL: its request was one message */
    void *stream_user, *data;
    grpc_reader in;
    size_t held; /* of its bytes: http_hold */
    void (*on_cancel)(void *user, grpc_call *c);
    void *cancel_user;
    void (*on_drained)(void *user, grpc_call *c);
    void *drained_user;
};

/* grpc_server.c */
grpc_status grpc_status_of_refusal(int http_status);
size_t grpc_server_longest(const grpc_server *s, const http_request *r); /* grpc_longest */
void grpc_end_request(http_request *r, bool begun, grpc_status status, const char *message,
                      const http_header *metadata, size_t n_metadata);

/* grpc_stream.c: handlers of the HTTP server; its user is the grpc_server */
void grpc_call_lost(grpc_call *c); /* its handler is told; c is gone */
/* The same, and its client hears why. From the loop, never from inside a callback. */
void grpc_call_fail(grpc_call *c, grpc_status status, const char *why);
void grpc_stream_begin(grpc_call *c, const grpc_stream_method *m, void *user);
void grpc_stream_body(void *user, http_request *r, const uint8_t *bytes, size_t n);
void grpc_stream_body_end(void *user, http_request *r, int status, const char *why);
void grpc_stream_drained(void *user, http_request *r);

/* grpc_deadline.c: calls without a deadline are left alone. */
void grpc_deadline_open(grpc_server *s, uv_loop_t *loop);
void grpc_deadline_add(grpc_call *c);
void grpc_deadline_take(grpc_call *c);

/* ---- client ---------------------------------------------------------------------------------- */

enum { GRPC_MAX_HEADER_BYTES = 16 << 10 }; /* of an answer's head and trailers */

typedef struct grpc_link grpc_link;
struct grpc_link {
    grpc_channel *ch; /* NULL once the channel has let go of it */
    transport *io;
    nghttp2_session *h2; /* NULL until connected */
    grpc_client_call *calls;
    transport_scratch *own; /* NULL: it reads in one that it shares */
    uv_prepare_t settle;
    uv_idle_t again; /* keeps the loop from sleeping while something is left to settle */
    uv_timer_t deadline;
    uv_timer_t keepalive; /* connecting: until it takes too long; then: see on_keepalive */
    int n_handles;
    bool accepted;     /* the server's first SETTINGS have come: it has let us in */
    uint64_t heard_ms; /* when the last bytes came */
    bool pinged, overdue;
    uint64_t calm_since_ms; /* frames that cost the server nothing, since then */
    unsigned n_control;
    bool dirty, has_drained; /* to be settled; a call of it is drained, or was */
    uv_loop_t *loop;
};

struct grpc_channel {
    uv_loop_t *loop;
    address to;
    char *authority, *name, *sni;
    tls_context *tls;
    transport_scratch *scratch; /* NULL: each link has its own */
    uint64_t connect_timeout_ms, keepalive_ms, keepalive_timeout_ms;
    grpc_channel_events ev;
    grpc_link *link; /* connecting or connected */
    bool connected;
    bool *closed; /* told when a callback of link_lost closes the channel; else NULL */
};

struct grpc_client_call {
    grpc_client_call *prev, *next;
    grpc_link *link;
    int32_t stream_id;
    uint64_t deadline_ns;
    grpc_client_events ev;

    buf out; /* frames of requests; those before out_at have left */
    size_t out_at, max_unsent;
    bool half_closed, deferred; /* deferred: nghttp2 waits for bytes */
    bool drained;               /* that event is due */

    grpc_reader in;
    int http_status, grpc_status; /* 0 and -1 until known */
    bool bad_type;
    size_t header_bytes;
    buf message;
    bool busy, over;  /* inside one of its callbacks; ended or cancelled */
    bool paused, due; /* due: no longer paused, and what came meanwhile is to be delivered */
    bool closed;      /* the stream has closed meanwhile, with close_code */
    uint32_t close_code;
    size_t n_unread; /* bytes that came meanwhile: their window is still to be given back */
};

/* grpc_channel.c */
/* A channel without a socket, for fuzz targets: *ret_io is fed with what the server says, and is gone with
 * its link; sink (NULL: none) gets the link as its user. Connected at once, so that event comes from inside.
 */
int grpc_channel_new_memory(grpc_channel **ret, transport **ret_io, uv_loop_t *loop,
                            const grpc_channel_events *ev,
                            void (*sink)(void *user, const uint8_t *bytes, size_t n));
void grpc_link_mark_dirty(grpc_link *l); /* settle before the loop sleeps: deliver, send */
void grpc_link_arm_deadline(grpc_link *l);
void grpc_link_heard_frame(grpc_link *l, const nghttp2_frame *f);

/* grpc_client.c */
/* Out of the link and of nghttp2: nothing finds the call any more. */
void grpc_client_detach(grpc_client_call *c);
void grpc_client_free(grpc_client_call *c);
void grpc_client_end(grpc_client_call *c, grpc_status status, const char *message); /* the event, then free */
/* RST_STREAM with this code, and the end. */
void grpc_client_abort(grpc_client_call *c, uint32_t reset, grpc_status status, const char *message);
void grpc_client_tell_drained(grpc_link *l);

/* grpc_reply.c */
void grpc_reply_callbacks(nghttp2_session_callbacks *cb);
void grpc_reply_catch_up(grpc_link *l); /* what came for calls that were paused and are not any more */

#endif
