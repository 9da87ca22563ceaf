/* Bytes as a file of centroids. What is taken can be asked, written, and read again to the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "routes/centroids.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    centroids *c = NULL, *again = NULL;
    buf out = {0};
    shoal_err err;
    double cosine;
    if (centroids_parse(&c, (const char *)data, size, "fuzz", &err) != 0) return 0;
    for (size_t i = 0; i < c->n; i++) {
        int at = centroids_nearest(c, c->at[i].vector, &cosine);
        if (at < 0 || cosine < 0.99) abort();
    }
    centroids_put(&out, c);
    if (holds(!out.failed) && holds(centroids_parse(&again, out.data, out.len, "again", &err) == 0) &&
        (again->n != c->n || again->n_dimensions != c->n_dimensions))
        abort();
    centroids_free(again);
    centroids_free(c);
    buf_done(&out);
    return 0;
}
