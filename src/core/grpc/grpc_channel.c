/* grpc_channel.c: the client's connection, and what time does to its calls.
 *
 * A channel holds at most one link (transport + nghttp2 session). A lost link ends its calls with
 * UNAVAILABLE and dies on the loop by itself, while the channel may already have the next one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "grpc/grpc_internal.h"

enum {
    STREAM_WINDOW_BYTES = 64 << 10, /* what a server may send ahead of a reader that rests */
    WINDOW_BYTES = 4 << 20,
    HEADERS_KEPT_BYTES = 1024, /* by HPACK, a direction: what each call says anew (its id) need not stay */
    SEND_AHEAD_BYTES = 256 << 10,
    CONNECT_TIMEOUT_MS = 10000,
    KEEPALIVE_TIMEOUT_MS = 10000,
    GRACE_MS = 20,
    CALM_WINDOW_MS = 10000,
    MAX_CONTROL = 4000, /* PING, SETTINGS, RST_STREAM and empty DATA of a server within it */
    MAX_OUTBOUND_ACKS = 200
};

/* ---- time ------------------------------------------------------------------------------------ */

static void on_deadline(uv_timer_t *timer);

void grpc_link_arm_deadline(grpc_link *l)
{
    uint64_t first = UINT64_MAX, now = clock_ns();
    for (grpc_client_call *c = l->calls; c; c = c->next)
        if (c->deadline_ns && c->deadline_ns < first) first = c->deadline_ns;
    if (first == UINT64_MAX) {
        uv_timer_stop(&l->deadline);
        return;
    }
    uv_update_time(l->loop);
    uv_timer_start(&l->deadline, on_deadline, first > now ? (first - now) / 1000000 + 1 : 0, 0);
}

static grpc_client_call *first_expired(grpc_link *l, uint64_t now)
{
    for (grpc_client_call *c = l->calls; c; c = c->next)
        if (c->deadline_ns && c->deadline_ns <= now) return c;
    return NULL;
}

static void on_deadline(uv_timer_t *timer)
{
    grpc_link *l = timer->data;
    uint64_t now = clock_ns();
    grpc_client_call *c;
    while ((c = first_expired(l, now)))
        grpc_client_abort(c, NGHTTP2_CANCEL, GRPC_DEADLINE_EXCEEDED, "the deadline was missed");
    if (l->ch) grpc_link_arm_deadline(l);
}

/* ---- the link -------------------------------------------------------------------------------- */

static void link_lost(grpc_link *l, const char *why)
{
    grpc_channel *ch = l->ch;
    bool closed = false;
    l->ch = NULL;
    if (!ch) return; /* closed on purpose: its calls have ended */
    ch->link = NULL;
    ch->connected = false;
    ch->closed = &closed;
    while (l->calls) grpc_client_end(l->calls, GRPC_UNAVAILABLE, why);
    if (closed) return;
    ch->closed = NULL;
    if (ch->ev.disconnected) ch->ev.disconnected(ch->ev.user, why);
}

static void on_link_handle_closed(uv_handle_t *h)
{
    grpc_link *l = h->data;
    if (--l->n_handles) return;
    nghttp2_session_del(l->h2);
    free(l->own);
    free(l);
}

static void grpc_channel_on_closed(void *user, const char *why)
{
    grpc_link *l = user;
    link_lost(l, why);
    uv_close((uv_handle_t *)&l->settle, on_link_handle_closed);
    uv_close((uv_handle_t *)&l->again, on_link_handle_closed);
    uv_close((uv_handle_t *)&l->deadline, on_link_handle_closed);
    uv_close((uv_handle_t *)&l->keepalive, on_link_handle_closed);
}

/* Frames for as long as little waits in the transport; false when there are none left. */
static bool grpc_channel_fill(grpc_link *l)
{
    const uint8_t *frames;
    while (!transport_is_closing(l->io) && transport_backlog(l->io) < SEND_AHEAD_BYTES) {
        ssize_t n = nghttp2_session_mem_send(l->h2, &frames);
        if (n < 0) transport_close(l->io, "HTTP/2 failed while sending");
        if (n <= 0) return false;
        transport_write(l->io, frames, (size_t)n);
    }
    return !transport_is_closing(l->io);
}

