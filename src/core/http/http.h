/* http.h: one HTTP server for HTTP/1.1 and HTTP/2, over TCP, TLS or a Unix socket.
 *
 * A handler sees whole requests (headers and body, both bounded), or a head and then its body in pieces where
 * it asks for them (`intake`), and answers at once or later, in one piece or as a stream. Everything happens
 * on the loop's thread. A request lives until its answer is ended and flushed or the client is gone; in the
 * latter case on_gone comes exactly once, unless the handler had already made its final call, and the pointer
 * dies after it. Handler callbacks come from the loop, never from inside a call of this header. A client that
 * leaves answers unread waits with its next requests, and none gets more than a few of them to the handler
 * before the others have their turn. SIGPIPE is set to be ignored where it was the default.
 *
 *     static void hello(void *user, http_request *r) {
 *         http_respond(r, 200, NULL, 0, "hello\n", 6);
 *     }
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

/* Of a 413 whose body is over http_handler.body_limit (error_body): a server may say more. */
#define HTTP_BODY_TOO_LARGE "the request body is too large"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/tls.h"

typedef struct http_server http_server;
typedef struct http_request http_request;

typedef struct http_header {
    const char *name, *value; /* names in lower case */
} http_header;

/* Zero means the default in brackets. */
typedef struct http_limits {
    size_t max_body_bytes; /* [4 MiB] over it: 413 */
    size_t max_bodies; /* [256 MiB] memory of whole bodies of all connections: over it 503 to large ones */
    size_t max_header_bytes; /* [16 KiB] over it: 431 */
    size_t max_headers;      /* [100] */
    size_t max_connections;  /* [1024] over it another gives way (http_places.c), or 503 */
    size_t max_unknown;      /* [off] connections that have shown no key (is_known): the same above it */
    size_t max_streams;      /* [128] concurrent HTTP/2 streams a connection */
    size_t max_resets; /* [200] HTTP/2 streams that a client gives up in ten seconds (CVE-2023-44487): it is
                          closed */
    size_t max_unauthorized; /* [10] requests of a connection that are answered with 401: then it is closed */
    size_t
        max_unauthenticated; /* [off] TLS over TCP: connections of one address that have shown no certificate */
    uint64_t request_timeout_ms; /* [10 000] first byte of a request to its last: 408 */
    /* [1 KiB] bytes a second of a body in pieces, over each request_timeout_ms: 408. */
    uint64_t min_body_rate;
    uint64_t idle_timeout_ms;      /* [120 000] kept-alive connection without a request */
    uint64_t unknown_timeout_ms;   /* [off] the time for either, of a connection that has shown no key */
    uint64_t write_timeout_ms;     /* [15 000] to take what waits, or 1 KiB a second of it; else closed */
    uint64_t keepalive_ms;         /* [off] HTTP/2: so long nothing has come: a PING */
    uint64_t keepalive_timeout_ms; /* [10 000] and so long nothing more: the connection is lost */
    size_t max_write_backlog;      /* [1 MiB] unsent bytes of one connection: it is closed */
    size_t max_unsent; /* [64 MiB] memory of all together: the connection that holds most is closed */
} http_limits;

/* How a request's body comes to the handler. */
typedef enum http_intake {
    HTTP_WHOLE,  /* with on_request: http_body has all of it */
    HTTP_PIECES, /* on_request at its head, then on_body as it comes; max_body_bytes and timeouts hold */
    HTTP_OPEN,   /* the same for a sender that may go on for ever and rest for hours: a gRPC stream */
    HTTP_TUNNEL  /* http_protocol is to be spoken: on_request, then http_accept or a refusal; see there */
} http_intake;

enum { HTTP_ERROR_HEADERS = 8 };

