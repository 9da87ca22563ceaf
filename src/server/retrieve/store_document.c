/* store_document.c: documents come, are replaced and go; see store.h. */
#include <string.h>

#include "retrieve/store_impl.h"

/* ---- putting ---------------------------------------------------------------------------------------- */

static int insert_document(store *s, const store_collection *c, store_document *d, const store_content *what,
                           shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(
        s, &st, err,
        "INSERT INTO documents(collection, source, type, digest, metadata, n_bytes, n_pieces, created,"
        " file) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    if (rc == 0) {
        sqlite3_bind_int64(st, 1, c->id);
        store_bind_text(st, 2, d->source);
        store_bind_text(st, 3, d->type);
        store_bind_text(st, 4, d->digest);
        store_bind_text(st, 5, d->metadata);
        sqlite3_bind_int64(st, 6, d->n_bytes);
        sqlite3_bind_int64(st, 7, (sqlite3_int64)what->cut->n);
        sqlite3_bind_int64(st, 8, d->created);
        sqlite3_bind_int64(st, 9, d->file);
    }
    rc = store_finish(s, st, rc, err);
    d->id = sqlite3_last_insert_rowid(s->file.db);
    d->n_pieces = (int64_t)what->cut->n;
    return rc;
}

static int insert_pieces(store *s, int64_t document, const store_content *what, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err,
                           "INSERT INTO pieces(document, ordinal, start, end, line, title, text)"
                           " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    for (size_t i = 0; rc == 0 && i < what->cut->n; i++) {
        const piece *p = &what->cut->v[i];
        sqlite3_bind_int64(st, 1, document);
        sqlite3_bind_int64(st, 2, (sqlite3_int64)i);
        sqlite3_bind_int64(st, 3, (sqlite3_int64)p->start);
        sqlite3_bind_int64(st, 4, (sqlite3_int64)p->end);
        sqlite3_bind_int64(st, 5, (sqlite3_int64)p->line);
        store_bind_text(st, 6, p->title);
        sqlite3_bind_text(st, 7, what->text + p->start, (int)(p->end - p->start), SQLITE_STATIC);
        rc = steps_add(s->steps, p->end - p->start, err);
        if (rc == 0) rc = store_step(s, st, err);
        sqlite3_reset(st);
    }
    sqlite3_finalize(st);
    return rc;
}

static int insert_words(store *s, int64_t collection, int64_t document, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err,
                           "INSERT INTO words_%lld(rowid, title, text) SELECT id, title, text FROM pieces"
                           " WHERE document = ?1",
                           (long long)collection);
    if (rc == 0) sqlite3_bind_int64(st, 1, document);
    return store_finish(s, st, rc, err);
}

/* Scales of all pieces, then codes of all. */
static int insert_vectors(store *s, int64_t document, const store_content *what, shoal_err *err)
{
    sqlite3_stmt *st;
    buf blob = {0};
    size_t n = what->cut->n;
    if (!what->scales || n == 0) return 0;
    buf_append(&blob, what->scales, n * sizeof *what->scales);
    buf_append(&blob, what->codes, n * what->dims);
    if (blob.failed) {
        buf_done(&blob);
        return err_nomem(err);
    }
    int rc = store_prepare(s, &st, err, "INSERT INTO vectors(document, n, codes) VALUES(?1, ?2, ?3)");
    if (rc == 0) {
        sqlite3_bind_int64(st, 1, document);
        sqlite3_bind_int64(st, 2, (sqlite3_int64)n);
        sqlite3_bind_blob64(st, 3, blob.data, blob.len, SQLITE_STATIC);
    }
    rc = store_finish(s, st, rc, err);
    buf_done(&blob);
    return rc;
}

/* What the collection counts, and which model it is embedded by. */
static int store_document_count(store *s, int64_t collection, int64_t documents, int64_t n_pieces,
                                int64_t bytes, int64_t removed, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err,
                           "UPDATE collections SET revision = revision + 1, n_documents = n_documents + ?2,"
                           " n_pieces = n_pieces + ?3, n_bytes = n_bytes + ?4, n_removed = n_removed + ?5"
                           " WHERE id = ?1");
    if (rc == 0) {
        sqlite3_bind_int64(st, 1, collection);
        sqlite3_bind_int64(st, 2, documents);
        sqlite3_bind_int64(st, 3, n_pieces);
        sqlite3_bind_int64(st, 4, bytes);
        sqlite3_bind_int64(st, 5, removed);
    }
    return store_finish(s, st, rc, err);
}

