/* store.c: opening, statements and collections; see store.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "retrieve/store_impl.h"

#define SCHEMA_VERSION 1
#define BUSY_MS        10000

static const char SCHEMA[] =
    "CREATE TABLE collections(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, title TEXT "
    "NOT NULL,"
    " metadata TEXT NOT NULL, model TEXT NOT NULL, digest TEXT NOT NULL, dims INTEGER NOT NULL,"
    " piece_bytes INTEGER NOT NULL, created INTEGER NOT NULL, revision INTEGER NOT NULL, n_removed INTEGER "
    "NOT NULL,"
    " n_documents INTEGER NOT NULL, n_pieces INTEGER NOT NULL, n_bytes INTEGER NOT NULL);"
    "CREATE TABLE documents(id INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, source TEXT "
    "NOT NULL,"
    " type TEXT NOT NULL, digest TEXT NOT NULL, metadata TEXT NOT NULL, n_bytes INTEGER NOT NULL,"
    " n_pieces INTEGER NOT NULL, created INTEGER NOT NULL, file INTEGER NOT NULL, UNIQUE(collection, "
    "source));"
    "CREATE INDEX documents_of ON documents(collection, id);"
    "CREATE TABLE pieces(id INTEGER PRIMARY KEY, document INTEGER NOT NULL, ordinal INTEGER NOT NULL,"
    " start INTEGER NOT NULL, end INTEGER NOT NULL, line INTEGER NOT NULL, title TEXT NOT NULL, text TEXT "
    "NOT NULL,"
    " UNIQUE(document, ordinal));"
    "CREATE TABLE vectors(document INTEGER PRIMARY KEY, n INTEGER NOT NULL, codes BLOB NOT NULL);"
    "CREATE TABLE files(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, purpose TEXT NOT NULL,"
    " created INTEGER NOT NULL, content BLOB NOT NULL);";

/* ---- errors and statements ------------------------------------------------------------------------------
 */

