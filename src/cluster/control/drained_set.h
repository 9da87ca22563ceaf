/* drained_set.h: the machines that a person has told to drain, on disk: a gateway that starts again knows
 * them.
 *
 * The file "drains" of the state folder: a name a line. It is replaced whole (folder.h), before the word is
 * obeyed.
 *
 *     drained_set_read(&dir, each, user, err);                 each(user, "kitchen-pi")
 *     drained_set_write(&dir, names, n, err);
 *
 * Blocks on the disk. */
#ifndef CONTROL_DRAINED_SET_H
#define CONTROL_DRAINED_SET_H

#include "trust/folder.h"

/* No file: nobody drains. SHOAL_EINVALID: a line is no name, and says which; `each` has heard those before
 * it. SHOAL_EIO, SHOAL_ENOMEM. `each` may refuse with a code, which ends it. */
int drained_set_read(const folder *dir, int (*each)(void *user, const char *name), void *user,
                     shoal_err *err);
/* SHOAL_EIO, SHOAL_ENOMEM: what was there is there still. */
int drained_set_write(const folder *dir, const char *const *names, size_t n, shoal_err *err);

#endif
