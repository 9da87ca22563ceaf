/* http1.c: one connection speaking HTTP/1.1: a head, a body, an answer, and again.
 *
 * Requests of a pipeline wait in c->in until the one before them is answered. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "http/http_internal.h"

/* Of a pipeline, so much is read ahead while an answer is being made or waits for its reader. */
enum { READ_AHEAD_BYTES = 4096 };

enum { HEAD_USUAL = 500 }; /* bytes of an answer in front of its body */

/* Eight zeros, each after twice the time of the one before, see who leaves within 13 s of what was written last. */
enum { PROBE_FIRST_MS = 50, PROBE_MAX_MS = 1000, PROBE_ZEROS_MAX = 8 };

/* The request that is being received or answered: HTTP/1.1 has at most one. */
static http_request *current(const http_conn *c)
{
    return c->requests;
}

static bool wants_close(const http_conn *c)
{
    bool no_more =
        c->eof && c->in_at == c->in.len; /* a pipeline sent before a half-close is still answered */
    return !c->keep_alive || c->server->draining || no_more;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void put_head(buf *out, http_conn *c, int status, const http_header *headers, size_t n)
{
    buf_puts(out, "HTTP/1.1 ");
    number_put_u64(out, (uint64_t)status);
    buf_putc(out, ' ');
    buf_puts(out, http_status_text(status));
    buf_append(out, "\r\n", 2);
    for (size_t i = 0; i < n; i++)
        if (http_header_is_sendable(&headers[i])) {
            buf_puts(out, headers[i].name);
            buf_append(out, ": ", 2);
            buf_puts(out, headers[i].value);
            buf_append(out, "\r\n", 2);
        }
    buf_puts(out, "Date: ");
    buf_puts(out, http_conn_date(c->server));
    buf_append(out, "\r\n", 2);
}

static bool has_no_body(int status)
{
    return status == 204 || status == 304 || status < 200;
}

/* How long the connection stays without a request: a client that goes by it never sends into one that is just
 * being closed (RFC 2068 19.7.1.1; in whole seconds, rounded down). */
static void put_keep_alive(buf *out, const http_conn *c)
{
    uint64_t timeout_s = c->server->limits.idle_timeout_ms / 1000;
    buf_puts(out, "Connection: keep-alive\r\n");
    if (timeout_s > 0) buf_printf(out, "Keep-Alive: timeout=%llu\r\n", (unsigned long long)timeout_s);
}

static void http1_answer(http_request *r, int status, const http_header *headers, size_t n, const void *body,
                         size_t len, bool whole)
{
    http_conn *c = r->conn;
    buf out = {0};
    if (!r->complete) c->keep_alive = false; /* the rest of the body is not read */
    r->streaming = !whole && !r->is_head && !has_no_body(status);
    if (r->streaming && r->version == 10) c->keep_alive = false;
    buf_reserve(&out, HEAD_USUAL + (whole ? len : 0));
    put_head(&out, c, status, headers, n);
    if (whole && !has_no_body(status)) {
        buf_puts(&out, "Content-Length: ");
        number_put_u64(&out, len);
        buf_append(&out, "\r\n", 2);
    }
    if (r->streaming && r->version == 11) buf_puts(&out, "Transfer-Encoding: chunked\r\n");
    if (wants_close(c))
        buf_puts(&out, "Connection: close\r\n");
    else
        put_keep_alive(&out, c);
    buf_append(&out, "\r\n", 2);
    if (whole && len && !r->is_head && !has_no_body(status)) buf_append(&out, body, len);
    if (wants_close(c)) c->keep_alive = false; /* said is said */
    if (out.failed)
        transport_close(c->io, "out of memory");
    else
        transport_write(c->io, out.data, out.len);
    buf_done(&out);
    conn_mark_dirty(c);
}

static void put_chunk_size(buf *out, size_t n)
{
    int digits = 1;
    while (digits < 16 && n >> 4 * digits) digits++;
    while (digits-- > 0) buf_putc(out, "0123456789abcdef"[n >> 4 * digits & 15]);
    buf_append(out, "\r\n", 2);
}

static void http1_write(http_request *r, const void *data, size_t len)
{
    http_conn *c = r->conn;
    if (!r->streaming) return;
    c->probe_gap_ms = 0;
    if (r->version == 10) {
        transport_write(c->io, data, len);
    } else {
        buf chunk = {0};
        buf_reserve(&chunk, len + 2 * sizeof len + 4);
        put_chunk_size(&chunk, len);
        buf_append(&chunk, data, len);
        buf_append(&chunk, "\r\n", 2);
        if (chunk.failed)
            transport_close(c->io, "out of memory");
        else
            transport_write(c->io, chunk.data, chunk.len);
        buf_done(&chunk);
    }
    conn_mark_dirty(c);
}

static void http1_end(http_request *r, const http_header *trailers, size_t n)
{
    http_conn *c = r->conn;
    if (r->streaming && r->version == 11) transport_write(c->io, "0\r\n\r\n", 5);
    if (!r->complete) c->keep_alive = false;
    http_request_free(r);
    c->h1 = c->keep_alive ? H1_HEAD : H1_CLOSED;
    conn_mark_dirty(c);
}

static void http1_begin(http_request *r, int status, const http_header *headers, size_t n)
{
    http1_answer(r, status, headers, n, NULL, 0, false);
}

static void http1_respond(http_request *r, int status, const http_header *headers, size_t n, const void *body,
                          size_t len)
{
    http1_answer(r, status, headers, n, body, len, true);
    http1_end(r, NULL, 0);
}

/* What the client has sent ahead belongs to the tunnel. */
static void http1_accept(http_request *r, const http_header *headers, size_t n)
{
    http_conn *c = r->conn;
    buf out = {0};
    put_head(&out, c, 101, headers, n);
    buf_printf(&out, "Connection: Upgrade\r\nUpgrade: %s\r\n\r\n", r->protocol);
    if (out.failed)
        transport_close(c->io, "out of memory");
    else
        transport_write(c->io, out.data, out.len);
    buf_done(&out);
    http_tunnel_start(c);
}

/* Answer with an error and stop listening: after a malformed request nothing can be told apart any more. */
void http1_refuse(http_conn *c, int status, const char *why)
{
    buf body = {0}, out = {0};
    http_header more[HTTP_ERROR_HEADERS];
    const char *type = NULL;
    bool head_only = current(c) && current(c)->is_head;
    http_conn_error_body(c->server, current(c), status, why, &body, &type);
    size_t n = http_conn_error_headers(c->server, current(c), more);
    put_head(&out, c, status, more, n);
    buf_printf(&out, "Content-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", type, body.len);
    if (!head_only) buf_append(&out, body.data, body.len);
    if (!out.failed) transport_write(c->io, out.data, out.len);
    if (current(c)) http_request_free(current(c));
    c->h1 = H1_CLOSED;
    c->begun_ms = 0;
    conn_mark_dirty(c);
    buf_done(&body);
    buf_done(&out);
}

/* ---- the head -------------------------------------------------------------------------------- */

/* Exactly one value of `name`, or NULL; *ret_n says how many there are. */
static const char *only(const http_request *r, const char *name, size_t *ret_n)
{
    const char *v = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcmp(r->headers[i].name, name) == 0) {
            v = r->headers[i].value;
            ++*ret_n;
        }
    return v;
}

