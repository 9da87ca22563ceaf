/* store.c: opening, statements and collections; see store.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/name.h"
#include "retrieve/store_impl.h"

#define COLLECTION_TABLE                                                                                   \
    "(id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, shared INTEGER NOT NULL, name TEXT NOT "  \
    "NULL, title TEXT NOT NULL, metadata TEXT NOT NULL, model TEXT NOT NULL, digest TEXT NOT NULL, dims "  \
    "INTEGER NOT NULL, piece_bytes INTEGER NOT NULL, created INTEGER NOT NULL, revision INTEGER NOT NULL," \
    " n_removed INTEGER NOT NULL, n_documents INTEGER NOT NULL, n_pieces INTEGER NOT NULL, n_bytes "       \
    "INTEGER NOT NULL, UNIQUE(owner, name));"
#define COLLECTION_INDEX "CREATE UNIQUE INDEX shared_names ON collections(name) WHERE shared = 1;"

#define BATCH_TABLES                                                                                        \
    "CREATE TABLE batches(id INTEGER PRIMARY KEY, dialect INTEGER NOT NULL, status INTEGER NOT NULL, "      \
    "owner TEXT NOT NULL, key TEXT NOT NULL, endpoint TEXT NOT NULL, window TEXT NOT NULL, metadata TEXT "  \
    "NOT NULL, errors TEXT NOT NULL DEFAULT '', input INTEGER NOT NULL, output INTEGER NOT NULL DEFAULT "   \
    "0, error INTEGER NOT NULL DEFAULT 0, expires INTEGER NOT NULL, keep_s INTEGER NOT NULL, n_lines "      \
    "INTEGER NOT NULL DEFAULT 0, n_completed INTEGER NOT NULL DEFAULT 0, n_failed INTEGER NOT NULL "        \
    "DEFAULT 0, n_bytes INTEGER NOT NULL DEFAULT 0, n_missing INTEGER NOT NULL DEFAULT 0, at0 INTEGER NOT " \
    "NULL, at1 INTEGER NOT NULL DEFAULT 0,"                                                                 \
    " at2 INTEGER NOT NULL DEFAULT 0, at3 INTEGER NOT NULL DEFAULT 0, at4 INTEGER NOT NULL DEFAULT 0, at5"  \
    " INTEGER NOT NULL DEFAULT 0, at6 INTEGER NOT NULL DEFAULT 0, at7 INTEGER NOT NULL DEFAULT 0);"         \
    "CREATE TABLE batch_lines(batch INTEGER NOT NULL, n INTEGER NOT NULL, start INTEGER NOT NULL, n_bytes"  \
    " INTEGER NOT NULL, custom_id TEXT NOT NULL, state INTEGER NOT NULL DEFAULT 0, answer BLOB,"            \
    " UNIQUE(batch, n));"

/* What files take, by owner. In `files` the owner stands behind the content, so to find one's files there is a walk over the
 * pages of all. */
#define FILE_SIZES                                                                                         \
    "CREATE TABLE file_sizes(owner TEXT NOT NULL, purpose TEXT NOT NULL, file INTEGER NOT NULL, n_bytes "  \
    "INTEGER NOT NULL, PRIMARY KEY(owner, purpose, file)) WITHOUT ROWID;"                                  \
    "CREATE TRIGGER file_comes AFTER INSERT ON files BEGIN INSERT INTO file_sizes VALUES(new.owner, "      \
    "new.purpose, new.id, length(new.content)); END;"                                                      \
    "CREATE TRIGGER file_goes AFTER DELETE ON files BEGIN DELETE FROM file_sizes WHERE owner = old.owner " \
    "AND purpose = old.purpose AND file = old.id; END;"

static const char SCHEMA[] =
    "CREATE TABLE collections" COLLECTION_TABLE COLLECTION_INDEX
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
    " created INTEGER NOT NULL, content BLOB NOT NULL, owner TEXT NOT NULL DEFAULT '', expires INTEGER NOT "
    "NULL DEFAULT 0);" BATCH_TABLES FILE_SIZES;

/* Version 1 knew no owners: what it holds is shared. Version 2 knew no batches, version 3 not what files take. */
static const char *const UPGRADES[STORE_VERSION - 1] = {
    "CREATE TABLE collections_2" COLLECTION_TABLE
    "INSERT INTO collections_2 SELECT id, '', 1, name, title, metadata, model, digest, dims, piece_bytes,"
    " created, revision, n_removed, n_documents, n_pieces, n_bytes FROM collections;"
    "DROP TABLE collections;"
    "ALTER TABLE collections_2 RENAME TO collections;" COLLECTION_INDEX
    "ALTER TABLE files ADD COLUMN owner TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE files ADD COLUMN expires INTEGER NOT NULL DEFAULT 0;" BATCH_TABLES,
    FILE_SIZES "INSERT INTO file_sizes SELECT owner, purpose, id, length(content) FROM files;",
};

/* ---- errors and statements -------------------------------------------------------------------------- */

