/* backup_files.c: see backup_files.h. */
#define _GNU_SOURCE
#include "backup/backup_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { PIECE = 64 << 10, OPEN_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };

const char *const BACKUP_ENDINGS[BACKUP_N_ENDINGS] = {"", "-shm", "-wal", "-journal"};

char *backup_files_path(const char *fmt, ...)
{
    char *path = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&path, fmt, ap);
    va_end(ap);
    return n < 0 ? NULL : path;
}

static int files_fail(shoal_err *err, const char *path, int e)
{
    int code = e == ENOENT || e == ENOTDIR               ? SHOAL_ENOTFOUND
               : e == EACCES || e == EPERM || e == EROFS ? SHOAL_EAUTH
                                                         : SHOAL_EIO;
    return err_set(err, code, "%s: %s", path, strerror(e));
}

/* ---- opening ------------------------------------------------------------------------------------- */

int backup_files_open(int *ret_fd, const char *folder, shoal_err *err)
{
    *ret_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_fd >= 0) return 0;
    if (errno == ENOTDIR) return err_set(err, SHOAL_EFORMAT, "%s is no backup: a backup is a folder", folder);
    return files_fail(err, folder, errno);
}

/* ret_fd -1: errno says why. */
static int open_below(int at, const char *name)
{
    const char *slash = strchr(name, '/');
    char folder[16];
    if (!slash) return openat(at, name, OPEN_FLAGS);
    if ((size_t)(slash - name) >= sizeof folder) {
        errno = ENOENT;
        return -1;
    }
    memcpy(folder, name, (size_t)(slash - name));
    folder[slash - name] = '\0';
    int in = openat(at, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (in < 0) return -1;
    int fd = openat(in, slash + 1, OPEN_FLAGS), why = errno;
    close(in);
    errno = why;
    return fd;
}

int backup_files_open_one(int *ret_fd, int at, const char *folder, const char *name, shoal_err *err)
{
    struct stat st;
    int fd = open_below(at, name), why = errno;
    bool regular = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    *ret_fd = regular ? fd : -1;
    if (regular) return 0;
    if (fd >= 0) close(fd);
    bool missing = fd < 0 && why == ENOENT, other = fd >= 0 || why == ELOOP || why == ENOTDIR;
    if (!missing && !other) {
        char *path = backup_files_path("%s/%s", folder, name);
        int rc = path ? files_fail(err, path, why) : err_nomem(err);
        free(path);
        return rc;
    }
    return err_set(err, SHOAL_EFORMAT,
                   missing ? "%s/%s is missing from the backup" : "%s/%s is no regular file", folder, name);
}

int backup_files_manifest(manifest *ret, int at, const char *folder, shoal_err *err)
{
    int fd;
    buf text = {0};
    char *what = backup_files_path("%s/" MANIFEST_NAME, folder);
    int rc = what ? backup_files_open_one(&fd, at, folder, MANIFEST_NAME, err) : err_nomem(err);
    if (rc == 0) {
        rc = file_read_open(&text, fd, MANIFEST_BYTES_MAX, err);
        if (rc != 0 && rc != SHOAL_ENOMEM) err_prefix(err, rc, "%s", what);
        close(fd);
    }
    if (rc == 0) rc = manifest_parse(ret, buf_text(&text), text.len, what, err);
    buf_done(&text);
    free(what);
    return rc;
}

/* ---- copying ------------------------------------------------------------------------------------- */

static int open_target(int *ret_fd, const backup_file_copy *c, shoal_err *err)
{
    *ret_fd = -1;
    if (!c->to) return 0;
    int fd = open(c->to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return files_fail(err, c->to, errno);
    *ret_fd = fd;
    return fchmod(fd, c->mode) == 0 ? 0 : files_fail(err, c->to, errno);
}

static int copy_stopped(const backup_file_copy *c, uint64_t done, shoal_err *err)
{
    const backup_watch *w = c->watch;
    if (!w || !w->progress || w->progress(w->user, c->what, done, c->all) == 0) return 0;
    return err_set(err, SHOAL_ECANCELLED, "stopped");
}

static int copy_piece(const backup_file_copy *c, int to, sha256 *sum, uint64_t at, size_t *ret_n,
                      shoal_err *err)
{
    uint8_t piece[PIECE];
    ssize_t n;
    do n = read(c->from, piece, sizeof piece);
    while (n < 0 && errno == EINTR);
    *ret_n = n > 0 ? (size_t)n : 0;
    if (n < 0) return files_fail(err, c->what, errno);
    if (n > 0) sha256_add(sum, piece, (size_t)n);
    if (n > 0 && to >= 0 && file_write_at(to, piece, (size_t)n, at) != 0)
        return files_fail(err, c->to, errno);
    return 0;
}

static int copy_all(const backup_file_copy *c, int to, sha256 *sum, uint64_t *ret_bytes, shoal_err *err)
{
    size_t n = 1;
    int rc = 0;
    for (uint64_t at = 0; rc == 0 && n > 0; at += n) {
        *ret_bytes = at;
        if (c->bounded && at > c->all) break;
        rc = copy_stopped(c, at, err);
        if (rc == 0) rc = copy_piece(c, to, sum, at, &n, err);
    }
    return rc;
}

int backup_files_copy(const backup_file_copy *c, manifest_file *ret, shoal_err *err)
{
    int to;
    manifest_file f = {.is_in = true};
    sha256 *sum = sha256_new();
    if (!sum) return err_nomem(err);
    int rc = open_target(&to, c, err);
    if (rc == 0) rc = copy_all(c, to, sum, &f.bytes, err);
    sha256_end(sum, &f.digest);
    if (rc == 0 && to >= 0 && fsync(to) != 0) rc = files_fail(err, c->to, errno);
    if (to >= 0 && close(to) != 0 && rc == 0) rc = files_fail(err, c->to, errno);
    if (rc == 0) *ret = f;
    if (rc != 0 && to >= 0) unlink(c->to);
    return rc;
}

int backup_files_verify(int at, const char *folder, backup_id id, const manifest *m, const char *to,
                        const backup_watch *watch, shoal_err *err)
{
    const backup_item *item = &BACKUP_ITEMS[id];
    const manifest_file *want = &m->files[id];
    manifest_file is = {0};
    backup_file_copy c = {.what = item->name,
                          .to = to,
                          .mode = item->mode,
                          .all = want->bytes,
                          .bounded = true,
                          .watch = watch};
    int rc = backup_files_open_one(&c.from, at, folder, item->name, err);
    if (rc != 0) return rc;
    rc = backup_files_copy(&c, &is, err);
    close(c.from);
    if (rc != 0) return rc;
    if (is.bytes == want->bytes && memcmp(&is.digest, &want->digest, sizeof is.digest) == 0) return 0;
    if (to) unlink(to);
    return err_set(err, SHOAL_EDIGEST, "%s/%s is damaged: it is not the file that the manifest describes",
                   folder, item->name);
}

int backup_files_write(const char *path, const buf *text, shoal_err *err)
{
    if (text->failed) return err_nomem(err);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return files_fail(err, path, errno);
    int rc =
        file_write_at(fd, text->data, text->len, 0) == 0 && fsync(fd) == 0 ? 0 : files_fail(err, path, errno);
    if (close(fd) != 0 && rc == 0) rc = files_fail(err, path, errno);
    return rc;
}
