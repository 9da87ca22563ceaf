/* guard.h: how often unauthenticated peers may try.
 *
 * Failures are counted per source (an address); after GUARD_FREE of them the source waits, twice as long
 * after each further one, up to five minutes, and is forgotten after an hour of silence. All sources together
 * may fail GUARD_BURST times at once and GUARD_PER_S times a second, which bounds what guessing costs the CA:
 * a token's 128 bits are safe without any of this. Who succeeds is never counted. Pure: time is an argument,
 * in milliseconds from any origin; a fixed 32 KiB of memory.
 *
 *     uint64_t wait = guard_wait_ms(&g, peer, now);
 *     if (wait) ... refuse: try again in `wait` ms ...
 *     if (ca_enrol(...) == SHOAL_EAUTH) guard_failed(&g, peer, now); */
#ifndef TRUST_GUARD_H
#define TRUST_GUARD_H

#include <stddef.h>
#include <stdint.h>

enum {
    GUARD_SOURCES = 1024,
    GUARD_FREE = 5,
    GUARD_FIRST_MS = 1000,
    GUARD_MOST_MS = 300000,
    GUARD_FORGET_MS = 3600000,
    GUARD_BURST = 100,
    GUARD_PER_S = 20,
};

typedef struct guard_source {
    uint64_t id; /* 0: free */
    uint64_t last_ms, until_ms;
    uint32_t n_failed;
} guard_source;

typedef struct guard {
    guard_source sources[GUARD_SOURCES];
    uint64_t spent_ms; /* when all that failed together will have leaked away */
} guard;

/* A zeroed guard has seen nothing. `source`: the host of an IPv4 address, or an IPv6 address, of which the
 * first 64 bits count, since a host has the rest to itself. 0: may try now. */
uint64_t guard_wait_ms(const guard *g, const char *source, uint64_t now_ms);
void guard_failed(guard *g, const char *source, uint64_t now_ms);

#endif
