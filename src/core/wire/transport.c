/* transport.c: one byte stream over libuv, with a TLS link in between if asked.
 *
 * What is written waits in `out`; a flush offers it to the kernel at once, and hands what the kernel does not
 * take to libuv as `sending`. Only one such write is under way at a time. */
#define _GNU_SOURCE
#include "wire/transport.h"

#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/loop_work.h"

enum { LINGER_MS = 1000, TLS_READ_BYTES = 16384, KEEP_BYTES = 16384, KERNEL_BYTES = 128 << 10 };

typedef enum { KIND_TCP, KIND_PIPE, KIND_MEMORY } transport_kind;

struct transport {
    uv_loop_t *loop;
    transport_kind kind;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } u;
    uv_timer_t linger;
    int n_handles; /* not yet closed */
    transport_events ev;
    transport_scratch *scratch;
    void (*sink)(void *user, const uint8_t *bytes, size_t n);

    tls_link *tls;
    char from[46]; /* an accepted peer's address */

    buf out;     /* queued, not yet given to the kernel */
    buf sending; /* what wreq points at while in_flight */
    bool in_flight;
    uv_write_t wreq;
    uint64_t sent;

    unsigned silence_ms; /* see transport_limit_silence; 0: the system's */

    uv_connect_t creq;
    uv_getaddrinfo_t dns;
    bool dns_pending;

    uv_shutdown_t sreq;
    uint64_t read_turn; /* of the scratch's turns: the last that it read in */
    bool reading, eof, ending, fin_sent, closing;
    /* Of the close; and what to say at the end of an orderly one, if not just that. */
    const char *why, *end_why;
};

void transport_ignore_sigpipe(void)
{
    struct sigaction old;
    if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
}

/* ---- life and death -------------------------------------------------------------------------- */

static void transport_finish(transport *t)
{
    t->ev.closed(t->ev.user, t->why);
    tls_link_free(t->tls);
    buf_done(&t->out);
    buf_done(&t->sending);
    free(t);
}

static void on_handle_closed(uv_handle_t *h)
{
    transport *t = h->data;
    /* A name lookup still holds the transport until its callback. */
    if (--t->n_handles == 0 && !t->dns_pending) transport_finish(t);
}

void transport_close(transport *t, const char *why)
{
    if (t->closing) return;
    t->closing = true;
    t->why = why;
    if (t->dns_pending) uv_cancel((uv_req_t *)&t->dns);
    if (t->kind != KIND_MEMORY) uv_close(&t->u.handle, on_handle_closed);
    uv_close((uv_handle_t *)&t->linger, on_handle_closed);
}

bool transport_is_closing(const transport *t)
{
    return t->closing || t->ending;
}

bool transport_is_closed(const transport *t)
{
    return t->closing;
}

