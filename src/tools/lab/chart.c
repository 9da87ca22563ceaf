/* chart.c: the timeline of a run, drawn as SVG. */
#define _GNU_SOURCE
#include "lab/chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum { WIDTH = 1280, LEFT = 132, RIGHT = 24, LANE = 20, BINS = (WIDTH - LEFT - RIGHT) / 2 };
enum { TOP = 88, RATE_HEIGHT = 44, SILENCE_HEIGHT = 72, SPACE = 14 };

#define INK    "#22313a"
#define QUIET  "#71808a"
#define RULE   "#dfe5e8"
#define UP     "#d3e9dc"
#define STRIKE "#7a1f3d"

static const char *const fate_colours[] = {"#2f8f6f", "#e8a02c", "#d1373f"};
static const char *const state_colours[] = {"#4a545b", "#6fb3e0", "#f2994a", "#f4d35e", "#a583cf"};

typedef struct drawing {
    buf b;
    const lab_record *r;
    double span_ms; /* what the width stands for */
    double y;       /* where the next lane begins */
    double top;     /* of the lanes, for the lines of the grid and of faults */
} drawing;

/* ---- pieces ---- */

static double x_of(const drawing *d, double ms)
{
    double at = ms < 0 ? 0 : ms > d->span_ms ? d->span_ms : ms;
    return LEFT + at / d->span_ms * (WIDTH - LEFT - RIGHT);
}

static void put_escaped(buf *b, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '<' || c == '>' || c == '&' || c == '"')
            buf_printf(b, "&#%d;", c);
        else
            buf_putc(b, c < 32 ? ' ' : (char)c);
    }
}

static void text(drawing *d, double x, double y, const char *anchor, const char *colour, int size,
                 const char *s)
{
    buf_printf(&d->b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" font-size=\"%d\">", x, y,
               anchor, colour, size);
    put_escaped(&d->b, s);
    buf_puts(&d->b, "</text>\n");
}

static void box(drawing *d, double x, double y, double w, double h, const char *colour)
{
    buf_printf(&d->b, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, w,
               h, colour);
}

static void label(drawing *d, double height, const char *s)
{
    text(d, LEFT - 10, d->y + height / 2 + 4, "end", INK, 12, s);
}

/* 1, 2 or 5 times a power of ten, so that about a dozen ticks fit. */
static double tick_ms(double span_ms)
{
    double step = pow(10, floor(log10(span_ms / 12)));
    while (span_ms / step > 16) step *= span_ms / step > 40 ? 5 : 2;
    return step;
}

static void grid(drawing *d, double bottom)
{
    char s[32];
    double step = tick_ms(d->span_ms);
    for (double t = 0; t <= d->span_ms + step / 1e3; t += step) {
        buf_printf(&d->b, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"" RULE "\"/>\n", x_of(d, t), d->top, bottom);
        snprintf(s, sizeof s, "%g s", t / 1e3);
        text(d, x_of(d, t), bottom + 16, "middle", QUIET, 11, s);
    }
}

/* ---- lanes ---- */

static void node_lane(drawing *d, size_t node)
{
    label(d, LANE, d->r->scenario->nodes[node].name);
    box(d, LEFT, d->y + 3, WIDTH - LEFT - RIGHT, LANE - 6, UP);
    for (size_t i = 0; i < d->r->n_spans; i++) {
        const lab_span *s = &d->r->spans[i];
        if (s->node != node) continue;
        double from = x_of(d, s->from_ms), to = x_of(d, s->to_ms < 0 ? d->span_ms : s->to_ms);
        box(d, from, d->y + 3, fmax(to - from, 1.5), LANE - 6, state_colours[s->state]);
    }
    d->y += LANE;
}

