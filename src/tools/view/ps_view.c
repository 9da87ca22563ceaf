/* ps_view.c: see ps_view.h. Names are anybody's: they show no control characters. */
#include "view/ps_view.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "logging/fold.h"
#include "logging/sanitise.h"

/* ---- summing up ------------------------------------------------------------------------------------- */

static json_t *ps_view_find(json_t *models, const char *name)
{
    size_t i;
    json_t *m;
    json_array_foreach(models, i, m) if (strcmp(json_text_of(m, "model"), name) == 0) return m;
    m = json_pack("{s:s, s:s, s:i, s:i, s:i, s:[], s:i, s:i, s:i, s:f, s:i, s:n}", "model", name, "state", "",
                  "replicas", 0, "standby", 0, "ready", 0, "machines", "memory_bytes", 0, "running", 0,
                  "waiting", 0, "tokens_per_s", 0.0, "crashes", 0, "since");
    return json_array_append_new(models, m) == 0 ? m : NULL;
}

static void ps_view_add(json_t *m, const char *key, double v)
{
    json_t *sum = json_object_get(m, key);
    if (json_is_integer(sum))
        json_integer_set(sum, json_integer_value(sum) + (json_int_t)v);
    else
        json_real_set(sum, json_real_value(sum) + v);
}

static void add_machine(json_t *m, const char *node)
{
    json_t *list = json_object_get(m, "machines"), *known;
    size_t i;
    if (!*node) node = "here";
    json_array_foreach(list, i, known) if (strcmp(json_string_value(known), node) == 0) return;
    json_array_append_new(list, json_string(node));
}

/* How much a person wants to hear of a state before others; unknown ones come last. */
static int rank(const char *state)
{
    static const char *const order[] = {"ready",    "standby", "silent", "starting",
                                        "draining", "down",    "failed"};
    int n = sizeof order / sizeof *order;
    for (int i = 0; i < n; i++)
        if (strcmp(order[i], state) == 0) return i;
    return n;
}

/* The newest: its name begins with the time. */
static void take_report(json_t *m, const char *report)
{
    if (strcmp(report, json_text_of(m, "crash_report")) > 0)
        json_object_set_new(m, "crash_report", json_string(report));
}

static void take_replica(json_t *m, const json_t *r)
{
    const char *state = json_text_of(r, "state"), *had = json_text_of(m, "state");
    const json_t *since = json_object_get(r, "since"), *first = json_object_get(m, "since");
    ps_view_add(m, json_is_true(json_object_get(r, "standby")) ? "standby" : "replicas", 1);
    ps_view_add(m, "ready", strcmp(state, "ready") == 0);
    ps_view_add(m, "memory_bytes", json_number_of(r, "resident_bytes"));
    ps_view_add(m, "running", json_number_of(r, "running"));
    ps_view_add(m, "waiting", json_number_of(r, "waiting"));
    ps_view_add(m, "tokens_per_s", json_number_of(r, "decode_tokens_per_s"));
    add_machine(m, json_text_of(r, "node"));
    ps_view_add(m, "crashes", json_number_of(r, "crashes"));
    take_report(m, json_text_of(r, "crash_report"));
    bool better = !*had || rank(state) < rank(had);
    bool older = json_is_integer(first) && json_is_integer(since) &&
                 json_integer_value(since) < json_integer_value(first) && strcmp(state, had) == 0;
    if ((better || older) && json_is_integer(since))
        json_object_set_new(m, "since", json_integer(json_integer_value(since)));
    if (better) json_object_set_new(m, "state", json_string(state));
}

json_t *ps_view_models(const json_t *status)
{
    json_t *models = json_array(), *r;
    size_t i;
    json_array_foreach(json_object_get(status, "replicas"), i, r)
    {
        json_t *m = models ? ps_view_find(models, json_text_of(r, "model")) : NULL;
        if (m) take_replica(m, r);
    }
    json_array_foreach(json_object_get(status, "missing"), i, r)
    {
        json_t *m = models ? ps_view_find(models, json_text_of(r, "model")) : NULL;
        if (!m) continue;
        if (!*json_text_of(m, "state")) json_object_set_new(m, "state", json_string("missing"));
        json_object_set_new(m, "reason", json_string(json_text_of(r, "reason")));
    }
    return models;
}

