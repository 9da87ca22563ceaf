/* openapi.h: what this server answers, as an OpenAPI document (3.1).
 *
 * Paths and operations are made of the table of endpoints, so that none can be missing; the schemas that its
 * rows name stand in assets/docs/components.json, with the parameters, headers and errors that operations
 * share. A schema of a request may say beside its fields
 *
 *     "x-form": NAME       it may come as multipart/form-data, whose fields are that schema's
 *     "x-raw": [TYPE]      or as a body of such a type, which is the file itself
 *     "x-refused": [NAME]  fields of other servers that are not ignored here but refused by name
 *
 * A schema without "properties" is not sent as JSON at all. GET /openapi.json answers with the document, made
 * once and kept by the gateway. */
#ifndef ENDPOINTS_OPENAPI_H
#define ENDPOINTS_OPENAPI_H

#include "request/endpoint.h"

/* Append the document, compact. *ret_missing, which may be NULL: a schema that a row names and that stands
 * nowhere, so that nothing is said in its place; NULL: none. keyed: the configuration has keys, so that operations
 * need one. 0, or SHOAL_ENOMEM. */
int openapi_put(buf *out, const endpoint_table *t, bool keyed, const char **ret_missing, shoal_err *err);
/* Append a row's path with its parameters named: "/v1/files/" "*" "/content" is "/v1/files/{file}/content".
 */
void openapi_put_path(buf *out, const char *pattern);

void openapi_handle(gateway_request *rq); /* GET /openapi.json */

#endif
