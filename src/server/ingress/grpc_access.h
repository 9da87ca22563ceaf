/* grpc_access.h: whether a gRPC call shows a key that the gateway would let in, asked before there is a request. */
#ifndef INGRESS_GRPC_ACCESS_H
#define INGRESS_GRPC_ACCESS_H

#include "request/gateway_state.h"
#include "grpc/grpc.h"

/* Does the key count (or is none needed), and may it use the model (NULL: any)? */
bool grpc_access_shown(const gateway *g, const char *shown, const char *model);
bool grpc_access_has(const gateway *g, const grpc_call *call, const char *model);

#endif
