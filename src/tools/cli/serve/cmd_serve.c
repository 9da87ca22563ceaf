/* cmd_serve.c: `shoal serve`: gateway, agent and workers of one machine.
 *
 * Models of the command line are a configuration of these alone (serve/serve_given.h).
 * Start: configuration → models resolved → gateway listens (a taken port costs nothing, and /healthz answers
 * while models load) → workers spawned → one line when every replica has reported. SIGHUP: the file is read
 * again (serve_reload.h), unless it says that the terminal is lost. Stop, on that, SIGTERM or SIGINT: with
 * drain_grace_ms the gateway says for so long that it is not ready, and answers; then it drains, then the
 * workers go, then the loop runs out. A second signal cuts the answers that still run, a third ends
 * everything at once. When the drain is over the process ends whatever its threads do (os/exit_guard.h). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/clock.h"
#include "logging/tty_style.h"
#include "os/cpu_share.h"
#include "os/crash.h"
#include "os/exit_guard.h"
#include "os/handover.h"
#include "json/json.h"
#include "kinds/model_kind.h"
#include "logging/log.h"
#include "logging/log_ring.h"
#include "cli/commands.h"
#include "cli/models/pull_one.h"
#include "cluster/stage_name.h"
#include "command/cli_home.h"
#include "command/cli_model.h"
#include "command/cli_tuning.h"
#include "compute/compute.h"
#include "config/config_fit.h"
#include "endpoints/table.h"
#include "gateway/gateway.h"
#include "manager/manager_find.h"
#include "ingress/pool_job.h"
#include "agent/agent.h"
#include "base/name.h"
#include "control/control.h"
#include "serve/measure_here.h"
#include "serve/measure_idle.h"
#include "serve/serve_address.h"
#include "serve/serve_arbiter.h"
#include "serve/serve_banner.h"
#include "serve/serve_check.h"
#include "serve/serve_etcd.h"
#include "serve/serve_given.h"
#include "serve/serve_manager.h"
#include "serve/serve_models.h"
#include "serve/serve_reload.h"
#include "serve/serve_scale.h"
#include "serve/serve_stages.h"
#include "serve/supervised.h"
#include "serve/supervisor.h"
#include "trust/state.h"
#include "wire/env_uv.h"
#include "wire/tls_watch.h"
#include "wire/listening.h"
#include "wire/loop.h"
#include "rules/home.h"

enum { WORKER_GRACE_MS = 5000, CUT_GRACE_MS = 500, EXIT_GRACE_MS = 5000, FLUSH_MS = 2000 };
enum { TEARDOWN_MS = CUT_GRACE_MS + FLUSH_MS + WORKER_GRACE_MS + EXIT_GRACE_MS };
enum { LOG_LINES_KEPT = 4096, LOG_BYTES_KEPT = 1 << 20 };

typedef struct server {
    uv_loop_t loop;
    uv_signal_t term, interrupt, hangup;
    supervised *supervised; /* NULL: nobody supervises */
    uv_timer_t drain;
    uint64_t start_ns;
    gateway_config *config;
    worker_spec *specs;
    serve_stages stages;   /* of models whose layers are dealt out */
    control_model *placed; /* what the control plane places; NULL: all is served here */
    uint64_t *bytes;       /* [n_models]: what a replica takes of this machine's memory */
    serve_scale *scale;    /* how many replicas models have; NULL: it is not open */
    arbiter *arbiter;
    int arbiter_fd;
    registry *registry;
    connector_remote far; /* to workers of other machines */
    agent *agent;
    manager *manager; /* of models that come and go while it serves */
    table *table;
    dns *dns;
    tls_watch *workers_tls; /* of discovery.tls */
    etcd *etcd;
    control_shared_plan shared_plan;      /* kept in etcd */
    double bytes_per_s, multiplies_per_s; /* of this machine; 0: not measured */
    measure_idle *measure;                /* NULL: they are not asked for */
    gateway *gateway;
    control *control; /* NULL: no other machine may come */
    char *config_path;
    serve_reload *reload;
    bool listen_given, had_terminal;
    bool json_log, banner, said_ready, stopping, drained, flushes;
    bool withdrawn; /* it is to stop, and answers new requests for drain_grace_ms more */
    int exit_code, n_signals;
    uint64_t stop_ns; /* the last SIGTERM or SIGINT */
} server;

/* ---- ready ------------------------------------------------------------------------------------- */

static void make_url(const server *s, char *out, size_t cap)
{
    const gateway_config *c = s->config;
    serve_url(out, cap, c->listen ? c->listen : "", c->tls_cert != NULL, gateway_port(s->gateway));
}

/* Where the configuration names the replica's model, or that of which it is a stage. */
static size_t model_index(const server *s, const replica *r)
{
    size_t i = 0, n = strlen(r->model);
    stage_name_parse(r->model, &n, NULL, NULL);
    while (i < s->config->n_models &&
           (strncmp(s->config->models[i].name, r->model, n) != 0 || s->config->models[i].name[n]))
        i++;
    return i;
}

static void print_failures(server *s)
{
    for (size_t i = 0; i < registry_count(s->registry); i++) {
        const replica *r = registry_at(s->registry, i);
        if (r->state != REPLICA_FAILED || r->node) continue;
        shoal_err err;
        config_fail(s->config, &err, "models[%zu]: %s cannot serve: %s", model_index(s, r), r->id, r->reason);
        fprintf(stderr, "shoal serve: %s\n", err.message);
    }
}

