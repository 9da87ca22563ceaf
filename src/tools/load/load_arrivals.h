/* load_arrivals.h: when the requests of an open loop are due. Pure: fixed before the first one is sent, so that a slow server
 * cannot slow them down.
 *
 *     load_arrivals a = {.kind = LOAD_POISSON, .rate = 5, .rate_to = 50, .seconds = 30, .seed = 1};
 *     double *due_s;
 *     size_t n;
 *     if (load_arrivals_make(&due_s, &n, &a, err) == 0) ... free(due_s); */
#ifndef LOAD_LOAD_ARRIVALS_H
#define LOAD_LOAD_ARRIVALS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum load_arrival_kind {
    LOAD_CONSTANT, /* equal distances */
    LOAD_POISSON,  /* independent users: exponential distances */
} load_arrival_kind;

typedef struct load_arrivals {
    load_arrival_kind kind;
    double rate;    /* requests a second at the start, above 0 */
    double rate_to; /* and at the end of `seconds`, linearly in between; 0: the same */
    double seconds; /* none is due later; 0: n_most of them */
    size_t n_most;  /* at most so many */
    uint64_t seed;
} load_arrivals;

/* *ret is the caller's to free(): seconds since the start, in order. SHOAL_ENOMEM. */
int load_arrivals_make(double **ret, size_t *ret_n, const load_arrivals *a, shoal_err *err);

#endif
