/* slots.c: which generations run: who comes in when there is a slot and memory, and who makes room (batch.h
 * has the rule). Engine thread. */
#include "base/clock.h"
#include "infer/engine_impl.h"
#include "infer/beam_set.h"

void slots_release(engine *e, session *s)
{
    kv_release(e->kv, &s->kv);
    if (s->beams) beam_set_release(s->beams, e->kv);
}

void slots_note_pages(engine *e)
{
    atomic_store_explicit(&e->stats.kv_pages_used, e->kv->n_used, memory_order_relaxed);
    atomic_store_explicit(&e->stats.kv_pages_kept, e->kv->line[KV_KEPT].n, memory_order_relaxed);
}

/* Sequences that compute for it. */
static size_t width_of(const session *s)
{
    return s->beams ? s->beams->n_max : 1;
}

static size_t slots_used(const engine *e)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n_running; i++) n += width_of(e->running[i]);
    return n;
}

/* Tokens that a cached prefix may stand for: the last one must run, and a probe's rows must. */
static size_t adoptable(const session *s)
{
    return s->n_ids - (s->n_probe ? s->n_probe : 1);
}

/* Is there room in the cache for what s, the newest of the running, still has to compute? With nobody else
 * there always is (session_new bounded it by the cache). */
static bool take_in(engine *e, session *s)
{
    size_t had = 0, pages = 0;
    for (size_t i = 0; i < (s->beams ? s->beams->n : 1); i++) {
        session *l = s->beams ? s->beams->lane[i] : s;
        had = kv_adopt(e->kv, &l->kv, l->ids, adoptable(l));
        pages += (l->n_ids - had) / KV_PAGE_TOKENS + 1;
    }
    if (e->n_running > 1 && pages > kv_available(e->kv)) {
        slots_release(e, s);
        return false;
    }
    if (s->admitted_ns == 0) {
        s->admitted_ns = clock_ns();
        s->n_cached = had < s->n_prompt ? had : s->n_prompt;
        atomic_fetch_add(&e->stats.n_prompt_tokens, s->n_prompt);
        step_average(&e->stats.fresh_share, (double)(s->n_ids - had) / (double)s->n_ids);
        session_tell_progress(s);
    }
    return true;
}

static void note_slots(engine *e)
{
    for (size_t i = 0; i < e->n_running; i++) {
        const session *s = e->running[i];
        bool fixed = s->n_probe > 0 || s->aloft || session_awaits(s);
        e->slots[i] = (batch_slot){.group = s->job.group, .n_stint = s->n_stint, .fixed = fixed};
    }
}

static batch_replay replay_of(const job *j, uint64_t now_ns)
{
    return (batch_replay){
        .n_left = j->n_left, .n_deaths = j->n_deaths, .waited_ms = (double)(now_ns - j->submit_ns) / 1e6};
}

/* Replies that began elsewhere: how many run, and how many of these have got no token here yet. */
static void count_replays(const engine *e, size_t *ret_running, size_t *ret_replaying)
{
    *ret_running = *ret_replaying = 0;
    for (size_t i = 0; i < e->n_running; i++) {
        const session *s = e->running[i];
        if (!s->job.replays) continue;
        ++*ret_running;
        *ret_replaying += s->first_token_ns == 0;
    }
}

static bool replays_before(const job *a, const job *b, uint64_t now_ns)
{
    batch_replay x = replay_of(a, now_ns), y = replay_of(b, now_ns);
    return a->replays && b->replays && batch_replays_before(&x, &y);
}

/* Who is to have the next slot: of the group that has fewest, the first in line, and of replays the one
 * nearest its end. Under the lock. */
static session *next_in_line(engine *e)
{
    job *best = NULL;
    size_t least = 0, n_running, n_replaying;
    uint64_t now = clock_ns();
    note_slots(e);
    count_replays(e, &n_running, &n_replaying);
    for (job *j = e->queue.head; j; j = j->next) {
        batch_replay r = replay_of(j, now);
        if (j->kind != JOB_GENERATE || j->over || atomic_load(&j->paused)) continue;
        if (j->replays && !batch_may_replay(&r, n_running, n_replaying)) continue;
        size_t has = batch_slots_of(e->slots, e->n_running, j->group);
        if (best && (has > least || (has == least && !replays_before(j, best, now)))) continue;
        best = j;
        least = has;
    }
    return (session *)best;
}

void slots_leave(engine *e, session *s, void (*back)(job_queue *, job *))
{
    slots_release(e, s);
    session_drop_cross(s);
    s->launched = 0;
    loop_take_out(e, s, back);
}

/* False when those who run keep their slots for now. */
static bool make_room(engine *e, const session *s)
{
    note_slots(e);
    size_t i = batch_victim(e->slots, e->n_running, s->job.group);
    if (i == e->n_running) return false;
    slots_leave(e, e->running[i], job_queue_push_back);
    return true;
}

/* One more into the batch, if there is a slot and memory for it. */
static bool admit_one(engine *e)
{
    pthread_mutex_lock(&e->lock);
    session *s = next_in_line(e);
    bool full = s && slots_used(e) + width_of(s) > e->o.max_batch;
    if (s && !full) {
        job_queue_take(&e->queue, &s->job);
        s->job.waited_ns += clock_ns() - s->job.queued_ns;
        e->running[e->n_running++] = s;
    }
    pthread_mutex_unlock(&e->lock);
    if (!s) return false;
    if (full) return make_room(e, s);
    s->n_stint = 0;
    if (take_in(e, s)) return true;
    loop_take_out(e, s, job_queue_push_front);
    return make_room(e, s);
}

bool slots_is_held(const session *s)
{
    return s->aloft || session_awaits(s);
}

/* Whose reader does not keep up leaves its slot to others. */
static void rest_paused(engine *e)
{
    for (size_t i = e->n_running; i-- > 0;)
        if (!slots_is_held(e->running[i]) && atomic_load(&e->running[i]->job.paused))
            slots_leave(e, e->running[i], job_queue_push_back);
}

void slots_admit(engine *e)
{
    rest_paused(e);
    while (admit_one(e)) {
    }
    atomic_store_explicit(&e->stats.n_running, e->n_running, memory_order_relaxed);
}

session *slots_youngest(const engine *e)
{
    size_t i = e->n_running;
    while (slots_is_held(e->running[i - 1])) i--;
    return e->running[i - 1];
}
