/* pipelines.h: POST /v1/process: a pipeline answers one request; GET /v1/pipelines: which there are. Loop
 * thread. */
#ifndef INFERENCE_PIPELINES_H
#define INFERENCE_PIPELINES_H

#include "request/request.h"

/* Takes the request over and answers it, at once or later; cancels its model calls when the client leaves. */
void pipelines_process(gateway_request *rq);

/* {"object": "list", "data": [{"id": "home", "object": "pipeline",
 *    "stages": [{"stage": "intent", "kind": "classify", "model": "home-intent", "optional": true}, ...],
 *    "devices": [{"id": "light.kitchen", "name": "Kitchen Light", "state": "off"}, ...]}]} */
void pipelines_list(gateway_request *rq);

#endif
