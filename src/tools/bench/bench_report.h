/* bench_report.h: measured rows beside what the machine could do, as a table or as JSON, row by row as they
 * come.
 *
 *     bench_report r;
 *     bench_report_begin(&r, &about, &limits, json);
 *     bench_report_row(&r, &(bench_row){.test = "pp128", .n_tokens = 128, .cost = c, .set_bytes = b}, ms, n,
 *                      &err);
 *     bench_report_end(&r);
 *
 * The limits are the caller's (bench_limits.h). Several numbers of threads are compared by bench_scale.h, whose
 * output begins in the same way. */
#ifndef BENCH_BENCH_REPORT_H
#define BENCH_BENCH_REPORT_H

#include "base/buf.h"
#include "base/err.h"
#include "bench/bench_limits.h"
#include "bench/bench_list.h"
#include "bench/bench_work.h"

/* The commit this was built from ("1a2b3c4", with "-modified" behind it where files differed; "unknown"
 * without git), made by cmake/commit.cmake. */
extern const char bench_commit[];

typedef struct bench_about { /* strings are the caller's */
    isa isa;
    bench_list threads;                       /* one, or those that are compared */
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
    bench_limits *limits; /* of these threads; the caller's */
    bool json;
    size_t n_rows;
} bench_report;

/* Prints who measures what where. */
void bench_report_begin(bench_report *r, const bench_about *about, bench_limits *limits, bool json);
/* One row of n runs of ms[n] each, which are sorted; probes when the working set is another one. */
int bench_report_row(bench_report *r, const bench_row *row, double *ms, size_t n, shoal_err *err);
void bench_report_end(bench_report *r);

/* ---- what both kinds of output share */

/* Three lines: program and threads, machine, model. */
void bench_about_print(const bench_about *a);
/* The members "shoal" to "model", without the brackets around them. */
void bench_about_put_json(const bench_about *a, buf *out);
/* Sorts ms[n]. */
double bench_median(double *ms, size_t n);

#endif
