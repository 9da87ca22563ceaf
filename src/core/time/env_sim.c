/* env_sim.c: a binary heap of timers, which know their places in it. */
#include "time/env_sim.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

#define START_NS   1000000000ull /* not 0, which many a field takes for "never" */
#define START_S    1767225600ll  /* 2026-01-01T00:00:00Z */
#define NS_PER_MS  1000000ull
#define NOT_QUEUED SIZE_MAX

struct env_timer {
    env_sim *s;
    void (*fn)(void *);
    void *arg;
    uint64_t due_ns, order;
    size_t at; /* in the heap */
};

struct env_sim {
    env env;
    uint64_t now_ns, deaf_ns, seed, n_drawn, n_started;
    env_timer **heap; /* room for all timers there are, so that starting one cannot fail */
    size_t n, cap, n_timers;
};

/* ---- the heap ------------------------------------------------------------------------------------ */

static bool is_before(const env_timer *a, const env_timer *b)
{
    return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->order < b->order);
}

static void place(env_sim *s, env_timer *t, size_t at)
{
    s->heap[at] = t;
    t->at = at;
}

/* From `at` to where t belongs, up or down. */
static void sift(env_sim *s, env_timer *t, size_t at)
{
    for (; at > 0 && is_before(t, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        place(s, s->heap[(at - 1) / 2], at);
    for (size_t k; (k = 2 * at + 1) < s->n; at = k) {
        if (k + 1 < s->n && is_before(s->heap[k + 1], s->heap[k])) k++;
        if (!is_before(s->heap[k], t)) break;
        place(s, s->heap[k], at);
    }
    place(s, t, at);
}

static void dequeue(env_timer *t)
{
    env_sim *s = t->s;
    size_t at = t->at;
    if (at == NOT_QUEUED) return;
    env_timer *last = s->heap[--s->n];
    t->at = NOT_QUEUED;
    if (last != t) sift(s, last, at);
}

/* ---- what env promises --------------------------------------------------------------------------- */

static uint64_t sim_now_ns(void *user)
{
    return ((env_sim *)user)->now_ns;
}

static uint64_t sim_listening_ns(void *user)
{
    const env_sim *s = user;
    return s->now_ns - s->deaf_ns;
}

static int64_t sim_wall_ns(void *user)
{
    return START_S * 1000000000 + (int64_t)(((env_sim *)user)->now_ns - START_NS);
}

static uint64_t sim_random(void *user)
{
    env_sim *s = user;
    return rng_mix(rng_mix(s->seed) ^ ++s->n_drawn);
}

static bool reserve(env_sim *s)
{
    if (s->n_timers < s->cap) return true;
    size_t cap = s->cap ? 2 * s->cap : 64;
    env_timer **p = realloc(s->heap, cap * sizeof *p);
    if (!p) return false;
    s->heap = p;
    s->cap = cap;
    return true;
}

static env_timer *sim_timer_new(void *user, void (*fn)(void *), void *arg)
{
    env_sim *s = user;
    env_timer *t = reserve(s) ? malloc(sizeof *t) : NULL;
    if (!t) return NULL;
    *t = (env_timer){.s = s, .fn = fn, .arg = arg, .at = NOT_QUEUED};
    s->n_timers++;
    return t;
}

static void sim_timer_stop(env_timer *t)
{
    if (t) dequeue(t);
}

static void sim_timer_start(env_timer *t, uint64_t ms)
{
    env_sim *s = t->s;
    dequeue(t);
    t->due_ns = s->now_ns + ms * NS_PER_MS;
    t->order = s->n_started++;
    sift(s, t, s->n++);
}

static void sim_timer_free(env_timer *t)
{
    if (!t) return;
    dequeue(t);
    t->s->n_timers--;
    free(t);
}

/* ---- the simulation ------------------------------------------------------------------------------ */

env_sim *env_sim_new(uint64_t seed)
{
    env_sim *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->seed = seed;
    s->now_ns = START_NS;
    s->env = (env){.now_ns = sim_now_ns,
                   .listening_ns = sim_listening_ns,
                   .wall_ns = sim_wall_ns,
                   .timer_new = sim_timer_new,
                   .timer_start = sim_timer_start,
                   .timer_stop = sim_timer_stop,
                   .timer_free = sim_timer_free,
                   .random = sim_random,
                   .user = s};
    return s;
}

void env_sim_free(env_sim *s)
{
    if (!s) return;
    assert(s->n_timers == 0);
    free(s->heap);
    free(s);
}

const env *env_sim_env(const env_sim *s)
{
    return &s->env;
}

bool env_sim_step(env_sim *s)
{
    if (s->n == 0) return false;
    env_timer *t = s->heap[0];
    dequeue(t);
    if (t->due_ns > s->now_ns) s->now_ns = t->due_ns; /* it is late after a stall */
    t->fn(t->arg);                                    /* may free it */
    return true;
}

void env_sim_run(env_sim *s, uint64_t ms)
{
    uint64_t end_ns = s->now_ns + ms * NS_PER_MS;
    while (s->n > 0 && s->heap[0]->due_ns <= end_ns) env_sim_step(s);
    if (end_ns > s->now_ns) s->now_ns = end_ns;
}

void env_sim_stall(env_sim *s, uint64_t ms)
{
    s->now_ns += ms * NS_PER_MS;
    s->deaf_ns += ms * NS_PER_MS;
}

size_t env_sim_timers(const env_sim *s)
{
    return s->n_timers;
}
