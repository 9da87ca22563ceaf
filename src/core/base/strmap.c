/* strmap.c: linear probing; who leaves is replaced by whoever was pushed behind him, so that no graves remain
 * (Knuth, The Art of Computer Programming 3, 6.4, algorithm R). */
#include "base/strmap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

typedef struct strmap_slot {
    const char *name; /* NULL: free */
    void *value;
    uint64_t hash;
} strmap_slot;

/* FNV-1a, whose low bits are then mixed. */
uint64_t strmap_hash(const char *name)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) h = (h ^ *p) * 0x100000001B3u;
    return rng_mix(h);
}

/* Where the name is, or would be. There is a free slot. */
static size_t strmap_find(const strmap *m, const char *name, uint64_t hash)
{
    size_t i = hash & (m->n_slots - 1);
    for (; m->slots[i].name; i = (i + 1) & (m->n_slots - 1))
        if (m->slots[i].hash == hash && strcmp(m->slots[i].name, name) == 0) break;
    return i;
}

void *strmap_get(const strmap *m, const char *name)
{
    return m->n ? m->slots[strmap_find(m, name, strmap_hash(name))].value : NULL;
}

static bool strmap_grow(strmap *m)
{
    strmap wide = {.n = m->n, .n_slots = m->n_slots ? 2 * m->n_slots : 16};
    wide.slots = calloc(wide.n_slots, sizeof *wide.slots);
    if (!wide.slots) return false;
    for (size_t i = 0; i < m->n_slots; i++) {
        const strmap_slot *s = &m->slots[i];
        if (s->name) wide.slots[strmap_find(&wide, s->name, s->hash)] = *s;
    }
    free(m->slots);
    *m = wide;
    return true;
}

bool strmap_put(strmap *m, const char *name, void *value)
{
    if (4 * (m->n + 1) > 3 * m->n_slots && !strmap_grow(m)) return false;
    uint64_t hash = strmap_hash(name);
    strmap_slot *s = &m->slots[strmap_find(m, name, hash)];
    m->n += !s->name;
    *s = (strmap_slot){.name = name, .value = value, .hash = hash};
    return true;
}

void *strmap_take(strmap *m, const char *name)
{
    size_t mask = m->n_slots - 1, i = m->n ? strmap_find(m, name, strmap_hash(name)) : 0;
    if (m->n == 0 || !m->slots[i].name) return NULL;
    void *value = m->slots[i].value;
    m->n--;
    for (size_t k = (i + 1) & mask; m->slots[k].name; k = (k + 1) & mask) {
        size_t home = m->slots[k].hash & mask;
        if (((k - home) & mask) < ((k - i) & mask)) continue; /* it does not come from before the gap */
        m->slots[i] = m->slots[k];
        i = k;
    }
    m->slots[i] = (strmap_slot){0};
    return value;
}

void *strmap_next(const strmap *m, size_t *at)
{
    while (*at < m->n_slots) {
        const strmap_slot *s = &m->slots[(*at)++];
        if (s->name) return s->value;
    }
    return NULL;
}

void strmap_done(strmap *m)
{
    free(m->slots);
    *m = (strmap){0};
}
