/* refine_calls.c: two at once; see refine_calls.h. */
#include "ensemble/refine_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "logging/log.h"
#include "base/utf8.h"
#include "calls/decorator.h"
#include "ensemble/response_buffer.h"

#define MARGIN_MS 10 /* before the deadline, for what was said to stand */

typedef struct refine_calls {
    decorator_calls base;
    refine_options o;
} refine_calls;

typedef struct refine_call refine_call;

typedef struct side {
    refine_call *c;
    const char *model;
    model_call *inner;    /* NULL: it has ended, or was dismissed */
    response_buffer kept; /* what of it has not been told */
    bool spoke;           /* some of its answer is here, */
    bool heard;           /* and was told */
} side;

struct refine_call {
    decorator_call base; /* its inner calls are the sides' */
    refine_calls *b;
    const refine_rule *rule;
    side fast, better;
    side *told; /* whose events go out; NULL: nobody's yet */
    bool refines;
    bool waited;          /* long enough for the better one */
    response_buffer last; /* under `refines` the fast one's last event, which waits for the better one */
    env_timer *timer;
    bool *gone; /* set when the call is freed, while an event is told */
    char trace[192], why[256];
};

/* ---- life of a call ------------------------------------------------------------------------------ */

static void refine_dismiss(side *s)
{
    model_call *inner = s->inner;
    s->inner = NULL;
    calls_cancel(inner);
}

static void refine_call_free(refine_call *c)
{
    if (c->gone) *c->gone = true;
    refine_dismiss(&c->fast);
    refine_dismiss(&c->better);
    response_buffer_done(&c->fast.kept);
    response_buffer_done(&c->better.kept);
    response_buffer_done(&c->last);
    c->b->base.env->timer_free(c->timer);
    decorator_call_done(&c->base);
    free(c);
}

static void refine_cancel(model_call *call)
{
    refine_call_free((refine_call *)call);
}

static side *other(side *s)
{
    return s == &s->c->fast ? &s->c->better : &s->c->fast;
}

static void refine_finish(refine_call *c, const call_result *ended, const char *by)
{
    call_result r = *ended;
    snprintf(c->trace, sizeof c->trace, "%s of %.64s, %.64s", by, c->rule->fast, c->rule->better);
    r.trace = c->trace;
    if (*c->why && r.status == 0) r.wanted = c->rule->better, r.why = c->why;
    if (r.status == 0 && c->b->o.answered) c->b->o.answered(c->b->o.user, c->rule->name, by);
    decorator_call_end(&c->base, &r);
    refine_call_free(c);
}

static void finish_side(side *s, const char *by)
{
    refine_call *c = s->c;
    call_result r;
    ProtobufCMessage *reply;
    response_buffer_result(&s->kept, c->base.o, &r, &reply);
    refine_finish(c, &r, by);
    response_buffer_free(reply);
}

static void refine_fail_nomem(refine_call *c)
{
    call_result none = call_result_of(c->base.o, SHOAL_ENOMEM, "out of memory");
    refine_finish(c, &none, "none");
}

/* ---- telling ------------------------------------------------------------------------------------- */

/* False: whoever asked has left, or there was no memory; c is gone. */
static bool tell_one(refine_call *c, const ProtobufCMessage *m)
{
    bool gone = false;
    c->gone = &gone;
    c->base.ev.event(&c->base.ev, m);
    if (!gone) c->gone = NULL;
    return !gone;
}

/* The buffered events, as far as the caller takes them. False: c is gone. */
static bool tell_kept(refine_call *c, response_buffer *k)
{
    while (!c->base.paused && response_buffer_has_more(k)) {
        ProtobufCMessage *m = response_buffer_next(k, c->base.o);
        if (!m) {
            refine_fail_nomem(c);
            return false;
        }
        bool here = tell_one(c, m);
        response_buffer_free(m);
        if (!here) return false;
    }
    return true;
}

/* The whole of a kept answer: its text, and how it ended. */
static bool refine_gather(const response_buffer *k, const call_order *o, buf *ret_text, char ret_finish[16])
{
    response_buffer again = *k; /* a second reading of the same bytes */
    again.at = 0;
    while (response_buffer_has_more(&again)) {
        Shoal__V1__GenerateEvent *ev = (Shoal__V1__GenerateEvent *)response_buffer_next(&again, o);
        if (!ev) return false;
        if (ev->delta) utf8_put_c(ret_text, (const char *)ev->delta->text.data, ev->delta->text.len);
        if (ev->done) snprintf(ret_finish, 16, "%s", ev->done->finish);
        response_buffer_free(&ev->base);
    }
    return !ret_text->failed;
}

