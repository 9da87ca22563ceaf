/* agent.c: one child a replica of those that are wanted. */
#define _GNU_SOURCE
#include "agent/agent_impl.h"

#include <ctype.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "logging/log.h"
#include "wire/env_uv.h"
#include "cluster/stage_name.h"

enum {
    LEAVE_MS = 120000, /* for what runs on a worker that is not wanted any more */
    ID_BYTES = 512,
};

const char *agent_run_dir(const agent *a)
{
    return a->dir.path;
}

/* This very program, whatever has become of its file: an upgrade replaces or removes it while we serve, and
 * the new program's workers may speak otherwise than this one expects. */
#define SELF_EXE "/proc/self/exe"

/* ---- the agent --------------------------------------------------------------------------------- */

/* Where this program was started from: what ps shows of a worker. */
static char *own_path(arena *a)
{
    char path[4096];
    const char gone[] = " (deleted)"; /* the kernel adds it once the file was replaced or removed */
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n > (ssize_t)sizeof gone && memcmp(path + n - (sizeof gone - 1), gone, sizeof gone - 1) == 0)
        n -= (ssize_t)sizeof gone - 1;
    return n > 0 ? arena_strndup(a, path, (size_t)n) : NULL;
}

static char *agent_copy(arena *to, const char *s, bool *ok)
{
    char *p = s ? arena_strdup(to, s) : NULL;
    if (s && !p) *ok = false;
    return p;
}

bool worker_spec_copy(arena *to, worker_spec *ret, const worker_spec *spec)
{
    bool ok = true;
    *ret = *spec;
    ret->model = agent_copy(to, spec->model, &ok);
    ret->path = agent_copy(to, spec->path, &ok);
    ret->sha256 = agent_copy(to, spec->sha256, &ok);
    for (size_t i = 0; i < WORKER_SPEC_ADAPTERS; i++)
        ret->adapters[i] = agent_copy(to, spec->adapters[i], &ok);
    for (size_t i = 0; i < WORKER_SPEC_STAGES; i++) ret->stages[i] = agent_copy(to, spec->stages[i], &ok);
    ret->wire = agent_copy(to, spec->wire, &ok);
    ret->reader = agent_copy(to, spec->reader, &ok);
    return ok;
}

/* The name is for people; the number makes it unique. Model names may hold any character and be any
 * length, a socket's address may not. */
static char *socket_path(child *c, const char *model)
{
    char name[33];
    size_t n = 0;
    for (; model[n] && n + 1 < sizeof name; n++)
        name[n] = isalnum((unsigned char)model[n]) || strchr("-_", model[n]) ? model[n] : '_';
    name[n] = '\0';
    return arena_printf(c->strings, "%s/%s.%d.sock", c->a->dir.path, name, c->slot);
}

/* Generations must rise from one run of an agent to the next, and from one worker of an id to the next: the
 * time of day does, in microseconds faster than any worker could be started. */
static uint64_t epoch(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

child *agent_child_at(const agent *a, int slot)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->children[i]->slot == slot) return a->children[i];
    return NULL;
}

static int free_slot(agent *a)
{
    int slot = a->arbiter.first_slot;
    while (agent_child_at(a, slot) || adopt_is_unclaimed(a, slot)) slot++;
    return slot;
}

static void child_free(child *c)
{
    c->a->e->timer_free(c->restart);
    arena_free(c->strings);
    free(c);
}

/* "home-chat/0", "home-chat@8:16/0" */
static bool agent_id_of(char *ret, size_t size, const worker_spec *s, int number)
{
    char stage[ID_BYTES];
    if (s->end_layer && !stage_name_put(stage, sizeof stage, s->model, s->first_layer, s->end_layer))
        return false;
    int n = snprintf(ret, size, "%s/%d", s->end_layer ? stage : s->model, number);
    return n > 0 && (size_t)n < size;
}

static int replicas_of(const worker_spec *s)
{
    return s->n_replicas > 0 ? s->n_replicas : 1;
}

