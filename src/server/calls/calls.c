/* calls.c: orders, and the typed wrappers that follow from the table of tasks; see calls.h. */
#include "calls/calls.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *call_fault_name(call_fault f)
{
    static const char *const NAMES[] = {
#define FAULT_NAME(e, n) [e] = n,
        CALL_FAULT_TABLE(FAULT_NAME)
#undef FAULT_NAME
    };
    return NAMES[f];
}

/* ---- orders -------------------------------------------------------------------------------------- */

static size_t size_of(const char *s)
{
    return s ? strlen(s) + 1 : 1;
}

static const char *calls_put(char **at, const char *s)
{
    char *to = *at;
    size_t n = size_of(s);
    if (s)
        memcpy(to, s, n);
    else
        *to = '\0';
    *at += n;
    return to;
}

/* The adapter that a request names, "" where it names none or can name none. */
static const char *adapter_of(const ProtobufCMessage *request)
{
    const char *const *adapter = task_field(request, "adapter");
    return adapter ? *adapter : "";
}

/* What a worker that does the task may not do. */
static unsigned needs_of(call_task task, const ProtobufCMessage *request)
{
    unsigned needs = *adapter_of(request) ? ROUTER_ADAPTERS : 0;
    if (task == CALL_LIKELIHOOD) needs |= ROUTER_LIKELIHOOD;
    if (task == CALL_VOTE) needs |= ROUTER_BALLOTS;
    if (request->descriptor != &shoal__v1__generate_request__descriptor) return needs;
    const Shoal__V1__GenerateRequest *g = (const Shoal__V1__GenerateRequest *)request;
    if (g->n_beams > 1) needs |= ROUTER_BEAMS;
    if (g->constraint != SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__NONE) needs |= ROUTER_GRAMMAR;
    if (*g->chat_template) needs |= ROUTER_TEMPLATES;
    return needs;
}

/* With room for a request of n_msg bytes, which *ret_msg points to. */
static call_order *order_alloc(call_task task, const char *model, const char *adapter,
                               const call_context *ctx, size_t n_msg, uint8_t **ret_msg)
{
    size_t n_text = size_of(model) + size_of(adapter) + size_of(ctx->request_id) + size_of(ctx->traceparent) +
                    size_of(ctx->why);
    size_t n_list = ctx->n_stand_ins * sizeof(const char *);
    for (size_t i = 0; i < ctx->n_stand_ins; i++) n_text += size_of(ctx->stand_ins[i]);
    call_order *o = malloc(sizeof *o + n_list + n_text + n_msg);
    if (!o) return NULL;
    const char **list = (const char **)(o + 1);
    char *at = (char *)(o + 1) + n_list;
    *o = (call_order){.refs = 1,
                      .task = task,
                      .request = ctx->request,
                      .spans = ctx->spans,
                      .deadline_ns = ctx->deadline_ns,
                      .n_msg = n_msg,
                      .order = ctx->order,
                      .key = ctx->key,
                      .pages = ctx->pages,
                      .stand_ins = list,
                      .n_stand_ins = ctx->n_stand_ins,
                      .limits = ctx->limits,
                      .latency = ctx->latency};
    if (ctx->feed) o->feed = call_feed_ref(ctx->feed);
    for (size_t i = 0; i < ctx->n_stand_ins; i++) list[i] = calls_put(&at, ctx->stand_ins[i]);
    o->model = calls_put(&at, model);
    o->adapter = calls_put(&at, adapter);
    o->request_id = calls_put(&at, ctx->request_id);
    o->traceparent = calls_put(&at, ctx->traceparent);
    o->why = calls_put(&at, ctx->why);
    o->msg = *ret_msg = (uint8_t *)at;
    return o;
}

/* The field "latency" as it stands in a packed message: what follows a message adds to it. Its number is that
 * of all requests that have one. n 0: interactive, or this task's requests have none. */
