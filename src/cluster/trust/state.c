/* state.c: where the state folder is, and who has it. */
#define _GNU_SOURCE
#include "trust/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static bool is_set(const char *s)
{
    return s && *s;
}

int state_path(char **ret, const char *given, const char *sub, shoal_err *err)
{
    const char *named = is_set(given) ? given : getenv("SHOAL_STATE");
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const char *slash = sub ? "/" : "", *tail = sub ? sub : "";
    int n;
    if (is_set(named))
        n = asprintf(ret, "%s%s%s", named, slash, tail);
    else if (geteuid() == 0)
        n = asprintf(ret, "/var/lib/shoal%s%s", slash, tail);
    else if (is_set(xdg))
        n = asprintf(ret, "%s/shoal%s%s", xdg, slash, tail);
    else if (is_set(home))
        n = asprintf(ret, "%s/.local/state/shoal%s%s", home, slash, tail);
    else
        return err_set(err, SHOAL_EINVALID,
                       "there is no home folder to keep state in: say where with --state DIR");
    return n < 0 ? err_nomem(err) : 0;
}

/* ---- who has it ---------------------------------------------------------------------------------- */

/* The lock goes to the folder's owner, so that root may restore what another account serves. */
static void give_to_owner(int fd, const char *folder)
{
    struct stat of;
    if (geteuid() == 0 && stat(folder, &of) == 0 && fchown(fd, of.st_uid, of.st_gid) != 0) return;
}

/* Its folder is made where it is missing. -1: errno says why. */
static int open_lock(const char *folder)
{
    char *path = NULL;
    int fd = -1;
    if (asprintf(&path, "%s/" STATE_LOCK, folder) < 0) {
        errno = ENOMEM;
        return -1;
    }
    int rc = file_make_folders(path, 0700, NULL), why = errno;
    if (rc == 0) fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (rc == 0) why = errno;
    if (fd >= 0) give_to_owner(fd, folder);
    free(path);
    errno = why;
    return fd;
}

static int check_restored(const char *folder, shoal_err *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s/" STATE_RESTORE, folder) < 0) return err_nomem(err);
    int rc = access(path, F_OK) != 0
                 ? 0
                 : err_set(err, SHOAL_EUNAVAILABLE,
                           "%s: a restore was interrupted: run the same shoal restore again, "
                           "which finishes it",
                           path);
    free(path);
    return rc;
}

static int hold_folder(int *ret_fd, const char *folder, shoal_err *err)
{
    int rc, fd = open_lock(folder);
    bool taken = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (taken)
        rc = err_set(err, SHOAL_EUNAVAILABLE,
                     "%s: shoal restore is at work there: start again when it has ended", folder);
    else
        rc = check_restored(folder, err);
    if (rc != 0 && fd >= 0) close(fd);
    *ret_fd = rc == 0 ? fd : -1;
    return rc;
}

int state_hold(int *ret_fd, const char *given, shoal_err *err)
{
    char *folder = NULL;
    *ret_fd = -1;
    int rc = state_path(&folder, given, NULL, err);
    if (rc == SHOAL_EINVALID) return 0; /* no home: nothing is kept */
    if (rc == 0) rc = hold_folder(ret_fd, folder, err);
    free(folder);
    return rc;
}

int state_check_whole(const char *given, shoal_err *err)
{
    char *folder = NULL;
    int rc = state_path(&folder, given, NULL, err);
    if (rc == 0) rc = check_restored(folder, err);
    free(folder);
    return rc;
}

int state_claim(int *ret_fd, const char *path, shoal_err *err)
{
    int fd = open_lock(path), rc = 0;
    if (fd < 0)
        rc = err_set(err, errno == EACCES || errno == EROFS ? SHOAL_EAUTH : SHOAL_EIO,
                     "%s/" STATE_LOCK ": %s", path, strerror(errno));
    else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        rc = errno != EWOULDBLOCK ? err_set(err, SHOAL_EIO, "%s/" STATE_LOCK ": %s", path, strerror(errno))
                                  : err_set(err, SHOAL_EUNAVAILABLE,
                                            "%s: a server or an agent is at work there: stop it first "
                                            "(systemctl stop shoal-gateway "
                                            "shoal-agent, or end shoal serve)",
                                            path);
    if (rc != 0 && fd >= 0) close(fd);
    *ret_fd = rc == 0 ? fd : -1;
    return rc;
}
