/* partial.c: see partial.h. */
#define _GNU_SOURCE /* O_TMPFILE */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "store/partial.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sha256.h"

enum { OPENS_MAX = 100 };

static int partial_fail(const char *path, shoal_err *err)
{
    return err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
}

/* ---- content ------------------------------------------------------------------------------------- */

/* What git calls a blob of these bytes. */
static int git_sha1(const char *path, char ret[41], shoal_err *err)
{
    file_map map = {0};
    unsigned char sum[20];
    char head[40];
    SHA_CTX s;
    int rc = file_map_open(&map, path, err);
    if (rc != 0) return rc;
    SHA1_Init(&s);
    SHA1_Update(&s, head, (size_t)snprintf(head, sizeof head, "blob %zu", map.len) + 1);
    if (map.len) SHA1_Update(&s, map.data, map.len);
    SHA1_Final(sum, &s);
    file_map_close(&map);
    for (size_t i = 0; i < sizeof sum; i++) snprintf(ret + 2 * i, 3, "%02x", sum[i]);
    return 0;
}

static bool is_other(const char *want, const char *found)
{
    return want && *want && strcasecmp(want, found) != 0;
}

int content_check(const char *path, const content *want, content_found *ret, shoal_err *err)
{
    sha256_digest sum;
    char sha1[41] = "";
    struct stat st;
    if (stat(path, &st) != 0) return partial_fail(path, err);
    int rc = sha256_file(path, &sum, err);
    if (rc == 0 && want->git_sha1 && *want->git_sha1) rc = git_sha1(path, sha1, err);
    if (rc != 0) return rc;
    sha256_hex(&sum, ret->sha256);
    ret->bytes = (uint64_t)st.st_size;
    if ((!want->has_size || want->size == ret->bytes) && !is_other(want->sha256, ret->sha256) &&
        !is_other(want->git_sha1, sha1))
        return 0;
    return err_set(err, SHOAL_EDIGEST, "%s: another file: %llu bytes, sha256 %s", path,
                   (unsigned long long)ret->bytes, ret->sha256);
}

/* ---- the part ------------------------------------------------------------------------------------ */

static int open_here(const char *path, mode_t mode, struct stat *ret, shoal_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd >= 0 && fstat(fd, ret) == 0) return fd;
    bool refused = errno == EACCES || errno == EPERM || errno == EROFS;
    err_set(err, refused ? SHOAL_EAUTH : SHOAL_EIO, "%s: cannot write: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return refused ? SHOAL_EAUTH : SHOAL_EIO;
}

/* Between the opening and the lock, whoever had the part may have given it its name: then what was locked is
 * the finished file, which is not to be touched. */
static bool has_name(const char *path, const struct stat *opened)
{
    struct stat st;
    return lstat(path, &st) == 0 && st.st_dev == opened->st_dev && st.st_ino == opened->st_ino;
}

/* 0 with *ret_fd -1: once more. */
static int open_locked(int *ret_fd, struct stat *st, const char *path, mode_t mode, shoal_err *err)
{
    int fd = open_here(path, mode, st, err), rc = fd < 0 ? fd : 0;
    *ret_fd = -1;
    if (rc == 0 && !S_ISREG(st->st_mode)) rc = err_set(err, SHOAL_EINVALID, "%s is no regular file", path);
    if (rc == 0 && (rc = file_lock(fd, 0, NULL, err)) == SHOAL_EFULL)
        err_set(err, rc, "%s: another process writes it; wait for it", path);
    if (rc == 0 && has_name(path, st) && fstat(fd, st) == 0)
        *ret_fd = fd;
    else if (fd >= 0)
        close(fd);
    return rc;
}

int partial_open(partial *ret, const char *path, mode_t mode, shoal_err *err)
{
    struct stat st;
    char *copy = strdup(path);
    int fd = -1, rc = copy ? 0 : err_nomem(err);
    for (int i = 0; rc == 0 && fd < 0; i++)
        rc = i < OPENS_MAX ? open_locked(&fd, &st, path, mode, err)
                           : err_set(err, SHOAL_EIO, "%s: others rename it again and again", path);
    if (rc == 0)
        *ret = (partial){.path = copy, .fd = fd, .at = (uint64_t)st.st_size};
    else
        free(copy);
    return rc;
}

/* A file system without nameless files gets one whose name goes at once. */
static int open_nameless(const char *folder)
{
    char *name = NULL;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || asprintf(&name, "%s/partial-XXXXXX", folder) < 0) return fd;
    fd = mkostemp(name, O_CLOEXEC);
    int why = errno;
    if (fd >= 0) unlink(name);
    free(name);
    errno = why;
    return fd;
}

int partial_open_nameless(partial *ret, const char *folder, const char *called, shoal_err *err)
{
    char *path = strdup(called);
    int fd = path ? open_nameless(folder) : -1;
    int rc = !path ? err_nomem(err) : fd < 0 ? partial_fail(folder, err) : 0;
    if (rc == 0)
        *ret = (partial){.path = path, .fd = fd};
    else
        free(path);
    return rc;
}

int partial_append(partial *p, const void *data, size_t n, shoal_err *err)
{
    if (file_write_at(p->fd, data, n, p->at) != 0)
        return err_set(err, SHOAL_EIO, "%s cannot be written: %s", p->path, strerror(errno));
    p->at += n;
    return 0;
}

int partial_restart(partial *p, shoal_err *err)
{
    if (ftruncate(p->fd, 0) != 0) return partial_fail(p->path, err);
    p->at = 0;
    return 0;
}

int partial_verify(const partial *p, const content *want, content_found *ret, shoal_err *err)
{
    return fsync(p->fd) == 0 ? content_check(p->path, want, ret, err) : partial_fail(p->path, err);
}

int partial_publish(const partial *p, const char *path, shoal_err *err)
{
    if (rename(p->path, path) != 0) return partial_fail(path, err);
    (void)file_sync_name(path,
                         NULL); /* it has its name, and if a power failure takes that, it is fetched again */
    return 0;
}

void partial_remove(const partial *p)
{
    unlink(p->path);
}

void partial_close(partial *p)
{
    if (p->fd >= 0) close(p->fd);
    free(p->path);
    *p = PARTIAL_NONE;
}
