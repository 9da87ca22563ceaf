/* energy.h: what a token costs on a replica, in joules, of what its worker says of itself.
 *
 * A worker that can read its machine's energy counters says how many joules were its own; one that cannot
 * says how long it had a core, and the gateway knows what a busy core takes, if the configuration says so.
 * Either is divided by the tokens that it has read and made since it began; what it did before the first
 * thousand is no measure. Loop thread. */
#ifndef CLUSTER_ENERGY_H
#define CLUSTER_ENERGY_H

#include "cluster/registry.h"

enum { CLUSTER_ENERGY_TOKENS = 1000 };

energy cluster_energy_of(const registry *g, const replica *r);
/* The mean over a model's replicas, by their tokens; `by` is the worst of them. */
energy cluster_energy_of_set(const registry *g, const replica_set *set);

#endif
