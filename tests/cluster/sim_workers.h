/* Workers of a simulated cluster, behind reach.h: each lives at an address, says who it is, answers polls
 * after a while, and can be killed, frozen or started again. Calls to "/work" end after the worker's ms. */
#ifndef TESTS_CLUSTER_SIM_WORKERS_H
#define TESTS_CLUSTER_SIM_WORKERS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strmap.h"
#include "cluster/reach.h"
#include "base/env_sim.h"
#include "shoal/v1/worker.pb-c.h"

enum { SIM_HOP_MS = 1 }; /* there, and back again */

typedef struct sim_worker {
    char address[40], digest[16];
    bool runs, frozen;
    uint64_t call_ms;
    uint32_t n_running;
    uint64_t n_steps;
    bool steps; /* n_steps rises with each look at it */
    unsigned n_polls, n_calls;
} sim_worker;

typedef struct sim_world {
    env_sim *time;
    const env *e;
    strmap workers;
    struct sim_channel *channels;
    size_t n_channels, n_calls; /* open */
} sim_world;

typedef struct sim_call sim_call;

typedef struct sim_channel {
    struct sim_channel *next;
    sim_world *w;
    sim_worker *to;
    char address[40];
    grpc_channel_events ev;
    bool connected;
    env_timer *timer;
    sim_call *calls;
} sim_channel;

struct sim_call {
    sim_call *next;
    sim_channel *ch;
    grpc_client_events ev;
    const char *path;
    env_timer *answer, *deadline;
};

static void sim_call_free(sim_call *c)
{
    sim_call **at = &c->ch->calls;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    c->ch->w->n_calls--;
    c->ch->w->e->timer_free(c->answer);
    c->ch->w->e->timer_free(c->deadline);
    free(c);
}

static void sim_call_end(sim_call *c, grpc_status status, const char *message)
{
    grpc_client_events ev = c->ev;
    sim_call_free(c);
    ev.end(ev.user, status, message);
}

static void sim_say_who(sim_call *c)
{
    Shoal__V1__ModelInfo m = SHOAL__V1__MODEL_INFO__INIT;
    uint8_t bytes[128];
    m.task = "classify";
    m.digest = c->ch->to->digest;
    m.n_parallel = 4;
    c->ev.message(c->ev.user, bytes, shoal__v1__model_info__pack(&m, bytes));
}

static void sim_say_how(sim_call *c)
{
    sim_worker *w = c->ch->to;
    Shoal__V1__Stats m = SHOAL__V1__STATS__INIT;
    uint8_t bytes[128];
    w->n_polls++;
    m.n_running = w->n_running;
    m.n_steps = w->n_steps += w->steps;
    c->ev.message(c->ev.user, bytes, shoal__v1__stats__pack(&m, bytes));
}

static void sim_answer(void *arg)
{
    sim_call *c = arg;
    sim_channel *ch = c->ch;
    if (ch->to->frozen) return; /* asked again when it thaws */
    size_t n = ch->w->n_calls;
    if (strcmp(c->path, "/shoal.v1.Worker/Describe") == 0) sim_say_who(c);
    if (strcmp(c->path, "/shoal.v1.Worker/GetStats") == 0) sim_say_how(c);
    if (ch->w->n_calls == n) sim_call_end(c, GRPC_OK, NULL); /* a message's receiver may cancel */
}

static void sim_late(void *arg)
{
    sim_call_end(arg, GRPC_DEADLINE_EXCEEDED, "late");
}

static grpc_client_call *sim_start(grpc_channel *gch, const char *path, const void *msg, size_t n,
                                   const http_header *metadata, size_t n_metadata, uint64_t deadline_ns,
                                   const grpc_client_events *ev)
{
    sim_channel *ch = (sim_channel *)gch;
    const env *e = ch->w->e;
    if (!ch->connected) return NULL;
    sim_call *c = calloc(1, sizeof *c);
    *c = (sim_call){.next = ch->calls, .ch = ch, .ev = *ev, .path = path};
    ch->calls = c;
    ch->w->n_calls++;
    c->answer = e->timer_new(e->user, sim_answer, c);
    c->deadline = e->timer_new(e->user, sim_late, c);
    bool work = strcmp(path, "/work") == 0;
    ch->to->n_calls += work;
    e->timer_start(c->answer, 2 * SIM_HOP_MS + (work ? ch->to->call_ms : 0));
    if (deadline_ns) e->timer_start(c->deadline, (deadline_ns - e->now_ns(e->user)) / 1000000);
    return (grpc_client_call *)c;
}

