/* etcd.h: a gateway in etcd: it reads who is there, writes what it serves, and stands for leader.
 *
 *     etcd_options o = {.endpoints = list, .n_endpoints = 1, .self = &node};
 *     etcd_open(&e, loop, registry, &o, err);
 *     if (etcd_leads(e)) ... place models ...
 *     etcd_close(e, closed, user);
 *
 * One session, and on it: etcd_source (others' replicas into the registry), etcd_publisher (those of our agent
 * into etcd), etcd_election; and where the gateways of a group place models together, etcd_shared_plan. When etcd is away everything goes on with the last view. Loop thread. */
#ifndef DISCOVERY_ETCD_H
#define DISCOVERY_ETCD_H

#include <uv.h>

#include "discovery/etcd_shared_plan.h"
#include "cluster/registry.h"

enum {
    ETCD_LEASE_S = 10,
    ETCD_GOODBYE_MS = 1000, /* so long a close waits for etcd to hear it */
    ETCD_PREFIX_BYTES = 256,
};
#define ETCD_PREFIX "/shoal/v1/default"

typedef struct etcd etcd;

/* Zero means the default in brackets. Texts are copied. */
typedef struct etcd_options {
    const char *const *endpoints; /* "HOST:PORT", also behind "http://" or "https://" */
    size_t n_endpoints;
    const char *prefix;          /* [ETCD_PREFIX] shared by those that shall see each other */
    const char *ca, *cert, *key; /* PEM files; with any of them, or https://, it is TLS [the system's CAs] */
    const char *user, *password_file;
    unsigned lease_s;              /* [ETCD_LEASE_S] */
    const node *self;              /* this machine; its name is ours in etcd */
    const char *source;            /* ["agent"] whose replicas are published */
    const char *group;             /* of gateways with one leader and one shared plan [all, and no plan] */
    etcd_plan_events plan;         /* of a group; told on the loop, not before etcd_open has returned */
    etcd_election_events election; /* [nobody is told] */
} etcd_options;

/* Connects in the background. SHOAL_EINVALID: an endpoint, a file or the name cannot be. */
int etcd_open(etcd **ret, uv_loop_t *loop, registry *g, const etcd_options *o, shoal_err *err);
/* Our keys are taken out, as far as etcd hears it within ETCD_GOODBYE_MS; `closed` when all is freed, maybe
 * before this returns. The registry must live until then. Accepts NULL. */
void etcd_close(etcd *e, void (*closed)(void *user), void *user);
/* This process is about to stop: its replicas are said to be draining, another may lead. */
void etcd_drain(etcd *e);

/* Counts from the leader of a group alone (etcd_shared_plan.h). */
void etcd_put_plan(etcd *e, const char *node, const uint8_t *plan, size_t n);

bool etcd_leads(etcd *e);
const char *etcd_leader(const etcd *e); /* its name, as last heard; NULL: nobody */

/* "https://host:2379" -> "host:2379"; *ret_tls: 1 https, 0 http, -1 not said. SHOAL_EINVALID. */
int etcd_endpoint_parse(const char *text, const char **ret_address, int *ret_tls, shoal_err *err);

#endif
