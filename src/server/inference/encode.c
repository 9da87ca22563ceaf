/* encode.c: what encoders, trees and recurrent networks answer in one piece; see encode.h. What comes before
 * and after the one model call (cache, waiting, the client that leaves) is shared.c's. Loop thread. */
#include "inference/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "inference/about.h"
#include "request/model_resolve.h"
#include "messages/encode_bytes.h"
#include "messages/encode_put.h"
#include "request/routed.h"
#include "answers/shared.h"

typedef struct encode_job { /* dies with the request */
    shared_job shared;      /* first: shared.h takes the job by it */
    encode_spec spec;
    model_call *call;
} encode_job;

static void encode_job_free(void *job)
{
    encode_job *j = job;
    calls_cancel(j->call);
    encode_spec_done(&j->spec);
    free(j);
}

static void answer_cached(void *job, const char *packed, size_t len)
{
    gateway_request *rq = ((encode_job *)job)->shared.rq;
    encode_job_free(job);
    request_json(rq, 200, &(buf){.data = (char *)packed, .len = len});
}

/* The call is over: its answer, for this request and those who wait. */
static void job_answer(encode_job *j, const buf *body)
{
    gateway_request *rq = j->shared.rq;
    shared_end end = shared_detach(&j->shared);
    encode_job_free(j);
    request_json(rq, 200, body);
    shared_publish(&end, body);
}

/* ---- the call ------------------------------------------------------------------------------------ */

/* Which text is refused: "input[3]", as the worker's message begins; of a request of one, "input". */
static void note_param(api_error *e, const encode_job *j)
{
    const char *list = j->spec.kind == ASK_RERANK ? "documents" : "input";
    size_t i;
    if (e->status != 400 || j->spec.bytes.len > 0 || *e->param) return;
    if (sscanf(e->message, "input[%zu]:", &i) == 1)
        snprintf(e->param, sizeof e->param, "%s[%zu]", list, i);
    else if (e->code && strcmp(e->code, "context_length_exceeded") == 0)
        snprintf(e->param, sizeof e->param, "%s", list);
}

/* How many things the reply is about. */
static size_t count_results(const encode_job *j, const ProtobufCMessage *reply)
{
    if (!reply || j->spec.kind == ASK_SCORE)
        return reply ? 1 : 0; /* rows are as many as are due, none among them */
    return ((const Shoal__V1__ClassifyReply *)reply)->n_results; /* the others begin alike */
}

static bool ended_well(encode_job *j, const call_result *r, const ProtobufCMessage *reply)
{
    j->call = NULL;
    request_note_result(j->shared.rq, r);
    shared_heard(&j->shared, r->identity);
    call_result failed = *r;
    if (r->status == 0 && count_results(j, reply) == j->spec.n_inputs + j->spec.by_vectors) return true;
    if (r->status == 0) {
        failed.status = SHOAL_EPROTOCOL;
        failed.message = "the worker answered another number of things than it was asked";
    }
    api_error e;
    api_error_from_call(&e, &failed);
    note_param(&e, j);
    if (failed.status == SHOAL_ELIMIT && j->spec.bytes.len > 0) { /* no context is exceeded here */
        e.status = 413;
        e.code = "request_too_large";
    }
    shared_fail(&j->shared, &e);
    return false;
}

static void observe(encode_job *j, const call_result *r, const Shoal__V1__Timing *t)
{
    request_note_time(j->shared.rq, REQUEST_TOTAL, r->ms);
    if (!t) return;
    request_note_time(j->shared.rq, REQUEST_QUEUE, t->queue_ms);
    request_note_time(j->shared.rq, REQUEST_PREFILL, t->compute_ms);
}

static int fail_dimensions(api_error *e, const gateway_request *rq, size_t n_embd)
{
    return api_error_bad(e, "dimensions", "%s gives %zu dimensions: ask for as many or fewer", rq->model,
                         n_embd);
}

/* Only the reply of a worker that had not come up says how many there are. */
static bool has_dimensions(encode_job *j, const ProtobufCMessage *reply)
{
    if (j->spec.kind != ASK_EMBED || !j->spec.dimensions) return true;
    size_t n = ((const Shoal__V1__EmbedReply *)reply)->results[0]->n_values;
    if ((size_t)j->spec.dimensions <= n) return true;
    api_error e;
    fail_dimensions(&e, j->shared.rq, n);
    shared_fail(&j->shared, &e);
    return false;
}

