/* resume.c: the ids of a reply, and what else goes with them; see resume.h. */
#include "calls/resume.h"

#include <stdlib.h>
#include <string.h>

typedef Shoal__V1__GenerateEvent gen_event;
typedef Shoal__V1__TranscribeEvent heard_event;

static void note_started(resume *r, const Shoal__V1__Started *s)
{
    r->max_tokens = s->max_tokens;
    r->in_thought = s->in_thought;
    if (s->max_tokens == 0) r->broken = true;
    if (s->n_prompt_ids == 0) return;
    r->prompt_ids = malloc(s->n_prompt_ids * sizeof *r->prompt_ids);
    if (!r->prompt_ids) {
        r->broken = true;
        return;
    }
    memcpy(r->prompt_ids, s->prompt_ids, s->n_prompt_ids * sizeof *r->prompt_ids);
    r->n_prompt_ids = s->n_prompt_ids;
}

static bool reserve(resume *r, size_t n_more)
{
    size_t cap = r->cap ? r->cap : 64;
    if (n_more <= r->cap - r->n_ids) return true;
    while (cap - r->n_ids < n_more) cap *= 2;
    int32_t *p = realloc(r->ids, cap * sizeof *p);
    if (!p) return false;
    r->ids = p;
    r->cap = cap;
    return true;
}

static void note_delta(resume *r, const Shoal__V1__Delta *d)
{
    r->n_bytes += d->reasoning.len + d->text.len;
    for (size_t i = 0; i < d->n_tool_calls; i++)
        r->n_bytes += strlen(d->tool_calls[i]->name) + strlen(d->tool_calls[i]->arguments);
    if (d->n_ids == 0 || r->broken) return;
    if (!reserve(r, d->n_ids)) {
        r->broken = true;
        return;
    }
    memcpy(r->ids + r->n_ids, d->ids, d->n_ids * sizeof *r->ids);
    r->n_ids += d->n_ids;
    r->prob_sum = d->prob_sum;
}

static void note_generated(resume *r, const gen_event *ev)
{
    if (ev->started) note_started(r, ev->started);
    if (ev->progress && !r->knows_cached) {
        r->knows_cached = true;
        r->n_cached = ev->progress->n_cached;
    }
    if (ev->delta) note_delta(r, ev->delta);
    if (ev->done) r->done = true;
}

static void note_heard(resume *r, const heard_event *ev)
{
    if (ev->segment) r->n_segments++;
    if (ev->progress) r->done_ms = ev->progress->done_ms;
    if (ev->done) r->done = true;
}

/* Generations, voted on or not, are made of the same events. */
static bool generates(const call_order *o)
{
    return o->task == CALL_GENERATE || o->task == CALL_VOTE;
}

void resume_note(resume *r, const call_order *o, const ProtobufCMessage *m)
{
    r->begun = true;
    r->grown |= resume_grows(o, m);
    if (generates(o)) note_generated(r, (const gen_event *)m);
    if (o->task == CALL_TRANSCRIBE) note_heard(r, (const heard_event *)m);
}

bool resume_takes(const resume *r, const call_order *o, const ProtobufCMessage *m)
{
    if (generates(o)) return !(r->begun || r->told) || !((const gen_event *)m)->started;
    const heard_event *ev = (const heard_event *)m;
    return !ev->progress || ev->progress->done_ms > r->done_ms || !r->begun;
}

bool resume_grows(const call_order *o, const ProtobufCMessage *m)
{
    if (o->task == CALL_TRANSCRIBE)
        return ((const heard_event *)m)->segment || ((const heard_event *)m)->done;
    return ((const gen_event *)m)->delta || ((const gen_event *)m)->done;
}

const ProtobufCMessage *resume_mend(const resume *r, const call_order *o, const ProtobufCMessage *m,
                                    resume_space *space)
{
    const gen_event *ev = generates(o) ? (const gen_event *)m : NULL;
    if (!ev || !ev->done || !r->knows_cached) return m;
    space->event = *ev;
    space->done = *ev->done;
    space->event.done = &space->done;
    space->done.n_cached = r->n_cached;
    return &space->event.base;
}

static call_order *order_generate(const resume *r, call_order *o)
{
    Shoal__V1__GenerateRequest more = SHOAL__V1__GENERATE_REQUEST__INIT;
    if (!o->resumes) { /* else they are in there already */
        more.max_tokens = r->max_tokens;
        more.prompt_ids = r->prompt_ids;
        more.n_prompt_ids = r->n_prompt_ids;
        more.in_thought = r->in_thought;
    }
    more.resume_ids = r->ids;
    more.n_resume_ids = r->n_ids;
    more.resume_bytes = o->n_resumed + r->n_bytes;
    more.resume_prob_sum = r->prob_sum;
    more.resume_deaths = r->n_deaths;
    return call_order_more(o, &more.base, more.resume_bytes);
}

/* Nothing has come of it, and it is sent as it was but for the count. */
static call_order *order_anew(const resume *r, call_order *o)
{
    Shoal__V1__GenerateRequest more = SHOAL__V1__GENERATE_REQUEST__INIT;
    if (r->n_deaths == 0 || !generates(o)) return call_order_ref(o);
    more.resume_deaths = r->n_deaths;
    call_order *next = call_order_more(o, &more.base, o->n_resumed);
    if (next) next->resumes = o->resumes;
    return next;
}

call_order *resume_order(const resume *r, call_order *o)
{
    if (!r->begun) return order_anew(r, o);
    if (generates(o)) return order_generate(r, o);
    Shoal__V1__TranscribeRequest more = SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
    more.skip_segments = (uint32_t)o->n_resumed + r->n_segments;
    return call_order_more(o, &more.base, more.skip_segments);
}

void resume_restart(resume *r, bool told)
{
    unsigned n_deaths = r->n_deaths;
    resume_done(r);
    r->n_deaths = n_deaths;
    r->told = told;
}

void resume_done(resume *r)
{
    free(r->prompt_ids);
    free(r->ids);
    *r = (resume){0};
}
