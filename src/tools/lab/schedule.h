/* schedule.h: when each fault of a scenario begins and ends. Pure: the same scenario gives the same table.
 *
 *     lab_event *e;
 *     size_t n;
 *     if (schedule_make(&e, &n, s, err)) ...   // e[0].at_s <= e[1].at_s <= ...
 *     free(e);
 *
 * Every fault that begins within `seconds` is in it with its end, which may come after them: what was frozen
 * or cut is whole again when the run is over. */
#ifndef LAB_SCHEDULE_H
#define LAB_SCHEDULE_H

#include "lab/scenario.h"

typedef struct lab_event {
    double at_s;  /* from the start of the load */
    size_t fault; /* its place in the scenario */
    size_t
        injection; /* which of the injections of the whole run it begins or ends, from 0 in order of time */
    bool begins;
} lab_event;

/* *ret is the caller's to free(); at least an empty one. A fault without for_s has no end. */
int schedule_make(lab_event **ret, size_t *ret_n, const lab_scenario *s, shoal_err *err);

/* The draw for an injection, from 0 to n - 1; n > 0. */
size_t schedule_draw(const lab_scenario *s, size_t injection, unsigned what, size_t n);

#endif
