/* auth.h: the API keys: who somebody is, what he may do, and how much of it.
 *
 *     const auth_key *k = auth_find(a, "sk-...");            // NULL: no key of ours
 *     if (auth_ended(k, now_s)) ...                          // it had its time
 *     if (!auth_may_ask(k, "chat_completions", path) || !auth_may_use(k, "home")) ...
 *     if (auth_wait_ns(k, now_ns, &of) > 0) ...              // 429: of what it has taken too much
 *     auth_enter(k, now_ns);                                 // a request begins ...
 *     auth_leave(k, n_tokens, now_ns);                       // ... and ends
 *
 * The rules are a configuration's; what a key has taken is its own, and stays when another configuration
 * comes (auth_new's `before`). Only digests of keys are in memory. Loop thread. */
#ifndef ACCESS_AUTH_H
#define ACCESS_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "config/config_keys.h"
#include "access/bucket.h"

enum { AUTH_LABEL_BYTES = 72 };

typedef struct auth auth;

typedef struct auth_use { /* what one key has taken, over all configurations that have it */
    unsigned refs;
    sha256_digest digest;
    bucket requests, tokens;
    size_t n_running;
    size_t n_indexing; /* its requests that bring documents */
    size_t n_uploads;  /* its bodies that are not whole yet (uploads.h), and */
    uint64_t n_upload_bytes;
} auth_use;

typedef struct auth_key {
    const config_key *rule;
    auth_use *use;
    sha256_digest place; /* what it is found by */
} auth_key;

/* X(enum, name): of what a key has taken too much; the name is OpenAI's, in "type" and headers. */
#define AUTH_RATE_TABLE(X)       \
    X(AUTH_REQUESTS, "requests") \
    X(AUTH_TOKENS, "tokens")     \
    X(AUTH_CONCURRENT, "requests")
#define AUTH_RATE_ENUM(e, n) e,
typedef enum auth_rate { AUTH_RATE_TABLE(AUTH_RATE_ENUM) } auth_rate;
#undef AUTH_RATE_ENUM

/* keys are borrowed as long as this lives. before: whose keys go on with what they have taken; may be NULL.
 * SHOAL_EINVALID begins with the field: "api_keys[0]: ...". */
int auth_new(auth **ret, const config_key *keys, size_t n_keys, const auth *before, shoal_err *err);
void auth_free(auth *a);          /* accepts NULL */
size_t auth_count(const auth *a); /* 0: everyone may come in */

/* The key whose text this is. How long it takes tells nothing of any key: what is compared are digests that
 * are salted anew in every process. NULL: none. */
const auth_key *auth_find(const auth *a, const char *text);
/* The key with this SHA-256, in hex; not of a client's. NULL: none. */
const auth_key *auth_find_sha256(const auth *a, const char *hex);
/* Its name, or for one without the first digits of its digest, "sha256:9f86d081". */
const char *auth_label(const auth_key *k, char out[AUTH_LABEL_BYTES]);
bool auth_ended(const auth_key *k, int64_t now_s);
/* An endpoint's row and path. */
bool auth_may_ask(const auth_key *k, const char *endpoint, const char *path);
/* What a request names: a model, MODEL:ADAPTER, a route, an ensemble, a pipeline. */
bool auth_may_use(const auth_key *k, const char *name);

/* How long until a request may begin, and by which limit; 0: now. */
uint64_t auth_wait_ns(const auth_key *k, uint64_t now_ns, auth_rate *ret_of);
void auth_enter(const auth_key *k, uint64_t now_ns);
void auth_leave(const auth_key *k, uint64_t n_tokens, uint64_t now_ns);

/* '*' is any run of characters, none as well, '?' any one. */
bool auth_matches(const char *pattern, const char *name);

#endif
