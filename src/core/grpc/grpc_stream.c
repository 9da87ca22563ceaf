/* grpc_stream.c: a call on the server, and messages cut from a body that comes in pieces.
 *
 * A callback may end its own call; `busy` keeps the memory until we are out of it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "wire/coding.h"
#include "grpc/grpc_gzip.h"
#include "grpc/grpc_internal.h"

/* ---- any call -------------------------------------------------------------------------------- */

static void grpc_stream_call_free(grpc_call *c)
{
    grpc_deadline_take(c);
    grpc_reader_done(&c->in);
    free(c);
}

void grpc_call_lost(grpc_call *c)
{
    assert(!c->busy); /* it comes from the loop, never from inside a callback */
    if (c->on_cancel) c->on_cancel(c->cancel_user, c);
    grpc_stream_call_free(c);
}

void grpc_call_fail(grpc_call *c, grpc_status status, const char *why)
{
    http_request *r = c->r;
    bool begun = c->begun;
    http_set_data(r, NULL);
    grpc_call_lost(c);
    grpc_end_request(r, begun, status, why, NULL, 0);
}

void grpc_call_on_cancel(grpc_call *c, void (*fn)(void *user, grpc_call *c), void *user)
{
    c->on_cancel = fn;
    c->cancel_user = user;
}

void grpc_call_on_drained(grpc_call *c, void (*fn)(void *user, grpc_call *c), void *user)
{
    c->on_drained = fn;
    c->drained_user = user;
}

void grpc_call_set_data(grpc_call *c, void *data)
{
    c->data = data;
}

void *grpc_call_data(const grpc_call *c)
{
    return c->data;
}

uint64_t grpc_call_deadline_ns(const grpc_call *c)
{
    return c->deadline_ns;
}

const void *grpc_call_connection(const grpc_call *c)
{
    return http_connection(c->r);
}

const char *grpc_call_from(const grpc_call *c)
{
    return http_from(c->r);
}

const tls_identity *grpc_call_peer(const grpc_call *c)
{
    return http_peer(c->r);
}

const char *grpc_call_server_name(const grpc_call *c)
{
    return http_server_name(c->r);
}

bool grpc_call_over_unix(const grpc_call *c)
{
    return http_over_unix(c->r);
}

const char *grpc_call_path(const grpc_call *c)
{
    return http_path(c->r);
}

uint64_t grpc_call_age_ns(const grpc_call *c)
{
    return http_age_ns(c->r);
}

uint64_t grpc_call_left_ns(const grpc_call *c)
{
    uint64_t now = clock_ns();
    return c->deadline_ns > now ? c->deadline_ns - now : 0;
}

int grpc_call_hold(grpc_call *c, size_t n)
{
    return http_hold(c->r, &c->held, n);
}

const char *grpc_call_metadata(const grpc_call *c, const char *lower_name)
{
    return http_header_get(c->r, lower_name);
}

void grpc_call_begin(grpc_call *c, const http_header *metadata, size_t n)
{
    http_header bare[] = {{"content-type", "application/grpc"}, {"grpc-encoding", "gzip"}};
    size_t n_bare = c->gzips ? 2 : 1;
    if (c->begun) return;
    http_header *h = n ? calloc(n + n_bare, sizeof *h) : bare;
    if (!h) {
        h = bare;
        n = 0;
    }
    if (h != bare) memcpy(h, bare, n_bare * sizeof *h);
    for (size_t i = 0; i < n; i++) h[i + n_bare] = metadata[i];
    http_respond_begin(c->r, 200, h, n + n_bare);
    c->begun = true;
    if (h != bare) free(h);
}

/* Head and message in one write; false: out of memory. */
static bool frame(const grpc_call *c, buf *out, const void *msg, size_t n)
{
    uint8_t head[GRPC_FRAME_HEAD] = {0};
    bool gzips = c->gzips && coding_worth(n) & CODING_GZIP;
    buf_append(out, head, sizeof head);
    if (gzips && grpc_gzip(out, msg, n) != 0) out->failed = true;
    if (!gzips && n) buf_append(out, msg, n);
    if (out->failed) return false;
    grpc_frame_head((uint8_t *)out->data, out->len - sizeof head, gzips);
    return true;
}

void grpc_call_send(grpc_call *c, const void *msg, size_t n)
{
    buf out = {0};
    grpc_call_begin(c, NULL, 0);
    if (c->broken) return;
    if (frame(c, &out, msg, n))
        http_respond_write(c->r, out.data, out.len);
    else
        c->broken = true;
    buf_done(&out);
}

