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

/* Which fields a row has: all of them in a pipe and in a wide terminal; else those of `narrow`, and the others
 * below. */
typedef struct layout {
    bool narrow;
    int name, role, site, memory, load, battery;
} layout;

static const layout WIDE = {false, 16, 8, 8, 6, 6, 9}, NARROW = {true, 12, 7, 8, 5, 5, 8};
enum { WIDE_COLUMNS = 120 };

static void put_labels(buf *out, const json_t *node)
{
    size_t i;
    const json_t *label;
    json_array_foreach(json_object_get(node, "labels"), i, label)
        buf_printf(out, "%s%s", i ? "," : "", json_string_value(label));
}

/* Not known of a machine that is attached to another gateway. */
static void put_measured(buf *out, const json_t *node, const char *key, int width, int digits, double unit)
{
    if (json_object_get(node, key))
        buf_printf(out, " %*.*f", width, digits, json_number_of(node, key) / unit);
    else
        buf_printf(out, " %*s", width, "-");
}

static void print_row(const json_t *node, const layout *l)
{
    char battery[16] = "-";
    buf row = {0};
    const char *name = cmd_nodes_text_of(node, "name"), *isa = cmd_nodes_text_of(node, "isa");
    if (json_number_of(node, "battery_percent") > 0)
        snprintf(battery, sizeof battery, "%.0f%%%s", json_number_of(node, "battery_percent"),
                 json_is_true(json_object_get(node, "on_battery")) ? " used" : "");
    if (l->narrow && strlen(name) > (size_t)l->name) { /* in a row of its own it moves no other column */
        cli_print_line(2, "%s", name);
        name = "";
    }
    buf_printf(&row, "%-*s %-*s %-*s %5.0f", l->name, name, l->role,
               json_is_true(json_object_get(node, "drains")) ? "drains" : cmd_nodes_text_of(node, "role"),
               l->site, cmd_nodes_text_of(node, "site"), json_number_of(node, "cores"));
    if (!l->narrow) buf_printf(&row, " %-10s", isa);
    buf_printf(&row, " %*.1f", l->memory, json_number_of(node, "memory_bytes") / GIB);
    put_measured(&row, node, "memory_free_bytes", l->memory, 1, GIB);
    buf_printf(&row, " %*.2f %-*s", l->load, json_number_of(node, "load"), l->battery, battery);
    put_measured(&row, node, "rtt_ms", 6, 2, 1);
    put_measured(&row, node, "silent_s", 7, 1, 1);
    if (l->narrow) {
        cli_print_line(2, "%s", row.data ? row.data : "");
        buf_clear(&row);
        buf_printf(&row, "  %s", isa);
    }
    buf_puts(&row, "  ");
    put_labels(&row, node);
    cli_print_line(2, "%s", row.data ? row.data : "");
    buf_done(&row);
}

static int cmd_nodes_by_name(const void *a, const void *b)
{
    return strcmp(cmd_nodes_text_of(*(const json_t *const *)a, "name"),
                  cmd_nodes_text_of(*(const json_t *const *)b, "name"));
}

/* By name, so that all gateways of a cluster show the same. */
static int print_rows(const json_t *nodes, const layout *l)
{
    size_t i, n = json_array_size(nodes);
    const json_t **rows = calloc(n + 1, sizeof *rows);
    if (!rows) return SHOAL_ENOMEM;
    for (i = 0; i < n; i++) rows[i] = json_array_get(nodes, i);
    qsort(rows, n, sizeof *rows, cmd_nodes_by_name);
    for (i = 0; i < n; i++) print_row(rows[i], l);
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
            cli_print_line(2, "%s has the device %s with %.1f GiB", cmd_nodes_text_of(n, "name"),
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
            cli_print_line(2,
                           "%s is attached from %s, and a second machine with its certificate, at %s, was "
                           "refused %.0f s ago: "
                           "remove the state folder of one of them, and let it join with a token of its own",
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
            cli_print_line(2, "%s is away, this is what was last heard of it: %s",
                           cmd_nodes_text_of(s, "name"), cmd_nodes_text_of(s, "trouble"));
    }
}

static int print_table(const json_t *nodes, shoal_err *err)
{
    size_t columns = cli_columns(0);
    const layout *l = columns && columns < WIDE_COLUMNS ? &NARROW : &WIDE;
    char isa[] = " ISA       ";
    cli_print_line(2, "%-*s %-*s %-*s %5s%s %*s %*s %*s %-*s %6s %7s%s", l->name, "NAME", l->role, "ROLE",
                   l->site, "SITE", "CORES", l->narrow ? "" : isa, l->memory, "GiB", l->memory, "FREE",
                   l->load, "LOAD", l->battery, "BATTERY", "RTT ms", "HEARD s", l->narrow ? "" : "  LABELS");
    return print_rows(nodes, l) == 0 ? 0 : err_nomem(err);
}

static int print_nodes(const json_t *answer, shoal_err *err)
{
    const json_t *nodes = json_object_get(answer, "nodes");
    int rc = 0;
    if (json_array_size(nodes))
        rc = print_table(nodes, err);
    else
        cli_print_line(0, "no machine is attached: this gateway serves alone, on its own machine (shoal ps). "
                          "shoal token makes what another machine joins with.");
    if (rc != 0) return rc;
    print_devices(nodes);
    print_copies(nodes);
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
