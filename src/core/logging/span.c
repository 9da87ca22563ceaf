/* span.c: see span.h. */
#include "logging/span.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

struct span_ring {
    size_t n, cap;
    uint64_t n_added; /* the next one's place is the remainder by cap */
    span spans[];
};

void span_name(span *s, const char *name)
{
    buf_copy_str(s->name, sizeof s->name, name);
}

const char *span_kind_name(span_kind k)
{
    static const char *const NAMES[] = {
#define SPAN_KIND_NAME(e, name) [e] = name,
        SPAN_KIND_TABLE(SPAN_KIND_NAME)
#undef SPAN_KIND_NAME
    };
    return NAMES[k];
}

void span_set(span *s, const char *key, const char *value)
{
    size_t n = value ? strlen(value) : 0, room = sizeof s->values - s->n_values;
    if (n == 0 || room < 2 || s->n_attributes == SPAN_ATTRIBUTES_MAX) return;
    size_t most = room - 1 < SPAN_VALUE_MAX ? room - 1 : SPAN_VALUE_MAX;
    if (n > most) n = most - utf8_incomplete_tail(value, most);
    s->attributes[s->n_attributes++] = (span_attribute){key, s->n_values};
    memcpy(s->values + s->n_values, value, n);
    s->values[s->n_values + n] = '\0';
    s->n_values += n + 1;
}

const char *span_value(const span *s, size_t i)
{
    return s->values + s->attributes[i].at;
}

const char *span_find(const span *s, const char *key)
{
    for (size_t i = 0; i < s->n_attributes; i++)
        if (strcmp(s->attributes[i].key, key) == 0) return span_value(s, i);
    return "";
}

/* ---- of one request ---------------------------------------------------------------------------------- */

static int grow(span_list *l)
{
    size_t cap = l->cap ? 2 * l->cap : 16;
    span *more = realloc(l->spans, cap * sizeof *more);
    if (!more) return -1;
    l->spans = more;
    l->cap = cap;
    return 0;
}

void span_list_add(span_list *l, const span *s)
{
    if (l->n == SPAN_LIST_MAX || (l->n == l->cap && grow(l) != 0))
        l->n_lost++;
    else
        l->spans[l->n++] = *s;
}

void span_list_done(span_list *l)
{
    free(l->spans);
    *l = (span_list){0};
}

/* ---- of all ------------------------------------------------------------------------------------------ */

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
