/* tags.c: see tags.h. Tags hang in one chained hash table, which doubles. */
#include "cache/tags.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define MIN_BUCKETS 64

struct tag {
    tag *next; /* of its bucket */
    tag_link *first;
    size_t n_kept; /* kept sets that have it */
    size_t bytes;
    char name[];
};

struct tags {
    tag **buckets; /* n_buckets, a power of two */
    size_t n_buckets, n, bytes;
};

tags *tags_new(void)
{
    tags *t = calloc(1, sizeof *t);
    if (t) t->buckets = calloc(MIN_BUCKETS, sizeof(tag *));
    if (t && t->buckets) {
        t->n_buckets = MIN_BUCKETS;
        return t;
    }
    free(t);
    return NULL;
}

void tags_free(tags *t)
{
    if (!t) return;
    assert(t->n == 0);
    free(t->buckets);
    free(t);
}

/* FNV-1a (Fowler, Noll, Vo). Names are clients' own: whoever makes them collide slows purges, nothing else.
 */
static size_t hash(const char *s)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001B3u;
    return (size_t)(h ^ h >> 32);
}

static tag **slot(const tags *t, const char *name)
{
    tag **at = &t->buckets[hash(name) & (t->n_buckets - 1)];
    while (*at && strcmp((*at)->name, name) != 0) at = &(*at)->next;
    return at;
}

/* Doubles the table when chains get long; without memory the old one goes on serving. */
static void tags_grow(tags *t)
{
    size_t n = t->n_buckets * 2;
    tag **fresh = t->n < t->n_buckets ? NULL : calloc(n, sizeof *fresh);
    if (!fresh) return;
    for (size_t i = 0; i < t->n_buckets; i++)
        for (tag *g = t->buckets[i], *next; g; g = next) {
            tag **at = &fresh[hash(g->name) & (n - 1)];
            next = g->next;
            g->next = *at;
            *at = g;
        }
    free(t->buckets);
    t->buckets = fresh;
    t->n_buckets = n;
}

static tag *obtain(tags *t, const char *name)
{
    tag **at = slot(t, name);
    size_t len = strlen(name);
    if (*at) return *at;
    tag *g = calloc(1, sizeof *g + len + 1);
    if (!g) return NULL;
    memcpy(g->name, name, len + 1);
    g->bytes = sizeof *g + len + 1;
    *at = g;
    t->n++;
    tags_grow(t);
    return g;
}

static void count_tags(tags *t, tag *g)
{
    t->bytes += sizeof(tag_link);
    if (g->n_kept++ == 0) t->bytes += g->bytes;
}

static void link_drop(tags *t, tag_link *l)
{
    tag *g = l->tag;
    if (l->prev)
        l->prev->next = l->next;
    else
        g->first = l->next;
    if (l->next) l->next->prev = l->prev;
    if (l->set->kept) {
        t->bytes -= sizeof *l;
        if (--g->n_kept == 0) t->bytes -= g->bytes;
    }
    free(l);
    if (g->first) return;
    *slot(t, g->name) = g->next;
    free(g);
    t->n--;
}

bool tags_has(const tag_set *s, const char *name)
{
    for (const tag_link *l = s->first; l; l = l->more)
        if (strcmp(l->tag->name, name) == 0) return true;
    return false;
}

int tags_add(tags *t, tag_set *s, const char *name)
{
    if (tags_has(s, name)) return 0;
    if (s->n >= TAGS_MAX || strlen(name) > TAGS_BYTES_MAX) return SHOAL_ELIMIT;
    tag_link *l = calloc(1, sizeof *l); /* first: a tag without sets would be lost */
    tag *g = l ? obtain(t, name) : NULL;
    if (!g) {
        free(l);
        return SHOAL_ENOMEM;
    }
    *l = (tag_link){.tag = g, .set = s, .next = g->first, .more = s->first};
    if (g->first) g->first->prev = l;
    g->first = l;
    s->first = l;
    s->n++;
    if (s->kept) count_tags(t, g);
    return 0;
}

void tags_drop(tags *t, tag_set *s)
{
    for (tag_link *l = s->first, *more; l; l = more) {
        more = l->more;
        link_drop(t, l);
    }
    s->first = NULL;
    s->n = 0;
}

void tags_move(tags *t, tag_set *to, tag_set *from)
{
    assert(to->kept && !to->first && !from->kept);
    to->first = from->first;
    to->n = from->n;
    from->first = NULL;
    from->n = 0;
    for (tag_link *l = to->first; l; l = l->more) {
        l->set = to;
        count_tags(t, l->tag);
    }
}

tag_link *tags_first(const tags *t, const char *name)
{
    const tag *g = *slot(t, name);
    return g ? g->first : NULL;
}

size_t tags_bytes(const tags *t)
{
    return t->bytes;
}

size_t tags_count(const tags *t)
{
    return t->n;
}
