/* search.c: see search.h. */
#include "retrieve/search.h"

#include <stdlib.h>
#include <string.h>

#include "retrieve/vector_cache.h"

void search_done(search_answer *a)
{
    free(a->v);
    arena_free(a->mem);
    *a = (search_answer){0};
}

static int check_vector(const search_ask *ask, const store_collection *c, shoal_err *err)
{
    if (c->dims == 0 || (ask->dims == c->dims && strcmp(ask->model_digest, c->digest) == 0)) return 0;
    return err_set(
        err, SHOAL_EDIGEST,
        "'%s' holds vectors of another file of %s: what they mean cannot be compared; delete the collection"
        " and add its documents again",
        c->name, c->model);
}

/* Candidates of both kinds, fused, into out[2 * pool]; returns how many. */
static int search_gather(store *s, vector_cache *sh, const search_ask *ask, store_collection *c, arena *mem,
                         found *out, size_t pool, shoal_err *err)
{
    found *near = out + 2 * pool, *worded = out + 3 * pool; /* the array holds them too */
    int n_near = 0, n_worded = 0;
    int rc = store_find(s, ask->collection, mem, c, err);
    if (rc == 0 && ask->codes) rc = check_vector(ask, c, err);
    if (rc == 0 && ask->codes) {
        nearest_ask n = {.codes = ask->codes, .scale = ask->scale};
        rc = n_near = vector_cache_nearest(sh, s, ask->collection, mem, c, &n, ask->filter, near, pool, err);
    }
    if (rc >= 0 && !ask->no_words)
        rc = n_worded = store_words(s, c, ask->text, ask->filter, worded, pool, err);
    return rc < 0 ? rc : (int)fuse(near, (size_t)n_near, worded, (size_t)n_worded, out);
}

static int fetch(search_answer *ret, store *s, const found *v, size_t n, size_t k, shoal_err *err)
{
    ret->v = calloc(k, sizeof *ret->v);
    if (!ret->v) return err_nomem(err);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n && ret->n < k; i++) {
        search_hit *h = &ret->v[ret->n];
        h->found = v[i];
        rc = store_piece_get(s, v[i].document, v[i].ordinal, ret->mem, &h->piece, err);
        ret->n += rc == 0;
    }
    return rc;
}

int search_run(search_answer *ret, store *s, vector_cache *sh, const search_ask *ask, shoal_err *err)
{
    size_t pool = 4 * ask->k < SEARCH_POOL_MIN ? SEARCH_POOL_MIN : 4 * ask->k;
    store_collection c;
    found *all = calloc(4 * pool, sizeof *all);
    ret->mem = arena_new(16384);
    int rc = all && ret->mem ? store_begin(s, false, err) : err_nomem(err);
    if (rc == 0) {
        rc = search_gather(s, sh, ask, &c, ret->mem, all, pool, err);
        if (rc >= 0) rc = fetch(ret, s, all, (size_t)rc, ask->k, err);
        store_rollback(s); /* it only read */
    }
    free(all);
    return rc;
}
