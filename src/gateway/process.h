/* process.h: POST /v1/process: runs a pipeline for one request.
 *
 * A run holds the facts so far, starts every stage that may start (pipeline_judge), and answers when
 * none is left. The run itself knows no HTTP: it takes an input and the model calls, and gives JSON
 * (process_run_start), so it is tested without sockets; process_handle is the endpoint around it. */
#ifndef GATEWAY_PROCESS_H
#define GATEWAY_PROCESS_H

#include <jansson.h>

#include "gateway/backend.h"
#include "gateway/cache.h"
#include "gateway/pipeline.h"

struct gateway_request; /* gateway/request.h */

/* The endpoint: takes the request over and answers it, at once or later; cancels its model calls when
 * the client leaves. */
void process_handle(struct gateway_request *rq);

/* ---- the run ----------------------------------------------------------------------------------- */

/* What a request asked for; owned by whoever parsed it, must outlive the run. */
typedef struct process_input {
    const config_pipeline *pipeline;
    const char *text;
    const config_device *devices; /* the request's, else the pipeline's */
    size_t n_devices;
    const char *context; /* free text, "" when none */
} process_input;

/* The model calls, in the signatures of backend.h; a test gives its own. */
typedef struct process_calls {
    backend *b;
    __typeof__(&backend_classify) classify;
    __typeof__(&backend_tag) tag;
    __typeof__(&backend_generate) generate;
    __typeof__(&backend_cancel) cancel;
} process_calls;

typedef struct process_run process_run;

/* status 0: answer is the response object without id (borrowed until the callback returns). Otherwise
 * `message` is a sentence that names the stage. The run is dead afterwards. */
typedef void (*process_done_fn)(void *user, int status, const char *message, bool retryable, json_t *answer);

int process_run_start(process_run **ret, const process_input *in, const process_calls *calls,
                      const backend_context *ctx, process_done_fn done, void *user, shoal_err *err);
void process_run_cancel(process_run *r); /* no callback follows; accepts NULL */

#endif
