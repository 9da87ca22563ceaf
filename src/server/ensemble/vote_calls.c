/* vote_calls.c: one reply of many; see vote_calls.h. */
#include "ensemble/vote_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "base/buf.h"
#include "calls/decorator.h"
#include "calls/resume.h"

typedef struct vote_calls {
    decorator_calls base;
    vote_options o;
} vote_calls;

typedef struct vote_call vote_call;

typedef struct voter {
    vote_call *c;
    const vote_member *m;
    call_order *order; /* as asked of this member at first */
    model_call *inner; /* NULL: it has left */
    call_feed *feed;
    resume log; /* of what it said of its prompt */
    bool started, voted;
    buf ballot;
} voter;

struct vote_call {
    decorator_call base; /* its inner calls are the voters' */
    vote_calls *b;
    const vote_rule *rule;
    voter voters[VOTE_MEMBERS_MAX];
    size_t leader;
    uint32_t position;                /* of the token that is voted on */
    uint32_t from;                    /* and of the first since all were asked */
    resume log;                       /* of what went out */
    bool moved;                       /* another leader than at first, or the same once more */
    env_timer *timer;                 /* for those who are silent, and to begin anew */
    bool anew, refused;               /* refused: `why` says why no vote is held */
    uint64_t asked_ns, hold_until_ns; /* when this token's vote began; 0: nobody was waited for yet */
    double step_ms;                   /* mean of the last ones */
    char trace[256], why[320];
};

/* ---- life of a call ------------------------------------------------------------------------------ */

static void vote_dismiss(voter *v)
{
    model_call *inner = v->inner;
    v->inner = NULL;
    v->started = v->voted = false;
    calls_cancel(inner);
    call_feed_leave(v->feed);
    v->feed = NULL;
}

static void vote_call_free(vote_call *c)
{
    for (size_t i = 0; i < c->rule->n_members; i++) {
        vote_dismiss(&c->voters[i]);
        resume_done(&c->voters[i].log);
        call_order_unref(c->voters[i].order);
        buf_done(&c->voters[i].ballot);
    }
    c->b->base.env->timer_free(c->timer);
    resume_done(&c->log);
    decorator_call_done(&c->base);
    free(c);
}

static void vote_cancel(model_call *call)
{
    vote_call_free((vote_call *)call);
}

static void vote_finish(vote_call *c, const call_result *ended)
{
    call_result r = *ended;
    r.trace = c->trace;
    if (*c->why) r.wanted = c->rule->name, r.why = c->why;
    /* Before the end, with which the request ends that hears of their calls. */
    for (size_t i = 0; i < c->rule->n_members; i++) vote_dismiss(&c->voters[i]);
    decorator_call_end(&c->base, &r);
    vote_call_free(c);
}

static void vote_fail(vote_call *c, int status, const char *message)
{
    call_result r = call_result_of(c->base.o, status, message);
    vote_finish(c, &r);
}

static size_t count_voters(const vote_call *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->rule->n_members; i++) n += c->voters[i].inner != NULL;
    return n;
}

static void vote_pause(model_call *call, bool paused)
{
    vote_call *c = (vote_call *)call;
    c->base.paused = paused;
    calls_pause(c->voters[c->leader].inner, paused);
    if (!paused) c->asked_ns = decorator_listening_ns(c->base.b); /* nobody was silent meanwhile */
}

/* ---- asking -------------------------------------------------------------------------------------- */

static void vote_on_event(const call_events *ev, const ProtobufCMessage *m);
static void vote_on_end(const call_events *ev, const call_result *r);

/* The order of a member as it was at first: its own model, and how it is voted. */
static call_order *order_of(const vote_call *c, const voter *v)
{
    Shoal__V1__Vote vote = SHOAL__V1__VOTE__INIT;
    Shoal__V1__GenerateRequest more = SHOAL__V1__GENERATE_REQUEST__INIT;
    call_order *of_model = call_order_for(c->base.o, v->m->model);
    vote.geometric = c->rule->geometric;
    more.vote = &vote;
    call_order *o = of_model ? call_order_more(of_model, &more.base, 0) : NULL;
    if (o) o->resumes = false;
    call_order_unref(of_model);
    return o;
}

/* The same from where the reply is: the prompt as this member had it, the tokens that all have. */
static call_order *order_now(const vote_call *c, const voter *v)
{
    resume here = v->log;
    here.ids = c->log.ids;
    here.n_ids = c->log.n_ids;
    here.n_bytes = c->log.n_bytes;
    here.prob_sum = c->log.prob_sum;
    here.begun = v->log.begun && c->log.begun;
    return resume_order(&here, v->order);
}

