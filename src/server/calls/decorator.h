/* decorator.h: what all decorators have: calls underneath, a clock, and their calls in a row.
 *
 *     typedef struct late_calls { decorator_calls base; ... } late_calls;
 *     typedef struct late_call { decorator_call base; late_calls *b; ... } late_call;
 *
 *     decorator_call_init(&c->base, base, o, t, ev);                           // in start(), into base's row
 *     if (decorator_call_start(&c->base, c->base.o, t, on_event, on_end)) ...  // the call underneath
 *     decorator_call_end(&c->base, result);                                    // in on_end(); then free c:
 *     decorator_call_done(&c->base);
 *
 * decorator_estimate, decorator_info, decorator_pause, decorator_where and decorator_free are rows of calls_ops for those who add nothing
 * to them. */
#ifndef CALLS_DECORATOR_H
#define CALLS_DECORATOR_H

#include "time/env.h"
#include "calls/calls.h"
#include "base/list.h"

typedef struct decorator_calls { /* the first member of what is made of it */
    calls base;
    const env *env;
    calls *inner;
    list_node running;
} decorator_calls;

typedef struct decorator_call { /* the first member, too */
    model_call base;
    list_node link; /* in running, or in a queue of the decorator's */
    decorator_calls *b;
    call_order *o;
    call_terms terms;
    call_events ev;
    model_call *inner; /* the call underneath; NULL: none now */
    bool paused;
    uint64_t start_ns;
} decorator_call;

void decorator_calls_init(decorator_calls *b, const calls_ops *ops, const env *env, calls *inner);
void decorator_calls_done(
    decorator_calls *b);          /* cancels what runs, then frees inner; queues of one's own come first */
void decorator_free(calls *base); /* that, and its memory: for those that hold nothing else */
void decorator_cancel_all(list_node *q); /* until it is empty */
uint64_t decorator_now_ns(const decorator_calls *b);
double decorator_ms_since(const decorator_calls *b, uint64_t ns);
/* The same by the clock for the silence of peers (time/env.h). */
uint64_t decorator_listening_ns(const decorator_calls *b);
double decorator_listened_ms(const decorator_calls *b, uint64_t since_ns);
void decorator_estimate(calls *base, const call_order *o, const call_terms *t, call_estimate *ret);
const Shoal__V1__ModelInfo *decorator_info(calls *base, const char *model, bool *ret_known);
/* The estimate as if the order were for `model`; NULL: as it is. */
void decorator_estimate_for(const decorator_calls *b, const call_order *o, const char *model,
                            const call_terms *t, call_estimate *ret);

/* A call of the order as if it were for `model`, in place of one of the decorator's own. NULL: out of memory. */
model_call *decorator_start_for(decorator_calls *b, call_order *o, const char *model, const call_terms *t,
                                const call_events *ev);
/* The one of n rules that has this name; NULL: none. A rule takes `bytes` and begins with its name. */
const void *decorator_rule(const void *rules, size_t n, size_t bytes, const char *name);
#define decorator_rule_of(b, name) \
    decorator_rule((b)->o.rules, (b)->o.n_rules, sizeof *(b)->o.rules, (name)) /* of its options */

/* Copies t and ev, and takes a reference of o. */
void decorator_call_init(decorator_call *c, calls *base, call_order *o, const call_terms *t,
                         const call_events *ev);
void decorator_call_done(decorator_call *c); /* out of its row, the order let go; memory is the caller's */
/* The call underneath, which gets `c` as its user, paused if c is. restarted: call_events has it; it is told
 * only where whoever asked wants to hear it; decorator_restarted passes it on, for those who keep nothing of the
 * answer; NULL: what came cannot be taken back. False: out of memory; o may be NULL, for an order that there was
 * no memory for. */
bool decorator_call_start(decorator_call *c, call_order *o, const call_terms *t,
                          void (*event)(const call_events *ev, const ProtobufCMessage *m),
                          void (*end)(const call_events *ev, const call_result *r),
                          void (*restarted)(const call_events *ev));
void decorator_restarted(const call_events *ev);
/* The end for whoever asked, with the time from the start. */
void decorator_call_end(decorator_call *c, const call_result *ended);
void decorator_pause(model_call *call, bool paused);
call_place decorator_where(const model_call *call);

#endif
