/* encode_bytes.h: what /v1/score and /v1/images/classify are asked about, as the bytes that a worker reads: a
 * CSV or a picture, from a JSON body, in a form, or as the body itself. Pure. */
#ifndef MESSAGES_ENCODE_BYTES_H
#define MESSAGES_ENCODE_BYTES_H

#include "messages/encode_parse.h"

#define ENCODE_BYTES_MAX   ((size_t)15 << 20) /* what fits into a message to a worker */
#define ENCODE_COLUMNS_MAX 65536

/* Fill s->bytes from s->root: "csv", or "columns" and "rows"; resp. "image". 0 or the HTTP status in *e. */
int encode_bytes_score(encode_spec *s, api_error *e);
int encode_bytes_image(encode_spec *s, api_error *e);

/* Is a body of this type (NULL: none) what the endpoint is asked about, and not JSON that holds it? */
bool encode_bytes_is_raw(task_endpoint_id kind, const char *content_type);
/* Such a body; the query ("model=home&top_k=3", percent-encoded) says the rest. As encode_spec_parse. */
int encode_bytes_raw(encode_spec *ret, task_endpoint_id kind, const char *query, const char *body, size_t len,
                     api_error *e);

/* Is it a form with that as a file? It has file (or csv, resp. image), and may have model and top_k. */
bool encode_bytes_is_form(task_endpoint_id kind, const char *content_type);
int encode_bytes_form(encode_spec *ret, task_endpoint_id kind, const char *content_type, const char *body,
                      size_t len, api_error *e);

#endif
