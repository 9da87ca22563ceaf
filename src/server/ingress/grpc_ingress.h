/* grpc_ingress.h: gRPC for applications, on the port of HTTP.
 *
 * A call of shoal.v1.Shoal (proto/shoal/v1/shoal.proto) becomes a request of our own endpoint (grpc_rpc.h),
 * so keys, limits, routes, ensembles, caches and failover hold for it as for any. Its answer's JSON becomes
 * the message, the events of a stream become messages, and the headers metadata. Beside it are spoken
 * grpc.health.v1 (grpc_health.c), and grpc.reflection.v1 and v1alpha (grpc_reflection.c).
 *
 * Deadlines: grpc-timeout is the request's. A cancelled call, or a client that has gone, ends the request's
 * work. A client that reads slowly rests its source, as over HTTP. Loop thread. */
#ifndef INGRESS_GRPC_INGRESS_H
#define INGRESS_GRPC_INGRESS_H

typedef struct grpc_ingress grpc_ingress;

#endif