/* The replicas that this program starts, and those that have something to say: ready or failed for good. */
static size_t count_settled(server *s, size_t *ret_ready, size_t *ret_failed)
{
    size_t n = 0;
    *ret_ready = *ret_failed = 0;
    for (size_t i = 0; i < registry_count(s->registry); i++) {
        const replica *r = registry_at(s->registry, i);
        replica_state state = r->state;
        if (strcmp(r->source, "agent") != 0) continue;
        n++;
        *ret_ready += state == REPLICA_READY;
        *ret_failed += state == REPLICA_FAILED;
    }
    return n;
}

static void begin_stop(server *s);

/* What a worker says of itself counts more than what its file said before (serve_models_fit): the file may
 * have been another one, or could not be read. Before anything was served that ends the start. */
static void check_fit(server *s, const replica *r)
{
    if (r->state != REPLICA_READY || !r->info || s->stopping) return;
    const Shoal__V1__ModelInfo *m = r->info;
    model_facts f = {.task = m->task,
                     .labels = (const char *const *)m->labels,
                     .n_labels = m->n_labels,
                     .has_chat_template = m->has_chat_template};
    shoal_err err;
    if (config_fit(s->config, r->model, &f, &err) == 0) return;
    LOG(LOG_ERROR, "serve", "model_does_not_fit", LOG_S("replica", r->id), LOG_S("reason", err.message));
    if (s->said_ready || r->node) return;
    s->exit_code = cli_fail(&cmd_serve, &err);
    begin_stop(s);
}

static void say_when_ready(server *s)
{
    size_t ready, failed, n;
    if (s->said_ready || s->stopping || !s->gateway) return;
    n = count_settled(s, &ready, &failed);
    if (ready + failed < n) return;
    s->said_ready = true;
    print_failures(s);
    if (n > 0 && ready == 0) {
        s->exit_code = CLI_FAILED;
        begin_stop(s);
        return;
    }
    char url[256];
    make_url(s, url, sizeof url);
    double ms = clock_ms_since(s->start_ns);
    LOG(LOG_INFO, "serve", "ready", LOG_S("url", url), LOG_I("replicas", ready), LOG_I("failed", failed),
        LOG_F("ms", ms), LOG_I("restarts", handover_restarts()));
    handover_tell(HANDOVER_READY, 0, 0);
    if (handover_restarts() > 0) return; /* whoever reads standard output was told when it began */
    if (s->banner) {
        printf("Shoal " SHOAL_VERSION " serves %zu model%s at %s (ready in %.0f ms)\n", ready,
               ready == 1 ? "" : "s", url, ms);
        serve_banner_print(url, s->config, s->registry);
    } else {
        printf("ready %s replicas=%zu failed=%zu ms=%.0f\n", url, ready, failed, ms);
    }
    fflush(stdout);
}

static void on_change(void *user, const registry_event *e)
{
    server *s = user;
    if (e->what == REGISTRY_CHANGE) check_fit(s, e->replica);
    if (e->what == REGISTRY_CHANGE || e->what == REGISTRY_DROP)
        say_when_ready(s); /* nobody waits for it more */
}

/* ---- stop -------------------------------------------------------------------------------------- */

static void etcd_told(void *user)
{
    server *s = user;
    manager_close(s->manager);
    agent_free(s->agent);
    table_close(s->table);
    dns_close(s->dns);
    registry_free(s->registry);
    tls_watch_free(s->workers_tls);
    tls_context_unref(s->far.workers_tls);
    s->agent = NULL;
    s->manager = NULL;
    s->registry = NULL;
    uv_close((uv_handle_t *)&s->term, NULL);
    uv_close((uv_handle_t *)&s->interrupt, NULL);
    uv_close((uv_handle_t *)&s->hangup, NULL);
    supervised_close(s->supervised);
}

static void workers_gone(void *user)
{
    server *s = user;
    etcd_close(s->etcd, etcd_told, s);
    s->etcd = NULL;
}

static void stop_workers(server *s)
{
    if (s->drained) return;
    s->drained = true;
    exit_guard_stopping(WORKER_GRACE_MS + EXIT_GRACE_MS, s->exit_code);
    uv_close((uv_handle_t *)&s->drain, NULL);
    serve_reload_free(s->reload);
    s->reload = NULL;
    measure_idle_close(s->measure);
    s->measure = NULL;
    serve_scale_close(s->scale);
    s->scale = NULL;
    gateway_free(s->gateway);
    control_close(s->control, NULL, NULL); /* it leaves the registry now, the loop later */
    s->gateway = NULL;
    s->control = NULL;
    if (s->agent)
        agent_stop(s->agent, WORKER_GRACE_MS, workers_gone, s);
    else
        workers_gone(s); /* the start failed before there were any */
}

static void stop_now(uv_timer_t *t);

static void flushed(void *user)
{
    server *s = user;
    if (!s->drained) uv_timer_start(&s->drain, stop_now, 0, 0);
}

/* What a collector is to get goes out first. */
static void stop_now(uv_timer_t *t)
{
    server *s = t->data;
    bool flushes = s->gateway && !s->flushes;
    s->flushes = true;
    if (flushes)
        gateway_flush(s->gateway, FLUSH_MS, flushed, s);
    else
        stop_workers(s);
}

