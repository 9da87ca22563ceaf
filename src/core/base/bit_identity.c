/* bit_identity.c: see bit_identity.h. */
#include "base/bit_identity.h"

#include <stdio.h>
#include <string.h>

#define DIGEST_PREFIX "sha256:"
#define PLAIN_TAIL    ";engine=" BIT_IDENTITY_ENGINE ";precision=" BIT_IDENTITY_FILE ";numerics=1"

void bit_identity_put(char ret[BIT_IDENTITY_BYTES], const bit_identity *m)
{
    *ret = '\0';
    if (!m->digest || !*m->digest) return;
    int n = snprintf(ret, BIT_IDENTITY_BYTES, DIGEST_PREFIX "%s;engine=%s;precision=%s;numerics=%u",
                     m->digest, m->engine, m->precision, m->numerics);
    if (n >= BIT_IDENTITY_BYTES) *ret = '\0'; /* not known rather than like another one */
}

void bit_identity_of_digest(char ret[BIT_IDENTITY_BYTES], const char *digest)
{
    bit_identity_put(ret, &(bit_identity){.digest = digest,
                                          .engine = BIT_IDENTITY_ENGINE,
                                          .precision = BIT_IDENTITY_FILE,
                                          .numerics = 1});
}

bool bit_identity_is_valid(const char *line, const char *digest)
{
    size_t n = strlen(line), n_prefix = sizeof DIGEST_PREFIX - 1, n_digest = strlen(digest);
    if (n == 0) return true;
    for (size_t i = 0; i < n; i++)
        if (line[i] <= ' ' || line[i] > '~' || line[i] == '"' || line[i] == '\\') return false;
    return n < BIT_IDENTITY_BYTES && strncmp(line, DIGEST_PREFIX, n_prefix) == 0 &&
           strncmp(line + n_prefix, digest, n_digest) == 0 && line[n_prefix + n_digest] == ';';
}

const char *bit_identity_short(char ret[BIT_IDENTITY_BYTES], const char *line)
{
    size_t n = strlen(line), n_prefix = sizeof DIGEST_PREFIX - 1, n_tail = sizeof PLAIN_TAIL - 1;
    bool plain = n > n_prefix + n_tail && strncmp(line, DIGEST_PREFIX, n_prefix) == 0 &&
                 strcmp(line + n - n_tail, PLAIN_TAIL) == 0;
    if (plain)
        snprintf(ret, BIT_IDENTITY_BYTES, "%.*s", (int)(n - n_prefix - n_tail), line + n_prefix);
    else
        snprintf(ret, BIT_IDENTITY_BYTES, "%s", line);
    return ret;
}
