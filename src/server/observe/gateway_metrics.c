/* gateway_metrics.c: see gateway_metrics.h. */
#include "observe/gateway_metrics.h"

#include "base/clock.h"
#include "os/handover.h"
#include "cluster/node.h"
#include "control/control.h"
#include "request/confidence_watch.h"
#include "request/metrics_vllm.h"
#include "wire/tls_expiry.h"

#define METRICS_KEPT_NS 1000000000u

static void put_certificates(metrics *m, const char *use, const tls_context *t)
{
    for (int w = 0; t && w < TLS_N_WHATS; w++) {
        const char *kind = tls_what_name((tls_what)w);
        tls_validity v;
        if (!tls_context_validity(t, (tls_what)w, &v)) continue;
        metrics_set(m, METRIC_CERT_UNTIL, (double)v.until_s, use, kind, NULL);
        metrics_set(m, METRIC_CERT_FROM, (double)v.from_s, use, kind, NULL);
    }
}

void gateway_metrics_collect(gateway *g)
{
    metrics *m = g->metrics;
    node *own = NULL;
    if (node_here(&own, NULL) != 0) own = NULL;
    metrics_scrape(m, g->registry, own);
    node_free(own);
    confidence_watch_put(g->confidences, m);
    metrics_set(m, METRIC_IN_FLIGHT, (double)g->n_requests, NULL, NULL, NULL);
    metrics_set(m, METRIC_GATEWAY_RESTARTS, (double)handover_restarts(), NULL, NULL, NULL);
    metrics_set(m, METRIC_GATEWAY_CPU_S, (double)clock_process_cpu_ns() / 1e9, NULL, NULL, NULL);
    metrics_set(m, METRIC_CONNECTIONS, (double)http_server_connections(g->server), NULL, NULL, NULL);
    metrics_set_work(m, METRIC_LOOP_WORK, loop_work_get());
    metrics_set(m, METRIC_LOOP_WORK_MAX, (double)loop_work_get()->max_bytes, NULL, NULL, NULL);
    put_certificates(m, "listener", g->tls);
    put_certificates(m, "cluster", g->control ? control_tls(g->control) : NULL);
    put_certificates(m, "workers", g->workers_tls);
}

/* Writing all series takes most of a millisecond, so it is done at most once a second, for whoever asks. */
const buf *gateway_metrics_text(gateway *g, const gateway_config *c, metrics_form form)
{
    uint64_t now = env_now_ns(&g->time), *at = &g->metrics_at_ns[form];
    buf *text = &g->metrics_text[form];
    if (*at && now - *at < METRICS_KEPT_NS) return text;
    *at = now;
    buf_done(text);
    gateway_metrics_collect(g);
    metrics_put(text, g->metrics, form);
    if (c->metrics_compat == METRICS_COMPAT_VLLM) metrics_put_vllm(text, g->metrics, form);
    metrics_put_end(text, form);
    return text;
}
