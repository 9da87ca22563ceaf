/* response_items.h: the items of a response's input, as they are kept with it and listed. Pure. */
#ifndef DIALECTS_RESPONSE_ITEMS_H
#define DIALECTS_RESPONSE_ITEMS_H

#include "dialects/responses.h"

/* Append the items of "input" as a JSON array: a text is a message, each item has an id made of `hex` where
 * it brings none, and a message's text is a list of parts. */
void response_items_put(buf *out, const response_spec *s, const char *hex);

/* A page of GET /v1/responses/ID/input_items. */
typedef struct response_page {
    int64_t limit;
    bool newest_first;
    const char *after, *before; /* ids; NULL: from the beginning, to the end. Borrowed */
} response_page;

/* Of the request's query: limit (20), order (desc), after, before. 0 or the status of *e; response_page_done
 * is due in either case. */
int response_page_read(response_page *ret, const char *query, api_error *e);
void response_page_done(response_page *p);
/* Append the list; items may be NULL. 0, or the status of *e: an id is not among them. */
int response_items_put_page(buf *out, const json_t *items, const response_page *p, api_error *e);

#endif
