/* backend.c: calls of models: from a name to a replica, with another try while nothing has come back, and a
 * short wait while no replica is up. */
#include "gateway/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "cluster/route.h"

/* A worker that died is back within a second. Calls that come meanwhile wait for it for so long
 * rather than fail, so that a client that sends its request again is answered. */
#define HOLD_MS      2000
#define HELD_MAX     512
#define HELD_LOOK_MS 5

/* Events of a stream are unpacked into this much memory, used again for each: no malloc per token. */
#define SCRATCH_BYTES (32 * 1024)

typedef struct scratch {
    size_t used;
    _Alignas(16) char mem[SCRATCH_BYTES];
} scratch;

typedef void (*reply_fn)(backend_call *c, const backend_result *r);

struct backend_call {
    backend *b;
    backend_call *next, *prev; /* all calls */
    const char *path;
    const ProtobufCMessageDescriptor *reply_type;
    char model[128], request_id[132];
    uint64_t deadline_ns, start_ns, sent_ns;
    uint64_t hold_until_ns; /* 0: fail at once when no replica is ready */
    uint8_t *msg;           /* packed request, kept for another try */
    size_t n_msg;
    unsigned n_tokens;                  /* of input: bytes over four, close enough to compare calls */
    unsigned n_unanswered;              /* of them, as far as the replica has not begun to answer */
    unsigned n_tokens_max;              /* of a prompt: no token has less than a byte */
    uint64_t tried[ROUTER_EXCLUDE_MAX]; /* lives that failed this call */
    size_t n_tried;
    bool waiting; /* in no replica's hands: the timer looks after it */
    bool got_message;
    bool learns; /* its time tells how fast the replica is */
    int status;  /* set while waiting: fail with this */
    char message[512];
    replica *r;    /* where it is, or was last; held */
    uint64_t life; /* of r, when it was sent there */
    grpc_client_call *call;
    ProtobufCMessage *reply;
    reply_fn deliver;
    backend_generate_events events;
    backend_transcribe_events heard;
    void (*done)(void); /* the caller's, cast back by deliver */
    void *user;
};

struct backend {
    uv_loop_t *loop;
    registry *g;
    uv_timer_t *timer; /* runs while calls wait; freed by its close */
    bool timer_on;
    size_t n_waiting;
    backend_call *calls;
    scratch scratch;
};

/* ---- life ---------------------------------------------------------------------------------------- */

static void free_handle(uv_handle_t *h)
{
    free(h);
}

int backend_new(backend **ret, uv_loop_t *loop, registry *g, shoal_err *err)
{
    backend *b = calloc(1, sizeof *b);
    uv_timer_t *t = b ? malloc(sizeof *t) : NULL;
    if (!t) {
        free(b);
        return err_nomem(err);
    }
    uv_timer_init(loop, t);
    t->data = b;
    b->loop = loop;
    b->g = g;
    b->timer = t;
    *ret = b;
    return 0;
}

void backend_free(backend *b)
{
    if (!b) return;
    while (b->calls) backend_cancel(b->calls);
    uv_close((uv_handle_t *)b->timer, free_handle);
    free(b);
}

registry *backend_registry(backend *b)
{
    return b->g;
}

const replica *backend_find(backend *b, const char *model, bool *ret_known)
{
    const replica_set *set = registry_find(b->g, model);
    const replica *found = NULL;
    for (size_t i = 0; set && i < set->n && !found; i++)
        if (set->replicas[i]->info) found = set->replicas[i];
    if (ret_known) *ret_known = set != NULL;
    return found;
}

static void unlink_call(backend_call *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->b->calls = c->next;
    if (c->next) c->next->prev = c->prev;
}

static void call_free(backend_call *c)
{
    if (c->waiting) c->b->n_waiting--;
    unlink_call(c);
    replica_unref(c->r);
    if (c->reply) protobuf_c_message_free_unpacked(c->reply, NULL);
    free(c->msg);
    free(c);
}

/* ---- ending -------------------------------------------------------------------------------------- */

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

static void finish(backend_call *c, int status, const char *message)
{
    const Shoal__V1__ModelInfo *info = c->r ? c->r->info : NULL;
    backend_result r = {
        .status = status,
        .message = message,
        .model = c->model,
        .replica_id = c->r ? c->r->id : "",
        .version = info ? or_empty(info->version) : "",
        .quantisation = info ? or_empty(info->quantisation) : "",
        .digest = info ? or_empty(info->digest) : "",
        .ms = clock_ms_since(c->start_ns),
        .retryable = status == SHOAL_EUNAVAILABLE || status == SHOAL_EFULL,
    };
    c->deliver(c, &r);
    call_free(c);
}

