/* route_calls.c: orders that name a route; see route_calls.h. */
#include "calls/route_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/list.h"
#include "routes/language.h"

typedef struct route_calls {
    calls base;
    const env *env;
    calls *inner;
    const route_book *book;
    route_calls_heard heard;
    void *user;
    list_node running;
} route_calls;

typedef struct route_call {
    model_call base;
    list_node link;
    route_calls *b;
    const config_route *route;
    call_order *o;
    call_terms terms;
    call_events ev;
    resolve *resolve;   /* while it is decided */
    model_call *inner;  /* then */
    env_timer *failing; /* it has failed, which is told in the next turn */
    ProtobufCMessage *request;
    json_t *messages;
    bool paused;
    int status;
    char message[400];
} route_call;

/* ---- life of a call ------------------------------------------------------------------------------ */

static void route_calls_call_free(route_call *c)
{
    list_take(&c->link);
    c->b->env->timer_free(c->failing);
    json_decref(c->messages);
    if (c->request) protobuf_c_message_free_unpacked(c->request, NULL);
    call_order_unref(c->o);
    free(c);
}

static void route_calls_cancel(model_call *call)
{
    route_call *c = (route_call *)call;
    resolve_cancel(c->resolve);
    calls_cancel(c->inner);
    route_calls_call_free(c);
}

static void pause(model_call *call, bool paused)
{
    route_call *c = (route_call *)call;
    c->paused = paused;
    calls_pause(c->inner, paused);
}

static call_place where(const model_call *call)
{
    return calls_where(((const route_call *)call)->inner);
}

static void route_calls_fail(void *arg)
{
    route_call *c = arg;
    call_result r = call_result_of(c->o, c->status, c->message);
    c->ev.end(&c->ev, &r);
    route_calls_call_free(c);
}

/* Never inside the function that started it. */
static void fail_later(route_call *c, int status, const char *message)
{
    c->status = status;
    snprintf(c->message, sizeof c->message, "%s", message);
    c->b->env->timer_start(c->failing, 0);
}

/* ---- the call itself ----------------------------------------------------------------------------- */

static void route_calls_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    route_call *c = ev->user;
    c->ev.event(&c->ev, m); /* may cancel: c is not touched again */
}

static void route_calls_on_end(const call_events *ev, const call_result *r)
{
    route_call *c = ev->user;
    c->inner = NULL;
    c->ev.end(&c->ev, r);
    route_calls_call_free(c);
}

static void on_restarted(const call_events *ev)
{
    const route_call *c = ev->user;
    c->ev.restarted(&c->ev);
}

static bool start_inner(route_call *c, const decision *d, const route_facts *f)
{
    call_events ev = {
        .user = c, .event = route_calls_on_event, .end = route_calls_on_end, .takes_back = c->ev.takes_back};
    ev.restarted = c->ev.restarted ? on_restarted : NULL;
    const config_route *last = d->steps[0].route;
    const char *stand_ins[DECIDE_STEPS_MAX];
    call_context ctx = {.key = f->keys[last->key], .stand_ins = stand_ins};
    ctx.order = last->order == ROUTER_BY_HASH && ctx.key == 0 ? ROUTER_BY_TIME : last->order;
    for (size_t i = 1; i < d->n; i++) stand_ins[ctx.n_stand_ins++] = d->steps[i].model;
    call_order *o = call_order_routed(c->o, d->steps[0].model, &ctx);
    c->inner = o ? calls_start(c->b->inner, o, &c->terms, &ev) : NULL;
    call_order_unref(o);
    if (c->inner && c->paused) calls_pause(c->inner, true);
    return c->inner != NULL;
}

