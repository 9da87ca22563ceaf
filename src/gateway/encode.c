/* encode.c: embeddings, classify, rerank and tag; see encode.h. What comes before and after the one model
 * call (cache, waiting, the client that leaves) is shared.c's. Loop thread. */
#include "gateway/encode.h"

#include <stdlib.h>

#include "base/sha256.h"
#include "gateway/choose.h"
#include "gateway/encode_put.h"
#include "gateway/shared.h"

typedef struct encode_job { /* dies with the request */
    shared_job shared;      /* first: shared.h takes the job by it */
    encode_spec spec;
    backend_call *call;
} encode_job;

static void job_free(void *job)
{
    encode_job *j = job;
    backend_cancel(j->call);
    encode_spec_done(&j->spec);
    free(j);
}

static void answer_cached(void *job, const cache_value *v)
{
    gateway_request *rq = ((encode_job *)job)->shared.rq;
    job_free(job);
    request_json(rq, 200, &(buf){.data = (char *)v->data, .len = v->len});
}

/* The call is over: its answer, for this request and those who wait. */
static void job_answer(encode_job *j, const buf *body)
{
    gateway_request *rq = j->shared.rq;
    cache_ticket *t = shared_detach(&j->shared);
    job_free(j);
    request_json(rq, 200, body);
    shared_publish(t, body);
}

/* ---- the call ------------------------------------------------------------------------------------ */

static bool ended_well(encode_job *j, const backend_result *r, size_t n_results)
{
    j->call = NULL;
    request_note_result(j->shared.rq, r);
    backend_result failed = *r;
    if (r->status == 0 && n_results == j->spec.n_inputs) return true;
    if (r->status == 0) {
        failed.status = SHOAL_EPROTOCOL;
        failed.message = "the worker answered another number of texts than it was asked";
    }
    api_error e;
    api_error_from_backend(&e, &failed);
    shared_fail(&j->shared, &e);
    return false;
}

static void observe(encode_job *j, const backend_result *r, const Shoal__V1__Timing *t)
{
    metrics *m = j->shared.rq->metrics;
    metrics_observe_s(m, METRIC_STAGE_S, r->ms / 1000, j->shared.rq->model, "total");
    if (!t) return;
    metrics_observe_s(m, METRIC_STAGE_S, t->queue_ms / 1000, j->shared.rq->model, "queue");
    metrics_observe_s(m, METRIC_STAGE_S, t->compute_ms / 1000, j->shared.rq->model, "prefill");
}

static int fail_dimensions(api_error *e, const gateway_request *rq, size_t n_embd)
{
    return api_error_bad(e, "dimensions", "%s gives %zu dimensions, which cannot be changed", rq->model,
                         n_embd);
}

static void on_embedded(void *user, const backend_result *r, const Shoal__V1__EmbedReply *reply)
{
    encode_job *j = user;
    if (!ended_well(j, r, reply ? reply->n_results : 0)) return;
    size_t n = reply->results[0]->n_values;
    if (j->spec.dimensions && (size_t)j->spec.dimensions != n) {
        api_error e;
        fail_dimensions(&e, j->shared.rq, n);
        shared_fail(&j->shared, &e);
        return;
    }
    observe(j, r, reply->timing);
    buf body = {0};
    encode_put_embeddings(&body, &j->spec, reply, &j->shared.rq->n_prompt_tokens);
    job_answer(j, &body);
    buf_done(&body);
}

static void on_classified(void *user, const backend_result *r, const Shoal__V1__ClassifyReply *reply)
{
    encode_job *j = user;
    if (!ended_well(j, r, reply ? reply->n_results : 0)) return;
    observe(j, r, reply->timing);
    buf body = {0};
    (j->spec.kind == ENCODE_RERANK ? encode_put_ranking : encode_put_classes)(&body, &j->spec, reply,
                                                                              &j->shared.rq->n_prompt_tokens);
    job_answer(j, &body);
    buf_done(&body);
}

static void on_tagged(void *user, const backend_result *r, const Shoal__V1__TagReply *reply)
{
    encode_job *j = user;
    if (!ended_well(j, r, reply ? reply->n_results : 0)) return;
    observe(j, r, reply->timing);
    buf body = {0};
    encode_put_spans(&body, &j->spec, reply, &j->shared.rq->n_prompt_tokens);
    job_answer(j, &body);
    buf_done(&body);
}

static void start_call(void *job)
{
    encode_job *j = job;
    const encode_spec *s = &j->spec;
    gateway_request *rq = j->shared.rq;
    backend *b = rq->backend;
    backend_context ctx = request_context(j->shared.rq, "endpoint");
    Shoal__V1__EmbedRequest embed = SHOAL__V1__EMBED_REQUEST__INIT;
    Shoal__V1__ClassifyRequest classify = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    Shoal__V1__TagRequest tag = SHOAL__V1__TAG_REQUEST__INIT;
    embed.n_inputs = classify.n_inputs = tag.n_inputs = s->n_inputs;
    embed.inputs = classify.inputs = tag.inputs = s->input_list;
    embed.adapter = classify.adapter = tag.adapter = rq->adapter;
    switch (s->kind) {
    case ENCODE_EMBED: j->call = backend_embed(b, rq->model, &embed, &ctx, on_embedded, j); break;
    case ENCODE_RERANK:
    case ENCODE_CLASSIFY: j->call = backend_classify(b, rq->model, &classify, &ctx, on_classified, j); break;
    case ENCODE_TAG: j->call = backend_tag(b, rq->model, &tag, &ctx, on_tagged, j); break;
    }
    if (!j->call) shared_fail_nomem(&j->shared);
}

/* ---- the endpoints ------------------------------------------------------------------------------- */

static const shared_ops OPS = {.compute = start_call, .answer = answer_cached, .free = job_free};

static void handle(gateway_request *rq, encode_kind kind, const char *task)
{
    api_error e;
    encode_spec spec = {0};
    const Shoal__V1__ModelInfo *info = NULL;
    size_t len;
    const char *body = http_body(rq->http, &len);
    int rc = encode_spec_parse(&spec, kind, body, len, &e);
    if (rc == 0) rc = choose_model(rq, task, &spec.model, &info, &e);
    /* Known beforehand, so a wrong number costs no inference. */
    if (rc == 0 && spec.dimensions && info && (uint32_t)spec.dimensions != info->n_embd)
        rc = fail_dimensions(&e, rq, info->n_embd);
    encode_job *j = rc == 0 ? calloc(1, sizeof *j) : NULL;
    if (!j) {
        if (rc == 0) api_error_nomem(&e);
        encode_spec_done(&spec);
        request_error(rq, &e);
        return;
    }
    j->spec = spec;
    sha256_digest key;
    bool cacheable = info && *info->digest && encode_spec_key(&spec, info->digest, rq->adapter_digest, &key);
    shared_start(&j->shared, &OPS, rq, cacheable ? &key : NULL);
}

void encode_embeddings(gateway_request *rq)
{
    handle(rq, ENCODE_EMBED, "embed");
}

void encode_classify(gateway_request *rq)
{
    handle(rq, ENCODE_CLASSIFY, "classify");
}

void encode_rerank(gateway_request *rq)
{
    handle(rq, ENCODE_RERANK, "rerank");
}

void encode_tag(gateway_request *rq)
{
    handle(rq, ENCODE_TAG, "tag");
}
