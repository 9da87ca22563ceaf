/* picture.h: a run of the lab as one SVG: time to the right; lanes of nodes, of faults and of clients.
 *
 *     picture_write("out/timeline.svg", record, &summary, err);
 *
 * Needs nothing to be looked at but a browser: no scripts, no fonts of its own, no links. Hovering a request
 * or a fault tells what it was. */
#ifndef LAB_PICTURE_H
#define LAB_PICTURE_H

#include "lab/report.h"

int picture_write(const char *path, const lab_record *r, const lab_summary *s, shoal_err *err);

#endif
