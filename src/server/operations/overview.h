/* overview.h: GET /v1/status, what `shoal top` shows: the gateway, its replicas and their nodes, in one
 * object. */
#ifndef OPERATIONS_OVERVIEW_H
#define OPERATIONS_OVERVIEW_H

#include "request/request.h"

void overview_handle(gateway_request *rq);

#endif
