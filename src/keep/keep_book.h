/* keep_book.h: the models that are loaded again after a restart: loaded.json in the state folder.
 *
 *     {"models": [{"model": "hf:ORG/NAME:Q4_K_M", "name": "chat", "replicas": 2}, ...]}
 *
 * Each entry is what POST /v1/models/load takes. The file is written whole and takes its name at the end, so
 * a crash leaves the one before. */
#ifndef KEEP_KEEP_BOOK_H
#define KEEP_KEEP_BOOK_H

#include "config/config_wish.h"

/* Calls `take` for each entry that can be read. One that cannot, or a broken file, is told by `why`, and the
 * others count. A file that is not there has no entries. */
void keep_book_read(const char *path, void (*take)(void *user, const config_wish *w),
                    void (*why)(void *user, const char *sentence), void *user);
/* The text of a file of these; failed: no memory. */
void keep_book_put(buf *out, const json_t *wishes);
/* For threads of the pool, too. */
int keep_book_write(const char *path, const buf *text, shoal_err *err);

#endif
