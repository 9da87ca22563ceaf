/* store_file.c: files that were uploaded, and wait to become documents; see store.h. */
#include "retrieve/store_impl.h"

/* ?2: who asks. */
#define VISIBLE      "owner IN ('', ?2)"
#define IN_TIME      "(expires = 0 OR expires > CAST(strftime('%%s', 'now') AS INTEGER))"
#define FILE_COLUMNS "SELECT id, name, purpose, created, length(content), expires FROM files "

static int store_file_read_file(sqlite3_stmt *st, arena *mem, store_file *ret, shoal_err *err)
{
    *ret = (store_file){.id = sqlite3_column_int64(st, 0),
                        .name = store_text(st, 1, mem),
                        .purpose = store_text(st, 2, mem),
                        .created = sqlite3_column_int64(st, 3),
                        .n_bytes = sqlite3_column_int64(st, 4),
                        .expires = sqlite3_column_int64(st, 5)};
    return ret->name && ret->purpose ? 0 : err_nomem(err);
}

static int read_content(store *s, int64_t id, arena *mem, const char **ret, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, "SELECT content FROM files WHERE id = ?1");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    rc = store_step(s, st, err);
    if (rc == 1) {
        const char *content = sqlite3_column_blob(st, 0);
        *ret = arena_strndup(mem, content ? content : "", (size_t)sqlite3_column_bytes(st, 0));
        rc = *ret ? 0 : err_nomem(err);
    }
    sqlite3_finalize(st);
    return rc;
}

int store_file_put_bytes(store *s, store_file *f, const void *bytes, size_t n, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err,
                           "INSERT INTO files(name, purpose, created, content, id, owner, expires)"
                           " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    if (rc != 0) return rc;
    int64_t id = store_draw_id();
    store_bind_text(st, 1, f->name);
    store_bind_text(st, 2, f->purpose);
    sqlite3_bind_int64(st, 3, f->created);
    int code = sqlite3_bind_blob64(st, 4, bytes, n, SQLITE_STATIC);
    sqlite3_bind_int64(st, 5, id);
    store_bind_text(st, 6, s->owner);
    sqlite3_bind_int64(st, 7, f->expires);
    rc = store_finish(s, st, code == SQLITE_OK ? 0 : database_fail(&s->file, code, err), err);
    if (rc != 0) return rc;
    f->id = id;
    f->n_bytes = (int64_t)n;
    return 0;
}

static int no_such_file(shoal_err *err)
{
    return err_set(err, SHOAL_ENOTFOUND, "there is no such file");
}

int store_file_get(store *s, int64_t id, arena *mem, store_file *ret, const char **ret_content,
                   shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, FILE_COLUMNS "WHERE id = ?1 AND " VISIBLE " AND " IN_TIME);
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    store_bind_text(st, 2, s->owner);
    rc = store_step(s, st, err);
    if (rc == 1)
        rc = store_file_read_file(st, mem, ret, err);
    else if (rc == 0)
        rc = no_such_file(err);
    sqlite3_finalize(st);
    return rc == 0 && ret_content ? read_content(s, id, mem, ret_content, err) : rc;
}

/* Ids are drawn at random, so files are in the order of their time, and of ids within a second. */
int store_files(store *s, int64_t after, const char *purpose, size_t most,
                int (*fn)(void *user, const store_file *f), void *user, shoal_err *err)
{
    sqlite3_stmt *st;
    store_file from = {0};
    arena *named = arena_new(0);
    int rc = !named  ? err_nomem(err)
             : after ? store_file_get(s, after, named, &from, NULL, err)
                     : 0,
        more = 0;
    int64_t created = from.created;
    arena_free(named);
    if (rc == 0)
        rc = store_prepare(s, &st, err,
                           FILE_COLUMNS "WHERE (?1 = 0 OR (created, id) > (?3, ?1)) AND " VISIBLE
                                        " AND " IN_TIME " AND (?5 IS NULL OR purpose = ?5)"
                                        " ORDER BY created, id LIMIT ?4");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, after);
    store_bind_text(st, 2, s->owner);
    sqlite3_bind_int64(st, 3, created);
    sqlite3_bind_int64(st, 4, (sqlite3_int64)most);
    if (purpose) store_bind_text(st, 5, purpose);
    while (rc == 0 && (more = store_step(s, st, err)) == 1) {
        store_file f;
        arena *mem = arena_new(0);
        rc = mem ? store_file_read_file(st, mem, &f, err) : err_nomem(err);
        if (rc == 0) rc = fn(user, &f);
        arena_free(mem);
    }
    sqlite3_finalize(st);
    return rc == 0 && more < 0 ? more : rc;
}

/* Of files that he sees only: of others he learns nothing. */
static int refuse_used(store *s, int64_t id, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(
        s, &st, err, "SELECT id FROM batches WHERE input = ?1 AND status NOT IN (3, 4, 5, 7) AND " VISIBLE);
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    store_bind_text(st, 2, s->owner);
    rc = store_step(s, st, err);
    if (rc == 1)
        rc = err_set(err, SHOAL_EINVALID,
                     "the batch batch_%lld reads this file: cancel it, or wait for its end",
                     (long long)sqlite3_column_int64(st, 0));
    sqlite3_finalize(st);
    return rc;
}

int store_file_delete(store *s, int64_t id, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = refuse_used(s, id, err);
    if (rc == 0)
        rc = store_prepare(s, &st, err, "DELETE FROM files WHERE id = ?1 AND " VISIBLE " RETURNING id");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    store_bind_text(st, 2, s->owner);
    rc = store_step(s, st, err);
    if (rc == 1)
        rc = store_finish(s, st, 0, err);
    else
        sqlite3_finalize(st), rc = rc == 0 ? no_such_file(err) : rc;
    return rc;
}
