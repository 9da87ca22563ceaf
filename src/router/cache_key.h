/* cache_key.h: the name of an answer.
 *
 * Two requests share an answer only when everything that decides its bytes is equal: the kind of
 * call, the model file's digest, the prompt, sampling, constraint, stops, n, limits. A key is SHA-256
 * over those fields, each written as  name length, name, value length, value  so that no two field
 * lists run together. Field order matters: callers add fields in one fixed order.
 *
 *     cache_key *k = cache_key_new("chat.completions");
 *     cache_key_str(k, "digest", replica->info->digest);
 *     cache_key_json(k, "messages", messages);   // canonical: keys sorted, no white space
 *     cache_key_num(k, "temperature", 0);
 *     sha256_digest d;
 *     cache_key_end(k, &d);                      // frees k
 *
 * Normalising a prompt must not change its answer, so it stays small: JSON loses the order of its
 * keys and its white space (the template sees neither), text is taken as it is. */
#ifndef ROUTER_CACHE_KEY_H
#define ROUTER_CACHE_KEY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/sys.h"

typedef struct cache_key cache_key;

cache_key *cache_key_new(const char *kind); /* NULL when out of memory; the rest accept NULL */
void cache_key_bytes(cache_key *k, const char *name, const void *data, size_t n);
void cache_key_str(cache_key *k, const char *name, const char *s);     /* NULL differs from "" */
void cache_key_int(cache_key *k, const char *name, int64_t v);
void cache_key_num(cache_key *k, const char *name, double v);          /* 0.0 and -0.0 are equal */
void cache_key_json(cache_key *k, const char *name, const json_t *v);  /* NULL differs from null */
/* False when memory ran out on the way: then nothing may be looked up or stored. */
bool cache_key_end(cache_key *k, sha256_digest *ret);

#endif
