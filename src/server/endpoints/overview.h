/* overview.h: GET /v1/status, what `shoal top` shows: the gateway, its replicas and their nodes, in one
 * object. */
#ifndef ENDPOINTS_OVERVIEW_H
#define ENDPOINTS_OVERVIEW_H

#include "gateway/request.h"

void overview_handle(gateway_request *rq);

#endif
