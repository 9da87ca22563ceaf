/* ps_view.h: what `shoal ps` shows: the replicas of GET /v1/status, summed up by model. Pure. */
#ifndef VIEW_PS_VIEW_H
#define VIEW_PS_VIEW_H

#include <jansson.h>

#include "base/buf.h"

/* One object a model, in the order of the status: {"model", "state", "replicas", "ready", "machines": [...],
 * "memory_bytes", "running", "waiting", "tokens_per_s", "crashes", "since"}, "crash_report" of one that has crashed, and "reason" where no replica of it takes
 * calls. state: the best of its replicas' (ready before starting before down), "missing" of a model that has
 * none. NULL: no memory. */
json_t *ps_view_models(const json_t *status);

/* Those as lines with a heading, each cut to `width` columns (0: not cut). now: seconds since 1970. */
void ps_view_put(buf *out, const json_t *models, long long now, size_t width);

/* "5 s", "3 min", "2 h", "4 d" */
void ps_view_ago(char ret[16], long long seconds);

#endif
