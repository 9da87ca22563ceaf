/* artifact.h: what travels as one thing: a file, or a folder of files by a list of their digests.
 *
 * A file is known by its SHA-256. A folder (a Hugging Face model, a PEFT adapter) is known by the SHA-256 of
 * its list: for each file, in the order of the bytes of their paths, the line "DIGEST PATH\n". Names that
 * begin with a dot, and weights in another program's form (MODEL_FILE_FOREIGN), do not travel.
 *
 *     artifact p = {0};
 *     artifact_read(&p, "models/llama", NULL, &err);            what is on this machine; reads every byte
 *     Shoal__V1__FolderFile files[ARTIFACT_FILES_MAX], *list[ARTIFACT_FILES_MAX];
 *     artifact_put(&p, &m, files, list);                        said to another
 *     artifact_take(&q, &m, &err);                              what another said, checked
 *     artifact_done(&p);
 *
 * Any thread; one at a time. */
#ifndef TRANSFER_ARTIFACT_H
#define TRANSFER_ARTIFACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "shoal/v1/cluster.pb-c.h"

enum { ARTIFACT_FILES_MAX = 128, ARTIFACT_PATH_SIZE = 200, ARTIFACT_NAME_SIZE = 256 };

typedef struct artifact_file {
    char path[ARTIFACT_PATH_SIZE]; /* in the folder: one or two parts, such as "1_Pooling/config.json" */
    char digest[65];
    uint64_t bytes;
} artifact_file;

typedef struct artifact {          /* zeroed: none */
    char name[ARTIFACT_NAME_SIZE]; /* of the file or folder, without what it lies in */
    char digest[65];
    uint64_t bytes;       /* of all of it */
    artifact_file *files; /* of a folder, in the order of their paths; NULL: it is one file */
    size_t n_files;
} artifact;

/* pinned: the digest of a file, which is not read then; NULL: none. Errors say what to do: an unreadable
 * file, a folder of more than ARTIFACT_FILES_MAX files or of none, a path that is too long. */
int artifact_read(artifact *ret, const char *path, const char *pinned, shoal_err *err);
/* Borrows from p; files and list have room for its n_files. */
void artifact_put(const artifact *p, Shoal__V1__ModelFile *m, Shoal__V1__FolderFile *files,
                  Shoal__V1__FolderFile **list);
/* SHOAL_EINVALID: no such thing can be: digests that are none, paths that lead elsewhere or are there twice,
 * a list that has another digest. */
int artifact_take(artifact *ret, const Shoal__V1__ModelFile *m, shoal_err *err);
void artifact_done(artifact *p);

bool artifact_digest_ok(const char *s); /* 64 lower-case hexadecimal digits */
bool artifact_path_ok(const char *s);

#endif
