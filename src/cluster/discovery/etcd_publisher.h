/* etcd_publisher.h: what this process serves, written into etcd under its lease.
 *
 * It listens to the registry and writes the replicas of our agent and of the machines that are attached to us
 * (its sources "agent" and "agents"), and this machine's facts before them: PREFIX/nodes/NAME and
 * PREFIX/replicas/NAME/ID (etcd_member.h). What changes is written again; after a new lease, all of it
 * (etcd_writer.h). Loop thread.
 *
 *     etcd_publisher_open(&p, session, registry, &o, err);
 *     etcd_publisher_leave(p);     // before the lease is given back: readers need not wait for a return
 *     etcd_publisher_close(p);
 */
#ifndef DISCOVERY_ETCD_PUBLISHER_H
#define DISCOVERY_ETCD_PUBLISHER_H

#include "discovery/etcd_session.h"
#include "cluster/registry.h"

typedef struct etcd_publisher etcd_publisher;

typedef struct etcd_publisher_options {
    const char *prefix;   /* "/shoal/v1/home/" */
    const char *instance; /* of this process */
    const char *machine;  /* etcd_member_machine */
    const node *self;     /* its name is NAME */
} etcd_publisher_options;

/* All are copied; the session, with a lease, and the registry must outlive it. */
int etcd_publisher_open(etcd_publisher **ret, etcd_session *s, registry *g, const etcd_publisher_options *o,
                        shoal_err *err);
void etcd_publisher_close(etcd_publisher *p); /* accepts NULL */
/* Everything is draining from here on; what is still to be written is sent at once. */
void etcd_publisher_leave(etcd_publisher *p);

size_t etcd_publisher_waiting(const etcd_publisher *p); /* keys that etcd does not have yet */

#endif
