/* auth.c: digests of keys, compared without telling how far they agree. */
#include "gateway/auth.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/sha256.h"
#include "base/utf8.h"

static const char PREFIX[] = "sha256:";

int auth_init(auth *ret, const char *const *keys, size_t n_keys, shoal_err *err)
{
    auth a = {.keys = calloc(n_keys ? n_keys : 1, sizeof(sha256_digest)), .n_keys = n_keys};
    if (!a.keys) return err_nomem(err);
    for (size_t i = 0; i < n_keys; i++) {
        const char *hex = keys[i] + (sizeof PREFIX - 1);
        if (strncmp(keys[i], PREFIX, sizeof PREFIX - 1) != 0 ||
            !hex_decode(hex, strlen(hex), a.keys[i].bytes, 32)) {
            auth_done(&a);
            return err_set(err, SHOAL_EINVALID,
                           "api_keys[%zu]: must be \"sha256:\" and the 64 hex digits of the key's SHA-256",
                           i);
        }
    }
    *ret = a;
    return 0;
}

void auth_done(auth *a)
{
    free(a->keys);
    *a = (auth){0};
}

/* No early exit: how long it takes must not tell how many bytes were right. */
static bool same_digest(const sha256_digest *a, const sha256_digest *b)
{
    unsigned char diff = 0;
    for (size_t i = 0; i < sizeof a->bytes; i++) diff |= (unsigned char)(a->bytes[i] ^ b->bytes[i]);
    return diff == 0;
}

bool auth_allows(const auth *a, const char *authorization)
{
    if (a->n_keys == 0) return true;
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0) return false;
    const char *key = authorization + 7;
    while (*key == ' ') key++;
    sha256_digest d;
    sha256_of(key, strlen(key), &d);
    unsigned found = 0;
    for (size_t i = 0; i < a->n_keys; i++) found |= same_digest(&a->keys[i], &d);
    return found != 0;
}
