/* http2.c: one connection speaking HTTP/2, a nghttp2 session between the transport and the handler.
 *
 * nghttp2 keeps the protocol (frames, HPACK, flow control, well-formed messages). Ours is what it costs:
 * how many streams, how large, how often a client may change its mind, and how long it may take. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/loop_work.h"
#include "http/http_internal.h"

enum {
    STREAM_WINDOW_BYTES = 256 << 10,
    CONN_WINDOW_BYTES = 1 << 20,
    SEND_AHEAD_BYTES = 256 << 10, /* frames are made only while so little waits in the transport */
    BODIES_PER_CONN = 4,          /* one connection holds at most so many largest bodies */
    KEPT_BYTES = 8 << 20, /* of streams whose handlers rest; above it the connection's window stays shut */
    CALM_WINDOW_MS = 10000,
    MAX_CONTROL = 4000, /* PING, SETTINGS, PRIORITY and empty DATA within it (CVE-2019-9512, -9515, -9518) */
    MAX_OUTBOUND_ACKS = 200,
    N_PSEUDO = 4,     /* :method, :scheme, :path, :authority */
    MAX_OVERSIZE = 8, /* header lists over the limit within it: a byte may stand for 4 KiB of one (HPACK) */
    OVERSIZE_IS_ANSWERED = 2 /* up to so many times the limit a list is read on, so that 431 can be said */
};

/* ---- refusing -------------------------------------------------------------------------------- */

/* Answer a stream with an error of the server's own; the rest of its body is not wanted. */
static void http2_refuse(http_request *r, int status, const char *why)
{
    const char *type = NULL;
    http_conn *c = r->conn;
    if (r->begun) return;
    if (r->intake == HTTP_WHOLE)
        c->body_bytes -= r->body.len;
    else
        c->kept -= r->body.len;
    buf_done(&r->body);
    if (c->server->refuse && c->server->refuse(r, status, why)) return;
    r->begun = r->ended = true;
    http_conn_error_body(c->server, r, status, why, &r->out, &type);
    c->out_bytes += r->out.len;
    http_header h[1 + HTTP_ERROR_HEADERS] = {{"content-type", type}};
    size_t n = 1 + http_conn_error_headers(c->server, r, h + 1);
    http2_send_answer(r, status, h, n, r->out.len > 0 && !r->is_head);
}

