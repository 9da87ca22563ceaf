/* bench_limits.h: what this machine can do with so many threads (compute/measure.h), probed when it is asked
 * for: multiply-adds once, reading for each size of working set. */
#ifndef BENCH_BENCH_LIMITS_H
#define BENCH_BENCH_LIMITS_H

#include <stdbool.h>

#include "base/err.h"
#include "compute/measure.h"

typedef struct bench_limits {
    isa isa;
    int n_threads;
    double adds_per_s;
    double set_bytes, read_per_s; /* of the working set probed last; 0: none was */
} bench_limits;

/* Probes multiply-adds: of floats, else of int8. */
int bench_limits_begin(bench_limits *ret, isa isa, int n_threads, bool is_float, shoal_err *err);
/* Probes reading, unless the last working set was about as large. */
int bench_limits_read(bench_limits *l, double set_bytes, shoal_err *err);

#endif
