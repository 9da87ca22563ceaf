/* control_show.c: what the last plan was made of, as JSON, so that others can plan from the same
 * (serve/plan_live.h). */
#include <stdlib.h>
#include <string.h>

#include "json/json_put.h"
#include "control/placement/placer.h"

static const char *truth(bool b)
{
    return b ? "true" : "false";
}

static void control_show_put_node(buf *out, const node *n)
{
    buf_putc(out, '{');
    json_put_text(out, "name", n->name);
    json_put_text(out, "site", n->site);
    buf_printf(out,
               ",\"cores\":%u,\"memory_bytes\":%llu,\"bytes_per_s\":%.17g,\"multiplies_per_s\":%.17g,"
               "\"load\":%.17g,\"rtt_ms\":%.17g,\"on_battery\":%s,\"battery_percent\":%u,\"drains\":%s,"
               "\"gateway\":%s,\"labels\":[",
               n->n_cores, (unsigned long long)n->memory_bytes, n->bytes_per_s, n->multiplies_per_s,
               n->load_1m, n->rtt_ms, truth(n->on_battery), n->battery_percent, truth(n->draining),
               truth(n->is_gateway));
    for (size_t i = 0; i < n->n_labels; i++) json_put_text(out, NULL, n->labels[i]);
    buf_putc(out, ']');
    node_put_devices(out, n, false);
    buf_putc(out, '}');
}

static void put_assignment(buf *out, const placer *p, const placer_assignment *s)
{
    buf_putc(out, '{');
    json_put_text(out, "model", p->o.models[s->model].spec.model);
    json_put_text(out, "node", s->node);
    buf_printf(out, ",\"standby\":%s", truth(s->standby));
    if (s->end > 0) buf_printf(out, ",\"first_layer\":%zu,\"end_layer\":%zu", s->first, s->end);
    buf_putc(out, '}');
}

static void control_show_put_model(buf *out, const placer *p, size_t i, const char **failed)
{
    size_t n = placer_failed_nodes(p, i, control_now_ns(p->g), failed);
    buf_putc(out, '{');
    json_put_text(out, "model", p->o.models[i].spec.model);
    const placement_model *want = &p->o.models[i].want;
    buf_printf(out, ",\"replicas\":%u", want->n_replicas);
    if (want->n_most) buf_printf(out, ",\"min\":%u,\"max\":%u", want->n_least, want->n_most);
    buf_printf(out, ",\"travels\":%s,\"waits\":%s,\"idle\":%s,\"settling\":%s,\"failed\":[",
               truth(placer_travels(p, i)), truth(placer_stage_waits(p, i)),
               truth(placer_stage_is_idle(p, i)), truth(p->settling));
    for (size_t k = 0; k < n; k++) json_put_text(out, NULL, failed[k]);
    buf_puts(out, "]}");
}

static void put_assignments(buf *out, const placer *p, bool held)
{
    const char *between = "";
    for (size_t i = 0; i < p->n_assignments; i++) {
        if (p->assignments[i].held != held) continue;
        buf_puts(out, between);
        put_assignment(out, p, &p->assignments[i]);
        between = ",";
    }
}

int control_put_placement(const control *g, buf *out, shoal_err *err)
{
    const placer *p = g->placer;
    if (!p) return err_set(err, SHOAL_EINVALID, "this gateway places no models: ask the one that has the CA");
    if (!p->leads) {
        const char *leader =
            p->o.shared_plan->leader ? p->o.shared_plan->leader(p->o.shared_plan->user) : NULL;
        return err_set(err, SHOAL_EINVALID, "%s%s places models now: ask that one",
                       leader ? "the gateway " : "another gateway", leader ? leader : "");
    }
    const char **failed = calloc(p->n_failures + 1, sizeof *failed), *between = "";
    if (!failed) return err_nomem(err);
    buf_puts(out, "{\"nodes\":[");
    for (size_t i = 0; i < p->n_nodes; i++) {
        if (!p->nodes[i].facts || p->nodes[i].removed) continue;
        buf_puts(out, between);
        control_show_put_node(out, p->nodes[i].facts);
        between = ",";
    }
    buf_puts(out, "],\"now\":[");
    put_assignments(out, p, false);
    buf_puts(out, "],\"leaving\":[");
    put_assignments(out, p, true);
    buf_puts(out, "],\"models\":[");
    for (size_t i = 0; i < p->o.n_models; i++) {
        if (i) buf_putc(out, ',');
        control_show_put_model(out, p, i, failed);
    }
    buf_puts(out, "]}");
    free(failed);
    return out->failed ? err_nomem(err) : 0;
}