/* Too much of a thing that costs the client nothing: GOAWAY(ENHANCE_YOUR_CALM). */
static void calm_down(http_conn *c)
{
    c->goaway = true;
    nghttp2_session_terminate_session(c->h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void count_abuse(http_conn *c, size_t *counter, size_t max)
{
    uint64_t now = uv_now(c->server->loop);
    if (now - c->calm_since_ms > CALM_WINDOW_MS) {
        c->calm_since_ms = now;
        c->n_resets = c->n_control = c->n_oversize = 0;
    }
    if (++*counter == max + 1) calm_down(c);
}

/* ---- requests come in ------------------------------------------------------------------------ */

static http_request *stream_request(nghttp2_session *h2, int32_t id)
{
    return nghttp2_session_get_stream_user_data(h2, id);
}

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
    http_conn *c = user;
    if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    http_request *r = http_request_new(c);
    if (!r) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    r->version = 20;
    r->stream_id = f->hd.stream_id;
    nghttp2_session_set_stream_user_data(h2, f->hd.stream_id, r);
    return 0;
}

static int add_pseudo(http_request *r, const char *name, const char *value, size_t n)
{
    if (strcmp(name, ":path") == 0) return http_request_set_target(r, value, n);
    if (strcmp(name, ":authority") == 0) return http_request_add_header(r, "host", 4, value, n);
    if (strcmp(name, ":protocol") == 0) {
        r->protocol = http_request_lower(r, value, n);
        return r->protocol ? 0 : 500;
    }
    if (strcmp(name, ":method") != 0) return 0;
    r->method = arena_strndup(r->mem, value, n);
    if (!r->method) r->method = "";
    r->is_head = strcmp(r->method, "HEAD") == 0;
    return *r->method ? 0 : 500;
}

/* :authority stands for Host; a Host header beside it would be a second opinion. */
static int add_host(http_request *r, const char *value, size_t n)
{
    const char *known = http_header_get(r, "host");
    if (!known) return http_request_add_header(r, "host", 4, value, n);
    r->reject_why = "Host and :authority differ";
    return strcmp(known, value) == 0 ? 0 : 400;
}

static int add_field(http_request *r, const char *name, size_t n_name, const char *value, size_t n_value)
{
    r->reject_why = "the request header is too large";
    if (n_name == 4 && memcmp(name, "host", 4) == 0) return add_host(r, value, n_value);
    if (n_name && name[0] == ':') return add_pseudo(r, name, value, n_value);
    return http_request_add_header(r, name, n_name, value, n_value);
}

/* Called for every field of a list, also of trailers, which are only counted. */
static int on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    http_conn *c = user;
    http_request *r = stream_request(h2, f->hd.stream_id);
    const http_limits *l = &c->server->limits;
    size_t limit = l->max_header_bytes + 32 * l->max_headers;
    if (!r) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    r->list_bytes += n_name + n_value + 32; /* as RFC 9113 counts a header list */
    loop_work_add(n_name + n_value + 32);   /* HPACK: one byte may stand for all of it */
    if (r->list_bytes > OVERSIZE_IS_ANSWERED * limit) {
        count_abuse(c, &c->n_oversize, MAX_OVERSIZE);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream, looks at its list no further */
    }
    if (r->reject || f->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    r->reject = add_field(r, (const char *)name, n_name, (const char *)value, n_value);
    if (!r->reject && r->list_bytes > l->max_header_bytes + 32 * (r->n_headers + N_PSEUDO)) {
        r->reject = 431;
        r->reject_why = "the request header is too large";
    }
    return 0;
}

static void send_continue(http_conn *c, const http_request *r)
{
    nghttp2_nv nv = {(uint8_t *)":status", (uint8_t *)"100", 7, 3, NGHTTP2_NV_FLAG_NONE};
    nghttp2_submit_headers(c->h2, NGHTTP2_FLAG_NONE, r->stream_id, NULL, &nv, 1, NULL);
}

/* The head is whole: refuse it, let the body come, or pass it on. */
static void head_complete(http_conn *c, http_request *r, bool is_end)
{
    const char *length = http_header_get(r, "content-length"), *expect = http_header_get(r, "expect");
    uint64_t n;
    if (!r->reject) http_request_limit_body(r);
    if (r->reject == 431) count_abuse(c, &c->n_oversize, MAX_OVERSIZE);
    if (r->reject) {
        http2_refuse(r, r->reject, r->reject_why);
    } else if (!*r->path || (r->protocol && r->intake != HTTP_TUNNEL)) {
        http2_refuse(r, 501, "CONNECT is not served here");
    } else if (length && http1_parse_length(length, &n) && n > r->max_body) {
        http2_refuse(r, 413, HTTP_BODY_TOO_LARGE);
    } else {
        r->headed = r->intake != HTTP_WHOLE;
        if (r->headed) r->received_ns = clock_ns();
        if (is_end)
            request_complete(r);
        else if (expect && strcasecmp(expect, "100-continue") == 0)
            send_continue(c, r);
    }
}

void http2_give_stream(http_conn *c, int32_t id, size_t n)
{
    if (nghttp2_is_fatal(nghttp2_session_consume_stream(c->h2, id, n)))
        transport_close(c->io, "out of memory");
}

static void give_conn(http_conn *c, size_t n)
{
    if (nghttp2_is_fatal(nghttp2_session_consume_connection(c->h2, n)))
        transport_close(c->io, "out of memory");
}

/* The connection's window follows, once little enough is kept. */
static void give_owed(http_conn *c)
{
    if (!c->owed || c->kept > KEPT_BYTES) return;
    give_conn(c, c->owed);
    c->owed = 0;
}

/* For a handler that rests: it waits here, and in its sender from a window on. */
static void keep_piece(http_conn *c, http_request *r, const uint8_t *data, size_t n)
{
    if (buf_append(&r->body, data, n) != 0) {
        give_conn(c, n);
        http_request_end_body(r, 500, "out of memory");
        return;
    }
    c->kept += n;
    c->owed += n;
    give_owed(c);
}

static void take_piece(http_conn *c, http_request *r, const uint8_t *data, size_t n)
{
    const http_handler *h = &c->server->handler;
    bool too_large = r->intake == HTTP_PIECES && n > r->max_body - r->n_received;
    r->n_received += n;
    r->begun_ms = uv_now(c->server->loop);
    if (!too_large && !http_request_flows(r)) {
        keep_piece(c, r, data, n);
        return;
    }
    give_conn(c, n);
    http2_give_stream(c, r->stream_id, n);
    if (too_large)
        http_request_end_body(r, 413, HTTP_BODY_TOO_LARGE);
    else
        h->on_body(h->user, r, data, n);
}

static void take_whole(http_conn *c, http_request *r, const uint8_t *data, size_t n)
{
    const http_limits *l = &c->server->limits;
    int32_t id = r->stream_id;
    size_t per_conn = BODIES_PER_CONN * l->max_body_bytes;
    if (per_conn < r->max_body) per_conn = r->max_body;
    if (n > r->max_body - r->body.len) {
        http2_refuse(r, 413, HTTP_BODY_TOO_LARGE);
    } else if (c->body_bytes + n > per_conn) {
        http2_reset(c, id, NGHTTP2_REFUSED_STREAM);
    } else if (buf_append(&r->body, data, n) != 0) {
        http2_refuse(r, 500, "out of memory");
    } else {
        c->body_bytes += n;
        int status = http_request_hold(r);
        if (status) http2_refuse(r, status, http_hold_why(status));
    }
}

static int on_data_chunk(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *data, size_t n,
                         void *user)
{
    http_conn *c = user;
    http_request *r = stream_request(h2, id);
    if (r && r->intake != HTTP_WHOLE && !r->complete && !r->ended && !r->gone) {
        take_piece(c, r, data, n);
        return 0;
    }
    give_conn(c, n);
    http2_give_stream(c, id, n);
    if (r && r->intake == HTTP_WHOLE && !r->begun && !r->complete) take_whole(c, r, data, n);
    return 0;
}

static void all_in(http_request *r)
{
    if (r->intake != HTTP_WHOLE)
        http_request_end_body(r, 0, NULL);
    else if (!r->begun && !r->complete)
        request_complete(r);
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
    http_conn *c = user;
    bool is_end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;
    http_request *r = f->hd.stream_id ? stream_request(h2, f->hd.stream_id) : NULL;
    switch (f->hd.type) {
    case NGHTTP2_RST_STREAM: count_abuse(c, &c->n_resets, c->server->limits.max_resets); break;
    case NGHTTP2_PING:
    case NGHTTP2_SETTINGS:
    case NGHTTP2_PRIORITY: count_abuse(c, &c->n_control, MAX_CONTROL); break;
    case NGHTTP2_DATA:
        if (f->hd.length == 0 && !is_end) count_abuse(c, &c->n_control, MAX_CONTROL);
        break;
    case NGHTTP2_HEADERS:
        if (r && f->headers.cat == NGHTTP2_HCAT_REQUEST && !r->begun) {
            head_complete(c, r, is_end);
            return 0;
        }
        break;
    default: break;
    }
    if (r && is_end && (f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS)) all_in(r);
    return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t error_code, void *user)
{
    http_conn *c = user;
    http_request *r = stream_request(h2, id);
    if (!r) return 0;
    nghttp2_session_set_stream_user_data(h2, id, NULL);
    r->gone = true;
    conn_mark_dirty(c);
    return 0;
}

/* An answer is out before all of the request was in: the rest is not wanted (RFC 9113 8.1). */
static int on_frame_sent(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
    bool is_end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (is_end && (f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) &&
        nghttp2_session_get_stream_remote_close(h2, f->hd.stream_id) == 0)
        http2_reset(user, f->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

/* ---- the session ----------------------------------------------------------------------------- */

/* Frames for as long as little waits in the transport; false when there are none left. */
static bool http2_fill(http_conn *c)
{
    const uint8_t *frames;
    while (!transport_is_closing(c->io) && transport_backlog(c->io) < SEND_AHEAD_BYTES) {
        ssize_t n = nghttp2_session_mem_send(c->h2, &frames);
        if (n < 0) transport_close(c->io, "HTTP/2 failed while sending");
        if (n <= 0) return false;
        transport_write(c->io, frames, (size_t)n);
    }
    return !transport_is_closing(c->io);
}

/* What the kernel takes at once makes room, and no `drained` follows it. */
static void pump(http_conn *c)
{
    while (http2_fill(c)) {
        transport_flush(c->io);
        if (transport_is_closing(c->io) || transport_backlog(c->io) >= SEND_AHEAD_BYTES) return;
    }
}

/* The oldest request that has all it needs to be given to the handler, which does not have it yet. */
static http_request *next_ready(const http_conn *c)
{
    http_request *found = NULL;
    for (http_request *r = c->requests; r; r = r->next)
        if ((r->complete || r->headed) && !r->dispatched && !r->begun && !r->gone) found = r;
    return found;
}

static void dispatch_ready(http_conn *c)
{
    for (http_request *r; !transport_is_closing(c->io) && (r = next_ready(c)) && conn_may_go_on(c);) {
        http_request_dispatch(r);
        if (r->headed && (r->body.len || r->complete)) http_request_go_on(r);
    }
}

static void http2_settle(http_conn *c)
{
    dispatch_ready(c);
    if (transport_is_closing(c->io)) return;
    give_owed(c);
    if (transport_is_closing(c->io)) return;
    pump(c);
    if (transport_is_closing(c->io)) return;
    bool over = !nghttp2_session_want_read(c->h2) && !nghttp2_session_want_write(c->h2);
    if (over || c->evicted || (c->goaway && !c->requests && !nghttp2_session_want_write(c->h2)))
        transport_end(c->io);
}

static void http2_data(http_conn *c, const uint8_t *bytes, size_t n)
{
    c->heard_ms = uv_now(c->server->loop);
    c->pinged_ms = 0;
    c->overdue = false;
    ssize_t rc = nghttp2_session_mem_recv(c->h2, bytes, n);
    if (rc < 0) { /* out of memory, or a flood that nghttp2 counts itself: queued acks, CONTINUATION frames */
        nghttp2_session_terminate_session(c->h2, NGHTTP2_ENHANCE_YOUR_CALM);
        pump(c);
        transport_end(c->io);
        return;
    }
    dispatch_ready(c);
}

static void http2_leave(http_conn *c)
{
    if (c->goaway || transport_is_closing(c->io)) return;
    c->goaway = true;
    nghttp2_submit_goaway(c->h2, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(c->h2),
                          NGHTTP2_NO_ERROR, NULL, 0);
    conn_mark_dirty(c);
}

static void late(http_request *r)
{
    if (r->dispatched && r->intake != HTTP_WHOLE)
        http_request_end_body(r, 408, BODY_IS_SLOW);
    else if (!r->begun)
        http2_refuse(r, 408, REQUEST_IS_LATE);
}

/* As grpc_channel.c's on_keepalive has it: a PING into the silence, and one more look when no answer is there. */
static void keep_alive(http_conn *c, uint64_t now_ms)
{
    const http_limits *l = &c->server->limits;
    if (!l->keepalive_ms) return;
    if (c->overdue) {
        transport_close(c->io, "the client answers no ping");
    } else if (c->pinged_ms) {
        c->overdue = now_ms - c->pinged_ms > l->keepalive_timeout_ms;
    } else if (now_ms - c->heard_ms >= l->keepalive_ms) {
        c->pinged_ms = now_ms;
        nghttp2_submit_ping(c->h2, NGHTTP2_FLAG_NONE, NULL);
        conn_mark_dirty(c);
    }
}

/* A tunnel is refused or accepted at once; from then on it may rest for hours, as an open stream. */
static bool is_timed(const http_request *r)
{
    return !r->complete && !r->paused && r->intake != HTTP_OPEN && r->intake != HTTP_TUNNEL;
}

static bool body_is_too_slow(http_request *r, uint64_t now_ms)
{
    if (http_request_flows(r)) return conn_body_is_too_slow(r, UINT64_MAX, now_ms);
    conn_body_rests(r, now_ms);
    return false;
}

static void http2_tick(http_conn *c, uint64_t now_ms)
{
    uint64_t limit = c->server->limits.request_timeout_ms, span = c->server->limits.write_timeout_ms;
    keep_alive(c, now_ms);
    if (conn_is_idle(c, now_ms)) http2_leave(c);
    for (http_request *r = c->requests; r; r = r->next) {
        if (r->intake == HTTP_PIECES && r->dispatched ? !r->complete && body_is_too_slow(r, now_ms)
                                                      : is_timed(r) && now_ms - r->begun_ms > limit)
            late(r);
        /* One window stays shut while the connection's other streams flow: that stream alone is given up. */
        if (conn_pace_is_too_slow(&r->pace, r->out.len - r->out_at, r->taken, 1, now_ms, span)) {
            nghttp2_submit_rst_stream(c->h2, NGHTTP2_FLAG_NONE, r->stream_id, NGHTTP2_CANCEL);
            conn_mark_dirty(c);
        }
    }
}

static void http2_eof(http_conn *c)
{
    transport_end(c->io);
}

static void http2_done(http_conn *c)
{
    nghttp2_session_del(c->h2);
    c->h2 = NULL;
}

static nghttp2_session_callbacks *callbacks_new(void)
{
    nghttp2_session_callbacks *cb;
    if (nghttp2_session_callbacks_new(&cb) != 0) return NULL;
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    return cb;
}

static const conn_ops http2_ops = {.data = http2_data,
                                   .eof = http2_eof,
                                   .settle = http2_settle,
                                   .tick = http2_tick,
                                   .leave = http2_leave,
                                   .done = http2_done,
                                   .respond = http2_respond,
                                   .begin = http2_begin,
                                   .write = http2_write,
                                   .end = http2_end,
                                   .accept = http2_accept};

int http2_start(http_conn *c)
{
    const http_limits *l = &c->server->limits;
    nghttp2_session_callbacks *cb = callbacks_new();
    nghttp2_option *opt = NULL;
    int rc = SHOAL_ENOMEM;
    if (!cb || nghttp2_option_new(&opt) != 0) goto done;
    nghttp2_option_set_max_outbound_ack(opt, MAX_OUTBOUND_ACKS);
    nghttp2_option_set_no_closed_streams(opt, 1);
    nghttp2_option_set_no_auto_window_update(opt, 1);
    if (nghttp2_session_server_new2(&c->h2, cb, c, opt) != 0) goto done;
    c->ops = &http2_ops;
    c->begun_ms = 0;
    c->heard_ms = uv_now(c->server->loop);
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)l->max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)l->max_header_bytes},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
    };
    if (nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings) !=
            0 ||
        nghttp2_session_set_local_window_size(c->h2, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW_BYTES) != 0)
        goto done;
    conn_mark_dirty(c);
    rc = 0;
done:
    nghttp2_option_del(opt);
    nghttp2_session_callbacks_del(cb);
    return rc;
}
