/* grpc.h: gRPC, server and client: one request or a stream of them, one reply or a stream of them.
 *
 * gRPC is HTTP/2 POST + 5-byte frames (flag, big-endian length) + trailers (grpc-status); see
 * github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md. Messages are opaque bytes here (protobuf is packed by
 * the caller). Single-threaded: everything on the loop's thread.
 *
 * One request in one message, as most calls are (replies may be many):
 *
 *     static void on_add(void *user, grpc_call *c, const uint8_t *msg, size_t n) {    server
 *         grpc_call_send(c, sum, n_sum);
 *         grpc_call_end(c, GRPC_OK, NULL);
 *     }
 *     call = grpc_call_start(ch, "/t.T/Add", msg, n, NULL, 0, deadline_ns, &events);  client
 *
 * Streams in either direction or both: the server names its callbacks in a grpc_stream_method, the client
 * opens the call and sends when it likes. Both sides send as long as little waits, and go on at `drained`:
 *
 *     static void on_message(void *user, grpc_call *c, const uint8_t *msg, size_t n) {
 *         grpc_call_send(c, msg, n);                                                  an echo that
 *         if (grpc_call_unsent(c) > GRPC_CALM_BYTES) grpc_call_pause(c, true);        never hoards
 *     }
 *     static void on_drained(void *user, grpc_call *c) { grpc_call_pause(c, false); }
 *
 *     call = grpc_call_open(ch, "/t.T/Echo", NULL, &events);
 *     while (more && grpc_client_unsent(call) < GRPC_CALM_BYTES) grpc_client_send(call, next, n);
 *     ...
 *     grpc_client_half_close(call);
 *
 * No event and no callback ever comes from inside a function of this header, but for the ends that
 * grpc_channel_close announces. Any of them may be called from inside any callback. */
#ifndef GRPC_GRPC_H
#define GRPC_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "http/http.h"
#include "wire/transport.h"

/* X(enum, number) */
/* clang-format off */
#define GRPC_STATUS_TABLE(X)                                                                       \
    X(GRPC_OK, 0) X(GRPC_CANCELLED, 1) X(GRPC_UNKNOWN, 2) X(GRPC_INVALID_ARGUMENT, 3)              \
    X(GRPC_DEADLINE_EXCEEDED, 4) X(GRPC_NOT_FOUND, 5) X(GRPC_PERMISSION_DENIED, 7)                 \
    X(GRPC_RESOURCE_EXHAUSTED, 8) X(GRPC_FAILED_PRECONDITION, 9) X(GRPC_ABORTED, 10)               \
    X(GRPC_OUT_OF_RANGE, 11) X(GRPC_UNIMPLEMENTED, 12) X(GRPC_INTERNAL, 13)                        \
    X(GRPC_UNAVAILABLE, 14) X(GRPC_DATA_LOSS, 15) X(GRPC_UNAUTHENTICATED, 16)
/* clang-format on */
typedef enum grpc_status {
#define GRPC_STATUS_ENUM(e, n) e = n,
    GRPC_STATUS_TABLE(GRPC_STATUS_ENUM)
#undef GRPC_STATUS_ENUM
} grpc_status;

/* A good mark for "little waits": below it a sender keeps the network busy, above it it only fills memory. */
enum { GRPC_CALM_BYTES = 64 << 10 };

const char *grpc_status_name(int status);         /* "UNAVAILABLE" */
grpc_status grpc_status_from_err(int shoal_code); /* SHOAL_EFULL -> RESOURCE_EXHAUSTED, ... */
int grpc_status_to_err(int status);               /* and back */

/* ---- server ---------------------------------------------------------------------------------- */

typedef struct grpc_server grpc_server;
typedef struct grpc_call grpc_call;
struct grpc_reader; /* grpc_frame.h */

typedef struct grpc_method {
    const char *path; /* "/shoal.v1.Worker/Generate" */
    void (*on_call)(void *user, grpc_call *c, const uint8_t *msg, size_t n);
} grpc_method;

