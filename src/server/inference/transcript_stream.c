/* transcript_stream.c: how far a transcription's stream has come; see transcript_stream.h. */
#include "inference/transcript_stream.h"

#include <string.h>

#include "logging/log.h"
#include "inference/stream.h"

static bool is_of(const transcript_stream *s, const char *identity)
{
    uint8_t model[STREAM_MODEL_BYTES];
    stream_id_model(model, identity, "");
    return memcmp(model, s->id.model, sizeof model) == 0;
}

static int take_given(transcript_stream *s, gateway_request *rq, const char *text, api_error *e)
{
    stream_id given;
    shoal_err err = {0};
    int rc = stream_id_parse(&given, text, strlen(text), &err);
    if (rc == SHOAL_ENOMEM) return api_error_nomem(e);
    if (rc != 0) return api_error_bad(e, "last-event-id", "Last-Event-ID: %s", err.message);
    if (memcmp(given.model, s->id.model, sizeof given.model) != 0) return stream_replaced(rq, e);
    if (given.n_choices != 1 || memcmp(given.request, s->id.request, sizeof given.request) != 0)
        return stream_other(e);
    s->had = given.marks[0];
    s->resumes = true;
    metrics_add(rq->metrics, METRIC_RESUMED, 1, rq->model, NULL, NULL);
    LOG(LOG_INFO, "gateway", "stream_resumed", LOG_S("model", rq->model), LOG_S("request_id", rq->id));
    return 0;
}

int transcript_stream_open(transcript_stream *ret, gateway_request *rq, const char *identity,
                           const sha256_digest *key, api_error *e)
{
    const char *given = request_header(rq, "last-event-id");
    *ret = (transcript_stream){0};
    if (!key && (!given || !*given)) return 0;
    if (!key && !*identity)
        return api_error_set(e, 503, "service_unavailable", "worker_unavailable", NULL,
                             "the model %.64s is not up yet; send the request again", rq->model);
    if (!key)
        return api_error_bad(e, "last-event-id",
                             "a transcription that is drawn (\"temperature\") cannot be gone on with: send "
                             "the request without Last-Event-ID");
    stream_id_init(&ret->id, 1);
    memcpy(ret->id.request, key->bytes, sizeof ret->id.request);
    stream_id_model(ret->id.model, identity, "");
    ret->named = true;
    return given && *given ? take_given(ret, rq, given, e) : 0;
}

bool transcript_stream_is_whole(const transcript_stream *s)
{
    return s->resumes && s->had.finished;
}

int transcript_stream_text(transcript_stream *s, const gateway_request *rq, const char *identity,
                           const char *text, size_t n, bool *ret_new, api_error *e)
{
    stream_mark *at = &s->id.marks[0];
    *ret_new = true;
    if (!s->named) return 0;
    if (!is_of(s, identity)) {
        s->named = false; /* a stand-in speaks, or the file was replaced a moment ago */
        return s->resumes ? stream_replaced(rq, e) : 0;
    }
    uint64_t before = at->n_bytes[MARK_TEXT];
    stream_mark_text(at, MARK_TEXT, text, n);
    if (!s->resumes || before >= s->had.n_bytes[MARK_TEXT]) return 0;
    *ret_new = false;
    if (at->n_bytes[MARK_TEXT] < s->had.n_bytes[MARK_TEXT]) return 0;
    return stream_mark_equal_text(at, &s->had) ? 0 : stream_differs(e);
}

int transcript_stream_end(transcript_stream *s, api_error *e)
{
    stream_mark *at = &s->id.marks[0];
    at->finished = true;
    return s->resumes && at->n_bytes[MARK_TEXT] < s->had.n_bytes[MARK_TEXT] ? stream_differs(e) : 0;
}

void transcript_stream_put_id(buf *out, const transcript_stream *s)
{
    if (s->named) stream_id_put(out, &s->id);
}
