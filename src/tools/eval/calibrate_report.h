/* calibrate_report.h: what a calibration found, as a table and as a picture. */
#ifndef EVAL_CALIBRATE_REPORT_H
#define EVAL_CALIBRATE_REPORT_H

#include "eval/calibrate_fit.h"

typedef struct calibrate_report {
    const char *ensemble;
    const calibrate_member *members;
    size_t n_members, n; /* n: cases */
} calibrate_report;

/* Risk and coverage of every member but the last, at about ten thresholds and at the one that was picked. */
void calibrate_put_table(const calibrate_report *r, buf *out);
/* {"ensemble","n","accuracy","members":[{"model","accuracy", "min_confidence","coverage","risk","ece_before",
 * "ece_after"}]}; the last member has the first two alone. */
void calibrate_put_json(const calibrate_report *r, buf *out);
/* For each member but the last: what it says against how often it is right, and risk over coverage. */
void calibrate_put_svg(const calibrate_report *r, buf *out);

#endif
