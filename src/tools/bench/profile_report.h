/* profile_report.h: what a profile (compute/profile.h) found, as tables, JSON or a chart. Pure.
 *
 *     profile_snap s;
 *     profile_snap_take(&s, p, err);                 // after a run; the profile may be reset
 *     profile_table t;
 *     profile_table_make(&t, &s, PROFILE_DECODE, err);   // one row a kernel, the longest first
 *     ...
 *     profile_table_done(&t);
 *     profile_snap_done(&s); */
#ifndef BENCH_PROFILE_REPORT_H
#define BENCH_PROFILE_REPORT_H

#include "base/buf.h"
#include "bench/bench_limits.h"
#include "compute/profile.h"

typedef struct profile_snap { /* a copy */
    profile_entry *v;         /* [n] */
    size_t n;
    profile_total totals[PROFILE_N_PHASES];
} profile_snap;

int profile_snap_take(profile_snap *ret, const profile *p, shoal_err *err);
void profile_snap_done(profile_snap *s);

/* One kernel over all layers: operations of the same kind, of the same matrices by shape and type; or all operations of
 * a layer. */
typedef struct profile_row {
    profile_op op;
    int layer; /* of layers; else PROFILE_NO_LAYER */
    char name[64];
    dtype type;
    size_t rows, cols, n_calls;
    double ms, bytes, multiply_adds;
    double op_ms[PROFILE_N_OPS]; /* of a layer: its parts */
} profile_row;

typedef struct profile_table {
    profile_phase phase;
    profile_total total;
    double ms, bytes, multiply_adds; /* of all rows */
    profile_row *kernels, *layers;   /* kernels: longest first; layers: in order, what is around them last */
    size_t n_kernels, n_layers;
} profile_table;

int profile_table_make(profile_table *ret, const profile_snap *s, profile_phase phase, shoal_err *err);
void profile_table_done(profile_table *t);

/* "prefill", "decode", "encode" */
const char *profile_phase_word(profile_phase phase);
/* limits: of reading and multiplying, both probed. */
void profile_table_put(const profile_table *t, const bench_limits *limits, bool layers, buf *out);
void profile_table_put_json(const profile_table *t, const bench_limits *limits, buf *out);
/* All phases that have steps, in one chart. */
void profile_put_svg(const profile_table *t, size_t n, const char *title, const char *below, buf *out);

#endif
