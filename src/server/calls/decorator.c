/* decorator.c: what all decorators have; see decorator.h. */
#include "calls/decorator.h"

#include <stdlib.h>
#include <string.h>

void decorator_calls_init(decorator_calls *b, const calls_ops *ops, const env *env_, calls *inner)
{
    *b = (decorator_calls){.base = {ops}, .env = env_, .inner = inner};
    list_init(&b->running);
}

void decorator_cancel_all(list_node *q)
{
    for (decorator_call *c; (c = list_first(q, decorator_call, link));) calls_cancel(&c->base);
}

void decorator_calls_done(decorator_calls *b)
{
    decorator_cancel_all(&b->running);
    calls_free(b->inner);
}

void decorator_free(calls *base)
{
    decorator_calls_done((decorator_calls *)base);
    free(base);
}

uint64_t decorator_now_ns(const decorator_calls *b)
{
    return b->env->now_ns(b->env->user);
}

double decorator_ms_since(const decorator_calls *b, uint64_t ns)
{
    return (double)(decorator_now_ns(b) - ns) / 1e6;
}

uint64_t decorator_listening_ns(const decorator_calls *b)
{
    return b->env->listening_ns(b->env->user);
}

double decorator_listened_ms(const decorator_calls *b, uint64_t since_ns)
{
    return (double)(decorator_listening_ns(b) - since_ns) / 1e6;
}

void decorator_estimate(calls *base, const call_order *o, const call_terms *t, call_estimate *ret)
{
    calls_estimate(((decorator_calls *)base)->inner, o, t, ret);
}

void decorator_estimate_for(const decorator_calls *b, const call_order *o, const char *model,
                            const call_terms *t, call_estimate *ret)
{
    call_order *other = model ? call_order_for(o, model) : NULL;
    calls_estimate(b->inner, other ? other : o, t, ret); /* without memory the name itself is looked at */
    call_order_unref(other);
}

model_call *decorator_start_for(decorator_calls *b, call_order *o, const char *model, const call_terms *t,
                                const call_events *ev)
{
    call_order *other = call_order_for(o, model);
    model_call *call = other ? calls_start(b->inner, other, t, ev) : NULL;
    call_order_unref(other);
    return call;
}

const void *decorator_rule(const void *rules, size_t n, size_t bytes, const char *name)
{
    for (const char *rule = rules; n-- > 0; rule += bytes)
        if (strcmp(*(const char *const *)(const void *)rule, name) == 0) return rule;
    return NULL;
}

const Shoal__V1__ModelInfo *decorator_info(calls *base, const char *model, bool *ret_known)
{
    return calls_info(((decorator_calls *)base)->inner, model, ret_known);
}

void decorator_call_init(decorator_call *c, calls *base, call_order *o, const call_terms *t,
                         const call_events *ev)
{
    decorator_calls *b = (decorator_calls *)base;
    *c = (decorator_call){.base = {base->ops},
                          .b = b,
                          .o = call_order_ref(o),
                          .terms = *t,
                          .ev = *ev,
                          .start_ns = decorator_now_ns(b)};
    list_init(&c->link);
    list_put(&b->running, &c->link);
}

void decorator_call_done(decorator_call *c)
{
    list_take(&c->link);
    call_order_unref(c->o);
}

bool decorator_call_start(decorator_call *c, call_order *o, const call_terms *t,
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

void decorator_restarted(const call_events *ev)
{
    const decorator_call *c = ev->user;
    c->ev.restarted(&c->ev);
}

void decorator_call_end(decorator_call *c, const call_result *ended)
{
    call_result r = *ended;
    r.ms = decorator_ms_since(c->b, c->start_ns);
    c->ev.end(&c->ev, &r);
}

void decorator_pause(model_call *call, bool paused)
{
    decorator_call *c = (decorator_call *)call;
    c->paused = paused;
    calls_pause(c->inner, paused);
}

call_place decorator_where(const model_call *call)
{
    return calls_where(((const decorator_call *)call)->inner);
}