static bool vote_ask(vote_call *c, voter *v)
{
    call_events ev = {.user = v, .event = vote_on_event, .end = vote_on_end};
    call_terms t = c->base.terms;
    t.hold_until_ns = c->hold_until_ns;
    v->feed = call_feed_new(&(call_feed_options){.keep_bytes = 1});
    call_order *now = v->feed && v->order ? order_now(c, v) : NULL;
    call_order *o = now ? call_order_as(now, CALL_VOTE, v->feed) : NULL;
    v->inner = o ? calls_start(c->b->base.inner, o, &t, &ev) : NULL;
    call_order_unref(now);
    call_order_unref(o);
    return v->inner != NULL;
}

static double limit_ms(const vote_call *c)
{
    if (c->position == c->from) return VOTE_FIRST_MS;
    return 8 * c->step_ms > VOTE_SILENCE_MS ? 8 * c->step_ms : VOTE_SILENCE_MS;
}

static void begin_vote(vote_call *c)
{
    c->asked_ns = decorator_listening_ns(c->base.b);
    for (size_t i = 0; i < c->rule->n_members; i++) c->voters[i].voted = false;
}

/* All who take part, from where the reply is. */
static bool ask_all(vote_call *c)
{
    c->from = c->position = (uint32_t)c->log.n_ids;
    c->step_ms = 0;
    c->anew = false;
    begin_vote(c);
    for (size_t i = 0; i < c->rule->n_members; i++)
        if (!vote_ask(c, &c->voters[i])) return false;
    if (c->base.paused) calls_pause(c->voters[c->leader].inner, true);
    c->b->base.env->timer_start(c->timer, VOTE_SILENCE_MS);
    return true;
}

/* ---- those who leave ----------------------------------------------------------------------------- */

static void note_left(vote_call *c, const voter *v, const char *why)
{
    if (!*c->why) snprintf(c->why, sizeof c->why, "%.64s left the vote: %.150s", v->m->model, why);
    LOG(LOG_WARN, "ensemble", "vote_left", LOG_S("route", c->rule->name), LOG_S("model", v->m->model),
        LOG_S("why", why), LOG_I("tokens", c->log.n_ids), LOG_S("request_id", c->base.o->request_id));
    if (c->b->o.left) c->b->o.left(c->b->o.user, c->rule->name, v->m->model);
}

/* From the loop: what runs here may be in the middle of anything. */
static void begin_anew_soon(vote_call *c, uint64_t ms)
{
    c->anew = true;
    c->b->base.env->timer_start(c->timer, ms);
}

static void vote_dismiss_all(vote_call *c)
{
    for (size_t i = 0; i < c->rule->n_members; i++) vote_dismiss(&c->voters[i]);
}

/* Nobody is left: all are waited for. */
static void wait_for_all(vote_call *c, const call_result *last)
{
    uint64_t now = decorator_now_ns(c->base.b), end = c->base.o->deadline_ns;
    bool may_return = last->fault != CALL_FAULT_NONE && last->fault != CALL_FAULT_NONSENSE;
    if (!c->hold_until_ns) c->hold_until_ns = end ? end : now + VOTE_WAIT_MS * 1000000ull;
    if (!may_return || now >= c->hold_until_ns || c->log.broken) {
        vote_finish(c, last);
        return;
    }
    c->moved = true;
    begin_anew_soon(c, VOTE_RETRY_MS);
}

static void elect(vote_call *c);

/* v is gone already. The others go on, anew when they have lost their leader. */
static void go_on_without(vote_call *c, voter *v, const call_result *r)
{
    bool led = v == &c->voters[c->leader];
    if (count_voters(c) == 0) {
        wait_for_all(c, r);
        return;
    }
    note_left(c, v, r->message);
    if (!led) {
        elect(c);
        return;
    }
    while (!c->voters[c->leader].inner) c->leader = (c->leader + 1) % c->rule->n_members;
    c->moved = true;
    vote_dismiss_all(c);
    begin_anew_soon(c, 0);
}

/* What is wrong with the request itself is so for all. */
static bool vote_is_final(const call_result *r)
{
    return r->status != 0 && r->fault == CALL_FAULT_NONE;
}

static void vote_on_end(const call_events *ev, const call_result *r)
{
    voter *v = ev->user;
    vote_call *c = v->c;
    bool led = v == &c->voters[c->leader];
    v->inner = NULL;
    vote_dismiss(v);
    if (led && (r->status == 0 || vote_is_final(r))) {
        vote_finish(c, r);
        return;
    }
    if (r->status == 0) { /* its end is none for the others: it has less room, or another end token */
        if (count_voters(c) > 0) elect(c);
        return;
    }
    go_on_without(c, v, r);
}

static void expel(vote_call *c, voter *v, const char *why)
{
    call_result r = call_result_of(c->base.o, SHOAL_EUNAVAILABLE, why);
    r.fault = CALL_FAULT_NONSENSE;
    vote_dismiss(v);
    go_on_without(c, v, &r);
}

