/* gateway.c: the life of the front door, whom it lets in, and deadlines that no call keeps. */
#include "gateway/gateway.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "calls/failover_calls.h"
#include "calls/hedge_calls.h"
#include "calls/replica_calls.h"
#include "calls/retry_calls.h"
#include "calls/route_calls.h"
#include "calls/silence_calls.h"
#include "gateway/browser.h"
#include "gateway/endpoint.h"
#include "gateway/gateway_internal.h"
#include "gateway/routed.h"
#include "gateway/shadow.h"
#include "pipeline/pipeline.h"
#include "process/process.h"
#include "trust/state.h"
#include "gateway/sessions.h"
#include "gateway/watch.h"

/* ---- admission ----------------------------------------------------------------------------------- */

static bool id_is_fine(const char *s)
{
    size_t n = s ? strlen(s) : 0;
    if (n == 0 || n > 128) return false;
    for (; *s; s++)
        if (*s <= 0x20 || *s >= 0x7F) return false;
    return true;
}

static void name_request(gateway_request *rq)
{
    const char *given = http_header_get(rq->http, "x-request-id");
    if (id_is_fine(given)) {
        snprintf(rq->id, sizeof rq->id, "%s", given);
        return;
    }
    uint64_t draw;
    rng_bytes(&draw, sizeof draw);
    snprintf(rq->id, sizeof rq->id, "%016llx", (unsigned long long)draw);
}

/* How long it may take, and how urgent it is. */
static int set_urgency(gateway_request *rq, api_error *e)
{
    const char *s = http_header_get(rq->http, "x-shoal-deadline-ms");
    const char *latency = http_header_get(rq->http, "x-shoal-latency");
    if (latency && !route_latency_of(latency, &rq->latency))
        return api_error_bad(e, "x-shoal-latency", "x-shoal-latency must be realtime, interactive or batch");
    uint64_t ms = rq->config->default_deadline_ms;
    if (s) {
        char *end;
        errno = 0;
        long long v = strtoll(s, &end, 10);
        if (end == s || *end || errno || v > 86400000)
            return api_error_bad(e, "x-shoal-deadline-ms",
                                 "x-shoal-deadline-ms must be a number of milliseconds");
        if (v <= 0)
            return api_error_set(e, 504, "timeout_error", "deadline_unmeetable", "x-shoal-deadline-ms",
                                 "a deadline of %lld ms cannot be met", v);
        ms = (uint64_t)v;
    }
    if (ms) rq->deadline_ns = rq->start_ns + ms * 1000000u;
    return 0;
}

static int check_browser(const gateway_request *rq, api_error *e)
{
    browser_facts f = {.method = http_method(rq->http),
                       .host = http_header_get(rq->http, "host"),
                       .origin = http_header_get(rq->http, "origin"),
                       .fetch_site = http_header_get(rq->http, "sec-fetch-site"),
                       .content_type = http_header_get(rq->http, "content-type"),
                       .takes_forms = rq->endpoint && rq->endpoint->takes & ENDPOINT_FORMS};
    return browser_check(rq->config, &f, e);
}

static int admit(gateway_request *rq, api_error *e)
{
    gateway *g = rq->gateway;
    if (check_browser(rq, e) != 0) return e->status;
    if (!rq->endpoint && rq->allowed_origin && rq->allow && strcmp(http_method(rq->http), "OPTIONS") == 0)
        return 0;
    if (!rq->endpoint) {
        if (rq->allow)
            return api_error_set(e, 405, "invalid_request_error", "method_not_allowed", NULL,
                                 "%.16s is not allowed here; use %s", http_method(rq->http), rq->allow);
        return api_error_set(e, 404, "invalid_request_error", "not_found", NULL, "there is nothing at %.200s",
                             http_path(rq->http));
    }
    if (rq->endpoint->needs_key && !auth_allows(&g->auth, http_header_get(rq->http, "authorization")))
        return api_error_set(e, 401, "invalid_request_error", "invalid_api_key", NULL,
                             "a valid API key is needed: send it as Authorization: Bearer KEY");
    if (!rq->endpoint->admitted) return set_urgency(rq, e);
    if (g->draining) {
        api_error_set(e, 503, "service_unavailable", "draining", NULL,
                      "the server is shutting down; send the request again elsewhere or later");
        e->retry_after_s = 1;
        return e->status;
    }
    if (g->config->max_requests && g->n_admitted >= g->config->max_requests) {
        api_error_set(e, 429, "rate_limit_error", "too_many_requests", NULL,
                      "%zu requests are being answered, which is the limit; try again in a second",
                      g->n_admitted);
        e->retry_after_s = 1;
        return e->status;
    }
    return set_urgency(rq, e);
}