/* ---- lines ------------------------------------------------------------------------------------------ */

void ps_view_ago(char ret[16], long long s)
{
    if (s < 0) s = 0;
    if (s < 120)
        snprintf(ret, 16, "%lld s", s);
    else if (s < 2 * 3600)
        snprintf(ret, 16, "%lld min", s / 60);
    else if (s < 2 * 86400)
        snprintf(ret, 16, "%lld h", s / 3600);
    else
        snprintf(ret, 16, "%lld d", s / 86400 > 99999 ? 99999 : s / 86400);
}

static void put_machines(char *ret, size_t size, const json_t *m)
{
    const json_t *list = json_object_get(m, "machines");
    size_t n = json_array_size(list);
    const char *first = n ? json_string_value(json_array_get(list, 0)) : "";
    if (n > 1)
        snprintf(ret, size, "%.7s +%zu", first, n - 1);
    else
        snprintf(ret, size, "%.10s", first);
}

enum { NAME_COLUMNS = 16 };

/* In a pipe, which has no width, as wide as the longest name. */
static int name_columns(const json_t *models, size_t width)
{
    size_t i, most = NAME_COLUMNS;
    json_t *m;
    json_array_foreach((json_t *)(uintptr_t)models, i, m)
    {
        size_t n = strlen(json_text_of(m, "model"));
        if (!width && n > most) most = n;
    }
    return (int)most;
}

static void put_model(buf *out, const json_t *m, int columns, long long now, size_t width)
{
    const char *name = json_text_of(m, "model");
    size_t row = out->len;
    char machines[40], replicas[32], since[16] = "-", rate[16] = "-";
    const json_t *at = json_object_get(m, "since");
    double per_s = json_number_of(m, "tokens_per_s");
    put_machines(machines, sizeof machines, m);
    int n = snprintf(replicas, sizeof replicas, "%.0f/%.0f", json_number_of(m, "ready"),
                     json_number_of(m, "replicas"));
    if (json_number_of(m, "standby") > 0)
        snprintf(replicas + n, sizeof replicas - (size_t)n, "+%.0f", json_number_of(m, "standby"));
    if (json_is_integer(at)) ps_view_ago(since, now - json_integer_value(at));
    if (per_s > 0) snprintf(rate, sizeof rate, "%.0f", per_s);
    if (width && strlen(name) > NAME_COLUMNS) { /* in a row of its own it moves no other column */
        buf_puts(out, name);
        sanitise_line(out, row, width);
        row = out->len;
        name = "";
    }
    buf_printf(out, "%-*s %-8s %5s %-10s %6.0f MB %4.0f %5.0f %6s  %s", columns, name,
               json_text_of(m, "state"), replicas, machines, json_number_of(m, "memory_bytes") / 1e6,
               json_number_of(m, "running"), json_number_of(m, "waiting"), rate, since);
    sanitise_line(out, row, width);
}

static void put_crashes(buf *out, const json_t *m, size_t width)
{
    const char *report = json_text_of(m, "crash_report");
    double n = json_number_of(m, "crashes");
    size_t from = out->len;
    if (!*report) return;
    buf_printf(out, "  crashed %.0f time%s; the last report: shoal crash %s", n, n == 1 ? "" : "s", report);
    fold_line(out, from, width, 2);
}

void ps_view_put(buf *out, const json_t *models, long long now, size_t width)
{
    size_t i, from = out->len;
    int columns = name_columns(models, width);
    json_t *m;
    buf_printf(out, "%-*s %-8s %5s %-10s %9s %4s %5s %6s  %s", columns, "MODEL", "STATE", "READY", "MACHINES",
               "MEMORY", "BUSY", "QUEUE", "TOK/S", "SINCE");
    sanitise_line(out, from, width);
    json_array_foreach((json_t *)(uintptr_t)models, i, m)
    {
        put_model(out, m, columns, now, width);
        put_crashes(out, m, width);
        if (!*json_text_of(m, "reason")) continue;
        from = out->len;
        buf_printf(out, "  %s", json_text_of(m, "reason"));
        fold_line(out, from, width, 2);
    }
}
