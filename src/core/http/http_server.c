/* http_server.c: connections, and what time does to them. */
#include <stdlib.h>
#include <string.h>

#include "base/loop_work.h"
#include "http/http_internal.h"
#include "wire/loop.h"

enum { TICK_MIN_MS = 5, TICK_MAX_MS = 500, PROBE_TICK_MS = 25 };

/* A client that reads for longer than write_timeout_ms at less than this is closed. */
enum { MIN_BYTES_PER_S = 1024 };
enum {
    REFUSING_MAX = 64,
    REFUSING_SHARE = 4
}; /* connections that say goodbye: a quarter of those that fit */

/* ---- the loop's turn: dirty connections ------------------------------------------------------ */

static void deliver_gone(http_conn *c, bool all)
{
    const http_handler *h = &c->server->handler;
    for (http_request *r = c->requests, *next; r; r = next) {
        next = r->next;
        if (!r->gone && !all) continue;
        loop_work_add_message(0);
        if (r->dispatched && !r->ended && h->on_gone) h->on_gone(h->user, r);
        http_request_free(r);
    }
}

/* A handler may make its final call in each of these, and over HTTP/1.1 the request is gone then. */
static void deliver_due(http_conn *c)
{
    const http_handler *h = &c->server->handler;
    if (!c->has_due) return;
    c->has_due = false;
    for (http_request *r = c->requests, *next; r && !transport_is_closing(c->io); r = next) {
        next = r->next;
        bool drained = r->drained && !r->ended && !r->gone;
        r->drained = false;
        if (drained) h->on_drained(h->user, r);
    }
    for (http_request *r = c->requests, *next; r && !transport_is_closing(c->io); r = next) {
        next = r->next;
        if (r->due) http_request_go_on(r);
    }
}

static void conn_settle(http_conn *c)
{
    if (c->in_data) return; /* its data callback will */
    deliver_gone(c, transport_is_closing(c->io));
    if (!transport_is_closing(c->io)) deliver_due(c);
    if (transport_is_closing(c->io)) return;
    transport_flush(c->io); /* what is sent at once makes room */
    c->parked = false;
    conn_resume_waiting(c);
    if (c->has_due) deliver_due(c);
    if (transport_is_closing(c->io)) return;
    c->ops->settle(c);
    transport_flush(c->io);
    conn_note_unsent(c);
    if ((c->parked || c->has_waiting) && !transport_is_closing(c->io) && conn_has_room(c)) conn_mark_dirty(c);
}

static void check_drained(http_server *s)
{
    if (!s->draining || s->n_conns || s->closing || !s->drained) return;
    void (*done)(void *) = s->drained;
    s->drained = NULL;
    done(s->drained_user);
}

static void on_again(uv_idle_t *i) {}

/* Those that were not settled in this turn have the next one before those that were. */
static void put_in_front(http_server *s, http_conn *rest)
{
    http_conn *last = rest;
    while (last->next_dirty) last = last->next_dirty;
    last->next_dirty = s->dirty;
    if (!s->dirty) s->last_dirty = &last->next_dirty;
    s->dirty = rest;
    if (!s->closing) uv_prepare_start(&s->settle, s->settle.prepare_cb);
}

static void on_settle(uv_prepare_t *p)
{
    http_server *s = p->data;
    http_conn *c = s->dirty;
    s->dirty = NULL;
    s->last_dirty = &s->dirty;
    uv_prepare_stop(p);
    for (bool is_first = true; c && (is_first || !conn_turn_is_full()); is_first = false) {
        http_conn *next = c->next_dirty;
        c->is_dirty = false;
        conn_settle(c);
        c = next;
    }
    if (c) put_in_front(s, c);
    if (s->dirty)
        uv_idle_start(&s->again, on_again);
    else
        uv_idle_stop(&s->again);
    check_drained(s);
}

static void on_turn(uv_check_t *check)
{
    http_server *s = check->data;
    s->n_turns++;
    s->scratch.turn = s->n_turns;
    http_listen_turn(s);
    loop_work_end_turn();
}