/* The collection takes the vectors' model, or has it. */
static int match_model(store *s, const store_collection *c, const store_content *what, shoal_err *err)
{
    sqlite3_stmt *st;
    if (!what->scales || what->cut->n == 0) return 0;
    int rc = store_prepare(s, &st, err,
                           "UPDATE collections SET digest = ?2, dims = ?3 WHERE id = ?1 AND"
                           " (dims = 0 OR (digest = ?2 AND dims = ?3)) RETURNING id");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, c->id);
    store_bind_text(st, 2, what->model_digest);
    sqlite3_bind_int64(st, 3, what->dims);
    rc = store_step(s, st, err);
    sqlite3_finalize(st);
    if (rc == 1) return 0;
    return rc < 0
               ? rc
               : err_set(
                     err, SHOAL_EDIGEST,
                     "'%s' holds vectors of another file of %s: what they mean cannot be compared; delete the"
                     " collection and add its documents again",
                     c->name, c->model);
}

static int insert_all(store *s, const store_collection *c, store_document *d, const store_content *what,
                      shoal_err *err)
{
    int rc = match_model(s, c, what, err);
    if (rc == 0) rc = insert_document(s, c, d, what, err);
    if (rc == 0) rc = insert_pieces(s, d->id, what, err);
    if (rc == 0) rc = insert_words(s, c->id, d->id, err);
    if (rc == 0) rc = insert_vectors(s, d->id, what, err);
    return rc == 0 ? store_document_count(s, c->id, 1, (int64_t)what->cut->n, d->n_bytes, 0, err) : rc;
}

int store_put(store *s, const store_collection *c, store_document *d, const store_content *what,
              bool *ret_replaced, shoal_err *err)
{
    store_document old;
    arena *mem = arena_new(0);
    if (!mem) return err_nomem(err);
    *ret_replaced = false;
    int rc = store_document_find(s, c->id, d->source, mem, &old, err);
    if (rc == 0) {
        *ret_replaced = true;
        rc = store_document_delete(s, c, old.id, err);
    } else if (rc == SHOAL_ENOTFOUND) {
        rc = 0;
    }
    if (rc == 0) rc = insert_all(s, c, d, what, err);
    arena_free(mem);
    return rc;
}

/* ---- finding ---------------------------------------------------------------------------------------- */

#define DOCUMENT_COLUMNS \
    "SELECT id, source, type, digest, metadata, n_bytes, n_pieces, created, file FROM documents "

static int read_document(sqlite3_stmt *st, arena *mem, store_document *ret, shoal_err *err)
{
    *ret = (store_document){.id = sqlite3_column_int64(st, 0),
                            .source = store_text(st, 1, mem),
                            .type = store_text(st, 2, mem),
                            .digest = store_text(st, 3, mem),
                            .metadata = store_text(st, 4, mem),
                            .n_bytes = sqlite3_column_int64(st, 5),
                            .n_pieces = sqlite3_column_int64(st, 6),
                            .created = sqlite3_column_int64(st, 7),
                            .file = sqlite3_column_int64(st, 8)};
    return ret->source && ret->type && ret->digest && ret->metadata ? 0 : err_nomem(err);
}

/* The one row of st, which is finalized. */
static int one_document(store *s, sqlite3_stmt *st, arena *mem, store_document *ret, shoal_err *err)
{
    int rc = store_step(s, st, err);
    if (rc == 1)
        rc = read_document(st, mem, ret, err);
    else if (rc == 0)
        rc = err_set(err, SHOAL_ENOTFOUND, "there is no such document in the collection");
    sqlite3_finalize(st);
    return rc;
}

