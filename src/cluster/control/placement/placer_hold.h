/* placer_hold.h: which assignments of the last plan stay until those of the next one answer.
 *
 * A replica that ends for the sake of others is held until its model's other replicas answer, so that moving
 * costs no answer; where there is nowhere to go, it is held until there is. What answers, and which machine
 * may keep a replica, the caller says.
 *
 *     n = placer_hold(next, n_planned, n, was, n_was, &(placer_hold_rules){p, answers, may_stay});
 *
 * Pure. */
#ifndef CONTROL_PLACEMENT_PLACER_HOLD_H
#define CONTROL_PLACEMENT_PLACER_HOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "cluster/connector.h"
#include "trust/identity.h"

/* A model, or stage of one, on a machine. */
typedef struct placer_assignment {
    size_t model;
    char node[IDENTITY_NAME_SIZE];
    bool standby;
    bool held; /* not planned any more, but needed until others answer */
    /* Of a stage: its layers (end 0: it is whole), whether the first stage that runs uses it, and where the
     * machine's relay is, "" for this one. */
    size_t first, end;
    bool in_use;
    char at[CONNECTOR_ADDRESS_SIZE];
} placer_assignment;

typedef struct placer_hold_rules {
    const void *user;
    /* Does the model answer there? */
    bool (*answers)(const void *user, const placer_assignment *a);
    /* Is the machine there, and may it keep the model? */
    bool (*may_stay)(const void *user, const placer_assignment *a);
} placer_hold_rules;

/* next[n] begins with the n_planned ones that are planned, and has room for n_was more. Adds those of
 * was[n_was] that are held; returns how many there are then. Stages are not looked at (placer_stage_keep). */
size_t placer_hold(placer_assignment *next, size_t n_planned, size_t n, const placer_assignment *was,
                   size_t n_was, const placer_hold_rules *r);

#endif
