/* gateway.c: the life of the front door. */
#include "gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>

#include "logging/log.h"
#include "wire/tls_watch.h"
#include "calls/failover_calls.h"
#include "calls/hedge_calls.h"
#include "calls/replica_calls.h"
#include "calls/retry_calls.h"
#include "calls/silence_calls.h"
#include "answers/caches.h"
#include "batches/batch_runner.h"
#include "request/confidence_watch.h"
#include "request/call_notes.h"
#include "request/gateway_state.h"
#include "answers/revalidate.h"
#include "gateway/model_manager.h"
#include "answers/semantic.h"
#include "ingress/ingress.h"
#include "observe/accounting.h"
#include "observe/live.h"
#include "observe/recent.h"
#include "observe/request_sinks.h"
#include "request/admission.h"
#include "request/settings.h"
#include "answers/shadow.h"
#include "request/watch.h"
#include "sessions/session_redis.h"
#include "telemetry/telemetry.h"
#include "trust/state.h"

/* Who is told of each request, in this order. */
static request_sinks SINKS = {
    &METRICS_SINK, &ACCOUNTING_SINK, &ADMISSION_SINK, &LOG_SINK, &RECENT_SINK, &TELEMETRY_SINK, NULL};

/* ---- life ---------------------------------------------------------------------------------------- */

static void on_replica(void *user, const registry_event *e)
{
    const gateway *g = user;
    if (e->what == REGISTRY_CHANGE && e->replica->state == REPLICA_DOWN)
        failover_calls_note_death(g->failover, e->replica->life);
}

/* The decorators, from the bottom up; above them are those of the settings. */
static int open_calls(gateway *g, shoal_err *err)
{
    const env *e = &g->time;
    failover_options failover = {.wait_ms = g->config->failover_wait_ms, .observer = &g->observer};
    hedge_options hedge = {.observer = &g->observer};
    silence_options silence = {.observer = &g->observer};
    call_notes_open(g);
    int rc = replica_calls_new(&g->base, g->registry, &g->observer, err);
    if (rc == 0) rc = retry_calls_new(&g->base, e, g->base, g->config->failover_wait_ms, &g->observer, err);
    if (rc == 0) rc = failover_calls_new(&g->base, e, g->base, &failover, err);
    if (rc == 0) g->failover = g->base;
    if (rc == 0) rc = registry_listen(g->registry, on_replica, g, err);
    if (rc == 0 && g->config->hedge == CONFIG_HEDGE_AUTO)
        rc = hedge_calls_new(&g->base, e, g->base, &hedge, err);
    if (rc == 0) rc = silence_calls_new(&g->base, e, g->base, &silence, err);
    return rc == 0 ? settings_new(&g->settings, g, g->config, err) : rc;
}

/* A machine without a home folder serves all the same; whoever asks for a collection hears why there is none.
 */
static int open_executor(gateway *g, shoal_err *err)
{
    const gateway_config *c = g->config;
    char *path = NULL;
    shoal_err own = {0};
    int rc = c->retrieval_path ? 0 : state_path(&path, c->cluster_state, "collections.db", &own);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    rc = executor_new(&g->executor, g->loop, path ? path : c->retrieval_path, (size_t)c->retrieval_bytes,
                      (int)c->retrieval_threads, err);
    if (rc == 0) rc = batch_runner_open(g, path ? path : c->retrieval_path, err);
    free(path);
    return rc;
}

static cache_options cache_options_of(const config_cache *c)
{
    return (cache_options){.max_bytes = (size_t)c->bytes,
                           .ttl_ns = c->ttl_ms * 1000000u,
                           .stale_ns = c->stale_ms * 1000000u,
                           .negative_ttl_ns = c->negative_ttl_ms * 1000000u};
}

static int open_cache(gateway *g, shoal_err *err)
{
    cache_options o = cache_options_of(&g->config->cache);
    int rc = cache_new(&g->cache, &o, err);
    if (rc == 0) rc = semantic_open(&g->semantic, g, err);
    return rc == 0 ? caches_open(g, err) : rc;
}

/* A machine without a home folder serves all the same; who wants something kept hears why it is not. */
static int open_session_thread(gateway *g, shoal_err *err)
{
    const config_sessions *c = &g->config->sessions;
    char *path = NULL, *keys = NULL;
    shoal_err own = {0};
    int rc = c->path ? 0 : state_path(&path, g->config->cluster_state, "sessions.db", &own);
    if (rc == 0 && !c->key_file) rc = state_path(&keys, g->config->cluster_state, "sessions.key", &own);
    if (rc == SHOAL_ENOMEM) {
        free(path);
        return err_nomem(err);
    }
    session_thread_options o = {.path = path ? path : c->path,
                                .key_file = keys ? keys : c->key_file,
                                .redis = c->redis,
                                .time = &g->time};
    o.bounds = (session_bounds){
        .turns = c->turns, .bytes = c->bytes, .all_bytes = c->all_bytes, .ttl_s = (int64_t)c->ttl_s};
    redis_place place;
    rc = c->redis ? redis_place_parse(&place, c->redis, err) : 0;
    if (rc == 0 && c->all_bytes > 0) rc = session_thread_new(&g->session_thread, g->loop, &o, err);
    free(path);
    free(keys);
    return rc;
}

static int gateway_setup(gateway *g, shoal_err *err)
{
    g->metrics = metrics_new();
    g->confidences = confidence_watch_new();
    g->recent = recent_new();
    g->spans = span_ring_new(GATEWAY_SPANS);
    if (!g->metrics || !g->confidences || !g->recent || !g->spans) return err_nomem(err);
    int rc = open_cache(g, err);
    if (rc == 0) rc = watch_open(g, err);
    if (rc == 0) rc = live_open(g, err);
    if (rc == 0) rc = open_calls(g, err);
    if (rc == 0) rc = open_executor(g, err);
    if (rc == 0) rc = open_session_thread(g, err);
    if (rc == 0) rc = telemetry_open(g, err);
    return rc == 0 ? ingress_open(g, err) : rc;
}

