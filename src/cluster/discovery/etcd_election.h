/* etcd_election.h: one leader among those who ask to be it.
 *
 * As etcd's own libraries do it: who campaigns writes PREFIX/LEASE, under its lease, and the key that came
 * into being first leads; when it goes, the next one does. Its create revision is the term: it rises with
 * every leader, and may be shown to a peer that must not obey an old one.
 *
 *     etcd_election_open(&e, session, "/shoal/v1/home/leader/", "gate-1", &ev, err);
 *     etcd_election_campaign(e);
 *     ... before each act: if (!etcd_election_leads(e)) stop;
 *     etcd_election_resign(e);
 *
 * Leading ends by our own clock before it can end by etcd's: when the lease has not been confirmed for nine
 * tenths of its life we do not lead, whatever we last heard. Loop thread. */
#ifndef DISCOVERY_ETCD_ELECTION_H
#define DISCOVERY_ETCD_ELECTION_H

#include "discovery/etcd_session.h"

typedef struct etcd_election etcd_election;

/* Each may be NULL. */
typedef struct etcd_election_events {
    void *user;
    void (*elected)(void *user, int64_t term);
    void (*deposed)(void *user, const char *why);
    void (*leader)(void *user, const char *name); /* another leads than before; NULL: nobody */
} etcd_election_events;

/* The session, with a lease, must outlive it. The name is ours, copied. */
int etcd_election_open(etcd_election **ret, etcd_session *s, const char *prefix, const char *name,
                       const etcd_election_events *ev, shoal_err *err);
void etcd_election_close(etcd_election *e); /* tells nothing; accepts NULL */

void etcd_election_campaign(etcd_election *e);
/* `deposed` comes before it returns; our key goes as soon as etcd answers. */
void etcd_election_resign(etcd_election *e);
bool etcd_election_leads(etcd_election *e); /* now, by the clock */
/* Our key, and the term: while etcd has this key with this create revision, we lead. NULL: we do not. */
const char *etcd_election_fence(etcd_election *e, int64_t *ret_term);
const char *etcd_election_leader(const etcd_election *e); /* as last heard; NULL: nobody */

#endif
