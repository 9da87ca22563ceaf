/* stuck.h: does the work of this process stand still? For a worker that no agent watches (agent/agent_watch.c does so from
 * outside, and sooner). Pure: from looks in the order of time.
 *
 * Threads that compute advance a counter (base/progress.h). While it stands still although one of them is at work, looks add up
 * the time, less what a thread waited for a core, and less what the one who looks did not run. STUCK_MS is the longest that an
 * agent lets its workers stand still: that of a disk (cluster/liveness.h).
 *
 *     stuck s = {0};
 *     if (stuck_look(&s, &now)) abort();      // several times a second */
#ifndef WORKER_STUCK_H
#define WORKER_STUCK_H

#include <stdbool.h>
#include <stdint.h>

enum { STUCK_MS = 30000, STUCK_LOOK_MAX_MS = 1000 };

typedef struct stuck_sample {
    uint64_t now_ns, progress;
    uint64_t run_delay_ns; /* how long its threads have waited for a core in their lives, together */
    bool works;            /* a thread is expected to get on */
} stuck_sample;

typedef struct stuck { /* zeroed: nobody has looked */
    uint64_t progress, last_ns, run_delay_ns, still_ns;
} stuck;

/* True: it has stood still for STUCK_MS. */
bool stuck_look(stuck *s, const stuck_sample *now);

#endif
