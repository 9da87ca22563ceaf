/* serve_arbiter.h: the arbiter as an agent sees it. */
#ifndef SERVE_ARBITER_H
#define SERVE_ARBITER_H

#include "compute/compute.h"
#include "join/agent.h"

enum { SERVE_ARBITER_SLOTS = 64 };

/* Both must outlive the agent. */
agent_arbiter serve_arbiter(arbiter *a, int fd);

#endif
