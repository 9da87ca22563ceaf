/* sink.h: who is told of every request: once when it is let in, and once when it has ended.
 *
 *     static void note(gateway_request *rq, int status, const char *error_code) { ... }
 *     const request_sink MINE = {.name = "mine", .finish = note};
 *
 * The gateway has a list of them (gateway.c) and calls each in its order, so a request knows none of them by
 * name. A sink allocates nothing that its end depends on: it is told of requests that failed for want of
 * memory, too. Loop thread. */
#ifndef REQUEST_SINK_H
#define REQUEST_SINK_H

#include "request/request.h"

typedef struct request_sink {
    const char *name;
    void (*begin)(gateway_request *rq); /* let in, and its body is here; NULL: it does not care */
    /* It has ended with this status (499: its client left); error_code NULL: none. rq is freed afterwards. */
    void (*finish)(gateway_request *rq, int status, const char *error_code);
} request_sink;

/* Ends with NULL. */
typedef const request_sink *const request_sinks[];

#endif
