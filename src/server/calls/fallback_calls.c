/* fallback_calls.c: who answers instead; see fallback_calls.h. */
#include "calls/fallback_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "calls/decorator.h"

typedef struct fallback_calls {
    decorator_calls base;
    fallback_options o;
    uint64_t *away_ns; /* by rule: when its model was last found away; 0: it was not */
} fallback_calls;

typedef struct fallback_call {
    decorator_call base;
    fallback_calls *b;
    const fallback_rule *rule; /* NULL: nobody stands in for its model */
    fallback_rule own;         /* of this call alone, when its order names stand-ins */
    uint64_t own_away_ns;
    size_t n_asked; /* stand-ins so far */
    bool spoke;
    char why[320]; /* the wanted model is away */
} fallback_call;

/* ---- life of a call ------------------------------------------------------------------------------ */

static void fallback_calls_call_free(fallback_call *c)
{
    decorator_call_done(&c->base);
    free(c);
}

static void fallback_calls_cancel(model_call *call)
{
    fallback_call *c = (fallback_call *)call;
    calls_cancel(c->base.inner);
    fallback_calls_call_free(c);
}

static call_place where(const model_call *call)
{
    const fallback_call *c = (const fallback_call *)call;
    call_place p = calls_where(c->base.inner);
    if (c->n_asked > 0) {
        p.wanted = c->base.o->model;
        p.why = c->why;
    }
    return p;
}

/* A stand-in's result says whom it stands in for; when none was there, it is told as the wanted model's. */
static void fallback_calls_finish(fallback_call *c, const call_result *ended)
{
    call_result r = *ended;
    bool nobody = r.fault == CALL_FAULT_ABSENT && c->n_asked > 0;
    if (nobody) {
        r.model = c->base.o->model;
        r.message = c->why;
    } else if (c->n_asked > 0) {
        r.wanted = c->base.o->model;
        r.why = c->why;
    }
    decorator_call_end(&c->base, &r);
    fallback_calls_call_free(c);
}

/* ---- asking -------------------------------------------------------------------------------------- */

static void fallback_calls_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    fallback_call *c = ev->user;
    c->spoke = true;
    c->base.ev.event(&c->base.ev, m); /* may cancel: c is not touched again */
}

static void fallback_calls_on_end(const call_events *ev, const call_result *r);

/* Whoever falls to a stand-in has waited enough: it answers now or the next one is asked. The last one may be
 * waited for as any model. */
static bool ask_next(fallback_call *c)
{
    const char *to = c->rule->to[c->n_asked++];
    call_terms t = {.patience_ms = c->n_asked < c->rule->n_to ? 1 : 0};
    call_order *o = call_order_for(c->base.o, to);
    bool started = decorator_call_start(&c->base, o, &t, fallback_calls_on_event, fallback_calls_on_end,
                                        decorator_restarted);
    call_order_unref(o);
    if (!started) return false;
    LOG(LOG_WARN, "calls", "degraded", LOG_S("wanted", c->base.o->model), LOG_S("asked", to),
        LOG_S("why", c->why), LOG_S("request_id", c->base.o->request_id));
    call_observer_degraded(c->b->o.observer, c->base.o, to);
    return true;
}

static uint64_t *away(fallback_call *c)
{
    return c->rule == &c->own ? &c->own_away_ns : &c->b->away_ns[c->rule - c->b->o.rules];
}

static void fallback_calls_on_end(const call_events *ev, const call_result *r)
{
    fallback_call *c = ev->user;
    c->base.inner = NULL;
    if (c->rule && c->n_asked == 0 && r->status == 0) *away(c) = 0;
    bool absent = r->fault == CALL_FAULT_ABSENT && r->status == SHOAL_EUNAVAILABLE;
    if (!c->rule || c->spoke || !absent || c->n_asked == c->rule->n_to) {
        fallback_calls_finish(c, r);
        return;
    }
    if (c->n_asked == 0) {
        snprintf(c->why, sizeof c->why, "%s", r->message);
        *away(c) = decorator_now_ns(&c->b->base);
    }
    if (ask_next(c)) return;
    call_result none = call_result_of(c->base.o, SHOAL_ENOMEM, "out of memory");
    fallback_calls_finish(c, &none);
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static const fallback_rule *rule_of(fallback_call *c)
{
    const call_order *o = c->base.o;
    bool waits = CALL_TASKS[o->task].flags & CALL_WAITS;
    if (*c->base.terms.identity || *o->adapter || !waits) return NULL;
    if (o->n_stand_ins == 0) return decorator_rule_of(c->b, o->model);
    c->own = (fallback_rule){o->model, o->stand_ins, o->n_stand_ins};
    return &c->own;
}

static uint64_t patience_ms(fallback_call *c)
{
    call_estimate estimate;
    uint64_t away_ns = *away(c), left_ms = FALLBACK_PATIENCE_MS * 2;
    if (c->base.o->deadline_ns)
        left_ms = c->base.o->deadline_ns > c->base.start_ns
                      ? (c->base.o->deadline_ns - c->base.start_ns) / 1000000u
                      : 0;
    uint64_t ms = left_ms / 2 < FALLBACK_PATIENCE_MS ? left_ms / 2 : FALLBACK_PATIENCE_MS;
    if (away_ns && c->base.start_ns - away_ns < FALLBACK_KNOWN_MS * 1000000ull) {
        calls_estimate(c->b->base.inner, c->base.o, &c->base.terms, &estimate);
        if (estimate.status == SHOAL_EUNAVAILABLE) ms = 1;
    }
    return ms > 0 ? ms : 1;
}

static model_call *fallback_calls_start(calls *base, call_order *o, const call_terms *t,
                                        const call_events *ev)
{
    fallback_calls *b = (fallback_calls *)base;
    fallback_call *c = malloc(sizeof *c);
    if (!c) return NULL;
    *c = (fallback_call){.b = b};
    decorator_call_init(&c->base, base, o, t, ev);
    c->rule = rule_of(c);
    if (c->rule) c->base.terms.patience_ms = patience_ms(c);
    if (decorator_call_start(&c->base, o, &c->base.terms, fallback_calls_on_event, fallback_calls_on_end,
                             decorator_restarted))
        return &c->base.base;
    fallback_calls_call_free(c);
    return NULL;
}

static void fallback_calls_free(calls *base)
{
    fallback_calls *b = (fallback_calls *)base;
    decorator_calls_done(&b->base);
    free(b->away_ns);
    free(b);
}

static const calls_ops OPS = {.start = fallback_calls_start,
                              .pause = decorator_pause,
                              .cancel = fallback_calls_cancel,
                              .where = where,
                              .estimate = decorator_estimate,
                              .info = decorator_info,
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
    b->o = *opts;
    b->away_ns = away_ns;
    decorator_calls_init(&b->base, &OPS, env_, inner);
    *ret = &b->base.base;
    return 0;
}
