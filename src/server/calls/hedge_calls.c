/* hedge_calls.c: second calls for the slowest of many; see hedge_calls.h. */
#include "calls/hedge_calls.h"

#include <stdlib.h>

#include "calls/decorator.h"

#define N_TAILS       256 /* models and tasks; two that share a place push each other out, no more */
#define QUANTILE_STEP 0.05
#define BUSY          0.5
#define BUDGET_MAX    10.0

/* How much longer than expected calls take: the quantile, found by steps up and down that balance there
 * (Robbins and Monro, 1951; on a logarithmic scale). */
typedef struct tail {
    uint64_t key;
    double ratio;
    unsigned n;
} tail;

typedef struct hedge_calls {
    decorator_calls base;
    hedge_options o;
    double budget; /* second calls that are allowed now */
    tail tails[N_TAILS];
} hedge_calls;

typedef struct hedge_call hedge_call;

typedef struct branch {
    hedge_call *c;
    model_call *inner; /* NULL: none */
} branch;

struct hedge_call {
    decorator_call base; /* its inner calls are the branches' */
    hedge_calls *b;
    branch first, second;
    env_timer *timer;
    bool hedged;
    uint64_t key;
    double expected_ms;
};

/* ---- the tail ------------------------------------------------------------------------------------ */

static uint64_t key_of(const call_order *o)
{
    uint64_t h = 1469598103934665603u ^ (uint64_t)o->task; /* FNV-1a */
    for (const char *s = o->model; *s; s++) h = (h ^ (uint8_t)*s) * 1099511628211u;
    return h;
}

static tail *tail_of(hedge_calls *b, uint64_t key)
{
    tail *t = &b->tails[key % N_TAILS];
    if (t->key != key) *t = (tail){.key = key, .ratio = 1};
    return t;
}

static void learn(hedge_call *c)
{
    tail *t = tail_of(c->b, c->key);
    bool longer = decorator_ms_since(&c->b->base, c->base.start_ns) > t->ratio * c->expected_ms;
    t->ratio *= longer ? 1 + QUANTILE_STEP * HEDGE_QUANTILE : 1 - QUANTILE_STEP * (1 - HEDGE_QUANTILE);
    if (t->n < HEDGE_SAMPLES_MIN) t->n++;
}

static uint64_t delay_ms(hedge_call *c)
{
    double ms = tail_of(c->b, c->key)->ratio * c->expected_ms;
    return ms > HEDGE_MIN_MS ? (uint64_t)ms + 1 : HEDGE_MIN_MS;
}

/* ---- life of a call ------------------------------------------------------------------------------ */

static void cancel_branch(branch *br)
{
    calls_cancel(br->inner);
    br->inner = NULL;
}

static void hedge_calls_call_free(hedge_call *c)
{
    c->b->base.env->timer_free(c->timer);
    decorator_call_done(&c->base);
    free(c);
}

static void hedge_calls_cancel(model_call *call)
{
    hedge_call *c = (hedge_call *)call;
    cancel_branch(&c->first);
    cancel_branch(&c->second);
    hedge_calls_call_free(c);
}

static void pause(model_call *call, bool paused)
{
    hedge_call *c = (hedge_call *)call;
    c->base.paused = paused;
    calls_pause(c->first.inner, paused);
    calls_pause(c->second.inner, paused);
}

static call_place where(const model_call *call)
{
    const hedge_call *c = (const hedge_call *)call;
    return calls_where(c->first.inner ? c->first.inner : c->second.inner);
}

/* ---- trying -------------------------------------------------------------------------------------- */

/* The first answer counts, also when it says what is wrong with the request; a failure of one leaves the
 * other. */
static void hedge_calls_on_end(const call_events *ev, const call_result *ended)
{
    branch *br = ev->user;
    hedge_call *c = br->c;
    branch *other = br == &c->first ? &c->second : &c->first;
    bool failed = ended->status != 0 && ended->fault != CALL_FAULT_NONE;
    br->inner = NULL;
    if (failed && other->inner) return;
    cancel_branch(other);
    if (ended->status == 0) learn(c);
    if (c->hedged) call_observer_hedged(c->b->o.observer, c->base.o, br == &c->second && !failed);
    decorator_call_end(&c->base, ended);
    hedge_calls_call_free(c);
}

static bool start_branch(branch *br, const call_terms *t)
{
    call_events ev = {.user = br, .end = hedge_calls_on_end};
    br->inner = calls_start(br->c->b->base.inner, br->c->base.o, t, &ev);
    if (br->inner && br->c->base.paused) calls_pause(br->inner, true);
    return br->inner != NULL;
}

static void on_timer(void *arg)
{
    hedge_call *c = arg;
    hedge_calls *b = c->b;
    call_place at = calls_where(c->first.inner);
    call_terms t = c->base.terms;
    call_estimate out;
    call_terms_pin(&t, at.identity, at.adapter_digest);
    call_terms_avoid(&t, at.life);
    t.hold_until_ns = 1; /* long ago: now, or not at all */
    if (at.life == 0 || b->budget < 1 || c->base.paused) return;
    calls_estimate(b->base.inner, c->base.o, &t, &out);
    if (out.status != 0 || out.load >= BUSY) return;
    b->budget--;
    c->hedged = start_branch(&c->second, &t);
}

/* ---- the seam ------------------------------------------------------------------------------------ */

/* NULL: not watched. */
static hedge_call *call_new(hedge_calls *b, call_order *o, const call_terms *t, const call_events *ev)
{
    call_estimate out;
    if (!(CALL_TASKS[o->task].flags & CALL_LEARNS)) return NULL;
    calls_estimate(b->base.inner, o, t, &out);
    if (out.status != 0 || out.n_ready < 2 || out.expected_ms <= 0) return NULL;
    hedge_call *c = malloc(sizeof *c);
    if (!c) return NULL;
    *c = (hedge_call){.b = b, .key = key_of(o), .expected_ms = out.expected_ms};
    c->timer = b->base.env->timer_new(b->base.env->user, on_timer, c);
    if (!c->timer) {
        free(c);
        return NULL;
    }
    decorator_call_init(&c->base, &b->base.base, o, t, ev);
    c->first.c = c->second.c = c;
    return c;
}

static model_call *hedge_calls_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    hedge_calls *b = (hedge_calls *)base;
    hedge_call *c = call_new(b, o, t, ev);
    if (!c) return calls_start(b->base.inner, o, t, ev);
    if (!start_branch(&c->first, t)) {
        hedge_calls_call_free(c);
        return NULL;
    }
    if (b->budget < BUDGET_MAX) b->budget += HEDGE_SHARE;
    if (tail_of(b, c->key)->n >= HEDGE_SAMPLES_MIN) b->base.env->timer_start(c->timer, delay_ms(c));
    return &c->base.base;
}

static const calls_ops OPS = {.start = hedge_calls_start,
                              .pause = pause,
                              .cancel = hedge_calls_cancel,
                              .where = where,
                              .estimate = decorator_estimate,
                              .info = decorator_info,
                              .free = decorator_free};

int hedge_calls_new(calls **ret, const env *env_, calls *inner, const hedge_options *opts, shoal_err *err)
{
    hedge_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    b->o = *opts;
    b->budget = 1;
    *ret = &b->base.base;
    return 0;
}