/* The better one's text in place of what was said, then its last event, with which it is counted. */
static void tell_refined(refine_call *c)
{
    buf text = {0};
    char end[16] = "";
    Shoal__V1__Refined refined = SHOAL__V1__REFINED__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    if (!refine_gather(&c->better.kept, c->base.o, &text, end)) {
        buf_done(&text);
        refine_fail_nomem(c);
        return;
    }
    refined.text = text.len ? text.data : (char *)(uintptr_t) "";
    refined.finish = end;
    refined.model = (char *)(uintptr_t)c->rule->better;
    ev.refined = &refined;
    bool here = tell_one(c, &ev.base);
    buf_done(&text);
    while (here && response_buffer_has_more(&c->better.kept)) {
        ProtobufCMessage *m = response_buffer_next(&c->better.kept, c->base.o);
        if (!m) {
            refine_fail_nomem(c);
            return;
        }
        if (((Shoal__V1__GenerateEvent *)m)->done) here = tell_one(c, m);
        response_buffer_free(m);
    }
    if (here) finish_side(&c->better, "refined");
}

/* What the fast one said stands. */
static void tell_fast_end(refine_call *c, const char *why)
{
    if (why) snprintf(c->why, sizeof c->why, "%s", why);
    refine_dismiss(&c->better);
    if (!tell_kept(c, &c->last) || c->base.paused) return; /* paused: the end of that tells the rest */
    finish_side(&c->fast, "fast");
}

/* Under `refines`: the fast one has ended, and the better one too, or it is not waited for any more. */
static void refine_conclude(refine_call *c, bool late)
{
    side *f = &c->fast, *b = &c->better;
    if (c->base.paused || f->inner || response_buffer_has_more(&f->kept)) return;
    if (response_buffer_is_whole(&b->kept))
        tell_refined(c);
    else if (b->kept.ended)
        tell_fast_end(c, b->kept.lost ? "out of memory" : b->kept.result.message);
    else if (late || *c->why)
        tell_fast_end(c, "it had not answered as the deadline came near");
}

/* Go on with whoever is told. */
static void pump(refine_call *c)
{
    side *s = c->told;
    if (!s || !tell_kept(c, &s->kept)) return;
    if (c->base.paused || response_buffer_has_more(&s->kept)) return;
    if (c->refines && s == &c->fast)
        refine_conclude(c, false);
    else if (s->kept.ended)
        finish_side(s, s == &c->fast ? "fast" : "better");
}

static void refine_calls_choose(side *s)
{
    refine_call *c = s->c;
    c->told = s;
    refine_dismiss(other(s));
    pump(c);
}

/* ---- what comes ---------------------------------------------------------------------------------- */

static bool speaks(const call_order *o, const ProtobufCMessage *m)
{
    if (o->task != CALL_GENERATE) return true;
    return ((const Shoal__V1__GenerateEvent *)m)->delta || ((const Shoal__V1__GenerateEvent *)m)->done;
}

static bool refine_is_done(const call_order *o, const ProtobufCMessage *m)
{
    return o->task == CALL_GENERATE && ((const Shoal__V1__GenerateEvent *)m)->done;
}

static void refine_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    side *s = ev->user;
    refine_call *c = s->c;
    bool fast = s == &c->fast;
    s->spoke |= speaks(c->base.o, m);
    if (c->refines && fast && refine_is_done(c->base.o, m)) {
        response_buffer_note(&c->last, c->base.o, m);
        return;
    }
    if (c->told == s && !c->base.paused && !response_buffer_has_more(&s->kept)) {
        s->heard = true;
        tell_one(c, m); /* may be gone now */
        return;
    }
    response_buffer_note(&s->kept, c->base.o, m);
    if (c->told || !s->spoke) return;
    if (!fast || c->waited) refine_calls_choose(s);
}

static void refine_on_end(const call_events *ev, const call_result *r)
{
    side *s = ev->user;
    refine_call *c = s->c;
    side *o = other(s);
    s->inner = NULL;
    response_buffer_end(&s->kept, c->base.o, r);
    bool well = response_buffer_is_whole(&s->kept), heard = c->told == s;
    if (!well && !o->inner && !response_buffer_is_whole(&o->kept) && !(c->refines && c->fast.heard)) {
        refine_finish(c, r, "none"); /* both have failed */
        return;
    }
    bool unheard = c->refines && s == &c->fast && !s->heard && s->kept.at == 0;
    if (!well && unheard) { /* then the better one is all that there is to hear */
        c->told = o;
        pump(c);
        return;
    }
    if (!well && !heard && !c->told) {
        if (s == &c->better) snprintf(c->why, sizeof c->why, "%s", r->message);
        if (o->spoke || !o->inner) refine_calls_choose(o);
        c->waited = true; /* else whoever is left is told when it speaks */
        return;
    }
    if (!well && heard && !(c->refines && s == &c->fast)) {
        refine_finish(c, r, "none"); /* what was heard has no end */
        return;
    }
    if (!c->told && well && (s == &c->better || c->waited)) {
        refine_calls_choose(s);
        return;
    }
    if (c->refines && c->told == &c->fast)
        refine_conclude(c, false);
    else
        pump(c);
}

