/* cache.c: answers by key, and who computes or waits for one; see cache.h. A callback may call back in here,
 * so tables and lines are in order before one runs. One thread. */
#include "cache/cache.h"
#include "base/sha256.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A flight is a key being computed: one leader and a first-come line of waiters. An entry is a key
 * with its value. Both hang in one chained hash table each; entries also in the LRU list. */
typedef struct entry entry;
struct entry {
    sha256_digest key;
    entry *next;          /* of its bucket */
    entry *newer, *older; /* LRU */
    uint64_t filled_ns;
    const cache_value *value;
};

typedef struct flight flight;
struct cache_ticket {
    flight *flight;
    cache_ticket *prev, *next; /* waiters, first come first */
    cache_turn_fn on_turn;
    void *user;
};

struct flight {
    cache *cache;
    sha256_digest key;
    flight *next; /* of its bucket */
    cache_ticket *leader, *first, *last;
};

#define N_FLIGHT_BUCKETS 256
#define MIN_BUCKETS      64

struct cache {
    size_t max_bytes;
    uint64_t ttl_ns;
    entry **buckets; /* n_buckets, a power of two */
    size_t n_buckets;
    entry *newest, *oldest;
    flight *flights[N_FLIGHT_BUCKETS];
    cache_stats stats;
};

/* The key is a cryptographic digest: its first bytes are as good as any hash of it. */
static size_t key_hash(const sha256_digest *k)
{
    uint64_t h;
    memcpy(&h, k->bytes, sizeof h);
    return (size_t)h;
}

