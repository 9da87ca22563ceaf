/* strmap.h: from a name to a thing, in the time of one comparison, however many there are.
 *
 * Names are borrowed: they live in the things they name, and outlive their entry. A zeroed map is empty.
 *
 *     strmap m = {0};
 *     strmap_put(&m, r->id, r);
 *     replica *r = strmap_get(&m, "home-intent/0");
 *     strmap_take(&m, r->id);      // then free r
 *     strmap_done(&m);
 */
#ifndef BASE_STRMAP_H
#define BASE_STRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct strmap {
    struct strmap_slot *slots; /* a power of two of them, at most three quarters full */
    size_t n, n_slots;
} strmap;

void *strmap_get(const strmap *m, const char *name); /* NULL: not there */
/* False when out of memory: then nothing has changed. A name that is there gets the new value. */
bool strmap_put(strmap *m, const char *name, void *value);
void *strmap_take(strmap *m, const char *name); /* out of the map; NULL when it was not there */
/* One value after the other, in no order: *at is 0 at first; NULL behind the last. The map must not change
 * meanwhile. */
void *strmap_next(const strmap *m, size_t *at);
void strmap_done(strmap *m); /* frees no value */

/* Of a name: the same everywhere and always. */
uint64_t strmap_hash(const char *name);

#endif
