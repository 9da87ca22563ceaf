/* fuse.h: several rankings of the same pieces as one: reciprocal rank fusion (Cormack, Clarke, Büttcher,
 * 2009).
 *
 * A piece's score is the sum of 1 / (60 + its place) over the rankings that have it, divided by what a piece
 * would get that is first in all of them: 1 is the best there is. Pure. */
#ifndef RETRIEVE_FUSE_H
#define RETRIEVE_FUSE_H

#include <stddef.h>
#include <stdint.h>

/* A piece: the ordinal-th of a document; and what each kind of search thought of it. */
typedef struct found {
    int64_t document;
    uint32_t ordinal;
    float score;                   /* fused; higher is better, as the other two */
    float cosine;                  /* of the vectors; meaningful with by_meaning */
    float bm25;                    /* of the words; meaningful with by_words */
    unsigned by_meaning, by_words; /* its place there, from 1; 0: not among them */
} found;

/* Fuse two rankings, each best first with its own place, cosine or bm25 set (n of them, none twice in one):
 * into out[n_a + n_b], best first, equal ones by document and ordinal. Returns how many. */
size_t fuse(const found *a, size_t n_a, const found *b, size_t n_b, found *out);

/* Best first: by score, then document, then ordinal. */
void found_sort(found *v, size_t n);

#endif