int store_prepare(store *s, sqlite3_stmt **ret, shoal_err *err, const char *sql, ...)
{
    *ret = NULL;
    va_list ap;
    va_start(ap, sql);
    char *text = sqlite3_vmprintf(sql, ap);
    va_end(ap);
    if (!text) return err_nomem(err);
    int rc = sqlite3_prepare_v2(s->file.db, text, -1, ret, NULL);
    sqlite3_free(text);
    return rc == SQLITE_OK ? 0 : database_fail(&s->file, rc, err);
}

int store_step(store *s, sqlite3_stmt *st, shoal_err *err)
{
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) return 1;
    return rc == SQLITE_DONE ? 0 : database_fail(&s->file, rc, err);
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

/* ---- life ------------------------------------------------------------------------------------------- */

enum { PROGRESS_OPS = 2000, BUSY_STEP_MS = 20 };

/* SQLite asks every so many instructions of a statement; not 0 ends it. */
static int store_on_progress(void *user)
{
    return steps_cancelled(((store *)user)->steps);
}

/* Another process writes: wait for it as long as anybody wants the result. */
static int on_busy(void *user, int n_before)
{
    if (store_on_progress(user) || n_before >= DATABASE_BUSY_MS / BUSY_STEP_MS) return 0;
    sqlite3_sleep(BUSY_STEP_MS);
    return 1;
}

void store_act_for(store *s, const char *owner)
{
    s->owner = owner;
}

void store_count(store *s, steps *steps)
{
    s->steps = steps;
}

int store_open(store **ret, const char *path, shoal_err *err)
{
    const database_options o = {
        .path = path, .schema = SCHEMA, .version = STORE_VERSION, .upgrades = UPGRADES, .lost = STORE_LOST};
    store *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->owner = "";
    int rc = database_open(&s->file, &o, err);
    if (rc != 0) {
        store_close(s);
        return rc;
    }
    sqlite3_progress_handler(s->file.db, PROGRESS_OPS, store_on_progress, s);
    sqlite3_busy_handler(s->file.db, on_busy, s);
    *ret = s;
    return 0;
}

bool store_has_moved(const store *s)
{
    return database_has_moved(&s->file);
}

void store_close(store *s)
{
    if (!s) return;
    /* Who interrupted it meant its statements: a new one ends that, and closing can put the log into the
     * file. */
    if (s->file.db) sqlite3_exec(s->file.db, "SELECT 1", NULL, NULL, NULL);
    database_close(&s->file);
    free(s);
}

int store_begin(store *s, bool write, shoal_err *err)
{
    return database_begin(&s->file, write, err);
}

int store_commit(store *s, shoal_err *err)
{
    return database_commit(&s->file, err);
}

void store_rollback(store *s)
{
    database_rollback(&s->file);
}

/* ---- collections ------------------------------------------------------------------------------------ */

static int create_words(store *s, int64_t id, shoal_err *err)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "CREATE VIRTUAL TABLE words_%lld USING fts5(title, text, content='pieces', content_rowid='id',"
             " tokenize='unicode61 remove_diacritics 2');"
             "CREATE VIRTUAL TABLE vocabulary_%lld USING fts5vocab('words_%lld', 'row')",
             (long long)id, (long long)id, (long long)id);
    return database_run(&s->file, sql, err);
}

static int insert_collection(store *s, store_collection *c, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(
        s, &st, err,
        "INSERT INTO collections(name, title, metadata, model, digest, dims, piece_bytes, created,"
        " revision, n_removed, n_documents, n_pieces, n_bytes, owner, shared)"
        " VALUES(?1, ?2, ?3, ?4, '', 0, ?5, ?6, 1, 0, 0, 0, 0, ?7, ?8)");
    if (rc != 0) return rc;
    store_bind_text(st, 1, c->name);
    store_bind_text(st, 2, c->title);
    store_bind_text(st, 3, c->metadata);
    store_bind_text(st, 4, c->model);
    sqlite3_bind_int64(st, 5, c->piece_bytes);
    sqlite3_bind_int64(st, 6, c->created);
    store_bind_text(st, 7, s->owner);
    sqlite3_bind_int64(st, 8, c->shared);
    rc = sqlite3_step(st);
    bool taken = rc == SQLITE_CONSTRAINT_UNIQUE;
    rc = rc == SQLITE_DONE ? 0
         : taken           ? err_set(err, SHOAL_EINVALID, "there is a collection '%s' already", c->name)
                           : database_fail(&s->file, rc, err);
    sqlite3_finalize(st);
    c->id = sqlite3_last_insert_rowid(s->file.db);
    return rc;
}

static int check_number(store *s, int64_t most, shoal_err *err)
{
    sqlite3_stmt *st;
    if (most == 0) return 0;
    int rc = store_prepare(s, &st, err, "SELECT count(*) FROM collections WHERE owner = ?1");
    if (rc != 0) return rc;
    store_bind_text(st, 1, s->owner);
    rc = store_step(s, st, err);
    int64_t n = rc == 1 ? sqlite3_column_int64(st, 0) : 0;
    sqlite3_finalize(st);
    if (rc < 0) return rc;
    return n < most ? 0
                    : err_set(err, SHOAL_ELIMIT,
                              "you have %lld collections, which is the limit (retrieval.max_collections); "
                              "delete some, or "
                              "raise the limit",
                              (long long)n);
}