/* A diamond for each fault, on its node's lane or, if it struck links, on the one of links. */
static void marks(drawing *d, double first_lane, double links_lane, double bottom)
{
    for (size_t i = 0; i < d->r->n_injections; i++) {
        const lab_injection *s = &d->r->injections[i];
        double x = x_of(d, s->at_ms),
               y = (s->node < 0 ? links_lane : first_lane + LANE * s->node) + LANE / 2.0;
        if (s->hit && s->end_ms >= 0) box(d, x, y - 1.5, x_of(d, s->end_ms) - x, 3, STRIKE);
        if (s->hit)
            buf_printf(&d->b,
                       "<path d=\"M%.1f %.1fV%.1f\" stroke=\"" STRIKE
                       "\" stroke-width=\"1\" opacity=\"0.45\" "
                       "stroke-dasharray=\"3 3\"/>\n",
                       x, y, bottom);
        buf_printf(&d->b,
                   "<path d=\"M%.1f %.1fl5 6l-5 6l-5 -6z\" fill=\"%s\" stroke=\"" STRIKE
                   "\" stroke-width=\"1.2\"><title>",
                   x, y - 6, s->hit ? STRIKE : "#fff");
        buf_printf(&d->b, "%.2f s: ", s->at_ms / 1e3);
        put_escaped(&d->b, s->what);
        if (s->gap_ms >= 0) buf_printf(&d->b, "; longest gap %.0f ms", s->gap_ms);
        buf_puts(&d->b, "</title></path>\n");
    }
}

/* One request: faint until its first byte, then solid; a silence in it is a thin line. */
static void bar(drawing *d, const lab_answer *a, double height)
{
    const char *colour = fate_colours[a->fate];
    double x = x_of(d, a->start_ms), end = x_of(d, a->end_ms), w = fmax(end - x - 0.4, 0.6);
    double quiet_ms = fmax(80, 2 * d->span_ms / (WIDTH - LEFT - RIGHT));
    buf_printf(&d->b, "<g fill=\"%s\"><title>", colour);
    put_escaped(&d->b, d->r->scenario->requests[a->request].name);
    buf_printf(&d->b, " %u: %s, %.0f ms", a->variant, lab_fate_words[a->fate], a->end_ms - a->start_ms);
    if (a->why[0]) buf_puts(&d->b, "; ");
    put_escaped(&d->b, a->why);
    buf_puts(&d->b, "</title>");
    double last = a->start_ms, from = x; /* what is solid begins here */
    buf_printf(&d->b, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" opacity=\"0.3\"/>", x,
               d->y + 1, w, height);
    for (size_t i = 0; i <= a->n_pieces; i++) {
        double at = i < a->n_pieces ? a->start_ms + (double)a->pieces_ms[i] : a->end_ms;
        if (at - last < quiet_ms && i < a->n_pieces) {
            last = at;
            continue;
        }
        double to = at - last < quiet_ms ? end : x_of(d, last);
        if (to > from + 0.2)
            buf_printf(&d->b, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"/>", from, d->y + 1,
                       fmax(to - from - 0.4, 0.6), height);
        from = x_of(d, at);
        last = at;
    }
    buf_puts(&d->b, "</g>\n");
}

static void client_lanes(drawing *d)
{
    uint32_t n = d->r->scenario->clients;
    double height = fmin(14, fmax(3, 320.0 / n));
    double top = d->y;
    for (uint32_t c = 0; c < n; c++) {
        char s[32];
        snprintf(s, sizeof s, "client %u", c + 1);
        if (height >= 10 || c % (uint32_t)ceil(14 / (height + 2)) == 0) label(d, height, s);
        for (size_t i = 0; i < d->r->n_answers; i++)
            if (d->r->answers[i].client == c) bar(d, &d->r->answers[i], height);
        d->y = top + (c + 1) * (height + 2);
    }
}

/* ---- strips ---- */

