/* bench_scale_svg.c: the chart of bench_scale.h. Threads and speed-up are on logarithmic scales, so that the
 * ideal is a straight line and few threads have as much room as many. */
#include <math.h>
#include <stdio.h>

#include "base/sys.h"
#include "bench/bench_scale.h"
#include "view/svg.h"

enum {
    WIDTH = 800,
    PANEL_W = 300,
    PANEL_H = 260,
    TOP = 96,
    LEFT_X = 70,
    RIGHT_X = 470,
    LEGEND = 24,
    N_LOOKS = SVG_N_COLOURS
};

typedef struct panel {
    const bench_scale *s;
    double x;         /* of its left edge */
    double low, high; /* what y stands for; of logarithms when is_log */
    bool is_log;
    buf *out;
} panel;

static double to_x(const panel *p, double threads)
{
    const bench_list *l = &p->s->about.threads;
    double from = log2((double)l->v[0]), to = log2((double)l->v[l->n - 1]);
    return p->x + 12 + (PANEL_W - 24) * (log2(threads) - from) / (to - from);
}

static double to_y(const panel *p, double v)
{
    double at = p->is_log ? log2(v) : v;
    return TOP + PANEL_H * (1 - (at - p->low) / (p->high - p->low));
}

/* A circle, a square, a triangle or a diamond, so that colour is not all that tells tests apart. */
static void put_mark(buf *out, size_t look, double x, double y)
{
    static const char *const shapes[] = {"M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "M-4 -4h8v8h-8z",
                                         "M0 -5l5 9h-10z", "M0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z"};
    buf_printf(out, "<path d=\"%s\" transform=\"translate(%.1f %.1f)\" fill=\"%s\"/>\n", shapes[look % 4], x,
               y, svg_colours[look % N_LOOKS]);
}

/* ---- axes --------------------------------------------------------------------------------------------- */

static void put_threads_axis(const panel *p)
{
    const bench_list *l = &p->s->about.threads;
    double last = -1e9;
    char text[32];
    for (size_t i = 0; i < l->n; i++) {
        double x = to_x(p, (double)l->v[i]);
        svg_line(p->out, "rule", x, TOP, x, TOP + PANEL_H);
        if (x - last < 18) continue; /* there is no room for its number */
        last = x;
        snprintf(text, sizeof text, "%zu", l->v[i]);
        svg_text(p->out, "dim", x, TOP + PANEL_H + 18, "middle", text);
    }
    svg_text(p->out, "dim", p->x + PANEL_W / 2.0, TOP + PANEL_H + 38, "middle",
             "threads offered (logarithmic scale)");
}

static void put_y_tick(const panel *p, double v, const char *text)
{
    double y = to_y(p, v);
    svg_line(p->out, "rule", p->x, y, p->x + PANEL_W, y);
    svg_text(p->out, "dim", p->x - 8, y + 4, "end", text);
}

static void put_y_axis(const panel *p)
{
    char text[32];
    for (double e = p->low; p->is_log && e <= p->high + 1e-9; e++) {
        snprintf(text, sizeof text, e < 0 ? "1/%g\xc3\x97" : "%g\xc3\x97", exp2(fabs(e)));
        put_y_tick(p, exp2(e), text);
    }
    double step = p->high > 2 ? 0.5 : 0.25;
    for (double v = 0; !p->is_log && v <= p->high + 1e-9; v += step) {
        snprintf(text, sizeof text, "%.0f %%", 100 * v);
        put_y_tick(p, v, text);
    }
}

/* Past this line threads share cores. */
static void put_cores(const panel *p, int n_cores)
{
    const bench_list *l = &p->s->about.threads;
    char text[48];
    if ((size_t)n_cores >= l->v[l->n - 1] || (size_t)n_cores < l->v[0]) return;
    double x = to_x(p, n_cores);
    svg_line(p->out, "cores", x, TOP, x, TOP + PANEL_H);
    snprintf(text, sizeof text, "%d core%s here", n_cores, n_cores == 1 ? "" : "s");
    svg_text(p->out, "dim", x + 5, TOP + PANEL_H - 8, "start", text);
}

/* ---- lines -------------------------------------------------------------------------------------------- */

static double value_of(const panel *p, const bench_scale_point *at)
{
    return p->is_log ? at->speed_up : at->efficiency;
}

