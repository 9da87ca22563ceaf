/* restore_place.h: inside backup: whether a restore can move files to their places. */
#ifndef BACKUP_RESTORE_PLACE_H
#define BACKUP_RESTORE_PLACE_H

#include "backup/backup_item.h"

/* Before anything moves: a rename into the place or out of it would fail, or would follow a link that the account that
 * serves may have made. SHOAL_EUNSUPPORTED: it names the link, the mount point or the other disk. */
int restore_place_check(const backup_places *p, backup_id id, shoal_err *err);

#endif
