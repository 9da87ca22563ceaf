/* etcd_board.h: who serves what, in etcd: one writes it, who leads; all read it.
 *
 * PREFIX/NODE holds the plan for a machine, bytes that mean nothing here, without a lease: it outlives
 * whoever wrote it, so that the next leader begins with what there is. A write is one transaction with a look
 * at the leader's key (etcd_election_fence), so one who does not know yet that it leads no more changes
 * nothing.
 *
 *     etcd_board_open(&b, client, election, "/shoal/v1/home/plan/3f9c/", &ev, err);
 *     etcd_board_post(b, "kitchen-pi", bytes, n);
 *     etcd_board_close(b);
 *
 * Loop thread. */
#ifndef DISCOVERY_ETCD_BOARD_H
#define DISCOVERY_ETCD_BOARD_H

#include "discovery/etcd_client.h"
#include "discovery/etcd_election.h"

enum { ETCD_PLAN_BYTES = 1 << 20 };

typedef struct etcd_board etcd_board;

typedef struct etcd_board_events {
    void *user;
    void (*read)(void *user, const char *node, const uint8_t *plan,
                 size_t n);     /* NULL: there is none any more */
    void (*synced)(void *user); /* all that there is has been read (again) */
} etcd_board_events;

/* The client and the election must outlive it. */
int etcd_board_open(etcd_board **ret, etcd_client *c, etcd_election *e, const char *prefix,
                    const etcd_board_events *ev, shoal_err *err);
void etcd_board_close(etcd_board *b); /* tells nothing; accepts NULL */
/* What shall be there; plan NULL: nothing. Copied; written as soon as it can be, and given up when another
 * leads. */
void etcd_board_post(etcd_board *b, const char *node, const uint8_t *plan, size_t n);
size_t etcd_board_waiting(const etcd_board *b); /* that etcd does not have yet */

#endif
