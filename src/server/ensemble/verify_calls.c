/* verify_calls.c: an answer is kept, checked, and let out, mended or replaced; see verify_calls.h. */
#include "ensemble/verify_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "calls/decorator.h"
#include "ensemble/verify_nli.h"
#include "ensemble/verify_said.h"

#define MARGIN_MS 10 /* before the deadline, for the answer to get out */

typedef struct verify_calls {
    decorator_calls base;
    verify_options o;
} verify_calls;

typedef struct verify_call {
    decorator_call
        base; /* its inner call is the member's that is asked now, or that of a model that checks */
    verify_calls *b;
    const verify_rule *rule;
    arena *mem;
    verify_case k;
    size_t i;                    /* the member */
    response_buffer now;         /* what it says, */
    response_buffer other;       /* and what goes out in its place */
    bool again;                  /* it was asked a second time */
    bool plain;                  /* its events may go out as they are */
    bool any;                    /* some member has answered */
    verify_answer answer, spare; /* that is held now; mended, and to be had when nothing better comes */
    bool mended, has_spare;      /* answer is a rule's */
    verify_verdict verdict;      /* of the member's answer */
    size_t at, step;             /* the check, the next step when it fails */
    verify_nli nli;
    response_buffer *tells; /* what goes out; NULL: nothing yet */
    env_timer *timer;       /* the deadline's, and while an answer is told */
    bool *gone;             /* set when the call is freed, while an event is told */
    char trace[384], why[128];
} verify_call;

const char *verify_end_name(verify_end e)
{
    static const char *const NAMES[] = {
#define VERIFY_END_NAME(e, name) [e] = name,
        VERIFY_ENDS(VERIFY_END_NAME)
#undef VERIFY_END_NAME
    };
    return NAMES[e];
}

static const char *member(const verify_call *c)
{
    return c->rule->members[c->i];
}

/* ---- life of a call ------------------------------------------------------------------------------ */

static void verify_calls_call_free(verify_call *c)
{
    if (c->gone) *c->gone = true;
    c->b->base.env->timer_free(c->timer);
    response_buffer_done(&c->now);
    response_buffer_done(&c->other);
    arena_free(c->mem);
    decorator_call_done(&c->base);
    free(c);
}

static void verify_calls_cancel(model_call *call)
{
    verify_call *c = (verify_call *)call;
    calls_cancel(c->base.inner);
    verify_calls_call_free(c);
}

static void verify_calls_finish(verify_call *c, const call_result *ended)
{
    call_result r = *ended;
    r.trace = c->trace;
    if (*c->why) r.wanted = member(c), r.why = c->why;
    decorator_call_end(&c->base, &r);
    verify_calls_call_free(c);
}

static void verify_calls_fail(verify_call *c, int status, const char *message)
{
    call_result none = call_result_of(c->base.o, status, message);
    verify_calls_finish(c, &none);
}

static void verify_calls_fail_nomem(verify_call *c)
{
    verify_calls_fail(c, SHOAL_ENOMEM, "out of memory");
}

static void verify_calls_note(verify_call *c, const char *text)
{
    size_t n = strlen(c->trace);
    snprintf(c->trace + n, sizeof c->trace - n, "%s%s", n ? ", " : "", text);
}

/* What became of the member's answer. */
static void judged(verify_call *c, verify_end end)
{
    static const char *const TRACES[] = {[VERIFY_REPAIRED] = "repaired",
                                         [VERIFY_ASKED] = "asked to choose",
                                         [VERIFY_ESCALATED] = "escalated",
                                         [VERIFY_SAFE] = "safe text",
                                         [VERIFY_REFUSED] = "refused"};
    char passed[64];
    snprintf(passed, sizeof passed, "%.48s passed", member(c));
    verify_calls_note(c, end == VERIFY_PASSED ? passed : TRACES[end]);
    if (c->b->o.judged) c->b->o.judged(c->b->o.user, c->rule->name, member(c), end);
}

/* ---- telling ------------------------------------------------------------------------------------- */