/* Say so to those who still wait; whoever does not take even that is left behind. */
static void cmd_serve_cut(server *s, const char *reason)
{
    LOG(LOG_WARN, "serve", "drain_cut", LOG_S("reason", reason));
    uv_timer_start(&s->drain, stop_now, CUT_GRACE_MS, 0);
    gateway_cut(s->gateway);
}

static void drain_over(uv_timer_t *t)
{
    cmd_serve_cut(t->data, "some answers did not end within drain_ms");
}

/* From here on a turn of the loop later: the server is not torn down under its own callback. */
static void gateway_drained(void *user)
{
    server *s = user;
    if (!s->drained) uv_timer_start(&s->drain, stop_now, 0, 0);
}

static void begin_stop(server *s)
{
    s->stopping = true;
    manager_drain(s->manager);
    etcd_drain(s->etcd);
    if (s->gateway) {
        uv_timer_start(&s->drain, drain_over, gateway_config_now(s->gateway)->drain_ms, 0);
        gateway_drain(s->gateway, gateway_drained, s);
    } else {
        uv_timer_start(&s->drain, stop_now, 0, 0);
    }
}

static void grace_over(uv_timer_t *t)
{
    server *s = t->data;
    s->withdrawn = false;
    begin_stop(s);
}

/* Whoever sends requests here hears at the next look at /readyz that it is to send no more; until then they
 * are answered. Only whoever stops services looks there, so that a terminal's signal waits for nobody. */
static bool withdraw(server *s, int signum)
{
    uint64_t grace_ms = s->gateway ? gateway_config_now(s->gateway)->drain_grace_ms : 0;
    if (signum != SIGTERM || grace_ms == 0 || s->stopping || s->withdrawn) return false;
    LOG(LOG_INFO, "serve", "withdrawn", LOG_I("ms", grace_ms));
    s->withdrawn = true;
    exit_guard_announced(grace_ms + gateway_config_now(s->gateway)->drain_ms + TEARDOWN_MS);
    gateway_withdraw(s->gateway);
    uv_timer_start(&s->drain, grace_over, grace_ms, 0);
    return true;
}

static void signalled(uv_signal_t *h, int signum)
{
    server *s = h->data;
    bool alone = !handover_is_open(); /* else the supervisor has looked */
    if (signum != SIGHUP && alone && supervisor_repeats(&s->stop_ns, clock_ns())) return;
    if (withdraw(s, signum)) return;
    if (signum == SIGHUP && s->withdrawn) return;
    s->withdrawn = false;                        /* a second one ends the grace */
    if (signum == SIGHUP && s->stopping) return; /* a closed terminal sends it more than once */
    if (++s->n_signals > 2) _exit(128 + signum); /* the workers' parent is gone, so they go as well */
    if (s->n_signals == 2) s->exit_code = 128 + signum;
    if (s->n_signals == 2 && s->gateway) cmd_serve_cut(s, "a second signal");
    if (s->stopping) return;
    LOG(LOG_INFO, "serve", "stopping", LOG_I("signal", signum));
    begin_stop(s);
}

/* A process that has one may open it by this name, whatever its standard streams are. */
static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

/* Both a closed terminal and whoever wants the file to be read again send SIGHUP; with the first the terminal
 * is gone. */
static void hung_up(uv_signal_t *h, int signum)
{
    server *s = h->data;
    bool asks = !s->stopping && !s->withdrawn && !(s->had_terminal && !has_terminal());
    if (asks && s->reload)
        serve_reload_start(s->reload);
    else if (asks && !s->config_path)
        LOG(LOG_WARN, "serve", "nothing_to_reload", LOG_S("reason", "its models are the command line's"));
    else
        signalled(h, signum);
}

static void worker_exited(void *user, int pid, int status)
{
    server *s = user;
    if (s->agent) agent_worker_exited(s->agent, pid, status);
}

/* ---- start ------------------------------------------------------------------------------------- */

/* Among gateways that know each other the one that leads says who serves what, else the one with the CA. */
static bool places_models(const server *s)
{
    return s->control && (control_has_ca(s->control) || s->config->etcd.n_endpoints > 0);
}

/* Where packed weights are kept: malloc'd, NULL for nowhere. */
/* NULL: no home, no state: the log has the line of a crash, and no report is kept. */
static char *serve_crashes(const gateway_config *c)
{
    char *path = NULL;
    return state_path(&path, c->cluster_state, "crashes", NULL) == 0 ? path : NULL;
}

static char *serve_packed(agent_options *o, const gateway_config *c)
{
    char *path = NULL;
    if (c->packed_mb == 0) return NULL;
    int rc = c->packed_folder ? 0 : state_path(&path, c->cluster_state, "packed", NULL);
    if (rc) return NULL; /* no home, no state: every start packs */
    o->packed = path ? path : c->packed_folder;
    o->packed_mb = (size_t)c->packed_mb;
    o->packed_min_mb = (size_t)c->packed_min_mb;
    o->packed_check = c->packed_check;
    return path;
}

/* What this machine serves where nobody places: models of which no replica is wanted now have no worker. The caller's;
 * NULL: no memory. */
