/* shoal plan: where the models of a configuration would run, and why; nothing is started or stopped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "json/json_put.h"
#include "cli/commands.h"
#include "config/config_nodes.h"
#include "os/cpu_share.h"
#include "serve/measure_here.h"
#include "serve/plan_live.h"
#include "serve/plan_what_if.h"
#include "serve/serve_models.h"
#include "serve/serve_stages.h"
#include "backend/stage_rows.h"
#include "rules/home.h"

/* All that the plan is made of. */
typedef struct planning {
    gateway_config *config;
    worker_spec *specs;
    serve_stages stages;
    config_nodes *file;
    node *here;
    plan_live live;
    plan_what_if changed;
    const node *nodes;
    size_t n_nodes;
    const placement_now *now;
    size_t n_now;
    placement_model *models; /* those that are placed at all */
    size_t n_models;
    placement p;
} planning;

static int ask_nodes(planning *x, const char *server, shoal_err *err)
{
    int rc = plan_live_ask(&x->live, server, err);
    x->nodes = x->live.nodes;
    x->n_nodes = x->live.n_nodes;
    x->now = x->live.now;
    x->n_now = x->live.n_now;
    return rc;
}

static int find_nodes(planning *x, const char *nodes_path, const char *server, shoal_err *err)
{
    if (server) return ask_nodes(x, server, err);
    if (!nodes_path) cpu_share_apply(&(cpu_share){.reserve = x->config->cpu.reserve}, "plan");
    int rc = nodes_path ? config_nodes_load(&x->file, nodes_path, err) : node_here(&x->here, err);
    if (rc != 0) return rc;
    isa chosen;
    if (x->here && x->stages.n_cut > 0 && isa_choose(&chosen, NULL) == 0)
        measure_here(chosen, &x->here->bytes_per_s, &x->here->multiplies_per_s);
    x->nodes = nodes_path ? x->file->nodes : x->here;
    x->n_nodes = nodes_path ? x->file->n_nodes : 1;
    x->now = nodes_path ? x->file->now : NULL;
    x->n_now = nodes_path ? x->file->n_now : 0;
    return 0;
}

static int change_nodes(planning *x, const cli_list *changes, shoal_err *err)
{
    if (changes->n == 0) return 0;
    int rc =
        plan_what_if_open(&x->changed, x->nodes, x->n_nodes, x->now, x->n_now, changes->v, changes->n, err);
    if (rc != 0) return rc;
    x->nodes = x->changed.nodes;
    x->n_nodes = x->changed.n_nodes;
    x->now = x->changed.now;
    x->n_now = x->changed.n_now;
    return 0;
}

static bool has_node(const node *nodes, size_t n_nodes, const char *name)
{
    size_t n = 0;
    while (n < n_nodes && strcmp(nodes[n].name, name) != 0) n++;
    return n < n_nodes;
}

/* Also one that --what-if takes away. */
static bool is_there(const planning *x, const char *name)
{
    return has_node(x->nodes, x->n_nodes, name) || has_node(x->live.nodes, x->live.n_nodes, name) ||
           (x->file && has_node(x->file->nodes, x->file->n_nodes, name));
}

/* A name that no node has is a mistake of writing more often than a node that will come. */
static int check_nodes(const planning *x, shoal_err *err)
{
    const gateway_config *c = x->config;
    for (size_t i = 0; i < c->n_models; i++) {
        const config_model *m = &c->models[i];
        for (size_t k = 0; k < m->place.n_nodes; k++)
            if (!is_there(x, m->place.nodes[k]))
                return config_fail(c, err, "models[%zu].place.nodes[%zu]: there is no node '%s'", i, k,
                                   m->place.nodes[k]);
        for (size_t k = 0; k < m->shards.n_parts; k++)
            if (!is_there(x, m->shards.parts[k].node))
                return config_fail(c, err, "models[%zu].shards.%s: there is no such node", i,
                                   m->shards.parts[k].node);
    }
    return 0;
}

