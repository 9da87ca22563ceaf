/* grpc_client.c: a call on a channel: its beginning, what it sends, its end. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "grpc/grpc_internal.h"

enum {
    MAX_REPLY_BYTES = 16 << 20,    /* one message of an answer, unless the caller says otherwise */
    MAX_REQUEST_BYTES = 160 << 20, /* a sound file */
    MAX_UNSENT_BYTES = 4 << 20,
    COMPACT_BYTES = 64 << 10
};

/* ---- its end --------------------------------------------------------------------------------- */

void grpc_client_free(grpc_client_call *c)
{
    buf_done(&c->out);
    buf_done(&c->message);
    grpc_reader_done(&c->in);
    free(c);
}

void grpc_client_detach(grpc_client_call *c)
{
    grpc_link *l = c->link;
    if (c->prev)
        c->prev->next = c->next;
    else
        l->calls = c->next;
    if (c->next) c->next->prev = c->prev;
    nghttp2_session_set_stream_user_data(l->h2, c->stream_id, NULL);
    c->over = true;
}

void grpc_client_end(grpc_client_call *c, grpc_status status, const char *message)
{
    bool busy = c->busy; /* then whoever is calling back frees it */
    grpc_client_detach(c);
    c->busy = true;
    if (c->ev.end) c->ev.end(c->ev.user, status, message);
    if (!busy) grpc_client_free(c);
}

void grpc_client_abort(grpc_client_call *c, uint32_t reset, grpc_status status, const char *message)
{
    grpc_link *l = c->link;
    nghttp2_submit_rst_stream(l->h2, NGHTTP2_FLAG_NONE, c->stream_id, reset);
    grpc_link_mark_dirty(l);
    grpc_client_end(c, status, message);
}

void grpc_client_cancel(grpc_client_call *c)
{
    if (!c || c->over) return;
    grpc_link *l = c->link;
    bool busy = c->busy;
    nghttp2_submit_rst_stream(l->h2, NGHTTP2_FLAG_NONE, c->stream_id, NGHTTP2_CANCEL);
    grpc_client_detach(c);
    grpc_link_mark_dirty(l);
    if (!busy) grpc_client_free(c);
}

/* ---- requests -------------------------------------------------------------------------------- */

static ssize_t read_requests(nghttp2_session *h2, int32_t id, uint8_t *to, size_t max, uint32_t *flags,
                             nghttp2_data_source *source, void *user)
{
    grpc_client_call *c = nghttp2_session_get_stream_user_data(h2, id);
    if (!c) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* cancelled: the stream is being reset */
    size_t left = c->out.len - c->out_at, n = left < max ? left : max;
    if (left == 0 && !c->half_closed) {
        c->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n) memcpy(to, c->out.data + c->out_at, n);
    c->out_at += n;
    if (n == left) {
        buf_done(&c->out);
        c->out_at = 0;
        c->drained = c->ev.drained && !c->half_closed;
        if (c->drained) c->link->has_drained = true;
        if (c->drained) grpc_link_mark_dirty(c->link);
        if (c->half_closed) *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)n;
}

static void resume(grpc_client_call *c)
{
    if (c->deferred && nghttp2_is_fatal(nghttp2_session_resume_data(c->link->h2, c->stream_id)))
        transport_close(c->link->io, "out of memory");
    c->deferred = false;
    grpc_link_mark_dirty(c->link);
}

static int put_message(grpc_client_call *c, const void *msg, size_t n)
{
    uint8_t head[GRPC_FRAME_HEAD];
    if (c->out_at > COMPACT_BYTES && c->out_at > c->out.len / 2) {
        buf_consume(&c->out, c->out_at);
        c->out_at = 0;
    }
    grpc_frame_head(head, n, false);
    if (buf_reserve(&c->out, n + sizeof head) != 0) {
        c->out.failed = false; /* what was queued before is whole */
        return SHOAL_ENOMEM;
    }
    buf_append(&c->out, head, sizeof head);
    if (n) buf_append(&c->out, msg, n);
    return 0;
}

int grpc_client_send(grpc_client_call *c, const void *msg, size_t n)
{
    if (c->over || c->half_closed) return SHOAL_EINVALID;
    if (n > MAX_REQUEST_BYTES) return SHOAL_ELIMIT;
    size_t waits = grpc_client_unsent(c);
    if (waits && (n > c->max_unsent || waits > c->max_unsent - n)) return SHOAL_EFULL;
    int rc = put_message(c, msg, n);
    if (rc == 0) resume(c);
    return rc;
}

size_t grpc_client_unsent(const grpc_client_call *c)
{
    return c->out.len - c->out_at;
}

void grpc_client_half_close(grpc_client_call *c)
{
    if (!c || c->over || c->half_closed) return;
    c->half_closed = true;
    c->drained = false;
    resume(c);
}

static grpc_client_call *first_drained(const grpc_link *l)
{
    for (grpc_client_call *c = l->calls; c; c = c->next)
        if (c->drained) return c;
    return NULL;
}

