/* replica_calls.c: from a model's name to one call of one replica; see replica_calls.h. */
#include "calls/replica_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "base/list.h"
#include "cluster/energy.h"
#include "cluster/route.h"

/* Events of a stream are unpacked into this much memory, used again for each: no malloc per token. */
#define SCRATCH_BYTES    (32 * 1024)
#define SILENT_MOVES_MAX 2

typedef struct scratch {
    size_t used;
    _Alignas(16) char mem[SCRATCH_BYTES];
} scratch;

typedef struct replica_calls {
    calls base;
    const env *env;
    registry *g;
    const call_observer *observer;
    list_node running, failing; /* every call is in one of them */
    env_timer *timer;           /* runs while calls are failing */
    scratch scratch;
} replica_calls;

typedef struct replica_call {
    model_call base;
    list_node link;
    replica_calls *b;
    call_order *o;
    call_events ev;
    uint64_t start_ns, sent_ns;
    unsigned n_tokens;     /* of input: bytes over four, close enough to compare calls */
    unsigned n_unanswered; /* of them, as far as the replica has not begun to answer */
    replica *r;            /* NULL: it reached none */
    uint64_t life;
    unsigned n_failed; /* lives that this call, or an earlier try of it, is not to ask */
    grpc_client_call *call;
    feed_reader feed; /* what is still to be sent */
    bool sent_all;
    ProtobufCMessage *reply; /* of a unary call, in reply_memory */
    arena *reply_memory;
    call_phase phases[CALL_PHASES_MAX]; /* as its last message told them */
    size_t n_phases;
    double cpu_ms;
    call_usage usage;
    int status; /* of one that is failing */
    call_fault fault;
    char message[512];
} replica_call;

/* ---- ending -------------------------------------------------------------------------------------- */

static void replica_calls_call_free(replica_call *c)
{
    list_take(&c->link);
    arena_free(c->reply_memory);
    replica_unref(c->r);
    call_order_unref(c->o);
    free(c);
}

static double ms_since(const replica_calls *b, uint64_t ns)
{
    return (double)(b->env->now_ns(b->env->user) - ns) / 1e6;
}

static bool is_lasting(const replica_calls *b, const char *model)
{
    const replica_set *set = registry_find(b->g, model);
    return set && set->n == 0 && set->absent && set->lasting;
}

/* It reached a replica, and is over there. */
static void tell_attempt(const replica_call *c, int status, call_fault fault)
{
    if (!c->r) return;
    call_attempt a = {.replica_id = c->r->id,
                      .identity = c->r->info ? c->r->info->identity : "",
                      .start_ns = c->sent_ns,
                      .end_ns = c->b->env->now_ns(c->b->env->user),
                      .status = status,
                      .fault = fault,
                      .n_phases = c->n_phases,
                      .cpu_ms = c->cpu_ms,
                      .usage = c->usage};
    memcpy(a.phases, c->phases, sizeof a.phases);
    call_confidences known = {0};
    if (status == 0 && c->reply) call_confidences_of(c->o->task, c->reply, &known);
    if (known.n > 0) a.confidences = &known;
    call_observer_attempt(c->b->observer, c->o, &a);
}

static void replica_calls_finish(replica_call *c, int status, call_fault fault, const char *message)
{
    tell_attempt(c, status, fault);
    const Shoal__V1__ModelInfo *info = c->r ? c->r->info : NULL;
    call_result r = call_result_of(c->o, status, message);
    r.fault = fault;
    r.lasting = fault == CALL_FAULT_ABSENT && is_lasting(c->b, c->o->model);
    r.ms = ms_since(c->b, c->start_ns);
    r.life = c->life;
    if (c->r) r.replica_id = c->r->id;
    if (info) {
        r.version = info->version;
        r.quantisation = info->quantisation;
        r.digest = info->digest;
        r.identity = info->identity;
        r.exact_resume = info->exact_resume;
        r.adapter_digest = route_adapter_digest(info, c->o->adapter);
    }
    if (status == 0) r.reply = c->reply;
    c->ev.end(&c->ev, &r);
    replica_calls_call_free(c);
}

/* The replica has gone through the call's input. */
static void input_done(replica_call *c, uint64_t now)
{
    load_moved(&c->r->load, c->n_unanswered, now);
    c->n_unanswered = 0;
}