/* The replica has gone through the call's input. */
static void input_done(backend_call *c, uint64_t now)
{
    load_moved(&c->r->load, c->n_unanswered, now);
    c->n_unanswered = 0;
}

static void leave_replica(backend_call *c)
{
    if (!c->call) return;
    load_leave(&c->r->load, c->n_unanswered, clock_ns());
    c->n_unanswered = 0;
    c->call = NULL;
}

void backend_cancel(backend_call *c)
{
    if (!c) return;
    if (c->call) {
        grpc_client_call *gc = c->call;
        leave_replica(c);
        grpc_client_cancel(gc);
    }
    call_free(c);
}

void backend_pause(backend_call *c, bool paused)
{
    if (c && c->call) grpc_client_pause(c->call, paused);
}

/* ---- trying -------------------------------------------------------------------------------------- */

static void look_after_waiting(uv_timer_t *t);

static void set_timer(backend *b)
{
    bool want = b->n_waiting > 0;
    if (want == b->timer_on) return;
    b->timer_on = want;
    if (want)
        uv_timer_start(b->timer, look_after_waiting, 0, HELD_LOOK_MS);
    else
        uv_timer_stop(b->timer);
}

static void park(backend_call *c, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Into the timer's care: with a status it fails on the next turn of the loop (never inside the call
 * that started it), with 0 it is tried again until hold_until_ns. */
static void park(backend_call *c, int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->message, sizeof c->message, fmt, ap);
    va_end(ap);
    c->status = status;
    if (!c->waiting) c->b->n_waiting++;
    c->waiting = true;
    set_timer(c->b);
}

/* The one sentence of why a model that is down is down. */
static void describe_down(backend *b, const char *model, char *out, size_t n)
{
    const replica_set *set = registry_find(b->g, model);
    for (size_t i = 0; set && i < set->n; i++) {
        const replica *r = set->replicas[i];
        if (r->state != REPLICA_FAILED) continue;
        snprintf(out, n, "the model %.64s is not served: %s", model, r->reason);
        return;
    }
    snprintf(out, n, "the worker serving %.64s is not running; send the request again", model);
}

static void on_message(void *user, const uint8_t *msg, size_t n);
static void on_end(void *user, grpc_status status, const char *message);

static bool start_on(backend_call *c, replica *r)
{
    http_header id = {"x-request-id", c->request_id};
    grpc_client_events ev = {.user = c, .message = on_message, .end = on_end};
    replica_unref(c->r);
    c->r = replica_ref(r);
    c->life = r->life;
    c->sent_ns = clock_ns();
    c->call = grpc_call_start(r->channel, c->path, c->msg, c->n_msg, &id, c->request_id[0] ? 1 : 0,
                              c->deadline_ns, &ev);
    if (!c->call) return false;
    c->n_unanswered = c->n_tokens;
    load_begin(&r->load, c->n_tokens, c->sent_ns);
    return true;
}

static void hold_or_fail(backend_call *c, uint64_t now)
{
    bool hold = now < c->hold_until_ns && c->n_tried == 0 && route_may_return(c->b->g, c->model, NULL, 0) &&
                (c->waiting || c->b->n_waiting < HELD_MAX);
    if (hold) {
        park(c, 0, "%s", "");
        return;
    }
    char why[400];
    describe_down(c->b, c->model, why, sizeof why);
    park(c, SHOAL_EUNAVAILABLE, "%s", why);
}

/* Find a replica and start there, or park. */
static void try_start(backend_call *c)
{
    uint64_t now = clock_ns();
    if (c->deadline_ns && now >= c->deadline_ns) {
        park(c, SHOAL_EDEADLINE, "the deadline passed before %s could start", c->model);
        return;
    }
    router_request q = {.deadline_ns = c->deadline_ns,
                        .exclude = c->tried,
                        .n_exclude = c->n_tried,
                        .n_tokens = c->n_tokens,
                        .n_tokens_max = c->n_tokens_max};
    router_decision d;
    replica *r;
    int rc = route_pick(c->b->g, c->model, &q, &d, &r);
    if (rc == SHOAL_ENOTFOUND) {
        park(c, rc, "the model '%s' does not exist here", c->model);
    } else if (rc == SHOAL_EDEADLINE) {
        park(c, rc, "the deadline cannot be met: %s would take about %.0f ms", c->model, d.expected_ms);
    } else if (rc != 0 || !start_on(c, r)) {
        hold_or_fail(c, now);
    } else if (c->waiting) {
        c->waiting = false;
        c->b->n_waiting--;
    }
}