static void pump(grpc_link *l)
{
    bool more;
    do {
        more = grpc_channel_fill(l);
        if (transport_is_closing(l->io)) return;
        transport_flush(l->io); /* what the kernel takes at once makes room, and no `drained` follows it */
    } while (more && !transport_is_closing(l->io) && transport_backlog(l->io) < SEND_AHEAD_BYTES);
    if (transport_is_closing(l->io)) return;
    if (!nghttp2_session_want_read(l->h2) && !nghttp2_session_want_write(l->h2))
        transport_close(l->io, "the server ended the connection, or broke the rules of HTTP/2");
}

static void on_again(uv_idle_t *i) {}

static void on_settle(uv_prepare_t *p)
{
    grpc_link *l = p->data;
    uv_prepare_stop(p);
    uv_idle_stop(&l->again);
    l->dirty = false;
    if (!l->h2) return;
    grpc_client_tell_drained(l);
    grpc_reply_catch_up(l);
    if (!transport_is_closing(l->io)) pump(l);
    if (l->dirty) uv_idle_start(&l->again, on_again);
}

void grpc_link_mark_dirty(grpc_link *l)
{
    if (transport_is_closing(l->io)) return;
    l->dirty = true;
    uv_prepare_start(&l->settle, on_settle);
}

static void on_drained(void *user)
{
    grpc_link_mark_dirty(user);
}

static void grpc_channel_on_data(void *user, const uint8_t *bytes, size_t n)
{
    grpc_link *l = user;
    if (!l->h2) return;
    l->heard_ms = uv_now(l->loop);
    l->pinged = l->overdue = false;
    ssize_t rc = nghttp2_session_mem_recv(l->h2, bytes, n);
    if (rc < 0)
        transport_close(l->io, "the server broke HTTP/2");
    else
        pump(l);
}

static void on_eof(void *user)
{
    grpc_link *l = user;
    transport_close(l->io, "the server closed the connection");
}

/* ---- is anybody there? ----------------------------------------------------------------------- */

static void on_late(uv_timer_t *timer)
{
    grpc_link *l = timer->data;
    transport_close(l->io, "it does not answer: no connection in time");
}

/* Every keepalive_ms without a sound a PING goes out; when nothing comes for keepalive_timeout_ms after it,
 * the link is lost. A process that was stopped itself finds the timer first and the answer, which has long
 * come, right after it: so there is one more look. */
static void on_keepalive(uv_timer_t *timer)
{
    grpc_link *l = timer->data;
    const grpc_channel *ch = l->ch;
    uint64_t silent_ms = uv_now(l->loop) - l->heard_ms;
    if (!ch || transport_is_closing(l->io)) return;
    if (l->overdue) {
        transport_close(l->io,
                        "the server answers no ping: its machine, its process or the link stands still");
    } else if (l->pinged) {
        l->overdue = true;
        uv_timer_start(timer, on_keepalive, GRACE_MS, 0);
    } else if (silent_ms < ch->keepalive_ms) {
        uv_timer_start(timer, on_keepalive, ch->keepalive_ms - silent_ms, 0);
    } else {
        l->pinged = true;
        nghttp2_submit_ping(l->h2, NGHTTP2_FLAG_NONE, NULL);
        grpc_link_mark_dirty(l);
        uv_timer_start(timer, on_keepalive, ch->keepalive_timeout_ms, 0);
    }
}

static void start_keepalive(grpc_link *l)
{
    l->heard_ms = uv_now(l->loop);
    if (l->ch->keepalive_ms)
        uv_timer_start(&l->keepalive, on_keepalive, l->ch->keepalive_ms, 0);
    else
        uv_timer_stop(&l->keepalive);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static int start_session(grpc_link *l)
{
    nghttp2_session_callbacks *cb = NULL;
    nghttp2_option *opt = NULL;
    int rc = nghttp2_session_callbacks_new(&cb);
    if (rc == 0) rc = nghttp2_option_new(&opt);
    if (rc != 0) {
        nghttp2_session_callbacks_del(cb);
        return rc;
    }
    nghttp2_option_set_no_auto_window_update(opt, 1);
    nghttp2_option_set_max_outbound_ack(opt, MAX_OUTBOUND_ACKS);
    nghttp2_option_set_max_deflate_dynamic_table_size(opt, HEADERS_KEPT_BYTES);
    grpc_reply_callbacks(cb);
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                         {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, HEADERS_KEPT_BYTES},
                                         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES},
                                         {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_MAX_HEADER_BYTES}};
    rc = nghttp2_session_client_new2(&l->h2, cb, l, opt);
    if (rc == 0)
        rc = nghttp2_submit_settings(l->h2, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings);
    if (rc == 0) rc = nghttp2_session_set_local_window_size(l->h2, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES);
    nghttp2_option_del(opt);
    nghttp2_session_callbacks_del(cb);
    return rc;
}

