/* registry.h: the table of replicas, by id and by model, and who is told of its changes.
 *
 * Sources put members in (source.h); the registry keeps in touch with each (connects, asks what it is, polls
 * its load, notices silence), and gateways read. Nothing on the way of a call walks over all replicas: a
 * model's name leads to its set, in which the replicas that take calls stand first.
 *
 * Of those, the ones at this gateway's own site stand before the others, so that they are asked first
 * (router.h).
 *
 *     const replica_set *s = registry_find(g, "home-intent");      // NULL: no such model
 *     for (size_t i = 0; i < s->n_ready; i++) use(s->replicas[i]); // those that take calls now
 *
 * Time comes from an env, connections from a connector, so that a cluster can be simulated. Loop thread
 * only. */
#ifndef CLUSTER_REGISTRY_H
#define CLUSTER_REGISTRY_H

#include "time/env.h"
#include "cluster/connector.h"
#include "cluster/replica.h"
#include "cluster/source.h"
#include "router/router.h"

/* On a real loop. */
int registry_new(registry **ret, uv_loop_t *loop, shoal_err *err);
/* With any time and any workers; both structs are copied. */
int registry_new_with(registry **ret, const env *e, const connector *how, shoal_err *err);
/* Closes all channels and forgets all sources; no listener is told, no reference may be left. Run the loop
 * once more afterwards. Accepts NULL. */
void registry_free(registry *g);
/* Where this gateway stands, copied, and when it may ask other sites. Site NULL or "": sites play no part.
 * Else what is on a node of another site, or of one without a site, is away; replicas of this machine, and
 * those of no node, never are. SHOAL_ENOMEM: nothing has changed. */
int registry_set_site(registry *g, const char *site, const router_spill *spill, shoal_err *err);
const char *registry_site(const registry *g); /* NULL: none */
const router_spill *registry_spill(const registry *g);
/* What a busy core of a worker's machine takes, where it cannot be measured; 0: not known. */
void registry_set_watts(registry *g, double watts);
double registry_watts(const registry *g);
/* Workers that no agent started must say that they serve the model that their source says: their addresses may come to
 * belong to others, as those of pods do. */
void registry_require_names(registry *g);
bool registry_is_away(const registry *g, const replica *r);
const env *registry_env(const registry *g);
const connector *registry_connector(const registry *g);

/* ---- looking ------------------------------------------------------------------------------------- */

/* The replicas of one model. Borrowed: true until the next callback. */
typedef struct replica_set {
    const char *model;
    replica *const *replicas; /* the first n_ready take calls: READY, not silent, and no standbys, unless one
                                 of the others is not among them */
    size_t n, n_ready;
    const char *absent; /* why nobody is waited for while there is no replica; NULL: calls wait */
    bool lasting;       /* with absent: somebody must change something before one can come */
    size_t n_away;      /* of the first n_ready the last so many are at other sites */
    bool varies; /* its number of replicas follows the load: nothing waits for those that are being loaded, */
    bool rests;  /* nor, of one that may have none while nobody asks for it, for the first */
} replica_set;

const replica_set *registry_find(const registry *g, const char *model); /* NULL: nobody has heard of it */
/* The model exists, though it may have no replica at times: registry_find knows it from now on, until it was
 * undeclared as often as it was declared. */
int registry_declare(registry *g, const char *model, shoal_err *err);
void registry_undeclare(registry *g, const char *model);
/* While a declared model has no replica, calls wait for one. From now on they are told `why` instead, a part
 * of a sentence that is copied, until its next replica comes, or is expected again. `lasting`: none can come
 * unless somebody changes something, so that asking again soon does not help. */
void registry_give_up(registry *g, const char *model, const char *why, bool lasting);
void registry_expect(registry *g, const char *model);
/* What replica_set says of a model that is known, and, of one that rests, is from now on as if it were declared. */
int registry_vary(registry *g, const char *model, bool varies, bool rests, shoal_err *err);
replica *registry_get(const registry *g, const char *id); /* NULL: not there, or dropped */
const node *registry_node(const registry *g, const char *name);
const char *registry_node_source(const registry *g,
                                 const char *name); /* who spoke of it last; NULL: nobody */
/* All nodes, in no order: *at begins with 0; NULL at the end. */
const node *registry_next_node(const registry *g, size_t *at);

/* All of them, in the order in which they came; for people and metrics, not for calls. */
size_t registry_count(const registry *g);
replica *registry_at(const registry *g, size_t i);
size_t registry_count_models(const registry *g);
const replica_set *registry_model_at(const registry *g, size_t i);
size_t registry_count_sources(const registry *g);
const source *registry_source_at(const registry *g, size_t i);

/* Has the model no replica that is READY and no standby, and are its replicas, if any, not guests alone
 * (which requests have loaded)? One that is silent counts: it may be slow for a moment. A model that rests is missing
 * only if its worker failed, or no machine may have it. */
bool registry_is_missing(const replica_set *s);
/* Why, as a part of a sentence: "its worker failed: ...", or what registry_give_up was told. */
void registry_say_missing(const replica_set *s, char *ret, size_t size);
/* True when every source has synced, every replica that this machine's agent starts, of models whose number does not
 * vary, is READY, and no model is missing (the cluster's /readyz): another machine's death leaves a gateway ready that has somebody else to
 * ask. */
bool registry_all_ready(const registry *g);

/* ---- listening ----------------------------------------------------------------------------------- */

/* SILENT: a worker on another machine owes an answer for a second or more; told now and then while it does.
 */
typedef enum { REGISTRY_ADD, REGISTRY_CHANGE, REGISTRY_DROP, REGISTRY_NODE, REGISTRY_SILENT } registry_what;

typedef struct registry_event {
    registry_what what;
    replica *replica; /* after its change of state; for DROP: out of the index, alive during the call */
    const node *node; /* of REGISTRY_NODE: the new facts; dropped: NULL, and the name in `name` */
    const char *name;
} registry_event;

typedef void (*registry_event_fn)(void *user, const registry_event *e);

/* In the order given, as many as there are. A listener may put, drop, listen and unlisten. */
int registry_listen(registry *g, registry_event_fn fn, void *user, shoal_err *err);
void registry_unlisten(registry *g, registry_event_fn fn, void *user); /* no event follows */

#endif
