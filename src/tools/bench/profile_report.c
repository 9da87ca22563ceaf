/* profile_report.c: see profile_report.h. */
#include "bench/profile_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "view/svg.h"

#define BUSY_LEAST 0.93 /* of the time; a wait that sleeps counts, too */

static const char *const phase_words[PROFILE_N_PHASES] = {"prefill", "decode", "encode"};

const char *profile_phase_word(profile_phase phase)
{
    return phase_words[phase];
}

/* ---- copies ------------------------------------------------------------------------------------------- */

int profile_snap_take(profile_snap *ret, const profile *p, shoal_err *err)
{
    profile_snap s = {.n = profile_count(p)};
    s.v = calloc(s.n ? s.n : 1, sizeof *s.v);
    if (!s.v || profile_lost(p)) {
        free(s.v);
        return err_nomem(err);
    }
    for (size_t i = 0; i < s.n; i++) s.v[i] = *profile_at(p, i);
    for (int i = 0; i < PROFILE_N_PHASES; i++) s.totals[i] = profile_total_of(p, (profile_phase)i);
    *ret = s;
    return 0;
}

void profile_snap_done(profile_snap *s)
{
    free(s->v);
    *s = (profile_snap){0};
}

/* ---- tables ------------------------------------------------------------------------------------------- */

static bool is_same_kernel(const profile_row *r, const profile_entry *e)
{
    return r->op == e->op && r->type == e->type && r->rows == e->rows && r->cols == e->cols &&
           strcmp(r->name, e->name) == 0;
}

static void count_in(profile_row *r, const profile_entry *e)
{
    double ms = (double)e->ns / 1e6;
    r->ms += ms;
    r->n_calls += e->n_calls;
    r->bytes += e->bytes;
    r->multiply_adds += e->multiply_adds;
    r->op_ms[e->op] += ms;
}

static void add_kernel(profile_table *t, const profile_entry *e)
{
    size_t i = 0;
    while (i < t->n_kernels && !is_same_kernel(&t->kernels[i], e)) i++;
    if (i == t->n_kernels) {
        t->kernels[t->n_kernels] = (profile_row){
            .op = e->op, .layer = PROFILE_NO_LAYER, .type = e->type, .rows = e->rows, .cols = e->cols};
        memcpy(t->kernels[t->n_kernels++].name, e->name, sizeof e->name);
    }
    count_in(&t->kernels[i], e);
}

static void add_layer(profile_table *t, const profile_entry *e)
{
    size_t i = 0;
    while (i < t->n_layers && t->layers[i].layer != e->layer) i++;
    if (i == t->n_layers) t->layers[t->n_layers++] = (profile_row){.layer = e->layer};
    count_in(&t->layers[i], e);
}

static int by_time(const void *a, const void *b)
{
    double x = ((const profile_row *)a)->ms, y = ((const profile_row *)b)->ms;
    return (x < y) - (x > y);
}

/* What is around the layers comes last. */
static int by_layer(const void *a, const void *b)
{
    unsigned x = (unsigned)((const profile_row *)a)->layer, y = (unsigned)((const profile_row *)b)->layer;
    return (x > y) - (x < y);
}

int profile_table_make(profile_table *ret, const profile_snap *s, profile_phase phase, shoal_err *err)
{
    profile_table t = {.phase = phase, .total = s->totals[phase]};
    size_t room = s->n ? s->n : 1;
    t.kernels = calloc(room, sizeof *t.kernels);
    t.layers = calloc(room, sizeof *t.layers);
    if (!t.kernels || !t.layers) {
        profile_table_done(&t);
        return err_nomem(err);
    }
    for (size_t i = 0; i < s->n; i++) {
        const profile_entry *e = &s->v[i];
        if (e->phase != phase) continue;
        add_kernel(&t, e);
        add_layer(&t, e);
        t.ms += (double)e->ns / 1e6;
        t.bytes += e->bytes;
        t.multiply_adds += e->multiply_adds;
    }
    qsort(t.kernels, t.n_kernels, sizeof *t.kernels, by_time);
    qsort(t.layers, t.n_layers, sizeof *t.layers, by_layer);
    *ret = t;
    return 0;
}

void profile_table_done(profile_table *t)
{
    free(t->kernels);
    free(t->layers);
    *t = (profile_table){0};
}

/* ---- as text ------------------------------------------------------------------------------------------ */