/* One that may be looked at now: its callbacks may end any other call, so the list is walked anew. */
static backend_call *next_failed(backend *b)
{
    for (backend_call *c = b->calls; c; c = c->next)
        if (c->waiting && c->status != 0) return c;
    return NULL;
}

static void look_after_waiting(uv_timer_t *t)
{
    backend *b = t->data;
    for (backend_call *c = b->calls; c; c = c->next)
        if (c->waiting && c->status == 0) try_start(c);
    size_t n = b->n_waiting; /* calls that fail now, not those that their callbacks start */
    for (backend_call *c; n > 0 && (c = next_failed(b)); n--) finish(c, c->status, c->message);
    set_timer(b);
}

/* ---- replies ------------------------------------------------------------------------------------- */

static void *scratch_alloc(void *data, size_t n)
{
    scratch *s = data;
    size_t at = (s->used + 15) & ~(size_t)15;
    if (n > sizeof s->mem || at > sizeof s->mem - n) return malloc(n);
    s->used = at + n;
    return s->mem + at;
}

static void scratch_free(void *data, void *p)
{
    scratch *s = data;
    if ((char *)p < s->mem || (char *)p >= s->mem + sizeof s->mem) free(p);
}

/* Without this event the answer would lack a piece. */
static void leave_without_memory(backend_call *c)
{
    grpc_client_call *gc = c->call;
    leave_replica(c);
    grpc_client_cancel(gc);
    finish(c, SHOAL_ENOMEM, "out of memory");
}

static void on_heard(backend_call *c, const uint8_t *msg, size_t n)
{
    Shoal__V1__TranscribeEvent *ev = shoal__v1__transcribe_event__unpack(NULL, n, msg);
    if (!ev) {
        leave_without_memory(c);
        return;
    }
    if (c->n_unanswered > 0) input_done(c, clock_ns());
    c->heard.event(c->heard.user, ev); /* may cancel: c is not touched again */
    shoal__v1__transcribe_event__free_unpacked(ev, NULL);
}

static void on_event(backend_call *c, const uint8_t *msg, size_t n)
{
    scratch *s = &c->b->scratch;
    ProtobufCAllocator a = {scratch_alloc, scratch_free, s};
    s->used = 0;
    Shoal__V1__GenerateEvent *ev = shoal__v1__generate_event__unpack(&a, n, msg);
    if (!ev) {
        leave_without_memory(c);
        return;
    }
    if (ev->delta && c->n_unanswered > 0) input_done(c, clock_ns());
    c->events.event(c->events.user, ev); /* may cancel: c is not touched again */
    shoal__v1__generate_event__free_unpacked(ev, &a);
}

static void on_message(void *user, const uint8_t *msg, size_t n)
{
    backend_call *c = user;
    c->got_message = true;
    if (c->events.event)
        on_event(c, msg, n);
    else if (c->heard.event)
        on_heard(c, msg, n);
    else if (c->reply_type && !c->reply &&
             !(c->reply = protobuf_c_message_unpack(c->reply_type, NULL, n, msg)))
        leave_without_memory(c);
}

/* What the replica spent on this call: since it last gave something back, if the call was there by then. */
static void learn_cost(backend_call *c, uint64_t moved_ns)
{
    uint64_t from = moved_ns > c->sent_ns ? moved_ns : c->sent_ns;
    cost_learn(&c->r->load.cost, c->n_tokens, clock_ms_since(from), clock_ns());
}

static bool has_tried(const backend_call *c, const replica *r)
{
    for (size_t i = 0; i < c->n_tried; i++)
        if (c->tried[i] == r->life) return true;
    return false;
}

/* Not this life of it again. False when so many failed that there is no place for it: enough was tried. */
static bool exclude(backend_call *c)
{
    if (c->n_tried == ROUTER_EXCLUDE_MAX) return false;
    c->tried[c->n_tried++] = c->life;
    return true;
}