static void finish_told(verify_call *c)
{
    call_result r;
    ProtobufCMessage *reply;
    response_buffer_result(c->tells, c->base.o, &r, &reply);
    verify_calls_finish(c, &r);
    response_buffer_free(reply);
}

/* As much as whoever asked takes; from the loop, and on from there when a pause ends. */
static void verify_calls_tell(verify_call *c)
{
    bool gone = false;
    c->gone = &gone;
    while (!gone && !c->base.paused && response_buffer_has_more(c->tells)) {
        ProtobufCMessage *m = response_buffer_next(c->tells, c->base.o);
        if (!m) {
            verify_calls_fail_nomem(c);
            return;
        }
        c->base.ev.event(&c->base.ev, m);
        response_buffer_free(m);
    }
    if (gone) return;
    c->gone = NULL;
    if (!c->base.paused) finish_told(c);
}

static void verify_calls_begin_to_tell(verify_call *c, response_buffer *what)
{
    c->tells = what;
    c->b->base.env->timer_stop(c->timer);
    verify_calls_tell(c);
}

static void verify_calls_pause(model_call *call, bool paused)
{
    verify_call *c = (verify_call *)call;
    decorator_pause(call, paused);
    if (c->tells && !paused) c->b->base.env->timer_start(c->timer, 0);
}

static void tell_made(verify_call *c, const verify_answer *a)
{
    if (verify_said_make(&c->other, &c->now, c->base.o, &c->k, a, c->rule->name) != 0)
        verify_calls_fail_nomem(c);
    else
        verify_calls_begin_to_tell(c, &c->other);
}

/* By all checks that need nobody else. SHOAL_ENOMEM, or 0. */
static int pass_all(verify_call *c, const verify_answer *a, bool *ret_pass)
{
    verify_verdict v = {.why = VERIFY_FINE};
    for (size_t i = 0; i < c->rule->n_checks && v.why == VERIFY_FINE; i++)
        if (verify_apply(&v, &c->rule->checks[i], &c->k, a, c->mem)) return SHOAL_ENOMEM;
    if (v.why == VERIFY_FINE) v.why = verify_may_leave(c->rule->checks, c->rule->n_checks, a);
    *ret_pass = v.why == VERIFY_FINE;
    return 0;
}

static void tell_safe(verify_call *c)
{
    verify_answer safe = {.text = c->k.report};
    bool passes = false;
    if (*c->k.report && pass_all(c, &safe, &passes)) {
        verify_calls_fail_nomem(c);
        return;
    }
    if (!passes) safe.text = c->rule->safe;
    judged(c, VERIFY_SAFE);
    tell_made(c, &safe);
}

/* ---- the ways out -------------------------------------------------------------------------------- */

static void verify_calls_ask(verify_call *c, call_order *o);
static void check_on(verify_call *c);

/* Milliseconds to the deadline, less what an answer needs to get out; a lot without one. */
static double verify_calls_left_ms(const verify_call *c)
{
    uint64_t now = decorator_now_ns(c->base.b), end = c->base.o->deadline_ns;
    if (!end) return 1e12;
    return end > now ? (double)(end - now) / 1e6 - MARGIN_MS : 0;
}

static bool verify_calls_is_in_time(const verify_call *c, const char *model)
{
    call_estimate estimate;
    call_order *o = c->base.o->deadline_ns ? call_order_for(c->base.o, model) : NULL;
    if (!o) return true; /* without memory it is tried */
    calls_estimate(c->b->base.inner, o, &c->base.terms, &estimate);
    call_order_unref(o);
    return (estimate.status == 0 ? estimate.expected_ms : 0) < verify_calls_left_ms(c);
}

/* There is no time for more: what a rule had mended goes out, else the safe text. */
static void end_early(verify_call *c, const char *why)
{
    snprintf(c->why, sizeof c->why, "%s", why);
    LOG(LOG_WARN, "ensemble", "verify_cut", LOG_S("route", c->rule->name), LOG_S("wanted", member(c)),
        LOG_S("why", why), LOG_S("request_id", c->base.o->request_id));
    if (c->k.formed) {
        judged(c, VERIFY_REFUSED);
        verify_calls_fail(c, SHOAL_EDEADLINE, "no answer had passed the checks as the deadline came near");
    } else if (c->has_spare) {
        judged(c, VERIFY_REPAIRED);
        tell_made(c, &c->spare);
    } else {
        tell_safe(c);
    }
}

