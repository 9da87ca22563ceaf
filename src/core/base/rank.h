/* rank.h: places of a list by their scores. */
#ifndef BASE_RANK_H
#define BASE_RANK_H

#include <stddef.h>

typedef struct ranked {
    size_t index; /* its place in the list */
    double score;
} ranked;

/* Best first; equal scores keep the order of the list. */
void rank_sort(ranked *r, size_t n);

#endif
