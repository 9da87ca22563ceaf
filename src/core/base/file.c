/* file.c: see file.h. Until file_writer_commit's rename, which comes after fsync, the old file is untouched.
 */
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_PAUSE_MS = 10 };

static int errno_code(int e)
{
    return e == ENOENT || e == ENOTDIR ? SHOAL_ENOTFOUND
           : e == EACCES || e == EPERM ? SHOAL_EAUTH
           : e == ENOMEM               ? SHOAL_ENOMEM
                                       : SHOAL_EIO;
}

static const file_user *reader; /* NULL: this process's own */

void file_confine_to(const file_user *u)
{
    reader = u;
}

bool file_is_confined(void)
{
    return reader != NULL;
}

/* A descriptor, or a negative code. */
static int open_for_reader(const char *path, shoal_err *err)
{
    file_opened f;
    int rc = file_user_open(&f, reader, path, err);
    if (rc != 0) return rc;
    free(f.path);
    if (S_ISREG(f.st.st_mode)) return f.fd;
    close(f.fd);
    return err_set(err, SHOAL_EINVALID, "%s: not a regular file", path);
}

int file_open_regular(int *ret_fd, size_t *ret_bytes, const char *path, shoal_err *err)
{
    /* a pipe that nobody writes is not waited for */
    int fd = reader ? open_for_reader(path, err) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && reader) return fd;
    if (fd < 0) return err_set(err, errno_code(errno), "%s: %s", path, strerror(errno));
    struct stat st;
    int rc = 0;
    if (fstat(fd, &st) != 0)
        rc = err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = err_set(err, SHOAL_EINVALID, "%s: not a regular file", path);
    if (rc != 0) {
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    *ret_bytes = (size_t)st.st_size;
    return 0;
}

int file_map_open(file_map *ret, const char *path, shoal_err *err)
{
    int fd;
    size_t n;
    int rc = file_open_regular(&fd, &n, path, err);
    if (rc != 0) return rc;
    void *p = n > 0 ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (p == MAP_FAILED)
        rc = err_set(err, errno_code(errno), "%s: cannot map %zu bytes: %s", path, n, strerror(errno));
    else
        *ret = (file_map){.data = p, .len = n};
    close(fd);
    return rc;
}

void file_map_release(const file_map *m, const void *data, size_t bytes)
{
    uintptr_t from = (uintptr_t)data, start = (uintptr_t)m->data, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (!m->data || from < start || bytes > m->len || from - start > m->len - bytes) return;
    uintptr_t first = from / page * page, end = (from + bytes + page - 1) / page * page;
    (void)madvise((void *)first, end - first, MADV_DONTNEED); /* clean pages of a file: nothing can be lost */
}

void file_map_close(file_map *m)
{
    if (m->data) munmap((void *)m->data, m->len);
    *m = (file_map){0};
}

/* What somebody gave to this process already: "/dev/stdin", "/dev/fd/63" of a shell's <(...). */
static bool is_own_descriptor(const char *path)
{
    return strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

int file_check_regular(const char *path, shoal_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0) return err_set(err, errno_code(errno), "%s: %s", path, strerror(errno));
    if (S_ISREG(st.st_mode)) return 0;
    return err_set(err, SHOAL_EINVALID, "%s: not a regular file", path);
}

/* To open a named pipe waits until somebody writes to it, and to read it until he does. */
static int open_to_read(const char *path, shoal_err *err)
{
    struct stat st;
    if (reader) return open_for_reader(path, err);
    bool own = is_own_descriptor(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | (own ? 0 : O_NONBLOCK));
    if (fd < 0) return err_set(err, errno_code(errno), "%s: %s", path, strerror(errno));
    if (own || fstat(fd, &st) != 0 || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) return fd;
    close(fd);
    return err_set(err, SHOAL_EINVALID, "%s: not a regular file", path);
}

int file_read_open(buf *out, int fd, size_t max_bytes, shoal_err *err)
{
    char chunk[16384];
    size_t start = out->len;
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) != 0;) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return err_set(err, SHOAL_EIO, "%s", strerror(errno));
        if (out->len - start + (size_t)n > max_bytes)
            return err_set(err, SHOAL_ELIMIT, "larger than %zu bytes", max_bytes);
        if (buf_append(out, chunk, (size_t)n) != 0) return err_nomem(err);
    }
    return 0;
}

int file_read(buf *out, const char *path, size_t max_bytes, shoal_err *err)
{
    int fd = open_to_read(path, err);
    if (fd < 0) return fd;
    int rc = file_read_open(out, fd, max_bytes, err);
    close(fd);
    return rc != 0 && rc != SHOAL_ENOMEM ? err_prefix(err, rc, "%s", path) : rc;
}

int file_write_at(int fd, const void *data, size_t n, uint64_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(fd, (const char *)data + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR) continue;
        if (k == 0) errno = EIO;
        if (k <= 0) return -1;
        done += (size_t)k;
    }
    return 0;
}

bool file_stat(const char *path, struct stat *ret)
{
    return reader ? file_user_stat(ret, reader, path, NULL) == 0 : stat(path, ret) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat st;
    return file_stat(path, &st) && S_ISDIR(st.st_mode);
}

bool file_exists(const char *path)
{
    struct stat st;
    return reader ? file_stat(path, &st) : access(path, F_OK) == 0;
}

