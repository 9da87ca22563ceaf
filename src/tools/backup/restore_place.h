/* restore_place.h: inside backup: whether a restore can move files to their places, and which places these are. */
#ifndef BACKUP_RESTORE_PLACE_H
#define BACKUP_RESTORE_PLACE_H

#include "backup/backup_item.h"

enum { RESTORE_PLACES_SIZE = 65 };

/* Before anything moves: a rename into the place or out of it would fail, or would follow a link that the account that
 * serves may have made. SHOAL_EUNSUPPORTED: it names the link, the mount point or the other disk. */
int restore_place_check(const backup_places *p, backup_id id, shoal_err *err);

/* A digest of all places, which is the same wherever it is taken: those below the state folder count by their names, the
 * others by their absolute paths. SHOAL_ENOMEM. */
int restore_place_digest(char ret[RESTORE_PLACES_SIZE], const backup_places *p, shoal_err *err);

#endif
