/* replica.h: one worker as the gateway sees it, and the table of all of them.
 *
 * A replica is an address, a gRPC channel to it, what it said of itself (Describe) and its freshest
 * load (GetStats, polled). The registry is the in-process table that the agent writes and the gateway
 * reads; later etcd or DNS feed the same table. Loop thread only. */
#ifndef CLUSTER_REPLICA_H
#define CLUSTER_REPLICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/cost.h"
#include "base/err.h"
#include "shoal/v1/worker.pb-c.h"
#include "wire/grpc.h"

/* X(enum, name) */
#define REPLICA_STATE_TABLE(X)      \
    X(REPLICA_STARTING, "starting") \
    X(REPLICA_READY, "ready")       \
    X(REPLICA_DRAINING, "draining") \
    X(REPLICA_DOWN, "down")         \
    X(REPLICA_FAILED, "failed") /* refused to start (wrong digest, ...): not restarted; see `reason` */
typedef enum replica_state {
#define REPLICA_STATE_ENUM(e, n) e,
    REPLICA_STATE_TABLE(REPLICA_STATE_ENUM)
#undef REPLICA_STATE_ENUM
} replica_state;
const char *replica_state_name(replica_state s);

typedef struct replica {
    const char *model;   /* the name clients use */
    const char *id;      /* "home-intent/0" */
    const char *address; /* "unix:/run/..." */
    replica_state state;
    char reason[256]; /* why it is down or failed */
    int pid;          /* 0: none */
    unsigned n_restarts, n_crashes;
    grpc_channel *channel;
    Shoal__V1__ModelInfo *info; /* NULL until described once; kept over restarts */
    Shoal__V1__Stats *stats;    /* NULL until polled */
    bool silent;                /* READY, but it missed its last poll: no new calls for it */
    bool wedged;                /* DOWN because the process lives and does nothing: the agent ends it */
    /* Kept by whoever starts calls (gateway/backend.c): */
    unsigned n_in_flight, n_tokens_in_flight; /* calls, and their input that nothing has come back for */
    uint64_t sent_ns, moved_ns; /* a call last began there; it last gave something back, or was idle */
    cost cost;                  /* of unary calls, by their tokens */
} replica;

typedef struct registry registry;
enum { REGISTRY_MAX_LISTENERS = 8 };
typedef void (*registry_change_fn)(void *user, replica *r);

/* Polls on a timer that keeps no loop alive; the replicas come by registry_add. */
int registry_new(registry **ret, uv_loop_t *loop, shoal_err *err);
void registry_free(registry *g); /* closes all channels; run the loop once more afterwards */
/* Add a replica (strings are copied); it stays for the registry's life. */
int registry_add(registry *g, const char *model, const char *id, const char *address, replica **ret,
                 shoal_err *err);
size_t registry_count(const registry *g);
replica *registry_at(registry *g, size_t i);
/* The agent says: the process is up (connect, describe, READY), draining, down, failed. */
void registry_set_state(registry *g, replica *r, replica_state s, const char *reason);
/* Called after every change of state; up to REGISTRY_MAX_LISTENERS of them, in the order given. */
void registry_on_change(registry *g, registry_change_fn fn, void *user);
/* True when every replica is READY (the cluster's /readyz). */
bool registry_all_ready(const registry *g);

#endif
