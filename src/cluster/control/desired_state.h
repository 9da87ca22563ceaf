/* desired_state.h: what one machine is to serve, as a message.
 *
 *     desired_state o;
 *     if (desired_state_open(&o, n_models) && desired_state_add(&o, spec, bundle, 2, 1, NULL))
 *         send(&o.message);
 *     desired_state_close(&o); */
#ifndef CONTROL_DESIRED_STATE_H
#define CONTROL_DESIRED_STATE_H

#include "base/arena.h"
#include "control/bundles.h"
#include "shoal/v1/cluster.pb-c.h"

typedef struct desired_state {
    Shoal__V1__Assignments message;
    arena *memory;
} desired_state;

/* Room for so many models. False, as below: no memory; close it then too. */
bool desired_state_open(desired_state *o, size_t n_models);
/* Bundle NULL: for a gateway, which has the file and the options. Borrows spec's and the bundle's strings,
 * and those of the machines that may call a stage, [2], NULL behind the last; may be NULL for a model that is
 * whole. */
bool desired_state_add(desired_state *o, const worker_spec *s, const bundle *t, unsigned n_replicas,
                       unsigned n_standby, const char *const *first_nodes);
void desired_state_close(desired_state *o);

#endif
