/* plan_live.c: see plan_live.h. */
#include "serve/plan_live.h"

#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "command/cli_process.h"

/* ---- values ---------------------------------------------------------------------------------------- */

static const char *text(const json_t *o, const char *key, arena *mem, bool *ok)
{
    const char *s = json_string_value(json_object_get(o, key));
    char *copy = s && *s ? arena_strdup(mem, s) : NULL;
    *ok = *ok && (copy || !s || !*s);
    return copy;
}

static double plan_live_number(const json_t *o, const char *key)
{
    double x = json_number_value(json_object_get(o, key));
    return x > 0 && x < 1e18 ? x : 0;
}

static bool truth(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

static void *list_of(const json_t *all, const char *key, size_t size, arena *mem, bool *ok)
{
    void *list = arena_alloc(mem, (json_array_size(json_object_get(all, key)) + 1) * size);
    *ok = *ok && list;
    return list;
}

static const char **texts(const json_t *o, const char *key, size_t *ret_n, arena *mem, bool *ok)
{
    const json_t *list = json_object_get(o, key);
    const char **all = list_of(o, key, sizeof *all, mem, ok);
    *ret_n = 0;
    for (size_t i = 0; *ok && i < json_array_size(list); i++) {
        const char *s = json_string_value(json_array_get(list, i));
        if (s && !(all[(*ret_n)++] = arena_strdup(mem, s))) *ok = false;
    }
    return all;
}

static const node_device *devices_of(const json_t *o, size_t *ret_n, arena *mem, bool *ok)
{
    const json_t *list = json_object_get(o, "devices");
    node_device *all = list_of(o, "devices", sizeof *all, mem, ok);
    *ret_n = 0;
    for (size_t i = 0; *ok && i < json_array_size(list); i++) {
        const json_t *d = json_array_get(list, i);
        all[i] = (node_device){.name = text(d, "name", mem, ok),
                               .kind = text(d, "kind", mem, ok),
                               .memory_bytes = (uint64_t)plan_live_number(d, "memory_bytes")};
        *ok = *ok && all[i].name && all[i].kind;
        *ret_n += *ok;
    }
    return all;
}

/* ---- what there is ---------------------------------------------------------------------------------- */

static void take_node(plan_live *x, const json_t *o, bool *ok)
{
    node *n = &x->nodes[x->n_nodes];
    *n = (node){.name = text(o, "name", x->mem, ok),
                .site = text(o, "site", x->mem, ok),
                .n_cores = (unsigned)plan_live_number(o, "cores"),
                .memory_bytes = (uint64_t)plan_live_number(o, "memory_bytes"),
                .bytes_per_s = plan_live_number(o, "bytes_per_s"),
                .multiplies_per_s = plan_live_number(o, "multiplies_per_s"),
                .load_1m = plan_live_number(o, "load"),
                .rtt_ms = plan_live_number(o, "rtt_ms"),
                .on_battery = truth(o, "on_battery"),
                .battery_percent = (unsigned)plan_live_number(o, "battery_percent"),
                .draining = truth(o, "drains"),
                .is_gateway = truth(o, "gateway"),
                .unreached = truth(o, "gateway")};
    n->labels = texts(o, "labels", &n->n_labels, x->mem, ok);
    n->devices = devices_of(o, &n->n_devices, x->mem, ok);
    if (!n->name) return;
    if (n->is_gateway) x->gateways[x->n_gateways++] = n->name;
    x->n_nodes++;
}

static void take_now(plan_live *x, const json_t *o, bool *ok)
{
    placement_now *n = &x->now[x->n_now];
    *n = (placement_now){.model = text(o, "model", x->mem, ok),
                         .node = text(o, "node", x->mem, ok),
                         .standby = truth(o, "standby"),
                         .first = (size_t)plan_live_number(o, "first_layer"),
                         .end = (size_t)plan_live_number(o, "end_layer")};
    x->n_now += n->model && n->node;
}

static void take_model(plan_live *x, const json_t *o, bool *ok)
{
    plan_live_model *m = &x->models[x->n_models];
    *m = (plan_live_model){
        .name = text(o, "model", x->mem, ok), .travels = truth(o, "travels"), .waits = truth(o, "waits")};
    double n = plan_live_number(o, "replicas");
    m->n_replicas = (unsigned)(n < UINT16_MAX ? n : UINT16_MAX);
    m->idle = truth(o, "idle");
    m->settling = truth(o, "settling");
    m->failed = texts(o, "failed", &m->n_failed, x->mem, ok);
    x->n_models += m->name != NULL;
}

static int take_all(plan_live *x, const json_t *all, shoal_err *err)
{
    const json_t *nodes = json_object_get(all, "nodes"), *now = json_object_get(all, "now"),
                 *models = json_object_get(all, "models");
    bool ok = true;
    if (!json_is_array(nodes) || !json_is_array(now) || !json_is_array(models))
        return err_set(err, SHOAL_EPROTOCOL, "the gateway's answer is no list of nodes, seats and models");
    x->nodes = list_of(all, "nodes", sizeof *x->nodes, x->mem, &ok);
    x->gateways = list_of(all, "nodes", sizeof *x->gateways, x->mem, &ok);
    x->now = list_of(all, "now", sizeof *x->now, x->mem, &ok);
    x->models = list_of(all, "models", sizeof *x->models, x->mem, &ok);
    for (size_t i = 0; ok && i < json_array_size(nodes); i++) take_node(x, json_array_get(nodes, i), &ok);
    for (size_t i = 0; ok && i < json_array_size(now); i++) take_now(x, json_array_get(now, i), &ok);
    for (size_t i = 0; ok && i < json_array_size(models); i++) take_model(x, json_array_get(models, i), &ok);
    return ok ? 0 : err_nomem(err);
}

int plan_live_read(plan_live *ret, const char *json, size_t n, shoal_err *err)
{
    json_t *all = NULL;
    plan_live x = {.mem = arena_new(0)};
    int rc = x.mem ? json_parse(&all, json, n, "the answer", err) : err_nomem(err);
    if (rc == 0) rc = take_all(&x, all, err);
    json_decref(all);
    if (rc == 0)
        *ret = x;
    else
        plan_live_done(&x);
    return rc;
}

int plan_live_ask(plan_live *ret, const char *server, shoal_err *err)
{
    http_where where;
    buf reply = {0};
    int rc = cli_process_where(&where, server, err);
    if (rc == 0) rc = cli_process_get(&where, "/v1/placement", getenv("SHOAL_API_KEY"), &reply, err);
    if (rc == 0) rc = plan_live_read(ret, reply.data ? reply.data : "", reply.len, err);
    buf_done(&reply);
    return rc;
}

void plan_live_restrict(const plan_live *x, placement_model *m)
{
    for (size_t i = 0; i < x->n_models; i++) {
        const plan_live_model *is = &x->models[i];
        if (strcmp(is->name, m->name) != 0) continue;
        m->failed = is->failed;
        m->n_failed = is->n_failed;
        m->waits = is->waits;
        m->idle = is->idle;
        m->settling = is->settling;
        if (is->n_replicas > m->n_replicas && m->n_most)
            m->n_replicas = is->n_replicas < m->n_most ? is->n_replicas : m->n_most;
        if (is->travels) return;
        m->nodes = x->gateways;
        m->n_nodes = x->n_gateways;
    }
}

void plan_live_done(plan_live *x)
{
    arena_free(x->mem);
    *x = (plan_live){0};
}
