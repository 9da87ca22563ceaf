/* gate_orders.h: what one machine is to serve, as a message.
 *
 *     gate_orders o;
 *     if (gate_orders_open(&o, n_models) && gate_orders_add(&o, spec, freight, 2, 1, NULL)) send(&o.message);
 *     gate_orders_close(&o); */
#ifndef CONTROL_GATE_ORDERS_H
#define CONTROL_GATE_ORDERS_H

#include "base/arena.h"
#include "control/gate_files.h"
#include "shoal/v1/cluster.pb-c.h"

typedef struct gate_orders {
    Shoal__V1__Assignments message;
    arena *memory;
} gate_orders;

/* Room for so many models. False, as below: no memory; close it then too. */
bool gate_orders_open(gate_orders *o, size_t n_models);
/* Freight NULL: for a gateway, which has the file and the options. Borrows spec's and the freight's strings,
 * and those of the machines that may call a stage, [2], NULL behind the last; may be NULL for a model that is
 * whole. */
bool gate_orders_add(gate_orders *o, const worker_spec *s, const gate_freight *t, unsigned n_replicas,
                     unsigned n_standby, const char *const *first_nodes);
void gate_orders_close(gate_orders *o);

#endif
