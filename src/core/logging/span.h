/* span.h: what a traced request spent its time on, kept in a bounded ring.
 *
 * A span is a piece of time with a name, an id and a parent, as OpenTelemetry has them. Spans of one request
 * share a group. Only requests whose traceparent says "sampled" (trace.h) make spans. Times and ids are the
 * caller's: nothing here reads a clock or draws. When the ring is full the oldest go. One thread.
 *
 *     span s = {.group = rq->number, .id = id, .parent = trace_span(rq->trace), .start_ns = t0, .end_ns = t1};
 *     span_name(&s, "attempt home-chat-s/0");
 *     span_set(&s, "status", "0");
 *     span_ring_add(ring, &s);
 *     for (const span *at = NULL; (at = span_ring_next(ring, rq->number, at));) ...   // in their order
 */
#ifndef LOGGING_SPAN_H
#define LOGGING_SPAN_H

#include <stddef.h>
#include <stdint.h>

enum { SPAN_NAME_BYTES = 64, SPAN_VALUE_BYTES = 72, SPAN_ATTRIBUTES_MAX = 4 };

typedef struct span_attribute {
    const char *key; /* a constant */
    char value[SPAN_VALUE_BYTES];
} span_attribute;

typedef struct span {
    uint64_t group;      /* not 0 */
    uint64_t id, parent; /* parent 0: none */
    uint64_t start_ns, end_ns;
    char name[SPAN_NAME_BYTES];
    size_t n_attributes;
    span_attribute attributes[SPAN_ATTRIBUTES_MAX];
} span;

void span_name(span *s, const char *name);                  /* cut to fit, as are values */
void span_set(span *s, const char *key, const char *value); /* over SPAN_ATTRIBUTES_MAX it is left out */

typedef struct span_ring span_ring;
span_ring *span_ring_new(size_t n_spans);        /* NULL: out of memory */
void span_ring_free(span_ring *r);               /* accepts NULL */
void span_ring_add(span_ring *r, const span *s); /* copied */
/* The group's span behind `at`, NULL: its first. NULL: there is none. Dead after the next add. */
const span *span_ring_next(const span_ring *r, uint64_t group, const span *at);

#endif
