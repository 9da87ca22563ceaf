/* serve_arbiter.c: see serve_arbiter.h. */
#include "serve/serve_arbiter.h"

#include <unistd.h>

#include "os/handover.h"

enum { SLOTS = 64 };

#define KEPT_NAME "arbiter"

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

static int open_kept(arbiter **ret, int *ret_fd)
{
    shoal_err why;
    int fd = handover_take(KEPT_NAME);
    if (fd < 0) return SHOAL_ENOTFOUND;
    int rc = arbiter_open(ret, fd, &why);
    if (rc == 0) {
        *ret_fd = fd;
        return 0;
    }
    handover_forget(fd);
    close(fd);
    return rc;
}

int serve_arbiter_open(arbiter **ret, int *ret_fd, agent_arbiter *ret_share, shoal_err *err)
{
    int rc = open_kept(ret, ret_fd);
    if (rc != 0 && (rc = arbiter_create(ret, ret_fd, err)) == 0) handover_keep(KEPT_NAME, *ret_fd);
    if (rc != 0) return rc;
    *ret_share = (agent_arbiter){.fd = *ret_fd,
                                 .n_slots = SLOTS,
                                 .reap = reap,
                                 .progress = counters,
                                 .queues = queues,
                                 .inside = inside,
                                 .user = *ret};
    return 0;
}

void serve_arbiter_close(arbiter *a, int fd)
{
    arbiter_close(a);
    if (fd < 0) return;
    handover_forget(fd);
    close(fd);
}
