/* fuse.c: see fuse.h. */
#include "retrieve/fuse.h"

#include <stdlib.h>

#define RANK_OFFSET 60.0 /* the paper's k */

static int by_place(const void *x, const void *y)
{
    const found *a = x, *b = y;
    if (a->document != b->document) return a->document < b->document ? -1 : 1;
    return a->ordinal < b->ordinal ? -1 : a->ordinal > b->ordinal;
}

static int by_score(const void *x, const void *y)
{
    const found *a = x, *b = y;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return by_place(x, y);
}

void found_sort(found *v, size_t n)
{
    if (n > 1) qsort(v, n, sizeof *v, by_score);
}

static double share(unsigned place)
{
    return place ? 1 / (RANK_OFFSET + place) : 0;
}

size_t fuse(const found *a, size_t n_a, const found *b, size_t n_b, found *out)
{
    size_t n = 0, m = 0;
    for (size_t i = 0; i < n_a; i++) out[n++] = a[i];
    for (size_t i = 0; i < n_b; i++) out[n++] = b[i];
    if (n > 1) qsort(out, n, sizeof *out, by_place);
    for (size_t i = 0; i < n; i++) {
        found *last = m ? &out[m - 1] : NULL;
        if (!last || by_place(last, &out[i]) != 0) {
            out[m++] = out[i];
            continue;
        }
        if (out[i].by_meaning) {
            last->by_meaning = out[i].by_meaning;
            last->cosine = out[i].cosine;
        }
        if (out[i].by_words) {
            last->by_words = out[i].by_words;
            last->bm25 = out[i].bm25;
        }
    }
    double best = (n_a ? share(1) : 0) + (n_b ? share(1) : 0);
    for (size_t i = 0; i < m; i++)
        out[i].score = (float)((share(out[i].by_meaning) + share(out[i].by_words)) / best);
    found_sort(out, m);
    return m;
}
