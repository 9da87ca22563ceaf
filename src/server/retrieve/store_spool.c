/* store_spool.c: bytes that come piece by piece, kept in a nameless file until all are there. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "retrieve/store_impl.h"

enum { COPY_BYTES = 64 << 10 };

/* Beside the store, where there is room for what the store may hold. */
int store_spool_open(const store *s, partial *ret, shoal_err *err)
{
    char *folder = file_folder(s->file.path);
    int rc = folder ? partial_open_nameless(ret, folder, "the uploaded file", err) : err_nomem(err);
    free(folder);
    return rc;
}

static int store_spool_copy(const store *s, sqlite3_blob *to, int fd, int64_t n_bytes, shoal_err *err)
{
    char *some = malloc(COPY_BYTES);
    if (!some) return err_nomem(err);
    int rc = 0;
    for (int64_t at = 0; rc == 0 && at < n_bytes;) {
        ssize_t k = pread(fd, some, COPY_BYTES, at);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0)
            rc = err_set(err, SHOAL_EIO, "the uploaded file cannot be read again");
        else if (sqlite3_blob_write(to, some, (int)k, (int)at) != SQLITE_OK)
            rc = err_set(err, SHOAL_EIO, "the uploaded file cannot be kept: the store does not take it");
        else
            rc = steps_add(s->steps, (size_t)k, err);
        at += k > 0 ? k : 0;
    }
    free(some);
    return rc;
}

/* A row that is longer than SQLite takes is refused here, where it is known how long it is. */
static int bind_content(const store *s, sqlite3_stmt *st, int64_t n_bytes, shoal_err *err)
{
    int rc = sqlite3_bind_zeroblob64(st, 4, (sqlite3_uint64)n_bytes);
    if (rc == SQLITE_NOMEM) return err_nomem(err);
    if (rc == SQLITE_OK) return 0;
    return err_set(err, SHOAL_ELIMIT, "the file has %lld bytes; %d is what the store may hold of one",
                   (long long)n_bytes, sqlite3_limit(s->file.db, SQLITE_LIMIT_LENGTH, -1));
}

int64_t store_draw_id(void)
{
    uint64_t id;
    rng_bytes(&id, sizeof id);
    id &= INT64_MAX;
    return id ? (int64_t)id : 1;
}

static int store_spool_put(store *s, store_file *f, int fd, shoal_err *err)
{
    sqlite3_stmt *st;
    sqlite3_blob *to = NULL;
    int rc = store_prepare(s, &st, err,
                           "INSERT INTO files(name, purpose, created, content, id, owner, expires)"
                           " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    if (rc == 0) {
        sqlite3_bind_int64(st, 5, store_draw_id());
        store_bind_text(st, 6, s->owner);
        store_bind_text(st, 1, f->name);
        store_bind_text(st, 2, f->purpose);
        sqlite3_bind_int64(st, 3, f->created);
        sqlite3_bind_int64(st, 7, f->expires);
        rc = bind_content(s, st, f->n_bytes, err);
    }
    rc = store_finish(s, st, rc, err);
    if (rc != 0) return rc;
    f->id = sqlite3_last_insert_rowid(s->file.db);
    if (f->n_bytes == 0) return 0;
    if (sqlite3_blob_open(s->file.db, "main", "files", "content", f->id, 1, &to) != SQLITE_OK)
        rc = err_set(err, SHOAL_EIO, "%s: %s", s->file.path, sqlite3_errmsg(s->file.db));
    if (rc == 0) rc = store_spool_copy(s, to, fd, f->n_bytes, err);
    if (sqlite3_blob_close(to) != SQLITE_OK && rc == 0)
        rc = err_set(err, SHOAL_EIO, "%s: %s", s->file.path, sqlite3_errmsg(s->file.db));
    return rc;
}

int store_file_put_spool(store *s, store_file *f, int fd, shoal_err *err)
{
    int rc = store_begin(s, true, err);
    if (rc == 0) rc = store_spool_put(s, f, fd, err);
    if (rc == 0) rc = store_commit(s, err);
    if (rc != 0) store_rollback(s);
    return rc;
}
