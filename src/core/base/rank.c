/* rank.c: see rank.h. */
#include "base/rank.h"

#include <stdlib.h>

static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

void rank_sort(ranked *r, size_t n)
{
    qsort(r, n, sizeof *r, by_score);
}
