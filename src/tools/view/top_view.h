/* top_view.h: what `shoal top` shows, as lines: two looks at GET /v1/status and the time between them. Pure.
 */
#ifndef VIEW_TOP_VIEW_H
#define VIEW_TOP_VIEW_H

#include <jansson.h>

#include "base/buf.h"

/* Append the lines, each cut to `width` columns and ended by '\n', at most `height` of them; the last says
 * what is not shown (0: no bound). Rates are what grew from `before` (NULL: unknown) to `now` in `seconds`.
 * Text that others wrote (names, reasons) shows no control characters. */
void top_view_put(buf *out, const json_t *now, const json_t *before, double seconds, size_t width,
                  size_t height);
/* The same as one object: {"status", "tokens_per_s", "moves", ..., "nodes": [...], "replicas": [...]}, a rate
 * null where it is not known. NULL: no memory. */
json_t *top_view_json(const json_t *now, const json_t *before, double seconds);

#endif
