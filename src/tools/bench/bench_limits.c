/* bench_limits.c: see bench_limits.h. */
#include "bench/bench_limits.h"

/* Past this no cache holds any of it, here or anywhere. */
#define SET_MOST  (1024.0 * 1024 * 1024)
#define PROBE_S   0.3
#define SET_ALIKE 1.1 /* working sets within a tenth of each other share a probe */

int bench_limits_begin(bench_limits *ret, isa set, int n_threads, bool is_float, shoal_err *err)
{
    measure_peaks p;
    int rc = measure_multiply(&p, set, n_threads, 2 * PROBE_S, err);
    if (rc != 0) return rc;
    *ret =
        (bench_limits){.isa = set, .n_threads = n_threads, .adds_per_s = (is_float ? p.f32 : p.int8) * 1e9};
    return 0;
}

int bench_limits_read(bench_limits *l, double set, shoal_err *err)
{
    double gb = 0;
    if (set > SET_MOST) set = SET_MOST;
    if (l->set_bytes > 0 && set < l->set_bytes * SET_ALIKE && set > l->set_bytes / SET_ALIKE) return 0;
    int rc = measure_read(&gb, l->isa, (size_t)set, l->n_threads, PROBE_S, err);
    if (rc != 0) return rc;
    l->set_bytes = set;
    l->read_per_s = gb * 1e9;
    return 0;
}
