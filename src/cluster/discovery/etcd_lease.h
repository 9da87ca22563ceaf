/* etcd_lease.h: the lease of a session: grant, keepalive, and what is known of its life.
 *
 * A part of etcd_session.c, which alone uses it; others see etcd_session_lease and the events. Loop thread. */
#ifndef DISCOVERY_ETCD_LEASE_H
#define DISCOVERY_ETCD_LEASE_H

#include "discovery/etcd_session.h"

typedef struct etcd_lease {
    etcd_session *s;
    const env *e;
    void (*tell)(etcd_session *s, etcd_lease_event what);
    unsigned ttl_s;             /* requested; 0: no lease is wanted */
    uint64_t ttl_ns;            /* granted */
    int64_t id;                 /* 0: none */
    uint64_t sent_ns, until_ns; /* sent_ns: of the unanswered request; 0: none */
    uint64_t asked_ns;          /* the same moment by the listening clock (time/env.h) */
    etcd_call *granting, *revoking;
    grpc_client_call *stream;
    env_timer *beat; /* the next keepalive, or grant */
    bool leaving;
    void (*done)(void *user);
    void *done_user;
} etcd_lease;

/* Fields s, e, tell and ttl_s are set. */
int etcd_lease_open(etcd_lease *l, shoal_err *err);
void etcd_lease_close(etcd_lease *l); /* its calls are gone by now */
void etcd_lease_up(etcd_lease *l);
void etcd_lease_down(etcd_lease *l);
void etcd_lease_doubt(etcd_lease *l);
void etcd_lease_revoke(etcd_lease *l, void (*done)(void *user), void *user);

#endif
