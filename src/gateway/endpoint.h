/* endpoint.h: every HTTP endpoint is one row of one table (endpoints/table.c). */
#ifndef GATEWAY_ENDPOINT_H
#define GATEWAY_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "gateway/request.h"

enum {
    ENDPOINT_FORMS = 1,  /* files come as multipart/form-data, too */
    ENDPOINT_SOUND = 2,  /* its body may be longer than others (max_audio_mb) */
    ENDPOINT_PIECES = 4, /* is called at the request's head; takes the body as it comes (request_on_body) */
    ENDPOINT_DOCUMENTS = 8, /* its body may be longer than others (retrieval.max_document_mb) */
    ENDPOINT_TUNNEL = 16,   /* another protocol is spoken there (wire/http.h) */
    ENDPOINT_OLLAMA = 32,   /* its errors are said as Ollama's are: {"error": "sentence"} */
    ENDPOINT_PIPELINE = 64, /* takes sound if a pipeline of the configuration listens */
};

typedef struct endpoint {
    const char *method,
        *path; /* '*' is any one segment; '/' at the end is one more, or several: a model's name */
    void (*handle)(gateway_request *rq);
    bool needs_key;   /* when the configuration lists API keys */
    bool admitted;    /* counts against max_requests, and is refused while draining */
    const char *name; /* label in metrics and logs */
    unsigned takes;   /* ENDPOINT_... */
} endpoint;

typedef struct endpoint_table {
    const endpoint *rows;
    size_t n;
} endpoint_table;

/* The row for this method and path. NULL when there is none; then *ret_allow is NULL (404) or the methods
 * that this path does have (405). */
const endpoint *endpoint_find(const endpoint_table *t, const char *method, const char *path,
                              const char **ret_allow);

#endif
