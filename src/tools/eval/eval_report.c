/* eval_report.c: scores and failures as a table, JSON, Markdown and a picture (SVG); the counting is
 * eval_score.c's. Requests and answers are other people's text: JSON, Markdown and SVG each escape it in
 * their own way. */
#include "eval/eval_report.h"

#include <stdio.h>
#include <string.h>

#include "json/json_put.h"
/* ---- for a terminal -------------------------------------------------------------------------- */

static void eval_report_put_row(const eval_score *s, buf *out)
{
    buf_printf(out, "%-14.14s %5zu %7.1f %7zu %7zu %7zu %7zu %9.1f %9.1f\n", s->tag, s->n,
               eval_percent(s, EVAL_RIGHT), s->count[EVAL_RIGHT], s->count[EVAL_WRONG], s->count[EVAL_SILENT],
               s->count[EVAL_HARMFUL], s->p50_ms, s->p99_ms);
}

void eval_report_table(const eval_scores *s, buf *out)
{
    buf_printf(out, "%-14s %5s %7s %7s %7s %7s %7s %9s %9s\n", "TAG", "CASES", "RIGHT %", "RIGHT", "WRONG",
               "SILENT", "HARMFUL", "P50 MS", "P99 MS");
    for (size_t i = 0; i < s->n_tags; i++) eval_report_put_row(&s->by_tag[i], out);
    eval_report_put_row(&s->all, out);
}

