/* backup_restore.h: a backup's files back in the places of a server.
 *
 *     rc = backup_restore(&r, "/backups/monday", &(backup_restore_options){.places = &p, .now = time(NULL)}, err);
 *
 * In three steps, of which each leaves a whole state behind when it is cut:
 *
 *     1  each file is copied to PLACE.restoring, and compared with the manifest      the old state
 *     2  the manifest becomes STATE/restore.json, by one rename                      the new state, from here on
 *     3  each old file goes to STATE/before-restore-DATE, each new one to its place;
 *        restore.json goes last
 *
 * While restore.json is there, no server starts (state_hold in trust/state.h), and backup_restore does step 3 again first.
 * restore.json has a digest of the places: another configuration's are refused. A file outside the state folder goes to
 * PLACE.before-restore-DATE. What the backup does not have goes aside as well, but what was left out of it (keys) stays. */
#ifndef BACKUP_BACKUP_RESTORE_H
#define BACKUP_BACKUP_RESTORE_H

#include "backup/backup_take.h"

typedef struct backup_restore_options {
    const backup_places *places;
    int64_t now;               /* seconds since 1970: in the name of what goes aside */
    const backup_watch *watch; /* NULL: nobody looks */
} backup_restore_options;

typedef struct backup_restored {
    manifest m;
    bool
        finished; /* a restore that had been interrupted was finished: of this backup, or of another before it */
    bool moved; /* something was there and is in m.aside now */
} backup_restored;

/* SHOAL_EUNAVAILABLE: a server or a backup runs there. SHOAL_EFORMAT, SHOAL_EUNSUPPORTED, SHOAL_EDIGEST: the backup, or
 * a place that is a link or a mount; nothing has changed. SHOAL_EIO, SHOAL_EAUTH, SHOAL_ENOTFOUND, SHOAL_ENOMEM,
 * SHOAL_ECANCELLED: nothing has changed. In any case an interrupted restore may still not be finished: the sentence says
 * so. */
int backup_restore(backup_restored *ret, const char *from, const backup_restore_options *o, shoal_err *err);

#endif
