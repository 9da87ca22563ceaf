/* majority_calls.c: all are asked, what comes of it is one answer; see majority_calls.h. */
#include "ensemble/majority_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "calls/decorator.h"
#include "ensemble/majority.h"
#include "ensemble/response_buffer.h"

#define MARGIN_MS 10 /* before the deadline, for what has come by then to get out */

typedef struct majority_calls {
    decorator_calls base;
    vote_options o;
} majority_calls;

typedef struct majority_call majority_call;

typedef struct majority_member {
    majority_call *c;
    const vote_member *m;
    model_call *inner; /* NULL: it has answered or failed */
    response_buffer answer;
} majority_member;

struct majority_call {
    decorator_call base; /* its inner calls are the members' */
    majority_calls *b;
    const vote_rule *rule;
    majority_member members[VOTE_MEMBERS_MAX];
    env_timer *timer; /* the deadline's; NULL without one */
    char trace[256], why[256];
};

/* ---- life of a call ------------------------------------------------------------------------------ */

static void majority_calls_dismiss_all(majority_call *c)
{
    for (size_t i = 0; i < c->rule->n_members; i++) {
        model_call *inner = c->members[i].inner;
        c->members[i].inner = NULL;
        calls_cancel(inner);
    }
}

static void majority_calls_call_free(majority_call *c)
{
    majority_calls_dismiss_all(c);
    for (size_t i = 0; i < c->rule->n_members; i++) response_buffer_done(&c->members[i].answer);
    c->b->base.env->timer_free(c->timer);
    decorator_call_done(&c->base);
    free(c);
}

static void majority_calls_cancel(model_call *call)
{
    majority_calls_call_free((majority_call *)call);
}

static void majority_calls_pause(model_call *call, bool paused)
{
    majority_call *c = (majority_call *)call;
    c->base.paused = paused;
    for (size_t i = 0; i < c->rule->n_members; i++) calls_pause(c->members[i].inner, paused);
}