static bool stands_by(const worker_spec *s, int replica_number)
{
    return replica_number >= replicas_of(s) - s->n_standby;
}

/* Where the life before had it, and as what. */
static void take_place(child *c, const char *id)
{
    bool lives = false;
    int slot = adopt_find(c->a, id, &lives);
    c->generation = epoch();
    c->slot = slot >= 0 ? slot : free_slot(c->a);
    if (slot < 0) return;
    const worker_entry *e = worker_book_at(c->a->book, slot);
    if (lives) c->generation = e->generation;
    c->backoff_ms = e->backoff_ms;
    c->process.n_restarts = (unsigned)e->n_restarts;
    c->process.n_crashes = (unsigned)e->n_crashes + (!lives && e->pid > 0); /* it died while nobody looked */
}

/* Leftover workers have slots too, until they are taken over or have ended. */
static int check_slot(const child *c, shoal_err *err)
{
    const agent *a = c->a;
    int n_slots = a->has_arbiter ? a->arbiter.first_slot + a->arbiter.n_slots : INT_MAX;
    if (a->book && n_slots > WORKER_BOOK_SLOTS) n_slots = WORKER_BOOK_SLOTS;
    if (c->slot < n_slots) return 0;
    return err_set(err, SHOAL_ELIMIT, "%d workers, leftover ones among them, share this machine already",
                   n_slots);
}

static int describe_child(child *c, const worker_spec *spec, int replica_number, shoal_err *err)
{
    char id[ID_BYTES] = "";
    bool named = agent_id_of(id, sizeof id, spec, replica_number);
    take_place(c, id);
    int rc = check_slot(c, err);
    if (rc != 0) return rc;
    c->strings = arena_new(0);
    if (!c->strings || !worker_spec_copy(c->strings, &c->spec, spec)) return err_nomem(err);
    c->socket = socket_path(c, spec->model);
    c->address = c->socket ? arena_printf(c->strings, "unix:%s", c->socket) : NULL;
    if (named) c->id = arena_strdup(c->strings, id);
    c->member = spec->first_layer ? arena_strndup(c->strings, id, strcspn(id, "/")) : c->spec.model;
    c->standby = stands_by(spec, replica_number);
    if (!c->address || !c->id || !c->member) return err_nomem(err);
    if (strlen(c->socket) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return err_set(err, SHOAL_ELIMIT, "%s: too long for the address of a socket", c->socket);
    return child_tell(c, REPLICA_STARTING, NULL, err);
}

static int agent_grow(agent *a, shoal_err *err)
{
    if (a->has_arbiter && a->n >= (size_t)a->arbiter.n_slots)
        return err_set(err, SHOAL_ELIMIT, "there are more workers than the %d that can share one machine",
                       a->arbiter.n_slots);
    if (a->n < a->cap) return 0;
    size_t cap = a->cap ? 2 * a->cap : 8;
    child **more = realloc(a->children, cap * sizeof *more);
    if (!more) return err_nomem(err);
    a->children = more;
    a->cap = cap;
    return 0;
}

static int add_child(agent *a, const worker_spec *spec, int replica_number, shoal_err *err)
{
    int rc = agent_grow(a, err);
    if (rc != 0) return rc;
    child *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    c->a = a;
    c->process = (process){.is_at_work = child_is_at_work, .worker = c};
    c->restart = a->e->timer_new(a->e->user, child_timer, c);
    rc = c->restart ? describe_child(c, spec, replica_number, err) : err_nomem(err);
    if (rc != 0) {
        child_free(c);
        return rc;
    }
    a->children[a->n++] = c;
    return 0;
}

/* ---- who is wanted ------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_sampling(const sampling_defaults *a, const sampling_defaults *b)
{
    char of_a[SAMPLING_TEXT_BYTES], of_b[SAMPLING_TEXT_BYTES];
    sampling_format(a, of_a);
    sampling_format(b, of_b);
    return strcmp(of_a, of_b) == 0;
}

/* Would it be started with the same command line? Whether it is asked is no part of that. */
static bool same_spec(const worker_spec *a, const worker_spec *b)
{
    bool same = same_text(a->path, b->path) && same_text(a->sha256, b->sha256) &&
                a->n_threads == b->n_threads && a->kv_bytes == b->kv_bytes && a->n_ctx == b->n_ctx &&
                a->sound_bytes == b->sound_bytes && strcmp(a->options, b->options) == 0 &&
                same_sampling(&a->sampling, &b->sampling);
    for (size_t i = 0; same && i < WORKER_SPEC_ADAPTERS; i++)
        same = same_text(a->adapters[i], b->adapters[i]);
    for (size_t i = 0; same && i < WORKER_SPEC_STAGES; i++) same = same_text(a->stages[i], b->stages[i]);
    return same && same_text(a->wire, b->wire) && same_text(a->reader, b->reader);
}

child *agent_child(agent *a, const char *id)
{
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->children[i]->id, id) == 0) return a->children[i];
    return NULL;
}

