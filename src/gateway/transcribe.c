/* transcribe.c: speech to text; see transcribe.h. One model call gives segments; the answer is written when
 * the last is there, or event by event. What the cache keeps are the bytes of the answer. Loop thread. */
#include "gateway/transcribe.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "gateway/choose.h"
#include "gateway/shared.h"
#include "gateway/transcribe_parse.h"

typedef struct transcribe_job { /* dies with the request */
    shared_job shared;          /* first: shared.h takes the job by it */
    transcribe_spec spec;
    model_call *call;
    buf segments; /* caption, each followed in `texts` and `ids` by what it points to */
    buf texts, ids;
    bool done;
    uint64_t duration_ms;
    char language[32];
    buf out;  /* events of one write */
    buf sent; /* of a stream: all of them, for the cache */
} transcribe_job;

static void job_free(void *job)
{
    transcribe_job *j = job;
    calls_cancel(j->call);
    transcribe_spec_done(&j->spec);
    buf_done(&j->segments);
    buf_done(&j->texts);
    buf_done(&j->ids);
    buf_done(&j->out);
    buf_done(&j->sent);
    free(j);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static void put_event(buf *out, const char *type, const char *field, const char *text, size_t n)
{
    buf_printf(out, "data: {\"type\":\"%s\",\"%s\":", type, field);
    json_put_string(out, text, n);
    buf_puts(out, "}\n\n");
}

static void flush(transcribe_job *j)
{
    gateway_request *rq = j->shared.rq;
    if (!rq->streaming) request_stream_begin(rq);
    request_stream_write(rq, &j->out);
    buf_join(&j->sent, &j->out);
    buf_clear(&j->out);
}

/* Ends the request with a body that is not the job's, and frees the job. Of a stream that has begun the
 * client has it all already. */
static void answer_bytes(transcribe_job *j, const buf *body)
{
    gateway_request *rq = j->shared.rq;
    captions_format format = j->spec.format;
    bool stream = j->spec.stream;
    cache_ticket *t = shared_detach(&j->shared);
    job_free(j);
    if (!stream) {
        request_text(rq, 200, captions_type(format), body);
    } else {
        if (!rq->streaming) {
            request_stream_begin(rq);
            request_stream_write(rq, body);
        }
        request_stream_end(rq);
    }
    shared_publish(t, body);
}

static void answer_cached(void *job, const cache_value *v)
{
    answer_bytes(job, &(buf){.data = (char *)v->data, .len = v->len});
}

/* The pointers into texts and ids, which have stopped growing. */
static transcript transcript_of(transcribe_job *j)
{
    caption *c = (caption *)(void *)j->segments.data;
    size_t n = j->segments.len / sizeof *c, at = 0, at_id = 0;
    for (size_t i = 0; i < n; i++) {
        c[i].text = j->texts.data + at;
        c[i].ids = (const uint32_t *)(const void *)j->ids.data + at_id;
        at += c[i].len;
        at_id += c[i].n_ids;
    }
    return (transcript){.translated = j->spec.request.translate,
                        .language = j->language[0] ? j->language : NULL,
                        .duration_ms = (int64_t)j->duration_ms,
                        .segments = c,
                        .n_segments = n};
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void answer_stream(transcribe_job *j)
{
    const char *text = j->texts.data ? j->texts.data : "";
    size_t n = j->texts.len;
    while (n > 0 && is_blank(text[n - 1])) n--;
    while (n > 0 && is_blank(*text)) {
        text++;
        n--;
    }
    put_event(&j->out, "transcript.text.done", "text", text, n);
    if (j->out.failed || j->texts.failed) {
        shared_fail_nomem(&j->shared);
        return;
    }
    flush(j);
    buf all = j->sent;
    j->sent = (buf){0};
    answer_bytes(j, &all);
    buf_done(&all);
}

static void answer(transcribe_job *j)
{
    transcript t = transcript_of(j);
    if (j->segments.failed || j->texts.failed || j->ids.failed ||
        (!j->spec.stream && captions_write(&j->out, j->spec.format, &t) != 0)) {
        shared_fail_nomem(&j->shared);
        return;
    }
    if (j->spec.stream) {
        answer_stream(j);
        return;
    }
    buf body = j->out;
    j->out = (buf){0};
    answer_bytes(j, &body);
    buf_done(&body);
}

/* ---- the call ------------------------------------------------------------------------------------ */

static void add_segment(transcribe_job *j, const Shoal__V1__TranscriptSegment *s)
{
    caption c = {.start_ms = (int64_t)s->start_ms,
                 .end_ms = (int64_t)s->end_ms,
                 .seek = (int64_t)s->window_ms / 10,
                 .len = strlen(s->text),
                 .n_ids = s->n_ids,
                 .temperature = (double)j->spec.request.temperature,
                 .avg_logprob = s->avg_logprob,
                 .no_speech_prob = s->no_speech_prob};
    buf_append(&j->segments, &c, sizeof c);
    buf_append(&j->texts, s->text, c.len);
    if (s->n_ids) buf_append(&j->ids, s->ids, s->n_ids * sizeof *s->ids);
    if (j->spec.stream) put_event(&j->out, "transcript.text.delta", "delta", s->text, c.len);
}

static void note_done(transcribe_job *j, const Shoal__V1__TranscribeDone *d)
{
    gateway_request *rq = j->shared.rq;
    j->done = true;
    j->duration_ms = d->duration_ms;
    snprintf(j->language, sizeof j->language, "%s", *d->language_name ? d->language_name : d->language);
    rq->n_generated_tokens = d->n_generated;
    metrics_observe_s(rq->metrics, METRIC_STAGE_S, d->queue_ms / 1000, rq->model, "queue");
    metrics_observe_s(rq->metrics, METRIC_STAGE_S, d->encode_ms / 1000, rq->model, "prefill");
    metrics_observe_s(rq->metrics, METRIC_STAGE_S, d->decode_ms / 1000, rq->model, "decode");
}

static void on_event(void *user, const Shoal__V1__TranscribeEvent *ev)
{
    transcribe_job *j = user;
    call_place place = calls_where(j->call);
    request_note_place(j->shared.rq, &place);
    if (ev->segment) add_segment(j, ev->segment);
    if (ev->done) note_done(j, ev->done);
    if (j->out.failed)
        shared_fail_nomem(&j->shared);
    else if (j->out.len)
        flush(j);
}

static void on_end(void *user, const call_result *r)
{
    transcribe_job *j = user;
    j->call = NULL;
    request_note_result(j->shared.rq, r);
    if (r->status == 0 && j->done) {
        metrics_observe_s(j->shared.rq->metrics, METRIC_STAGE_S, r->ms / 1000, j->shared.rq->model, "total");
        answer(j);
        return;
    }
    call_result failed = *r;
    api_error e;
    if (r->status == 0) {
        failed.status = SHOAL_EPROTOCOL;
        failed.message = "the worker ended without a result";
    }
    api_error_from_call(&e, &failed);
    shared_fail(&j->shared, &e);
}

static void start_call(void *job)
{
    transcribe_job *j = job;
    gateway_request *rq = j->shared.rq;
    call_context ctx = request_context(rq, "endpoint");
    calls_transcribe_events ev = {.user = j, .event = on_event, .end = on_end};
    j->call = calls_transcribe(rq->calls, j->spec.model, &j->spec.request, &ctx, &ev);
    if (!j->call) shared_fail_nomem(&j->shared);
}

/* ---- the endpoints ------------------------------------------------------------------------------- */

static const shared_ops OPS = {.compute = start_call, .answer = answer_cached, .free = job_free};

static void handle(gateway_request *rq, bool translate)
{
    api_error e;
    transcribe_spec spec = {0};
    const Shoal__V1__ModelInfo *info = NULL;
    size_t len;
    const char *body = http_body(rq->http, &len);
    int rc =
        transcribe_spec_parse(&spec, translate, http_header_get(rq->http, "content-type"), body, len, &e);
    if (rc == 0) rc = choose_model(rq, "transcribe", &spec.model, &info, &e);
    transcribe_job *j = rc == 0 ? calloc(1, sizeof *j) : NULL;
    if (!j) {
        if (rc == 0) api_error_nomem(&e);
        transcribe_spec_done(&spec);
        request_error(rq, &e);
        return;
    }
    j->spec = spec;
    sha256_digest key;
    bool cacheable = info && *info->digest && transcribe_spec_key(&spec, info->digest, &key);
    shared_start(&j->shared, &OPS, rq, cacheable ? &key : NULL);
}

void transcribe_handle(gateway_request *rq)
{
    handle(rq, false);
}

void transcribe_translate(gateway_request *rq)
{
    handle(rq, true);
}
