/* retry_calls.c: other replicas, and the wait for one; see retry_calls.h. */
#include "calls/retry_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "calls/decorator.h"

#define LOOK_MS   5
#define LOOKS_MAX 64 /* waiting calls that one turn looks at: those behind come next turn */

typedef struct retry_calls {
    decorator_calls base;
    list_node held; /* every call is in it or in running */
    size_t n_held;
    uint64_t hold_ms; /* of a call without a deadline */
    const call_observer *observer;
    env_timer *timer; /* runs while calls are held */
} retry_calls;

typedef struct retry_call {
    decorator_call base; /* no inner while it is held */
    retry_calls *b;
    uint64_t hold_until_ns;
    bool held, spoke, waited; /* waited: it was held before, or its replica left it */
    unsigned n_avoid;         /* of the terms as they came */
    call_result failed;       /* how the last try ended, if it is held; only status, fault and life hold */
    char message[512];
} retry_call;

/* ---- life of a call ------------------------------------------------------------------------------ */

static void set_held(retry_call *c, bool held)
{
    retry_calls *b = c->b;
    list_move(held ? &b->held : &b->base.running, &c->base.link);
    if (held && !c->held && b->n_held++ == 0) b->base.env->timer_start(b->timer, LOOK_MS);
    if (!held && c->held) b->n_held--;
    if (held != c->held) call_observer_held(b->observer, c->base.o, held);
    c->held = held;
}

static void retry_calls_call_free(retry_call *c)
{
    set_held(c, false);
    decorator_call_done(&c->base);
    free(c);
}

static void retry_calls_cancel(model_call *call)
{
    retry_call *c = (retry_call *)call;
    calls_cancel(c->base.inner);
    retry_calls_call_free(c);
}

static void retry_calls_finish(retry_call *c, const call_result *ended)
{
    decorator_call_end(&c->base, ended);
    retry_calls_call_free(c);
}

/* ---- trying -------------------------------------------------------------------------------------- */

static void retry_calls_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    retry_call *c = ev->user;
    c->spoke = true;
    c->base.ev.event(&c->base.ev, m); /* may cancel: c is not touched again */
}

static void retry_calls_on_end(const call_events *ev, const call_result *r);

static bool try_start(retry_call *c)
{
    return decorator_call_start(&c->base, c->base.o, &c->base.terms, retry_calls_on_event, retry_calls_on_end,
                                decorator_restarted);
}

static bool may_hold(const retry_call *c)
{
    call_estimate o;
    bool full = c->b->n_held >= RETRY_HELD_MAX && !c->base.terms.hold_until_ns;
    if (full || decorator_now_ns(&c->b->base) >= c->hold_until_ns) return false;
    calls_estimate(c->b->base.inner, c->base.o, &c->base.terms, &o);
    return o.status == 0 || (o.status == SHOAL_EUNAVAILABLE && o.may_return);
}

static void hold(retry_call *c, const call_result *r)
{
    snprintf(c->message, sizeof c->message, "%s", r->message);
    c->failed = call_result_of(c->base.o, r->status, c->message);
    c->failed.fault = r->fault;
    c->failed.life = r->life;
    c->failed.lasting = r->lasting;
    c->waited = true;
    set_held(c, true);
}

/* All who waited for a replica, or lost theirs, come to the next at once, and its queue may be too short for
 * them. They wait on. */
static bool waits_on(retry_call *c, const call_result *r)
{
    if (!c->waited || r->fault != CALL_FAULT_FULL) return false;
    c->base.terms.n_avoid = c->n_avoid;
    return may_hold(c);
}

static bool other_replica_is_there(retry_call *c)
{
    call_estimate o;
    calls_estimate(c->b->base.inner, c->base.o, &c->base.terms, &o);
    return o.status == 0;
}