static int make_plan(planning *x, const char *path, const char *nodes_path, const char *server,
                     const cli_list *changes, shoal_err *err)
{
    int rc = cli_opened(config_load(&x->config, &HOME_STAGES, path, err), err);
    if (rc == 0) rc = serve_models_find(&x->specs, x->config, err);
    if (rc == 0) rc = serve_stages_open(&x->stages, x->config, x->specs, err);
    if (rc == 0) rc = cli_opened(find_nodes(x, nodes_path, server, err), err);
    bool is_new = x->file && x->n_now == 0;
    if (rc == 0) rc = change_nodes(x, changes, err);
    if (rc != 0) return rc;
    if (nodes_path || server) rc = check_nodes(x, err);
    if (rc == SHOAL_EINVALID && server) { /* a gateway goes on without it, and so does this */
        fprintf(stderr, "shoal plan: %s\n", err->message);
        rc = 0;
    }
    if (rc != 0) return rc;
    x->models = calloc(x->config->n_models + 1, sizeof *x->models);
    if (!x->models) return err_nomem(err);
    for (size_t i = 0; i < x->config->n_models; i++) {
        if (x->config->models[i].external) continue;
        x->models[x->n_models] = serve_models_want(x->config, x->specs, i);
        x->models[x->n_models].shape = x->stages.shapes[i];
        plan_live_restrict(&x->live, &x->models[x->n_models++]);
    }
    size_t n = x->n_models;
    if (is_new) return placement_grow(&x->p, x->nodes, x->n_nodes, x->models, n, err);
    return placement_plan(&x->p, x->nodes, x->n_nodes, x->models, n, x->now, x->n_now, err);
}

static void planning_done(planning *x)
{
    placement_done(&x->p);
    free(x->models);
    serve_stages_done(&x->stages);
    if (x->config) serve_models_free(x->specs, x->config->n_models);
    config_nodes_free(x->file);
    node_free(x->here);
    plan_what_if_done(&x->changed);
    plan_live_done(&x->live);
    config_free(x->config);
}

static uint64_t taken_bytes(const planning *x, size_t at)
{
    return placement_taken_bytes(&x->p, x->models, at);
}

_Static_assert((int)CONFIG_WIRE_INT8 == (int)ROWS_INT8 && (int)CONFIG_WIRE_F16 == (int)ROWS_F16,
               "a wire of the configuration is one of the worker's");

/* What a token costs through the stages of a model; false: it is in one piece. */
static bool price(const planning *x, size_t model, split_cost *ret)
{
    rows_wire wire = (rows_wire)x->config->models[model].wire;
    uint64_t row = rows_wire_bytes(wire, x->models[model].shape.n_embd);
    return placement_price(&x->p, x->nodes, x->models, model, row, ret);
}

/* And on the fastest machine that has room for all of it; < 0: none has. */
static double whole_ms(const planning *x, size_t model, size_t *ret_at)
{
    const split_shape *s = &x->models[model].shape;
    double best = -1;
    for (size_t at = 0; at < x->n_nodes; at++) {
        split_place p = placement_place_of(&x->nodes[at]);
        double ms = split_stage_ms(s, &p, s->n_layer, true);
        if (placement_may(&x->models[model], &x->nodes[at], 0, false) != PLACEMENT_YES) continue;
        if (best >= 0 && ms >= best) continue;
        best = ms;
        *ret_at = at;
    }
    return best;
}

static placement_no refusal(const planning *x, const placement_gap *g, size_t at)
{
    return placement_refusal(&x->p, x->nodes, x->models, g->model, at);
}

/* ---- for people ---------------------------------------------------------------------------------- */

static void print_gap(const planning *x, const placement_gap *g)
{
    cli_printf("  missing");
    if (g->n_replicas) cli_printf(" %u replica%s", g->n_replicas, g->n_replicas == 1 ? "" : "s");
    if (g->n_standby) cli_printf("%s %u standby", g->n_replicas ? " and" : "", g->n_standby);
    cli_printf("\n");
    for (size_t at = 0; at < x->n_nodes; at++)
        cli_print_line(33, "    not on %-20s %s", x->nodes[at].name, placement_no_text(refusal(x, g, at)));
}

/* What the load may bring; *ret_room: of the most, so many have a machine. False: the number is fixed. */
static bool find_room(const planning *x, size_t model, unsigned *ret_room, char *why, size_t size)
{
    const placement_model *m = &x->models[model];
    placement_now *now = m->n_most ? calloc(x->p.n_assignments + 1, sizeof *now) : NULL;
    if (!now) return false;
    for (size_t i = 0; i < x->p.n_assignments; i++) {
        const placement_assignment *s = &x->p.assignments[i];
        now[i] =
            (placement_now){x->models[s->model].name, x->nodes[s->node].name, s->standby, s->first, s->end};
    }
    int rc = placement_room(ret_room, why, size, x->nodes, x->n_nodes, x->models, x->n_models, model,
                            m->n_most, now, x->p.n_assignments, NULL);
    free(now);
    return rc == 0;
}

