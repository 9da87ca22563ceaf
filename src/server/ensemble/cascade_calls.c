/* cascade_calls.c: one member after the other; see cascade_calls.h. */
#include "ensemble/cascade_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "calls/decorator.h"
#include "ensemble/response_buffer.h"

#define MARGIN_MS 10 /* before the deadline, for the best answer so far to get out */

typedef struct cascade_calls {
    decorator_calls base;
    cascade_options o;
} cascade_calls;

typedef struct cascade_call {
    decorator_call base; /* its inner call is the member's that is asked now */
    cascade_calls *b;
    const cascade_rule *rule;
    size_t i;                  /* that member */
    response_buffer now, best; /* best.model NULL: nobody has answered yet */
    env_timer *timer;          /* the deadline's, and while an answer is told that was kept */
    bool spoke;                /* events of the member go out as they come, and have begun to */
    bool tells;                /* `best` goes out */
    bool *gone;                /* set when the call is freed, while an event is told */
    char trace[384], why[128];
} cascade_call;

static const cascade_member *member(const cascade_call *c)
{
    return &c->rule->members[c->i];
}

static bool is_last(const cascade_call *c)
{
    return c->i + 1 == c->rule->n_members;
}

/* ---- life of a call ------------------------------------------------------------------------------ */

static void cascade_call_free(cascade_call *c)
{
    if (c->gone) *c->gone = true;
    c->b->base.env->timer_free(c->timer);
    response_buffer_done(&c->now);
    response_buffer_done(&c->best);
    decorator_call_done(&c->base);
    free(c);
}

static void cascade_cancel(model_call *call)
{
    cascade_call *c = (cascade_call *)call;
    calls_cancel(c->base.inner);
    cascade_call_free(c);
}

static void cascade_finish(cascade_call *c, const call_result *ended)
{
    call_result r = *ended;
    r.trace = c->trace;
    if (*c->why) {
        r.wanted = member(c)->model;
        r.why = c->why;
    }
    decorator_call_end(&c->base, &r);
    cascade_call_free(c);
}

static void cascade_fail_nomem(cascade_call *c)
{
    call_result none = call_result_of(c->base.o, SHOAL_ENOMEM, "out of memory");
    cascade_finish(c, &none);
}

static void cascade_note(cascade_call *c, const char *text)
{
    size_t n = strlen(c->trace);
    snprintf(c->trace + n, sizeof c->trace - n, "%s%s", n ? ", " : "", text);
}

/* ---- telling what was kept ----------------------------------------------------------------------- */

static void finish_best(cascade_call *c)
{
    call_result r;
    ProtobufCMessage *reply;
    response_buffer_result(&c->best, c->base.o, &r, &reply);
    r.trace = c->trace;
    if (*c->why) r.wanted = member(c)->model, r.why = c->why;
    decorator_call_end(&c->base, &r);
    response_buffer_free(reply);
    cascade_call_free(c);
}

/* As much as whoever asked takes; from the loop, and on from there when a pause ends. */
static void cascade_tell(cascade_call *c)
{
    bool gone = false;
    c->gone = &gone;
    while (!gone && !c->base.paused && response_buffer_has_more(&c->best)) {
        ProtobufCMessage *m = response_buffer_next(&c->best, c->base.o);
        if (!m) {
            cascade_fail_nomem(c);
            return;
        }
        c->base.ev.event(&c->base.ev, m);
        response_buffer_free(m);
    }
    if (gone) return;
    c->gone = NULL;
    if (!c->base.paused) finish_best(c);
}

static void cascade_begin_to_tell(cascade_call *c)
{
    c->tells = true;
    c->b->base.env->timer_stop(c->timer);
    cascade_tell(c);
}

static void cascade_pause(model_call *call, bool paused)
{
    cascade_call *c = (cascade_call *)call;
    decorator_pause(call, paused);
    if (c->tells && !paused) c->b->base.env->timer_start(c->timer, 0);
}

/* The surest answer goes out though it does not suffice: it says why not the member that was to come. */
static void tell_best(cascade_call *c, const char *why)
{
    snprintf(c->why, sizeof c->why, "%s", why);
    LOG(LOG_WARN, "ensemble", "cascade_cut", LOG_S("route", c->rule->name), LOG_S("answers", c->best.model),
        LOG_S("wanted", member(c)->model), LOG_S("why", why), LOG_S("request_id", c->base.o->request_id));
    cascade_begin_to_tell(c);
}

