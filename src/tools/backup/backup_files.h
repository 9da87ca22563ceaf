/* backup_files.h: inside backup: files of a backup opened without following links, copied with their digest. */
#ifndef BACKUP_BACKUP_FILES_H
#define BACKUP_BACKUP_FILES_H

#include "backup/backup_take.h"

/* A backup's folder. -1 in *ret_fd on an error; the caller closes it. */
int backup_files_open(int *ret_fd, const char *folder, shoal_err *err);
/* The file `name` in it, "x" or "ca/x": a regular file at the end of no link. SHOAL_EFORMAT: it is something else, or not
 * there; `folder` is for messages. */
int backup_files_open_one(int *ret_fd, int at, const char *folder, const char *name, shoal_err *err);
int backup_files_manifest(manifest *ret, int at, const char *folder, shoal_err *err);

typedef struct backup_file_copy {
    int from;         /* read from where it is */
    const char *what; /* for messages and progress */
    const char *to;   /* a new file, on the disk when it is copied; NULL: it is only read */
    unsigned mode;
    uint64_t all; /* bytes that are expected, for progress */
    bool bounded; /* more than `all` are not copied */
    const backup_watch *watch;
} backup_file_copy;

/* ret: its bytes and digest. On failure `to` is gone. */
int backup_files_copy(const backup_file_copy *c, manifest_file *ret, shoal_err *err);
/* One of a backup against its manifest, copied to `to` (NULL: only read). SHOAL_EDIGEST: it is damaged. */
int backup_files_verify(int at, const char *folder, backup_id id, const manifest *m, const char *to,
                        const backup_watch *watch, shoal_err *err);

/* A new file with these bytes, of mode 0600, on the disk. */
int backup_files_write(const char *path, const buf *text, shoal_err *err);

/* A file and what SQLite may have beside it, by the endings of its name: "" first. */
enum { BACKUP_N_ENDINGS = 4 };
extern const char *const BACKUP_ENDINGS[BACKUP_N_ENDINGS];

/* printf into malloc'd text; NULL: no memory. */
char *backup_files_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
