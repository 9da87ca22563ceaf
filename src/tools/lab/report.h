/* report.h: what a run of the lab amounts to, as numbers, lines and files.
 *
 *     lab_summary sum;
 *     report_sum(&sum, record, err);
 *     report_write("out", record, &sum, err);      // requests.jsonl, faults.jsonl, report.json, report.txt
 *     report_print_line(stdout, &sum);             // the fixed form: one line of JSON
 *
 * Percentiles are by nearest rank. */
#ifndef LAB_REPORT_H
#define LAB_REPORT_H

#include <stdio.h>

#include "lab/record.h"

typedef struct lab_summary {
    size_t n_requests, n_answered, n_lost, n_different, n_retried, n_resumed;
    size_t n_injections, n_hit;
    double availability;                       /* answered / requests; 1 when nothing was asked */
    double gap_p50_ms, gap_p99_ms, gap_max_ms; /* over faults: see record_find_gaps; -1: no stream felt one */
    double p50_ms, p99_ms, max_ms;             /* of answered requests; -1: there are none */
    double first_p50_ms, first_p99_ms;         /* to the first byte, of answered streams */
    double silence_p50_ms, silence_p99_ms, silence_max_ms; /* the longest gap within each answered stream */
} lab_summary;

int report_sum(lab_summary *ret, const lab_record *r, shoal_err *err);

/* {"requests":…,"answered":…,"lost":…,"different":…,"gap_p50_ms":…,"gap_p99_ms":…,"availability":…}; a gap is
 * null when no answered stream was under way at a fault. */
void report_print_line(FILE *out, const lab_summary *s);

/* What a person reads: numbers, each fault with its gap, the first answers that were lost or differ. */
void report_print(FILE *out, const lab_record *r, const lab_summary *s);

/* Into an existing folder. */
int report_write(const char *folder, const lab_record *r, const lab_summary *s, shoal_err *err);

#endif
