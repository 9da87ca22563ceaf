/* detect.c: /v1/vad; see detect.h. One model call, from the cache where it can be. Loop thread. */
#include "inference/detect.h"

#include <stdlib.h>

#include "request/model_resolve.h"
#include "answers/shared.h"

typedef struct detect_job { /* dies with the request */
    shared_job shared;      /* first: shared.h takes the job by it */
    detect_spec spec;
    const char *model;
    model_call *call;
} detect_job;

static void detect_job_free(void *job)
{
    calls_cancel(((detect_job *)job)->call);
    free(job);
}

static void answer_cached(void *job, const char *packed, size_t len)
{
    gateway_request *rq = ((detect_job *)job)->shared.rq;
    detect_job_free(job);
    request_json(rq, 200, &(buf){.data = (char *)packed, .len = len});
}

static void detect_put_answer(buf *out, const Shoal__V1__DetectSpeechReply *r)
{
    buf_printf(out, "{\"object\":\"vad\",\"duration\":%.3f,\"segments\":[", r->duration_ms / 1000);
    for (size_t i = 0; i < r->n_segments; i++)
        buf_printf(out, "%s{\"start\":%.3f,\"end\":%.3f}", i ? "," : "", r->segments[i]->start_ms / 1000,
                   r->segments[i]->end_ms / 1000);
    buf_putc(out, ']');
    if (r->n_probabilities) buf_puts(out, ",\"window\":0.032,\"probabilities\":[");
    for (size_t i = 0; i < r->n_probabilities; i++) {
        double p = (double)r->probabilities[i];
        buf_printf(out, p >= 0 && p <= 1 ? "%s%.6f" : "%snull", i ? "," : "", p);
    }
    buf_puts(out, r->n_probabilities ? "]}" : "}");
}

static void detect_on_reply(void *user, const call_result *r, const Shoal__V1__DetectSpeechReply *reply)
{
    detect_job *j = user;
    gateway_request *rq = j->shared.rq;
    j->call = NULL;
    request_note_result(rq, r);
    shared_heard(&j->shared, r->identity);
    if (r->status != 0) {
        api_error e;
        api_error_from_call(&e, r);
        shared_fail(&j->shared, &e);
        return;
    }
    request_note_time(rq, REQUEST_TOTAL, r->ms);
    buf body = {0};
    detect_put_answer(&body, reply);
    shared_end end = shared_detach(&j->shared);
    detect_job_free(j);
    request_json(rq, 200, &body);
    shared_publish(&end, &body);
    buf_done(&body);
}

static void start_call(void *job)
{
    detect_job *j = job;
    call_context ctx = request_context(j->shared.rq, "endpoint");
    j->call = calls_detect(j->shared.rq->calls, j->model, &j->spec.request, &ctx, detect_on_reply, j);
    if (!j->call) shared_fail_nomem(&j->shared);
}

static const shared_ops OPS = {.compute = start_call, .answer = answer_cached, .free = detect_job_free};

void detect_handle(gateway_request *rq)
{
    api_error e;
    const Shoal__V1__ModelInfo *info = NULL;
    size_t len;
    const char *body = request_body(rq, &len);
    detect_job *j = calloc(1, sizeof *j);
    int rc = j ? detect_spec_parse(&j->spec, request_header(rq, "content-type"), body, len, &e)
               : api_error_nomem(&e);
    if (rc == 0 && j->spec.model[0]) j->model = model_resolve_alias(rq, j->spec.model);
    if (rc == 0) rc = model_resolve(rq, "vad", &j->model, &info, &e);
    if (rc != 0) {
        free(j);
        request_error(rq, &e);
        return;
    }
    provenance by = {0};
    shared_terms terms = {.by = &by};
    provenance_add(&by, rq, rq->model, NULL);
    bool cacheable = provenance_end(&by) && detect_spec_key(&j->spec, by.identity, &terms.key);
    shared_start(&j->shared, &OPS, rq, cacheable ? &terms : NULL);
}
