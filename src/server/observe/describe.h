/* describe.h: the gateway, its replicas and their machines as JSON objects: what GET /v1/status and GET
 * /v1/events are made of.
 *
 * Each appends one object to a buf, whose `failed` says whether there was memory for it. Loop thread. */
#ifndef OBSERVE_DESCRIBE_H
#define OBSERVE_DESCRIBE_H

#include "base/buf.h"
#include "cluster/registry.h"

struct gateway;

void describe_gateway(buf *out, const struct gateway *g); /* left open: the caller adds members and the '}' */
void describe_replica(buf *out, const struct gateway *g, const replica *r);
/* "ready" and the others of replica_state_name; "silent" or "standby" for a ready one that takes no calls. */
const char *describe_replica_state(const replica *r);
void describe_node(buf *out, const node *n);
/* This machine, whose name among the replicas is "". */
void describe_here(buf *out, const node *n, const char *site);

#endif
