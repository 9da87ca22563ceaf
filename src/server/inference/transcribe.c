/* transcribe.c: speech to text; see transcribe.h. One model call gives segments; the answer is written when
 * the last is there, or event by event. What the cache keeps are the bytes of the answer. Loop thread.
 *
 * The file goes on to the worker as it comes, through a feed (calls/feed.h):
 *
 *     head → file begins: the fields so far are checked → START_BYTES of it: the call starts, if "model" came
 *     before the file → ... → body ends: the cache is asked → compute: the feed ends, the worker begins
 *
 * A file shorter than START_BYTES (8 s of 16 kHz WAV, over a minute of Opus) is all here before a worker is
 * bothered, so that a hit costs none; of a longer one a hit ends the call, whose worker has collected and not
 * computed anything. While an identical request is computed the worker keeps what it has collected, since it
 * may be our turn yet. Fields behind the file are sent behind it; with "model" behind it nothing can be sent
 * before, and all is held, at most max_audio_mb. */
#include "inference/transcribe.h"

#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "request/model_resolve.h"
#include "answers/shared.h"
#include "inference/transcript_stream.h"
#include "messages/transcribe_parse.h"
#include "messages/upload.h"

typedef struct transcribe_job { /* dies with the request */
    shared_job shared;          /* first: shared.h takes the job by it */
    bool translate;
    upload upload;
    sha256 *hash; /* of the file; NULL when it is done */
    sha256_digest digest;
    buf piece; /* of the file, not put yet */
    call_feed *feed;
    bool chosen;    /* the model is known, */
    bool computing; /* the whole file is here, and it is our turn */
    bool uploaded;
    size_t n_file, n_fields_sent;
    transcribe_spec spec;
    model_call *call;
    buf segments; /* caption, each followed in `texts` and `ids` by what it points to */
    buf texts, ids;
    bool done;
    uint64_t duration_ms;
    char language[32];
    transcript_stream at; /* of a stream: how far it has come */
    buf out;              /* events of one write */
    buf sent;             /* of a stream: all of them, for the cache */
} transcribe_job;

static void transcribe_job_free(void *job)
{
    transcribe_job *j = job;
    sha256_digest none;
    calls_cancel(j->call);
    call_feed_leave(j->feed);
    if (j->hash) sha256_end(j->hash, &none);
    upload_done(&j->upload);
    buf_done(&j->piece);
    transcribe_spec_done(&j->spec);
    buf_done(&j->segments);
    buf_done(&j->texts);
    buf_done(&j->ids);
    buf_done(&j->out);
    buf_done(&j->sent);
    free(j);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static void put_event(transcribe_job *j, const char *type, const char *field, const char *text, size_t n)
{
    buf *out = &j->out;
    transcript_stream_put_id(out, &j->at);
    event_begin(out, EVENT_DATA, NULL);
    buf_printf(out, "{\"type\":\"%s\",\"%s\":", type, field);
    json_put_string(out, text, n);
    buf_putc(out, '}');
    event_end(out);
}

static void transcribe_flush(transcribe_job *j)
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
    shared_end end = shared_detach(&j->shared);
    transcribe_job_free(j);
    if (!stream) {
        request_text(rq, 200, captions_type(format), body);
    } else {
        if (!rq->streaming) {
            request_stream_begin(rq);
            request_stream_write(rq, body);
        }
        request_stream_end(rq);
    }
    shared_publish(&end, body);
}