/* Answers a second by fate, stacked, in bins of two pixels smoothed over as many as make half a second. */
static void rate_strip(drawing *d)
{
    size_t n_bins = (size_t)fmax(8, fmin(BINS, d->span_ms / 250));
    double *count = calloc(2 * n_bins, sizeof *count), most = 1, bin_s = d->span_ms / 1e3 / (double)n_bins;
    for (size_t i = 0; count && i < d->r->n_answers; i++) {
        const lab_answer *a = &d->r->answers[i];
        size_t k = (size_t)fmin((double)n_bins - 1, a->end_ms / d->span_ms * (double)n_bins);
        count[2 * k + (a->fate == FATE_LOST)] += 1 / bin_s;
    }
    for (size_t k = 0; count && k < n_bins; k++) most = fmax(most, count[2 * k] + count[2 * k + 1]);
    for (size_t k = 0; count && k < n_bins; k++) {
        double x = x_of(d, d->span_ms * (double)k / (double)n_bins),
               w = (WIDTH - LEFT - RIGHT) / (double)n_bins - (n_bins < 300 ? 0.5 : 0);
        double ok = count[2 * k] / most * RATE_HEIGHT, bad = count[2 * k + 1] / most * RATE_HEIGHT;
        if (ok > 0) box(d, x, d->y + RATE_HEIGHT - ok, w, ok, "#9ccbb8");
        if (bad > 0) box(d, x, d->y + RATE_HEIGHT - ok - bad, w, bad, fate_colours[FATE_LOST]);
    }
    free(count);
    char s[48];
    label(d, RATE_HEIGHT - 12, "answers a second");
    snprintf(s, sizeof s, "peak %.0f", most);
    text(d, LEFT - 10, d->y + RATE_HEIGHT / 2.0 + 14, "end", QUIET, 10, s);
    d->y += RATE_HEIGHT + SPACE;
}

static void note_silence(double *bins, const drawing *d, double from, double to)
{
    size_t a = (size_t)(fmax(from, 0) / d->span_ms * BINS),
           b = (size_t)(fmin(to, d->span_ms) / d->span_ms * BINS);
    for (size_t k = a; k <= b && k < BINS; k++) bins[k] = fmax(bins[k], to - from);
}

/* At every moment the longest time between two pieces of a stream that was then under way; logarithmic. */
static void silence_strip(drawing *d)
{
    static const double rules[] = {10, 100, 1000, 10000};
    double *bins = calloc(BINS, sizeof *bins), scale = SILENCE_HEIGHT / 4.0; /* four decades from 1 ms */
    for (size_t i = 0; bins && i < d->r->n_answers; i++) {
        const lab_answer *a = &d->r->answers[i];
        double last = a->start_ms;
        if (!d->r->scenario->requests[a->request].stream || a->fate == FATE_LOST) continue;
        for (size_t k = 0; k < a->n_pieces; k++) {
            note_silence(bins, d, last, a->start_ms + (double)a->pieces_ms[k]);
            last = a->start_ms + (double)a->pieces_ms[k];
        }
    }
    for (size_t k = 0; bins && k < BINS; k++) {
        double h = bins[k] > 1 ? fmin(SILENCE_HEIGHT, log10(bins[k]) * scale) : 0;
        if (h > 0) box(d, LEFT + 2.0 * (double)k, d->y + SILENCE_HEIGHT - h, 2, h, "#8fb4d9");
    }
    free(bins);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char s[32];
        double y = d->y + SILENCE_HEIGHT - log10(rules[i]) * scale;
        buf_printf(&d->b, "<path d=\"M%d %.1fH%d\" stroke=\"#fff\" stroke-width=\"0.7\"/>\n", LEFT, y,
                   WIDTH - RIGHT);
        snprintf(s, sizeof s, rules[i] < 1000 ? "%.0f ms" : "%.0f s",
                 rules[i] < 1000 ? rules[i] : rules[i] / 1e3);
        text(d, LEFT - 10, y + 3.5, "end", QUIET, 10, s);
    }
    text(d, LEFT - 10, d->y + SILENCE_HEIGHT + 1, "end", INK, 12, "longest gap");
    d->y += SILENCE_HEIGHT + SPACE;
}

/* ---- around them ---- */

static double legend_item(drawing *d, double x, const char *colour, const char *s)
{
    box(d, x, d->y - 10, 14, 12, colour);
    text(d, x + 20, d->y, "start", INK, 12, s);
    return x + 38 + 6.6 * (double)strlen(s);
}