static void print_range(const planning *x, size_t model)
{
    const placement_model *m = &x->models[model];
    char why[300];
    unsigned room;
    if (!find_room(x, model, &room, why, sizeof why)) return;
    cli_print_line(4, "  %u to %u replicas, by load%s", m->n_least, m->n_most,
                   room < m->n_most ? "" : "; there is room for all");
    if (room < m->n_most) cli_print_line(4, "  room for %u of them: %s", room, why);
}

static void print_price(const planning *x, size_t model)
{
    split_cost c;
    size_t at = 0;
    if (!price(x, model, &c)) return;
    cli_print_line(
        4, "  a token takes %.2f ms: %.2f of computing, %.2f of %zu round trip%s with %llu bytes each way",
        c.compute_ms + c.hop_ms, c.compute_ms, c.hop_ms, c.n_hops, c.n_hops == 1 ? "" : "s",
        (unsigned long long)c.hop_bytes);
    cli_print_line(4, "  with many at once one every %.2f ms, as fast as the slowest machine", c.slowest_ms);
    double whole = whole_ms(x, model, &at);
    if (whole >= 0)
        cli_print_line(4, "  in one piece it would take %.2f ms, on %s", whole, x->nodes[at].name);
    else
        cli_print_line(4, "  in one piece no machine has room for it");
}

static void print_model(const planning *x, size_t model)
{
    const placement_model *m = &x->models[model];
    cli_print_line(4, "%s  (%.0f MiB each)", m->name, (double)m->memory_bytes / (1 << 20));
    for (size_t i = 0; i < x->p.n_assignments; i++) {
        const placement_assignment *s = &x->p.assignments[i];
        if (s->model != model) continue;
        char what[32] = "replica";
        if (s->standby) strcpy(what, "standby");
        if (s->end > 0) snprintf(what, sizeof what, "%zu:%zu", s->first, s->end);
        cli_print_line(32, "  %-20s %-8s %s", x->nodes[s->node].name, what, placement_why_text(s->why));
    }
    print_range(x, model);
    print_price(x, model);
    for (size_t i = 0; i < x->p.n_gaps; i++)
        if (x->p.gaps[i].model == model) print_gap(x, &x->p.gaps[i]);
}

static void print_text(const planning *x)
{
    for (size_t i = 0; i < x->n_models; i++) print_model(x, i);
    for (size_t i = 0; i < x->p.n_leavers; i++)
        cli_print_line(4, "stop %s on %s: %s", x->p.leavers[i].model, x->p.leavers[i].node,
                       placement_why_text(x->p.leavers[i].why));
    for (size_t at = 0; at < x->n_nodes; at++)
        cli_print_line(4, "node %-20s %.0f of %.0f MiB for models", x->nodes[at].name,
                       (double)taken_bytes(x, at) / (1 << 20),
                       (double)placement_budget_bytes(&x->nodes[at]) / (1 << 20));
}

/* ---- for programs -------------------------------------------------------------------------------- */

static void put_gap(buf *out, const planning *x, const placement_gap *g)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "model", x->models[g->model].name);
    buf_printf(out, ",\"replicas\":%u,\"standby\":%u,\"refused\":[", g->n_replicas, g->n_standby);
    for (size_t at = 0; at < x->n_nodes; at++) {
        json_put_open(out, NULL, '{');
        json_put_text(out, "node", x->nodes[at].name);
        json_put_text(out, "why", placement_no_text(refusal(x, g, at)));
        buf_putc(out, '}');
    }
    buf_puts(out, "]}");
}

static void put_assignments(buf *out, const planning *x)
{
    buf_puts(out, "{\"placements\":[");
    for (size_t i = 0; i < x->p.n_assignments; i++) {
        const placement_assignment *s = &x->p.assignments[i];
        json_put_open(out, NULL, '{');
        json_put_text(out, "model", x->models[s->model].name);
        json_put_text(out, "node", x->nodes[s->node].name);
        buf_printf(out, ",\"standby\":%s", s->standby ? "true" : "false");
        if (s->end > 0) buf_printf(out, ",\"first_layer\":%zu,\"end_layer\":%zu", s->first, s->end);
        json_put_text(out, "why", placement_why_text(s->why));
        buf_putc(out, '}');
    }
}

