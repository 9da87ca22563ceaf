/* folder.h: a folder of secrets and state: a file in it is the old one or the new one, whatever happens
 * between.
 *
 * A write goes to NAME.new, is fsynced, takes the name, and the folder is fsynced. Whoever reads, changes and
 * writes holds the folder's lock meanwhile (flock on the file "lock"), which the kernel gives back however
 * its holder ends. Names are taken relative to the open folder and links are not followed, so that nobody's
 * link leads a secret elsewhere. */
#ifndef TRUST_FOLDER_H
#define TRUST_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct folder {
    int fd; /* -1: not open */
    char *path;
} folder;

#define FOLDER_NONE ((folder){.fd = -1})

/* make: with mode 0700, and the folders above it. SHOAL_ENOTFOUND, SHOAL_EAUTH or SHOAL_EIO. */
int folder_open(folder *ret, const char *path, bool make, shoal_err *err);
void folder_close(folder *f); /* FOLDER_NONE is fine */

/* Waits up to five seconds: SHOAL_EFULL says that another command holds it. One holder even within a process.
 */
int folder_lock(const folder *f, int *ret_lock, shoal_err *err);
void folder_unlock(int lock);

bool folder_has(const folder *f, const char *name);
/* Append the whole file. secret: one that others may read is refused (SHOAL_EAUTH). */
int folder_read(const folder *f, const char *name, size_t max_bytes, bool secret, buf *out, shoal_err *err);
int folder_write(const folder *f, const char *name, mode_t mode, const void *data, size_t n, shoal_err *err);

#endif