static void note_confidence(encode_job *j, const ProtobufCMessage *reply)
{
    if (reply->descriptor != &shoal__v1__classify_reply__descriptor) return;
    const Shoal__V1__ClassifyReply *c = (const Shoal__V1__ClassifyReply *)reply;
    for (size_t i = 0; i < c->n_results; i++)
        if (c->results[i]->n_labels > 1)
            degraded_trust(&j->shared.rq->degraded, (double)c->results[i]->labels[0]->score);
}

static void encode_on_reply(void *user, const call_result *r, const ProtobufCMessage *reply)
{
    encode_job *j = user;
    if (!ended_well(j, r, reply) || !has_dimensions(j, reply)) return;
    note_confidence(j, reply);
    observe(j, r, task_reply_timing(reply));
    buf body = {0};
    encode_put(&body, &j->spec, reply, &j->shared.rq->n_prompt_tokens);
    job_answer(j, &body);
    buf_done(&body);
}

/* The query, and each document by itself. NULL: out of memory. */
static model_call *start_vectors(encode_job *j)
{
    const encode_spec *s = &j->spec;
    gateway_request *rq = j->shared.rq;
    call_context ctx = request_context(rq, "endpoint");
    size_t n = s->n_inputs + 1;
    Shoal__V1__TextInput *texts = calloc(n, sizeof *texts), **list = calloc(n, sizeof *list);
    model_call *call = NULL;
    for (size_t i = 0; texts && list && i < n; i++) {
        texts[i] = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
        texts[i].text = i ? s->inputs[i - 1].pair : s->inputs[0].text;
        list[i] = &texts[i];
    }
    if (texts && list) {
        task_request req;
        task_request_texts(&req, CALL_EMBED, list, n, rq->adapter);
        req.embed.truncate_tokens = UINT32_MAX; /* as a cross-encoder cuts its pairs */
        call = calls_unary(rq->calls, CALL_EMBED, rq->model, &req.base, &ctx, encode_on_reply, j);
    }
    free(texts);
    free(list);
    return call;
}

static void start_call(void *job)
{
    encode_job *j = job;
    const encode_spec *s = &j->spec;
    const task_endpoint *at = &TASK_ENDPOINTS[s->kind];
    gateway_request *rq = j->shared.rq;
    if (s->by_vectors) {
        j->call = start_vectors(j);
        if (!j->call) shared_fail_nomem(&j->shared);
        return;
    }
    call_context ctx = request_context(rq, "endpoint");
    ProtobufCBinaryData file = {.data = (uint8_t *)s->bytes.data, .len = s->bytes.len};
    task_request req;
    if (at->input)
        task_request_texts(&req, at->call, s->input_list, s->n_inputs, rq->adapter);
    else
        task_request_file(&req, at->call, file);
    if (s->kind == ASK_EMBED) req.embed.truncate_tokens = s->truncate_tokens;
    if (s->kind == ASK_FILL_MASK) req.fill_mask.top_k = (uint32_t)s->top_k;
    j->call = calls_unary(rq->calls, at->call, rq->model, &req.base, &ctx, encode_on_reply, j);
    if (!j->call) shared_fail_nomem(&j->shared);
}

/* ---- a model's answer ----------------------------------------------------------------------------- */

static const shared_ops OPS = {.compute = start_call, .answer = answer_cached, .free = encode_job_free};

static int parse_encode(encode_spec *ret, task_endpoint_id kind, const gateway_request *rq, api_error *e)
{
    size_t len;
    const char *body = request_body(rq, &len), *type = request_header(rq, "content-type");
    if (encode_bytes_is_raw(kind, type)) return encode_bytes_raw(ret, kind, request_query(rq), body, len, e);
    if (encode_bytes_is_form(kind, type)) return encode_bytes_form(ret, kind, type, body, len, e);
    return encode_spec_parse(ret, kind, body, len, e);
}

/* An embedder ranks where it is asked to, and where no cross-encoder is served. */
static bool ranks_by_vectors(const gateway_request *rq, const encode_spec *spec)
{
    if (spec->kind != ASK_RERANK) return false;
    if (!spec->model) return !model_resolve_first(rq, "rerank") && model_resolve_first(rq, "embed");
    char base[96];
    snprintf(base, sizeof base, "%.*s", (int)strcspn(spec->model, ":"), spec->model);
    const Shoal__V1__ModelInfo *info = calls_info(rq->calls, base, NULL);
    return info && strcmp(info->task, "embed") == 0;
}

