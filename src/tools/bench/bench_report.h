/* bench_report.h: measured rows beside what the machine could do, as a table or as JSON, row by row as they
 * come.
 *
 *     bench_report r;
 *     bench_report_begin(&r, &about, json, &err);
 *     bench_report_row(&r, &(bench_row){.test = "pp128", .n_tokens = 128, .cost = c, .set_bytes = b}, ms, n,
 *                      &err);
 *     bench_report_end(&r);
 *
 * The machine's limits are probed here: multiply-adds once, reading for each size of working set. */
#ifndef BENCH_BENCH_REPORT_H
#define BENCH_BENCH_REPORT_H

#include "base/err.h"
#include "bench/bench_work.h"
#include "compute/measure.h"

/* The commit this was built from ("1a2b3c4", with "-modified" behind it where files differed; "unknown"
 * without git), made by cmake/commit.cmake. */
extern const char bench_commit[];

typedef struct bench_about { /* strings are the caller's */
    isa isa;
    int n_threads;
    bool is_float;                            /* the multiply-adds of floats are the limit */
    const char *model, *arch, *type, *digest; /* digest: hex */
    double model_bytes, load_ms;
} bench_about;

typedef struct bench_row {
    const char *test;
    double n_tokens;  /* of one run: tokens/s are this over its time */
    double sound_s;   /* of sound, which are shown over the time instead; 0: it is no sound */
    bench_cost cost;  /* of one run */
    double set_bytes; /* what it reads again and again: the working set of the bandwidth it is held against */
} bench_row;

typedef struct bench_report {
    bench_about about;
    bool json;
    size_t n_rows;
    double adds_per_s, set_bytes, read_per_s; /* limits; read_per_s of the working set probed last */
} bench_report;

/* Probes, and prints who measures what where. */
int bench_report_begin(bench_report *r, const bench_about *about, bool json, shoal_err *err);
/* One row of n runs of ms[n] each, which are sorted; probes when the working set is another one. */
int bench_report_row(bench_report *r, const bench_row *row, double *ms, size_t n, shoal_err *err);
void bench_report_end(bench_report *r);

#endif
