/* fallback_calls.c: who answers instead; see fallback_calls.h. */
#include "calls/fallback_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "calls/queue.h"

typedef struct fallback_calls {
    calls base;
    const env *env;
    calls *inner;
    fallback_options o;
    uint64_t *away_ns; /* by rule: when its model was last found away; 0: it was not */
    queue running;
} fallback_calls;

typedef struct fallback_call {
    model_call base;
    queue link;
    fallback_calls *b;
    call_order *o;
    call_terms terms;
    call_events ev;
    model_call *inner;
    const fallback_rule *rule; /* NULL: nobody stands in for its model */
    size_t n_asked;            /* stand-ins so far */
    bool spoke, paused;
    uint64_t start_ns;
    char why[320]; /* the wanted model is away */
} fallback_call;

static uint64_t now_ns(const fallback_calls *b)
{
    return b->env->now_ns(b->env->user);
}

/* ---- life of a call ------------------------------------------------------------------------------ */

static void call_free(fallback_call *c)
{
    queue_take(&c->link);
    call_order_unref(c->o);
    free(c);
}

static void cancel(model_call *call)
{
    fallback_call *c = (fallback_call *)call;
    calls_cancel(c->inner);
    call_free(c);
}

static void pause(model_call *call, bool paused)
{
    fallback_call *c = (fallback_call *)call;
    c->paused = paused;
    calls_pause(c->inner, paused);
}

static call_place where(const model_call *call)
{
    const fallback_call *c = (const fallback_call *)call;
    call_place p = calls_where(c->inner);
    if (c->n_asked > 0) {
        p.wanted = c->o->model;
        p.why = c->why;
    }
    return p;
}

/* A stand-in's result says whom it stands in for; when none was there, it is told as the wanted model's. */
static void finish(fallback_call *c, const call_result *ended)
{
    call_result r = *ended;
    bool nobody = r.fault == CALL_FAULT_ABSENT && c->n_asked > 0;
    if (nobody) {
        r.model = c->o->model;
        r.message = c->why;
    } else if (c->n_asked > 0) {
        r.wanted = c->o->model;
        r.why = c->why;
    }
    r.ms = (double)(now_ns(c->b) - c->start_ns) / 1e6;
    c->ev.end(&c->ev, &r);
    call_free(c);
}

/* ---- asking -------------------------------------------------------------------------------------- */

static void on_event(const call_events *ev, const ProtobufCMessage *m)
{
    fallback_call *c = ev->user;
    c->spoke = true;
    c->ev.event(&c->ev, m); /* may cancel: c is not touched again */
}

static void on_end(const call_events *ev, const call_result *r);

static bool start_order(fallback_call *c, call_order *o, const call_terms *t)
{
    call_events ev = {.user = c, .event = on_event, .end = on_end};
    c->inner = o ? calls_start(c->b->inner, o, t, &ev) : NULL;
    if (c->inner && c->paused) calls_pause(c->inner, true);
    return c->inner != NULL;
}

/* Whoever falls to a stand-in has waited enough: it answers now or the next one is asked. The last one may be
 * waited for as any model. */
static bool ask_next(fallback_call *c)
{
    const char *to = c->rule->to[c->n_asked++];
    call_terms t = {.patience_ms = c->n_asked < c->rule->n_to ? 1 : 0};
    call_order *o = call_order_for(c->o, to);
    bool started = start_order(c, o, &t);
    call_order_unref(o);
    if (!started) return false;
    LOG(LOG_WARN, "calls", "degraded", LOG_S("wanted", c->o->model), LOG_S("asked", to), LOG_S("why", c->why),
        LOG_S("request_id", c->o->request_id));
    if (c->b->o.degraded) c->b->o.degraded(c->b->o.user, c->o->model, to);
    return true;
}

static uint64_t *away(const fallback_call *c)
{
    return &c->b->away_ns[c->rule - c->b->o.rules];
}

