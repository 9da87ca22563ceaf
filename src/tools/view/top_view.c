/* top_view.c: see top_view.h. */
#include "view/top_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "logging/sanitise.h"
#include "base/utf8.h"
#include "view/cache_view.h"

typedef struct view {
    const json_t *now, *before;
    double seconds;
    buf *out;
    size_t width, height, n_lines, n_hidden;
} view;

/* The same replica a look ago. Replicas come and go, but mostly they stand where they stood. */
static const json_t *was(const view *v, const json_t *r, size_t i)
{
    const json_t *list = json_object_get(v->before, "replicas"), *o = json_array_get(list, i);
    size_t k;
    json_t *other;
    if (strcmp(json_text_of(o, "id"), json_text_of(r, "id")) == 0) return o;
    json_array_foreach((json_t *)(uintptr_t)list, k,
                       other) if (strcmp(json_text_of(other, "id"), json_text_of(r, "id")) == 0) return other;
    return NULL;
}

/* NAN: not known. A worker that began anew counts from zero. */
static double rate(const view *v, const json_t *r, size_t i, const char *key)
{
    const json_t *old = was(v, r, i);
    if (!old || !json_object_get(old, key) || !json_object_get(r, key) || v->seconds <= 0) return NAN;
    double grew = json_number_of(r, key) - json_number_of(old, key);
    return grew >= 0 ? grew / v->seconds : NAN;
}

/* ---- lines --------------------------------------------------------------------------------------- */

/* Ends the line that begins at `from`. */
static void end_line(view *v, size_t from)
{
    sanitise_line(v->out, from, v->width);
    v->n_lines += !v->out->failed;
}

static bool top_view_has_room(view *v)
{
    bool room = v->height == 0 || v->n_lines + 1 < v->height;
    if (!room) v->n_hidden++;
    return room;
}

static void put_rate(buf *out, double r)
{
    if (isnan(r))
        buf_printf(out, " %8s", "-");
    else
        buf_printf(out, " %8.1f", r);
}

static void top_view_put_bytes(buf *out, double n)
{
    static const char UNITS[] = "KMGT";
    int u = -1;
    while (n >= 1000 && u < 3) {
        n /= 1024;
        u++;
    }
    if (u < 0)
        buf_printf(out, " %7.0f", n);
    else
        buf_printf(out, " %6.*f%c", n < 10 ? 1 : 0, n, UNITS[u]);
}

static double total_rate(const view *v, const char *node)
{
    double sum = 0;
    bool known = false;
    size_t i;
    json_t *r;
    json_array_foreach(json_object_get(v->now, "replicas"), i, r)
    {
        double x = rate(v, r, i, "generated_tokens");
        if (isnan(x) || (node && strcmp(json_text_of(r, "node"), node) != 0)) continue;
        known = true;
        sum += x;
    }
    return known ? sum : NAN;
}

static size_t top_view_count(const view *v, const char *node, const char *state)
{
    size_t i, n = 0;
    json_t *r;
    json_array_foreach(json_object_get(v->now, "replicas"), i, r) n +=
        (!node || strcmp(json_text_of(r, "node"), node) == 0) &&
        (!state || strcmp(json_text_of(r, "state"), state) == 0);
    return n;
}

static void put_summary(view *v)
{
    size_t from = v->out->len, n_nodes = json_array_size(json_object_get(v->now, "nodes"));
    buf_printf(v->out, "shoal %s  %s", json_text_of(v->now, "version"), json_text_of(v->now, "status"));
    if (*json_text_of(v->now, "site")) buf_printf(v->out, "  site %s", json_text_of(v->now, "site"));
    if (n_nodes) buf_printf(v->out, "  nodes %zu", n_nodes);
    size_t n_standby = top_view_count(v, NULL, "standby");
    buf_printf(v->out, "  replicas %zu/%zu", top_view_count(v, NULL, "ready"),
               top_view_count(v, NULL, NULL) - n_standby);
    if (n_standby) buf_printf(v->out, " (+%zu standby)", n_standby);
    buf_printf(v->out, "  requests %.0f  tokens/s", json_number_of(v->now, "requests_in_flight"));
    put_rate(v->out, total_rate(v, NULL));
    buf_printf(v->out, "  moves %.0f", json_number_of(v->now, "moves"));
    double more = v->before ? json_number_of(v->now, "moves") - json_number_of(v->before, "moves") : 0;
    if (more > 0) buf_printf(v->out, " (+%.0f)", more);
    buf_printf(v->out, "  degraded %.0f  resumed %.0f", json_number_of(v->now, "degraded"),
               json_number_of(v->now, "resumed"));
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(v->now, "away"), i, s)
        buf_printf(v->out, "  %s is away", json_string_value(s) ? json_string_value(s) : "");
    end_line(v, from);
}

static void put_cache(view *v)
{
    size_t from = v->out->len;
    cache_view_line(v->out, json_object_get(v->now, "cache"), 4);
    if (v->out->len > from) end_line(v, from);
}

