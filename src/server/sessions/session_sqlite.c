/* session_sqlite.c: conversations in an SQLite file (WAL, synchronous=FULL: what is committed outlives the
 * power); see session_store.h. Statements are made once and used again. */
#include <stdlib.h>
#include <string.h>

#include "sessions/session_store.h"
#include "sql/database.h"

static const char SCHEMA[] =
    "CREATE TABLE talks(id BLOB PRIMARY KEY, used INTEGER NOT NULL, ends INTEGER NOT NULL,"
    " n_turns INTEGER NOT NULL, n_bytes INTEGER NOT NULL, next INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX talks_used ON talks(used);"
    "CREATE INDEX talks_ends ON talks(ends);"
    "CREATE TABLE turns(talk BLOB NOT NULL, number INTEGER NOT NULL, sealed BLOB NOT NULL,"
    " UNIQUE(talk, number));"
    "CREATE TABLE total(n_bytes INTEGER NOT NULL);"
    "INSERT INTO total VALUES(0);"
    /* The sum is kept where the rows are, so that no way of changing them forgets it. */
    "CREATE TRIGGER more AFTER INSERT ON turns BEGIN"
    " UPDATE total SET n_bytes = n_bytes + length(NEW.sealed);"
    " UPDATE talks SET n_bytes = n_bytes + length(NEW.sealed), n_turns = n_turns + 1, next = NEW.number + 1"
    "  WHERE id = NEW.talk; END;"
    "CREATE TRIGGER less AFTER DELETE ON turns BEGIN"
    " UPDATE total SET n_bytes = n_bytes - length(OLD.sealed);"
    " UPDATE talks SET n_bytes = n_bytes - length(OLD.sealed), n_turns = n_turns - 1 WHERE id = OLD.talk; "
    "END;"
    "CREATE TRIGGER gone AFTER DELETE ON talks BEGIN DELETE FROM turns WHERE talk = OLD.id; END;";

enum {
    DROP_OVER,
    MAKE,
    PUT,
    SIZES,
    DROP_OLDEST,
    READ,
    TOUCH,
    REWRITE,
    DROP,
    SWEEP,
    TOTAL,
    DROP_UNUSED,
    N_STATEMENTS
};

static const char *const SQL[N_STATEMENTS] = {
    [DROP_OVER] = "DELETE FROM talks WHERE id = ?1 AND ends <= ?2",
    [MAKE] =
        "INSERT INTO talks VALUES(?1, ?2, ?3, 0, 0, 0) ON CONFLICT(id) DO UPDATE SET used = ?2, ends = ?3",
    [PUT] = "INSERT INTO turns SELECT id, next, ?2 FROM talks WHERE id = ?1",
    [SIZES] = "SELECT n_turns, n_bytes FROM talks WHERE id = ?1",
    [DROP_OLDEST] =
        "DELETE FROM turns WHERE talk = ?1 AND number = (SELECT min(number) FROM turns WHERE talk = ?1)",
    [READ] =
        "SELECT number, sealed FROM turns WHERE talk = (SELECT id FROM talks WHERE id = ?1 AND ends > ?2)"
        " ORDER BY number",
    [TOUCH] =
        "UPDATE talks SET used = ?2, ends = ?3 WHERE id = ?1 AND ends > ?2 AND ends < ?3 - (?3 - ?2) / 16",
    [REWRITE] =
        "UPDATE turns SET sealed = ?3 WHERE talk = ?1 AND number = ?2 AND length(sealed) = length(?3)",
    [DROP] = "DELETE FROM talks WHERE id = ?1",
    [SWEEP] = "DELETE FROM talks WHERE ends <= ?1",
    [TOTAL] = "SELECT n_bytes FROM total",
    [DROP_UNUSED] =
        "DELETE FROM talks WHERE id = (SELECT id FROM talks WHERE id <> ?1 ORDER BY used LIMIT 1)",
};

typedef struct sqlite_store {
    session_store pub; /* first */
    database file;
    sqlite3_stmt *statements[N_STATEMENTS];
} sqlite_store;

