/* load_chart.c: see load_chart.h. */
#include "load/load_chart.h"

#include <math.h>
#include <stdio.h>

#include "view/svg.h"

enum { LEFT = 64, RIGHT = 16, TOP = 44, BOTTOM = 44, N_TICKS = 5 };

typedef struct frame {
    const load_chart *c;
    double low, high; /* of y; logarithms with log_y */
    double from, to;  /* of x */
    buf *out;
} frame;

static double to_x(const frame *f, double x)
{
    double share = f->to > f->from ? (x - f->from) / (f->to - f->from) : 0.5;
    return LEFT + share * (LOAD_CHART_WIDTH - LEFT - RIGHT);
}

static double to_y(const frame *f, double y)
{
    double at = f->c->log_y ? log10(fmax(y, 1e-12)) : y;
    double share = (at - f->low) / (f->high - f->low);
    return TOP + (LOAD_CHART_HEIGHT - TOP - BOTTOM) * (1 - fmin(1, fmax(0, share)));
}

/* 1, 2 or 5 times a power of ten, so that there are about N_TICKS. */
static double step_of(double span)
{
    double step = pow(10, floor(log10(span / N_TICKS)));
    while (span / step > 1.5 * N_TICKS) step *= span / step > 4 * N_TICKS ? 5 : 2;
    return step;
}

/* The next number of 1, 2, 5, 10, 20, ... below or above. */
static double round_log(double v, bool up)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(v) + 1e-9)), best = power * (up ? 10 : 1);
    for (int i = 0; i < 4; i++) {
        double at = steps[i] * power;
        if (up ? at >= v * (1 - 1e-9) && at < best : at <= v * (1 + 1e-9) && at > best) best = at;
    }
    return best;
}

static void set_y(frame *f)
{
    const load_chart *c = f->c;
    double least = INFINITY, most = c->limit;
    for (size_t i = 0; i < c->n; i++) {
        double sum = 0;
        for (size_t k = 0; k < c->n_series; k++) {
            double y = c->series[k].y[i];
            if (isnan(y)) continue;
            sum += y;
            if (y > 0 && y < least) least = y;
            if (y > most) most = y;
        }
        if (c->bars && sum > most) most = sum;
    }
    if (most <= 0) most = 1;
    if (!isfinite(least)) least = most;
    f->low = c->log_y ? log10(round_log(least, false)) : 0;
    f->high = c->log_y ? log10(round_log(most, true)) : most;
    if (!c->log_y) {
        double step = step_of(most);
        f->high = ceil(most / step - 1e-9) * step;
    }
    if (f->high <= f->low) f->high = f->low + (c->log_y ? log10(2) : 1);
}

static void put_y_tick(const frame *f, double v)
{
    char text[32];
    double y = to_y(f, v);
    svg_line(f->out, "rule", LEFT, y, LOAD_CHART_WIDTH - RIGHT, y);
    snprintf(text, sizeof text, "%g", v);
    svg_text(f->out, "dim", LEFT - 8, y + 4, "end", text);
}

static void put_axes(const frame *f)
{
    const load_chart *c = f->c;
    char text[32];
    double bottom = LOAD_CHART_HEIGHT - BOTTOM;
    bool fine = f->high - f->low < 2.5; /* decades: there is room for 2 and 5 */
    for (double p = pow(10, floor(f->low)); c->log_y && p <= pow(10, f->high) * 1.001; p *= 10)
        for (int i = 0; i < (fine ? 3 : 1); i++) {
            double v = p * (i == 0 ? 1 : i == 1 ? 2 : 5);
            if (log10(v) >= f->low - 1e-9 && log10(v) <= f->high + 1e-9) put_y_tick(f, v);
        }
    double step = step_of(f->high - f->low);
    for (double v = 0; !c->log_y && v <= f->high * (1 + 1e-9); v += step) put_y_tick(f, v);
    for (size_t i = 0; i < c->n_ticks; i++) {
        if (c->ticks[i] < f->from || c->ticks[i] > f->to) continue;
        svg_line(f->out, "rule", to_x(f, c->ticks[i]), TOP, to_x(f, c->ticks[i]), bottom);
        svg_text(f->out, "dim", to_x(f, c->ticks[i]), bottom + 17, "middle", c->tick_words[i]);
    }
    step = f->to > f->from ? step_of(f->to - f->from) : 1;
    for (double v = ceil(f->from / step - 1e-9) * step; !c->n_ticks && v <= f->to + 1e-9 * step; v += step) {
        snprintf(text, sizeof text, "%g", fabs(v) < step / 1e6 ? 0 : v);
        svg_text(f->out, "dim", to_x(f, v), bottom + 17, "middle", text);
    }
    if (c->x_title)
        svg_text(f->out, "dim", (LEFT + LOAD_CHART_WIDTH - RIGHT) / 2.0, bottom + 36, "middle", c->x_title);
    if (c->limit > 0)
        svg_line(f->out, "ideal", LEFT, to_y(f, c->limit), LOAD_CHART_WIDTH - RIGHT, to_y(f, c->limit));
}