static bool other_replica_may_do(const backend_call *c, int rc)
{
    if (c->got_message || (rc != SHOAL_EUNAVAILABLE && rc != SHOAL_EFULL)) return false;
    const replica_set *set = registry_find(c->b->g, c->model);
    for (size_t i = 0; set && i < set->n_ready; i++)
        if (!has_tried(c, set->replicas[i])) return true; /* within one more than were tried */
    return false;
}

static void on_end(void *user, grpc_status status, const char *message)
{
    backend_call *c = user;
    uint64_t moved_ns = c->r->load.moved_ns;
    leave_replica(c);
    int rc = status == GRPC_OK ? 0 : grpc_status_to_err((int)status);
    if (rc == 0 && c->reply_type && !c->reply) rc = SHOAL_EPROTOCOL;
    if (rc == 0) {
        if (c->learns) learn_cost(c, moved_ns);
        finish(c, 0, "");
        return;
    }
    LOG(LOG_WARN, "gateway", "call_failed", LOG_S("model", c->model), LOG_S("replica", c->r->id),
        LOG_S("status", grpc_status_name((int)status)), LOG_S("request_id", c->request_id));
    if (exclude(c) && other_replica_may_do(c, rc)) {
        try_start(c);
        return;
    }
    char text[512];
    if (rc == SHOAL_EUNAVAILABLE)
        snprintf(text, sizeof text, "the worker serving %s stopped; send the request again", c->model);
    else
        snprintf(text, sizeof text, "%s", message && *message ? message : shoal_err_text(rc));
    finish(c, rc, text);
}

/* ---- the calls ----------------------------------------------------------------------------------- */

static backend_call *call_new(backend *b, const char *model, const char *path, const ProtobufCMessage *req,
                              const backend_context *ctx, reply_fn deliver)
{
    backend_call *c = calloc(1, sizeof *c);
    size_t n = protobuf_c_message_get_packed_size(req);
    uint8_t *msg = malloc(n ? n : 1);
    if (!c || !msg) {
        free(c);
        free(msg);
        return NULL;
    }
    protobuf_c_message_pack(req, msg);
    *c = (backend_call){.b = b,
                        .next = b->calls,
                        .path = path,
                        .deadline_ns = ctx ? ctx->deadline_ns : 0,
                        .start_ns = clock_ns(),
                        .msg = msg,
                        .n_msg = n,
                        .n_tokens = (unsigned)(n / 4),
                        .deliver = deliver};
    snprintf(c->model, sizeof c->model, "%s", model);
    snprintf(c->request_id, sizeof c->request_id, "%s", ctx && ctx->request_id ? ctx->request_id : "");
    c->hold_until_ns = c->start_ns + (uint64_t)HOLD_MS * 1000000u;
    if (b->calls) b->calls->prev = c;
    b->calls = c;
    return c;
}

static void deliver_generate(backend_call *c, const backend_result *r)
{
    c->events.end(c->events.user, r);
}

backend_call *backend_generate(backend *b, const char *model, const Shoal__V1__GenerateRequest *req,
                               const backend_context *ctx, const backend_generate_events *ev)
{
    backend_call *c = call_new(b, model, "/shoal.v1.Worker/Generate", &req->base, ctx, deliver_generate);
    if (!c) return NULL;
    c->events = *ev;
    c->n_tokens_max = (unsigned)c->n_msg;
    try_start(c);
    return c;
}

static void deliver_transcribe(backend_call *c, const backend_result *r)
{
    c->heard.end(c->heard.user, r);
}

backend_call *backend_transcribe(backend *b, const char *model, const Shoal__V1__TranscribeRequest *req,
                                 const backend_context *ctx, const backend_transcribe_events *ev)
{
    backend_call *c = call_new(b, model, "/shoal.v1.Worker/Transcribe", &req->base, ctx, deliver_transcribe);
    if (!c) return NULL;
    c->heard = *ev;
    try_start(c);
    return c;
}

