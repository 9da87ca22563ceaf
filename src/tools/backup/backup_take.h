/* backup_take.h: a backup: a folder with a copy of each file of backup_item.h's table, and manifest.json.
 *
 *     backup_take_options o = {.places = &p, .secrets = true, .now = time(NULL)};
 *     rc = backup_take(&m, "/backups/monday", &o, err);
 *     rc = backup_check(&m, "/backups/monday", NULL, err);
 *
 * It is made beside its name, as NAME.tmp.PID of mode 0700, and takes the name when all of it is on the disk. Servers go on
 * meanwhile: each database is copied as it was at one moment (sql/database_copy.h), the CA's files under its lock. */
#ifndef BACKUP_BACKUP_TAKE_H
#define BACKUP_BACKUP_TAKE_H

#include "backup/manifest.h"

typedef struct backup_watch {
    /* Bytes that are done of all of one file. Not 0: stop (SHOAL_ECANCELLED). */
    int (*progress)(void *user, const char *name, uint64_t done, uint64_t all);
    void *user;
} backup_watch;

typedef struct backup_take_options {
    const backup_places *places;
    bool secrets;              /* false: no keys and no certificate of this machine */
    int64_t now;               /* seconds since 1970 */
    const backup_watch *watch; /* NULL: nobody looks */
} backup_take_options;

/* *ret: what it holds. No restore starts until it ends. SHOAL_EUNAVAILABLE: a restore is running, or was interrupted;
 * SHOAL_EINVALID: there is something of that name; SHOAL_ENOTFOUND: there is nothing to back up; SHOAL_EFORMAT: a database
 * is damaged; SHOAL_EIO (a full disk), SHOAL_EAUTH, SHOAL_ECANCELLED. On failure nothing is left. */
int backup_take(manifest *ret, const char *to, const backup_take_options *o, shoal_err *err);

/* Read every file that its manifest names and compare. SHOAL_EFORMAT, SHOAL_EUNSUPPORTED: the manifest; SHOAL_EDIGEST: a
 * file is damaged. watch may be NULL. */
int backup_check(manifest *ret, const char *from, const backup_watch *watch, shoal_err *err);

#endif
