/* transcribe.h: POST /v1/audio/transcriptions and /v1/audio/translations, streamed and not. */
#ifndef INFERENCE_TRANSCRIBE_H
#define INFERENCE_TRANSCRIBE_H

#include "request/request.h"

/* Each answers rq now or later; it is not to be touched afterwards. Loop thread. */
void transcribe_handle(gateway_request *rq);
void transcribe_translate(gateway_request *rq);

#endif