/* ---- the way up ---------------------------------------------------------------------------------- */

static bool is_hopeless(void *user, double at_most);
static void cascade_on_event(const call_events *ev, const ProtobufCMessage *m);
static void cascade_on_end(const call_events *ev, const call_result *r);

static bool cascade_ask(cascade_call *c)
{
    call_order *o = call_order_for(c->base.o, member(c)->model);
    response_buffer_init(&c->now, member(c)->model);
    if (!is_last(c)) c->now.is_hopeless = is_hopeless, c->now.user = c;
    if (is_last(c)) cascade_note(c, member(c)->model);
    bool started = decorator_call_start(&c->base, o, &c->base.terms, cascade_on_event, cascade_on_end, NULL);
    call_order_unref(o);
    return started;
}

/* Milliseconds to the deadline; a lot without one. */
static double cascade_left_ms(const cascade_call *c)
{
    uint64_t now = decorator_now_ns(c->base.b), end = c->base.o->deadline_ns;
    if (!end) return 1e12;
    return end > now ? (double)(end - now) / 1e6 : 0;
}

static bool cascade_is_in_time(const cascade_call *c)
{
    call_estimate estimate;
    call_order *o = c->base.o->deadline_ns ? call_order_for(c->base.o, member(c)->model) : NULL;
    if (!o) return true; /* without memory it is tried */
    calls_estimate(c->b->base.inner, o, &c->base.terms, &estimate);
    call_order_unref(o);
    double expected_ms = estimate.status == 0 ? estimate.expected_ms : 0;
    return expected_ms + MARGIN_MS < cascade_left_ms(c);
}

/* `now` may serve when nobody who follows is there in time. */
static void keep_better(cascade_call *c)
{
    bool better =
        response_buffer_is_whole(&c->now) &&
        (!c->best.model || response_buffer_confidence(&c->now) > response_buffer_confidence(&c->best));
    response_buffer *worse = better ? &c->best : &c->now;
    response_buffer_done(worse);
    if (!better) return;
    c->best = c->now;
    c->now = (response_buffer){0};
}

static void cascade_ask_next(cascade_call *c)
{
    keep_better(c);
    c->i++;
    if (c->best.model && !cascade_is_in_time(c)) {
        tell_best(c, "the deadline leaves no time for it");
        return;
    }
    if (!cascade_ask(c)) {
        cascade_fail_nomem(c);
        return;
    }
    if (c->best.model && c->base.o->deadline_ns)
        c->b->base.env->timer_start(c->timer, (uint64_t)(cascade_left_ms(c) - MARGIN_MS) + 1);
}

static void cascade_on_timer(void *arg)
{
    cascade_call *c = arg;
    if (c->tells) {
        cascade_tell(c);
        return;
    }
    if (c->spoke || !c->best.model) return; /* the deadline itself will end it */
    calls_cancel(c->base.inner);
    c->base.inner = NULL;
    tell_best(c, "it had not answered as the deadline came near");
}

/* The member's confidence as its map has it, noted and told; true: it suffices. */
static bool cascade_judge(cascade_call *c, double said)
{
    char text[96];
    double is = confidence_of(member(c)->map, said);
    bool sure = is >= member(c)->min_confidence;
    snprintf(text, sizeof text, "%.48s %.3f %s %.3f", member(c)->model, is, sure ? ">=" : "<",
             member(c)->min_confidence);
    cascade_note(c, text);
    if (c->b->o.judged) c->b->o.judged(c->b->o.user, c->rule->name, member(c)->model, is, sure);
    return sure;
}

static bool is_hopeless(void *user, double at_most)
{
    const cascade_call *c = user;
    return confidence_of(member(c)->map, at_most) < member(c)->min_confidence;
}

/* What was learnt of one file says nothing of another. */
static bool is_strange(cascade_call *c, const char *digest)
{
    char text[96];
    const char *wanted = member(c)->digest;
    if (!wanted || !*wanted || !digest || !*digest || strcmp(wanted, digest) == 0) return false;
    snprintf(text, sizeof text, "%.48s was calibrated as another file", member(c)->model);
    cascade_note(c, text);
    if (c->b->o.strange) c->b->o.strange(c->b->o.user, c->rule->name, member(c)->model, digest);
    return true;
}

