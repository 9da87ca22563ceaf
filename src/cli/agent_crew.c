/* agent_crew.c: a registry, an agent and a relay on the loop of `shoal agent`. */
#include "cli/agent_crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/serve_models.h"
#include "cluster/agent.h"
#include "cluster/registry.h"
#include "cluster/relay.h"
#include "compute/compute.h"
#include "trust/identity.h"

enum { ARBITER_SLOTS = 64, GRACE_MS = 5000 };

struct crew {
    gateway_config *config;
    worker_spec *specs;
    arbiter *arbiter;
    int arbiter_fd;
    registry *registry;
    agent *agent;
    relay *relay;
    tls_context *tls;
    const attach *attached;
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

void crew_follow(crew *c, const attach *a)
{
    c->attached = a;
}

void crew_reload(crew *c)
{
    shoal_err err;
    if (tls_context_reload(c->tls, &err) != 0)
        LOG(LOG_ERROR, "crew", "certificates_unread", LOG_S("reason", err.message));
    relay_recheck(c->relay);
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
        c->list[i] = &c->reports[i];
    }
    c->all.replicas = c->list;
    c->all.n_replicas = n;
    m->replicas = &c->all;
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
                             .n_workers = c->config->n_models,
                             .log_level = c->config->log_level,
                             .log_json = json_log,
                             .arbiter = &shared};
    return agent_new(&c->agent, loop, c->registry, &o, err);
}

static int open_all(crew *c, uv_loop_t *loop, const crew_options *o, shoal_err *err)
{
    int rc = config_load(&c->config, o->config, err);
    if (rc == 0) rc = serve_models_find(&c->specs, c->config, err);
    if (rc == 0) rc = open_tls(c, o->dir, err);
    if (rc == 0) rc = registry_new(&c->registry, loop, err);
    const relay_options r = {.listen = o->listen, .tls = c->tls, .find = find, .user = c};
    if (rc == 0) rc = relay_open(&c->relay, loop, &r, err);
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
    LOG(LOG_INFO, "crew", "started", LOG_I("port", crew_port(c)), LOG_I("models", c->config->n_models));
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
    free(c->reports);
    free(c->list);
    free(c);
    if (done) done(done_user);
}

static void workers_gone(void *user)
{
    crew *c = user;
    agent_free(c->agent);
    registry_free(c->registry);
    c->registry = NULL;
    relay_close(c->relay, relay_gone, c);
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