static void leave_replica(replica_call *c)
{
    feed_leave(&c->feed);
    if (!c->call) return;
    load_leave(&c->r->load, c->n_unanswered, c->b->env->now_ns(c->b->env->user));
    c->n_unanswered = 0;
    c->call = NULL;
}

static void replica_calls_cancel(model_call *call)
{
    replica_call *c = (replica_call *)call;
    grpc_client_call *gc = c->call;
    leave_replica(c);
    registry_connector(c->b->g)->cancel(gc);
    tell_attempt(c, SHOAL_ECANCELLED, CALL_FAULT_NONE);
    replica_calls_call_free(c);
}

static void pause(model_call *call, bool paused)
{
    replica_call *c = (replica_call *)call;
    if (c->call) registry_connector(c->b->g)->pause(c->call, paused);
}

static bool is_at_work(const void *who)
{
    return replica_is_at_work(who);
}

static call_place where(const model_call *call)
{
    const replica_call *c = (const replica_call *)call;
    if (!c->call) return (call_place){0};
    return (call_place){.life = c->life,
                        .pages = c->r->life == c->life ? c->r->pages : 0,
                        .silent = c->r->silent && c->r->life == c->life,
                        .is_at_work = c->r->life == c->life ? is_at_work : NULL,
                        .who = c->r,
                        .replica_id = c->r->id,
                        .digest = c->r->info ? c->r->info->digest : "",
                        .identity = c->r->info ? c->r->info->identity : "",
                        .exact_resume = c->r->info && c->r->info->exact_resume,
                        .adapter_digest = route_adapter_digest(c->r->info, c->o->adapter),
                        .model = c->o->model};
}

/* Never inside the function that started it. */
static void fail_later(replica_call *c, int status, call_fault fault, const char *message)
{
    replica_calls *b = c->b;
    bool first = list_first(&b->failing, replica_call, link) == NULL;
    c->status = status;
    c->fault = fault;
    snprintf(c->message, sizeof c->message, "%s", message);
    list_move(&b->failing, &c->link);
    if (first) b->env->timer_start(b->timer, 0);
}

static void end_failing(void *arg)
{
    replica_calls *b = arg;
    list_node now; /* those that fail now, not those that their callbacks start */
    list_init(&now);
    for (replica_call *c; (c = list_first(&b->failing, replica_call, link));) list_move(&now, &c->link);
    for (replica_call *c; (c = list_first(&now, replica_call, link));)
        replica_calls_finish(c, c->status, c->fault, c->message);
}

/* ---- looking for a replica ----------------------------------------------------------------------- */

static bool may_return(const replica_calls *b, const call_order *o, const call_terms *t)
{
    return route_may_return(b->g, o->model, *t->identity ? t->identity : NULL, o->needs, t->avoid,
                            t->n_avoid);
}

/* 0 and a replica, or a code as router_plan has them. */
static int replica_calls_pick(replica_calls *b, const call_order *o, const call_terms *t,
                              router_decision *ret_decision, replica **ret)
{
    *ret_decision = (router_decision){0};
    if (o->deadline_ns && b->env->now_ns(b->env->user) >= o->deadline_ns) return SHOAL_EDEADLINE;
    router_request q = {.identity = *t->identity ? t->identity : NULL,
                        .adapter_digest = *t->adapter_digest ? t->adapter_digest : NULL,
                        .needs = o->needs,
                        .deadline_ns = o->deadline_ns,
                        .exclude = t->avoid,
                        .n_exclude = t->n_avoid,
                        .key = o->key,
                        .pages = o->pages,
                        .n_tokens = (unsigned)(o->n_msg / 4),
                        .n_tokens_max = CALL_TASKS[o->task].flags & CALL_PROMPT ? (unsigned)o->n_msg : 0};
    int rc =
        route_pick(b->g, o->model, o->adapter, &q, &(router_choice){.order = o->order}, ret_decision, ret);
    /* One that has the capability may be starting. */
    return rc == SHOAL_EUNSUPPORTED && may_return(b, o, t) ? SHOAL_EUNAVAILABLE : rc;
}

