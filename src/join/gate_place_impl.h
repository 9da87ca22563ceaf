/* gate_place_impl.h: what gate_place.c and gate_stage.c share. */
#ifndef JOIN_GATE_PLACE_IMPL_H
#define JOIN_GATE_PLACE_IMPL_H

#include "base/arena.h"
#include "join/gate_files.h"
#include "join/gate_impl.h"
#include "join/gate_orders.h"

/* The bytes that a machine was told last; NULL: none. */
typedef struct place_told {
    uint8_t *bytes;
    size_t n;
} place_told;

/* A machine that is attached, or was until lately. */
typedef struct place_node {
    char name[IDENTITY_NAME_SIZE];
    node *facts;
    char at[REACH_ADDRESS_SIZE]; /* of its relay; "": none, or this machine */
    bool here, attached, drains, removed;
    uint64_t gone_ns;
    place_told assigned, holders;
} place_node;

typedef struct place_seat {
    size_t model;
    char node[IDENTITY_NAME_SIZE];
    bool standby;
    bool held; /* not planned any more, but needed until others answer */
    /* Of a stage: its layers (end 0: it is whole), whether the first stage that runs uses it, and where the
     * machine's relay is, "" for this one. */
    size_t first, end;
    bool in_use;
    char at[REACH_ADDRESS_SIZE];
} place_seat;

struct gate_placer {
    gate *g;
    gate_place_options o;
    gate_files *files;
    place_node *nodes;
    size_t n_nodes, cap_nodes;
    place_seat *seats;
    size_t n_seats;
    uv_timer_t soon;
    bool changed;
    uint64_t planned_ns, opened_ns;
    size_t n_missing; /* as last said */
};

place_node *gate_place_find(const gate_placer *p, const char *name);

/* ---- gate_stage.c: models whose layers are dealt out ----------------------------------------------- */

/* Which of the planned stages are used from now on, and which of the old ones are still: a first stage is
 * told of others only when all of these are loaded. seats[n] are the planned ones, with room for the old
 * ones, of which it adds those that are held; returns how many there are then. */
size_t gate_stage_keep(const gate_placer *p, place_seat *seats, size_t n);
/* The worker of that seat; false: it is not to run yet. `strings` owns what is new in it. */
bool gate_stage_spec(const gate_placer *p, const place_seat *s, arena *strings, worker_spec *ret);
/* Is it a stage on that machine? */
bool gate_stage_is_on(const place_seat *s, const char *node);
bool gate_stage_any_on(const gate_placer *p, size_t model, const char *node);
/* The worker of that seat among a machine's orders, if it is to run and its file may travel. False: no
 * memory. */
bool gate_stage_order(const gate_placer *p, const place_seat *s, gate_orders *to);
/* The layers that a report is about; false: it is of no stage of this model. */
bool gate_stage_reported(const gate_placer *p, size_t model, const Shoal__V1__ReplicaReport *r,
                         size_t *ret_first, size_t *ret_end);
/* Machines may still be on their way back: nothing is dealt out yet. */
bool gate_stage_waits(const gate_placer *p, size_t model);

#endif