/* A method whose requests are a stream. All but begin and message may be NULL. After grpc_call_end or
 * `cancelled` nothing more comes for that call. */
typedef struct grpc_stream_method {
    const char *path;
    size_t max_message; /* bytes of one request; 0: the server's */
    bool rests; /* within an HTTP server, of callers that grpc_longest lets in: it may rest for hours between
                   its requests, and these may come to any length; of others the server's limits of a body
                   hold */
    void (*begin)(void *user, grpc_call *c);
    void (*message)(void *user, grpc_call *c, const uint8_t *msg, size_t n); /* borrowed */
    void (*ended)(void *user, grpc_call *c);   /* the client sends no more; the call is still to be ended */
    void (*drained)(void *user, grpc_call *c); /* all that was sent has left; it does not wait any more */
    void (*cancelled)(void *user,
                      grpc_call *c); /* as grpc_call_on_cancel has it, also when it broke the rules */
} grpc_stream_method;

/* methods must outlive the server. Unknown paths get UNIMPLEMENTED. Limits left at zero are those of a
 * few long-lived, trusted channels: messages and backlog of 16 MiB, 1024 streams, never idle for too long.
 * write_timeout_ms holds for them too: set it to UINT64_MAX where clients may rest for longer. */
int grpc_server_new(grpc_server **ret, uv_loop_t *loop, const grpc_method *methods, size_t n_methods,
                    void *user, const http_limits *limits, shoal_err *err);
/* How many bytes this request's message may have, packed or not; 0: it is not wanted, so that nothing of it
 * is looked at or unpacked, and on_call gets an empty one. */
typedef size_t (*grpc_longest)(void *user, const http_request *r);
/* gRPC within a server that speaks HTTP, too: its owner passes requests that grpc_wants to
 * grpc_server_handler's callbacks, and may limit their bodies (message and GRPC_FRAME_HEAD). Streams of
 * requests keep to the timeouts of `http`, which must be closed before the grpc_server is. */
int grpc_server_new_within(grpc_server **ret, uv_loop_t *loop, http_server *http, const grpc_method *methods,
                           size_t n_methods, void *user, grpc_longest longest, shoal_err *err);
bool grpc_wants(const http_request *r);
/* fn is called instead of on_call for bodies of more than GRPC_LONG_BYTES, and packed ones of more than
 * GRPC_LONG_PACKED_BYTES, where grpc_longest allows such a message: the body is neither unpacked nor checked
 * yet, so that another thread can do both (grpc_reader_only). *body is moved to fn's owner, who frees it
 * (grpc_reader_done). */
enum { GRPC_LONG_BYTES = 64 << 10, GRPC_LONG_PACKED_BYTES = 1 << 10 /* of gzip: 1 MiB at most */ };
void grpc_server_on_long(grpc_server *s, void (*fn)(void *user, grpc_call *c, struct grpc_reader *body));
http_handler grpc_server_handler(grpc_server *s);
/* More methods, of streams, with a user of their own; before listening. They must outlive the server. */
int grpc_server_add_streams(grpc_server *s, const grpc_stream_method *methods, size_t n_methods, void *user,
                            shoal_err *err);
int grpc_server_listen(grpc_server *s, const char *address, shoal_err *err); /* "unix:/path" or host:port */
/* The same for machines that prove who they are; the context may be reloaded at any time. */
int grpc_server_listen_tls(grpc_server *s, const char *address, tls_context *tls, shoal_err *err);
/* Called for each connection that its handshake did not let in: from where, and why, in words for a log. */
void grpc_server_on_refused(grpc_server *s, void (*fn)(void *user, const char *from, const char *why),
                            void *user);
void grpc_server_recheck(grpc_server *s);   /* close those whose peers are not admitted any more */
int grpc_server_port(const grpc_server *s); /* bound by the last listen */
void grpc_server_drain(grpc_server *s, void (*done)(void *user), void *user);
void grpc_server_close(grpc_server *s, void (*closed)(void *user), void *user);

/* Called when the client cancelled or left before grpc_call_end, or its deadline has passed; the pointer dies
 * after it. */
