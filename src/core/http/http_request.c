/* http_request.c: a request, and the calls a handler makes on it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/loop_work.h"
#include "http/http_internal.h"
#include "http/http_own.h"

enum { SMALL_BODY = 64 << 10 }; /* always taken: max_connections bounds how many there are */

http_request *http_request_new(http_conn *c)
{
    http_request *r = malloc(sizeof *r);
    if (!r) return NULL;
    *r = (http_request){.mem = arena_new(2048),
                        .conn = c,
                        .method = "",
                        .path = "",
                        .query = "",
                        .begun_ms = uv_now(c->server->loop),
                        .next = c->requests};
    if (!r->mem) {
        free(r);
        return NULL;
    }
    if (r->next) r->next->prev = r;
    c->requests = r;
    return r;
}

void http_request_free(http_request *r)
{
    http_conn *c = r->conn;
    if (r->prev)
        r->prev->next = r->next;
    else
        c->requests = r->next;
    if (r->next) r->next->prev = r->prev;
    if (r->version == 20 && r->intake == HTTP_WHOLE) c->body_bytes -= r->body.len;
    if (r->version == 20 && r->intake != HTTP_WHOLE) c->kept -= r->body.len;
    c->server->body_bytes -= r->held;
    c->out_bytes -= r->out.len - r->out_at;
    if (!c->requests) c->idle_since_ms = uv_now(c->server->loop);
    buf_done(&r->body);
    buf_done(&r->out);
    arena_free(r->mem);
    free(r);
}

char *http_request_lower(http_request *r, const char *s, size_t n)
{
    char *lower = arena_strndup(r->mem, s, n);
    for (char *p = lower; p && *p; p++)
        if (*p >= 'A' && *p <= 'Z') *p = (char)(*p + 32);
    return lower;
}

static int grow_headers(http_request *r)
{
    if (r->n_headers < r->cap_headers) return 0;
    size_t cap = r->cap_headers ? r->cap_headers * 2 : 16;
    http_header *h = arena_alloc(r->mem, cap * sizeof *h);
    if (!h) return 500;
    if (r->n_headers) memcpy(h, r->headers, r->n_headers * sizeof *h);
    r->headers = h;
    r->cap_headers = cap;
    return 0;
}

int http_request_add_header(http_request *r, const char *name, size_t n_name, const char *value,
                            size_t n_value)
{
    const http_limits *l = &r->conn->server->limits;
    r->header_bytes += n_name + n_value + 32; /* as RFC 9113 counts a header list */
    if (r->n_headers >= l->max_headers || r->header_bytes > l->max_header_bytes + 32 * l->max_headers)
        return 431;
    if (grow_headers(r) != 0) return 500;
    char *lower = http_request_lower(r, name, n_name);
    char *copy = arena_strndup(r->mem, value, n_value);
    if (!lower || !copy) return 500;
    r->headers[r->n_headers++] = (http_header){lower, copy};
    return 0;
}

/* Base URLs that end in a slash give "//v1/models", and some clients add one at the end: both name the same
 * path. In place. */
static void tidy_path(char *path)
{
    size_t n = 0;
    for (const char *s = path; *s; s++)
        if (*s != '/' || n == 0 || path[n - 1] != '/') path[n++] = *s;
    if (n > 1 && path[n - 1] == '/') n--;
    path[n] = '\0';
}

int http_request_set_target(http_request *r, const char *target, size_t n)
{
    const char *mark = memchr(target, '?', n);
    size_t n_path = mark ? (size_t)(mark - target) : n;
    char *path = arena_strndup(r->mem, target, n_path);
    if (path) tidy_path(path);
    r->path = path;
    r->query = mark ? arena_strndup(r->mem, mark + 1, n - n_path - 1) : "";
    if (r->path && r->query) return 0;
    r->path = r->query = "";
    return 500;
}

void http_request_limit_body(http_request *r)
{
    const http_server *s = r->conn->server;
    size_t own = s->handler.body_limit ? s->handler.body_limit(s->handler.user, r) : 0;
    if (!r->conn->is_known && s->handler.is_known)
        r->conn->is_known = s->handler.is_known(s->handler.user, r);
    r->max_body = own ? own : s->limits.max_body_bytes;
    r->intake = s->handler.intake ? s->handler.intake(s->handler.user, r) : HTTP_WHOLE;
}

int http_hold(http_request *r, size_t *held, size_t n)
{
    http_server *s = r->conn->server;
    s->body_bytes += n - *held;
    r->held += n - *held;
    *held = n;
    if (s->body_bytes <= s->limits.max_bodies || r->held <= SMALL_BODY) return 0;
    return n > s->limits.max_bodies ? 413 : 503;
}

