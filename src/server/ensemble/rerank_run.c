/* rerank_run.c: candidates and what they are worth; see rerank_run.h. */
#include "ensemble/rerank_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/sampling.h"
#include "logging/log.h"

#define MARGIN_MS 10 /* before the deadline, for the best so far to get out */
#define NEVER_MS  (1ull << 40)

/* ---- life ---------------------------------------------------------------------------------------- */

static void rerank_run_dismiss(candidate *k)
{
    model_call *inner = k->inner;
    k->inner = NULL;
    calls_cancel(inner);
}

static void rerank_run_dismiss_all(rerank_run *r)
{
    for (size_t i = 0; i < r->n; i++) rerank_run_dismiss(&r->c[i]);
}

void rerank_run_free(rerank_run *r)
{
    if (!r) return;
    rerank_run_dismiss_all(r);
    calls_cancel(r->scorer);
    for (size_t i = 0; i < r->n; i++) {
        response_buffer_done(&r->c[i].kept);
        rerank_reader_done(&r->c[i].reader);
    }
    list_take(&r->link);
    r->b->base.env->timer_free(r->timer);
    shoal__v1__generate_request__free_unpacked(r->req, NULL);
    buf_done(&r->key);
    rerank_asked_done(&r->asked);
    call_order_unref(r->o);
    free(r);
}

uint64_t rerank_run_left_ms(const rerank_run *r)
{
    uint64_t now = decorator_now_ns(&r->b->base), end = r->o->deadline_ns;
    if (!end) return NEVER_MS;
    uint64_t left = end > now ? (end - now) / 1000000u : 0;
    return left > MARGIN_MS ? left - MARGIN_MS : 0;
}

static void rerank_run_watch(rerank_run *r, uint64_t ms)
{
    if (r->o->deadline_ns) r->b->base.env->timer_start(r->timer, ms);
}

/* ---- what came of it ----------------------------------------------------------------------------- */

static void note_why(rerank_run *r, const char *who, const char *what, const char *why)
{
    if (!*r->why) snprintf(r->why, sizeof r->why, "%.64s %s: %.200s", who, what, why);
}

static const char *judge_of(const rerank_rule *rule)
{
    return rule->model ? rule->model : rule->log_prob;
}

static size_t rerank_run_put(rerank_run *r, size_t n, const char *text)
{
    return n < sizeof r->trace ? n + (size_t)snprintf(r->trace + n, sizeof r->trace - n, "%s", text) : n;
}

static void worth_text(const rerank_run *r, double worth, char ret[40])
{
    if (!isfinite(worth))
        snprintf(ret, 40, " empty");
    else if (judge_of(r->rule))
        snprintf(ret, 40, " %.4f", worth);
    else
        snprintf(ret, 40, " %g", r->rule->by == RERANK_SHORTEST ? -worth : worth);
}

/* "log_prob by home-chat-m: home-chat-s -0.4120*, home-chat-s -1.2011, home-chat-m failed" */
static void rerank_run_describe(rerank_run *r)
{
    const char *judge = judge_of(r->rule);
    char text[160], worth[40];
    size_t at = 0, n = 0;
    snprintf(text, sizeof text, "%s%s%.64s: ",
             r->rule->model      ? "relevance"
             : r->rule->log_prob ? "log_prob"
                                 : rerank_rule_name(r->rule->by),
             judge ? " by " : "", judge ? judge : "");
    n = rerank_run_put(r, n, text);
    for (size_t i = 0; i < r->n; i++) {
        bool in = at < r->n_whole && r->whole[at] == i;
        bool best = in && r->order[0] == at;
        *worth = 0;
        if (in && r->weighed) worth_text(r, r->worth[at], worth);
        snprintf(text, sizeof text, "%s%.48s%s%s", i ? ", " : "", r->c[i].m->model,
                 in                   ? worth
                 : r->c[i].kept.ended ? " failed"
                 : r->is_sure         ? " spared"
                                      : " late",
                 best ? "*" : "");
        n = rerank_run_put(r, n, text);
        at += in;
    }
}

static void rerank_run_decide(rerank_run *r)
{
    r->at = RERANK_DECIDED;
    r->b->base.env->timer_stop(r->timer);
    if (!r->weighed)
        for (size_t i = 0; i < r->n_whole; i++) r->order[i] = i;
    else
        rerank_order(r->worth, r->n_whole, r->order);
    rerank_run_describe(r);
    if (r->n_whole > 0 && r->b->o.chose)
        r->b->o.chose(r->b->o.user, r->rule->name, r->c[r->whole[r->order[0]]].m->model);
    if (*r->why)
        LOG(LOG_WARN, "ensemble", "rerank_cut", LOG_S("route", r->rule->name), LOG_S("why", r->why),
            LOG_S("request_id", r->o->request_id));
    r->decided(r->user);
}