int store_fail(store *s, int code, shoal_err *err)
{
    const char *why = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(code);
    switch (code & 0xFF) {
    case SQLITE_NOMEM: return err_nomem(err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(err, SHOAL_EUNAVAILABLE, "%s: another process writes to it; try again", s->path);
    case SQLITE_FULL: return err_set(err, SHOAL_EIO, "%s: the disk is full", s->path);
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return err_set(err, SHOAL_EAUTH,
                       "%s: it may not be written; give the account that runs Shoal its folder", s->path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(err, SHOAL_EFORMAT, "%s is damaged (%s): move it away, and add the documents again",
                       s->path, why);
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR: return err_set(err, SHOAL_EIO, "%s: %s", s->path, why);
    default: return err_set(err, SHOAL_EINTERNAL, "%s: %s", s->path, why);
    }
}

int store_run(store *s, const char *sql, shoal_err *err)
{
    int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : store_fail(s, rc, err);
}

int store_prepare(store *s, sqlite3_stmt **ret, shoal_err *err, const char *sql, ...)
{
    *ret = NULL;
    va_list ap;
    va_start(ap, sql);
    char *text = sqlite3_vmprintf(sql, ap);
    va_end(ap);
    if (!text) return err_nomem(err);
    int rc = sqlite3_prepare_v2(s->db, text, -1, ret, NULL);
    sqlite3_free(text);
    return rc == SQLITE_OK ? 0 : store_fail(s, rc, err);
}

int store_step(store *s, sqlite3_stmt *st, shoal_err *err)
{
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) return 1;
    return rc == SQLITE_DONE ? 0 : store_fail(s, rc, err);
}

int store_finish(store *s, sqlite3_stmt *st, int rc, shoal_err *err)
{
    int more = 1;
    while (rc == 0 && more == 1) more = store_step(s, st, err);
    sqlite3_finalize(st);
    return rc == 0 && more < 0 ? more : rc;
}

/* A bind that finds no memory leaves NULL, which no column of ours takes: the step fails then. */
void store_bind_text(sqlite3_stmt *st, int i, const char *text)
{
    sqlite3_bind_text(st, i, text, -1, SQLITE_STATIC);
}

const char *store_text(sqlite3_stmt *st, int column, arena *mem)
{
    const char *s = (const char *)sqlite3_column_text(st, column);
    if (!s) return sqlite3_column_type(st, column) == SQLITE_NULL ? "" : NULL;
    return arena_strndup(mem, s, (size_t)sqlite3_column_bytes(st, column));
}

/* ---- life -----------------------------------------------------------------------------------------------
 */

/* The folders above path, for this account alone. */
static int make_folders(const char *path, shoal_err *err)
{
    char *copy = strdup(path);
    int rc = 0;
    if (!copy) return err_nomem(err);
    for (char *p = copy + 1; rc == 0 && (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            rc = err_set(err, errno == EACCES || errno == EROFS ? SHOAL_EAUTH : SHOAL_EIO,
                         "the folder %s cannot be made: %s", copy, strerror(errno));
    }
    free(copy);
    return rc;
}

/* What people keep is theirs; the log beside it gets the same mode. A file that is there is not opened by us:
 * to close it again would take away the locks that SQLite holds on it in this process. */
static int make_file(const char *path, shoal_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return err_set(err, errno == EACCES || errno == EROFS ? SHOAL_EAUTH : SHOAL_EIO, "%s: %s", path,
                       strerror(errno));
    if (fd >= 0) close(fd);
    return 0;
}

static int version_of(store *s, int *ret, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, "PRAGMA user_version");
    if (rc == 0 && (rc = store_step(s, st, err)) == 1) {
        *ret = sqlite3_column_int(st, 0);
        rc = 0;
    }
    sqlite3_finalize(st);
    return rc;
}

static int make_schema(store *s, shoal_err *err)
{
    int version = 0;
    int rc = store_begin(s, true, err);
    if (rc == 0) rc = version_of(s, &version, err); /* another process may have been faster */
    if (rc == 0 && version == 0) rc = store_run(s, SCHEMA, err);
    if (rc == 0 && version == 0) rc = store_run(s, "PRAGMA user_version = 1", err);
    if (rc == 0) return store_commit(s, err);
    store_rollback(s);
    return rc;
}

static int setup(store *s, shoal_err *err)
{
    int version = 0;
    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_timeout(s->db, BUSY_MS);
    int rc =
        store_run(s, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY", err);
    if (rc == 0) rc = version_of(s, &version, err);
    if (rc == 0 && version > SCHEMA_VERSION)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s was made by a newer Shoal (form %d)", s->path, version);
    return rc == 0 && version == 0 ? make_schema(s, err) : rc;
}

int store_open(store **ret, const char *path, shoal_err *err)
{
    store *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->path = strdup(path);
    int rc = s->path ? make_folders(path, err) : err_nomem(err);
    if (rc == 0) rc = make_file(path, err);
    if (rc == 0) {
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
        int code = sqlite3_open_v2(path, &s->db, flags, NULL);
        rc = code == SQLITE_OK ? setup(s, err) : store_fail(s, code, err);
    }
    if (rc == 0)
        *ret = s;
    else
        store_close(s);
    return rc;
}

void store_close(store *s)
{
    if (!s) return;
    /* Who interrupted it meant its statements: a new one ends that, and closing can put the log into the
     * file. */
    if (s->db) sqlite3_exec(s->db, "SELECT 1", NULL, NULL, NULL);
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}

int store_begin(store *s, bool write, shoal_err *err)
{
    return store_run(s, write ? "BEGIN IMMEDIATE" : "BEGIN", err);
}

int store_commit(store *s, shoal_err *err)
{
    int rc = store_run(s, "COMMIT", err);
    if (rc != 0) store_rollback(s);
    return rc;
}

void store_rollback(store *s)
{
    if (!sqlite3_get_autocommit(s->db)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- collections ----------------------------------------------------------------------------------------
 */

bool store_name_is_fine(const char *name)
{
    static const char ALLOWED[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(name);
    return n >= 1 && n <= STORE_NAME_MAX && *name != '.' && strspn(name, ALLOWED) == n;
}

static int create_words(store *s, int64_t id, shoal_err *err)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "CREATE VIRTUAL TABLE words_%lld USING fts5(title, text, content='pieces', content_rowid='id',"
             " tokenize='unicode61 remove_diacritics 2');"
             "CREATE VIRTUAL TABLE vocabulary_%lld USING fts5vocab('words_%lld', 'row')",
             (long long)id, (long long)id, (long long)id);
    return store_run(s, sql, err);
}

static int insert_collection(store *s, store_collection *c, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(
        s, &st, err,
        "INSERT INTO collections(name, title, metadata, model, digest, dims, piece_bytes, created,"
        " revision, n_removed, n_documents, n_pieces, n_bytes)"
        " VALUES(?1, ?2, ?3, ?4, '', 0, ?5, ?6, 1, 0, 0, 0, 0)");
    if (rc != 0) return rc;
    store_bind_text(st, 1, c->name);
    store_bind_text(st, 2, c->title);
    store_bind_text(st, 3, c->metadata);
    store_bind_text(st, 4, c->model);
    sqlite3_bind_int64(st, 5, c->piece_bytes);
    sqlite3_bind_int64(st, 6, c->created);
    rc = sqlite3_step(st);
    bool taken = rc == SQLITE_CONSTRAINT_UNIQUE;
    rc = rc == SQLITE_DONE ? 0
         : taken           ? err_set(err, SHOAL_EINVALID, "there is a collection '%s' already", c->name)
                           : store_fail(s, rc, err);
    sqlite3_finalize(st);
    c->id = sqlite3_last_insert_rowid(s->db);
    return rc;
}

int store_create(store *s, store_collection *c, shoal_err *err)
{
    if (!store_name_is_fine(c->name))
        return err_set(
            err, SHOAL_EINVALID,
            "a collection's name has 1 to %d letters, digits, '.', '_' or '-', and no dot in front",
            STORE_NAME_MAX);
    bool own = sqlite3_get_autocommit(s->db);
    int rc = own ? store_begin(s, true, err) : 0;
    if (rc == 0) rc = insert_collection(s, c, err);
    if (rc == 0) rc = create_words(s, c->id, err);
    if (rc == 0 && own) return store_commit(s, err);
    if (own) store_rollback(s);
    return rc;
}

#define COLLECTION_COLUMNS                                                                               \
    "SELECT id, name, title, metadata, model, digest, dims, piece_bytes, created, revision, n_removed, " \
    "n_documents,"                                                                                       \
    " n_pieces, n_bytes FROM collections "

static int read_collection(sqlite3_stmt *st, arena *mem, store_collection *ret, shoal_err *err)
{
    *ret = (store_collection){.id = sqlite3_column_int64(st, 0),
                              .title = store_text(st, 2, mem),
                              .metadata = store_text(st, 3, mem),
                              .model = store_text(st, 4, mem),
                              .digest = store_text(st, 5, mem),
                              .dims = (uint32_t)sqlite3_column_int64(st, 6),
                              .piece_bytes = (uint32_t)sqlite3_column_int64(st, 7),
                              .created = sqlite3_column_int64(st, 8),
                              .revision = sqlite3_column_int64(st, 9),
                              .n_removed = sqlite3_column_int64(st, 10),
                              .n_documents = sqlite3_column_int64(st, 11),
                              .n_pieces = sqlite3_column_int64(st, 12),
                              .n_bytes = sqlite3_column_int64(st, 13)};
    const char *name = (const char *)sqlite3_column_text(st, 1);
    if (!name || !ret->title || !ret->metadata || !ret->model || !ret->digest) return err_nomem(err);
    snprintf(ret->name, sizeof ret->name, "%s", name);
    return 0;
}

int store_find(store *s, const char *name, arena *mem, store_collection *ret, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, COLLECTION_COLUMNS "WHERE name = ?1");
    if (rc != 0) return rc;
    store_bind_text(st, 1, name);
    rc = store_step(s, st, err);
    if (rc == 1)
        rc = read_collection(st, mem, ret, err);
    else if (rc == 0)
        rc = err_set(err, SHOAL_ENOTFOUND, "there is no collection '%.64s'", name);
    sqlite3_finalize(st);
    return rc;
}

int store_each(store *s, int (*fn)(void *user, const store_collection *c), void *user, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, COLLECTION_COLUMNS "ORDER BY name"), more = 0;
    while (rc == 0 && (more = store_step(s, st, err)) == 1) {
        store_collection c;
        arena *mem = arena_new(0);
        rc = mem ? read_collection(st, mem, &c, err) : err_nomem(err);
        if (rc == 0) rc = fn(user, &c);
        arena_free(mem);
    }
    sqlite3_finalize(st);
    return rc == 0 && more < 0 ? more : rc;
}

static int delete_all_of(store *s, int64_t id, shoal_err *err)
{
    static const char *const PARTS[] = {
        "DELETE FROM pieces WHERE document IN (SELECT id FROM documents WHERE collection = %lld)",
        "DELETE FROM vectors WHERE document IN (SELECT id FROM documents WHERE collection = %lld)",
        "DELETE FROM documents WHERE collection = %lld",
        "DROP TABLE vocabulary_%lld",
        "DROP TABLE words_%lld",
        "DELETE FROM collections WHERE id = %lld",
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof PARTS / sizeof *PARTS; i++) {
        char sql[128];
        snprintf(sql, sizeof sql, PARTS[i], (long long)id);
        rc = store_run(s, sql, err);
    }
    return rc;
}

int store_delete(store *s, const char *name, shoal_err *err)
{
    store_collection c;
    arena *mem = arena_new(0);
    bool own = sqlite3_get_autocommit(s->db);
    int rc = !mem ? err_nomem(err) : own ? store_begin(s, true, err) : 0;
    if (rc == 0) rc = store_find(s, name, mem, &c, err);
    if (rc == 0) rc = delete_all_of(s, c.id, err);
    if (rc == 0 && own)
        rc = store_commit(s, err);
    else if (own)
        store_rollback(s);
    arena_free(mem);
    return rc;
}