static void forget_dirty(http_conn *c)
{
    http_server *s = c->server;
    for (http_conn **p = &s->dirty; *p; p = &(*p)->next_dirty)
        if (*p == c) {
            *p = c->next_dirty;
            if (!c->next_dirty) s->last_dirty = p;
            return;
        }
}

/* ---- a connection ---------------------------------------------------------------------------- */

static void http_server_on_closed(void *user, const char *why)
{
    http_conn *c = user;
    http_server *s = c->server;
    deliver_gone(c, true);
    if (!c->is_open && !s->closing && s->refused) s->refused(s->refused_user, transport_from(c->io), why);
    if (c->ops->done) c->ops->done(c);
    if (c->is_dirty) forget_dirty(c);
    if (c->prev)
        c->prev->next = c->next;
    else
        s->conns = c->next;
    if (c->next) c->next->prev = c->prev;
    if (c->refusing) s->n_refusing--;
    s->n_conns--;
    s->n_held -= c->held;
    s->n_doomed -= c->doomed;
    buf_done(&c->in);
    tls_context_unref(c->tls);
    free(c->user);
    free(c);
    if (s->n_conns == 0 && !s->closing) uv_timer_stop(&s->tick);
    check_drained(s);
    http_server_gone(s);
}

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* Hand what has come so far to the protocol that it is. */
static void speak(http_conn *c, bool is_http2)
{
    buf first = c->in;
    c->in = (buf){0};
    if (!is_http2)
        http1_start(c);
    else if (http2_start(c) != 0)
        transport_close(c->io, "out of memory");
    if (first.len && !transport_is_closing(c->io)) c->ops->data(c, (const uint8_t *)first.data, first.len);
    buf_done(&first);
}

/* The first bytes tell HTTP/2 with prior knowledge from HTTP/1.1, which has no method PRI. */
static void detect(http_conn *c, const uint8_t *bytes, size_t n)
{
    if (buf_append(&c->in, bytes, n) != 0) {
        transport_close(c->io, "out of memory");
        return;
    }
    size_t known = c->in.len < sizeof preface - 1 ? c->in.len : sizeof preface - 1;
    if (!c->begun_ms) c->begun_ms = uv_now(c->server->loop);
    if (memcmp(c->in.data, preface, known) != 0)
        speak(c, false);
    else if (known == sizeof preface - 1)
        speak(c, true);
}

static void greeting_settle(http_conn *c) {}

static void greeting_tick(http_conn *c, uint64_t now)
{
    if (!c->is_open && now - c->idle_since_ms > c->server->limits.request_timeout_ms) {
        transport_close(c->io, "the TLS handshake takes too long");
    } else if (conn_is_late(c, now)) {
        http1_start(c);
        http1_refuse(c, 408, REQUEST_IS_LATE);
    } else if (conn_is_idle(c, now)) {
        transport_end(c->io);
    }
}

static void greeting_leave(http_conn *c)
{
    if (!c->begun_ms) transport_end(c->io);
}

static void greeting_eof(http_conn *c)
{
    transport_end(c->io);
}

static const conn_ops greeting_ops = {.data = detect,
                                      .eof = greeting_eof,
                                      .settle = greeting_settle,
                                      .tick = greeting_tick,
                                      .leave = greeting_leave};

static void http_server_on_data(void *user, const uint8_t *bytes, size_t n)
{
    http_conn *c = user;
    if (c->refusing) return;
    c->in_data = true;
    c->ops->data(c, bytes, n);
    c->in_data = false;
    conn_settle(c);
}

/* What ALPN agreed on is spoken and nothing else; over TLS there is no HTTP/2 without it (RFC 9113 3.2). */
static void on_open(void *user, const char *alpn)
{
    http_conn *c = user;
    c->is_open = true;
    speak(c, strcmp(alpn, "h2") == 0);
}

static void on_probe(uv_timer_t *timer)
{
    http_server *s = timer->data;
    bool any = false;
    for (http_conn *c = s->conns; c; c = c->next)
        if (c->ops->probe && !transport_is_closing(c->io)) any |= c->ops->probe(c, uv_now(s->loop));
    if (!any) uv_timer_stop(timer);
}

