/* serve_arbiter.h: the page by which the workers of this machine share its cores; one that outlives a crash
 * where a supervisor keeps it (os/handover.h). */
#ifndef SERVE_SERVE_ARBITER_H
#define SERVE_SERVE_ARBITER_H

#include "compute/compute.h"
#include "agent/agent.h"

/* *ret_fd is the caller's to close, after handover_forget. ret_share: what agents are told; borrows both. */
int serve_arbiter_open(arbiter **ret, int *ret_fd, agent_arbiter *ret_share, shoal_err *err);
void serve_arbiter_close(arbiter *a, int fd); /* NULL and -1 are fine */

#endif