/* The first one goes out as it is. */
static void decide_unweighed(rerank_run *r, const char *why)
{
    note_why(r, judge_of(r->rule) ? judge_of(r->rule) : r->rule->name, "did not weigh the candidates", why);
    r->weighed = false;
    rerank_run_decide(r);
}

/* ---- weighing ------------------------------------------------------------------------------------ */

static void on_scorer_end(const call_events *ev, const call_result *res);

static bool all_agree(const rerank_run *r)
{
    const rerank_text *first = &r->c[r->whole[0]].text;
    for (size_t i = 1; i < r->n_whole; i++) {
        const rerank_text *t = &r->c[r->whole[i]].text;
        if (t->len != first->len || memcmp(t->s, first->s, t->len) != 0) return false;
    }
    return true;
}

static model_call *start_scorer(rerank_run *r, call_task task, const ProtobufCMessage *req)
{
    static const call_terms ANY = {0};
    call_events ev = {.user = r, .end = on_scorer_end};
    call_context ctx = call_context_beside(r->o, "rerank");
    call_order *o = call_order_new(task, judge_of(r->rule), req, &ctx);
    model_call *call = o ? calls_start(r->b->base.inner, o, &ANY, &ev) : NULL;
    call_order_unref(o);
    return call;
}

static model_call *ask_relevance(rerank_run *r)
{
    Shoal__V1__TextInput pairs[RERANK_CANDIDATES_MAX], *list[RERANK_CANDIDATES_MAX];
    Shoal__V1__ClassifyRequest req = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    for (size_t i = 0; i < r->n_whole; i++) {
        pairs[i] = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
        pairs[i].text = r->asked.question.data;
        pairs[i].pair = (char *)(uintptr_t)r->c[r->whole[i]].text.s;
        pairs[i].has_pair = 1;
        list[i] = &pairs[i];
    }
    req.inputs = list;
    req.n_inputs = r->n_whole;
    return start_scorer(r, CALL_CLASSIFY, &req.base);
}

static char *rerank_run_text_of(const buf *b)
{
    return b->len ? b->data : (char *)(uintptr_t) "";
}

/* A candidate as a reply, in `a`. NULL: out of memory. */
static Shoal__V1__Reply *reply_of(const rerank_reader *from, arena *a)
{
    Shoal__V1__Reply *reply = arena_alloc(a, sizeof *reply);
    Shoal__V1__ToolCallDelta *calls = arena_alloc(a, (from->n_tools + 1) * sizeof *calls), **list;
    list = arena_alloc(a, (from->n_tools + 1) * sizeof *list);
    if (!reply || !calls || !list) return NULL;
    *reply = (Shoal__V1__Reply)SHOAL__V1__REPLY__INIT;
    reply->text = rerank_run_text_of(&from->text);
    reply->calls = list;
    for (; reply->n_calls < from->n_tools; reply->n_calls++) {
        Shoal__V1__ToolCallDelta *c = list[reply->n_calls] = &calls[reply->n_calls];
        *c = (Shoal__V1__ToolCallDelta)SHOAL__V1__TOOL_CALL_DELTA__INIT;
        c->index = (uint32_t)reply->n_calls;
        c->name = rerank_run_text_of(&from->tools[reply->n_calls].name);
        c->arguments = rerank_run_text_of(&from->tools[reply->n_calls].arguments);
    }
    return reply;
}

static model_call *ask_likelihood(rerank_run *r)
{
    Shoal__V1__Reply *replies[RERANK_CANDIDATES_MAX];
    Shoal__V1__LikelihoodRequest req = SHOAL__V1__LIKELIHOOD_REQUEST__INIT;
    arena *a = arena_new(0);
    bool all = a != NULL;
    for (size_t i = 0; all && i < r->n_whole; i++) {
        replies[i] = reply_of(&r->c[r->whole[i]].reader, a);
        all = replies[i] != NULL;
    }
    req.prompt = r->req;
    req.replies = replies;
    req.n_replies = r->n_whole;
    model_call *call = all ? start_scorer(r, CALL_LIKELIHOOD, &req.base) : NULL;
    arena_free(a);
    return call;
}

