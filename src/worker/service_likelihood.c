/* service_likelihood.c: Likelihood: how likely given replies to a prompt are. See worker.proto.
 *
 * The prompt is made once; each reply, tokenised on its own (given.h), is put behind it and judged by the
 * engine (gen_request.only_judges), up to MAX_RUNNING at a time. They share the pages of the prompt, so that
 * it is computed about once. The reply goes out when the last is done. Loop thread. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shoal/v1/worker.pb-c.h"
#include "worker/given.h"
#include "worker/prompt.h"
#include "worker/service.h"

enum { MAX_RUNNING = 8, MAX_REPLIES = 64 };

typedef struct weigh_call weigh_call;

typedef struct weigh_item {
    bridge_job job; /* first: the bridge gives it back */
    weigh_call *owner;
    int32_t *ids; /* prompt and text */
    size_t n_ids;
    uint64_t id; /* the engine's */
    bool running;
    double log_prob;
    uint32_t n_tokens;
} weigh_item;

struct weigh_call {
    worker *w;
    grpc_call *call; /* NULL once answered or gone */
    call_trace trace;
    Shoal__V1__LikelihoodRequest *request;
    prompt prompt;
    encoding close; /* what ends a thought that the template has opened */
    weigh_item *items;
    size_t n, n_started, n_running, n_done;
    uint64_t deadline_ns;
    double queue_ms, compute_ms; /* the longest wait, and the work of all */
};

static void weigh_free(weigh_call *e)
{
    for (size_t i = 0; i < e->n; i++) free(e->items[i].ids);
    free(e->items);
    prompt_done(&e->prompt);
    encoding_done(&e->close);
    if (e->request) shoal__v1__likelihood_request__free_unpacked(e->request, NULL);
    free(e);
}

/* ---- the reply ----------------------------------------------------------------------------------- */

static int send_results(weigh_call *e)
{
    Shoal__V1__LikelihoodReply m = SHOAL__V1__LIKELIHOOD_REPLY__INIT;
    Shoal__V1__Timing timing = SHOAL__V1__TIMING__INIT;
    Shoal__V1__Likelihood results[MAX_REPLIES], *list[MAX_REPLIES];
    for (size_t i = 0; i < e->n; i++) {
        results[i] = (Shoal__V1__Likelihood)SHOAL__V1__LIKELIHOOD__INIT;
        results[i].log_prob = e->items[i].log_prob;
        results[i].n_tokens = e->items[i].n_tokens;
        list[i] = &results[i];
    }
    timing.queue_ms = e->queue_ms;
    timing.compute_ms = e->compute_ms;
    m.results = list;
    m.n_results = e->n;
    m.timing = &timing;
    m.n_prompt = (uint32_t)e->prompt.n;
    return service_call_send(e->w, e->call, &m.base);
}

static void finish(weigh_call *e)
{
    shoal_err err;
    grpc_call *c = e->call;
    if (send_results(e) != 0) {
        e->call = NULL;
        err_nomem(&err);
        service_call_refuse(e->w, c, &e->trace, &err);
        return;
    }
    e->call = NULL;
    LOG(LOG_INFO, "worker", "call_done", LOG_S("request_id", e->trace.request_id),
        LOG_S("method", e->trace.method), LOG_S("model", e->w->name), LOG_S("version", e->w->version),
        LOG_S("quantisation", e->w->quantisation), LOG_I("inputs", e->n), LOG_I("prompt_tokens", e->prompt.n),
        LOG_F("queue_ms", e->queue_ms), LOG_F("compute_ms", e->compute_ms),
        LOG_F("ms", clock_ms_since(e->trace.start_ns)));
    grpc_call_end(c, GRPC_OK, NULL);
}

/* ---- running ------------------------------------------------------------------------------------- */

static void cancel_running(weigh_call *e)
{
    for (size_t i = 0; i < e->n_started; i++)
        if (e->items[i].running) engine_cancel(e->w->engine, e->items[i].id);
}

static void fail(weigh_call *e, const shoal_err *err)
{
    grpc_call *c = e->call;
    e->call = NULL;
    service_call_refuse(e->w, c, &e->trace, err);
    cancel_running(e);
}

static int submit(weigh_call *e, weigh_item *it, shoal_err *err)
{
    const prompt *p = &e->prompt;
    enc_request source = {.ids = p->enc.ids, .type_ids = p->enc.type_ids, .n_ids = p->enc.n};
    gen_request q = {.ids = it->ids,
                     .n_ids = it->n_ids,
                     .source = p->has_source ? &source : NULL,
                     .judge_from = p->n + e->close.n,
                     .only_judges = true,
                     .adapter = *e->request->adapter ? e->request->adapter : NULL,
                     .deadline_ns = e->deadline_ns,
                     .latency = (int)e->request->latency,
                     .group = service_call_group(&e->trace)};
    return engine_generate(e->w->engine, &q, bridge_event, &it->job, &it->id, err);
}

/* A full queue is a refusal only when nothing of this request is running: else its own results make room. */
static void submit_more(weigh_call *e)
{
    while (e->call && e->n_started < e->n && e->n_running < MAX_RUNNING) {
        weigh_item *it = &e->items[e->n_started];
        shoal_err err;
        int rc = submit(e, it, &err);
        if (rc == SHOAL_EFULL && e->n_running > 0) return;
        if (rc != 0) {
            fail(e, &err);
            return;
        }
        it->running = true;
        e->n_started++;
        e->n_running++;
    }
}

static void item_judged(bridge_job *j, const gen_event *ev)
{
    weigh_item *it = (weigh_item *)j;
    if (ev->kind != EVENT_JUDGED || ev->id < 0) return;
    it->log_prob += (double)ev->logprob;
    it->n_tokens++;
}

