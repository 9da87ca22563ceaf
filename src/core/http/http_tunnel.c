/* http_tunnel.c: a connection that has left HTTP/1.1. Its bytes are those of its one request, both ways.
 *
 * What its handler does not take, for it rests or is just being told something, waits in c->in, and in the
 * kernel as soon as there is any. */
#include "http/http_internal.h"

/* The tunnel's request; NULL: the handler has closed it. */
static http_request *current(const http_conn *c)
{
    return c->requests;
}

static bool flows(const http_conn *c)
{
    return current(c) && http_request_flows(current(c)) && !transport_is_closing(c->io);
}

static void deliver(http_conn *c, const uint8_t *bytes, size_t n)
{
    const http_handler *h = &c->server->handler;
    http_request *r = current(c);
    r->n_received += n;
    h->on_body(h->user, r, bytes, n);
}

static void deliver_kept(http_conn *c)
{
    buf kept = c->in;
    c->in = (buf){0};
    deliver(c, (const uint8_t *)kept.data, kept.len);
    buf_done(&kept);
}

static void tunnel_settle(http_conn *c)
{
    while (c->in.len && flows(c)) deliver_kept(c);
    if (!current(c) || transport_is_closing(c->io)) {
        transport_end(c->io);
        return;
    }
    if (c->eof && c->in.len == 0) http_request_end_body(current(c), 0, NULL);
    transport_pause(c->io, c->in.len > 0);
}

static void tunnel_data(http_conn *c, const uint8_t *bytes, size_t n)
{
    if (!current(c)) return;
    if (c->in.len == 0 && flows(c)) {
        deliver(c, bytes, n);
    } else if (buf_append(&c->in, bytes, n) != 0) {
        transport_close(c->io, "out of memory");
    }
}

static void tunnel_tick(http_conn *c, uint64_t now_ms) {}

/* The handler knows that the server drains, and what to say to its client. */
static void tunnel_leave(http_conn *c) {}

static void tunnel_write(http_request *r, const void *data, size_t len)
{
    transport_write(r->conn->io, data, len);
    conn_mark_dirty(r->conn);
}

static void tunnel_end(http_request *r, const http_header *trailers, size_t n)
{
    http_conn *c = r->conn;
    http_request_free(r);
    conn_mark_dirty(c);
}

void http_tunnel_start(http_conn *c)
{
    static const conn_ops ops = {.data = tunnel_data,
                                 .eof = tunnel_settle,
                                 .settle = tunnel_settle,
                                 .tick = tunnel_tick,
                                 .leave = tunnel_leave,
                                 .write = tunnel_write,
                                 .end = tunnel_end};
    c->ops = &ops;
    conn_mark_dirty(c);
}
