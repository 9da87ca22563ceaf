/* load.h: what this gateway knows of a replica: the calls it has there, and how long such calls take.
 *
 * Nobody else knows it, and nobody else needs to: each gateway counts its own calls. It is the third of three
 * kinds of knowledge: the node is what an agent says of a machine (node.h), the replica what a worker says of
 * itself (replica.h), and both may come from afar and be late; the load is true at once.
 *
 *     load_begin(&r->load, n_tokens, now);           // a call goes there
 *     load_moved(&r->load, n_tokens, now);           // it gave something back: its input is gone through
 *     load_leave(&r->load, 0, now);                  // it ended
 */
#ifndef CLUSTER_LOAD_H
#define CLUSTER_LOAD_H

#include <stdint.h>

#include "time/linear_cost.h"

typedef struct load {
    unsigned n_in_flight, n_tokens_in_flight; /* calls, and their input that nothing has come back for */
    uint64_t sent_ns, moved_ns; /* a call last began there; it last gave something back, or was idle */
    uint64_t n_spilled;         /* calls that came here from another site (router.h) */
    linear_cost cost;           /* of unary calls, by their tokens */
} load;

/* A call with an input of n_tokens begins. */
void load_begin(load *l, unsigned n_tokens, uint64_t now_ns);
/* The replica gave something back, and has gone through n_tokens of what it was sent. */
void load_moved(load *l, unsigned n_tokens, uint64_t now_ns);
/* A call ends, n_tokens of whose input nothing came back for. */
void load_leave(load *l, unsigned n_tokens, uint64_t now_ns);
/* Milliseconds it has spent on what is in flight; 0 when it is idle. */
double load_worked_ms(const load *l, uint64_t now_ns);

#endif