/* The worst first. */
void eval_report_failures(const eval_results *r, buf *out)
{
    for (int v = EVAL_HARMFUL; v > EVAL_RIGHT; v--)
        for (size_t i = 0; i < r->n; i++) {
            const eval_result *x = &r->v[i];
            if ((int)x->verdict != v) continue;
            buf_printf(out, "\n%s %s: ", eval_verdict_word(x->verdict), x->c->id);
            json_put_string(out, x->c->input, strlen(x->c->input));
            buf_printf(out, "\n    %s\n    got: %s\n", x->why, x->got);
        }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_score_json(const eval_score *s, buf *out)
{
    buf_putc(out, '{');
    json_put_text(out, "tag", s->tag);
    buf_printf(out, ",\"cases\":%zu", s->n);
    for (eval_verdict v = 0; v < EVAL_N_VERDICTS; v++)
        buf_printf(out, ",\"%s\":%zu", eval_verdict_word(v), s->count[v]);
    buf_printf(out, ",\"right_percent\":%.2f,\"harmful_percent\":%.2f,\"p50_ms\":%.3f,\"p99_ms\":%.3f}",
               eval_percent(s, EVAL_RIGHT), eval_percent(s, EVAL_HARMFUL), s->p50_ms, s->p99_ms);
}

static void put_failures_json(const eval_results *r, buf *out)
{
    const char *comma = "";
    buf_puts(out, ",\"failures\":[");
    for (size_t i = 0; i < r->n; i++) {
        const eval_result *x = &r->v[i];
        if (x->verdict == EVAL_RIGHT) continue;
        buf_printf(out, "%s{", comma);
        json_put_text(out, "id", x->c->id);
        json_put_text(out, "verdict", eval_verdict_word(x->verdict));
        json_put_text(out, "input", x->c->input);
        json_put_text(out, "why", x->why);
        json_put_text(out, "got", x->got);
        buf_putc(out, '}');
        comma = ",";
    }
    buf_putc(out, ']');
}

void eval_report_json(const eval_scores *s, const eval_results *r, bool failures, bool met, buf *out)
{
    buf_printf(out, "{\"aims_met\":%s,\"all\":", met ? "true" : "false");
    put_score_json(&s->all, out);
    buf_puts(out, ",\"tags\":[");
    for (size_t i = 0; i < s->n_tags; i++) {
        if (i) buf_putc(out, ',');
        put_score_json(&s->by_tag[i], out);
    }
    buf_putc(out, ']');
    if (failures) put_failures_json(r, out);
    buf_puts(out, "}\n");
}

/* ---- Markdown -------------------------------------------------------------------------------- */

/* A table cell: one line, no bar, nothing that Markdown or HTML would read. */
static void put_cell(buf *out, const char *s)
{
    for (; *s; s++) {
        if (strchr("|\\`*_<>[]#&", *s))
            buf_printf(out, "\\%c", *s);
        else
            buf_putc(out, (unsigned char)*s < ' ' ? ' ' : *s);
    }
    buf_puts(out, " | ");
}

static void put_score_markdown(const eval_score *s, buf *out)
{
    buf_puts(out, "| ");
    put_cell(out, s->tag);
    buf_printf(out, "%zu | %.1f | %zu | %zu | %zu | %zu | %.1f | %.1f |\n", s->n, eval_percent(s, EVAL_RIGHT),
               s->count[EVAL_RIGHT], s->count[EVAL_WRONG], s->count[EVAL_SILENT], s->count[EVAL_HARMFUL],
               s->p50_ms, s->p99_ms);
}

static void put_failures_markdown(const eval_results *r, buf *out)
{
    buf_puts(out, "\n| case | verdict | request | why | answer |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < r->n; i++) {
        const eval_result *x = &r->v[i];
        if (x->verdict == EVAL_RIGHT) continue;
        buf_puts(out, "| ");
        put_cell(out, x->c->id);
        put_cell(out, eval_verdict_word(x->verdict));
        put_cell(out, x->c->input);
        put_cell(out, x->why);
        put_cell(out, x->got);
        out->data[--out->len] = '\0'; /* the space that put_cell leaves for the next one */
        buf_putc(out, '\n');
    }
}

void eval_report_markdown(const char *title, const eval_scores *s, const eval_results *r, bool failures,
                          buf *out)
{
    buf_printf(out, "## %s\n\n", title);
    buf_puts(out, "| tag | cases | right % | right | wrong | silent | harmful | p50 ms | p99 ms |\n"
                  "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    put_score_markdown(&s->all, out);
    for (size_t i = 0; i < s->n_tags; i++) put_score_markdown(&s->by_tag[i], out);
    bool failed = s->all.count[EVAL_RIGHT] < s->all.n;
    if (!failed) buf_puts(out, "\nNo case failed.\n");
    if (failed && failures) put_failures_markdown(r, out);
}

/* ---- a picture ------------------------------------------------------------------------------- */

enum { SVG_WIDTH = 720, SVG_LEFT = 150, SVG_BAR = 440, SVG_ROW = 18, SVG_TOP = 52 };

static const char *const COLOURS[EVAL_N_VERDICTS] = {"#3a8f5c", "#d9a441", "#9aa0a6", "#c0392b"};

static void put_xml(buf *out, const char *s)
{
    for (; *s; s++) {
        if (strchr("<>&\"", *s))
            buf_printf(out, "&#%d;", *s);
        else
            buf_putc(out, *s);
    }
}

static void put_text_svg(buf *out, int x, int y, const char *anchor, const char *s)
{
    buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">", x, y, anchor);
    put_xml(out, s);
    buf_puts(out, "</text>\n");
}

static void put_bar_svg(const eval_score *s, int y, buf *out)
{
    char label[64];
    double x = SVG_LEFT;
    put_text_svg(out, SVG_LEFT - 8, y + 12, "end", s->tag);
    for (eval_verdict v = 0; v < EVAL_N_VERDICTS; v++) {
        double w = SVG_BAR * eval_percent(s, v) / 100;
        if (w > 0)
            buf_printf(out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", x, y, w,
                       SVG_ROW - 4, COLOURS[v]);
        x += w;
    }
    snprintf(label, sizeof label, "%.1f %% of %zu", eval_percent(s, EVAL_RIGHT), s->n);
    put_text_svg(out, SVG_LEFT + SVG_BAR + 8, y + 12, "start", label);
}

static void put_legend_svg(buf *out)
{
    int x = SVG_LEFT;
    for (eval_verdict v = 0; v < EVAL_N_VERDICTS; v++, x += 90) {
        buf_printf(out, "<rect x=\"%d\" y=\"30\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, COLOURS[v]);
        put_text_svg(out, x + 17, 40, "start", eval_verdict_word(v));
    }
}

void eval_report_svg(const char *title, const eval_scores *s, buf *out)
{
    int height = SVG_TOP + SVG_ROW * ((int)s->n_tags + 1) + 10;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
               "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
               SVG_WIDTH, height);
    put_text_svg(out, 12, 18, "start", title);
    put_legend_svg(out);
    put_bar_svg(&s->all, SVG_TOP, out);
    for (size_t i = 0; i < s->n_tags; i++) put_bar_svg(&s->by_tag[i], SVG_TOP + SVG_ROW * ((int)i + 1), out);
    buf_puts(out, "</svg>\n");
}
