/* etcd_source.h: members that etcd names: the source "etcd".
 *
 * Every key under PREFIX/nodes/, PREFIX/machines/ and PREFIX/replicas/ (etcd_member.h), but for our own. What
 * cannot be read is refused with a line in the log, the others are not disturbed. A Unix socket on another
 * machine cannot be reached, and is left out.
 *
 * A replica is "GATEWAY/ID" here; one on a machine that has joined is "NODE/ID", whichever gateway the
 * machine is attached to, so that it is the same one when the machine attaches to another, or to this one
 * (control.h).
 *
 * A key that goes is no proof that its replica does: etcd may have been away for longer than a lease lasts,
 * and the publisher writes the key again as soon as it can. So a replica that answers us is kept for a while
 * (ETCD_LINGER_MS), and dropped when its key does not return, at once when it stops to answer. One that said
 * it was draining goes at once.
 *
 *     etcd_source_open(&s, session, registry, &(etcd_source_options){.prefix = p, .own = "gate-1"}, err);
 *     etcd_source_close(s);        // drops its members
 *
 * Loop thread. */
#ifndef DISCOVERY_ETCD_SOURCE_H
#define DISCOVERY_ETCD_SOURCE_H

#include "discovery/etcd_session.h"
#include "cluster/registry.h"

enum { ETCD_LINGER_MS = 15000 };

typedef struct etcd_source etcd_source;

typedef struct etcd_source_options {
    const char *prefix;   /* "/shoal/v1/home/" */
    const char *own;      /* the name whose keys are ours; NULL: none are */
    const char *instance; /* of this process: another under our name is an error in the log */
    const char *machine;  /* etcd_member_machine */
    unsigned linger_ms;   /* 0: ETCD_LINGER_MS */
} etcd_source_options;

/* Texts are copied; session and registry must outlive it. */
int etcd_source_open(etcd_source **ret, etcd_session *session, registry *g, const etcd_source_options *o,
                     shoal_err *err);
void etcd_source_close(etcd_source *s); /* accepts NULL */

#endif
