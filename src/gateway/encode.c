#include "gateway/encode.h"

#include <stdlib.h>

#include "base/clock.h"
#include "gateway/cache.h"
#include "gateway/choose.h"
#include "gateway/encode_put.h"

typedef struct encode_job { /* dies with the request */
    gateway_request *rq;
    encode_spec spec;
    cache_ticket *ticket; /* NULL: not sharing */
    backend_call *call;
} encode_job;

static void job_free(encode_job *j)
{
    backend_cancel(j->call);
    encode_spec_done(&j->spec);
    free(j);
}

static void on_gone(void *work)
{
    encode_job *j = work;
    cache_ticket *t = j->ticket;
    job_free(j);
    cache_leave(t);
}

static void job_fail(encode_job *j, const api_error *e)
{
    cache_ticket *t = j->ticket;
    gateway_request *rq = j->rq;
    job_free(j);
    request_error(rq, e);
    if (e->status == 504)
        cache_leave(t); /* our deadline is not that of those who wait */
    else
        cache_fail(t, e->status, e, sizeof *e);
}

/* A waiter that its deadline reached first: the computation goes on for the others. */
static void on_deadline(void *work)
{
    encode_job *j = work;
    cache_ticket *t = j->ticket;
    gateway_request *rq = j->rq;
    api_error e;
    api_error_from_backend(&e,
                           &(backend_result){.status = SHOAL_EDEADLINE, .message = "the deadline passed"});
    job_free(j);
    request_error(rq, &e);
    cache_leave(t);
}

/* The reply is `body`; its owner stays the owner. */
static void job_answer(encode_job *j, const buf *body)
{
    gateway_request *rq = j->rq;
    cache_ticket *t = j->ticket;
    job_free(j);
    request_json(rq, 200, body);
    if (!t) return;
    if (body->failed)
        cache_leave(t);
    else
        cache_fill(t, body->data, body->len, clock_ns());
}

static void answer_from(encode_job *j, const cache_value *v, const char *state)
{
    j->rq->cache_state = state;
    j->ticket = NULL;
    job_answer(j, &(buf){.data = (char *)v->data, .len = v->len});
}

/* ---- the call ------------------------------------------------------------------------------------ */

static bool ended_well(encode_job *j, const backend_result *r, size_t n_results)
{
    j->call = NULL;
    request_note_result(j->rq, r);
    backend_result failed = *r;
    if (r->status == 0 && n_results == j->spec.n_inputs) return true;
    if (r->status == 0) {
        failed.status = SHOAL_EPROTOCOL;
        failed.message = "the worker answered another number of texts than it was asked";
    }
    api_error e;
    api_error_from_backend(&e, &failed);
    job_fail(j, &e);
    return false;
}

static void observe(encode_job *j, const backend_result *r, const Shoal__V1__Timing *t)
{
    metrics *m = j->rq->metrics;
    metrics_observe_s(m, METRIC_STAGE_S, r->ms / 1000, j->rq->model, "total");
    if (!t) return;
    metrics_observe_s(m, METRIC_STAGE_S, t->queue_ms / 1000, j->rq->model, "queue");
    metrics_observe_s(m, METRIC_STAGE_S, t->compute_ms / 1000, j->rq->model, "prefill");
}

static void on_embedded(void *user, const backend_result *r, const Shoal__V1__EmbedReply *reply)
{
    encode_job *j = user;
    if (!ended_well(j, r, reply ? reply->n_results : 0)) return;
    size_t n = reply->results[0]->n_values;
    if (j->spec.dimensions && (size_t)j->spec.dimensions != n) {
        api_error e;
        api_error_bad(&e, "dimensions", "%s gives %zu dimensions, which cannot be changed", j->rq->model, n);
        job_fail(j, &e);
        return;
    }
    observe(j, r, reply->timing);
    buf body = {0};
    encode_put_embeddings(&body, &j->spec, reply, &j->rq->n_prompt_tokens);
    job_answer(j, &body);
    buf_done(&body);
}

static void on_classified(void *user, const backend_result *r, const Shoal__V1__ClassifyReply *reply)
{
    encode_job *j = user;
    if (!ended_well(j, r, reply ? reply->n_results : 0)) return;
    observe(j, r, reply->timing);
    buf body = {0};
    encode_put_classes(&body, &j->spec, reply, &j->rq->n_prompt_tokens);
    job_answer(j, &body);
    buf_done(&body);
}

