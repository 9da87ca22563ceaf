/* request_view.c: see request_view.h. */
#include "view/request_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "logging/sanitise.h"

enum {
    NAME_BYTES = 120,
    DEPTH_MOST = 12,
    BAR_MOST = 60,
    BAR_LEAST = 10,
    FIGURES = 42,
    NAME_COLUMNS_MOST = 48
};

typedef struct span {
    const char *id, *parent;
    char name[NAME_BYTES];
    double start_ms, ms, self_ms; /* self: without those below it */
    size_t depth;
} span;

typedef struct spans {
    span *v; /* [n], parents in front of what is below them */
    size_t n;
    bool traced; /* the server listed them; else they are its sums */
} spans;

/* ---- what the server listed ---- */

/* "generate home-chat-s home-chat-s/0" */
static void name_span(span *s, const json_t *v)
{
    const char *model = json_text_of(v, "model"), *replica = json_text_of(v, "replica"),
               *error = json_text_of(v, "error");
    const char *name = json_text_of(v, "name");
    bool told = !model[0] || strstr(name, model);
    int n = snprintf(s->name, sizeof s->name, "%s%s%s", name, told ? "" : " ", told ? "" : model);
    if (n > 0 && (size_t)n < sizeof s->name && replica[0])
        n += snprintf(s->name + n, sizeof s->name - (size_t)n, " on %s", replica);
    if (n > 0 && (size_t)n < sizeof s->name && error[0])
        snprintf(s->name + n, sizeof s->name - (size_t)n, " (%s)", error);
}

static int by_start(const void *a, const void *b)
{
    double x = ((const span *)a)->start_ms, y = ((const span *)b)->start_ms;
    return (x > y) - (x < y);
}

/* Those below `parent` behind it, in the order in which they began. */
static void walk(const span *all, size_t n, const char *parent, size_t depth, spans *ret)
{
    for (size_t i = 0; i < n && ret->n < n && depth < DEPTH_MOST; i++) {
        if (strcmp(all[i].parent, parent) != 0 || strcmp(all[i].id, parent) == 0) continue;
        span *s = &ret->v[ret->n++];
        *s = all[i];
        s->depth = depth;
        walk(all, n, all[i].id, depth + 1, ret);
    }
}

static bool has_parent(const span *all, size_t n, const span *s)
{
    for (size_t i = 0; i < n; i++)
        if (s->parent[0] && strcmp(all[i].id, s->parent) == 0 && &all[i] != s) return true;
    return false;
}

/* What a span took that none of those directly below it took; of those that ran side by side each moment counts once. */
static void count_self(spans *s)
{
    for (size_t i = 0; i < s->n; i++) {
        double covered = 0, until = s->v[i].start_ms;
        for (size_t k = i + 1; k < s->n && s->v[k].depth > s->v[i].depth; k++) {
            if (s->v[k].depth != s->v[i].depth + 1) continue;
            double from = fmax(s->v[k].start_ms, until),
                   to = fmin(s->v[k].start_ms + s->v[k].ms, s->v[i].start_ms + s->v[i].ms);
            if (to > from) covered += to - from;
            until = fmax(until, to);
        }
        s->v[i].self_ms = fmax(0, s->v[i].ms - covered);
    }
}

static int take_spans(spans *ret, const json_t *list, shoal_err *err)
{
    size_t n = json_array_size(list);
    span *all = calloc(n + 1, sizeof *all);
    *ret = (spans){.v = calloc(n + 1, sizeof *ret->v), .traced = true};
    if (!all || !ret->v) {
        free(all);
        free(ret->v);
        return err_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        all[i] = (span){.id = json_text_of(v, "id"),
                        .parent = json_text_of(v, "parent"),
                        .start_ms = json_number_of(v, "start_ms"),
                        .ms = json_number_of(v, "ms")};
        name_span(&all[i], v);
    }
    qsort(all, n, sizeof *all, by_start);
    for (size_t i = 0; i < n && ret->n < n; i++) {
        if (has_parent(all, n, &all[i])) continue;
        ret->v[ret->n] = all[i];
        ret->v[ret->n++].depth = 0;
        walk(all, n, all[i].id, 1, ret);
    }
    free(all);
    return 0;
}

/* ---- without spans ---- */

static void add_span(spans *s, const char *name, size_t depth, double start_ms, double ms)
{
    span *v = &s->v[s->n++];
    *v = (span){.id = "", .parent = "", .depth = depth, .start_ms = start_ms, .ms = ms};
    buf_copy_str(v->name, sizeof v->name, name);
}

/* The model call is at the end of the request, and its parts are at the call's end: so a request that made one call went. */
static int take_sums(spans *ret, const json_t *r, shoal_err *err)
{
    static const struct {
        const char *key, *name;
    } parts[] = {{"queue_ms", "queue"}, {"prefill_ms", "prefill"}, {"decode_ms", "decode"}};
    double ms = json_number_of(r, "ms"), call = fmin(json_number_of(r, "total_ms"), ms), inside = 0, at;
    *ret = (spans){.v = calloc(8, sizeof *ret->v)};
    if (!ret->v) return err_nomem(err);
    add_span(ret, json_text_of(r, "endpoint"), 0, 0, ms);
    if (call <= 0) return 0;
    for (size_t i = 0; i < 3; i++) inside += json_number_of(r, parts[i].key);
    add_span(ret, "model call", 1, ms - call, call);
    at = ms - fmin(inside, call);
    for (size_t i = 0; i < 3; i++) {
        double part = json_number_of(r, parts[i].key);
        if (part > 0) add_span(ret, parts[i].name, 2, at, part);
        at += part;
    }
    return 0;
}

