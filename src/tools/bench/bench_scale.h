/* bench_scale.h: how a model's speed follows the number of threads: a table or JSON, test by test as they come,
 * and a chart of all of them.
 *
 *     bench_scale s;
 *     bench_scale_begin(&s, &about, json);           about.threads: the fewest first
 *     bench_scale_row(&s, &row, points, &err);       a point for each of them
 *     bench_scale_end(&s);
 *     bench_scale_put_svg(&s, &out);
 *     bench_scale_done(&s);
 *
 * The speed-up is against the fewest threads that were measured, usually one. The threads of a row are those
 * that the engine was offered: it may run a step on fewer (infer/step_cost.h), and `cores` says how many were
 * at work. */
#ifndef BENCH_BENCH_SCALE_H
#define BENCH_BENCH_SCALE_H

#include "bench/bench_report.h"

typedef struct bench_scale_point {
    int n_threads;
    double ms, fastest_ms, slowest_ms; /* of one run: the median, and both ends */
    size_t n_runs;
    double cores, cpu_ms;          /* CPU time over wall time; CPU time of one run */
    double adds_limit, read_limit; /* multiply-adds/s and bytes/s of so many threads */
    /* What bench_scale_compare finds out. Shares and efficiency: 1 is all. */
    double tokens_per_s, speed_up, efficiency, cpu_s_per_token, share_of_reading, share_of_multiply_adds;
} bench_scale_point;

/* n points of one test, the fewest threads first. */
void bench_scale_compare(const bench_row *row, bench_scale_point *p, size_t n);

typedef struct bench_scale_test {
    char name[48];
    bench_scale_point p[BENCH_LIST_MAX];
} bench_scale_test;

typedef struct bench_scale {
    bench_about about; /* strings are the caller's */
    bool json;
    bench_scale_test *tests;
    size_t n_tests;
} bench_scale;

/* Prints who compares what where. */
void bench_scale_begin(bench_scale *s, const bench_about *about, bool json);
/* Compares p[about.threads.n], prints and keeps them. The error is memory. */
int bench_scale_row(bench_scale *s, const bench_row *row, bench_scale_point *p, shoal_err *err);
void bench_scale_end(const bench_scale *s);
/* Two panels over the threads: speed-up and efficiency, with the ideal, and the cores of this machine where
 * there are fewer. Light or dark as the reader has it. */
void bench_scale_put_svg(const bench_scale *s, int n_cores, buf *out);
void bench_scale_done(bench_scale *s);

#endif
