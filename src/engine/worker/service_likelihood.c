/* service_likelihood.c: Likelihood: how likely given replies to a prompt are. See worker.proto.
 *
 * The prompt is made once; each reply, tokenised on its own (teacher_forced.h), is put behind it and judged by the
 * engine (gen_request.only_judges), several at a time (service_items.h). They share the pages of the prompt,
 * so that it is computed about once. Loop thread. */
#include <stdlib.h>
#include <string.h>

#include "shoal/v1/worker.pb-c.h"
#include "worker/teacher_forced.h"
#include "worker/prompt.h"
#include "worker/service_items.h"

enum { MAX_RUNNING = 8, MAX_REPLIES = 64 };

typedef struct weigh_item {
    call_item item;
    int32_t *ids; /* prompt and text */
    size_t n_ids;
    double log_prob;
    uint32_t n_tokens;
} weigh_item;

typedef struct weigh_call {
    items_call call;
    Shoal__V1__LikelihoodRequest *request;
    prompt prompt;
    encoding close; /* what ends a thought that the template has opened */
} weigh_call;

static weigh_item *likelihood_item_at(const weigh_call *e, size_t i)
{
    return (weigh_item *)items_at(&e->call, i);
}

static void weigh_free(items_call *c)
{
    weigh_call *e = (weigh_call *)c;
    for (size_t i = 0; i < c->n; i++) free(likelihood_item_at(e, i)->ids);
    prompt_done(&e->prompt);
    encoding_done(&e->close);
    if (e->request) shoal__v1__likelihood_request__free_unpacked(e->request, NULL);
}

/* ---- the reply ----------------------------------------------------------------------------------- */

static int likelihood_send_results(items_call *c)
{
    weigh_call *e = (weigh_call *)c;
    Shoal__V1__LikelihoodReply m = SHOAL__V1__LIKELIHOOD_REPLY__INIT;
    Shoal__V1__Timing timing = SHOAL__V1__TIMING__INIT;
    Shoal__V1__Likelihood results[MAX_REPLIES], *list[MAX_REPLIES];
    for (size_t i = 0; i < c->n; i++) {
        results[i] = (Shoal__V1__Likelihood)SHOAL__V1__LIKELIHOOD__INIT;
        results[i].log_prob = likelihood_item_at(e, i)->log_prob;
        results[i].n_tokens = likelihood_item_at(e, i)->n_tokens;
        list[i] = &results[i];
    }
    timing.queue_ms = c->queue_ms;
    timing.compute_ms = c->compute_ms;
    timing.cpu_ms = c->cpu_ms;
    m.results = list;
    m.n_results = c->n;
    m.timing = &timing;
    m.n_prompt = (uint32_t)e->prompt.n;
    return service_call_send(c->w, c->call, &m.base);
}

/* ---- running ------------------------------------------------------------------------------------- */

static int likelihood_submit(items_call *c, call_item *item, shoal_err *err)
{
    const weigh_call *e = (weigh_call *)c;
    const weigh_item *it = (weigh_item *)item;
    const prompt *p = &e->prompt;
    enc_request source = {.ids = p->enc.ids, .type_ids = p->enc.type_ids, .n_ids = p->enc.n};
    gen_request q = {.ids = it->ids,
                     .n_ids = it->n_ids,
                     .source = p->has_source ? &source : NULL,
                     .judge_from = p->n + e->close.n,
                     .only_judges = true,
                     .adapter = *e->request->adapter ? e->request->adapter : NULL,
                     .deadline_ns = c->deadline_ns,
                     .latency = (int)e->request->latency,
                     .group = service_call_group(&c->trace)};
    return c->w->backend.ops->generate(c->w->backend.state, &q, bridge_event, &item->job, &item->id, err);
}

static void likelihood_judged(bridge_job *j, const gen_event *ev)
{
    weigh_item *it = (weigh_item *)j;
    if (ev->kind != EVENT_JUDGED || ev->id < 0) return;
    it->log_prob += (double)ev->logprob;
    it->n_tokens++;
}

