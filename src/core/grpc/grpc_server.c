/* grpc_server.c: calls as requests of the HTTP server.
 *
 * A request of one message arrives whole, so that its call begins with the message in hand. That of a stream
 * comes in pieces, from which grpc_stream.c cuts messages. The answer is a streamed response: HEADERS, one
 * DATA frame a message, trailers with the status; without any message the status goes into the only HEADERS
 * frame ("Trailers-Only"). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "grpc/grpc_gzip.h"
#include "grpc/grpc_internal.h"

enum { MAX_MESSAGE_BYTES = 16 << 20, MAX_STREAMS = 1024 };

static const http_header content_type = {"content-type", "application/grpc"};

void grpc_end_request(http_request *r, bool begun, grpc_status status, const char *message,
                      const http_header *metadata, size_t n_metadata)
{
    char code[12];
    buf text = {0};
    http_header plain[3], *h = n_metadata ? calloc(n_metadata + 3, sizeof *h) : plain;
    if (!h) {
        h = plain;
        n_metadata = 0;
    }
    if (status == GRPC_UNAUTHENTICATED) http_note_unauthorized(r);
    snprintf(code, sizeof code, "%d", (int)status);
    if (message) grpc_message_encode(&text, message);
    size_t n = 0;
    h[n++] = content_type;
    h[n++] = (http_header){"grpc-status", code};
    if (text.len && !text.failed) h[n++] = (http_header){"grpc-message", text.data};
    for (size_t i = 0; i < n_metadata; i++) h[n++] = metadata[i];
    if (begun)
        http_respond_end(r, h + 1, n - 1);
    else
        http_respond(r, 200, h, n, NULL, 0);
    if (h != plain) free(h);
    buf_done(&text);
}

static void end_request(http_request *r, bool begun, grpc_status status, const char *message)
{
    grpc_end_request(r, begun, status, message, NULL, 0);
}

static const grpc_method *find_method(const grpc_server *s, const char *path)
{
    for (size_t i = 0; i < s->n_methods; i++)
        if (strcmp(s->methods[i].path, path) == 0) return &s->methods[i];
    return NULL;
}

/* The HTTP-level conditions of PROTOCOL-HTTP2.md; true when they hold. */
bool grpc_wants(const http_request *r)
{
    static const char type[] = "application/grpc";
    const char *given = http_header_get(r, "content-type");
    return http_version(r) == 20 && given && strncasecmp(given, type, sizeof type - 1) == 0;
}

static bool is_grpc(http_request *r)
{
    const char *type = http_header_get(r, "content-type");
    int status = 0;
    if (http_version(r) != 20)
        status = 505;
    else if (strcmp(http_method(r), "POST") != 0)
        status = 405;
    else if (!type || !grpc_is_content_type(type))
        status = 415;
    if (status) http_respond(r, status, NULL, 0, "gRPC over HTTP/2 is spoken here\n", 32);
    return status == 0;
}

static const grpc_stream_method *find_stream(const grpc_server *s, const char *path, void **ret_user)
{
    for (const grpc_streams *t = s->streams; t; t = t->next)
        for (size_t i = 0; i < t->n_methods; i++)
            if (strcmp(t->methods[i].path, path) == 0) {
                *ret_user = t->user;
                return &t->methods[i];
            }
    return NULL;
}

/* Messages are compressed as grpc-encoding says: gzip, or not at all. */
static bool check_encoding(http_request *r)
{
    static const http_header accept = {"grpc-accept-encoding", "identity,gzip"};
    const char *given = http_header_get(r, "grpc-encoding");
    if (!given || strcasecmp(given, "identity") == 0 || strcasecmp(given, "gzip") == 0) return true;
    grpc_end_request(r, false, GRPC_UNIMPLEMENTED, "grpc-encoding may be gzip or identity", &accept, 1);
    return false;
}

static bool is_gzipped(const http_request *r)
{
    const char *given = http_header_get(r, "grpc-encoding");
    return given && strcasecmp(given, "gzip") == 0;
}

size_t grpc_server_longest(const grpc_server *s, const http_request *r)
{
    return s->longest ? s->longest(s->user, r) : s->max_message;
}

/* The body is exactly one frame: its message, or a refusal. What is unpacked stays in the reader's plain. */
static bool take_message(http_request *r, grpc_reader *reader, const uint8_t **ret_msg, size_t *ret_n)
{
    int status;
    const char *why;
    const char *body = http_body(r, &reader->in.len);
    reader->in.data = (char *)body;
    if (grpc_reader_only(reader, ret_msg, ret_n, &status, &why)) return true;
    end_request(r, false, (grpc_status)status, why);
    return false;
}

