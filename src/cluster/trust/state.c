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

/* ---- what root makes for another account ---------------------------------------------------------- */

/* Only what root itself has made, under one name, so that nobody's link leads it to another file. */
static int give_open(int fd, const struct stat *owner)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return -1;
    if (st.st_uid != 0 || (S_ISREG(st.st_mode) && st.st_nlink != 1)) return 0;
    return fchown(fd, owner->st_uid, owner->st_gid);
}

static int state_fail(shoal_err *err, const char *path)
{
    return err_set(err, errno == EACCES || errno == EPERM || errno == EROFS ? SHOAL_EAUTH : SHOAL_EIO,
                   "%s: %s", path, strerror(errno));
}

int state_give(const char *path, const struct stat *owner, shoal_err *err)
{
    struct stat in;
    if (geteuid() != 0) return 0;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int rc = fd < 0 || (!owner && fstatat(fd, "..", &in, 0) != 0) || give_open(fd, owner ? owner : &in) != 0
                 ? state_fail(err, path)
                 : 0;
    if (fd >= 0) close(fd);
    return rc;
}

int state_make_folders(const char *path, const struct stat *owner, shoal_err *err)
{
    char *copy = strdup(path);
    int rc = 0;
    if (!copy) return err_nomem(err);
    for (char *at = copy + (*path == '/'); rc == 0 && (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        if (mkdir(copy, 0700) == 0) rc = state_give(copy, owner, err);
    }
    free(copy);
    return rc == 0 ? file_make_folders(path, 0700, err) : rc; /* which says what cannot be made */
}

/* ---- who has it ---------------------------------------------------------------------------------- */

/* -1: errno says why. Where root makes it, it goes to the owner of `like`, who could not take it later. */
static int open_lock(const char *lock, int flags, const char *like)
{
    struct stat owner;
    int fd = open(lock, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd >= 0 && geteuid() == 0 && stat(like, &owner) == 0) (void)give_open(fd, &owner);
    return fd;
}

/* What cannot be locked is not held: whoever serves there cannot write it either. -1 in *ret_fd then. */
static int hold_lock(int *ret_fd, const char *lock, int flags, const char *what, shoal_err *err)
{
    int fd = open_lock(lock, flags, what);
    *ret_fd = fd;
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return 0;
    close(fd);
    *ret_fd = -1;
    return err_set(err, SHOAL_EUNAVAILABLE,
                   "%s: shoal restore is at work there: start again when it has ended", what);
}

static int claim_lock(int *ret_fd, const char *lock, const char *what, shoal_err *err)
{
    int fd = open_lock(lock, O_RDWR | O_CREAT, what);
    *ret_fd = fd;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
    if (fd < 0 && errno == EROFS) return 0; /* nothing can be replaced there */
    int rc =
        fd < 0 || errno != EWOULDBLOCK
            ? state_fail(err, lock)
            : err_set(err, SHOAL_EUNAVAILABLE,
                      "%s: a server, an agent or a backup is at work there: stop it first (systemctl stop "
                      "shoal-gateway shoal-agent, or end shoal serve)",
                      what);
    if (fd >= 0) close(fd);
    *ret_fd = -1;
    return rc;
}

/* ---- the folder ------------------------------------------------------------------------------------ */

/* malloc'd; NULL: no memory. */
static char *lock_of_folder(const char *folder)
{
    char *lock;
    return asprintf(&lock, "%s/" STATE_LOCK, folder) < 0 ? NULL : lock;
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

static int hold_folder(int *ret_fd, const char *folder, bool make, shoal_err *err)
{
    char *lock = lock_of_folder(folder);
    if (!lock) return err_nomem(err);
    if (make) (void)file_make_folders(lock, 0700, NULL);
    int rc = hold_lock(ret_fd, lock, make ? O_RDWR | O_CREAT : O_RDONLY, folder, err);
    if (rc == 0) rc = check_restored(folder, err);
    if (rc != 0 && *ret_fd >= 0) {
        close(*ret_fd);
        *ret_fd = -1;
    }
    free(lock);
    return rc;
}

int state_hold(int *ret_fd, const char *given, shoal_err *err)
{
    char *folder = NULL;
    *ret_fd = -1;
    int rc = state_path(&folder, given, NULL, err);
    if (rc == SHOAL_EINVALID) return 0; /* no home: nothing is kept */
    if (rc == 0) rc = hold_folder(ret_fd, folder, true, err);
    free(folder);
    return rc;
}

int state_share(int *ret_fd, const char *folder, shoal_err *err)
{
    *ret_fd = -1;
    return hold_folder(ret_fd, folder, false, err);
}

int state_check_whole(const char *given, shoal_err *err)
{
    char *folder = NULL;
    int rc = state_path(&folder, given, NULL, err);
    if (rc == 0) rc = check_restored(folder, err);
    free(folder);
    return rc;
}

int state_claim(int *ret_fd, const char *folder, shoal_err *err)
{
    char *lock = lock_of_folder(folder);
    *ret_fd = -1;
    int rc = lock ? state_make_folders(lock, NULL, err) : err_nomem(err);
    if (rc == 0) rc = claim_lock(ret_fd, lock, folder, err);
    free(lock);
    return rc;
}

/* ---- one file ---------------------------------------------------------------------------------------- */

static char *lock_of_file(const char *path)
{
    char *lock;
    return asprintf(&lock, "%s" STATE_FILE_LOCK, path) < 0 ? NULL : lock;
}

int state_hold_file(int *ret_fd, const char *path, shoal_err *err)
{
    char *lock = lock_of_file(path);
    *ret_fd = -1;
    if (!lock) return err_nomem(err);
    (void)file_make_folders(lock, 0700, NULL);
    int rc = hold_lock(ret_fd, lock, O_RDWR | O_CREAT, path, err);
    free(lock);
    return rc;
}

int state_share_file(int *ret_fd, const char *path, shoal_err *err)
{
    char *lock = lock_of_file(path);
    *ret_fd = -1;
    int rc = lock ? hold_lock(ret_fd, lock, O_RDONLY, path, err) : err_nomem(err);
    free(lock);
    return rc;
}

int state_claim_file(int *ret_fd, const char *path, const struct stat *owner, shoal_err *err)
{
    char *lock = lock_of_file(path);
    *ret_fd = -1;
    int rc = lock ? state_make_folders(lock, owner, err) : err_nomem(err);
    if (rc == 0) rc = claim_lock(ret_fd, lock, path, err);
    if (rc == 0) rc = state_give(lock, owner, err);
    if (rc != 0 && *ret_fd >= 0) {
        close(*ret_fd);
        *ret_fd = -1;
    }
    free(lock);
    return rc;
}
