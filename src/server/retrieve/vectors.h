/* vectors.h: the vectors of one collection in memory, and the exact search among them.
 *
 * Rows lie in segments that never move; a document's rows lie together, and documents follow each other by
 * id. A search runs the kernel over the rows of the documents that are there and wanted, and keeps the best k
 * in a heap: one for each member of the team, so that the answer does not depend on their number. 1 M rows of
 * 384 codes are 388 MB, which a search reads once.
 *
 * Many may search at once; who adds or drops is alone (vector_cache.c's lock). */
#ifndef RETRIEVE_VECTORS_H
#define RETRIEVE_VECTORS_H

#include "compute/compute.h"
#include "retrieve/fuse.h"

typedef struct vectors vectors;

vectors *vectors_new(size_t dims); /* NULL: out of memory */
void vectors_free(vectors *v);     /* accepts NULL */

/* n rows of a document: codes[n][dims] and scales[n], unaligned. Ids come in ascending order. On SHOAL_ENOMEM
 * nothing has changed. */
int vectors_add(vectors *v, int64_t document, const int8_t *codes, const void *scales, size_t n);
/* Its rows are not found any more; their memory is kept until the end. False: it is not there. */
bool vectors_drop(vectors *v, int64_t document);

size_t vectors_bytes(const vectors *v);
size_t vectors_rows(const vectors *v); /* that can be found */
size_t vectors_dead(const vectors *v); /* that cannot any more */
/* The i-th document that is there or was, by id; false behind the last. */
bool vectors_document(const vectors *v, size_t i, int64_t *ret, bool *ret_dead);

typedef struct nearest_ask {
    const int8_t *codes; /* [dims] */
    float scale;
    const int64_t *only; /* documents to look at, ascending */
    size_t n_only;
    bool filtered; /* false: at all of them */
} nearest_ask;

/* The k nearest, best first, into out[k]: document, ordinal, cosine and by_meaning are set. Equal ones: the
 * lower document and ordinal. t NULL: on this thread alone, with the kernels of `set`. Returns how many;
 * SHOAL_ENOMEM. */
int vectors_nearest(const vectors *v, team *t, isa set, const nearest_ask *ask, found *out, size_t k);

#endif
