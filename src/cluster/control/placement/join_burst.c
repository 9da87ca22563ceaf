/* join_burst.c: the times of the last few joins. */
#include "control/placement/join_burst.h"

void join_burst_note(join_burst *w, uint64_t now_ms)
{
    w->at_ms[w->n++ % JOIN_BURST_N] = now_ms;
}

bool join_burst_is_on(join_burst *w, uint64_t now_ms)
{
    uint64_t oldest_ms = w->at_ms[w->n % JOIN_BURST_N];
    if (w->n < JOIN_BURST_N || now_ms - oldest_ms >= JOIN_BURST_MS) {
        w->since_ms = 0;
        return false;
    }
    if (w->since_ms == 0) w->since_ms = oldest_ms ? oldest_ms : 1;
    return now_ms - w->since_ms < JOIN_BURST_MAX_MS;
}
