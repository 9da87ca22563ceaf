/* stage_vad.c: vad stages: does anybody speak in the sound of a request, and where? The label is speech or
 * silence, the score the share of the sound that is speech. */
#include "stages/stage_write.h"

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

static const char *take_segments(stage_run *s, const ProtobufCMessage *reply)
{
    const Shoal__V1__DetectSpeechReply *r = (const Shoal__V1__DetectSpeechReply *)reply;
    put_segments(s, r);
    buf_puts(&s->label, voice_label(r->n_segments));
    return NULL;
}

static int start_vad(stage_run *s, const call_context *ctx)
{
    task_request req;
    task_request_file(&req, CALL_DETECT, process_file_of(s));
    req.detect.threshold = s->stage->threshold;
    req.detect.min_speech_ms = s->stage->min_speech_ms;
    req.detect.min_silence_ms = s->stage->min_silence_ms;
    req.detect.pad_ms = s->stage->pad_ms;
    return stage_ask(s, ctx, &req);
}

const stage_runner stage_vad = {.start = start_vad, .task = CALL_DETECT, .take = take_segments};
