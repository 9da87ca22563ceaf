/* model_shelf.h: the folder in which models lie that came from other machines.
 *
 * A file is FOLDER/DIGEST.SUFFIX, as long as it comes FOLDER/DIGEST.part. A model or adapter that is a folder
 * is FOLDER/DIGEST.d, made of links to its files as soon as all of them are there, and gone when it is not
 * wanted. What is not wanted stays until its room is needed; then the least recently wanted goes first.
 *
 *     model_shelf_open(&s, "…/models", 64000000000, &err);
 *     model_shelf_want(&s, artifacts, n_parcels, &err);
 *     if (model_shelf_find(&s, artifacts[0], path)) serve(path);
 *     model_shelf_close(&s);
 *
 * One thread; what it does blocks for the time of a few names on the disk. */
#ifndef TRANSFER_MODEL_SHELF_H
#define TRANSFER_MODEL_SHELF_H

#include "transfer/artifact.h"

enum { MODEL_PATH_SIZE = 4096, MODEL_SHELF_MAX = 2048, MODEL_SHELF_DAMAGED = 2 };

typedef struct model_file {
    char digest[65];
    char suffix[16]; /* ".gguf"; letters and digits behind the dot, or "" */
    uint64_t bytes;
} model_file;

typedef struct model_shelf {
    char *folder;
    uint64_t max_bytes;        /* of all files; 0: as the disk has it */
    model_file *wanted, *held; /* held: that are whole, as of the last look */
    size_t n_wanted, n_held;
} model_shelf;

/* SHOAL_EINVALID: no digest and suffix can be made of these. Anything a gateway says may be given. */
int model_file_make(model_file *ret, const char *name, const char *digest, uint64_t bytes, shoal_err *err);

int model_shelf_open(model_shelf *ret, const char *folder, uint64_t max_bytes, shoal_err *err);
/* The files of these, at most MODEL_SHELF_MAX, and nothing else. Copied. SHOAL_ENOMEM: as it was. */
int model_shelf_want(model_shelf *s, const artifact *const *artifacts, size_t n, shoal_err *err);
bool model_shelf_wants(const model_shelf *s, const char *digest); /* or a longer name that begins with it */
bool model_shelf_has(const model_shelf *s, const model_file *f, char ret_path[MODEL_PATH_SIZE]);
/* All of an artifact is here, and this is where. */
bool model_shelf_find(const model_shelf *s, const artifact *p, char ret_path[MODEL_PATH_SIZE]);
/* The files of an artifact, into ret[max]; how many there are. */
size_t model_shelf_files(const artifact *p, model_file *ret, size_t max);
void model_shelf_path(const model_shelf *s, const model_file *f, bool part, char ret[MODEL_PATH_SIZE]);
/* Files that nobody wants go until so many bytes fit; false: they do not. */
bool model_shelf_make_room(const model_shelf *s, const model_file *coming);
/* A file that is not what its name says gets another name, under which nobody asks for it:
 * "damaged-DIGEST.SUFFIX". Of these the last MODEL_SHELF_DAMAGED stay, for people to look at. False: it could
 * be neither renamed nor removed. True, too, when it is not there. */
bool model_shelf_set_aside(const model_shelf *s, const model_file *f);
/* Look again at what is held. Without memory the list is shorter. */
void model_shelf_look(model_shelf *s);
void model_shelf_close(model_shelf *s);

#endif
