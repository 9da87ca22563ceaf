/* cache.c: answers by key; see cache.h. */
#include "cache/cache_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MIN_BUCKETS 64

size_t cache_key_hash(const sha256_digest *k)
{
    uint64_t h;
    memcpy(&h, k->bytes, sizeof h);
    return (size_t)h;
}

bool cache_key_is(const sha256_digest *a, const sha256_digest *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* ---- values --------------------------------------------------------------------------------- */

cache_value *cache_value_new(int status, const void *data, size_t len)
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

static size_t entry_bytes(const cache_value *v)
{
    return sizeof(entry) + sizeof *v + v->len + 1;
}

static size_t used(const cache *c)
{
    return c->stats.n_bytes + tags_bytes(c->tags);
}

static entry **entry_slot(const cache *c, const sha256_digest *key)
{
    entry **at = &c->buckets[cache_key_hash(key) & (c->n_buckets - 1)];
    while (*at && !cache_key_is(&(*at)->key, key)) at = &(*at)->next;
    return at;
}

static entry *oldest(const cache *c)
{
    return list_first(&c->uses, entry, use);
}

void cache_remove(cache *c, entry *e)
{
    if (c->dropped) c->dropped(c->dropped_user, &e->key);
    *entry_slot(c, &e->key) = e->next;
    list_take(&e->use);
    c->stats.n_bytes -= entry_bytes(e->value);
    c->stats.n_entries--;
    tags_drop(c->tags, &e->tags);
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
    list_each (e, &c->uses, entry, use) {
        entry **at = &fresh[cache_key_hash(&e->key) & (n - 1)];
        e->next = *at;
        *at = e;
    }
    free(c->buckets);
    c->buckets = fresh;
    c->n_buckets = n;
}

/* The oldest go until all fits. False: e itself went. */
static bool shrink(cache *c, const entry *e)
{
    while (used(c) > c->options.max_bytes) {
        bool itself = oldest(c) == e;
        cache_remove(c, oldest(c));
        c->stats.n_evicted++;
        if (itself) return false;
    }
    return true;
}

void cache_limit(cache *c, const cache_options *o)
{
    c->options = *o;
    while (oldest(c) && used(c) > o->max_bytes) {
        cache_remove(c, oldest(c));
        c->stats.n_evicted++;
    }
}

bool cache_store(cache *c, const sha256_digest *key, const cache_value *v, tag_set *tags, uint64_t now_ns)
{
    entry *old = *entry_slot(c, key);
    if (old) cache_remove(c, old);
    if (entry_bytes(v) > c->options.max_bytes) {
        c->stats.n_too_big += c->options.max_bytes > 0;
        return false;
    }
    entry *e = calloc(1, sizeof *e);
    if (!e) return false;
    *e = (entry){.key = *key, .filled_ns = now_ns, .value = cache_value_ref(v), .tags = {.kept = true}};
    e->tags.user = e;
    tags_move(c->tags, &e->tags, tags);
    grow_buckets(c);
    entry **at = &c->buckets[cache_key_hash(key) & (c->n_buckets - 1)];
    e->next = *at;
    *at = e;
    list_put(&c->uses, &e->use);
    c->stats.n_bytes += entry_bytes(v);
    c->stats.n_entries++;
    return shrink(c, e);
}

bool cache_tag(cache *c, entry *e, const cache_ask *ask)
{
    for (size_t i = 0; i < ask->n_tags; i++)
        if (tags_add(c->tags, &e->tags, ask->tags[i]) != 0) {
            cache_remove(c, e);
            return false;
        }
    return shrink(c, e);
}

static uint64_t age_of(const entry *e, uint64_t now_ns)
{
    return now_ns > e->filled_ns ? now_ns - e->filled_ns : 0;
}

entry *cache_find(cache *c, const cache_ask *ask, uint64_t now_ns, bool *ret_stale)
{
    entry *e = *entry_slot(c, ask->key);
    *ret_stale = false;
    if (!e) return NULL;
    bool good = e->value->status == 200;
    uint64_t age = age_of(e, now_ns), ttl = good ? c->options.ttl_ns : c->options.negative_ttl_ns;
    if (ttl && age >= ttl + (good ? c->options.stale_ns : 0)) {
        cache_remove(c, e);
        c->stats.n_expired++;
        return NULL;
    }
    *ret_stale = ttl && age >= ttl;
    if (*ret_stale && !ask->takes_stale) return NULL;
    return ask->limits_age && age > ask->max_age_ns ? NULL : e;
}

const cache_value *cache_peek(cache *c, const sha256_digest *key, uint64_t now_ns)
{
    bool stale;
    entry *e = cache_find(c, &(cache_ask){.key = key}, now_ns, &stale);
    if (!e || e->value->status != 200) return NULL;
    list_move(&c->uses, &e->use);
    return cache_value_ref(e->value);
}

/* ---- purging -------------------------------------------------------------------------------- */

static bool has_all(const tag_set *s, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!tags_has(s, names[i])) return false;
    return true;
}

static size_t purge_all(cache *c)
{
    size_t n = c->stats.n_entries;
    while (oldest(c)) cache_remove(c, oldest(c));
    for (size_t i = 0; i < N_FLIGHT_BUCKETS; i++)
        while (c->flights[i]) cache_ground(c->flights[i]);
    return n;
}

size_t cache_purge(cache *c, const char *const *names, size_t n)
{
    size_t n_gone = 0;
    if (n == 0) n_gone = purge_all(c);
    for (tag_link *l = n ? tags_first(c->tags, names[0]) : NULL, *next; l; l = next) {
        next = l->next; /* another set's: a set has a tag once */
        if (!has_all(l->set, names, n)) continue;
        if (set_is_entry(l->set)) {
            cache_remove(c, l->set->user);
            n_gone++;
        } else if (!((flight *)l->set->user)->grounded) {
            cache_ground(l->set->user);
        }
    }
    c->stats.n_purged += n_gone;
    return n_gone;
}

/* ---- life ----------------------------------------------------------------------------------- */

int cache_new(cache **ret, const cache_options *o, shoal_err *err)
{
    cache *c = calloc(1, sizeof *c);
    entry **buckets = calloc(MIN_BUCKETS, sizeof(entry *));
    tags *t = tags_new();
    if (!c || !buckets || !t) {
        free(c);
        free(buckets);
        tags_free(t);
        return err_nomem(err);
    }
    *c = (cache){.options = *o, .buckets = buckets, .n_buckets = MIN_BUCKETS, .tags = t};
    list_init(&c->uses);
    *ret = c;
    return 0;
}

void cache_free(cache *c)
{
    if (!c) return;
    assert(c->stats.n_in_flight == 0);
    c->dropped = NULL;
    while (oldest(c)) cache_remove(c, oldest(c));
    tags_free(c->tags);
    free(c->buckets);
    free(c);
}

void cache_on_drop(cache *c, void (*fn)(void *user, const sha256_digest *key), void *user)
{
    c->dropped = fn;
    c->dropped_user = user;
}

void cache_get_stats(const cache *c, cache_stats *ret)
{
    *ret = c->stats;
    ret->n_bytes = used(c);
    ret->n_tags = tags_count(c->tags);
}