static double share_of(double part, double of)
{
    return of > 0 ? part / of : 0;
}

static double reading(const profile_row *r, const bench_limits *l)
{
    return r->ms > 0 ? share_of(r->bytes / (r->ms / 1e3), l->read_per_s) : 0;
}

static double multiplying(const profile_row *r, const bench_limits *l)
{
    return r->ms > 0 ? share_of(r->multiply_adds / (r->ms / 1e3), l->adds_per_s) : 0;
}

static void put_percent(buf *out, int width, double share)
{
    if (share > 0)
        buf_printf(out, "%*.1f %%", width - 2, 100 * share);
    else
        buf_printf(out, "%*s", width, "");
}

/* "attn_q+attn_k+attn_v 768x288 Q8_0" */
static void put_name(buf *out, const profile_row *r)
{
    buf_puts(out, profile_op_words[r->op]);
    if (r->name[0]) buf_printf(out, " %s", r->name);
    if (r->rows) buf_printf(out, " %zux%zu", r->rows, r->cols);
    if (r->op == PROFILE_MATMUL || r->op == PROFILE_QUANTISE) buf_printf(out, " %s", dtype_name(r->type));
}

static void put_kernel(buf *out, const profile_table *t, const profile_row *r, const bench_limits *l)
{
    double s = r->ms / 1e3;
    buf_printf(out, "%9.3f", r->ms);
    put_percent(out, 9, share_of(r->ms, t->ms));
    buf_printf(out, "%8zu", r->n_calls);
    if (r->bytes > 0)
        buf_printf(out, "%10.2f%8.1f", r->bytes / 1e6, share_of(r->bytes, s) / 1e9);
    else
        buf_printf(out, "%18s", "");
    put_percent(out, 10, reading(r, l));
    if (r->multiply_adds > 0)
        buf_printf(out, "%9.1f", share_of(r->multiply_adds, s) / 1e9);
    else
        buf_printf(out, "%9s", "");
    put_percent(out, 10, multiplying(r, l));
    buf_puts(out, "  ");
    put_name(out, r);
    buf_putc(out, '\n');
}

static void put_layers(buf *out, const profile_table *t)
{
    buf_printf(out, "\n%9s%9s%9s%10s%9s  %s\n", "MS", "SHARE", "MATMUL", "ATTENTION", "REST", "LAYER");
    for (size_t i = 0; i < t->n_layers; i++) {
        const profile_row *r = &t->layers[i];
        double matmul = r->op_ms[PROFILE_MATMUL], attention = r->op_ms[PROFILE_ATTENTION];
        buf_printf(out, "%9.3f", r->ms);
        put_percent(out, 9, share_of(r->ms, t->ms));
        buf_printf(out, "%9.3f%10.3f%9.3f  ", matmul, attention, r->ms - matmul - attention);
        if (r->layer == PROFILE_NO_LAYER)
            buf_puts(out, "around them\n");
        else
            buf_printf(out, "%d\n", r->layer);
    }
}

void profile_table_put(const profile_table *t, const bench_limits *limits, bool layers, buf *out)
{
    size_t n = t->total.n_tokens;
    buf_printf(out, "\n%s: %zu tokens in %zu step%s, %.3f ms", phase_words[t->phase], n, t->total.n_steps,
               t->total.n_steps == 1 ? "" : "s", t->ms);
    if (t->ms > 0) buf_printf(out, ", %.1f tokens/s", (double)n / t->ms * 1e3);
    buf_printf(out, "; %.2f MB read, %.3f G multiply-adds\n", t->bytes / 1e6, t->multiply_adds / 1e9);
    double busy = share_of((double)t->total.busy_ns, (double)t->total.ns);
    if (busy < BUSY_LEAST)
        buf_printf(out,
                   "note: the thread had a core for %.0f %% of this time: other programs took the rest\n",
                   100 * busy);
    buf_putc(out, '\n');
    buf_printf(out, "%9s%9s%8s%10s%8s%10s%9s%10s  %s\n", "MS", "SHARE", "CALLS", "MB READ", "GB/S",
               "OF READ.", "G MA/S", "OF MULT.", "OPERATION");
    for (size_t i = 0; i < t->n_kernels; i++) put_kernel(out, t, &t->kernels[i], limits);
    if (layers) put_layers(out, t);
}

/* ---- as JSON ------------------------------------------------------------------------------------------ */