static bool take_relevance(rerank_run *r, const Shoal__V1__ClassifyReply *reply)
{
    if (reply->n_results != r->n_whole) return false;
    for (size_t i = 0; i < r->n_whole; i++) {
        if (reply->results[i]->n_labels == 0) return false;
        r->worth[i] = (double)reply->results[i]->labels[0]->score;
    }
    return true;
}

static bool take_likelihood(rerank_run *r, const Shoal__V1__LikelihoodReply *reply)
{
    if (reply->n_results != r->n_whole) return false;
    for (size_t i = 0; i < r->n_whole; i++) {
        const Shoal__V1__Likelihood *l = reply->results[i];
        if (l->n_tokens == 0) return false;
        r->worth[i] = l->log_prob / (double)l->n_tokens;
    }
    return true;
}

static bool all_are_numbers(const rerank_run *r)
{
    for (size_t i = 0; i < r->n_whole; i++)
        if (!isfinite(r->worth[i])) return false;
    return true;
}

static void on_scorer_end(const call_events *ev, const call_result *res)
{
    rerank_run *r = ev->user;
    r->scorer = NULL;
    if (res->status != 0) {
        decide_unweighed(r, res->message);
        return;
    }
    r->weighed = r->rule->model ? take_relevance(r, (const Shoal__V1__ClassifyReply *)res->reply)
                                : take_likelihood(r, (const Shoal__V1__LikelihoodReply *)res->reply);
    if (r->weighed && all_are_numbers(r))
        rerank_run_decide(r);
    else
        decide_unweighed(r, "its answer was none");
}

static void weigh_by_rule(rerank_run *r)
{
    rerank_text texts[RERANK_CANDIDATES_MAX];
    for (size_t i = 0; i < r->n_whole; i++) texts[i] = r->c[r->whole[i]].text;
    r->weighed = rerank_by_rule(r->rule->by, &r->asked, &r->rule->needs, texts, r->n_whole, r->worth) == 0;
    if (r->weighed)
        rerank_run_decide(r);
    else
        decide_unweighed(r, "out of memory");
}

/* Where all say the same there is nothing to choose, so no model is asked. */
static void weigh_by_model(rerank_run *r)
{
    if (r->n_whole < 2 || all_agree(r)) {
        rerank_run_decide(r);
        return;
    }
    uint64_t left_ms = rerank_run_left_ms(r);
    if (left_ms == 0 || r->at == RERANK_IS_LATE) {
        decide_unweighed(r, "the deadline came near");
        return;
    }
    r->at = RERANK_WEIGHS;
    r->scorer = r->rule->model ? ask_relevance(r) : ask_likelihood(r);
    if (!r->scorer) {
        decide_unweighed(r, "out of memory");
        return;
    }
    rerank_run_watch(r, left_ms);
}

static bool rerank_run_is_whole(candidate *k)
{
    if (!response_buffer_is_whole(&k->kept)) return false;
    k->text.s = rerank_read_all(&k->reader, &k->text.len);
    return k->text.s != NULL;
}

/* Nobody more is waited for. */
static void close_list(rerank_run *r)
{
    rerank_run_dismiss_all(r);
    for (size_t i = 0; i < r->n; i++) {
        candidate *k = &r->c[i];
        if (rerank_run_is_whole(k)) {
            r->whole[r->n_whole++] = i;
            continue;
        }
        if (r->is_sure && !k->kept.ended) continue;
        note_why(r, k->m->model, "has no part in it",
                 !k->kept.ended               ? "it was not ready as the deadline came near"
                 : k->kept.result.status == 0 ? "out of memory"
                                              : k->kept.result.message);
    }
}

static void weigh(rerank_run *r)
{
    close_list(r);
    if (r->n_whole == 0)
        rerank_run_decide(r);
    else if (judge_of(r->rule))
        weigh_by_model(r);
    else
        weigh_by_rule(r);
}

/* ---- gathering ----------------------------------------------------------------------------------- */

static bool rerank_run_ask_next(rerank_run *r);

static bool somebody_writes(const rerank_run *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->c[i].inner) return true;
    return false;
}

/* Nobody was there within the short wait: then it is waited for as for one model. */
static bool nobody_was_there(const rerank_run *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->c[i].kept.result.fault != CALL_FAULT_ABSENT) return false;
    return r->terms.hold_until_ns != 0 && !r->patient;
}

static void ask_patiently(rerank_run *r)
{
    r->patient = true;
    r->terms.hold_until_ns = 0;
    for (size_t i = 0; i < r->n; i++) {
        response_buffer_done(&r->c[i].kept);
        rerank_reader_done(&r->c[i].reader);
    }
    r->n_asked = 0;
    if (!rerank_run_ask_next(r)) weigh(r);
}