static int check_host(const http_request *r, const char **why)
{
    size_t n;
    const char *host = only(r, "host", &n);
    *why = "exactly one well-formed Host header is needed";
    if (n > 1 || (n == 0 && r->version == 11)) return 400;
    return n == 1 && !http1_is_host(host) ? 400 : 0;
}

static int check_framing(http_conn *c, const http_request *r, const char **why)
{
    size_t n_length, n_coding;
    const char *length = only(r, "content-length", &n_length);
    const char *coding = only(r, "transfer-encoding", &n_coding);
    c->chunked = n_coding > 0;
    c->body_left = 0;
    *why = "Content-Length and Transfer-Encoding do not go together";
    if (n_length && n_coding) return 400;
    *why = "more than one Content-Length, or not a number";
    if (n_length > 1 || (n_length && !http1_parse_length(length, &c->body_left))) return 400;
    *why = "the only transfer coding understood is chunked, once, in HTTP/1.1";
    if (n_coding > 1 || (n_coding && (r->version == 10 || strcasecmp(coding, "chunked") != 0))) return 400;
    return 0;
}

/* http://host/path: the host must be the Host header's, or two parties could disagree on it. */
static int set_absolute_target(http_request *r, const char *url, size_t n, const char **why)
{
    const char *host = (const char *)memchr(url, ':', n) + 3, *end = url + n, *path = host;
    const char *named = http_header_get(r, "host");
    while (path < end && *path != '/' && *path != '?') path++;
    size_t n_host = (size_t)(path - host);
    *why = "the host of the request target is not the one of the Host header";
    if (n_host == 0 || !named || strlen(named) != n_host || strncasecmp(named, host, n_host) != 0) return 400;
    if (path < end && *path == '/') return http_request_set_target(r, path, (size_t)(end - path));
    char *slashed = arena_printf(r->mem, "/%.*s", (int)(end - path), path);
    return slashed ? http_request_set_target(r, slashed, (size_t)(end - path) + 1) : 500;
}

