/* attach_limit.h: how often one member may begin to attach.
 *
 * Each beginning costs the listener a session, and others a plan that may change; a machine that begins and
 * leaves without end would cost that without end. A member may begin ATTACH_LIMIT_BURST times at once and
 * once in ATTACH_LIMIT_REFILL_MS after that: more than any honest one whose link is bad needs
 * (attach_pause_ms), and others are not asked.
 *
 *     uint64_t wait_ms = attach_limit_pass(&g->attach_limit, peer->common_name, now_ms);
 *     if (wait_ms) ... refuse: try again in wait_ms ...
 *
 * A fixed table of hashes, four places for each; a full four forget who has been quiet for longest. Pure:
 * time is an argument, in milliseconds from any origin. */
#ifndef CONTROL_ATTACH_LIMIT_H
#define CONTROL_ATTACH_LIMIT_H

#include <stdint.h>

enum {
    ATTACH_LIMIT_PLACES = 1024,
    ATTACH_LIMIT_WAYS = 4,
    ATTACH_LIMIT_BURST = 20,
    ATTACH_LIMIT_REFILL_MS = 1000
};

typedef struct attach_limit_place {
    uint64_t id;       /* 0: free */
    uint64_t spent_ms; /* when all that it has spent is given back */
} attach_limit_place;

typedef struct attach_limit { /* zeroed: nobody has come */
    attach_limit_place places[ATTACH_LIMIT_PLACES];
} attach_limit;

/* 0: it may begin, which is counted; else so long it must wait, and nothing is counted. */
uint64_t attach_limit_pass(attach_limit *t, const char *name, uint64_t now_ms);

#endif
