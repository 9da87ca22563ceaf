/* placer.h: what the files of placement share: placer.c (the plan), placer_stage.c (models whose
 * layers are dealt out), shared_plan.c (plans of a gateway that leads, and of those that follow) and
 * operator_command.c (drain, resume, remove). */
#ifndef CONTROL_PLACEMENT_PLACER_H
#define CONTROL_PLACEMENT_PLACER_H

#include "base/arena.h"
#include "control/bundles.h"
#include "control/control_impl.h"
#include "control/desired_state.h"
#include "control/placement/join_burst.h"
#include "control/placement/placer_hold.h"

enum {
    PLACER_NEWCOMERS_MAX = 16,
    PLACER_ASSIGNMENTS_MAX = 4096,
    PLACER_NODES_MAX = 2 * MEMBER_TABLE_NODES_MAX
};

/* The last message of a kind that was sent of or to a machine, packed; NULL: none. */
typedef struct last_sent {
    uint8_t *bytes;
    size_t n;
} last_sent;

/* A machine that is attached, or was until lately. */
typedef struct placer_node {
    char name[IDENTITY_NAME_SIZE];
    node *facts;
    char at[CONNECTOR_ADDRESS_SIZE]; /* of its relay; "": none, or this machine */
    bool here, attached, drains, removed;
    uint64_t gone_ns;
    last_sent plan; /* a Plan, packed: what it is to serve; no bytes: nobody has said */
    last_sent assigned, holders;
} placer_node;

/* Which replicas may move for balance now: none, those of models that say so, or all. */
typedef enum placer_relief { RELIEF_NONE, RELIEF_MARKED, RELIEF_ALL } placer_relief;

struct placer {
    control *g;
    control_place_options o;
    bundles *bundles;
    placer_node *nodes;
    size_t n_nodes, cap_nodes;
    placer_assignment *assignments;
    size_t n_assignments;
    env_timer *soon;
    bool changed;
    uint64_t planned_ns;
    join_burst burst;         /* of machines that are new here, */
    bool settling;            /* and whether it was on when this was planned */
    size_t n_missing;         /* as last said */
    struct placer_calm *calm; /* [o.n_models], placer_stage.c's */
    placer_relief relief;
    const char *relief_waits; /* for what, as last said (a literal); NULL: it does not wait */
    char newcomers[PLACER_NEWCOMERS_MAX]
                  [IDENTITY_NAME_SIZE]; /* that have enrolled, and not attached so far */
    size_t n_newcomers;
    char group[17]; /* of gateways with the same models; "": this one places alone */
    bool leads;     /* it plans; else it does what another one has planned */
    bool alone;     /* nobody has planned for this machine: it serves what its configuration lists */
    uint64_t opened_ns, elected_ns, synced_ns; /* synced: all of the shared plan is read; 0: not yet */
    uint64_t leads_ns;                         /* when it began to plan, or was opened */
    struct placer_failure *failures;           /* placer_failed.c's; NULL: none yet */
    size_t n_failures;
    struct placer_missing *missing; /* [o.n_models], placer_missing.c's; NULL: not needed yet */
};

/* placer.c */
placer_node *placer_find_node(const placer *p, const char *name);
placer_node *placer_add_node(placer *p, const char *name); /* NULL: out of memory, or there are too many */
bool placer_add_assignment(placer *p,
                           const placer_assignment *s); /* false: out of memory, or there are too many */
/* What an attached machine says that it serves already, as assignments. */
bool placer_adopt(placer *p, const member_entry *e);
void placer_look_around(placer *p, uint64_t now_ns);
bool placer_travels(const placer *p, size_t model);
/* Does that model, or stage of one, answer there? */
bool placer_node_answers(const placer *p, const char *node_name, const char *model);
/* Does it differ from the last one? Then it is kept as that. */
bool placer_is_new(last_sent *last, const ProtobufCMessage *m);

/* placer_stage.c */
/* Which of the planned stages are used from now on, and which of the old ones are still: a first stage is
 * told of others only when all of these are loaded. assignments[n] are the planned ones, with room for the
 * old ones, of which it adds those that are held; returns how many there are then. */
size_t placer_stage_keep(const placer *p, placer_assignment *assignments, size_t n);
/* Is it a stage on that machine? */
bool placer_stage_is_on(const placer_assignment *s, const char *node);
/* The worker of that assignment among a machine's desired state, if it is to run and its file may travel;
 * `bare`: the machine has the file. False: no memory. */
bool placer_stage_order(const placer *p, const placer_assignment *s, bool bare, desired_state *to);
/* The worker of such an assignment, which its strings are borrowed from; false: its layers make no sense. */
bool placer_stage_ordered(const placer *p, size_t model, const Shoal__V1__Assignment *a, worker_spec *ret);
/* The same as one of the placer's, in use; none where its layers make no sense. False: out of memory, or too
 * many. */
bool placer_stage_add(placer *p, size_t model, const placer_node *n, const Shoal__V1__Assignment *a);
/* Of the model's assignments only those of the chain remain that begins with this assignment: others were to
 * take over from it, which the next plan says again. */
void placer_stage_drop_uncalled(placer *p, size_t model, const placer_node *from,
                                const Shoal__V1__Assignment *first);
/* The layers that a report is about; false: it is of no stage of this model. */
bool placer_stage_reported(const placer *p, size_t model, const Shoal__V1__ReplicaReport *r,
                           size_t *ret_first, size_t *ret_end);
/* Machines may still be on their way back: nothing is dealt out yet. */
bool placer_stage_waits(const placer *p, size_t model);
/* Nobody has asked it for a while, and its layers were dealt out long ago. As of placer_stage_look. */
bool placer_stage_is_idle(const placer *p, size_t model);
void placer_stage_look(placer *p, uint64_t now_ns);
void placer_stage_dealt(placer *p, const placement *plan, uint64_t now_ns);

/* shared_plan.c */
int placer_name_group(placer *p, shoal_err *err);
/* True when this gateway is to plan now; else it has done what others planned. */
bool placer_leads(placer *p, uint64_t now_ns);
/* Make each machine's plan of the assignments; what is new goes to the shared plan. */
void placer_write(placer *p);
void placer_unwrite(placer *p, placer_node *n); /* it is gone */
/* Each machine that is attached here, and this one, is told its plan. */
void placer_deliver(placer *p);

/* placer_relief.c: where relief is due, and nothing else moves, one replica of the plan moves. */
void placer_relieve(placer *p, placement *plan, const node *nodes, size_t n_nodes,
                    const placement_model *models);

/* placer_failed.c */
void placer_look_at_failures(placer *p, uint64_t now_ns);
/* The machines that the model is not to be put on unless no other may have it; ret has room for all of
 * p->n_failures. Borrowed until the next look. */
size_t placer_failed_nodes(const placer *p, size_t model, uint64_t now_ns, const char **ret);

/* placer_missing.c: the machines that are gone, before assignments are taken: the plan's names are those of
 * the assignments. Then the registry is told which models no machine has, and why: of the plan that was just
 * made; resp. of those that `leader` has made. */
void placer_note_lost(placer *p, const placement *plan);
void placer_tell_missing(placer *p, const placement *plan, const node *nodes, size_t n_nodes,
                         const placement_model *models, uint64_t now_ns);
void placer_tell_unplanned(placer *p, const char *leader, uint64_t now_ns);

/* operator_command.c */
int placer_read_drained(placer *p, shoal_err *err);
void placer_keep_drained(const placer *p); /* a failure is logged */

#endif