static int set_target(http_request *r, const char *url, size_t n, const char **why)
{
    if (*url != '/' && *url != '*') return set_absolute_target(r, url, n, why);
    *why = "out of memory";
    return http_request_set_target(r, url, n);
}

static int check_expect(http_conn *c, const http_request *r, const char **why)
{
    const char *expect = http_header_get(r, "expect");
    if (!expect || r->version == 10) return 0;
    *why = "the only expectation understood is 100-continue";
    if (strcasecmp(expect, "100-continue") != 0) return 417;
    bool body_follows = c->chunked || c->body_left > c->in.len - c->in_at;
    if (body_follows) {
        transport_write(c->io, "HTTP/1.1 100 Continue\r\n\r\n", 25);
        conn_mark_dirty(c);
    }
    return 0;
}

static bool lists(const http_request *r, const char *name, const char *token)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcmp(r->headers[i].name, name) == 0 && http1_lists(r->headers[i].value, token)) return true;
    return false;
}

/* RFC 9112 9.3. */
static bool is_kept_alive(const http_request *r)
{
    return !lists(r, "connection", "close") && (r->version == 11 || lists(r, "connection", "keep-alive"));
}

/* RFC 9110 7.8. Who offers several protocols, or a version, is answered in HTTP. */
static const char *wanted_protocol(http_request *r)
{
    const char *name = http_header_get(r, "upgrade");
    bool is_asked =
        name && r->version == 11 && strcmp(r->method, "GET") == 0 && http1_is_token(name, strlen(name));
    return is_asked && lists(r, "connection", "upgrade") ? http_request_lower(r, name, strlen(name)) : NULL;
}

static int add_fields(http_request *r, const char *data, size_t n, const char **why)
{
    size_t len, used;
    for (size_t at = 0; at < n && http1_next_line(data + at, n - at, &len, &used) == HTTP1_LINE && len;
         at += used) {
        http1_field f;
        int status = http1_parse_field(data + at, len, &f, why);
        if (status) return status;
        status = http_request_add_header(r, f.name, f.n_name, f.value, f.n_value);
        *why = status == 500 ? "out of memory" : "the request header is too large";
        if (status) return status;
    }
    return 0;
}

