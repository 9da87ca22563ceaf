/* drafts.c: where guesses enter a step and how they leave it (draft.h has what is guessed). A step computes
 * the keys and values of guessed tokens behind those that are known. They are committed one by one, each
 * when the sampler has chosen it: what was guessed wrong stays behind the sequence's end, is never
 * registered for others and is overwritten by the next step. */
#include "infer/engine_impl.h"

static bool may_draft(const engine *e, const session *s, const session *of)
{
    return !e->o.no_drafts && s == of && !s->beams && !s->ballot && s->n_probe == 0;
}

static size_t drafts_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Rows that are left for guesses: what probes took is gone, and the step has room for so many tokens. */
static size_t rows_left(const engine *e, const engine_step *w, size_t *ret_streams)
{
    size_t n_tokens = 0, n_probed = 0;
    *ret_streams = 0;
    for (size_t i = 0; i < w->n_steppers; i++) {
        n_tokens += w->entries[i].n;
        if (w->entries[i].probe) n_probed += w->entries[i].n;
        *ret_streams += w->entries[i].n == session_pending(w->steppers[i]);
    }
    size_t rows = n_probed < PROBE_ROWS ? drafts_least(DRAFT_ROWS, PROBE_ROWS - n_probed) : 0;
    return drafts_least(rows, e->max_tokens - n_tokens);
}

/* What is computed of the guesses behind s, in a step of n_rows until now. */
static size_t worth(const engine *e, const session *s, size_t n_rows, double *tokens)
{
    return e->o.draft_price > 0 ? draft_worth(&s->draft, e->o.draft_price)
                                : draft_cost_best(&e->draft_cost, &s->draft, n_rows, tokens);
}

void drafts_plan(engine *e, engine_step *w)
{
    size_t n_rows, left = rows_left(e, w, &n_rows), n = w->n_steppers;
    double tokens = (double)n_rows;
    size_t turn = (size_t)atomic_load_explicit(&e->stats.n_steps, memory_order_relaxed);
    for (size_t k = 0; k < n; k++) {
        size_t i = (k + turn) % n;
        session *s = w->steppers[i];
        s->draft.n = s->draft.n_planned = 0;
        if (!may_draft(e, s, w->stepper_of[i]) || w->entries[i].n == 0) continue;
        if (w->entries[i].n < session_pending(s)) continue;
        draft_guess(&e->book, &s->draft, s->ids, s->n_ids, s->max_ids - s->n_ids - 1);
        s->draft.n_planned = drafts_least(worth(e, s, n_rows, &tokens), left);
        w->entries[i].n += s->draft.n_planned;
        n_rows += s->draft.n_planned;
        left -= s->draft.n_planned;
    }
}

static void drafts_choose(engine *e, session *s, float *logits)
{
    session_mask(s, logits, e->c->n_vocab);
    sampler_choose(&s->sampler, team_vec(e->team), &e->spaces[0], logits, s->n_generated, s->grammar,
                   e->c->eos_ids, e->c->n_eos, &s->next);
}

void drafts_take(engine *e, engine_step *w, session *s, uint64_t now_ns)
{
    size_t n = s->draft.n_planned;
    bool drafts = may_draft(e, s, s), goes_on = true;
    s->n_drafted += n;
    atomic_fetch_add(&e->stats.n_drafted, n);
    for (size_t at = 0; goes_on; at++) {
        if (n > 0) drafts_choose(e, s, s->draft_rows[at]);
        bool hit = drafts && draft_check(&e->book, &s->draft, at, s->ids, s->n_ids, s->next.id);
        goes_on = hit && at < n;
        if (goes_on) {
            kv_commit(e->kv, &s->kv, s->ids, 1);
            s->n_accepted++;
            w->n_accepted++;
            atomic_fetch_add(&e->stats.n_accepted, 1);
        }
        /* Whoever has heard enough, or cannot keep up, gets no more of them. */
        goes_on = decode_take(e, s, now_ns) && goes_on && !atomic_load(&s->job.cancelled) &&
                  !atomic_load(&s->job.paused);
    }
}

/* Others reckon with what a token of each of so many streams takes. */
void drafts_measure(engine *e, const engine_step *w, double step_ms)
{
    double n_tokens = (double)(w->n_decode + w->n_accepted);
    step_learn(&e->stats.decode, w->n_decode, step_ms * (double)w->n_decode / n_tokens);
    step_average(&e->stats.decode_tokens_per_s, n_tokens * 1e3 / step_ms);
}

void drafts_note_cost(engine *e, const engine_step *w, double ms)
{
    if (w->n_prefill == 0) draft_cost_note(&e->draft_cost, w->n_decode + w->n_drafted, ms);
}
