/* etcd_shared_plan.h: who serves what, in etcd: the leader writes it, all read it.
 *
 * PREFIX/NODE holds the plan for a machine, bytes that mean nothing here, without a lease: it outlives the process
 * that wrote it, so that the next leader begins with what there is. A write is one transaction with a look at the
 * leader's key (etcd_election_fence), so one who does not know yet that it leads no more changes nothing.
 *
 *     etcd_shared_plan_open(&p, session, election, "/shoal/v1/home/plan/3f9c/", &ev, err);
 *     etcd_shared_plan_put(p, "kitchen-pi", bytes, n);
 *     etcd_shared_plan_close(p);
 *
 * Loop thread. */
#ifndef DISCOVERY_ETCD_SHARED_PLAN_H
#define DISCOVERY_ETCD_SHARED_PLAN_H

#include "discovery/etcd_election.h"

enum { ETCD_PLAN_BYTES = 1 << 20 };

typedef struct etcd_shared_plan etcd_shared_plan;

typedef struct etcd_plan_events {
    void *user;
    /* plan NULL: there is none any more. */
    void (*read)(void *user, const char *node, const uint8_t *plan, size_t n);
    void (*synced)(void *user); /* all that there is has been read (again) */
} etcd_plan_events;

/* The session and the election must outlive it. */
int etcd_shared_plan_open(etcd_shared_plan **ret, etcd_session *s, etcd_election *e, const char *prefix,
                          const etcd_plan_events *ev, shoal_err *err);
void etcd_shared_plan_close(etcd_shared_plan *p); /* tells nothing; accepts NULL */
/* What shall be there; plan NULL: nothing. Copied; written as soon as it can be, and given up when another leads. */
void etcd_shared_plan_put(etcd_shared_plan *p, const char *node, const uint8_t *plan, size_t n);
size_t etcd_shared_plan_waiting(const etcd_shared_plan *p); /* keys that etcd does not have yet */

#endif
