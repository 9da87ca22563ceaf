/* calibrate_svg.c: two panels for each member but the last. On the left what the member says against how
 * often it is right: dots are bins of equally many cases, the line is the map, the dashes are what they would
 * be if it knew itself. On the right how many of its answers are wrong when it answers only so many; the ring
 * is the threshold, the upper line how often the whole cascade is right. */
#include <math.h>
#include <stdlib.h>

#include "eval/calibrate_report.h"

enum { WIDTH = 760, ROW = 330, PANEL = 250, TOP = 60, LEFT_X = 60, RIGHT_X = 430, N_TICKS = 5 };

typedef struct panel { /* of a square of PANEL pixels */
    double x, y;       /* its corner at the upper left */
    double from, to;   /* what x stands for; y is 0 to 1 */
} panel;

static double px(const panel *p, double v)
{
    return p->x + PANEL * (v - p->from) / (p->to - p->from);
}

static double py(const panel *p, double v)
{
    return p->y + PANEL * (1 - v);
}

static void put_frame(const panel *p, const char *title, const char *below, buf *out)
{
    buf_printf(out,
               "<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n",
               p->x, p->y, PANEL, PANEL);
    buf_printf(out, "<text x=\"%.0f\" y=\"%.0f\">%s</text>\n", p->x, p->y - 8, title);
    buf_printf(out, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">%s</text>\n", p->x + PANEL / 2.0,
               p->y + PANEL + 32, below);
    for (int i = 0; i <= N_TICKS; i++) {
        double v = p->from + (p->to - p->from) * i / N_TICKS, share = (double)i / N_TICKS;
        buf_printf(out, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%.3g</text>\n", px(p, v),
                   p->y + PANEL + 15, v);
        buf_printf(out, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%.0f %%</text>\n", p->x - 5,
                   py(p, share) + 4, 100 * share);
    }
}

static void put_line(const char *style, double x1, double y1, double x2, double y2, buf *out)
{
    buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, style);
}

/* ---- what is said, and what is ----------------------------------------------------------------------- */

static int by_said(const void *a, const void *b)
{
    double x = ((const confidence_sample *)a)->said, y = ((const confidence_sample *)b)->said;
    return (x > y) - (x < y);
}

static void put_dots(const panel *p, const confidence_sample *s, size_t n, buf *out)
{
    for (size_t bin = 0; bin < CALIBRATE_BINS; bin++) {
        size_t from = n * bin / CALIBRATE_BINS, to = n * (bin + 1) / CALIBRATE_BINS;
        double said = 0, right = 0, count = (double)(to - from);
        for (size_t i = from; i < to; i++) {
            said += s[i].said;
            right += s[i].right;
        }
        if (to > from)
            buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#d9a441\"/>\n",
                       px(p, said / count), py(p, right / count));
    }
}

static void put_map(const panel *p, const confidence_map *map, buf *out)
{
    buf_puts(out, "<polyline fill=\"none\" stroke=\"#3a8f5c\" stroke-width=\"2\" points=\"");
    for (int i = 0; i <= PANEL; i++) {
        double said = p->from + (p->to - p->from) * i / PANEL;
        buf_printf(out, "%.1f,%.1f ", px(p, said), py(p, confidence_of(map, said)));
    }
    buf_puts(out, "\"/>\n");
}

/* s: the member's samples, sorted. The axis begins where they do, for most models say 0.9 and more. */
static void put_reliability(double y, const calibrate_member *m, const confidence_sample *s, size_t n,
                            buf *out)
{
    double least = n ? s[n / 50].said : 0;
    panel p = {.x = LEFT_X, .y = y, .from = fmin(floor(least * 10) / 10, 0.9), .to = 1};
    put_frame(&p, "how often it is right", "confidence that it says", out);
    put_line("stroke=\"#888\" stroke-dasharray=\"4\"", px(&p, p.from), py(&p, p.from), px(&p, 1), py(&p, 1),
             out);
    put_map(&p, &m->cal.map, out);
    buf_printf(out, "<svg x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" viewBox=\"%.0f %.0f %d %d\">\n",
               p.x - 5, p.y - 5, PANEL + 10, PANEL + 10, p.x - 5, p.y - 5, PANEL + 10, PANEL + 10);
    put_dots(&p, s, n, out);
    buf_puts(out, "</svg>\n");
}