int store_create(store *s, store_collection *c, int64_t most, shoal_err *err)
{
    if (!name_is_fine(c->name, strlen(c->name)))
        return err_set(err, SHOAL_EINVALID, "a collection's name: '%.64s' " NAME_RULE, c->name);
    bool own = sqlite3_get_autocommit(s->file.db);
    int rc = own ? store_begin(s, true, err) : 0;
    c->own = true;
    c->owned = *s->owner;
    c->shared |= !c->owned;
    if (rc == 0) rc = check_number(s, most, err);
    if (rc == 0) rc = insert_collection(s, c, err);
    if (rc == 0) rc = create_words(s, c->id, err);
    if (rc == 0 && own) return store_commit(s, err);
    if (own) store_rollback(s);
    return rc;
}

#define COLLECTION_COLUMNS                                                                               \
    "SELECT id, name, title, metadata, model, digest, dims, piece_bytes, created, revision, n_removed, " \
    "n_documents,"                                                                                       \
    " n_pieces, n_bytes, owner <> '', owner IN ('', ?2), shared FROM collections "

/* ?2: who asks. His own hides a shared one of the same name. */
#define VISIBLE                                                                                     \
    "(owner = ?2 OR (shared = 1 AND NOT EXISTS (SELECT 1 FROM collections m WHERE m.owner = ?2 AND" \
    " m.name = collections.name)))"

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
                              .n_bytes = sqlite3_column_int64(st, 13),
                              .owned = sqlite3_column_int(st, 14),
                              .own = sqlite3_column_int(st, 15),
                              .shared = sqlite3_column_int(st, 16)};
    const char *name = (const char *)sqlite3_column_text(st, 1);
    if (!name || !ret->title || !ret->metadata || !ret->model || !ret->digest) return err_nomem(err);
    snprintf(ret->name, sizeof ret->name, "%s", name);
    return 0;
}

int store_find(store *s, const char *name, arena *mem, store_collection *ret, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, COLLECTION_COLUMNS "WHERE name = ?1 AND " VISIBLE);
    if (rc != 0) return rc;
    store_bind_text(st, 1, name);
    store_bind_text(st, 2, s->owner);
    rc = store_step(s, st, err);
    if (rc == 1)
        rc = read_collection(st, mem, ret, err);
    else if (rc == 0)
        rc = err_set(err, SHOAL_ENOTFOUND, "there is no collection '%.64s'", name);
    sqlite3_finalize(st);
    return rc;
}

int store_find_own(store *s, const char *name, arena *mem, store_collection *ret, shoal_err *err)
{
    int rc = store_find(s, name, mem, ret, err);
    if (rc != 0 || ret->own) return rc;
    return err_set(
        err, SHOAL_EAUTH,
        "the collection '%s' belongs to another API key, which shares it: you may search it, not change it",
        ret->name);
}

int store_each(store *s, const char *after, size_t most, int (*fn)(void *user, const store_collection *c),
               void *user, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err,
                           COLLECTION_COLUMNS "WHERE name > ?1 AND " VISIBLE " ORDER BY name LIMIT ?3"),
        more = 0;
    if (rc != 0) return rc;
    store_bind_text(st, 1, after);
    store_bind_text(st, 2, s->owner);
    sqlite3_bind_int64(st, 3, (sqlite3_int64)most);
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
        rc = database_run(&s->file, sql, err);
    }
    return rc;
}

static int update_collection(store *s, int64_t id, const char *title, const char *metadata, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc =
        store_prepare(s, &st, err,
                      "UPDATE collections SET title = COALESCE(?2, title), metadata = COALESCE(?3, metadata)"
                      " WHERE id = ?1");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    if (title) store_bind_text(st, 2, title);
    if (metadata) store_bind_text(st, 3, metadata);
    return store_finish(s, st, rc, err);
}

int store_change(store *s, const char *name, const char *title, const char *metadata, shoal_err *err)
{
    store_collection c;
    arena *mem = arena_new(0);
    int rc = mem ? store_begin(s, true, err) : err_nomem(err);
    if (rc == 0) rc = store_find_own(s, name, mem, &c, err);
    if (rc == 0) rc = update_collection(s, c.id, title, metadata, err);
    if (rc == 0)
        rc = store_commit(s, err);
    else
        store_rollback(s);
    arena_free(mem);
    return rc;
}

int store_delete(store *s, const char *name, shoal_err *err)
{
    store_collection c;
    arena *mem = arena_new(0);
    bool own = sqlite3_get_autocommit(s->file.db);
    int rc = !mem ? err_nomem(err) : own ? store_begin(s, true, err) : 0;
    if (rc == 0) rc = store_find_own(s, name, mem, &c, err);
    if (rc == 0) rc = delete_all_of(s, c.id, err);
    if (rc == 0 && own)
        rc = store_commit(s, err);
    else if (own)
        store_rollback(s);
    arena_free(mem);
    return rc;
}
