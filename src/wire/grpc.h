/* grpc.h: gRPC, unary request with one or many replies, server and client.
 *
 * gRPC is HTTP/2 POST + 5-byte frames (flag, big-endian length) + trailers (grpc-status); see
 * github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md. Messages are opaque bytes here (protobuf is packed by
 * the caller). Single-threaded: everything on the loop's thread. */
#ifndef WIRE_GRPC_H
#define WIRE_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "wire/http.h"

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

const char *grpc_status_name(int status);         /* "UNAVAILABLE" */
grpc_status grpc_status_from_err(int shoal_code); /* SHOAL_EFULL -> RESOURCE_EXHAUSTED, ... */
int grpc_status_to_err(int status);               /* and back */

/* ---- server ---------------------------------------------------------------------------------- */

typedef struct grpc_server grpc_server;
typedef struct grpc_call grpc_call;

typedef struct grpc_method {
    const char *path; /* "/shoal.v1.Worker/Generate" */
    void (*on_call)(void *user, grpc_call *c, const uint8_t *msg, size_t n);
} grpc_method;

/* methods must outlive the server. Unknown paths get UNIMPLEMENTED. Limits left at zero are those of a
 * few long-lived, trusted channels: messages and backlog of 16 MiB, 1024 streams, never idle for too long. */
int grpc_server_new(grpc_server **ret, uv_loop_t *loop, const grpc_method *methods, size_t n_methods,
                    void *user, const http_limits *limits, shoal_err *err);
int grpc_server_listen(grpc_server *s, const char *address, shoal_err *err); /* "unix:/path" or host:port */
void grpc_server_drain(grpc_server *s, void (*done)(void *user), void *user);
void grpc_server_close(grpc_server *s, void (*closed)(void *user), void *user);

/* Called when the client cancelled or left before grpc_call_end; the pointer dies after it. */
void grpc_call_on_cancel(grpc_call *c, void (*fn)(void *user, grpc_call *c), void *user);
uint64_t grpc_call_deadline_ns(const grpc_call *c);                         /* clock_ns time; 0: none */
const char *grpc_call_metadata(const grpc_call *c, const char *lower_name); /* NULL when absent */
void grpc_call_send(grpc_call *c, const void *msg, size_t n);               /* copied */
size_t grpc_call_unsent(const grpc_call *c); /* bytes that flow control has not let through */
/* Ends the call; message may be NULL. c is dead afterwards. */
void grpc_call_end(grpc_call *c, grpc_status status, const char *message);

/* ---- client ---------------------------------------------------------------------------------- */

typedef struct grpc_channel grpc_channel;
typedef struct grpc_client_call grpc_client_call;

typedef struct grpc_channel_events {
    void *user;
    void (*connected)(void *user);
    /* Once for each failed connect and each lost connection; calls on it have ended with UNAVAILABLE. */
    void (*disconnected)(void *user, const char *why);
} grpc_channel_events;

/* Connects at once in the background; does not reconnect by itself: grpc_channel_connect again.
 * SHOAL_EINVALID: no such address can be; anything else may be tried again. */
int grpc_channel_new(grpc_channel **ret, uv_loop_t *loop, const char *address, const grpc_channel_events *ev,
                     shoal_err *err);
/* 0 when connected or connecting; SHOAL_ENOMEM: nothing was begun, and no event follows. */
int grpc_channel_connect(grpc_channel *ch);
bool grpc_channel_is_connected(const grpc_channel *ch);
/* Calls end with CANCELLED before it returns, no channel event follows; the memory goes on the loop. */
void grpc_channel_close(grpc_channel *ch);

typedef struct grpc_client_events {
    void *user;
    void (*message)(void *user, const uint8_t *msg, size_t n); /* may be NULL */
    /* Exactly once, last. The call is dead afterwards. */
    void (*end)(void *user, grpc_status status, const char *message);
} grpc_client_events;

/* No event comes from inside this call. deadline_ns 0: none, else the call ends with DEADLINE_EXCEEDED
 * then and grpc-timeout is sent. NULL when the channel is not connected, or takes no more calls because the
 * server drains, or the message is over 160 MiB (no event follows). The message is copied. */
grpc_client_call *grpc_call_start(grpc_channel *ch, const char *path, const void *msg, size_t n,
                                  const http_header *metadata, size_t n_metadata, uint64_t deadline_ns,
                                  const grpc_client_events *ev);
/* While paused no event comes but the end by deadline or loss, and the server may send no more than a window
 * ahead (64 KiB). What came meanwhile follows from the loop, later than the call that ends the pause. */
void grpc_client_pause(grpc_client_call *c, bool paused);
/* RST_STREAM(CANCEL); `end` is not called any more. */
void grpc_client_cancel(grpc_client_call *c);

#endif
