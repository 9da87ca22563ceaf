/* cache_key.h: the name of an answer.
 *
 * Two requests share an answer only when everything that decides its bytes is equal: the kind of
 * call, the model's identity, the prompt, sampling, constraint, stops, n, limits. A key is SHA-256
 * over those fields, each written as  name length, name, value length, value  so that no two field
 * lists run together. Field order matters: callers add fields in one fixed order.
 *
 *     cache_key *k = cache_key_new("chat.completions");
 *     cache_key_str(k, "identity", replica->info->identity);
 *     cache_key_str(k, "messages", messages_json);   // as the worker gets them
 *     cache_key_num(k, "temperature", 0);
 *     sha256_digest d;
 *     cache_key_end(k, &d);                      // frees k
 *
 * Normalising a prompt must not change its answer, so it stays small: messages and tools lose their white
 * space and keep the order of their keys, in which a template prints them; text is taken as it is. What a
 * template reads beside these is the clock: answers of a model whose template does are not kept at all. */
#ifndef CACHE_CACHE_KEY_H
#define CACHE_CACHE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sha256.h"

typedef struct cache_key cache_key;

cache_key *cache_key_new(const char *kind); /* NULL when out of memory; the rest accept NULL */
/* Add a field; what was added cannot be taken back. */
void cache_key_bytes(cache_key *k, const char *name, const void *data, size_t n);
void cache_key_str(cache_key *k, const char *name, const char *s); /* NULL differs from "" */
void cache_key_int(cache_key *k, const char *name, int64_t v);
void cache_key_num(cache_key *k, const char *name, double v); /* 0.0 and -0.0 are equal */
void cache_key_free(cache_key *k);                            /* without a digest; NULL is fine */
/* False when memory ran out on the way: then nothing may be looked up or stored. */
bool cache_key_end(cache_key *k, sha256_digest *ret);

#endif
