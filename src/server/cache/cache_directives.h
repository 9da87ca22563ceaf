/* cache_directives.h: what a request says about the cache, in its headers.
 *
 *     cache-control: no-store           compute it for me alone, and keep nothing (no-cache: the same)
 *     cache-control: max-age=60         nothing older than a minute
 *     cache-control: only-if-cached     what is kept, or 504
 *     x-shoal-cache-tag: kitchen, demo  names by which the answer can be purged
 *
 * (RFC 9111, section 5.2.1; of several max-age the least holds, and what cannot be read is ignored.) Tags are
 * checked, since one that silently does nothing would be missed on the day of the purge. Pure. */
#ifndef CACHE_CACHE_DIRECTIVES_H
#define CACHE_CACHE_DIRECTIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CACHE_DIRECTIVES_TAGS      8
#define CACHE_DIRECTIVES_TAG_BYTES 64

typedef struct cache_directives {
    bool fresh; /* no-store, no-cache */
    bool only_if_cached;
    bool limits_age;
    uint64_t max_age_s;
    size_t n_tags;
    char tags[CACHE_DIRECTIVES_TAGS][CACHE_DIRECTIVES_TAG_BYTES + 1];
} cache_directives;

/* Headers' values, NULL for none. SHOAL_EINVALID about a tag. */
int cache_directives_parse(cache_directives *ret, const char *cache_control, const char *tags,
                           shoal_err *err);

#endif
