/* route.h: the router's look at the registry: from a model's name to the replicas that take the call, in
 * order.
 *
 *     router_request q = {.deadline_ns = deadline, .n_tokens = n, .exclude = failed, .n_exclude = n_failed};
 *     router_decision d;
 *     replica *r;
 *     int rc = route_pick(g, "home-intent", "", &q, NULL, &d, &r);  // router_plan's codes
 *     if (rc == 0) {
 *         replica_ref(r);
 *         load_begin(&r->load, n, now);
 *         registry_connector(g)->start(r->channel, ...);
 *     }
 *
 * Nothing is copied but the few replicas that the router looks at (router.h says how few). Loop thread
 * only. */
#ifndef CLUSTER_ROUTE_H
#define CLUSTER_ROUTE_H

#include "cluster/registry.h"
#include "router/router.h"

/* The request's time and random number are filled in here. adapter: whose digest the request may want, "":
 * none. choice NULL: the fastest. *ret is the replica of the plan's first step, borrowed; NULL on failure. */
int route_pick(const registry *g, const char *model, const char *adapter, router_request *req,
               const router_choice *choice, router_decision *ret_decision, replica **ret);
/* The digest of a replica's adapter of this name; "": it has none, or has not been described (NULL). */
const char *route_adapter_digest(const Shoal__V1__ModelInfo *info, const char *adapter);
/* One replica as the router sees it, for requests without an adapter. */
router_replica route_peek(const registry *g, const replica *r, uint64_t now_ns);
/* What a replica cannot do, as bits of ROUTER_CAPABILITY_TABLE. Nothing, if it has not been described (NULL), is
 * older than capabilities, or has a task that does not write: then its own refusal says more. */
unsigned route_lacks(const Shoal__V1__ModelInfo *info);
/* The model has a replica that is in none of these lives, or may have one again by itself: one that starts,
 * was cut off, or is still to be placed. With an identity (NULL: any) and needs (bits; 0: none) only those count
 * that have them, or have not been described yet. False: waiting for it is no use. */
bool route_may_return(const registry *g, const char *model, const char *identity, unsigned needs,
                      const uint64_t *lives, size_t n_lives);

#endif
