/* agent_crew.c: a registry, an agent and a relay on the loop of `shoal agent`. */
#include "cli/agent_crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/serve_models.h"
#include "join/agent.h"
#include "join/model_store.h"
#include "cluster/registry.h"
#include "join/relay.h"
#include "join/roster.h"
#include "compute/compute.h"
#include "model/model.h"
#include "trust/identity.h"

enum { ARBITER_SLOTS = 64, GRACE_MS = 5000, NEWS_MS = 20 };

typedef struct crew_assigned { /* a model that the gateway assigned */
    model_file file;
    worker_spec spec; /* n_replicas with those that stand by; path NULL until the file is here */
    char model[ROSTER_TEXT_MAX + 1];
    char path[MODEL_STORE_PATH];
    unsigned n_serving;
} crew_assigned;

struct crew {
    gateway_config *config; /* NULL: none of its own */
    worker_spec *specs;
    crew_assigned *assigned;
    size_t n_assigned;
    model_store *store;
    manifest *manifest; /* NULL: none on this machine */
    char *gateway;
    char store_path[MODEL_STORE_PATH];
    uv_timer_t *news; /* a report that is due before its second */
    arbiter *arbiter;
    int arbiter_fd;
    registry *registry;
    agent *agent;
    relay *relay;
    tls_context *tls;
    attach *attached;
    Shoal__V1__Replicas all;
    Shoal__V1__ReplicaReport *reports, **list;
    size_t cap;
    void (*done)(void *user);
    void *done_user;
};

int crew_port(const crew *c)
{
    return relay_port(c->relay);
}

/* ---- who may come in ----------------------------------------------------------------------------- */

static bool admit(void *user, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    const crew *c = user;
    if (strcmp(who->unit, role_name(ROLE_GATEWAY)) != 0)
        snprintf(why, TLS_WHY_BYTES, "only gateways call workers");
    else if (c->attached && attach_knows_revoked(c->attached, who->serial))
        snprintf(why, TLS_WHY_BYTES, "its certificate was revoked");
    else
        return true;
    return false;
}

static const char *find(void *user, const char *worker)
{
    const crew *c = user;
    const replica *r = c->registry ? registry_get(c->registry, worker) : NULL;
    return r ? r->address : NULL;
}

void crew_follow(crew *c, attach *a)
{
    shoal_err err;
    c->attached = a;
    if (a && c->gateway && model_store_source(c->store, c->gateway, attach_tls(a), &err) != 0)
        LOG(LOG_ERROR, "crew", "no_source", LOG_S("reason", err.message));
}

void crew_reload(crew *c)
{
    shoal_err err;
    if (tls_context_reload(c->tls, &err) != 0)
        LOG(LOG_ERROR, "crew", "certificates_unread", LOG_S("reason", err.message));
    relay_recheck(c->relay);
}

/* ---- what is assigned ---------------------------------------------------------------------------- */

static size_t n_own(const crew *c)
{
    return c->config ? c->config->n_models : 0;
}

static bool is_own(const crew *c, const char *model)
{
    for (size_t i = 0; i < n_own(c); i++)
        if (strcmp(c->specs[i].model, model) == 0) return true;
    return false;
}

static bool find_file(crew *c, crew_assigned *a)
{
    const manifest_entry *e = c->manifest ? manifest_find(c->manifest, a->model) : NULL;
    bool same = e && e->sha256 && strcmp(e->sha256, a->file.digest) == 0;
    if (same && snprintf(a->path, sizeof a->path, "%s", e->file) < (int)sizeof a->path) return true;
    return model_store_find(c->store, &a->file, a->path);
}

/* Its own models, and those assigned ones whose files are here. */
static void set_workers(void *user)
{
    crew *c = user;
    shoal_err err;
    worker_spec *list = calloc(n_own(c) + c->n_assigned + 1, sizeof *list);
    size_t n = n_own(c);
    if (!list || !c->agent) {
        free(list);
        return;
    }
    if (n) memcpy(list, c->specs, n * sizeof *list);
    for (size_t i = 0; i < c->n_assigned; i++) {
        crew_assigned *a = &c->assigned[i];
        if (!find_file(c, a)) continue;
        a->spec.model = a->model;
        a->spec.path = a->path;
        a->spec.sha256 = a->file.digest;
        list[n++] = a->spec;
    }
    if (agent_set(c->agent, list, n, &err) != 0)
        LOG(LOG_ERROR, "crew", "cannot_serve", LOG_S("reason", err.message));
    free(list);
}

