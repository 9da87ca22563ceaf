/* database.h: one SQLite file as Shoal keeps such files: for this account alone, safe over a kill or a power
 * cut.
 *
 *     database d = {0};
 *     database_options o = {.path = "/var/lib/shoal/talks.db", .schema = SCHEMA, .version = 1,
 *                           .lost = "conversations begin anew"};
 *     int rc = database_open(&d, &o, err);
 *     if (rc == 0) rc = database_begin(&d, true, err);
 *     if (rc == 0) rc = database_run(&d, "DELETE FROM talks", err);
 *     rc = rc == 0 ? database_commit(&d, err) : (database_rollback(&d), rc);
 *     database_close(&d);
 *
 * The journal is WAL, and a commit is on disk when it returns (synchronous = FULL). Several processes may
 * share the file; who waits for another's writing waits DATABASE_BUSY_MS at most. One thread at a time. */
#ifndef SQL_DATABASE_H
#define SQL_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "base/err.h"

#define DATABASE_BUSY_MS 10000
/* What to do about a damaged file, before what comes of it. A log that stayed would be read into the next file. */
#define DATABASE_DAMAGED "move it away, with its -wal file; "

typedef struct database {
    sqlite3 *db;
    char *path;
    const char *lost; /* the options' */
} database;

typedef struct database_options {
    const char *path;            /* its folders are made, for this account alone */
    const char *schema;          /* statements that make the tables of a new file */
    int version;                 /* of the schema, over 0; a file of a later one is SHOAL_EUNSUPPORTED */
    const char *const *upgrades; /* [version - 1]: statements that make version i + 2 of i + 1; NULL: none */
    const char *pragmas;         /* further ones, at each opening; NULL: none */
    const char *lost; /* literal: what to do about a file that is damaged, or comes of moving it away */
} database_options;

/* On failure d can be closed, too. Errors name the file and say what to do. */
int database_open(database *d, const database_options *o, shoal_err *err);
void database_close(database *d); /* accepts a zeroed one; statements must be finalized before */

/* What SQLite's code means for a person; returns a SHOAL_E... */
int database_fail(const database *d, int code, shoal_err *err);
/* Statements without values, one after the other. */
int database_run(const database *d, const char *sql, shoal_err *err);
/* To write into a file that has moved is SHOAL_EIO. */
int database_begin(const database *d, bool write, shoal_err *err);
/* Somebody has moved, removed or replaced the file since it was opened. */
bool database_has_moved(const database *d);
int database_commit(const database *d, shoal_err *err); /* on failure it is rolled back */
void database_rollback(const database *d);              /* also when there is nothing to undo */

#endif
