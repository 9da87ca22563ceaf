/* event.h: the events of a stream, one by one.
 *
 * Writers of answers say events in the form of Server-Sent Events (WHATWG HTML 9.2): lines "id: ", "event: "
 * and "data: ", and an empty line behind each. A door that has a form of its own takes them apart:
 *
 *     event e;
 *     while (event_next(&bytes, &n, &e)) ...
 *
 * Pure; pieces are borrowed from the bytes. */
#ifndef INGRESS_EVENT_H
#define INGRESS_EVENT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct event { /* "" and 0: not said */
    const char *id, *name, *data;
    size_t n_id, n_name, n_data;
} event;

/* Take the next one off *bytes; false: there is no whole one any more. Of data in several lines the last
 * counts: the gateway writes one line. */
bool event_next(const char **bytes, size_t *n, event *ret);

#endif
