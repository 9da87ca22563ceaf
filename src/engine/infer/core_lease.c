/* core_lease.c: see core_lease.h. */
#include "infer/core_lease.h"

#include "base/clock.h"
#include "base/sys.h"

#define TURN_NS  3000000u /* others wait so long for a step that lasts, and not a barrier longer */
#define COUNT_NS 2000000u /* free cores are counted so often at most */

/* The cores are ours: go to where they are. */
static void take_cores(core_lease *t)
{
    arbiter_acquire(t->arbiter, t->deadline_ns, t->n_cores);
    const cpu_set_t *where = arbiter_cpus(t->arbiter);
    if (!t->team || where == t->where) return;
    team_place(t->team, where);
    t->where = where;
}

static void give_way(void *user)
{
    core_lease *t = user;
    if (t->since_ns == 0 || !arbiter_is_wanted(t->arbiter)) return;
    uint64_t now = clock_ns();
    if (now - t->since_ns < TURN_NS) return;
    arbiter_release(t->arbiter);
    take_cores(t);
    t->since_ns = clock_ns();
    t->away_ns += t->since_ns - now;
}

void core_lease_watch(core_lease *t, team *of)
{
    t->team = of;
    if (t->arbiter) team_at_barriers(of, give_way, t);
}

uint64_t core_lease_begin(core_lease *t, uint64_t deadline_ns, int n_cores)
{
    t->n_cores = n_cores;
    t->deadline_ns = deadline_ns;
    if (t->arbiter) take_cores(t);
    t->away_ns = 0;
    t->cpu_ns = clock_thread_cpu_ns();
    return t->since_ns = t->start_ns = clock_ns();
}

int core_lease_members(const core_lease *t, step_cost *p, step_kind k, size_t n_tokens)
{
    p->crowd = t->arbiter ? arbiter_crowd(t->arbiter) : 1;
    int n = step_cost_choose(p, k, n_tokens);
    if (n > step_cost_prefers(p, k, n_tokens) && t->n_free > 0 && n > t->n_free)
        n = step_cost_defer(p, k, n_tokens, n);
    return n;
}

/* At a step's end: when the next one begins, those who pass on what this one gave are at work for a moment. */
static void count_free(core_lease *t, uint64_t now)
{
    if (now - t->counted_ns < COUNT_NS) return;
    t->n_free = sys_free_cores();
    t->counted_ns = now;
}

uint64_t core_lease_end(core_lease *t)
{
    uint64_t now = clock_ns(), took = now - t->start_ns - t->away_ns;
    t->since_ns = 0;
    t->cpu_ns = (clock_thread_cpu_ns() - t->cpu_ns) * (uint64_t)t->n_cores;
    if (t->arbiter) arbiter_release(t->arbiter);
    count_free(t, now);
    return took;
}
