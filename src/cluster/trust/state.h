/* state.h: the folder in which a machine keeps what must outlive its processes.
 *
 * DIR as given, else $SHOAL_STATE, else /var/lib/shoal for root, else $XDG_STATE_HOME/shoal or
 * ~/.local/state/shoal (the XDG Base Directory Specification's). The CA is in DIR/ca; a member's place in
 * DIR. */
#ifndef TRUST_STATE_H
#define TRUST_STATE_H

#include <stdbool.h>

#include "base/err.h"

/* malloc'd; given and sub may be NULL. SHOAL_EINVALID: there is no home, so it has to be given. */
int state_path(char **ret, const char *given, const char *sub, shoal_err *err);

/* A process that serves out of the state folder holds it, so that no backup is restored there meanwhile (shoal
 * restore); any number may hold it at once. *ret_fd is closed with the process, or before. -1, with success, where
 * there is no such folder and none can be made. SHOAL_EUNAVAILABLE: a restore is running, or was interrupted. */
int state_hold(int *ret_fd, const char *given, shoal_err *err);
/* For who uses the folder for a moment: SHOAL_EUNAVAILABLE: a restore was interrupted there. */
int state_check_whole(const char *given, shoal_err *err);
/* The other side: nobody else holds or claims the folder at `path` until *ret_fd is closed. The folder is made where it
 * is missing. SHOAL_EUNAVAILABLE: a process holds it. */
int state_claim(int *ret_fd, const char *path, shoal_err *err);

/* In the state folder: the file that is locked, and what a restore that is not finished leaves. */
#define STATE_LOCK    "serving.lock"
#define STATE_RESTORE "restore.json"

#endif