static worker_spec *list_alone(const server *s, size_t *ret_n)
{
    worker_spec *list = calloc(s->stages.n_alone + 1, sizeof *list);
    *ret_n = 0;
    for (size_t i = 0; list && i < s->stages.n_alone; i++) {
        const worker_spec *w = &s->stages.alone[i];
        if (w->n_replicas > 0 || w->end_layer > 0) list[(*ret_n)++] = *w;
    }
    return list;
}

static int serve_alone(server *s, shoal_err *err)
{
    size_t n;
    worker_spec *list = list_alone(s, &n);
    int rc = list ? manager_base(s->manager, list, n, err) : err_nomem(err);
    free(list);
    return rc;
}

static int start_agent(server *s, shoal_err *err)
{
    const gateway_config *c = s->config;
    agent_arbiter shared;
    int rc = serve_arbiter_open(&s->arbiter, &s->arbiter_fd, &shared, err);
    if (rc != 0) return rc;
    bool places = places_models(s); /* the placer says what runs here; after a crash, the model manager */
    size_t n_alone;
    worker_spec *alone = list_alone(s, &n_alone);
    if (!alone) return err_nomem(err);
    agent_options o = {.workers = alone,
                       .n_workers = places || handover_restarts() ? 0 : n_alone,
                       .member = s->control ? control_state(s->control) : NULL,
                       .log_level = c->log_level,
                       .arbiter = &shared};
    char *packed = serve_packed(&o, c), *crashes = serve_crashes(c);
    o.crashes = crashes;
    rc = agent_new(&s->agent, &s->loop, s->registry, &o, err);
    free(crashes);
    free(packed);
    free(alone);
    return rc;
}

static bool leads(void *user)
{
    server *s = user;
    return s->etcd && etcd_leads(s->etcd);
}

static const char *leader(void *user)
{
    server *s = user;
    return s->etcd ? etcd_leader(s->etcd) : NULL;
}

static void post(void *user, const char *node, const uint8_t *plan, size_t n)
{
    server *s = user;
    if (s->etcd) etcd_put_plan(s->etcd, node, plan, n);
}

static void plan_read(void *user, const char *node, const uint8_t *plan, size_t n)
{
    server *s = user;
    if (s->control) control_plan_read(s->control, node, plan, n);
}

static void plans_synced(void *user)
{
    server *s = user;
    if (s->control) control_plans_synced(s->control);
}

static void elected(void *user, int64_t term)
{
    server *s = user;
    if (s->control) control_leader_changed(s->control);
}

static void serve_here(void *user, const worker_spec *workers, size_t n)
{
    server *s = user;
    shoal_err err;
    if (s->manager && !s->stopping && manager_base(s->manager, workers, n, &err) != 0)
        LOG(LOG_ERROR, "serve", "cannot_serve", LOG_S("reason", err.message));
}

static const gateway_config *config_now(void *user)
{
    const server *s = user;
    return s->gateway ? gateway_config_now(s->gateway) : s->config;
}

static int set_workers(void *user, const worker_spec *workers, size_t n, shoal_err *err)
{
    server *s = user;
    if (!s->agent || s->stopping) return err_set(err, SHOAL_EUNAVAILABLE, "the server is shutting down");
    return agent_set(s->agent, workers, n, err);
}

static void hurry(void *user, const char *model)
{
    server *s = user;
    if (s->agent) agent_hurry(s->agent, model);
}

/* What is served here is what the configuration says, or the control plane, less and more what requests
 * say. */
static int start_keeping(server *s, shoal_err *err)
{
    manager_options o = {.registry = s->registry,
                         .config = s->config,
                         .now = config_now,
                         .placed = places_models(s),
                         .set = set_workers,
                         .hurry = hurry,
                         .user = s};
    int rc = serve_manager_open(&s->manager, &s->loop, &o, err);
    if (rc != 0) return rc;
    gateway_show_model_manager(s->gateway, manager_interface(s->manager));
    return places_models(s) ? 0 : serve_alone(s, err);
}

static void on_measured(void *user, double bytes_per_s, double multiplies_per_s)
{
    server *s = user;
    if (s->control) control_place_speeds(s->control, bytes_per_s, multiplies_per_s);
}

/* What layers are dealt out by: now, and when the machine is at rest. */
static int start_measuring(server *s, isa chosen, shoal_err *err)
{
    const measure_idle_options o = {.chosen = chosen,
                                    .measured = measure_here(chosen, &s->bytes_per_s, &s->multiplies_per_s),
                                    .found = on_measured,
                                    .user = s};
    return measure_idle_open(&s->measure, &s->loop, &o, err);
}

static int start_placing(server *s, shoal_err *err)
{
    const gateway_config *c = s->config;
    if (!places_models(s)) return 0;
    s->shared_plan = (control_shared_plan){.user = s, .leads = leads, .leader = leader, .post = post};
    s->placed = calloc(c->n_models + 1, sizeof *s->placed);
    if (!s->placed) return err_nomem(err);
    for (size_t i = 0; i < c->n_models; i++) {
        s->placed[i].want = serve_models_want(c, s->specs, i);
        s->placed[i].want.shape = s->stages.shapes[i];
        s->placed[i].spec = s->specs[i];
    }
    control_place_options o = {.models = s->placed,
                               .n_models = c->n_models,
                               .alone = s->stages.alone,
                               .n_alone = s->stages.n_alone,
                               .site = c->cluster_site,
                               .here = serve_here,
                               .user = s,
                               .shared_plan = c->etcd.n_endpoints > 0 ? &s->shared_plan : NULL};
    isa chosen;
    int rc = 0;
    if (s->stages.n_cut > 0 && isa_choose(&chosen, NULL) == 0) /* what layers are dealt out by */
        rc = start_measuring(s, chosen, err);
    o.bytes_per_s = s->bytes_per_s;
    o.multiplies_per_s = s->multiplies_per_s;
    if (rc == 0) rc = control_place(s->control, &o, err);
    return rc;
}