/* Who has had longer than others took: to vote, or to begin at all. NULL: nobody. */
static voter *find_silent(vote_call *c)
{
    double waited_ms = decorator_listened_ms(c->base.b, c->asked_ns);
    voter *silent = NULL;
    size_t n_voted = 0;
    for (size_t i = 0; i < c->rule->n_members; i++) {
        voter *v = &c->voters[i];
        double most = v->started || limit_ms(c) < VOTE_BEGIN_MS ? limit_ms(c) : VOTE_BEGIN_MS;
        n_voted += v->voted;
        if (v->inner && !v->voted && waited_ms >= most) silent = v;
    }
    return n_voted > 0 && !c->base.paused ? silent : NULL;
}

static void vote_refuse(vote_call *c)
{
    call_result r = call_result_of(c->base.o, SHOAL_EUNSUPPORTED, c->why);
    decorator_call_end(&c->base, &r);
    vote_call_free(c);
}

static void vote_on_timer(void *arg)
{
    vote_call *c = arg;
    if (c->refused) {
        vote_refuse(c);
        return;
    }
    if (c->anew) {
        if (!ask_all(c)) vote_fail(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    voter *silent = find_silent(c); /* the others' turn comes with the next beat */
    c->b->base.env->timer_start(c->timer, VOTE_SILENCE_MS);
    if (silent) expel(c, silent, "it was silent while the others had voted");
}

/* ---- the vote ------------------------------------------------------------------------------------ */

static double vote_weight_of_all(const vote_call *c)
{
    double sum = 0;
    for (size_t i = 0; i < c->rule->n_members; i++)
        if (c->voters[i].voted) sum += c->voters[i].m->weight;
    return sum;
}

/* In the members' order, so that the same ballots give the same bits everywhere. */
static void add_ballot(float *mean, const voter *v, size_t n, float share, bool first)
{
    const float *p = (const float *)(const void *)v->ballot.data;
    for (size_t i = 0; i < n; i++) {
        float part = share * p[i];
        mean[i] = first ? part : mean[i] + part;
    }
}

static float *mean_of_all(const vote_call *c, size_t n)
{
    float *mean = malloc(n * sizeof *mean);
    double all = vote_weight_of_all(c);
    bool first = true;
    for (size_t i = 0; mean && i < c->rule->n_members; i++) {
        const voter *v = &c->voters[i];
        if (!v->voted) continue;
        add_ballot(mean, v, n, (float)(v->m->weight / all), first);
        first = false;
    }
    return mean;
}

static size_t ballot_size(const vote_call *c)
{
    for (size_t i = 0; i < c->rule->n_members; i++)
        if (c->voters[i].voted) return c->voters[i].ballot.len;
    return 0;
}

static bool all_have_voted(const vote_call *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->rule->n_members; i++) {
        const voter *v = &c->voters[i];
        if (v->inner && !v->voted) return false;
        n += v->voted;
    }
    return n > 0;
}

static int tell_all(vote_call *c, float *mean, size_t bytes)
{
    Shoal__V1__Ballot b = SHOAL__V1__BALLOT__INIT;
    Shoal__V1__GenerateRequest more = SHOAL__V1__GENERATE_REQUEST__INIT;
    int rc = 0;
    b.position = c->position;
    b.values = (ProtobufCBinaryData){bytes, (uint8_t *)mean};
    more.ballot = &b;
    for (size_t i = 0; rc == 0 && i < c->rule->n_members; i++)
        if (c->voters[i].voted) rc = call_feed_put(c->voters[i].feed, &more.base);
    return rc;
}

/* When all who are there have voted, they hear what came of it. */
static void elect(vote_call *c)
{
    if (c->anew || !all_have_voted(c)) return;
    size_t bytes = ballot_size(c);
    float *mean = mean_of_all(c, bytes / sizeof(float));
    int rc = mean ? tell_all(c, mean, bytes) : SHOAL_ENOMEM;
    free(mean);
    if (rc != 0) {
        vote_fail(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    double took_ms = decorator_listened_ms(c->base.b, c->asked_ns);
    if (c->position > c->from) c->step_ms += c->step_ms > 0 ? (took_ms - c->step_ms) / 8 : took_ms;
    c->position++;
    begin_vote(c);
}

static void take_ballot(vote_call *c, voter *v, const Shoal__V1__Ballot *b)
{
    size_t size = ballot_size(c), n = b->values.len;
    if (v->voted || b->position != c->position || n == 0 || n % sizeof(float) != 0) {
        expel(c, v, "it voted out of turn");
        return;
    }
    if (size > 0 && n != size) {
        expel(c, v, "its vocabulary is of another size");
        return;
    }
    buf_clear(&v->ballot);
    if (buf_append(&v->ballot, b->values.data, n) != 0) {
        vote_fail(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    v->voted = true;
    elect(c);
}

static void vote_tell(vote_call *c, const ProtobufCMessage *m)
{
    resume_space space;
    if (c->moved && !resume_takes(&c->log, c->base.o, m)) return;
    resume_note(&c->log, c->base.o, m);
    if (c->moved) m = resume_mend(&c->log, c->base.o, m, &space);
    c->base.ev.event(&c->base.ev, m); /* may cancel: c is not touched again */
}

static void vote_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    voter *v = ev->user;
    vote_call *c = v->c;
    const Shoal__V1__GenerateEvent *event = (const Shoal__V1__GenerateEvent *)m;
    if (event->ballot) {
        take_ballot(c, v, event->ballot);
        return;
    }
    v->started = true;
    if (event->started && !v->log.begun) resume_note(&v->log, v->order, m);
    if (v == &c->voters[c->leader]) vote_tell(c, m);
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static void vote_describe(vote_call *c)
{
    size_t n = (size_t)snprintf(c->trace, sizeof c->trace, "%s mean of",
                                c->rule->geometric ? "geometric" : "arithmetic");
    for (size_t i = 0; i < c->rule->n_members && n < sizeof c->trace; i++)
        n += (size_t)snprintf(c->trace + n, sizeof c->trace - n, "%s %.48s %g", i ? "," : "",
                              c->rule->members[i].model, c->rule->members[i].weight);
}

static void init_voters(vote_call *c)
{
    for (size_t i = 0; i < c->rule->n_members; i++) {
        voter *v = &c->voters[i];
        v->c = c;
        v->m = &c->rule->members[i];
        v->order = order_of(c, v);
    }
}

/* A mean of probabilities of different tokens would be nonsense, however equal their numbers. Members that
 * nobody has seen yet are taken at the configuration's word. */
static bool have_one_vocabulary(vote_call *c)
{
    const char *first = NULL, *of = NULL;
    for (size_t i = 0; i < c->rule->n_members; i++) {
        const char *model = c->rule->members[i].model;
        const Shoal__V1__ModelInfo *info = calls_info(c->b->base.inner, model, NULL);
        if (!info || !*info->vocabulary) continue;
        if (!first) first = info->vocabulary, of = model;
        if (strcmp(first, info->vocabulary) == 0) continue;
        snprintf(
            c->why, sizeof c->why,
            "%.64s cannot vote: %.64s and %.64s have different vocabularies; name models with one tokenizer",
            c->rule->name, of, model);
        return false;
    }
    return true;
}

static model_call *vote_begin(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    vote_calls *b = (vote_calls *)base;
    const vote_rule *rule = decorator_rule_of(b, o->model);
    if (!rule) return calls_start(b->base.inner, o, t, ev);
    if (o->task != CALL_GENERATE) return decorator_start_for(&b->base, o, rule->members[0].model, t, ev);
    vote_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (vote_call){.b = b, .rule = rule};
    c->timer = b->base.env->timer_new(b->base.env->user, vote_on_timer, c);
    if (!c->timer) {
        free(c);
        return NULL;
    }
    decorator_call_init(&c->base, base, o, t, ev);
    vote_describe(c);
    init_voters(c);
    c->refused = !have_one_vocabulary(c);
    if (c->refused) b->base.env->timer_start(c->timer, 0);
    if (c->refused || ask_all(c)) return &c->base.base;
    vote_call_free(c);
    return NULL;
}

static call_place vote_where(const model_call *call)
{
    const vote_call *c = (const vote_call *)call;
    call_place p = calls_where(c->voters[c->leader].inner);
    p.trace = c->trace;
    if (*c->why) p.wanted = c->rule->name, p.why = c->why;
    return p;
}

static void vote_estimate(calls *base, const call_order *o, const call_terms *t, call_estimate *ret)
{
    const vote_rule *rule = decorator_rule_of((vote_calls *)base, o->model);
    decorator_estimate_for((decorator_calls *)base, o, rule ? rule->members[0].model : NULL, t, ret);
}

static const Shoal__V1__ModelInfo *vote_info(calls *base, const char *model, bool *ret_known)
{
    vote_calls *b = (vote_calls *)base;
    const vote_rule *rule = decorator_rule_of(b, model);
    return calls_info(b->base.inner, rule ? rule->members[0].model : model, ret_known);
}

static const calls_ops OPS = {.start = vote_begin,
                              .pause = vote_pause,
                              .cancel = vote_cancel,
                              .where = vote_where,
                              .estimate = vote_estimate,
                              .info = vote_info,
                              .free = decorator_free};

int vote_calls_new(calls **ret, const env *env_, calls *inner, const vote_options *opts, shoal_err *err)
{
    vote_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    b->o = *opts;
    *ret = &b->base.base;
    return 0;
}