typedef struct http_handler {
    void *user;
    void (*on_request)(void *user, http_request *r);
    /* The client left, or the connection broke, before the answer was complete. May be NULL. */
    void (*on_gone)(void *user, http_request *r);
    /* The body of an error that the server itself answers (400, 408, 413, 431, 503 ...); r NULL: before its
     * head was read. NULL: plain text. */
    void (*error_body)(void *user, const http_request *r, int status, const char *message, buf *out,
                       const char **ret_content_type);
    /* Further headers of such an answer: how many were put into ret[HTTP_ERROR_HEADERS]. Their values last until
     * the handler is called again. May be NULL. */
    size_t (*error_headers)(void *user, const http_request *r, http_header *ret);
    /* How long this request's body may be, when its head has come; 0: max_body_bytes. May be NULL. */
    size_t (*body_limit)(void *user, const http_request *r);
    /* How its body is wanted, when its head has come. NULL: HTTP_WHOLE. */
    http_intake (*intake)(void *user, const http_request *r);
    /* A piece of the body, borrowed. After a pause it may be of no bytes: go on with what you kept. Not
     * called after the final call. NULL as long as `intake` never asks for pieces, as is on_body_end. */
    void (*on_body)(void *user, http_request *r, const uint8_t *bytes, size_t n);
    /* Once, after the last piece. status 0: the body is whole. Else no more of it comes (413: too large; 408:
     * too slow; 400: malformed or cut; 500: no memory), and the answer should say so. */
    void (*on_body_end)(void *user, http_request *r, int status, const char *why);
    /* Does it show a key, or what else makes its sender known? Asked when its head has come, of connections
     * that are not known yet. NULL: none is. */
    bool (*is_known)(void *user, const http_request *r);
    /* The place of this idle request (http_set_idle) is wanted by others, and its connection ends when this
     * returns: say why. May be NULL. */
    void (*on_evict)(void *user, http_request *r);
    /* All that was written to a streamed answer has left, as far as flow control goes. May be NULL. */
    void (*on_drained)(void *user, http_request *r);
} http_handler;

typedef struct http_tls {
    const char *cert_file, *key_file; /* PEM chain and key, for anybody to speak to; or instead of them */
    tls_context *context;             /* one that is shared, may be reloaded, or asks clients who they are */
} http_tls;

/* limits NULL, or 0 in one of them: the default in brackets. h is copied. Loop thread, as all below. */
int http_server_new(http_server **ret, uv_loop_t *loop, const http_handler *h, const http_limits *limits,
                    shoal_err *err);
/* Other limits from now on, but for max_connections, which stays: NULL or 0, the default. What has begun is
 * held to the new ones, too. */
void http_server_limit(http_server *s, const http_limits *limits);
void http_limits_fill(http_limits *l); /* what is 0 becomes the default */
/* "127.0.0.1:8080", "[::1]:8080", ":8080", or "unix:/path". May be called more than once. tls may be NULL;
 * with it ALPN offers h2 and http/1.1. Clear text takes HTTP/1.1 and HTTP/2 with prior knowledge. */
int http_server_listen(http_server *s, const char *address, const http_tls *tls, shoal_err *err);
/* The port really bound by the last listen (for ":0"). */
int http_server_port(const http_server *s);
/* Stop accepting; idle connections close (GOAWAY on HTTP/2), busy ones after their answer.
 * `done` runs once when no connection is left. */
void http_server_drain(http_server *s, void (*done)(void *user), void *user);
/* Close everything now (on_gone for open requests); `closed` runs when the memory is gone. */
void http_server_close(http_server *s, void (*closed)(void *user), void *user);
size_t http_server_connections(const http_server *s);
/* Called for each connection that its TLS handshake did not let in: from where, and why, in words for a log.
 */
void http_server_on_refused(http_server *s, void (*fn)(void *user, const char *from, const char *why),
                            void *user);
/* Close every connection whose peer is not admitted any more (tls_options.admit): after a revocation. */
void http_server_recheck(http_server *s);

