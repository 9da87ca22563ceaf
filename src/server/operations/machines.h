/* machines.h: GET /v1/nodes and POST /v1/nodes/NAME/ORDER: the machines of the cluster, and a person's word
 * to one.
 *
 * Machines that are attached to this gateway, with all that they say of themselves each second; through etcd
 * the other gateways as well, this one among them, and the machines that are attached there: every gateway
 * has the same list. */
#ifndef OPERATIONS_MACHINES_H
#define OPERATIONS_MACHINES_H

#include "request/request.h"

void machines_rebalance(gateway_request *rq);
void machines_placement(gateway_request *rq);
void machines_list(gateway_request *rq);
void machines_order(gateway_request *rq);

#endif