const char *http_hold_why(int status)
{
    return status == 413 ? "the request body is larger than limits.max_bodies_bytes"
                         : "large requests take all of the memory for bodies (limits.max_bodies_bytes); try "
                           "again in a second";
}

int http_request_hold(http_request *r)
{
    return http_hold(r, &r->held_body, r->body.len);
}

void request_complete(http_request *r)
{
    r->complete = true;
    r->received_ns = clock_ns();
}

void http_request_dispatch(http_request *r)
{
    const http_handler *h = &r->conn->server->handler;
    r->dispatched = true;
    r->conn->n_turn++;
    loop_work_add_message(0);
    h->on_request(h->user, r);
}

/* ---- a body in pieces ------------------------------------------------------------------------ */

bool http_request_flows(const http_request *r)
{
    return r->dispatched && !r->paused && !r->waits && !r->due && !r->ended && !r->gone;
}

void http_request_mark_due(http_request *r)
{
    r->due = r->conn->has_due = true;
    conn_mark_dirty(r->conn);
}

static void say_end(http_request *r)
{
    const http_handler *h = &r->conn->server->handler;
    r->end_said = true;
    h->on_body_end(h->user, r, r->body_status, r->body_why);
}

void http_request_end_body(http_request *r, int status, const char *why)
{
    if (r->complete) return;
    request_complete(r);
    r->body_status = status;
    r->body_why = why;
    if (http_request_flows(r))
        say_end(r);
    else
        http_request_mark_due(r);
}

/* HTTP/2: what was kept goes out of the connection's account, then to the handler, then perhaps the end. */
static void deliver_kept(http_request *r)
{
    const http_handler *h = &r->conn->server->handler;
    buf kept = r->body;
    r->body = (buf){0};
    r->conn->kept -= kept.len;
    http2_give_stream(r->conn, r->stream_id, kept.len);
    h->on_body(h->user, r, (const uint8_t *)kept.data, kept.len);
    buf_done(&kept);
    if (r->complete && http_request_flows(r)) say_end(r);
}

void http_request_go_on(http_request *r)
{
    http_conn *c = r->conn;
    const http_handler *h = &c->server->handler;
    r->due = false;
    if (!http_request_flows(r) || r->end_said) return;
    if (r->version == 20) {
        deliver_kept(r);
        return;
    }
    h->on_body(h->user, r, NULL, 0);
    if (c->requests == r && r->complete && http_request_flows(r)) say_end(r);
}

bool http_take_message(http_request *r)
{
    http_conn *c = r->conn;
    if (conn_may_go_on(c)) {
        c->n_turn++;
        loop_work_add_message(0);
        return true;
    }
    r->waits = c->has_waiting = true;
    conn_mark_dirty(c);
    return false;
}

void http_pause(http_request *r, bool paused)
{
    if (r->intake == HTTP_WHOLE || r->ended || r->paused == paused) return;
    r->paused = paused;
    r->begun_ms = uv_now(r->conn->server->loop); /* a rest does not count as slowness */
    if (!paused) http_request_mark_due(r);
}

/* ---- what a handler asks --------------------------------------------------------------------- */

const char *http_method(const http_request *r)
{
    return r->method;
}

bool http_over_unix(const http_request *r)
{
    return r->conn->is_unix;
}

const char *http_path(const http_request *r)
{
    return r->path;
}

const char *http_query(const http_request *r)
{
    return r->query;
}

const char *http_header_get(const http_request *r, const char *lower_name)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        const char *name = r->headers[i].name;
        if (*name == *lower_name && strcmp(name, lower_name) == 0) return r->headers[i].value;
    }
    return NULL;
}

const char *http_body(const http_request *r, size_t *ret_len)
{
    bool whole = r->intake == HTTP_WHOLE;
    if (ret_len) *ret_len = whole ? r->body.len : 0;
    return whole && r->body.data ? r->body.data : "";
}

void http_take_body(http_request *r, buf *ret)
{
    if (r->version == 20) r->conn->body_bytes -= r->body.len;
    *ret = r->body;
    r->body = (buf){0};
}

const tls_identity *http_peer(const http_request *r)
{
    return transport_peer(r->conn->io);
}

const void *http_connection(const http_request *r)
{
    return r->conn;
}

bool http_is_own(const http_request *r)
{
    return r->conn->is_own;
}

const file_user *http_user(const http_request *r)
{
    return r->conn->user;
}