/* What a rule mended is kept while others are asked, if it passes. */
static void keep_spare(verify_call *c)
{
    bool passes = false;
    const verify_answer *a = &c->verdict.mended;
    if (!c->verdict.mends || c->has_spare || pass_all(c, a, &passes)) return;
    c->has_spare = passes;
    if (passes) c->spare = *a;
}

static bool hold_mended(verify_call *c, const verify_answer *a)
{
    c->answer = *a;
    c->mended = true;
    c->at = 0;
    check_on(c);
    return true;
}

/* True: it is under way, and c may be gone. */
static bool repair(verify_call *c)
{
    const verify_verdict *v = &c->verdict;
    if (c->k.formed) return false;
    if (v->mends) return hold_mended(c, &v->mended);
    if (v->n_options && !c->again && !c->k.searches) {
        judged(c, VERIFY_ASKED);
        c->again = true;
        verify_calls_ask(c, verify_said_choose(c->base.o, member(c), v->options, v->n_options, c->mem));
        return true;
    }
    return c->has_spare ? hold_mended(c, &c->spare) : false;
}

static bool escalate(verify_call *c)
{
    if (c->i + 1 == c->rule->n_members) return false;
    keep_spare(c);
    if (!verify_calls_is_in_time(c, c->rule->members[c->i + 1])) {
        c->i++;
        end_early(c, "the deadline leaves no time for it");
        return true;
    }
    judged(c, VERIFY_ESCALATED);
    c->i++;
    c->again = false;
    verify_calls_ask(c, call_order_for(c->base.o, member(c)));
    return true;
}

/* No step is left. */
static void verify_calls_give_up(verify_call *c)
{
    char text[256];
    if (!c->any) {
        judged(c, VERIFY_REFUSED);
        verify_calls_finish(c, &c->now.result);
    } else if (c->k.formed) {
        judged(c, VERIFY_REFUSED);
        snprintf(
            text, sizeof text,
            "no answer passed the checks of '%.64s' (%s), and there is no safe text of the form that was "
            "asked for",
            c->rule->name, verify_why_text(c->verdict.why));
        verify_calls_fail(c, SHOAL_EUNSUPPORTED, text);
    } else {
        tell_safe(c);
    }
}

static void next_step(verify_call *c)
{
    while (c->step < c->rule->n_steps) {
        verify_step s = c->rule->steps[c->step++];
        if (s == VERIFY_REPAIR ? repair(c) : escalate(c)) return;
    }
    verify_calls_give_up(c);
}

/* ---- checking ------------------------------------------------------------------------------------ */

static void passed(verify_call *c)
{
    if (!c->mended) {
        judged(c, VERIFY_PASSED);
        if (c->plain)
            verify_calls_begin_to_tell(c, &c->now);
        else
            tell_made(c, &c->answer);
        return;
    }
    judged(c, VERIFY_REPAIRED);
    if (!response_buffer_is_whole(&c->now)) snprintf(c->why, sizeof c->why, "it did not answer");
    tell_made(c, &c->answer);
}

/* by: the check's name. */
static void verify_calls_failed(verify_call *c, const char *by, const verify_verdict *v)
{
    char text[160];
    if (c->mended) { /* one rule's right answer is another's wrong one */
        c->mended = false;
        next_step(c);
        return;
    }
    c->verdict = *v;
    c->step = 0;
    if (!response_buffer_is_whole(&c->now)) c->verdict.why = VERIFY_SILENT;
    const char *why = verify_why_text(c->verdict.why);
    snprintf(text, sizeof text, "%.48s%s%.24s: %s", member(c), *by ? " " : "", by, why);
    verify_calls_note(c, text);
    LOG(LOG_INFO, "ensemble", "verify_held", LOG_S("route", c->rule->name), LOG_S("model", member(c)),
        LOG_S("check", by), LOG_S("why", why), LOG_S("request_id", c->base.o->request_id));
    next_step(c);
}