static void majority_calls_finish(majority_call *c, const call_result *ended)
{
    call_result r = *ended;
    r.trace = c->trace;
    if (*c->why && r.status == 0) r.wanted = c->rule->name, r.why = c->why;
    decorator_call_end(&c->base, &r);
    majority_calls_call_free(c);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static void majority_calls_note(majority_call *c, const majority_member *p, const char *what)
{
    size_t n = strlen(c->trace);
    snprintf(c->trace + n, sizeof c->trace - n, "%s%.48s %g%s", n ? ", " : "mean of ", p->m->model,
             p->m->weight, what);
}

/* Those whose replies are there; the others are why the answer is not all that it might be. */
static size_t collect(majority_call *c, majority_reply *ret, ProtobufCMessage **ret_owned,
                      call_result *ret_first)
{
    size_t n = 0;
    for (size_t i = 0; i < c->rule->n_members; i++) {
        majority_member *p = &c->members[i];
        call_result r;
        ProtobufCMessage *reply = NULL;
        if (response_buffer_is_whole(&p->answer) &&
            response_buffer_result(&p->answer, c->base.o, &r, &reply) == 0) {
            majority_calls_note(c, p, "");
            if (n == 0) *ret_first = r;
            ret_owned[n] = reply;
            ret[n++] = (majority_reply){reply, p->m->weight};
            continue;
        }
        majority_calls_note(c, p, " away");
        if (c->b->o.left) c->b->o.left(c->b->o.user, c->rule->name, p->m->model);
        if (!*c->why)
            snprintf(c->why, sizeof c->why, "%.64s has no part in it: %.150s", p->m->model,
                     p->answer.ended ? p->answer.result.message : "the deadline came first");
    }
    return n;
}

/* What a failure of all comes to: the first member's. */
static void majority_calls_fail(majority_call *c)
{
    call_result none =
        call_result_of(c->base.o, SHOAL_EDEADLINE, "the deadline passed before any model had answered");
    for (size_t i = 0; i < c->rule->n_members; i++) {
        const response_buffer *k = &c->members[i].answer;
        if (!k->ended) continue;
        majority_calls_finish(c, k->lost ? &none : &k->result);
        return;
    }
    majority_calls_finish(c, &none);
}

static void majority_calls_answer(majority_call *c)
{
    majority_reply replies[VOTE_MEMBERS_MAX];
    ProtobufCMessage *owned[VOTE_MEMBERS_MAX];
    call_result r;
    majority_calls_dismiss_all(c);
    size_t n = collect(c, replies, owned, &r);
    if (n == 0) {
        majority_calls_fail(c);
        return;
    }
    ProtobufCMessage *all = majority_merge(c->base.o->task, replies, n);
    for (size_t i = 0; i < n; i++) response_buffer_free(owned[i]);
    if (all)
        r.reply = all;
    else
        r = call_result_of(c->base.o, SHOAL_ENOMEM,
                           "the models' answers could not be made one: out of memory");
    majority_calls_finish(c, &r);
    response_buffer_free(all);
}

/* What is wrong with the request is so for all: the first who says it ends the vote. */
static bool majority_calls_is_final(const call_result *r)
{
    return r->status == SHOAL_EINVALID || r->status == SHOAL_EUNSUPPORTED || r->status == SHOAL_ELIMIT;
}

static void majority_calls_on_end(const call_events *ev, const call_result *r)
{
    majority_member *p = ev->user;
    majority_call *c = p->c;
    p->inner = NULL;
    response_buffer_end(&p->answer, c->base.o, r);
    if (majority_calls_is_final(r)) {
        majority_calls_finish(c, r);
        return;
    }
    for (size_t i = 0; i < c->rule->n_members; i++)
        if (c->members[i].inner) return;
    majority_calls_answer(c);
}

static void majority_calls_on_timer(void *arg)
{
    majority_call *c = arg;
    for (size_t i = 0; i < c->rule->n_members; i++) {
        if (!response_buffer_is_whole(&c->members[i].answer)) continue;
        majority_calls_answer(c);
        return;
    }
}

/* ---- the seam ------------------------------------------------------------------------------------ */

/* Of a classifier all labels are wanted, however many the request wants in the end. */
static call_order *order_of(const majority_call *c, const char *model)
{
    Shoal__V1__ClassifyRequest all = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    call_order *o = call_order_for(c->base.o, model);
    if (!o || o->task != CALL_CLASSIFY) return o;
    all.top_k = UINT32_MAX;
    call_order *whole = call_order_more(o, &all.base, 0);
    if (whole) whole->resumes = false;
    call_order_unref(o);
    return whole;
}

static bool majority_calls_ask(majority_call *c, size_t i)
{
    majority_member *p = &c->members[i];
    call_events ev = {.user = p, .end = majority_calls_on_end};
    p->c = c;
    p->m = &c->rule->members[i];
    response_buffer_init(&p->answer, p->m->model);
    call_order *o = order_of(c, p->m->model);
    p->inner = o ? calls_start(c->b->base.inner, o, &c->base.terms, &ev) : NULL;
    call_order_unref(o);
    return p->inner != NULL;
}

static bool watch_deadline(majority_call *c)
{
    const env *e = c->b->base.env;
    uint64_t now = decorator_now_ns(c->base.b), end = c->base.o->deadline_ns;
    if (!end) return true;
    c->timer = e->timer_new(e->user, majority_calls_on_timer, c);
    uint64_t left_ms = end > now ? (end - now) / 1000000u : 0;
    if (c->timer) e->timer_start(c->timer, left_ms > MARGIN_MS ? left_ms - MARGIN_MS : 0);
    return c->timer != NULL;
}

static model_call *majority_calls_start(calls *base, call_order *o, const call_terms *t,
                                        const call_events *ev)
{
    majority_calls *b = (majority_calls *)base;
    const vote_rule *rule = majority_takes(o->task) ? decorator_rule_of(b, o->model) : NULL;
    if (!rule) return calls_start(b->base.inner, o, t, ev);
    majority_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (majority_call){.b = b, .rule = rule};
    decorator_call_init(&c->base, base, o, t, ev);
    bool started = watch_deadline(c);
    for (size_t i = 0; started && i < rule->n_members; i++) started = majority_calls_ask(c, i);
    if (started) return &c->base.base;
    majority_calls_call_free(c);
    return NULL;
}

static call_place majority_calls_where(const model_call *call)
{
    const majority_call *c = (const majority_call *)call;
    for (size_t i = 0; i < c->rule->n_members; i++)
        if (c->members[i].inner) return calls_where(c->members[i].inner);
    return (call_place){0};
}

static const calls_ops OPS = {.start = majority_calls_start,
                              .pause = majority_calls_pause,
                              .cancel = majority_calls_cancel,
                              .where = majority_calls_where,
                              .estimate = decorator_estimate,
                              .info = decorator_info,
                              .free = decorator_free};

int majority_calls_new(calls **ret, const env *env_, calls *inner, const vote_options *opts, shoal_err *err)
{
    majority_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    b->o = *opts;
    *ret = &b->base.base;
    return 0;
}
