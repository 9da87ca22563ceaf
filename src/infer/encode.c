/* encode.c: the engine loop of encoders: everything queued, up to a budget, as one ragged batch. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "infer/engine_impl.h"

#define SOON_NS 2000000u /* what a batch without a deadline asks the arbiter for */

static void fail(engine *e, enc_job *j, int status, const char *message)
{
    if (status == SHOAL_ECANCELLED)
        atomic_fetch_add(&e->stats.n_cancelled, 1);
    else
        atomic_fetch_add(&e->stats.n_failed, 1);
    j->fn(j->user,
          &(enc_result){.status = status, .message = message, .queue_ms = clock_ms_since(j->job.submit_ns)});
    free(j);
}

static void reap(engine *e)
{
    pthread_mutex_lock(&e->lock);
    job *dead = queue_reap(&e->queue, clock_ns());
    pthread_mutex_unlock(&e->lock);
    while (dead) {
        enc_job *j = (enc_job *)dead;
        dead = dead->next;
        if (atomic_load(&j->job.cancelled))
            fail(e, j, SHOAL_ECANCELLED, "cancelled by the caller");
        else
            fail(e, j, SHOAL_EDEADLINE, "the deadline passed before the answer was whole");
    }
}

/* Wait for work and take as much of it as fits one batch; 0 when the engine closes. */
static size_t take_batch(engine *e)
{
    size_t n = 0, n_tokens = 0;
    pthread_mutex_lock(&e->lock);
    while (!e->stopping && !e->queue.head) pthread_cond_wait(&e->wake, &e->lock);
    while (!e->stopping && e->queue.head && n < e->o.max_batch &&
           n_tokens + e->queue.head->n_tokens <= e->enc_tokens) {
        n_tokens += e->queue.head->n_tokens;
        e->batch[n++] = (enc_job *)queue_pop(&e->queue);
    }
    pthread_mutex_unlock(&e->lock);
    atomic_store(&e->stats.n_running, n);
    return n;
}

static uint64_t fill_items(engine *e, size_t n)
{
    uint64_t earliest = 0;
    for (size_t i = 0; i < n; i++) {
        const enc_job *j = e->batch[i];
        e->enc_items[i] = (bert_item){.ids = j->ids, .type_ids = j->type_ids, .n = j->n};
        if (j->job.deadline_ns && (earliest == 0 || j->job.deadline_ns < earliest))
            earliest = j->job.deadline_ns;
    }
    return earliest;
}

static void measure(engine *e, size_t n, uint64_t took_ns)
{
    size_t n_tokens = 0;
    for (size_t i = 0; i < n; i++) n_tokens += e->batch[i]->n;
    step_average(&e->stats.prefill_tokens_per_s, (double)n_tokens * 1e9 / (double)(took_ns ? took_ns : 1));
    step_average(&e->stats.step_ms, (double)took_ns / 1e6);
    step_learn(e, n_tokens, (double)took_ns / 1e6);
    atomic_fetch_add(&e->stats.n_prompt_tokens, n_tokens);
    atomic_fetch_add(&e->stats.n_steps, 1);
}

static bool all_finite(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i])) return false;
    return true;
}

static void hand_out(engine *e, size_t n, uint64_t start_ns, uint64_t took_ns)
{
    for (size_t i = 0; i < n; i++) {
        enc_job *j = e->batch[i];
        const bert_item *it = &e->enc_items[i];
        if (!all_finite(it->values, it->rows * it->cols)) {
            fail(e, j, SHOAL_EINTERNAL, ENGINE_NOT_FINITE);
            continue;
        }
        j->fn(j->user, &(enc_result){.message = "",
                                     .values = it->values,
                                     .rows = it->rows,
                                     .cols = it->cols,
                                     .queue_ms = (double)(start_ns - j->job.submit_ns) / 1e6,
                                     .compute_ms = (double)took_ns / 1e6});
        free(j);
    }
    atomic_store(&e->stats.n_running, 0);
}

void encode_loop(engine *e)
{
    size_t n;
    for (;;) {
        reap(e);
        n = take_batch(e);
        if (n == 0) break;
        uint64_t deadline = fill_items(e, n);
        size_t n_tokens = 0;
        for (size_t i = 0; i < n; i++) n_tokens += e->batch[i]->n;
        team *t = step_team(e, n_tokens);
        if (e->o.arbiter) arbiter_acquire(e->o.arbiter, step_deadline(deadline, SOON_NS));
        uint64_t start = clock_ns();
        bert_step(e->bert, t, e->enc_items, n);
        uint64_t took = clock_ns() - start;
        if (e->o.arbiter) arbiter_release(e->o.arbiter);
        step_note_team(e, n_tokens, t, took);
        measure(e, n, took);
        hand_out(e, n, start, took);
    }
    pthread_mutex_lock(&e->lock);
    job *rest = NULL;
    for (job *j; (j = queue_pop(&e->queue)) != NULL;) {
        j->next = rest;
        rest = j;
    }
    pthread_mutex_unlock(&e->lock);
    while (rest) {
        enc_job *j = (enc_job *)rest;
        rest = rest->next;
        fail(e, j, SHOAL_ECANCELLED, "the engine is closing");
    }
}