static void retry_calls_on_end(const call_events *ev, const call_result *r)
{
    retry_call *c = ev->user;
    bool taken = c->spoke || r->fault == CALL_FAULT_NONE || r->fault == CALL_FAULT_LOST;
    c->base.inner = NULL;
    c->waited |= r->fault == CALL_FAULT_LEAVES;
    if (!taken && r->fault == CALL_FAULT_ABSENT && may_hold(c)) {
        hold(c, r);
        return;
    }
    bool again = !taken && r->fault != CALL_FAULT_ABSENT;
    if (again) call_terms_avoid(&c->base.terms, r->life);
    if (!again || !other_replica_is_there(c)) {
        if (again && waits_on(c, r))
            hold(c, r);
        else
            retry_calls_finish(c, r);
    } else if (!try_start(c)) {
        call_result none = call_result_of(c->base.o, SHOAL_ENOMEM, "out of memory");
        retry_calls_finish(c, &none);
    }
}

/* ---- waiting ------------------------------------------------------------------------------------- */

/* A held call's turn: it starts, fails, or goes on waiting, behind the others. */
static void look_after(retry_call *c)
{
    call_estimate o;
    calls_estimate(c->b->base.inner, c->base.o, &c->base.terms, &o);
    bool waits = o.status == SHOAL_EUNAVAILABLE && o.may_return;
    if (waits && decorator_now_ns(&c->b->base) < c->hold_until_ns) {
        set_held(c, true);
        return;
    }
    set_held(c, false);
    if (waits) {
        retry_calls_finish(c, &c->failed);
    } else if (!try_start(c)) { /* when it cannot start, the end says why */
        call_result none = call_result_of(c->base.o, SHOAL_ENOMEM, "out of memory");
        retry_calls_finish(c, &none);
    }
}

static void on_tick(void *arg)
{
    retry_calls *b = arg;
    size_t n = b->n_held < LOOKS_MAX ? b->n_held : LOOKS_MAX;
    for (retry_call *c; n > 0 && (c = list_first(&b->held, retry_call, base.link)); n--) look_after(c);
    if (b->n_held > 0) b->base.env->timer_start(b->timer, LOOK_MS);
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static uint64_t hold_until(const retry_calls *b, const call_order *o, const call_terms *t)
{
    if (t->hold_until_ns || !(CALL_TASKS[o->task].flags & CALL_WAITS)) return t->hold_until_ns;
    if (t->patience_ms) return decorator_now_ns(&b->base) + t->patience_ms * 1000000u;
    return o->deadline_ns ? o->deadline_ns : decorator_now_ns(&b->base) + b->hold_ms * 1000000u;
}

static model_call *retry_calls_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    retry_calls *b = (retry_calls *)base;
    retry_call *c = malloc(sizeof *c);
    if (!c) return NULL;
    *c = (retry_call){.b = b, .hold_until_ns = hold_until(b, o, t), .n_avoid = t->n_avoid};
    decorator_call_init(&c->base, base, o, t, ev);
    if (try_start(c)) return &c->base.base;
    retry_calls_call_free(c);
    return NULL;
}

static void retry_calls_free(calls *base)
{
    retry_calls *b = (retry_calls *)base;
    decorator_cancel_all(&b->held);
    decorator_cancel_all(&b->base.running);
    b->base.env->timer_free(b->timer);
    decorator_calls_done(&b->base);
    free(b);
}

static const calls_ops OPS = {.start = retry_calls_start,
                              .pause = decorator_pause,
                              .cancel = retry_calls_cancel,
                              .where = decorator_where,
                              .estimate = decorator_estimate,
                              .info = decorator_info,
                              .free = retry_calls_free};

int retry_calls_new(calls **ret, const env *env_, calls *inner, uint64_t hold_ms,
                    const call_observer *observer, shoal_err *err)
{
    retry_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    list_init(&b->held);
    b->hold_ms = hold_ms ? hold_ms : RETRY_HOLD_MS;
    b->observer = observer;
    b->timer = env_->timer_new(env_->user, on_tick, b);
    if (!b->timer) {
        free(b);
        return err_nomem(err);
    }
    *ret = &b->base.base;
    return 0;
}
