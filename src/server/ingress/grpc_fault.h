/* grpc_fault.h: our errors as gRPC's statuses, with details that programs can read.
 *
 * The trailer grpc-status-details-bin is a google.rpc.Status (github.com/googleapis/googleapis, google/rpc)
 * with one ErrorInfo: reason is the error's code, domain "shoal", metadata its type, param and HTTP status;
 * and a RetryInfo where HTTP says Retry-After. Pure. */
#ifndef INGRESS_GRPC_FAULT_H
#define INGRESS_GRPC_FAULT_H

#include "messages/api_error.h"
#include "base/buf.h"
#include "json/json.h"
#include "grpc/grpc.h"

typedef struct grpc_fault {
    grpc_status status;
    buf message;
    buf details; /* base64 of the google.rpc.Status; empty: there was no memory for it */
} grpc_fault;

grpc_status grpc_status_of_http(int http_status);
/* body: {"error": {...}}, or anything else. http_status 0: it is the error of a stream, whose type tells. */
void grpc_fault_from_body(grpc_fault *ret, int http_status, const char *body, size_t n, int retry_after_s);
void grpc_fault_from_json(grpc_fault *ret, int http_status, const json_t *body, int retry_after_s);
void grpc_fault_from_error(grpc_fault *ret, const api_error *e);
void grpc_fault_done(grpc_fault *f); /* accepts a zeroed one */

#endif
