/* centroids.h: a text's domain as the nearest of a few mean vectors.
 *
 * Each domain is the mean of its examples' embeddings, brought to length one; a text is of the domain whose
 * mean has the greatest cosine with it (Rocchio's classifier, Manning et al., "Introduction to Information
 * Retrieval", 2008, section 14.2). `shoal route train` makes the file, of one embedder's file, whose digest
 * it carries: vectors of another model do not compare.
 *
 *     {"object":"shoal.centroids","model":"home-embed","digest":"abd6...","dimensions":256,
 *      "domains":[{"name":"devices","examples":12,"vector":[0.0131, ...]}, ...]}
 *
 * Read-only once read. */
#ifndef ROUTES_CENTROIDS_H
#define ROUTES_CENTROIDS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { CENTROIDS_MAX = 256, CENTROIDS_DIMENSIONS_MAX = 8192, CENTROIDS_MAX_BYTES = 64 << 20 };

typedef struct centroid {
    const char *name;
    size_t n_examples;
    float *vector; /* [dimensions], of length one */
} centroid;

typedef struct centroids {
    const char *model, *digest;
    size_t n_dimensions, n;
    centroid *at;
    void *memory;
} centroids;

/* `what` names it in errors: SHOAL_EFORMAT. */
int centroids_parse(centroids **ret, const char *json, size_t len, const char *what, shoal_err *err);
int centroids_load(centroids **ret, const char *path, shoal_err *err);
void centroids_free(centroids *c); /* accepts NULL */

/* The place of the nearest to vector[n_dimensions], and its cosine; -1 when the vector has no length. */
int centroids_nearest(const centroids *c, const float *vector, double *ret_cosine);

/* ---- making them --------------------------------------------------------------------------------- */

/* Empty, of n names, which are borrowed. NULL: out of memory. */
centroids *centroids_new(const char *model, const char *digest, size_t n_dimensions, const char *const *names,
                         size_t n);
/* The sum of examples grows; the vector counts with length one. */
void centroids_add(centroids *c, size_t domain, const float *vector, double times);
void centroids_put(buf *out, const centroids *c); /* with every vector brought to length one */

#endif
