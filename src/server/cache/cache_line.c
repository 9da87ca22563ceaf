/* cache_line.c: who computes an answer and who waits for it; see cache.h. A callback may call back in here,
 * so tables and lines are in order before one runs. One thread. */
#include "cache/cache_impl.h"

#include <assert.h>
#include <stdlib.h>

struct cache_ticket {
    flight *flight;
    list_node link; /* in the flight's line; unused by its leader */
    cache_turn_fn on_turn;
    void *user;
};

/* ---- flights -------------------------------------------------------------------------------- */

static flight **flight_slot(cache *c, const sha256_digest *key)
{
    flight **at = &c->flights[cache_key_hash(key) % N_FLIGHT_BUCKETS];
    while (*at && !cache_key_is(&(*at)->key, key)) at = &(*at)->next;
    return at;
}

/* Takes the flight out of the table; its line of waiters stays. */
void cache_ground(flight *f)
{
    flight **at = flight_slot(f->cache, &f->key);
    assert(*at == f);
    *at = f->next;
    f->grounded = true;
}

static void flight_land(flight *f)
{
    if (!f->grounded) cache_ground(f);
    tags_drop(f->cache->tags, &f->tags);
    f->cache->stats.n_in_flight--;
}

static void flight_tag(flight *f, const cache_ask *ask)
{
    for (size_t i = 0; i < ask->n_tags; i++)
        if (tags_add(f->cache->tags, &f->tags, ask->tags[i]) != 0) f->untold = true;
}

/* Opens a flight with t as its leader; false (and t is freed) when memory is out. */
static bool take_off(cache *c, const cache_ask *ask, cache_ticket *t)
{
    flight *f = calloc(1, sizeof *f);
    if (!f) {
        free(t);
        return false;
    }
    *f = (flight){.cache = c, .key = *ask->key, .leader = t};
    f->tags.user = f;
    list_init(&f->line);
    *flight_slot(c, ask->key) = f;
    t->flight = f;
    c->stats.n_in_flight++;
    flight_tag(f, ask);
    return true;
}

/* ---- lookups -------------------------------------------------------------------------------- */

/* The answer is there. What it answers from now on, it can be purged by. */
static cache_outcome cache_line_take(cache *c, entry *e, const cache_ask *ask, bool stale, uint64_t now_ns,
                                     cache_found *ret)
{
    ret->age_ns = now_ns > e->filled_ns ? now_ns - e->filled_ns : 0;
    ret->value = cache_value_ref(e->value);
    ret->refresh = stale && now_ns >= e->refresh_ns && !*flight_slot(c, ask->key);
    if (ret->refresh) e->refresh_ns = now_ns + CACHE_RETRY_NS;
    if (stale)
        c->stats.n_stale++;
    else if (e->value->status == 200)
        c->stats.n_hits++;
    else
        c->stats.n_negative++;
    list_move(&c->uses, &e->use);
    cache_tag(c, e, ask);
    return stale ? CACHE_STALE : CACHE_HIT;
}

static cache_outcome queue(cache *c, const cache_ask *ask, cache_turn_fn on_turn, void *user,
                           cache_found *ret)
{
    cache_ticket *t = calloc(1, sizeof *t);
    flight *f = *flight_slot(c, ask->key);
    if (t) *t = (cache_ticket){.flight = f, .on_turn = on_turn, .user = user};
    if (!t || !f) {
        c->stats.n_misses++;
        if (t && take_off(c, ask, t)) ret->ticket = t;
        return CACHE_LEAD;
    }
    list_put(&f->line, &t->link);
    flight_tag(f, ask);
    c->stats.n_shared++;
    ret->ticket = t;
    return CACHE_JOIN;
}

cache_outcome cache_lookup(cache *c, const cache_ask *ask, uint64_t now_ns, cache_turn_fn on_turn, void *user,
                           cache_found *ret)
{
    bool stale;
    *ret = (cache_found){0};
    entry *e = ask->refresh ? NULL : cache_find(c, ask, now_ns, &stale);
    if (e) return cache_line_take(c, e, ask, stale, now_ns, ret);
    if (ask->only_kept || (ask->refresh && *flight_slot(c, ask->key))) return CACHE_NONE;
    return queue(c, ask, on_turn, user, ret);
}

/* ---- ends ----------------------------------------------------------------------------------- */

/* Ends the flight: every waiter learns the outcome. The flight is out of the table first, so that a
 * callback that looks the key up again starts afresh; the line is popped one by one, so that a
 * callback that makes another waiter leave finds it still in place. */
static void flight_end(flight *f, cache_outcome o, const cache_value *v)
{
    flight_land(f);
    free(f->leader);
    f->leader = NULL;
    for (cache_ticket *t; (t = list_first(&f->line, cache_ticket, link));) {
        list_take(&t->link);
        cache_turn_fn fn = t->on_turn;
        void *user = t->user;
        free(t);
        fn(user, o, v);
    }
    free(f);
}

static bool cache_line_keep(flight *f, const cache_value *v, uint64_t now_ns)
{
    return !f->grounded && !f->untold && cache_store(f->cache, &f->key, v, &f->tags, now_ns);
}

bool cache_fill(cache_ticket *t, const void *data, size_t len, uint64_t now_ns)
{
    if (!t) return false;
    flight *f = t->flight;
    assert(f->leader == t);
    cache_value *v = cache_value_new(200, data, len);
    bool kept = v && cache_line_keep(f, v, now_ns);
    flight_end(f, v ? CACHE_HIT : CACHE_FAILED, v);
    cache_value_unref(v);
    return kept;
}

void cache_pass(cache_ticket *t, const void *data, size_t len)
{
    if (!t) return;
    assert(t->flight->leader == t);
    cache_value *v = cache_value_new(200, data, len);
    flight_end(t->flight, v ? CACHE_HIT : CACHE_FAILED, v);
    cache_value_unref(v);
}

void cache_fail(cache_ticket *t, int status, const void *data, size_t len, bool keep_it, uint64_t now_ns)
{
    if (!t) return;
    flight *f = t->flight;
    assert(f->leader == t && status != 200);
    cache_value *v = cache_value_new(status, data, len);
    if (v && keep_it && f->cache->options.negative_ttl_ns) cache_line_keep(f, v, now_ns);
    flight_end(f, CACHE_FAILED, v);
    cache_value_unref(v);
}

static void promote(flight *f, cache_ticket *t)
{
    list_take(&t->link);
    f->leader = t;
    f->cache->stats.n_promoted++;
    t->on_turn(t->user, CACHE_LEAD, NULL);
}

void cache_leave(cache_ticket *t)
{
    if (!t) return;
    flight *f = t->flight;
    bool led = f->leader == t;
    if (!led) list_take(&t->link);
    free(t);
    if (!led) return;
    f->leader = NULL;
    cache_ticket *next = list_first(&f->line, cache_ticket, link);
    if (next) {
        promote(f, next);
    } else {
        flight_land(f);
        free(f);
    }
}
