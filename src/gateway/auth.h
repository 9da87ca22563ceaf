/* auth.h: API keys, kept only as SHA-256 digests. */
#ifndef GATEWAY_AUTH_H
#define GATEWAY_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/sha256.h"

enum { AUTH_NAME_BYTES = 65 };

typedef struct auth {
    sha256_digest *keys;
    char (*names)[AUTH_NAME_BYTES]; /* of the keys, "" for none */
    size_t n_keys;                  /* 0: everyone may come in */
} auth;

/* keys: "sha256:<64 hex digits>" each, or "NAME=sha256:..." for one that rules of routes know by name;
 * anything else is SHOAL_EINVALID. */
int auth_init(auth *ret, const char *const *keys, size_t n_keys, shoal_err *err);
void auth_done(auth *a);

/* `authorization` is the header's value ("Bearer KEY") or NULL. Compares against every key in time that
 * depends on neither the key nor which one matched. */
bool auth_allows(const auth *a, const char *authorization);
/* The name of the key that the header has; "" when it has none. */
const char *auth_name(const auth *a, const char *authorization);

#endif