static int make_folder(const char *path, mode_t mode, shoal_err *err)
{
    int why = mkdir(path, mode) == 0 || errno == EEXIST ? 0 : errno;
    bool refused = why == EACCES || why == EPERM || why == EROFS;
    if (why == 0 || file_is_dir(path)) return 0;
    return err_set(err, refused ? SHOAL_EAUTH : SHOAL_EIO, "%s: the folder cannot be made: %s", path,
                   strerror(why));
}

int file_make_folders(const char *path, mode_t mode, shoal_err *err)
{
    char *copy = strdup(path);
    int rc = copy ? 0 : err_nomem(err);
    for (char *at = copy + (*path == '/'); rc == 0 && (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        rc = make_folder(copy, mode, err);
    }
    free(copy);
    return rc;
}

int file_free_bytes(uint64_t *ret, const char *path, shoal_err *err)
{
    struct statvfs v;
    if (statvfs(path, &v) != 0) return err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    *ret = (uint64_t)v.f_bavail * v.f_frsize;
    return 0;
}

int file_lock(int fd, int wait_ms, const atomic_bool *stop, shoal_err *err)
{
    for (int waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; waited_ms += LOCK_PAUSE_MS) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_set(err, SHOAL_EIO, "it cannot be locked: %s", strerror(errno));
        if (stop && atomic_load(stop)) return err_set(err, SHOAL_ECANCELLED, "stopped");
        if (wait_ms >= 0 && waited_ms >= wait_ms)
            return err_set(err, SHOAL_EFULL, "another process has held its lock for %d s; is one stopped?",
                           wait_ms / 1000);
        nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_MS * 1000000L}, NULL);
    }
    return 0;
}

int file_lock_folder(int *ret_fd, const char *path, int wait_ms, shoal_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd >= 0 ? file_lock(fd, wait_ms, NULL, err) : err_set(err, SHOAL_EIO, "%s", strerror(errno));
    *ret_fd = rc == 0 ? fd : -1;
    if (rc == 0) return 0;
    if (fd >= 0) close(fd);
    return err_prefix(err, rc, "%s", path);
}

char *file_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == path ? strdup("/") : slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
}

int file_sync_name(const char *path, shoal_err *err)
{
    char *folder = file_folder(path);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int rc = !folder                    ? err_nomem(err)
             : fd < 0 || fsync(fd) != 0 ? err_set(err, SHOAL_EIO, "%s: %s", folder, strerror(errno))
                                        : 0;
    if (fd >= 0) close(fd);
    free(folder);
    return rc;
}

void file_hide_folder(char *sentence, const char *folder, size_t n)
{
    for (char *at = sentence; n > 0 && *at;) {
        if (strncmp(at, folder, n) == 0 && at[n] == '/')
            memmove(at, at + n + 1, strlen(at + n + 1) + 1);
        else
            at++;
    }
}

void file_name_alone(char *sentence, const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (slash) file_hide_folder(sentence, path, (size_t)(slash - path));
}

struct file_writer {
    FILE *f;
    char *path, *tmp;
    uint64_t offset;
};

int file_writer_open(file_writer **ret, const char *path, shoal_err *err)
{
    /* The rename at the end would put a file in the place of a device or a pipe. */
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(err, SHOAL_EINVALID, "%s is there and is no regular file", path);
    file_writer *w = calloc(1, sizeof *w);
    if (!w) return err_nomem(err);
    w->path = strdup(path);
    if (w->path && asprintf(&w->tmp, "%s.tmp.%d", path, (int)getpid()) < 0) w->tmp = NULL;
    int rc = 0;
    if (!w->path || !w->tmp) {
        rc = err_nomem(err);
    } else {
        w->f = fopen(w->tmp, "wbe");
        if (!w->f) rc = err_set(err, errno_code(errno), "%s: cannot write: %s", path, strerror(errno));
    }
    if (rc != 0) {
        file_writer_close(w);
        return rc;
    }
    *ret = w;
    return 0;
}

static int writer_fail(file_writer *w, shoal_err *err)
{
    return err_set(err, SHOAL_EIO, "%s: %s; the old file is untouched", w->path, strerror(errno));
}

int file_writer_write(file_writer *w, const void *data, size_t n, shoal_err *err)
{
    if (n && fwrite(data, 1, n, w->f) != n) return writer_fail(w, err);
    w->offset += n;
    return 0;
}

uint64_t file_writer_offset(const file_writer *w)
{
    return w->offset;
}

int file_writer_commit(file_writer *w, shoal_err *err)
{
    if (fflush(w->f) != 0 || fsync(fileno(w->f)) != 0) return writer_fail(w, err);
    int rc = fclose(w->f);
    w->f = NULL;
    if (rc != 0 || rename(w->tmp, w->path) != 0) return writer_fail(w, err);
    (void)file_sync_name(w->path, NULL); /* it is written, whatever becomes of this */
    free(w->tmp);
    w->tmp = NULL;
    return 0;
}

void file_writer_close(file_writer *w)
{
    if (!w) return;
    if (w->f) fclose(w->f);
    if (w->tmp) unlink(w->tmp);
    free(w->tmp);
    free(w->path);
    free(w);
}

int file_replace(const char *path, const buf *text, shoal_err *err)
{
    file_writer *w = NULL;
    int rc = text->failed ? err_nomem(err) : file_writer_open(&w, path, err);
    if (rc == 0) rc = file_writer_write(w, text->data, text->len, err);
    if (rc == 0) rc = file_writer_commit(w, err);
    file_writer_close(w);
    return rc;
}

int file_try_replace(const char *path, shoal_err *err)
{
    file_writer *w = NULL;
    int rc = path ? file_writer_open(&w, path, err) : 0;
    file_writer_close(w);
    return rc;
}