static bool take(crew *c, crew_assigned *to, const Shoal__V1__Assignment *a)
{
    shoal_err err = {.message = "it makes no sense"};
    unsigned n = a->replicas < ARBITER_SLOTS && a->standby < ARBITER_SLOTS ? a->replicas + a->standby : 0;
    bool ok =
        *a->model && roster_text_ok(a->model) && a->file && n > 0 && n <= ARBITER_SLOTS && a->threads <= 4096;
    if (ok) ok = model_file_make(&to->file, a->file->name, a->file->digest, a->file->bytes, &err) == 0;
    if (!ok || is_own(c, a->model)) {
        LOG(LOG_WARN, "crew", "not_taken", LOG_S("model", ok ? a->model : ""),
            LOG_S("reason", ok ? "this machine's configuration has it" : err.message));
        return false;
    }
    snprintf(to->model, sizeof to->model, "%s", a->model);
    to->n_serving = a->replicas;
    to->spec = (worker_spec){.n_replicas = (int)n,
                             .n_threads = (int)a->threads,
                             .kv_bytes = a->kv_bytes,
                             .max_batch = a->max_batch,
                             .max_queue = a->max_queue,
                             .n_ctx = a->context,
                             .prefill_chunk = a->prefill_chunk};
    return true;
}

void crew_assign(crew *c, const Shoal__V1__Assignments *all)
{
    crew_assigned *list = calloc(all->n_models + 1, sizeof *list);
    model_file *files = calloc(all->n_models + 1, sizeof *files);
    size_t n = 0, n_files = 0;
    for (size_t i = 0; list && files && i < all->n_models; i++)
        if (take(c, &list[n], all->models[i])) n++;
    LOG(LOG_INFO, "crew", "assigned", LOG_I("models", n));
    if (list && files) {
        free(c->assigned);
        c->assigned = list;
        c->n_assigned = n;
        for (size_t i = 0; i < n; i++)
            if (!find_file(c, &list[i]) || strncmp(list[i].path, c->store_path, strlen(c->store_path)) == 0)
                files[n_files++] = list[i].file;
        model_store_want(c->store, files, n_files);
        set_workers(c);
    } else {
        free(list); /* the next one says as much */
    }
    free(files);
}

static const crew_assigned *assigned_of(const crew *c, const char *model)
{
    for (size_t i = 0; i < c->n_assigned; i++)
        if (strcmp(c->assigned[i].model, model) == 0) return &c->assigned[i];
    return NULL;
}

/* ---- reports ------------------------------------------------------------------------------------- */

static bool make_room(crew *c, size_t n)
{
    if (n <= c->cap) return true;
    Shoal__V1__ReplicaReport *reports = realloc(c->reports, n * sizeof *reports);
    if (reports) c->reports = reports;
    Shoal__V1__ReplicaReport **list = realloc(c->list, n * sizeof *list);
    if (list) c->list = list;
    if (!reports || !list) return false;
    c->cap = n;
    return true;
}

void crew_report(crew *c, Shoal__V1__AgentMessage *m)
{
    size_t n = registry_count(c->registry);
    if (!make_room(c, n)) return; /* the next second says it */
    shoal__v1__replicas__init(&c->all);
    for (size_t i = 0; i < n; i++) {
        const replica *r = registry_at(c->registry, i);
        shoal__v1__replica_report__init(&c->reports[i]);
        c->reports[i].id = (char *)r->id;
        c->reports[i].generation = r->generation;
        c->reports[i].model = (char *)r->model;
        c->reports[i].state = (char *)replica_state_name(r->state);
        c->reports[i].reason = (char *)r->reason;
        const crew_assigned *a = assigned_of(c, r->model);
        c->reports[i].assigned = !is_own(c, r->model);
        c->reports[i].standby = a && (unsigned)atoi(strrchr(r->id, '/') + 1) >= a->n_serving;
        c->list[i] = &c->reports[i];
    }
    c->all.replicas = c->list;
    c->all.n_replicas = n;
    m->replicas = &c->all;
}

static void send_news(uv_timer_t *t)
{
    crew *c = t->data;
    if (c->attached) attach_report(c->attached);
}

/* A replica that is ready, or not any more, is worth a message of its own; many at once are worth one. */
static void on_change(void *user, const registry_event *e)
{
    crew *c = user;
    if (!uv_is_active((uv_handle_t *)c->news)) uv_timer_start(c->news, send_news, NEWS_MS, 0);
}

static int open_news(crew *c, uv_loop_t *loop, shoal_err *err)
{
    c->news = calloc(1, sizeof *c->news);
    if (!c->news) return err_nomem(err);
    uv_timer_init(loop, c->news);
    c->news->data = c;
    return registry_listen(c->registry, on_change, c, err);
}