/* What workers at addresses of their own are reached with. */
static int open_workers_tls(server *s, shoal_err *err)
{
    const config_worker_tls *t = &s->config->discovery_tls;
    const tls_options o = {.cert_file = t->cert, .key_file = t->key, .ca_file = t->ca};
    const env time = env_uv(&s->loop);
    if (!t->cert) return 0;
    int rc = tls_context_new(&s->far.workers_tls, TLS_CLIENT, &o, err);
    if (rc != 0) return err_prefix(err, rc, "discovery.tls");
    s->far.workers_name = t->name;
    registry_require_names(s->registry);
    gateway_show_workers_tls(s->gateway, s->far.workers_tls);
    return tls_watch_new(&s->workers_tls, &time, s->far.workers_tls, "discovery", err);
}

/* Workers that others start. */
static int start_discovery(server *s, shoal_err *err)
{
    const gateway_config *c = s->config;
    dns_options o = {.names = c->dns, .n_names = c->n_dns, .server = c->dns_server};
    int rc = open_workers_tls(s, err);
    if (rc == 0 && c->n_workers) rc = table_open(&s->table, s->registry, c->workers, c->n_workers, err);
    if (rc == 0 && c->n_dns) rc = dns_open(&s->dns, &s->loop, s->registry, &o, err);
    if (rc != 0) return rc;
    const serve_etcd_options etcd = {.name = s->control ? control_name(s->control) : NULL,
                                     .port = gateway_port(s->gateway),
                                     .bytes_per_s = s->bytes_per_s,
                                     .multiplies_per_s = s->multiplies_per_s,
                                     .group = s->control ? control_group(s->control) : NULL,
                                     .plan = {.user = s, .read = plan_read, .synced = plans_synced},
                                     .election = {.user = s, .elected = elected}};
    return serve_etcd_open(&s->etcd, &s->loop, s->registry, c, &etcd, err);
}

static void watch_signals(server *s)
{
    uv_signal_init(&s->loop, &s->term);
    uv_signal_init(&s->loop, &s->interrupt);
    uv_signal_init(&s->loop, &s->hangup);
    uv_timer_init(&s->loop, &s->drain);
    s->term.data = s->interrupt.data = s->hangup.data = s->drain.data = s;
    uv_signal_start(&s->term, signalled, SIGTERM);
    uv_signal_start(&s->interrupt, signalled, SIGINT);
    struct sigaction old;
    bool ignored = sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler == SIG_IGN; /* nohup */
    if (!ignored) uv_signal_start(&s->hangup, hung_up, SIGHUP);
    exit_guard_start(&(exit_guard){
        .component = "serve", .stop_ms = s->config->drain_ms + TEARDOWN_MS, .cut_ms = TEARDOWN_MS});
    s->had_terminal = has_terminal();
}

/* The port for other machines. Without a CA or a certificate there is none, and that is said before workers
 * start. */
static int start_gate(server *s, shoal_err *err)
{
    const gateway_config *c = s->config;
    const control_options o = {.listen = c->cluster_listen,
                               .state = c->cluster_state,
                               .name = c->cluster_name,
                               .far = &s->far,
                               .members = s->registry};
    int rc = control_open(&s->control, &s->loop, &o, err);
    if (rc == 0) gateway_set_control(s->gateway, s->control);
    return rc == 0 ? 0 : err_prefix(err, rc, "cluster");
}

/* So many replicas of a whole model that was started are wanted now; false: as many as before. */
static bool set_number(control_model *placed, worker_spec *alone, const config_model *m, int n)
{
    bool same = alone->n_replicas == n && (!placed || placed->want.n_standby == m->standby);
    alone->n_replicas = n;
    if (!placed) return !same;
    placed->want.n_replicas = (unsigned)n;
    placed->want.n_standby = m->standby;
    placed->want.n_least = m->scale.max ? m->replicas : 0;
    placed->want.n_most = m->scale.max;
    placed->spec.n_replicas = n;
    return !same;
}

static bool discovers(const gateway_config *c)
{
    return c->n_workers > 0 || c->n_dns > 0 || c->etcd.n_endpoints > 0 || c->discovery_tls.cert;
}

/* Workers that others start, from now on. A section `discovery` that comes or goes as a whole needs a restart. */
static void take_workers(server *s, const gateway_config *now)
{
    shoal_err err;
    int rc = 0;
    if (!discovers(s->config) || !discovers(now)) return;
    if (s->table)
        rc = table_set(s->table, now->workers, now->n_workers, &err);
    else if (now->n_workers > 0)
        rc = table_open(&s->table, s->registry, now->workers, now->n_workers, &err);
    if (rc != 0) LOG(LOG_ERROR, "serve", "workers_not_taken", LOG_S("reason", err.message));
}