static void on_resolved(void *user, const resolved *r)
{
    route_call *c = user;
    char why[200];
    c->resolve = NULL;
    if (r->status != 0) {
        fail_later(c, r->status, shoal_err_text(r->status));
        return;
    }
    if (c->b->heard) c->b->heard(c->b->user, c->o, c->route, r);
    if (r->what == DECIDE_DONE) {
        if (!start_inner(c, r->decision, r->facts)) fail_later(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    snprintf(why, sizeof why, "the route %s has nobody for this call", c->route->name);
    fail_later(c, SHOAL_EUNAVAILABLE, why);
}

/* ---- what an order is about ---------------------------------------------------------------------- */

bool route_calls_fits(call_task task, const Shoal__V1__ModelInfo *info)
{
    bool asked = false;
    if (task == CALL_LIKELIHOOD) task = CALL_GENERATE;
    for (size_t i = 0; i < N_ASKS; i++) {
        const task_endpoint *at = &TASK_ENDPOINTS[i];
        if (!at->does || at->call != task) continue;
        if (task_fits(at->does, info->task, info->n_labels)) return true;
        asked = true;
    }
    return !asked; /* any model can be described, tokenises, ... */
}

/* A stage that renders messages wants a model with a template, and a text stage one that takes the text. */
static bool fits_route_calls(void *user, const Shoal__V1__ModelInfo *info)
{
    const route_call *c = user;
    if (!route_calls_fits(c->o->task, info)) return false;
    return !c->messages || info->has_chat_template;
}

static const char *last_of_user(route_call *c, const char *messages_json)
{
    const char *text = "";
    shoal_err err;
    if (json_parse(&c->messages, messages_json, strlen(messages_json), "messages", &err) != 0) return text;
    for (size_t i = 0; i < json_array_size(c->messages); i++) {
        const json_t *m = json_array_get(c->messages, i);
        const char *role = json_string_value(json_object_get(m, "role"));
        const char *content = json_string_value(json_object_get(m, "content"));
        if (role && content && strcmp(role, "user") == 0) text = content;
    }
    return text;
}

/* Requests that read texts have them as their first field alike. */
static const char *first_input(const ProtobufCMessage *request)
{
    const Shoal__V1__ClassifyRequest *r = (const Shoal__V1__ClassifyRequest *)request;
    return task_field(request, "inputs") && r->n_inputs > 0 ? r->inputs[0]->text : "";
}

static void route_calls_fill(route_call *c, resolve_ask *ask)
{
    const char *text = "";
    unsigned wants = 0;
    size_t n_reply = 0;
    if (c->o->task == CALL_GENERATE) {
        const Shoal__V1__GenerateRequest *g = (const Shoal__V1__GenerateRequest *)c->request;
        n_reply = g->max_tokens;
        text = *g->messages_json ? last_of_user(c, g->messages_json) : g->text;
        if (*g->tools_json) wants |= WANTS_TOOLS;
        if (*g->schema) wants |= WANTS_JSON | WANTS_SCHEMA;
    } else {
        text = first_input(c->request);
    }
    ask->text = text;
    ask->n_text = strlen(text);
    ask->facts = (route_facts){
        .endpoint = "process",
        .path = "",
        .api_key = "",
        .language = language_guess(text, ask->n_text),
        .n_bytes = c->o->n_msg,
        .n_tokens = c->o->n_msg / 4,
        .wants = wants,
        .n_reply = n_reply,
        .keys = {[KEY_PREFIX] = route_hash((const char *)c->o->msg, c->o->n_msg < 1024 ? c->o->n_msg : 1024),
                 [KEY_REQUEST] = route_hash(c->o->request_id, strlen(c->o->request_id))}};
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static int resolve_order(route_call *c)
{
    c->request = call_order_request(c->o);
    c->failing = c->b->env->timer_new(c->b->env->user, route_calls_fail, c);
    if (!c->request || !c->failing) return SHOAL_ENOMEM;
    resolve_ask ask = {.route = c->route,
                       .deadline_ns = c->o->deadline_ns,
                       .task = c->o->task,
                       .user = c,
                       .fits = fits_route_calls,
                       .plain = true,
                       .ctx = call_context_beside(c->o, NULL)};
    route_calls_fill(c, &ask);
    return resolve_start(&c->resolve, c->b->inner, c->b->env, c->b->book, &ask, on_resolved, c);
}

static model_call *route_calls_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    route_calls *b = (route_calls *)base;
    const config_route *route = route_find(b->book, o->model);
    if (!route) return calls_start(b->inner, o, t, ev);
    route_call *c = malloc(sizeof *c);
    if (!c) return NULL;
    *c = (route_call){
        .base = {base->ops}, .b = b, .route = route, .o = call_order_ref(o), .terms = *t, .ev = *ev};
    list_init(&c->link);
    list_put(&b->running, &c->link);
    if (resolve_order(c) == 0) return &c->base;
    route_calls_call_free(c);
    return NULL;
}

/* What a route would come to is known when it is asked. */
static void route_calls_estimate(calls *base, const call_order *o, const call_terms *t, call_estimate *ret)
{
    const route_calls *b = (const route_calls *)base;
    if (route_find(b->book, o->model))
        *ret = (call_estimate){.n_ready = 1};
    else
        calls_estimate(b->inner, o, t, ret);
}

static const Shoal__V1__ModelInfo *info(calls *base, const char *model, bool *ret_known)
{
    const route_calls *b = (const route_calls *)base;
    *ret_known = route_find(b->book, model) != NULL;
    return *ret_known ? NULL : calls_info(b->inner, model, ret_known);
}

static void route_calls_free(calls *base)
{
    route_calls *b = (route_calls *)base;
    for (route_call *c; (c = list_first(&b->running, route_call, link));) route_calls_cancel(&c->base);
    calls_free(b->inner);
    free(b);
}

static const calls_ops OPS = {.start = route_calls_start,
                              .pause = pause,
                              .cancel = route_calls_cancel,
                              .where = where,
                              .estimate = route_calls_estimate,
                              .info = info,
                              .free = route_calls_free};

int route_calls_new(calls **ret, const env *e, calls *inner, const route_book *b, route_calls_heard heard,
                    void *user, shoal_err *err)
{
    route_calls *r = calloc(1, sizeof *r);
    if (!r) return err_nomem(err);
    *r = (route_calls){.base = {&OPS}, .env = e, .inner = inner, .book = b, .heard = heard, .user = user};
    list_init(&r->running);
    *ret = &r->base;
    return 0;
}
