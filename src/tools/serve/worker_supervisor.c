/* worker_supervisor.c: a registry, an agent and a relay on the loop of `shoal agent`. */
#define _GNU_SOURCE
#include "serve/worker_supervisor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "logging/log.h"
#include "cluster/registry.h"
#include "cluster/stage_name.h"
#include "compute/compute.h"
#include "agent/agent.h"
#include "control/assignment.h"
#include "transfer/model_send.h"
#include "transfer/model_store.h"
#include "join/relay.h"
#include "control/member_table.h"
#include "model/model.h"
#include "serve/serve_arbiter.h"
#include "serve/serve_models.h"
#include "trust/identity.h"
#include "rules/home.h"

enum { GRACE_MS = 5000, NEWS_MS = 20, DISTRUSTED_MAX = 16 };

typedef struct worker_supervisor_assigned { /* a model that the gateway assigned */
    assignment a;
    char path[MODEL_PATH_SIZE];           /* of the model; "": not all of it is here */
    char *adapters[WORKER_SPEC_ADAPTERS]; /* "NAME=PATH" */
    bool own_file;                        /* the path is of this machine's own models.json */
} worker_supervisor_assigned;

struct worker_supervisor {
    gateway_config *config; /* NULL: none of its own */
    worker_spec *specs;
    worker_supervisor_assigned *assigned;
    size_t n_assigned;
    model_store *store;
    manifest *manifest;                  /* NULL: none on this machine */
    char distrusted[DISTRUSTED_MAX][65]; /* digests whose file of the manifest turned out to be another one */
    size_t n_distrusted;
    grpc_server *models; /* what others may fetch, on a socket behind the relay */
    model_sends sends;
    char models_address[160];
    uv_timer_t *news; /* a report that is due before its second */
    uv_timer_t *anew; /* a file that is to be fetched in place of this machine's own */
    arbiter *arbiter;
    int arbiter_fd;
    registry *registry;
    agent *agent;
    relay *relay;
    tls_context *tls, *as_node; /* as_node: with which it fetches from other nodes */
    Shoal__V1__StoredFiles stored;
    char **digests;
    attach *attached;
    Shoal__V1__Replicas all;
    Shoal__V1__ReplicaReport *reports, **list;
    size_t cap;
    void (*done)(void *user);
    void *done_user;
};

int worker_supervisor_port(const worker_supervisor *c)
{
    return relay_port(c->relay);
}

/* ---- who may come in ----------------------------------------------------------------------------- */

static bool is_gateway(const tls_identity *who)
{
    return strcmp(who->unit, role_name(ROLE_GATEWAY)) == 0;
}

static bool is_revoked(const worker_supervisor *c, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    bool revoked = c->attached && attach_knows_revoked(c->attached, who->serial);
    if (revoked) snprintf(why, TLS_WHY_BYTES, "its certificate was revoked");
    return revoked;
}

static bool admit(void *user, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    bool is_member = is_gateway(who) || strcmp(who->unit, role_name(ROLE_NODE)) == 0;
    if (!is_member) snprintf(why, TLS_WHY_BYTES, "its certificate says no role");
    return is_member && !is_revoked(user, who, why);
}

/* Who is asked for models: another node, and nobody else. */
static bool admit_node(void *user, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    bool is_node = strcmp(who->unit, role_name(ROLE_NODE)) == 0;
    if (!is_node) snprintf(why, TLS_WHY_BYTES, "it is no node");
    return is_node && !is_revoked(user, who, why);
}

/* Has this machine the first stage of the model of which that worker is a later one? */
static bool calls_stage(const worker_supervisor *c, const char *node, const char *worker)
{
    size_t n, first, end;
    if (!stage_name_parse(worker, &n, &first, &end) || first == 0) return false;
    for (size_t i = 0; i < c->n_assigned; i++) {
        const assignment *a = &c->assigned[i].a;
        if (strlen(a->model) != n || strncmp(a->model, worker, n) != 0) continue;
        if (a->spec.first_layer != first || a->spec.end_layer != end) continue;
        for (size_t k = 0; k < a->n_first_nodes; k++)
            if (strcmp(a->first_nodes[k], node) == 0) return true;
    }
    return false;
}

