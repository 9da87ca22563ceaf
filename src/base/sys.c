/* sys.c: files, SHA-256 (OpenSSL's) and what Linux says of this process; see sys.h. Until
 * file_writer_commit's rename, which comes after fsync, the old file is untouched. */
#define _GNU_SOURCE
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/sha.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

static int errno_code(int e)
{
    return e == ENOENT || e == ENOTDIR ? SHOAL_ENOTFOUND
           : e == EACCES || e == EPERM ? SHOAL_EAUTH
           : e == ENOMEM               ? SHOAL_ENOMEM
                                       : SHOAL_EIO;
}

int file_map_open(file_map *ret, const char *path, shoal_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return err_set(err, errno_code(errno), "%s: %s", path, strerror(errno));
    struct stat st;
    int rc = 0;
    if (fstat(fd, &st) != 0) {
        rc = err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        rc = err_set(err, SHOAL_EINVALID, "%s: not a regular file", path);
    } else if (st.st_size == 0) {
        *ret = (file_map){0};
    } else {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            rc = err_set(err, errno_code(errno), "%s: cannot map %lld bytes: %s", path, (long long)st.st_size,
                         strerror(errno));
        else
            *ret = (file_map){.data = p, .len = (size_t)st.st_size};
    }
    close(fd);
    return rc;
}

void file_map_close(file_map *m)
{
    if (m->data) munmap((void *)m->data, m->len);
    *m = (file_map){0};
}

int file_read(buf *out, const char *path, size_t max_bytes, shoal_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return err_set(err, errno_code(errno), "%s: %s", path, strerror(errno));
    size_t start = out->len;
    int rc = 0;
    for (;;) {
        char chunk[16384];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n == 0) break;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            rc = err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
        else if (out->len - start + (size_t)n > max_bytes)
            rc = err_set(err, SHOAL_ELIMIT, "%s: larger than %zu bytes", path, max_bytes);
        else if (buf_append(out, chunk, (size_t)n) != 0)
            rc = err_nomem(err);
        if (rc != 0) break;
    }
    close(fd);
    return rc;
}

bool path_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool path_exists(const char *path)
{
    return access(path, F_OK) == 0;
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

/* SHA256_* are deprecated in OpenSSL 3 and yet the right ones here: they neither allocate nor fetch providers
 * nor read openssl.cnf (2,300 allocations at the first digest), so a digest cannot fail. */
struct sha256 {
    SHA256_CTX ctx;
};

sha256 *sha256_new(void)
{
    sha256 *s = calloc(1, sizeof *s);
    if (s) SHA256_Init(&s->ctx);
    return s;
}

void sha256_add(sha256 *s, const void *data, size_t n)
{
    SHA256_Update(&s->ctx, data, n);
}

void sha256_end(sha256 *s, sha256_digest *ret)
{
    SHA256_Final(ret->bytes, &s->ctx);
    free(s);
}

void sha256_of(const void *data, size_t n, sha256_digest *ret)
{
    sha256 s;
    SHA256_Init(&s.ctx);
    SHA256_Update(&s.ctx, data, n);
    SHA256_Final(ret->bytes, &s.ctx);
}

int sha256_file(const char *path, sha256_digest *ret, shoal_err *err)
{
    file_map m;
    int rc = file_map_open(&m, path, err);
    if (rc != 0) return rc;
    sha256_of(m.data ? (const void *)m.data : "", m.len, ret);
    file_map_close(&m);
    return 0;
}

void sha256_hex(const sha256_digest *d, char ret_hex[65])
{
    static const char digit[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        ret_hex[2 * i] = digit[d->bytes[i] >> 4];
        ret_hex[2 * i + 1] = digit[d->bytes[i] & 15];
    }
    ret_hex[64] = '\0';
}

static bool read_line(const char *path, char *line, size_t n)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    bool ok = fgets(line, (int)n, f) != NULL;
    fclose(f);
    if (ok) line[strcspn(line, "\n")] = '\0';
    return ok;
}

/* The least quota on the way from this process's cgroup up to the root; 0 when there is none. */
static int cgroup_v2_cores(void)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f) return 0;
    char line[PATH_MAX], path[PATH_MAX] = "";
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "0::", 3) == 0) snprintf(path, sizeof path, "%s", line + 3);
    fclose(f);
    path[strcspn(path, "\n")] = '\0';
    int least = 0;
    for (;;) {
        char file[PATH_MAX + 64], text[64];
        snprintf(file, sizeof file, "/sys/fs/cgroup%s/cpu.max", path);
        long long quota, period;
        if (read_line(file, text, sizeof text) && sscanf(text, "%lld %lld", &quota, &period) == 2 &&
            period > 0) {
            int cores = (int)((quota + period - 1) / period);
            if (cores > 0 && (least == 0 || cores < least)) least = cores;
        }
        char *slash = strrchr(path, '/');
        if (!slash) return least;
        *slash = '\0';
    }
}

static int cgroup_v1_cores(void)
{
    char text[64];
    if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", text, sizeof text)) return 0;
    long long quota = atoll(text);
    if (quota <= 0 || !read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", text, sizeof text)) return 0;
    long long period = atoll(text);
    return period > 0 ? (int)((quota + period - 1) / period) : 0;
}

int sys_core_count(void)
{
    const char *forced = getenv("SHOAL_CORES");
    if (forced && atoi(forced) > 0) return atoi(forced);
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int quota = cgroup_v2_cores();
    if (quota == 0) quota = cgroup_v1_cores();
    if (quota > 0 && quota < cores) cores = quota;
    return cores < 1 ? 1 : cores;
}

size_t sys_rss_bytes(int pid)
{
    char path[64], line[128];
    snprintf(path, sizeof path, pid ? "/proc/%d/statm" : "/proc/self/statm", pid);
    unsigned long long size, resident;
    if (!read_line(path, line, sizeof line) || sscanf(line, "%llu %llu", &size, &resident) != 2) return 0;
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

void rng_bytes(void *out, unsigned n)
{
    for (unsigned done = 0; done < n;) {
        ssize_t got = getrandom((char *)out + done, n - done, 0);
        if (got < 0 && errno != EINTR) abort();
        if (got > 0) done += (unsigned)got;
    }
}
