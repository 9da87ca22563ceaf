/* registry.c: the table of replicas, and the contact that each is kept in. */
#include "cluster/replica.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cluster/pulse.h"

enum {
    RETRY_MIN_MS = 5, /* a starting worker listens after tens of milliseconds: look often at first */
    RETRY_MAX_MS = 25,
    DESCRIBE_TIMEOUT_MS = 5000,
    TICK_MS = 100,
    POLL_MS = 200,
    /* A worker that is stopped or wedged is found within 0.9 s: a poll, no answer, and a look at its process.
     */
    MISSED_MS = 300,   /* no answer for so long: no new calls */
    LOOK_MS = 200,     /* after as much again it is ended, unless it can be seen to do something */
    SILENT_MS = 10000, /* it does something, but never answers: the loop thread is wedged */
    STUCK_MS = 15000,  /* no step while requests run: the engine is */
};

/* A replica and what keeps it in touch with its worker. Lives until its timer is closed. */
typedef struct contact {
    replica r; /* first: the registry hands out pointers to it */
    registry *g;
    char *model, *id, *address;
    uv_timer_t retry;
    uint64_t retry_ms;
    bool wanted; /* the agent says that a process is there */
    grpc_client_call *describing, *polling;
    uint64_t polled_ns, looked_ns; /* when the poll began; when its process was last looked at */
    uint64_t stuck_ns;             /* since when it takes no steps; 0: it does */
    pulse pulse;                   /* of its process, then */
} contact;

struct registry {
    uv_loop_t *loop;
    contact **contacts;
    size_t n, cap;
    struct {
        registry_change_fn fn;
        void *user;
    } listeners[REGISTRY_MAX_LISTENERS];
    size_t n_listeners;
    uv_timer_t *tick; /* these are allocations of their own: closing takes a turn of the loop */
    uv_check_t *look;
};

static const char *const state_names[] = {
#define REPLICA_STATE_NAME(e, n) n,
    REPLICA_STATE_TABLE(REPLICA_STATE_NAME)
#undef REPLICA_STATE_NAME
};

const char *replica_state_name(replica_state s)
{
    return state_names[s];
}

static void free_handle(uv_handle_t *h)
{
    free(h);
}

/* ---- states ------------------------------------------------------------------------------------ */

static void set_state(contact *l, replica_state s, const char *reason)
{
    registry *g = l->g;
    if (l->r.state == s && s != REPLICA_DOWN) return;
    bool expected = l->r.state == REPLICA_DRAINING;
    log_level level = s == REPLICA_FAILED ? LOG_ERROR : s == REPLICA_DOWN && !expected ? LOG_WARN : LOG_INFO;
    l->r.state = s;
    snprintf(l->r.reason, sizeof l->r.reason, "%s", reason ? reason : "");
    LOG(level, "registry", "replica_state", LOG_S("replica", l->r.id), LOG_S("state", replica_state_name(s)),
        LOG_S("reason", l->r.reason), LOG_I("pid", l->r.pid));
    for (size_t i = 0; i < g->n_listeners; i++) g->listeners[i].fn(g->listeners[i].user, &l->r);
}

static void retry_now(uv_timer_t *t);

static void retry_later(contact *l)
{
    if (!l->wanted) return;
    uv_timer_start(&l->retry, retry_now, l->retry_ms, 0);
    if (l->retry_ms < RETRY_MAX_MS) l->retry_ms += l->retry_ms / 2 + 1;
}

/* ---- describe ---------------------------------------------------------------------------------- */

static void described(void *user, const uint8_t *msg, size_t n)
{
    contact *l = user;
    Shoal__V1__ModelInfo *info = shoal__v1__model_info__unpack(NULL, n, msg);
    if (l->r.info) shoal__v1__model_info__free_unpacked(l->r.info, NULL);
    l->r.info = info; /* NULL, for want of memory, is asked for again; the old one may not be true any more */
}

static void describe_ended(void *user, grpc_status status, const char *message)
{
    contact *l = user;
    l->describing = NULL;
    if (status == GRPC_OK && l->r.info && l->wanted) {
        l->retry_ms = RETRY_MIN_MS;
        if (l->r.state != REPLICA_DRAINING) set_state(l, REPLICA_READY, NULL);
        return;
    }
    LOG(LOG_DEBUG, "registry", "describe_failed", LOG_S("replica", l->r.id),
        LOG_S("status", grpc_status_name(status)), LOG_S("message", message));
    retry_later(l);
}

