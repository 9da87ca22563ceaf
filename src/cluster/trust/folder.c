/* folder.c: atomic files and a lock in a folder. */
#define _GNU_SOURCE
#include "trust/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { LOCK_WAIT_MS = 5000 };

static int folder_fail(shoal_err *err, const folder *f, const char *name, int e)
{
    int code = e == ENOENT || e == ENOTDIR ? SHOAL_ENOTFOUND
               : e == EACCES || e == EPERM ? SHOAL_EAUTH
                                           : SHOAL_EIO;
    return err_set(err, code, "%s%s%s: %s", f->path, name ? "/" : "", name ? name : "", strerror(e));
}

int folder_open(folder *ret, const char *path, bool make, shoal_err *err)
{
    folder f = {.fd = -1, .path = strdup(path)};
    if (!f.path) return err_nomem(err);
    int rc = make ? file_make_folders(path, 0700, err) : 0;
    if (rc == 0 && make && mkdir(path, 0700) != 0 && errno != EEXIST) rc = folder_fail(err, &f, NULL, errno);
    if (rc == 0) f.fd = open(f.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (rc == 0 && f.fd < 0) rc = folder_fail(err, &f, NULL, errno);
    if (rc == 0)
        *ret = f;
    else
        folder_close(&f);
    return rc;
}

void folder_close(folder *f)
{
    if (f->fd >= 0) close(f->fd);
    free(f->path);
    *f = FOLDER_NONE;
}

/* ---- the lock ---------------------------------------------------------------------------------- */

/* Made by root, its owner could not take it later. */
static void give_to_owner(const folder *f, int fd)
{
    struct stat of;
    if (geteuid() == 0 && fstat(f->fd, &of) == 0 && fchown(fd, of.st_uid, of.st_gid) != 0) return;
}

int folder_lock(const folder *f, int *ret_lock, shoal_err *err)
{
    int fd = openat(f->fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return folder_fail(err, f, "lock", errno);
    give_to_owner(f, fd);
    int rc = file_lock(fd, LOCK_WAIT_MS, NULL, err);
    if (rc != 0) {
        close(fd);
        return err_prefix(err, rc, "%s/lock", f->path);
    }
    *ret_lock = fd;
    return 0;
}

void folder_unlock(int lock)
{
    close(lock);
}

/* ---- files ------------------------------------------------------------------------------------- */

bool folder_has(const folder *f, const char *name)
{
    return faccessat(f->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int check_kind(const folder *f, const char *name, int fd, bool secret, shoal_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return folder_fail(err, f, name, errno);
    if (!S_ISREG(st.st_mode)) return err_set(err, SHOAL_EINVALID, "%s/%s: not a regular file", f->path, name);
    if (secret && (st.st_mode & 077) != 0)
        return err_set(err, SHOAL_EAUTH,
                       "%s/%s: others may read this secret; make it yours alone: chmod 600 %s/%s", f->path,
                       name, f->path, name);
    return 0;
}

int folder_read(const folder *f, const char *name, size_t max_bytes, bool secret, buf *out, shoal_err *err)
{
    int fd = openat(f->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return folder_fail(err, f, name, errno);
    int rc = check_kind(f, name, fd, secret, err);
    if (rc == 0 && (rc = file_read_open(out, fd, max_bytes, err)) != 0 && rc != SHOAL_ENOMEM)
        err_prefix(err, rc, "%s/%s", f->path, name);
    close(fd);
    return rc;
}

int folder_write(const folder *f, const char *name, mode_t mode, const void *data, size_t n, shoal_err *err)
{
    char fresh[80];
    snprintf(fresh, sizeof fresh, "%s.new", name);
    /* What a killed writer left behind may have any mode: it goes, so that a secret is never in such a file.
     */
    unlinkat(f->fd, fresh, 0);
    int fd = openat(f->fd, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) return folder_fail(err, f, fresh, errno);
    int rc = fchmod(fd, mode) == 0 && file_write_at(fd, data, n, 0) == 0 && fsync(fd) == 0 ? 0 : -1,
        e = errno;
    if (close(fd) != 0 && rc == 0) rc = -1, e = errno;
    if (rc == 0 && (renameat(f->fd, fresh, f->fd, name) != 0 || fsync(f->fd) != 0)) rc = -1, e = errno;
    if (rc == 0) return 0;
    unlinkat(f->fd, fresh, 0);
    return folder_fail(err, f, name, e);
}
