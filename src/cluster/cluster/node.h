/* node.h: what an agent says of its machine.
 *
 * A node is a machine with an agent on it. Its facts change slowly (memory, load, battery) or never (cores);
 * they decide where models go (placement.h), and where it is decides who asks it first (site). Whether it
 * answers is no fact of the node: each gateway sees that for itself, replica by replica.
 *
 * A node is a value: whoever keeps one keeps a copy. Zeroed fields are "not said". */
#ifndef CLUSTER_NODE_H
#define CLUSTER_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* What computes beside the cores, with a memory of its own. */
typedef struct node_device {
    const char *name;      /* one of the machine has it: "cuda:0" */
    const char *kind;      /* what its programs need: "cuda" */
    uint64_t memory_bytes; /* of its own */
} node_device;

enum { NODE_DEVICES_MAX = 16, NODE_DEVICE_NAME = 32 /* bytes, with the zero */ };
#define NODE_CPU "cpu" /* name and kind of the cores, whose memory is the node's */

typedef struct node {
    const char *name;    /* one in the cluster has it: that of its certificate */
    const char *site;    /* where it stands; NULL: the site without a name */
    const char *address; /* of its agent, "host:port"; NULL: none is needed */
    const char *isa;     /* the instruction set its workers choose */
    unsigned n_cores;
    uint64_t memory_bytes, memory_free_bytes;
    double bytes_per_s;      /* measured: reading memory with all cores */
    double multiplies_per_s; /* measured: int8 multiply-adds with all cores */
    double load_1m;          /* processes that want to run, a minute's mean */
    double rtt_ms;           /* from here, or from whoever places models */
    double celsius;          /* of its hottest core */
    bool on_battery;
    uint64_t epoch;    /* of a machine's attachment to a gateway: the newest one counts */
    const char *group; /* of gateways that place models on it together; NULL: none */
    bool is_gateway;   /* it answers clients */
    unsigned battery_percent;
    bool draining;  /* a person said so: nothing new goes there */
    bool unreached; /* no other machine reaches its workers: it has no relay */
    const char *const *labels;
    size_t n_labels; /* "disk=ssd", "kitchen" */
    const node_device *devices;
    size_t n_devices; /* beside the cores */
} node;

/* A copy in one piece of memory, for node_free. SHOAL_EINVALID: it has no name. */
int node_copy(node **ret, const node *n, shoal_err *err);
void node_free(node *n); /* accepts NULL */
/* This machine: name, cores, memory, load and battery; free with node_free. */
int node_here(node **ret, shoal_err *err);
bool node_has_label(const node *n, const char *label);

/* Letters, digits and ":._-", from 1 to NODE_DEVICE_NAME - 1 of them; a kind that is not the cores'. */
bool node_device_ok(const node_device *d);
/* All memory of the node's devices of this kind; 0: it has none. *ret_largest: of the largest (NULL is fine). */
uint64_t node_device_bytes(const node *n, const char *kind, uint64_t *ret_largest);
/* "NAME=MIB", such as "cuda:0=24576" of the kind "cuda". Name and kind lie in store. */
int node_device_parse(node_device *ret, char store[2 * NODE_DEVICE_NAME], const char *text, shoal_err *err);
/* ,"devices":[{"name":"cuda:0","kind":"cuda","memory_bytes":25769803776}]; with_cores: the cores before them. */
void node_put_devices(buf *out, const node *n, bool with_cores);

#endif