static bool take_deadline(http_request *r, uint64_t *ret)
{
    const char *timeout = http_header_get(r, "grpc-timeout");
    uint64_t ns;
    *ret = 0;
    if (!timeout) return true;
    if (!grpc_timeout_parse(timeout, &ns)) {
        end_request(r, false, GRPC_INTERNAL, "grpc-timeout is malformed");
        return false;
    }
    uint64_t from = http_received_ns(r);
    *ret = ns > UINT64_MAX - from ? 0 : from + ns;
    return true;
}

static grpc_call *new_call(grpc_server *s, http_request *r)
{
    uint64_t deadline;
    if (!take_deadline(r, &deadline)) return NULL;
    grpc_call *c = calloc(1, sizeof *c);
    if (!c) {
        end_request(r, false, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return NULL;
    }
    *c = (grpc_call){.r = r, .server = s, .deadline_ns = deadline};
    c->in.takes_gzip = is_gzipped(r); /* whoever speaks it is answered in it, if he takes it */
    c->gzips = c->in.takes_gzip && grpc_coding_is_in(http_header_get(r, "grpc-accept-encoding"), "gzip");
    grpc_deadline_add(c);
    http_set_data(r, c);
    return c;
}

/* Unpacking it, or what its handler makes of it, would hold the loop. */
static bool is_long(const grpc_server *s, const http_request *r, size_t max_message)
{
    size_t n;
    bool packed = *http_body(r, &n) == 1;
    return s->on_long && max_message > GRPC_LONG_BYTES &&
           n > (packed ? GRPC_LONG_PACKED_BYTES : GRPC_LONG_BYTES);
}

static void begin_long(grpc_server *s, http_request *r, grpc_reader *reader)
{
    grpc_call *c = new_call(s, r);
    if (!c) return;
    http_take_body(r, &reader->in);
    s->on_long(s->user, c, reader);
}

static void begin_whole(grpc_server *s, http_request *r, const grpc_method *m)
{
    const uint8_t *msg = (const uint8_t *)"";
    size_t n = 0;
    grpc_reader reader = {.max_message = grpc_server_longest(s, r), .takes_gzip = is_gzipped(r)};
    bool is_wanted = reader.max_message > 0;
    if (is_long(s, r, reader.max_message)) {
        begin_long(s, r, &reader);
        return;
    }
    grpc_call *c = is_wanted && !take_message(r, &reader, &msg, &n) ? NULL : new_call(s, r);
    if (c) m->on_call(s->user, c, msg, n);
    buf_done(&reader.plain);
}

static void on_request(void *user, http_request *r)
{
    grpc_server *s = user;
    grpc_call *c;
    void *stream_user;
    if (!is_grpc(r)) return;
    const grpc_method *m = find_method(s, http_path(r));
    const grpc_stream_method *stream = m ? NULL : find_stream(s, http_path(r), &stream_user);
    if (!m && !stream) {
        end_request(r, false, GRPC_UNIMPLEMENTED, "no such method");
        return;
    }
    if (!check_encoding(r)) return;
    if (m)
        begin_whole(s, r, m);
    else if ((c = new_call(s, r)))
        grpc_stream_begin(c, stream, stream_user);
}

/* Unauthenticated peers may not stay idle for hours. */
static http_intake intake(void *user, const http_request *r)
{
    const grpc_server *s = user;
    void *stream_user;
    const grpc_stream_method *m = http_version(r) == 20 ? find_stream(s, http_path(r), &stream_user) : NULL;
    if (!m) return HTTP_WHOLE;
    bool rests = s->http || (m->rests && grpc_server_longest(s, r) > 0);
    return rests ? HTTP_OPEN : HTTP_PIECES;
}

static void grpc_server_on_gone(void *user, http_request *r)
{
    grpc_call *c = http_data(r);
    if (c) grpc_call_lost(c);
}

static void on_evict(void *user, http_request *r)
{
    grpc_call *c = http_data(r);
    if (c) grpc_call_fail(c, GRPC_UNAVAILABLE, "others want this connection's place; connect again");
}

grpc_status grpc_status_of_refusal(int http_status)
{
    bool too_large = http_status == 413 || http_status == 431;
    bool may_work_later = http_status == 408 || http_status == 503;
    return too_large ? GRPC_RESOURCE_EXHAUSTED : may_work_later ? GRPC_UNAVAILABLE : GRPC_INTERNAL;
}

/* A request that is too large or too slow for HTTP never becomes a call, but its sender reads grpc-status. */
static bool grpc_server_refuse(http_request *r, int status, const char *why)
{
    end_request(r, false, grpc_status_of_refusal(status), why);
    return true;
}

static bool refuse_calls(http_request *r, int status, const char *why)
{
    return grpc_wants(r) && grpc_server_refuse(r, status, why);
}

static const http_handler HANDLER = {.on_request = on_request,
                                     .on_gone = grpc_server_on_gone,
                                     .on_evict = on_evict,
                                     .intake = intake,
                                     .on_body = grpc_stream_body,
                                     .on_body_end = grpc_stream_body_end,
                                     .on_drained = grpc_stream_drained};

http_handler grpc_server_handler(grpc_server *s)
{
    http_handler h = HANDLER;
    h.user = s;
    return h;
}

int grpc_server_new_within(grpc_server **ret, uv_loop_t *loop, http_server *http, const grpc_method *methods,
                           size_t n_methods, void *user, grpc_longest longest, shoal_err *err)
{
    grpc_server *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    *s = (grpc_server){.methods = methods, .n_methods = n_methods, .longest = longest, .user = user};
    http->refuse = refuse_calls;
    grpc_deadline_open(s, loop);
    *ret = s;
    return 0;
}

void grpc_server_on_long(grpc_server *s, void (*fn)(void *user, grpc_call *c, grpc_reader *body))
{
    s->on_long = fn;
}

int grpc_server_new(grpc_server **ret, uv_loop_t *loop, const grpc_method *methods, size_t n_methods,
                    void *user, const http_limits *limits, shoal_err *err)
{
    grpc_server *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    *s = (grpc_server){.methods = methods, .n_methods = n_methods, .user = user};
    http_limits l = limits ? *limits : (http_limits){0};
    s->max_message = l.max_body_bytes ? l.max_body_bytes : MAX_MESSAGE_BYTES;
    /* Room for the frame's head and a byte over, so that a message too large is refused in gRPC's words. */
    l.max_body_bytes = s->max_message + GRPC_FRAME_HEAD;
    if (!l.max_streams) l.max_streams = MAX_STREAMS;
    if (!l.max_write_backlog) l.max_write_backlog = MAX_MESSAGE_BYTES;
    if (!l.max_unsent) l.max_unsent = SIZE_MAX; /* the peer is ours, and each connection has its bound */
    if (!l.idle_timeout_ms) l.idle_timeout_ms = UINT64_MAX;
    http_handler h = grpc_server_handler(s);
    int rc = http_server_new(&s->http, loop, &h, &l, err);
    if (rc == 0) {
        s->http->refuse = grpc_server_refuse;
        grpc_deadline_open(s, loop);
        *ret = s;
    } else {
        free(s);
    }
    return rc;
}

int grpc_server_add_streams(grpc_server *s, const grpc_stream_method *methods, size_t n_methods, void *user,
                            shoal_err *err)
{
    grpc_streams *t = malloc(sizeof *t);
    if (!t) return err_nomem(err);
    *t = (grpc_streams){.next = s->streams, .methods = methods, .n_methods = n_methods, .user = user};
    s->streams = t;
    return 0;
}

int grpc_server_listen(grpc_server *s, const char *address, shoal_err *err)
{
    return http_server_listen(s->http, address, NULL, err);
}

int grpc_server_listen_tls(grpc_server *s, const char *address, tls_context *tls, shoal_err *err)
{
    return http_server_listen(s->http, address, &(http_tls){.context = tls}, err);
}

void grpc_server_on_refused(grpc_server *s, void (*fn)(void *user, const char *from, const char *why),
                            void *user)
{
    http_server_on_refused(s->http, fn, user);
}

void grpc_server_recheck(grpc_server *s)
{
    http_server_recheck(s->http);
}

int grpc_server_port(const grpc_server *s)
{
    return http_server_port(s->http);
}

void grpc_server_drain(grpc_server *s, void (*done)(void *user), void *user)
{
    http_server_drain(s->http, done, user);
}

static void on_all_closed(uv_handle_t *due)
{
    grpc_server *s = due->data;
    void (*closed)(void *) = s->closed;
    void *closed_user = s->closed_user;
    for (grpc_streams *t; (t = s->streams);) {
        s->streams = t->next;
        free(t);
    }
    free(s);
    if (closed) closed(closed_user);
}

static void on_http_closed(void *user)
{
    grpc_server *s = user;
    uv_close((uv_handle_t *)&s->due, on_all_closed);
}

void grpc_server_close(grpc_server *s, void (*closed)(void *user), void *user)
{
    if (!s) return;
    s->closed = closed;
    s->closed_user = user;
    if (s->http)
        http_server_close(s->http, on_http_closed, s);
    else
        on_http_closed(s);
}
