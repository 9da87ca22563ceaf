/* grpc_client.c: many calls on one HTTP/2 connection.
 *
 * A channel holds at most one link (transport + nghttp2 session). A lost link ends its calls with
 * UNAVAILABLE and dies on the loop by itself, while the channel may already have the next one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/clock.h"
#include "wire/grpc.h"
#include "wire/grpc_frame.h"
#include "wire/transport.h"

enum {
    MAX_MESSAGE_BYTES = 16 << 20,  /* of a reply */
    MAX_REQUEST_BYTES = 160 << 20, /* a sound file */
    STREAM_WINDOW_BYTES = 64 << 10, /* what a server may send ahead of a reader that rests */
    WINDOW_BYTES = 4 << 20,
    SEND_AHEAD_BYTES = 256 << 10,
    MAX_HEADER_BYTES = 16 << 10
};

typedef struct channel_link {
    grpc_channel *ch; /* NULL once the channel has let go of it */
    transport *io;
    nghttp2_session *h2; /* NULL until connected */
    grpc_client_call *calls;
    transport_scratch scratch;
    uv_prepare_t settle;
    uv_timer_t deadline;
    int n_handles;
    uv_loop_t *loop;
} channel_link;

struct grpc_channel {
    uv_loop_t *loop;
    address to;
    char *authority;
    grpc_channel_events ev;
    channel_link *link; /* connecting or connected */
    bool connected;
    bool *closed; /* told when a callback of link_lost closes the channel; else NULL */
};