enum { LATENCY_BYTES = 3 };
static size_t pack_latency(uint8_t out[LATENCY_BYTES], call_task task, Shoal__V1__Latency latency)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field_by_name(CALL_TASKS[task].request, "latency");
    if (!f || latency == SHOAL__V1__LATENCY__INTERACTIVE) return 0;
    uint32_t key = f->id << 3; /* a varint */
    assert(key >= 0x80 && key < 0x4000 && (uint32_t)latency < 0x80);
    out[0] = (uint8_t)(key | 0x80);
    out[1] = (uint8_t)(key >> 7);
    out[2] = (uint8_t)latency;
    return LATENCY_BYTES;
}

call_order *call_order_new(call_task task, const char *model, const ProtobufCMessage *request,
                           const call_context *ctx)
{
    static const call_context NONE = {0};
    uint8_t *msg, latency[LATENCY_BYTES];
    assert(request->descriptor == CALL_TASKS[task].request);
    size_t n = protobuf_c_message_get_packed_size(request);
    size_t n_latency = pack_latency(latency, task, ctx ? ctx->latency : SHOAL__V1__LATENCY__INTERACTIVE);
    call_order *o = order_alloc(task, model, adapter_of(request), ctx ? ctx : &NONE, n + n_latency, &msg);
    if (!o) return NULL;
    protobuf_c_message_pack(request, msg);
    memcpy(msg + n, latency, n_latency);
    o->needs = needs_of(task, request);
    return o;
}

static call_context context_of(const call_order *o)
{
    return (call_context){.request_id = o->request_id,
                          .request = o->request,
                          .spans = o->spans,
                          .traceparent = o->traceparent,
                          .deadline_ns = o->deadline_ns,
                          .why = o->why,
                          .feed = o->feed,
                          .order = o->order,
                          .key = o->key,
                          .pages = o->pages,
                          .stand_ins = o->stand_ins,
                          .n_stand_ins = o->n_stand_ins,
                          .limits = o->limits,
                          .latency = o->latency};
}

call_context call_context_named(const call_context *ctx, const char *why)
{
    return (call_context){.request_id = ctx->request_id,
                          .request = ctx->request,
                          .spans = ctx->spans,
                          .traceparent = ctx->traceparent,
                          .deadline_ns = ctx->deadline_ns,
                          .latency = ctx->latency,
                          .why = why};
}

bool call_context_keep(call_context *ret, const call_context *ctx, const char *why, arena *mem)
{
    *ret = call_context_named(ctx, why);
    ret->order = ctx->order;
    ret->key = ctx->key;
    ret->request_id = arena_strdup(mem, ctx->request_id ? ctx->request_id : "");
    ret->traceparent = ctx->traceparent ? arena_strdup(mem, ctx->traceparent) : NULL;
    return ret->request_id && (!ctx->traceparent || ret->traceparent);
}

call_context call_context_beside(const call_order *o, const char *why)
{
    call_context ctx = context_of(o);
    if (why) ctx.why = why;
    ctx.feed = NULL;
    ctx.pages = 0; /* it begins with something else */
    ctx.n_stand_ins = 0;
    ctx.limits = (reply_limits){0};
    return ctx;
}

call_order *call_order_more(const call_order *o, const ProtobufCMessage *more, uint64_t n_resumed)
{
    call_context ctx = context_of(o);
    uint8_t *msg;
    assert(more->descriptor == CALL_TASKS[o->task].request);
    size_t n = protobuf_c_message_get_packed_size(more);
    call_order *both = order_alloc(o->task, o->model, o->adapter, &ctx, o->n_msg + n, &msg);
    if (!both) return NULL;
    memcpy(msg, o->msg, o->n_msg);
    protobuf_c_message_pack(more, msg + o->n_msg);
    both->needs = o->needs;
    both->resumes = true;
    both->n_resumed = n_resumed;
    return both;
}

