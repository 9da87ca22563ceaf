/* weights.c: pieces of a mapping, one behind the other; see weights.h. */
#include "compute/weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
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
    const weights_item *given; /* [n_given] */
    size_t n_given, n_fresh;
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
static uint8_t *weights_take(chunk *c, size_t bytes)
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

void weights_give(weights *s, const weights_item *items, size_t n)
{
    s->given = items;
    s->n_given = n;
}

/* The next one that was given, when it is this one; from the first that is not, none is. */
static bool take_given(weights *s, weights_item *it)
{
    const weights_item *g = s->n_items < s->n_given ? &s->given[s->n_items] : NULL;
    if (!g || g->name != it->name || g->type != it->type || g->rows != it->rows || g->cols != it->cols ||
        g->codes_bytes != it->codes_bytes || g->scales_bytes != it->scales_bytes) {
        s->n_given = 0;
        return false;
    }
    *it = *g;
    return true;
}

static size_t line(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

size_t weights_item_bytes(const weights_item *it)
{
    return line(it->codes_bytes) + line(it->scales_bytes);
}

static int take_fresh(weights *s, weights_item *it, shoal_err *err)
{
    if (it->codes_bytes > SIZE_MAX / 4 || it->scales_bytes > SIZE_MAX / 4) return err_nomem(err);
    size_t all = weights_item_bytes(it);
    uint8_t *p = s->n_chunks ? weights_take(&s->chunks[s->n_chunks - 1], all) : NULL;
    if (!p) {
        int rc = add_chunk(s, all > CHUNK_MIN ? all : CHUNK_MIN, err);
        if (rc) return rc;
        p = weights_take(&s->chunks[s->n_chunks - 1], all);
    }
    it->codes = p;
    it->scales = it->scales_bytes ? p + line(it->codes_bytes) : NULL;
    s->n_fresh++;
    return 0;
}

int weights_place(weights *s, weights_item *it, bool *ret_packed, shoal_err *err)
{
    if (!room_for_item(s)) return err_nomem(err);
    *ret_packed = take_given(s, it);
    int rc = *ret_packed ? 0 : take_fresh(s, it, err);
    if (rc == 0) s->items[s->n_items++] = *it;
    return rc;
}

int weights_refuse(weights *s, weights_item *it, shoal_err *err)
{
    int rc = take_fresh(s, it, err);
    if (rc == 0) s->items[s->n_items - 1] = *it;
    s->n_given = 0;
    return rc;
}

size_t weights_fresh(const weights *s)
{
    return s->n_fresh;
}

size_t weights_bytes(const weights *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_items; i++) n += weights_item_bytes(&s->items[i]);
    return n;
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

/* ---- layouts -------------------------------------------------------------------------------------- */

enum { PROBE_ROWS = 35, PROBE_COLS = 768 }; /* whole blocks of every type */

static int add_probe(sha256 *h, weights *s, dtype t, const uint8_t *bytes, isa set, shoal_err *err)
{
    wmat *w;
    int rc = wmat_join(&w, s, t, t, &(wmat_part){bytes, PROBE_ROWS, NULL}, 1, PROBE_COLS, NULL, set, err);
    if (rc) return rc;
    const weights_item *it = &s->items[s->n_items - 1];
    sha256_add(h, dtype_name(t), strlen(dtype_name(t)));
    sha256_add(h, it->codes, it->codes_bytes);
    if (it->scales_bytes) sha256_add(h, it->scales, it->scales_bytes);
    wmat_free(w);
    return 0;
}

int weights_layout(isa set, sha256_digest *ret, shoal_err *err)
{
    enum { BYTES = PROBE_ROWS * PROBE_COLS * 4 }; /* of the widest type */
    weights *s = NULL;
    sha256_digest d;
    uint8_t *bytes = malloc(BYTES);
    sha256 *h = sha256_new();
    int rc = bytes && h ? weights_new(&s, NULL, 0, err) : err_nomem(err);
    for (size_t i = 0; bytes && i < BYTES; i++) bytes[i] = (uint8_t)(rng_mix(i) >> 56);
    for (int t = 0; rc == 0 && t < DT_COUNT; t++) rc = add_probe(h, s, (dtype)t, bytes, set, err);
    if (h) sha256_end(h, &d);
    if (rc == 0) *ret = d;
    weights_free(s);
    free(bytes);
    return rc;
}