/* ---- errors and statements ------------------------------------------------------------------------ */

/* The statement, with the id as its ?1 unless that is NULL. */
static int statement(sqlite_store *s, int which, const session_id *id, sqlite3_stmt **ret, shoal_err *err)
{
    sqlite3_stmt **st = &s->statements[which];
    int rc = SQLITE_OK;
    if (!*st) rc = sqlite3_prepare_v3(s->file.db, SQL[which], -1, SQLITE_PREPARE_PERSISTENT, st, NULL);
    if (rc == SQLITE_OK && id) rc = sqlite3_bind_blob(*st, 1, id->bytes, SESSION_ID_BYTES, SQLITE_STATIC);
    *ret = *st;
    return rc == SQLITE_OK ? 0 : database_fail(&s->file, rc, err);
}

/* 1: a row. Otherwise the statement is ready to be used again. */
static int session_sqlite_step(sqlite_store *s, sqlite3_stmt *st, shoal_err *err)
{
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) return 1;
    int mine = rc == SQLITE_DONE ? 0 : database_fail(&s->file, rc, err);
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    return mine;
}

static void done(sqlite3_stmt *st)
{
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
}

/* Up to two numbers behind the id; of a row that comes, its first two columns. */
static int numbers(sqlite_store *s, int which, const session_id *id, int64_t a, int64_t b, int64_t ret[2],
                   shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = statement(s, which, id, &st, err);
    if (rc != 0) return rc;
    int first = id ? 2 : 1, n = sqlite3_bind_parameter_count(st);
    if (n >= first) sqlite3_bind_int64(st, first, a);
    if (n >= first + 1) sqlite3_bind_int64(st, first + 1, b);
    if ((rc = session_sqlite_step(s, st, err)) != 1) return rc;
    for (int i = 0; ret && i < 2 && i < sqlite3_column_count(st); i++) ret[i] = sqlite3_column_int64(st, i);
    done(st);
    return 0;
}

/* ---- transactions -------------------------------------------------------------------------------- */

static int sqlite_begin(session_store *t, shoal_err *err)
{
    return database_begin(&((sqlite_store *)t)->file, true, err);
}

static void sqlite_rollback(session_store *t)
{
    database_rollback(&((sqlite_store *)t)->file);
}

static int sqlite_commit(session_store *t, shoal_err *err)
{
    return database_commit(&((sqlite_store *)t)->file, err);
}

/* ---- conversations ------------------------------------------------------------------------------- */

static int keep_bounds(sqlite_store *s, const session_id *id, const session_bounds *b, shoal_err *err)
{
    int rc;
    for (;;) {
        int64_t size[2] = {0, 0};
        if ((rc = numbers(s, SIZES, id, 0, 0, size, err)) != 0) return rc;
        bool over = (uint64_t)size[0] > b->turns || (uint64_t)size[1] > b->bytes;
        if (size[0] < 2 || !over) break;
        if ((rc = numbers(s, DROP_OLDEST, id, 0, 0, NULL, err)) != 0) return rc;
    }
    for (;;) {
        int64_t all[2] = {0, 0};
        if ((rc = numbers(s, TOTAL, NULL, 0, 0, all, err)) != 0) return rc;
        if ((uint64_t)all[0] <= b->all_bytes) return 0;
        if ((rc = numbers(s, DROP_UNUSED, id, 0, 0, NULL, err)) != 0) return rc;
        if (sqlite3_changes(s->file.db) == 0) return 0; /* this one alone is left, within its own bounds */
    }
}

