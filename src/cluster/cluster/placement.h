/* placement.h: which node runs which model, as a pure function of nodes, models and how things are.
 *
 * What is there stays where it may stay: nothing moves for balance, so that a node that comes back, or a
 * cluster that is looked at twice, causes no reshuffle. A replica moves only from a node that is gone,
 * drains, lacks what the model asks for, where its worker cannot start, or runs out of battery, and off a
 * node (or site) that it shares while another one that fits has none. Missing replicas come first, the
 * largest models before the small; a standby that is loaded elsewhere takes over at once; standbys are placed
 * last, and give way where a model has no replica at all.
 *
 * A new replica goes where the least is to be read for each byte a second that the machine reads: to the node
 * with the lowest (weights placed there + its own) / speed. Equal ones are taken in the order of their names.
 * A replica that computes on a device takes that device's memory, and neither RAM nor speed of the cores: it
 * goes to the node where the least is taken of its kind of device.
 *
 *     placement p;
 *     placement_plan(&p, nodes, n_nodes, models, n_models, now, n_now, &err);
 *     for (size_t i = 0; i < p.n_assignments; i++)
 *         print(models[p.assignments[i].model].name, nodes[p.assignments[i].node].name);
 *     placement_done(&p);
 *
 * No clock, no chance, no I/O: the same input gives the same plan, and the plan as input gives itself. */
#ifndef CLUSTER_PLACEMENT_H
#define CLUSTER_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cluster/node.h"
#include "cluster/split.h"

/* X(enum, name) */
#define PLACEMENT_SPREAD_TABLE(X)                                                               \
    X(PLACEMENT_BY_NODE, "node") /* no second one on a node while another that fits has none */ \
    X(PLACEMENT_BY_SITE, "site") /* the same for sites, and then for nodes */                   \
    X(PLACEMENT_ANYHOW, "none")
#define PLACEMENT_BATTERY_TABLE(X)                                         \
    X(PLACEMENT_BATTERY_AVOID, "avoid") /* only where nothing else fits */ \
    X(PLACEMENT_BATTERY_ALLOW, "allow")                                    \
    X(PLACEMENT_BATTERY_NEVER, "never")
/* Why a replica is where it is, and (from GONE on) why it is not any more. */
#define PLACEMENT_WHY_TABLE(X)                                                  \
    X(PLACEMENT_STAYS, "it is there already")                                   \
    X(PLACEMENT_PROMOTED, "it was loaded there as a standby")                   \
    X(PLACEMENT_ONLY, "only this machine is available")                         \
    X(PLACEMENT_FASTEST, "the most speed is left there")                        \
    X(PLACEMENT_SPREADS, "no other replica of the model is as near")            \
    X(PLACEMENT_DEALT, "so many layers its speed and memory are worth")         \
    X(PLACEMENT_NAMED, "the model gives it these layers")                       \
    X(PLACEMENT_RELIEVES, "it takes over layers that have lost their node")     \
    X(PLACEMENT_RELIEVED, "it relieves a busier node")                          \
    X(PLACEMENT_GONE, "the node is gone")                                       \
    X(PLACEMENT_UNWANTED, "fewer are wanted")                                   \
    X(PLACEMENT_FORBIDDEN, "the node may not have it any more")                 \
    X(PLACEMENT_LOW, "the node's battery runs low")                             \
    X(PLACEMENT_FAILED, "its worker could not start there")                     \
    X(PLACEMENT_CROWDED, "it shared a place with another replica of the model") \
    X(PLACEMENT_REDEALT, "the model's layers are dealt out anew")               \
    X(PLACEMENT_EVICTED, "a model without any replica needs the memory")
/* Why a node may not have a model. */
#define PLACEMENT_NO_TABLE(X)                             \
    X(PLACEMENT_YES, "it may")                            \
    X(PLACEMENT_NOT_NAMED, "the model names other nodes") \
    X(PLACEMENT_DRAINING, "the node drains")              \
    X(PLACEMENT_NO_LABEL, "it lacks a label")             \
    X(PLACEMENT_NO_DEVICE, "it has no such device")       \
    X(PLACEMENT_TOO_FAR, "it is too far away")            \
    X(PLACEMENT_ON_BATTERY, "it runs on battery")         \
    X(PLACEMENT_NO_MEMORY, "its memory is taken")
#define PLACEMENT_ENUM(e, n) e,
typedef enum placement_spread { PLACEMENT_SPREAD_TABLE(PLACEMENT_ENUM) } placement_spread;
typedef enum placement_battery { PLACEMENT_BATTERY_TABLE(PLACEMENT_ENUM) } placement_battery;
typedef enum placement_why { PLACEMENT_WHY_TABLE(PLACEMENT_ENUM) } placement_why;
typedef enum placement_no { PLACEMENT_NO_TABLE(PLACEMENT_ENUM) } placement_no;
#undef PLACEMENT_ENUM
const char *placement_why_text(placement_why w);
const char *placement_no_text(placement_no n);

/* How a model's layers are dealt out over machines (split.h); zeroed: it is whole everywhere. */
typedef struct placement_part {
    const char *node;
    size_t n_layers;
} placement_part;

typedef struct placement_shards {
    bool automatic;              /* in as few stages as there is memory for */
    size_t n;                    /* in so many */
    const placement_part *parts; /* so many layers each, in this order */
    size_t n_parts;
} placement_shards;

enum { PLACEMENT_SHARDS_MAX = SPLIT_STAGES_MAX, PLACEMENT_LAYERS_MAX = 10000 };
bool placement_is_cut(const placement_shards *s);