bool grpc_call_is_broken(const grpc_call *c)
{
    return c->broken;
}

size_t grpc_call_unsent(const grpc_call *c)
{
    return http_unsent(c->r);
}

void grpc_call_end_with(grpc_call *c, grpc_status status, const char *message, const http_header *metadata,
                        size_t n)
{
    http_request *r = c->r;
    bool begun = c->begun, broken = c->broken;
    http_set_data(r, NULL);
    c->over = true;
    if (!c->busy) grpc_stream_call_free(c);
    if (broken)
        grpc_end_request(r, begun, GRPC_RESOURCE_EXHAUSTED, "out of memory", NULL, 0);
    else
        grpc_end_request(r, begun, status, message, metadata, n);
}

void grpc_call_end(grpc_call *c, grpc_status status, const char *message)
{
    grpc_call_end_with(c, status, message, NULL, 0);
}

/* ---- a stream of requests -------------------------------------------------------------------- */

/* The client broke the rules, or memory is out. */
static void reader_failed(grpc_call *c, int rc)
{
    if (rc == SHOAL_ELIMIT)
        grpc_call_fail(c, GRPC_RESOURCE_EXHAUSTED, "the message is too large");
    else if (rc == SHOAL_EUNSUPPORTED)
        grpc_call_fail(c, GRPC_INTERNAL, GRPC_NO_ENCODING);
    else if (rc == SHOAL_ENOMEM)
        grpc_call_fail(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
    else
        grpc_call_fail(c, GRPC_INTERNAL, "the message frame is malformed");
}

/* Out of a callback: false when it has ended the call, which is gone then. */
static bool grpc_stream_leave(grpc_call *c)
{
    c->busy = false;
    if (!c->over) return true;
    grpc_stream_call_free(c);
    return false;
}

void grpc_stream_begin(grpc_call *c, const grpc_stream_method *m, void *user)
{
    c->stream = m;
    c->stream_user = user;
    grpc_call_on_cancel(c, m->cancelled, user);
    grpc_call_on_drained(c, m->drained, user);
    c->in.max_message = m->max_message ? m->max_message : grpc_server_longest(c->server, c->r);
    c->busy = true;
    m->begin(user, c);
    grpc_stream_leave(c);
}

void grpc_stream_body(void *user, http_request *r, const uint8_t *bytes, size_t n)
{
    grpc_call *c = http_data(r);
    const uint8_t *msg;
    size_t n_msg;
    if (!c) return;
    int rc = n ? grpc_reader_feed(&c->in, bytes, n) : 0;
    c->busy = true;
    while (rc == 0 && !c->over && !c->paused && grpc_reader_has_next(&c->in) && http_take_message(c->r) &&
           (rc = grpc_reader_next(&c->in, &msg, &n_msg)) == 1) {
        c->stream->message(c->stream_user, c, msg, n_msg);
        rc = 0;
    }
    if (!grpc_stream_leave(c)) return;
    int status = http_hold(r, &c->held, c->in.in.len - c->in.at);
    if (rc < 0)
        reader_failed(c, rc);
    else if (status != 0)
        grpc_call_fail(c, grpc_status_of_refusal(status), http_hold_why(status));
}

void grpc_stream_body_end(void *user, http_request *r, int status, const char *why)
{
    grpc_call *c = http_data(r);
    if (!c) return;
    if (status != 0) {
        grpc_call_fail(c, grpc_status_of_refusal(status), why);
        return;
    }
    if (!grpc_reader_is_empty(&c->in)) {
        grpc_call_fail(c, GRPC_INTERNAL, "the last message is cut short");
        return;
    }
    c->busy = true;
    if (c->stream->ended) c->stream->ended(c->stream_user, c);
    grpc_stream_leave(c);
}

void grpc_stream_drained(void *user, http_request *r)
{
    grpc_call *c = http_data(r);
    if (!c || !c->on_drained) return;
    c->busy = true;
    c->on_drained(c->drained_user, c);
    grpc_stream_leave(c);
}

void grpc_call_set_idle(grpc_call *c, bool idle)
{
    http_set_idle(c->r, idle);
}

void grpc_call_pause(grpc_call *c, bool paused)
{
    c->paused = paused;
    http_pause(c->r, paused);
}
