/* registry_impl.h: private to registry.c, source.c and health_poller.c. */
#ifndef CLUSTER_REGISTRY_IMPL_H
#define CLUSTER_REGISTRY_IMPL_H

#include "base/strmap.h"
#include "cluster/registry.h"

typedef struct health_poller health_poller;

/* A node's facts change under the replicas that point to them; it goes with the last of these. */
typedef struct node_entry {
    node facts; /* first; its strings are the copy's */
    node *copy;
    char *name;
    source *owner; /* NULL: dropped */
    uint32_t said; /* by these sources, a bit each */
    size_t n_refs;
} node_entry;

typedef struct model_set {
    replica_set view; /* first */
    char *name;
    replica **replicas;
    size_t cap;
    size_t n_serving, n_answering; /* replicas that are no standbys, and those of them that take calls */
    unsigned n_declared;           /* over 0: it stays without replicas */
    char absent[400];
} model_set;

/* A replica and what keeps it in touch with its worker (health_poller.c). */
struct health_poller {
    replica r; /* first: pointers to it are handed out */
    registry *g;
    source *owner;
    uint32_t said;        /* by these sources, a bit each */
    model_set *set;       /* NULL: dropped */
    size_t at;            /* in the set */
    bool serves, answers; /* as it is counted in the set */
    node_entry *node;
    unsigned n_refs; /* the index's, and those of calls */
    health_poller *next_dead;
    char *strings;  /* id, model, address */
    bool uncounted; /* its source knows no generations: each connection is a life */
    bool wanted;    /* a process is there, or shall be looked for */
    bool has_read;  /* the loop has read its sockets since the time to look came */
    bool rests;     /* it had nothing to do at its last poll, and has got no call since */
    env_timer *timer;
    uint64_t retry_ms;
    grpc_client_call *describing, *polling;
    uint64_t asked_ns;  /* when the poll began, by the listening clock (time/env.h) */
    uint64_t polled_ns; /* when the poll began */
    uint64_t heard_ns;  /* its last answer; 0: none */
};

struct source {
    registry *g;
    source *next;
    const char *name;
    uint32_t bit; /* 0: there are too many sources, and what this one says it says for itself alone */
    bool synced;
    char trouble[200];
};

typedef struct listener {
    struct listener *next;
    registry_event_fn fn; /* NULL: gone, freed when nobody is being told anything */
    void *user;
} listener;

struct registry {
    env e;
    connector how;
    char *site; /* NULL: none */
    router_spill spill;
    double watts;
    bool names_required; /* registry_require_names */
    health_poller **pollers; /* in the order in which they came */
    size_t n, cap;
    model_set **models;
    size_t n_models, models_cap;
    strmap by_id, by_model, nodes;
    source *sources;
    listener *listeners;
    uint64_t n_lives;    /* numbers given */
    unsigned n_telling;  /* deep in callbacks */
    health_poller *dead; /* freed by the timer: no callback of theirs is on the stack then */
    env_timer *bury;
};

uint64_t registry_now(const registry *g);
uint64_t registry_listening_ns(const registry *g);
void registry_tell(registry *g, const registry_event *e);
/* Put it where calls find it, or where they do not, after its state, silence, site or part has changed. */
void registry_sort(health_poller *l);

/* Into the indexes, and out of them with the index's reference. Insertion takes the reference, and tells
 * nobody. */
int registry_insert(registry *g, health_poller *l, shoal_err *err);
void registry_remove(registry *g, health_poller *l);

/* source.c */
void node_unref(node_entry *n); /* accepts NULL */
void registry_free_sources(registry *g);

/* health_poller.c. A new one is in no index, and has one reference. */
health_poller *health_poller_new(registry *g, const member *m);
void health_poller_free(health_poller *l);
/* What its source says now; from here on it is looked for, or left alone. */
void health_poller_hear(health_poller *l, const member *m);
/* No source knows it: no more polls, no more news of it. Calls that run there go on. */
void health_poller_leave(health_poller *l);

#endif
