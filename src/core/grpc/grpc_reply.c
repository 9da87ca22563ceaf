/* grpc_reply.c: what comes back to a call: head, messages, status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grpc/grpc_internal.h"

static void tell_metadata(grpc_client_call *c, const char *name, const char *value)
{
    c->busy = true;
    c->ev.metadata(c->ev.user, name, value);
    c->busy = false;
    if (c->over) grpc_client_free(c);
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    grpc_client_call *c = nghttp2_session_get_stream_user_data(h2, f->hd.stream_id);
    if (!c) return 0;
    const char *s = (const char *)name, *v = (const char *)value;
    c->header_bytes += n_name + n_value + 32;
    if (c->header_bytes > GRPC_MAX_HEADER_BYTES)
        grpc_client_abort(c, NGHTTP2_CANCEL, GRPC_RESOURCE_EXHAUSTED, "the server's header is too large");
    else if (strcmp(s, ":status") == 0)
        c->http_status = atoi(v);
    else if (strcmp(s, "content-type") == 0)
        c->bad_type = !grpc_is_content_type(v);
    else if (strcmp(s, "grpc-status") == 0)
        c->grpc_status =
            n_value > 0 && n_value < 3 && strspn(v, "0123456789") == n_value ? atoi(v) : GRPC_UNKNOWN;
    else if (strcmp(s, "grpc-message") == 0 && c->message.len == 0)
        grpc_message_decode(&c->message, v);
    else if (c->ev.metadata)
        tell_metadata(c, s, v);
    return 0;
}

static void reader_failed(grpc_client_call *c, int rc)
{
    bool short_of = rc == SHOAL_ELIMIT || rc == SHOAL_ENOMEM;
    grpc_client_abort(c, NGHTTP2_CANCEL, short_of ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL,
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
    grpc_client_free(c);
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
            grpc_client_end(c, GRPC_INTERNAL, "the last message is cut short");
        else
            grpc_client_end(c, (grpc_status)c->grpc_status, c->message.data ? c->message.data : "");
    } else if (c->http_status && c->http_status != 200) {
        snprintf(text, sizeof text, "the server answered HTTP %d", c->http_status);
        grpc_client_end(c, status_of_http(c->http_status), text);
    } else if (error_code != NGHTTP2_NO_ERROR) {
        snprintf(text, sizeof text, "the stream was reset (%s)", nghttp2_http2_strerror(error_code));
        grpc_client_end(c, status_of_reset(error_code), text);
    } else {
        grpc_client_end(c, GRPC_UNKNOWN,
                        c->bad_type ? "the answer is not gRPC" : "the answer has no grpc-status");
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

/* The server is done before we are: nothing more is wanted (RFC 9113 8.1), and no close would come otherwise.
 */
static int on_frame(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
    grpc_link_heard_frame(user, f);
    bool is_end = (f->hd.type == NGHTTP2_HEADERS || f->hd.type == NGHTTP2_DATA) &&
                  (f->hd.flags & NGHTTP2_FLAG_END_STREAM);
    if (is_end && nghttp2_session_get_stream_local_close(h2, f->hd.stream_id) == 0) {
        nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, f->hd.stream_id, NGHTTP2_NO_ERROR);
        grpc_link_mark_dirty(user);
    }
    return 0;
}

/* What came for a call while it was paused. */
static void catch_up(grpc_link *l, grpc_client_call *c)
{
    c->due = false;
    if (!c->closed) nghttp2_session_consume_stream(l->h2, c->stream_id, c->n_unread);
    c->n_unread = 0;
    if (deliver(c, 0) && c->closed && !c->paused) end_closed(c, c->close_code);
}

static grpc_client_call *first_due(grpc_link *l)
{
    for (grpc_client_call *c = l->calls; c; c = c->next)
        if (c->due && !c->paused) return c;
    return NULL;
}

void grpc_reply_catch_up(grpc_link *l)
{
    for (grpc_client_call *c; l->h2 && !transport_is_closing(l->io) && (c = first_due(l));) catch_up(l, c);
}

/* A request that never left, because GOAWAY came first. */
static int on_not_sent(nghttp2_session *h2, const nghttp2_frame *f, int error, void *user)
{
    grpc_client_call *c =
        f->hd.type == NGHTTP2_HEADERS ? nghttp2_session_get_stream_user_data(h2, f->hd.stream_id) : NULL;
    if (c) grpc_client_end(c, GRPC_UNAVAILABLE, "the server takes no more calls on this connection");
    return 0;
}

void grpc_reply_callbacks(nghttp2_session_callbacks *cb)
{
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_not_sent);
}
