/* service_transcribe.c: Transcribe: a sound file in, in one message or piece by piece, a stream of segments
 * out.
 *
 * Life of a call: collect the file, which is bounded → (thread pool) decode the first window → (thread pool,
 * as a long job, unless that was all) decode the rest to count it → features of the first window → (engine)
 * its reply → segments and progress → (thread pool) the next window → ... → Done. The loop thread never
 * computes, and no more than a window of samples is in memory; files and windows of all calls are counted
 * against one bound. A job whose client left is freed when the thread, which asks between blocks, or the
 * engine lets go of it. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/sampling.h"
#include "shoal/v1/worker.pb-c.h"
#include "speech/transcription.h"
#include "worker/service.h"

enum { PROMPT_MAX = 8192, SOUND_MAX = 160 << 20 };

typedef enum work_result { ALL_HEARD = 0, WINDOW_READY = 1, IS_LONG = 2 } work_result;

typedef struct hear_job {
    bridge_job job; /* first: the bridge gives it back */
    worker *w;
    grpc_call *call; /* NULL once answered or gone */
    call_trace trace;
    Shoal__V1__TranscribeRequest *request; /* the first message, its audio taken out */
    buf file;                              /* so far; what the sound is decoded from */
    bool collecting;                       /* until the client has sent all of it */
    sound *sound;                          /* until it is the transcription's */
    transcription *t;
    size_t n_taken; /* bytes that are counted as this call's */
    size_t n_ctx;
    uint64_t deadline_ns;
    uint64_t id; /* the engine's, while it has the job */
    bool in_engine, in_pool, nomem;
    atomic_bool gone; /* nobody waits for it any more */
    pool_job work;
    int rc; /* of the work: a work_result, or an error */
    shoal_err err;
    size_t n_generated;
    size_t n_skip; /* segments that the client has */
    double work_ms, queue_ms, encode_ms, decode_ms, cpu_ms;
} hear_job;

