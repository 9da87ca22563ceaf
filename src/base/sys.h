/* sys.h: files, digests and what this machine may use. */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

/* A whole file, read-only, by mmap. An empty file maps to data == NULL, len == 0. */
typedef struct file_map {
    const uint8_t *data;
    size_t len;
} file_map;

/* SHOAL_ENOTFOUND, SHOAL_EAUTH or SHOAL_EIO as the kernel says; SHOAL_EINVALID for what is no regular
 * file. */
int file_map_open(file_map *ret, const char *path, shoal_err *err);
void file_map_close(file_map *m); /* accepts a zeroed one */

/* Append the whole file to `out`; SHOAL_ELIMIT when it is longer than max_bytes. */
int file_read(buf *out, const char *path, size_t max_bytes, shoal_err *err);

/* Links are followed; false also when it cannot be looked at. */
bool path_is_dir(const char *path);
bool path_exists(const char *path);

/* Write a file so that a crash or a full disk leaves the old one: bytes go to "PATH.tmp.PID", are
 * fsynced, and take the name only in commit. Close without commit removes the temporary. */
typedef struct file_writer file_writer;
int file_writer_open(file_writer **ret, const char *path, shoal_err *err);
int file_writer_write(file_writer *w, const void *data, size_t n, shoal_err *err);
uint64_t file_writer_offset(const file_writer *w);
int file_writer_commit(file_writer *w, shoal_err *err); /* does not free w */
void file_writer_close(file_writer *w);

typedef struct sha256_digest {
    uint8_t bytes[32];
} sha256_digest;

typedef struct sha256 sha256;
sha256 *sha256_new(void); /* NULL when out of memory */
void sha256_add(sha256 *s, const void *data, size_t n);
void sha256_end(sha256 *s, sha256_digest *ret); /* frees s */
/* All at once: n bytes, resp. a file (errors as file_map_open's). */
void sha256_of(const void *data, size_t n, sha256_digest *ret);
int sha256_file(const char *path, sha256_digest *ret, shoal_err *err);
/* 64 lower-case digits and a NUL. */
void sha256_hex(const sha256_digest *d, char ret_hex[65]);

/* Cores this process may really use: the affinity mask, cut by the cgroup v2 or v1 CPU quota
 * (rounded up), at least 1. SHOAL_CORES overrides it. */
int sys_core_count(void);

/* Resident bytes of process `pid` (0: this one); 0 when it cannot be read. */
size_t sys_rss_bytes(int pid);

#endif