static void legend(drawing *d)
{
    bool seen[LAB_N_STATES] = {false};
    double x = LEFT;
    x = legend_item(d, x, fate_colours[FATE_SAME], "same bytes");
    x = legend_item(d, x, fate_colours[FATE_DIFFERENT], "different bytes");
    x = legend_item(d, x, fate_colours[FATE_LOST], "lost");
    x = legend_item(d, x, "#c1ddd4", "waiting or silent");
    x = legend_item(d, x, UP, "node up");
    for (size_t i = 0; i < d->r->n_spans; i++) seen[d->r->spans[i].state] = true;
    for (size_t i = 0; i < LAB_N_STATES; i++)
        if (seen[i]) x = legend_item(d, x, state_colours[i], lab_state_words[i]);
    buf_printf(&d->b, "<path d=\"M%.1f %.1fl5 6l-5 6l-5 -6z\" fill=\"" STRIKE "\"/>\n", x + 6, d->y - 10);
    text(d, x + 18, d->y, "start", INK, 12, "fault");
}

static void heading(drawing *d, const lab_summary *s)
{
    char line[1200], gap[80] = "no answered stream felt a fault";
    if (s->gap_p50_ms >= 0)
        snprintf(gap, sizeof gap, "gap at a fault p50 %.0f ms, p99 %.0f ms", s->gap_p50_ms, s->gap_p99_ms);
    snprintf(line, sizeof line, "Fault lab: %s", d->r->scenario->name);
    buf_puts(&d->b, "<g font-weight=\"600\">");
    text(d, LEFT, 30, "start", INK, 18, line);
    buf_puts(&d->b, "</g>");
    text(d, LEFT, 49, "start", QUIET, 12, d->r->scenario->about);
    snprintf(line, sizeof line,
             "%zu requests: %zu answered, %zu lost, %zu different; availability %.3f %%; %s", s->n_requests,
             s->n_answered, s->n_lost, s->n_different, 100 * s->availability, gap);
    text(d, LEFT, 69, "start",
         fate_colours[s->n_lost        ? FATE_LOST
                      : s->n_different ? FATE_DIFFERENT
                                       : FATE_SAME],
         13, line);
}

static bool on_links(const lab_record *r)
{
    for (size_t i = 0; i < r->n_injections; i++)
        if (r->injections[i].node < 0) return true;
    return false;
}

static void chart_draw(drawing *d, const lab_summary *s)
{
    const lab_scenario *sc = d->r->scenario;
    bool links = on_links(d->r);
    double height_clients = sc->clients * (fmin(14, fmax(3, 320.0 / sc->clients)) + 2);
    double bottom = TOP + LANE * (double)(sc->n_nodes + links) + SPACE + height_clients + SPACE +
                    RATE_HEIGHT + SILENCE_HEIGHT + 2 * SPACE;
    buf_printf(
        &d->b,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" font-family=\"Helvetica, Arial, "
        "sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        WIDTH, bottom + 60);
    heading(d, s);
    d->top = d->y = TOP;
    grid(d, bottom);
    for (size_t i = 0; i < sc->n_nodes; i++) node_lane(d, i);
    double links_lane = d->y;
    if (links) {
        label(d, LANE, "links");
        box(d, LEFT, d->y + LANE / 2.0 - 1, WIDTH - LEFT - RIGHT, 2, RULE);
        d->y += LANE;
    }
    d->y += SPACE;
    client_lanes(d);
    d->y += SPACE;
    rate_strip(d);
    silence_strip(d);
    marks(d, d->top, links_lane, bottom);
    d->y = bottom + 44;
    legend(d);
    buf_puts(&d->b, "</svg>\n");
}

int chart_write(const char *path, const lab_record *r, const lab_summary *s, shoal_err *err)
{
    drawing d = {.r = r, .span_ms = fmax(r->whole_ms, 1)};
    chart_draw(&d, s);
    FILE *f = d.b.failed ? NULL : fopen(path, "we");
    bool ok = f && fwrite(d.b.data, 1, d.b.len, f) == d.b.len;
    int why = errno;
    if (f && fclose(f) != 0) ok = false;
    int rc = d.b.failed ? err_nomem(err) : ok ? 0 : err_set(err, SHOAL_EIO, "%s: %s", path, strerror(why));
    buf_done(&d.b);
    return rc;
}
