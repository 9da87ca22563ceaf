/* manager_book.h: the models that are loaded again after a restart: loaded.json in the state folder.
 *
 *     {"models": [{"model": "hf:ORG/NAME:Q4_K_M", "name": "chat", "replicas": 2}, ...]}
 *
 * Each entry is what POST /v1/models/load takes. The file is written whole and takes its name at the end, so
 * a crash leaves the one before. Several servers may share it: each changes its own entries alone, by one
 * name the last one that was written counts. */
#ifndef MANAGER_MANAGER_BOOK_H
#define MANAGER_MANAGER_BOOK_H

#include "config/config_load_request.h"

/* Calls `take` for each entry that can be read. One that cannot, or a broken file, is told by `why`, and the
 * others count. A file that is not there has no entries. Returns the entries that were taken, as they stand
 * there, or NULL without memory; the caller drops them. */
json_t *manager_book_read(const char *path, void (*take)(void *user, const config_load_request *w),
                          void (*why)(void *user, const char *sentence), void *user);
/* Writes `ours`. `before`: what this server wrote last, or read; what else the file has stays in it. A file
 * that cannot be understood is renamed to PATH.broken first; one that cannot be read is an error. For threads
 * of the pool, too. */
int manager_book_write(const char *path, const json_t *ours, const json_t *before, shoal_err *err);

/* What that does, for other files of the folder, which is made where it is not there. The lock ends with
 * close(*ret_fd); while it is held, no other server changes a file there. `why` is what is wrong with the file. */
int manager_book_lock(int *ret_fd, const char *path, shoal_err *err);
int manager_book_set_aside(const char *path, const shoal_err *why, shoal_err *err);

#endif