int store_document_find(store *s, int64_t collection, const char *source, arena *mem, store_document *ret,
                        shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, DOCUMENT_COLUMNS "WHERE collection = ?1 AND source = ?2");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, collection);
    store_bind_text(st, 2, source);
    return one_document(s, st, mem, ret, err);
}

int store_document_get(store *s, int64_t collection, int64_t id, arena *mem, store_document *ret,
                       shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, DOCUMENT_COLUMNS "WHERE collection = ?1 AND id = ?2");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, collection);
    sqlite3_bind_int64(st, 2, id);
    return one_document(s, st, mem, ret, err);
}

int store_document_of_file(store *s, int64_t collection, int64_t file, arena *mem, store_document *ret,
                           shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, DOCUMENT_COLUMNS "WHERE collection = ?1 AND file = ?2");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, collection);
    sqlite3_bind_int64(st, 2, file);
    return one_document(s, st, mem, ret, err);
}

int store_documents(store *s, int64_t collection, int64_t after, size_t most,
                    int (*fn)(void *user, const store_document *d), void *user, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err,
                           DOCUMENT_COLUMNS "WHERE collection = ?1 AND id > ?2 ORDER BY id LIMIT ?3"),
        more = 0;
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, collection);
    sqlite3_bind_int64(st, 2, after);
    sqlite3_bind_int64(st, 3, (sqlite3_int64)most);
    while (rc == 0 && (more = store_step(s, st, err)) == 1) {
        store_document d;
        arena *mem = arena_new(0);
        rc = mem ? read_document(st, mem, &d, err) : err_nomem(err);
        if (rc == 0) rc = fn(user, &d);
        arena_free(mem);
    }
    sqlite3_finalize(st);
    return rc == 0 && more < 0 ? more : rc;
}

/* ---- going ------------------------------------------------------------------------------------------ */

/* A statement with the document's id in it. */
static int run_with(store *s, int64_t document, shoal_err *err, const char *sql, int64_t collection)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, sql, (long long)collection, (long long)collection);
    if (rc == 0) sqlite3_bind_int64(st, 1, document);
    return store_finish(s, st, rc, err);
}

static int delete_rows(store *s, int64_t collection, const store_document *d, shoal_err *err)
{
    int rc = run_with(s, d->id, err,
                      "INSERT INTO words_%lld(words_%lld, rowid, title, text)"
                      " SELECT 'delete', id, title, text FROM pieces WHERE document = ?1",
                      collection);
    if (rc == 0) rc = run_with(s, d->id, err, "DELETE FROM pieces WHERE document = ?1", 0);
    if (rc == 0) rc = run_with(s, d->id, err, "DELETE FROM vectors WHERE document = ?1", 0);
    if (rc == 0) rc = run_with(s, d->id, err, "DELETE FROM documents WHERE id = ?1", 0);
    return rc == 0 ? store_document_count(s, collection, -1, -d->n_pieces, -d->n_bytes, 1, err) : rc;
}

int store_document_change(store *s, const store_collection *c, int64_t id, const char *metadata,
                          shoal_err *err)
{
    sqlite3_stmt *st;
    int rc =
        store_prepare(s, &st, err, "UPDATE documents SET metadata = ?3 WHERE id = ?1 AND collection = ?2");
    if (rc == 0) {
        sqlite3_bind_int64(st, 1, id);
        sqlite3_bind_int64(st, 2, c->id);
        store_bind_text(st, 3, metadata);
    }
    rc = store_finish(s, st, rc, err);
    return rc == 0 ? store_document_count(s, c->id, 0, 0, 0, 0, err) : rc; /* a new revision */
}

int store_document_delete(store *s, const store_collection *c, int64_t id, shoal_err *err)
{
    store_document d;
    arena *mem = arena_new(0);
    bool own = sqlite3_get_autocommit(s->file.db);
    int rc = !mem ? err_nomem(err) : own ? store_begin(s, true, err) : 0;
    if (rc == 0) rc = store_document_get(s, c->id, id, mem, &d, err);
    if (rc == 0) rc = delete_rows(s, c->id, &d, err);
    if (rc == 0 && own)
        rc = store_commit(s, err);
    else if (own)
        store_rollback(s);
    arena_free(mem);
    return rc;
}