/* Models come and go by other ways; of those that were started the numbers count. */
static void take_numbers(server *s, const gateway_config *now)
{
    bool changed = false;
    shoal_err err;
    for (size_t i = 0; i < s->stages.n_alone; i++) {
        worker_spec *alone = &s->stages.alone[i];
        const config_model *m = config_find_model(now, alone->model);
        size_t at = 0;
        while (s->placed && at < s->config->n_models && strcmp(s->config->models[at].name, alone->model) != 0)
            at++;
        if (m && alone->end_layer == 0)
            changed |= set_number(s->placed ? &s->placed[at] : NULL, alone, m,
                                  (int)serve_scale_number(s->scale, m->name));
    }
    if (!changed || s->stopping) return;
    if (s->placed)
        control_place_again(s->control);
    else if (serve_alone(s, &err) != 0)
        LOG(LOG_ERROR, "serve", "cannot_serve", LOG_S("reason", err.message));
}

/* The file was read again. */
static void take_file(void *user, const gateway_config *now)
{
    server *s = user;
    take_workers(s, now);
    if (s->scale) serve_scale_take(s->scale, now);
    if (s->scale) take_numbers(s, now);
}

/* By the load. */
static void on_scaled(void *user)
{
    take_numbers(user, config_now(user));
}

static int start_scaling(server *s, shoal_err *err)
{
    const gateway_config *c = s->config;
    s->bytes = calloc(c->n_models + 1, sizeof *s->bytes);
    if (!s->bytes) return err_nomem(err);
    for (size_t i = 0; i < c->n_models; i++) {
        if (c->models[i].external) continue;
        placement_model want = serve_models_want(c, s->specs, i);
        s->bytes[i] = want.device ? 0 : want.memory_bytes;
    }
    const serve_scale_options o = {.registry = s->registry,
                                   .gateway = s->gateway,
                                   .config = c,
                                   .control = s->placed ? s->control : NULL,
                                   .bytes = s->bytes,
                                   .changed = on_scaled,
                                   .user = s};
    return serve_scale_open(&s->scale, &o, err);
}

static int start_reload(server *s, shoal_err *err)
{
    const serve_reload_options o = {.loop = &s->loop,
                                    .path = s->config_path,
                                    .gateway = s->gateway,
                                    .registry = s->registry,
                                    .started = s->config,
                                    .taken = take_file,
                                    .user = s,
                                    .json_log = s->json_log,
                                    .listen_given = s->listen_given};
    return serve_reload_new(&s->reload, &o, err);
}

/* Everything that can fail before the loop runs. What was started is stopped by begin_stop. */
static int cmd_serve_start(server *s, shoal_err *err)
{
    s->far.loop = &s->loop;
    env time = env_uv(&s->loop);
    connector how = connector_relays(&s->far);
    int rc = registry_new_with(&s->registry, &time, &how, err);
    if (rc != 0) return rc;
    registry_set_watts(s->registry, s->config->watts_per_core);
    rc = registry_set_site(s->registry, s->config->cluster_site, &s->config->spill, err);
    if (rc == 0) rc = registry_listen(s->registry, on_change, s, err);
    if (rc != 0) return rc;
    rc = gateway_new(&s->gateway, &s->loop, s->registry, s->config, &ENDPOINTS, err);
    if (rc != 0) return serve_advise(err, rc);
    if (s->config_path) rc = start_reload(s, err);
    if (rc != 0) return rc;
    if (s->config->cluster_listen) rc = start_gate(s, err);
    if (rc == 0) rc = start_agent(s, err);
    if (rc == 0) rc = start_keeping(s, err);
    if (rc == 0) rc = start_placing(s, err);
    if (rc == 0) rc = start_scaling(s, err);
    if (rc == 0) rc = start_discovery(s, err);
    if (rc == 0) manager_restore(s->manager);
    if (rc == 0) handover_discard(); /* an address that the configuration names no more, say */
    if (rc == 0) say_when_ready(s);  /* where nothing is started here, nothing else would */
    return rc;
}

static void server_done(server *s)
{
    serve_stages_done(&s->stages);
    if (s->config) serve_models_free(s->specs, s->config->n_models);
    free(s->placed);
    free(s->bytes);
    serve_arbiter_close(s->arbiter, s->arbiter_fd);
    config_free(s->config);
    free(s->config_path);
    log_tell_repeats(true);
    log_ring_close();
}

static int serve(server *s)
{
    shoal_err err;
    size_t n = s->config->limits.max_connections;
    unsigned n_machines = s->config->cluster_listen ? CONTROL_CONNECTIONS_MAX : 0;
    n = n == 0 ? 1024 : n < UINT16_MAX ? n : UINT16_MAX;
    if (loop_open(&s->loop, LOOP_OTHER_FDS + n_machines + (unsigned)n, &err) != 0)
        return cli_fail(&cmd_serve, &err);
    listening_open(&s->loop);
    crash_open("gateway", s->json_log);
    char *crashes = serve_crashes(s->config);
    crash_keep(crashes);
    free(crashes);
    watch_signals(s);
    const supervised_events ev = {.exited = worker_exited, .user = s};
    int level = log_level_parse(s->config->log_level);
    bool failed = supervised_open(&s->supervised, &s->loop, &ev, s->json_log, level, &err) != 0 ||
                  cmd_serve_start(s, &err) != 0;
    if (failed) begin_stop(s);
    json_set_drop_large(pool_job_drop_json, &s->loop);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    json_set_drop_large(NULL, NULL);
    listening_close();
    uv_run(&s->loop, UV_RUN_DEFAULT);
    uv_loop_close(&s->loop);
    if (failed) return cli_fail(&cmd_serve, &err); /* the last line, where it is seen */
    LOG(LOG_INFO, "serve", "stopped", LOG_I("code", s->exit_code));
    return s->exit_code;
}

