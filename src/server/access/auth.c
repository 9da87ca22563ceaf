/* auth.c: see auth.h. */
#include "access/auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct auth {
    auth_key *keys; /* in the order of their places */
    size_t n;
    unsigned char salt[32];
};

/* ---- life ---------------------------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
    const auth_key *x = a, *y = b;
    return memcmp(x->place.bytes, y->place.bytes, sizeof x->place.bytes);
}

static void auth_place_of(const auth *a, const sha256_digest *digest, sha256_digest *ret)
{
    unsigned char both[sizeof a->salt + sizeof digest->bytes];
    memcpy(both, a->salt, sizeof a->salt);
    memcpy(both + sizeof a->salt, digest->bytes, sizeof digest->bytes);
    sha256_of(both, sizeof both, ret);
}

static const auth_key *find_digest(const auth *a, const sha256_digest *digest)
{
    auth_key wanted;
    if (!a || a->n == 0) return NULL;
    auth_place_of(a, digest, &wanted.place);
    return bsearch(&wanted, a->keys, a->n, sizeof *a->keys, compare_places);
}

static auth_use *use_of(const sha256_digest *digest, const auth *before)
{
    const auth_key *same = find_digest(before, digest);
    auth_use *u = same ? same->use : calloc(1, sizeof *u);
    if (!u) return NULL;
    u->digest = *digest;
    u->refs++;
    return u;
}

int auth_new(auth **ret, const config_key *keys, size_t n_keys, const auth *before, shoal_err *err)
{
    auth *a = calloc(1, sizeof *a);
    int rc = a && (a->keys = calloc(n_keys + 1, sizeof *a->keys)) ? 0 : err_nomem(err);
    if (rc == 0) rng_bytes(a->salt, sizeof a->salt);
    for (size_t i = 0; rc == 0 && i < n_keys; i++) {
        sha256_digest d;
        if (!config_key_digest(&keys[i], &d))
            rc = err_set(err, SHOAL_EINVALID,
                         "api_keys[%zu]: must be 'sha256:' and the 64 hex digits of the key's SHA-256", i);
        else if (!(a->keys[i].use = use_of(&d, before)))
            rc = err_nomem(err);
        if (rc != 0) break;
        a->keys[i].rule = &keys[i];
        auth_place_of(a, &d, &a->keys[i].place);
        a->n++;
    }
    if (rc == 0) {
        qsort(a->keys, a->n, sizeof *a->keys, compare_places);
        *ret = a;
    } else {
        auth_free(a);
    }
    return rc;
}

void auth_free(auth *a)
{
    if (!a) return;
    for (size_t i = 0; i < a->n; i++)
        if (--a->keys[i].use->refs == 0) free(a->keys[i].use);
    free(a->keys);
    free(a);
}

size_t auth_count(const auth *a)
{
    return a->n;
}

/* ---- who ----------------------------------------------------------------------------------------- */

const auth_key *auth_find(const auth *a, const char *text)
{
    sha256_digest d;
    if (!text || a->n == 0) return NULL;
    sha256_of(text, strlen(text), &d);
    return find_digest(a, &d);
}

const auth_key *auth_find_sha256(const auth *a, const char *hex)
{
    char has[65];
    for (size_t i = 0; i < a->n; i++) {
        sha256_hex(&a->keys[i].use->digest, has);
        if (strcmp(has, hex) == 0) return &a->keys[i];
    }
    return NULL;
}

const char *auth_label(const auth_key *k, char out[AUTH_LABEL_BYTES])
{
    if (k->rule->name && *k->rule->name) {
        snprintf(out, AUTH_LABEL_BYTES, "%s", k->rule->name);
    } else {
        const uint8_t *b = k->use->digest.bytes;
        snprintf(out, AUTH_LABEL_BYTES, "sha256:%02x%02x%02x%02x", b[0], b[1], b[2], b[3]);
    }
    return out;
}

/* ---- what for ------------------------------------------------------------------------------------ */

bool auth_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *from = name; /* the last '*', and where what follows it was tried last */
    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            from = name;
        } else if (*pattern && (*pattern == '?' || *pattern == *name)) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++from;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

static bool any_matches(const char *const *patterns, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (auth_matches(patterns[i], name)) return true;
    return n == 0;
}

bool auth_ended(const auth_key *k, int64_t now_s)
{
    return k->rule->expires && now_s >= k->rule->expires_s;
}

bool auth_may_ask(const auth_key *k, const char *endpoint, const char *path)
{
    const char *const *of = (const char *const *)k->rule->endpoints;
    return any_matches(of, k->rule->n_endpoints, endpoint) || any_matches(of, k->rule->n_endpoints, path);
}

bool auth_may_use(const auth_key *k, const char *name)
{
    return any_matches((const char *const *)k->rule->models, k->rule->n_models, name);
}

/* ---- how much ------------------------------------------------------------------------------------ */

/* A place becomes free when an answer ends; nobody knows when, so a second is as good a guess as any. */
#define CONCURRENT_WAIT_NS 1000000000u

uint64_t auth_wait_ns(const auth_key *k, uint64_t now_ns, auth_rate *ret_of)
{
    const config_key *r = k->rule;
    uint64_t wait = 0;
    if (r->n_concurrent && k->use->n_running >= r->n_concurrent) {
        *ret_of = AUTH_CONCURRENT;
        return CONCURRENT_WAIT_NS;
    }
    if (r->requests_per_minute) {
        wait = bucket_wait_ns(&k->use->requests, r->requests_per_minute, 1, now_ns);
        *ret_of = AUTH_REQUESTS;
    }
    uint64_t more =
        r->tokens_per_minute ? bucket_wait_ns(&k->use->tokens, r->tokens_per_minute, 1, now_ns) : 0;
    if (more > wait) {
        wait = more;
        *ret_of = AUTH_TOKENS;
    }
    return wait;
}

void auth_enter(const auth_key *k, uint64_t now_ns)
{
    k->use->n_running++;
    if (k->rule->requests_per_minute) bucket_take(&k->use->requests, k->rule->requests_per_minute, 1, now_ns);
}

void auth_leave(const auth_key *k, uint64_t n_tokens, uint64_t now_ns)
{
    k->use->n_running--;
    if (k->rule->tokens_per_minute && n_tokens)
        bucket_take(&k->use->tokens, k->rule->tokens_per_minute, (double)n_tokens, now_ns);
}
