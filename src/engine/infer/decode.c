/* decode.c: one step of the generations that run: plan, step, hand out. Engine thread. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "compute/profile.h"
#include "infer/engine_impl.h"
#include "infer/beam_set.h"

#define OTHER_REPLY "the search found another reply than the one that resume_ids began"

#define SOON_NS       5000000u    /* what a step without a deadline asks the arbiter for */
#define COMPANY_NS    2000000000u /* others who were here so lately will come again (batch.h) */
#define BESIDE_WEIGHT 0.1         /* of the newest step in the mean of what a token adds */
#define READY_MS      20          /* a look at who was cancelled, while a stage is away */
#define LOSSES_MAX    5

static const char LOST[] = "a stage of the model was lost each of the five times that this was computed";

/* ---- the step ------------------------------------------------------------------------------------- */

/* The likeliest of the tokens that end a reply; -1: the model has none. */
static int32_t likeliest_end(const model_config *c, const float *logits)
{
    int32_t best = c->n_eos > 0 ? c->eos_ids[0] : -1;
    for (size_t i = 1; i < c->n_eos; i++)
        if (logits[c->eos_ids[i]] > logits[best]) best = c->eos_ids[i];
    return best;
}

/* Token `at` of s's part of the step is one whose row was wanted. True: that is all it was wanted for. */
static bool probe_row(engine *e, session *s, team_member *m, size_t at, const float *logits)
{
    size_t position = s->kv.n_tokens + at, row = position - (s->n_prompt - s->n_probe);
    bool last = position + 1 == s->n_prompt;
    sample how;
    if (s->probe_out) {
        memcpy(s->probe_out + row * e->c->n_vocab, logits, e->c->n_vocab * sizeof *logits);
        return true;
    }
    int32_t id = last ? likeliest_end(e->c, logits) : s->ids[position + 1];
    how.n_top = 0;
    how.logprob = 0; /* of an end that this model does not have */
    if (id >= 0) sampler_judge(&s->sampler, member_vec(m), &e->spaces[member_index(m)], logits, id, &how);
    session_judge(s, row, id, &how);
    return !s->has_next;
}

/* Called by team members, on different rows at a time. */
static void on_row(void *user, team_member *m, size_t item, size_t at, float *logits)
{
    const engine_step *w = user;
    engine *e = w->e;
    session *s = w->item_session[item];
    if (s->n_probe && (probe_row(e, s, m, at, logits) || s->kv.n_tokens + at + 1 < s->n_prompt)) return;
    if (s->draft.n_planned > 0) {
        s->draft_rows[at] = logits; /* which of them matter shows in order */
        return;
    }
    session_mask(s, logits, e->c->n_vocab);
    if (s->ballot)
        s->next.logprob = ballot_cast(s->ballot, member_vec(m), &e->spaces[member_index(m)], logits);
    else
        sampler_choose(&s->sampler, member_vec(m), &e->spaces[member_index(m)], logits, s->n_generated,
                       s->grammar, e->c->eos_ids, e->c->n_eos, &s->next);
}

static void add_stepper(engine_step *w, session *s, session *of)
{
    w->stepper_of[w->n_steppers] = of;
    w->steppers[w->n_steppers++] = s;
}

/* With stages, those that run are dealt out to as many steps as can be under way, so that none of the stages
 * waits for another; who was in a step the longest ago goes first. */
static void decode_pick(engine *e)
{
    size_t n = (e->n_running + e->depth - 1) / e->depth;
    for (size_t i = 0; i < e->n_running; i++)
        e->running[i]->picked = e->depth == 1 && !session_awaits(e->running[i]);
    for (session *best = NULL; e->depth > 1 && n > 0; n--, best = NULL) {
        for (size_t i = 0; i < e->n_running; i++) {
            session *s = e->running[i];
            if (!slots_is_held(s) && !s->picked && (!best || s->launched < best->launched)) best = s;
        }
        if (!best) return;
        best->picked = true;
    }
}

static void decode_gather(engine *e, engine_step *w)
{
    w->n_steppers = 0;
    decode_pick(e);
    for (size_t i = 0; i < e->n_running; i++) {
        session *s = e->running[i];
        if (!s->picked) continue;
        for (size_t k = 0; s->beams && k < s->beams->n; k++) add_stepper(w, s->beams->lane[k], s);
        if (!s->beams) add_stepper(w, s, s);
    }
}

static uint64_t earliest_deadline(const engine *e)
{
    uint64_t at = 0;
    for (size_t i = 0; i < e->n_running; i++) {
        uint64_t d = e->running[i]->job.deadline_ns;
        if (d && (at == 0 || d < at)) at = d;
    }
    return at;
}

