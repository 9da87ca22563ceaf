/* door_grpc.h: gRPC for applications, on the port of HTTP.
 *
 * A call of shoal.v1.Shoal (proto/shoal/v1/shoal.proto) becomes a request of our own endpoint (grpc_rpc.h),
 * so keys, limits, routes, ensembles, caches and failover hold for it as for any. Its answer's JSON becomes
 * the message, the events of a stream become messages, and the headers metadata. Beside it are spoken
 * grpc.health.v1 (grpc_health.c), and grpc.reflection.v1 and v1alpha (grpc_reflection.c).
 *
 * Deadlines: grpc-timeout is the request's. A cancelled call, or a client that has gone, ends the request's
 * work. A client that reads slowly rests its source, as over HTTP. Loop thread. */
#ifndef INGRESS_DOOR_GRPC_H
#define INGRESS_DOOR_GRPC_H

#include "base/err.h"
#include "http/http.h"

struct gateway;
typedef struct door_grpc door_grpc;

/* g->grpc, within g->server. */
int door_grpc_open(struct gateway *g, shoal_err *err);
/* What the server is to do with requests that grpc_wants. */
const http_handler *door_grpc_handler(const door_grpc *d);
/* How long such a request may be. */
size_t door_grpc_body_limit(const struct gateway *g, const http_request *http);
void grpc_health_tell(door_grpc *d); /* watches hear what has changed */
void door_grpc_drain(door_grpc *d);  /* ends what would go on for ever */
/* Before the registry may go: it is not heard any more. NULL is fine, as below. */
void door_grpc_deafen(door_grpc *d);
/* When g->server is closed; closed(user) comes from the loop. */
void door_grpc_close(door_grpc *d, void (*closed)(void *user), void *user);

#endif
