/* core_lease.h: having the cores for a step, and lending them to other workers' steps meanwhile (compute.h:
 * arbiter).
 *
 * A step asks for the cores, and gives them back when it is over. One that lasts looks at each of its
 * barriers whether another worker waits, and after some milliseconds lets it have a step of its own, so that
 * nobody waits for a whole prompt of a larger model. That time is not the step's.
 *
 *     core_lease t = {.arbiter = a};                a NULL: the machine is ours
 *     core_lease_watch(&t, team);                         once for each team that runs steps
 *     core_lease_begin(&t, deadline_ns, team_size(team));
 *     team_run(team, ...);
 *     took_ns = core_lease_end(&t);
 *
 * The thread that owns the teams. */
#ifndef INFER_CORE_LEASE_H
#define INFER_CORE_LEASE_H

#include <stdint.h>

#include "compute/compute.h"

typedef struct core_lease {
    arbiter *arbiter;
    uint64_t deadline_ns;
    int n_cores;
    uint64_t since_ns; /* the cores are ours since then; 0: they are not */
    uint64_t start_ns, away_ns;
} core_lease;

/* Steps of this team look at their barriers; t must outlive it. */
void core_lease_watch(core_lease *t, team *of);
/* Returns when it began: when so many cores were ours. */
uint64_t core_lease_begin(core_lease *t, uint64_t deadline_ns, int n_cores);
/* Returns how long it took, less what was lent. */
uint64_t core_lease_end(core_lease *t);
/* How many workers want cores now, this one included. */
int core_lease_crowd(const core_lease *t);

#endif
