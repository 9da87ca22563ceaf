/* linear_cost.h: how long work of a size takes, learnt from work that was done: ms = fixed + per_unit · size.
 *
 * The line of least squares through what was seen. A sample weighs half after seven newer ones, or after ten
 * seconds, so what was learnt beside a busy neighbour is forgotten. A line says little of sizes far beyond
 * those it was learnt from: after one slow call of 3 tokens it would have 1,300 take minutes. Whoever refuses
 * work asks for the least that it takes. No clock, no memory, no lock: the owner's thread only.
 *
 *     cost c = {0};
 *     linear_cost_learn(&c, n_tokens, took_ms, clock_ns());
 *     double ms = linear_cost_line_ms(linear_cost_line_of(&c), 1, n_tokens);
 */
#ifndef TIME_LINEAR_COST_H
#define TIME_LINEAR_COST_H

#include <stdint.h>

typedef struct linear_cost {
    double n, x, y, xx, xy; /* decayed sums over the samples */
    uint64_t seen_ns;       /* of the newest sample */
} linear_cost;

typedef struct linear_cost_line {
    double fixed_ms, unit_ms; /* both 0: not known; neither is ever below 0 */
    double reach;             /* sizes up to here are like those seen */
} linear_cost_line;

/* Work of this size took so long and ended at now_ns. */
void linear_cost_learn(linear_cost *c, double size, double ms, uint64_t now_ns);
linear_cost_line linear_cost_line_of(const linear_cost *c);
/* n pieces of work whose sizes add up to size. */
double linear_cost_line_ms(linear_cost_line l, double n, double size);
/* What they take at least: sizes beyond reach may cost no more than the largest within. */
double linear_cost_line_least_ms(linear_cost_line l, double n, double size);

#endif
