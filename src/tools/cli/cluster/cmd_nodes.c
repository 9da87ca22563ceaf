/* shoal nodes: the machines that are attached to a gateway. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "cli/commands.h"
#include "command/cli_cluster.h"
#include "command/cli_process.h"

#define GIB (1 << 30)

static const char *cmd_nodes_text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s && *s ? s : "-";
}

static void print_labels(const json_t *node)
{
    size_t i;
    const json_t *label;
    json_array_foreach(json_object_get(node, "labels"), i, label)
        cli_printf("%s%s", i ? "," : "", json_string_value(label));
    putchar('\n');
}

/* Not known of a machine that is attached to another gateway. */
static void print_measured(const json_t *node, const char *key, int width, int digits, double unit)
{
    if (json_object_get(node, key))
        cli_printf(" %*.*f", width, digits, json_number_of(node, key) / unit);
    else
        cli_printf(" %*s", width, "-");
}

static void print_row(const json_t *node)
{
    char battery[16] = "-";
    if (json_number_of(node, "battery_percent") > 0)
        snprintf(battery, sizeof battery, "%.0f%%%s", json_number_of(node, "battery_percent"),
                 json_is_true(json_object_get(node, "on_battery")) ? " used" : "");
    cli_printf("%-16s %-8s %-8s %5.0f %-10s %6.1f", cmd_nodes_text_of(node, "name"),
               json_is_true(json_object_get(node, "drains")) ? "drains" : cmd_nodes_text_of(node, "role"),
               cmd_nodes_text_of(node, "site"), json_number_of(node, "cores"), cmd_nodes_text_of(node, "isa"),
               json_number_of(node, "memory_bytes") / GIB);
    print_measured(node, "memory_free_bytes", 6, 1, GIB);
    cli_printf(" %6.2f %-9s", json_number_of(node, "load"), battery);
    print_measured(node, "rtt_ms", 6, 2, 1);
    print_measured(node, "silent_s", 7, 1, 1);
    cli_printf("  ");
    print_labels(node);
}

static int cmd_nodes_by_name(const void *a, const void *b)
{
    return strcmp(cmd_nodes_text_of(*(const json_t *const *)a, "name"),
                  cmd_nodes_text_of(*(const json_t *const *)b, "name"));
}

/* By name, so that all gateways of a cluster show the same. */
static int print_rows(const json_t *nodes)
{
    size_t i, n = json_array_size(nodes);
    const json_t **rows = calloc(n + 1, sizeof *rows);
    if (!rows) return SHOAL_ENOMEM;
    for (i = 0; i < n; i++) rows[i] = json_array_get(nodes, i);
    qsort(rows, n, sizeof *rows, cmd_nodes_by_name);
    for (i = 0; i < n; i++) print_row(rows[i]);
    free(rows);
    return 0;
}

/* What computes beside the cores. */
static void print_devices(const json_t *nodes)
{
    size_t i, k;
    const json_t *n, *d;
    json_array_foreach(nodes, i, n) json_array_foreach(json_object_get(n, "devices"), k, d)
    {
        if (strcmp(cmd_nodes_text_of(d, "kind"), "cpu") != 0)
            cli_printf("%s has the device %s with %.1f GiB\n", cmd_nodes_text_of(n, "name"),
                       cmd_nodes_text_of(d, "name"), json_number_of(d, "memory_bytes") / GIB);
    }
}

/* Two machines with one certificate: one is attached, and the other is refused. */
static void print_copies(const json_t *nodes)
{
    size_t i;
    const json_t *n;
    json_array_foreach(nodes, i, n)
    {
        if (json_string_length(json_object_get(n, "also_from")) > 0)
            cli_printf("%s is attached from %s, and a second machine with its certificate, at %s, was "
                       "refused %.0f s ago: "
                       "remove the state folder of one of them, and let it join with a token of its own\n",
                       cmd_nodes_text_of(n, "name"), cmd_nodes_text_of(n, "from"),
                       cmd_nodes_text_of(n, "also_from"), json_number_of(n, "also_s"));
    }
}

/* A source that hears nothing: what is shown may be old. */
static void print_troubles(const json_t *sources)
{
    size_t i;
    const json_t *s;
    json_array_foreach(sources, i, s)
    {
        if (json_string_length(json_object_get(s, "trouble")) > 0)
            cli_printf("%s is away, this is what was last heard of it: %s\n", cmd_nodes_text_of(s, "name"),
                       cmd_nodes_text_of(s, "trouble"));
    }
}

static int print_nodes(const json_t *answer, shoal_err *err)
{
    cli_printf("%-16s %-8s %-8s %5s %-10s %6s %6s %6s %-9s %6s %7s  %s\n", "NAME", "ROLE", "SITE", "CORES",
               "ISA", "GiB", "FREE", "LOAD", "BATTERY", "RTT ms", "HEARD s", "LABELS");
    if (print_rows(json_object_get(answer, "nodes")) != 0) return err_nomem(err);
    print_devices(json_object_get(answer, "nodes"));
    print_copies(json_object_get(answer, "nodes"));
    print_troubles(json_object_get(answer, "sources"));
    return 0;
}

static int cmd_nodes_run(int argc, char **argv)
{
    const char *server = NULL, *key = getenv("SHOAL_API_KEY");
    bool json = false;
    const cli_option options[] = {
        CLI_SERVER(&server),
        CLI_KEY(&key),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    http_where where;
    buf reply = {0};
    json_t *parsed = NULL;
    int rc = cli_parse(&a, &cmd_nodes, options, 0, 0, argc, argv);
    if (rc != CLI_GO) return rc;
    rc = cli_process_where(&where, server, &err);
    if (rc == 0) rc = cli_process_get(&where, "/v1/nodes", key, &reply, &err);
    if (rc == 0) rc = json_parse(&parsed, reply.data, reply.len, "the answer", &err);
    if (rc == 0 && json)
        cli_printf("%s\n", reply.data);
    else if (rc == 0)
        rc = print_nodes(parsed, &err);
    json_decref(parsed);
    buf_done(&reply);
    return rc ? cli_fail(&cmd_nodes, &err) : CLI_OK;
}

const cli_command cmd_nodes = {"nodes", "list the machines that are attached to a gateway", "", cmd_nodes_run,
                               false};
