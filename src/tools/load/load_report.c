/* load_report.c: see load_report.h. */
#include "load/load_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "load/load_chart.h"
#include "view/svg.h"

#define WORST        "#c8453b"
#define FAILED_SHARE 0.01

/* ---- a run ------------------------------------------------------------------------------------------ */

double load_curve_quantile(size_t i)
{
    return 1 - 0.5 * pow(5e-4 / 0.5, (double)i / (LOAD_CURVE_POINTS - 1));
}

/* Only as far as there are answers: the p99.9 of 50 answers would be the slowest of them. */
static void take_curve(double ret[LOAD_CURVE_POINTS], const load_histogram *h)
{
    for (size_t i = 0; i < LOAD_CURVE_POINTS; i++) {
        double q = load_curve_quantile(i);
        ret[i] = (double)h->n * (1 - q) >= 1 - 1e-9 ? load_histogram_ms(h, q) : NAN;
    }
}

static double ms_or_nan(const load_histogram *h, double q)
{
    return h && h->n ? load_histogram_ms(h, q) : NAN;
}

static load_point point_of(const load_interval *v, double at_s, double wide_s)
{
    return (load_point){.at_s = at_s,
                        .due_per_s = (double)v->n_due / wide_s,
                        .sent_per_s = (double)v->n_sent / wide_s,
                        .ok_per_s = (double)v->n_ok / wide_s,
                        .failed_per_s = (double)v->n_failed / wide_s,
                        .tokens_per_s = (double)v->n_tokens / wide_s,
                        .p50_ms = ms_or_nan(v->whole, 0.50),
                        .p95_ms = ms_or_nan(v->whole, 0.95),
                        .p99_ms = ms_or_nan(v->whole, 0.99),
                        .first_p50_ms = ms_or_nan(v->first, 0.50),
                        .first_p95_ms = ms_or_nan(v->first, 0.95)};
}

void load_row_take(load_row *row, load_record *record, const load_result *r)
{
    load_record_lock(record);
    row->r = *r;
    memcpy(row->errors, record->errors, sizeof row->errors);
    row->n_prompt_tokens = record->n_prompt_tokens;
    row->n_by_texts = record->n_by_texts;
    row->p90_ms = load_histogram_ms(&record->whole, 0.90);
    row->p999_ms = load_histogram_ms(&record->whole, 0.999);
    row->service_p99_ms = load_histogram_ms(&record->service, 0.99);
    row->interval_s = record->interval_s;
    row->n_points = record->n_intervals;
    for (size_t i = 0; i < row->n_points; i++) {
        double at = (double)i * record->interval_s, wide = record->interval_s;
        if (r->seconds > at && r->seconds - at < wide)
            wide = fmax(r->seconds - at, wide / 4); /* the last one */
        row->points[i] = point_of(&record->intervals[i], at, wide);
    }
    take_curve(row->whole, &record->whole);
    take_curve(row->first, &record->first);
    take_curve(row->gap, &record->gap);
    take_curve(row->service, &record->service);
    load_record_unlock(record);
}