static bool same_layers(const worker_spec *a, const worker_spec *b)
{
    return a->first_layer == b->first_layer && a->end_layer == b->end_layer;
}

static int agent_number_of(const child *c)
{
    return atoi(strrchr(c->id, '/') + 1);
}

static const worker_spec *wanted_of(const agent *a, const child *c)
{
    for (size_t i = 0; i < a->n_wanted; i++)
        if (strcmp(a->wanted[i].model, c->spec.model) == 0 && same_layers(&a->wanted[i], &c->spec))
            return &a->wanted[i];
    return NULL;
}

static bool agent_is_wanted(const agent *a, const child *c)
{
    const worker_spec *s = wanted_of(a, c);
    return s && agent_number_of(c) < replicas_of(s) && same_spec(s, &c->spec);
}

/* A standby that serves from now on is there at once. */
static void set_standby(child *c)
{
    bool standby = stands_by(wanted_of(c->a, c), agent_number_of(c));
    if (c->standby == standby) return;
    c->standby = standby;
    LOG(LOG_INFO, "agent", standby ? "stands_by" : "serves", LOG_S("replica", c->id));
    if (c->life) child_tell(c, REPLICA_STARTING, NULL, NULL); /* of a life that is known: no other news */
}

/* It finishes what runs, and takes nothing new. One of several stages cannot: the others leave as well, and
 * what runs goes on from the request where the model is next. */
static void dismiss(child *c)
{
    const agent *a = c->a;
    LOG(LOG_INFO, "agent", "worker_dismissed", LOG_S("replica", c->id));
    c->leaving = true;
    a->e->timer_stop(c->restart);
    if (!c->life) {
        child_gone(c);
        return;
    }
    a->e->timer_start(c->restart, LEAVE_MS);
    child_tell(c, REPLICA_DRAINING, "it is not wanted here any more", NULL);
    if (a->book) worker_book_at(a->book, c->slot)->leaving = 1;
    life_kill(c->life, c->spec.end_layer ? SIGKILL : WORKER_STOP_SIGNAL);
}

static int add_missing(agent *a, const worker_spec *s, shoal_err *err)
{
    char id[ID_BYTES];
    int rc = 0;
    for (int k = 0; rc == 0 && k < replicas_of(s); k++) {
        if (!agent_id_of(id, sizeof id, s, k))
            rc = err_set(err, SHOAL_ELIMIT, "the model's name is too long");
        else if (!agent_child(a, id)) /* one that leaves has the name until it is gone */
            rc = add_child(a, s, k, err);
    }
    return rc;
}

