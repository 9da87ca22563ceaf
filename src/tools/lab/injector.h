/* injector.h: carries out the faults of a scenario, and undoes them when their time is over.
 *
 *     injector *x;
 *     injector_new(&x, scenario, processes, nodes, relay, record, err);
 *     injector_begin(x, &event, at_ms, err);     // an event of the schedule that begins
 *     injector_end(x, &event, at_ms, err);       // and the one that ends it
 *
 * A fault that finds nothing to affect (its worker is still being started) is noted as such. Same thread as
 * the processes. */
#ifndef LAB_INJECTOR_H
#define LAB_INJECTOR_H

#include "lab/processes.h"
#include "lab/record.h"
#include "lab/schedule.h"

typedef struct injector injector;

/* Everything is borrowed. record->injections[n_injections] must have room for every injection of the schedule. Sets
 * the links as the scenario says. */
int injector_new(injector **ret, const lab_scenario *s, processes *c, host *nodes, relay *links,
                 lab_record *record, shoal_err *err);

/* An error means that the lab itself is broken: a device or memory is missing. What is said of the fault is
 * in record->injections[e->injection].what. */
int injector_begin(injector *x, const lab_event *e, double at_ms, shoal_err *err);
int injector_end(injector *x, const lab_event *e, double at_ms, shoal_err *err);

#endif
