/* request_view.h: where one request's milliseconds went, as `shoal profile --request` shows it: a bar for each span of
 * GET /v1/requests, or for each part of it that is known without spans. Pure. */
#ifndef VIEW_REQUEST_VIEW_H
#define VIEW_REQUEST_VIEW_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

/* Append lines of up to `width` columns. SHOAL_ENOMEM. */
int request_view_put(buf *out, const json_t *request, size_t width, shoal_err *err);
/* The same as an object: {"id", "ms", "spans": [{"name", "depth", "start_ms", "ms", "self_ms"}]}. NULL: no memory. */
json_t *request_view_json(const json_t *request);

#endif