/* Nodes read models here, call the later stages of their own first stages, and nothing else. */
static const char *worker_supervisor_find(void *user, const tls_identity *who, const char *worker,
                                          const char **ret_why)
{
    const worker_supervisor *c = user;
    if (strcmp(worker, MODEL_STORE_NAME) == 0) {
        LOG(LOG_INFO, "supervisor", "models_asked", LOG_S("by", who->common_name));
        return c->models_address;
    }
    if (!is_gateway(who) && !calls_stage(c, who->common_name, worker)) {
        *ret_why = "only gateways, and first stages of the models here, call workers";
        return NULL;
    }
    const replica *r = c->registry ? registry_get(c->registry, worker) : NULL;
    return r ? r->address : NULL;
}

/* A first stage that another machine has taken over may still be alive, and reach the later stages: these are
 * free for its successor at once. */
static bool stays(void *user, const tls_identity *who, const char *worker)
{
    size_t n, first, end;
    if (is_gateway(who) || !stage_name_parse(worker, &n, &first, &end)) return true;
    return calls_stage(user, who->common_name, worker);
}

void worker_supervisor_follow(worker_supervisor *c, attach *a)
{
    shoal_err err;
    c->attached = a;
    if (a && model_store_source(c->store, attach_address(a), attach_tls(a), c->as_node, &err) != 0)
        LOG(LOG_ERROR, "supervisor", "no_source", LOG_S("reason", err.message));
}

void worker_supervisor_reload(worker_supervisor *c)
{
    shoal_err err;
    if (tls_context_reload(c->tls, &err) != 0 || tls_context_reload(c->as_node, &err) != 0)
        LOG(LOG_ERROR, "supervisor", "certificates_unread", LOG_S("reason", err.message));
    relay_recheck(c->relay);
}

/* ---- what is assigned ---------------------------------------------------------------------------- */

static size_t n_own(const worker_supervisor *c)
{
    return c->config ? c->config->n_models : 0;
}

static bool is_own(const worker_supervisor *c, const char *model)
{
    for (size_t i = 0; i < n_own(c); i++)
        if (strcmp(c->specs[i].model, model) == 0) return true;
    return false;
}

static bool is_distrusted(const worker_supervisor *c, const char *digest)
{
    for (size_t i = 0; i < c->n_distrusted; i++)
        if (strcmp(c->distrusted[i], digest) == 0) return true;
    return false;
}

static bool worker_supervisor_find_model(worker_supervisor *c, worker_supervisor_assigned *a)
{
    const manifest_entry *e = c->manifest ? manifest_find(c->manifest, a->a.model) : NULL;
    bool same = e && e->sha256 && strcmp(e->sha256, a->a.artifact.digest) == 0 &&
                a->a.artifact.n_files == 0 && !is_distrusted(c, a->a.artifact.digest);
    a->own_file = same && snprintf(a->path, sizeof a->path, "%s", e->file) < (int)sizeof a->path;
    return a->own_file || model_store_find(c->store, &a->a.artifact, a->path);
}

static bool find_adapter(worker_supervisor *c, worker_supervisor_assigned *a, size_t i)
{
    char path[MODEL_PATH_SIZE];
    const assignment_adapter *x = &a->a.adapters[i];
    if (!model_store_find(c->store, &x->artifact, path)) return false;
    if (!a->adapters[i] && asprintf(&a->adapters[i], "%s=%s", x->name, path) < 0) a->adapters[i] = NULL;
    return a->adapters[i] != NULL;
}

/* All that its workers read is here. */
static bool find_files(worker_supervisor *c, worker_supervisor_assigned *a)
{
    bool here = worker_supervisor_find_model(c, a);
    for (size_t i = 0; here && i < a->a.n_adapters; i++) here = find_adapter(c, a, i);
    if (!here) *a->path = '\0';
    return here;
}

static void free_assigned(worker_supervisor_assigned *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assignment_done(&list[i].a);
        for (size_t k = 0; k < WORKER_SPEC_ADAPTERS; k++) free(list[i].adapters[k]);
    }
    free(list);
}

