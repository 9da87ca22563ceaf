/* eval_routes.h: several routes over the same cases, side by side.
 *
 *     ROUTE             CASES  RIGHT %        95 %    P50 MS    P95 MS  TOKENS  ESCALATED %
 *     home-cascade        600     86.2   83.2-88.7      14.1     160.2    25.1         21.5
 *     home-chat-m         600     83.0   79.8-85.8      80.3     190.0    25.3          0.0
 *
 *     home-cascade against home-chat-m: +3.2 points, 95 %: +1.2 to +5.2 */
#ifndef EVAL_EVAL_ROUTES_H
#define EVAL_EVAL_ROUTES_H

#include "eval/eval_report.h"
#include "eval/eval_stats.h"

typedef struct eval_route {
    const char *name; /* borrowed */
    eval_results results;
} eval_route;

typedef struct eval_summary { /* of one route */
    size_t n, n_right, n_escalated, n_tokens;
    double p50_ms, p95_ms;
} eval_summary;

int eval_summarise(eval_summary *ret, const eval_results *r, shoal_err *err);

/* The table, and how the first route differs from each of the others. All have the same cases. */
int eval_routes_put(const eval_route *routes, size_t n, buf *out, shoal_err *err);
/* A line for each: {"accuracy","n","p50_ms","p95_ms","escalated", ...}; shares are from 0 to 1. */
int eval_routes_put_json(const eval_route *routes, size_t n, buf *out, shoal_err *err);

#endif