/* The one sentence of why a model that is down is down. */
static void describe_down(replica_calls *b, const char *model, char *out, size_t n)
{
    const replica_set *set = registry_find(b->g, model);
    for (size_t i = 0; set && i < set->n; i++) {
        const replica *r = set->replicas[i];
        if (r->state != REPLICA_FAILED) continue;
        snprintf(out, n, "the model %.64s is not served: %s", model, r->reason);
        return;
    }
    if (set && set->n == 0 && set->absent)
        snprintf(out, n, "the model %.64s is not served now: %s", model, set->absent);
    else
        snprintf(out, n, "the worker serving %.64s is not running; send the request again", model);
}

static void describe_lack(const char *model, unsigned lacks, char *out, size_t n)
{
    char names[300];
    router_capabilities_put(names, sizeof names, lacks);
    snprintf(out, n, "no replica of %.64s has what this request needs: %s", model, names);
}

static void describe_refusal(replica_calls *b, const call_order *o, int rc, const router_decision *d,
                             char *out, size_t n)
{
    if (rc == SHOAL_ENOTFOUND)
        snprintf(out, n, "the model '%s' does not exist here", o->model);
    else if (rc == SHOAL_EDEADLINE && d->expected_ms > 0)
        snprintf(out, n, "the deadline cannot be met: %s would take %.0f ms at least", o->model,
                 d->expected_ms);
    else if (rc == SHOAL_EDEADLINE)
        snprintf(out, n, "the deadline passed before %s could start", o->model);
    else if (d->why == ROUTER_INCAPABLE)
        describe_lack(o->model, d->lacks, out, n);
    else if (d->why == ROUTER_KEPT_HOME)
        snprintf(out, n, "%.64s lives at other sites alone, and cluster.spill (%s) lets nothing go there",
                 o->model, router_policy_name(registry_spill(b->g)->policy));
    else
        describe_down(b, o->model, out, n);
}

static void replica_calls_estimate(calls *base, const call_order *o, const call_terms *t, call_estimate *ret)
{
    replica_calls *b = (replica_calls *)base;
    router_decision d;
    replica *r;
    *ret = (call_estimate){.status = replica_calls_pick(b, o, t, &d, &r)};
    if (ret->status == SHOAL_EUNAVAILABLE) ret->may_return = may_return(b, o, t);
    if (ret->status != 0) return;
    ret->n_ready = registry_find(b->g, o->model)->n_ready;
    unsigned width = r->info && r->info->n_parallel ? r->info->n_parallel : 1;
    ret->expected_ms = d.expected_ms;
    ret->step_ms = r->stats ? r->stats->step_ms : 0;
    ret->load = (double)r->load.n_in_flight / width;
    ret->energy = cluster_energy_of(b->g, r);
    if (r->stats && r->stats->n_requests > 0)
        ret->mean_reply = (double)r->stats->n_generated_tokens / (double)r->stats->n_requests;
}