static worker_spec spec_of(const worker_supervisor_assigned *a)
{
    worker_spec s = a->a.spec;
    s.model = a->a.model;
    s.path = a->path;
    s.sha256 = a->a.artifact.n_files ? NULL : a->a.artifact.digest; /* of a folder each file was checked */
    for (size_t i = 0; i < a->a.n_adapters; i++) s.adapters[i] = a->adapters[i];
    return s;
}

/* Its own models, and those assigned ones whose files are here. */
static void set_workers(void *user)
{
    worker_supervisor *c = user;
    shoal_err err;
    worker_spec *list = calloc(n_own(c) + c->n_assigned + 1, sizeof *list);
    size_t n = n_own(c);
    if (!list || !c->agent) {
        free(list);
        return;
    }
    if (n) memcpy(list, c->specs, n * sizeof *list);
    for (size_t i = 0; i < c->n_assigned; i++)
        if (find_files(c, &c->assigned[i])) list[n++] = spec_of(&c->assigned[i]);
    if (agent_set(c->agent, list, n, &err) != 0)
        LOG(LOG_ERROR, "supervisor", "cannot_serve", LOG_S("reason", err.message));
    free(list);
}

static bool worker_supervisor_take(worker_supervisor *c, worker_supervisor_assigned *to,
                                   const Shoal__V1__Assignment *m)
{
    shoal_err err;
    int rc = assignment_take(&to->a, m, &err);
    if (rc == 0 && is_own(c, to->a.model)) {
        rc = err_set(&err, SHOAL_EINVALID, "%.64s: this machine's configuration has it", to->a.model);
        assignment_done(&to->a);
    }
    if (rc != 0) LOG(LOG_WARN, "supervisor", "not_taken", LOG_S("reason", err.message));
    return rc == 0;
}

/* What its models are made of, but for files that this machine has by itself. */
static void want(worker_supervisor *c)
{
    size_t most = c->n_assigned * (1 + WORKER_SPEC_ADAPTERS) + 1, n = 0;
    const artifact **list = calloc(most, sizeof(artifact *));
    for (size_t i = 0; list && i < c->n_assigned; i++) {
        worker_supervisor_assigned *a = &c->assigned[i];
        find_files(c, a);
        if (!a->own_file) list[n++] = &a->a.artifact;
        for (size_t k = 0; k < a->a.n_adapters; k++) list[n++] = &a->a.adapters[k].artifact;
    }
    if (list) model_store_want(c->store, list, n); /* else the next assignment says as much */
    free(list);
}

void worker_supervisor_assign(worker_supervisor *c, const Shoal__V1__Assignments *all)
{
    size_t n = 0;
    worker_supervisor_assigned *list = calloc(all->n_models + 1, sizeof *list);
    if (!list) return; /* the next one says as much */
    for (size_t i = 0; i < all->n_models; i++)
        if (worker_supervisor_take(c, &list[n], all->models[i])) n++;
    LOG(LOG_INFO, "supervisor", "assigned", LOG_I("models", n));
    worker_supervisor_assigned *was = c->assigned;
    size_t n_was = c->n_assigned;
    c->assigned = list;
    c->n_assigned = n;
    want(c);
    set_workers(c);
    relay_recheck(c->relay);
    free_assigned(was, n_was);
}

void worker_supervisor_hear(worker_supervisor *c, const Shoal__V1__Holders *m)
{
    model_store_hear(c->store, m);
}

static const worker_supervisor_assigned *assigned_of(const worker_supervisor *c, const char *model)
{
    for (size_t i = 0; i < c->n_assigned; i++)
        if (strcmp(c->assigned[i].a.model, model) == 0) return &c->assigned[i];
    return NULL;
}

/* ---- files that workers cannot read --------------------------------------------------------------- */

/* This machine's own file is no more relied upon: the model comes from others, as where there is none. */
static void distrust(worker_supervisor *c, const worker_supervisor_assigned *a)
{
    LOG(LOG_ERROR, "supervisor", "file_refused", LOG_S("model", a->a.model), LOG_S("path", a->path),
        LOG_S("so", "it is fetched from other machines"));
    if (c->n_distrusted < DISTRUSTED_MAX) memcpy(c->distrusted[c->n_distrusted++], a->a.artifact.digest, 65);
}