/* data[0..n): a head whose every line has been checked as it came. */
static int understand_head(http_conn *c, http_request *r, const char *data, size_t n, const char **why)
{
    http1_request_line line;
    size_t len, used;
    int status;
    http1_next_line(data, n, &len, &used);
    if ((status = http1_parse_request_line(data, len, &line, why))) return status;
    r->method = arena_strndup(r->mem, line.method, line.n_method);
    if (!r->method) r->method = "";
    *why = "out of memory";
    if (!*r->method) return 500;
    r->version = line.version;
    r->is_head = strcmp(r->method, "HEAD") == 0;
    if ((status = add_fields(r, data + used, n - used, why)) || (status = check_host(r, why)) ||
        (status = check_framing(c, r, why)) || (status = set_target(r, line.target, line.n_target, why)))
        return status;
    r->protocol = wanted_protocol(r);
    http_request_limit_body(r);
    *why = "a request to speak another protocol has no body";
    if (r->intake == HTTP_TUNNEL && (c->chunked || c->body_left)) return 400;
    *why = HTTP_BODY_TOO_LARGE;
    if (c->body_left > r->max_body) return 413;
    c->keep_alive = is_kept_alive(r);
    return check_expect(c, r, why);
}

static void take_head(http_conn *c, size_t n)
{
    const char *data = c->in.data + c->in_at, *why = NULL;
    http_request *r = http_request_new(c);
    if (!r) {
        transport_close(c->io, "out of memory");
        c->h1 = H1_CLOSED;
        return;
    }
    r->begun_ms = c->begun_ms;
    c->in_at += n;
    c->line_at = c->n_lines = 0;
    int status = understand_head(c, r, data, n, &why);
    c->chunks = (http1_chunks){0};
    c->h1 = r->intake == HTTP_TUNNEL ? H1_BUSY : H1_BODY;
    if (r->intake == HTTP_TUNNEL) c->begun_ms = 0;
    if (status)
        http1_refuse(c, status, why);
    else if (r->intake != HTTP_WHOLE)
        http_request_dispatch(r);
}

/* The header lines before the one that is refused, so that the refusal knows who asked. */
static void take_part(http_conn *c, const char *data)
{
    http_request *r = c->n_lines > 0 ? http_request_new(c) : NULL;
    const char *why;
    size_t len, used;
    if (!r || http1_next_line(data, c->line_at, &len, &used) != HTTP1_LINE) return;
    add_fields(r, data + used, c->line_at - used, &why);
}

/* Check the lines that have come; true when the head was taken or refused, false when more is needed. */
static bool http1_read_head(http_conn *c)
{
    const char *why = "a line of the request head is malformed";
    const char *data = c->in.data + c->in_at;
    size_t n = c->in.len - c->in_at;
    while (c->line_at < n) {
        size_t len = 0, used = 0;
        http1_line l = http1_next_line(data + c->line_at, n - c->line_at, &len, &used);
        size_t seen = l == HTTP1_LINE ? c->line_at + used : n;
        int status = l == HTTP1_LINE_BAD ? 400 : 0;
        if (!status && seen > c->server->limits.max_header_bytes) {
            status = 431;
            why = "the request header is too large";
        } else if (l == HTTP1_LINE_PARTIAL) {
            if (c->line_at || http1_is_token(data, 1) || data[0] == '\r') return false;
            status = 400;
        } else if (!status && c->n_lines == 0 &&
                   len == 0) { /* RFC 9112 2.2: a stray empty line before a request */
            c->in_at += used;
            return true;
        } else if (!status && len == 0) {
            take_head(c, c->line_at + used);
            return true;
        } else if (!status) {
            status = c->n_lines == 0 ? http1_parse_request_line(data, len, &(http1_request_line){0}, &why)
                                     : http1_parse_field(data + c->line_at, len, &(http1_field){0}, &why);
        }
        if (status) {
            take_part(c, data);
            http1_refuse(c, status, why);
            return true;
        }
        c->line_at += used;
        c->n_lines++;
    }
    return false;
}

/* ---- the body -------------------------------------------------------------------------------- */

/* No more of a body that comes in pieces. Unless it is whole nothing can be told apart behind it. */
static void end_pieces(http_conn *c, http_request *r, int status, const char *why)
{
    if (status) c->keep_alive = false;
    c->h1 = H1_BUSY;
    c->begun_ms = 0;
    http_request_end_body(r, status, status ? why : NULL);
}

