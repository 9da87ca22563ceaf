/* resolve.c: decide, ask, decide again; see resolve.h. */
#include "calls/resolve.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "routes/price.h"

struct resolve {
    calls *calls;
    const env *env;
    const route_book *book;
    resolve_ask ask;
    resolve_done done;
    void *user;
    uint64_t start_ns, asked_ns;
    model_call *call; /* about a domain */
    int status;
    route_view inner;
    evidence evidence;
    decision decision;
};

static uint64_t now_ns(const resolve *x)
{
    return x->env->now_ns(x->env->user);
}

/* ---- the view ------------------------------------------------------------------------------------ */

static int resolve_holds(void *user, const config_rule *r, route_question q)
{
    const resolve *x = user;
    if (q == ROUTE_HEADER_HOLDS) return x->ask.header_holds ? x->ask.header_holds(x->ask.user, r) : 0;
    regex_result found = regex_find(r->pattern, x->ask.text, x->ask.n_text);
    return found == REGEX_FOUND ? 1 : found == REGEX_NONE ? 0 : -1;
}

/* "MODEL:ADAPTER" is asked of MODEL. False: a name that none can have. */
static bool base_name(char out[136], const char *model)
{
    size_t n = strcspn(model, ":");
    if (n >= 136) return false;
    memcpy(out, model, n);
    out[n] = '\0';
    return true;
}

/* As a call of so many bytes, in no hurry: the decision itself compares with the time that is left. */
static call_estimate estimate_of(const resolve *x, const char *model, call_task task, size_t n_bytes)
{
    call_order o = {.refs = 1,
                    .task = task,
                    .model = model,
                    .adapter = "",
                    .request_id = "",
                    .traceparent = "",
                    .why = "",
                    .n_msg = n_bytes};
    call_terms t = {0};
    call_estimate estimate;
    calls_estimate(x->calls, &o, &t, &estimate);
    return estimate;
}

static void resolve_estimate(void *user, const char *model, route_estimate *ret)
{
    const resolve *x = user;
    char name[136];
    bool known = false;
    if (!base_name(name, model) || (x->ask.plain && strchr(model, ':'))) return;
    const Shoal__V1__ModelInfo *info = calls_info(x->calls, name, &known);
    call_estimate now = estimate_of(x, name, x->ask.task, x->ask.facts.n_bytes);
    *ret = (route_estimate){.known = known,
                            .fits = !info || !x->ask.fits || x->ask.fits(x->ask.user, info),
                            .ready = now.status == 0,
                            .may_return = now.may_return,
                            .late = now.status == SHOAL_EDEADLINE,
                            .began = info && x->ask.began && x->ask.began(x->ask.user, info),
                            .expected_ms = now.expected_ms,
                            .load = now.load};
    bool replies = x->ask.task == CALL_GENERATE || x->ask.task == CALL_VOTE;
    price_estimate(x->book, name, price_tokens(&x->ask.facts, replies, now.mean_reply), now.energy, ret);
}

/* ---- what a text is about ------------------------------------------------------------------------ */

static void resolve_step(resolve *x);

static domain_fact *asked(resolve *x)
{
    return &x->ask.facts.domains[x->decision.ask];
}