/* ---- objectives ------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t at;
} measures[] = {
    {"p50", offsetof(load_result, p50_ms)},
    {"p95", offsetof(load_result, p95_ms)},
    {"p99", offsetof(load_result, p99_ms)},
    {"max", offsetof(load_result, max_ms)},
    {"first_p50", offsetof(load_result, first_p50_ms)},
    {"first_p95", offsetof(load_result, first_p95_ms)},
    {"first_p99", offsetof(load_result, first_p99_ms)},
    {"gap_p50", offsetof(load_result, gap_p50_ms)},
    {"gap_p95", offsetof(load_result, gap_p95_ms)},
    {"gap_p99", offsetof(load_result, gap_p99_ms)},
};
enum { N_MEASURES = sizeof measures / sizeof *measures };

int load_objective_read(load_objective *ret, const char *text, shoal_err *err)
{
    const char *is = strchr(text, '=');
    for (size_t i = 0; is && i < N_MEASURES; i++) {
        if (strlen(measures[i].name) != (size_t)(is - text) ||
            strncmp(text, measures[i].name, (size_t)(is - text)) != 0)
            continue;
        if (!number_double(is + 1, &ret->ms) || ret->ms <= 0) break;
        buf_copy_str(ret->name, sizeof ret->name, measures[i].name);
        return 0;
    }
    return err_set(err, SHOAL_EINVALID,
                   "--objective wants NAME=MILLISECONDS, as p95=500, NAME one of p50, p95, p99, max, and the "
                   "first three "
                   "with first_ or gap_ in front; not \"%.60s\"",
                   text);
}

double load_objective_value(const load_objective *o, const load_result *r)
{
    for (size_t i = 0; i < N_MEASURES; i++)
        if (strcmp(measures[i].name, o->name) == 0)
            return *(const double *)((const char *)r + measures[i].at);
    return 0;
}

bool load_objective_broke(const load_objective *o, const load_result *r)
{
    double all = (double)(r->n_ok + r->n_failed);
    return r->n_ok == 0 || (double)r->n_failed > FAILED_SHARE * all || load_objective_value(o, r) > o->ms;
}

void load_report_verdict(const load_report *r, char *ret, size_t size)
{
    const load_row *held = NULL, *broke = NULL;
    ret[0] = '\0';
    if (!r->objective.name[0]) return;
    for (size_t i = 0; i < r->n_rows && !broke; i++) {
        if (r->rows[i].broke) broke = &r->rows[i];
        if (!broke) held = &r->rows[i];
    }
    size_t at = 0;
    if (held)
        at = (size_t)snprintf(ret, size, "%s <= %g ms holds %s %s", r->objective.name, r->objective.ms,
                              r->n_rows > 1 ? "up to" : "at", held->name);
    if (broke && at < size)
        snprintf(ret + at, size - at, "%s%s is %.1f ms at %s, with %zu of %zu requests failed",
                 at ? "; " : "", at ? "it" : r->objective.name,
                 load_objective_value(&r->objective, &broke->r), broke->name, broke->r.n_failed,
                 broke->r.n_ok + broke->r.n_failed);
}

/* ---- JSON ------------------------------------------------------------------------------------------- */

static void put_ms(buf *out, const char *key, double ms)
{
    buf_printf(out, ",\"%s\":", key);
    if (isnan(ms))
        buf_puts(out, "null");
    else
        buf_printf(out, "%.3f", ms);
}

