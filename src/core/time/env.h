/* env.h: time, the date, timers and chance as arguments.
 *
 * Whoever waits, measures or draws takes a `const env *` and asks it; nothing in there reads a clock. In life
 * it is env_uv (wire/env_uv.h), in a test env_sim (time/env_sim.h): hours of a cluster in milliseconds, the
 * same each time. One thread: that of the loop, or of the simulation.
 *
 *     env_timer *t = e->timer_new(e->user, fn, arg);
 *     e->timer_start(t, 200);      // fn(arg) once, in 200 ms; start again from fn for a beat
 *     e->timer_free(t);            // from fn, too
 */
#ifndef TIME_ENV_H
#define TIME_ENV_H

#include <stdint.h>

typedef struct env_timer env_timer;

typedef struct env {
    uint64_t (*now_ns)(void *user); /* monotonic */
    /* The same less the time in which this process could not hear anybody: for the silence of peers
     * (wire/listening.h). */
    uint64_t (*listening_ns)(void *user);
    /* Nanoseconds since 1970, which may jump: for dates that are shown or written down. */
    int64_t (*wall_ns)(void *user);
    /* A timer that stands; NULL: out of memory. */
    env_timer *(*timer_new)(void *user, void (*fn)(void *), void *arg);
    /* Run fn once, ms from now; a running timer begins anew. Cannot fail. What was started from another
     * timer's fn runs only after the loop has read what was there to be read, however small ms is. */
    void (*timer_start)(env_timer *, uint64_t ms /*once*/);
    void (*timer_stop)(env_timer *); /* fn is not called any more; accepts NULL */
    void (*timer_free)(env_timer *); /* stops it; accepts NULL */
    uint64_t (*random)(void *user);
    void *user;
} env;

static inline uint64_t env_now_ns(const env *e)
{
    return e->now_ns(e->user);
}

static inline int64_t env_wall_ns(const env *e)
{
    return e->wall_ns(e->user);
}

static inline int64_t env_wall_s(const env *e)
{
    return e->wall_ns(e->user) / 1000000000;
}

#endif
