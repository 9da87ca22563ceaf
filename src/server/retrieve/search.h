/* search.h: one search in one collection: by meaning (vectors), by words (BM25), or by both, fused.
 *
 *     search_ask a = {.collection = "manuals", .text = "bleed the radiator", .codes = q, .dims = 256,
 *                     .scale = s, .k = 5};
 *     search_answer r = {0};
 *     if (search_run(&r, store, vectors, &a, err) == 0)
 *         for (size_t i = 0; i < r.n; i++) puts(r.v[i].piece.text);
 *     search_done(&r);
 *
 * Blocks on disk and cores: for a thread that may. */
#ifndef RETRIEVE_SEARCH_H
#define RETRIEVE_SEARCH_H

#include "retrieve/store.h"

enum { SEARCH_K_MAX = 1000, SEARCH_POOL_MIN = 50 };

typedef struct vector_cache vector_cache; /* vector_cache.h */

typedef struct search_ask {
    const char *collection, *text;
    const int8_t *codes; /* NULL: by words alone */
    size_t dims;
    float scale;
    const char *model_digest; /* of the file that made codes; another than the collection's: SHOAL_EDIGEST */
    bool no_words;            /* by meaning alone */
    const filter *filter;     /* NULL: none */
    size_t k;                 /* results, 1 to SEARCH_K_MAX */
} search_ask;

typedef struct search_hit {
    found found;
    store_piece piece;
} search_hit;

typedef struct search_answer {
    search_hit *v;
    size_t n;
    arena *mem; /* of all strings */
} search_answer;

/* *ret is zeroed before and to be done with also after a failure. SHOAL_ENOTFOUND: no such collection. */
int search_run(search_answer *ret, store *s, vector_cache *sh, const search_ask *ask, shoal_err *err);
void search_done(search_answer *a);

#endif
