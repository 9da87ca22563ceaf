/* weights.c: pieces of a mapping, one behind the other; see weights.h. */
#include "compute/weights.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/pages.h"

#define CHUNK_MIN ((size_t)16 << 20) /* of memory that was not foreseen */

typedef struct chunk {
    uint8_t *at;
    size_t bytes, used;
} chunk;

struct weights {
    team *t;
    chunk *chunks; /* the last one is being filled */
    size_t n_chunks;
    weights_item *items;
    size_t n_items, cap_items;
};

static int add_chunk(weights *s, size_t bytes, shoal_err *err)
{
    chunk *grown = realloc(s->chunks, (s->n_chunks + 1) * sizeof *grown);
    if (!grown) return err_nomem(err);
    s->chunks = grown;
    void *p = pages_map(bytes, PAGES_WHOLE);
    if (!p) return err_nomem(err);
    s->chunks[s->n_chunks++] = (chunk){.at = p, .bytes = bytes};
    return 0;
}

int weights_new(weights **ret, team *t, size_t bytes, shoal_err *err)
{
    weights *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->t = t;
    int rc = bytes ? add_chunk(s, bytes, err) : 0;
    if (rc) {
        weights_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void weights_free(weights *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n_chunks; i++) pages_unmap(s->chunks[i].at, s->chunks[i].bytes);
    free(s->chunks);
    free(s->items);
    free(s);
}

/* NULL: there is no room for `bytes` in it. */
static uint8_t *take(chunk *c, size_t bytes)
{
    if (bytes > c->bytes - c->used) return NULL;
    uint8_t *p = c->at + c->used;
    c->used += bytes;
    return p;
}

static bool room_for_item(weights *s)
{
    if (s->n_items < s->cap_items) return true;
    size_t cap = s->cap_items ? 2 * s->cap_items : 256;
    weights_item *grown = realloc(s->items, cap * sizeof *grown);
    if (!grown) return false;
    s->items = grown;
    s->cap_items = cap;
    return true;
}

int weights_place(weights *s, weights_item *it, shoal_err *err)
{
    size_t codes, all;
    if (size_add(it->codes_bytes, 63, &codes) || size_add(codes &= ~(size_t)63, it->scales_bytes, &all) ||
        size_add(all, 63, &all) || !room_for_item(s))
        return err_nomem(err);
    all &= ~(size_t)63;
    uint8_t *p = s->n_chunks ? take(&s->chunks[s->n_chunks - 1], all) : NULL;
    if (!p) {
        int rc = add_chunk(s, all > CHUNK_MIN ? all : CHUNK_MIN, err);
        if (rc) return rc;
        p = take(&s->chunks[s->n_chunks - 1], all);
    }
    it->codes = p;
    it->scales = it->scales_bytes ? p + codes : NULL;
    s->items[s->n_items++] = *it;
    return 0;
}

team *weights_team(const weights *s)
{
    return s->t;
}

size_t weights_count(const weights *s)
{
    return s->n_items;
}

const weights_item *weights_at(const weights *s, size_t i)
{
    return &s->items[i];
}