int gateway_new(gateway **ret, uv_loop_t *loop, registry *registry_, const gateway_config *config,
                const endpoint_table *endpoints, shoal_err *err)
{
    gateway *g = calloc(1, sizeof *g);
    if (!g) return err_nomem(err);
    *g = (gateway){.loop = loop,
                   .registry = registry_,
                   .time = *registry_env(registry_),
                   .config = config,
                   .endpoints = endpoints,
                   .sinks = SINKS};
    int rc = gateway_setup(g, err);
    if (rc == 0)
        *ret = g;
    else
        gateway_free(g);
    return rc;
}

int gateway_reload(gateway *g, gateway_config *next, shoal_err *err)
{
    settings *s = NULL;
    int rc = settings_new(&s, g, next, err);
    if (rc == 0) rc = ingress_reload(g, next, err);
    if (rc != 0) {
        settings_unref(s);
        settings_sweep(g); /* now: next may go at once */
        return rc;
    }
    cache_options o = cache_options_of(&next->cache);
    s->own = next;
    settings_unref(g->settings);
    g->settings = s;
    g->config = next;
    cache_limit(g->cache, &o);
    return 0;
}

const gateway_config *gateway_config_now(const gateway *g)
{
    return g->config;
}

int gateway_port(const gateway *g)
{
    return g->port;
}

void gateway_set_control(gateway *g, control *at)
{
    g->control = at;
}

void gateway_show_workers_tls(gateway *g, tls_context *t)
{
    g->workers_tls = tls_context_ref(t);
}

static const json_t *loadable(const gateway *g)
{
    const model_manager *k = g->model_manager;
    return k && k->stored ? k->stored(k->user) : NULL;
}

static const json_t *variants(const gateway *g)
{
    const model_manager *k = g->model_manager;
    return k && k->variants ? k->variants(k->user) : NULL;
}

void gateway_show_model_manager(gateway *g, const model_manager *k)
{
    g->model_manager = k;
    g->loadable = loadable;
    g->variants = variants;
}

void gateway_withdraw(gateway *g)
{
    g->withdrawn = true;
    LOG(LOG_INFO, "gateway", "withdrawn", LOG_I("requests", g->n_requests));
    ingress_withdraw(g);
}

void gateway_drain(gateway *g, void (*done)(void *user), void *user)
{
    g->draining = g->withdrawn = true;
    LOG(LOG_INFO, "gateway", "draining", LOG_I("requests", g->n_requests));
    shadow_cancel_all(g);
    revalidate_cancel_all(g);
    batch_runner_stop(g);
    live_drain(g);
    g->drained = done;
    g->drained_user = user;
    ingress_drain(g);
}

void gateway_flush(gateway *g, uint64_t limit_ms, void (*done)(void *user), void *user)
{
    telemetry_flush(g, limit_ms, done, user);
}

gateway_waits gateway_look_at_waits(const gateway *g, const char *model, uint64_t seen[METRICS_BUCKETS])
{
    gateway_waits w = {.n_held = (uint64_t)metrics_get(g->metrics, METRIC_HELD, model, NULL, NULL)};
    if (seen)
        w.p95_ms =
            1000 * metrics_quantile_s(g->metrics, METRIC_STAGE_S, model, "queue", 0.95, seen, &w.n_waits);
    return w;
}

void gateway_note_scale(gateway *g, const char *model, unsigned wanted, const char *why)
{
    metrics_set(g->metrics, METRIC_WANTED, wanted, model, NULL, NULL);
    if (why) metrics_add(g->metrics, METRIC_SCALE, 1, model, why, NULL);
}

void gateway_cut(gateway *g)
{
    api_error e;
    api_error_set(&e, 503, "service_unavailable", "stopping", NULL,
                  "the server stopped before the answer was whole; send the request again");
    e.retry_after_s = 1;
    while (g->requests) {
        gateway_request *rq = g->requests;
        void (*on_gone)(void *) = rq->on_gone;
        rq->on_gone = NULL;
        if (on_gone) on_gone(rq->work);
        request_error(rq, &e);
    }
}

static void gateway_gone(gateway *g)
{
    free(g);
}

void gateway_free(gateway *g)
{
    if (!g) return;
    batch_runner_stop(g);
    while (g->requests) {
        ingress_request *in = g->requests->ingress;
        ingress_request_leave(in);
        in->ops->drop(in);
    }
    ingress_close(g);
    shadow_cancel_all(g);
    watch_close(g);
    live_close(g);
    telemetry_close(g);
    caches_close(g);
    executor_free(g->executor);
    batch_runner_free(g);
    confirm_book_done(&g->confirms);
    turn_book_done(&g->turns);
    session_thread_free(g->session_thread);
    settings_free_all(g);
    registry_unlisten(g->registry, on_replica, g);
    calls_free(g->base);
    cache_free(g->cache);
    semantic_free(g->semantic);
    metrics_free(g->metrics);
    confidence_watch_free(g->confidences);
    recent_free(g->recent);
    span_ring_free(g->spans);
    tls_watch_free(g->tls_watch);
    tls_context_unref(g->tls);
    tls_context_unref(g->workers_tls);
    for (int i = 0; i < METRICS_N_FORMS; i++) buf_done(&g->metrics_text[i]);
    buf_done(&g->openapi);
    for (int i = 0; i < 2; i++) buf_done(&g->openapi_packed[i]);
    ingress_release(g, gateway_gone); /* whose last callbacks still point to g */
}
