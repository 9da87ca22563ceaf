/* replica_calls.h: the bottom of the seam: each call is one gRPC call to one replica.
 *
 * It asks the router for a replica that the terms allow, makes the call, keeps the replica's load and cost,
 * and says in the end whose fault a failure was. It never tries twice and never waits: that is for those
 * above. The only file of the seam that knows registry, router and gRPC. */
#ifndef CALLS_REPLICA_CALLS_H
#define CALLS_REPLICA_CALLS_H

#include "calls/observer.h"
#include "cluster/registry.h"

/* The registry is borrowed and must outlive it, as must the observer, which is told of attempts (NULL: nobody);
 * time and the way to workers are those that the registry has. */
int replica_calls_new(calls **ret, registry *g, const call_observer *observer, shoal_err *err);

#endif