static void put_op_json(buf *out, const profile_row *r)
{
    buf_printf(out, "{\"op\":\"%s\"", profile_op_words[r->op]);
    if (r->name[0]) buf_puts(out, ",\"name\":");
    if (r->name[0]) json_put_string(out, r->name, strlen(r->name));
    if (r->rows) buf_printf(out, ",\"rows\":%zu,\"cols\":%zu", r->rows, r->cols);
    if (r->op == PROFILE_MATMUL || r->op == PROFILE_QUANTISE)
        buf_printf(out, ",\"type\":\"%s\"", dtype_name(r->type));
}

void profile_table_put_json(const profile_table *t, const bench_limits *limits, buf *out)
{
    buf_printf(out,
               "{\"phase\":\"%s\",\"tokens\":%zu,\"steps\":%zu,\"ms\":%.6f,\"bytes\":%.0f,\"multiply_adds\":%"
               ".0f,\"kernels\":[",
               phase_words[t->phase], t->total.n_tokens, t->total.n_steps, t->ms, t->bytes, t->multiply_adds);
    for (size_t i = 0; i < t->n_kernels; i++) {
        const profile_row *r = &t->kernels[i];
        if (i) buf_putc(out, ',');
        put_op_json(out, r);
        buf_printf(out,
                   ",\"ms\":%.6f,\"share\":%.5f,\"calls\":%zu,\"bytes\":%.0f,\"multiply_adds\":%.0f,"
                   "\"share_of_reading\":%.5f,\"share_of_multiply_adds\":%.5f}",
                   r->ms, share_of(r->ms, t->ms), r->n_calls, r->bytes, r->multiply_adds, reading(r, limits),
                   multiplying(r, limits));
    }
    buf_puts(out, "],\"layers\":[");
    for (size_t i = 0; i < t->n_layers; i++) {
        const profile_row *r = &t->layers[i];
        buf_printf(out, "%s{\"layer\":", i ? "," : "");
        buf_printf(out, r->layer == PROFILE_NO_LAYER ? "null" : "%d", r->layer);
        buf_printf(out, ",\"ms\":%.6f,\"bytes\":%.0f,\"multiply_adds\":%.0f,\"ops\":{", r->ms, r->bytes,
                   r->multiply_adds);
        for (int k = 0, any = 0; k < PROFILE_N_OPS; k++)
            if (r->op_ms[k] > 0)
                buf_printf(out, "%s\"%s\":%.6f", any++ ? "," : "", profile_op_words[k], r->op_ms[k]);
        buf_puts(out, "}}");
    }
    buf_puts(out, "]}");
}

/* ---- as a chart --------------------------------------------------------------------------------------- */

enum {
    WIDTH = 1000,
    EDGE = 16,
    HEAD = 66,
    STRIP = 26,
    BAR = 20,
    BARS_MOST = 14,
    LABEL = 330,
    GAP = 34,
    KEY = 24
};

static const char *const op_colours[PROFILE_N_OPS] = {
    [PROFILE_MATMUL] = "#2f7dd1", [PROFILE_ATTENTION] = "#d9772b", [PROFILE_QUANTISE] = "#6f6fd9",
    [PROFILE_ROPE] = "#2f8f6f",   [PROFILE_NORM] = "#8a7a1f",      [PROFILE_ACTIVATE] = "#b0568f",
    [PROFILE_ADD] = "#4aa3a3",    [PROFILE_EMBED] = "#c08a3e",     [PROFILE_CONVOLVE] = "#9a5fc0",
    [PROFILE_ROUTE] = "#5f8f3f",  [PROFILE_SAMPLE] = "#c8453b",    [PROFILE_WAIT] = "#8c97a3",
    [PROFILE_OTHER] = "#a9b3bd",  [PROFILE_ENGINE] = "#6b7682"};

static void put_box(buf *out, double x, double y, double w, double h, const char *colour, const char *title)
{
    buf_printf(out, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"><title>", x, y,
               w < 0.3 ? 0.3 : w, h, colour);
    svg_escape(out, title);
    buf_puts(out, "</title></rect>\n");
}