static void put_node(view *v, const json_t *n)
{
    size_t from = v->out->len;
    if (!top_view_has_room(v)) return;
    buf_printf(v->out, "%-20s %-10s %5.0f %6.2f", json_text_of(n, "name"), json_text_of(n, "site"),
               json_number_of(n, "cores"), json_number_of(n, "load"));
    top_view_put_bytes(v->out, json_number_of(n, "memory_free_bytes"));
    put_rate(v->out, total_rate(v, json_text_of(n, "name")));
    buf_printf(v->out, " %4zu%s%s", top_view_count(v, json_text_of(n, "name"), NULL),
               json_is_true(json_object_get(n, "on_battery")) ? "  battery" : "",
               json_is_true(json_object_get(n, "draining")) ? "  draining" : "");
    end_line(v, from);
}

static void put_nodes(view *v)
{
    const json_t *list = json_object_get(v->now, "nodes");
    size_t from = v->out->len, i;
    json_t *n;
    if (json_array_size(list) == 0 || !top_view_has_room(v)) return;
    buf_printf(v->out, "%-20s %-10s %5s %6s %7s %8s %4s", "NODE", "SITE", "CORES", "LOAD", "FREE", "TOK/S",
               "REPL");
    end_line(v, from);
    json_array_foreach((json_t *)(uintptr_t)list, i, n) put_node(v, n);
}

static void put_replica(view *v, const json_t *r, size_t i)
{
    size_t from = v->out->len;
    double pages = json_number_of(r, "kv_pages");
    if (!top_view_has_room(v)) return;
    buf_printf(v->out, "%-24s %-12s %-9s", json_text_of(r, "id"),
               *json_text_of(r, "node") ? json_text_of(r, "node") : "-", json_text_of(r, "state"));
    put_rate(v->out, rate(v, r, i, "generated_tokens"));
    put_rate(v->out, rate(v, r, i, "prompt_tokens"));
    buf_printf(v->out, " %4.0f %5.0f %5.0f", json_number_of(r, "running"), json_number_of(r, "waiting"),
               json_number_of(r, "calls"));
    buf_printf(v->out, " %3.0f%%", pages > 0 ? 100 * json_number_of(r, "kv_pages_used") / pages : 0);
    top_view_put_bytes(v->out, json_number_of(r, "resident_bytes"));
    buf_printf(v->out, " %7.0f  %s", json_number_of(r, "crashes"), json_text_of(r, "reason"));
    end_line(v, from);
}

static bool has_replica(const view *v, const char *model)
{
    size_t i;
    json_t *r;
    json_array_foreach(json_object_get(v->now, "replicas"), i,
                       r) if (strcmp(json_text_of(r, "model"), model) == 0) return true;
    return false;
}

/* A model that no machine has. */
static void put_missing(view *v, const json_t *m)
{
    size_t from = v->out->len;
    if (has_replica(v, json_text_of(m, "model")) || !top_view_has_room(v)) return;
    buf_printf(v->out, "%-24s %-12s %-9s  %s", json_text_of(m, "model"), "-", "missing",
               json_text_of(m, "reason"));
    end_line(v, from);
}

static void put_replicas(view *v)
{
    size_t from = v->out->len, i;
    json_t *r;
    if (!top_view_has_room(v)) return;
    buf_printf(v->out, "%-24s %-12s %-9s %8s %8s %4s %5s %5s %4s %7s %7s", "REPLICA", "NODE", "STATE",
               "TOK/S", "READ/S", "RUN", "QUEUE", "CALLS", "KV", "MEM", "CRASHES");
    end_line(v, from);
    json_array_foreach(json_object_get(v->now, "replicas"), i, r) put_replica(v, r, i);
    json_array_foreach(json_object_get(v->now, "missing"), i, r) put_missing(v, r);
}

void top_view_put(buf *out, const json_t *now, const json_t *before, double seconds, size_t width,
                  size_t height)
{
    view v = {.now = now,
              .before = before,
              .seconds = seconds,
              .out = out,
              .width = width ? width : SIZE_MAX,
              .height = height};
    put_summary(&v);
    put_cache(&v);
    put_nodes(&v);
    put_replicas(&v);
    size_t from = out->len;
    if (v.n_hidden == 0) return;
    buf_printf(out, "... %zu more lines", v.n_hidden);
    end_line(&v, from);
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

static bool set_rate(json_t *o, const char *key, double r)
{
    return json_object_set_new(o, key, isnan(r) ? json_null() : json_real(round(r * 10) / 10)) == 0;
}

json_t *top_view_json(const json_t *now, const json_t *before, double seconds)
{
    view v = {.now = now, .before = before, .seconds = seconds};
    json_t *all = json_deep_copy(now), *r;
    size_t i;
    bool whole = all && set_rate(all, "tokens_per_s", total_rate(&v, NULL));
    json_array_foreach(json_object_get(all, "replicas"), i, r) whole =
        whole && set_rate(r, "tokens_per_s", rate(&v, r, i, "generated_tokens")) &&
        set_rate(r, "prompt_tokens_per_s", rate(&v, r, i, "prompt_tokens"));
    if (whole) return all;
    json_decref(all);
    return NULL;
}
