/* eval_stats.c: intervals; see eval_stats.h. */
#include "eval/eval_stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/number.h"

#define Z95 1.959963984540054

eval_interval eval_wilson(size_t right, size_t n)
{
    if (n == 0) return (eval_interval){0, 1};
    double p = (double)right / (double)n, z2n = Z95 * Z95 / (double)n;
    double middle = (p + z2n / 2) / (1 + z2n);
    double half = Z95 / (1 + z2n) * sqrt(p * (1 - p) / (double)n + z2n / (4 * (double)n));
    return (eval_interval){fmax(middle - half, 0), fmin(middle + half, 1)};
}

eval_interval eval_difference(const bool *a, const bool *b, size_t n)
{
    double drawn[EVAL_RESAMPLES];
    if (n == 0) return (eval_interval){0, 0};
    for (size_t k = 0; k < EVAL_RESAMPLES; k++) {
        long sum = 0;
        for (size_t i = 0; i < n; i++) {
            size_t at = (size_t)(rng_uniform(k, i) * (double)n);
            sum += a[at] - b[at];
        }
        drawn[k] = (double)sum / (double)n;
    }
    qsort(drawn, EVAL_RESAMPLES, sizeof *drawn, number_compare_doubles);
    return (eval_interval){drawn[EVAL_RESAMPLES / 40], drawn[EVAL_RESAMPLES - 1 - EVAL_RESAMPLES / 40]};
}
