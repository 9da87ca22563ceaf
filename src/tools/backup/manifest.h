/* manifest.h: manifest.json, which says what a backup holds. Pure.
 *
 *     {"shoal_backup": 1, "version": "0.3.0", "created": 1795994949, "left_out": ["ca/ca.key"],
 *      "files": [{"name": "sessions.db", "bytes": 40960, "sha256": "9f86..."}]}
 *
 * It is read from a folder that anybody may have written. A name is one of backup_item.h's table and comes once; a larger
 * "shoal_backup" is a format that this program does not know. In the state folder the same text, with "aside" and "places", is the
 * journal of a restore that is not finished. */
#ifndef BACKUP_MANIFEST_H
#define BACKUP_MANIFEST_H

#include <stdint.h>

#include "backup/backup_item.h"
#include "base/buf.h"
#include "base/sha256.h"

enum {
    MANIFEST_FORMAT = 1,
    MANIFEST_BYTES_MAX = 64 << 10,
    MANIFEST_VERSION_SIZE = 32,
    MANIFEST_ASIDE_SIZE = 64,
    MANIFEST_PLACES_SIZE = 65
};
#define MANIFEST_NAME "manifest.json"

typedef struct manifest_file {
    bool is_in;    /* the backup has it */
    bool left_out; /* on purpose; a restore leaves the one that is there */
    uint64_t bytes;
    sha256_digest digest;
} manifest_file;

typedef struct manifest {
    char version[MANIFEST_VERSION_SIZE]; /* of the Shoal that made it */
    int64_t created;                     /* seconds since 1970 */
    manifest_file files[BACKUP_N_ITEMS];
    char aside[MANIFEST_ASIDE_SIZE];   /* journal: the folder where what was there goes; "": none */
    char places[MANIFEST_PLACES_SIZE]; /* journal: a digest of the places that it was begun for */
} manifest;

/* `what` names the text in errors. SHOAL_EFORMAT; SHOAL_EUNSUPPORTED: a newer format. On failure *ret is untouched. */
int manifest_parse(manifest *ret, const char *text, size_t n, const char *what, shoal_err *err);
void manifest_put(const manifest *m, buf *out); /* failures stick */
/* The same files with the same bytes, made at the same time. */
bool manifest_same(const manifest *a, const manifest *b);

#endif
