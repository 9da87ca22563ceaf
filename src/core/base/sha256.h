/* sha256.h: SHA-256 (FIPS 180-4) of bytes and files: model digests, cache keys, API keys. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct sha256_digest {
    uint8_t bytes[32];
} sha256_digest;

typedef struct sha256 sha256;
sha256 *sha256_new(void); /* NULL when out of memory */
void sha256_add(sha256 *s, const void *data, size_t n);
void sha256_add_text(sha256 *s, const char *text); /* with its NUL, so that "ab", "c" is not "a", "bc" */
void sha256_end(sha256 *s, sha256_digest *ret); /* frees s */
/* All at once: n bytes, resp. a file (errors as file_open_regular's, and SHOAL_EIO). A file that is
 * changed meanwhile has some digest. */
void sha256_of(const void *data, size_t n, sha256_digest *ret);
int sha256_file(const char *path, sha256_digest *ret, shoal_err *err);
/* Does the file have that digest (64 digits of either case)? False, too, when it cannot be read. */
bool sha256_file_is(const char *path, const char *hex);
/* 64 lower-case digits and a NUL. */
void sha256_hex(const sha256_digest *d, char ret_hex[65]);

#endif
