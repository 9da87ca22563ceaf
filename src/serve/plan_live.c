/* plan_live.c: see plan_live.h. */
#include "serve/plan_live.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "command/cli_process.h"
#include "serve/measure_here.h"
#include "trust/identity.h"

static const char *text(const json_t *o, const char *key, arena *mem, bool *ok)
{
    const char *s = json_string_value(json_object_get(o, key));
    char *copy = s && *s ? arena_strdup(mem, s) : NULL;
    *ok = *ok && (copy || !s || !*s);
    return copy;
}

static double number(const json_t *o, const char *key)
{
    double x = json_number_value(json_object_get(o, key));
    return x > 0 && x < 1e18 ? x : 0;
}

static bool take_labels(node *n, const json_t *list, arena *mem)
{
    size_t count = json_array_size(list);
    const char **labels = arena_alloc(mem, (count + 1) * sizeof *labels);
    for (size_t i = 0; labels && i < count; i++) {
        const char *s = json_string_value(json_array_get(list, i));
        if (s && (labels[n->n_labels++] = arena_strdup(mem, s)) == NULL) return false;
    }
    n->labels = labels;
    return labels != NULL;
}

static bool take_node(node *n, const json_t *o, arena *mem)
{
    bool ok = true;
    *n = (node){.name = text(o, "name", mem, &ok),
                .site = text(o, "site", mem, &ok),
                .address = text(o, "address", mem, &ok),
                .n_cores = (unsigned)number(o, "cores"),
                .memory_bytes = (uint64_t)number(o, "memory_bytes"),
                .bytes_per_s = number(o, "bytes_per_s"),
                .multiplies_per_s = number(o, "multiplies_per_s"),
                .load_1m = number(o, "load"),
                .rtt_ms = number(o, "rtt_ms"),
                .on_battery = json_is_true(json_object_get(o, "on_battery")),
                .battery_percent = (unsigned)number(o, "battery_percent"),
                .draining = json_is_true(json_object_get(o, "drains"))};
    return take_labels(n, json_object_get(o, "labels"), mem) && ok;
}

/* As the gateway sees it: without a relay, so that nobody reaches its workers. */
static int take_here(node *n, const gateway_config *c, arena *mem, shoal_err *err)
{
    node *here = NULL;
    isa chosen;
    char usual[IDENTITY_NAME_SIZE];
    int rc = node_here(&here, err);
    if (rc != 0) return rc;
    identity_name_from_host(usual, here->name);
    *n = *here;
    n->name = arena_strdup(mem, c->cluster_name ? c->cluster_name : usual);
    n->site = c->cluster_site;
    n->unreached = true;
    node_free(here);
    if (isa_choose(&chosen, NULL) == 0) measure_here(chosen, &n->bytes_per_s, &n->multiplies_per_s);
    return n->name ? 0 : err_nomem(err);
}

static bool serves(const json_t *o)
{
    const char *role = json_string_value(json_object_get(o, "role"));
    const char *address = json_string_value(json_object_get(o, "address"));
    return role && strcmp(role, role_name(ROLE_NODE)) == 0 && address && *address;
}

static int take_all(node **ret, size_t *ret_n, const json_t *list, const gateway_config *c, arena *mem,
                    shoal_err *err)
{
    node *nodes = arena_alloc(mem, (json_array_size(list) + 1) * sizeof *nodes);
    size_t n = 0;
    int rc = nodes ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        if (!serves(o)) continue;
        if (!take_node(&nodes[n++], o, mem)) rc = err_nomem(err);
        if (rc == 0 && !nodes[n - 1].name)
            rc = err_set(err, SHOAL_EPROTOCOL, "the gateway lists a machine without a name");
    }
    if (rc == 0) rc = take_here(&nodes[n++], c, mem, err);
    *ret = nodes;
    *ret_n = n;
    return rc;
}

int plan_live_nodes(node **ret, size_t *ret_n, const char *server, const gateway_config *c, arena *mem,
                    shoal_err *err)
{
    http_where where;
    buf reply = {0};
    json_t *answer = NULL;
    int rc = cli_process_where(&where, server, err);
    if (rc == 0) rc = cli_process_get(&where, "/v1/nodes", getenv("SHOAL_API_KEY"), &reply, err);
    if (rc == 0) rc = json_parse(&answer, reply.data, reply.len, "the answer", err);
    if (rc == 0) rc = take_all(ret, ret_n, json_object_get(answer, "nodes"), c, mem, err);
    json_decref(answer);
    buf_done(&reply);
    return rc;
}