static void cascade_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    cascade_call *c = ev->user;
    if (is_last(c)) {
        c->spoke = true;
        c->base.ev.event(&c->base.ev, m); /* may cancel: c is not touched again */
        return;
    }
    response_buffer_note(&c->now, c->base.o, m);
    if (c->now.hopeless_at < 0) return;
    if (!is_strange(c, calls_where(c->base.inner).digest)) cascade_judge(c, c->now.hopeless_at);
    calls_cancel(c->base.inner);
    c->base.inner = NULL;
    cascade_ask_next(c);
}

/* What is wrong with the request itself, or ends it, is no member's: it is the answer. */
static bool cascade_is_final(const call_result *r)
{
    return r->status != 0 && r->fault == CALL_FAULT_NONE && r->status != SHOAL_ELIMIT;
}

static void end_of_last(cascade_call *c, const call_result *r)
{
    if (r->status != 0 && !c->spoke && c->best.model)
        tell_best(c, r->message);
    else
        cascade_finish(c, r);
}

static void cascade_on_end(const call_events *ev, const call_result *r)
{
    cascade_call *c = ev->user;
    c->base.inner = NULL;
    if (is_last(c)) {
        end_of_last(c, r);
        return;
    }
    response_buffer_end(&c->now, c->base.o, r);
    if (cascade_is_final(r)) {
        cascade_finish(c, r);
        return;
    }
    if (r->status != 0) cascade_note(c, "failed");
    if (!response_buffer_is_whole(&c->now) || is_strange(c, r->digest) ||
        !cascade_judge(c, response_buffer_confidence(&c->now))) {
        cascade_ask_next(c);
        return;
    }
    response_buffer_done(&c->best);
    c->best = c->now;
    c->now = (response_buffer){0};
    cascade_begin_to_tell(c);
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static model_call *cascade_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    cascade_calls *b = (cascade_calls *)base;
    const cascade_rule *rule = decorator_rule_of(b, o->model);
    if (!rule) return calls_start(b->base.inner, o, t, ev);
    cascade_call *c = malloc(sizeof *c);
    if (!c) return NULL;
    *c = (cascade_call){.b = b, .rule = rule};
    c->timer = b->base.env->timer_new(b->base.env->user, cascade_on_timer, c);
    if (!c->timer) {
        free(c);
        return NULL;
    }
    decorator_call_init(&c->base, base, o, t, ev);
    if (cascade_ask(c)) return &c->base.base;
    cascade_call_free(c);
    return NULL;
}

static call_place cascade_where(const model_call *call)
{
    const cascade_call *c = (const cascade_call *)call;
    const call_result *r = &c->best.result;
    call_place p = {0};
    if (c->tells)
        p = call_place_of(r, c->best.model);
    else if (is_last(c))
        p = calls_where(c->base.inner);
    p.trace = c->trace;
    if (*c->why) p.wanted = member(c)->model, p.why = c->why;
    return p;
}

/* What somebody knows of a cascade is what its first member would say. */
static void cascade_estimate(calls *base, const call_order *o, const call_terms *t, call_estimate *ret)
{
    const cascade_rule *rule = decorator_rule_of((cascade_calls *)base, o->model);
    decorator_estimate_for((decorator_calls *)base, o, rule ? rule->members[0].model : NULL, t, ret);
}

static const Shoal__V1__ModelInfo *cascade_info(calls *base, const char *model, bool *ret_known)
{
    cascade_calls *b = (cascade_calls *)base;
    const cascade_rule *rule = decorator_rule_of(b, model);
    return calls_info(b->base.inner, rule ? rule->members[rule->n_members - 1].model : model, ret_known);
}

static const calls_ops OPS = {.start = cascade_start,
                              .pause = cascade_pause,
                              .cancel = cascade_cancel,
                              .where = cascade_where,
                              .estimate = cascade_estimate,
                              .info = cascade_info,
                              .free = decorator_free};

int cascade_calls_new(calls **ret, const env *env_, calls *inner, const cascade_options *opts, shoal_err *err)
{
    cascade_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    b->o = *opts;
    *ret = &b->base.base;
    return 0;
}