struct grpc_client_call {
    grpc_client_call *prev, *next;
    channel_link *link;
    int32_t stream_id;
    uint64_t deadline_ns;
    grpc_client_events ev;
    uint8_t head[GRPC_FRAME_HEAD];
    uint8_t *msg; /* request, sent after head */
    size_t n_msg, at;
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

/* ---- calls ----------------------------------------------------------------------------------- */

static void call_free(grpc_client_call *c)
{
    free(c->msg);
    buf_done(&c->message);
    grpc_reader_done(&c->in);
    free(c);
}

/* Out of the link and of nghttp2: nothing finds the call any more. */
static void call_detach(grpc_client_call *c)
{
    channel_link *l = c->link;
    if (c->prev)
        c->prev->next = c->next;
    else
        l->calls = c->next;
    if (c->next) c->next->prev = c->prev;
    nghttp2_session_set_stream_user_data(l->h2, c->stream_id, NULL);
    c->over = true;
}

static void call_end(grpc_client_call *c, grpc_status status, const char *message)
{
    bool busy = c->busy; /* then whoever is calling back frees it */
    call_detach(c);
    c->busy = true;
    if (c->ev.end) c->ev.end(c->ev.user, status, message);
    if (!busy) call_free(c);
}

static void mark_dirty(channel_link *l);

static void call_abort(grpc_client_call *c, uint32_t reset, grpc_status status, const char *message)
{
    channel_link *l = c->link;
    nghttp2_submit_rst_stream(l->h2, NGHTTP2_FLAG_NONE, c->stream_id, reset);
    mark_dirty(l);
    call_end(c, status, message);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void on_deadline(uv_timer_t *timer);

static void arm_deadline(channel_link *l)
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

static grpc_client_call *first_expired(channel_link *l, uint64_t now)
{
    for (grpc_client_call *c = l->calls; c; c = c->next)
        if (c->deadline_ns && c->deadline_ns <= now) return c;
    return NULL;
}

static void on_deadline(uv_timer_t *timer)
{
    channel_link *l = timer->data;
    uint64_t now = clock_ns();
    grpc_client_call *c;
    while ((c = first_expired(l, now)))
        call_abort(c, NGHTTP2_CANCEL, GRPC_DEADLINE_EXCEEDED, "the deadline was missed");
    if (l->ch) arm_deadline(l);
}

/* ---- the link -------------------------------------------------------------------------------- */

static void link_lost(channel_link *l, const char *why)
{
    grpc_channel *ch = l->ch;
    bool closed = false;
    l->ch = NULL;
    if (!ch) return; /* closed on purpose: its calls have ended */
    ch->link = NULL;
    ch->connected = false;
    ch->closed = &closed;
    while (l->calls) call_end(l->calls, GRPC_UNAVAILABLE, why);
    if (closed) return;
    ch->closed = NULL;
    if (ch->ev.disconnected) ch->ev.disconnected(ch->ev.user, why);
}

static void on_link_handle_closed(uv_handle_t *h)
{
    channel_link *l = h->data;
    if (--l->n_handles) return;
    nghttp2_session_del(l->h2);
    free(l);
}

static void on_closed(void *user, const char *why)
{
    channel_link *l = user;
    link_lost(l, why);
    uv_close((uv_handle_t *)&l->settle, on_link_handle_closed);
    uv_close((uv_handle_t *)&l->deadline, on_link_handle_closed);
}

static void pump(channel_link *l)
{
    const uint8_t *frames;
    while (!transport_is_closing(l->io) && transport_backlog(l->io) < SEND_AHEAD_BYTES) {
        ssize_t n = nghttp2_session_mem_send(l->h2, &frames);
        if (n < 0) transport_close(l->io, "HTTP/2 failed while sending");
        if (n <= 0) break;
        transport_write(l->io, frames, (size_t)n);
    }
    if (transport_is_closing(l->io)) return;
    transport_flush(l->io);
    if (!nghttp2_session_want_read(l->h2) && !nghttp2_session_want_write(l->h2))
        transport_close(l->io, "the server ended the connection");
}

static void catch_up_all(channel_link *l);

static void on_settle(uv_prepare_t *p)
{
    channel_link *l = p->data;
    uv_prepare_stop(p);
    if (!l->h2) return;
    catch_up_all(l);
    if (!transport_is_closing(l->io)) pump(l);
}

static void mark_dirty(channel_link *l)
{
    if (!transport_is_closing(l->io)) uv_prepare_start(&l->settle, on_settle);
}

static void on_drained(void *user)
{
    mark_dirty(user);
}

static void on_data(void *user, const uint8_t *bytes, size_t n)
{
    channel_link *l = user;
    if (!l->h2) return;
    ssize_t rc = nghttp2_session_mem_recv(l->h2, bytes, n);
    if (rc < 0)
        transport_close(l->io, "the server broke HTTP/2");
    else
        pump(l);
}

static void on_eof(void *user)
{
    channel_link *l = user;
    transport_close(l->io, "the server closed the connection");
}

/* ---- what comes back ------------------------------------------------------------------------- */

static int on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    grpc_client_call *c = nghttp2_session_get_stream_user_data(h2, f->hd.stream_id);
    if (!c) return 0;
    const char *s = (const char *)name, *v = (const char *)value;
    c->header_bytes += n_name + n_value + 32;
    if (c->header_bytes > MAX_HEADER_BYTES)
        call_abort(c, NGHTTP2_CANCEL, GRPC_RESOURCE_EXHAUSTED, "the server's header is too large");
    else if (strcmp(s, ":status") == 0)
        c->http_status = atoi(v);
    else if (strcmp(s, "content-type") == 0)
        c->bad_type = !grpc_is_content_type(v);
    else if (strcmp(s, "grpc-status") == 0)
        c->grpc_status =
            n_value > 0 && n_value < 3 && strspn(v, "0123456789") == n_value ? atoi(v) : GRPC_UNKNOWN;
    else if (strcmp(s, "grpc-message") == 0 && c->message.len == 0)
        grpc_message_decode(&c->message, v);
    return 0;
}

static void reader_failed(grpc_client_call *c, int rc)
{
    bool short_of = rc == SHOAL_ELIMIT || rc == SHOAL_ENOMEM;
    call_abort(c, NGHTTP2_CANCEL, short_of ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL,
               rc == SHOAL_ELIMIT         ? "a message is too large"
               : rc == SHOAL_ENOMEM       ? "out of memory"
               : rc == SHOAL_EUNSUPPORTED ? "a message is compressed, which was not asked for"
                                          : "a message frame is malformed");
}

/* The connection's window is always given back, a stream's while its reader keeps up. */
static void give_window(nghttp2_session *h2, int32_t id, grpc_client_call *c, size_t n)
{
    nghttp2_session_consume_connection(h2, n);
    if (c && c->paused)
        c->n_unread += n;
    else
        nghttp2_session_consume_stream(h2, id, n);
}

/* False when the call has ended, and is gone. A callback may cancel it, or close the channel: busy keeps its
 * memory until we are out. */
static bool deliver(grpc_client_call *c, int rc)
{
    const uint8_t *msg;
    size_t n_msg;
    c->busy = true;
    while (rc == 0 && !c->over && !c->paused && (rc = grpc_reader_next(&c->in, &msg, &n_msg)) == 1) {
        if (c->ev.message) c->ev.message(c->ev.user, msg, n_msg);
        rc = 0;
    }
    if (rc < 0 && !c->over) reader_failed(c, rc);
    c->busy = false;
    if (!c->over) return true;
    call_free(c);
    return false;
}

static int on_data_chunk(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *data, size_t n,
                         void *user)
{
    grpc_client_call *c = nghttp2_session_get_stream_user_data(h2, id);
    give_window(h2, id, c, n);
    if (!c || c->bad_type || c->http_status != 200) return 0;
    int rc = grpc_reader_feed(&c->in, data, n);
    if (!c->due || rc != 0) deliver(c, rc); /* in order: after what is still due */
    return 0;
}

/* doc/http-grpc-status-mapping.md */
static grpc_status status_of_http(int http_status)
{
    switch (http_status) {
    case 400: return GRPC_INTERNAL;
    case 401: return GRPC_UNAUTHENTICATED;
    case 403: return GRPC_PERMISSION_DENIED;
    case 404: return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504: return GRPC_UNAVAILABLE;
    default: return GRPC_UNKNOWN;
    }
}

static grpc_status status_of_reset(uint32_t code)
{
    switch (code) {
    case NGHTTP2_REFUSED_STREAM: return GRPC_UNAVAILABLE;
    case NGHTTP2_CANCEL: return GRPC_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM: return GRPC_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY: return GRPC_PERMISSION_DENIED;
    default: return GRPC_INTERNAL;
    }
}

static void end_closed(grpc_client_call *c, uint32_t error_code)
{
    char text[80];
    if (c->grpc_status >= 0) {
        bool cut = c->grpc_status == GRPC_OK && !grpc_reader_is_empty(&c->in);
        if (cut)
            call_end(c, GRPC_INTERNAL, "the last message is cut short");
        else
            call_end(c, (grpc_status)c->grpc_status, c->message.data ? c->message.data : "");
    } else if (c->http_status && c->http_status != 200) {
        snprintf(text, sizeof text, "the server answered HTTP %d", c->http_status);
        call_end(c, status_of_http(c->http_status), text);
    } else if (error_code != NGHTTP2_NO_ERROR) {
        snprintf(text, sizeof text, "the stream was reset (%s)", nghttp2_http2_strerror(error_code));
        call_end(c, status_of_reset(error_code), text);
    } else {
        call_end(c, GRPC_UNKNOWN, c->bad_type ? "the answer is not gRPC" : "the answer has no grpc-status");
    }
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t error_code, void *user)
{
    grpc_client_call *c = nghttp2_session_get_stream_user_data(h2, id);
    if (!c) return 0;
    c->closed = c->paused || c->due;
    c->close_code = error_code;
    if (!c->closed) end_closed(c, error_code);
    return 0;
}

/* What came for a call while it was paused. */
static void catch_up(channel_link *l, grpc_client_call *c)
{
    c->due = false;
    if (!c->closed) nghttp2_session_consume_stream(l->h2, c->stream_id, c->n_unread);
    c->n_unread = 0;
    if (deliver(c, 0) && c->closed && !c->paused) end_closed(c, c->close_code);
}

static grpc_client_call *first_due(channel_link *l)
{
    for (grpc_client_call *c = l->calls; c; c = c->next)
        if (c->due && !c->paused) return c;
    return NULL;
}

static void catch_up_all(channel_link *l)
{
    for (grpc_client_call *c; l->h2 && !transport_is_closing(l->io) && (c = first_due(l));) catch_up(l, c);
}

/* A request that never left, because GOAWAY came first. */
static int on_not_sent(nghttp2_session *h2, const nghttp2_frame *f, int error, void *user)
{
    grpc_client_call *c =
        f->hd.type == NGHTTP2_HEADERS ? nghttp2_session_get_stream_user_data(h2, f->hd.stream_id) : NULL;
    if (c) call_end(c, GRPC_UNAVAILABLE, "the server takes no more calls on this connection");
    return 0;
}

/* ---- connecting ------------------------------------------------------------------------------ */

static int start_session(channel_link *l)
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
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_not_sent);
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES},
                                         {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, MAX_HEADER_BYTES}};
    rc = nghttp2_session_client_new2(&l->h2, cb, l, opt);
    if (rc == 0) rc = nghttp2_submit_settings(l->h2, NGHTTP2_FLAG_NONE, settings, 3);
    if (rc == 0) rc = nghttp2_session_set_local_window_size(l->h2, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES);
    nghttp2_option_del(opt);
    nghttp2_session_callbacks_del(cb);
    return rc;
}

