/* telemetry.c: see telemetry.h. */
#include "telemetry/telemetry.h"

#include <stdlib.h>

#include "logging/log.h"
#include "logging/log_ring.h"
#include "telemetry/telemetry_impl.h"

enum { LOG_TICK_MS = 1000, FIRST_METRICS_MS = 1000 };

static void note_end(gateway_request *rq, int status, const char *error_code)
{
    struct telemetry *t = rq->gateway->telemetry;
    if (t && t->s.urls[OTLP_TRACES]) telemetry_put_spans(t, rq, status, error_code);
}

const request_sink TELEMETRY_SINK = {.name = "telemetry", .finish = note_end};

/* ---- what the exporter tells --------------------------------------------------------------------------- */

static void on_sent(void *user, otlp_signal s, size_t n)
{
    const struct telemetry *t = user;
    metrics_add(t->g->metrics, METRIC_OTEL_SENT, (double)n, otlp_signal_name(s), NULL, NULL);
}

static void on_dropped(void *user, otlp_signal s, otlp_drop why, uint64_t n)
{
    const struct telemetry *t = user;
    metrics_add(t->g->metrics, METRIC_OTEL_DROPPED, (double)n, otlp_signal_name(s), otlp_drop_name(why),
                NULL);
}

static void on_changed(void *user, otlp_signal s, bool up, const char *why)
{
    if (up)
        LOG(LOG_INFO, "telemetry", "collector_answers", LOG_S("signal", otlp_signal_name(s)));
    else
        LOG(LOG_WARN, "telemetry", "collector_fails", LOG_S("signal", otlp_signal_name(s)),
            LOG_S("reason", why));
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static void on_metrics_tick(void *user)
{
    struct telemetry *t = user;
    telemetry_put_metrics(t);
    t->g->time.timer_start(t->metrics_tick, t->s.metrics_interval_ms);
}

static void on_log_tick(void *user)
{
    struct telemetry *t = user;
    telemetry_put_logs(t);
    t->g->time.timer_start(t->log_tick, LOG_TICK_MS);
}

static env_timer *start_tick(struct telemetry *t, void (*fn)(void *), uint64_t ms)
{
    const env *e = &t->g->time;
    env_timer *tick = e->timer_new(e->user, fn, t);
    if (tick) e->timer_start(tick, ms);
    return tick;
}

static int open_exporter(struct telemetry *t, shoal_err *err)
{
    const otel_settings *s = &t->s;
    otlp_http_options http = {
        .protocol = s->protocol, .gzip = s->gzip, .ca = s->ca, .timeout_ms = s->timeout_ms};
    for (int i = 0; i < OTLP_N_SIGNALS; i++) {
        http.urls[i] = s->urls[i];
        http.headers[i] = s->headers;
    }
    otlp_exporter_options o = {.protocol = s->protocol,
                               .common = &t->common,
                               .batch_items = s->batch,
                               .queue_bytes = s->queue_bytes,
                               .interval_ms = s->interval_ms,
                               .user = t,
                               .sent = on_sent,
                               .dropped = on_dropped,
                               .changed = on_changed};
    if (otlp_common_init(&t->common, s->protocol, s->resource, s->n_resource, "shoal", SHOAL_VERSION,
                         semconv_schema_url(s->semconv)))
        return err_nomem(err);
    int rc = otlp_http_open(&t->http, t->g->loop, &http, err);
    if (rc) return rc;
    otlp_transport transport = otlp_http_transport(t->http);
    return otlp_exporter_new(&t->x, &t->g->time, &transport, &o, err);
}

static int start_ticks(struct telemetry *t, shoal_err *err)
{
    bool metrics = t->s.urls[OTLP_METRICS], logs = t->s.urls[OTLP_LOGS];
    uint64_t first_ms =
        t->s.metrics_interval_ms < FIRST_METRICS_MS ? t->s.metrics_interval_ms : FIRST_METRICS_MS;
    if (metrics) t->metrics_tick = start_tick(t, on_metrics_tick, first_ms);
    if (logs) t->log_tick = start_tick(t, on_log_tick, LOG_TICK_MS);
    return (metrics && !t->metrics_tick) || (logs && !t->log_tick) ? err_nomem(err) : 0;
}

int telemetry_open(gateway *g, shoal_err *err)
{
    struct telemetry *t = calloc(1, sizeof *t);
    if (!t) return err_nomem(err);
    shoal_err why;
    t->g = g;
    t->start_ns = (uint64_t)env_wall_ns(&g->time);
    int rc = otel_settings_read(&t->s, &g->config->otel, otel_getenv, NULL, &why);
    if (rc || !otel_settings_is_on(&t->s)) {
        otel_settings_done(&t->s);
        free(t);
        if (rc == SHOAL_ENOMEM) return err_nomem(err);
        return rc ? config_fail(g->config, err, "%s", why.message) : 0;
    }
    g->telemetry = t;
    rc = open_exporter(t, err);
    if (!rc) rc = start_ticks(t, err);
    if (rc) telemetry_close(g);
    if (rc || !t->s.urls[OTLP_TRACES]) return rc;
    g->tracing =
        (request_tracing){.on = true, .sample = t->s.sample, .all = t->s.keep_failed || t->s.slow_ms > 0};
    return 0;
}

void telemetry_close(gateway *g)
{
    struct telemetry *t = g->telemetry;
    if (!t) return;
    g->telemetry = NULL;
    g->tracing = (request_tracing){0};
    g->time.timer_free(t->metrics_tick);
    g->time.timer_free(t->log_tick);
    otlp_exporter_free(t->x);
    otlp_http_close(t->http);
    otlp_common_done(&t->common);
    otel_settings_done(&t->s);
    buf_done(&t->line);
    free(t);
}

void telemetry_flush(gateway *g, uint64_t limit_ms, void (*done)(void *user), void *user)
{
    struct telemetry *t = g->telemetry;
    if (!t) {
        done(user);
        return;
    }
    if (t->s.urls[OTLP_METRICS]) telemetry_put_metrics(t);
    if (t->s.urls[OTLP_LOGS]) telemetry_put_logs(t);
    otlp_exporter_flush(t->x, limit_ms, done, user);
}
