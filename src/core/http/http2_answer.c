/* http2_answer.c: answers on HTTP/2: a head, bytes at the pace that flow control allows, trailers. */
#include <stdio.h>
#include <string.h>

#include "http/http_internal.h"

/* A stream that cannot even be reset, for want of memory, would wait for ever: its connection goes. */
void http2_reset(http_conn *c, int32_t id, uint32_t why)
{
    if (nghttp2_is_fatal(nghttp2_submit_rst_stream(c->h2, NGHTTP2_FLAG_NONE, id, why)))
        transport_close(c->io, "out of memory");
}

static ssize_t read_answer(nghttp2_session *h2, int32_t id, uint8_t *to, size_t max, uint32_t *flags,
                           nghttp2_data_source *source, void *user)
{
    http_conn *c = user;
    http_request *r = source->ptr;
    size_t left = r->out.len - r->out_at, n = left < max ? left : max;
    if (left == 0 && !r->ended) {
        r->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n) memcpy(to, r->out.data + r->out_at, n);
    r->out_at += n;
    c->out_bytes -= n;
    c->taken += n;
    r->taken += n;
    if (r->out_at == r->out.len) {
        buf_clear(&r->out);
        r->out_at = 0;
        conn_note_drained(r);
        if (r->ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (r->ended && r->trailers) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            if (nghttp2_submit_trailer(h2, id, r->trailers, r->n_trailers) != 0)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets it: its end would never be said */
        }
    }
    return (ssize_t)n;
}

static nghttp2_nv nv_of(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static char *lower_copy(arena *mem, const char *s)
{
    char *copy = arena_strdup(mem, s);
    for (char *p = copy; p && *p; p++)
        if (*p >= 'A' && *p <= 'Z') *p = (char)(*p + 32);
    return copy;
}

/* How many were put; negative without memory for one. */
static ssize_t put_headers(http_request *r, nghttp2_nv *nv, const http_header *headers, size_t n)
{
    ssize_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (!http_header_is_sendable(&headers[i])) continue;
        char *name = lower_copy(r->mem, headers[i].name);
        if (!name) return NGHTTP2_ERR_NOMEM;
        nv[at++] = nv_of(name, headers[i].value);
    }
    return at;
}

void http2_send_answer(http_request *r, int status, const http_header *headers, size_t n, bool has_body)
{
    http_conn *c = r->conn;
    char code[16], length[24];
    nghttp2_nv *nv = arena_alloc(r->mem, (n + 3) * sizeof *nv);
    nghttp2_data_provider body = {.source = {.ptr = r}, .read_callback = read_answer};
    ssize_t put = nv ? put_headers(r, nv + 1, headers, n) : NGHTTP2_ERR_NOMEM;
    int rc = NGHTTP2_ERR_NOMEM;
    if (put >= 0) {
        size_t at = 1 + (size_t)put;
        snprintf(code, sizeof code, "%03d", status);
        nv[0] = nv_of(":status", code);
        nv[at++] = nv_of("date", http_conn_date(c->server));
        snprintf(length, sizeof length, "%zu", r->out.len);
        if (r->ended && has_body) nv[at++] = nv_of("content-length", length);
        rc = nghttp2_submit_response(c->h2, r->stream_id, nv, at, has_body ? &body : NULL);
    }
    if (rc != 0) http2_reset(c, r->stream_id, NGHTTP2_INTERNAL_ERROR);
    conn_mark_dirty(c);
}

static bool put_out(http_request *r, const void *data, size_t len)
{
    if (buf_append(&r->out, data, len) != 0) {
        http2_reset(r->conn, r->stream_id, NGHTTP2_INTERNAL_ERROR);
        return false;
    }
    r->conn->out_bytes += len;
    return true;
}

static bool is_bodiless(const http_request *r, int status)
{
    return r->is_head || status == 204 || status == 304;
}

void http2_respond(http_request *r, int status, const http_header *headers, size_t n, const void *body,
                   size_t len)
{
    bool has_body = len && !is_bodiless(r, status);
    conn_mark_dirty(r->conn);
    if (!has_body || put_out(r, body, len)) http2_send_answer(r, status, headers, n, has_body);
}

void http2_begin(http_request *r, int status, const http_header *headers, size_t n)
{
    http2_send_answer(r, status, headers, n, !r->is_head);
}

/* RFC 8441 5: 200 says that the stream is the tunnel. */
void http2_accept(http_request *r, const http_header *headers, size_t n)
{
    http2_send_answer(r, 200, headers, n, true);
}

static void resume(http_request *r)
{
    if (r->deferred && nghttp2_is_fatal(nghttp2_session_resume_data(r->conn->h2, r->stream_id)))
        http2_reset(r->conn, r->stream_id, NGHTTP2_INTERNAL_ERROR);
    r->deferred = false;
    conn_mark_dirty(r->conn);
}

void http2_write(http_request *r, const void *data, size_t len)
{
    if (!r->is_head && put_out(r, data, len)) resume(r);
}

static bool keep_trailers(http_request *r, const http_header *trailers, size_t n)
{
    nghttp2_nv *nv = arena_alloc(r->mem, n * sizeof *nv);
    ssize_t put = nv ? put_headers(r, nv, trailers, n) : NGHTTP2_ERR_NOMEM;
    for (ssize_t i = 0; i < put; i++) {
        nv[i].value = (uint8_t *)arena_strndup(r->mem, (const char *)nv[i].value, nv[i].valuelen);
        if (!nv[i].value) return false;
    }
    r->n_trailers = put > 0 ? (size_t)put : 0;
    r->trailers = put > 0 ? nv : NULL;
    return put >= 0;
}

void http2_end(http_request *r, const http_header *trailers, size_t n)
{
    if (n && !keep_trailers(r, trailers, n)) http2_reset(r->conn, r->stream_id, NGHTTP2_INTERNAL_ERROR);
    resume(r);
}