/* What the command line says. */
typedef struct serve_options {
    const char *config, *listen, *host, *color;
    bool json_log, banner, check_only, alone;
    long long port;
    serve_given given;
    long long threads, context, kv_mb; /* of its models; 0: not said */
    cli_tuning own;
} serve_options;

static int read_config(server *s, const serve_options *o, shoal_err *err)
{
    int rc = 0;
    if (o->given.models.n > 0) return serve_given_config(&s->config, &o->given, err);
    if (!o->config)
        rc = cli_home_find(&s->config_path, err);
    else if (!(s->config_path = strdup(o->config)))
        rc = err_nomem(err);
    return rc == 0 ? config_load(&s->config, &HOME_STAGES, s->config_path, err) : rc;
}

/* After a crash its models are served already. */
static int check_given(const server *s, const serve_options *o, shoal_err *err)
{
    if (o->given.models.n == 0 || handover_restarts() > 0) return 0;
    return serve_given_check(s->config, s->specs, &o->given, err);
}

static int load_config(server *s, const serve_options *o, shoal_err *err)
{
    int rc = read_config(s, o, err);
    s->listen_given = o->listen || o->host || o->port >= 0;
    if (rc == 0) rc = serve_override_listen(s->config, o->listen, o->host, o->port, err);
    if (rc == 0) rc = log_ring_open(LOG_LINES_KEPT, LOG_BYTES_KEPT, err);
    s->json_log = rc == 0 && log_wants_json(o->json_log || s->config->log_json);
    if (rc == 0) log_setup((log_level)log_level_parse(s->config->log_level), s->json_log);
    if (rc == 0 && !o->check_only) cpu_share_apply(&s->config->cpu, "serve");
    if (rc == 0) rc = serve_models_find(&s->specs, s->config, err);
    return rc == 0 ? check_given(s, o, err) : rc;
}

/* shoal serve --check: all that can be found wrong without starting anything. */
static int cmd_serve_check(server *s)
{
    shoal_err err;
    json_t *notes = json_array(), *note;
    size_t i;
    int rc = notes ? serve_check(s->config, s->specs, notes, &err) : err_nomem(&err);
    if (rc != 0) {
        json_decref(notes);
        cli_fail(&cmd_serve, &err);
        return CLI_FAILED;
    }
    printf("ok: %zu model%s, %zu pipeline%s, to listen on %s\n", s->config->n_models,
           s->config->n_models == 1 ? "" : "s", s->config->n_pipelines,
           s->config->n_pipelines == 1 ? "" : "s", s->config->listen);
    json_array_foreach(notes, i, note) printf("note: %s\n", json_string_value(note));
    json_decref(notes);
    return CLI_OK;
}

/* ---- the command line ------------------------------------------------------------------------------ */

static int check_options(serve_options *o, const cli_args *a, const cli_list *named, shoal_err *err)
{
    cli_list *m = &o->given.models;
    size_t n = sizeof m->v / sizeof *m->v;
    *m = *named;
    if (named->n + (size_t)a->n > n)
        return err_set(err, SHOAL_ELIMIT,
                       "%zu models: the command line may name %zu; name them in a shoal.yaml",
                       named->n + (size_t)a->n, n);
    for (int i = 0; i < a->n; i++) m->v[m->n++] = a->v[i];
    if (m->n > 0 && o->config && number_i64(o->config, &(int64_t){0}))
        return err_set(err, SHOAL_EINVALID, "-c is the configuration; the context is --context %.20s",
                       o->config);
    if (m->n > 0 && o->config)
        return err_set(
            err, SHOAL_EINVALID,
            "models are named by the command line or by --config; shoal load adds one to a running server");
    bool sized = o->threads || o->context || o->kv_mb || o->given.name;
    for (size_t i = 0; i < TUNING_N_ROWS; i++) sized |= o->own.values[i] != NULL;
    if (m->n == 0 && sized)
        return err_set(
            err, SHOAL_EINVALID,
            "--name, --threads, --context, --kv-mb and the like are for models that the command line names; "
            "in shoal.yaml they are keys of models[]");
    o->given.as.threads = (unsigned)o->threads;
    o->given.as.context = (unsigned)o->context;
    o->given.as.kv_mb = (unsigned)o->kv_mb;
    return cli_tuning_read(&o->own, &o->given.as.tuning, err);
}

/* The argument again, with the path in the reference's place: "-mREF", "--model=REF" or "REF". NULL: no memory. */
static char *put_path(const char *arg, const char *reference, const char *path)
{
    size_t n = strlen(arg), k = strlen(reference);
    char *ret = NULL;
    bool ends = n >= k && strcmp(arg + n - k, reference) == 0;
    size_t before = ends ? n - k : n;
    bool is_it = ends && (before == 0 || (before == 2 && strncmp(arg, "-m", 2) == 0) ||
                          (before == 8 && strncmp(arg, "--model=", 8) == 0));
    int rc = is_it ? asprintf(&ret, "%.*s%s", (int)before, arg, path) : asprintf(&ret, "%s", arg);
    return rc < 0 ? NULL : ret;
}

