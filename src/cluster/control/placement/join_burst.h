/* join_burst.h: are many machines joining just now?
 *
 * Each machine that comes changes the plan. While many come, replicas that were spread over the first few
 * would be moved again and again, so placement waits with what shares a machine until the burst is over:
 * until fewer than JOIN_BURST_N machines have come within JOIN_BURST_MS, or the burst lasts for JOIN_BURST_MAX_MS.
 *
 *     join_burst_note(&w, now_ms);                        // a machine has come
 *     if (join_burst_is_on(&w, now_ms)) ... wait ...
 *
 * Pure: time is an argument, in milliseconds from any origin. A zeroed one has seen nobody. */
#ifndef CONTROL_PLACEMENT_JOIN_BURST_H
#define CONTROL_PLACEMENT_JOIN_BURST_H

#include <stdbool.h>
#include <stdint.h>

enum { JOIN_BURST_N = 4, JOIN_BURST_MS = 2000, JOIN_BURST_MAX_MS = 30000 };

typedef struct join_burst {
    uint64_t at_ms[JOIN_BURST_N]; /* when the last so many came; a ring */
    uint64_t n;                   /* machines that have come */
    uint64_t since_ms;            /* when the present burst began; 0: there is none */
} join_burst;

void join_burst_note(join_burst *w, uint64_t now_ms);
bool join_burst_is_on(join_burst *w, uint64_t now_ms);

#endif
