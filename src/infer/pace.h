/* pace.h: how many threads a step of this size should have, found out by measuring.
 *
 * A step of a tiny model lasts 200 us and has dozens of barriers. On a quiet machine two threads
 * gain a quarter; when another program wants one of the two cores, each barrier waits for the
 * scheduler and the same step takes ten times as long (measured on two cores beside a compiler: 5800
 * tokens/s with one thread, 7300 with two on the quiet machine, 360 with two on the busy one). So the
 * engine times both ways for each size of step and takes the better, trying the other one now and
 * then. The results do not depend on it. Engine thread only. */
#ifndef INFER_PACE_H
#define INFER_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE_CLASSES 12 /* sizes of step: 1, 2-3, 4-7, ... tokens */

typedef struct pace {
    struct {
        double ns[2]; /* a token: alone, as a team; 0: not measured */
        unsigned n_steps;
    } of[PACE_CLASSES];
} pace;

/* Should the next step of n_tokens run on the whole team? */
bool pace_choose(pace *p, size_t n_tokens);
/* It did (or did not), and took this long. */
void pace_note(pace *p, size_t n_tokens, bool as_team, uint64_t took_ns);

#endif