static void check_files(worker_supervisor *c, worker_supervisor_assigned *a)
{
    const artifact *list[1 + WORKER_SPEC_ADAPTERS];
    size_t n = 0;
    if (!a->own_file) list[n++] = &a->a.artifact;
    for (size_t k = 0; k < a->a.n_adapters; k++) list[n++] = &a->a.adapters[k].artifact;
    model_store_check(c->store, list, n);
}

static void fetch_anew(uv_timer_t *t)
{
    worker_supervisor *c = t->data;
    want(c);
    set_workers(c);
}

/* From the agent, which is not to be asked for anything now. */
static void refused(void *user, const char *model)
{
    worker_supervisor *c = user;
    for (size_t i = 0; i < c->n_assigned; i++) {
        worker_supervisor_assigned *a = &c->assigned[i];
        if (strcmp(a->a.model, model) != 0) continue;
        bool own = a->own_file;
        if (own) distrust(c, a);
        check_files(c, a);
        if (own) uv_timer_start(c->anew, fetch_anew, 0, 0);
        return;
    }
}

/* ---- reports ------------------------------------------------------------------------------------- */

static bool worker_supervisor_make_room(worker_supervisor *c, size_t n)
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

/* What others may fetch: all that has come, and what this machine has by itself of what is assigned. */
static void put_files(worker_supervisor *c, Shoal__V1__AgentMessage *m)
{
    size_t n = model_store_count(c->store);
    char **list = realloc(c->digests, (n + c->n_assigned + 1) * sizeof(char *));
    if (!list) return;
    c->digests = list;
    shoal__v1__stored_files__init(&c->stored);
    for (size_t i = 0; i < n; i++) list[i] = (char *)model_store_at(c->store, i)->digest;
    for (size_t i = 0; i < c->n_assigned; i++)
        if (c->assigned[i].own_file) list[n++] = c->assigned[i].a.artifact.digest;
    c->stored.digests = list;
    c->stored.n_digests = n < MEMBER_TABLE_FILES_MAX ? n : MEMBER_TABLE_FILES_MAX;
    m->stored = &c->stored;
}

void worker_supervisor_report(worker_supervisor *c, Shoal__V1__AgentMessage *m)
{
    put_files(c, m);
    size_t n = registry_count(c->registry);
    if (!worker_supervisor_make_room(c, n)) return; /* the next second says it */
    shoal__v1__replicas__init(&c->all);
    for (size_t i = 0; i < n; i++) {
        const replica *r = registry_at(c->registry, i);
        shoal__v1__replica_report__init(&c->reports[i]);
        c->reports[i].id = (char *)r->id;
        c->reports[i].generation = r->generation;
        c->reports[i].model = (char *)r->model;
        c->reports[i].state = (char *)replica_state_name(r->state);
        c->reports[i].reason = (char *)r->reason;
        const worker_supervisor_assigned *a = assigned_of(c, r->model);
        c->reports[i].assigned = !is_own(c, r->model);
        c->reports[i].standby = a && (unsigned)atoi(strrchr(r->id, '/') + 1) >= a->a.n_serving;
        c->list[i] = &c->reports[i];
    }
    c->all.replicas = c->list;
    c->all.n_replicas = n;
    m->replicas = &c->all;
}

static void send_news(uv_timer_t *t)
{
    worker_supervisor *c = t->data;
    if (c->attached) attach_report(c->attached);
}

/* A replica that is ready, or not any more, is worth a message of its own; many at once are worth one. */
static void on_change(void *user, const registry_event *e)
{
    worker_supervisor *c = user;
    if (!uv_is_active((uv_handle_t *)c->news)) uv_timer_start(c->news, send_news, NEWS_MS, 0);
}

static uv_timer_t *open_timer(worker_supervisor *c, uv_loop_t *loop)
{
    uv_timer_t *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    uv_timer_init(loop, t);
    t->data = c;
    return t;
}

static int open_news(worker_supervisor *c, uv_loop_t *loop, shoal_err *err)
{
    c->anew = open_timer(c, loop);
    if (!c->anew || !(c->news = open_timer(c, loop))) return err_nomem(err);
    return registry_listen(c->registry, on_change, c, err);
}

static void news_closed(uv_handle_t *h)
{
    free(h);
}