static void describe(contact *l)
{
    if (l->describing) return;
    grpc_client_events ev = {.user = l, .message = described, .end = describe_ended};
    uint64_t deadline = clock_ns() + DESCRIBE_TIMEOUT_MS * 1000000ull;
    l->describing = grpc_call_start(l->r.channel, "/shoal.v1.Worker/Describe", "", 0, NULL, 0, deadline, &ev);
    if (!l->describing) retry_later(l);
}

/* ---- the connection ---------------------------------------------------------------------------- */

static void connect_contact(contact *l);

static void retry_now(uv_timer_t *t)
{
    contact *l = t->data;
    if (!l->r.channel)
        connect_contact(l);
    else if (grpc_channel_is_connected(l->r.channel))
        describe(l);
    else if (grpc_channel_connect(l->r.channel) != 0)
        retry_later(l); /* no memory now, and no event will come */
}

static void connected(void *user)
{
    contact *l = user;
    if (l->wanted) describe(l);
}

static void disconnected(void *user, const char *why)
{
    contact *l = user;
    if (l->r.state == REPLICA_READY) {
        l->retry_ms = RETRY_MIN_MS;
        set_state(l, REPLICA_DOWN, why);
    }
    retry_later(l);
}

static void connect_contact(contact *l)
{
    grpc_channel_events ev = {.user = l, .connected = connected, .disconnected = disconnected};
    shoal_err err;
    int rc = grpc_channel_new(&l->r.channel, l->g->loop, l->address, &ev, &err);
    if (rc == SHOAL_EINVALID) {
        l->wanted = false;
        set_state(l, REPLICA_FAILED, err.message);
    } else if (rc != 0) {
        retry_later(l);
    }
}

void registry_set_state(registry *g, replica *r, replica_state s, const char *reason)
{
    contact *l = (contact *)r;
    l->wanted = s == REPLICA_STARTING || s == REPLICA_READY || s == REPLICA_DRAINING;
    if (!l->wanted) uv_timer_stop(&l->retry);
    l->r.wedged = l->r.silent = false;
    l->stuck_ns = 0;
    set_state(l, s == REPLICA_READY ? REPLICA_STARTING : s, reason);
    if (s != REPLICA_STARTING && s != REPLICA_READY) return;
    l->retry_ms = RETRY_MIN_MS;
    retry_now(&l->retry);
}

/* ---- stats ------------------------------------------------------------------------------------- */

/* A process that lives and does nothing is worse than a dead one: take it out, and have it ended. */
static void give_up(contact *l, const char *why)
{
    l->stuck_ns = 0;
    l->r.wedged = true;
    if (l->polling) grpc_client_cancel(l->polling);
    l->polling = NULL;
    set_state(l, REPLICA_DOWN, why);
}

/* A worker with running requests takes a step every few milliseconds, however busy the machine is. */
static bool is_stuck(contact *l, const Shoal__V1__Stats *now)
{
    const Shoal__V1__Stats *before = l->r.stats;
    bool still = before && now->n_running > 0 && now->n_steps == before->n_steps;
    if (!still)
        l->stuck_ns = 0;
    else if (l->stuck_ns == 0)
        l->stuck_ns = clock_ns();
    return still && clock_ms_since(l->stuck_ns) >= STUCK_MS;
}

static void polled(void *user, const uint8_t *msg, size_t n)
{
    contact *l = user;
    Shoal__V1__Stats *s = shoal__v1__stats__unpack(NULL, n, msg);
    if (!s) return;
    bool stuck = is_stuck(l, s);
    if (l->r.stats) shoal__v1__stats__free_unpacked(l->r.stats, NULL);
    l->r.stats = s;
    l->r.silent = false;
    if (stuck) give_up(l, "the engine takes no steps");
}

static void poll_ended(void *user, grpc_status status, const char *message)
{
    contact *l = user;
    l->polling = NULL;
}

static void poll(contact *l)
{
    grpc_client_events ev = {.user = l, .message = polled, .end = poll_ended};
    l->polled_ns = clock_ns();
    l->polling = grpc_call_start(l->r.channel, "/shoal.v1.Worker/GetStats", "", 0, NULL, 0, 0, &ev);
}

/* No answer can be chance, or one long turn of its loop: it gets no new calls until it answers. */
static void note_silence(contact *l)
{
    l->r.silent = true;
    l->looked_ns = clock_ns();
    l->pulse = (pulse){0};
    pulse_take(l->r.pid, &l->pulse);
    LOG(LOG_INFO, "registry", "worker_silent", LOG_S("replica", l->r.id), LOG_I("pid", l->r.pid));
}

