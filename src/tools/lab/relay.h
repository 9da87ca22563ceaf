/* relay.h: the network of a lab: a switch in user space whose links delay, lose, limit and cut.
 *
 * Every node has one interface, a TUN device whose descriptor the relay holds. A thread of its own reads the
 * IP packets of each, looks the receiver up by address (10.77.0.1 is port 0, 10.77.0.2 port 1, ...) and
 * writes them to the receiver's device when the link's rule says:
 *
 *     node 0  ── TUN ──►  relay: lose? queue until it is due  ── TUN ──►  node 1
 *
 * Frames of one direction stay in order. Losses are drawn from (seed, link, count of its packets).
 *
 *     relay *r;
 *     relay_start(&r, tun_fds, 3, seed, err);
 *     relay_set(r, 0, 2, &(lab_quality){.delay_ms = 5});
 *     relay_cut(r, 0, 1, true);                     // 0 no longer reaches 1; 1 still reaches 0
 *     relay_mute(r, flows, n_flows, true, err);     // these TCP connections carry nothing any more
 *     relay_stop(r);
 *
 * All functions may be called by any thread. */
#ifndef LAB_RELAY_H
#define LAB_RELAY_H

#include "lab/scenario.h"

#define RELAY_NET "10.77.0."
enum { RELAY_MTU = 1500, RELAY_QUEUE_MAX = 1000 /* packets that a link holds; further ones are dropped */ };

typedef struct relay relay;

/* One TCP connection between nodes. Addresses and ports are in host byte order; which end is first does not
 * matter. */
typedef struct relay_flow {
    uint32_t address[2];
    uint16_t port[2];
} relay_flow;

/* fds[n] (copied) stay the caller's and must outlive the relay; they are made non-blocking. */
int relay_start(relay **ret, const int *fds, size_t n, uint64_t seed, shoal_err *err);
void relay_stop(relay *r); /* what still waits in links is lost; NULL is fine */

void relay_set(relay *r, size_t from, size_t to, const lab_quality *q);
void relay_cut(relay *r, size_t from, size_t to, bool cut); /* cuts are counted: two need two ends */

/* The device of a port is replaced; fd -1: the port is unplugged, and what is for it vanishes. The old
 * descriptor may be closed afterwards. SHOAL_EIO: nothing has changed. */
int relay_plug(relay *r, size_t port, int fd, shoal_err *err);

/* Packets of these connections vanish in both directions, ends of connections included, until they are
 * unmuted (mute false). SHOAL_ENOMEM: nothing has changed. */
int relay_mute(relay *r, const relay_flow *flows, size_t n, bool mute, shoal_err *err);

typedef struct relay_counts {
    uint64_t n_passed, n_lost, n_cut, n_full; /* packets: delivered, drawn to be lost, cut off, queue full */
    double held_us_p50, held_us_p99; /* how long the relay itself held those of links without a rule */
} relay_counts;
relay_counts relay_read(relay *r);

#endif