static void news_closed(uv_handle_t *h)
{
    free(h);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void reap(void *user, int slot)
{
    arbiter_reap(user, slot);
}

static int stuck(void *user)
{
    return arbiter_stuck(user);
}

static int open_tls(crew *c, const folder *dir, shoal_err *err)
{
    char cert[4096], ca[4096], crl[4096];
    snprintf(cert, sizeof cert, "%s/member.pem", dir->path);
    snprintf(ca, sizeof ca, "%s/ca.crt", dir->path);
    snprintf(crl, sizeof crl, "%s/crl.pem", dir->path);
    tls_options o = {
        .cert_file = cert, .key_file = cert, .ca_file = ca, .crl_file = crl, .admit = admit, .user = c};
    return tls_context_new(&c->tls, TLS_SERVER, &o, err);
}

static int start_workers(crew *c, uv_loop_t *loop, bool json_log, shoal_err *err)
{
    int rc = arbiter_create(&c->arbiter, &c->arbiter_fd, err);
    if (rc != 0) return rc;
    const agent_arbiter shared = {
        .fd = c->arbiter_fd, .n_slots = ARBITER_SLOTS, .reap = reap, .stuck = stuck, .user = c->arbiter};
    const agent_options o = {.workers = c->specs,
                             .n_workers = n_own(c),
                             .log_level = c->config ? c->config->log_level : NULL,
                             .log_json = json_log,
                             .arbiter = &shared};
    return agent_new(&c->agent, loop, c->registry, &o, err);
}

static int open_store(crew *c, uv_loop_t *loop, const crew_options *o, shoal_err *err)
{
    char *path = NULL;
    snprintf(c->store_path, sizeof c->store_path, "%s/models", o->dir->path);
    const model_store_options s = {.folder = c->store_path,
                                   .max_bytes = o->models_bytes,
                                   .bytes_per_s = o->bytes_per_s,
                                   .changed = set_workers,
                                   .user = c};
    c->gateway = strdup(o->gateway);
    if (!c->gateway) return err_nomem(err);
    if (manifest_locate(&path, NULL) == 0) manifest_open(&c->manifest, path, NULL); /* may be absent */
    free(path);
    return model_store_open(&c->store, loop, &s, err);
}

static int open_all(crew *c, uv_loop_t *loop, const crew_options *o, shoal_err *err)
{
    int rc = o->config ? config_load(&c->config, o->config, err) : 0;
    if (rc == 0 && c->config) rc = serve_models_find(&c->specs, c->config, err);
    if (rc == 0) rc = open_store(c, loop, o, err);
    if (rc == 0) rc = open_tls(c, o->dir, err);
    if (rc == 0) rc = registry_new(&c->registry, loop, err);
    const relay_options r = {.listen = o->listen, .tls = c->tls, .find = find, .user = c};
    if (rc == 0) rc = relay_open(&c->relay, loop, &r, err);
    if (rc == 0) rc = open_news(c, loop, err);
    return rc == 0 ? start_workers(c, loop, o->json_log, err) : rc;
}

int crew_open(crew **ret, uv_loop_t *loop, const crew_options *o, shoal_err *err)
{
    crew *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    c->arbiter_fd = -1;
    int rc = open_all(c, loop, o, err);
    if (rc != 0) {
        crew_close(c, NULL, NULL);
        return rc;
    }
    LOG(LOG_INFO, "crew", "started", LOG_I("port", crew_port(c)), LOG_I("models", n_own(c)));
    *ret = c;
    return 0;
}

static void relay_gone(void *user)
{
    crew *c = user;
    void (*done)(void *) = c->done;
    void *done_user = c->done_user;
    tls_context_unref(c->tls);
    if (c->config) serve_models_free(c->specs, c->config->n_models);
    arbiter_close(c->arbiter);
    if (c->arbiter_fd >= 0) close(c->arbiter_fd);
    config_free(c->config);
    manifest_free(c->manifest);
    free(c->gateway);
    free(c->assigned);
    free(c->reports);
    free(c->list);
    free(c);
    if (done) done(done_user);
}

static void store_gone(void *user)
{
    crew *c = user;
    relay_close(c->relay, relay_gone, c);
}

static void workers_gone(void *user)
{
    crew *c = user;
    agent_free(c->agent);
    if (c->news) {
        registry_unlisten(c->registry, on_change, c);
        uv_close((uv_handle_t *)c->news, news_closed);
    }
    registry_free(c->registry);
    c->registry = NULL;
    model_store_close(c->store, store_gone, c);
}

void crew_close(crew *c, void (*done)(void *user), void *user)
{
    c->done = done;
    c->done_user = user;
    c->attached = NULL;
    if (c->agent)
        agent_stop(c->agent, GRACE_MS, workers_gone, c);
    else
        workers_gone(c);
}