static void likelihood_took(items_call *c, call_item *item)
{
    const bridge_job *j = &item->job;
    if (j->timings.queue_ms > c->queue_ms) c->queue_ms = j->timings.queue_ms;
    c->compute_ms += j->timings.prefill_ms;
    c->cpu_ms += j->timings.cpu_ms;
}

/* ---- the start ----------------------------------------------------------------------------------- */

/* Replies are answers: a thought that the template begins is over before them. */
static int close_thought(weigh_call *e, shoal_err *err)
{
    const prompt *p = &e->prompt;
    if (!p->in_thought || !p->thinking) return 0;
    return tokenizer_encode(e->call.w->backend.about.tokenizer, p->thinking->close,
                            strlen(p->thinking->close), NULL, 0, TOK_PARSE_SPECIAL, 0, &e->close, err);
}

static int prepare_prompt(weigh_call *e, shoal_err *err)
{
    const Shoal__V1__GenerateRequest *r = e->request->prompt;
    if (!r) return err_set(err, SHOAL_EINVALID, "there is no prompt that they might reply to");
    const tokenizer *t;
    int rc = backend_tokenizer(&e->call.w->backend, "", &t, err);
    if (rc == 0) rc = service_check_utf8(r->text, "prompt.text", err);
    if (rc == 0) rc = prompt_make(&e->prompt, e->call.w, r, err);
    return rc == 0 ? close_thought(e, err) : rc;
}

static int likelihood_join(const weigh_call *e, weigh_item *it, const encoding *text, shoal_err *err)
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

static int likelihood_prepare_item(weigh_call *e, size_t i, shoal_err *err)
{
    weigh_item *it = likelihood_item_at(e, i);
    encoding enc = {0};
    int rc = teacher_forced_encode(e->call.w->backend.about.tokenizer, e->prompt.calls,
                                   e->request->replies[i], e->call.w->backend.about.n_ctx, &enc, err);
    if (rc == 0) rc = likelihood_join(e, it, &enc, err);
    encoding_done(&enc);
    if (rc == 0 && it->n_ids > e->call.w->backend.about.n_ctx)
        rc = err_set(
            err, SHOAL_ELIMIT,
            "This model's maximum context length is %zu tokens, and prompt and reply have %zu (model %s)",
            e->call.w->backend.about.n_ctx, it->n_ids, e->call.w->name);
    return rc != 0 && e->call.n > 1 ? err_prefix(err, rc, "reply %zu", i) : rc;
}

static int likelihood_prepare(items_call *c, const uint8_t *msg, size_t n, shoal_err *err)
{
    weigh_call *e = (weigh_call *)c;
    ProtobufCMessage *m;
    int rc = service_call_unpack(&shoal__v1__likelihood_request__descriptor, msg, n, &m, err);
    if (rc != 0) return rc;
    e->request = (Shoal__V1__LikelihoodRequest *)m;
    size_t n_replies = e->request->n_replies;
    if (n_replies == 0 || n_replies > MAX_REPLIES)
        return err_set(err, n_replies ? SHOAL_ELIMIT : SHOAL_EINVALID, "%zu replies: give from 1 to %d",
                       n_replies, MAX_REPLIES);
    rc = items_make(&e->call, n_replies, err);
    if (rc == 0) rc = prepare_prompt(e, err);
    e->call.n_tokens = e->prompt.n;
    for (size_t i = 0; rc == 0 && i < e->call.n; i++) rc = likelihood_prepare_item(e, i, err);
    return rc;
}

void service_likelihood(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    static const items_ops OPS = {.item_size = sizeof(weigh_item),
                                  .tokens = "prompt_tokens",
                                  .submit = likelihood_submit,
                                  .judged = likelihood_judged,
                                  .took = likelihood_took,
                                  .reply = likelihood_send_results,
                                  .free = weigh_free};
    weigh_call *e = (weigh_call *)items_begin(&OPS, sizeof *e, user, c, "Likelihood");
    if (!e) return;
    model_task own = e->call.w->backend.about.task;
    e->call.together = MAX_RUNNING;
    items_run(&e->call, own == TASK_SEQ2SEQ ? own : TASK_GENERATE, likelihood_prepare, msg, n);
}
