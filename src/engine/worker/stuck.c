/* stuck.c: see stuck.h. */
#include "worker/stuck.h"

#define NS_PER_MS UINT64_C(1000000)

/* A core was hardly free, or not at all: the same share as in cluster/liveness.c. */
static bool waited(uint64_t delay_ns, uint64_t passed_ns)
{
    return delay_ns > 0 && delay_ns >= passed_ns / 20;
}

bool stuck_look(stuck *s, const stuck_sample *now)
{
    uint64_t passed_ns = now->now_ns - s->last_ns, delay_ns = now->run_delay_ns - s->run_delay_ns;
    bool ended = now->run_delay_ns < s->run_delay_ns; /* a thread, and nobody knows how long others waited */
    if (!now->works || now->progress != s->progress || s->last_ns == 0)
        s->still_ns = 0;
    else if (!ended && !waited(delay_ns, passed_ns))
        s->still_ns += passed_ns < STUCK_LOOK_MAX_MS * NS_PER_MS ? passed_ns : STUCK_LOOK_MAX_MS * NS_PER_MS;
    s->progress = now->progress;
    s->last_ns = now->now_ns;
    s->run_delay_ns = now->run_delay_ns;
    return s->still_ns >= STUCK_MS * NS_PER_MS;
}