static const char *colour_of(const load_chart *c, size_t k)
{
    return c->series[k].colour ? c->series[k].colour : svg_colours[k % SVG_N_COLOURS];
}

static void put_line_of(const frame *f, size_t k)
{
    const load_series *s = &f->c->series[k];
    bool open = false;
    buf_printf(f->out,
               "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" stroke-linejoin=\"round\" d=\"",
               colour_of(f->c, k));
    for (size_t i = 0; i < f->c->n; i++) {
        bool there = !isnan(s->y[i]);
        if (there) buf_printf(f->out, "%c%.1f %.1f", open ? 'L' : 'M', to_x(f, f->c->x[i]), to_y(f, s->y[i]));
        open = there;
    }
    buf_puts(f->out, "\"/>\n");
    for (size_t i = 0; i < f->c->n; i++) { /* one without neighbours has no line */
        bool alone = (i == 0 || isnan(s->y[i - 1])) && (i + 1 == f->c->n || isnan(s->y[i + 1]));
        if (!isnan(s->y[i]) && (alone || f->c->n <= 24))
            buf_printf(f->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" fill=\"%s\"/>\n",
                       to_x(f, f->c->x[i]), to_y(f, s->y[i]), colour_of(f->c, k));
    }
}

static void put_bars(const frame *f)
{
    const load_chart *c = f->c;
    double wide = c->n > 1 ? to_x(f, c->x[1]) - to_x(f, c->x[0]) : LOAD_CHART_WIDTH - LEFT - RIGHT;
    for (size_t i = 0; i < c->n; i++) {
        double base = 0;
        for (size_t k = 0; k < c->n_series; k++) {
            double v = c->series[k].y[i], y = to_y(f, base + v), h = to_y(f, base) - y;
            if (isnan(v) || v <= 0) continue;
            buf_printf(f->out, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"/>\n",
                       to_x(f, c->x[i]), y, fmax(wide - (wide > 4), 0.6), fmax(h, 0.8), colour_of(c, k));
            base += v;
        }
    }
}

static void put_legend(const frame *f)
{
    double at = LOAD_CHART_WIDTH - RIGHT;
    for (size_t k = f->c->n_series; k-- > 0;) {
        size_t n = 0;
        for (const char *s = f->c->series[k].name; *s; s++) n += (*s & 0xC0) != 0x80;
        at -= 6.4 * (double)n;
        svg_text(f->out, "dim", at, 20, "start", f->c->series[k].name);
        at -= 18;
        buf_printf(f->out, "<rect x=\"%.1f\" y=\"10\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n",
                   at, colour_of(f->c, k));
        at -= 16;
    }
}

void load_chart_put(buf *out, const load_chart *c, double x, double y)
{
    char title[160];
    frame f = {.c = c, .out = out};
    buf_printf(out, "<g transform=\"translate(%.0f %.0f)\">\n", x, y);
    snprintf(title, sizeof title, "%s (%s)", c->title, c->unit);
    svg_text(out, "strong", LEFT, 20, "start", title);
    if (c->n == 0) {
        svg_text(out, "dim", LEFT, 60, "start", "nothing was measured");
    } else {
        double last = c->n > 1 ? c->x[c->n - 1] - c->x[c->n - 2] : 1;
        f.from = c->x[0];
        f.to = c->x[c->n - 1] + (c->bars ? last : 0);
        set_y(&f);
        put_axes(&f);
        if (c->bars) put_bars(&f);
        for (size_t k = 0; !c->bars && k < c->n_series; k++) put_line_of(&f, k);
        put_legend(&f);
    }
    buf_puts(out, "</g>\n");
}