/* Time until the first deadline among those who run; 0 where there is none. */
static double left_ms(const engine *e, uint64_t now_ns)
{
    uint64_t at = earliest_deadline(e);
    return at == 0 ? 0 : at > now_ns ? (double)(at - now_ns) / 1e6 : 1e-3;
}

static bool was_lately(uint64_t then_ns, uint64_t now_ns)
{
    return then_ns > 0 && now_ns < then_ns + COMPANY_NS;
}

/* What a chunk of prompts beside n_decode streams has to look out for. */
static batch_scene look_around(engine *e, size_t n_decode)
{
    uint64_t now = clock_ns();
    linear_cost_line prefill = learnt_cost_line(&e->stats.prefill),
                     decode = learnt_cost_line(&e->stats.decode);
    if (e->n_running > 1 || atomic_load(&e->queue.n) > 0) e->company_ns = now;
    return (batch_scene){
        .fixed_ms = prefill.fixed_ms,
        .token_ms = prefill.unit_ms,
        .beside_ms = e->beside_ms,
        .decode_ms = linear_cost_line_ms(decode, 1, (double)n_decode),
        .left_ms = e->n_running > 1 ? left_ms(e, now) : 0,
        .others_here = was_lately(e->company_ns, now),
        .most = e->o.prefill_chunk,
    };
}

static void plan(engine *e, engine_step *w)
{
    size_t n_decode = 0;
    decode_gather(e, w);
    for (size_t i = 0; i < w->n_steppers; i++) {
        const session *s = w->steppers[i];
        size_t done = s->kv.n_tokens, quiet = s->n_probe ? s->n_prompt - s->n_probe : 0;
        w->entries[i] = (batch_entry){.pending = session_waits(w->stepper_of[i]) ? 0 : session_pending(s),
                                      .probe = s->n_probe > 0,
                                      .n_quiet = quiet > done ? quiet - done : 0};
        n_decode += w->entries[i].pending == 1 && !w->entries[i].probe;
    }
    batch_scene scene = look_around(e, n_decode);
    batch_limits limits = {.alone = batch_alone(&scene),
                           .shared = batch_shared(&scene),
                           .probe_rows = PROBE_ROWS,
                           .turn = (size_t)atomic_load_explicit(&e->stats.n_steps, memory_order_relaxed)};
    batch_plan(w->entries, w->n_steppers, &limits);
    drafts_plan(e, w);
}

/* Pages for the tokens of stepper i; false when its own session had to leave for want of them. Nobody leaves
 * for a guess. */
static bool reserve_one(engine *e, engine_step *w, size_t i)
{
    while (kv_reserve_guessed(e->kv, &w->steppers[i]->kv, w->entries[i].n, w->steppers[i]->draft.n_planned)) {
        session *last = slots_youngest(e);
        w->entries[i].n -= w->steppers[i]->draft.n_planned;
        if (w->steppers[i]->draft.n_planned > 0) {
            w->steppers[i]->draft.n_planned = 0;
            continue;
        }
        slots_leave(e, last, job_queue_push_front);
        if (last == w->stepper_of[i]) return false;
    }
    return true;
}

static bool runs(const engine *e, const session *s)
{
    for (size_t i = 0; i < e->n_running; i++)
        if (e->running[i] == s) return true;
    return false;
}

static void add_item(engine_step *w, size_t i)
{
    session *s = w->steppers[i], *of = w->stepper_of[i];
    size_t n = w->entries[i].n, n_drafts = s->draft.n_planned;
    bool last = n - n_drafts == session_pending(s);
    s->n_planned = n - n_drafts;
    s->has_next = last && !s->probe_out && !s->only_judges;
    w->item_session[w->n_items] = s;
    w->item_of[w->n_items] = of;
    w->items[w->n_items++] = (net_item){.seq = &s->kv,
                                        .ids = s->ids + s->kv.n_tokens,
                                        .n = n,
                                        .n_out = s->n_probe ? (w->entries[i].n_quiet ? 0 : n)
                                                 : last     ? 1 + n_drafts
                                                            : 0,
                                        .cross = of->cross,
                                        .n_cross = of->n_cross,
                                        .adapter = of->adapter};
}

/* Pages for what is planned, oldest first; whoever is youngest makes room. */
static void reserve(engine *e, engine_step *w)
{
    size_t first = 0; /* the first item of its session */
    w->n_items = 0;
    for (size_t i = 0; i < w->n_steppers; i++) {
        if (i == 0 || w->stepper_of[i] != w->stepper_of[i - 1]) first = w->n_items;
        if (!runs(e, w->stepper_of[i])) break; /* nor do those behind it */
        if (w->entries[i].n == 0) continue;
        if (!reserve_one(e, w, i)) {
            w->n_items = first;
            break;
        }
        add_item(w, i);
    }
}

