/* rundir.h: the folder of the workers' sockets, and what killed ones leave behind.
 *
 * A fresh folder is BASE/shoal-XXXXXX, where BASE is $XDG_RUNTIME_DIR or /tmp. As long as its owner lives it
 * holds a lock (flock) on the file "lock" in there; the kernel lets go of it however the owner ends. Whoever
 * makes the next one removes the folders of this user whose lock is free. */
#ifndef AGENT_RUNDIR_H
#define AGENT_RUNDIR_H

#include <stdbool.h>

#include "base/err.h"

typedef struct rundir {
    char *path; /* malloc'd; NULL: not open */
    int lock_fd;
    bool made; /* by us: it goes with us */
} rundir;

/* given NULL: a fresh one, after a sweep. A given one is made if it is not there, and not locked. */
int rundir_open(rundir *ret, const char *given, shoal_err *err);
/* Remove it, if we made it and it holds nothing that is not ours. A zeroed one is fine. */
void rundir_close(rundir *d);

#endif
