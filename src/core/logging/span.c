/* span.c: see span.h. */
#include "logging/span.h"

#include <stdlib.h>

#include "base/buf.h"

struct span_ring {
    size_t n, cap;
    uint64_t n_added; /* the next one's place is the remainder by cap */
    span spans[];
};

void span_name(span *s, const char *name)
{
    buf_copy_str(s->name, sizeof s->name, name);
}

void span_set(span *s, const char *key, const char *value)
{
    if (s->n_attributes == SPAN_ATTRIBUTES_MAX) return;
    span_attribute *a = &s->attributes[s->n_attributes++];
    a->key = key;
    buf_copy_str(a->value, sizeof a->value, value);
}

span_ring *span_ring_new(size_t n_spans)
{
    span_ring *r = malloc(sizeof *r + n_spans * sizeof *r->spans);
    if (r) *r = (span_ring){.cap = n_spans};
    return r;
}

void span_ring_free(span_ring *r)
{
    free(r);
}

void span_ring_add(span_ring *r, const span *s)
{
    r->spans[r->n_added++ % r->cap] = *s;
    if (r->n < r->cap) r->n++;
}

const span *span_ring_next(const span_ring *r, uint64_t group, const span *at)
{
    uint64_t oldest = r->n_added - r->n;
    size_t i = at ? ((size_t)(at - r->spans) + r->cap - oldest % r->cap) % r->cap + 1 : 0;
    for (; i < r->n; i++) {
        const span *s = &r->spans[(oldest + i) % r->cap];
        if (s->group == group) return s;
    }
    return NULL;
}
