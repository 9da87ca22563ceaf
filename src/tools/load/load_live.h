/* load_live.h: what a person sees while a load runs: a few lines that are drawn again, or a line now and then. Pure.
 *
 *     load_live_put(&out, &live, record, seconds, columns, true); */
#ifndef LOAD_LOAD_LIVE_H
#define LOAD_LOAD_LIVE_H

#include "base/buf.h"
#include "load/load_record.h"

typedef struct load_live {
    const char *name; /* of the run: "40/s" */
    double whole_s;   /* how long it will take; 0: not known */
    size_t n_most;    /* how many requests it has; 0: not known */
} load_live;

/* Lines, each cut to `columns` and ended. The record must be locked. */
void load_live_put(buf *out, const load_live *l, const load_record *r, double seconds, size_t columns);
/* One line of the same. */
void load_live_put_line(buf *out, const load_live *l, const load_record *r, double seconds);

#endif
