/* machines.c: see machines.h. */
#include "operations/machines.h"

#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "request/endpoint.h"
#include "request/gateway_state.h"
#include "operations/status.h"
#include "control/control.h"

/* ---- the list ------------------------------------------------------------------------------------ */

static void refuse_alone(gateway_request *rq)
{
    api_error e;
    api_error_set(
        &e, 404, "invalid_request_error", "no_cluster", NULL,
        "this gateway has no port for other machines; add cluster: {listen: \":7080\"} to its shoal.yaml "
        "and restart it");
    request_error(rq, &e);
}

/* One that is not attached here: this machine, or one that another gateway has told of. */
static void put_node(buf *out, const node *n)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "name", n->name);
    json_put_text(out, "role", n->is_gateway ? "gateway" : "node");
    json_put_text(out, "site", n->site);
    json_put_text(out, "isa", n->isa);
    buf_printf(out, ",\"drains\":%s,\"cores\":%u,\"memory_bytes\":%llu", n->draining ? "true" : "false",
               n->n_cores, (unsigned long long)n->memory_bytes);
    if (n->memory_free_bytes)
        buf_printf(out, ",\"memory_free_bytes\":%llu", (unsigned long long)n->memory_free_bytes);
    buf_printf(out, ",\"load\":%.6g,\"on_battery\":%s,\"battery_percent\":%u,\"labels\":[", n->load_1m,
               n->on_battery ? "true" : "false", n->battery_percent);
    for (size_t i = 0; i < n->n_labels; i++) json_put_text(out, NULL, n->labels[i]);
    buf_putc(out, ']');
    node_put_devices(out, n, true);
    buf_putc(out, '}');
}

/* Another gateway that is attached here for lists and certificates says less of itself than it tells all. */
static bool is_told_better(const registry *g, const member_entry *e)
{
    return e->role == ROLE_GATEWAY && registry_node(g, e->name);
}

static void put_attached(buf *out, const registry *g, const member_table *r)
{
    for (size_t i = 0; i < member_table_count(r); i++) {
        const member_entry *e = member_table_at(r, i);
        if (is_told_better(g, e)) continue;
        json_put_key(out, NULL); /* a comma behind another */
        member_table_put_entry(e, env_now_ns(registry_env(g)), out);
    }
}

static void put_others(buf *out, const registry *g, const member_table *r)
{
    size_t at = 0;
    for (const node *n; (n = registry_next_node(g, &at));) {
        const member_entry *e = member_table_find(r, n->name);
        if (!e || is_told_better(g, e)) put_node(out, n);
    }
}

static bool has_source(const registry *g, const char *name)
{
    for (size_t i = 0; i < registry_count_sources(g); i++)
        if (strcmp(source_name(registry_source_at(g, i)), name) == 0) return true;
    return false;
}

/* Among gateways that know each other, this one is one of them. */
static void put_self(buf *out, const registry *g, const control *x)
{
    node *here = NULL;
    if (!has_source(g, "etcd") || node_here(&here, NULL) != 0) return;
    node n = *here;
    n.name = control_name(x);
    n.site = registry_site(g);
    n.is_gateway = true;
    n.draining = control_node_drains(x, n.name);
    put_node(out, &n);
    node_free(here);
}

void machines_list(gateway_request *rq)
{
    const control *x = rq->gateway->control;
    buf out = {0};
    if (!x) {
        refuse_alone(rq);
        return;
    }
    if (buf_puts(&out, "{\"nodes\":[") == 0) {
        put_self(&out, rq->registry, x);
        put_attached(&out, rq->registry, control_member_table(x));
        put_others(&out, rq->registry, control_member_table(x));
        buf_puts(&out, "],");
        status_put_sources(&out, rq->registry);
        buf_putc(&out, '}');
    }
    request_json(rq, 200, &out);
    buf_done(&out);
}

/* ---- what runs where, and by what that is decided ------------------------------------------------- */

void machines_placement(gateway_request *rq)
{
    const control *x = rq->gateway->control;
    buf out = {0};
    shoal_err err;
    if (!x) {
        refuse_alone(rq);
        return;
    }
    int rc = control_put_placement(x, &out, &err);
    if (rc == 0) {
        request_json(rq, 200, &out);
    } else {
        api_error e;
        if (rc == SHOAL_EINVALID)
            api_error_set(&e, 409, "invalid_request_error", "places_no_models", NULL, "%s", err.message);
        else
            api_error_nomem(&e);
        request_error(rq, &e);
    }
    buf_done(&out);
}

void machines_rebalance(gateway_request *rq)
{
    shoal_err err;
    if (!rq->gateway->control) {
        refuse_alone(rq);
        return;
    }
    if (control_rebalance(rq->gateway->control, &err) == 0) {
        request_json(rq, 200, &(buf){.data = "{\"rebalances\":true}", .len = 19});
        return;
    }
    api_error e;
    api_error_set(&e, 409, "invalid_request_error", "places_no_models", NULL, "%s", err.message);
    request_error(rq, &e);
}

/* ---- a person's word ----------------------------------------------------------------------------- */

static const char *const ORDERS[] = {
    [OPERATOR_DRAIN] = "drain", [OPERATOR_RESUME] = "resume", [OPERATOR_REMOVE] = "remove"};

/* "kitchen-pi/drain" */
static bool parse_order(const char *path, char name[IDENTITY_NAME_SIZE], operator_command *ret)
{
    const char *slash = strchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n == 0 || n >= IDENTITY_NAME_SIZE) return false;
    memcpy(name, path, n);
    name[n] = '\0';
    for (int k = OPERATOR_DRAIN; k <= OPERATOR_REMOVE; k++)
        if (strcmp(slash + 1, ORDERS[k]) == 0) {
            *ret = (operator_command)k;
            return true;
        }
    return false;
}

void machines_order(gateway_request *rq)
{
    const char *path = request_path(rq) + strlen("/v1/nodes/");
    char name[IDENTITY_NAME_SIZE];
    operator_command what;
    shoal_err err = {.message = "this gateway has no port for other machines"};
    api_error e;
    if (!parse_order(path, name, &what)) {
        api_error_set(&e, 404, "invalid_request_error", "not_found", NULL,
                      "POST /v1/nodes/NAME/drain, /resume or /remove");
        request_error(rq, &e);
        return;
    }
    int rc =
        rq->gateway->control ? control_node_command(rq->gateway->control, name, what, &err) : SHOAL_EINVALID;
    if (rc != 0) {
        int status = rc == SHOAL_ENOTFOUND ? 404 : rc == SHOAL_EINVALID ? 400 : 503;
        api_error_set(&e, status, "invalid_request_error", "node_order", NULL, "%s", err.message);
        request_error(rq, &e);
        return;
    }
    buf out = {0};
    buf_putc(&out, '{');
    json_put_text(&out, "node", name);
    buf_printf(&out, ",\"order\":\"%s\"}", ORDERS[what]);
    request_json(rq, 200, &out);
    buf_done(&out);
}