/* As good as the rule allows, in itself. */
static bool is_best(rerank_run *r, candidate *k)
{
    double worth = 0;
    if (!rerank_run_is_whole(k)) return false;
    return rerank_by_rule(r->rule->by, &r->asked, &r->rule->needs, &k->text, 1, &worth) == 0 && worth >= 1;
}

/* The first of those that are as good as can be has come, and nobody before it writes any more. */
static bool rerank_run_is_decided(rerank_run *r)
{
    if (judge_of(r->rule) || !rerank_rule_tops(r->rule->by) || r->n_choices > 1) return false;
    for (size_t i = 0; i < r->n_asked && !r->c[i].inner; i++)
        if (is_best(r, &r->c[i])) return true;
    return false;
}

static void on_candidate_event(const call_events *ev, const ProtobufCMessage *m)
{
    candidate *k = ev->user;
    const Shoal__V1__GenerateEvent *e = (const Shoal__V1__GenerateEvent *)m;
    if (e->delta) rerank_read(&k->reader, e->delta);
    if (e->done) k->n_generated = e->done->n_generated;
    response_buffer_note(&k->kept, k->r->o, m);
}

static void on_candidate_end(const call_events *ev, const call_result *res)
{
    candidate *k = ev->user;
    rerank_run *r = k->r;
    k->inner = NULL;
    response_buffer_end(&k->kept, r->o, res);
    if (r->at == RERANK_IS_LATE && response_buffer_is_whole(&k->kept)) {
        weigh(r);
        return;
    }
    r->is_sure = rerank_run_is_decided(r);
    if (r->is_sure) {
        weigh(r);
        return;
    }
    if (somebody_writes(r) || (r->n_asked < r->n && rerank_run_ask_next(r))) return;
    if (nobody_was_there(r))
        ask_patiently(r);
    else
        weigh(r);
}

/* What is left for candidates, when whoever weighs them needs its time, too. */
static uint64_t gather_ms(const rerank_run *r)
{
    call_estimate estimate = {0};
    const char *judge = judge_of(r->rule);
    uint64_t left = rerank_run_left_ms(r);
    call_order *o = judge && r->o->deadline_ns ? call_order_for(r->o, judge) : NULL;
    if (!o) return left;
    calls_estimate(r->b->base.inner, o, &(call_terms){0}, &estimate);
    call_order_unref(o);
    uint64_t needs = estimate.status == 0 && estimate.expected_ms > 0
                         ? (uint64_t)estimate.expected_ms + MARGIN_MS
                         : MARGIN_MS;
    return left > needs ? left - needs : 0;
}

static bool any_is_whole(const rerank_run *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (response_buffer_is_whole(&r->c[i].kept)) return true;
    return false;
}

static void rerank_run_on_timer(void *arg)
{
    rerank_run *r = arg;
    if (r->at == RERANK_WEIGHS) {
        calls_cancel(r->scorer);
        r->scorer = NULL;
        decide_unweighed(r, "it had not answered as the deadline came near");
    } else if (r->at == RERANK_GATHERS) {
        if (any_is_whole(r))
            weigh(r);
        else
            r->at = RERANK_IS_LATE; /* the first that is whole goes out */
    }
}

/* ---- asking -------------------------------------------------------------------------------------- */

static double temperature_of(const rerank_run *r, const rerank_member *m)
{
    if (m->temperature >= 0) return m->temperature;
    return r->req->sampling ? (double)r->req->sampling->temperature : 0;
}

static bool draws(const rerank_run *r, const rerank_member *m)
{
    return temperature_of(r, m) > 0 && r->req->n_beams <= 1;
}

/* Candidate j of its member; see rerank_calls.h for the seeds. */
static bool rerank_run_ask(candidate *k, size_t j)
{
    rerank_run *r = k->r;
    call_events ev = {.user = k, .event = on_candidate_event, .end = on_candidate_end};
    Shoal__V1__Sampling sampling = SHOAL__V1__SAMPLING__INIT, *given = r->req->sampling;
    call_context ctx = call_context_beside(r->o, NULL);
    if (given) sampling = *given;
    sampling.temperature = (float)temperature_of(r, k->m);
    sampling.seed = sampling_seed(sampling.seed, 0, (uint32_t)j);
    response_buffer_init(&k->kept, k->m->model);
    r->req->sampling = &sampling;
    call_order *o = call_order_new(CALL_GENERATE, k->m->model, &r->req->base, &ctx);
    r->req->sampling = given;
    k->inner = o ? calls_start(r->b->base.inner, o, &r->terms, &ev) : NULL;
    call_order_unref(o);
    return k->inner != NULL;
}

