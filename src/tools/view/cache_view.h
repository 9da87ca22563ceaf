/* cache_view.h: what GET /v1/cache says, as lines for people. */
#ifndef VIEW_CACHE_VIEW_H
#define VIEW_CACHE_VIEW_H

#include <jansson.h>

#include "base/buf.h"

void cache_view_put(buf *out, const json_t *cache);
/* The line of `shoal top`, without its end: "cache 1.2 of 16 MiB  hits 43 %  home 61 %, auto 20 %"; nothing
 * where nobody has asked yet. `n_names`: those that were asked most. */
void cache_view_line(buf *out, const json_t *cache, size_t n_names);

#endif
