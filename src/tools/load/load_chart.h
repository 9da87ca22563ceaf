/* load_chart.h: a chart of lines or bars over one axis, as SVG. Pure.
 *
 *     load_series s[] = {{.name = "p99", .y = p99}};
 *     load_chart_put(&out, &(load_chart){.title = "Latency", .unit = "ms", .x = t, .n = n, .series = s, .n_series = 1}, 0, 0); */
#ifndef LOAD_LOAD_CHART_H
#define LOAD_LOAD_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { LOAD_CHART_WIDTH = 760, LOAD_CHART_HEIGHT = 260 };

typedef struct load_series {
    const char *name;
    const double *y;    /* [n]; NAN: nothing there, the line is interrupted */
    const char *colour; /* NULL: by its place */
} load_series;

typedef struct load_chart {
    const char *title, *unit, *x_title;
    const double *x; /* [n], ascending */
    size_t n;
    const load_series *series; /* [n_series] */
    size_t n_series;
    bool bars;           /* stacked bars, each as wide as the distance to the next x */
    bool log_y;          /* of times that differ by much; nothing is below the smallest value above 0 */
    double limit;        /* a dashed line, the objective; 0: none */
    const double *ticks; /* [n_ticks] of x, with their words; NULL: round numbers */
    const char *const *tick_words;
    size_t n_ticks;
} load_chart;

/* A <g> with its upper left corner there. */
void load_chart_put(buf *out, const load_chart *c, double x, double y);

#endif
