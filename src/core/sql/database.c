/* database.c: opening, and errors in words; see database.h. */
#include "sql/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

int database_fail(const database *d, int code, shoal_err *err)
{
    const char *why = d->db ? sqlite3_errmsg(d->db) : sqlite3_errstr(code);
    switch (code & 0xFF) {
    case SQLITE_NOMEM: return err_nomem(err);
    case SQLITE_INTERRUPT: return err_set(err, SHOAL_ECANCELLED, "the work was cancelled");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(err, SHOAL_EUNAVAILABLE, "%s: another process writes to it; try again", d->path);
    case SQLITE_FULL: return err_set(err, SHOAL_EIO, "%s: the disk is full", d->path);
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return err_set(err, SHOAL_EAUTH,
                       "%s: it may not be written; give the account that runs Shoal its folder", d->path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(err, SHOAL_EFORMAT, "%s is damaged (%s): " DATABASE_DAMAGED "%s", d->path, why,
                       d->lost);
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR: return err_set(err, SHOAL_EIO, "%s: %s", d->path, why);
    default: return err_set(err, SHOAL_EINTERNAL, "%s: %s", d->path, why);
    }
}

int database_run(const database *d, const char *sql, shoal_err *err)
{
    int rc = sqlite3_exec(d->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : database_fail(d, rc, err);
}

bool database_has_moved(const database *d)
{
    int moved = 0;
    return sqlite3_file_control(d->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

/* What was written into a file without a name would be confirmed, and lost. */
int database_begin(const database *d, bool write, shoal_err *err)
{
    if (write && database_has_moved(d))
        return err_set(err, SHOAL_EIO,
                       "%s was moved or removed while it was open: put it back, or restart the server, which "
                       "opens the file that is there",
                       d->path);
    return database_run(d, write ? "BEGIN IMMEDIATE" : "BEGIN", err);
}

int database_commit(const database *d, shoal_err *err)
{
    int rc = database_run(d, "COMMIT", err);
    if (rc != 0) database_rollback(d);
    return rc;
}

void database_rollback(const database *d)
{
    if (!sqlite3_get_autocommit(d->db)) sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- opening ------------------------------------------------------------------------------------- */

static int fail_at(const char *path, shoal_err *err)
{
    return err_set(err, errno == EACCES || errno == EROFS ? SHOAL_EAUTH : SHOAL_EIO, "%s: %s", path,
                   strerror(errno));
}

/* What people keep is theirs; the log beside it gets the same mode. A file that is there is not opened by us:
 * to close it again would take away the locks that SQLite holds on it in this process. */
static int make_file(const char *path, shoal_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST) return fail_at(path, err);
    if (fd >= 0) close(fd);
    return 0;
}

static int version_of(const database *d, int *ret, shoal_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(d->db, "PRAGMA user_version", -1, &st, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) *ret = sqlite3_column_int(st, 0);
    int mine = rc == SQLITE_ROW ? 0 : database_fail(d, rc, err);
    sqlite3_finalize(st);
    return mine;
}

/* In one transaction: a new file gets the schema, an older one the statements that lead to it. */
static int make_schema(const database *d, const database_options *o, shoal_err *err)
{
    int version = 0;
    char mark[48];
    snprintf(mark, sizeof mark, "PRAGMA user_version = %d", o->version);
    int rc = database_begin(d, true, err);
    if (rc == 0) rc = version_of(d, &version, err); /* another process may have been faster */
    bool behind = rc == 0 && version < o->version;
    if (behind && version == 0) rc = database_run(d, o->schema, err);
    for (int v = version; behind && version > 0 && rc == 0 && v < o->version; v++)
        rc = database_run(d, o->upgrades[v - 1], err);
    if (behind && rc == 0) rc = database_run(d, mark, err);
    if (rc == 0) return database_commit(d, err);
    database_rollback(d);
    return rc;
}

static int setup(const database *d, const database_options *o, shoal_err *err)
{
    int version = 0;
    sqlite3_extended_result_codes(d->db, 1);
    sqlite3_busy_timeout(d->db, DATABASE_BUSY_MS);
    int rc = database_run(
        d, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY", err);
    if (rc == 0 && o->pragmas) rc = database_run(d, o->pragmas, err);
    if (rc == 0) rc = version_of(d, &version, err);
    if (rc == 0 && version > o->version)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s was made by a newer Shoal (form %d)", d->path, version);
    return rc == 0 && version < o->version ? make_schema(d, o, err) : rc;
}

int database_open(database *d, const database_options *o, shoal_err *err)
{
    *d = (database){.path = strdup(o->path), .lost = o->lost};
    int rc = d->path ? file_make_folders(o->path, 0700, err) : err_nomem(err);
    if (rc == 0) rc = make_file(o->path, err);
    if (rc != 0) return rc;
    int code = sqlite3_open_v2(o->path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    return code == SQLITE_OK ? setup(d, o, err) : database_fail(d, code, err);
}

void database_close(database *d)
{
    sqlite3_close(d->db);
    free(d->path);
    *d = (database){0};
}