/* Still none. Of a worker on another machine only its silence is known. */
static void look_at_silent(contact *l)
{
    pulse before = l->pulse;
    l->looked_ns = clock_ns();
    if (pulse_take(l->r.pid, &l->pulse) && !pulse_is_alive(&before, &l->pulse))
        give_up(l, "the worker does not answer, and does nothing");
    else if (clock_ms_since(l->polled_ns) >= SILENT_MS)
        give_up(l, "the worker does not answer");
}

/* After the loop has read what there was to read: an answer that waits for us is no silence of the worker. */
static void look_at_all(uv_check_t *h)
{
    registry *g = h->data;
    uv_check_stop(h);
    for (size_t i = 0; i < g->n; i++) {
        contact *l = g->contacts[i];
        if (l->r.state != REPLICA_READY) continue;
        if (!l->polling) {
            l->r.silent = false;
            if (clock_ms_since(l->polled_ns) >= POLL_MS) poll(l);
        } else if (!l->r.silent) {
            if (clock_ms_since(l->polled_ns) >= MISSED_MS) note_silence(l);
        } else if (clock_ms_since(l->looked_ns) >= LOOK_MS) {
            look_at_silent(l);
        }
    }
}

static void tick(uv_timer_t *t)
{
    registry *g = t->data;
    uv_check_start(g->look, look_at_all);
}

/* ---- the table --------------------------------------------------------------------------------- */

int registry_new(registry **ret, uv_loop_t *loop, shoal_err *err)
{
    registry *g = calloc(1, sizeof *g);
    uv_timer_t *t = calloc(1, sizeof *t);
    uv_check_t *look = calloc(1, sizeof *look);
    if (!g || !t || !look) {
        free(g);
        free(t);
        free(look);
        return err_nomem(err);
    }
    *g = (registry){.loop = loop, .tick = t, .look = look};
    uv_timer_init(loop, t);
    uv_check_init(loop, look);
    t->data = look->data = g;
    uv_timer_start(t, tick, TICK_MS, TICK_MS);
    uv_unref((uv_handle_t *)t); /* looking at others keeps no process alive */
    uv_unref((uv_handle_t *)look);
    *ret = g;
    return 0;
}

static void contact_free(contact *l)
{
    if (l->r.info) shoal__v1__model_info__free_unpacked(l->r.info, NULL);
    if (l->r.stats) shoal__v1__stats__free_unpacked(l->r.stats, NULL);
    free(l->model);
    free(l->id);
    free(l->address);
    free(l);
}

static void contact_closed(uv_handle_t *h)
{
    contact_free(h->data);
}

static void contact_close(contact *l)
{
    l->wanted = false;
    if (l->describing) grpc_client_cancel(l->describing);
    if (l->polling) grpc_client_cancel(l->polling);
    if (l->r.channel) grpc_channel_close(l->r.channel);
    uv_close((uv_handle_t *)&l->retry, contact_closed);
}

void registry_free(registry *g)
{
    if (!g) return;
    g->n_listeners = 0;
    for (size_t i = 0; i < g->n; i++) contact_close(g->contacts[i]);
    uv_close((uv_handle_t *)g->tick, free_handle);
    uv_close((uv_handle_t *)g->look, free_handle);
    free(g->contacts);
    free(g);
}

static int grow(registry *g, shoal_err *err)
{
    if (g->n < g->cap) return 0;
    size_t cap = g->cap ? 2 * g->cap : 8;
    contact **p = realloc(g->contacts, cap * sizeof *p);
    if (!p) return err_nomem(err);
    g->contacts = p;
    g->cap = cap;
    return 0;
}

int registry_add(registry *g, const char *model, const char *id, const char *address, replica **ret,
                 shoal_err *err)
{
    int rc = grow(g, err);
    if (rc != 0) return rc;
    contact *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    l->g = g;
    l->model = strdup(model);
    l->id = strdup(id);
    l->address = strdup(address);
    if (!l->model || !l->id || !l->address) {
        contact_free(l);
        return err_nomem(err);
    }
    l->r.model = l->model;
    l->r.id = l->id;
    l->r.address = l->address;
    uv_timer_init(g->loop, &l->retry);
    l->retry.data = l;
    g->contacts[g->n++] = l;
    *ret = &l->r;
    return 0;
}

size_t registry_count(const registry *g)
{
    return g->n;
}

replica *registry_at(registry *g, size_t i)
{
    return &g->contacts[i]->r;
}

void registry_on_change(registry *g, registry_change_fn fn, void *user)
{
    if (g->n_listeners == REGISTRY_MAX_LISTENERS) return;
    g->listeners[g->n_listeners].fn = fn;
    g->listeners[g->n_listeners++].user = user;
}

bool registry_all_ready(const registry *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->contacts[i]->r.state != REPLICA_READY) return false;
    return true;
}