static void on_tagged(void *user, const backend_result *r, const Shoal__V1__TagReply *reply)
{
    encode_job *j = user;
    if (!ended_well(j, r, reply ? reply->n_results : 0)) return;
    observe(j, r, reply->timing);
    buf body = {0};
    encode_put_spans(&body, &j->spec, reply, &j->rq->n_prompt_tokens);
    job_answer(j, &body);
    buf_done(&body);
}

static void start_call(encode_job *j)
{
    const encode_spec *s = &j->spec;
    backend *b = j->rq->backend;
    backend_context ctx = request_context(j->rq, "endpoint");
    Shoal__V1__EmbedRequest embed = SHOAL__V1__EMBED_REQUEST__INIT;
    Shoal__V1__ClassifyRequest classify = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    Shoal__V1__TagRequest tag = SHOAL__V1__TAG_REQUEST__INIT;
    embed.n_inputs = classify.n_inputs = tag.n_inputs = s->n_inputs;
    embed.inputs = classify.inputs = tag.inputs = s->input_list;
    switch (s->kind) {
    case ENCODE_EMBED: j->call = backend_embed(b, s->model, &embed, &ctx, on_embedded, j); break;
    case ENCODE_CLASSIFY: j->call = backend_classify(b, s->model, &classify, &ctx, on_classified, j); break;
    case ENCODE_TAG: j->call = backend_tag(b, s->model, &tag, &ctx, on_tagged, j); break;
    }
}

static void on_turn(void *user, cache_outcome outcome, const cache_value *v)
{
    encode_job *j = user;
    request_on_deadline(j->rq, NULL);
    if (outcome == CACHE_LEAD) { /* the ticket stays ours */
        j->rq->cache_state = "miss";
        start_call(j);
        return;
    }
    j->ticket = NULL;
    if (outcome == CACHE_HIT) {
        answer_from(j, v, "shared");
        return;
    }
    api_error e;
    j->rq->cache_state = "shared";
    api_error_shared(&e, v);
    job_fail(j, &e);
}

static void job_start(encode_job *j, const char *digest)
{
    sha256_digest key;
    const cache_value *v = NULL;
    if (request_wants_fresh(j->rq) || !digest || !*digest || !encode_spec_key(&j->spec, digest, &key)) {
        start_call(j);
        return;
    }
    switch (cache_lookup(j->rq->cache, &key, clock_ns(), on_turn, j, &j->ticket, &v)) {
    case CACHE_HIT:
        answer_from(j, v, "hit");
        cache_value_unref(v);
        break;
    case CACHE_LEAD:
        j->rq->cache_state = "miss";
        start_call(j);
        break;
    default: request_on_deadline(j->rq, on_deadline); break;
    }
}

/* ---- the endpoints ------------------------------------------------------------------------------- */

static void handle(gateway_request *rq, encode_kind kind, const char *task)
{
    api_error e;
    encode_spec spec = {0};
    const Shoal__V1__ModelInfo *info = NULL;
    size_t len;
    const char *body = http_body(rq->http, &len);
    int rc = encode_spec_parse(&spec, kind, body, len, &e);
    if (rc == 0) rc = choose_model(rq, task, &spec.model, &info, &e);
    encode_job *j = rc == 0 ? calloc(1, sizeof *j) : NULL;
    if (!j) {
        if (rc == 0) api_error_set(&e, 500, "server_error", "out_of_memory", NULL, "out of memory");
        encode_spec_done(&spec);
        request_error(rq, &e);
        return;
    }
    j->rq = rq;
    j->spec = spec;
    request_watch(rq, on_gone, j);
    /* Known beforehand, so a wrong number costs no inference. */
    if (spec.dimensions && info && (uint32_t)spec.dimensions != info->n_embd) {
        api_error_bad(&e, "dimensions", "%s gives %u dimensions, which cannot be changed", rq->model,
                      info->n_embd);
        job_fail(j, &e);
        return;
    }
    job_start(j, info ? info->digest : NULL);
}

void embeddings_handle(gateway_request *rq)
{
    handle(rq, ENCODE_EMBED, "embed");
}

void classify_handle(gateway_request *rq)
{
    handle(rq, ENCODE_CLASSIFY, "classify");
}

void tag_handle(gateway_request *rq)
{
    handle(rq, ENCODE_TAG, "tag");
}