static void on_open(void *user, const char *alpn)
{
    channel_link *l = user;
    grpc_channel *ch = l->ch;
    if (start_session(l) != 0) {
        transport_close(l->io, "out of memory");
        return;
    }
    pump(l);
    if (!ch) return;
    ch->connected = true;
    if (ch->ev.connected) ch->ev.connected(ch->ev.user);
}

static channel_link *link_new(grpc_channel *ch)
{
    channel_link *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    transport_events ev = {.user = l,
                           .open = on_open,
                           .data = on_data,
                           .eof = on_eof,
                           .drained = on_drained,
                           .closed = on_closed};
    l->ch = ch;
    l->loop = ch->loop;
    if (transport_connect(&l->io, ch->loop, &ch->to, &l->scratch, &ev, NULL) != 0) {
        free(l);
        return NULL;
    }
    uv_prepare_init(ch->loop, &l->settle);
    uv_timer_init(ch->loop, &l->deadline);
    l->settle.data = l->deadline.data = l;
    l->n_handles = 2;
    return l;
}

int grpc_channel_connect(grpc_channel *ch)
{
    if (!ch->link) ch->link = link_new(ch);
    return ch->link ? 0 : SHOAL_ENOMEM;
}

int grpc_channel_new(grpc_channel **ret, uv_loop_t *loop, const char *address_text,
                     const grpc_channel_events *ev, shoal_err *err)
{
    address to;
    int rc = address_parse(&to, address_text, err);
    if (rc != 0) return rc;
    grpc_channel *ch = calloc(1, sizeof *ch);
    if (!ch) return err_nomem(err);
    transport_ignore_sigpipe();
    ch->loop = loop;
    ch->to = to;
    if (ev) ch->ev = *ev;
    ch->authority = strdup(to.is_unix ? "localhost" : address_text);
    if (ch->authority) grpc_channel_connect(ch);
    if (!ch->link) {
        free(ch->authority);
        free(ch);
        return err_set(err, SHOAL_EUNAVAILABLE, "%s: cannot connect", address_text);
    }
    *ret = ch;
    return 0;
}

