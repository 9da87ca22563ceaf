/* observer.c: see observer.h. */
#include "calls/observer.h"

#include "base/buf.h"
#include "base/clock.h"

void call_observer_attempt(const call_observer *w, const call_order *o, const call_attempt *a)
{
    if (w && w->attempt) w->attempt(w->user, o, a);
}

void call_observer_moved(const call_observer *w, const call_order *o, const call_move *m)
{
    if (w && w->moved) w->moved(w->user, o, m);
}

void call_observer_hedged(const call_observer *w, const call_order *o, bool won)
{
    if (w && w->hedged) w->hedged(w->user, o, won);
}

void call_observer_degraded(const call_observer *w, const call_order *o, const char *to)
{
    if (w && w->degraded) w->degraded(w->user, o, to);
}

void call_observer_held(const call_observer *w, const call_order *o, bool held)
{
    if (w && w->held) w->held(w->user, o, held);
}

void call_observer_end(const call_observer *w, const call_order *o, const call_result *r)
{
    if (w && w->end) w->end(w->user, o, r);
}

uint64_t call_spans_begin(call_spans *ret, const call_spans *at)
{
    *ret = (call_spans){0};
    if (!at->to || !at->to->span || !at->parent) return 0;
    *ret = *at;
    do rng_draw(&ret->parent, sizeof ret->parent);
    while (ret->parent == 0);
    return ret->parent;
}

void call_spans_end(const call_spans *at, uint64_t request, const span *s)
{
    if (at->to && at->to->span && s->id) at->to->span(at->to->user, request, s);
}

/* ---- what workers say of their time -------------------------------------------------------------- */

static size_t phases_of_generation(const Shoal__V1__Done *d, call_phase ret[CALL_PHASES_MAX])
{
    if (!d) return 0;
    ret[0] = (call_phase){"queue", d->queue_ms};
    ret[1] = (call_phase){"prefill", d->prefill_ms};
    ret[2] = (call_phase){"decode", d->decode_ms};
    return 3;
}

static size_t phases_of_transcription(const Shoal__V1__TranscribeDone *d, call_phase ret[CALL_PHASES_MAX])
{
    if (!d) return 0;
    ret[0] = (call_phase){"queue", d->queue_ms};
    ret[1] = (call_phase){"decode_audio", d->decode_audio_ms};
    ret[2] = (call_phase){"encode", d->encode_ms};
    ret[3] = (call_phase){"decode", d->decode_ms};
    return 4;
}

/* Unary replies that say it do so in a field of one name and type. */
static const Shoal__V1__Timing *timing_of(const ProtobufCMessage *m)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field_by_name(m->descriptor, "timing");
    if (!f || f->descriptor != &shoal__v1__timing__descriptor) return NULL;
    return *(const Shoal__V1__Timing *const *)(const void *)((const char *)m + f->offset);
}

static size_t phases_of_timing(const Shoal__V1__Timing *t, call_phase ret[CALL_PHASES_MAX])
{
    if (!t) return 0;
    ret[0] = (call_phase){"queue", t->queue_ms};
    ret[1] = (call_phase){"compute", t->compute_ms};
    return 2;
}

size_t call_phases_of(call_task task, const ProtobufCMessage *m, call_phase ret[CALL_PHASES_MAX])
{
    switch (task) {
    case CALL_GENERATE:
    case CALL_VOTE: return phases_of_generation(((const Shoal__V1__GenerateEvent *)m)->done, ret);
    case CALL_TRANSCRIBE: return phases_of_transcription(((const Shoal__V1__TranscribeEvent *)m)->done, ret);
    default: return phases_of_timing(timing_of(m), ret);
    }
}

call_usage call_usage_of(call_task task, const ProtobufCMessage *m)
{
    call_usage u = {0};
    const Shoal__V1__Done *d =
        task == CALL_GENERATE || task == CALL_VOTE ? ((const Shoal__V1__GenerateEvent *)m)->done : NULL;
    if (!d) return u;
    u = (call_usage){.known = true, .n_prompt = d->n_prompt, .n_generated = d->n_generated};
    buf_copy_str(u.finish, sizeof u.finish, d->finish);
    return u;
}

void call_confidences_of(call_task task, const ProtobufCMessage *m, call_confidences *ret)
{
    ret->n = 0;
    if (task != CALL_CLASSIFY) return;
    const Shoal__V1__ClassifyReply *r = (const Shoal__V1__ClassifyReply *)m;
    for (size_t i = 0; i < r->n_results && ret->n < CALL_CONFIDENCES_MAX; i++)
        if (r->results[i]->n_labels > 0) ret->best[ret->n++] = r->results[i]->labels[0]->score;
}

double call_cpu_ms_of(call_task task, const ProtobufCMessage *m)
{
    if (task == CALL_GENERATE || task == CALL_VOTE) {
        const Shoal__V1__Done *d = ((const Shoal__V1__GenerateEvent *)m)->done;
        return d ? d->cpu_ms : 0;
    }
    if (task == CALL_TRANSCRIBE) {
        const Shoal__V1__TranscribeDone *d = ((const Shoal__V1__TranscribeEvent *)m)->done;
        return d ? d->cpu_ms : 0;
    }
    const Shoal__V1__Timing *t = timing_of(m);
    return t ? t->cpu_ms : 0;
}
