/* eval_stats.h: how far a count can be trusted.
 *
 *     eval_wilson(86, 100)             0.779 to 0.915: where the true share is, 95 times in 100
 *     eval_difference(a, b, n)         of two routes over the same cases: 0.012 to 0.049 in favour of a
 *
 * Pure: the same numbers give the same interval everywhere. */
#ifndef EVAL_EVAL_STATS_H
#define EVAL_EVAL_STATS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct eval_interval {
    double low, high;
} eval_interval;

/* 95 % for the share `right` of n (E. B. Wilson, 1927); 0 to 1 when n is 0. */
eval_interval eval_wilson(size_t right, size_t n);

/* 95 % for the share of a minus that of b, over the same n cases: the middle of EVAL_RESAMPLES draws of n
 * cases with replacement (B. Efron, "Bootstrap Methods", 1979). Case i is what both said to it, so that cases
 * which are hard for both widen nothing. 0 to 0 when n is 0. */
#define EVAL_RESAMPLES 2000
eval_interval eval_difference(const bool *a, const bool *b, size_t n);

#endif
