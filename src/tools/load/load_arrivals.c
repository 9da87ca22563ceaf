/* load_arrivals.c: see load_arrivals.h. */
#include "load/load_arrivals.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"

/* When `count` requests have come in, of a rate that grows linearly: the root of rate t + slope t^2 / 2 = count. A falling
 * rate never reaches some counts: infinity. */
static double time_of(const load_arrivals *a, double count)
{
    double slope = a->rate_to > 0 && a->seconds > 0 ? (a->rate_to - a->rate) / a->seconds : 0;
    double under = a->rate * a->rate + 2 * slope * count;
    return under < 0 ? INFINITY : 2 * count / (a->rate + sqrt(under));
}

/* A Poisson process of changing rate is one of rate 1 in the count of what was expected (time rescaling). */
int load_arrivals_make(double **ret, size_t *ret_n, const load_arrivals *a, shoal_err *err)
{
    size_t n = 0, room = 1024;
    double count = 0, *due = malloc(room * sizeof *due);
    while (due && n < a->n_most) {
        if (a->kind == LOAD_POISSON) count -= log(1 - rng_uniform(a->seed, n));
        double at = time_of(a, count);
        if (isinf(at) || (a->seconds > 0 && at >= a->seconds)) break;
        if (n == room) {
            double *more = realloc(due, 2 * room * sizeof *due);
            if (!more) free(due);
            due = more;
            room *= 2;
            if (!due) break;
        }
        due[n++] = at;
        if (a->kind == LOAD_CONSTANT) count++;
    }
    if (!due) return err_nomem(err);
    *ret = due;
    *ret_n = n;
    return 0;
}
