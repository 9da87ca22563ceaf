/* cache_impl.h: what the two halves of the cache share: cache.c has the entries, cache_line.c who computes
 * and who waits. */
#ifndef CACHE_CACHE_IMPL_H
#define CACHE_CACHE_IMPL_H

#include "base/list.h"
#include "cache/cache.h"
#include "cache/tags.h"

/* A flight is a key being computed: one leader and a first-come line of waiters. An entry is a key
 * with its value. Both hang in one chained hash table each; entries also in a list by use (LRU). */
typedef struct entry entry;
struct entry {
    sha256_digest key;
    entry *next;                    /* of its bucket */
    list_node use;                  /* in the cache's list by use */
    uint64_t filled_ns, refresh_ns; /* refresh_ns: from then on somebody may be asked to make it anew */
    const cache_value *value;
    tag_set tags;
};

typedef struct flight flight;
struct flight {
    cache *cache;
    sha256_digest key;
    flight *next; /* of its bucket */
    cache_ticket *leader;
    list_node line; /* of waiting tickets, first come first */
    bool grounded;  /* purged: not in the table any more, and not to be stored */
    bool untold;    /* a tag found no memory or no room: what cannot be purged is not stored */
    tag_set tags;
};

#define N_FLIGHT_BUCKETS 256

struct cache {
    cache_options options;
    entry **buckets; /* n_buckets, a power of two */
    size_t n_buckets;
    list_node uses; /* entries, the one unused for longest first */
    flight *flights[N_FLIGHT_BUCKETS];
    tags *tags;
    void (*dropped)(void *user, const sha256_digest *key);
    void *dropped_user;
    cache_stats stats; /* n_bytes without the tags' */
};

/* Which of the two a tag_set is of: an entry's is kept. */
static inline bool set_is_entry(const tag_set *s)
{
    return s->kept;
}

/* The key is a cryptographic digest: its first bytes are as good as any hash of it. */
size_t cache_key_hash(const sha256_digest *k);
bool cache_key_is(const sha256_digest *a, const sha256_digest *b);

/* cache.c */
cache_value *cache_value_new(int status, const void *data, size_t len); /* NULL: out of memory */
/* The entry that `ask` takes: fresh, or stale where that may be. One that is of no use to anybody any more is
 * removed. */
entry *cache_find(cache *c, const cache_ask *ask, uint64_t now_ns, bool *ret_stale);
/* tags: moved into the entry; false: not stored. */
bool cache_store(cache *c, const sha256_digest *key, const cache_value *v, tag_set *tags, uint64_t now_ns);
/* One more request is answered by it. What cannot have its tags goes. False: e is gone. */
bool cache_tag(cache *c, entry *e, const cache_ask *ask);
void cache_remove(cache *c, entry *e);

/* cache_line.c */
void cache_ground(flight *f);

#endif
