/* span.h: what a request spent its time on: a list while it runs, a bounded ring for those who look back.
 *
 * A span is a piece of time with a kind, a name, an id and a parent, as OpenTelemetry has them. Spans of one request
 * share a group. Times and ids are the caller's: nothing here reads a clock or draws. One thread.
 *
 *     span s = {.kind = SPAN_CALL, .id = id, .parent = trace_span(rq->trace), .start_ns = t0, .end_ns = t1};
 *     span_name(&s, "generate");
 *     span_set(&s, "replica", "home-chat-s/0");
 *     span_list_add(&rq->spans, &s);
 *     span_ring_add(ring, &s);                                // in the end, when the oldest go
 *     for (const span *at = NULL; (at = span_ring_next(ring, rq->number, at));) ...   // in their order
 */
#ifndef LOGGING_SPAN_H
#define LOGGING_SPAN_H

#include <stddef.h>
#include <stdint.h>

enum { SPAN_NAME_BYTES = 64, SPAN_VALUES_BYTES = 352, SPAN_VALUE_MAX = 96, SPAN_ATTRIBUTES_MAX = 12 };

/* X(enum, name): what a span is of. */
#define SPAN_KIND_TABLE(X)                                                    \
    X(SPAN_REQUEST, "request")   /* the whole request, in the gateway */      \
    X(SPAN_ROUTE, "route")       /* of a route, from its decision on */       \
    X(SPAN_ENSEMBLE, "ensemble") /* several models that come to one answer */ \
    X(SPAN_STAGE, "stage")       /* a stage of a pipeline */                  \
    X(SPAN_CALL, "call")         /* one replica's part in a model call */     \
    X(SPAN_PHASE, "phase")       /* what its worker said that it spent time on */
typedef enum span_kind {
#define SPAN_KIND_ENUM(e, name) e,
    SPAN_KIND_TABLE(SPAN_KIND_ENUM)
#undef SPAN_KIND_ENUM
        SPAN_N_KINDS
} span_kind;
const char *span_kind_name(span_kind k);

typedef struct span_attribute {
    const char *key; /* a constant */
    size_t at;       /* where in `values` its text begins */
} span_attribute;

typedef struct span {
    uint64_t group;      /* not 0 in a ring */
    uint64_t id, parent; /* parent 0: none */
    uint64_t start_ns, end_ns;
    span_kind kind;
    char name[SPAN_NAME_BYTES];
    size_t n_attributes, n_values; /* n_values: bytes of `values` that are used */
    span_attribute attributes[SPAN_ATTRIBUTES_MAX];
    char values[SPAN_VALUES_BYTES];
} span;

void span_name(span *s, const char *name); /* cut to fit */
/* Values are cut at SPAN_VALUE_MAX bytes, between letters. What finds no room, and what is NULL or "", is left out. */
void span_set(span *s, const char *key, const char *value);
const char *span_value(const span *s, size_t i);       /* of its i-th attribute */
const char *span_find(const span *s, const char *key); /* "": it has none */

typedef struct span_list { /* zeroed: empty */
    span *spans;
    size_t n, cap, n_lost; /* lost: over SPAN_LIST_MAX, or no memory was there */
} span_list;
enum { SPAN_LIST_MAX = 512 };
void span_list_add(span_list *l, const span *s); /* copied */
void span_list_done(span_list *l);

typedef struct span_ring span_ring;
span_ring *span_ring_new(size_t n_spans);        /* NULL: out of memory */
void span_ring_free(span_ring *r);               /* accepts NULL */
void span_ring_add(span_ring *r, const span *s); /* copied */
/* The group's span behind `at`, NULL: its first. NULL: there is none. Dead after the next add. */
const span *span_ring_next(const span_ring *r, uint64_t group, const span *at);

#endif
