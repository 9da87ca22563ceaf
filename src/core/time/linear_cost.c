/* linear_cost.c: the line of least squares, with a memory that fades by samples and by time. */
#include "time/linear_cost.h"

#include <math.h>

#define KEEP      0.9  /* of the weight, at each sample */
#define HALF_S    10.0 /* and half of it in so many seconds */
#define ALIKE_VAR 0.01 /* sizes that vary less than this (relative, squared) do not say what a unit costs */
#define REACH     8    /* a line is believed up to so many times the sizes it was learnt from */

void linear_cost_learn(linear_cost *c, double size, double ms, uint64_t now_ns)
{
    double age_s = now_ns > c->seen_ns ? (double)(now_ns - c->seen_ns) / 1e9 : 0;
    double keep = KEEP * exp2(-age_s / HALF_S);
    c->n = c->n * keep + 1;
    c->x = c->x * keep + size;
    c->y = c->y * keep + ms;
    c->xx = c->xx * keep + size * size;
    c->xy = c->xy * keep + size * ms;
    c->seen_ns = now_ns;
}

/* Between "all is fixed" and "all is by size"; the line goes through the middle of the samples in any case.
 */
linear_cost_line linear_cost_line_of(const linear_cost *c)
{
    if (c->n <= 0) return (linear_cost_line){0};
    double var = c->n * c->xx - c->x * c->x;
    double most = c->x > 0 ? c->y / c->x : 0;
    double slope = var > ALIKE_VAR * c->x * c->x ? (c->n * c->xy - c->x * c->y) / var : most;
    slope = slope < 0 ? 0 : slope > most ? most : slope;
    return (linear_cost_line){.fixed_ms = fmax(0, (c->y - slope * c->x) / c->n),
                              .unit_ms = slope,
                              .reach = REACH * sqrt(c->xx / c->n)};
}

double linear_cost_line_ms(linear_cost_line l, double n, double size)
{
    return l.fixed_ms * n + l.unit_ms * size;
}

double linear_cost_line_least_ms(linear_cost_line l, double n, double size)
{
    return linear_cost_line_ms(l, n, fmin(size, n * l.reach));
}
