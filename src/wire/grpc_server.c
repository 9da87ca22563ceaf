/* grpc_server.c: calls as requests of the HTTP server.
 *
 * A request arrives whole, so a call begins with its one message in hand. Its answer is a streamed
 * response: HEADERS, one DATA frame a message, trailers with the status; without any message the status
 * goes into the only HEADERS frame ("Trailers-Only"). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "wire/grpc.h"
#include "wire/grpc_frame.h"
#include "wire/http_internal.h"

enum { MAX_MESSAGE_BYTES = 16 << 20, MAX_STREAMS = 1024 };

struct grpc_server {
    http_server *http;
    const grpc_method *methods;
    size_t n_methods, max_message;
    void *user;
    void (*closed)(void *user);
    void *closed_user;
};

struct grpc_call {
    http_request *r;
    uint64_t deadline_ns;
    bool begun;
    void (*on_cancel)(void *user, grpc_call *c);
    void *cancel_user;
};

static const http_header content_type = {"content-type", "application/grpc"};

static void end_request(http_request *r, bool begun, grpc_status status, const char *message)
{
    char code[12];
    buf text = {0};
    snprintf(code, sizeof code, "%d", (int)status);
    if (message) grpc_message_encode(&text, message);
    http_header h[3] = {content_type, {"grpc-status", code}, {"grpc-message", text.data}};
    size_t n = text.len && !text.failed ? 3 : 2;
    if (begun)
        http_respond_end(r, h + 1, n - 1);
    else
        http_respond(r, 200, h, n, NULL, 0);
    buf_done(&text);
}

static const grpc_method *find_method(const grpc_server *s, const char *path)
{
    for (size_t i = 0; i < s->n_methods; i++)
        if (strcmp(s->methods[i].path, path) == 0) return &s->methods[i];
    return NULL;
}

/* The HTTP-level conditions of PROTOCOL-HTTP2.md; true when they hold. */
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

/* The body is exactly one frame: its message, or a refusal. */
static bool take_message(const grpc_server *s, http_request *r, const uint8_t **ret_msg, size_t *ret_n)
{
    size_t n;
    const char *body = http_body(r, &n);
    grpc_reader reader = {.in = {.data = (char *)body, .len = n, .cap = n}, .max_message = s->max_message};
    int rc = grpc_reader_next(&reader, ret_msg, ret_n);
    if (rc == 1 && grpc_reader_is_empty(&reader)) return true;
    if (rc == SHOAL_EUNSUPPORTED)
        end_request(r, false, GRPC_UNIMPLEMENTED, "compressed messages are not understood");
    else if (rc == SHOAL_ELIMIT)
        end_request(r, false, GRPC_RESOURCE_EXHAUSTED, "the message is too large");
    else if (rc == 1)
        end_request(r, false, GRPC_UNIMPLEMENTED, "one request message is expected, not a stream");
    else
        end_request(r, false, GRPC_INTERNAL, "the message frame is malformed or cut short");
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

static void on_request(void *user, http_request *r)
{
    grpc_server *s = user;
    const uint8_t *msg;
    size_t n;
    uint64_t deadline;
    if (!is_grpc(r)) return;
    const grpc_method *m = find_method(s, http_path(r));
    if (!m) {
        end_request(r, false, GRPC_UNIMPLEMENTED, "no such method");
        return;
    }
    if (!take_message(s, r, &msg, &n) || !take_deadline(r, &deadline)) return;
    grpc_call *c = calloc(1, sizeof *c);
    if (!c) {
        end_request(r, false, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    *c = (grpc_call){.r = r, .deadline_ns = deadline};
    http_set_data(r, c);
    m->on_call(s->user, c, msg, n);
}

static void on_gone(void *user, http_request *r)
{
    grpc_call *c = http_data(r);
    if (c && c->on_cancel) c->on_cancel(c->cancel_user, c);
    free(c);
}

/* A request that is too large or too slow for HTTP never becomes a call, but its sender reads grpc-status. */
static void refuse(http_request *r, int status, const char *why)
{
    bool too_large = status == 413 || status == 431;
    end_request(r, false,
                too_large       ? GRPC_RESOURCE_EXHAUSTED
                : status == 408 ? GRPC_UNAVAILABLE
                                : GRPC_INTERNAL,
                why);
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
    http_handler h = {.user = s, .on_request = on_request, .on_gone = on_gone};
    int rc = http_server_new(&s->http, loop, &h, &l, err);
    if (rc == 0) {
        s->http->refuse = refuse;
        *ret = s;
    } else {
        free(s);
    }
    return rc;
}

int grpc_server_listen(grpc_server *s, const char *address, shoal_err *err)
{
    return http_server_listen(s->http, address, NULL, err);
}

void grpc_server_drain(grpc_server *s, void (*done)(void *user), void *user)
{
    http_server_drain(s->http, done, user);
}

static void on_http_closed(void *user)
{
    grpc_server *s = user;
    void (*closed)(void *) = s->closed;
    void *closed_user = s->closed_user;
    free(s);
    if (closed) closed(closed_user);
}

void grpc_server_close(grpc_server *s, void (*closed)(void *user), void *user)
{
    if (!s) return;
    s->closed = closed;
    s->closed_user = user;
    http_server_close(s->http, on_http_closed, s);
}

/* ---- a call ---------------------------------------------------------------------------------- */

void grpc_call_on_cancel(grpc_call *c, void (*fn)(void *user, grpc_call *c), void *user)
{
    c->on_cancel = fn;
    c->cancel_user = user;
}

uint64_t grpc_call_deadline_ns(const grpc_call *c)
{
    return c->deadline_ns;
}

const char *grpc_call_metadata(const grpc_call *c, const char *lower_name)
{
    return http_header_get(c->r, lower_name);
}

void grpc_call_send(grpc_call *c, const void *msg, size_t n)
{
    uint8_t head[GRPC_FRAME_HEAD];
    if (!c->begun) http_respond_begin(c->r, 200, &content_type, 1);
    c->begun = true;
    grpc_frame_head(head, n);
    http_respond_write(c->r, head, sizeof head);
    http_respond_write(c->r, msg, n);
}

size_t grpc_call_unsent(const grpc_call *c)
{
    return http_unsent(c->r);
}

void grpc_call_end(grpc_call *c, grpc_status status, const char *message)
{
    http_request *r = c->r;
    bool begun = c->begun;
    http_set_data(r, NULL);
    free(c);
    end_request(r, begun, status, message);
}
