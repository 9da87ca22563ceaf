/* partial.h: a file that arrives in pieces, over several runs if need be, and takes its name when it is whole.
 *
 *     partial p = PARTIAL_NONE;
 *     partial_open(&p, "m.gguf.part", 0644, &err);       // p.at bytes are there: ask for those behind them
 *     partial_append(&p, data, n, &err);                 // for each piece
 *     rc = partial_verify(&p, &(content){.sha256 = digest}, &found, &err);
 *     if (rc == 0) partial_publish(&p, "m.gguf", &err);
 *     if (rc == SHOAL_EDIGEST) partial_remove(&p);       // or partial_restart, to fetch it once more
 *     partial_close(&p);                                 // what was not published stays for the next run
 *
 * One process at a time has it: it is locked (flock) until it is closed, however its process ends. Of what it
 * is a part its owner knows: by its name, or from a note beside it. One thread at a time, any of them. */
#ifndef STORE_PARTIAL_H
#define STORE_PARTIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* What a file is to hold, as far as it is known. Zeroed: anything. */
typedef struct content {
    bool has_size;
    uint64_t size;
    const char *sha256;   /* 64 digits of either case; NULL or "": not known */
    const char *git_sha1; /* git's name of a blob of these bytes: SHA-1 of "blob N", NUL and them; as above */
} content;

typedef struct content_found {
    uint64_t bytes;
    char sha256[65];
} content_found;

/* Read a file and compare. SHOAL_EDIGEST: it is another, *ret says which. Else as file_open_regular, SHOAL_EIO. */
int content_check(const char *path, const content *want, content_found *ret, shoal_err *err);

typedef struct partial {
    char *path; /* NULL: not open */
    int fd;
    uint64_t at; /* bytes that are there */
} partial;

#define PARTIAL_NONE ((partial){.fd = -1})

/* Made where it is not there, with that mode; links are not followed. SHOAL_EFULL: another process has it;
 * SHOAL_EAUTH: not allowed here; SHOAL_EINVALID: no regular file; SHOAL_EIO, SHOAL_ENOMEM. */
int partial_open(partial *ret, const char *path, mode_t mode, shoal_err *err);
/* Without a name: it goes with its last descriptor, for what is kept elsewhere when it is whole (p.fd). In that
 * folder; `called` is for messages. It cannot be verified or published. SHOAL_EIO, SHOAL_ENOMEM. */
int partial_open_nameless(partial *ret, const char *folder, const char *called, shoal_err *err);
/* Behind what is there. SHOAL_EIO (a full disk): what was there before is. */
int partial_append(partial *p, const void *data, size_t n, shoal_err *err);
int partial_restart(partial *p, shoal_err *err); /* from the first byte. SHOAL_EIO */
/* Bring it to the disk and compare it. As content_check. */
int partial_verify(const partial *p, const content *want, content_found *ret, shoal_err *err);
/* It takes its name, in place of whatever has it; still locked. SHOAL_EIO: it is a part still. */
int partial_publish(const partial *p, const char *path, shoal_err *err);
void partial_remove(const partial *p); /* an open one; once more does nothing */
void partial_close(partial *p);        /* PARTIAL_NONE is fine */

#endif
