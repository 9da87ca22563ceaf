/* calibrate_report.c: tables and JSON of calibrations; see calibrate_report.h. */
#include "eval/calibrate_report.h"

#include <string.h>

#include "json/json.h"
#include "json/json_put.h"

enum { N_ROWS = 10 };

static double alone(const calibrate_member *m, size_t n)
{
    size_t n_right = 0;
    for (size_t i = 0; i < n; i++) n_right += m->right[i];
    return n ? (double)n_right / (double)n : 0;
}

static void calibrate_report_put_row(const calibrate_report *r, size_t i, double threshold, buf *out)
{
    const calibrate_member *m = &r->members[i];
    confidence_risk k = calibrate_risk(r->members, i, r->n, threshold);
    buf_printf(out, "%9.3f %11.1f %7.1f %12.1f%s\n", threshold, 100 * k.coverage, 100 * k.risk,
               100 * calibrate_accuracy(r->members, i, r->n, threshold),
               threshold == m->cal.min_confidence ? "  <" : "");
}

/* The picked threshold stands among the others, in its place. */
static void calibrate_report_put_rows(const calibrate_report *r, size_t i, buf *out)
{
    double picked = r->members[i].cal.min_confidence;
    bool told = false;
    for (int k = 0; k < N_ROWS; k++) {
        double t = (double)k / N_ROWS;
        if (!told && picked <= t) calibrate_report_put_row(r, i, picked, out);
        told = told || picked <= t;
        if (t != picked) calibrate_report_put_row(r, i, t, out);
    }
    if (!told) calibrate_report_put_row(r, i, picked, out);
}

static void put_member(const calibrate_report *r, size_t i, buf *out)
{
    const calibrate_member *m = &r->members[i];
    buf_printf(out, "%s: alone right in %.1f %% of %zu cases; calibration error %.3f, after the map %.3f\n\n",
               m->model, 100 * alone(m, r->n), r->n, m->error_said, m->error_is);
    buf_printf(out, "%9s %11s %7s %12s\n", "THRESHOLD", "COVERAGE %", "RISK %", "CASCADE %");
    calibrate_report_put_rows(r, i, out);
    buf_putc(out, '\n');
}

void calibrate_put_table(const calibrate_report *r, buf *out)
{
    size_t last = r->n_members - 1;
    for (size_t i = 0; i < last; i++) put_member(r, i, out);
    buf_printf(out, "%s: alone right in %.1f %%\n", r->members[last].model,
               100 * alone(&r->members[last], r->n));
    buf_printf(out, "%s: right in %.1f %%\n", r->ensemble,
               100 * calibrate_accuracy(r->members, 0, r->n, r->members[0].cal.min_confidence));
}

static void put_member_json(const calibrate_report *r, size_t i, buf *out)
{
    const calibrate_member *m = &r->members[i];
    buf_printf(out, "%s{\"model\":", i ? "," : "");
    json_put_string(out, m->model, strlen(m->model));
    buf_printf(out, ",\"accuracy\":%.6f", alone(m, r->n));
    if (i + 1 < r->n_members) {
        confidence_risk k = calibrate_risk(r->members, i, r->n, m->cal.min_confidence);
        buf_printf(out, ",\"min_confidence\":%.6g,\"coverage\":%.6f,\"risk\":%.6f", m->cal.min_confidence,
                   k.coverage, k.risk);
        buf_printf(out, ",\"ece_before\":%.6f,\"ece_after\":%.6f", m->error_said, m->error_is);
    }
    buf_putc(out, '}');
}

void calibrate_put_json(const calibrate_report *r, buf *out)
{
    buf_putc(out, '{');
    json_put_text(out, "ensemble", r->ensemble);
    buf_printf(out, ",\"n\":%zu,\"accuracy\":%.6f,\"members\":[", r->n,
               calibrate_accuracy(r->members, 0, r->n, r->members[0].cal.min_confidence));
    for (size_t i = 0; i < r->n_members; i++) put_member_json(r, i, out);
    buf_puts(out, "]}\n");
}
