/* transport.h: one byte stream to a peer, over TCP or a Unix socket, with TLS in between if asked.
 *
 * The owner gets bytes through `data` and queues bytes with transport_write; nothing is sent until
 * transport_flush, so that a head and a body, or the frames of many streams, leave in one system call.
 * Closing is always asynchronous: `closed` comes from the loop, exactly once and last, and never from
 * inside another call. After it the transport is gone. Everything on the loop's thread.
 *
 *     transport_write(t, head, n_head);
 *     transport_write(t, body, n_body);
 *     transport_flush(t);
 *
 * A transport in memory has no socket: a test or a fuzz target feeds it and sees what it sends. */
#ifndef WIRE_TRANSPORT_H
#define WIRE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/file_user.h"
#include "wire/address.h"
#include "wire/tls_link.h"

typedef struct transport transport;

enum { TRANSPORT_READ_BYTES = 65536 };

typedef struct transport_events {
    void *user;
    /* The stream can be used: connected, or the TLS handshake is done. alpn is "" when none was agreed.
     * Not called for an accepted clear-text peer, which can be used at once. */
    void (*open)(void *user, const char *alpn);
    void (*data)(void *user, const uint8_t *bytes, size_t n);
    void (*eof)(void *user);                     /* the peer will send no more, but may still read */
    void (*drained)(void *user);                 /* the queue is empty again after it was not; may be NULL */
    void (*closed)(void *user, const char *why); /* why is gone with the transport */
} transport_events;

/* Memory in which every transport of one owner reads; it must outlive them (one thread, one read at a time).
 * An owner that adds 1 to `turn` in each turn of the loop has each of them read once a turn; libuv alone would
 * read up to 32 times from a fast peer before it looks at the next. 0: no such limit. */
typedef struct transport_scratch {
    uint64_t turn;
    uint8_t bytes[TRANSPORT_READ_BYTES];
} transport_scratch;

/* Take the next connection of a listening uv_tcp_t or uv_pipe_t. tls may be NULL (clear text). */
int transport_accept(transport **ret, uv_stream_t *listener, tls_context *tls, transport_scratch *scratch,
                     const transport_events *ev, shoal_err *err);
/* Connect in the background: `open` or `closed` follows. tls NULL: clear text; else target says whom to
 * reach, and only one who proves to be that gets further than the handshake. */
int transport_connect(transport **ret, uv_loop_t *loop, const address *to, tls_context *tls,
                      const tls_target *target, transport_scratch *scratch, const transport_events *ev,
                      shoal_err *err);
/* What the other end has proved to be; NULL in clear text, or when it showed no certificate. */
const tls_identity *transport_peer(const transport *t);
/* The name that an accepted client asked for (SNI); NULL: none. */
const char *transport_server_name(const transport *t);
/* Where an accepted TCP connection came from, "192.0.2.7"; else "". */
const char *transport_from(const transport *t);
/* An accepted Unix socket: who made the connection, by SO_PEERCRED; false: the kernel does not say. */
bool transport_peer_user(const transport *t, uint32_t *ret_uid);
/* And with what groups (SO_PEERGROUPS). False also for a user whom this user namespace does not know, and for one of more
 * groups than a file_user holds. */
bool transport_peer_file_user(const transport *t, file_user *ret);
/* TCP: what was sent must be acknowledged within this, or the connection is lost (TCP_USER_TIMEOUT, Linux).
 */
void transport_limit_silence(transport *t, unsigned ms);
/* No socket: transport_feed gives it input (n == 0: end of input), `sink` sees its output. */
int transport_new_memory(transport **ret, uv_loop_t *loop, const transport_events *ev,
                         void (*sink)(void *user, const uint8_t *bytes, size_t n), shoal_err *err);
void transport_feed(transport *t, const uint8_t *bytes, size_t n);

void transport_write(transport *t, const void *bytes, size_t n); /* copied; nothing after end or close */
void transport_flush(transport *t);              /* hand over what is queued, if no write is on */
size_t transport_backlog(const transport *t);    /* queued bytes that the kernel has not taken */
size_t transport_held(const transport *t);       /* memory in which they wait, room included */
void transport_trim(transport *t);               /* let go of what large answers of the past have left */
uint64_t transport_sent(const transport *t);     /* bytes that the kernel has taken, ever */
void transport_pause(transport *t, bool paused); /* stop or resume reading */

/* Send what is queued, say goodbye (close_notify, FIN), swallow what the peer still sends for at most a
 * second, so that it can read the last answer instead of a reset, and close. */
void transport_end(transport *t);
void transport_close(transport *t, const char *why); /* now; `why` is a literal */
bool transport_is_closing(const transport *t);       /* after end or close */
bool transport_is_closed(const transport *t);        /* after close: nothing more is sent */

/* A peer that leaves must not kill the process: ignore SIGPIPE unless the program has a handler of its own.
 */
void transport_ignore_sigpipe(void);

#endif
