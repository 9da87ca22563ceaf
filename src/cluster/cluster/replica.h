/* replica.h: one worker, as a gateway sees it.
 *
 * Who it is: an id that stays ("home-intent/0"), and a generation, which rises with every start of its
 * process. Two lives of a replica are two things: what failed in one may be tried in the next. Its place in a
 * table says nothing. What it says: ModelInfo, once per life (Describe), and Stats, polled (GetStats). What
 * its agent says of the process is in `process`, what this gateway has there in `load`, and where it runs in
 * `node`.
 *
 * Replicas come and go while calls run. Whoever keeps one beyond the present callback holds a reference; one
 * that was dropped is in no index any more, takes no new calls, and lives until the last call has left it.
 * Loop thread only.
 *
 *     replica_ref(r);            // a call starts there
 *     ... r->dropped may become true, r stays readable, its channel open ...
 *     replica_unref(r);          // the call has ended; freed a turn of the loop later
 */
#ifndef CLUSTER_REPLICA_H
#define CLUSTER_REPLICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/load.h"
#include "cluster/node.h"
#include "shoal/v1/worker.pb-c.h"
#include "grpc/grpc.h"

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

/* What the agent beside it says of its process. */
typedef struct process {
    int pid; /* 0: none, or not said */
    unsigned n_restarts, n_crashes;
    char report[64]; /* of the last crash: a file of os/crash.h on its machine; "": none */
    /* The agent watches it, and ends it when it hangs: does it work now, or would if it got a core
     * (liveness.h)? NULL: nobody does. */
    bool (*is_at_work)(void *worker);
    void *worker;
} process;

typedef struct replica {
    const char *id;
    uint64_t generation;
    uint64_t life;       /* stands for both: this registry's number for that life, never given twice */
    uint64_t name;       /* of the id, and */
    uint64_t pages;      /* of the id in this generation: what both are to every gateway */
    const char *model;   /* the name clients use */
    const char *address; /* "unix:/run/..." */
    const char *source;  /* who says that it belongs: "agent", "dns", ... */
    const node *node;    /* NULL: this machine, or not said */
    process process;
    replica_state state;
    uint64_t state_ns; /* when it came into that state, by the registry's clock */
    char reason[256];  /* why it is down or failed */
    bool silent;       /* READY, but it missed its last poll: no new calls for it */
    bool standby;      /* it is kept in readiness: no calls for it, unless */
    bool stands_in; /* one of the replicas that serve is missing, silent or not ready: it takes calls, too */
    bool guest;     /* it comes or goes while others serve (source.h) */
    bool dropped;   /* no source knows it any more */
    grpc_channel *channel;
    Shoal__V1__ModelInfo *info; /* NULL until described once; kept over restarts */
    Shoal__V1__Stats *stats;    /* NULL until polled */
    uint64_t starved_until_ns;  /* its last answers say that it waits for cores; by the registry's clock */
    double rtt_ms;              /* there and back, as the polls of late measured it; 0: not yet */
    load load;                  /* kept by whoever starts calls */
} replica;

/* A call goes there: it is polled as often as those that work. */
void replica_gets_call(replica *r);

/* Its worker works, or would if its machine gave it a core: that it says nothing is no silence. */
bool replica_is_at_work(const replica *r);

/* It failed or is down, and has never answered in any life; no standby. One that has answered is started again. */
bool replica_could_not_start(const replica *r);

replica *replica_ref(replica *r); /* returns r */
void replica_unref(replica *r);   /* accepts NULL; calls nobody back, frees nothing at once */

#endif