/* ---- risk and coverage --------------------------------------------------------------------------------- */

/* A curve over all thresholds that differ. */
static void put_curve(const panel *p, const calibrate_report *r, size_t i, const confidence_sample *s,
                      bool of_cascade, buf *out)
{
    const char *colour = of_cascade ? "#3a6ea5" : "#c0392b";
    buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour);
    for (size_t k = 0; k < r->n; k++) {
        double t = confidence_of(&r->members[i].cal.map, s[k].said);
        if (k > 0 && t == confidence_of(&r->members[i].cal.map, s[k - 1].said)) continue;
        confidence_risk at = calibrate_risk(r->members, i, r->n, t);
        double v = of_cascade ? calibrate_accuracy(r->members, i, r->n, t) : at.risk;
        buf_printf(out, "%.1f,%.1f ", px(p, at.coverage), py(p, v));
    }
    buf_puts(out, "\"/>\n");
}

static void put_ring(const panel *p, double x, double y, buf *out)
{
    buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"none\" stroke=\"#000\"/>\n", px(p, x),
               py(p, y));
}

static void put_risk(double y, const calibrate_report *r, size_t i, const confidence_sample *s, buf *out)
{
    panel p = {.x = RIGHT_X, .y = y, .from = 0, .to = 1};
    double t = r->members[i].cal.min_confidence;
    confidence_risk at = calibrate_risk(r->members, i, r->n, t);
    put_frame(&p, "red: wrong of these; blue: the cascade is right", "share that it answers itself", out);
    put_curve(&p, r, i, s, false, out);
    put_curve(&p, r, i, s, true, out);
    put_ring(&p, at.coverage, at.risk, out);
    put_ring(&p, at.coverage, calibrate_accuracy(r->members, i, r->n, t), out);
}

/* ---- the picture ------------------------------------------------------------------------------------ */

static void calibrate_svg_put_name(double y, const calibrate_report *r, size_t i, buf *out)
{
    const char *names[] = {r->members[i].model, " in ", r->ensemble};
    buf_printf(out, "<text x=\"%d\" y=\"%.0f\" font-size=\"14\" font-weight=\"bold\">", LEFT_X, y);
    for (size_t k = 0; k < 3; k++)
        for (const char *c = names[k]; *c; c++) {
            bool special = *c == '<' || *c == '>' || *c == '&';
            if (special)
                buf_printf(out, "&#%d;", *c);
            else
                buf_putc(out, *c);
        }
    buf_printf(out, ": %zu cases, threshold %.3f</text>\n", r->n, r->members[i].cal.min_confidence);
}

void calibrate_put_svg(const calibrate_report *r, buf *out)
{
    confidence_sample *s = calloc(r->n + 1, sizeof *s);
    int height = ROW * ((int)r->n_members - 1) + 20;
    out->failed |= s == NULL;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
               "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
               WIDTH, height);
    for (size_t i = 0; s && i + 1 < r->n_members; i++) {
        const calibrate_member *m = &r->members[i];
        double y = (double)(ROW * i);
        for (size_t k = 0; k < r->n; k++) s[k] = (confidence_sample){m->said[k], m->right[k]};
        if (r->n) qsort(s, r->n, sizeof *s, by_said);
        calibrate_svg_put_name(y + 24, r, i, out);
        put_reliability(y + TOP, m, s, r->n, out);
        put_risk(y + TOP, r, i, s, out);
    }
    buf_puts(out, "</svg>\n");
    free(s);
}
