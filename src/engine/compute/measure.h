/* measure.h: how fast this machine runs the kernels, for `shoal bench` and for whoever tunes them.
 *
 * Each call makes a team and a random matrix, runs it for about `seconds` of wall time, and returns
 * the median of its rounds. The weights of a decode product pass once a token, so it is limited by
 * how fast they can be read (GB/s of packed weights); a prefill product uses them for many tokens and
 * is limited by arithmetic (GMAC/s). */
#ifndef COMPUTE_MEASURE_H
#define COMPUTE_MEASURE_H

#include "compute/compute.h"

typedef struct measure_spec {
    isa isa;
    dtype type;
    int n_threads;
    size_t rows, cols; /* 0: 1024 × 1024, or as many columns as are whole blocks */
    size_t n_tokens;   /* 0: 1, a decode step */
    double seconds;    /* 0: 0.2 */
} measure_spec;

typedef struct measure_result {
    double seconds;    /* of one product, activations' quantisation included */
    double gb_per_s;   /* packed weights over seconds */
    double gmac_per_s; /* rows × cols × tokens over seconds */
    double share;      /* of the cores that the team wanted, what it got: 1 when nothing else ran there */
} measure_result;

/* Time one product on a team of its own; errors are team_new's and memory. */
int measure_mul(measure_result *ret, const measure_spec *spec, shoal_err *err);

/* Nanoseconds of an empty team_run, and of one barrier inside it. */
int measure_team(double *ret_run_ns, double *ret_barrier_ns, int n_threads, shoal_err *err);

/* ---- the machine's limits, with nothing of a kernel but its loads or its multiplications ------------ */

/* GB/s at which a team reads `bytes` (rounded up to a page a member) again and again, each member its own
 * part, in huge pages where the system gives them (measure_huge_pages). The best of the rounds: what else ran
 * may have been in the way, and a limit is what the machine can do. SHOAL_ENOMEM when there is no such area.
 */
int measure_read(double *ret_gb_per_s, isa isa, size_t bytes, int n_threads, double seconds, shoal_err *err);
/* Whether the system gives huge pages to those that ask: transparent_hugepage/enabled is not "never". */
bool measure_huge_pages(void);

/* 1e9 multiply-adds/s of a team in registers, with the instructions that the set's kernels use. */
typedef struct measure_peaks {
    double int8, f32;
} measure_peaks;
int measure_multiply(measure_peaks *ret, isa isa, int n_threads, double seconds, shoal_err *err);

#endif