static int spans_of(spans *ret, const json_t *r, shoal_err *err)
{
    const json_t *list = json_object_get(r, "spans");
    int rc = json_array_size(list) ? take_spans(ret, list, err) : take_sums(ret, r, err);
    if (rc == 0) count_self(ret);
    return rc;
}

/* ---- as text ---- */

static void put_bar(buf *out, double from, double to, size_t width)
{
    static const char *const eighths[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    double a = from * (double)width, b = to * (double)width;
    if (b - a < 0.125) b = a + 0.125;
    for (size_t i = 0; i < width; i++) {
        double part = fmin(b, (double)i + 1) - fmax(a, (double)i);
        bool ends = b < (double)i + 1; /* a block grows from the left: the first one is whole */
        buf_puts(out, part <= 0 ? " " : ends ? eighths[part >= 1 ? 8 : (size_t)ceil(part * 8)] : "█");
    }
}

static void put_span(buf *out, const span *s, double whole_ms, size_t bar, size_t width)
{
    size_t from = out->len;
    buf_printf(out, "%9.2f %9.2f %9.2f %6.1f %%  ", s->start_ms, s->ms, s->self_ms,
               whole_ms > 0 ? 100 * s->self_ms / whole_ms : 0);
    put_bar(out, whole_ms > 0 ? s->start_ms / whole_ms : 0,
            whole_ms > 0 ? (s->start_ms + s->ms) / whole_ms : 1, bar);
    buf_printf(out, " %*s%s", (int)(2 * s->depth), "", s->name);
    sanitise_line(out, from, width == SIZE_MAX ? 0 : width);
}

/* What the figures and the longest name leave. */
static size_t bar_width(const spans *s, size_t width)
{
    size_t name = 0;
    for (size_t i = 0; i < s->n; i++)
        if (strlen(s->v[i].name) + 2 * s->v[i].depth > name) name = strlen(s->v[i].name) + 2 * s->v[i].depth;
    if (name > NAME_COLUMNS_MOST) name = NAME_COLUMNS_MOST;
    if (width == SIZE_MAX || width > FIGURES + name + BAR_MOST) return BAR_MOST;
    return width > FIGURES + name + BAR_LEAST ? width - FIGURES - name : BAR_LEAST;
}

static void put_head(buf *out, const json_t *r, size_t width)
{
    size_t from = out->len;
    const char *model = json_text_of(r, "model"), *pipeline = json_text_of(r, "pipeline");
    buf_printf(out, "%s %s: %s%s%s, status %d, %.2f ms", json_text_of(r, "endpoint"), json_text_of(r, "id"),
               pipeline[0] ? pipeline : model, json_text_of(r, "cache")[0] ? ", cache " : "",
               json_text_of(r, "cache"), (int)json_integer_of(r, "status"), json_number_of(r, "ms"));
    if (json_object_get(r, "prompt_tokens"))
        buf_printf(out, ", %lld tokens read, %lld written", (long long)json_integer_of(r, "prompt_tokens"),
                   (long long)json_integer_of(r, "completion_tokens"));
    sanitise_line(out, from, width == SIZE_MAX ? 0 : width);
}

int request_view_put(buf *out, const json_t *request, size_t width, shoal_err *err)
{
    spans s;
    int rc = spans_of(&s, request, err);
    if (rc != 0) return rc;
    double whole = json_number_of(request, "ms");
    size_t bar = bar_width(&s, width);
    for (size_t i = 0; i < s.n; i++) whole = fmax(whole, s.v[i].start_ms + s.v[i].ms);
    put_head(out, request, width);
    buf_printf(out, "\n%9s %9s %9s %8s\n", "START MS", "MS", "ITSELF", "SHARE");
    for (size_t i = 0; i < s.n; i++) put_span(out, &s.v[i], whole, bar, width);
    if (!s.traced)
        buf_puts(out, "\nITSELF of the first line: the gateway and the way to the worker. Spans say more: "
                      "send the header\n"
                      "traceparent: 00-TRACE-SPAN-01 with the request.\n");
    free(s.v);
    return out->failed ? err_nomem(err) : 0;
}

json_t *request_view_json(const json_t *request)
{
    spans s;
    if (spans_of(&s, request, NULL) != 0) return NULL;
    json_t *list = json_array();
    for (size_t i = 0; list && i < s.n; i++)
        json_array_append_new(list, json_pack("{s:s, s:i, s:f, s:f, s:f}", "name", s.v[i].name, "depth",
                                              (int)s.v[i].depth, "start_ms", s.v[i].start_ms, "ms", s.v[i].ms,
                                              "self_ms", s.v[i].self_ms));
    json_t *v = list ? json_pack("{s:s, s:f, s:b, s:o}", "id", json_text_of(request, "id"), "ms",
                                 json_number_of(request, "ms"), "traced", s.traced, "spans", list)
                     : NULL;
    free(s.v);
    return v;
}
