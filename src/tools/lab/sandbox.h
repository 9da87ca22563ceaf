/* sandbox.h: a process tree that cannot outlive the lab.
 *
 *     char root[64];
 *     int status = sandbox_run(main_of_the_lab, &job, root, &err);   // in a child that is process 1
 *
 * The lab runs as process 1 of a namespace of processes and of mounts. When it ends, in whatever way, or
 * when its parent does, the kernel ends all its processes, and with them go their networks, interfaces and
 * disks. All that a `kill -9` of everything can leave is an empty folder, which sandbox_clean finds: its
 * owner holds a lock on it as long as it lives. */
#ifndef LAB_SANDBOX_H
#define LAB_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Whether this machine and user can: SHOAL_EAUTH without root, SHOAL_EUNSUPPORTED without /dev/net/tun, each
 * with what to do. */
int sandbox_check(shoal_err *err);

/* Run main(user, root) as process 1, root being a fresh folder that goes when it ends. SIGINT, SIGTERM and
 * SIGHUP reach main's process. *ret_status: what main returned, or 128 + signal. */
int sandbox_run(int (*main)(void *user, const char *root), void *user, int *ret_status, shoal_err *err);

/* Remove the folders of labs that are no more; how many there were. say (NULL: none) gets each path. */
size_t sandbox_clean(void (*say)(const char *path));

#endif