/* ---- time ---------------------------------------------------------------------------------------- */

static uint64_t refine_left_ms(const refine_call *c)
{
    uint64_t now = decorator_now_ns(c->base.b), end = c->base.o->deadline_ns;
    uint64_t left = end > now ? (end - now) / 1000000u : 0;
    return left > MARGIN_MS ? left - MARGIN_MS : 0;
}

static void refine_on_timer(void *arg)
{
    refine_call *c = arg;
    if (c->refines) {
        bool late = c->base.o->deadline_ns && refine_left_ms(c) == 0;
        if (c->told == &c->fast && !c->base.paused) {
            if (response_buffer_has_more(&c->fast.kept))
                pump(c);
            else
                refine_conclude(c, late);
            return;
        }
        pump(c);
        return;
    }
    if (c->told) {
        pump(c);
        return;
    }
    c->waited = true;
    if (c->fast.spoke) refine_calls_choose(&c->fast);
}

static void refine_pause(model_call *call, bool paused)
{
    refine_call *c = (refine_call *)call;
    c->base.paused = paused;
    calls_pause(c->fast.inner, paused);
    calls_pause(c->better.inner, paused);
    if (!paused) c->b->base.env->timer_start(c->timer, 0);
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static bool wants_refined(const call_order *o)
{
    Shoal__V1__GenerateRequest *r =
        o->task == CALL_GENERATE ? (Shoal__V1__GenerateRequest *)call_order_request(o) : NULL;
    bool wants = r && r->refines;
    if (r) response_buffer_free(&r->base);
    return wants;
}

static bool refine_ask(side *s, refine_call *c, const char *model)
{
    call_events ev = {.user = s, .event = refine_on_event, .end = refine_on_end};
    s->c = c;
    s->model = model;
    response_buffer_init(&s->kept, model);
    call_order *o = call_order_for(c->base.o, model);
    s->inner = o ? calls_start(c->b->base.inner, o, &c->base.terms, &ev) : NULL;
    call_order_unref(o);
    return s->inner != NULL;
}

static model_call *refine_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    refine_calls *b = (refine_calls *)base;
    const refine_rule *rule = decorator_rule_of(b, o->model);
    if (!rule) return calls_start(b->base.inner, o, t, ev);
    refine_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (refine_call){.b = b, .rule = rule, .refines = wants_refined(o)};
    c->timer = b->base.env->timer_new(b->base.env->user, refine_on_timer, c);
    if (!c->timer) {
        free(c);
        return NULL;
    }
    decorator_call_init(&c->base, base, o, t, ev);
    response_buffer_init(&c->last, rule->fast);
    if (c->refines) c->told = &c->fast;
    if (!refine_ask(&c->fast, c, rule->fast) || !refine_ask(&c->better, c, rule->better)) {
        refine_call_free(c);
        return NULL;
    }
    if (!c->refines)
        b->base.env->timer_start(c->timer, rule->wait_ms);
    else if (o->deadline_ns)
        b->base.env->timer_start(c->timer, refine_left_ms(c));
    return &c->base.base;
}

static call_place refine_where(const model_call *call)
{
    const refine_call *c = (const refine_call *)call;
    const side *s = c->told;
    if (!s) return (call_place){0};
    const call_result *r = &s->kept.result;
    call_place p = s->inner ? calls_where(s->inner) : (call_place){0};
    if (!s->inner && s->kept.ended) p = call_place_of(r, s->model);
    if (*c->why) p.wanted = c->rule->better, p.why = c->why;
    return p;
}

static void refine_estimate(calls *base, const call_order *o, const call_terms *t, call_estimate *ret)
{
    const refine_rule *rule = decorator_rule_of((refine_calls *)base, o->model);
    decorator_estimate_for((decorator_calls *)base, o, rule ? rule->fast : NULL, t, ret);
}

static const Shoal__V1__ModelInfo *refine_info(calls *base, const char *model, bool *ret_known)
{
    refine_calls *b = (refine_calls *)base;
    const refine_rule *rule = decorator_rule_of(b, model);
    return calls_info(b->base.inner, rule ? rule->better : model, ret_known);
}

static const calls_ops OPS = {.start = refine_start,
                              .pause = refine_pause,
                              .cancel = refine_cancel,
                              .where = refine_where,
                              .estimate = refine_estimate,
                              .info = refine_info,
                              .free = decorator_free};

int refine_calls_new(calls **ret, const env *env_, calls *inner, const refine_options *opts, shoal_err *err)
{
    refine_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    b->o = *opts;
    *ret = &b->base.base;
    return 0;
}