static transport *new_transport(uv_loop_t *loop, transport_kind kind, transport_scratch *scratch,
                                const transport_events *ev)
{
    transport *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->loop = loop;
    t->kind = kind;
    t->scratch = scratch;
    t->ev = *ev;
    uv_timer_init(loop, &t->linger);
    t->linger.data = t;
    t->n_handles = 1;
    if (kind == KIND_TCP) uv_tcp_init(loop, &t->u.tcp);
    if (kind == KIND_PIPE) uv_pipe_init(loop, &t->u.pipe, 0);
    if (kind != KIND_MEMORY) {
        t->u.handle.data = t;
        t->n_handles = 2;
    }
    return t;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void flush_out(transport *t);

/* The queue has just become empty: the next step of an orderly end, if one was asked for. */
static void after_flush(transport *t);

static void on_written(uv_write_t *req, int status)
{
    transport *t = req->data;
    t->in_flight = false;
    t->sent += t->sending.len;
    buf_clear(&t->sending);
    if (t->closing) return;
    if (status < 0) {
        transport_close(t, "the peer does not take bytes any more");
        return;
    }
    flush_out(t);
    if (!t->closing && !t->in_flight && t->ev.drained && !t->ending) t->ev.drained(t->ev.user);
}

static void send_later(transport *t)
{
    buf spare = t->sending;
    t->sending = t->out;
    t->out = spare;
    uv_buf_t b = uv_buf_init(t->sending.data, (unsigned)t->sending.len);
    t->wreq.data = t;
    t->in_flight = true;
    if (uv_write(&t->wreq, &t->u.stream, &b, 1, on_written) != 0) {
        t->in_flight = false;
        transport_close(t, "the peer cannot be written to");
    }
}

static void flush_out(transport *t)
{
    if (t->closing || t->in_flight) return;
    if (t->out.failed) {
        transport_close(t, "out of memory");
        return;
    }
    if (t->out.len && t->kind == KIND_MEMORY) {
        if (t->sink) t->sink(t->ev.user, (const uint8_t *)t->out.data, t->out.len);
        t->sent += t->out.len;
        buf_clear(&t->out);
    } else if (t->out.len) {
        uv_buf_t b = uv_buf_init(t->out.data, (unsigned)t->out.len);
        int n = uv_try_write(&t->u.stream, &b, 1);
        if (n < 0 && n != UV_EAGAIN) {
            transport_close(t, "the peer does not take bytes any more");
            return;
        }
        if (n > 0) {
            buf_consume(&t->out, (size_t)n);
            t->sent += (size_t)n;
        }
        if (t->out.len) send_later(t);
    }
    if (!t->closing && !t->in_flight) after_flush(t);
}

void transport_write(transport *t, const void *bytes, size_t n)
{
    if (t->closing || t->ending || n == 0) return;
    if (!t->tls)
        buf_append(&t->out, bytes, n);
    else if (tls_link_write(t->tls, bytes, n, &t->out) != 0)
        transport_close(t, "TLS failed while writing");
}

void transport_flush(transport *t)
{
    flush_out(t);
}

size_t transport_backlog(const transport *t)
{
    size_t flying = t->in_flight ? uv_stream_get_write_queue_size(&t->u.stream) : 0;
    return t->out.len + flying;
}

size_t transport_held(const transport *t)
{
    return t->out.cap + t->sending.cap;
}

const tls_identity *transport_peer(const transport *t)
{
    return t->tls ? tls_link_peer(t->tls) : NULL;
}

const char *transport_server_name(const transport *t)
{
    return t->tls ? tls_link_sni(t->tls) : NULL;
}

const char *transport_from(const transport *t)
{
    return t->from;
}

void transport_limit_silence(transport *t, unsigned ms)
{
    t->silence_ms = ms;
#ifdef TCP_USER_TIMEOUT
    uv_os_fd_t fd;
    if (ms && t->kind == KIND_TCP && !t->closing && uv_fileno(&t->u.handle, &fd) == 0)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
#endif
}

void transport_trim(transport *t)
{
    if (t->out.len == 0 && !t->out.failed && t->out.cap > KEEP_BYTES) buf_done(&t->out);
    if (!t->in_flight && t->sending.cap > KEEP_BYTES) buf_done(&t->sending);
}

uint64_t transport_sent(const transport *t)
{
    size_t left = t->in_flight ? uv_stream_get_write_queue_size(&t->u.stream) : 0;
    return t->sent + (t->in_flight ? t->sending.len - left : 0);
}

/* ---- the orderly end ------------------------------------------------------------------------- */

static void close_ended(transport *t)
{
    transport_close(t, t->end_why ? t->end_why : "ended");
}

static void on_linger(uv_timer_t *timer)
{
    close_ended(timer->data);
}

static void on_fin(uv_shutdown_t *req, int status)
{
    transport *t = req->data;
    if (!t->closing && (status < 0 || t->eof)) close_ended(t);
}

static void after_flush(transport *t)
{
    if (!t->ending || t->fin_sent) return;
    t->fin_sent = true;
    if (t->kind == KIND_MEMORY) {
        close_ended(t);
        return;
    }
    uv_timer_start(&t->linger, on_linger, LINGER_MS, 0);
    t->sreq.data = t;
    if (uv_shutdown(&t->sreq, &t->u.stream, on_fin) != 0) close_ended(t);
}

void transport_end(transport *t)
{
    if (t->closing || t->ending) return;
    if (t->tls) {
        tls_link_goodbye(t->tls);
        tls_link_take(t->tls, &t->out);
    }
    t->ending = true;
    transport_pause(t, false);
    flush_out(t);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void peer_ended(transport *t)
{
    if (t->eof || t->closing) return;
    t->eof = true;
    if (t->kind != KIND_MEMORY) uv_read_stop(&t->u.stream);
    if (!t->ending)
        t->ev.eof(t->ev.user);
    else if (t->fin_sent)
        close_ended(t);
}

/* A peer that is refused in the handshake may be sending already: closed at once, it would get a reset
 * instead of the alert that tells it why. */
static void tls_broke(transport *t)
{
    t->end_why = tls_link_why(t->tls);
    if (tls_link_is_open(t->tls))
        close_ended(t);
    else
        transport_end(t);
}

/* A gateway has a connection to every replica: what each keeps, it keeps a thousand times. */
static void end_handshake(transport *t)
{
    tls_link_trim(t->tls);
    if (!t->closing && t->out.len == 0 && !t->out.failed) buf_done(&t->out);
}

static void feed_tls(transport *t, const uint8_t *bytes, size_t n)
{
    uint8_t plain[TLS_READ_BYTES];
    tls_step step = TLS_PLAIN;
    bool was_open = tls_link_is_open(t->tls);
    if (tls_link_feed(t->tls, bytes, n) != 0) {
        transport_close(t, "out of memory");
        return;
    }
    while (!t->closing && !t->ending && (step == TLS_PLAIN || step == TLS_OPENED)) {
        size_t got = 0;
        step = tls_link_step(t->tls, plain, sizeof plain, &got);
        if (step == TLS_PLAIN || step == TLS_WAITS) {
            if (got) t->ev.data(t->ev.user, plain, got);
            continue;
        }
        tls_link_take(t->tls,
                      &t->out); /* the last of a handshake, or the alert that says why there is none */
        flush_out(t);
        if (t->closing) return;
        if (step == TLS_OPENED) t->ev.open(t->ev.user, tls_link_alpn(t->tls));
        if (step == TLS_ENDED) peer_ended(t);
        if (step == TLS_BROKEN) tls_broke(t);
    }
    if (t->closing) return;
    tls_link_take(t->tls, &t->out);
    flush_out(t);
    if (!was_open && tls_link_is_open(t->tls)) end_handshake(t);
}

void transport_feed(transport *t, const uint8_t *bytes, size_t n)
{
    if (t->closing || t->eof) return;
    loop_work_add(n);
    if (n == 0)
        peer_ended(t);
    else if (t->ending)
        return; /* swallowed: see transport_end */
    else if (t->tls)
        feed_tls(t, bytes, n);
    else
        t->ev.data(t->ev.user, bytes, n);
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *ret)
{
    transport *t = h->data;
    bool has_read = t->scratch->turn && t->read_turn == t->scratch->turn;
    t->read_turn = t->scratch->turn;
    *ret = uv_buf_init((char *)t->scratch->bytes, has_read ? 0 : sizeof t->scratch->bytes);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    transport *t = s->data;
    if (t->closing || n == 0 || n == UV_ENOBUFS) return; /* ENOBUFS: it has read in this turn */
    if (n == UV_EOF)
        peer_ended(t);
    else if (n < 0)
        transport_close(t, "the connection was reset by the peer");
    else
        transport_feed(t, (const uint8_t *)b->base, (size_t)n);
}

void transport_pause(transport *t, bool paused)
{
    if (t->closing || t->eof || t->kind == KIND_MEMORY || t->reading == !paused) return;
    t->reading = !paused;
    if (paused)
        uv_read_stop(&t->u.stream);
    else if (uv_read_start(&t->u.stream, on_alloc, on_read) != 0)
        transport_close(t, "the peer cannot be read from");
}

/* ---- making one ------------------------------------------------------------------------------ */

/* Linux takes up to 4 MB for a peer that reads nothing. What is beyond the network's own need waits here
 * instead, where its owner counts and bounds it. */
static void limit_kernel(transport *t)
{
#ifdef TCP_NOTSENT_LOWAT
    int bytes = KERNEL_BYTES;
    uv_os_fd_t fd;
    if (uv_fileno(&t->u.handle, &fd) == 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
#endif
}

static void closed_unused(void *user, const char *why) {}

/* A transport that its owner has never seen: take it down without telling. */
static void discard(transport *t)
{
    t->ev.closed = closed_unused;
    transport_close(t, "unused");
}

static void note_from(transport *t)
{
    struct sockaddr_storage sa;
    int n = sizeof sa;
    if (uv_tcp_getpeername(&t->u.tcp, (struct sockaddr *)&sa, &n) == 0)
        uv_ip_name((struct sockaddr *)&sa, t->from, sizeof t->from);
}

static bool ask_peer(const transport *t, int option, void *ret, socklen_t *n)
{
    uv_os_fd_t fd;
    return t->kind == KIND_PIPE && uv_fileno(&t->u.handle, &fd) == 0 &&
           getsockopt(fd, SOL_SOCKET, option, ret, n) == 0;
}

bool transport_peer_user(const transport *t, uint32_t *ret_uid)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (!ask_peer(t, SO_PEERCRED, &peer, &n)) return false;
    *ret_uid = peer.uid;
    return true;
}

bool transport_peer_file_user(const transport *t, file_user *ret)
{
    struct ucred peer;
    file_user u = {0};
    socklen_t n = sizeof peer, n_bytes = sizeof u.groups;
    if (!ask_peer(t, SO_PEERCRED, &peer, &n) || !ask_peer(t, SO_PEERGROUPS, u.groups, &n_bytes)) return false;
    u.uid = peer.uid;
    u.gid = peer.gid;
    u.n_groups = n_bytes / sizeof *u.groups;
    *ret = u;
    return peer.uid != FILE_USER_UNMAPPED;
}

int transport_accept(transport **ret, uv_stream_t *listener, tls_context *tls, transport_scratch *scratch,
                     const transport_events *ev, shoal_err *err)
{
    transport_kind kind = uv_handle_get_type((uv_handle_t *)listener) == UV_TCP ? KIND_TCP : KIND_PIPE;
    transport *t = new_transport(listener->loop, kind, scratch, ev);
    if (!t) return err_nomem(err);
    int rc = uv_accept(listener, &t->u.stream);
    if (rc != 0) {
        discard(t);
        return err_set(err, SHOAL_EIO, "accept: %s", uv_strerror(rc));
    }
    if (kind == KIND_TCP) {
        uv_tcp_nodelay(&t->u.tcp, 1);
        limit_kernel(t);
    }
    if (tls && tls_link_new(&t->tls, tls, NULL, err) != 0) {
        discard(t);
        return err_nomem(err);
    }
    if (kind == KIND_TCP) note_from(t);
    t->reading = true;
    rc = uv_read_start(&t->u.stream, on_alloc, on_read);
    if (rc != 0) {
        discard(t);
        return err_set(err, SHOAL_EIO, "read: %s", uv_strerror(rc));
    }
    *ret = t;
    return 0;
}

int transport_new_memory(transport **ret, uv_loop_t *loop, const transport_events *ev,
                         void (*sink)(void *user, const uint8_t *bytes, size_t n), shoal_err *err)
{
    transport *t = new_transport(loop, KIND_MEMORY, NULL, ev);
    if (!t) return err_nomem(err);
    t->sink = sink;
    *ret = t;
    return 0;
}

static void on_connected(uv_connect_t *req, int status)
{
    transport *t = req->data;
    if (t->closing) return;
    if (status < 0) {
        transport_close(t, "it cannot be reached");
        return;
    }
    if (t->kind == KIND_TCP) {
        uv_tcp_nodelay(&t->u.tcp, 1);
        limit_kernel(t);
        transport_limit_silence(t, t->silence_ms);
    }
    transport_pause(t, false);
    if (t->closing) return;
    if (t->tls)
        feed_tls(t, NULL, 0); /* the client speaks first */
    else
        t->ev.open(t->ev.user, "");
}

static int connect_to(transport *t, const struct sockaddr *sa)
{
    t->creq.data = t;
    return uv_tcp_connect(&t->creq, &t->u.tcp, sa, on_connected);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    transport *t = req->data;
    t->dns_pending = false;
    if (t->closing) {
        if (t->n_handles == 0) transport_finish(t);
    } else if (status < 0 || connect_to(t, found->ai_addr) != 0) {
        transport_close(t, "its name cannot be resolved");
    }
    uv_freeaddrinfo(found);
}

static int start_connect(transport *t, const address *to)
{
    struct sockaddr_storage sa;
    t->creq.data = t;
    if (to->is_unix) {
        uv_pipe_connect(&t->creq, &t->u.pipe, to->path, on_connected);
        return 0;
    }
    if (uv_ip4_addr(to->host, to->port, (struct sockaddr_in *)&sa) == 0 ||
        uv_ip6_addr(to->host, to->port, (struct sockaddr_in6 *)&sa) == 0)
        return connect_to(t, (struct sockaddr *)&sa);
    char port[8];
    snprintf(port, sizeof port, "%d", to->port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    t->dns.data = t;
    int rc = uv_getaddrinfo(t->loop, &t->dns, on_resolved, to->host, port, &hints);
    t->dns_pending = rc == 0;
    return rc;
}

int transport_connect(transport **ret, uv_loop_t *loop, const address *to, tls_context *tls,
                      const tls_target *target, transport_scratch *scratch, const transport_events *ev,
                      shoal_err *err)
{
    transport *t = new_transport(loop, to->is_unix ? KIND_PIPE : KIND_TCP, scratch, ev);
    if (!t) return err_nomem(err);
    int rc = tls ? tls_link_new(&t->tls, tls, target, err) : 0;
    if (rc != 0) {
        discard(t);
        return rc;
    }
    rc = start_connect(t, to);
    if (rc != 0) {
        discard(t);
        return err_set(err, SHOAL_EUNAVAILABLE, "%s: %s", to->is_unix ? to->path : to->host, uv_strerror(rc));
    }
    *ret = t;
    return 0;
}
