/* endpoint.h: every HTTP endpoint is one row of one table (endpoints/table.c). */
#ifndef REQUEST_ENDPOINT_H
#define REQUEST_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "request/request.h"

enum {
    ENDPOINT_FORMS = 1,  /* files come as multipart/form-data, too */
    ENDPOINT_SOUND = 2,  /* its body may be longer than others (max_audio_mb) */
    ENDPOINT_PIECES = 4, /* is called at the request's head; takes the body as it comes (request_on_body) */
    ENDPOINT_DOCUMENTS = 8,    /* its body may be longer than others (retrieval.max_document_mb) */
    ENDPOINT_TUNNEL = 16,      /* another protocol is spoken there (http/http.h) */
    ENDPOINT_OLLAMA = 32,      /* its errors are said as Ollama's are: {"error": "sentence"} */
    ENDPOINT_PIPELINE = 64,    /* takes sound if a pipeline of the configuration listens */
    ENDPOINT_KSERVE = 128,     /* its errors are the Open Inference Protocol's: as Ollama's */
    ENDPOINT_LLAMA = 256,      /* as llama-server's are: {"error": {"code": 400, "message", "type"}} */
    ENDPOINT_ADMIN = 512,      /* shows or changes the server: needs a key with 'admin: true' */
    ENDPOINT_METRICS = 1024,   /* with which key is what metrics.key says */
    ENDPOINT_RESPONSES = 2048, /* its errors name the fields of the Responses API, not those of chat */
    /* Writes replies, which have limits of their own (calls/limit_calls.h) and no deadline unless the client
     * sends one. */
    ENDPOINT_REPLY = 4096,
    /* Its errors are said as Anthropic's are; elsewhere they are where a request says anthropic-version. */
    ENDPOINT_ANTHROPIC = 8192,
    ENDPOINT_RPC =
        16384 /* its errors are JSON-RPC's: {"jsonrpc": "2.0", "id", "error": {"code", "message"}} */
};

typedef struct endpoint {
    /* In path, '*' is any one segment; '/' at the end is one more, or several: a model's name. */
    const char *method, *path;
    void (*handle)(gateway_request *rq);
    bool needs_key;   /* when the configuration lists API keys */
    bool admitted;    /* counts against max_requests, and is refused while draining */
    const char *name; /* label in metrics and logs */
    unsigned takes;   /* ENDPOINT_... */
    /* What is told about it: in /openapi.json, in docs/http.md and at /docs. Schemas are named as in
     * assets/docs/components.json. */
    const char *tag;     /* what it belongs to: "chat", "retrieval", ...; a class of rates, too */
    const char *summary; /* one line, as an order: "Classify texts" */
    const char *request; /* of the body; of a GET or DELETE, of the query. NULL: none is read */
    const char *answer; /* or media types, where it is no JSON ("text/html, text/plain"). NULL: it streams, or
                           has no body */
    const char *events; /* of each event of a stream; NULL: it does not stream */
} endpoint;

typedef struct endpoint_table {
    const endpoint *rows;
    size_t n;
} endpoint_table;

/* Does a path belong to a row's? */
bool endpoint_path_matches(const char *pattern, const char *path);
/* The row for this method and path. NULL when there is none; then *ret_allow is NULL (404) or the methods
 * that this path does have (405). */
const endpoint *endpoint_find(const endpoint_table *t, const char *method, const char *path,
                              const char **ret_allow);

/* For a path that is none: the row whose path differs in at most four letters from it, and in no more than
 * a quarter, of equals one with this method; NULL: none is near. ret_path[cap]: the path that was meant. */
const endpoint *endpoint_near(const endpoint_table *t, const char *method, const char *path, char *ret_path,
                              size_t cap);

#endif