static void decode_count(engine_step *w)
{
    w->n_rows = w->n_prefill = w->n_decode = w->n_drafted = w->n_accepted = 0;
    for (size_t i = 0; i < w->n_items; i++) {
        size_t n_drafted = w->item_session[i]->draft.n_planned, n = w->items[i].n - n_drafted;
        w->n_rows += w->items[i].n_out;
        w->n_drafted += n_drafted;
        if (n > 1)
            w->n_prefill += n;
        else
            w->n_decode++;
    }
}

static step_kind decode_kind_of(const engine_step *w)
{
    return w->n_prefill > 0 ? STEP_PREFILL : STEP_DECODE;
}

/* What tokens of a prompt add to a step that decodes. */
static void learn_beside(engine *e, const engine_step *w, double step_ms)
{
    double without = linear_cost_line_ms(learnt_cost_line(&e->stats.decode), 1, (double)w->n_decode);
    double each = (step_ms - without) / (double)w->n_prefill;
    if (without <= 0 || each <= 0) return;
    e->beside_ms = e->beside_ms > 0 ? e->beside_ms + BESIDE_WEIGHT * (each - e->beside_ms) : each;
}

static void decode_measure(engine *e, const engine_step *w, uint64_t took_ns)
{
    double step_s = (double)(took_ns ? took_ns : 1) / 1e9;
    if (w->n_decode > 0 && w->n_prefill > 0) learn_beside(e, w, step_s * 1e3);
    if (w->n_decode == 0) step_average(&e->stats.prefill_tokens_per_s, (double)w->n_prefill / step_s);
    if (w->n_decode == 0) step_learn(&e->stats.prefill, w->n_prefill, step_s * 1e3);
    if (w->n_prefill + w->n_drafted == 0) drafts_measure(e, w, step_s * 1e3);
    step_average(&e->stats.step_ms, step_s * 1e3);
    atomic_fetch_add(&e->stats.n_steps, 1);
    slots_note_pages(e);
}

static void decode_leave(engine *e, session *s, int status, const char *message)
{
    loop_take_out(e, s, NULL);
    loop_end(e, s, status, message);
}

static const char *stage_trouble(const engine *e)
{
    const shards *sh = e->o.shards;
    return sh && sh->why ? sh->why(sh->user) : NULL;
}

/* Nothing of it is passed on. */
static void leave_not_finite(engine *e, session *s)
{
    const char *stage = stage_trouble(e);
    decode_leave(e, s, SHOAL_EINTERNAL, stage ? stage : ENGINE_NOT_FINITE);
}

bool decode_take(engine *e, session *s, uint64_t now_ns)
{
    const shoal_err *wrong = s->grammar ? grammar_error(s->grammar) : NULL;
    if (wrong || !isfinite(s->next.logprob)) {
        if (wrong)
            decode_leave(e, s, wrong->code, wrong->message);
        else
            leave_not_finite(e, s);
        return false;
    }
    session_take(s, now_ns);
    s->n_stint++;
    s->n_losses = 0;
    atomic_fetch_add(&e->stats.n_generated_tokens, 1);
    if (s->finish == FINISH_NONE) return true;
    decode_leave(e, s, 0, NULL);
    return false;
}

/* Others have their say before a token is chosen. */
static void await_votes(engine *e, session *s)
{
    if (!isfinite(s->next.logprob)) {
        leave_not_finite(e, s);
        return;
    }
    pthread_mutex_lock(&e->lock);
    s->ballot->waits = true;
    pthread_mutex_unlock(&e->lock);
    session_tell_ballot(s);
}

static bool all_have_voted(engine *e, session *s)
{
    pthread_mutex_lock(&e->lock);
    bool given = s->ballot && s->ballot->given;
    if (given) s->ballot->waits = s->ballot->given = false;
    pthread_mutex_unlock(&e->lock);
    return given;
}

void decode_elect(engine *e)
{
    for (size_t i = e->n_running; i-- > 0;) {
        session *s = e->running[i];
        if (!all_have_voted(e, s)) continue;
        ballot_logits(s->ballot);
        sampler_choose(&s->sampler, team_vec(e->team), &e->spaces[0], s->ballot->values, s->n_generated,
                       s->grammar, e->c->eos_ids, e->c->n_eos, &s->next);
        decode_take(e, s, clock_ns());
    }
}