static const Shoal__V1__ModelInfo *info(calls *base, const char *model, bool *ret_known)
{
    const replica_set *set = registry_find(((replica_calls *)base)->g, model);
    *ret_known = set != NULL;
    for (size_t i = 0; set && i < set->n; i++)
        if (set->replicas[i]->info) return set->replicas[i]->info;
    return NULL;
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
static void leave_without_memory(replica_call *c)
{
    grpc_client_call *gc = c->call;
    leave_replica(c);
    registry_connector(c->b->g)->cancel(gc);
    replica_calls_finish(c, SHOAL_ENOMEM, CALL_FAULT_NONE, "out of memory");
}

/* Has the replica gone through the input when it says this? */
static bool answers(call_task task, const ProtobufCMessage *m)
{
    const Shoal__V1__GenerateEvent *ev = (const Shoal__V1__GenerateEvent *)m;
    return (task != CALL_GENERATE && task != CALL_VOTE) || ev->delta || ev->ballot;
}

static void replica_calls_on_event(replica_call *c, const uint8_t *msg, size_t n)
{
    scratch *s = &c->b->scratch;
    ProtobufCAllocator a = {scratch_alloc, scratch_free, s};
    s->used = 0;
    ProtobufCMessage *m = protobuf_c_message_unpack(CALL_TASKS[c->o->task].reply, &a, n, msg);
    if (!m) {
        leave_without_memory(c);
        return;
    }
    if (c->n_unanswered > 0 && answers(c->o->task, m)) input_done(c, c->b->env->now_ns(c->b->env->user));
    size_t n_phases = call_phases_of(c->o->task, m, c->phases);
    if (n_phases) c->n_phases = n_phases;
    if (n_phases) c->cpu_ms = call_cpu_ms_of(c->o->task, m);
    if (n_phases) c->usage = call_usage_of(c->o->task, m);
    c->ev.event(&c->ev, m); /* may cancel: c is not touched again */
    protobuf_c_message_free_unpacked(m, &a);
}

static void *reply_alloc(void *data, size_t n)
{
    return arena_alloc(data, n);
}

static void reply_free(void *data, void *p) {}

/* A classifier's reply is a hundred blocks: they come and go as one. NULL: out of memory. */
static ProtobufCMessage *unpack_reply(replica_call *c, const uint8_t *msg, size_t n)
{
    enum { UNPACKED_TIMES = 5, LEAST_BYTES = 512, MOST_BYTES = 64 << 10 };
    size_t chunk = n < MOST_BYTES / UNPACKED_TIMES ? n * UNPACKED_TIMES : MOST_BYTES;
    c->reply_memory = arena_new(chunk > LEAST_BYTES ? chunk : LEAST_BYTES);
    ProtobufCAllocator a = {reply_alloc, reply_free, c->reply_memory};
    return c->reply_memory ? protobuf_c_message_unpack(CALL_TASKS[c->o->task].reply, &a, n, msg) : NULL;
}

static void note_time(replica_call *c)
{
    c->n_phases = call_phases_of(c->o->task, c->reply, c->phases);
    c->cpu_ms = call_cpu_ms_of(c->o->task, c->reply);
}

static void replica_calls_on_message(void *user, const uint8_t *msg, size_t n)
{
    replica_call *c = user;
    const call_task_info *task = &CALL_TASKS[c->o->task];
    if (task->streams)
        replica_calls_on_event(c, msg, n);
    else if (!c->reply && !(c->reply = unpack_reply(c, msg, n)))
        leave_without_memory(c);
    else
        note_time(c);
}

/* What the replica spent on this call: since it last gave something back, if the call was there by then. */
static void learn_cost(replica_call *c, uint64_t moved_ns)
{
    uint64_t from = moved_ns > c->sent_ns ? moved_ns : c->sent_ns;
    linear_cost_learn(&c->r->load.cost, c->n_tokens, ms_since(c->b, from),
                      c->b->env->now_ns(c->b->env->user));
}

/* A worker's own statuses are those of proto/worker.proto; the others come of the link. */
static call_fault fault_of(const replica_call *c, grpc_status status)
{
    bool linked = c->r->channel && registry_connector(c->b->g)->is_connected(c->r->channel);
    switch (status) {
    case GRPC_OK: return c->reply || CALL_TASKS[c->o->task].streams ? CALL_FAULT_NONE : CALL_FAULT_NONSENSE;
    case GRPC_RESOURCE_EXHAUSTED: return CALL_FAULT_FULL;
    case GRPC_UNAVAILABLE:
    case GRPC_ABORTED:
    case GRPC_CANCELLED: return linked ? CALL_FAULT_LEAVES : CALL_FAULT_LOST;
    case GRPC_UNKNOWN:
    case GRPC_DATA_LOSS:
    case GRPC_INTERNAL: return CALL_FAULT_NONSENSE;
    default: return CALL_FAULT_NONE;
    }
}

static void replica_calls_on_end(void *user, grpc_status status, const char *message)
{
    replica_call *c = user;
    uint64_t moved_ns = c->r->load.moved_ns;
    call_fault fault = fault_of(c, status);
    leave_replica(c);
    int rc = status == GRPC_OK ? 0 : grpc_status_to_err((int)status);
    if (rc == 0 && fault == CALL_FAULT_NONSENSE) rc = SHOAL_EPROTOCOL;
    if (rc == 0) {
        if (CALL_TASKS[c->o->task].flags & CALL_LEARNS) learn_cost(c, moved_ns);
        replica_calls_finish(c, 0, CALL_FAULT_NONE, "");
        return;
    }
    LOG(LOG_WARN, "calls", "call_failed", LOG_S("model", c->o->model), LOG_S("replica", c->r->id),
        LOG_S("status", grpc_status_name((int)status)), LOG_S("fault", call_fault_name(fault)),
        LOG_S("request_id", c->o->request_id));
    if (fault == CALL_FAULT_LOST || fault == CALL_FAULT_LEAVES) {
        rc = SHOAL_EUNAVAILABLE;
        snprintf(c->message, sizeof c->message, "the worker serving %s stopped; send the request again",
                 c->o->model);
    } else {
        snprintf(c->message, sizeof c->message, "%s", message && *message ? message : shoal_err_text(rc));
    }
    replica_calls_finish(c, rc, fault, c->message);
}

/* ---- starting ------------------------------------------------------------------------------------ */

/* As much of what follows the request as keeps the link busy; the rest waits in the feed. */
static void send_more(void *user)
{
    replica_call *c = user;
    const connector *to = registry_connector(c->b->g);
    const uint8_t *msg;
    size_t n;
    int rc = 0;
    while (rc == 0 && to->unsent(c->call) < GRPC_CALM_BYTES && (msg = feed_peek(&c->feed, &n))) {
        rc = to->send(c->call, msg, n);
        if (rc == 0) feed_took(&c->feed);
    }
    if (rc == SHOAL_ENOMEM || rc == SHOAL_ELIMIT) {
        grpc_client_call *gc = c->call;
        leave_replica(c);
        to->cancel(gc);
        fail_later(c, rc, CALL_FAULT_NONE, shoal_err_text(rc));
    } else if (!c->sent_all && feed_is_read(&c->feed)) {
        c->sent_all = true;
        to->half_close(c->call);
    }
}

/* A call whose request is followed by others. */
static bool open_feed(replica_call *c, replica *r, const grpc_call_options *opt)
{
    const connector *to = registry_connector(c->b->g);
    grpc_client_events ev = {
        .user = c, .message = replica_calls_on_message, .drained = send_more, .end = replica_calls_on_end};
    c->call = to->stream(r->channel, CALL_TASKS[c->o->task].path, opt, &ev);
    if (!c->call) return false;
    if (to->send(c->call, c->o->msg, c->o->n_msg) == 0 && feed_join(&c->feed, c->o->feed, send_more, c))
        return true;
    to->cancel(c->call);
    c->call = NULL;
    return false;
}

static bool start_on(replica_call *c, replica *r)
{
    grpc_client_events ev = {.user = c, .message = replica_calls_on_message, .end = replica_calls_on_end};
    http_header metadata[2];
    size_t n = 0;
    if (*c->o->request_id) metadata[n++] = (http_header){"x-request-id", c->o->request_id};
    if (*c->o->traceparent) metadata[n++] = (http_header){"traceparent", c->o->traceparent};
    c->sent_ns = c->b->env->now_ns(c->b->env->user);
    grpc_call_options opt = {.metadata = metadata, .n_metadata = n, .deadline_ns = c->o->deadline_ns};
    if (c->o->feed)
        open_feed(c, r, &opt);
    else
        c->call = registry_connector(c->b->g)->start(r->channel, CALL_TASKS[c->o->task].path, c->o->msg,
                                                     c->o->n_msg, metadata, n, c->o->deadline_ns, &ev);
    if (!c->call) return false;
    c->r = replica_ref(r);
    c->life = r->life;
    c->n_unanswered = c->n_tokens;
    load_begin(&r->load, c->n_tokens, c->sent_ns);
    replica_gets_call(r);
    if (c->o->feed) send_more(c);
    return true;
}

static model_call *replica_calls_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    replica_calls *b = (replica_calls *)base;
    replica_call *c = malloc(sizeof *c);
    if (!c) return NULL;
    *c = (replica_call){.base = {base->ops},
                        .b = b,
                        .o = call_order_ref(o),
                        .ev = *ev,
                        .start_ns = b->env->now_ns(b->env->user),
                        .n_failed = t->n_avoid,
                        .n_tokens = (unsigned)(o->n_msg / 4)};
    list_init(&c->link);
    list_put(&b->running, &c->link);
    if (o->feed && !call_feed_is_kept(o->feed)) {
        fail_later(c, SHOAL_EUNAVAILABLE, CALL_FAULT_NONE,
                   "the worker stopped when more of the upload had come than is kept for another; send the "
                   "request again");
        return &c->base;
    }
    router_decision d;
    replica *r;
    char why[512];
    int rc = replica_calls_pick(b, o, t, &d, &r);
    if (rc == 0 && start_on(c, r)) {
        r->load.n_spilled += d.why == ROUTER_SPILLED;
        return &c->base;
    }
    if (rc == 0) rc = SHOAL_EUNAVAILABLE;
    describe_refusal(b, o, rc, &d, why, sizeof why);
    fail_later(c, rc, rc == SHOAL_EUNAVAILABLE ? CALL_FAULT_ABSENT : CALL_FAULT_NONE, why);
    return &c->base;
}

