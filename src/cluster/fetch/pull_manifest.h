/* pull_manifest.h: a models.json to which a pulled file is added, so that it has a name.
 *
 * The text of the others stays as it is: the new entry is put in behind the last, and the whole is parsed
 * again and written beside and renamed, under a lock of the folder. */
#ifndef FETCH_PULL_MANIFEST_H
#define FETCH_PULL_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct pull_manifest_entry {
    const char *name, *file; /* file: a plain name in the folder */
    const char *sha256;
    const char *source; /* "hf:ORG/NAME:FILE" */
    uint64_t bytes;
} pull_manifest_entry;

/* Add e to FOLDER/models.json, which is made when there is none. When an entry has this file already, its
 * digest and size are brought up to date. *ret_name (malloc'd) is the name that the file has now: that of e,
 * or with "-2", "-3" behind it when another file has that one. */
int pull_manifest_put(const char *folder, const pull_manifest_entry *e, char **ret_name, shoal_err *err);

typedef enum pull_origin {
    PULL_NOWHERE, /* there is no such model */
    PULL_PULLED,  /* an entry with a "source", or a folder that was pulled as a whole */
    PULL_LISTED,  /* an entry without: it came with the program, or a person wrote it */
    PULL_COPIED   /* a file without an entry */
} pull_origin;

typedef struct pull_removal { /* what goes, or has gone */
    pull_origin origin;
    bool is_folder, entry; /* entry: that of models.json, too */
    unsigned n_files;
    uint64_t bytes;
    char path[1024]; /* FOLDER/FILE */
} pull_removal;

/* What a removal of `name` from FOLDER would take: of an entry of that name, of a folder, or of the file NAME
 * or NAME.gguf. Changes nothing. */
int pull_manifest_look(const char *folder, const char *name, pull_removal *ret, shoal_err *err);

/* Take the entry of that name out of FOLDER/models.json, and, where no other has its file, remove that file.
 * SHOAL_ENOTFOUND: there is none of that name; SHOAL_EAUTH: it was not pulled (it has no "source"), and
 * nothing has changed, unless `force`. The text of the others stays as it is. ret (NULL: not asked for): what
 * has gone. */
int pull_manifest_drop(const char *folder, const char *name, bool force, pull_removal *ret, shoal_err *err);

/* Write into FOLDER, which was pulled as a whole, from where it came and which files did:
 * FOLDER/.pulled.json. */
int pull_manifest_note_folder(const char *folder, const char *source, const char *const *files, size_t n,
                              shoal_err *err);
/* Was FOLDER pulled as a whole? */
bool pull_manifest_is_folder(const char *folder);
/* Remove those files, their note, and FOLDER and the folders in it that are empty then. What else lies there
 * stays. SHOAL_EAUTH: there is no such note. */
int pull_manifest_drop_folder(const char *folder, pull_removal *ret, shoal_err *err);

/* Let FOLDER/models.json say that FILE, which lies beside it, is to have this digest: "calibrations":
 * {FILE: SHA256}. SHOAL_ENOTFOUND: there is no models.json, and none is made. */
int pull_manifest_pin(const char *folder, const char *file, const char *sha256, shoal_err *err);

#endif
