/* identity.h: who somebody is in a cluster: a name, and what that one may do there.
 *
 * Both stand in the certificate, in one URI: shoal://CLUSTER/ROLE/NAME. Names are those of hosts (RFC 1123),
 * in small letters, so that they can be written anywhere without quotes: "kitchen-pi", "rack2.lab".
 *
 *     identity id;
 *     if (identity_parse(&id, uri, strlen(uri)) && id.role == ROLE_GATEWAY) ... id.name ...
 *
 * Pure functions. */
#ifndef TRUST_IDENTITY_H
#define TRUST_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* X(enum, name, what the holder may do) */
#define ROLE_TABLE(X)                                 \
    X(ROLE_NODE, "node", "offer workers to gateways") \
    X(ROLE_GATEWAY, "gateway", "attach nodes, call workers")
typedef enum role {
#define ROLE_ENUM(e, name, may) e,
    ROLE_TABLE(ROLE_ENUM)
#undef ROLE_ENUM
        N_ROLES
} role;

const char *role_name(role r);
bool role_parse(role *ret, const char *s, size_t n); /* false: no role has that name */

enum { IDENTITY_NAME_SIZE = 64, IDENTITY_URI_SIZE = 2 * IDENTITY_NAME_SIZE + 24 }; /* with the NUL */

typedef struct identity {
    char cluster[IDENTITY_NAME_SIZE], name[IDENTITY_NAME_SIZE];
    role role;
} identity;

/* s[0..n) is 1 to 63 of a-z, 0-9, '-' and '.'; each part between dots begins and ends with a letter or digit.
 */
bool identity_name_ok(const char *s, size_t n);
/* The same with a sentence; `what` is "node" or "cluster". SHOAL_EINVALID. */
int identity_name_check(const char *s, size_t n, const char *what, shoal_err *err);
/* A name for this machine out of its host name: small letters, "-" for what a name cannot hold. */
void identity_name_from_host(char ret[IDENTITY_NAME_SIZE], const char *host);

/* The whole of s[0..n) is such a URI; false leaves *ret as it was. */
bool identity_parse(identity *ret, const char *s, size_t n);
void identity_format(char ret[IDENTITY_URI_SIZE], const identity *id);

#endif
