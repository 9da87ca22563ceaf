/* state.h: the folder in which a machine keeps what must outlive its processes.
 *
 * DIR as given, else $SHOAL_STATE, else /var/lib/shoal for root, else $XDG_STATE_HOME/shoal or
 * ~/.local/state/shoal (the XDG Base Directory Specification's). The CA is in DIR/ca; a member's place in
 * DIR. */
#ifndef TRUST_STATE_H
#define TRUST_STATE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"

/* malloc'd; given and sub may be NULL. SHOAL_EINVALID: there is no home, so it has to be given. */
int state_path(char **ret, const char *given, const char *sub, shoal_err *err);

/* A process that serves out of the state folder holds it, so that no backup is restored there meanwhile (shoal
 * restore); any number may hold it at once. *ret_fd is closed with the process, or before. -1, with success, where
 * there is no such folder and none can be made. SHOAL_EUNAVAILABLE: a restore is running, or was interrupted. */
int state_hold(int *ret_fd, const char *given, shoal_err *err);
/* The same for who only reads: makes nothing, so -1, with success, where nobody has ever served or restored. */
int state_share(int *ret_fd, const char *folder, shoal_err *err);
/* For who uses the folder for a moment: SHOAL_EUNAVAILABLE: a restore was interrupted there. */
int state_check_whole(const char *given, shoal_err *err);
/* The other side: nobody else holds or claims the folder until *ret_fd is closed. It is made where it is missing; what
 * root makes goes to the owner of the folder that it is made in. -1 in *ret_fd, with success, on a read-only file
 * system. SHOAL_EUNAVAILABLE: a process holds it. */
int state_claim(int *ret_fd, const char *folder, shoal_err *err);

/* The same for one file that a configuration places, by a lock beside it: a server and a restore of the same
 * configuration may have found different state folders (SHOAL_STATE), and this file is the same one. */
int state_hold_file(int *ret_fd, const char *path, shoal_err *err);
int state_share_file(int *ret_fd, const char *path, shoal_err *err);
int state_claim_file(int *ret_fd, const char *path, const struct stat *owner, shoal_err *err);

/* For root, who restores what another account serves; for others nothing is given. What root has made at `path`, one file
 * or folder, goes to this owner. Other people's is left alone, and a link is an error. owner NULL, for a folder: that of
 * the folder that it is in. */
int state_give(const char *path, const struct stat *owner, shoal_err *err);
/* As file_make_folders, of mode 0700; each that is made is given so. */
int state_make_folders(const char *path, const struct stat *owner, shoal_err *err);

/* In the state folder: the file that is locked, and what a restore that is not finished leaves. Behind the name of one
 * file: its lock's. */
#define STATE_LOCK      "serving.lock"
#define STATE_RESTORE   "restore.json"
#define STATE_FILE_LOCK ".serving"

#endif