void grpc_client_tell_drained(grpc_link *l)
{
    if (!l->has_drained) return;
    l->has_drained = false;
    for (grpc_client_call *c; !transport_is_closing(l->io) && (c = first_drained(l));) {
        c->drained = false;
        if (grpc_client_unsent(c)) continue; /* more was sent meanwhile: another event follows it */
        c->busy = true;
        c->ev.drained(c->ev.user);
        c->busy = false;
        if (c->over) grpc_client_free(c);
    }
}

/* ---- its beginning --------------------------------------------------------------------------- */

static nghttp2_nv nv_of(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

/* What the next call says otherwise: HPACK's tables are kept, here and there, for what comes again. */
static nghttp2_nv nv_once(const char *name, const char *value)
{
    nghttp2_nv nv = nv_of(name, value);
    nv.flags = NGHTTP2_NV_FLAG_NO_INDEX;
    return nv;
}

static int32_t submit(grpc_client_call *c, const char *path, const grpc_call_options *opt)
{
    grpc_link *l = c->link;
    char timeout[16];
    nghttp2_nv *nv = calloc(opt->n_metadata + 8, sizeof *nv);
    size_t n = 0;
    if (!nv) return -1;
    nv[n++] = nv_of(":method", "POST");
    nv[n++] = nv_of(":scheme", l->ch->tls ? "https" : "http");
    nv[n++] = nv_of(":path", path);
    nv[n++] = nv_of(":authority", l->ch->authority);
    nv[n++] = nv_of("te", "trailers");
    nv[n++] = nv_of("content-type", "application/grpc");
    nv[n++] = nv_of("user-agent", "shoal/" SHOAL_VERSION);
    if (c->deadline_ns) {
        uint64_t now = clock_ns();
        grpc_timeout_format(c->deadline_ns > now ? c->deadline_ns - now : 1, timeout);
        nv[n++] = nv_once("grpc-timeout", timeout);
    }
    for (size_t i = 0; i < opt->n_metadata; i++)
        if (opt->metadata[i].value) nv[n++] = nv_once(opt->metadata[i].name, opt->metadata[i].value);
    nghttp2_data_provider body = {.source = {.ptr = c}, .read_callback = read_requests};
    int32_t id = nghttp2_submit_request(l->h2, NULL, nv, n, &body, c);
    free(nv);
    return id;
}

static grpc_client_call *new_call(grpc_channel *ch, const grpc_call_options *opt,
                                  const grpc_client_events *ev)
{
    grpc_link *l = ch->link;
    if (!ch->connected || transport_is_closing(l->io) || !nghttp2_session_check_request_allowed(l->h2))
        return NULL;
    grpc_client_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (grpc_client_call){.link = l, .deadline_ns = opt->deadline_ns, .ev = *ev, .grpc_status = -1};
    c->in.max_message = opt->max_message ? opt->max_message : MAX_REPLY_BYTES;
    c->max_unsent = opt->max_unsent ? opt->max_unsent : MAX_UNSENT_BYTES;
    return c;
}

/* Onto the link; NULL, and it is freed, if that fails. */
static grpc_client_call *grpc_client_begin(grpc_client_call *c, const char *path,
                                           const grpc_call_options *opt)
{
    grpc_link *l = c->link;
    c->stream_id = submit(c, path, opt);
    if (c->stream_id < 0) {
        grpc_client_free(c);
        return NULL;
    }
    c->next = l->calls;
    if (c->next) c->next->prev = c;
    l->calls = c;
    if (c->deadline_ns) grpc_link_arm_deadline(l);
    grpc_link_mark_dirty(l);
    return c;
}

grpc_client_call *grpc_call_open(grpc_channel *ch, const char *path, const grpc_call_options *opt,
                                 const grpc_client_events *ev)
{
    grpc_call_options none = {0};
    grpc_client_call *c = new_call(ch, opt ? opt : &none, ev);
    return c ? grpc_client_begin(c, path, opt ? opt : &none) : NULL;
}

grpc_client_call *grpc_call_start(grpc_channel *ch, const char *path, const void *msg, size_t n,
                                  const http_header *metadata, size_t n_metadata, uint64_t deadline_ns,
                                  const grpc_client_events *ev)
{
    grpc_call_options opt = {.metadata = metadata, .n_metadata = n_metadata, .deadline_ns = deadline_ns};
    grpc_client_call *c = n <= MAX_REQUEST_BYTES ? new_call(ch, &opt, ev) : NULL;
    if (!c) return NULL;
    if (put_message(c, msg, n) != 0) {
        grpc_client_free(c);
        return NULL;
    }
    c->half_closed = true;
    return grpc_client_begin(c, path, &opt);
}

void grpc_client_pause(grpc_client_call *c, bool paused)
{
    if (!c || c->over || c->paused == paused) return;
    c->paused = paused;
    c->due = true;
    if (!paused) grpc_link_mark_dirty(c->link);
}
