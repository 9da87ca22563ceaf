/* process_tell.c: who speaks in the end, and what of that can be shown already.
 *
 * Words that went out cannot be taken back, so a stage's text is shown while it writes only when it will be
 * the answer's for sure: no later stage that could speak may still run, and the stage may not fail and be
 * passed over. */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "calls/observer.h"
#include "process/process_events.h"
#include "process/stage_run.h"

/* Could this kind ever be the answer's text? Other hosts do not speak for us; a guard does when it holds
 * back. */
static bool may_speak(const stage_kind *k)
{
    return k->gives & SPEAKS;
}

bool process_speaks(const process_run *r, size_t i)
{
    /* A rule may leave the word to others; nothing heard or no alert is nothing to say. */
    const stage_kind *k = r->stages[i].stage->kind;
    return may_speak(k) && (!(k->gives & MAY_BE_SILENT) || *r->facts[i].text);
}

/* Does a guard hold the request back, or may one still do so? Then it has the word, wherever it stands. */
static bool may_be_held_back(const process_run *r)
{
    for (size_t k = 0; k < r->n_stages; k++) {
        stage_state state = r->facts[k].state;
        bool open = state == STAGE_PENDING || state == STAGE_RUNNING;
        if (open ? r->stages[k].stage->kind->passes != NULL : process_is_held_back(&r->stages[k]))
            return true;
    }
    return false;
}

/* Nothing that is still to come takes the word from stage i. */
static bool has_the_word(const process_run *r, size_t i)
{
    if (may_be_held_back(r)) return false;
    for (size_t k = i + 1; k < r->n_stages; k++) {
        stage_state state = r->facts[k].state;
        bool open = state == STAGE_PENDING || state == STAGE_RUNNING;
        if (open ? may_speak(r->stages[k].stage->kind) : state == STAGE_DONE && process_speaks(r, k))
            return false;
    }
    return true;
}

void process_tell_span(stage_run *s, const call_result *r)
{
    const call_context *ctx = &s->run->ctx;
    span p = {.kind = SPAN_STAGE, .id = s->span, .parent = ctx->spans.parent, .start_ns = s->start_ns};
    if (!s->span) return;
    s->span = 0;
    p.end_ns = env_now_ns(s->run->in->time);
    span_name(&p, s->stage->name);
    span_set(&p, "pipeline", s->run->in->pipeline->name);
    span_set(&p, "kind", s->stage->kind->name);
    span_set(&p, "model", s->stage->model);
    if (!r || r->status) span_set(&p, "error", shoal_err_name(r ? r->status : SHOAL_ECANCELLED));
    call_spans_end(&ctx->spans, ctx->request, &p);
}

void process_tell_stage(const stage_run *s)
{
    const process_watch *w = s->run->in->watch;
    if (w && s->trace) w->stage(w->user, s->trace);
}

/* White space at the end is not shown before more follows: the answer ends without it. */
void process_tell_text(stage_run *s)
{
    const process_watch *w = s->run->in->watch;
    size_t n = s->text.len;
    bool writes = s->stage->kind->id == STAGE_GENERATE || s->stage->kind->id == STAGE_SEQ2SEQ;
    if (!w || s->whole || s->each || !writes || s->stage->optional || !has_the_word(s->run, s->index)) return;
    while (n > s->n_told && isspace((unsigned char)s->text.data[n - 1])) n--;
    if (n > s->n_told) w->text(w->user, s->text.data + s->n_told, n - s->n_told);
    s->n_told = n;
}

void process_tell_rest(process_run *r)
{
    const process_watch *w = r->in->watch;
    stage_run *s = process_speaker(r);
    const char *text = s ? process_text(s) : NULL;
    if (!w) return;
    for (size_t i = 0; i < r->n_stages; i++) assert(&r->stages[i] == s || r->stages[i].n_told == 0);
    if (!text) return;
    assert(s->n_told <= strlen(text));
    if (text[s->n_told]) w->text(w->user, text + s->n_told, strlen(text) - s->n_told);
}
