/* serve_arbiter.c: see serve_arbiter.h. */
#include "serve/serve_arbiter.h"

static void reap(void *user, int slot)
{
    arbiter_reap(user, slot);
}

static progress_counts *counters(void *user, int slot)
{
    return arbiter_progress(user, slot);
}

static bool queues(void *user, int slot)
{
    return arbiter_queues(user, slot);
}

static int inside(void *user, uint64_t *ret_n_locks)
{
    return arbiter_inside(user, ret_n_locks);
}

agent_arbiter serve_arbiter(arbiter *a, int fd)
{
    return (agent_arbiter){.fd = fd,
                           .n_slots = SERVE_ARBITER_SLOTS,
                           .reap = reap,
                           .progress = counters,
                           .queues = queues,
                           .inside = inside,
                           .user = a};
}
