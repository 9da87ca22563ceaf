/* file.h: files: mapped, read whole, and written so that nothing half-written takes their name. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file_user.h"

/* From now on what this module opens to read, and looks for, is opened and looked for as file_user.h does it for that user;
 * relative paths, and descriptors by their names (/dev/stdin), are none then. For a worker whose model another user has
 * named: loaders open a model's files by many names, so the process is confined and not each of them. Once, before other
 * threads; u must outlive the process's files. Writing is as before. */
void file_confine_to(const file_user *u);
bool file_is_confined(void);

/* Read-only; *ret_fd is the caller's to close. SHOAL_EINVALID: a folder, a pipe, a device. */
int file_open_regular(int *ret_fd, size_t *ret_bytes, const char *path, shoal_err *err);

/* A whole file, read-only, by mmap. An empty file maps to data == NULL, len == 0. */
typedef struct file_map {
    const uint8_t *data;
    size_t len;
} file_map;

/* SHOAL_ENOTFOUND, SHOAL_EAUTH or SHOAL_EIO as the kernel says; SHOAL_EINVALID for what is no regular
 * file. */
int file_map_open(file_map *ret, const char *path, shoal_err *err);
void file_map_close(file_map *m); /* accepts a zeroed one */
/* Take the pages that hold these bytes out of the process's memory, if they lie in the mapping: what was
 * copied would otherwise count twice while a model loads. They come back from the file when they are read. */
void file_map_release(const file_map *m, const void *data, size_t bytes);

/* Append the whole file to `out`; SHOAL_ELIMIT when it is longer than max_bytes. A named pipe or a socket is
 * SHOAL_EINVALID and not waited for; a descriptor of this process (/dev/stdin, /dev/fd/N) may be one. */
int file_read(buf *out, const char *path, size_t max_bytes, shoal_err *err);

/* The same of an open file, from where it is; the sentence has no name in it. */
int file_read_open(buf *out, int fd, size_t max_bytes, shoal_err *err);

/* Write all n bytes at this offset of a descriptor. -1: errno says why, and some may be written. */
int file_write_at(int fd, const void *data, size_t n, uint64_t at);

/* SHOAL_EINVALID: it is there, and no regular file. */
int file_check_regular(const char *path, shoal_err *err);

/* Links are followed; false also when it cannot be looked at. */
bool file_stat(const char *path, struct stat *ret);
bool file_is_dir(const char *path);
bool file_exists(const char *path);
/* Make the folders that are missing of those that the path names before its last slash. SHOAL_EAUTH: not
 * here (no permission, a read-only file system); SHOAL_EIO, SHOAL_ENOMEM. */
int file_make_folders(const char *path, mode_t mode, shoal_err *err);
/* What the file system of a path has left for this user. SHOAL_EIO. */
int file_free_bytes(uint64_t *ret, const char *path, shoal_err *err);
/* Lock an open file or folder (flock) for this descriptor alone, until it is closed. Waits up to wait_ms (-1:
 * for as long as it takes): SHOAL_EFULL, another has it still. SHOAL_ECANCELLED: *stop (NULL: never) was set;
 * SHOAL_EIO. The sentence has no name in it. */
int file_lock(int fd, int wait_ms, const atomic_bool *stop, shoal_err *err);
/* The same of the folder at `path`, which is opened first and *ret_fd the caller's to close: who changes files
 * in it takes turns so. -1 in *ret_fd on an error. */
int file_lock_folder(int *ret_fd, const char *path, int wait_ms, shoal_err *err);

/* The folder that a path is in: "/" of "/x", "." of "x"; malloc'd, NULL: no memory. */
char *file_folder(const char *path);
/* Take "FOLDER/" out of a sentence, as often as it is there: clients learn a file's name and not where it
 * lies. */
void file_hide_folder(char *sentence, const char *folder, size_t n);
/* The same for the folder that a path is in. NULL is fine. */
void file_name_alone(char *sentence, const char *path);

/* Bring to the disk which name the file at `path` has in its folder: without, a power failure may leave the one
 * before. SHOAL_EIO, SHOAL_ENOMEM. */
int file_sync_name(const char *path, shoal_err *err);

/* Write a file so that a crash or a full disk leaves the old one: bytes go to "PATH.tmp.PID", are
 * fsynced, and take the name only in commit. Close without commit removes the temporary. */
typedef struct file_writer file_writer;
int file_writer_open(file_writer **ret, const char *path, shoal_err *err);
int file_writer_write(file_writer *w, const void *data, size_t n, shoal_err *err);
uint64_t file_writer_offset(const file_writer *w);
int file_writer_commit(file_writer *w, shoal_err *err); /* does not free w */
void file_writer_close(file_writer *w);
/* All of it at once, in this way. SHOAL_ENOMEM: text has failed. */
int file_replace(const char *path, const buf *text, shoal_err *err);
/* Could it be replaced now? For who has long work ahead of it. NULL: nothing is to be written, 0. */
int file_try_replace(const char *path, shoal_err *err);

#endif