void load_row_put_json(const load_row *row, buf *out)
{
    const load_result *r = &row->r;
    bool first = true;
    put_ms(out, "p90_ms", row->p90_ms);
    put_ms(out, "p95_ms", r->p95_ms);
    put_ms(out, "p999_ms", row->p999_ms);
    put_ms(out, "max_ms", r->max_ms);
    put_ms(out, "first_p95_ms", r->first_p95_ms);
    put_ms(out, "gap_p95_ms", r->gap_p95_ms);
    put_ms(out, "service_p99_ms", row->service_p99_ms);
    buf_printf(out, ",\"prompt_tokens\":%zu,\"tokens_by_texts\":%s,\"errors\":{", row->n_prompt_tokens,
               row->n_by_texts ? "true" : "false");
    for (size_t i = 0; i < LOAD_N_ERRORS; i++) {
        if (row->errors[i])
            buf_printf(out, "%s\"%s\":%zu", first ? "" : ",", load_error_words[i], row->errors[i]);
        if (row->errors[i]) first = false;
    }
    buf_printf(out, "},\"interval_s\":%g,\"intervals\":[", row->interval_s);
    for (size_t i = 0; i < row->n_points; i++) {
        const load_point *p = &row->points[i];
        buf_printf(
            out,
            "%s{\"at_s\":%g,\"due_per_s\":%.2f,\"ok_per_s\":%.2f,\"failed_per_s\":%.2f,\"tokens_per_s\":%.1f",
            i ? "," : "", p->at_s, p->due_per_s, p->ok_per_s, p->failed_per_s, p->tokens_per_s);
        put_ms(out, "p50_ms", p->p50_ms);
        put_ms(out, "p95_ms", p->p95_ms);
        put_ms(out, "p99_ms", p->p99_ms);
        put_ms(out, "first_p95_ms", p->first_p95_ms);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

/* ---- charts ----------------------------------------------------------------------------------------- */

enum { MOST_POINTS = LOAD_INTERVALS, N_CURVES = 4 };

typedef struct columns { /* of a chart */
    double x[MOST_POINTS], y[N_CURVES][MOST_POINTS];
    load_series series[N_CURVES];
} columns;

static void put_times(const load_report *r, const load_row *row, buf *out, double x, double y)
{
    columns c = {0};
    for (size_t i = 0; i < row->n_points; i++) {
        c.x[i] = row->points[i].at_s;
        c.y[0][i] = row->points[i].p50_ms;
        c.y[1][i] = row->points[i].p95_ms;
        c.y[2][i] = row->points[i].p99_ms;
        c.y[3][i] = row->points[i].first_p50_ms;
    }
    c.series[0] = (load_series){"p50", c.y[0], svg_colours[0]};
    c.series[1] = (load_series){"p95", c.y[1], svg_colours[1]};
    c.series[2] = (load_series){"p99", c.y[2], WORST};
    c.series[3] = (load_series){"first text p50", c.y[3], svg_colours[2]};
    load_chart_put(out,
                   &(load_chart){.title = "Latency of the requests due then",
                                 .unit = "ms",
                                 .x_title = "seconds since the start",
                                 .x = c.x,
                                 .n = row->n_points,
                                 .series = c.series,
                                 .n_series = 4,
                                 .log_y = true,
                                 .limit = strncmp(r->objective.name, "gap", 3) != 0 ? r->objective.ms : 0},
                   x, y);
}

static void put_throughput(const load_row *row, buf *out, double x, double y)
{
    columns c = {0};
    for (size_t i = 0; i < row->n_points; i++) {
        c.x[i] = row->points[i].at_s;
        c.y[0][i] = row->points[i].ok_per_s;
        c.y[1][i] = row->points[i].failed_per_s;
    }
    c.series[0] = (load_series){"answered", c.y[0], svg_colours[2]};
    c.series[1] = (load_series){"failed", c.y[1], WORST};
    load_chart_put(out,
                   &(load_chart){.title = "Throughput",
                                 .unit = "answers a second",
                                 .x_title = "seconds since the start",
                                 .x = c.x,
                                 .n = row->n_points,
                                 .series = c.series,
                                 .n_series = 2,
                                 .bars = true},
                   x, y);
}

static bool has_curve(const double *curve)
{
    return !isnan(curve[0]);
}

static void put_curve(const load_row *row, buf *out, double x, double y)
{
    static const double ticks[] = {0.30103, 0.60206, 1, 1.30103, 2, 3}; /* logarithms of 1 / (1 - share) */
    static const char *const words[] = {"50 %", "75 %", "90 %", "95 %", "99 %", "99.9 %"};
    columns c = {0};
    size_t n = 0, k = 0;
    for (size_t i = 0; i < LOAD_CURVE_POINTS; i++) c.x[i] = -log10(1 - load_curve_quantile(i));
    while (n < LOAD_CURVE_POINTS && !isnan(row->whole[n])) n++;
    for (size_t i = n; i < LOAD_CURVE_POINTS && !isnan(row->gap[i]); i++) n = i + 1;
    c.series[k++] = (load_series){"whole answer", row->whole, svg_colours[0]};
    if (has_curve(row->first)) c.series[k++] = (load_series){"first text", row->first, svg_colours[2]};
    if (has_curve(row->gap)) c.series[k++] = (load_series){"gap", row->gap, svg_colours[4]};
    if (row->rate > 0) c.series[k++] = (load_series){"from when it was sent", row->service, svg_colours[3]};
    load_chart_put(out,
                   &(load_chart){.title = "Percentiles",
                                 .unit = "ms",
                                 .x_title = "share of the requests that were as quick",
                                 .x = c.x,
                                 .n = n,
                                 .series = c.series,
                                 .n_series = k,
                                 .log_y = true,
                                 .ticks = ticks,
                                 .tick_words = words,
                                 .n_ticks = 6},
                   x, y);
}

static void put_tokens(const load_row *row, buf *out, double x, double y)
{
    columns c = {0};
    for (size_t i = 0; i < row->n_points; i++) {
        c.x[i] = row->points[i].at_s;
        c.y[0][i] = row->points[i].tokens_per_s;
    }
    c.series[0] = (load_series){"tokens of replies", c.y[0], svg_colours[0]};
    load_chart_put(out,
                   &(load_chart){.title = "Generated",
                                 .unit = "tokens a second",
                                 .x_title = "seconds since the start",
                                 .x = c.x,
                                 .n = row->n_points,
                                 .series = c.series,
                                 .n_series = 1,
                                 .bars = true},
                   x, y);
}

/* Several loads: what grows with them. */
static void put_across(const load_report *r, buf *out, double x, double y)
{
    columns c = {0};
    size_t n = r->n_rows < MOST_POINTS ? r->n_rows : MOST_POINTS;
    bool open = r->rows[0].rate > 0, texts = false;
    for (size_t i = 0; i < n; i++) {
        const load_result *o = &r->rows[i].r;
        c.x[i] = open ? r->rows[i].rate : r->rows[i].n_clients;
        c.y[0][i] = o->n_ok ? o->p50_ms : NAN;
        c.y[1][i] = o->n_ok ? o->p95_ms : NAN;
        c.y[2][i] = o->n_ok ? o->p99_ms : NAN;
        c.y[3][i] = o->n_ok ? o->first_p95_ms : NAN;
        texts = texts || o->n_gaps;
    }
    c.series[0] = (load_series){"p50", c.y[0], svg_colours[0]};
    c.series[1] = (load_series){"p95", c.y[1], svg_colours[1]};
    c.series[2] = (load_series){"p99", c.y[2], WORST};
    c.series[3] = (load_series){"first text p95", c.y[3], svg_colours[2]};
    load_chart_put(out,
                   &(load_chart){.title = "Latency against the load",
                                 .unit = "ms",
                                 .x_title = open ? "requests a second" : "clients",
                                 .x = c.x,
                                 .n = n,
                                 .series = c.series,
                                 .n_series = texts ? 4 : 3,
                                 .log_y = true,
                                 .limit = strncmp(r->objective.name, "gap", 3) != 0 ? r->objective.ms : 0},
                   x, y);
}

/* The charts of a run, one behind the other; how many. */
static size_t put_row(const load_report *r, const load_row *row, size_t k, buf *out)
{
    switch (k) {
    case 0: put_times(r, row, out, 0, 0); return 1;
    case 1: put_curve(row, out, 0, 0); return 1;
    case 2: put_throughput(row, out, 0, 0); return 1;
    case 3:
        if (row->r.n_tokens) put_tokens(row, out, 0, 0);
        return row->r.n_tokens > 0;
    default: return 0;
    }
}

enum { HEAD = 76, GAP = 16, CHARTS = 4 };

static const load_row *last_row(const load_report *r)
{
    return &r->rows[r->n_rows - 1];
}

void load_report_put_svg(const load_report *r, buf *out)
{
    const load_row *row = last_row(r);
    size_t n = r->n_rows > 1;
    char text[300], verdict[200];
    for (size_t k = 0; k < CHARTS; k++) n += k < 3 || row->r.n_tokens > 0;
    svg_begin(out, LOAD_CHART_WIDTH, HEAD + (int)n * (LOAD_CHART_HEIGHT + GAP));
    snprintf(text, sizeof text, "Load on %.80s%.60s%s%.60s", r->url, r->path, r->model ? ", " : "",
             r->model ? r->model : "");
    svg_text(out, "title", 16, 28, "start", text);
    load_report_verdict(r, verdict, sizeof verdict);
    snprintf(text, sizeof text, "%.60s%s%s%s%.180s", r->when, r->n_rows > 1 ? "; last: " : "; ", row->name,
             verdict[0] ? "; " : "", verdict);
    svg_text(out, "dim", 16, 50, "start", text);
    double y = HEAD;
    if (r->n_rows > 1) {
        put_across(r, out, 0, y);
        y += LOAD_CHART_HEIGHT + GAP;
    }
    for (size_t k = 0; k < CHARTS; k++) {
        if (k == 3 && !row->r.n_tokens) continue;
        buf_printf(out, "<g transform=\"translate(0 %.0f)\">\n", y);
        put_row(r, row, k, out);
        buf_puts(out, "</g>\n");
        y += LOAD_CHART_HEIGHT + GAP;
    }
    buf_puts(out, "</svg>\n");
}

/* ---- HTML ------------------------------------------------------------------------------------------- */

static const char page_style[] =
    ":root{color-scheme:light dark;--paper:#ffffff;--ink:#1d2733;--dim:#5b6774;--rule:#dde3e9;--card:#f5f7f9;"
    "--bad:#b3261e;--good:#1f7a55}\n"
    "@media "
    "(prefers-color-scheme:dark){:root{--paper:#12181f;--ink:#e6ebf0;--dim:#9aa7b4;--rule:#2b3540;--card:#"
    "1a222b;"
    "--bad:#ff8a80;--good:#6fd3a5}}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}\n"
    "main{max-width:1180px;margin:0 auto;padding:28px 20px 60px}\n"
    "h1{font-size:24px;margin:0 0 2px}h2{font-size:18px;margin:36px 0 10px}.dim{color:var(--dim)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(132px,1fr));gap:10px;margin:20px 0}\n"
    ".tile{background:var(--card);border-radius:8px;padding:10px 14px}.tile b{display:block;font-size:21px;"
    "font-variant-numeric:tabular-nums}.tile span{color:var(--dim);font-size:13px}\n"
    ".bad{color:var(--bad)}.good{color:var(--good)}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:5px 10px;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}\n"
    "th{color:var(--dim);font-weight:500;font-size:13px}th:first-child,td:first-child{text-align:left}\n"
    "table.list{width:auto}table.list td{text-align:left;white-space:normal}table.list "
    "td:first-child{color:var(--dim)}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr));gap:14px}\n"
    ".charts svg{width:100%;height:auto;background:var(--card);border-radius:8px}\n"
    ".one{max-width:820px}\n"
    "summary{cursor:pointer;margin:10px 0}details{margin-top:8px}\n";

static void put_cell(buf *out, const char *fmt, double v)
{
    buf_puts(out, "<td>");
    buf_printf(out, strcmp(fmt, "n") == 0 ? "%.0f" : "%.1f", v);
    buf_puts(out, "</td>");
}

static void put_tile(buf *out, const char *class, const char *name, const char *unit, double v)
{
    buf_printf(out, "<div class=\"tile\"><b class=\"%s\">%.*f%s</b><span>%s</span></div>\n", class,
               v < 100 ? 1 : 0, v, unit, name);
}

static double per_s(const load_row *row, size_t n)
{
    return row->r.seconds > 0 ? (double)n / row->r.seconds : 0;
}

static void put_tiles(const load_row *row, buf *out)
{
    const load_result *o = &row->r;
    size_t all = o->n_ok + o->n_failed;
    buf_puts(out, "<div class=\"tiles\">\n");
    put_tile(out, "", "answers/s", "", per_s(row, o->n_ok));
    put_tile(out, "", "p50", " ms", o->p50_ms);
    put_tile(out, "", "p95", " ms", o->p95_ms);
    put_tile(out, "", "p99", " ms", o->p99_ms);
    if (o->n_gaps) put_tile(out, "", "first text, p95", " ms", o->first_p95_ms);
    if (o->n_gaps) put_tile(out, "", "gap, p95", " ms", o->gap_p95_ms);
    if (o->n_tokens) put_tile(out, "", "tokens/s", "", per_s(row, o->n_tokens));
    put_tile(out, o->n_failed ? "bad" : "good", "failed", " %",
             all ? 100.0 * (double)o->n_failed / (double)all : 0);
    buf_puts(out, "</div>\n");
}

static void put_table(const load_report *r, buf *out)
{
    buf_puts(out, "<div "
                  "class=\"wide\"><table><tr><th>Load</th><th>answers/s</th><th>answered</th><th>failed</"
                  "th><th>p50 ms</th>"
                  "<th>p95 ms</th><th>p99 ms</th><th>max ms</th><th>first p50 ms</th><th>first p95 "
                  "ms</th><th>gap p50 ms</th>"
                  "<th>gap p99 ms</th><th>tokens/s</th></tr>\n");
    for (size_t i = 0; i < r->n_rows; i++) {
        const load_row *row = &r->rows[i];
        const load_result *o = &row->r;
        buf_printf(out, "<tr><td%s>", row->broke ? " class=\"bad\"" : "");
        svg_escape(out, row->name);
        buf_puts(out, row->broke ? " (objective missed)</td>" : "</td>");
        put_cell(out, "f", per_s(row, o->n_ok));
        put_cell(out, "n", (double)o->n_ok);
        put_cell(out, "n", (double)o->n_failed);
        const double ms[] = {o->p50_ms,       o->p95_ms,       o->p99_ms,     o->max_ms,
                             o->first_p50_ms, o->first_p95_ms, o->gap_p50_ms, o->gap_p99_ms};
        for (size_t k = 0; k < sizeof ms / sizeof *ms; k++) put_cell(out, "f", ms[k]);
        put_cell(out, "f", per_s(row, o->n_tokens));
        buf_puts(out, "</tr>\n");
    }
    buf_puts(out, "</table></div>\n");
}

static void put_errors(const load_row *row, buf *out)
{
    if (!row->r.n_failed) return;
    buf_puts(out, "<p><b>Failed requests</b></p>\n<table class=\"list\">\n");
    for (size_t i = 0; i < LOAD_N_ERRORS; i++)
        if (row->errors[i])
            buf_printf(out, "<tr><td>%s</td><td class=\"bad\">%zu</td><td class=\"dim\">%s</td></tr>\n",
                       load_error_words[i], row->errors[i], load_error_abouts[i]);
    buf_puts(out, "</table>\n<p class=\"dim\">The first one: ");
    svg_escape(out, row->r.first_failure);
    buf_puts(out, "</p>\n");
}

static void open_chart(buf *out)
{
    buf_printf(
        out,
        "<svg viewBox=\"0 0 %d %d\" font-family=\"system-ui, sans-serif\" font-size=\"12\" role=\"img\">\n",
        LOAD_CHART_WIDTH, LOAD_CHART_HEIGHT);
}

static void put_charts(const load_report *r, const load_row *row, buf *out)
{
    buf_puts(out, "<div class=\"charts\">\n");
    for (size_t k = 0; k < CHARTS; k++) {
        if (k == 3 && !row->r.n_tokens) continue;
        open_chart(out);
        put_row(r, row, k, out);
        buf_puts(out, "</svg>\n");
    }
    buf_puts(out, "</div>\n");
}

static void put_runs(const load_report *r, buf *out)
{
    for (size_t i = 0; i < r->n_rows; i++) {
        bool last = i + 1 == r->n_rows;
        if (r->n_rows > 1) buf_printf(out, "<details%s><summary><b>", last ? " open" : "");
        if (r->n_rows > 1) svg_escape(out, r->rows[i].name);
        if (r->n_rows > 1) buf_puts(out, "</b></summary>\n");
        put_errors(&r->rows[i], out);
        put_charts(r, &r->rows[i], out);
        if (r->n_rows > 1) buf_puts(out, "</details>\n");
    }
}

static void put_settings(const load_report *r, buf *out)
{
    buf_puts(out, "<h2>Settings</h2>\n<table class=\"list\">\n");
    for (size_t i = 0; i < r->n_settings; i++) {
        buf_puts(out, "<tr><td>");
        svg_escape(out, r->settings[i].name);
        buf_puts(out, "</td><td>");
        svg_escape(out, r->settings[i].value);
        buf_puts(out, "</td></tr>\n");
    }
    buf_puts(out, "</table>\n");
}

static void put_heading(const load_report *r, buf *out)
{
    char verdict[200];
    buf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
                  "content=\"width=device-width,initial-scale=1\"><title>Load on ");
    svg_escape(out, r->url);
    buf_puts(out, "</title><style>\n");
    buf_puts(out, svg_style);
    buf_puts(out, page_style);
    buf_puts(out, "</style></head><body><main>\n<h1>Load on ");
    svg_escape(out, r->url);
    svg_escape(out, r->path);
    buf_puts(out, "</h1>\n<div class=\"dim\">");
    svg_escape(out, r->when);
    if (r->server[0]) buf_puts(out, " &middot; ");
    svg_escape(out, r->server);
    if (r->model) buf_puts(out, " &middot; ");
    svg_escape(out, r->model ? r->model : "");
    buf_puts(out, "</div>\n");
    load_report_verdict(r, verdict, sizeof verdict);
    if (verdict[0]) buf_puts(out, "<p><b>Objective:</b> ");
    svg_escape(out, verdict);
    if (verdict[0]) buf_puts(out, ".</p>\n");
}

void load_report_put_html(const load_report *r, buf *out)
{
    put_heading(r, out);
    if (r->n_rows == 1) put_tiles(&r->rows[0], out);
    put_table(r, out);
    if (r->n_rows > 1) {
        buf_puts(out, "<h2>All loads</h2>\n<div class=\"charts one\">\n");
        open_chart(out);
        put_across(r, out, 0, 0);
        buf_puts(out, "</svg>\n</div>\n<h2>Each load</h2>\n");
    } else {
        buf_puts(out, "<h2>Over time</h2>\n");
    }
    put_runs(r, out);
    put_settings(r, out);
    buf_puts(
        out,
        "<p class=\"dim\">Times count from when a request was due, whether or not a client was free to send "
        "it "
        "(no coordinated omission). Percentiles are within 0.8 %. An answer that failed has no time. "
        "&ldquo;First text&rdquo; is the first text of a stream, or the first byte of another answer.</p>\n"
        "</main></body></html>\n");
}