typedef struct placement_model {
    const char *name;
    unsigned n_replicas, n_standby; /* wanted; n_standby are loaded, and serve when one is missing */
    unsigned n_least,
        n_most; /* the range of n_replicas where it follows the load (scale.h), for those who show it;
                                       n_most 0: it is fixed */
    uint64_t memory_bytes;     /* of one replica: of the node's, or of its device's */
    const char *device;        /* kind of device that its workers compute on; NULL: the cores */
    const char *const *labels; /* the node has all of these */
    size_t n_labels;
    const char *const *nodes; /* and is one of these; none: any */
    size_t n_nodes;
    const char *const *failed; /* its worker could not start there lately: only where nothing else fits */
    size_t n_failed;
    placement_spread spread;
    bool settling; /* more nodes are coming: nothing shares a node or moves off a shared one for now, beyond
                      the first replica, which serves at once; what waits for that is no gap */
    placement_battery battery;
    double max_rtt_ms;       /* 0: any */
    bool rebalance;          /* its replicas may move to a node that is new */
    placement_shards shards; /* then n_replicas is 1, n_standby 0 and */
    bool waits;              /* what is there stays, and nothing is dealt out yet */
    bool idle;               /* nobody asks it: layers may be dealt out anew where that gains much */
    split_shape shape;
} placement_model;

/* A replica as it is now. */
typedef struct placement_now {
    const char *model, *node;
    bool standby;
    size_t first, end; /* layers of a stage; end 0: all of them */
} placement_now;

typedef struct placement_assignment {
    size_t model, node; /* places in the lists */
    bool standby;
    size_t first, end; /* layers of a stage; end 0: all of them */
    placement_why why;
} placement_assignment;

/* One that ends; by name, since its node or model may be in no list. */
typedef struct placement_leaver {
    const char *model, *node;
    placement_why why;
} placement_leaver;

typedef struct placement_gap {
    size_t model;
    unsigned n_replicas, n_standby; /* wanted, and nowhere to go */
} placement_gap;

typedef struct placement {
    placement_assignment *assignments; /* in the order of the models, replicas before standbys */
    size_t n_assignments;
    placement_leaver *leavers; /* their names are those of the input */
    size_t n_leavers;
    placement_gap *gaps;
    size_t n_gaps;
} placement;

enum {
    PLACEMENT_BATTERY_LOW = 20,    /* percent; below it what may run elsewhere moves */
    PLACEMENT_MEMORY_PERCENT = 90, /* of a node's memory that replicas may take */
};

/* SHOAL_ENOMEM is all that can fail; the lists are borrowed by the call, their names by the result. */
int placement_plan(placement *ret, const node *nodes, size_t n_nodes, const placement_model *models,
                   size_t n_models, const placement_now *now, size_t n_now, shoal_err *err);
void placement_done(placement *p);
/* Move one replica of the plan, its assignment's reason PLACEMENT_RELIEVED, from a node with several to one
 * that then has at most seven tenths of what the other had to read for each byte a second: the move that
 * gains most. Of all models, or of those that say `rebalance`; standbys and layers stay. False: no move is
 * worth it. */
bool placement_relieve(placement *p, const node *nodes, size_t n_nodes, const placement_model *models,
                       size_t n_models, bool all);
/* The plan of a cluster that was set up node by node: its gateways serve alone, then the others join in the
 * order of the list, and what is there stays. Without a gateway: all are there at once. As placement_plan. */
int placement_grow(placement *ret, const node *nodes, size_t n_nodes, const placement_model *models,
                   size_t n_models, shoal_err *err);

/* Of n replicas of a model, more than it wants, so many have a machine without another model lacking what it would
 * have otherwise: *ret. If that is less than n, `why` is a part of a sentence, else "". As placement_plan. */
int placement_room(unsigned *ret, char *why, size_t size, const node *nodes, size_t n_nodes,
                   const placement_model *models, size_t n_models, size_t model, unsigned n,
                   const placement_now *now, size_t n_now, shoal_err *err);

/* What a token costs that goes through the model's stages, as they are planned; row_bytes: of one row between
 * them. The machine's stages take turns, so slowest_ms is of all that are on one. False: the model has none.
 */
bool placement_price(const placement *p, const node *nodes, const placement_model *models, size_t model,
                     uint64_t row_bytes, split_cost *ret);
/* The node as split.h sees it, with nothing on it. */
split_place placement_place_of(const node *n);

/* May this node have one of these, beside taken_bytes of others? `stays`: it has it already, and small
 * changes of the node do not matter. */
placement_no placement_may(const placement_model *m, const node *n, uint64_t taken_bytes, bool stays);
/* What replicas may take of the node's memory. */
uint64_t placement_budget_bytes(const node *n);

/* What the plan's assignments take of a node's memory (nothing of a device's), and why the node has none, or no
 * further, replica. */
uint64_t placement_taken_bytes(const placement *p, const placement_model *models, size_t node);
placement_no placement_refusal(const placement *p, const node *nodes, const placement_model *models,
                               size_t model, size_t node);
/* Why the plan has no assignment for a model, as a part of a sentence: "no machine may have it: it lacks a
 * label (attic, nas); it is not attached (pi)". True: that can end only when somebody changes something;
 * false: a machine may come nearer, leave its battery, or come back. */
bool placement_say_missing(const placement *p, const node *nodes, size_t n_nodes,
                           const placement_model *models, size_t model, char *ret, size_t size);

#endif
