/* poll_calls.c: all are asked, what comes of it is one answer; see poll_calls.h. */
#include "ensemble/poll_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "calls/decorator.h"
#include "ensemble/poll.h"
#include "ensemble/response_buffer.h"

#define MARGIN_MS 10 /* before the deadline, for what has come by then to get out */

typedef struct poll_calls {
    decorator_calls base;
    vote_options o;
} poll_calls;

typedef struct poll_call poll_call;

typedef struct pollee {
    poll_call *c;
    const vote_member *m;
    model_call *inner; /* NULL: it has answered or failed */
    response_buffer answer;
} pollee;

struct poll_call {
    decorator_call base; /* its inner calls are the pollees' */
    poll_calls *b;
    const vote_rule *rule;
    pollee pollees[VOTE_MEMBERS_MAX];
    env_timer *timer; /* the deadline's; NULL without one */
    char trace[256], why[256];
};

/* ---- life of a call ------------------------------------------------------------------------------ */

static void poll_calls_dismiss_all(poll_call *c)
{
    for (size_t i = 0; i < c->rule->n_members; i++) {
        model_call *inner = c->pollees[i].inner;
        c->pollees[i].inner = NULL;
        calls_cancel(inner);
    }
}

static void poll_calls_call_free(poll_call *c)
{
    poll_calls_dismiss_all(c);
    for (size_t i = 0; i < c->rule->n_members; i++) response_buffer_done(&c->pollees[i].answer);
    c->b->base.env->timer_free(c->timer);
    decorator_call_done(&c->base);
    free(c);
}

static void poll_calls_cancel(model_call *call)
{
    poll_calls_call_free((poll_call *)call);
}

static void poll_calls_pause(model_call *call, bool paused)
{
    poll_call *c = (poll_call *)call;
    c->base.paused = paused;
    for (size_t i = 0; i < c->rule->n_members; i++) calls_pause(c->pollees[i].inner, paused);
}

