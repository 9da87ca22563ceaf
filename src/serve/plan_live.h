/* plan_live.h: the machines of a cluster that runs, for `shoal plan --server`: those that are attached, with
 * what they have measured and how far away they are, and this one, where the gateway is. */
#ifndef SERVE_PLAN_LIVE_H
#define SERVE_PLAN_LIVE_H

#include "base/arena.h"
#include "cluster/node.h"
#include "config/config.h"

/* server: as http_where_parse takes it. The nodes and what they point to are the arena's. SHOAL_EUNAVAILABLE:
 * nobody is there, or it has no port for machines. */
int plan_live_nodes(node **ret, size_t *ret_n, const char *server, const gateway_config *c, arena *mem,
                    shoal_err *err);

#endif
