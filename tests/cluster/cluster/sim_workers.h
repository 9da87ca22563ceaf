/* Workers of a simulated cluster, behind connector.h: each lives at an address, says who it is, answers polls
 * after a while, and can be killed, frozen, cut off one way or both, or started again. Calls to "/work" end
 * after the worker's ms; what other calls do is the business of the world's sim_service. */
#ifndef TESTS_CLUSTER_SIM_WORKERS_H
#define TESTS_CLUSTER_SIM_WORKERS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "time/env_sim.h"
#include "base/strmap.h"
#include "cluster/connector.h"
#include "shoal/v1/worker.pb-c.h"

enum {
    SIM_HOP_MS = 1,        /* there, and back again */
    SIM_CONNECT_MS = 1000, /* without an answer nobody is there */
};

typedef struct sim_call sim_call;
typedef struct sim_channel sim_channel;
typedef struct sim_world sim_world;

typedef struct sim_worker {
    char address[40], digest[16];
    bool runs, frozen;
    bool cut_in, cut_out;       /* what is sent to it, or by it, waits until the link is mended */
    const char *version;        /* NULL: "" */
    const char *identity;       /* NULL: it is older than identities */
    bool exact_resume;          /* with an identity */
    const char *adapter_digest; /* of its adapter "polite"; NULL: it has none */
    uint32_t n_parallel;        /* 0: 4 */
    uint64_t call_ms;
    uint32_t n_running;
    uint64_t n_steps, run_delay_ms;
    bool steps; /* n_steps rises with each look at it */
    unsigned n_polls, n_calls;
    sim_channel *channels; /* that are connected */
    void *user;
} sim_worker;

/* Calls of other paths than those that every worker knows. */
typedef struct sim_service {
    void (*begin)(sim_call *c, const void *msg, size_t n); /* starts c->answer */
    void (*step)(sim_call *c);                             /* it fired, and the worker could speak */
    void (*forget)(sim_call *c);                           /* frees c->job */
    void (*describe)(const sim_worker *x, Shoal__V1__ModelInfo *ret);
    void (*measure)(const sim_worker *x, Shoal__V1__Stats *ret);
} sim_service;

struct sim_world {
    env_sim *time;
    const env *e;
    strmap workers;
    size_t n_channels, n_calls; /* open */
    const sim_service *service; /* may be NULL */
};

struct sim_channel {
    sim_channel *next, *prev; /* among those of the worker */
    sim_world *w;
    sim_worker *to;
    char address[40];
    grpc_channel_events ev;
    bool connected, waits;
    env_timer *timer;
    sim_call *calls;
};

struct sim_call {
    sim_call *next, *prev;
    sim_channel *ch;
    grpc_client_events ev;
    const char *path;
    env_timer *answer, *deadline;
    bool arrived, held, paused; /* held: it would speak, and cannot */
    void *job;                  /* the service's */
};

static void sim_call_free(sim_call *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->ch->calls = c->next;
    if (c->next) c->next->prev = c->prev;
    if (c->job) c->ch->w->service->forget(c);
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
    uint8_t bytes[512];
    char *adapters[] = {"polite"}, *digests[] = {(char *)c->ch->to->adapter_digest};
    m.task = "classify";
    if (digests[0]) {
        m.adapters = adapters;
        m.adapter_digests = digests;
        m.n_adapters = m.n_adapter_digests = 1;
    }
    m.digest = c->ch->to->digest;
    m.n_parallel = c->ch->to->n_parallel ? c->ch->to->n_parallel : 4;
    if (c->ch->to->version) m.version = (char *)c->ch->to->version;
    if (c->ch->to->identity) m.identity = (char *)c->ch->to->identity;
    m.exact_resume = c->ch->to->exact_resume;
    if (c->ch->w->service) c->ch->w->service->describe(c->ch->to, &m);
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
    m.run_delay_ms = w->run_delay_ms;
    if (c->ch->w->service) c->ch->w->service->measure(w, &m);
    c->ev.message(c->ev.user, bytes, shoal__v1__stats__pack(&m, bytes));
}