/* Layers from left to right, as wide as they took, and their operations below them. */
static void put_strip(const profile_table *t, double y, buf *out)
{
    double x = EDGE, scale = t->ms > 0 ? (WIDTH - 2 * EDGE) / t->ms : 0;
    char text[160];
    for (size_t i = 0; i < t->n_layers; i++) {
        const profile_row *r = &t->layers[i];
        double w = r->ms * scale, at = x;
        bool around = r->layer == PROFILE_NO_LAYER;
        char name[32];
        snprintf(name, sizeof name, around ? "around" : w > 50 ? "layer %d" : "%d", r->layer);
        snprintf(text, sizeof text, "%s: %.3f ms, %.1f %%", name, r->ms, 100 * share_of(r->ms, t->ms));
        put_box(out, x + 0.5, y, w - 1, STRIP, around ? "#6b7682" : i % 2 ? "#3c5a7a" : "#4a6b8f", text);
        if (w > 8.0 * (double)strlen(name))
            buf_printf(
                out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" style=\"fill:#ffffff\">%s</text>\n",
                x + w / 2, y + STRIP / 2.0 + 4, name);
        for (int k = 0; k < PROFILE_N_OPS; k++) {
            if (r->op_ms[k] <= 0) continue;
            snprintf(text, sizeof text, "%s of %s: %.3f ms", profile_op_words[k], name, r->op_ms[k]);
            put_box(out, at, y + STRIP + 1, r->op_ms[k] * scale, STRIP, op_colours[k], text);
            at += r->op_ms[k] * scale;
        }
        x += w;
    }
}

static double put_keys(const profile_table *t, double y, buf *out)
{
    double x = EDGE, ms[PROFILE_N_OPS] = {0};
    for (size_t i = 0; i < t->n_kernels; i++) ms[t->kernels[i].op] += t->kernels[i].ms;
    for (int k = 0; k < PROFILE_N_OPS; k++) {
        if (ms[k] <= 0) continue;
        double w = 24 + 7.0 * (double)strlen(profile_op_words[k]);
        if (x + w > WIDTH - EDGE) x = EDGE, y += KEY;
        buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n", x,
                   y, op_colours[k]);
        svg_text(out, "dim", x + 17, y + 10, "start", profile_op_words[k]);
        x += w + 12;
    }
    return y + KEY;
}

static void put_bars(const profile_table *t, double y, buf *out)
{
    double most = t->n_kernels ? t->kernels[0].ms : 1, room = WIDTH - LABEL - EDGE - 130;
    for (size_t i = 0; i < t->n_kernels && i < BARS_MOST; i++, y += BAR) {
        const profile_row *r = &t->kernels[i];
        buf name = {0};
        char text[64];
        put_name(&name, r);
        svg_text(out, "ink", LABEL - 8, y + 13, "end", buf_text(&name));
        put_box(out, LABEL, y + 2, share_of(r->ms, most) * room, BAR - 5, op_colours[r->op], buf_text(&name));
        snprintf(text, sizeof text, "%.3f ms, %.1f %%", r->ms, 100 * share_of(r->ms, t->ms));
        svg_text(out, "dim", LABEL + share_of(r->ms, most) * room + 8, y + 13, "start", text);
        buf_done(&name);
    }
}

static double height_of(const profile_table *t)
{
    size_t bars = t->n_kernels < BARS_MOST ? t->n_kernels : BARS_MOST;
    return 24 + 2 * STRIP + 14 + 2 * KEY + (double)bars * BAR + GAP;
}

void profile_put_svg(const profile_table *t, size_t n, const char *title, const char *below, buf *out)
{
    double y = HEAD, height = HEAD + 10;
    char text[200];
    for (size_t i = 0; i < n; i++) height += t[i].total.n_steps ? height_of(&t[i]) : 0;
    svg_begin(out, WIDTH, (int)height);
    svg_text(out, "title", EDGE, 28, "start", title);
    svg_text(out, "dim", EDGE, 50, "start", below);
    for (size_t i = 0; i < n; i++) {
        if (!t[i].total.n_steps) continue;
        snprintf(text, sizeof text, "%s: %zu tokens, %.3f ms, %.1f tokens/s", phase_words[t[i].phase],
                 t[i].total.n_tokens, t[i].ms, t[i].ms > 0 ? (double)t[i].total.n_tokens / t[i].ms * 1e3 : 0);
        svg_text(out, "strong", EDGE, y + 14, "start", text);
        put_strip(&t[i], y + 24, out);
        put_keys(&t[i], y + 24 + 2 * STRIP + 10, out);
        put_bars(&t[i], y + 24 + 2 * STRIP + 14 + 2 * KEY, out);
        y += height_of(&t[i]);
    }
    buf_puts(out, "</svg>\n");
}
