/* cache_measure.h: what a cache by likeness would have served, and what of it wrongly.
 *
 * A file of pairs, a line each:
 *
 *     {"a": "turn on the light", "b": "please turn on the light", "same": true, "kind": "polite"}
 *
 * `same`: one answer serves both. Every text is embedded by a running server, each in a call of its own;
 * cosines and verdicts are the gateway's (retrieve/codes.h, cache/near_rule.h). */
#ifndef CLI_SERVE_CACHE_MEASURE_H
#define CLI_SERVE_CACHE_MEASURE_H

#include <stdbool.h>

#include "base/err.h"
#include "client/http_client.h"

typedef struct cache_measure_ask {
    const char *path, *model;
    const http_where *where;
    const char *headers; /* NULL: none */
    double threshold;    /* of the table by kinds */
    bool exact;          /* the rule for those who act */
    bool json;
} cache_measure_ask;

/* Prints the tables. */
int cache_measure(const cache_measure_ask *ask, shoal_err *err);

#endif