/* ---- leaving a replica --------------------------------------------------------------------------- */

static void replica_calls_leave(replica_call *c, const char *why)
{
    grpc_client_call *gc = c->call;
    leave_replica(c);
    registry_connector(c->b->g)->cancel(gc);
    fail_later(c, SHOAL_EUNAVAILABLE, CALL_FAULT_LEAVES, why);
}

/* An upload that is not kept cannot be sent to another. */
static bool may_move(const replica_call *c)
{
    return !c->o->feed || call_feed_is_kept(c->o->feed);
}

/* Could another replica take the call now? Any file will do: whoever moves the call sees to that. */
static bool other_is_there(replica_call *c)
{
    call_terms t = {0};
    router_decision d;
    replica *r;
    call_terms_avoid(&t, c->life);
    return replica_calls_pick(c->b, c->o, &t, &d, &r) == 0;
}

/* What a replica that drains has begun it finishes, which may take long for streams: where another one can go
 * on, they do so at once. */
static bool leaves_draining(replica_call *c)
{
    return CALL_TASKS[c->o->task].streams && may_move(c) && other_is_there(c);
}

/* Its machine may have vanished, or have no time: another replica has an answer sooner. What has been moved
 * for that reason more than once stays, so that a request that itself makes workers silent does so to few. */
