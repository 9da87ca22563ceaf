/* join_wave.h: are many machines joining just now?
 *
 * Each machine that comes changes the plan. While many come, replicas that were spread over the first few
 * would be moved again and again, so placement waits with what shares a machine until the wave is over: until
 * fewer than JOIN_WAVE_N machines have come within JOIN_WAVE_MS, or the wave lasts for JOIN_WAVE_MAX_MS.
 *
 *     join_wave_note(&w, now_ms);                        // a machine has come
 *     if (join_wave_is_on(&w, now_ms)) ... wait ...
 *
 * Pure: time is an argument, in milliseconds from any origin. A zeroed one has seen nobody. */
#ifndef CONTROL_PLACEMENT_JOIN_WAVE_H
#define CONTROL_PLACEMENT_JOIN_WAVE_H

#include <stdbool.h>
#include <stdint.h>

enum { JOIN_WAVE_N = 4, JOIN_WAVE_MS = 2000, JOIN_WAVE_MAX_MS = 30000 };

typedef struct join_wave {
    uint64_t at_ms[JOIN_WAVE_N]; /* when the last so many came; a ring */
    uint64_t n;                  /* machines that have come */
    uint64_t since_ms;           /* when the present wave began; 0: there is none */
} join_wave;

void join_wave_note(join_wave *w, uint64_t now_ms);
bool join_wave_is_on(join_wave *w, uint64_t now_ms);

#endif
