/* agent_watch.c: which workers hang, which only wait for a core (cluster/liveness.h), and the end of the
 * former.
 *
 * Where a worker stands is read from its place in the arbiter's page; its threads are looked at only while a
 * counter stands still although something is expected of it. */
#include "agent/agent_impl.h"

#include <signal.h>
#include <string.h>

#include "logging/log.h"

enum { ASKED_NS = 20000000 }; /* looks of an agent that is asked are that far apart */

/* Without a counter any use of the processor may be work. */
#define LIMITS_UNCOUNTED \
    ((liveness_limits){  \
        .cpu_ms = 10000, .asleep_ms = 500, .stopped_ms = 150, .disk_ms = 30000, .beside_ms = 10000})

typedef struct view { /* of a worker, now */
    uint64_t now_ns;
    uint64_t work, loop, turn; /* counters; turn: of the arbiter's lock */
    bool works, owes, inside;  /* what is to get on: threads that compute, the loop, who has the lock */
    bool loops, counted;       /* it has started; there are counters */
    bool queued;
} view;

static progress_counts *counters_of(const child *c)
{
    const agent *a = c->a;
    return a->has_arbiter && a->arbiter.progress ? a->arbiter.progress(a->arbiter.user, c->slot) : NULL;
}

static view view_of(const child *c)
{
    const agent *a = c->a;
    const replica *r = registry_get(a->g, c->id);
    progress_counts *p = counters_of(c);
    view v = {.now_ns = agent_now_ns(a), .owes = r && r->state == REPLICA_READY && r->silent, .counted = p};
    if (!p) return v;
    v.work = atomic_load_explicit(&p->work, memory_order_relaxed);
    v.loop = atomic_load_explicit(&p->loop, memory_order_relaxed);
    v.works = atomic_load_explicit(&p->n_working, memory_order_relaxed) > 0;
    v.loops = atomic_load_explicit(&p->loops, memory_order_relaxed) != 0;
    v.inside = a->arbiter.inside(a->arbiter.user, &v.turn) == c->slot;
    v.queued = a->arbiter.queues(a->arbiter.user, c->slot);
    return v;
}

static bool stands_still(const view *v, const child_watch *w)
{
    return (v->works && v->work == w->work.progress) || (v->owes && v->loop == w->loop.progress) ||
           (v->inside && v->turn == w->lock.progress);
}

static void look_with(liveness *l, const child_watch *w, const threads *now, const view *v, threads_group g,
                      uint64_t count, bool busy)
{
    liveness_sample s = {.now_ns = v->now_ns, .progress = count, .busy = busy};
    if (now) threads_compare(&s, w->has_seen ? &w->seen : NULL, now, g);
    s.queued = v->queued && g != THREADS_FIRST;
    liveness_look(l, &s);
}

static void agent_watch_look(child *c, const view *v, bool asked)
{
    child_watch *w = &c->watch;
    threads now;
    bool must = asked || stands_still(v, w);
    bool known = must && threads_read(&now, "", c->process.pid);
    w->work.limits = v->loops ? LIVENESS_WORK : LIVENESS_START;
    w->loop.limits = v->counted ? LIVENESS_LOOP : LIMITS_UNCOUNTED;
    w->lock.limits = LIVENESS_LOCK;
    const threads *t = known ? &now : NULL;
    threads_group workers = v->loops ? THREADS_OTHERS : THREADS_ALL;
    look_with(&w->work, w, t, v, workers, v->work, v->works);
    look_with(&w->loop, w, t, v, v->counted ? THREADS_FIRST : THREADS_ALL, v->loop, v->owes);
    look_with(&w->lock, w, t, v, workers, v->turn, v->inside);
    w->has_seen = known;
    if (known) w->seen = now;
    w->works = v->works;
    w->looked_ns = v->now_ns;
}

static bool kill_if_hung(child *c, const liveness *l, const char *what)
{
    if (l->verdict != LIVENESS_HUNG) return false;
    LOG(LOG_ERROR, "agent", "worker_wedged", LOG_S("replica", c->id), LOG_I("pid", c->process.pid),
        LOG_S("what", what), LOG_S("reason", l->why));
    life_kill(c->life, SIGKILL);
    c->watch.killed = true;
    return true;
}

void agent_watch(void *user)
{
    agent *a = user;
    a->e->timer_start(a->watch, AGENT_WATCH_MS);
    log_tell_repeats(false);
    for (size_t i = 0; i < a->n; i++) {
        child *c = a->children[i];
        if (!c->life || c->watch.killed) continue;
        view v = view_of(c);
        agent_watch_look(c, &v, false);
        if (kill_if_hung(c, &c->watch.lock, "the arbiter's lock")) continue;
        if (kill_if_hung(c, &c->watch.work, v.loops ? "requests" : "its start")) continue;
        kill_if_hung(c, &c->watch.loop, "an answer");
    }
}

static bool first_thread_waits(const threads *t)
{
    return t->n > 0 && t->at[0].tid == t->pid && t->at[0].state == 'R';
}

/* The loop's thread is not counted upon while no answer is owed; that it wants a core is seen at once. */
bool child_is_at_work(void *worker)
{
    child *c = worker;
    child_watch *w = &c->watch;
    if (!c->life || w->killed) return false;
    if (agent_now_ns(c->a) - w->looked_ns >= ASKED_NS) {
        view v = view_of(c);
        agent_watch_look(c, &v, true);
    }
    bool works = w->works && w->work.verdict <= LIVENESS_STARVED;
    bool loop_waits = w->has_seen && first_thread_waits(&w->seen) && w->loop.verdict <= LIVENESS_STARVED;
    return works || loop_waits;
}
