/* overview.c: see overview.h. Counts are totals: whoever wants rates asks twice. */
#include "endpoints/overview.h"

#include <string.h>

#include "base/json.h"
#include "gateway/caches.h"
#include "gateway/endpoint.h"
#include "gateway/gateway_internal.h"

static void put_str(buf *out, const char *key, const char *v)
{
    buf_printf(out, ",\"%s\":", key);
    json_put_string(out, v ? v : "", v ? strlen(v) : 0);
}

static void put_gateway(buf *out, const gateway *g, bool ready)
{
    const metrics *m = g->metrics;
    buf_printf(out, "{\"status\":\"%s\",\"version\":\"" SHOAL_VERSION "\"",
               g->draining ? "draining"
               : ready     ? "ready"
                           : "not_ready");
    buf_printf(out, ",\"requests_in_flight\":%zu,\"connections\":%zu,\"moves\":%.0f", g->n_admitted,
               http_server_connections(g->server), metrics_sum(m, METRIC_MOVES));
    put_str(out, "site", registry_site(g->registry));
    buf_printf(out, ",\"degraded\":%.0f,\"resumed\":%.0f", metrics_sum(m, METRIC_DEGRADED),
               metrics_sum(m, METRIC_RESUMED));
}

static void put_stats(buf *out, const Shoal__V1__Stats *s)
{
    buf_printf(out, ",\"running\":%u,\"waiting\":%u,\"requests\":%llu,\"failed\":%llu", s->n_running,
               s->n_waiting, (unsigned long long)s->n_requests, (unsigned long long)s->n_failed);
    buf_printf(out, ",\"prompt_tokens\":%llu,\"generated_tokens\":%llu",
               (unsigned long long)s->n_prompt_tokens, (unsigned long long)s->n_generated_tokens);
    buf_printf(out, ",\"kv_pages\":%llu,\"kv_pages_used\":%llu,\"resident_bytes\":%llu",
               (unsigned long long)s->kv_pages_total, (unsigned long long)s->kv_pages_used,
               (unsigned long long)s->rss_bytes);
}

static void put_replica(buf *out, const replica *r, const char *site)
{
    buf_puts(out, "{\"id\":");
    json_put_string(out, r->id, strlen(r->id));
    put_str(out, "model", r->model);
    put_str(out, "node", r->node ? r->node->name : "");
    put_str(out, "site", r->node ? r->node->site : site);
    put_str(out, "state",
            r->state != REPLICA_READY ? replica_state_name(r->state)
            : r->silent               ? "silent"
            : r->standby              ? "standby"
                                      : replica_state_name(REPLICA_READY));
    put_str(out, "reason", r->reason);
    buf_printf(out, ",\"calls\":%u,\"restarts\":%u,\"crashes\":%u", r->load.n_in_flight,
               r->process.n_restarts, r->process.n_crashes);
    if (r->stats) put_stats(out, r->stats);
    buf_putc(out, '}');
}

static void put_node(buf *out, const node *n)
{
    buf_puts(out, "{\"name\":");
    json_put_string(out, n->name, strlen(n->name));
    put_str(out, "site", n->site);
    put_str(out, "isa", n->isa);
    buf_printf(out, ",\"cores\":%u,\"load\":%.2f,\"memory_bytes\":%llu,\"memory_free_bytes\":%llu",
               n->n_cores, n->load_1m, (unsigned long long)n->memory_bytes,
               (unsigned long long)n->memory_free_bytes);
    buf_printf(out, ",\"rtt_ms\":%.2f,\"on_battery\":%s,\"draining\":%s}", n->rtt_ms,
               n->on_battery ? "true" : "false", n->draining ? "true" : "false");
}

/* Sources that hear nothing: what is shown of them is their last word. */
static void put_away(buf *out, const registry *g)
{
    bool first = true;
    buf_puts(out, ",\"away\":[");
    for (size_t i = 0; i < registry_count_sources(g); i++) {
        const char *name = source_name(registry_source_at(g, i));
        if (!*source_trouble(registry_source_at(g, i))) continue;
        if (!first) buf_putc(out, ',');
        first = false;
        json_put_string(out, name, strlen(name));
    }
    buf_putc(out, ']');
}

static bool is_new(const registry *g, const node *n, size_t before)
{
    for (size_t i = 0; i < before; i++)
        if (registry_at(g, i)->node == n) return false;
    return n != NULL;
}

void overview_handle(gateway_request *rq)
{
    const registry *g = rq->registry;
    buf out = {0};
    put_gateway(&out, rq->gateway, registry_all_ready(g));
    put_away(&out, g);
    buf_puts(&out, ",\"cache\":");
    caches_put(&out, rq->gateway);
    buf_puts(&out, ",\"nodes\":[");
    bool first = true;
    for (size_t i = 0; i < registry_count(g); i++) {
        const node *n = registry_at(g, i)->node;
        if (!is_new(g, n, i)) continue;
        if (!first) buf_putc(&out, ',');
        first = false;
        put_node(&out, n);
    }
    buf_puts(&out, "],\"replicas\":[");
    for (size_t i = 0; i < registry_count(g); i++) {
        if (i) buf_putc(&out, ',');
        put_replica(&out, registry_at(g, i), registry_site(g));
    }
    buf_puts(&out, "]}");
    request_json(rq, 200, &out);
    buf_done(&out);
}
