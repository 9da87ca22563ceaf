/* database_copy.h: a copy of an SQLite file that is consistent while other processes write to it.
 *
 *     database_copy_options o = {.from = "sessions.db", .to = "backup/sessions.db", .lost = "conversations begin anew"};
 *     int rc = database_copy(&o, err);
 *
 * The copy is the state of one moment: a read transaction is held for as long as it is written (SQLite's online backup
 * API), and writers are not held up. It is one file without a log beside it, of mode 0600, on the disk when this returns,
 * and SQLite found its pages in order. */
#ifndef SQL_DATABASE_COPY_H
#define SQL_DATABASE_COPY_H

#include <stdint.h>

#include "base/err.h"

typedef struct database_copy_options {
    const char *from; /* is there */
    const char *to;   /* is not there; its folder is */
    const char *lost; /* literal: as database_options' */
    /* Bytes that are written, of all. Not 0: stop. NULL: nobody looks. */
    int (*progress)(void *user, uint64_t done, uint64_t all);
    void *user;
} database_copy_options;

/* SHOAL_EFORMAT: `from` is damaged. SHOAL_EIO (a full disk), SHOAL_ECANCELLED, and others of database.h. On failure `to`
 * is gone. */
int database_copy(const database_copy_options *o, shoal_err *err);

/* The version of the schema (user_version), as the header of the file says; SQLite is not asked and nothing is made.
 * SHOAL_EFORMAT: the file is no database. An empty file has version 0. */
int database_version_of(const char *path, int *ret, shoal_err *err);

#endif