/* What has come of a chunked body, without its chunks' heads, into r->body; or a status to fail with. */
static int take_chunks(http_conn *c, http_request *r, size_t *ret_used, const char **why)
{
    const char *data = c->in.data + c->in_at;
    size_t n = c->in.len - c->in_at, left = r->max_body - (size_t)r->n_received;
    int status = http1_chunks_feed(&c->chunks, data, n, left, c->server->limits.max_header_bytes, &r->body,
                                   ret_used, why);
    if (!r->body.failed) return status;
    *why = "out of memory";
    return 500;
}

/* Hand on what has come of a body that is wanted in pieces; the handler may make its final call, and the
 * request is gone then. */
static bool read_pieces(http_conn *c, http_request *r)
{
    const http_handler *h = &c->server->handler;
    const char *data = c->in.data + c->in_at, *why = NULL;
    size_t used = 0, n = c->in.len - c->in_at;
    int status = 0;
    if (!http_request_flows(r)) return false;
    if (c->chunked) {
        status = take_chunks(c, r, &used, &why);
    } else {
        used = c->body_left < n ? (size_t)c->body_left : n;
        c->body_left -= used;
    }
    bool done = c->chunked ? c->chunks.state == CHUNK_DONE : c->body_left == 0;
    buf piece = r->body;
    r->body = (buf){0};
    if (!c->chunked) piece = (buf){.data = (char *)data, .len = used};
    c->in_at += used;
    r->n_received += piece.len;
    if (used) c->begun_ms = uv_now(c->server->loop);
    if (piece.len && !status) h->on_body(h->user, r, (const uint8_t *)piece.data, piece.len);
    if (c->chunked) buf_done(&piece);
    if (c->h1 != H1_BODY || transport_is_closing(c->io)) return true; /* answered */
    if (status || done) end_pieces(c, r, status, why);
    return status || done;
}

static bool read_body(http_conn *c)
{
    http_request *r = current(c);
    if (r->intake != HTTP_WHOLE) return read_pieces(c, r);
    const http_limits *l = &c->server->limits;
    const char *data = c->in.data + c->in_at, *why = "the chunked body is malformed";
    size_t n = c->in.len - c->in_at, used = 0;
    int status = 0;
    bool done;
    if (c->chunked) {
        status =
            http1_chunks_feed(&c->chunks, data, n, r->max_body, l->max_header_bytes, &r->body, &used, &why);
        done = c->chunks.state == CHUNK_DONE;
    } else {
        used = c->body_left < n ? (size_t)c->body_left : n;
        if (used) buf_append(&r->body, data, used);
        c->body_left -= used;
        done = c->body_left == 0;
    }
    c->in_at += used;
    if (status || r->body.failed) {
        http1_refuse(c, status ? status : 500, status ? why : "out of memory");
        return true;
    }
    if ((status = http_request_hold(r))) {
        http1_refuse(c, status, http_hold_why(status));
        return true;
    }
    if (!done) return false;
    c->h1 = H1_BUSY;
    c->begun_ms = 0;
    request_complete(r);
    http_request_dispatch(r);
    return true;
}

/* A handler that takes no more of a body for now. */
static bool rests(const http_conn *c)
{
    return c->h1 == H1_BODY && current(c)->dispatched && !http_request_flows(current(c));
}

/* Work through c->in as far as it goes. Not re-entered: an answer given inside on_request only changes
 * the state this loop looks at. */
static void http1_run(http_conn *c)
{
    if (c->running) return;
    c->running = true;
    bool more = true;
    while (more && !transport_is_closing(c->io) && (c->h1 == H1_HEAD || c->h1 == H1_BODY)) {
        if (c->h1 == H1_HEAD && (c->in_at == c->in.len || !conn_may_go_on(c))) break;
        if (c->h1 == H1_HEAD && !c->begun_ms) c->begun_ms = uv_now(c->server->loop);
        more = c->h1 == H1_HEAD ? http1_read_head(c) : read_body(c);
    }
    c->running = false;
    if (c->in_at == c->in.len)
        buf_clear(&c->in);
    else
        buf_consume(&c->in, c->in_at);
    c->in_at = 0;
    if (c->h1 == H1_HEAD && c->in.len == 0) c->begun_ms = 0;
    if (c->h1 == H1_CLOSED)
        transport_end(c->io);
    else
        transport_pause(c->io, (c->h1 == H1_BUSY || c->parked || rests(c)) && c->in.len > READ_AHEAD_BYTES);
}

