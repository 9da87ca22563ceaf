/* guard.c: a table of sources by hash, four places for each, and one leaking bucket for all. */
#include "trust/guard.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/sha256.h"

enum { WAYS = 4, SETS = GUARD_SOURCES / WAYS, COST_MS = 1000 / GUARD_PER_S };

/* Of what is one source; never 0. */
static uint64_t source_id(const char *source)
{
    struct in6_addr v6;
    sha256_digest d;
    uint64_t id;
    if (inet_pton(AF_INET6, source, &v6) == 1 && !IN6_IS_ADDR_V4MAPPED(&v6))
        sha256_of(&v6, 8, &d);
    else
        sha256_of(source, strlen(source), &d);
    memcpy(&id, d.bytes, sizeof id);
    return id ? id : 1;
}

static const guard_source *guard_find(const guard *g, uint64_t id)
{
    const guard_source *set = &g->sources[id % SETS * WAYS];
    for (int i = 0; i < WAYS; i++)
        if (set[i].id == id) return &set[i];
    return NULL;
}

uint64_t guard_wait_ms(const guard *g, const char *source, uint64_t now_ms)
{
    const guard_source *s = guard_find(g, source_id(source));
    uint64_t own = s && s->until_ms > now_ms ? s->until_ms - now_ms : 0;
    uint64_t full = now_ms + GUARD_BURST * COST_MS; /* where the common bucket is when it is full */
    uint64_t common = g->spent_ms > full ? g->spent_ms - full : 0;
    return own > common ? own : common;
}

/* Its place, else the one of its four that was silent for longest. */
static guard_source *place(guard *g, uint64_t id)
{
    guard_source *set = &g->sources[id % SETS * WAYS], *oldest = set;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].id == id) return &set[i];
        if (set[i].last_ms < oldest->last_ms) oldest = &set[i];
    }
    *oldest = (guard_source){.id = id};
    return oldest;
}

void guard_failed(guard *g, const char *source, uint64_t now_ms)
{
    guard_source *s = place(g, source_id(source));
    if (s->last_ms + GUARD_FORGET_MS < now_ms) s->n_failed = 0;
    s->n_failed++;
    s->last_ms = now_ms;
    uint64_t wait = 0;
    if (s->n_failed > GUARD_FREE) {
        uint32_t doublings = s->n_failed - GUARD_FREE - 1;
        wait = doublings < 16 ? (uint64_t)GUARD_FIRST_MS << doublings : GUARD_MOST_MS;
    }
    s->until_ms = now_ms + (wait < GUARD_MOST_MS ? wait : GUARD_MOST_MS);
    /* The bucket leaks one try in COST_MS: its level is how far spent_ms lies ahead of now. */
    g->spent_ms = (g->spent_ms > now_ms ? g->spent_ms : now_ms) + COST_MS;
}
