/* join_wave.c: the times of the last few joins. */
#include "control/placement/join_wave.h"

void join_wave_note(join_wave *w, uint64_t now_ms)
{
    w->at_ms[w->n++ % JOIN_WAVE_N] = now_ms;
}

bool join_wave_is_on(join_wave *w, uint64_t now_ms)
{
    uint64_t oldest_ms = w->at_ms[w->n % JOIN_WAVE_N];
    if (w->n < JOIN_WAVE_N || now_ms - oldest_ms >= JOIN_WAVE_MS) {
        w->since_ms = 0;
        return false;
    }
    if (w->since_ms == 0) w->since_ms = oldest_ms ? oldest_ms : 1;
    return now_ms - w->since_ms < JOIN_WAVE_MAX_MS;
}
