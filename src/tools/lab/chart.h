/* chart.h: a run of the lab as one SVG: time to the right; lanes of nodes, of faults and of clients.
 *
 *     chart_write("out/timeline.svg", record, &summary, err);
 *
 * Needs nothing to be looked at but a browser: no scripts, no fonts of its own, no links. Hovering a request
 * or a fault tells what it was. */
#ifndef LAB_CHART_H
#define LAB_CHART_H

#include "lab/report.h"

int chart_write(const char *path, const lab_record *r, const lab_summary *s, shoal_err *err);

#endif