/* ---- the request ----------------------------------------------------------------------------- */
const char *http_method(const http_request *r);
const char *http_path(const http_request *r);  /* without the query, not decoded */
const char *http_query(const http_request *r); /* after '?', "" when none */
const char *http_header_get(const http_request *r, const char *lower_name); /* NULL when absent */
const char *http_body(const http_request *r, size_t *ret_len); /* NUL-terminated copy; "" of one in pieces */
/* The body of a request that came with HTTP_WHOLE becomes the caller's; http_body is empty from then on. */
void http_take_body(http_request *r, buf *ret);
const tls_identity *http_peer(const http_request *r); /* what the client has proved to be; NULL: nothing */
const void *http_connection(const http_request *r);   /* its connection, only to be compared */
const char *http_from(const http_request *r); /* where a TCP connection came from, "192.0.2.7"; else "" */
bool http_over_unix(const http_request *r); /* it came by a Unix socket: from this machine, and no browser */
const char *http_server_name(const http_request *r); /* the name it asked for by SNI; NULL: none */
int http_version(const http_request *r);             /* 11, 10 or 20 */
/* The protocol that the client wants to speak in place of HTTP, in lower case ("websocket"): Upgrade of a GET
 * over HTTP/1.1 (RFC 9110 7.8), or :protocol of a CONNECT over HTTP/2 (RFC 8441). NULL: none. */
const char *http_protocol(const http_request *r);
uint64_t http_received_ns(const http_request *r); /* clock_ns when its last byte arrived; 0: it has not */
uint64_t http_age_ns(const http_request *r);      /* since then; 0: it has not arrived */
/* While paused no piece and no end of its body comes, and the client can send no more than a window ahead
 * (HTTP/2: 256 KiB of the stream). What came meanwhile follows from the loop. */
void http_pause(http_request *r, bool paused);
/* For a handler that finds messages in a tunnel or in a body in pieces: may it handle one more in this turn
 * of the loop? Messages count like requests of the connection: a few a turn, and none while its client leaves
 * answers unread. If false, keep what has come: nothing more is delivered until a later turn, in which
 * on_body comes, perhaps with no bytes. */
bool http_take_message(http_request *r);
/* Memory that one owner keeps of r beyond its body: a message in assembly, or a message or body that was
 * unpacked or parsed. It counts like whole bodies against max_bodies. *held is the owner's, 0 at first, and
 * becomes n. What is left is taken off when r is gone. 0; or 503 where all of them take too much, or 413
 * where n alone does: the owner should keep no more then; n counts all the same. */
int http_hold(http_request *r, size_t *held, size_t n);
const char *http_hold_why(int status); /* for people */
/* It may stay open for long while nothing is asked, so its connection counts as idle when others want the
 * place. */
void http_set_idle(http_request *r, bool idle);
void http_set_known(http_request *r); /* its client has shown a key behind the head */
void http_set_data(http_request *r, void *data);
void *http_data(const http_request *r);

/* ---- the answer: respond, or begin + write* + end -------------------------------------------- */
/* Bytes are copied, and leave before the loop sleeps. Content-Length, Date, Connection and
 * Transfer-Encoding are the server's business; a header with a control character is left out. After the final
 * call (respond or end) the pointer must not be used again. Writing to a client that has gone does
 * nothing. */
void http_respond(http_request *r, int status, const http_header *headers, size_t n_headers, const void *body,
                  size_t len);
/* An answer that means 401 in another protocol's words (gRPC): it counts against max_unauthorized. */
void http_note_unauthorized(http_request *r);
void http_respond_begin(http_request *r, int status, const http_header *headers, size_t n_headers);
/* Speak http_protocol: the final answer of a request that came with HTTP_TUNNEL. From here on on_body are the
 * client's bytes, http_respond_write are ours, on_body_end comes when the client sends no more, and
 * http_respond_end closes the tunnel; over HTTP/1.1 its connection with it. Nothing but the client's reading
 * is timed. To refuse, use http_respond. */
void http_accept(http_request *r, const http_header *headers, size_t n_headers);
void http_respond_write(http_request *r, const void *data, size_t len);
/* Bytes of a streamed answer that wait here for the client to take more. Over HTTP/1.1 those of its
 * connection, which has one answer at a time; what the kernel holds is not counted. */
size_t http_unsent(const http_request *r);
/* max_write_backlog. An answer that goes on above it is cut with its connection; a tunnel is not, since its
 * protocol has a way to say why it ends: who writes to it looks at this before. */
size_t http_unsent_max(const http_request *r);
/* Trailers are sent on HTTP/2 and dropped on HTTP/1.1. */
void http_respond_end(http_request *r, const http_header *trailers, size_t n_trailers);

#endif