static void poll_calls_finish(poll_call *c, const call_result *ended)
{
    call_result r = *ended;
    r.trace = c->trace;
    if (*c->why && r.status == 0) r.wanted = c->rule->name, r.why = c->why;
    decorator_call_end(&c->base, &r);
    poll_calls_call_free(c);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static void poll_calls_note(poll_call *c, const pollee *p, const char *what)
{
    size_t n = strlen(c->trace);
    snprintf(c->trace + n, sizeof c->trace - n, "%s%.48s %g%s", n ? ", " : "mean of ", p->m->model,
             p->m->weight, what);
}

/* Those whose replies are there; the others are why the answer is not all that it might be. */
static size_t collect(poll_call *c, poll_reply *ret, ProtobufCMessage **ret_owned, call_result *ret_first)
{
    size_t n = 0;
    for (size_t i = 0; i < c->rule->n_members; i++) {
        pollee *p = &c->pollees[i];
        call_result r;
        ProtobufCMessage *reply = NULL;
        if (response_buffer_is_whole(&p->answer) &&
            response_buffer_result(&p->answer, c->base.o, &r, &reply) == 0) {
            poll_calls_note(c, p, "");
            if (n == 0) *ret_first = r;
            ret_owned[n] = reply;
            ret[n++] = (poll_reply){reply, p->m->weight};
            continue;
        }
        poll_calls_note(c, p, " away");
        if (c->b->o.left) c->b->o.left(c->b->o.user, c->rule->name, p->m->model);
        if (!*c->why)
            snprintf(c->why, sizeof c->why, "%.64s has no part in it: %.150s", p->m->model,
                     p->answer.ended ? p->answer.result.message : "the deadline came first");
    }
    return n;
}

/* What a failure of all comes to: the first member's. */
static void poll_calls_fail(poll_call *c)
{
    call_result none =
        call_result_of(c->base.o, SHOAL_EDEADLINE, "the deadline passed before any model had answered");
    for (size_t i = 0; i < c->rule->n_members; i++) {
        const response_buffer *k = &c->pollees[i].answer;
        if (!k->ended) continue;
        poll_calls_finish(c, k->lost ? &none : &k->result);
        return;
    }
    poll_calls_finish(c, &none);
}

static void answer(poll_call *c)
{
    poll_reply replies[VOTE_MEMBERS_MAX];
    ProtobufCMessage *owned[VOTE_MEMBERS_MAX];
    call_result r;
    poll_calls_dismiss_all(c);
    size_t n = collect(c, replies, owned, &r);
    if (n == 0) {
        poll_calls_fail(c);
        return;
    }
    ProtobufCMessage *all = poll_merge(c->base.o->task, replies, n);
    for (size_t i = 0; i < n; i++) response_buffer_free(owned[i]);
    if (all)
        r.reply = all;
    else
        r = call_result_of(c->base.o, SHOAL_ENOMEM,
                           "the models' answers could not be made one: out of memory");
    poll_calls_finish(c, &r);
    response_buffer_free(all);
}

/* What is wrong with the request is so for all: the first who says it ends the poll. */
static bool poll_calls_is_final(const call_result *r)
{
    return r->status == SHOAL_EINVALID || r->status == SHOAL_EUNSUPPORTED || r->status == SHOAL_ELIMIT;
}

static void poll_calls_on_end(const call_events *ev, const call_result *r)
{
    pollee *p = ev->user;
    poll_call *c = p->c;
    p->inner = NULL;
    response_buffer_end(&p->answer, c->base.o, r);
    if (poll_calls_is_final(r)) {
        poll_calls_finish(c, r);
        return;
    }
    for (size_t i = 0; i < c->rule->n_members; i++)
        if (c->pollees[i].inner) return;
    answer(c);
}

static void poll_calls_on_timer(void *arg)
{
    poll_call *c = arg;
    for (size_t i = 0; i < c->rule->n_members; i++) {
        if (!response_buffer_is_whole(&c->pollees[i].answer)) continue;
        answer(c);
        return;
    }
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static bool poll_calls_ask(poll_call *c, size_t i)
{
    pollee *p = &c->pollees[i];
    call_events ev = {.user = p, .end = poll_calls_on_end};
    p->c = c;
    p->m = &c->rule->members[i];
    response_buffer_init(&p->answer, p->m->model);
    call_order *o = call_order_for(c->base.o, p->m->model);
    p->inner = o ? calls_start(c->b->base.inner, o, &c->base.terms, &ev) : NULL;
    call_order_unref(o);
    return p->inner != NULL;
}

static bool watch_deadline(poll_call *c)
{
    const env *e = c->b->base.env;
    uint64_t now = decorator_now_ns(c->base.b), end = c->base.o->deadline_ns;
    if (!end) return true;
    c->timer = e->timer_new(e->user, poll_calls_on_timer, c);
    uint64_t left_ms = end > now ? (end - now) / 1000000u : 0;
    if (c->timer) e->timer_start(c->timer, left_ms > MARGIN_MS ? left_ms - MARGIN_MS : 0);
    return c->timer != NULL;
}

static const vote_rule *poll_calls_rule_of(const poll_calls *b, const char *name)
{
    for (size_t i = 0; i < b->o.n_rules; i++)
        if (strcmp(b->o.rules[i].name, name) == 0) return &b->o.rules[i];
    return NULL;
}

static model_call *poll_calls_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    poll_calls *b = (poll_calls *)base;
    const vote_rule *rule = poll_takes(o->task) ? poll_calls_rule_of(b, o->model) : NULL;
    if (!rule) return calls_start(b->base.inner, o, t, ev);
    poll_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (poll_call){.b = b, .rule = rule};
    decorator_call_init(&c->base, base, o, t, ev);
    bool started = watch_deadline(c);
    for (size_t i = 0; started && i < rule->n_members; i++) started = poll_calls_ask(c, i);
    if (started) return &c->base.base;
    poll_calls_call_free(c);
    return NULL;
}

static call_place poll_calls_where(const model_call *call)
{
    const poll_call *c = (const poll_call *)call;
    for (size_t i = 0; i < c->rule->n_members; i++)
        if (c->pollees[i].inner) return calls_where(c->pollees[i].inner);
    return (call_place){0};
}

static const calls_ops OPS = {.start = poll_calls_start,
                              .pause = poll_calls_pause,
                              .cancel = poll_calls_cancel,
                              .where = poll_calls_where,
                              .look = decorator_look,
                              .info = decorator_info,
                              .free = decorator_free};

int poll_calls_new(calls **ret, const env *env_, calls *inner, const vote_options *opts, shoal_err *err)
{
    poll_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    b->o = *opts;
    *ret = &b->base.base;
    return 0;
}