/* What a session's own step gave. */
static void hand_out_one(engine *e, engine_step *w, session *s, uint64_t now_ns)
{
    if (s->judged && s->n_probe && session_pending(s) == 0 && !session_tell_judged(s)) {
        leave_not_finite(e, s);
        return;
    }
    if (s->has_next && s->ballot) {
        await_votes(e, s);
        return;
    }
    if (s->has_next) {
        drafts_take(e, w, s, now_ns);
        return;
    }
    if ((s->probe_out || s->only_judges) && session_pending(s) == 0) {
        s->finish = FINISH_LENGTH;
    } else {
        session_tell_progress(s);
    }
    if (s->finish != FINISH_NONE) decode_leave(e, s, 0, NULL);
}

/* The lanes of s have computed; when all have, the next ones are chosen. */
static void hand_out_search(engine *e, session *s, uint64_t now_ns)
{
    size_t n;
    float logprob;
    session_tell_progress(s);
    if (!beam_set_ready(s->beams)) return;
    for (size_t i = 0; i < s->beams->n; i++) {
        if (isfinite(s->beams->lane[i]->next.logprob)) continue;
        leave_not_finite(e, s);
        return;
    }
    s->n_stint++;
    s->n_losses = 0;
    atomic_fetch_add(&e->stats.n_generated_tokens, s->beams->n);
    if (beam_set_advance(s->beams, e->kv)) return;
    const int32_t *ids = beam_best(s->beams->search, &n, &logprob);
    int rc = session_take_all(s, ids, n, logprob, now_ns);
    decode_leave(e, s, rc, rc == SHOAL_EINVALID ? OTHER_REPLY : NULL);
}

static void tell_burst(const engine *e, bool begins)
{
    if (e->o.burst) e->o.burst(e->o.burst_user, begins);
}

/* What the step gave those that wait for rows, or those that do not; they are done with it then. */
static void hand_out(engine *e, engine_step *w, bool aloft)
{
    uint64_t now = clock_ns();
    tell_burst(e, true);
    for (size_t i = 0; i < w->n_items; i++) {
        session *s = w->item_session[i];
        if (!s || w->item_of[i]->aloft != aloft) continue;
        kv_commit(e->kv, &s->kv, s->ids, s->n_planned);
        w->item_session[i] = NULL;
    }
    for (size_t i = 0; i < w->n_steppers; i++) {
        session *s = w->steppers[i], *of = w->stepper_of[i];
        if (!of || of->aloft != aloft) continue;
        bool last_of_it = i + 1 == w->n_steppers || w->stepper_of[i + 1] != of;
        w->stepper_of[i] = NULL;
        if (!runs(e, of) || (s != of && !last_of_it)) continue;
        of->aloft = false;
        if (s != of)
            hand_out_search(e, of, now);
        else if (w->entries[i].n > 0)
            hand_out_one(e, w, s, now);
    }
    tell_burst(e, false);
}

/* Whose tokens a step computed has used the cores for them. */
static void share_cpu(engine_step *w, uint64_t cpu_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_items; i++) n += w->items[i].n;
    for (size_t i = 0; i < w->n_items; i++)
        w->item_of[i]->cpu_ms += (double)cpu_ns / 1e6 * (double)w->items[i].n / (double)n;
}

/* The whole network is here. */
static void compute(engine *e, engine_step *w)
{
    size_t n_tokens = w->n_prefill + w->n_decode + w->n_drafted;
    team *t = step_team(e, decode_kind_of(w), n_tokens);
    core_lease_begin(&e->lease, step_deadline(earliest_deadline(e), SOON_NS), team_size(t));
    profile_begin(e->o.profile, t, w->n_prefill > 0 ? PROFILE_PREFILL : PROFILE_DECODE, n_tokens);
    e->ops->decode(e->mapping.net, t, e->kv, w->items, w->n_items, on_row, w);
    profile_end(e->o.profile, t);
    uint64_t took = core_lease_end(&e->lease), computed = clock_ns();
    step_note_team(e, decode_kind_of(w), n_tokens, took);
    share_cpu(w, e->lease.cpu_ns);
    decode_measure(e, w, took);
    hand_out(e, w, false);
    if (w->n_prefill == 0 && w->n_drafted > 0) drafts_measure(e, w, (double)took / 1e6);
    drafts_note_cost(e, w, (double)(took + clock_ns() - computed) / 1e6);
}

/* ---- in stages ------------------------------------------------------------------------------------ */

void decode_abandon(engine *e)
{
    for (size_t i = 0; i < e->n_running; i++) e->running[i]->aloft = false;
    e->n_aloft = 0;
}