static int sqlite_append(session_store *t, const session_turn *turn, const session_bounds *b, int64_t now,
                         shoal_err *err)
{
    sqlite_store *s = (sqlite_store *)t;
    sqlite3_stmt *st;
    int rc = numbers(s, DROP_OVER, turn->id, now, 0, NULL, err);
    if (rc == 0) rc = numbers(s, MAKE, turn->id, now, now + b->ttl_s, NULL, err);
    if (rc == 0) rc = statement(s, PUT, turn->id, &st, err);
    if (rc != 0) return rc;
    sqlite3_bind_blob64(st, 2, turn->sealed, turn->n, SQLITE_STATIC); /* else NULL, which no row takes */
    rc = session_sqlite_step(s, st, err);
    return rc == 0 ? keep_bounds(s, turn->id, b, err) : rc;
}

static int sqlite_load(session_store *t, const session_id *id, int64_t now, session_turn_fn *fn, void *user,
                       shoal_err *err)
{
    sqlite_store *s = (sqlite_store *)t;
    sqlite3_stmt *st;
    int rc = statement(s, READ, id, &st, err);
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 2, now);
    while ((rc = session_sqlite_step(s, st, err)) == 1) {
        const void *sealed = sqlite3_column_blob(st, 1);
        int n = sqlite3_column_bytes(st, 1);
        rc = sealed ? fn(user, sqlite3_column_int64(st, 0), sealed, (size_t)n, err) : err_nomem(err);
        if (rc == 0) continue;
        done(st);
        return rc;
    }
    return rc;
}

static int sqlite_touch(session_store *t, const session_id *id, int64_t now, int64_t ttl_s, shoal_err *err)
{
    return numbers((sqlite_store *)t, TOUCH, id, now, now + ttl_s, NULL, err);
}

static int sqlite_rewrite(session_store *t, const session_turn *turn, int64_t number, shoal_err *err)
{
    sqlite_store *s = (sqlite_store *)t;
    sqlite3_stmt *st;
    int rc = statement(s, REWRITE, turn->id, &st, err);
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 2, number);
    sqlite3_bind_blob64(st, 3, turn->sealed, turn->n, SQLITE_STATIC);
    return session_sqlite_step(s, st, err);
}

static int sqlite_drop(session_store *t, const session_id *id, bool *ret_found, shoal_err *err)
{
    sqlite_store *s = (sqlite_store *)t;
    int rc = numbers(s, DROP, id, 0, 0, NULL, err);
    *ret_found = rc == 0 && sqlite3_changes(s->file.db) > 0;
    return rc;
}

static int sqlite_sweep(session_store *t, int64_t now, const session_bounds *b, int64_t *ret_n,
                        shoal_err *err)
{
    sqlite_store *s = (sqlite_store *)t;
    static const session_id NONE;
    int rc = numbers(s, SWEEP, NULL, now, 0, NULL, err);
    *ret_n = rc == 0 ? sqlite3_changes(s->file.db) : 0;
    return rc == 0 ? keep_bounds(s, &NONE, b, err) : rc; /* they may have become smaller */
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void sqlite_close(session_store *t)
{
    sqlite_store *s = (sqlite_store *)t;
    for (int i = 0; i < N_STATEMENTS; i++) sqlite3_finalize(s->statements[i]);
    database_close(&s->file);
    free(s);
}

static bool sqlite_has_moved(session_store *t)
{
    return database_has_moved(&((sqlite_store *)t)->file);
}

static const session_store_ops OPS = {sqlite_begin, sqlite_commit, sqlite_rollback, sqlite_append,
                                      sqlite_load,  sqlite_touch,  sqlite_rewrite,  sqlite_drop,
                                      sqlite_sweep, sqlite_close,  sqlite_has_moved};

int session_sqlite_open(session_store **ret, const char *path, shoal_err *err)
{
    const database_options o = {
        .path = path,
        .schema = SCHEMA,
        .version = SESSION_SQLITE_VERSION,
        .pragmas = "PRAGMA secure_delete = ON; PRAGMA trusted_schema = OFF; PRAGMA recursive_triggers = ON",
        .lost = SESSION_SQLITE_LOST};
    sqlite_store *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->pub.ops = &OPS;
    int rc = database_open(&s->file, &o, err);
    if (rc == 0)
        *ret = &s->pub;
    else
        sqlite_close(&s->pub);
    return rc;
}