bool grpc_channel_is_connected(const grpc_channel *ch)
{
    return ch->connected;
}

void grpc_channel_close(grpc_channel *ch)
{
    if (!ch) return;
    channel_link *l = ch->link;
    if (l) {
        l->ch = NULL;
        while (l->calls) call_end(l->calls, GRPC_CANCELLED, "the channel was closed");
        transport_close(l->io, "the channel was closed");
    }
    if (ch->closed) *ch->closed = true;
    free(ch->authority);
    free(ch);
}

/* ---- starting and cancelling a call ---------------------------------------------------------- */

static ssize_t read_request(nghttp2_session *h2, int32_t id, uint8_t *to, size_t max, uint32_t *flags,
                            nghttp2_data_source *source, void *user)
{
    grpc_client_call *c = nghttp2_session_get_stream_user_data(h2, id);
    if (!c) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* cancelled: the stream is being reset */
    size_t total = GRPC_FRAME_HEAD + c->n_msg, n = 0;
    while (n < max && c->at < total) {
        bool in_head = c->at < GRPC_FRAME_HEAD;
        const uint8_t *from = in_head ? c->head + c->at : c->msg + c->at - GRPC_FRAME_HEAD;
        size_t left = in_head ? GRPC_FRAME_HEAD - c->at : total - c->at;
        size_t take = left < max - n ? left : max - n;
        memcpy(to + n, from, take);
        n += take;
        c->at += take;
    }
    if (c->at == total) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv nv_of(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static int32_t submit(grpc_client_call *c, const char *path, const http_header *metadata, size_t n_metadata)
{
    channel_link *l = c->link;
    char timeout[16];
    nghttp2_nv *nv = calloc(n_metadata + 8, sizeof *nv);
    size_t n = 0;
    if (!nv) return -1;
    nv[n++] = nv_of(":method", "POST");
    nv[n++] = nv_of(":scheme", "http");
    nv[n++] = nv_of(":path", path);
    nv[n++] = nv_of(":authority", l->ch->authority);
    nv[n++] = nv_of("te", "trailers");
    nv[n++] = nv_of("content-type", "application/grpc");
    nv[n++] = nv_of("user-agent", "shoal/" SHOAL_VERSION);
    if (c->deadline_ns) {
        uint64_t now = clock_ns();
        grpc_timeout_format(c->deadline_ns > now ? c->deadline_ns - now : 1, timeout);
        nv[n++] = nv_of("grpc-timeout", timeout);
    }
    for (size_t i = 0; i < n_metadata; i++)
        if (metadata[i].value) nv[n++] = nv_of(metadata[i].name, metadata[i].value);
    nghttp2_data_provider body = {.source = {.ptr = c}, .read_callback = read_request};
    int32_t id = nghttp2_submit_request(l->h2, NULL, nv, n, &body, c);
    free(nv);
    return id;
}

grpc_client_call *grpc_call_start(grpc_channel *ch, const char *path, const void *msg, size_t n,
                                  const http_header *metadata, size_t n_metadata, uint64_t deadline_ns,
                                  const grpc_client_events *ev)
{
    channel_link *l = ch->link;
    if (!ch->connected || transport_is_closing(l->io) || n > MAX_REQUEST_BYTES ||
        !nghttp2_session_check_request_allowed(l->h2))
        return NULL;
    grpc_client_call *c = calloc(1, sizeof *c);
    uint8_t *copy = malloc(n ? n : 1);
    if (!c || !copy) goto fail;
    if (n) memcpy(copy, msg, n);
    *c = (grpc_client_call){.link = l, .deadline_ns = deadline_ns, .ev = *ev, .n_msg = n, .grpc_status = -1};
    c->in.max_message = MAX_MESSAGE_BYTES;
    grpc_frame_head(c->head, n);
    c->stream_id = submit(c, path, metadata, n_metadata);
    if (c->stream_id < 0) goto fail;
    c->msg = copy;
    c->next = l->calls;
    if (c->next) c->next->prev = c;
    l->calls = c;
    if (deadline_ns) arm_deadline(l);
    mark_dirty(l);
    return c;
fail:
    free(copy);
    free(c);
    return NULL;
}

void grpc_client_pause(grpc_client_call *c, bool paused)
{
    if (!c || c->over || c->paused == paused) return;
    c->paused = paused;
    c->due = true;
    if (!paused) mark_dirty(c->link);
}

void grpc_client_cancel(grpc_client_call *c)
{
    if (!c || c->over) return;
    channel_link *l = c->link;
    bool busy = c->busy;
    nghttp2_submit_rst_stream(l->h2, NGHTTP2_FLAG_NONE, c->stream_id, NGHTTP2_CANCEL);
    call_detach(c);
    mark_dirty(l);
    if (!busy) call_free(c);
}
