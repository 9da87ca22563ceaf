/* manager_find.h: from what a person calls a model to the file that may be loaded.
 *
 * Files are taken from a few folders: the store (where fetched models are), that of the manifest, and those
 * that the configuration adds. A path is followed to its end, links included, and that end must lie in one of
 * them (of the root: directly); of a folder every file in it. What lies elsewhere is refused in one and the
 * same way, whether it is there or not. Whoever is the server's own user, or root, on this machine may name any path
 * (config_load_request.any_path): the server opens it with that user's permissions or fewer, so nothing is opened for
 * somebody who could not. Another user of this machine (config_load_request.reader) may name any path that he can read
 * himself. It is looked at with base/file_user.h, as the worker then opens it: what is found out here only makes the
 * refusal come early. Such a load is not kept for the next start: nobody knows whether that user may read it then.
 *
 *     manager_find(&f, &places, &wanted, &err);    f.path, or f.reference: it is to be fetched first
 *     manager_found_done(&f);
 *
 * Reads the disk: for threads of the pool. */
#ifndef MANAGER_MANAGER_FIND_H
#define MANAGER_MANAGER_FIND_H

#include "base/name.h"
#include "json/json.h"
#include "config/config_load_request.h"

enum { MANAGER_FOLDERS_MAX = 34 };

typedef struct manager_places {               /* texts are borrowed, and read only */
    const char *folders[MANAGER_FOLDERS_MAX]; /* without links in them; the first is the store */
    size_t n_folders;
    const char *manifest; /* NULL: none */
    bool any;             /* files may lie elsewhere, too */
} manager_places;

typedef struct manager_found { /* texts are malloc'd; absent ones are NULL */
    char name[NAME_BYTES_MAX + 1];
    char *path, *sha256;
    char *reader;    /* the path lies elsewhere, and is opened for this user: file_user as text */
    char *reference; /* path is NULL: what `shoal pull` is to fetch */
    uint64_t bytes;
    sampling_defaults sampling; /* as models.json says */
} manager_found;

/* A folder without links; of one that is not there, the nearest that is, and the names below it, as it will
 * be once it is made. malloc'd, NULL: no memory. */
char *manager_real_folder(const char *folder);

/* SHOAL_ENOTFOUND: nothing is called so; SHOAL_EAUTH: it lies elsewhere, or cannot be read; SHOAL_EINVALID:
 * it is neither file nor folder, or has no name that a model may have. */
int manager_find(manager_found *ret, const manager_places *p, const config_load_request *w, shoal_err *err);
/* The same for a path alone, as `shoal pull` says it at its end. */
void manager_found_done(manager_found *f); /* a zeroed one is fine */

/* What a file or folder is called as a model: "Tiny Q8.gguf" is "Tiny-Q8". SHOAL_EINVALID: it has no such name. */
int manager_name_by(char ret[NAME_BYTES_MAX + 1], const char *path, shoal_err *err);

/* What the store's models.json lists, and the manifest's, as model_manager.stored gives it; NULL: no memory. */
json_t *manager_list(const manager_places *p);
/* The entry that a client calls so: by name, or by what it was fetched as. NULL: none. */
const json_t *manager_called(const json_t *list, const char *called);

#endif