static gateway_request *request_new(gateway *g, http_request *http)
{
    gateway_request *rq = calloc(1, sizeof *rq);
    if (!rq) return NULL;
    *rq = (gateway_request){.gateway = g,
                            .calls = g->calls,
                            .registry = g->registry,
                            .cache = g->cache,
                            .metrics = g->metrics,
                            .config = g->config,
                            .http = http,
                            .start_ns = http_received_ns(http),
                            .next = g->requests};
    if (rq->start_ns == 0) rq->start_ns = clock_ns();
    if (g->requests) g->requests->prev = rq;
    g->requests = rq;
    g->n_requests++;
    http_set_data(http, rq);
    return rq;
}

static void on_request(void *user, http_request *http)
{
    gateway_request *rq = request_new(user, http);
    if (!rq) {
        http_respond(http, 503, NULL, 0, NULL, 0);
        return;
    }
    name_request(rq);
    const char *origin = http_header_get(http, "origin");
    if (browser_origin_is_allowed(rq->config, origin)) rq->allowed_origin = origin;
    rq->endpoint = endpoint_find(http_method(http), http_path(http), &rq->allow);
    api_error e = {0};
    if (admit(rq, &e) != 0) {
        request_error(rq, &e);
        return;
    }
    if (!rq->endpoint) {
        request_preflight(rq);
        return;
    }
    if (rq->endpoint->admitted) {
        rq->n_counted = 1;
        rq->gateway->n_admitted++;
    }
    rq->endpoint->handle(rq);
}

static void abandon(gateway_request *rq)
{
    void (*on_gone)(void *) = rq->on_gone;
    rq->on_gone = NULL;
    if (on_gone) on_gone(rq->work);
    request_finish(rq, 499, "client_gone");
}

static void on_gone(void *user, http_request *http)
{
    gateway_request *rq = http_data(http);
    if (rq) abandon(rq);
}

static void on_body(void *user, http_request *http, const uint8_t *bytes, size_t n)
{
    gateway_request *rq = http_data(http);
    if (n > 0) rq->on_body(rq->work, bytes, n);
}

static void on_body_end(void *user, http_request *http, int status, const char *why)
{
    gateway_request *rq = http_data(http);
    rq->on_body_end(rq->work, status, why);
}

static http_intake intake(void *user, const http_request *http)
{
    const char *allow;
    const endpoint *at = endpoint_find(http_method(http), http_path(http), &allow);
    return at && at->takes & ENDPOINT_PIECES ? HTTP_PIECES : HTTP_WHOLE;
}

static void error_body(void *user, int status, const char *message, buf *out, const char **ret_content_type)
{
    gateway *g = user;
    api_error e;
    char code[16];
    snprintf(code, sizeof code, "%d", status);
    metrics_add(g->metrics, METRIC_REQUESTS, 1, "none", "", code);
    api_error_from_status(&e, status, message);
    api_error_put(out, &e);
    *ret_content_type = "application/json";
}

#define BODY_BYTES ((size_t)4 << 20) /* what wire/http.h takes when the configuration says nothing */

static bool listens(const gateway_config *c)
{
    for (size_t i = 0; i < c->n_pipelines; i++)
        if (pipeline_takes(&c->pipelines[i], MEDIUM_AUDIO)) return true;
    return false;
}

