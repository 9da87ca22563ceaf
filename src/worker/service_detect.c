/* service_detect.c: DetectSpeech: a sound file in, the stretches in which somebody speaks out. The work is
 * the thread pool's; a job whose client left is freed when its thread lets go of it. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shoal/v1/worker.pb-c.h"
#include "signal/audio.h"
#include "signal/vad.h"
#include "worker/service.h"

enum { MAX_HEARING = 8 };

typedef struct detect_job {
    worker *w;
    grpc_call *call; /* NULL once gone */
    call_trace trace;
    Shoal__V1__DetectSpeechRequest *request;
    uv_work_t work;
    int rc;
    shoal_err err;
    float *p;
    vad_segment *segments;
    size_t n_samples, n, n_segments;
    double work_ms;
} detect_job;

int service_detect_open(worker *w, const char *path, shoal_err *err)
{
    return model_get_config(w->model)->task == TASK_VAD ? voice_open(&w->voice, path, err) : 0;
}

static void detect_free(detect_job *j)
{
    worker *w = j->w;
    shoal__v1__detect_speech_request__free_unpacked(j->request, NULL);
    free(j->p);
    free(j->segments);
    free(j);
    if (--w->n_hearing == 0 && w->heard_all) w->heard_all(w);
}

/* ---- another thread's part ----------------------------------------------------------------------- */

static int detect(detect_job *j)
{
    const Shoal__V1__DetectSpeechRequest *r = j->request;
    float *x = NULL;
    vad_options o = {.threshold = r->threshold,
                     .min_speech_ms = r->min_speech_ms,
                     .min_silence_ms = r->min_silence_ms,
                     .max_speech_ms = r->max_speech_ms,
                     .pad_ms = r->pad_ms};
    int rc = audio_decode(&x, &j->n_samples, NULL, r->audio.data, r->audio.len,
                          &(audio_options){.rate = VOICE_RATE, .max_bytes = r->audio.len}, &j->err);
    if (rc == 0) rc = voice_all(j->w->voice, x, j->n_samples, &j->p, &j->n, &j->err);
    free(x);
    if (rc == 0 && !(j->segments = calloc(j->n / 2 + 1, sizeof *j->segments))) rc = err_nomem(&j->err);
    if (rc == 0)
        rc = vad_segments(j->p, j->n, j->n_samples, &o, j->segments, j->n / 2 + 1, &j->n_segments, &j->err);
    return rc;
}

static void do_work(uv_work_t *work)
{
    detect_job *j = work->data;
    uint64_t start = clock_ns();
    j->rc = detect(j);
    j->work_ms = clock_ms_since(start);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static int send_reply(detect_job *j)
{
    Shoal__V1__DetectSpeechReply m = SHOAL__V1__DETECT_SPEECH_REPLY__INIT;
    Shoal__V1__SpeechSegment *s = calloc(j->n_segments + 1, sizeof *s);
    m.segments = calloc(j->n_segments + 1, sizeof *m.segments);
    int rc = s && m.segments ? 0 : SHOAL_ENOMEM;
    for (size_t i = 0; rc == 0 && i < j->n_segments; i++) {
        s[i] = (Shoal__V1__SpeechSegment)SHOAL__V1__SPEECH_SEGMENT__INIT;
        s[i].start_ms = (double)j->segments[i].start * 1000 / VOICE_RATE;
        s[i].end_ms = (double)j->segments[i].end * 1000 / VOICE_RATE;
        m.segments[m.n_segments++] = &s[i];
    }
    if (j->request->probabilities) {
        m.probabilities = j->p;
        m.n_probabilities = j->n;
    }
    m.duration_ms = (double)j->n_samples * 1000 / VOICE_RATE;
    m.compute_ms = j->work_ms;
    if (rc == 0) rc = service_call_send(j->w, j->call, &m.base);
    free(m.segments);
    free(s);
    return rc;
}

static void work_done(uv_work_t *work, int status)
{
    detect_job *j = work->data;
    int rc = j->rc;
    if (j->call && rc == 0 && send_reply(j) != 0) rc = err_nomem(&j->err);
    if (j->call && rc != 0) service_call_refuse(j->w, j->call, &j->trace, &j->err);
    if (j->call && rc == 0) {
        LOG(LOG_INFO, "worker", "call_done", LOG_S("request_id", j->trace.request_id),
            LOG_S("method", "DetectSpeech"), LOG_S("model", j->w->name), LOG_I("windows", j->n),
            LOG_I("segments", j->n_segments), LOG_F("compute_ms", j->work_ms),
            LOG_F("ms", clock_ms_since(j->trace.start_ns)));
        grpc_call_end(j->call, GRPC_OK, NULL);
    }
    detect_free(j);
}

static void call_gone(void *user, grpc_call *c)
{
    ((detect_job *)user)->call = NULL;
}

void service_detect(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    worker *w = user;
    call_trace trace;
    shoal_err err;
    ProtobufCMessage *m = NULL;
    detect_job *j = NULL;
    service_call_begin(w, c, "DetectSpeech", &trace);
    int rc = service_call_admit(w, TASK_VAD, &err);
    if (rc == 0) rc = service_call_unpack(&shoal__v1__detect_speech_request__descriptor, msg, n, &m, &err);
    Shoal__V1__DetectSpeechRequest *r = (Shoal__V1__DetectSpeechRequest *)m;
    if (rc == 0 && r->audio.len == 0) rc = err_set(&err, SHOAL_EINVALID, "audio is missing");
    if (rc == 0 && w->n_hearing >= MAX_HEARING)
        rc = err_set(&err, SHOAL_EFULL, "%s hears %zu sounds already; try again in a second", w->name,
                     w->n_hearing);
    if (rc == 0 && !(j = calloc(1, sizeof *j))) rc = err_nomem(&err);
    if (rc != 0) {
        service_call_refuse(w, c, &trace, &err);
        if (m) protobuf_c_message_free_unpacked(m, NULL);
        return;
    }
    *j = (detect_job){.w = w, .call = c, .trace = trace, .request = r, .work.data = j};
    w->n_hearing++;
    grpc_call_on_cancel(c, call_gone, j);
    uv_queue_work(w->loop, &j->work, do_work, work_done);
}