static void accepted(grpc_link *l)
{
    grpc_channel *ch = l->ch;
    l->accepted = true;
    if (!ch) return;
    ch->connected = true;
    start_keepalive(l);
    if (ch->ev.connected) ch->ev.connected(ch->ev.user);
}

/* With TLS 1.3 our end of the handshake is done before the server has looked at our certificate; its SETTINGS
 * say that it has. */
void grpc_link_heard_frame(grpc_link *l, const nghttp2_frame *f)
{
    bool is_settings = f->hd.type == NGHTTP2_SETTINGS;
    bool costs_nothing = is_settings || f->hd.type == NGHTTP2_PING || f->hd.type == NGHTTP2_RST_STREAM ||
                         (f->hd.type == NGHTTP2_DATA && f->hd.length == 0);
    if (is_settings && !l->accepted) accepted(l);
    if (!costs_nothing) return;
    if (uv_now(l->loop) - l->calm_since_ms > CALM_WINDOW_MS) {
        l->calm_since_ms = uv_now(l->loop);
        l->n_control = 0;
    }
    if (++l->n_control > MAX_CONTROL) transport_close(l->io, "the server floods us with empty frames");
}

static void on_open(void *user, const char *alpn)
{
    grpc_link *l = user;
    bool is_tls = l->ch && l->ch->tls;
    if (is_tls && strcmp(alpn, "h2") != 0) {
        transport_close(l->io, "the server does not speak HTTP/2");
        return;
    }
    if (start_session(l) != 0) {
        transport_close(l->io, "out of memory");
        return;
    }
    pump(l);
    if (!is_tls && !transport_is_closing(l->io)) accepted(l);
}

static transport_events events_of(grpc_link *l)
{
    return (transport_events){.user = l,
                              .open = on_open,
                              .data = grpc_channel_on_data,
                              .eof = on_eof,
                              .drained = on_drained,
                              .closed = grpc_channel_on_closed};
}

static int connect_transport(grpc_link *l, const grpc_channel *ch, shoal_err *err)
{
    transport_events ev = events_of(l);
    tls_target target = {.name = ch->name, .sni = ch->sni, .alpn = "h2"};
    transport_scratch *scratch = ch->scratch ? ch->scratch : l->own;
    int rc = transport_connect(&l->io, ch->loop, &ch->to, ch->tls, &target, scratch, &ev, err);
    if (rc == 0 && ch->keepalive_ms)
        transport_limit_silence(l->io, (unsigned)(ch->keepalive_ms + ch->keepalive_timeout_ms));
    return rc;
}

static void start_link(grpc_link *l, grpc_channel *ch)
{
    uv_prepare_init(ch->loop, &l->settle);
    uv_idle_init(ch->loop, &l->again);
    uv_timer_init(ch->loop, &l->deadline);
    uv_timer_init(ch->loop, &l->keepalive);
    l->settle.data = l->again.data = l->deadline.data = l->keepalive.data = l;
    l->n_handles = 4;
    uv_timer_start(&l->keepalive, on_late, ch->connect_timeout_ms, 0);
    ch->link = l;
}

static grpc_link *link_alloc(grpc_channel *ch)
{
    grpc_link *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->ch = ch;
    l->loop = ch->loop;
    return l;
}

/* Not zeroed as a whole: its pages become resident as far as they are read into. */
static transport_scratch *new_scratch(void)
{
    transport_scratch *s = malloc(sizeof *s);
    if (s) s->turn = 0;
    return s;
}

static int link_new(grpc_channel *ch, shoal_err *err)
{
    grpc_link *l = link_alloc(ch);
    int rc = l ? 0 : err_nomem(err);
    if (rc == 0 && !ch->scratch && !(l->own = new_scratch())) rc = err_nomem(err);
    if (rc == 0) rc = connect_transport(l, ch, err);
    if (rc == 0) {
        start_link(l, ch);
    } else if (l) {
        free(l->own);
        free(l);
    }
    return rc;
}

