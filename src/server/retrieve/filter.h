/* filter.h: which documents a search may look at, by their metadata.
 *
 *     {"room": "kitchen", "floor": 2}                                   all of these hold
 *     {"type": "and", "filters": [                                      OpenAI's form
 *         {"type": "eq", "key": "room", "value": "kitchen"},
 *         {"type": "gte", "key": "year", "value": 2024}]}
 *
 * Comparisons are eq, ne, gt, gte, lt, lte, in and nin; "and" and "or" hold any of both. The key "source" is
 * the document's source. A document without a key fulfils ne and nin alone.
 *
 * A filter becomes a condition of SQL over the row `d` of documents in which every value and every key is a
 * parameter: nothing of the request is part of the statement. Pure. */
#ifndef RETRIEVE_FILTER_H
#define RETRIEVE_FILTER_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

enum { FILTER_VALUES_MAX = 128, FILTER_DEPTH_MAX = 8, FILTER_KEY_MAX = 64 };

typedef struct filter_value { /* a parameter */
    enum { FILTER_TEXT, FILTER_INT, FILTER_REAL } kind;
    char *text; /* owned */
    int64_t i;
    double f;
} filter_value;

typedef struct filter {
    buf sql; /* "" or " AND (...)", parameters are ?1000, ?1001, ... */
    filter_value v[FILTER_VALUES_MAX];
    size_t n;
} filter;

enum { FILTER_FIRST_PARAMETER = 1000 };

/* A number beyond 2^63, of which the last digits are lost (json/json.h): 2^64 - 1 would find 2^64 - 2. */
bool filter_is_inexact(const json_t *v);
/* *ret zeroed before, and to be done with also after a failure. o NULL or JSON null: no filter.
 * SHOAL_EINVALID: it is none, and the sentence says where. */
int filter_parse(filter *ret, const json_t *o, shoal_err *err);
void filter_done(filter *f);

#endif
