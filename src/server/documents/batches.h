/* batches.h: requests that can wait: OpenAI's /v1/batches and Anthropic's /v1/messages/batches.
 *
 * A batch reads an uploaded file (files.c) and writes others; Anthropic's brings its requests in the body, which become
 * such a file. batches/batch_runner.h runs them. */
#ifndef DOCUMENTS_BATCHES_H
#define DOCUMENTS_BATCHES_H

#include "request/request.h"

/* Each answers rq now or later; it is not to be touched afterwards. Loop thread. */
void batches_create(gateway_request *rq);
void batches_list(gateway_request *rq);
void batches_get(gateway_request *rq);
void batches_cancel(gateway_request *rq);

void message_batches_create(gateway_request *rq);
void message_batches_list(gateway_request *rq);
void message_batches_get(gateway_request *rq);
void message_batches_cancel(gateway_request *rq);
void message_batches_results(gateway_request *rq); /* lines of JSON, once it has ended */
void message_batches_delete(gateway_request *rq);

#endif