#define UNARY(name, Request, Reply, descriptor, method)                                                    \
    typedef void (*name##_done)(void *user, const backend_result *r, const Reply *reply);                  \
    static void deliver_##name(backend_call *c, const backend_result *r)                                   \
    {                                                                                                      \
        ((name##_done)c->done)(c->user, r, r->status == 0 ? (const Reply *)c->reply : NULL);               \
    }                                                                                                      \
    static backend_call *start_##name(backend *b, const char *model, const Request *req,                   \
                                      const backend_context *ctx, name##_done done, void *user)            \
    {                                                                                                      \
        backend_call *c = call_new(b, model, "/shoal.v1.Worker/" method, &req->base, ctx, deliver_##name); \
        if (!c) return NULL;                                                                               \
        c->reply_type = &descriptor;                                                                       \
        c->done = (void (*)(void))done;                                                                    \
        c->learns = true;                                                                                  \
        c->user = user;                                                                                    \
        return c;                                                                                          \
    }

UNARY(classify, Shoal__V1__ClassifyRequest, Shoal__V1__ClassifyReply, shoal__v1__classify_reply__descriptor,
      "Classify")
UNARY(tag, Shoal__V1__TagRequest, Shoal__V1__TagReply, shoal__v1__tag_reply__descriptor, "Tag")
UNARY(embed, Shoal__V1__EmbedRequest, Shoal__V1__EmbedReply, shoal__v1__embed_reply__descriptor, "Embed")
UNARY(detect, Shoal__V1__DetectSpeechRequest, Shoal__V1__DetectSpeechReply,
      shoal__v1__detect_speech_reply__descriptor, "DetectSpeech")
UNARY(score, Shoal__V1__ScoreRequest, Shoal__V1__ScoreReply, shoal__v1__score_reply__descriptor, "Score")
UNARY(image, Shoal__V1__ImageRequest, Shoal__V1__ClassifyReply, shoal__v1__classify_reply__descriptor,
      "ClassifyImage")
UNARY(fill_mask, Shoal__V1__FillMaskRequest, Shoal__V1__FillMaskReply, shoal__v1__fill_mask_reply__descriptor,
      "FillMask")
UNARY(describe, Shoal__V1__DescribeRequest, Shoal__V1__ModelInfo, shoal__v1__model_info__descriptor,
      "Describe")

backend_call *backend_classify(backend *b, const char *model, const Shoal__V1__ClassifyRequest *req,
                               const backend_context *ctx, classify_done done, void *user)
{
    backend_call *c = start_classify(b, model, req, ctx, done, user);
    if (c) try_start(c);
    return c;
}

backend_call *backend_tag(backend *b, const char *model, const Shoal__V1__TagRequest *req,
                          const backend_context *ctx, tag_done done, void *user)
{
    backend_call *c = start_tag(b, model, req, ctx, done, user);
    if (c) try_start(c);
    return c;
}

backend_call *backend_embed(backend *b, const char *model, const Shoal__V1__EmbedRequest *req,
                            const backend_context *ctx, embed_done done, void *user)
{
    backend_call *c = start_embed(b, model, req, ctx, done, user);
    if (c) try_start(c);
    return c;
}

backend_call *backend_detect(backend *b, const char *model, const Shoal__V1__DetectSpeechRequest *req,
                             const backend_context *ctx, detect_done done, void *user)
{
    backend_call *c = start_detect(b, model, req, ctx, done, user);
    if (c) try_start(c);
    return c;
}

backend_call *backend_score(backend *b, const char *model, const Shoal__V1__ScoreRequest *req,
                            const backend_context *ctx, score_done done, void *user)
{
    backend_call *c = start_score(b, model, req, ctx, done, user);
    if (c) try_start(c);
    return c;
}

backend_call *backend_classify_image(backend *b, const char *model, const Shoal__V1__ImageRequest *req,
                                     const backend_context *ctx, image_done done, void *user)
{
    backend_call *c = start_image(b, model, req, ctx, done, user);
    if (c) try_start(c);
    return c;
}

backend_call *backend_fill_mask(backend *b, const char *model, const Shoal__V1__FillMaskRequest *req,
                                const backend_context *ctx, fill_mask_done done, void *user)
{
    backend_call *c = start_fill_mask(b, model, req, ctx, done, user);
    if (c) try_start(c);
    return c;
}

/* Asked in order to know whether the worker is there: it does not wait for one that is down. */
backend_call *backend_describe(backend *b, const char *model, const backend_context *ctx, describe_done done,
                               void *user)
{
    Shoal__V1__DescribeRequest req = SHOAL__V1__DESCRIBE_REQUEST__INIT;
    backend_call *c = start_describe(b, model, &req, ctx, done, user);
    if (!c) return NULL;
    c->hold_until_ns = 0;
    c->learns = false;
    try_start(c);
    return c;
}