/* A client may send, shut its side, and read on: only what can still be answered is. */
static void end_of_input(http_conn *c)
{
    if (!c->eof || transport_is_closing(c->io) || c->h1 == H1_BUSY || c->parked || rests(c)) return;
    if (c->h1 == H1_BODY && current(c)->dispatched) {
        end_pieces(c, current(c), 400, "the request ended before it was complete");
        return;
    }
    if (c->h1 == H1_BODY || c->in.len) http1_refuse(c, 400, "the request ended before it was complete");
    transport_end(c->io);
}

static void http1_go_on(http_conn *c)
{
    http1_run(c);
    end_of_input(c);
}

static void http1_data(http_conn *c, const uint8_t *bytes, size_t n)
{
    if (buf_append(&c->in, bytes, n) != 0)
        transport_close(c->io, "out of memory");
    else
        http1_go_on(c);
}

static void http1_leave(http_conn *c)
{
    if (!c->requests && !c->begun_ms && !c->parked) transport_end(c->io);
}

static void http1_tick(http_conn *c, uint64_t now_ms)
{
    if (c->h1 == H1_BODY && current(c)->dispatched) {
        http_request *r = current(c);
        c->begun_ms = now_ms;
        if (rests(c))
            conn_body_rests(r, now_ms);
        else if (conn_body_is_too_slow(r, c->chunked ? UINT64_MAX : c->body_left, now_ms))
            end_pieces(c, r, 408, BODY_IS_SLOW);
    } else if (conn_is_late(c, now_ms))
        http1_refuse(c, 408, REQUEST_IS_LATE);
    else if (conn_is_idle(c, now_ms))
        transport_end(c->io);
}

static bool may_probe(const http_conn *c, const http_request *r)
{
    return c->eof && c->h1 == H1_BUSY && r && r->version == 11 && (!r->begun || r->streaming);
}

/* A client that shut only its sending side looks like one that closed. While it waits, a few bytes now and then
 * tell them apart: the latter's system answers with a reset, so that a following write fails. Before the answer
 * they are an interim response (RFC 9110 15.2: any number of them may come before the final one). Between the
 * chunks of a stream they are a zero in front of the next chunk's size (RFC 9112 7.1: the size is hex digits of any
 * number); there are few, for clients that count the digits. HTTP/1.0 knows neither. */
static bool http1_probe(http_conn *c, uint64_t now_ms)
{
    static const char interim[] = "HTTP/1.1 102 Processing\r\n\r\n";
    const http_request *r = current(c);
    if (!may_probe(c, r)) {
        c->probe_gap_ms = 0;
        return false;
    }
    if (!c->probe_gap_ms) {
        c->probe_gap_ms = PROBE_FIRST_MS;
        c->probe_at_ms = now_ms + PROBE_FIRST_MS;
        c->n_zeros = 0;
    }
    if (now_ms < c->probe_at_ms || c->n_zeros == PROBE_ZEROS_MAX) return true;
    if (r->begun)
        transport_write(c->io, "0", 1);
    else
        transport_write(c->io, interim, sizeof interim - 1);
    conn_mark_dirty(c);
    c->n_zeros += r->begun;
    c->probe_gap_ms = r->begun || c->probe_gap_ms * 2 < PROBE_MAX_MS ? c->probe_gap_ms * 2 : PROBE_MAX_MS;
    c->probe_at_ms = now_ms + c->probe_gap_ms;
    return true;
}

void http1_start(http_conn *c)
{
    static const conn_ops ops = {.data = http1_data,
                                 .eof = http1_go_on,
                                 .settle = http1_go_on,
                                 .tick = http1_tick,
                                 .leave = http1_leave,
                                 .probe = http1_probe,
                                 .respond = http1_respond,
                                 .begin = http1_begin,
                                 .write = http1_write,
                                 .end = http1_end,
                                 .accept = http1_accept};
    c->ops = &ops;
}
