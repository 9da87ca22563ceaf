/* describe.c: see describe.h. Counts are totals: whoever wants rates asks twice. */
#include "observe/describe.h"

#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "request/gateway_state.h"
#include "observe/readiness.h"
#include "observe/recent.h"

/* Sources that hear nothing: what is shown of them is their last word. */
static void put_away(buf *out, const registry *g)
{
    buf_puts(out, ",\"away\":[");
    for (size_t i = 0; i < registry_count_sources(g); i++) {
        const char *name = source_name(registry_source_at(g, i));
        if (!*source_trouble(registry_source_at(g, i))) continue;
        json_put_text(out, NULL, name);
    }
    buf_putc(out, ']');
}

void describe_gateway(buf *out, const gateway *g)
{
    const metrics *m = g->metrics;
    bool ready = registry_all_ready(g->registry);
    buf_printf(out, "{\"status\":\"%s\",\"version\":\"" SHOAL_VERSION "\"",
               g->withdrawn ? "draining"
               : ready      ? "ready"
                            : "not_ready");
    buf_printf(out, ",\"requests_in_flight\":%zu,\"connections\":%zu,\"moves\":%.0f", g->n_admitted,
               http_server_connections(g->server), metrics_sum(m, METRIC_MOVES));
    json_put_text(out, "site", registry_site(g->registry));
    buf_printf(out, ",\"degraded\":%.0f,\"resumed\":%.0f", metrics_sum(m, METRIC_DEGRADED),
               metrics_sum(m, METRIC_RESUMED));
    buf_printf(out, ",\"requests\":%llu", (unsigned long long)recent_last(g->recent));
    put_away(out, g->registry);
    readiness_put_missing(out, g);
}

static void put_stats(buf *out, const Shoal__V1__Stats *s)
{
    buf_printf(out, ",\"running\":%u,\"waiting\":%u,\"requests\":%llu,\"failed\":%llu", s->n_running,
               s->n_waiting, (unsigned long long)s->n_requests, (unsigned long long)s->n_failed);
    buf_printf(out, ",\"prompt_tokens\":%llu,\"generated_tokens\":%llu",
               (unsigned long long)s->n_prompt_tokens, (unsigned long long)s->n_generated_tokens);
    buf_printf(out, ",\"prefill_tokens_per_s\":%.6g,\"decode_tokens_per_s\":%.6g", s->prefill_tokens_per_s,
               s->decode_tokens_per_s);
    buf_printf(out, ",\"kv_pages\":%llu,\"kv_pages_used\":%llu,\"resident_bytes\":%llu",
               (unsigned long long)s->kv_pages_total, (unsigned long long)s->kv_pages_used,
               (unsigned long long)s->rss_bytes);
}

/* Seconds since 1970, whole, of a time on the monotonic clock. */
static int64_t wall_seconds(const env *e, uint64_t at_ns)
{
    int64_t ago = (int64_t)(env_now_ns(e) - at_ns);
    return (env_wall_ns(e) - ago) / 1000000000;
}

const char *describe_replica_state(const replica *r)
{
    if (r->state == REPLICA_READY && r->silent) return "silent";
    if (r->state == REPLICA_READY && r->standby && !r->stands_in) return "standby";
    return replica_state_name(r->state);
}

void describe_replica(buf *out, const gateway *g, const replica *r)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "id", r->id);
    json_put_text(out, "model", r->model);
    json_put_text(out, "node", r->node ? r->node->name : "");
    json_put_text(out, "site", r->node ? r->node->site : registry_site(g->registry));
    json_put_text(out, "state", describe_replica_state(r));
    json_put_text(out, "reason", r->reason);
    if (r->standby) buf_printf(out, ",\"standby\":true,\"stands_in\":%s", r->stands_in ? "true" : "false");
    if (r->state_ns) buf_printf(out, ",\"since\":%lld", (long long)wall_seconds(&g->time, r->state_ns));
    buf_printf(out, ",\"calls\":%u,\"restarts\":%u,\"crashes\":%u", r->load.n_in_flight,
               r->process.n_restarts, r->process.n_crashes);
    if (*r->process.report) json_put_text(out, "crash_report", r->process.report);
    if (r->stats) put_stats(out, r->stats);
    buf_putc(out, '}');
}

/* Without its name and site, and left open. */
static void put_machine(buf *out, const node *n)
{
    json_put_text(out, "isa", n->isa);
    buf_printf(out, ",\"cores\":%u,\"load\":%.2f,\"memory_bytes\":%llu,\"memory_free_bytes\":%llu",
               n->n_cores, n->load_1m, (unsigned long long)n->memory_bytes,
               (unsigned long long)n->memory_free_bytes);
    buf_printf(out, ",\"rtt_ms\":%.2f,\"on_battery\":%s,\"draining\":%s", n->rtt_ms,
               n->on_battery ? "true" : "false", n->draining ? "true" : "false");
    node_put_devices(out, n, true);
}

void describe_node(buf *out, const node *n)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "name", n->name);
    json_put_text(out, "site", n->site);
    put_machine(out, n);
    buf_putc(out, '}');
}

void describe_here(buf *out, const node *n, const char *site)
{
    buf_puts(out, "{\"name\":\"\"");
    json_put_text(out, "host", n->name);
    json_put_text(out, "site", site);
    put_machine(out, n);
    buf_putc(out, '}');
}
