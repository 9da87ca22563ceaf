/* turn.h: having the cores for a step, and lending them to other workers' steps meanwhile (compute.h:
 * arbiter).
 *
 * A step asks for the cores, and gives them back when it is over. One that lasts looks at each of its
 * barriers whether another worker waits, and after some milliseconds lets it have a step of its own, so that
 * nobody waits for a whole prompt of a larger model. That time is not the step's.
 *
 *     turn t = {.arbiter = a};                      a NULL: the machine is ours
 *     turn_watch(&t, team);                         once for each team that runs steps
 *     turn_begin(&t, deadline_ns, team_size(team));
 *     team_run(team, ...);
 *     took_ns = turn_end(&t);
 *
 * The thread that owns the teams. */
#ifndef INFER_TURN_H
#define INFER_TURN_H

#include <stdint.h>

#include "compute/compute.h"

typedef struct turn {
    arbiter *arbiter;
    uint64_t deadline_ns;
    int n_cores;
    uint64_t since_ns; /* the cores are ours since then; 0: they are not */
    uint64_t start_ns, away_ns;
} turn;

/* Steps of this team look at their barriers; t must outlive it. */
void turn_watch(turn *t, team *of);
/* Returns when it began: when so many cores were ours. */
uint64_t turn_begin(turn *t, uint64_t deadline_ns, int n_cores);
/* Returns how long it took, less what was lent. */
uint64_t turn_end(turn *t);
/* How many workers want cores now, this one included. */
int turn_crowd(const turn *t);

#endif
