/* env_uv.c: libuv's timers under the names of env.h. */
#include "wire/env_uv.h"

#include <stdlib.h>

#include "base/clock.h"
#include "wire/listening.h"

struct env_timer {
    uv_timer_t uv; /* first */
    void (*fn)(void *);
    void *arg;
};

static uint64_t real_now_ns(void *user)
{
    return clock_ns();
}

static uint64_t real_listening_ns(void *user)
{
    return listening_ns();
}

static int64_t real_wall_ns(void *user)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t real_random(void *user)
{
    uint64_t x;
    rng_draw(&x, sizeof x);
    return x;
}

static void fired(uv_timer_t *h)
{
    env_timer *t = (env_timer *)h;
    t->fn(t->arg); /* may free it */
}

static env_timer *real_timer_new(void *user, void (*fn)(void *), void *arg)
{
    env_timer *t = malloc(sizeof *t);
    if (!t) return NULL;
    uv_timer_init(user, &t->uv);
    t->fn = fn;
    t->arg = arg;
    return t;
}

/* libuv 1.44 runs a timer of 0 ms that a timer starts in the same pass, before it reads any socket. */
static void real_timer_start(env_timer *t, uint64_t ms)
{
    uv_timer_start(&t->uv, fired, ms > 0 ? ms : 1, 0);
}

static void real_timer_stop(env_timer *t)
{
    if (t) uv_timer_stop(&t->uv);
}

static void timer_closed(uv_handle_t *h)
{
    free(h);
}

static void real_timer_free(env_timer *t)
{
    if (t) uv_close((uv_handle_t *)&t->uv, timer_closed);
}

env env_uv(uv_loop_t *loop)
{
    return (env){.now_ns = real_now_ns,
                 .listening_ns = real_listening_ns,
                 .wall_ns = real_wall_ns,
                 .timer_new = real_timer_new,
                 .timer_start = real_timer_start,
                 .timer_stop = real_timer_stop,
                 .timer_free = real_timer_free,
                 .random = real_random,
                 .user = loop};
}
