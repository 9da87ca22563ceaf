/* attach_limit.c: leaking buckets of members, by hash. */
#include "control/attach_limit.h"

#include <string.h>

#include "base/sha256.h"

/* Never 0. */
static uint64_t attach_limit_id_of(const char *name)
{
    sha256_digest d;
    uint64_t id;
    sha256_of(name, strlen(name), &d);
    memcpy(&id, d.bytes, sizeof id);
    return id ? id : 1;
}

/* Its place, else that of its four whose member has been quiet for longest. */
static attach_limit_place *attach_limit_place_of(attach_limit *t, uint64_t id)
{
    attach_limit_place *set = &t->places[id % (ATTACH_LIMIT_PLACES / ATTACH_LIMIT_WAYS) * ATTACH_LIMIT_WAYS],
                       *quiet = set;
    for (int i = 0; i < ATTACH_LIMIT_WAYS; i++) {
        if (set[i].id == id) return &set[i];
        if (set[i].spent_ms < quiet->spent_ms) quiet = &set[i];
    }
    *quiet = (attach_limit_place){.id = id};
    return quiet;
}

uint64_t attach_limit_pass(attach_limit *t, const char *name, uint64_t now_ms)
{
    attach_limit_place *p = attach_limit_place_of(t, attach_limit_id_of(name));
    uint64_t level = (p->spent_ms > now_ms ? p->spent_ms : now_ms) + ATTACH_LIMIT_REFILL_MS;
    uint64_t full = now_ms + (uint64_t)ATTACH_LIMIT_BURST * ATTACH_LIMIT_REFILL_MS;
    if (level > full) return level - full;
    p->spent_ms = level;
    return 0;
}
