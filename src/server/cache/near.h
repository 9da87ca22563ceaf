/* near.h: which kept answer was given to a question like this one?
 *
 * An item is the embedding of what was asked (int8, retrieve/codes.h), its text, and the key under which the
 * cache has the answer; it goes when that goes (cache_on_drop). Items hang on partitions: all that decides an
 * answer beside the text (model, system message, history, parameters, whose it is) is the partition's digest, so
 * only texts of one partition are ever compared. Those found least recently give way, at `max_items` and at
 * `max_bytes`, in which codes, texts and book-keeping count.
 *
 *     near_add(n, &partition, &key, codes, scale, dims, "turn on the light");
 *     k = near_find(n, &partition, codes, scale, dims, 0.95, found, NEAR_FOUND_MAX);  // the nearest first
 *
 * A search is exact: all items of a partition, by the kernels of compute/. The same bits everywhere. One thread.
 */
#ifndef CACHE_NEAR_H
#define CACHE_NEAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"
#include "compute/compute.h"

enum { NEAR_FOUND_MAX = 4, NEAR_DIMS_MAX = 8192 };

typedef struct near near;

typedef struct near_found {
    sha256_digest key;
    const char *text; /* borrowed until the next call */
    float cosine;
} near_found;

int near_new(near **ret, isa set, size_t max_items, size_t max_bytes, shoal_err *err);
void near_free(near *n); /* accepts NULL */

/* Everything is copied. An item of this key is replaced. False: no memory, or it does not fit at all. */
bool near_add(near *n, const sha256_digest *partition, const sha256_digest *key, const int8_t *codes,
              float scale, size_t dims, const char *text);
void near_drop(near *n, const sha256_digest *key); /* that it is not there is fine */
/* The k (at most NEAR_FOUND_MAX) nearest of a cosine of `least` or more. Of equal ones the older. */
size_t near_find(const near *n, const sha256_digest *partition, const int8_t *codes, float scale, size_t dims,
                 double least, near_found *ret, size_t k);
void near_touch(near *n, const sha256_digest *key); /* its answer went out */

size_t near_count(const near *n);
size_t near_bytes(const near *n);

#endif
