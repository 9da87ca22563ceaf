/* requests.h: GET /v1/requests, the last requests with what became of them (recent.h).
 *
 *     GET /v1/requests?model=home-chat-s&status=error&slow_ms=200&limit=50
 *     {"object": "list", "last": 812, "kept": 512, "prompts": false, "data": [{"number": 811, ...}, ...]} */
#ifndef OPERATIONS_REQUESTS_H
#define OPERATIONS_REQUESTS_H

#include "request/request.h"

void requests_list(gateway_request *rq);

#endif
