/* auth.c: digests of keys, compared without telling how far they agree. */
#include "gateway/auth.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/sha256.h"
#include "base/utf8.h"

static const char PREFIX[] = "sha256:";

/* "NAME=sha256:HEX" or "sha256:HEX" */
static bool read_key(const char *key, sha256_digest *ret, char name[AUTH_NAME_BYTES])
{
    const char *equals = strchr(key, '='), *digest = equals ? equals + 1 : key;
    size_t n = equals ? (size_t)(equals - key) : 0;
    if (n >= AUTH_NAME_BYTES || (equals && n == 0)) return false;
    memcpy(name, key, n);
    name[n] = '\0';
    const char *hex = digest + (sizeof PREFIX - 1);
    return strncmp(digest, PREFIX, sizeof PREFIX - 1) == 0 && hex_decode(hex, strlen(hex), ret->bytes, 32);
}

int auth_init(auth *ret, const char *const *keys, size_t n_keys, shoal_err *err)
{
    auth a = {.keys = calloc(n_keys ? n_keys : 1, sizeof(sha256_digest)),
              .names = calloc(n_keys ? n_keys : 1, AUTH_NAME_BYTES),
              .n_keys = n_keys};
    int rc = a.keys && a.names ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < n_keys; i++)
        if (!read_key(keys[i], &a.keys[i], a.names[i]))
            rc = err_set(err, SHOAL_EINVALID,
                         "api_keys[%zu]: must be \"sha256:\" and the 64 hex digits of the key's SHA-256", i);
    if (rc == 0)
        *ret = a;
    else
        auth_done(&a);
    return rc;
}

void auth_done(auth *a)
{
    free(a->keys);
    free(a->names);
    *a = (auth){0};
}

/* No early exit: how long it takes must not tell how many bytes were right. */
static bool same_digest(const sha256_digest *a, const sha256_digest *b)
{
    unsigned char diff = 0;
    for (size_t i = 0; i < sizeof a->bytes; i++) diff |= (unsigned char)(a->bytes[i] ^ b->bytes[i]);
    return diff == 0;
}

/* The place of the key, n_keys for none of them. */
static size_t find_key(const auth *a, const char *authorization)
{
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0) return a->n_keys;
    const char *key = authorization + 7;
    size_t found = a->n_keys;
    while (*key == ' ') key++;
    sha256_digest d;
    sha256_of(key, strlen(key), &d);
    for (size_t i = 0; i < a->n_keys; i++) {
        size_t same = (size_t)0 - (size_t)same_digest(&a->keys[i], &d); /* all ones when it is */
        found = (found & ~same) | (i & same);
    }
    return found;
}

bool auth_allows(const auth *a, const char *authorization)
{
    return a->n_keys == 0 || find_key(a, authorization) < a->n_keys;
}

const char *auth_name(const auth *a, const char *authorization)
{
    size_t i = find_key(a, authorization);
    return i < a->n_keys ? a->names[i] : "";
}