static void on_nothing(const call_events *ev, const ProtobufCMessage *m)
{
    (void)ev;
    (void)m;
}

static void verify_calls_go_on(verify_call *c, verify_why why)
{
    if (why == VERIFY_FINE) {
        c->at++;
        check_on(c);
        return;
    }
    verify_verdict v = {.why = why};
    verify_calls_failed(c, c->rule->checks[c->at].name, &v);
}

static void on_inferred(const call_events *ev, const call_result *r)
{
    verify_call *c = ev->user;
    const verify_check *check = &c->rule->checks[c->at];
    c->base.inner = NULL;
    const Shoal__V1__ClassifyReply *reply = (const Shoal__V1__ClassifyReply *)r->reply;
    verify_calls_go_on(c, r->status == 0 ? verify_nli_judge(&c->nli, reply, check->entails, check->min_score)
                                         : VERIFY_NOT_CHECKED);
}

/* Text is inferred; calls are for other checks. */
static void infer(verify_call *c, const verify_check *check)
{
    const call_order *o = c->base.o;
    bool only_calls = c->answer.n_calls && !c->answer.text[strspn(c->answer.text, " \t\r\n")];
    const Shoal__V1__ModelInfo *judge = calls_info(c->b->base.inner, check->model, NULL);
    size_t bytes = verify_nli_piece_bytes(judge ? judge->n_ctx : 0);
    if (verify_nli_ask(&c->nli, c->k.context, c->answer.text, bytes, c->mem)) {
        verify_calls_fail_nomem(c);
        return;
    }
    if (only_calls || c->nli.why != VERIFY_FINE) {
        verify_calls_go_on(c, only_calls ? VERIFY_FINE : c->nli.why);
        return;
    }
    call_context ctx = call_context_beside(o, "verify");
    call_order *q = call_order_new(CALL_CLASSIFY, check->model, &c->nli.request.base, &ctx);
    bool started = decorator_call_start(&c->base, q, &(call_terms){0}, on_nothing, on_inferred, NULL);
    call_order_unref(q);
    if (!started) verify_calls_fail_nomem(c);
}

static void check_on(verify_call *c)
{
    verify_verdict v = {.why = VERIFY_FINE};
    const verify_rule *r = c->rule;
    for (; c->at < r->n_checks; c->at++) {
        const verify_check *check = &r->checks[c->at];
        if (check->kind == VERIFY_NLI) {
            infer(c, check);
            return;
        }
        if (verify_apply(&v, check, &c->k, &c->answer, c->mem)) {
            verify_calls_fail_nomem(c);
            return;
        }
        if (v.why == VERIFY_FINE) continue;
        verify_calls_failed(c, check->name, &v);
        return;
    }
    v.why = verify_may_leave(r->checks, r->n_checks, &c->answer);
    if (v.why == VERIFY_FINE)
        passed(c);
    else
        verify_calls_failed(c, "", &v);
}

/* ---- asking -------------------------------------------------------------------------------------- */

static void verify_calls_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    verify_call *c = ev->user;
    response_buffer_note(&c->now, c->base.o, m);
}

/* What is wrong with the request itself, or ends it, is no member's: it is the answer. Not so of a question
 * that we have asked. */
static bool verify_calls_is_final(const verify_call *c, const call_result *r)
{
    return r->status != 0 && r->fault == CALL_FAULT_NONE && r->status != SHOAL_ELIMIT && !c->again;
}

static void verify_calls_on_end(const call_events *ev, const call_result *r)
{
    verify_call *c = ev->user;
    c->base.inner = NULL;
    response_buffer_end(&c->now, c->base.o, r);
    if (verify_calls_is_final(c, r)) {
        verify_calls_finish(c, r);
        return;
    }
    bool whole = response_buffer_is_whole(&c->now);
    c->any |= whole;
    c->answer = (verify_answer){.text = ""};
    if (whole && verify_said_read(&c->answer, &c->plain, &c->now, c->base.o, &c->k, c->mem)) {
        verify_calls_fail_nomem(c);
        return;
    }
    c->mended = false;
    c->at = 0;
    check_on(c);
}