static void put_prices(buf *out, const planning *x)
{
    size_t at = 0;
    buf_puts(out, "],\"shards\":[");
    for (size_t i = 0; i < x->n_models; i++) {
        split_cost c;
        if (!price(x, i, &c)) continue;
        double whole = whole_ms(x, i, &at);
        json_put_open(out, NULL, '{');
        json_put_text(out, "model", x->models[i].name);
        buf_printf(out,
                   ",\"token_ms\":%.6g,\"compute_ms\":%.6g,\"slowest_ms\":%.6g,\"hops\":%zu,\"hop_ms\":%.6g,"
                   "\"hop_bytes\":%llu,\"whole_ms\":",
                   c.compute_ms + c.hop_ms, c.compute_ms, c.slowest_ms, c.n_hops, c.hop_ms,
                   (unsigned long long)c.hop_bytes);
        if (whole >= 0)
            buf_printf(out, "%.6g}", whole);
        else
            buf_puts(out, "null}");
    }
}

static void put_ranges(buf *out, const planning *x)
{
    char why[300];
    unsigned room;
    buf_puts(out, "],\"ranges\":[");
    for (size_t i = 0; i < x->n_models; i++) {
        const placement_model *m = &x->models[i];
        if (!find_room(x, i, &room, why, sizeof why)) continue;
        json_put_open(out, NULL, '{');
        json_put_text(out, "model", m->name);
        buf_printf(out, ",\"min\":%u,\"max\":%u,\"replicas\":%u,\"room\":%u", m->n_least, m->n_most,
                   m->n_replicas, room);
        if (room < m->n_most) json_put_text(out, "why", why);
        buf_putc(out, '}');
    }
}

static int cmd_plan_print_json(const planning *x)
{
    buf out = {0};
    put_assignments(&out, x);
    put_prices(&out, x);
    put_ranges(&out, x);
    buf_puts(&out, "],\"stopping\":[");
    for (size_t i = 0; i < x->p.n_leavers; i++) {
        json_put_open(&out, NULL, '{');
        json_put_text(&out, "model", x->p.leavers[i].model);
        json_put_text(&out, "node", x->p.leavers[i].node);
        json_put_text(&out, "why", placement_why_text(x->p.leavers[i].why));
        buf_putc(&out, '}');
    }
    buf_puts(&out, "],\"missing\":[");
    for (size_t i = 0; i < x->p.n_gaps; i++) {
        if (i) buf_putc(&out, ',');
        put_gap(&out, x, &x->p.gaps[i]);
    }
    buf_puts(&out, "],\"nodes\":[");
    for (size_t at = 0; at < x->n_nodes; at++) {
        json_put_open(&out, NULL, '{');
        json_put_text(&out, "name", x->nodes[at].name);
        buf_printf(&out, ",\"budget_bytes\":%llu,\"taken_bytes\":%llu}",
                   (unsigned long long)placement_budget_bytes(&x->nodes[at]),
                   (unsigned long long)taken_bytes(x, at));
    }
    buf_puts(&out, "]}\n");
    bool ok = !out.failed;
    if (ok) cli_write(out.data, out.len);
    buf_done(&out);
    return ok ? 0 : SHOAL_ENOMEM;
}

static int cmd_plan_run(int argc, char **argv)
{
    bool json = false;
    const char *nodes_path = NULL, *server = NULL;
    cli_list changes = {0};
    planning x = {0};
    shoal_err err;
    const cli_option options[] = {
        CLI_STRING(0, "nodes", "FILE",
                   "machines, and what runs there now (docs/cluster.md); without: this machine", &nodes_path),
        CLI_STRING('s', "server", "URL",
                   "plan from what runs now on that gateway's machines: what it would do with this file",
                   &server),
        CLI_LIST(0, "what-if", "CHANGE",
                 "plan as if it had happened: gone:NODE, drains:NODE or joins:FILE (machines as for --nodes)",
                 &changes),
        CLI_CA,
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_plan, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    rc = nodes_path && server
             ? err_set(&err, SHOAL_EINVALID, "give the nodes with --nodes or --server, not both")
             : make_plan(&x, a.v[0], nodes_path, server, &changes, &err);
    if (rc == 0 && json && cmd_plan_print_json(&x) != 0) rc = err_nomem(&err);
    if (rc == 0 && !json) print_text(&x);
    rc = rc != 0 ? cli_fail(&cmd_plan, &err) : x.p.n_gaps > 0 ? CLI_FAILED : CLI_OK;
    planning_done(&x);
    return cli_flush(rc);
}

const cli_command cmd_plan = {"plan", "show where the models of a configuration would run, and why",
                              "SHOAL.YAML", cmd_plan_run, false};