static void item_done(bridge_job *j)
{
    weigh_item *it = (weigh_item *)j;
    weigh_call *e = it->owner;
    it->running = false;
    e->n_running--;
    e->n_done++;
    if (j->timings.queue_ms > e->queue_ms) e->queue_ms = j->timings.queue_ms;
    e->compute_ms += j->timings.prefill_ms;
    if (e->call && j->status != 0) {
        shoal_err err;
        bool ours = j->status == SHOAL_ECANCELLED; /* nobody but a closing engine cancels a live call */
        err_set(&err, ours ? SHOAL_EUNAVAILABLE : j->status, "%s",
                ours ? "the worker is shutting down" : j->message);
        fail(e, &err);
    }
    submit_more(e);
    if (e->call && e->n_done == e->n) finish(e);
    if (e->n_running == 0 && !e->call) weigh_free(e);
}

static void call_gone(void *user, grpc_call *c)
{
    weigh_call *e = user;
    e->call = NULL;
    LOG(LOG_INFO, "worker", "call_cancelled", LOG_S("request_id", e->trace.request_id),
        LOG_S("method", e->trace.method), LOG_S("model", e->w->name));
    cancel_running(e);
}

/* ---- the start ----------------------------------------------------------------------------------- */

/* Replies are answers: a thought that the template begins is over before them. */
static int close_thought(weigh_call *e, shoal_err *err)
{
    const prompt *p = &e->prompt;
    if (!p->in_thought || !p->thinking) return 0;
    return tokenizer_encode(model_tokenizer(e->w->model), p->thinking->close, strlen(p->thinking->close),
                            NULL, 0, TOK_PARSE_SPECIAL, 0, &e->close, err);
}

static int prepare_prompt(weigh_call *e, shoal_err *err)
{
    const Shoal__V1__GenerateRequest *r = e->request->prompt;
    if (!r) return err_set(err, SHOAL_EINVALID, "there is no prompt that they might reply to");
    if (!model_tokenizer(e->w->model))
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: %s", e->w->name, model_tokenizer_error(e->w->model));
    int rc = service_check_utf8(r->text, "prompt.text", err);
    if (rc == 0) rc = prompt_make(&e->prompt, e->w, r, err);
    return rc == 0 ? close_thought(e, err) : rc;
}

static int join(const weigh_call *e, weigh_item *it, const encoding *text, shoal_err *err)
{
    const prompt *p = &e->prompt;
    it->n_ids = p->n + e->close.n + text->n; /* each is bounded by the context */
    it->ids = calloc(it->n_ids, sizeof *it->ids);
    if (!it->ids) return err_nomem(err);
    memcpy(it->ids, p->ids, p->n * sizeof *it->ids);
    if (e->close.n) memcpy(it->ids + p->n, e->close.ids, e->close.n * sizeof *it->ids);
    if (text->n) memcpy(it->ids + p->n + e->close.n, text->ids, text->n * sizeof *it->ids);
    return 0;
}

static int prepare_item(weigh_call *e, size_t i, shoal_err *err)
{
    weigh_item *it = &e->items[i];
    encoding enc = {0};
    it->owner = e;
    it->job.b = e->w->bridge;
    it->job.on_token = item_judged;
    it->job.on_done = item_done;
    int rc = given_encode(model_tokenizer(e->w->model), e->prompt.calls, e->request->replies[i],
                          engine_ctx(e->w->engine), &enc, err);
    if (rc == 0) rc = join(e, it, &enc, err);
    encoding_done(&enc);
    if (rc == 0 && it->n_ids > engine_ctx(e->w->engine))
        rc = err_set(err, SHOAL_ELIMIT, "%zu tokens with the prompt are over the context of %s, %zu tokens",
                     it->n_ids, e->w->name, engine_ctx(e->w->engine));
    return rc != 0 && e->n > 1 ? err_prefix(err, rc, "reply %zu", i) : rc;
}

static int prepare(weigh_call *e, const uint8_t *msg, size_t n, shoal_err *err)
{
    ProtobufCMessage *m;
    model_task own = e->w->task;
    int rc = service_call_admit(e->w, own == TASK_SEQ2SEQ ? own : TASK_GENERATE, err);
    if (rc == 0) rc = service_call_unpack(&shoal__v1__likelihood_request__descriptor, msg, n, &m, err);
    if (rc != 0) return rc;
    e->request = (Shoal__V1__LikelihoodRequest *)m;
    size_t n_replies = e->request->n_replies;
    if (n_replies == 0 || n_replies > MAX_REPLIES)
        return err_set(err, n_replies ? SHOAL_ELIMIT : SHOAL_EINVALID, "%zu replies: give from 1 to %d",
                       n_replies, MAX_REPLIES);
    e->items = calloc(n_replies, sizeof *e->items);
    if (!e->items) return err_nomem(err);
    e->n = n_replies;
    rc = prepare_prompt(e, err);
    for (size_t i = 0; rc == 0 && i < e->n; i++) rc = prepare_item(e, i, err);
    return rc;
}

void service_likelihood(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    worker *w = user;
    weigh_call *e = calloc(1, sizeof *e);
    if (!e) {
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    e->w = w;
    e->call = c;
    e->deadline_ns = grpc_call_deadline_ns(c);
    service_call_begin(w, c, "Likelihood", &e->trace);
    shoal_err err;
    if (prepare(e, msg, n, &err) != 0) {
        service_call_refuse(w, c, &e->trace, &err);
        weigh_free(e);
        return;
    }
    grpc_call_on_cancel(c, call_gone, e);
    submit_more(e);
    if (e->n_running == 0) weigh_free(e);
}
