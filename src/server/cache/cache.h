/* cache.h: whole answers by exact key, and one computation for identical requests in flight.
 *
 * Entries live in an LRU list bounded in bytes (values, keys, tags and book-keeping count) and die after
 * their TTL. A lookup ends in one of five ways:
 *
 *     CACHE_HIT    the answer is there: found.value is the caller's reference (cache_value_unref)
 *     CACHE_STALE  the same, of an answer that is over its time; where found.refresh is set it is the caller
 *                  who should have it made anew, by a lookup with ask.refresh
 *     CACHE_LEAD   nobody computes it: the caller does, then cache_fill, cache_pass, cache_fail or
 *                  cache_leave
 *     CACHE_JOIN   somebody computes it: `on_turn` comes once, with what became of it
 *     CACHE_NONE   there is none, and the caller wanted nothing else
 *
 * When a leader goes away (its client left, its own deadline passed) it calls cache_leave, and the
 * first waiter becomes leader: its on_turn says CACHE_LEAD and it computes. So no work that somebody
 * waits for is lost, and no request pays for another one's short deadline. When the computation
 * itself fails (the model refused), cache_fail hands the error to all waiters; a refusal that comes again
 * however often it is asked may be kept for a while, too (negative entries).
 *
 * An answer has the tags of all requests that it answered. A purge takes what has all the tags that it names:
 * entries go at once; what is being computed is still heard by those who wait, kept by nobody, and joined by
 * nobody who comes later.
 *
 * A ticket is a place in line. It dies in fill, pass, fail and leave, and for a waiter in its on_turn
 * unless that says CACHE_LEAD. on_turn runs inside the other party's call and may call anything here.
 * Time is an argument. One thread. */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

#define CACHE_RETRY_NS 1000000000u /* from one attempt at a fresh answer to the next, when none came */

typedef struct cache cache;
typedef struct cache_ticket cache_ticket;

typedef struct cache_value { /* immutable, shared by reference count */
    unsigned n_refs;
    int status; /* HTTP status: 200, or of a refusal that is kept */
    size_t len;
    char data[]; /* NUL-terminated */
} cache_value;

typedef enum cache_outcome {
    CACHE_HIT,
    CACHE_STALE,
    CACHE_LEAD,
    CACHE_JOIN,
    CACHE_NONE,
    CACHE_FAILED
} cache_outcome;

/* CACHE_HIT: v is the answer (borrowed: ref it to keep it). CACHE_FAILED: v is the leader's error
 * (borrowed, may be NULL). CACHE_LEAD: v is NULL, the ticket is now a leader's. */
typedef void (*cache_turn_fn)(void *user, cache_outcome outcome, const cache_value *v);

typedef struct cache_options {
    size_t max_bytes;         /* 0: nothing is stored, but identical requests in flight still share */
    uint64_t ttl_ns;          /* 0: no age limit */
    uint64_t stale_ns;        /* beyond its time an answer may go out so long, while it is made anew */
    uint64_t negative_ttl_ns; /* of refusals; 0: they are not kept */
} cache_options;

typedef struct cache_ask { /* what is looked up, and on what terms; borrowed */
    const sha256_digest *key;
    const char *const *tags; /* each up to 160 bytes; of an answer with over 64 nothing is kept */
    size_t n_tags;
    bool limits_age; /* answers older than max_age_ns do not count; */
    uint64_t max_age_ns;
    bool takes_stale; /* CACHE_STALE may come */
    bool only_kept;   /* CACHE_NONE in place of CACHE_LEAD and CACHE_JOIN */
    bool refresh;     /* whatever is there, make it anew: CACHE_LEAD, or CACHE_NONE where somebody does */
} cache_ask;

typedef struct cache_found {
    cache_ticket *ticket;     /* CACHE_LEAD, CACHE_JOIN */
    const cache_value *value; /* CACHE_HIT, CACHE_STALE */
    uint64_t age_ns;
    bool refresh;
} cache_found;

typedef struct cache_stats {
    uint64_t n_hits, n_stale, n_negative, n_misses, n_shared, n_evicted, n_expired, n_promoted, n_too_big,
        n_purged;
    size_t n_entries, n_bytes, n_in_flight, n_tags;
} cache_stats;

int cache_new(cache **ret, const cache_options *o, shoal_err *err);
/* Other bounds from now on, for what is there as well: the oldest go until the rest fits. */
void cache_limit(cache *c, const cache_options *o);
void cache_free(cache *c); /* no ticket may be outstanding */
/* fn(user, key) runs for each entry that goes, whatever the reason; it must not call back. */
void cache_on_drop(cache *c, void (*fn)(void *user, const sha256_digest *key), void *user);

/* Never CACHE_FAILED. When memory is out the answer is CACHE_LEAD with a NULL ticket: compute alone.
 * (fill, pass, fail and leave accept a NULL ticket.) */
cache_outcome cache_lookup(cache *c, const cache_ask *ask, uint64_t now_ns, cache_turn_fn on_turn, void *user,
                           cache_found *ret);
/* A fresh answer, as a reference of the caller's, or NULL; counts as used, and as no lookup. */
const cache_value *cache_peek(cache *c, const sha256_digest *key, uint64_t now_ns);

/* Leader only; data is copied. A value larger than the whole cache is handed out but not stored. True: it is
 * stored. */
bool cache_fill(cache_ticket *t, const void *data, size_t len, uint64_t now_ns);
/* Leader only: the answer goes to those who wait, and is not stored. */
void cache_pass(cache_ticket *t, const void *data, size_t len);
/* Leader only: all waiters get CACHE_FAILED with this status (not 200) and body. keep: it would be the same
 * again, and is stored for the negative TTL. */
void cache_fail(cache_ticket *t, int status, const void *data, size_t len, bool keep, uint64_t now_ns);
/* Leader or waiter: step out; see above. */
void cache_leave(cache_ticket *t);

/* Everything that has all of these tags goes; n 0: everything. Returns how many entries went. */
size_t cache_purge(cache *c, const char *const *names, size_t n);

/* References of any holder; the last one frees it. */
const cache_value *cache_value_ref(const cache_value *v);
void cache_value_unref(const cache_value *v); /* accepts NULL */
void cache_get_stats(const cache *c, cache_stats *ret);

#endif