static bool leaves_silent(replica_call *c)
{
    return c->n_failed < SILENT_MOVES_MAX && may_move(c) && other_is_there(c);
}

/* No source knows it any more. Of one that did not answer, its machine is gone, and so are its calls; of
 * another one a gateway that lost sight of it may still get its answers. */
static bool leaves_dropped(replica_call *c)
{
    bool is_unary = !CALL_TASKS[c->o->task].streams;
    return may_move(c) && (c->r->silent || (is_unary && other_is_there(c)));
}

/* The calls of one replica that the rule is true of, as one list; ends come later, from the loop. */
static void leave_where(replica_calls *b, const replica *r, bool (*rule)(replica_call *c), const char *why)
{
    list_node here;
    list_init(&here);
    list_each (c, &b->running, replica_call, link) {
        if (c->r == r && c->call && rule(c)) list_move(&here, &c->link);
    }
    for (replica_call *c; (c = list_first(&here, replica_call, link));) replica_calls_leave(c, why);
}

static void on_replica(void *user, const registry_event *e)
{
    replica_calls *b = user;
    if (e->what == REGISTRY_SILENT)
        leave_where(b, e->replica, leaves_silent, "the worker's machine does not answer");
    else if (e->what == REGISTRY_DROP)
        leave_where(b, e->replica, leaves_dropped, "the worker's machine is gone");
    else if (e->what == REGISTRY_CHANGE && e->replica->state == REPLICA_DRAINING)
        leave_where(b, e->replica, leaves_draining, "the worker drains");
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void replica_calls_free(calls *base)
{
    replica_calls *b = (replica_calls *)base;
    for (replica_call *c; (c = list_first(&b->running, replica_call, link));) replica_calls_cancel(&c->base);
    for (replica_call *c; (c = list_first(&b->failing, replica_call, link));) replica_calls_call_free(c);
    registry_unlisten(b->g, on_replica, b);
    b->env->timer_free(b->timer);
    free(b);
}

static const calls_ops OPS = {.start = replica_calls_start,
                              .pause = pause,
                              .cancel = replica_calls_cancel,
                              .where = where,
                              .estimate = replica_calls_estimate,
                              .info = info,
                              .free = replica_calls_free};

int replica_calls_new(calls **ret, registry *g, const call_observer *observer, shoal_err *err)
{
    replica_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    *b = (replica_calls){.base = {&OPS}, .env = registry_env(g), .g = g, .observer = observer};
    list_init(&b->running);
    list_init(&b->failing);
    b->timer = b->env->timer_new(b->env->user, end_failing, b);
    int rc = b->timer ? registry_listen(g, on_replica, b, err) : err_nomem(err);
    if (rc != 0) {
        b->env->timer_free(b->timer);
        free(b);
        return rc;
    }
    *ret = &b->base;
    return 0;
}
