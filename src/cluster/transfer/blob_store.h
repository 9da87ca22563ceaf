/* blob_store.h: the folder in which models lie that came from other machines.
 *
 * A file is FOLDER/DIGEST.SUFFIX, as long as it comes FOLDER/DIGEST.part. A model or adapter that is a folder
 * is FOLDER/DIGEST.d, made of links to its files as soon as all of them are there, and gone when it is not
 * wanted. What is not wanted stays until its room is needed; then the least recently wanted goes first.
 *
 *     blob_store_open(&s, "…/models", 64000000000, &err);
 *     blob_store_want(&s, artifacts, n_artifacts, &err);
 *     if (blob_store_find(&s, artifacts[0], path)) serve(path);
 *     blob_store_close(&s);
 *
 * One thread; what it does blocks for the time of a few names on the disk. */
#ifndef TRANSFER_BLOB_STORE_H
#define TRANSFER_BLOB_STORE_H

#include "transfer/artifact.h"

enum { MODEL_PATH_SIZE = 4096, BLOB_STORE_MAX = 2048, BLOB_STORE_DAMAGED = 2 };

typedef struct model_file {
    char digest[65];
    char suffix[16]; /* ".gguf"; letters and digits behind the dot, or "" */
    uint64_t bytes;
} model_file;

typedef struct blob_store {
    char *folder;
    uint64_t max_bytes;        /* of all files; 0: as the disk has it */
    model_file *wanted, *held; /* held: that are whole, as of the last look */
    size_t n_wanted, n_held;
} blob_store;

/* SHOAL_EINVALID: no digest and suffix can be made of these. Anything a gateway says may be given. */
int model_file_make(model_file *ret, const char *name, const char *digest, uint64_t bytes, shoal_err *err);

int blob_store_open(blob_store *ret, const char *folder, uint64_t max_bytes, shoal_err *err);
/* The files of these, at most BLOB_STORE_MAX, and nothing else. Copied. SHOAL_ENOMEM: as it was. */
int blob_store_want(blob_store *s, const artifact *const *artifacts, size_t n, shoal_err *err);
bool blob_store_wants(const blob_store *s, const char *digest); /* or a longer name that begins with it */
bool blob_store_has(const blob_store *s, const model_file *f, char ret_path[MODEL_PATH_SIZE]);
/* All of an artifact is here, and this is where. */
bool blob_store_find(const blob_store *s, const artifact *p, char ret_path[MODEL_PATH_SIZE]);
/* The files of an artifact, into ret[max]; how many there are. */
size_t blob_store_files(const artifact *p, model_file *ret, size_t max);
void blob_store_path(const blob_store *s, const model_file *f, bool part, char ret[MODEL_PATH_SIZE]);
/* Evict unused files until this one fits. SHOAL_ELIMIT: it does not; SHOAL_ENOMEM, SHOAL_EIO. */
int blob_store_make_room(const blob_store *s, const model_file *coming, shoal_err *err);
/* A file that is not what its name says gets another name, under which nobody asks for it:
 * "damaged-DIGEST.SUFFIX". Of these the last BLOB_STORE_DAMAGED stay, for people to look at. False: it could
 * be neither renamed nor removed. True, too, when it is not there. */
bool blob_store_set_aside(const blob_store *s, const model_file *f);
/* Look again at what is held. Without memory the list is shorter. */
void blob_store_look(blob_store *s);
void blob_store_close(blob_store *s);

#endif
