/* stage_vad.c: vad stages: does anybody speak in the sound of a request, and where? The label is speech or
 * silence, the score the share of the sound that is speech. */
#include "stages/stages.h"

static void put_segments(stage_run *s, const Shoal__V1__DetectSpeechReply *reply)
{
    process_run *r = s->run;
    double spoken_ms = 0;
    s->results = json_array();
    s->details = json_object();
    for (size_t i = 0; i < reply->n_segments; i++) {
        const Shoal__V1__SpeechSegment *g = reply->segments[i];
        json_t *o = json_object();
        spoken_ms += g->end_ms - g->start_ms;
        process_put(r, o, "start", process_rounded(g->start_ms / 1000));
        process_put(r, o, "end", process_rounded(g->end_ms / 1000));
        process_add(r, s->results, o);
    }
    process_put(r, s->details, "duration", process_rounded(reply->duration_ms / 1000));
    double share = reply->duration_ms > 0 ? spoken_ms / reply->duration_ms : 0;
    process_fact(s)->score = share < 1 ? share : 1;
}

static const char *voice_label(size_t n_segments)
{
#define VOICE_NAME(e, name) name,
    static const char *const names[] = {VOICE_LABELS(VOICE_NAME)};
#undef VOICE_NAME
    return names[n_segments ? VOICE_SPEECH : VOICE_SILENCE];
}

static void on_detected(void *user, const call_result *r, const Shoal__V1__DetectSpeechReply *reply)
{
    stage_run *s = user;
    if (r->status) {
        process_settle(s, r);
        return;
    }
    if (!reply) {
        process_settle_broken(s, r, "the worker sent no result");
        return;
    }
    put_segments(s, reply);
    buf_puts(&s->label, voice_label(reply->n_segments));
    process_settle(s, r);
}

static int start_vad(stage_run *s, const call_context *ctx)
{
    Shoal__V1__DetectSpeechRequest req = SHOAL__V1__DETECT_SPEECH_REQUEST__INIT;
    req.audio = process_file_of(s);
    req.threshold = s->stage->threshold;
    req.min_speech_ms = s->stage->min_speech_ms;
    req.min_silence_ms = s->stage->min_silence_ms;
    req.pad_ms = s->stage->pad_ms;
    s->call = calls_detect(s->run->calls, s->stage->model, &req, ctx, on_detected, s);
    return s->call ? 0 : SHOAL_ENOMEM;
}

const stage_runner stage_vad = {.start = start_vad};
