/* endpoint.h: every HTTP endpoint is one row of one table. */
#ifndef GATEWAY_ENDPOINT_H
#define GATEWAY_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "gateway/request.h"

enum {
    ENDPOINT_FORMS = 1,     /* files come as multipart/form-data, too */
    ENDPOINT_SOUND = 2,     /* its body may be longer than others (max_audio_mb) */
    ENDPOINT_OLLAMA = 32,   /* its errors are said as Ollama's are: {"error": "sentence"} */
    ENDPOINT_TUNNEL = 16,   /* another protocol is spoken there (wire/http.h) */
    ENDPOINT_DOCUMENTS = 8, /* the same (retrieval.max_document_mb) */
    ENDPOINT_PIECES =
        4, /* is called at the request's head, and takes the body as it comes (request_on_body) */
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

extern const endpoint ENDPOINTS[];
extern const size_t N_ENDPOINTS;

/* The row for this method and path. NULL when there is none; then *ret_allow is NULL (404) or the methods
 * that this path does have (405). */
const endpoint *endpoint_find(const char *method, const char *path, const char **ret_allow);

#endif
