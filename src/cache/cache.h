/* cache.h: whole answers by exact key, and one computation for identical requests in flight.
 *
 * Entries live in an LRU list bounded in bytes (values, keys and book-keeping count) and die after
 * their TTL. A lookup ends in one of three ways:
 *
 *     CACHE_HIT    the answer is there: *ret_value is the caller's reference (cache_value_unref)
 *     CACHE_LEAD   nobody computes it: the caller does, then cache_fill, cache_fail or cache_leave
 *     CACHE_JOIN   somebody computes it: `on_turn` comes once, with what became of it
 *
 * When a leader goes away (its client left, its own deadline passed) it calls cache_leave, and the
 * first waiter becomes leader: its on_turn says CACHE_LEAD and it computes. So no work that somebody
 * waits for is lost, and no request pays for another one's short deadline. When the computation
 * itself fails (the model refused), cache_fail hands the error to all waiters and stores nothing.
 *
 * A ticket is a place in line. It dies in fill, fail and leave, and for a waiter in its on_turn
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

typedef struct cache cache;
typedef struct cache_ticket cache_ticket;

typedef struct cache_value { /* immutable, shared by reference count */
    unsigned n_refs;
    int status; /* HTTP status; only 200 is ever stored */
    size_t len;
    char data[]; /* NUL-terminated */
} cache_value;

typedef enum cache_outcome { CACHE_HIT, CACHE_LEAD, CACHE_JOIN, CACHE_FAILED } cache_outcome;

/* CACHE_HIT: v is the answer (borrowed: ref it to keep it). CACHE_FAILED: v is the leader's error
 * (borrowed, may be NULL). CACHE_LEAD: v is NULL, the ticket is now a leader's. */
typedef void (*cache_turn_fn)(void *user, cache_outcome outcome, const cache_value *v);

typedef struct cache_stats {
    uint64_t n_hits, n_misses, n_shared, n_evicted, n_expired, n_promoted, n_too_big;
    size_t n_entries, n_bytes, n_in_flight;
} cache_stats;

/* max_bytes 0: nothing is stored, but identical requests in flight still share. ttl_ns 0: no age limit. */
int cache_new(cache **ret, size_t max_bytes, uint64_t ttl_ns, shoal_err *err);
void cache_free(cache *c); /* no ticket may be outstanding */

/* Never CACHE_FAILED. When memory is out the answer is CACHE_LEAD with a NULL ticket: compute alone.
 * (fill, fail and leave accept a NULL ticket.) */
cache_outcome cache_lookup(cache *c, const sha256_digest *key, uint64_t now_ns, cache_turn_fn on_turn,
                           void *user, cache_ticket **ret_ticket, const cache_value **ret_value);
/* Leader only; data is copied. A value larger than the whole cache is handed out but not stored. */
void cache_fill(cache_ticket *t, const void *data, size_t len, uint64_t now_ns);
/* Leader only: all waiters get CACHE_FAILED with this status and body; nothing is stored. */
void cache_fail(cache_ticket *t, int status, const void *data, size_t len);
/* Leader or waiter: step out; see above. */
void cache_leave(cache_ticket *t);

/* References of any holder; the last one frees it. */
const cache_value *cache_value_ref(const cache_value *v);
void cache_value_unref(const cache_value *v); /* accepts NULL */
void cache_get_stats(const cache *c, cache_stats *ret);

#endif