static void on_eof(void *user)
{
    http_conn *c = user;
    http_server *s = c->server;
    c->eof = true;
    c->ops->eof(c);
    if (transport_is_closing(c->io)) deliver_gone(c, true);
    if (c->ops->probe && c->requests && !s->closing)
        uv_timer_start(&s->probe, on_probe, PROBE_TICK_MS, PROBE_TICK_MS);
}

static void on_drained(void *user)
{
    http_conn *c = user;
    if (!c->requests) c->idle_since_ms = uv_now(c->server->loop);
    if (c->requests && !c->h2) conn_note_drained(c->requests);
    conn_mark_dirty(c);
}

const transport_events *http_server_events(http_conn *c, transport_events *ret)
{
    *ret = (transport_events){.user = c,
                              .open = on_open,
                              .data = http_server_on_data,
                              .eof = on_eof,
                              .drained = on_drained,
                              .closed = http_server_on_closed};
    return ret;
}

http_conn *http_server_new_conn(http_server *s)
{
    http_conn *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->server = s;
    c->ops = &greeting_ops;
    c->is_open = c->keep_alive = true;
    c->idle_since_ms = c->calm_since_ms = c->opened_ms = uv_now(s->loop);
    return c;
}

static void on_tick(uv_timer_t *timer);

static uint64_t tick_ms(const http_limits *l)
{
    uint64_t least = l->request_timeout_ms;
    if (l->idle_timeout_ms < least) least = l->idle_timeout_ms;
    if (l->write_timeout_ms < least) least = l->write_timeout_ms;
    if (l->keepalive_ms && l->keepalive_ms < least) least = l->keepalive_ms;
    if (l->keepalive_ms && l->keepalive_timeout_ms < least) least = l->keepalive_timeout_ms;
    least /= 4;
    return least < TICK_MIN_MS ? TICK_MIN_MS : least > TICK_MAX_MS ? TICK_MAX_MS : least;
}

