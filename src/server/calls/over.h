/* over.h: what all decorators have: calls underneath, a clock, and their calls in a row.
 *
 *     typedef struct late_calls { over_calls base; ... } late_calls;
 *     typedef struct late_call { over_call base; late_calls *b; ... } late_call;
 *
 *     over_call_init(&c->base, base, o, t, ev);                           // in start(), into base's row
 *     if (over_call_start(&c->base, c->base.o, t, on_event, on_end)) ...  // the call underneath
 *     over_call_end(&c->base, result);                                    // in on_end(); then free c:
 *     over_call_done(&c->base);
 *
 * over_look, over_info, over_pause, over_where and over_free are rows of calls_ops for those who add nothing
 * to them. */
#ifndef CALLS_OVER_H
#define CALLS_OVER_H

#include "time/env.h"
#include "calls/calls.h"
#include "calls/queue.h"

typedef struct over_calls { /* the first member of what is made of it */
    calls base;
    const env *env;
    calls *inner;
    queue running;
} over_calls;

typedef struct over_call { /* the first member, too */
    model_call base;
    queue link; /* in running, or in a queue of the decorator's */
    over_calls *b;
    call_order *o;
    call_terms terms;
    call_events ev;
    model_call *inner; /* the call underneath; NULL: none now */
    bool paused;
    uint64_t start_ns;
} over_call;

void over_calls_init(over_calls *b, const calls_ops *ops, const env *env, calls *inner);
void over_calls_done(over_calls *b); /* cancels what runs, then frees inner; queues of one's own come first */
void over_free(calls *base);         /* that, and its memory: for those that hold nothing else */
void over_cancel_all(queue *q);      /* until it is empty */
uint64_t over_now_ns(const over_calls *b);
double over_ms_since(const over_calls *b, uint64_t ns);
/* The same by the clock for the silence of peers (time/env.h). */
uint64_t over_listening_ns(const over_calls *b);
double over_listened_ms(const over_calls *b, uint64_t since_ns);
void over_look(calls *base, const call_order *o, const call_terms *t, call_outlook *ret);
const Shoal__V1__ModelInfo *over_info(calls *base, const char *model, bool *ret_known);
/* The outlook as if the order were for `model`; NULL: as it is. */
void over_look_for(const over_calls *b, const call_order *o, const char *model, const call_terms *t,
                   call_outlook *ret);

/* Copies t and ev, and takes a reference of o. */
void over_call_init(over_call *c, calls *base, call_order *o, const call_terms *t, const call_events *ev);
void over_call_done(over_call *c); /* out of its row, the order let go; memory is the caller's */
/* The call underneath, which gets `c` as its user, paused if c is. restarted: call_events has it; it is told
 * only where whoever asked wants to hear it; over_restarted passes it on, for those who keep nothing of the
 * answer; NULL: what came cannot be taken back. False: out of memory; o may be NULL, for an order that there was
 * no memory for. */
bool over_call_start(over_call *c, call_order *o, const call_terms *t,
                     void (*event)(const call_events *ev, const ProtobufCMessage *m),
                     void (*end)(const call_events *ev, const call_result *r),
                     void (*restarted)(const call_events *ev));
void over_restarted(const call_events *ev);
/* The end for whoever asked, with the time from the start. */
void over_call_end(over_call *c, const call_result *ended);
void over_pause(model_call *call, bool paused);
call_place over_where(const model_call *call);

#endif
