/* api_error.h: failures as clients see them: an HTTP status and the OpenAI error object.
 *
 *     {"error":{"message":"...","type":"invalid_request_error","param":"messages","code":null}} */
#ifndef MESSAGES_API_ERROR_H
#define MESSAGES_API_ERROR_H

#include <stdbool.h>

#include "base/buf.h"
#include "calls/calls.h"

typedef struct api_error {
    int status;              /* HTTP; 0: no error */
    const char *type, *code; /* static strings; code may be NULL */
    char param[64];          /* "" : null */
    char message[512];
    int retry_after_s; /* 0: no Retry-After header */
} api_error;

/* Fill *e and return its status. param NULL: none. */
int api_error_set(api_error *e, int status, const char *type, const char *code, const char *param,
                  const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* The common one: 400 invalid_request_error. */
int api_error_bad(api_error *e, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* 500 out_of_memory. */
int api_error_nomem(api_error *e);
/* 404 model_not_found. */
int api_error_no_model(api_error *e, const char *model);
/* What a failed model call means to the client. */
int api_error_from_call(api_error *e, const call_result *r);
/* Type and code for an error that the HTTP server itself answers. */
int api_error_from_status(api_error *e, int status, const char *message);
/* Append {"error":{...}}. */
void api_error_put(buf *out, const api_error *e);

/* Where an error is about a field (or what begins with its name), words of OpenAI's API as another says them. */
typedef struct api_error_name {
    const char *param, *from, *to;
} api_error_name;
/* In e's message and param; what becomes too long is cut. */
void api_error_rename(api_error *e, const api_error_name *rows, size_t n);

#endif