/* Takes spec, of which it is known by now which model answers. */
static void encode_answer(gateway_request *rq, encode_spec *spec)
{
    api_error e;
    const Shoal__V1__ModelInfo *info = NULL;
    spec->by_vectors = ranks_by_vectors(rq, spec);
    int rc = model_resolve(rq, spec->by_vectors ? "embed" : TASK_ENDPOINTS[spec->kind].does, &spec->model,
                           &info, &e);
    /* Known beforehand, so a wrong number costs no inference. */
    if (rc == 0 && spec->dimensions && info && (uint32_t)spec->dimensions > info->n_embd)
        rc = fail_dimensions(&e, rq, info->n_embd);
    encode_job *j = rc == 0 ? malloc(sizeof *j) : NULL;
    if (!j) {
        if (rc == 0) api_error_nomem(&e);
        encode_spec_done(spec);
        request_error(rq, &e);
        return;
    }
    *j = (encode_job){.spec = *spec};
    j->spec.model = request_shown_model(rq, spec->model);
    provenance by = {0};
    shared_terms terms = {.by = &by};
    provenance_add(&by, rq, rq->model, rq->adapter);
    bool cacheable =
        provenance_end(&by) && encode_spec_key(&j->spec, by.identity, rq->adapter_digest, &terms.key);
    shared_start(&j->shared, &OPS, rq, cacheable ? &terms : NULL);
}

/* ---- a route ------------------------------------------------------------------------------------- */

typedef struct encode_routed { /* a request that waits for its route */
    gateway_request *rq;
    encode_spec spec;
} encode_routed;

static void routed_drop(void *work)
{
    encode_routed *w = work;
    encode_spec_done(&w->spec);
    free(w);
}

static void on_routed(void *work, const char *model, const api_error *e)
{
    encode_routed w = *(encode_routed *)work;
    free(work);
    if (model) {
        w.spec.model = model;
        encode_answer(w.rq, &w.spec);
        return;
    }
    encode_spec_done(&w.spec);
    request_error(w.rq, e);
}

/* Takes spec. */
static void start_route(gateway_request *rq, const config_route *route, encode_spec *spec)
{
    api_error e;
    routed_about about;
    encode_routed *w = malloc(sizeof *w);
    if (!w) {
        api_error_nomem(&e);
        encode_spec_done(spec);
        request_error(rq, &e);
        return;
    }
    *w = (encode_routed){rq, *spec};
    about_encoding(&about, &w->spec);
    routed_start(rq, route, &about, on_routed, routed_drop, w);
}

/* ---- the endpoints ---------------------------------------------------------------------------------- */

/* Clients name one of OpenAI's models where they name any. */
static bool names_moderator(const char *name, const char *own)
{
    static const char *const OPENAIS[] = {"omni-moderation", "text-moderation"};
    for (size_t i = 0; i < sizeof OPENAIS / sizeof *OPENAIS; i++)
        if (strncmp(name, OPENAIS[i], strlen(OPENAIS[i])) == 0) return true;
    return strcmp(name, own) == 0;
}

static int find_moderator(const gateway_request *rq, encode_spec *spec, api_error *e)
{
    const config_moderation *m = &rq->config->moderation;
    if (!m->model)
        return api_error_set(
            e, 400, "invalid_request_error", "moderation_off", NULL,
            "no model moderates here: name a classifier as moderation.model in the configuration");
    if (spec->model && !names_moderator(spec->model, m->model))
        return api_error_set(e, 404, "invalid_request_error", "model_not_found", "model",
                             "%.100s does not moderate here: leave \"model\" out, or name %s", spec->model,
                             m->model);
    spec->model = m->model;
    spec->safe = (const char *const *)m->safe;
    spec->n_safe = m->n_safe;
    spec->min_score = m->min_score > 0 ? m->min_score : 0.5;
    return 0;
}

static void handle(gateway_request *rq, task_endpoint_id kind)
{
    api_error e;
    encode_spec spec = {0};
    int rc = parse_encode(&spec, kind, rq, &e);
    if (rc == 0) spec.model = model_resolve_alias(rq, spec.model);
    if (rc == 0 && kind == ASK_MODERATE) rc = find_moderator(rq, &spec, &e);
    if (rc != 0) {
        encode_spec_done(&spec);
        request_error(rq, &e);
        return;
    }
    const config_route *route = kind == ASK_MODERATE ? NULL : routed_find(rq, spec.model);
    if (route)
        start_route(rq, route, &spec);
    else
        encode_answer(rq, &spec);
}

#define ENCODE_HANDLER(handler, kind) \
    void handler(gateway_request *rq) \
    {                                 \
        handle(rq, kind);             \
    }
ENCODE_TABLE(ENCODE_HANDLER)
#undef ENCODE_HANDLER