static void answer_cached(void *job, const char *packed, size_t len)
{
    answer_bytes(job, &(buf){.data = (char *)packed, .len = len});
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

static bool is_blank_transcribe(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void answer_stream(transcribe_job *j)
{
    const char *text = j->texts.data ? j->texts.data : "";
    size_t n = j->texts.len;
    while (n > 0 && is_blank_transcribe(text[n - 1])) n--;
    while (n > 0 && is_blank_transcribe(*text)) {
        text++;
        n--;
    }
    api_error e;
    if (transcript_stream_end(&j->at, &e) != 0) {
        shared_fail(&j->shared, &e);
        return;
    }
    put_event(j, "transcript.text.done", "text", text, n);
    if (j->out.failed || j->texts.failed) {
        shared_fail_nomem(&j->shared);
        return;
    }
    transcribe_flush(j);
    buf all = j->sent;
    j->sent = (buf){0};
    answer_bytes(j, &all);
    buf_done(&all);
}

static void transcribe_answer(transcribe_job *j)
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

static int add_segment(transcribe_job *j, const Shoal__V1__TranscriptSegment *s, const char *identity,
                       api_error *e)
{
    caption c = {.start_ms = (int64_t)s->start_ms,
                 .end_ms = (int64_t)s->end_ms,
                 .seek = (int64_t)s->window_ms / 10,
                 .len = strlen(s->text),
                 .n_ids = s->n_ids,
                 .temperature = s->temperature,
                 .avg_logprob = s->avg_logprob,
                 .compression_ratio = s->compression_ratio,
                 .no_speech_prob = s->no_speech_prob};
    buf_append(&j->segments, &c, sizeof c);
    buf_append(&j->texts, s->text, c.len);
    if (s->n_ids) buf_append(&j->ids, s->ids, s->n_ids * sizeof *s->ids);
    if (!j->spec.stream) return 0;
    bool is_new;
    int rc = transcript_stream_text(&j->at, j->shared.rq, identity, s->text, c.len, &is_new, e);
    if (rc == 0 && is_new) put_event(j, "transcript.text.delta", "delta", s->text, c.len);
    return rc;
}

static void note_done(transcribe_job *j, const Shoal__V1__TranscribeDone *d)
{
    gateway_request *rq = j->shared.rq;
    j->done = true;
    j->duration_ms = d->duration_ms;
    snprintf(j->language, sizeof j->language, "%s", *d->language_name ? d->language_name : d->language);
    rq->n_generated_tokens = d->n_generated;
    request_note_time(rq, REQUEST_QUEUE, d->queue_ms);
    request_note_time(rq, REQUEST_PREFILL, d->encode_ms);
    request_note_time(rq, REQUEST_DECODE, d->decode_ms);
}

static void on_event_transcribe(void *user, const Shoal__V1__TranscribeEvent *ev)
{
    transcribe_job *j = user;
    call_place place = calls_where(j->call);
    api_error e;
    request_note_place(j->shared.rq, &place);
    int rc = ev->segment ? add_segment(j, ev->segment, place.exact_resume ? place.identity : "", &e) : 0;
    if (ev->done) note_done(j, ev->done);
    if (rc != 0)
        shared_fail(&j->shared, &e);
    else if (j->out.failed)
        shared_fail_nomem(&j->shared);
    else if (j->out.len)
        transcribe_flush(j);
}

static void on_end_transcribe(void *user, const call_result *r)
{
    transcribe_job *j = user;
    j->call = NULL;
    if (j->uploaded && !j->computing) return; /* another computes it; if our turn comes, compute says more */
    request_note_result(j->shared.rq, r);
    shared_heard(&j->shared, r->identity);
    if (r->status == 0 && j->done) {
        request_note_time(j->shared.rq, REQUEST_TOTAL, r->ms);
        transcribe_answer(j);
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

/* ---- the upload ---------------------------------------------------------------------------------- */

enum {
    START_BYTES = 256 << 10,
    PIECE_BYTES = 64 << 10, /* of the file in one message to the worker */
};

static int start_call(transcribe_job *j, api_error *e)
{
    gateway_request *rq = j->shared.rq;
    call_context ctx = request_context(rq, "endpoint");
    calls_transcribe_events ev = {.user = j, .event = on_event_transcribe, .end = on_end_transcribe};
    ctx.feed = j->feed;
    j->call = calls_transcribe(rq->calls, j->spec.model, &j->spec.request, &ctx, &ev);
    j->n_fields_sent = j->upload.fields.n;
    return j->call ? 0 : api_error_nomem(e);
}

static int put_piece(transcribe_job *j, api_error *e)
{
    Shoal__V1__TranscribeRequest m = SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
    if (j->piece.len == 0) return 0;
    m.audio = (ProtobufCBinaryData){.data = (uint8_t *)j->piece.data, .len = j->piece.len};
    int rc = call_feed_put(j->feed, &m.base);
    buf_clear(&j->piece);
    return rc == 0 ? 0 : api_error_nomem(e);
}

/* What the fields say that have come, and the model they name. */
static int read_fields(transcribe_job *j, const Shoal__V1__ModelInfo **ret_info, api_error *e)
{
    transcribe_spec spec;
    int rc = transcribe_spec_read(&spec, j->translate, upload_fields(&j->upload), e);
    if (rc != 0) return rc;
    transcribe_spec_done(&j->spec);
    j->spec = spec;
    j->spec.model = model_resolve_alias(j->shared.rq, j->spec.model);
    return model_resolve(j->shared.rq, "transcribe", &j->spec.model, ret_info, e);
}

/* Which model a form means that has not named one yet is seen at its end. */
static int on_file(void *user, api_error *e)
{
    transcribe_job *j = user;
    const Shoal__V1__ModelInfo *info;
    if (j->upload.is_form && !multipart_find(&j->upload.fields, "model")) return 0;
    j->chosen = true;
    return read_fields(j, &info, e);
}

static int on_sound(void *user, const char *bytes, size_t n, api_error *e)
{
    transcribe_job *j = user;
    int rc = 0;
    sha256_add(j->hash, bytes, n);
    j->n_file += n;
    while (rc == 0 && n > 0) {
        size_t room = PIECE_BYTES - j->piece.len, k = n < room ? n : room;
        if (buf_append(&j->piece, bytes, k) != 0) return api_error_nomem(e);
        bytes += k;
        n -= k;
        if (j->piece.len == PIECE_BYTES) rc = put_piece(j, e);
    }
    if (rc == 0 && !j->call && j->chosen && j->n_file >= START_BYTES) rc = start_call(j, e);
    return rc;
}

static void on_room(void *job)
{
    transcribe_job *j = job;
    request_pause(j->shared.rq, false);
}

static void on_body(void *job, const uint8_t *bytes, size_t n)
{
    transcribe_job *j = job;
    api_error e;
    if (upload_push(&j->upload, (const char *)bytes, n, &e) != 0)
        shared_fail(&j->shared, &e);
    else if (j->call && call_feed_is_full(j->feed))
        request_pause(j->shared.rq, true);
}

/* The last of the file, and fields that came behind it. */
static int put_last(transcribe_job *j, api_error *e)
{
    int rc = put_piece(j, e);
    if (rc != 0 || !j->call || j->n_fields_sent == j->upload.fields.n) return rc;
    return call_feed_put(j->feed, &j->spec.request.base) == 0 ? 0 : api_error_nomem(e);
}

static int end_upload(transcribe_job *j, const Shoal__V1__ModelInfo **ret_info, api_error *e)
{
    int rc = upload_close(&j->upload, e);
    if (rc == 0 && j->n_file == 0)
        rc = api_error_bad(e, "file",
                           j->upload.has_file ? "\"file\" is empty" : "\"file\" must be a sound file");
    if (rc == 0) rc = read_fields(j, ret_info, e);
    if (rc == 0) rc = put_last(j, e);
    return rc;
}

static void on_body_end(void *job, int status, const char *why)
{
    transcribe_job *j = job;
    const Shoal__V1__ModelInfo *info = NULL;
    provenance by = {0};
    shared_terms terms = {.by = &by};
    api_error e;
    int rc = status ? api_error_from_status(&e, status, why) : end_upload(j, &info, &e);
    if (rc != 0) {
        shared_fail(&j->shared, &e);
        return;
    }
    sha256_end(j->hash, &j->digest);
    j->hash = NULL;
    j->uploaded = true;
    provenance_add(&by, j->shared.rq, j->shared.rq->model, NULL);
    bool cacheable =
        provenance_end(&by) && transcribe_spec_key(&j->spec, by.identity, &j->digest, &terms.key);
    if (j->spec.stream)
        rc = transcript_stream_open(&j->at, j->shared.rq, info ? info->identity : "",
                                    cacheable ? &terms.key : NULL, &e);
    if (rc != 0) {
        shared_fail(&j->shared, &e);
        return;
    }
    if (transcript_stream_is_whole(&j->at)) {
        answer_bytes(j, &(buf){0});
        return;
    }
    request_on_deadline(j->shared.rq, NULL);
    /* What the cache has begins at the beginning: a stream that goes on is computed. */
    shared_start(&j->shared, j->shared.ops, j->shared.rq, cacheable && !j->at.resumes ? &terms : NULL);
}

/* A call that failed while another computed the same is made again, if the file is still here. */
static void compute(void *job)
{
    transcribe_job *j = job;
    api_error e;
    int rc = 0;
    j->computing = true;
    if (!j->call && !call_feed_is_kept(j->feed))
        rc = api_error_set(&e, 503, "service_unavailable", "worker_unavailable", NULL,
                           "the worker stopped when more of the upload had come than is kept for another; "
                           "send the request again");
    else if (!j->call)
        rc = start_call(j, &e);
    if (rc == 0)
        call_feed_end(j->feed, &j->digest);
    else
        shared_fail(&j->shared, &e);
}

/* ---- the endpoints ------------------------------------------------------------------------------- */

static const shared_ops OPS = {.compute = compute, .answer = answer_cached, .free = transcribe_job_free};

static void on_deadline(void *job)
{
    transcribe_job *j = job;
    call_result late = {.status = SHOAL_EDEADLINE, .message = "the deadline passed before the upload ended"};
    api_error e;
    api_error_from_call(&e, &late);
    shared_fail(&j->shared, &e);
}

static void handle(gateway_request *rq, bool translate)
{
    api_error e;
    upload_events ev = {.file = on_file, .data = on_sound};
    transcribe_job *j = calloc(1, sizeof *j);
    if (!j) {
        api_error_nomem(&e);
        request_error(rq, &e);
        return;
    }
    j->shared = (shared_job){.ops = &OPS, .rq = rq};
    j->translate = translate;
    j->hash = sha256_new();
    j->feed = call_feed_new(&(call_feed_options){.user = j, .room = on_room});
    ev.user = j;
    int rc = j->hash && j->feed ? 0 : api_error_nomem(&e);
    if (rc == 0)
        rc = upload_open(&j->upload, request_header(rq, "content-type"), request_query(rq), TRANSCRIBE_FIELDS,
                         &ev, &e);
    if (rc != 0) {
        shared_fail(&j->shared, &e);
        return;
    }
    request_watch(rq, transcribe_job_free, j);
    request_on_body(rq, on_body, on_body_end);
    request_on_deadline(rq, on_deadline);
}

void transcribe_handle(gateway_request *rq)
{
    handle(rq, false);
}

void transcribe_translate(gateway_request *rq)
{
    handle(rq, true);
}
