/* over.c: what all decorators have; see over.h. */
#include "calls/over.h"

#include <stdlib.h>

void over_calls_init(over_calls *b, const calls_ops *ops, const env *env_, calls *inner)
{
    *b = (over_calls){.base = {ops}, .env = env_, .inner = inner};
    queue_init(&b->running);
}

void over_cancel_all(queue *q)
{
    for (over_call *c; (c = queue_first(q, over_call, link));) calls_cancel(&c->base);
}

void over_calls_done(over_calls *b)
{
    over_cancel_all(&b->running);
    calls_free(b->inner);
}

void over_free(calls *base)
{
    over_calls_done((over_calls *)base);
    free(base);
}

uint64_t over_now_ns(const over_calls *b)
{
    return b->env->now_ns(b->env->user);
}

double over_ms_since(const over_calls *b, uint64_t ns)
{
    return (double)(over_now_ns(b) - ns) / 1e6;
}

uint64_t over_listening_ns(const over_calls *b)
{
    return b->env->listening_ns(b->env->user);
}

double over_listened_ms(const over_calls *b, uint64_t since_ns)
{
    return (double)(over_listening_ns(b) - since_ns) / 1e6;
}

void over_look(calls *base, const call_order *o, const call_terms *t, call_outlook *ret)
{
    calls_look(((over_calls *)base)->inner, o, t, ret);
}

void over_look_for(const over_calls *b, const call_order *o, const char *model, const call_terms *t,
                   call_outlook *ret)
{
    call_order *other = model ? call_order_for(o, model) : NULL;
    calls_look(b->inner, other ? other : o, t, ret); /* without memory the name itself is looked at */
    call_order_unref(other);
}

const Shoal__V1__ModelInfo *over_info(calls *base, const char *model, bool *ret_known)
{
    return calls_info(((over_calls *)base)->inner, model, ret_known);
}

void over_call_init(over_call *c, calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    over_calls *b = (over_calls *)base;
    *c = (over_call){.base = {base->ops},
                     .b = b,
                     .o = call_order_ref(o),
                     .terms = *t,
                     .ev = *ev,
                     .start_ns = over_now_ns(b)};
    queue_init(&c->link);
    queue_put(&b->running, &c->link);
}

void over_call_done(over_call *c)
{
    queue_take(&c->link);
    call_order_unref(c->o);
}

bool over_call_start(over_call *c, call_order *o, const call_terms *t,
                     void (*event)(const call_events *ev, const ProtobufCMessage *m),
                     void (*end)(const call_events *ev, const call_result *r),
                     void (*restarted)(const call_events *ev))
{
    call_events ev = {.user = c, .event = event, .end = end};
    ev.restarted = c->ev.restarted ? restarted : NULL;
    ev.takes_back = ev.restarted && c->ev.takes_back;
    c->inner = o ? calls_start(c->b->inner, o, t, &ev) : NULL;
    if (c->inner && c->paused) calls_pause(c->inner, true);
    return c->inner != NULL;
}

void over_restarted(const call_events *ev)
{
    const over_call *c = ev->user;
    c->ev.restarted(&c->ev);
}

void over_call_end(over_call *c, const call_result *ended)
{
    call_result r = *ended;
    r.ms = over_ms_since(c->b, c->start_ns);
    c->ev.end(&c->ev, &r);
}

void over_pause(model_call *call, bool paused)
{
    over_call *c = (over_call *)call;
    c->paused = paused;
    calls_pause(c->inner, paused);
}

call_place over_where(const model_call *call)
{
    return calls_where(((const over_call *)call)->inner);
}