static void put_tests(const panel *p)
{
    size_t n = p->s->about.threads.n;
    for (size_t k = 0; k < p->s->n_tests; k++) {
        const bench_scale_test *t = &p->s->tests[k];
        buf_printf(p->out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                   svg_colours[k % N_LOOKS]);
        for (size_t i = 0; i < n; i++)
            buf_printf(p->out, "%s%.1f,%.1f", i ? " " : "", to_x(p, t->p[i].n_threads),
                       to_y(p, value_of(p, &t->p[i])));
        buf_puts(p->out, "\"/>\n");
        for (size_t i = 0; i < n; i++)
            put_mark(p->out, k, to_x(p, t->p[i].n_threads), to_y(p, value_of(p, &t->p[i])));
    }
}

/* From the least to the most of what is drawn and of the ideal. */
static void set_bounds(panel *p)
{
    const bench_list *l = &p->s->about.threads;
    double least = p->is_log ? 1 : 0, most = p->is_log ? (double)l->v[l->n - 1] / (double)l->v[0] : 1;
    for (size_t k = 0; k < p->s->n_tests; k++)
        for (size_t i = 0; i < l->n; i++) {
            double v = value_of(p, &p->s->tests[k].p[i]);
            if (v < least) least = v;
            if (v > most) most = v;
        }
    p->low = p->is_log ? floor(log2(least)) : 0;
    p->high = p->is_log ? ceil(log2(most)) : ceil(4 * most) / 4;
}

static void put_panel(panel *p, const char *title, int n_cores)
{
    const bench_list *l = &p->s->about.threads;
    double first = (double)l->v[0], last = (double)l->v[l->n - 1];
    set_bounds(p);
    svg_text(p->out, "strong", p->x, TOP - 14, "start", title);
    put_y_axis(p);
    put_threads_axis(p);
    put_cores(p, n_cores);
    svg_line(p->out, "ideal", to_x(p, first), to_y(p, 1), to_x(p, last),
             to_y(p, p->is_log ? last / first : 1));
    put_tests(p);
}

/* ---- the chart ---------------------------------------------------------------------------------------- */

static void put_head(const bench_scale *s, int height, buf *out)
{
    char cpu[128], text[320];
    sys_cpu_name(cpu, sizeof cpu);
    svg_begin(out, WIDTH, height);
    snprintf(text, sizeof text, "%.100s, %.20s: speed over threads", s->about.model, s->about.type);
    svg_text(out, "title", 16, 28, "start", text);
    snprintf(text, sizeof text, "shoal %s, commit %.30s, %s kernels; %.100s", SHOAL_VERSION, bench_commit,
             isa_name(s->about.isa), cpu);
    svg_text(out, "dim", 16, 50, "start", text);
}

static const bench_scale_point *fastest(const bench_scale_test *t, size_t n)
{
    const bench_scale_point *best = &t->p[0];
    for (size_t i = 1; i < n; i++)
        if (t->p[i].tokens_per_s > best->tokens_per_s) best = &t->p[i];
    return best;
}

static void put_legend(const bench_scale *s, double y, buf *out)
{
    char text[200];
    svg_line(out, "ideal", LEFT_X, y - 4, LEFT_X + 24, y - 4);
    svg_text(out, "dim", LEFT_X + 34, y, "start", "ideal: each thread adds the speed of the first");
    for (size_t k = 0; k < s->n_tests; k++) {
        const bench_scale_test *t = &s->tests[k];
        const bench_scale_point *best = fastest(t, s->about.threads.n);
        y += LEGEND;
        buf_printf(out, "<path d=\"M%d %.1fh24\" stroke=\"%s\" stroke-width=\"2\"/>\n", LEFT_X, y - 4,
                   svg_colours[k % N_LOOKS]);
        put_mark(out, k, LEFT_X + 12, y - 4);
        snprintf(text, sizeof text,
                 "%s: %.1f tokens/s with %d thread%s, at most %.1f with %d (%.2f cores at work)", t->name,
                 t->p[0].tokens_per_s, t->p[0].n_threads, t->p[0].n_threads == 1 ? "" : "s",
                 best->tokens_per_s, best->n_threads, best->cores);
        svg_text(out, "ink", LEFT_X + 34, y, "start", text);
    }
}

void bench_scale_put_svg(const bench_scale *s, int n_cores, buf *out)
{
    double below = TOP + PANEL_H + 74;
    size_t base = s->about.threads.v[0];
    char title[64];
    panel left = {.s = s, .x = LEFT_X, .is_log = true, .out = out},
          right = {.s = s, .x = RIGHT_X, .out = out};
    put_head(s, (int)below + LEGEND * (int)s->n_tests + 20, out);
    snprintf(title, sizeof title, "Speed-up against %zu thread%s (times, logarithmic)", base,
             base == 1 ? "" : "s");
    put_panel(&left, title, n_cores);
    put_panel(&right, "Efficiency: speed-up over threads (%)", n_cores);
    put_legend(s, below, out);
    buf_puts(out, "</svg>\n");
}
