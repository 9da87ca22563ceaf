/* span_calls.c: see span_calls.h. */
#include "calls/span_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "calls/decorator.h"
#include "calls/observer.h"

typedef struct span_calls {
    decorator_calls base;
    span_calls_options o;
} span_calls;

typedef struct span_call {
    decorator_call base;
    call_spans above; /* where its own span stands, */
    uint64_t id;      /* which is this one */
} span_call;

/* r NULL: it was cancelled. */
static void span_calls_tell(const span_call *c, const call_result *r)
{
    const call_order *o = c->base.o;
    const span_calls *b = (const span_calls *)c->base.b;
    span s = {.kind = SPAN_ENSEMBLE,
              .id = c->id,
              .parent = c->above.parent,
              .start_ns = c->base.start_ns,
              .end_ns = decorator_now_ns(&b->base)};
    span_name(&s, o->model);
    span_set(&s, "ensemble", b->o.kind);
    span_set(&s, "why", o->why);
    if (r) span_set(&s, "answered_by", r->model);
    if (r) span_set(&s, "decision", r->trace);
    if (!r || r->status) span_set(&s, "error", shoal_err_name(r ? r->status : SHOAL_ECANCELLED));
    call_spans_end(&c->above, o->request, &s);
}

static void span_call_free(span_call *c)
{
    decorator_call_done(&c->base);
    free(c);
}

static void span_calls_cancel(model_call *call)
{
    span_call *c = (span_call *)call;
    calls_cancel(c->base.inner);
    span_calls_tell(c, NULL);
    span_call_free(c);
}

static void span_calls_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    const span_call *c = ev->user;
    c->base.ev.event(&c->base.ev, m);
}

static void span_calls_on_end(const call_events *ev, const call_result *r)
{
    span_call *c = ev->user;
    span_calls_tell(c, r);
    c->base.inner = NULL;
    decorator_call_end(&c->base, r);
    span_call_free(c);
}

static bool is_ours(const span_calls *b, const char *model)
{
    for (size_t i = 0; i < b->o.n_names; i++)
        if (strcmp(b->o.names[i], model) == 0) return true;
    return false;
}

static model_call *span_calls_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    span_calls *b = (span_calls *)base;
    call_spans below;
    if (!is_ours(b, o->model) || !call_spans_begin(&below, &o->spans))
        return calls_start(b->base.inner, o, t, ev);
    span_call *c = malloc(sizeof *c);
    call_order *under = c ? call_order_under(o, below.parent) : NULL;
    if (!under) {
        free(c);
        return NULL;
    }
    *c = (span_call){.above = o->spans, .id = below.parent};
    decorator_call_init(&c->base, base, o, t, ev);
    bool started =
        decorator_call_start(&c->base, under, t, span_calls_on_event, span_calls_on_end, decorator_restarted);
    call_order_unref(under);
    if (started) return &c->base.base;
    span_call_free(c);
    return NULL;
}

static const calls_ops OPS = {.start = span_calls_start,
                              .pause = decorator_pause,
                              .cancel = span_calls_cancel,
                              .where = decorator_where,
                              .estimate = decorator_estimate,
                              .info = decorator_info,
                              .free = decorator_free};

int span_calls_new(calls **ret, const env *e, calls *inner, const span_calls_options *o, shoal_err *err)
{
    span_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, e, inner);
    b->o = *o;
    *ret = &b->base.base;
    return 0;
}
