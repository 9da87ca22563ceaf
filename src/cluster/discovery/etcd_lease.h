/* etcd_lease.h: one lease of etcd, kept alive: what is written under it goes when this process goes.
 *
 *     etcd_lease_events on = {.granted = put_all, .lost = all_gone, .user = x};
 *     etcd_lease_open(&l, client, 10, &on, err);
 *     ... put_all() writes keys with etcd_lease_id(l) ...
 *     etcd_lease_close(l);    // keys go when the lease has run out; etcd_lease_revoke before: at once
 *
 * A lease that has run out or was revoked by hand is `lost`, and another is asked for at once. While etcd is
 * away nobody can know: the lease counts as it was, and etcd_lease_until_ns says how long it holds at least:
 * counted on our own clock from when the last keepalive that was answered had been sent. Loop thread. */
#ifndef DISCOVERY_ETCD_LEASE_H
#define DISCOVERY_ETCD_LEASE_H

#include "discovery/etcd_client.h"

typedef struct etcd_lease etcd_lease;

typedef struct etcd_lease_events {
    void *user;
    void (*granted)(void *user);   /* a new one: nothing is written under it */
    void (*confirmed)(void *user); /* it holds longer; may be NULL */
    void (*lost)(void *user);      /* it and its keys are gone */
} etcd_lease_events;

/* The client must outlive it. */
int etcd_lease_open(etcd_lease **ret, etcd_client *c, unsigned ttl_s, const etcd_lease_events *ev,
                    shoal_err *err);
void etcd_lease_close(etcd_lease *l); /* accepts NULL */

int64_t etcd_lease_id(const etcd_lease *l); /* 0: there is none */
/* Until then etcd holds it for certain; a tenth of its life is left to clocks that run unlike. 0: no lease.
 */
uint64_t etcd_lease_until_ns(const etcd_lease *l);
/* Somebody was told "no such lease" (NOT_FOUND). */
void etcd_lease_doubt(etcd_lease *l);
/* Give it back with all its keys; `done` when etcd has answered, or cannot be asked (called at once then).
 * Nothing is asked for any more. */
void etcd_lease_revoke(etcd_lease *l, void (*done)(void *user), void *user);

#endif