/* An order that is only looked with has the size of a message and none. */
static call_order *copy_for(const call_order *o, const char *model, const call_context *ctx)
{
    uint8_t *msg;
    call_order *other = order_alloc(o->task, model, o->adapter, ctx, o->n_msg, &msg);
    if (other && o->msg) memcpy(msg, o->msg, o->n_msg);
    if (other) other->needs = o->needs;
    return other;
}

call_order *call_order_for(const call_order *o, const char *model)
{
    call_context ctx = context_of(o);
    ctx.feed = NULL;
    ctx.n_stand_ins = 0;
    return copy_for(o, model, &ctx);
}

call_order *call_order_under(const call_order *o, uint64_t span)
{
    call_context ctx = context_of(o);
    ctx.spans.parent = span;
    call_order *other = copy_for(o, o->model, &ctx);
    if (!other) return NULL;
    other->resumes = o->resumes;
    other->n_resumed = o->n_resumed;
    return other;
}

call_order *call_order_as(const call_order *o, call_task task, call_feed *feed)
{
    call_context ctx = context_of(o);
    ctx.feed = feed;
    ctx.n_stand_ins = 0;
    uint8_t *msg;
    assert(CALL_TASKS[task].request == CALL_TASKS[o->task].request);
    call_order *other = order_alloc(task, o->model, o->adapter, &ctx, o->n_msg, &msg);
    if (!other) return NULL;
    memcpy(msg, o->msg, o->n_msg);
    other->needs = task == CALL_VOTE ? o->needs | ROUTER_BALLOTS : o->needs & ~(unsigned)ROUTER_BALLOTS;
    return other;
}

call_order *call_order_routed(const call_order *o, const char *model, const call_context *how)
{
    call_context ctx = context_of(o);
    ctx.order = how->order;
    ctx.key = how->key;
    ctx.stand_ins = how->stand_ins;
    ctx.n_stand_ins = how->n_stand_ins;
    return copy_for(o, model, &ctx);
}

call_order *call_order_ref(call_order *o)
{
    o->refs++;
    return o;
}

void call_order_unref(call_order *o)
{
    if (!o || --o->refs > 0) return;
    call_feed_unref(o->feed);
    free(o);
}

ProtobufCMessage *call_order_request(const call_order *o)
{
    return protobuf_c_message_unpack(CALL_TASKS[o->task].request, NULL, o->n_msg, o->msg);
}

call_result call_result_of(const call_order *o, int status, const char *message)
{
    return (call_result){.status = status,
                         .message = message,
                         .model = o->model,
                         .replica_id = "",
                         .version = "",
                         .quantisation = "",
                         .digest = "",
                         .identity = "",
                         .adapter_digest = ""};
}

void call_terms_pin(call_terms *t, const char *identity, const char *adapter_digest)
{
    if (!*t->identity && identity) snprintf(t->identity, sizeof t->identity, "%s", identity);
    if (!*t->adapter_digest && adapter_digest)
        snprintf(t->adapter_digest, sizeof t->adapter_digest, "%s", adapter_digest);
}

bool call_terms_avoids(const call_terms *t, uint64_t life)
{
    for (unsigned i = 0; i < t->n_avoid; i++)
        if (t->avoid[i] == life) return true;
    return false;
}

void call_terms_avoid(call_terms *t, uint64_t life)
{
    if (life == 0 || call_terms_avoids(t, life)) return;
    if (t->n_avoid == CALL_AVOID_MAX) memmove(t->avoid, t->avoid + 1, --t->n_avoid * sizeof *t->avoid);
    t->avoid[t->n_avoid++] = life;
}

/* ---- the seam ------------------------------------------------------------------------------------ */

model_call *calls_start(calls *c, call_order *o, const call_terms *t, const call_events *ev)
{
    return c->ops->start(c, o, t, ev);
}

void calls_pause(model_call *call, bool paused)
{
    if (call) call->ops->pause(call, paused);
}

