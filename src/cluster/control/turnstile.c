/* turnstile.c: leaking buckets of members, by hash. */
#include "control/turnstile.h"

#include <string.h>

#include "base/sha256.h"

/* Never 0. */
static uint64_t id_of(const char *name)
{
    sha256_digest d;
    uint64_t id;
    sha256_of(name, strlen(name), &d);
    memcpy(&id, d.bytes, sizeof id);
    return id ? id : 1;
}

/* Its place, else that of its four whose member has been quiet for longest. */
static turnstile_place *place_of(turnstile *t, uint64_t id)
{
    turnstile_place *set = &t->places[id % (TURNSTILE_PLACES / TURNSTILE_WAYS) * TURNSTILE_WAYS],
                    *quiet = set;
    for (int i = 0; i < TURNSTILE_WAYS; i++) {
        if (set[i].id == id) return &set[i];
        if (set[i].spent_ms < quiet->spent_ms) quiet = &set[i];
    }
    *quiet = (turnstile_place){.id = id};
    return quiet;
}

uint64_t turnstile_pass(turnstile *t, const char *name, uint64_t now_ms)
{
    turnstile_place *p = place_of(t, id_of(name));
    uint64_t level = (p->spent_ms > now_ms ? p->spent_ms : now_ms) + TURNSTILE_REFILL_MS;
    uint64_t full = now_ms + (uint64_t)TURNSTILE_BURST * TURNSTILE_REFILL_MS;
    if (level > full) return level - full;
    p->spent_ms = level;
    return 0;
}