void grpc_call_on_cancel(grpc_call *c, void (*fn)(void *user, grpc_call *c), void *user);
/* All that was sent has left; it does not wait any more. For calls of one request, too. */
void grpc_call_on_drained(grpc_call *c, void (*fn)(void *user, grpc_call *c), void *user);
void grpc_call_set_data(grpc_call *c, void *data);
void *grpc_call_data(const grpc_call *c);
/* clock_ns time; 0: none. Then the call ends by itself, with DEADLINE_EXCEEDED: its handler hears of a
 * cancel. */
uint64_t grpc_call_deadline_ns(const grpc_call *c);
const tls_identity *grpc_call_peer(const grpc_call *c); /* who calls, proved by TLS; NULL: nobody can tell */
const void *grpc_call_connection(const grpc_call *c);   /* http_connection */
const char *grpc_call_from(const grpc_call *c);        /* where it came from over TCP, "192.0.2.7"; else "" */
const char *grpc_call_server_name(const grpc_call *c); /* the SNI it connected with; NULL: none */
bool grpc_call_over_unix(const grpc_call *c);          /* by a Unix socket */
const char *grpc_call_path(const grpc_call *c);
uint64_t grpc_call_age_ns(const grpc_call *c);  /* since its last byte, or a stream's head, came */
uint64_t grpc_call_left_ns(const grpc_call *c); /* until its deadline; 0: it is over, or there is none */
const char *grpc_call_metadata(const grpc_call *c, const char *lower_name); /* NULL when absent */
/* The answer's head with this metadata, before the first message; without it that message brings a bare one.
 */
void grpc_call_begin(grpc_call *c, const http_header *metadata, size_t n);
/* Copied; compressed where the client sends gzip and takes it. A client that does not read is paused for by
 * looking at grpc_call_unsent: at max_write_backlog its connection is closed. */
void grpc_call_send(grpc_call *c, const void *msg, size_t n);
/* A message found no memory: nothing that is sent leaves any more, and the end says RESOURCE_EXHAUSTED. */
bool grpc_call_is_broken(const grpc_call *c);
/* http_hold of n bytes that a handler keeps of a call of one request beyond its body; the same results. */
int grpc_call_hold(grpc_call *c, size_t n);
size_t grpc_call_unsent(const grpc_call *c);      /* bytes that flow control has not let through */
void grpc_call_set_idle(grpc_call *c, bool idle); /* http_set_idle; it may end with UNAVAILABLE then */
/* While paused no message and no `ended` comes, and the client can send no more than a window ahead (256
 * KiB). What came meanwhile follows from the loop. Only for streams. */
void grpc_call_pause(grpc_call *c, bool paused);
/* Ends the call; message may be NULL. c is dead afterwards. */
void grpc_call_end(grpc_call *c, grpc_status status, const char *message);
/* The same, with metadata in the trailers. */
void grpc_call_end_with(grpc_call *c, grpc_status status, const char *message, const http_header *metadata,
                        size_t n);

/* ---- client ---------------------------------------------------------------------------------- */

typedef struct grpc_channel grpc_channel;
typedef struct grpc_client_call grpc_client_call;

typedef struct grpc_channel_events {
    void *user;
    void (*connected)(void *user);
    /* Once for each failed connect and each lost connection; calls on it have ended with UNAVAILABLE. */
    void (*disconnected)(void *user, const char *why);
} grpc_channel_events;

/* Zero means the default in brackets. Strings are copied; the context is referenced, and its present state
 * used by each grpc_channel_connect. */
typedef struct grpc_channel_options {
    tls_context *tls;              /* [clear text] */
    const char *server_name;       /* [the address's host] that the server's certificate must have */
    const char *sni;               /* [server_name] what is asked for, in clear: a relay may go by it */
    uint64_t connect_timeout_ms;   /* [10 000] for name, connection and handshake together */
    uint64_t keepalive_ms;         /* [off] so long nothing has come: a PING */
    uint64_t keepalive_timeout_ms; /* [10 000] and so long nothing more: the link is lost */
    /* [one of its own, 64 KiB] To read in, shared by channels of one loop; it must outlive that loop's last
     * run. */
    transport_scratch *scratch;
} grpc_channel_options;