static bool key_is(const sha256_digest *a, const sha256_digest *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* ---- values --------------------------------------------------------------------------------- */

static cache_value *value_new(int status, const void *data, size_t len)
{
    size_t n;
    if (size_add(sizeof(cache_value) + 1, len, &n)) return NULL;
    cache_value *v = malloc(n);
    if (!v) return NULL;
    v->n_refs = 1;
    v->status = status;
    v->len = len;
    if (len) memcpy(v->data, data, len);
    v->data[len] = 0;
    return v;
}

const cache_value *cache_value_ref(const cache_value *v)
{
    ((cache_value *)v)->n_refs++;
    return v;
}

void cache_value_unref(const cache_value *v)
{
    if (!v) return;
    assert(v->n_refs > 0);
    if (--((cache_value *)v)->n_refs == 0) free((void *)v);
}

/* ---- entries -------------------------------------------------------------------------------- */

static size_t entry_bytes(const entry *e)
{
    return sizeof *e + sizeof *e->value + e->value->len + 1;
}

static entry **entry_slot(const cache *c, const sha256_digest *key)
{
    entry **at = &c->buckets[key_hash(key) & (c->n_buckets - 1)];
    while (*at && !key_is(&(*at)->key, key)) at = &(*at)->next;
    return at;
}

static void lru_unlink(cache *c, entry *e)
{
    if (e->newer)
        e->newer->older = e->older;
    else
        c->newest = e->older;
    if (e->older)
        e->older->newer = e->newer;
    else
        c->oldest = e->newer;
    e->newer = e->older = NULL;
}

static void lru_push(cache *c, entry *e)
{
    e->older = c->newest;
    if (c->newest)
        c->newest->newer = e;
    else
        c->oldest = e;
    c->newest = e;
}

static void entry_remove(cache *c, entry *e)
{
    entry **at = entry_slot(c, &e->key);
    *at = e->next;
    lru_unlink(c, e);
    c->stats.n_bytes -= entry_bytes(e);
    c->stats.n_entries--;
    cache_value_unref(e->value);
    free(e);
}

/* Doubles the table when chains get long; without memory the old one goes on serving. */
static void grow_buckets(cache *c)
{
    if (c->stats.n_entries < c->n_buckets) return;
    size_t n = c->n_buckets * 2;
    entry **fresh = calloc(n, sizeof *fresh);
    if (!fresh) return;
    for (entry *e = c->newest; e; e = e->older) {
        entry **at = &fresh[key_hash(&e->key) & (n - 1)];
        e->next = *at;
        *at = e;
    }
    free(c->buckets);
    c->buckets = fresh;
    c->n_buckets = n;
}

static void store(cache *c, const sha256_digest *key, const cache_value *v, uint64_t now_ns)
{
    size_t bytes = sizeof(entry) + sizeof *v + v->len + 1;
    if (bytes > c->max_bytes) {
        c->stats.n_too_big += c->max_bytes > 0;
        return;
    }
    entry *old = *entry_slot(c, key);
    if (old) entry_remove(c, old);
    while (c->stats.n_bytes + bytes > c->max_bytes) {
        entry_remove(c, c->oldest);
        c->stats.n_evicted++;
    }
    entry *e = calloc(1, sizeof *e);
    if (!e) return;
    *e = (entry){.key = *key, .filled_ns = now_ns, .value = cache_value_ref(v)};
    grow_buckets(c);
    entry **at = &c->buckets[key_hash(key) & (c->n_buckets - 1)];
    e->next = *at;
    *at = e;
    lru_push(c, e);
    c->stats.n_bytes += bytes;
    c->stats.n_entries++;
}

/* The entry of a key if it is still fresh; an expired one is removed. */
static entry *find_fresh(cache *c, const sha256_digest *key, uint64_t now_ns)
{
    entry *e = *entry_slot(c, key);
    if (!e) return NULL;
    if (c->ttl_ns && now_ns > e->filled_ns && now_ns - e->filled_ns >= c->ttl_ns) {
        entry_remove(c, e);
        c->stats.n_expired++;
        return NULL;
    }
    return e;
}

/* ---- flights -------------------------------------------------------------------------------- */

static flight **flight_slot(cache *c, const sha256_digest *key)
{
    flight **at = &c->flights[key_hash(key) % N_FLIGHT_BUCKETS];
    while (*at && !key_is(&(*at)->key, key)) at = &(*at)->next;
    return at;
}

/* Takes the flight out of the table; its line of waiters stays. */
static void flight_land(flight *f)
{
    flight **at = flight_slot(f->cache, &f->key);
    assert(*at == f);
    *at = f->next;
    f->cache->stats.n_in_flight--;
}

static void line_push(flight *f, cache_ticket *t)
{
    t->prev = f->last;
    if (f->last)
        f->last->next = t;
    else
        f->first = t;
    f->last = t;
}

static void line_unlink(flight *f, cache_ticket *t)
{
    if (t->prev)
        t->prev->next = t->next;
    else
        f->first = t->next;
    if (t->next)
        t->next->prev = t->prev;
    else
        f->last = t->prev;
    t->prev = t->next = NULL;
}

/* Opens a flight with t as its leader; false (and t is freed) when memory is out. */
static bool take_off(cache *c, const sha256_digest *key, cache_ticket *t)
{
    flight *f = calloc(1, sizeof *f);
    if (!f) {
        free(t);
        return false;
    }
    *f = (flight){.cache = c, .key = *key, .leader = t};
    *flight_slot(c, key) = f;
    t->flight = f;
    c->stats.n_in_flight++;
    return true;
}

cache_outcome cache_lookup(cache *c, const sha256_digest *key, uint64_t now_ns, cache_turn_fn on_turn,
                           void *user, cache_ticket **ret_ticket, const cache_value **ret_value)
{
    *ret_ticket = NULL;
    *ret_value = NULL;
    entry *e = find_fresh(c, key, now_ns);
    if (e) {
        lru_unlink(c, e);
        lru_push(c, e);
        c->stats.n_hits++;
        *ret_value = cache_value_ref(e->value);
        return CACHE_HIT;
    }
    cache_ticket *t = calloc(1, sizeof *t);
    flight *f = *flight_slot(c, key);
    if (t) *t = (cache_ticket){.flight = f, .on_turn = on_turn, .user = user};
    if (!t || !f) {
        c->stats.n_misses++;
        if (t && take_off(c, key, t)) *ret_ticket = t;
        return CACHE_LEAD;
    }
    line_push(f, t);
    c->stats.n_shared++;
    *ret_ticket = t;
    return CACHE_JOIN;
}

/* Ends the flight: every waiter learns the outcome. The flight is out of the table first, so that a
 * callback that looks the key up again starts afresh; the line is popped one by one, so that a
 * callback that makes another waiter leave finds it still in place. */
static void flight_end(flight *f, cache_outcome o, const cache_value *v)
{
    flight_land(f);
    free(f->leader);
    f->leader = NULL;
    while (f->first) {
        cache_ticket *t = f->first;
        line_unlink(f, t);
        cache_turn_fn fn = t->on_turn;
        void *user = t->user;
        free(t);
        fn(user, o, v);
    }
    free(f);
}

void cache_fill(cache_ticket *t, const void *data, size_t len, uint64_t now_ns)
{
    if (!t) return;
    flight *f = t->flight;
    assert(f->leader == t);
    cache_value *v = value_new(200, data, len);
    if (v) store(f->cache, &f->key, v, now_ns);
    flight_end(f, v ? CACHE_HIT : CACHE_FAILED, v);
    cache_value_unref(v);
}

void cache_fail(cache_ticket *t, int status, const void *data, size_t len)
{
    if (!t) return;
    assert(t->flight->leader == t);
    cache_value *v = value_new(status, data, len);
    flight_end(t->flight, CACHE_FAILED, v);
    cache_value_unref(v);
}

static void promote(flight *f)
{
    cache_ticket *t = f->first;
    line_unlink(f, t);
    f->leader = t;
    f->cache->stats.n_promoted++;
    t->on_turn(t->user, CACHE_LEAD, NULL);
}

void cache_leave(cache_ticket *t)
{
    if (!t) return;
    flight *f = t->flight;
    bool led = f->leader == t;
    if (!led) line_unlink(f, t);
    free(t);
    if (!led) return;
    f->leader = NULL;
    if (f->first) {
        promote(f);
    } else {
        flight_land(f);
        free(f);
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

int cache_new(cache **ret, size_t max_bytes, uint64_t ttl_ns, shoal_err *err)
{
    cache *c = calloc(1, sizeof *c);
    entry **buckets = calloc(MIN_BUCKETS, sizeof(entry *));
    if (!c || !buckets) {
        free(c);
        free(buckets);
        return err_nomem(err);
    }
    *c = (cache){.max_bytes = max_bytes, .ttl_ns = ttl_ns, .buckets = buckets, .n_buckets = MIN_BUCKETS};
    *ret = c;
    return 0;
}

void cache_free(cache *c)
{
    if (!c) return;
    assert(c->stats.n_in_flight == 0);
    while (c->oldest) entry_remove(c, c->oldest);
    free(c->buckets);
    free(c);
}

void cache_get_stats(const cache *c, cache_stats *ret)
{
    *ret = c->stats;
}