static void sim_cancel(grpc_client_call *c)
{
    sim_call_free((sim_call *)c);
}

static void sim_connected(void *arg)
{
    sim_channel *ch = arg;
    ch->to = strmap_get(&ch->w->workers, ch->address);
    ch->connected = ch->to && ch->to->runs;
    if (ch->connected)
        ch->ev.connected(ch->ev.user);
    else
        ch->ev.disconnected(ch->ev.user, "connection refused");
}

static int sim_connect(grpc_channel *gch)
{
    sim_channel *ch = (sim_channel *)gch;
    if (!ch->connected) ch->w->e->timer_start(ch->timer, SIM_HOP_MS);
    return 0;
}

static int sim_open(void *user, grpc_channel **ret, const char *address, const grpc_channel_events *ev,
                    shoal_err *err)
{
    sim_world *w = user;
    if (strncmp(address, "sim:", 4) != 0) return err_set(err, SHOAL_EINVALID, "no such address: %s", address);
    sim_channel *ch = calloc(1, sizeof *ch);
    *ch = (sim_channel){.next = w->channels, .w = w, .ev = *ev};
    snprintf(ch->address, sizeof ch->address, "%s", address);
    w->channels = ch;
    w->n_channels++;
    ch->timer = w->e->timer_new(w->e->user, sim_connected, ch);
    *ret = (grpc_channel *)ch;
    return sim_connect(*ret);
}

static bool sim_is_connected(const grpc_channel *ch)
{
    return ((const sim_channel *)ch)->connected;
}

static void sim_close(grpc_channel *gch)
{
    sim_channel *ch = (sim_channel *)gch, **at = &ch->w->channels;
    ch->connected = false;
    while (ch->calls) sim_call_end(ch->calls, GRPC_CANCELLED, "closed");
    while (*at != ch) at = &(*at)->next;
    *at = ch->next;
    ch->w->n_channels--;
    ch->w->e->timer_free(ch->timer);
    free(ch);
}

static void sim_pause(grpc_client_call *c, bool paused) {}

static reach sim_reach(sim_world *w)
{
    return (reach){.open = sim_open,
                   .connect = sim_connect,
                   .is_connected = sim_is_connected,
                   .close = sim_close,
                   .start = sim_start,
                   .pause = sim_pause,
                   .cancel = sim_cancel,
                   .user = w};
}

static void sim_world_open(sim_world *w, uint64_t seed)
{
    *w = (sim_world){.time = env_sim_new(seed)};
    w->e = env_sim_env(w->time);
}

/* When the registry is gone: nothing may be left open. */
static void sim_world_close(sim_world *w)
{
    size_t at = 0;
    assert_int_equal(w->n_channels, 0);
    assert_int_equal(w->n_calls, 0);
    assert_int_equal(env_sim_timers(w->time), 0);
    for (sim_worker *x; (x = strmap_next(&w->workers, &at));) free(x);
    strmap_done(&w->workers);
    env_sim_free(w->time);
}

static sim_worker *sim_worker_at(sim_world *w, const char *address)
{
    sim_worker *x = strmap_get(&w->workers, address);
    if (x) return x;
    x = calloc(1, sizeof *x);
    *x = (sim_worker){.runs = true, .call_ms = 5, .steps = true, .digest = "d1"};
    snprintf(x->address, sizeof x->address, "%s", address);
    assert_true(strmap_put(&w->workers, x->address, x));
    return x;
}

/* Each connection to it breaks, with the calls on it. */
static void sim_kill(sim_world *w, sim_worker *x)
{
    x->runs = false;
    for (bool again = true; again;) {
        again = false;
        for (sim_channel *ch = w->channels; ch && !again; ch = ch->next) {
            if (!ch->connected || ch->to != x) continue;
            again = true;
            ch->connected = false;
            while (ch->calls) sim_call_end(ch->calls, GRPC_UNAVAILABLE, "connection lost");
            ch->ev.disconnected(ch->ev.user, "connection lost");
        }
    }
}

static inline void sim_freeze(sim_world *w, sim_worker *x, bool frozen)
{
    x->frozen = frozen;
    for (sim_channel *ch = w->channels; ch && !frozen; ch = ch->next)
        for (sim_call *c = ch->calls; c; c = c->next)
            if (ch->to == x) w->e->timer_start(c->answer, SIM_HOP_MS);
}

#endif
