/* transport.c: one byte stream over libuv, with OpenSSL between two memory BIOs.
 *
 * What is written waits in `out`; a flush offers it to the kernel at once, and hands what the kernel does not
 * take to libuv as `sending`. Only one such write is under way at a time. */
#include "wire/transport.h"

#include <netinet/tcp.h>
#include <openssl/err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

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

    SSL *ssl; /* owns both BIOs */
    BIO *net_in, *net_out;
    bool tls_ready;

    buf out;     /* queued, not yet given to the kernel */
    buf sending; /* what wreq points at while in_flight */
    bool in_flight;
    uv_write_t wreq;
    uint64_t sent;

    uv_connect_t creq;
    uv_getaddrinfo_t dns;
    bool dns_pending;

    uv_shutdown_t sreq;
    bool reading, eof, ending, fin_sent, closing;
    const char *why;
};

void transport_ignore_sigpipe(void)
{
    struct sigaction old;
    if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
}

/* ---- life and death -------------------------------------------------------------------------- */

static void finish(transport *t)
{
    t->ev.closed(t->ev.user, t->why);
    SSL_free(t->ssl);
    buf_done(&t->out);
    buf_done(&t->sending);
    free(t);
}

static void on_handle_closed(uv_handle_t *h)
{
    transport *t = h->data;
    /* A name lookup still holds the transport until its callback. */
    if (--t->n_handles == 0 && !t->dns_pending) finish(t);
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

/* Move what OpenSSL wants to send into the queue. */
static void pump_tls(transport *t)
{
    char chunk[TLS_READ_BYTES];
    int n;
    while ((n = BIO_read(t->net_out, chunk, sizeof chunk)) > 0) buf_append(&t->out, chunk, (size_t)n);
}

void transport_write(transport *t, const void *bytes, size_t n)
{
    if (t->closing || t->ending || n == 0) return;
    if (!t->ssl) {
        buf_append(&t->out, bytes, n);
        return;
    }
    size_t done = 0;
    while (done < n) {
        size_t took = 0;
        ERR_clear_error();
        /* The BIO is memory and grows, so a finished handshake never has to wait here; emptied after each
         * record, it stays small. */
        size_t piece = n - done < TLS_READ_BYTES ? n - done : TLS_READ_BYTES;
        if (SSL_write_ex(t->ssl, (const char *)bytes + done, piece, &took) != 1) {
            transport_close(t, "TLS failed while writing");
            return;
        }
        done += took;
        pump_tls(t);
    }
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

static void on_linger(uv_timer_t *timer)
{
    transport_close(timer->data, "ended");
}

static void on_fin(uv_shutdown_t *req, int status)
{
    transport *t = req->data;
    if (!t->closing && (status < 0 || t->eof)) transport_close(t, "ended");
}

static void after_flush(transport *t)
{
    if (!t->ending || t->fin_sent) return;
    t->fin_sent = true;
    if (t->kind == KIND_MEMORY) {
        transport_close(t, "ended");
        return;
    }
    uv_timer_start(&t->linger, on_linger, LINGER_MS, 0);
    t->sreq.data = t;
    if (uv_shutdown(&t->sreq, &t->u.stream, on_fin) != 0) transport_close(t, "ended");
}

void transport_end(transport *t)
{
    if (t->closing || t->ending) return;
    if (t->ssl && t->tls_ready) {
        ERR_clear_error();
        SSL_shutdown(t->ssl);
        pump_tls(t);
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
        transport_close(t, "ended");
}

static void handshake(transport *t)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(t->ssl);
    pump_tls(t);
    flush_out(t);
    if (t->closing) return;
    if (rc == 1) {
        const unsigned char *alpn = NULL;
        unsigned n = 0;
        char name[32] = "";
        SSL_get0_alpn_selected(t->ssl, &alpn, &n);
        if (n > 0 && n < sizeof name) memcpy(name, alpn, n);
        t->tls_ready = true;
        t->ev.open(t->ev.user, name);
    } else if (SSL_get_error(t->ssl, rc) != SSL_ERROR_WANT_READ) {
        transport_close(t, "the TLS handshake failed");
    }
}

static void feed_tls(transport *t, const uint8_t *bytes, size_t n)
{
    if (BIO_write(t->net_in, bytes, (int)n) != (int)n) {
        transport_close(t, "out of memory");
        return;
    }
    if (!t->tls_ready) handshake(t);
    uint8_t plain[TLS_READ_BYTES];
    while (t->tls_ready && !t->closing && !t->ending) {
        size_t got = 0;
        ERR_clear_error();
        int rc = SSL_read_ex(t->ssl, plain, sizeof plain, &got);
        if (rc == 1) {
            t->ev.data(t->ev.user, plain, got);
            continue;
        }
        int e = SSL_get_error(t->ssl, rc);
        if (e == SSL_ERROR_ZERO_RETURN) peer_ended(t);
        if (e != SSL_ERROR_WANT_READ && e != SSL_ERROR_ZERO_RETURN)
            transport_close(t, "the TLS stream is broken");
        break;
    }
    if (t->closing) return;
    pump_tls(t);
    flush_out(t);
}

void transport_feed(transport *t, const uint8_t *bytes, size_t n)
{
    if (t->closing || t->eof) return;
    if (n == 0)
        peer_ended(t);
    else if (t->ending)
        return; /* swallowed: see transport_end */
    else if (t->ssl)
        feed_tls(t, bytes, n);
    else
        t->ev.data(t->ev.user, bytes, n);
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *ret)
{
    transport *t = h->data;
    *ret = uv_buf_init((char *)t->scratch->bytes, sizeof t->scratch->bytes);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    transport *t = s->data;
    if (t->closing || n == 0) return;
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

static int start_tls(transport *t, SSL_CTX *ctx)
{
    t->ssl = SSL_new(ctx);
    t->net_in = BIO_new(BIO_s_mem());
    t->net_out = BIO_new(BIO_s_mem());
    if (!t->ssl || !t->net_in || !t->net_out) {
        BIO_free(t->net_in);
        BIO_free(t->net_out);
        return SHOAL_ENOMEM;
    }
    SSL_set_bio(t->ssl, t->net_in, t->net_out);
    SSL_set_accept_state(t->ssl);
    return 0;
}

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

int transport_accept(transport **ret, uv_stream_t *listener, SSL_CTX *tls, transport_scratch *scratch,
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
    if (tls && start_tls(t, tls) != 0) {
        discard(t);
        return err_nomem(err);
    }
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
    if (t->kind == KIND_TCP) uv_tcp_nodelay(&t->u.tcp, 1);
    transport_pause(t, false);
    if (!t->closing) t->ev.open(t->ev.user, "");
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
        if (t->n_handles == 0) finish(t);
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

int transport_connect(transport **ret, uv_loop_t *loop, const address *to, transport_scratch *scratch,
                      const transport_events *ev, shoal_err *err)
{
    transport *t = new_transport(loop, to->is_unix ? KIND_PIPE : KIND_TCP, scratch, ev);
    if (!t) return err_nomem(err);
    int rc = start_connect(t, to);
    if (rc != 0) {
        discard(t);
        return err_set(err, SHOAL_EUNAVAILABLE, "%s: %s", to->is_unix ? to->path : to->host, uv_strerror(rc));
    }
    *ret = t;
    return 0;
}