/* Connects at once in the background; does not reconnect by itself: grpc_channel_connect again. Over TLS it
 * is connected when the server has looked at our certificate, too. opt may be NULL. SHOAL_EINVALID: no such
 * address or name can be; anything else may be tried again. */
int grpc_channel_open(grpc_channel **ret, uv_loop_t *loop, const char *address,
                      const grpc_channel_options *opt, const grpc_channel_events *ev, shoal_err *err);
/* grpc_channel_open without options: in clear text, as between processes of one machine. */
int grpc_channel_new(grpc_channel **ret, uv_loop_t *loop, const char *address, const grpc_channel_events *ev,
                     shoal_err *err);
/* 0 when connected or connecting; SHOAL_ENOMEM: nothing was begun, and no event follows. */
int grpc_channel_connect(grpc_channel *ch);
bool grpc_channel_is_connected(const grpc_channel *ch);
const tls_identity *
grpc_channel_peer(const grpc_channel *ch); /* what the server has proved to be; NULL: nothing */
/* Calls end with CANCELLED before it returns, no channel event follows; the memory goes on the loop. */
void grpc_channel_close(grpc_channel *ch);

typedef struct grpc_client_events {
    void *user;
    void (*message)(void *user, const uint8_t *msg, size_t n); /* may be NULL, as may the next two */
    /* A field of the answer's head or trailers that is not gRPC's own, as it comes; borrowed. */
    void (*metadata)(void *user, const char *name, const char *value);
    void (*drained)(void *user); /* all that was sent has left; it does not wait any more */
    /* Exactly once, last. The call is dead afterwards. */
    void (*end)(void *user, grpc_status status, const char *message);
} grpc_client_events;

/* Zero means the default. */
typedef struct grpc_call_options {
    const http_header *metadata; /* one with a NULL value is left out */
    size_t n_metadata;
    /* clock_ns time: then DEADLINE_EXCEEDED ends the call; grpc-timeout is sent. 0: none. */
    uint64_t deadline_ns;
    size_t max_message; /* bytes of one reply [16 MiB]; a longer one ends the call with RESOURCE_EXHAUSTED */
    size_t max_unsent;  /* [4 MiB] see grpc_client_send */
} grpc_call_options;

/* One request, and that is all of them. NULL when the channel is not connected, or takes no more calls
 * because the server drains, or the message is over 160 MiB (no event follows). The message is copied. */
grpc_client_call *grpc_call_start(grpc_channel *ch, const char *path, const void *msg, size_t n,
                                  const http_header *metadata, size_t n_metadata, uint64_t deadline_ns,
                                  const grpc_client_events *ev);
/* A call whose requests follow one by one. NULL as above, or without memory; opt may be NULL. */
grpc_client_call *grpc_call_open(grpc_channel *ch, const char *path, const grpc_call_options *opt,
                                 const grpc_client_events *ev);
/* Copied. SHOAL_EFULL: as much waits as may, this was not taken: send it again at `drained`. SHOAL_EINVALID:
 * the call has ended, or was half-closed. SHOAL_ENOMEM, SHOAL_ELIMIT (over 160 MiB): not taken, the call goes
 * on. The first message is always taken, however long; the others while no more than max_unsent waits. */
int grpc_client_send(grpc_client_call *c, const void *msg, size_t n);
size_t
grpc_client_unsent(const grpc_client_call *c);    /* bytes that the server's windows have not let through */
void grpc_client_half_close(grpc_client_call *c); /* no more requests; replies may still come */
/* While paused no event comes but `metadata`, `drained` and the end by deadline or loss, and the server may
 * send no more than a window ahead (64 KiB). What came meanwhile follows from the loop, later than the call
 * that ends the pause. */
void grpc_client_pause(grpc_client_call *c, bool paused);
/* RST_STREAM(CANCEL); `end` is not called any more. */
void grpc_client_cancel(grpc_client_call *c);

#endif