void calls_cancel(model_call *call)
{
    if (call) call->ops->cancel(call);
}

bool call_place_works(const call_place *p)
{
    return p->is_at_work && p->is_at_work(p->who);
}

call_place call_place_of(const call_result *r, const char *model)
{
    return (call_place){.life = r->life,
                        .replica_id = r->replica_id,
                        .digest = r->digest,
                        .identity = r->identity,
                        .exact_resume = r->exact_resume,
                        .adapter_digest = r->adapter_digest,
                        .model = model};
}

call_place calls_where(const model_call *call)
{
    return call ? call->ops->where(call) : (call_place){0};
}

void calls_estimate(calls *c, const call_order *o, const call_terms *t, call_estimate *ret)
{
    c->ops->estimate(c, o, t, ret);
}

const Shoal__V1__ModelInfo *calls_info(calls *c, const char *model, bool *ret_known)
{
    bool known;
    return c->ops->info(c, model, ret_known ? ret_known : &known);
}

void calls_free(calls *c)
{
    if (c) c->ops->free(c);
}

/* ---- the typed wrappers -------------------------------------------------------------------------- */

static model_call *start_new(calls *c, call_task task, const char *model, const ProtobufCMessage *request,
                             const call_context *ctx, const call_events *ev)
{
    static const call_terms ANY = {0};
    call_order *o = call_order_new(task, model, request, ctx);
    model_call *call = o ? calls_start(c, o, &ANY, ev) : NULL;
    call_order_unref(o);
    return call;
}

#define STREAM_WRAPPER(e, name, method, Request, request, Reply, reply, flags)             \
    static void event_##name(const call_events *ev, const ProtobufCMessage *m)             \
    {                                                                                      \
        ev->to.name.event(ev->user, (const Shoal__V1__##Reply *)m);                        \
    }                                                                                      \
    static void end_##name(const call_events *ev, const call_result *r)                    \
    {                                                                                      \
        ev->to.name.end(ev->user, r);                                                      \
    }                                                                                      \
    model_call *calls_##name(calls *c, const char *model, const Shoal__V1__##Request *req, \
                             const call_context *ctx, const calls_##name##_events *given)  \
    {                                                                                      \
        call_events ev = {.user = given->user, .event = event_##name, .end = end_##name};  \
        ev.to.name.event = given->event;                                                   \
        ev.to.name.end = given->end;                                                       \
        return start_new(c, e, model, &req->base, ctx, &ev);                               \
    }
CALL_STREAM_TABLE(STREAM_WRAPPER)
#undef STREAM_WRAPPER

#define UNARY_WRAPPER(e, name, method, Request, request, Reply, reply_, flags)                  \
    static void end_##name(const call_events *ev, const call_result *r)                         \
    {                                                                                           \
        ev->to.name(ev->user, r, r->status == 0 ? (const Shoal__V1__##Reply *)r->reply : NULL); \
    }                                                                                           \
    model_call *calls_##name(calls *c, const char *model, const Shoal__V1__##Request *req,      \
                             const call_context *ctx, calls_##name##_done done, void *user)     \
    {                                                                                           \
        call_events ev = {.user = user, .end = end_##name};                                     \
        ev.to.name = done;                                                                      \
        return start_new(c, e, model, &req->base, ctx, &ev);                                    \
    }
CALL_UNARY_TABLE(UNARY_WRAPPER)
#undef UNARY_WRAPPER

static void end_unary(const call_events *ev, const call_result *r)
{
    ev->to.unary(ev->user, r, r->status == 0 ? r->reply : NULL);
}

model_call *calls_unary(calls *c, call_task task, const char *model, const ProtobufCMessage *req,
                        const call_context *ctx, calls_unary_done done, void *user)
{
    call_events ev = {.user = user, .end = end_unary};
    ev.to.unary = done;
    return start_new(c, task, model, req, ctx, &ev);
}
