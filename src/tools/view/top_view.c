/* top_view.c: see top_view.h. */
#include "view/top_view.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "logging/fold.h"
#include "logging/sanitise.h"
#include "base/utf8.h"
#include "view/cache_view.h"

/* X(title, columns, on the left, how soon it gives way where the terminal is narrow; 0: never) */
#define COLUMN_TABLE(X)      \
    X("REPLICA", 7, true, 0) \
    X("NODE", 4, true, 0)    \
    X("STATE", 8, true, 0)   \
    X("TOK/S", 7, false, 0)  \
    X("READ/S", 7, false, 3) \
    X("RUN", 3, false, 6)    \
    X("QUEUE", 5, false, 4)  \
    X("CALLS", 5, false, 1)  \
    X("KV", 4, false, 5)     \
    X("MEM", 6, false, 0)    \
    X("CRASHES", 7, false, 2)
enum {
    COL_ID,
    COL_NODE,
    COL_STATE,
    COL_WRITTEN,
    COL_READ,
    COL_RUN,
    COL_QUEUE,
    COL_CALLS,
    COL_KV,
    COL_MEM,
    COL_CRASHES,
    N_COLUMNS,
    N_GIVE_WAY = 6,
    NAME_COLUMNS_MAX = 40
};

typedef struct view {
    const json_t *now, *before;
    double seconds;
    buf *out;
    size_t width;              /* SIZE_MAX: of a pipe */
    size_t columns[N_COLUMNS]; /* 0: not shown */
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

/* Ends the line that begins at `from`, in as many rows as it needs. */
static void end_line(view *v, size_t from)
{
    fold_line(v->out, from, v->width == SIZE_MAX ? 0 : v->width, 2);
}

static void put_rate(buf *out, double r)
{
    if (isnan(r))
        buf_puts(out, "-");
    else
        buf_printf(out, "%.*f", r < 1e5 ? 1 : 0, r);
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
        buf_printf(out, "%.0f", n);
    else
        buf_printf(out, "%.*f%c", n < 10 ? 1 : 0, n, UNITS[u]);
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

/* One more of the facts of the summary; what finds no room in the row begins the next one. */
static void put_fact(view *v, size_t *from, const char *fmt, ...)
{
    char fact[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(fact, sizeof fact, fmt, ap);
    va_end(ap);
    size_t used = utf8_columns(v->out->data + *from, v->out->len - *from);
    if (used > 0 && used + 2 + utf8_columns(fact, strlen(fact)) > v->width) {
        end_line(v, *from);
        *from = v->out->len;
        used = 0;
    }
    buf_printf(v->out, "%s%s", used ? "  " : "", fact);
}

static void put_rate_fact(view *v, size_t *from)
{
    buf rate = {0};
    put_rate(&rate, total_rate(v, NULL));
    put_fact(v, from, "tokens/s %s", rate.data ? rate.data : "-");
    v->out->failed |= rate.failed;
    buf_done(&rate);
}

static void put_summary(view *v)
{
    size_t from = v->out->len, n_nodes = json_array_size(json_object_get(v->now, "nodes"));
    size_t n_standby = top_view_count(v, NULL, "standby"), i;
    double moves = json_number_of(v->now, "moves"),
           more = v->before ? moves - json_number_of(v->before, "moves") : 0;
    json_t *s;
    char also[40] = "";
    buf_printf(v->out, "shoal %s  %s", json_text_of(v->now, "version"), json_text_of(v->now, "status"));
    if (*json_text_of(v->now, "site")) put_fact(v, &from, "site %s", json_text_of(v->now, "site"));
    if (n_nodes) put_fact(v, &from, "nodes %zu", n_nodes);
    if (n_standby) snprintf(also, sizeof also, " (+%zu standby)", n_standby);
    put_fact(v, &from, "replicas %zu/%zu%s", top_view_count(v, NULL, "ready"),
             top_view_count(v, NULL, NULL) - n_standby, also);
    put_fact(v, &from, "requests %.0f", json_number_of(v->now, "requests_in_flight"));
    put_rate_fact(v, &from);
    snprintf(also, sizeof also, more > 0 ? " (+%.0f)" : "", more);
    put_fact(v, &from, "moves %.0f%s", moves, also);
    put_fact(v, &from, "degraded %.0f", json_number_of(v->now, "degraded"));
    put_fact(v, &from, "resumed %.0f", json_number_of(v->now, "resumed"));
    json_array_foreach(json_object_get(v->now, "away"), i, s)
        put_fact(v, &from, "%.150s is away", json_string_value(s) ? json_string_value(s) : "");
    end_line(v, from);
}

static void put_cache(view *v)
{
    size_t from = v->out->len;
    cache_view_line(v->out, json_object_get(v->now, "cache"), 4);
    if (v->out->len > from) end_line(v, from);
}

/* A number at the right of its columns. */
static void put_right(buf *out, int columns, void (*put)(buf *out, double x), double x)
{
    buf cell = {0};
    put(&cell, x);
    buf_printf(out, " %*s", columns, cell.data ? cell.data : "");
    out->failed |= cell.failed;
    buf_done(&cell);
}

static void put_node(view *v, const json_t *n)
{
    size_t from = v->out->len;
    const char *name = json_text_of(n, "name"), *site = json_text_of(n, "site");
    if (v->width != SIZE_MAX && (strlen(name) > 14 || strlen(site) > 9)) {
        buf_printf(v->out, "%s %s", name, site);
        end_line(v, from);
        from = v->out->len;
        name = site = "";
    }
    buf_printf(v->out, "%-14s %-9s %5.0f %6.2f", name, site, json_number_of(n, "cores"),
               json_number_of(n, "load"));
    put_right(v->out, 7, top_view_put_bytes, json_number_of(n, "memory_free_bytes"));
    put_right(v->out, 8, put_rate, total_rate(v, json_text_of(n, "name")));
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
    if (json_array_size(list) == 0) return;
    buf_printf(v->out, "%-14s %-9s %5s %6s %7s %8s %4s", "NODE", "SITE", "CORES", "LOAD", "FREE", "TOK/S",
               "REPL");
    end_line(v, from);
    json_array_foreach((json_t *)(uintptr_t)list, i, n) put_node(v, n);
}

/* ---- the table of replicas ----------------------------------------------------------------------- */

static const struct column {
    const char *title;
    size_t columns;
    bool left;
    int gives_way;
} COLUMNS[N_COLUMNS] = {
#define COLUMN_ROW(title, columns, left, gives_way) {title, columns, left, gives_way},
    COLUMN_TABLE(COLUMN_ROW)
#undef COLUMN_ROW
};

static void widen(size_t *columns, const char *s)
{
    size_t n = utf8_columns(s, strlen(s));
    if (n > *columns) *columns = n < NAME_COLUMNS_MAX ? n : NAME_COLUMNS_MAX;
}

static size_t sum_columns(const view *v)
{
    size_t n = 0;
    for (int c = 0; c < N_COLUMNS; c++) n += v->columns[c] ? v->columns[c] + 1 : 0;
    return n - 1;
}

/* As wide as the names need; where that is too much, the least important go. Without nodes, none is named. */
static void place_columns(view *v)
{
    bool named = v->width == SIZE_MAX;
    size_t i;
    json_t *r;
    for (int c = 0; c < N_COLUMNS; c++) v->columns[c] = COLUMNS[c].columns;
    json_array_foreach(json_object_get(v->now, "replicas"), i, r)
    {
        widen(&v->columns[COL_ID], json_text_of(r, "id"));
        widen(&v->columns[COL_NODE], json_text_of(r, "node"));
        named |= *json_text_of(r, "node") != '\0';
    }
    json_array_foreach(json_object_get(v->now, "missing"), i, r)
        widen(&v->columns[COL_ID], json_text_of(r, "model"));
    if (!named) v->columns[COL_NODE] = 0;
    for (int k = 1; k <= N_GIVE_WAY && sum_columns(v) > v->width; k++)
        for (int c = 0; c < N_COLUMNS; c++)
            if (COLUMNS[c].gives_way == k) v->columns[c] = 0;
}

/* s, which may be wider than its columns, and then pushes the others. */
static void put_cell(view *v, size_t from, int c, const char *s)
{
    size_t n = utf8_columns(s, strlen(s)), pad = v->columns[c] > n ? v->columns[c] - n : 0;
    if (v->columns[c] == 0) return;
    if (v->out->len > from) buf_putc(v->out, ' ');
    buf_printf(v->out, "%*s%s%*s", COLUMNS[c].left ? 0 : (int)pad, "", s, COLUMNS[c].left ? (int)pad : 0, "");
}

static void put_number(view *v, size_t from, int c, void (*put)(buf *out, double x), double x)
{
    buf cell = {0};
    put(&cell, x);
    put_cell(v, from, c, cell.data ? cell.data : "");
    v->out->failed |= cell.failed;
    buf_done(&cell);
}

static void put_count(buf *out, double x)
{
    buf_printf(out, "%.0f", x);
}

static void put_percent(buf *out, double x)
{
    buf_printf(out, "%.0f%%", 100 * x);
}

/* Behind the row where it has room, else in rows below. Ends the row either way. */
static void put_reason(view *v, size_t from, const char *reason)
{
    size_t width = v->width == SIZE_MAX ? 0 : v->width, n = utf8_columns(reason, strlen(reason));
    if (v->out->failed) return;
    if (n && utf8_columns(v->out->data + from, v->out->len - from) + 2 + n <= v->width) {
        buf_printf(v->out, "  %s", reason);
        n = 0;
    }
    sanitise_line(v->out, from, width);
    if (n == 0) return;
    from = v->out->len;
    buf_printf(v->out, "  %s", reason);
    end_line(v, from);
}

static void put_replica(view *v, const json_t *r, size_t i)
{
    size_t from = v->out->len;
    const char *node = json_text_of(r, "node");
    double pages = json_number_of(r, "kv_pages");
    put_cell(v, from, COL_ID, json_text_of(r, "id"));
    put_cell(v, from, COL_NODE, *node ? node : "-");
    put_cell(v, from, COL_STATE, json_text_of(r, "state"));
    put_number(v, from, COL_WRITTEN, put_rate, rate(v, r, i, "generated_tokens"));
    put_number(v, from, COL_READ, put_rate, rate(v, r, i, "prompt_tokens"));
    put_number(v, from, COL_RUN, put_count, json_number_of(r, "running"));
    put_number(v, from, COL_QUEUE, put_count, json_number_of(r, "waiting"));
    put_number(v, from, COL_CALLS, put_count, json_number_of(r, "calls"));
    put_number(v, from, COL_KV, put_percent, pages > 0 ? json_number_of(r, "kv_pages_used") / pages : 0);
    put_number(v, from, COL_MEM, top_view_put_bytes, json_number_of(r, "resident_bytes"));
    put_number(v, from, COL_CRASHES, put_count, json_number_of(r, "crashes"));
    put_reason(v, from, json_text_of(r, "reason"));
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
    if (has_replica(v, json_text_of(m, "model"))) return;
    put_cell(v, from, COL_ID, json_text_of(m, "model"));
    put_cell(v, from, COL_NODE, "-");
    put_cell(v, from, COL_STATE, "missing");
    put_reason(v, from, json_text_of(m, "reason"));
}

static void put_replicas(view *v)
{
    size_t from = v->out->len, i;
    json_t *r;
    place_columns(v);
    for (int c = 0; c < N_COLUMNS; c++) put_cell(v, from, c, COLUMNS[c].title);
    put_reason(v, from, "");
    json_array_foreach(json_object_get(v->now, "replicas"), i, r) put_replica(v, r, i);
    json_array_foreach(json_object_get(v->now, "missing"), i, r) put_missing(v, r);
}

/* The rows of `all` that the window has room for. */
static void put_rows(buf *out, const buf *all, size_t width, size_t height)
{
    size_t n_rows = 0, shown, at = 0, from;
    for (size_t i = 0; i < all->len; i++) n_rows += all->data[i] == '\n';
    shown = height == 0 || n_rows <= height ? n_rows : height - 1;
    for (size_t i = 0; i < shown; i++) {
        size_t n = strcspn(all->data + at, "\n");
        from = out->len;
        buf_append(out, all->data + at, n);
        sanitise_line(out, from, width);
        at += n + 1;
    }
    if (shown == n_rows) return;
    from = out->len;
    buf_printf(out, "... %zu more lines", n_rows - shown);
    sanitise_line(out, from, width);
}

void top_view_put(buf *out, const json_t *now, const json_t *before, double seconds, size_t width,
                  size_t height)
{
    buf all = {0};
    view v = {
        .now = now, .before = before, .seconds = seconds, .out = &all, .width = width ? width : SIZE_MAX};
    put_summary(&v);
    put_cache(&v);
    put_nodes(&v);
    put_replicas(&v);
    if (!all.failed) put_rows(out, &all, width, height);
    out->failed |= all.failed;
    buf_done(&all);
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
