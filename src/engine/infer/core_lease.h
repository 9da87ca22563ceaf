/* core_lease.h: having the cores for a step, and lending them to other workers' steps meanwhile (compute.h:
 * arbiter).
 *
 * A step asks for the cores, and gives them back when it is over. One that lasts looks at each of its
 * barriers whether another worker waits, and after some milliseconds lets it have a step of its own, so that
 * nobody waits for a whole prompt of a larger model. That time is not the step's. On a machine with several domains of
 * cores (base/core_domains.h) the team moves to the one where its cores are.
 *
 *     core_lease t = {.arbiter = a};                a NULL: the machine is ours
 *     core_lease_watch(&t, team);                         the team that runs the steps
 *     core_lease_begin(&t, deadline_ns, team_size(team));
 *     team_run(team, ...);
 *     took_ns = core_lease_end(&t);
 *
 * The thread that owns the teams. */
#ifndef INFER_CORE_LEASE_H
#define INFER_CORE_LEASE_H

#include <stdint.h>

#include "compute/compute.h"
#include "infer/step_cost.h"

typedef struct core_lease {
    arbiter *arbiter;
    team *team;             /* core_lease_watch */
    const cpu_set_t *where; /* it is placed; NULL: wherever the system puts it */
    uint64_t deadline_ns;
    int n_cores;
    uint64_t since_ns; /* the cores are ours since then; 0: they are not */
    uint64_t start_ns, away_ns;
    int n_free;          /* cores, when they were counted last; 0: never */
    uint64_t counted_ns; /* that was at this time */
    uint64_t cpu_ns;     /* of the last step: the owner's time on a core, times the members */
} core_lease;

/* Steps of this team look at their barriers, and it goes where the cores are; t must outlive it. */
void core_lease_watch(core_lease *t, team *of);
/* Returns when it began: when so many cores were ours. */
uint64_t core_lease_begin(core_lease *t, uint64_t deadline_ns, int n_cores);
/* Returns how long it took, less what was lent. */
uint64_t core_lease_end(core_lease *t);
/* How many members of the team should run the next step (step_cost.h), as busy as the machine is. */
int core_lease_members(const core_lease *t, step_cost *p, step_kind k, size_t n_tokens);

#endif