const char *http_from(const http_request *r)
{
    return transport_from(r->conn->io);
}

const char *http_server_name(const http_request *r)
{
    return transport_server_name(r->conn->io);
}

int http_version(const http_request *r)
{
    return r->version;
}

const char *http_protocol(const http_request *r)
{
    return r->protocol;
}

uint64_t http_received_ns(const http_request *r)
{
    return r->received_ns;
}

uint64_t http_age_ns(const http_request *r)
{
    return r->received_ns ? clock_ns() - r->received_ns : 0;
}

void http_set_idle(http_request *r, bool idle)
{
    if (r->idle != idle) r->conn->idle_since_ms = uv_now(r->conn->server->loop);
    r->idle = idle;
}

void http_set_known(http_request *r)
{
    r->conn->is_known = true;
}

void http_set_data(http_request *r, void *data)
{
    r->data = data;
}

void *http_data(const http_request *r)
{
    return r->data;
}

/* ---- what a handler answers ------------------------------------------------------------------ */

bool http_header_is_sendable(const http_header *h)
{
    static const char *const ours[] = {"content-length", "date", "connection", "transfer-encoding",
                                       "keep-alive"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if ((h->name[0] | 0x20) == ours[i][0] && strcasecmp(h->name, ours[i]) == 0) return false;
    return h->value && http1_is_token(h->name, strlen(h->name)) &&
           http1_is_field_value(h->value, strlen(h->value));
}

/* The registered ones that a server sends (RFC 9110 15, 6585). */
static const struct {
    int status;
    const char *text;
} STATUSES[] = {
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

const char *http_status_text(int status)
{
    for (size_t i = 0; i < sizeof STATUSES / sizeof *STATUSES; i++)
        if (STATUSES[i].status == status) return STATUSES[i].text;
    return "Status";
}

void http_respond(http_request *r, int status, const http_header *headers, size_t n_headers, const void *body,
                  size_t len)
{
    assert(!r->begun && !r->ended);
    http_conn *c = r->conn;
    r->begun = r->ended = true;
    c->has_answered = true;
    if (r->gone || transport_is_closing(c->io)) return;
    /* Not what this turn answers counts, but what its client had left unread before. */
    if (c->unsent > c->server->limits.max_write_backlog) {
        transport_close(c->io, "the client reads too slowly");
        return;
    }
    if (status == 401) http_note_unauthorized(r);
    c->ops->respond(r, status, headers, n_headers, body, len);
}

void http_note_unauthorized(http_request *r)
{
    http_conn *c = r->conn;
    if (++c->n_unauthorized < c->server->limits.max_unauthorized) return;
    c->keep_alive = false;
    c->ops->leave(c);
}

void http_respond_begin(http_request *r, int status, const http_header *headers, size_t n_headers)
{
    assert(!r->begun && !r->ended);
    r->begun = true;
    if (r->gone || transport_is_closing(r->conn->io)) return;
    r->conn->ops->begin(r, status, headers, n_headers);
}

void http_accept(http_request *r, const http_header *headers, size_t n_headers)
{
    assert(r->intake == HTTP_TUNNEL && !r->begun && !r->ended);
    r->begun = true;
    if (r->gone || transport_is_closing(r->conn->io)) return;
    r->conn->ops->accept(r, headers, n_headers);
}

void http_respond_write(http_request *r, const void *data, size_t len)
{
    assert(r->begun && !r->ended);
    http_conn *c = r->conn;
    if (r->gone || len == 0 || transport_is_closing(c->io)) return;
    /* As in http_respond, what others answered in this turn does not count against what comes first. */
    size_t left = r->wrote ? conn_unsent(c) : c->unsent;
    r->wrote = true;
    if (left > c->server->limits.max_write_backlog && r->intake != HTTP_TUNNEL) {
        transport_close(c->io, "the client reads too slowly");
        return;
    }
    c->ops->write(r, data, len);
}

size_t http_unsent(const http_request *r)
{
    if (r->gone || transport_is_closing(r->conn->io)) return 0;
    return r->version == 20 ? r->out.len - r->out_at : transport_backlog(r->conn->io);
}

size_t http_unsent_max(const http_request *r)
{
    return r->conn->server->limits.max_write_backlog;
}

void http_respond_end(http_request *r, const http_header *trailers, size_t n_trailers)
{
    assert(r->begun && !r->ended);
    r->ended = r->conn->has_answered = true;
    if (r->gone || transport_is_closing(r->conn->io)) return;
    r->conn->ops->end(r, trailers, n_trailers);
}
