/* pipelines.h: POST /v1/process: a pipeline answers one request. Loop thread. */
#ifndef ENDPOINTS_PIPELINES_H
#define ENDPOINTS_PIPELINES_H

#include "gateway/request.h"

/* Takes the request over and answers it, at once or later; cancels its model calls when the client leaves. */
void pipelines_process(gateway_request *rq);

#endif