static void hear_free(hear_job *j)
{
    worker *w = j->w;
    transcription_free(j->t);
    sound_free(j->sound);
    shoal__v1__transcribe_request__free_unpacked(j->request, NULL);
    buf_done(&j->file);
    service_sound_give(w, j->n_taken);
    free(j);
    service_sound_ended(w);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static void transcribe_fail(hear_job *j, const shoal_err *err)
{
    if (j->call) service_call_refuse(j->w, j->call, &j->trace, err);
    j->call = NULL;
}

static void transcribe_send_event(hear_job *j, const Shoal__V1__TranscribeEvent *ev)
{
    if (!j->call) return;
    if (service_call_send(j->w, j->call, &ev->base) != 0) j->nomem = true;
}

static void send_segment(void *user, const heard_segment *s)
{
    hear_job *j = user;
    Shoal__V1__TranscriptSegment m = SHOAL__V1__TRANSCRIPT_SEGMENT__INIT;
    Shoal__V1__TranscribeEvent ev = SHOAL__V1__TRANSCRIBE_EVENT__INIT;
    if (j->n_skip > 0) {
        j->n_skip--;
        return;
    }
    m.start_ms = (uint64_t)s->start_ms;
    m.end_ms = (uint64_t)s->end_ms;
    m.window_ms = (uint64_t)s->window_ms;
    m.text = (char *)s->text;
    m.ids = (int32_t *)s->ids;
    m.n_ids = s->n_ids;
    m.avg_logprob = s->avg_logprob;
    m.compression_ratio = s->compression_ratio;
    m.temperature = s->temperature;
    m.no_speech_prob = s->no_speech_prob;
    ev.segment = &m;
    transcribe_send_event(j, &ev);
}

static void transcribe_send_progress(hear_job *j)
{
    Shoal__V1__TranscribeProgress m = SHOAL__V1__TRANSCRIBE_PROGRESS__INIT;
    Shoal__V1__TranscribeEvent ev = SHOAL__V1__TRANSCRIBE_EVENT__INIT;
    m.done_ms = (uint64_t)transcription_done_ms(j->t);
    m.duration_ms = (uint64_t)transcription_duration_ms(j->t);
    ev.progress = &m;
    transcribe_send_event(j, &ev);
}

static void transcribe_send_done(hear_job *j)
{
    const whisper_language *l = transcription_language(j->t);
    Shoal__V1__TranscribeDone m = SHOAL__V1__TRANSCRIBE_DONE__INIT;
    Shoal__V1__TranscribeEvent ev = SHOAL__V1__TRANSCRIBE_EVENT__INIT;
    if (l) m.language = (char *)l->code;
    if (l) m.language_name = (char *)l->name;
    m.duration_ms = (uint64_t)transcription_duration_ms(j->t);
    m.n_windows = (uint32_t)transcription_windows(j->t);
    m.n_generated = (uint32_t)j->n_generated;
    m.queue_ms = j->queue_ms;
    m.decode_audio_ms = j->work_ms;
    m.encode_ms = j->encode_ms;
    m.decode_ms = j->decode_ms;
    m.cpu_ms = j->cpu_ms;
    ev.done = &m;
    LOG(LOG_INFO, "worker", "call_done", LOG_S("request_id", j->trace.request_id),
        LOG_S("trace_id", j->trace.trace_id), LOG_S("method", "Transcribe"), LOG_S("model", j->w->name),
        LOG_S("version", j->w->backend.about.version),
        LOG_S("quantisation", j->w->backend.about.quantisation), LOG_I("sound_ms", m.duration_ms),
        LOG_I("windows", m.n_windows), LOG_I("tokens", j->n_generated), LOG_F("queue_ms", j->queue_ms),
        LOG_F("audio_ms", j->work_ms), LOG_F("encode_ms", j->encode_ms), LOG_F("decode_ms", j->decode_ms),
        LOG_F("ms", clock_ms_since(j->trace.start_ns)));
    service_call_reply(j->w, j->call, &ev.base);
    j->call = NULL;
}

/* ---- another thread's part ----------------------------------------------------------------------- */

static int transcribe_may_go_on(void *user, shoal_err *err)
{
    const hear_job *j = user;
    return service_may_go_on(&j->gone, j->deadline_ns, "before all of the sound was decoded", err);
}

/* Of a sound that ends within the first window nothing is left to count. */
static int transcribe_open_sound(hear_job *j)
{
    const whisper_tokens *h = j->w->backend.about.speech;
    audio_options o = {.rate = h->mel.rate, .max_bytes = j->file.len, .cancel = {transcribe_may_go_on, j}};
    const float *x;
    size_t n;
    int rc = sound_open(&j->sound, j->file.data, j->file.len, &o, &j->err);
    if (rc == 0) rc = sound_view(j->sound, 0, h->n_window + 1, &x, &n, &j->err);
    return rc == 0 && !sound_is_measured(j->sound) ? IS_LONG : rc;
}

static int transcribe_open(hear_job *j)
{
    const Shoal__V1__TranscribeRequest *r = j->request;
    int rc = j->sound ? sound_measure(j->sound, &j->err) : transcribe_open_sound(j);
    if (rc != 0) return rc;
    bool no_vad = r->vad ? r->vad == SHOAL__V1__VOICE_ACTIVITY__VAD_OFF : j->w->sounds.no_vad;
    transcription_options o = {.language = r->language,
                               .translate = r->translate,
                               .times = r->times,
                               .prompt = r->prompt,
                               .full_window = j->w->backend.about.full_window,
                               .no_vad = no_vad,
                               .temperature = r->temperature,
                               .seed = r->seed,
                               .n_ctx = j->n_ctx,
                               .deadline_ns = j->deadline_ns};
    sound *s = j->sound;
    j->sound = NULL;
    return transcription_new(&j->t, j->w->backend.about.speech, s, &o, &j->err);
}

static void transcribe_do_work(pool_job *work)
{
    hear_job *j = (hear_job *)((char *)work - offsetof(hear_job, work));
    uint64_t start = clock_ns(), cpu_start = clock_thread_cpu_ns();
    j->rc = j->t ? 0 : transcribe_open(j);
    if (j->rc == 0) j->rc = transcription_next(j->t, &j->err);
    j->work_ms += clock_ms_since(start);
    j->cpu_ms += (double)(clock_thread_cpu_ns() - cpu_start) / 1e6;
}

static void transcribe_work_done(pool_job *work, bool ran);

/* The job is nobody's but the thread's until work_done. */
static void start_work(hear_job *j, bool is_long)
{
    j->in_pool = true;
    pool_start(&j->w->pool, &j->work, is_long, transcribe_do_work, transcribe_work_done);
}

/* ---- the engine's part --------------------------------------------------------------------------- */

static void on_token(bridge_job *b, const gen_event *ev)
{
    hear_job *j = (hear_job *)b;
    if (ev->id >= 0 && transcription_add(j->t, ev->id, ev->logprob) != 0) j->nomem = true;
}

static void note_timings(hear_job *j)
{
    const gen_timings *t = &j->job.timings;
    j->n_generated += t->n_generated;
    j->queue_ms += t->queue_ms;
    j->encode_ms += t->prefill_ms;
    j->decode_ms += t->decode_ms;
    j->cpu_ms += t->cpu_ms;
}

static void transcribe_on_reply(bridge_job *b)
{
    hear_job *j = (hear_job *)b;
    shoal_err err = {0};
    int rc = b->status;
    j->in_engine = false;
    if (!j->call) {
        hear_free(j);
        return;
    }
    note_timings(j);
    bool ours = rc == SHOAL_ECANCELLED; /* nobody but a closing engine cancels a live call */
    if (rc != 0)
        err_set(&err, ours ? SHOAL_EUNAVAILABLE : rc, "%s",
                ours ? "the worker is shutting down" : b->message);
    if (rc == 0) rc = transcription_take(j->t, send_segment, j, &err);
    if (rc == 0) transcribe_send_progress(j);
    if (rc == 0 && j->nomem) rc = err_nomem(&err);
    if (rc == 0) {
        start_work(j, false);
        return;
    }
    transcribe_fail(j, &err);
    hear_free(j);
}

static int transcribe_submit(hear_job *j)
{
    const backend *b = &j->w->backend;
    int rc = b->ops->transcribe(b->state, j->t, bridge_event, &j->job, &j->id, &j->err);
    j->in_engine = rc == 0;
    return rc;
}

static void transcribe_work_done(pool_job *work, bool ran)
{
    hear_job *j = (hear_job *)((char *)work - offsetof(hear_job, work));
    int rc = ran ? j->rc : SHOAL_ECANCELLED;
    j->in_pool = false;
    if (j->call && rc == IS_LONG) {
        start_work(j, true);
        return;
    }
    if (j->call && rc == WINDOW_READY) rc = transcribe_submit(j);
    if (j->in_engine) return;
    if (j->call && rc == ALL_HEARD)
        transcribe_send_done(j);
    else if (j->call)
        transcribe_fail(j, &j->err);
    hear_free(j);
}

/* ---- the start ----------------------------------------------------------------------------------- */

static void transcribe_call_gone(hear_job *j)
{
    j->call = NULL;
    LOG(LOG_INFO, "worker", "call_cancelled", LOG_S("request_id", j->trace.request_id),
        LOG_S("trace_id", j->trace.trace_id), LOG_S("method", "Transcribe"), LOG_S("model", j->w->name),
        LOG_F("ms", clock_ms_since(j->trace.start_ns)));
    atomic_store(&j->gone, true);
    if (j->in_engine) j->w->backend.ops->cancel(j->w->backend.state, j->id);
    if (j->collecting)
        hear_free(j); /* nobody else has it yet */
    else if (j->in_pool)
        pool_drop(&j->w->pool, &j->work); /* may free it */
}

static int transcribe_check(const Shoal__V1__TranscribeRequest *r, shoal_err *err)
{
    int rc = service_check_utf8(r->language, "language", err);
    if (rc == 0) rc = service_check_utf8(r->prompt, "prompt", err);
    if (rc == 0 && (unsigned)r->vad > SHOAL__V1__VOICE_ACTIVITY__VAD_OFF)
        rc = err_set(err, SHOAL_EINVALID, "vad is 0, 1 or 2, not %d", (int)r->vad);
    if (rc == 0) rc = sampling_check("temperature", (double)r->temperature, err);
    if (rc == 0 && strlen(r->prompt) > PROMPT_MAX)
        rc = err_set(err, SHOAL_EINVALID, "a prompt of %zu bytes: at most %d", strlen(r->prompt), PROMPT_MAX);
    return rc;
}

static void transcribe_begin(void *user, grpc_call *c)
{
    worker *w = user;
    call_trace trace;
    shoal_err err;
    service_call_begin(w, c, "Transcribe", &trace);
    int rc = service_call_admit(w, TASK_TRANSCRIBE, &err);
    if (rc == 0) rc = service_sound_check(w, &err);
    size_t window = rc == 0 ? transcription_bytes(w->backend.about.speech) : 0;
    if (rc == 0) rc = service_sound_take(w, window, &err);
    hear_job *j = rc == 0 ? calloc(1, sizeof *j) : NULL;
    if (!j) {
        if (rc == 0) {
            service_sound_give(w, window);
            err_nomem(&err);
        }
        service_call_refuse(w, c, &trace, &err);
        return;
    }
    *j = (hear_job){.job = {.b = w->bridge, .on_token = on_token, .on_done = transcribe_on_reply},
                    .w = w,
                    .call = c,
                    .trace = trace,
                    .n_ctx = w->backend.about.n_ctx,
                    .deadline_ns = grpc_call_deadline_ns(c),
                    .n_taken = window,
                    .collecting = true};
    w->sounds.n_jobs++;
    grpc_call_set_data(c, j);
}

static void transcribe_refuse(hear_job *j, const shoal_err *err)
{
    transcribe_fail(j, err);
    hear_free(j);
}

static void swap(char **a, char **b)
{
    char *c = *a;
    *a = *b;
    *b = c;
}

/* What a later message says replaces what an earlier one did; what it leaves out stays. */
static void transcribe_replace(Shoal__V1__TranscribeRequest *r, Shoal__V1__TranscribeRequest *later)
{
    if (*later->language) swap(&r->language, &later->language);
    if (*later->prompt) swap(&r->prompt, &later->prompt);
    if (later->temperature != 0) r->temperature = later->temperature;
    if (later->seed) r->seed = later->seed;
    if (later->vad) r->vad = later->vad;
    r->translate |= later->translate;
    r->times |= later->times;
}

/* The first message's audio is taken over, that of the others is put behind it. */
static int transcribe_collect(hear_job *j, Shoal__V1__TranscribeRequest *r, shoal_err *err)
{
    bool first = !j->request;
    if (r->audio.len > SOUND_MAX - j->file.len)
        return err_set(err, SHOAL_ELIMIT, "a sound file has at most %d MiB", SOUND_MAX >> 20);
    int rc = service_sound_take(j->w, r->audio.len, err);
    if (rc != 0) return rc;
    j->n_taken += r->audio.len;
    if (!first) {
        transcribe_replace(j->request, r);
        return r->audio.len ? buf_append(&j->file, r->audio.data, r->audio.len) : 0;
    }
    j->request = r;
    j->n_skip = r->skip_segments;
    j->file = (buf){.data = (char *)r->audio.data, .len = r->audio.len, .cap = r->audio.len};
    r->audio = (ProtobufCBinaryData){0};
    return 0;
}

static void transcribe_message(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    hear_job *j = grpc_call_data(c);
    ProtobufCMessage *m = NULL;
    shoal_err err;
    int rc = service_call_unpack(&shoal__v1__transcribe_request__descriptor, msg, n, &m, &err);
    if (rc == 0) rc = transcribe_check((Shoal__V1__TranscribeRequest *)m, &err);
    if (rc == 0) rc = transcribe_collect(j, (Shoal__V1__TranscribeRequest *)m, &err);
    if (rc == SHOAL_ENOMEM) err_nomem(&err);
    if (m && m != (ProtobufCMessage *)j->request) protobuf_c_message_free_unpacked(m, NULL);
    if (rc != 0) transcribe_refuse(j, &err);
}

static void transcribe_ended(void *user, grpc_call *c)
{
    hear_job *j = grpc_call_data(c);
    shoal_err err;
    if (j->file.len == 0) {
        err_set(&err, SHOAL_EINVALID, "audio is missing");
        transcribe_refuse(j, &err);
        return;
    }
    j->collecting = false;
    start_work(j, false);
}

static void transcribe_cancelled(void *user, grpc_call *c)
{
    transcribe_call_gone(grpc_call_data(c));
}

const grpc_stream_method service_transcribe = {.path = "/shoal.v1.Worker/Transcribe",
                                               .begin = transcribe_begin,
                                               .message = transcribe_message,
                                               .ended = transcribe_ended,
                                               .cancelled = transcribe_cancelled};
