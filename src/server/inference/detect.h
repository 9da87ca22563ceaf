/* detect.h: POST /v1/vad: where in a sound somebody speaks. */
#ifndef INFERENCE_DETECT_H
#define INFERENCE_DETECT_H

#include "messages/detect_parse.h"
#include "request/request.h"

/* Answers rq now or later; it is not to be touched afterwards. Loop thread. */
void detect_handle(gateway_request *rq);

#endif