static void unknown(resolve *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void unknown(resolve *x, const char *fmt, ...)
{
    domain_fact *d = asked(x);
    va_list ap;
    d->state = DOMAIN_UNKNOWN;
    va_start(ap, fmt);
    vsnprintf(d->why, sizeof d->why, fmt, ap);
    va_end(ap);
}

static void known(resolve *x, const char *label, double score)
{
    domain_fact *d = asked(x);
    d->state = DOMAIN_KNOWN;
    d->score = score;
    snprintf(d->label, sizeof d->label, "%s", label);
}

/* True: the question was answered. */
static bool answered(resolve *x, const call_result *r)
{
    x->call = NULL;
    asked(x)->ms = (double)(now_ns(x) - x->asked_ns) / 1e6;
    if (r->status == 0) return true;
    if (r->status == SHOAL_ENOMEM)
        x->status = r->status;
    else if (r->status == SHOAL_EDEADLINE)
        unknown(x, "%s gave no answer in %.0f ms", r->model, asked(x)->ms);
    else
        unknown(x, "%.140s", r->message);
    return false;
}

static void on_embedded(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    resolve *x = user;
    const centroids *c = x->book->domains[x->decision.ask].centroids;
    if (answered(x, r)) {
        double cosine = 0;
        bool fits = reply->n_results == 1 && reply->results[0]->n_values == c->n_dimensions;
        int at = fits ? centroids_nearest(c, reply->results[0]->values, &cosine) : -1;
        if (strcmp(r->digest, c->digest) != 0)
            unknown(x, "the centroids are of another file than %.64s is: make them again", r->model);
        else if (at < 0)
            unknown(x, "%.64s answered with a vector that does not compare", r->model);
        else
            known(x, c->at[at].name, cosine);
    }
    resolve_step(x);
}

static void on_classified(void *user, const call_result *r, const Shoal__V1__ClassifyReply *reply)
{
    resolve *x = user;
    if (answered(x, r)) {
        if (reply->n_results == 1 && reply->results[0]->n_labels > 0)
            known(x, reply->results[0]->labels[0]->label, (double)reply->results[0]->labels[0]->score);
        else
            unknown(x, "%.64s answered without a label", r->model);
    }
    resolve_step(x);
}

/* Until when is waited: timeout_ms, and no more than half of the time to the deadline. */
static uint64_t until(const resolve *x, const config_domains *set)
{
    uint64_t now = now_ns(x), wait = set->timeout_ms * 1000000u;
    if (!x->ask.deadline_ns) return now + wait;
    uint64_t half = x->ask.deadline_ns > now ? (x->ask.deadline_ns - now) / 2 : 0;
    return now + (half < wait ? half : wait);
}

static char *resolve_cut(const resolve *x)
{
    size_t n = x->ask.n_text;
    if (n > RESOLVE_TEXT_BYTES)
        n = RESOLVE_TEXT_BYTES - utf8_incomplete_tail(x->ask.text, RESOLVE_TEXT_BYTES);
    char *text = malloc(n + 1);
    if (!text) return NULL;
    memcpy(text, x->ask.text, n);
    text[n] = '\0';
    return text;
}

static void ask_model(resolve *x, const config_domains *set, char *text)
{
    Shoal__V1__TextInput input = SHOAL__V1__TEXT_INPUT__INIT, *inputs[1] = {&input};
    Shoal__V1__EmbedRequest embed = SHOAL__V1__EMBED_REQUEST__INIT;
    Shoal__V1__ClassifyRequest classify = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    call_context ctx = call_context_named(&x->ask.ctx, "route");
    ctx.deadline_ns = until(x, set);
    ctx.latency = SHOAL__V1__LATENCY__REALTIME; /* somebody waits to be asked */
    input.text = text;
    embed.n_inputs = classify.n_inputs = 1;
    embed.inputs = classify.inputs = inputs;
    x->asked_ns = now_ns(x);
    x->call = set->centroids ? calls_embed(x->calls, set->model, &embed, &ctx, on_embedded, x)
                             : calls_classify(x->calls, set->model, &classify, &ctx, on_classified, x);
    if (!x->call) x->status = SHOAL_ENOMEM;
}

/* Somebody who is not there, or not in time, is not waited for. */
static void ask_domain(resolve *x)
{
    const config_domains *set = &x->book->domains[x->decision.ask];
    call_task task = set->centroids ? CALL_EMBED : CALL_CLASSIFY;
    size_t n = x->ask.n_text < RESOLVE_TEXT_BYTES ? x->ask.n_text : RESOLVE_TEXT_BYTES;
    call_estimate o = estimate_of(x, set->model, task, n);
    double wait_ms = (double)(until(x, set) - now_ns(x)) / 1e6;
    if (n == 0)
        unknown(x, "there is no text");
    else if (o.status != 0)
        unknown(x, "no replica serves %.64s now", set->model);
    else if (o.expected_ms > wait_ms)
        unknown(x, "%.64s would take about %.0f ms, and may take %.0f", set->model, o.expected_ms, wait_ms);
    else {
        char *text = resolve_cut(x);
        if (text)
            ask_model(x, set, text);
        else
            x->status = SHOAL_ENOMEM;
        free(text);
    }
}

/* ---- deciding ------------------------------------------------------------------------------------ */

static void resolve_finish(resolve *x, decide_what what)
{
    resolved r = {.status = x->status,
                  .what = x->status ? DECIDE_NOBODY : what,
                  .decision = &x->decision,
                  .facts = &x->ask.facts,
                  .evidence = &x->evidence,
                  .ms = (double)(now_ns(x) - x->start_ns) / 1e6};
    x->done(x->user, &r);
    free(x);
}

static void resolve_step(resolve *x)
{
    route_view v = evidence_view(&x->evidence);
    route_facts *f = &x->ask.facts;
    decide_what what = DECIDE_NOBODY;
    while (x->status == 0) {
        uint64_t now = now_ns(x);
        f->has_deadline = x->ask.deadline_ns != 0;
        f->left_ms = f->has_deadline ? ((double)x->ask.deadline_ns - (double)now) / 1e6 : 0;
        what = decide_route(x->book, x->ask.route, f, &v, &x->decision);
        if (what == DECIDE_ASK) ask_domain(x);
        if (x->call) return;
        if (what != DECIDE_ASK) break;
    }
    resolve_finish(x, what);
}

int resolve_start(resolve **ret, calls *c, const env *e, const route_book *b, const resolve_ask *ask,
                  resolve_done done, void *user)
{
    resolve *x = calloc(1, sizeof *x);
    if (!x) return SHOAL_ENOMEM;
    x->calls = c;
    x->env = e;
    x->book = b;
    x->ask = *ask;
    x->done = done;
    x->user = user;
    x->start_ns = now_ns(x);
    x->inner = (route_view){.user = x, .holds = resolve_holds, .estimate = resolve_estimate};
    x->evidence.inner = &x->inner;
    x->evidence.book = b;
    *ret = x;
    resolve_step(x);
    return 0;
}

void resolve_cancel(resolve *x)
{
    if (!x) return;
    calls_cancel(x->call);
    free(x);
}