/* All candidates, or those of the next member. */
static bool rerank_run_ask_next(rerank_run *r)
{
    bool in_turn = r->rule->in_turn && r->n_choices == 1;
    size_t j = 0, first = r->n_asked;
    for (size_t i = first; i < r->n; i++) {
        bool same = i > first && r->c[i - 1].m == r->c[i].m;
        if (i > first && in_turn && !same) break;
        j = same ? j + 1 : 0;
        if (!rerank_run_ask(&r->c[i], j)) return false;
        r->n_asked++;
    }
    if (first == 0) rerank_run_watch(r, gather_ms(r));
    return true;
}

/* How many candidates each member writes: as many as it is said, one where all would be the same, and more
 * where the request wants more choices than that. */
static void rerank_run_count(const rerank_run *r, unsigned n_of[])
{
    size_t n = 0, most = r->n_choices < RERANK_CANDIDATES_MAX ? r->n_choices : RERANK_CANDIDATES_MAX;
    bool grows = true;
    for (size_t i = 0; i < r->rule->n_members; i++) {
        const rerank_member *m = &r->rule->members[i];
        n_of[i] = draws(r, m) ? m->n : 1;
        n += n_of[i];
    }
    while (grows && n < most) {
        grows = false;
        for (size_t i = 0; i < r->rule->n_members && n < most; i++) {
            if (!draws(r, &r->rule->members[i])) continue;
            n_of[i]++;
            n++;
            grows = true;
        }
    }
}

static void list_candidates(rerank_run *r)
{
    unsigned n_of[RERANK_CANDIDATES_MAX];
    rerank_run_count(r, n_of);
    for (size_t i = 0; i < r->rule->n_members; i++)
        for (unsigned j = 0; j < n_of[i] && r->n < RERANK_CANDIDATES_MAX; j++)
            r->c[r->n++] = (candidate){.r = r, .m = &r->rule->members[i]};
}

/* One of several models that is not there holds nobody up for long. */
static bool has_several(const rerank_rule *rule)
{
    for (size_t i = 1; i < rule->n_members; i++)
        if (strcmp(rule->members[i].model, rule->members[0].model) != 0) return true;
    return false;
}

rerank_run *rerank_run_new(rerank_calls *b, const rerank_rule *rule, call_order *o, const call_terms *t,
                           Shoal__V1__GenerateRequest *req, size_t n_choices)
{
    rerank_run *r = calloc(1, sizeof *r);
    if (!r) {
        shoal__v1__generate_request__free_unpacked(req, NULL);
        return NULL;
    }
    *r = (rerank_run){
        .b = b, .rule = rule, .o = call_order_ref(o), .terms = *t, .req = req, .n_choices = n_choices};
    list_init(&r->link);
    list_put(&b->runs, &r->link);
    *r->terms.identity = 0; /* whose file answers is what is decided here */
    if (has_several(rule)) r->terms.hold_until_ns = decorator_now_ns(&b->base) + RERANK_HOLD_MS * 1000000ull;
    r->timer = b->base.env->timer_new(b->base.env->user, rerank_run_on_timer, r);
    list_candidates(r);
    if (r->timer && rerank_asked_init(&r->asked, req) == 0 && rerank_run_ask_next(r)) return r;
    rerank_run_free(r);
    return NULL;
}

/* ---- what its calls want to know ----------------------------------------------------------------- */

/* What a failure of all comes to: the first one's. */
static void failure(rerank_run *r, call_result *ret)
{
    *ret = call_result_of(r->o, SHOAL_EDEADLINE, "the deadline passed before any model had answered");
    if (r->c[0].kept.ended) *ret = r->c[0].kept.result;
    if (ret->status == 0) *ret = call_result_of(r->o, SHOAL_ENOMEM, "out of memory");
}

candidate *rerank_run_choice(rerank_run *r, size_t choice, call_result *ret)
{
    if (r->n_whole == 0) {
        failure(r, ret);
        return NULL;
    }
    return &r->c[r->whole[r->order[choice % r->n_whole]]];
}

static uint32_t tokens_of(const candidate *k)
{
    return k->n_generated ? k->n_generated : (uint32_t)k->kept.n_tokens;
}

uint32_t rerank_run_unheard(rerank_run *r)
{
    uint32_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        bool heard = false;
        for (size_t k = 0; k < r->n_choices && k < r->n_whole; k++) heard |= r->whole[r->order[k]] == i;
        if (!heard) n += tokens_of(&r->c[i]);
    }
    return n;
}