/* A stage is gone with all it kept: everybody is computed again, oldest first. One that was there every time
 * is not tried for ever, as it may be what ends them. */
static void lose(engine *e)
{
    char message[400];
    const char *why = stage_trouble(e);
    snprintf(message, sizeof message, "%s%s%s", LOST, why ? "; the last time " : "", why ? why : "");
    decode_abandon(e);
    while (e->n_running > 0) {
        session *s = e->running[e->n_running - 1];
        s->n_losses += s->launched > 0;
        if (s->n_losses == LOSSES_MAX)
            decode_leave(e, s, SHOAL_EUNAVAILABLE, message);
        else
            slots_leave(e, s, job_queue_push_front);
    }
    kv_forget(e->kv);
    e->n_copies = 0;
}

bool decode_ready(engine *e)
{
    if (e->o.shards->ready(e->o.shards->user, READY_MS)) return true;
    lose(e);
    return false;
}

/* Of so many positions. A sequence whose guesses were wrong may have more. */
static size_t pages_of(size_t n_tokens)
{
    return (n_tokens + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;
}

static int send_on(engine *e, const engine_step *w)
{
    size_t n_rows = 0;
    for (size_t i = 0; i < w->n_items; i++) {
        const net_item *it = &w->items[i];
        e->sent_items[i] = (stage_item){.pages = it->seq->pages,
                                        .n_pages = pages_of(it->seq->n_tokens + it->n),
                                        .position = it->seq->n_tokens,
                                        .n = it->n,
                                        .n_out = it->n_out,
                                        .state = it->seq->state,
                                        .marks = it->seq->marks,
                                        .n_marks = it->seq->n_marks};
        n_rows += it->n;
    }
    stage_step step = {
        .copies = e->copies, .n_copies = e->n_copies, .items = e->sent_items, .n_items = w->n_items};
    e->n_copies = 0;
    return e->o.shards->send(e->o.shards->user, &step, e->hidden, n_rows);
}

/* The layers that are here; the rows go on. Who wants none of them goes on, too: the next chunk follows. */
static void launch(engine *e, engine_step *w)
{
    size_t n_tokens = w->n_prefill + w->n_decode + w->n_drafted;
    team *t = step_team(e, decode_kind_of(w), n_tokens);
    w->start_ns = core_lease_begin(&e->lease, step_deadline(earliest_deadline(e), SOON_NS), team_size(t));
    e->ops->walk(e->mapping.net, t, e->kv, w->items, w->n_items, e->hidden);
    uint64_t took = core_lease_end(&e->lease);
    step_note_team(e, decode_kind_of(w), n_tokens, took);
    e->n_launched++;
    for (size_t i = 0; i < w->n_items; i++) {
        w->item_of[i]->launched = e->n_launched;
        if (w->items[i].n_out > 0) w->item_of[i]->aloft = true;
    }
    if (send_on(e, w)) {
        lose(e);
        return;
    }
    e->n_aloft++;
    hand_out(e, w, false);
}

/* The oldest step is back. */
static void land(engine *e)
{
    engine_step *w = &e->steps[e->first_aloft];
    const shards *sh = e->o.shards;
    if (sh->receive(sh->user, e->hidden, w->n_rows)) {
        lose(e);
        return;
    }
    team_use(e->team, step_cost_prefers(&e->step_cost, decode_kind_of(w), w->n_rows ? w->n_rows : 1));
    core_lease_begin(&e->lease, step_deadline(earliest_deadline(e), SOON_NS), team_size(e->team));
    e->ops->finish(e->mapping.net, e->team, w->items, w->n_items, e->hidden, on_row, w);
    core_lease_end(&e->lease);
    e->first_aloft = (e->first_aloft + 1) % e->depth;
    e->n_aloft--;
    uint64_t took = clock_ns() - w->start_ns;
    decode_measure(e, w, took);
    hand_out(e, w, true);
    if (w->n_prefill == 0 && w->n_drafted > 0) drafts_measure(e, w, (double)took / 1e6);
    drafts_note_cost(e, w, (double)(clock_ns() - w->start_ns) / 1e6);
}

/* The next step begins, unless as many as can be are under way or nobody is left to compute for it. */
void decode_step(engine *e)
{
    if (e->n_aloft == e->depth) {
        land(e);
        return;
    }
    engine_step *w = &e->steps[(e->first_aloft + e->n_aloft) % e->depth];
    plan(e, w);
    reserve(e, w);
    decode_count(w);
    if (w->n_items > 0 && e->o.shards)
        launch(e, w);
    else if (w->n_items > 0)
        compute(e, w);
    else if (e->n_aloft > 0)
        land(e);
    /* else all wait for their sources */
}
