/* turnstile.h: how often one member may begin to attach.
 *
 * Each beginning costs the listener a session, and others a plan that may change; a machine that begins and
 * leaves without end would cost that without end. A member may begin TURNSTILE_BURST times at once and once
 * in TURNSTILE_REFILL_MS after that: more than any honest one whose link is bad needs (attach_pause_ms), and
 * others are not asked.
 *
 *     uint64_t wait_ms = turnstile_pass(&g->turnstile, peer->common_name, now_ms);
 *     if (wait_ms) ... refuse: try again in wait_ms ...
 *
 * A fixed table of hashes, four places for each; a full four forget who has been quiet for longest. Pure:
 * time is an argument, in milliseconds from any origin. */
#ifndef CONTROL_TURNSTILE_H
#define CONTROL_TURNSTILE_H

#include <stdint.h>

enum { TURNSTILE_PLACES = 1024, TURNSTILE_WAYS = 4, TURNSTILE_BURST = 20, TURNSTILE_REFILL_MS = 1000 };

typedef struct turnstile_place {
    uint64_t id;       /* 0: free */
    uint64_t spent_ms; /* when all that it has spent is given back */
} turnstile_place;

typedef struct turnstile { /* zeroed: nobody has come */
    turnstile_place places[TURNSTILE_PLACES];
} turnstile;

/* 0: it may begin, which is counted; else so long it must wait, and nothing is counted. */
uint64_t turnstile_pass(turnstile *t, const char *name, uint64_t now_ms);

#endif
