/* cache_key.c: the fields of a key hashed as they come; see cache_key.h. A letter for the type goes in before
 * each value's length, which keeps NULL, "" and 0 apart. */
#include "cache/cache_key.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/sha256.h"

struct cache_key {
    sha256 *hash; /* of what is not held; NULL: all is */
    bool failed;
    size_t n_held;
    uint8_t held[512]; /* small pieces go to the hash together */
};

static void cache_key_flush(cache_key *k)
{
    if (!k->hash) k->hash = sha256_new();
    k->failed |= !k->hash;
    if (k->hash) sha256_add(k->hash, k->held, k->n_held);
    k->n_held = 0;
}

static void cache_key_add(cache_key *k, const void *data, size_t n)
{
    if (n > sizeof k->held - k->n_held) cache_key_flush(k);
    if (n > sizeof k->held) {
        if (k->hash) sha256_add(k->hash, data, n);
    } else if (n) {
        memcpy(k->held + k->n_held, data, n);
        k->n_held += n;
    }
}

static void add_len(cache_key *k, uint64_t n)
{
    cache_key_add(k, &n, sizeof n); /* little-endian hosts only, as all ours are */
}

static void add_field(cache_key *k, const char *name, char type, const void *data, size_t n)
{
    size_t n_name = strlen(name);
    add_len(k, n_name);
    cache_key_add(k, name, n_name);
    cache_key_add(k, &type, 1);
    add_len(k, n);
    cache_key_add(k, data, n);
}

cache_key *cache_key_new(const char *kind)
{
    cache_key *k = malloc(sizeof *k);
    if (!k) return NULL;
    k->hash = NULL;
    k->failed = false;
    k->n_held = 0;
    cache_key_str(k, "kind", kind);
    return k;
}

void cache_key_bytes(cache_key *k, const char *name, const void *data, size_t n)
{
    if (k) add_field(k, name, 'b', data, n);
}

void cache_key_str(cache_key *k, const char *name, const char *s)
{
    if (k) add_field(k, name, s ? 's' : '0', s, s ? strlen(s) : 0);
}

void cache_key_int(cache_key *k, const char *name, int64_t v)
{
    char text[NUMBER_SIZE];
    size_t n = number_write_i64(text, v);
    if (k) add_field(k, name, 'i', text, n);
}

void cache_key_num(cache_key *k, const char *name, double v)
{
    char text[NUMBER_SIZE];
    size_t n = number_write(text, v == 0 ? 0.0 : v, 17);
    if (k) add_field(k, name, 'n', text, (size_t)n);
}

void cache_key_free(cache_key *k)
{
    sha256_digest unused;
    if (k && k->hash) sha256_end(k->hash, &unused);
    free(k);
}

bool cache_key_end(cache_key *k, sha256_digest *ret)
{
    if (!k) return false;
    bool well = !k->failed;
    if (!k->hash) {
        if (well) sha256_of(k->held, k->n_held, ret);
        free(k);
        return well;
    }
    cache_key_flush(k);
    sha256_digest d;
    sha256_end(k->hash, &d);
    free(k);
    if (well) *ret = d;
    return well;
}