/* What is not on this machine is fetched before there are processes, and argv names its path from then on: after a crash
 * nobody asks a hub. The texts live as long as the process. */
static int fetch_given(serve_options *o, int argc, char **argv, shoal_err *err)
{
    for (size_t i = 0; i < o->given.models.n; i++) {
        const char *model = o->given.models.v[i];
        char *path = NULL;
        bool here = false;
        if (handover_restarts() > 0) continue;
        int rc = pull_if_reference(&path, &here, model, err);
        bool fetched = path && !here; /* what was here keeps its name of models.json */
        for (int k = 1; rc == 0 && fetched && k < argc; k++) {
            char *arg = put_path(argv[k], model, path);
            if (!arg) rc = err_nomem(err);
            if (arg) argv[k] = arg;
        }
        if (rc != 0 || !fetched)
            free(path);
        else
            o->given.models.v[i] = path;
        if (rc != 0) return rc;
    }
    return 0;
}

/* For as long as the process lives. A restore may have found another state folder, so what the configuration places
 * itself is held, too. */
static int hold_kept(const gateway_config *c, shoal_err *err)
{
    const char *const placed[] = {c->sessions.path, c->sessions.key_file, c->retrieval_path};
    int fd, rc = state_hold(&fd, c->cluster_state, err);
    for (size_t i = 0; rc == 0 && i < sizeof placed / sizeof *placed; i++)
        if (placed[i]) rc = state_hold_file(&fd, placed[i], err);
    return rc;
}

static int serve_configured(server *s, const serve_options *o)
{
    shoal_err err;
    int rc;
    mallopt(M_ARENA_MAX, 1); /* one thread does all the work here */
    if (tty_style_choose(o->color, &err) != 0) return cli_fail(&cmd_serve, &err);
    if (load_config(s, o, &err) != 0) {
        rc = cli_fail(&cmd_serve, &err);
        if (o->check_only) rc = CLI_FAILED;
    } else if (o->check_only) {
        rc = cmd_serve_check(s);
    } else if (hold_kept(s->config, &err) != 0 || serve_models_fit(s->config, s->specs, &err) != 0 ||
               serve_stages_open(&s->stages, s->config, s->specs, &err) != 0) {
        rc = cli_fail(&cmd_serve, &err);
    } else {
        s->banner = o->banner || isatty(STDOUT_FILENO);
        rc = serve(s);
    }
    server_done(s);
    return rc;
}

static int cmd_serve_run(int argc, char **argv)
{
    server s = {.arbiter_fd = -1, .start_ns = clock_ns()};
    serve_options o = {.port = -1};
    cli_list named = {0};
    const cli_option options[] = {
        CLI_LIST('m', "model", "MODEL", "serve this model, as the argument; may be given several times",
                 &named),
        CLI_STRING('c', "config", "FILE", "configuration (./, /etc/shoal/, then the installed shoal.yaml)",
                   &o.config),
        CLI_INT('p', "port", "PORT", 0, 65535, "listen on this port instead; 0 takes a free one", &o.port),
        CLI_STRING(0, "host", "HOST", "listen at this address instead; 0.0.0.0 is all of this machine's",
                   &o.host),
        CLI_STRING('l', "listen", "ADDR", "listen here instead: host:port or unix:/path", &o.listen),
        CLI_STRING(0, "name", "NAME", "what clients call the one MODEL [what its file is called]",
                   &o.given.name),
        CLI_INT('t', "threads", "N", 1, 64, "threads of each MODEL [all cores]", &o.threads),
        CLI_INT(0, "context", "N", 16, 1 << 20,
                "longest prompt and reply of each MODEL, in tokens [the model's]", &o.context),
        CLI_KV_MB(&o.kv_mb),
        CLI_FLAG(0, "check", "check the configuration and its files, and exit: 0 valid, 1 not",
                 &o.check_only),
        CLI_FLAG(0, "json-log", "log lines as JSON on a terminal, too", &o.json_log),
        CLI_COLOR(&o.color),
        CLI_FLAG(0, "banner", "show what is served and sample requests when ready, as on a terminal",
                 &o.banner),
        CLI_FLAG(0, "no-supervise", "do not start the gateway again after a crash (for debuggers)", &o.alone),
        CLI_END,
    };
    cli_args a;
    shoal_err err;
    int rc = cli_parse(&a, &cmd_serve, cli_tuning_behind(&o.own, options), 0, -1, argc, argv);
    if (rc != CLI_GO) return rc;
    if (check_options(&o, &a, &named, &err) != 0 || fetch_given(&o, argc, argv, &err) != 0)
        return cli_fail(&cmd_serve, &err);
    rc = o.alone || o.check_only ? -1 : supervise(argc, argv, "shoal-gateway");
    return rc >= 0 ? rc : serve_configured(&s, &o);
}

const cli_command cmd_serve = {"serve", "serve MODELs, or the cluster of a shoal.yaml", "[MODEL...]",
                               cmd_serve_run, false};
