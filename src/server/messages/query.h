/* query.h: values of a URL's query: "model=a&prompt=two+words". */
#ifndef MESSAGES_QUERY_H
#define MESSAGES_QUERY_H

#include <stdint.h>

#include "messages/api_error.h"

/* The first value of that name, decoded and checked to be UTF-8, for the caller to free; *ret is NULL when
 * there is none. 0, or an HTTP status with *e filled. A NUL becomes a question mark. */
int query_value(const char *query, const char *name, char **ret, api_error *e);

/* A whole number of the query from min to max; *ret stays without one. 0, or an HTTP status. */
int query_number(const char *query, const char *name, int64_t min, int64_t max, int64_t *ret, api_error *e);

/* A segment of a path, s[0..n), decoded in the same way; a plus in it is a plus. */
int query_segment(const char *s, size_t n, char **ret, api_error *e);

#endif
