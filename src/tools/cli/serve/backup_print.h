/* backup_print.h: what `shoal backup` and `shoal restore` show: how far they are, and what a backup holds. */
#ifndef CLI_BACKUP_PRINT_H
#define CLI_BACKUP_PRINT_H

#include "backup/backup_take.h"

/* On a terminal one line of stderr that is redrawn; elsewhere plain lines, a file each and a quarter of a large file.
 * Ctrl-C and SIGTERM stop it, so that nothing half-made stays. `command` is literal. */
backup_watch backup_print_watch(const char *command);
void backup_print_end(void); /* the redrawn line goes */

/* Rows of names and bytes, and a line that ends in `what`. */
void backup_print_rows(buf *out, const char *folder, const manifest *m, const char *what);
/* {"backup", "version", "created", "files": [{"name", "bytes", "sha256"}], "left_out": [...]}; aside NULL: no such
 * member. */
void backup_print_json(buf *out, const char *folder, const manifest *m, const char *aside);

#endif
