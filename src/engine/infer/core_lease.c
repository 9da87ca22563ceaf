/* core_lease.c: see core_lease.h. */
#include "infer/core_lease.h"

#include "base/clock.h"

#define TURN_NS 3000000u /* others wait so long for a step that lasts, and not a barrier longer */

static void give_way(void *user)
{
    core_lease *t = user;
    if (t->since_ns == 0 || !arbiter_is_wanted(t->arbiter)) return;
    uint64_t now = clock_ns();
    if (now - t->since_ns < TURN_NS) return;
    arbiter_release(t->arbiter);
    arbiter_acquire(t->arbiter, t->deadline_ns, t->n_cores);
    t->since_ns = clock_ns();
    t->away_ns += t->since_ns - now;
}

void core_lease_watch(core_lease *t, team *of)
{
    if (t->arbiter) team_at_barriers(of, give_way, t);
}

uint64_t core_lease_begin(core_lease *t, uint64_t deadline_ns, int n_cores)
{
    if (t->arbiter) arbiter_acquire(t->arbiter, deadline_ns, n_cores);
    t->n_cores = n_cores;
    t->deadline_ns = deadline_ns;
    t->away_ns = 0;
    return t->since_ns = t->start_ns = clock_ns();
}

int core_lease_crowd(const core_lease *t)
{
    return t->arbiter ? arbiter_crowd(t->arbiter) : 1;
}

uint64_t core_lease_end(core_lease *t)
{
    uint64_t took = clock_ns() - t->start_ns - t->away_ns;
    t->since_ns = 0;
    if (t->arbiter) arbiter_release(t->arbiter);
    return took;
}
