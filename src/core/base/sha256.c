/* sha256.c: SHA-256 by OpenSSL's functions that allocate nothing; see sha256.h. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/sha256.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/progress.h"
#include "base/utf8.h"

/* SHA256_* are deprecated in OpenSSL 3 and yet the right ones here: they neither allocate nor fetch providers
 * nor read openssl.cnf (2,300 allocations at the first digest), so a digest cannot fail. */
struct sha256 {
    SHA256_CTX ctx;
};

enum { READ_BYTES = 64 << 10 };

sha256 *sha256_new(void)
{
    sha256 *s = malloc(sizeof *s); /* glibc's calloc takes nothing from a thread's cache */
    if (s) SHA256_Init(&s->ctx);
    return s;
}

void sha256_add(sha256 *s, const void *data, size_t n)
{
    for (size_t piece; n > 0; data = (const uint8_t *)data + piece, n -= piece) {
        piece = n < PROGRESS_WORK / 8 ? n : PROGRESS_WORK / 8;
        SHA256_Update(&s->ctx, data, piece);
        progress_add(8 * piece); /* where there are no instructions for it */
    }
}

void sha256_add_text(sha256 *s, const char *text)
{
    sha256_add(s, text, strlen(text) + 1);
}

void sha256_end(sha256 *s, sha256_digest *ret)
{
    SHA256_Final(ret->bytes, &s->ctx);
    free(s);
}

void sha256_of(const void *data, size_t n, sha256_digest *ret)
{
    sha256 s;
    SHA256_Init(&s.ctx);
    SHA256_Update(&s.ctx, data, n);
    SHA256_Final(ret->bytes, &s.ctx);
}

/* Read, not mapped: a process that reads a mapping behind the new end of a file that somebody cuts off dies.
 */
int sha256_file(const char *path, sha256_digest *ret, shoal_err *err)
{
    sha256 s;
    uint8_t piece[READ_BYTES];
    int fd;
    size_t bytes;
    ssize_t n;
    int rc = file_open_regular(&fd, &bytes, path, err);
    if (rc != 0) return rc;
    SHA256_Init(&s.ctx);
    while ((n = read(fd, piece, sizeof piece)) > 0) sha256_add(&s, piece, (size_t)n);
    if (n < 0) rc = err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    close(fd);
    SHA256_Final(ret->bytes, &s.ctx);
    return rc;
}

bool sha256_file_is(const char *path, const char *hex)
{
    sha256_digest d;
    char found[65];
    if (sha256_file(path, &d, NULL) != 0) return false;
    sha256_hex(&d, found);
    return strcasecmp(found, hex) == 0;
}

void sha256_hex(const sha256_digest *d, char ret_hex[65])
{
    static const char digit[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        ret_hex[2 * i] = digit[d->bytes[i] >> 4];
        ret_hex[2 * i + 1] = digit[d->bytes[i] & 15];
    }
    ret_hex[64] = '\0';
}