static void sim_answer(void *arg)
{
    sim_call *c = arg;
    sim_channel *ch = c->ch;
    c->held = ch->to->frozen || ch->to->cut_out || !c->arrived;
    if (c->held) return; /* asked again when it thaws */
    if (c->job) {
        ch->w->service->step(c);
        return;
    }
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
    *c = (sim_call){.next = ch->calls, .ch = ch, .ev = *ev, .path = path, .arrived = !ch->to->cut_in};
    if (ch->calls) ch->calls->prev = c;
    ch->calls = c;
    ch->w->n_calls++;
    c->answer = e->timer_new(e->user, sim_answer, c);
    c->deadline = deadline_ns ? e->timer_new(e->user, sim_late, c) : NULL;
    bool work = strcmp(path, "/work") == 0, known = strstr(path, "/Describe") || strstr(path, "/GetStats");
    ch->to->n_calls += !known;
    if (known || work)
        e->timer_start(c->answer, 2 * SIM_HOP_MS + (work ? ch->to->call_ms : 0));
    else
        ch->w->service->begin(c, msg, n);
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
    bool cut = ch->to && (ch->to->cut_in || ch->to->cut_out);
    if (cut && !ch->waits) {
        ch->waits = true;
        ch->w->e->timer_start(ch->timer, SIM_CONNECT_MS);
        return;
    }
    ch->waits = false;
    if (cut || !ch->to || !ch->to->runs) {
        ch->ev.disconnected(ch->ev.user, cut ? "timed out" : "connection refused");
        return;
    }
    ch->connected = true;
    ch->prev = NULL;
    ch->next = ch->to->channels;
    if (ch->next) ch->next->prev = ch;
    ch->to->channels = ch;
    ch->ev.connected(ch->ev.user);
}

static void sim_unlink(sim_channel *ch)
{
    if (!ch->connected) return;
    ch->connected = false;
    if (ch->prev)
        ch->prev->next = ch->next;
    else
        ch->to->channels = ch->next;
    if (ch->next) ch->next->prev = ch->prev;
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
    *ch = (sim_channel){.w = w, .ev = *ev};
    snprintf(ch->address, sizeof ch->address, "%s", address);
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
    sim_channel *ch = (sim_channel *)gch;
    sim_unlink(ch);
    while (ch->calls) sim_call_end(ch->calls, GRPC_CANCELLED, "closed");
    ch->w->n_channels--;
    ch->w->e->timer_free(ch->timer);
    free(ch);
}

static void sim_pause(grpc_client_call *c, bool paused)
{
    ((sim_call *)c)->paused = paused;
}

static connector sim_connector(sim_world *w)
{
    return (connector){.open = sim_open,
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
static void sim_break(sim_worker *x)
{
    for (sim_channel *ch; (ch = x->channels);) {
        sim_unlink(ch);
        while (ch->calls) sim_call_end(ch->calls, GRPC_UNAVAILABLE, "connection lost");
        ch->ev.disconnected(ch->ev.user, "connection lost");
    }
}

static inline void sim_kill(sim_world *w, sim_worker *x)
{
    x->runs = false;
    sim_break(x);
}

static void sim_go_on(sim_world *w, sim_worker *x)
{
    for (sim_channel *ch = x->channels; ch; ch = ch->next)
        for (sim_call *c = ch->calls; c; c = c->next) {
            c->arrived |= !x->cut_in;
            if (c->held) w->e->timer_start(c->answer, SIM_HOP_MS);
        }
}

static inline void sim_freeze(sim_world *w, sim_worker *x, bool frozen)
{
    x->frozen = frozen;
    if (!frozen) sim_go_on(w, x);
}

static inline void sim_cut(sim_world *w, sim_worker *x, bool in, bool out)
{
    x->cut_in = in;
    x->cut_out = out;
    if (!in || !out) sim_go_on(w, x);
}

#endif
