/* service_detect.c: DetectSpeech: a sound file in, the stretches in which somebody speaks out. The work is
 * the thread pool's; what does not end within LIGHT_S seconds of sound goes on as a long job. A job whose
 * client left is freed when its thread, which asks between blocks, lets go of it. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shoal/v1/worker.pb-c.h"
#include "signal/vad.h"
#include "speech/vad_model.h"
#include "worker/service.h"

enum { LIGHT_S = 15 };
#define SAMPLES_BYTES \
    ((size_t)2 * LIGHT_S * VAD_MODEL_RATE * sizeof(float)) /* that a sound may hold at once */

typedef struct detect_job {
    worker *w;
    grpc_call *call; /* NULL once gone */
    call_trace trace;
    Shoal__V1__DetectSpeechRequest *request;
    uint64_t deadline_ns;
    atomic_bool gone;
    pool_job work;
    bool is_long;
    sound *sound;
    size_t n_taken; /* bytes that are counted as this call's */
    int rc;
    shoal_err err;
    float *p;
    vad_segment *segments;
    size_t n_samples, n, n_segments;
    double work_ms, cpu_ms;
} detect_job;

static void detect_free(detect_job *j)
{
    worker *w = j->w;
    shoal__v1__detect_speech_request__free_unpacked(j->request, NULL);
    sound_free(j->sound);
    free(j->p);
    free(j->segments);
    service_sound_give(w, j->n_taken);
    free(j);
    service_sound_ended(w);
}

/* ---- another thread's part ----------------------------------------------------------------------- */

static int detect_may_go_on(void *user, shoal_err *err)
{
    const detect_job *j = user;
    return service_may_go_on(&j->gone, j->deadline_ns, "before all of the sound was decoded", err);
}

/* Then the rest is a job for later. */
static int detect_open_sound(detect_job *j)
{
    const ProtobufCBinaryData *audio = &j->request->audio;
    audio_options o = {.rate = VAD_MODEL_RATE, .max_bytes = audio->len, .cancel = {detect_may_go_on, j}};
    const float *x;
    size_t n;
    int rc = sound_open(&j->sound, audio->data, audio->len, &o, &j->err);
    if (rc == 0) rc = sound_view(j->sound, 0, LIGHT_S * VAD_MODEL_RATE, &x, &n, &j->err);
    j->is_long = rc == 0 && !sound_is_measured(j->sound);
    return rc;
}

static int detect_segments(detect_job *j)
{
    const Shoal__V1__DetectSpeechRequest *r = j->request;
    vad_options o = {.threshold = r->threshold,
                     .min_speech_ms = r->min_speech_ms,
                     .min_silence_ms = r->min_silence_ms,
                     .max_speech_ms = r->max_speech_ms,
                     .pad_ms = r->pad_ms};
    int rc = j->w->backend.ops->detect(j->w->backend.state, j->sound, &j->p, &j->n, &j->err);
    j->n_samples = sound_length(j->sound);
    if (rc == 0 && !(j->segments = calloc(j->n / 2 + 1, sizeof *j->segments))) rc = err_nomem(&j->err);
    if (rc == 0)
        rc = vad_segments(j->p, j->n, j->n_samples, &o, j->segments, j->n / 2 + 1, &j->n_segments, &j->err);
    return rc;
}

static void detect_do_work(pool_job *work)
{
    detect_job *j = (detect_job *)((char *)work - offsetof(detect_job, work));
    uint64_t start = clock_ns(), cpu_start = clock_thread_cpu_ns();
    bool begins = !j->sound;
    j->rc = begins ? detect_open_sound(j) : 0;
    if (j->rc == 0 && !(begins && j->is_long)) j->rc = detect_segments(j);
    j->work_ms += clock_ms_since(start);
    j->cpu_ms += (double)(clock_thread_cpu_ns() - cpu_start) / 1e6;
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
        s[i].start_ms = (double)j->segments[i].start * 1000 / VAD_MODEL_RATE;
        s[i].end_ms = (double)j->segments[i].end * 1000 / VAD_MODEL_RATE;
        m.segments[m.n_segments++] = &s[i];
    }
    if (j->request->probabilities) {
        m.probabilities = j->p;
        m.n_probabilities = j->n;
    }
    m.duration_ms = (double)j->n_samples * 1000 / VAD_MODEL_RATE;
    Shoal__V1__Timing timing = SHOAL__V1__TIMING__INIT;
    m.compute_ms = timing.compute_ms = j->work_ms;
    timing.cpu_ms = j->cpu_ms;
    m.timing = &timing;
    if (rc == 0) rc = service_call_send(j->w, j->call, &m.base);
    free(m.segments);
    free(s);
    return rc;
}

static void detect_work_done(pool_job *work, bool ran)
{
    detect_job *j = (detect_job *)((char *)work - offsetof(detect_job, work));
    int rc = ran ? j->rc : SHOAL_ECANCELLED;
    if (j->call && rc == 0 && !j->p) {
        pool_start(&j->w->pool, work, true, detect_do_work, detect_work_done);
        return;
    }
    if (j->call && rc == 0 && send_reply(j) != 0) rc = err_nomem(&j->err);
    if (j->call && rc != 0) service_call_refuse(j->w, j->call, &j->trace, &j->err);
    if (j->call && rc == 0) {
        LOG(LOG_INFO, "worker", "call_done", LOG_S("request_id", j->trace.request_id),
            LOG_S("trace_id", j->trace.trace_id), LOG_S("method", "DetectSpeech"), LOG_S("model", j->w->name),
            LOG_I("windows", j->n), LOG_I("segments", j->n_segments), LOG_F("compute_ms", j->work_ms),
            LOG_F("ms", clock_ms_since(j->trace.start_ns)));
        grpc_call_end(j->call, GRPC_OK, NULL);
    }
    detect_free(j);
}

static void detect_call_gone(void *user, grpc_call *c)
{
    detect_job *j = user;
    j->call = NULL;
    atomic_store(&j->gone, true);
    pool_drop(&j->w->pool, &j->work); /* may free it */
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
    if (rc == 0) rc = service_sound_check(w, &err);
    size_t n_taken = rc == 0 ? r->audio.len + SAMPLES_BYTES : 0;
    if (rc == 0) rc = service_sound_take(w, n_taken, &err);
    if (rc == 0 && !(j = calloc(1, sizeof *j))) {
        service_sound_give(w, n_taken);
        rc = err_nomem(&err);
    }
    if (rc != 0) {
        service_call_refuse(w, c, &trace, &err);
        if (m) protobuf_c_message_free_unpacked(m, NULL);
        return;
    }
    *j = (detect_job){.w = w,
                      .call = c,
                      .trace = trace,
                      .request = r,
                      .deadline_ns = grpc_call_deadline_ns(c),
                      .n_taken = n_taken};
    w->sounds.n_jobs++;
    grpc_call_on_cancel(c, detect_call_gone, j);
    pool_start(&w->pool, &j->work, false, detect_do_work, detect_work_done);
}
