/* vector_cache.h: the vectors of collections in memory, kept up with the store by those who search.
 *
 * An image of a collection knows the revision that it shows. Whoever searches compares it with what the store
 * says, and reads what has come and gone since: so it does not matter who wrote, this process or another, and
 * writing needs no word about it. Images that nobody searches give way when `max_bytes` are used.
 *
 * Any thread; a search holds its image while it scans. Locks in this order: the cache's, an image's, the
 * team's. */
#ifndef RETRIEVE_VECTOR_CACHE_H
#define RETRIEVE_VECTOR_CACHE_H

#include "retrieve/store.h"
#include "retrieve/vectors.h"

typedef struct vector_cache vector_cache;

/* n_threads scan together; 0: two, or the machine's one. Starts none before the first search. */
int vector_cache_new(vector_cache **ret, size_t max_bytes, int n_threads, shoal_err *err);
void vector_cache_free(vector_cache *sh); /* accepts NULL; not while somebody searches */

/* As vectors_nearest, in the collection that `name` is now; within a transaction that reads, which may be
 * begun anew to see what the image shows: *c is what the store says then. SHOAL_ELIMIT: its vectors do not
 * fit into max_bytes. */
int vector_cache_nearest(vector_cache *sh, store *s, const char *name, arena *mem, store_collection *c,
                         const nearest_ask *ask, const filter *f, found *out, size_t k, shoal_err *err);

/* Bytes of all images. */
size_t vector_cache_bytes(vector_cache *sh);

#endif