static bool start_member(verify_call *c, call_order *o)
{
    response_buffer_done(&c->now);
    response_buffer_init(&c->now, member(c));
    bool started =
        decorator_call_start(&c->base, o, &c->base.terms, verify_calls_on_event, verify_calls_on_end, NULL);
    call_order_unref(o);
    return started;
}

/* Takes the order, NULL where there was no memory for it. */
static void verify_calls_ask(verify_call *c, call_order *o)
{
    if (!start_member(c, o)) verify_calls_fail_nomem(c);
}

static void verify_calls_on_timer(void *arg)
{
    verify_call *c = arg;
    if (c->tells) {
        verify_calls_tell(c);
        return;
    }
    calls_cancel(c->base.inner);
    c->base.inner = NULL;
    end_early(c, "it had not answered as the deadline came near");
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static verify_call *call_new(verify_calls *b, const verify_rule *rule, const call_order *o)
{
    verify_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->b = b;
    c->rule = rule;
    c->mem = arena_new(0);
    c->timer = b->base.env->timer_new(b->base.env->user, verify_calls_on_timer, c);
    Shoal__V1__GenerateRequest *r = (Shoal__V1__GenerateRequest *)call_order_request(o);
    bool read = r && c->mem && c->timer && verify_case_read(&c->k, r, c->mem) == 0;
    const verify_reporter *says = read && c->k.n_made ? rule->reporter : NULL;
    if (says) read = says->report(says, &c->k, c->mem) == 0;
    if (r) response_buffer_free(&r->base);
    if (read) return c;
    b->base.env->timer_free(c->timer);
    arena_free(c->mem);
    free(c);
    return NULL;
}

static model_call *verify_calls_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    verify_calls *b = (verify_calls *)base;
    const verify_rule *rule = decorator_rule_of(b, o->model);
    if (!rule) return calls_start(b->base.inner, o, t, ev);
    if (o->task != CALL_GENERATE) return decorator_start_for(&b->base, o, rule->members[0], t, ev);
    verify_call *c = call_new(b, rule, o);
    if (!c) return NULL;
    decorator_call_init(&c->base, base, o, t, ev);
    if (!start_member(c, call_order_for(o, member(c)))) {
        verify_calls_call_free(c);
        return NULL;
    }
    double left = verify_calls_left_ms(c);
    if (o->deadline_ns) b->base.env->timer_start(c->timer, left > 0 ? (uint64_t)left + 1 : 0);
    return &c->base.base;
}

static call_place verify_calls_where(const model_call *call)
{
    const verify_call *c = (const verify_call *)call;
    const call_result *r = c->tells ? &c->tells->result : NULL;
    call_place p = r ? call_place_of(r, r->model) : (call_place){0};
    p.trace = c->trace;
    if (*c->why) p.wanted = member(c), p.why = c->why;
    return p;
}

/* What somebody knows of it is what its first member would say. */
static void verify_calls_estimate(calls *base, const call_order *o, const call_terms *t, call_estimate *ret)
{
    const verify_rule *rule = decorator_rule_of((verify_calls *)base, o->model);
    decorator_estimate_for((decorator_calls *)base, o, rule ? rule->members[0] : NULL, t, ret);
}

static const Shoal__V1__ModelInfo *verify_calls_info(calls *base, const char *model, bool *ret_known)
{
    verify_calls *b = (verify_calls *)base;
    const verify_rule *rule = decorator_rule_of(b, model);
    return calls_info(b->base.inner, rule ? rule->members[0] : model, ret_known);
}

static const calls_ops OPS = {.start = verify_calls_start,
                              .pause = verify_calls_pause,
                              .cancel = verify_calls_cancel,
                              .where = verify_calls_where,
                              .estimate = verify_calls_estimate,
                              .info = verify_calls_info,
                              .free = decorator_free};

int verify_calls_new(calls **ret, const env *env_, calls *inner, const verify_options *opts, shoal_err *err)
{
    verify_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    b->o = *opts;
    *ret = &b->base.base;
    return 0;
}
