/* parcel.h: what travels as one thing: a file, or a folder of files by a list of their digests.
 *
 * A file is known by its SHA-256. A folder (a Hugging Face model, a PEFT adapter) is known by the SHA-256 of
 * its list: for each file, in the order of the bytes of their paths, the line "DIGEST PATH\n". Names that
 * begin with a dot, and weights in forms that Shoal does not read, do not travel.
 *
 *     parcel p = {0};
 *     parcel_read(&p, "models/llama", NULL, &err);            what is on this machine; reads every byte
 *     Shoal__V1__FolderFile files[PARCEL_FILES_MAX], *list[PARCEL_FILES_MAX];
 *     parcel_put(&p, &m, files, list);                        said to another
 *     parcel_take(&q, &m, &err);                              what another said, checked
 *     parcel_done(&p);
 *
 * Any thread; one at a time. */
#ifndef TRANSFER_PARCEL_H
#define TRANSFER_PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "shoal/v1/cluster.pb-c.h"

enum { PARCEL_FILES_MAX = 128, PARCEL_PATH_SIZE = 200, PARCEL_NAME_SIZE = 256 };

typedef struct parcel_file {
    char path[PARCEL_PATH_SIZE]; /* in the folder: one or two parts, such as "1_Pooling/config.json" */
    char digest[65];
    uint64_t bytes;
} parcel_file;

typedef struct parcel {          /* zeroed: none */
    char name[PARCEL_NAME_SIZE]; /* of the file or folder, without what it lies in */
    char digest[65];
    uint64_t bytes;     /* of all of it */
    parcel_file *files; /* of a folder, in the order of their paths; NULL: it is one file */
    size_t n_files;
} parcel;

/* pinned: the digest of a file, which is not read then; NULL: none. Errors say what to do: an unreadable
 * file, a folder of more than PARCEL_FILES_MAX files or of none, a path that is too long. */
int parcel_read(parcel *ret, const char *path, const char *pinned, shoal_err *err);
/* Borrows from p; files and list have room for its n_files. */
void parcel_put(const parcel *p, Shoal__V1__ModelFile *m, Shoal__V1__FolderFile *files,
                Shoal__V1__FolderFile **list);
/* SHOAL_EINVALID: no such thing can be: digests that are none, paths that lead elsewhere or are there twice,
 * a list that has another digest. */
int parcel_take(parcel *ret, const Shoal__V1__ModelFile *m, shoal_err *err);
void parcel_done(parcel *p);

bool parcel_digest_ok(const char *s); /* 64 lower-case hexadecimal digits */
bool parcel_path_ok(const char *s);

#endif