int grpc_channel_connect(grpc_channel *ch)
{
    return ch->link || link_new(ch, NULL) == 0 ? 0 : SHOAL_ENOMEM;
}

static void channel_free(grpc_channel *ch)
{
    tls_context_unref(ch->tls);
    free(ch->authority);
    free(ch->name);
    free(ch->sni);
    free(ch);
}

static bool copy_names(grpc_channel *ch, const char *address_text, const grpc_channel_options *o)
{
    ch->authority = strdup(ch->to.is_unix ? "localhost" : address_text);
    ch->name = strdup(o->server_name ? o->server_name : ch->to.is_unix ? "localhost" : ch->to.host);
    ch->sni = o->sni ? strdup(o->sni) : NULL;
    return ch->authority && ch->name && (ch->sni || !o->sni);
}

static grpc_channel *channel_new(uv_loop_t *loop, const address *to, const grpc_channel_options *o,
                                 const grpc_channel_events *ev)
{
    grpc_channel *ch = calloc(1, sizeof *ch);
    if (!ch) return NULL;
    ch->loop = loop;
    ch->to = *to;
    if (ev) ch->ev = *ev;
    ch->tls = o->tls ? tls_context_ref(o->tls) : NULL;
    ch->scratch = o->scratch;
    ch->connect_timeout_ms = o->connect_timeout_ms ? o->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    ch->keepalive_ms = o->keepalive_ms;
    ch->keepalive_timeout_ms = o->keepalive_timeout_ms ? o->keepalive_timeout_ms : KEEPALIVE_TIMEOUT_MS;
    return ch;
}

int grpc_channel_open(grpc_channel **ret, uv_loop_t *loop, const char *address_text,
                      const grpc_channel_options *opt, const grpc_channel_events *ev, shoal_err *err)
{
    grpc_channel_options none = {0};
    address to;
    shoal_err why;
    int rc = address_parse(&to, address_text, err);
    if (rc != 0) return rc;
    grpc_channel *ch = channel_new(loop, &to, opt ? opt : &none, ev);
    if (!ch) return err_nomem(err);
    transport_ignore_sigpipe();
    rc = copy_names(ch, address_text, opt ? opt : &none) ? link_new(ch, &why) : err_nomem(&why);
    if (rc != 0) {
        channel_free(ch);
        return err_set(err, rc == SHOAL_EINVALID ? rc : SHOAL_EUNAVAILABLE, "%s: cannot connect: %s",
                       address_text, why.message);
    }
    *ret = ch;
    return 0;
}

int grpc_channel_new_memory(grpc_channel **ret, transport **ret_io, uv_loop_t *loop,
                            const grpc_channel_events *ev,
                            void (*sink)(void *user, const uint8_t *bytes, size_t n))
{
    grpc_channel_options none = {0};
    address to = {.is_unix = true};
    grpc_channel *ch = channel_new(loop, &to, &none, ev);
    grpc_link *l = ch && copy_names(ch, "", &none) ? link_alloc(ch) : NULL;
    transport_events io_events = events_of(l);
    if (!l || transport_new_memory(&l->io, loop, &io_events, sink, NULL) != 0) {
        free(l);
        if (ch) channel_free(ch);
        return SHOAL_ENOMEM;
    }
    start_link(l, ch);
    *ret_io = l->io;
    *ret = ch;
    on_open(l, "");
    return 0;
}

int grpc_channel_new(grpc_channel **ret, uv_loop_t *loop, const char *address_text,
                     const grpc_channel_events *ev, shoal_err *err)
{
    return grpc_channel_open(ret, loop, address_text, NULL, ev, err);
}

const tls_identity *grpc_channel_peer(const grpc_channel *ch)
{
    return ch->link ? transport_peer(ch->link->io) : NULL;
}

bool grpc_channel_is_connected(const grpc_channel *ch)
{
    return ch->connected;
}

void grpc_channel_close(grpc_channel *ch)
{
    if (!ch) return;
    grpc_link *l = ch->link;
    if (l) {
        l->ch = NULL;
        while (l->calls) grpc_client_end(l->calls, GRPC_CANCELLED, "the channel was closed");
        transport_close(l->io, "the channel was closed");
    }
    if (ch->closed) *ch->closed = true;
    channel_free(ch);
}
