/* loop.c: the engine thread: whatever waits to be encoded goes first, as one batch, then everybody who runs
 * gets a step. A model that only encodes, or only decodes, has one half of it. */
#include <assert.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/progress.h"
#include "infer/engine_impl.h"

#define REST_LOOK_NS 20000000

static const char CANCELLED[] = "cancelled by the caller",
                  LATE[] = "the deadline passed before the answer was whole",
                  CLOSING[] = "the engine is closing";

/* In one go: nobody ever sees it nowhere. */
void loop_take_out(engine *e, session *s, void (*back)(job_queue *, job *))
{
    pthread_mutex_lock(&e->lock);
    size_t i = 0;
    while (i < e->n_running && e->running[i] != s) i++;
    assert(i < e->n_running);
    e->n_running--;
    memmove(&e->running[i], &e->running[i + 1], (e->n_running - i) * sizeof *e->running);
    if (back) s->job.queued_ns = clock_ns();
    if (back) back(&e->queue, &s->job);
    pthread_mutex_unlock(&e->lock);
    atomic_store_explicit(&e->stats.n_running, e->n_running, memory_order_relaxed);
}

void loop_end(engine *e, session *s, int status, const char *message)
{
    slots_release(e, s);
    slots_note_pages(e);
    if (status == SHOAL_ECANCELLED)
        atomic_fetch_add(&e->stats.n_cancelled, 1);
    else if (status)
        atomic_fetch_add(&e->stats.n_failed, 1);
    session_end(s, status, message, clock_ns());
    session_free(s);
}

/* A job that is in no list any more. */
static void end_job(engine *e, job *j, int status, const char *message)
{
    if (j->kind == JOB_GENERATE)
        loop_end(e, (session *)j, status, message);
    else
        encode_fail(e, (enc_job *)j, status, message);
}

static void end_early(engine *e, job *j)
{
    bool cancelled = atomic_load(&j->cancelled);
    if (j->over && !cancelled)
        end_job(e, j, 0, NULL);
    else
        end_job(e, j, cancelled ? SHOAL_ECANCELLED : SHOAL_EDEADLINE, cancelled ? CANCELLED : LATE);
}

/* A list by `next`. */
static void end_each(engine *e, job *dead)
{
    for (job *next; dead; dead = next) {
        next = dead->next;
        end_early(e, dead);
    }
}

static void reap(engine *e)
{
    uint64_t now = clock_ns();
    pthread_mutex_lock(&e->lock);
    job *dead = job_queue_reap(&e->queue, now), *dropped = e->dropped;
    e->dropped = NULL;
    pthread_mutex_unlock(&e->lock);
    end_each(e, dropped);
    end_each(e, dead);
    for (size_t i = e->n_running; i-- > 0;) {
        session *s = e->running[i];
        if (s->aloft || !job_queue_is_dead(&s->job, now)) continue;
        loop_take_out(e, s, NULL);
        end_early(e, &s->job);
    }
}

/* Is there anything but generations that rest or wait for others' votes, and anything to clear away of these?
 * Under the lock. */
static bool has_work(const engine *e, uint64_t now_ns)
{
    if (e->dropped) return true;
    for (size_t i = 0; i < e->n_running; i++)
        if (!session_awaits(e->running[i]) || e->running[i]->ballot->given) return true;
    for (size_t i = 0; i < e->n_running; i++)
        if (job_queue_is_dead(&e->running[i]->job, now_ns)) return true;
    for (const job *j = e->queue.head; j; j = j->next)
        if (!atomic_load(&j->paused) || job_queue_is_dead(j, now_ns)) return true;
    return false;
}

/* Until somebody wakes us, or a generation that rests may have missed its deadline. */
static void sleep_a_while(engine *e)
{
    struct timespec until;
    if (!e->queue.head && e->n_running == 0) {
        pthread_cond_wait(&e->wake, &e->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += REST_LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&e->wake, &e->lock, &until);
}

/* Wait for work; false when the engine closes. */
static bool wait_for_work(engine *e)
{
    progress_end();
    pthread_mutex_lock(&e->lock);
    while (!e->stopping && !has_work(e, clock_ns())) sleep_a_while(e);
    progress_begin();
    bool go = !e->stopping;
    pthread_mutex_unlock(&e->lock);
    return go;
}

static void end_all(engine *e)
{
    decode_abandon(e);
    reap(e);
    while (e->n_running > 0) {
        session *s = e->running[e->n_running - 1];
        loop_take_out(e, s, NULL);
        loop_end(e, s, SHOAL_ECANCELLED, CLOSING);
    }
    for (;;) {
        pthread_mutex_lock(&e->lock);
        job *j = job_queue_pop(&e->queue);
        pthread_mutex_unlock(&e->lock);
        if (!j) return;
        end_job(e, j, SHOAL_ECANCELLED, CLOSING);
    }
}

void loop_run(engine *e)
{
    progress_begin();
    while (wait_for_work(e)) {
        progress_tick();
        reap(e);
        if (e->o.shards && !decode_ready(e)) continue;
        if (e->ops->roles & NET_DECODES) decode_elect(e);
        if (e->ops->roles & NET_DECODES) slots_admit(e);
        if (e->ops->roles & NET_ENCODES) encode_step(e);
        if (e->n_running > 0) decode_step(e);
    }
    end_all(e);
    progress_end();
}
