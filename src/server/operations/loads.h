/* loads.h: models that come and go while the server runs.
 *
 *     POST /v1/models/load    {"model": "hf:ORG/NAME:Q4_K_M", "name": "chat", "replicas": 2, "stream": true}
 *     POST /v1/models/unload  {"model": "chat", "drain": true, "force": false}
 *     DELETE /v1/models/chat?force=true                       its file goes out of the store
 *
 * Each answers when it is done: with the model as GET /v1/models/NAME has it, or with why not, and then all
 * is as it was before. With "stream" the steps come as events, {"status": "fetching", "completed": ...}, or
 * as lines where the client accepts application/x-ndjson. Whoever leaves leaves the work to go on. */
#ifndef OPERATIONS_LOADS_H
#define OPERATIONS_LOADS_H

#include "request/request.h"

void loads_load(gateway_request *rq);
void loads_unload(gateway_request *rq);
void loads_delete(gateway_request *rq);

#endif