void http_server_adopt(http_conn *c, transport *io)
{
    http_server *s = c->server;
    c->io = io;
    c->next = s->conns;
    if (c->next) c->next->prev = c;
    s->conns = c;
    if (s->n_conns++ == 0) uv_timer_start(&s->tick, on_tick, tick_ms(&s->limits), tick_ms(&s->limits));
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Behind a closed HTTP/2 window the socket looks idle, so what flow control lets through counts by itself. */
static bool is_too_slow(http_conn *c, uint64_t now)
{
    uint64_t span = c->server->limits.write_timeout_ms;
    uint64_t least = span > UINT64_MAX / MIN_BYTES_PER_S ? 1 : span * MIN_BYTES_PER_S / 1000;
    return conn_pace_is_too_slow(&c->socket_pace, transport_backlog(c->io), transport_sent(c->io), least, now,
                                 span) ||
           conn_pace_is_too_slow(&c->window_pace, c->out_bytes, c->taken, least, now, span);
}

static void tick_conn(http_conn *c, uint64_t now)
{
    if (is_too_slow(c, now))
        transport_close(c->io, "the client reads too slowly");
    else if (!transport_is_closing(c->io))
        c->ops->tick(c, now);
    http_places_tick(c, now);
    transport_trim(c->io);
    conn_note_unsent(c);
}

static void on_tick(uv_timer_t *timer)
{
    http_server *s = timer->data;
    uint64_t now = uv_now(s->loop);
    for (http_conn *c = s->conns; c; c = c->next) tick_conn(c, now);
}

/* ---- birth, drain and end -------------------------------------------------------------------- */

void http_limits_fill(http_limits *l)
{
    if (!l->max_body_bytes) l->max_body_bytes = 4u << 20;
    if (!l->max_header_bytes) l->max_header_bytes = 16u << 10;
    if (!l->max_headers) l->max_headers = 100;
    if (!l->max_connections) l->max_connections = 1024;
    if (!l->max_streams) l->max_streams = 128;
    if (!l->max_resets) l->max_resets = 200;
    if (!l->max_unauthorized) l->max_unauthorized = 10;
    if (!l->request_timeout_ms) l->request_timeout_ms = 10000;
    if (!l->min_body_rate) l->min_body_rate = 1024;
    if (!l->idle_timeout_ms) l->idle_timeout_ms = 120000;
    if (!l->write_timeout_ms) l->write_timeout_ms = 15000;
    if (!l->keepalive_timeout_ms) l->keepalive_timeout_ms = 10000;
    if (!l->max_bodies) l->max_bodies = 256u << 20;
    if (!l->max_write_backlog) l->max_write_backlog = 1u << 20;
    if (!l->max_unsent) l->max_unsent = 64u << 20;
}

int http_server_new(http_server **ret, uv_loop_t *loop, const http_handler *h, const http_limits *limits,
                    shoal_err *err)
{
    http_server *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    transport_ignore_sigpipe();
    s->loop = loop;
    s->handler = *h;
    if (limits) s->limits = *limits;
    http_limits_fill(&s->limits);
    s->max_refusing = loop_connections(REFUSING_MAX * REFUSING_SHARE) / REFUSING_SHARE;
    uv_timer_init(loop, &s->tick);
    uv_timer_init(loop, &s->probe);
    uv_prepare_init(loop, &s->settle);
    uv_idle_init(loop, &s->again);
    uv_check_init(loop, &s->turn);
    uv_check_start(&s->turn, on_turn);
    uv_unref((uv_handle_t *)&s->turn);
    s->settle.prepare_cb = on_settle;
    s->last_dirty = &s->dirty;
    s->tick.data = s->probe.data = s->settle.data = s->again.data = s->turn.data = s;
    s->n_handles = 5;
    *ret = s;
    return 0;
}

void http_server_limit(http_server *s, const http_limits *limits)
{
    size_t max_connections = s->limits.max_connections;
    s->limits = limits ? *limits : (http_limits){0};
    http_limits_fill(&s->limits);
    s->limits.max_connections = max_connections;
    if (uv_is_active((uv_handle_t *)&s->tick))
        uv_timer_start(&s->tick, on_tick, tick_ms(&s->limits), tick_ms(&s->limits));
}

void http_server_drain(http_server *s, void (*done)(void *user), void *user)
{
    s->draining = true;
    s->drained = done;
    s->drained_user = user;
    http_server_stop_listening(s);
    for (http_conn *c = s->conns; c; c = c->next) c->ops->leave(c);
    uv_prepare_start(&s->settle, on_settle); /* `done` never comes from inside this call */
}

void http_server_on_refused(http_server *s, void (*fn)(void *user, const char *from, const char *why),
                            void *user)
{
    s->refused = fn;
    s->refused_user = user;
}

void http_server_recheck(http_server *s)
{
    for (http_conn *c = s->conns; c; c = c->next) {
        const tls_identity *peer = transport_peer(c->io);
        if (peer && !tls_context_admits(c->tls, peer, NULL))
            transport_close(c->io, "the peer may not come in any more");
    }
}

static void on_server_handle_closed(uv_handle_t *h)
{
    http_server *s = h->data;
    s->n_handles--;
    http_server_gone(s);
}

void http_server_gone(http_server *s)
{
    if (!s->closing || s->n_handles || s->n_conns) return;
    void (*closed)(void *) = s->closed;
    void *user = s->closed_user;
    free(s);
    if (closed) closed(user);
}

void http_server_close(http_server *s, void (*closed)(void *user), void *user)
{
    if (!s || s->closing) return;
    s->closing = true;
    s->closed = closed;
    s->closed_user = user;
    http_server_stop_listening(s);
    for (http_conn *c = s->conns; c; c = c->next) transport_close(c->io, "the server is closing");
    uv_close((uv_handle_t *)&s->tick, on_server_handle_closed);
    uv_close((uv_handle_t *)&s->probe, on_server_handle_closed);
    uv_close((uv_handle_t *)&s->settle, on_server_handle_closed);
    uv_close((uv_handle_t *)&s->again, on_server_handle_closed);
    uv_close((uv_handle_t *)&s->turn, on_server_handle_closed);
}