static void on_end(const call_events *ev, const call_result *r)
{
    fallback_call *c = ev->user;
    c->inner = NULL;
    if (c->rule && c->n_asked == 0 && r->status == 0) *away(c) = 0;
    bool absent = r->fault == CALL_FAULT_ABSENT && r->status == SHOAL_EUNAVAILABLE;
    if (!c->rule || c->spoke || !absent || c->n_asked == c->rule->n_to) {
        finish(c, r);
        return;
    }
    if (c->n_asked == 0) {
        snprintf(c->why, sizeof c->why, "%s", r->message);
        *away(c) = now_ns(c->b);
    }
    if (ask_next(c)) return;
    call_result none = call_result_of(c->o, SHOAL_ENOMEM, "out of memory");
    finish(c, &none);
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static bool names_adapter(const call_order *o)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field_by_name(CALL_TASKS[o->task].request, "adapter");
    ProtobufCMessage *m = f ? call_order_request(o) : NULL;
    if (!m) return false;
    const char *adapter = *(char *const *)(const void *)((const char *)m + f->offset);
    bool named = adapter && *adapter;
    protobuf_c_message_free_unpacked(m, NULL);
    return named;
}

static const fallback_rule *rule_of(const fallback_calls *b, const call_order *o, const call_terms *t)
{
    if (*t->digest || !(CALL_TASKS[o->task].flags & CALL_WAITS)) return NULL;
    for (size_t i = 0; i < b->o.n_rules; i++)
        if (strcmp(b->o.rules[i].model, o->model) == 0) return names_adapter(o) ? NULL : &b->o.rules[i];
    return NULL;
}

static uint64_t patience_ms(const fallback_call *c)
{
    call_outlook look;
    uint64_t away_ns = *away(c), left_ms = FALLBACK_PATIENCE_MS * 2;
    if (c->o->deadline_ns)
        left_ms = c->o->deadline_ns > c->start_ns ? (c->o->deadline_ns - c->start_ns) / 1000000u : 0;
    uint64_t ms = left_ms / 2 < FALLBACK_PATIENCE_MS ? left_ms / 2 : FALLBACK_PATIENCE_MS;
    if (away_ns && c->start_ns - away_ns < FALLBACK_KNOWN_MS * 1000000ull) {
        calls_look(c->b->inner, c->o, &c->terms, &look);
        if (look.status == SHOAL_EUNAVAILABLE) ms = 1;
    }
    return ms > 0 ? ms : 1;
}

static model_call *start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    fallback_calls *b = (fallback_calls *)base;
    fallback_call *c = malloc(sizeof *c);
    if (!c) return NULL;
    *c = (fallback_call){.base = {base->ops},
                         .b = b,
                         .o = call_order_ref(o),
                         .terms = *t,
                         .ev = *ev,
                         .rule = rule_of(b, o, t),
                         .start_ns = now_ns(b)};
    queue_init(&c->link);
    queue_put(&b->running, &c->link);
    if (c->rule) c->terms.patience_ms = patience_ms(c);
    if (start_order(c, c->o, &c->terms)) return &c->base;
    call_free(c);
    return NULL;
}

static void look(calls *base, const call_order *o, const call_terms *t, call_outlook *ret)
{
    calls_look(((fallback_calls *)base)->inner, o, t, ret);
}

static const Shoal__V1__ModelInfo *info(calls *base, const char *model, bool *ret_known)
{
    return calls_info(((fallback_calls *)base)->inner, model, ret_known);
}

static void fallback_calls_free(calls *base)
{
    fallback_calls *b = (fallback_calls *)base;
    for (fallback_call *c; (c = queue_first(&b->running, fallback_call, link));) cancel(&c->base);
    calls_free(b->inner);
    free(b->away_ns);
    free(b);
}

static const calls_ops OPS = {.start = start,
                              .pause = pause,
                              .cancel = cancel,
                              .where = where,
                              .look = look,
                              .info = info,
                              .free = fallback_calls_free};

int fallback_calls_new(calls **ret, const env *env_, calls *inner, const fallback_options *opts,
                       shoal_err *err)
{
    fallback_calls *b = calloc(1, sizeof *b);
    uint64_t *away_ns = calloc(opts->n_rules + 1, sizeof *away_ns);
    if (!b || !away_ns) {
        free(b);
        free(away_ns);
        return err_nomem(err);
    }
    *b = (fallback_calls){.base = {&OPS}, .env = env_, .inner = inner, .o = *opts, .away_ns = away_ns};
    queue_init(&b->running);
    *ret = &b->base;
    return 0;
}