static int settle_agent(agent *a, shoal_err *err)
{
    int rc = 0;
    for (size_t i = a->n; i-- > 0;)
        if (!a->children[i]->leaving && !agent_is_wanted(a, a->children[i])) dismiss(a->children[i]);
    for (size_t i = 0; i < a->n; i++)
        if (!a->children[i]->leaving) set_standby(a->children[i]);
    for (size_t i = 0; rc == 0 && i < a->n_wanted; i++) rc = add_missing(a, &a->wanted[i], err);
    return rc;
}

static void start_new(agent *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->children[i]->started_ns == 0) child_start(a->children[i]);
}

void agent_settle(agent *a)
{
    shoal_err err;
    if (settle_agent(a, &err) != 0) LOG(LOG_ERROR, "agent", "cannot_start", LOG_S("reason", err.message));
    start_new(a);
}

static int keep_wish(agent *a, const worker_spec *workers, size_t n, shoal_err *err)
{
    arena *wanted_mem = arena_new(0);
    worker_spec *wanted = wanted_mem ? arena_alloc(wanted_mem, (n ? n : 1) * sizeof *wanted) : NULL;
    bool ok = wanted != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = worker_spec_copy(wanted_mem, &wanted[i], &workers[i]);
    if (!ok) {
        arena_free(wanted_mem);
        return err_nomem(err);
    }
    arena_free(a->wanted_mem);
    a->wanted_mem = wanted_mem;
    a->wanted = wanted;
    a->n_wanted = n;
    return 0;
}

/* Before the first of them starts. */
static int check_count(const agent *a, const worker_spec *workers, size_t n_specs, shoal_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < n_specs; i++) n += (size_t)replicas_of(&workers[i]);
    if (!a->has_arbiter || n <= (size_t)a->arbiter.n_slots) return 0;
    return err_set(err, SHOAL_ELIMIT, "%zu workers are more than the %d that can share one machine", n,
                   a->arbiter.n_slots);
}

int agent_set(agent *a, const worker_spec *workers, size_t n, shoal_err *err)
{
    int rc = check_count(a, workers, n, err);
    if (rc == 0) rc = keep_wish(a, workers, n, err);
    if (rc != 0 || a->stopping) return rc;
    rc = settle_agent(a, err);
    start_new(a);
    return rc;
}

void agent_hurry(agent *a, const char *model)
{
    for (size_t i = 0; i < a->n; i++) {
        child *c = a->children[i];
        if (!c->leaving || !c->life || strcmp(c->spec.model, model) != 0) continue;
        LOG(LOG_INFO, "agent", "worker_killed", LOG_S("replica", c->id),
            LOG_S("reason", "it is to go at once"));
        life_kill(c->life, SIGKILL);
    }
}

static int configure(agent *a, const agent_options *o, shoal_err *err)
{
    bool ok = true;
    a->strings = arena_new(0);
    if (!a->strings) return err_nomem(err);
    if (o->arbiter && o->arbiter->fd >= 0) {
        a->arbiter = *o->arbiter;
        a->has_arbiter = true;
    }
    a->log_level = agent_copy(a->strings, o->log_level, &ok);
    a->refused = o->refused;
    a->user = o->user;
    a->member = agent_copy(a->strings, o->member, &ok);
    a->packed = agent_copy(a->strings, o->packed, &ok);
    a->crashes = agent_copy(a->strings, o->crashes, &ok);
    a->packed_mb = o->packed_mb;
    a->packed_min_mb = o->packed_min_mb;
    a->packed_check = o->packed_check;
    a->program = agent_copy(a->strings, o->program ? o->program : SELF_EXE, &ok);
    a->shown = o->program ? a->program : own_path(a->strings);
    if (!ok || !a->shown) return err_nomem(err);
    int rc = rundir_open(&a->dir, o->run_dir, err);
    return rc == 0 ? adopt_open(a, err) : rc;
}

static void on_replica_change(void *user, const registry_event *e)
{
    child *c = e->what == REGISTRY_CHANGE ? agent_child(user, e->replica->id) : NULL;
    if (!c || e->replica->state != REPLICA_READY) return;
    c->served = true;
    c->refusals = 0;
    if (c->life && c->a->book) worker_book_at(c->a->book, c->slot)->served = 1;
}