/* Sound may be long, from those whom the gateway would let in. A pipeline is asked about sound if one
 * listens, and about texts and tables all the same. */
static size_t body_limit(void *user, const http_request *http)
{
    gateway *g = user;
    const char *allow;
    const endpoint *at = endpoint_find(http_method(http), http_path(http), &allow);
    const gateway_config *c = g->config;
    if (!at || !(at->takes & (ENDPOINT_SOUND | ENDPOINT_DOCUMENTS))) return 0;
    if (!auth_allows(&g->auth, http_header_get(http, "authorization"))) return 0;
    if (at->takes & ENDPOINT_DOCUMENTS) return c->retrieval_document_bytes;
    bool texts = at->handle == process_handle;
    size_t usual = c->limits.max_body_bytes ? c->limits.max_body_bytes : BODY_BYTES;
    return texts && (!listens(c) || usual > c->max_audio_bytes) ? 0 : c->max_audio_bytes;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int listen_as_configured(gateway *g, shoal_err *err)
{
    const gateway_config *c = g->config;
    http_tls tls = {.cert_file = c->tls_cert, .key_file = c->tls_key};
    bool secure = c->tls_cert && c->tls_key;
    int rc =
        http_server_listen(g->server, c->listen ? c->listen : "127.0.0.1:8080", secure ? &tls : NULL, err);
    if (rc == 0)
        LOG(LOG_INFO, "gateway", "listening", LOG_S("address", c->listen ? c->listen : "127.0.0.1:8080"),
            LOG_I("port", http_server_port(g->server)), LOG_S("tls", secure ? "yes" : "no"),
            LOG_I("api_keys", g->auth.n_keys));
    return rc;
}

static void on_moved(void *user, const char *model, const char *cause, double gap_ms)
{
    gateway *g = user;
    metrics_add(g->metrics, METRIC_MOVES, 1, cause, NULL, NULL);
    metrics_observe_s(g->metrics, METRIC_MOVE_S, gap_ms / 1000, cause, NULL);
}

static void on_hedged(void *user, const char *model, const char *task, bool won)
{
    gateway *g = user;
    metrics_add(g->metrics, METRIC_HEDGES, 1, task, won ? "won" : "lost", NULL);
}

static void on_degraded(void *user, const char *wanted, const char *to)
{
    gateway *g = user;
    metrics_add(g->metrics, METRIC_DEGRADED, 1, wanted, to, NULL);
}

static int open_fallbacks(gateway *g, const env *e, shoal_err *err)
{
    const gateway_config *c = g->config;
    fallback_options o = {.user = g, .degraded = on_degraded};
    g->fallbacks = calloc(c->n_models + 1, sizeof *g->fallbacks);
    if (!g->fallbacks) return err_nomem(err);
    for (size_t i = 0; i < c->n_models; i++) {
        const config_model *m = &c->models[i];
        if (m->n_fallback > 0)
            g->fallbacks[o.n_rules++] = (fallback_rule){m->name, m->fallback, m->n_fallback};
    }
    o.rules = g->fallbacks;
    return o.n_rules > 0 || c->book.n_routes > 0 ? fallback_calls_new(&g->calls, e, g->calls, &o, err) : 0;
}

/* The decorators, from the bottom up. */
static int open_calls(gateway *g, shoal_err *err)
{
    const env *e = registry_env(g->registry);
    failover_options failover = {.wait_ms = g->config->failover_wait_ms, .user = g, .moved = on_moved};
    hedge_options hedge = {.user = g, .hedged = on_hedged};
    silence_options silence = {.user = g, .moved = on_moved};
    int rc = replica_calls_new(&g->calls, g->registry, err);
    if (rc == 0) rc = retry_calls_new(&g->calls, e, g->calls, err);
    if (rc == 0) rc = failover_calls_new(&g->calls, e, g->calls, &failover, err);
    if (rc == 0 && g->config->hedge == CONFIG_HEDGE_AUTO)
        rc = hedge_calls_new(&g->calls, e, g->calls, &hedge, err);
    if (rc == 0) rc = silence_calls_new(&g->calls, e, g->calls, &silence, err);
    if (rc == 0) rc = open_fallbacks(g, e, err);
    if (rc == 0 && g->config->n_ensembles > 0)
        rc = ensembles_open(&g->ensembles, &g->calls, g->config, e, g->metrics, err);
    if (rc == 0 && g->config->book.n_routes > 0)
        rc = route_calls_new(&g->calls, e, g->calls, &g->config->book, routed_heard, g, err);
    return rc;
}

/* A machine without a home folder serves all the same; whoever asks for a collection hears why there is none. */
static int open_desk(gateway *g, shoal_err *err)
{
    const gateway_config *c = g->config;
    char *path = NULL;
    shoal_err own = {0};
    int rc = c->retrieval_path ? 0 : state_path(&path, c->cluster_state, "collections.db", &own);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    rc = desk_new(&g->desk, g->loop, path ? path : c->retrieval_path, (size_t)c->retrieval_bytes,
                  (int)c->retrieval_threads, err);
    free(path);
    return rc;
}

static int gateway_setup(gateway *g, shoal_err *err)
{
    const gateway_config *c = g->config;
    http_handler h = {.user = g,
                      .on_request = on_request,
                      .on_gone = on_gone,
                      .error_body = error_body,
                      .body_limit = body_limit,
                      .intake = intake,
                      .on_body = on_body,
                      .on_body_end = on_body_end};
    g->metrics = metrics_new();
    if (!g->metrics) return err_nomem(err);
    int rc = auth_init(&g->auth, (const char *const *)c->api_keys, c->n_api_keys, err);
    if (rc == 0) rc = cache_new(&g->cache, (size_t)c->cache_bytes, c->cache_ttl_ms * 1000000u, err);
    if (rc == 0) rc = watch_open(g, err);
    if (rc == 0) rc = open_calls(g, err);
    if (rc == 0) rc = open_desk(g, err);
    if (rc == 0) rc = sessions_open(g, err);
    if (rc == 0) rc = http_server_new(&g->server, g->loop, &h, &c->limits, err);
    if (rc == 0) rc = listen_as_configured(g, err);
    return rc;
}

int gateway_new(gateway **ret, uv_loop_t *loop, registry *registry_, const gateway_config *config,
                shoal_err *err)
{
    gateway *g = calloc(1, sizeof *g);
    if (!g) return err_nomem(err);
    *g = (gateway){.loop = loop, .registry = registry_, .config = config};
    int rc = gateway_setup(g, err);
    if (rc == 0)
        *ret = g;
    else
        gateway_free(g);
    return rc;
}

int gateway_port(const gateway *g)
{
    return http_server_port(g->server);
}

void gateway_show_gate(gateway *g, gate *at)
{
    g->gate = at;
}

void gateway_drain(gateway *g, void (*done)(void *user), void *user)
{
    g->draining = true;
    LOG(LOG_INFO, "gateway", "draining", LOG_I("requests", g->n_requests));
    shadow_cancel_all(g);
    http_server_drain(g->server, done, user);
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

static void on_closed(void *user)
{
    free(user);
}

void gateway_free(gateway *g)
{
    if (!g) return;
    while (g->requests) {
        http_set_data(g->requests->http, NULL);
        abandon(g->requests);
    }
    watch_close(g);
    shadow_cancel_all(g);
    http_server *server = g->server;
    desk_free(g->desk);
    clerk_free(g->clerk);
    calls_free(g->calls);
    ensembles_free(g->ensembles);
    free(g->fallbacks);
    cache_free(g->cache);
    metrics_free(g->metrics);
    buf_done(&g->metrics_text);
    auth_done(&g->auth);
    /* The server's last callbacks still point here: the struct goes with it. */
    if (server)
        http_server_close(server, on_closed, g);
    else
        free(g);
}
