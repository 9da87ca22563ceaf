/* database_copy.c: see database_copy.h. */
#include "sql/database_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "sql/database.h"

enum { STEP_PAGES = 256, CHECK_OPS = 100000, PATH_SIZE = 4096 + 64 };

typedef struct copying {
    const database_copy_options *o;
    database from, to;
    uint64_t all; /* bytes */
    bool made;    /* the copy is ours to remove */
} copying;

static int copy_stopped(copying *c, uint64_t done)
{
    return c->o->progress ? c->o->progress(c->o->user, done, c->all) : 0;
}

static int copy_cancelled(shoal_err *err)
{
    return err_set(err, SHOAL_ECANCELLED, "stopped");
}

/* What cannot be written is the copy's fault, all else the original's. */
static int copy_fail(const copying *c, int code, shoal_err *err)
{
    bool reads = code == SQLITE_IOERR_READ || code == SQLITE_IOERR_SHORT_READ;
    bool writes = (code & 0xFF) == SQLITE_FULL || ((code & 0xFF) == SQLITE_IOERR && !reads);
    database said = writes ? c->to : c->from;
    said.db = c->to.db; /* the handle that has the message */
    return database_fail(&said, code, err);
}

/* ---- opening ------------------------------------------------------------------------------------- */

static int copy_open_one(database *d, const char *path, const char *lost, shoal_err *err)
{
    *d = (database){.path = strdup(path), .lost = lost};
    if (!d->path) return err_nomem(err);
    int code = sqlite3_open_v2(path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK) return database_fail(d, code, err);
    sqlite3_extended_result_codes(d->db, 1);
    sqlite3_busy_timeout(d->db, DATABASE_BUSY_MS);
    return 0;
}

/* The moment of the copy: what others commit from here on is not in it. */
static int copy_begin_reading(copying *c, shoal_err *err)
{
    int rc = copy_open_one(&c->from, c->o->from, c->o->lost, err);
    if (rc == 0)
        rc = database_run(&c->from, "PRAGMA trusted_schema = OFF; BEGIN; SELECT count(*) FROM sqlite_schema",
                          err);
    return rc;
}

static int copy_open_target(copying *c, shoal_err *err)
{
    int fd = open(c->o->to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, errno == EACCES ? SHOAL_EAUTH : SHOAL_EIO, "%s: %s", c->o->to, strerror(errno));
    close(fd);
    c->made = true;
    int rc = copy_open_one(&c->to, c->o->to, c->o->lost, err);
    /* A copy that was not finished is removed, so that nothing has to be undone. */
    return rc == 0
               ? database_run(
                     &c->to,
                     "PRAGMA trusted_schema = OFF; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", err)
               : rc;
}

/* ---- copying ------------------------------------------------------------------------------------- */

static int64_t copy_page_bytes(const copying *c)
{
    sqlite3_stmt *st = NULL;
    int64_t n = 0;
    if (sqlite3_prepare_v2(c->from.db, "PRAGMA page_size", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return n;
}

static int copy_pages(copying *c, shoal_err *err)
{
    uint64_t page = (uint64_t)copy_page_bytes(c);
    bool stopped = false;
    int code = SQLITE_OK;
    sqlite3_backup *b = sqlite3_backup_init(c->to.db, "main", c->from.db, "main");
    if (!b) return copy_fail(c, sqlite3_extended_errcode(c->to.db), err);
    while (code == SQLITE_OK && !stopped) {
        code = sqlite3_backup_step(b, STEP_PAGES);
        uint64_t left = (uint64_t)sqlite3_backup_remaining(b) * page;
        c->all = (uint64_t)sqlite3_backup_pagecount(b) * page;
        if (code == SQLITE_OK || code == SQLITE_DONE) stopped = copy_stopped(c, c->all - left) != 0;
    }
    int finished = sqlite3_backup_finish(b);
    if (code != SQLITE_OK && code != SQLITE_DONE) return copy_fail(c, code, err);
    if (finished != SQLITE_OK) return copy_fail(c, finished, err);
    return stopped ? copy_cancelled(err) : 0;
}

/* ---- looking at it ------------------------------------------------------------------------------- */

static int copy_on_ops(void *user)
{
    copying *c = user;
    return copy_stopped(c, c->all);
}

/* What is wrong in the copy was wrong in the original. "*** in database main ***" is a line of its own. */
static int copy_damaged(const copying *c, const char *said, shoal_err *err)
{
    const char *line = strchr(said, '\n');
    const char *why = line ? line + 1 : said;
    return err_set(err, SHOAL_EFORMAT, "%s is damaged (%.*s): " DATABASE_DAMAGED "%s", c->o->from,
                   (int)strcspn(why, "\n"), why, c->o->lost);
}

static int copy_look(copying *c, shoal_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = 0;
    sqlite3_progress_handler(c->to.db, CHECK_OPS, copy_on_ops, c);
    int code = sqlite3_prepare_v2(c->to.db, "PRAGMA quick_check(1)", -1, &st, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(st);
    const char *said = code == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (code != SQLITE_ROW)
        rc = copy_fail(c, code, err);
    else if (!said)
        rc = err_nomem(err);
    else if (strcmp(said, "ok") != 0)
        rc = copy_damaged(c, said, err);
    sqlite3_finalize(st);
    sqlite3_progress_handler(c->to.db, 0, NULL, NULL);
    return rc;
}

static int copy_sync(const char *path, shoal_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd >= 0 && fsync(fd) == 0 ? 0 : err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return rc;
}

/* Needs no memory. */
static void copy_remove(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char name[PATH_SIZE];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

/* The log's mark in the header is the original's: a copy is one file, whoever opens it. */
static int copy_leave_log(const copying *c, shoal_err *err)
{
    return database_run(&c->to, "PRAGMA journal_mode = DELETE", err);
}

int database_copy(const database_copy_options *o, shoal_err *err)
{
    copying c = {.o = o};
    int rc = copy_begin_reading(&c, err);
    if (rc == 0) rc = copy_open_target(&c, err);
    if (rc == 0) rc = copy_pages(&c, err);
    if (rc == 0) rc = copy_leave_log(&c, err);
    if (rc == 0) rc = copy_look(&c, err);
    if (c.from.db) database_rollback(&c.from);
    database_close(&c.to);
    database_close(&c.from);
    if (rc == 0) rc = copy_sync(o->to, err);
    if (rc != 0 && c.made) copy_remove(o->to);
    return rc;
}

/* ---- the header (https://www.sqlite.org/fileformat.html, 1.3) -------------------------------------- */

int database_version_of(const char *path, int *ret, shoal_err *err)
{
    uint8_t head[100];
    int fd;
    size_t bytes;
    int rc = file_open_regular(&fd, &bytes, path, err);
    if (rc != 0) return rc;
    ssize_t n = bytes ? pread(fd, head, sizeof head, 0) : 0;
    close(fd);
    if (n < 0) return err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    if (n != 0 && (n < (ssize_t)sizeof head || memcmp(head, "SQLite format 3", 16) != 0))
        return err_set(err, SHOAL_EFORMAT, "%s is no database", path);
    *ret =
        n == 0
            ? 0
            : (int)((uint32_t)head[60] << 24 | (uint32_t)head[61] << 16 | (uint32_t)head[62] << 8 | head[63]);
    return 0;
}
