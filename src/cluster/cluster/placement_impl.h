/* placement_impl.h: what placement.c and placement_stages.c share: the table of a pass. */
#ifndef CLUSTER_PLACEMENT_IMPL_H
#define CLUSTER_PLACEMENT_IMPL_H

#include "cluster/placement.h"

typedef struct assignment {
    placement_assignment s;
    bool out; /* left */
} assignment;

typedef struct placement_state {
    const node *nodes;
    size_t n_nodes;
    const placement_model *models;
    size_t n_models;
    size_t *site;      /* [n_nodes]: the first node of the same site */
    size_t *order;     /* [n_models]: the largest first */
    uint64_t *taken;   /* [n_nodes] bytes */
    double *work;      /* [n_nodes] bytes that serving reads */
    unsigned *on_node; /* [n_nodes] of the model in hand, */
    unsigned *on_site; /* and of it at the site */
    assignment *assignments;
    size_t n_assignments, cap;
    placement_leaver *leavers;
    size_t n_leavers, leavers_cap;
    bool failed, changed;
} placement_state;

/* What the node reads a second, in some unit that all nodes share; busy ones are slower. */
double placement_speed(const node *n);
bool placement_runs_low(const node *n);
/* placement_may of a part of the model that takes so many bytes. */
placement_no placement_may_part(const placement_model *m, const node *n, uint64_t taken_bytes, uint64_t bytes,
                                bool stays);
uint64_t placement_assignment_bytes(const placement_state *d, const placement_assignment *s);
void placement_assign(placement_state *d, const placement_assignment *s);
void placement_leave(placement_state *d, assignment *x, placement_why why);

/* placement_stages.c: assignments of a model that is cut. False: it is in one piece, and to be placed like
 * others (shards: auto). */
bool placement_deal(placement_state *d, size_t model);
/* Do its stages, if it has any, cover all layers? */
bool placement_chain_is_whole(const placement_state *d, size_t model);

#endif