/* ---- what others fetch --------------------------------------------------------------------------- */

static bool find_blob(const void *user, const char *digest, char ret_path[MODEL_SEND_PATH])
{
    const worker_supervisor *c = user;
    for (size_t i = 0; i < c->n_assigned; i++)
        if (c->assigned[i].own_file && strcmp(c->assigned[i].a.artifact.digest, digest) == 0)
            return snprintf(ret_path, MODEL_SEND_PATH, "%s", c->assigned[i].path) < MODEL_SEND_PATH;
    return model_store_path(c->store, digest, ret_path);
}

/* Who asks, the relay has looked at and said to the log (find). */
static void on_fetch(void *user, grpc_call *call, const uint8_t *msg, size_t n)
{
    worker_supervisor *c = user;
    model_send(&c->sends, call, msg, n, "a node", find_blob, c);
}

static const grpc_method MODELS[] = {{"/shoal.v1.Models/Fetch", on_fetch}};

/* In the folder of the workers' sockets, which is this user's alone. */
static int open_models(worker_supervisor *c, uv_loop_t *loop, shoal_err *err)
{
    const http_limits limits = {.max_body_bytes = 4096,
                                .max_connections = RELAY_NODES_MAX + 16,
                                .idle_timeout_ms = 10000,
                                .write_timeout_ms = 60000};
    int n =
        snprintf(c->models_address, sizeof c->models_address, "unix:%s/models.sock", agent_run_dir(c->agent));
    if (n >= (int)sizeof c->models_address)
        return err_set(err, SHOAL_ELIMIT, "%s: too long for the address of a socket",
                       agent_run_dir(c->agent));
    int rc = grpc_server_new(&c->models, loop, MODELS, 1, c, &limits, err);
    return rc == 0 ? grpc_server_listen(c->models, c->models_address, err) : rc;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int open_tls(worker_supervisor *c, const folder *dir, shoal_err *err)
{
    char cert[4096], ca[4096], crl[4096];
    snprintf(cert, sizeof cert, "%s/member.pem", dir->path);
    snprintf(ca, sizeof ca, "%s/ca.crt", dir->path);
    snprintf(crl, sizeof crl, "%s/crl.pem", dir->path);
    tls_options o = {.cert_file = cert,
                     .key_file = cert,
                     .ca_file = ca,
                     .crl_file = crl,
                     .leaf_alone = true,
                     .admit = admit,
                     .user = c};
    int rc = tls_context_new(&c->tls, TLS_SERVER, &o, err);
    o.admit = admit_node;
    return rc == 0 ? tls_context_new(&c->as_node, TLS_CLIENT, &o, err) : rc;
}

static int start_workers(worker_supervisor *c, uv_loop_t *loop, const folder *dir, shoal_err *err)
{
    agent_arbiter shared;
    int rc = serve_arbiter_open(&c->arbiter, &c->arbiter_fd, &shared, err);
    if (rc != 0) return rc;
    char packed[MODEL_PATH_SIZE], crashes[MODEL_PATH_SIZE];
    snprintf(packed, sizeof packed, "%s/packed", dir->path);
    snprintf(crashes, sizeof crashes, "%s/crashes", dir->path);
    const agent_options o = {.workers = c->specs,
                             .packed = packed,
                             .packed_min_mb = PACKED_STORE_MIN_MB,
                             .crashes = crashes,
                             .n_workers = n_own(c),
                             .log_level = c->config ? c->config->log_level : NULL,
                             .member = dir->path,
                             .refused = refused,
                             .user = c,
                             .arbiter = &shared};
    return agent_new(&c->agent, loop, c->registry, &o, err);
}

static int open_store(worker_supervisor *c, uv_loop_t *loop, const worker_supervisor_options *o,
                      shoal_err *err)
{
    char *path = NULL, at[MODEL_PATH_SIZE];
    snprintf(at, sizeof at, "%s/models", o->dir->path);
    const model_store_options s = {.folder = at,
                                   .max_bytes = o->models_bytes,
                                   .bytes_per_s = o->bytes_per_s,
                                   .changed = set_workers,
                                   .user = c};
    if (manifest_locate(&path, NULL) == 0) manifest_open(&c->manifest, path, NULL); /* may be absent */
    free(path);
    return model_store_open(&c->store, loop, &s, err);
}

/* Layers are dealt out, and numbers of replicas follow the load, by whoever sees all machines. */
static int check_own(const gateway_config *c, shoal_err *err)
{
    for (size_t i = 0; i < c->n_models; i++) {
        if (c->models[i].scale.max > 0)
            return config_fail(c, err,
                               "models[%zu].replicas: an agent's own models have a fixed number; a gateway's "
                               "shoal.yaml can say a range",
                               i);
        if (placement_is_cut(&c->models[i].shards))
            return config_fail(
                c, err,
                "models[%zu].shards: an agent's own models are whole; a gateway's shoal.yaml can "
                "deal out layers",
                i);
    }
    return 0;
}

static int open_all(worker_supervisor *c, uv_loop_t *loop, const worker_supervisor_options *o, shoal_err *err)
{
    int rc = o->config ? config_load(&c->config, &HOME_STAGES, o->config, err) : 0;
    if (rc == 0 && c->config) rc = check_own(c->config, err);
    if (rc == 0 && c->config) rc = serve_models_find(&c->specs, c->config, err);
    if (rc == 0) rc = open_store(c, loop, o, err);
    if (rc == 0) rc = open_tls(c, o->dir, err);
    if (rc == 0) rc = registry_new(&c->registry, loop, err);
    const relay_options r = {
        .listen = o->listen, .tls = c->tls, .find = worker_supervisor_find, .stays = stays, .user = c};
    if (rc == 0) rc = relay_open(&c->relay, loop, &r, err);
    if (rc == 0) rc = open_news(c, loop, err);
    if (rc == 0) rc = start_workers(c, loop, o->dir, err);
    return rc == 0 ? open_models(c, loop, err) : rc;
}

int worker_supervisor_open(worker_supervisor **ret, uv_loop_t *loop, const worker_supervisor_options *o,
                           shoal_err *err)
{
    worker_supervisor *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    c->arbiter_fd = -1;
    int rc = open_all(c, loop, o, err);
    if (rc != 0) {
        worker_supervisor_close(c, NULL, NULL);
        return rc;
    }
    LOG(LOG_INFO, "supervisor", "started", LOG_I("port", worker_supervisor_port(c)),
        LOG_I("models", n_own(c)));
    *ret = c;
    return 0;
}

static void relay_gone(void *user)
{
    worker_supervisor *c = user;
    void (*done)(void *) = c->done;
    void *done_user = c->done_user;
    tls_context_unref(c->tls);
    tls_context_unref(c->as_node);
    if (c->config) serve_models_free(c->specs, c->config->n_models);
    serve_arbiter_close(c->arbiter, c->arbiter_fd);
    config_free(c->config);
    manifest_free(c->manifest);
    free_assigned(c->assigned, c->n_assigned);
    free(c->digests);
    free(c->reports);
    free(c->list);
    free(c);
    if (done) done(done_user);
}

static void store_gone(void *user)
{
    worker_supervisor *c = user;
    relay_close(c->relay, relay_gone, c);
}

static void models_gone(void *user)
{
    worker_supervisor *c = user;
    agent_free(c->agent);
    c->agent = NULL;
    if (c->news) {
        registry_unlisten(c->registry, on_change, c);
        uv_close((uv_handle_t *)c->news, news_closed);
    }
    if (c->anew) uv_close((uv_handle_t *)c->anew, news_closed);
    registry_free(c->registry);
    c->registry = NULL;
    model_store_close(c->store, store_gone, c);
}

static void workers_gone(void *user)
{
    worker_supervisor *c = user;
    if (c->models)
        grpc_server_close(c->models, models_gone, c);
    else
        models_gone(c);
}

void worker_supervisor_worker_exited(worker_supervisor *c, int pid, int status)
{
    if (c->agent) agent_worker_exited(c->agent, pid, status);
}

void worker_supervisor_close(worker_supervisor *c, void (*done)(void *user), void *user)
{
    c->done = done;
    c->done_user = user;
    c->attached = NULL;
    if (c->agent)
        agent_stop(c->agent, GRACE_MS, workers_gone, c);
    else
        workers_gone(c);
}