uint64_t agent_now_ns(const agent *a)
{
    return a->e->now_ns(a->e->user);
}

static void kill_all(void *agent);

static int make_timers(agent *a, shoal_err *err)
{
    a->kill = a->e->timer_new(a->e->user, kill_all, a);
    a->watch = a->e->timer_new(a->e->user, agent_watch, a);
    a->unclaimed_over = a->e->timer_new(a->e->user, adopt_unclaimed_over, a);
    return a->kill && a->watch && a->unclaimed_over ? 0 : err_nomem(err);
}

int agent_new(agent **ret, uv_loop_t *loop, registry *g, const agent_options *opts, shoal_err *err)
{
    agent *a = calloc(1, sizeof *a);
    if (!a) return err_nomem(err);
    a->loop = loop;
    a->g = g;
    a->loop_time = env_uv(loop);
    a->e = opts->time ? opts->time : &a->loop_time;
    a->book_fd = -1;
    for (int slot = 0; slot < WORKER_BOOK_SLOTS; slot++) a->kept_lines[slot] = -1;
    int rc = make_timers(a, err);
    if (rc == 0) rc = source_open(&a->source, g, "agent", err);
    if (rc == 0) rc = configure(a, opts, err);
    if (rc == 0) rc = registry_listen(g, on_replica_change, a, err);
    if (rc == 0) rc = check_count(a, opts->workers, opts->n_workers, err);
    if (rc == 0) rc = keep_wish(a, opts->workers, opts->n_workers, err);
    if (rc == 0) rc = settle_agent(a, err);
    if (rc != 0) {
        agent_free(a);
        return rc;
    }
    source_synced(a->source);
    a->e->timer_start(a->watch, AGENT_WATCH_MS);
    start_new(a);
    *ret = a;
    return 0;
}

/* The grace of agent_stop is over, or there was nothing to wait for. */
static void kill_all(void *user)
{
    agent *a = user;
    for (size_t i = 0; i < a->n; i++) {
        child *c = a->children[i];
        if (!c->life) continue;
        LOG(LOG_WARN, "agent", "worker_killed", LOG_S("replica", c->id), LOG_S("reason", "grace is over"));
        life_kill(c->life, SIGKILL);
    }
    agent_check_all_gone(a);
}

void agent_stop(agent *a, uint64_t grace_ms, void (*done)(void *user), void *user)
{
    a->stopping = true;
    a->done = done;
    a->done_user = user;
    bool any = false;
    adopt_kill_unclaimed(a);
    for (size_t i = 0; i < a->n; i++) {
        child *c = a->children[i];
        a->e->timer_stop(c->restart);
        if (!c->life) continue;
        any = true;
        child_tell(c, REPLICA_DRAINING, "stopping", NULL);
        life_kill(c->life, WORKER_STOP_SIGNAL);
    }
    a->e->timer_start(a->kill, any ? grace_ms : 0);
}

void child_gone(child *c)
{
    agent *a = c->a;
    size_t i = 0;
    while (a->children[i] != c) i++;
    memmove(&a->children[i], &a->children[i + 1], (--a->n - i) * sizeof *a->children);
    source_drop(a->source, c->id, c->generation);
    if (a->book) worker_book_clear(a->book, c->slot);
    child_free(c);
}

void agent_free(agent *a)
{
    if (!a) return;
    registry_unlisten(a->g, on_replica_change, a);
    source_close(a->source);
    for (size_t i = 0; i < a->n; i++) {
        unlink(a->children[i]->socket);
        child_free(a->children[i]);
    }
    rundir_close(&a->dir);
    adopt_close(a);
    a->e->timer_free(a->unclaimed_over);
    a->e->timer_free(a->kill);
    a->e->timer_free(a->watch);
    arena_free(a->strings);
    arena_free(a->wanted_mem);
    free(a->children);
    free(a);
}
