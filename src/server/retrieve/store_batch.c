/* store_batch.c: batches in the store; see store_batch.h. */
#include "retrieve/store_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "retrieve/store_impl.h"

/* ?2: who asks. */
#define VISIBLE "owner IN ('', ?2)"
#define OPEN    "status NOT IN (3, 4, 5, 7)"
_Static_assert(BATCH_COMPLETED == 3 && BATCH_FAILED == 4 && BATCH_EXPIRED == 5 && BATCH_CANCELLED == 7,
               "OPEN names those that have ended");

#define COLUMNS                                                                                            \
    "SELECT id, dialect, status, owner, key, endpoint, window, metadata, errors, input, output, error,"    \
    " expires, keep_s, n_lines, n_completed, n_failed, n_bytes, n_missing, at0, at1, at2, at3, at4, at5, " \
    "at6, at7"                                                                                             \
    " FROM batches "
enum { FIRST_AT = 19 };
_Static_assert(BATCH_N_STATUS == 8, "a column each");

const char *batch_status_name(batch_status s)
{
    static const char *const NAMES[] = {
#define BATCH_NAME(e, name, column, ends) name,
        BATCH_STATUS_TABLE(BATCH_NAME)
#undef BATCH_NAME
    };
    return NAMES[s];
}

const char *batch_status_time(batch_status s)
{
    static const char *const NAMES[] = {
#define BATCH_TIME(e, name, column, ends) column,
        BATCH_STATUS_TABLE(BATCH_TIME)
#undef BATCH_TIME
    };
    return NAMES[s];
}

bool batch_status_ends(batch_status s)
{
    static const bool ENDS[] = {
#define BATCH_ENDS(e, name, column, ends) ends,
        BATCH_STATUS_TABLE(BATCH_ENDS)
#undef BATCH_ENDS
    };
    return ENDS[s];
}

/* ---- rows ----------------------------------------------------------------------------------------- */

static int read_batch(sqlite3_stmt *st, arena *mem, store_batch *ret, shoal_err *err)
{
    int64_t status = sqlite3_column_int64(st, 2);
    *ret = (store_batch){
        .id = sqlite3_column_int64(st, 0),
        .dialect = sqlite3_column_int64(st, 1) == BATCH_ANTHROPIC ? BATCH_ANTHROPIC : BATCH_OPENAI,
        .status = status >= 0 && status < BATCH_N_STATUS ? (batch_status)status : BATCH_FAILED,
        .owner = store_text(st, 3, mem),
        .key = store_text(st, 4, mem),
        .endpoint = store_text(st, 5, mem),
        .window = store_text(st, 6, mem),
        .metadata = store_text(st, 7, mem),
        .errors = store_text(st, 8, mem),
        .input = sqlite3_column_int64(st, 9),
        .output = sqlite3_column_int64(st, 10),
        .error = sqlite3_column_int64(st, 11),
        .expires = sqlite3_column_int64(st, 12),
        .keep_s = sqlite3_column_int64(st, 13),
        .n_lines = sqlite3_column_int64(st, 14),
        .n_completed = sqlite3_column_int64(st, 15),
        .n_failed = sqlite3_column_int64(st, 16),
        .n_bytes = sqlite3_column_int64(st, 17),
        .n_missing = sqlite3_column_int64(st, 18)};
    for (int i = 0; i < BATCH_N_STATUS; i++) ret->at[i] = sqlite3_column_int64(st, FIRST_AT + i);
    bool whole = ret->owner && ret->key && ret->endpoint && ret->window && ret->metadata && ret->errors;
    return whole ? 0 : err_nomem(err);
}

/* The one row of a statement that is bound; finalizes it. */
static int read_one(store *s, sqlite3_stmt *st, arena *mem, store_batch *ret, shoal_err *err)
{
    int rc = store_step(s, st, err);
    if (rc == 1)
        rc = read_batch(st, mem, ret, err);
    else if (rc == 0)
        rc = err_set(err, SHOAL_ENOTFOUND, "there is no such batch");
    sqlite3_finalize(st);
    return rc;
}

/* Every row; finalizes st. */
static int read_all(store *s, sqlite3_stmt *st, int (*fn)(void *user, const store_batch *b), void *user,
                    shoal_err *err)
{
    int rc = 0, more = 0;
    while (rc == 0 && (more = store_step(s, st, err)) == 1) {
        store_batch b;
        arena *mem = arena_new(0);
        rc = mem ? read_batch(st, mem, &b, err) : err_nomem(err);
        if (rc == 0) rc = fn(user, &b);
        arena_free(mem);
    }
    sqlite3_finalize(st);
    return rc == 0 && more < 0 ? more : rc;
}

/* One statement with up to four numbers, within whatever transaction there is. */
static int run_numbers(store *s, const char *sql, const int64_t *v, int n, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, "%s", sql);
    for (int i = 0; rc == 0 && i < n; i++) sqlite3_bind_int64(st, i + 1, v[i]);
    return store_finish(s, st, rc, err);
}
#define RUN(s, err, sql, ...)                           \
    run_numbers(s, sql, (const int64_t[]){__VA_ARGS__}, \
                sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), err)

static int one_number(store *s, const char *sql, int64_t v, int64_t *ret, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, "%s", sql);
    if (rc != 0) return rc;
    if (sqlite3_bind_parameter_count(st) > 0) sqlite3_bind_int64(st, 1, v);
    rc = store_step(s, st, err);
    if (rc == 1) *ret = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return rc;
}

/* Ends the transaction that begun with 0. */
static int end_transaction(store *s, int rc, shoal_err *err)
{
    if (rc == 0) rc = store_commit(s, err);
    if (rc != 0) store_rollback(s);
    return rc;
}

/* ---- what clients ask ----------------------------------------------------------------------------- */

static int check_open(store *s, int64_t most, shoal_err *err)
{
    sqlite3_stmt *st;
    if (most == 0) return 0;
    int rc = store_prepare(s, &st, err, "SELECT count(*) FROM batches WHERE owner = ?1 AND " OPEN);
    if (rc != 0) return rc;
    store_bind_text(st, 1, s->owner);
    rc = store_step(s, st, err);
    int64_t n = rc == 1 ? sqlite3_column_int64(st, 0) : 0;
    sqlite3_finalize(st);
    if (rc < 0) return rc;
    return n < most
               ? 0
               : err_set(err, SHOAL_ELIMIT,
                         "%lld of your batches have not ended, which is the limit (batches.max_open): wait "
                         "for one, or cancel one",
                         (long long)n);
}

static int insert_batch(store *s, const store_batch *b, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(
        s, &st, err,
        "INSERT INTO batches(id, dialect, status, owner, key, endpoint, window, metadata, input,"
        " expires, keep_s, at0) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, b->id);
    sqlite3_bind_int64(st, 2, b->dialect);
    sqlite3_bind_int64(st, 3, BATCH_VALIDATING);
    store_bind_text(st, 4, s->owner);
    store_bind_text(st, 5, b->key);
    store_bind_text(st, 6, b->endpoint);
    store_bind_text(st, 7, b->window);
    store_bind_text(st, 8, b->metadata);
    sqlite3_bind_int64(st, 9, b->input);
    sqlite3_bind_int64(st, 10, b->expires);
    sqlite3_bind_int64(st, 11, b->keep_s);
    sqlite3_bind_int64(st, 12, b->at[0]);
    return store_finish(s, st, 0, err);
}

/* A file of his own: one that nobody owns is everybody's to read, and not to bind by a batch. */
static int check_input(store *s, const store_file *f, shoal_err *err)
{
    sqlite3_stmt *st;
    if (strcmp(f->purpose, "batch") != 0)
        return err_set(err, SHOAL_EINVALID,
                       "the input file has purpose '%.64s': upload it with purpose 'batch'", f->purpose);
    int rc = store_prepare(s, &st, err, "SELECT 1 FROM files WHERE id = ?1 AND owner = ?2");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, f->id);
    store_bind_text(st, 2, s->owner);
    rc = store_step(s, st, err);
    sqlite3_finalize(st);
    return rc == 0  ? err_set(err, SHOAL_EINVALID, "the input file is of no API key: upload it again")
           : rc < 0 ? rc
                    : 0;
}

int store_batch_create(store *s, store_batch *b, int64_t most, shoal_err *err)
{
    store_file input;
    arena *mem = arena_new(0);
    bool own = sqlite3_get_autocommit(s->file.db);
    int rc = mem ? 0 : err_nomem(err);
    if (rc == 0 && own) rc = store_begin(s, true, err);
    if (rc == 0) rc = store_file_get(s, b->input, mem, &input, NULL, err);
    if (rc == 0) rc = check_input(s, &input, err);
    if (rc == 0) rc = check_open(s, most, err);
    b->id = store_draw_id();
    b->status = BATCH_VALIDATING;
    b->owner = s->owner;
    if (rc == 0) rc = insert_batch(s, b, err);
    if (own) rc = end_transaction(s, rc, err);
    arena_free(mem);
    return rc;
}

int store_batch_get(store *s, int64_t id, batch_dialect d, arena *mem, store_batch *ret, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, COLUMNS "WHERE id = ?1 AND dialect = ?3 AND " VISIBLE);
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    store_bind_text(st, 2, s->owner);
    sqlite3_bind_int64(st, 3, d);
    return read_one(s, st, mem, ret, err);
}

int store_batches(store *s, batch_dialect d, int64_t after, size_t most,
                  int (*fn)(void *user, const store_batch *b), void *user, shoal_err *err)
{
    sqlite3_stmt *st;
    store_batch from = {0};
    arena *mem = arena_new(0);
    int rc = !mem ? err_nomem(err) : after ? store_batch_get(s, after, d, mem, &from, err) : 0;
    arena_free(mem);
    if (rc == 0)
        rc = store_prepare(s, &st, err,
                           COLUMNS "WHERE (?1 = 0 OR (at0, id) < (?3, ?1)) AND dialect = ?5 AND " VISIBLE
                                   " ORDER BY at0 DESC, id DESC LIMIT ?4");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, after);
    store_bind_text(st, 2, s->owner);
    sqlite3_bind_int64(st, 3, from.at[0]);
    sqlite3_bind_int64(st, 4, (sqlite3_int64)most);
    sqlite3_bind_int64(st, 5, d);
    return read_all(s, st, fn, user, err);
}

int store_batches_open(store *s, int (*fn)(void *user, const store_batch *b), void *user, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, COLUMNS "WHERE " OPEN " ORDER BY at0, id");
    return rc == 0 ? read_all(s, st, fn, user, err) : rc;
}

static int cancel(store *s, const store_batch *b, int64_t now, shoal_err *err)
{
    if (batch_status_ends(b->status))
        return err_set(err, SHOAL_EINVALID, "the batch has ended: its status is '%s'",
                       batch_status_name(b->status));
    if (b->status == BATCH_FINALIZING || b->status == BATCH_CANCELLING) return 0;
    return RUN(s, err, "UPDATE batches SET status = ?2, at6 = ?3 WHERE id = ?1", b->id, BATCH_CANCELLING,
               now);
}

int store_batch_cancel(store *s, int64_t id, batch_dialect d, int64_t now, shoal_err *err)
{
    store_batch b;
    arena *mem = arena_new(0);
    int rc = mem ? store_begin(s, true, err) : err_nomem(err);
    if (rc == 0) {
        rc = store_batch_get(s, id, d, mem, &b, err);
        if (rc == 0) rc = cancel(s, &b, now, err);
        rc = end_transaction(s, rc, err);
    }
    arena_free(mem);
    return rc;
}

/* Its rows, and the files that are its own: an input of OpenAI's is the client's. */
static int drop(store *s, const store_batch *b, shoal_err *err)
{
    int64_t input = b->dialect == BATCH_ANTHROPIC ? b->input : 0;
    int rc = RUN(s, err, "DELETE FROM files WHERE id IN (?1, ?2, ?3)", b->output, b->error, input);
    if (rc == 0) rc = RUN(s, err, "DELETE FROM batch_lines WHERE batch = ?1", b->id);
    return rc == 0 ? RUN(s, err, "DELETE FROM batches WHERE id = ?1", b->id) : rc;
}

int store_batch_delete(store *s, int64_t id, batch_dialect d, shoal_err *err)
{
    store_batch b;
    arena *mem = arena_new(0);
    int rc = mem ? store_begin(s, true, err) : err_nomem(err);
    if (rc == 0) {
        rc = store_batch_get(s, id, d, mem, &b, err);
        if (rc == 0 && !batch_status_ends(b.status))
            rc = err_set(err, SHOAL_EINVALID, "the batch has not ended: cancel it first");
        if (rc == 0) rc = drop(s, &b, err);
        rc = end_transaction(s, rc, err);
    }
    arena_free(mem);
    return rc;
}

/* ---- running -------------------------------------------------------------------------------------- */

static int get_any(store *s, int64_t id, arena *mem, store_batch *ret, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, COLUMNS "WHERE id = ?1");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    return read_one(s, st, mem, ret, err);
}

int store_file_size(store *s, int64_t id, int64_t *ret, shoal_err *err)
{
    int rc = one_number(s, "SELECT length(content) FROM files WHERE id = ?1", id, ret, err);
    return rc == 1 ? 0 : rc == 0 ? err_set(err, SHOAL_ENOTFOUND, "the input file is gone") : rc;
}

int store_file_read(store *s, int64_t id, int64_t start, int64_t n_bytes, char *to, shoal_err *err)
{
    sqlite3_blob *from = NULL;
    int64_t has = 0;
    int rc = store_file_size(s, id, &has, err);
    if (rc == 0 && (start < 0 || n_bytes < 0 || start > has || n_bytes > has - start))
        rc = err_set(err, SHOAL_EFORMAT, "the input file is shorter than it was");
    if (rc != 0 || n_bytes == 0) return rc;
    int code = sqlite3_blob_open(s->file.db, "main", "files", "content", id, 0, &from);
    if (code == SQLITE_OK) code = sqlite3_blob_read(from, to, (int)n_bytes, (int)start);
    if (code != SQLITE_OK) rc = database_fail(&s->file, code, err);
    sqlite3_blob_close(from);
    return rc;
}

static int insert_line(store *s, sqlite3_stmt *st, int64_t id, const store_batch_line *l, shoal_err *err)
{
    sqlite3_reset(st);
    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_int64(st, 2, l->n);
    sqlite3_bind_int64(st, 3, l->start);
    sqlite3_bind_int64(st, 4, l->n_bytes);
    store_bind_text(st, 5, l->custom_id);
    int rc = store_step(s, st, err);
    return rc == 0 ? steps_add(s->steps, 64, err) : rc;
}

static int insert_lines(store *s, int64_t id, const store_batch_line *lines, size_t n, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(
        s, &st, err,
        "INSERT INTO batch_lines(batch, n, start, n_bytes, custom_id) VALUES(?1, ?2, ?3, ?4, ?5)");
    for (size_t i = 0; rc == 0 && i < n; i++) rc = insert_line(s, st, id, &lines[i], err);
    sqlite3_finalize(st);
    return rc;
}

int store_batch_begin(store *s, int64_t id, const store_batch_line *lines, size_t n, int64_t now,
                      shoal_err *err)
{
    int64_t waits = 0;
    int rc = store_begin(s, true, err);
    if (rc != 0) return rc;
    rc = one_number(s, "SELECT count(*) FROM batches WHERE id = ?1 AND status = 0", id, &waits, err);
    if (rc > 0) rc = 0;
    if (rc == 0 && waits) {
        rc = RUN(s, err, "UPDATE batches SET status = ?2, at1 = ?3, n_lines = ?4 WHERE id = ?1", id,
                 BATCH_IN_PROGRESS, now, (int64_t)n);
        if (rc == 0) rc = insert_lines(s, id, lines, n, err);
    }
    return end_transaction(s, rc, err);
}

int store_batch_fail(store *s, int64_t id, const char *errors, int64_t now, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(
        s, &st, err, "UPDATE batches SET status = ?2, at4 = ?3, errors = ?4 WHERE id = ?1 AND status = 0");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_int64(st, 2, BATCH_FAILED);
    sqlite3_bind_int64(st, 3, now);
    store_bind_text(st, 4, errors);
    return store_finish(s, st, 0, err);
}

int store_batch_give_up(store *s, int64_t id, const char *errors, int64_t now, shoal_err *err)
{
    sqlite3_stmt *st;
    shoal_err unsaid;
    int rc = store_prepare(s, &st, err,
                           "UPDATE batches SET status = ?2, at4 = ?3, errors = ?4, n_completed = 0,"
                           " n_failed = n_lines, n_bytes = 0 WHERE id = ?1 AND " OPEN);
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_int64(st, 2, BATCH_FAILED);
    sqlite3_bind_int64(st, 3, now);
    store_bind_text(st, 4, errors);
    rc = store_finish(s, st, 0, err);
    if (rc != 0) return rc;
    RUN(s, &unsaid, "DELETE FROM batch_lines WHERE batch = ?1", id); /* else the sweep does it */
    return 0;
}

int store_batch_next(store *s, int64_t id, int64_t after, arena *mem, store_batch_line *ret, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err,
                           "SELECT n, start, n_bytes, custom_id FROM batch_lines"
                           " WHERE batch = ?1 AND n > ?2 AND state = 0 ORDER BY n LIMIT 1");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_int64(st, 2, after);
    rc = store_step(s, st, err);
    if (rc == 1) {
        *ret = (store_batch_line){sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
                                  sqlite3_column_int64(st, 2), store_text(st, 3, mem)};
        if (!ret->custom_id) rc = err_nomem(err);
    }
    sqlite3_finalize(st);
    return rc;
}

int store_batch_bytes(store *s, int64_t *ret, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err,
                           "SELECT (SELECT coalesce(sum(n_bytes), 0) FROM file_sizes WHERE owner = ?1"
                           " AND purpose IN ('batch', 'batch_output'))"
                           " + (SELECT coalesce(sum(n_bytes), 0) FROM batches WHERE owner = ?1)");
    if (rc != 0) return rc;
    store_bind_text(st, 1, s->owner);
    rc = store_step(s, st, err);
    if (rc == 1) *ret = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return rc < 0 ? rc : 0;
}

static int put_answer(store *s, int64_t id, int64_t n, bool ok, const buf *answer, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(
        s, &st, err,
        "UPDATE batch_lines SET state = ?3, answer = ?4 WHERE batch = ?1 AND n = ?2 AND state = 0"
        " AND EXISTS(SELECT 1 FROM batches WHERE id = ?1 AND status IN (1, 2, 6))");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_int64(st, 2, n);
    sqlite3_bind_int64(st, 3, ok ? 1 : 2);
    int code = sqlite3_bind_blob64(st, 4, answer->data, answer->len, SQLITE_STATIC);
    rc = store_finish(s, st, code == SQLITE_OK ? 0 : database_fail(&s->file, code, err), err);
    if (rc != 0 || sqlite3_changes(s->file.db) == 0) return rc;
    return RUN(
        s, err,
        "UPDATE batches SET n_completed = n_completed + ?2, n_failed = n_failed + ?3, n_bytes = n_bytes + ?4"
        " WHERE id = ?1",
        id, ok, !ok, (int64_t)answer->len + 1);
}

/* Its answers become one blob, which has no more than SQLite's 10^9 bytes; the rest is for lines without an answer. */
enum { OUTPUT_MAX = 900 * 1000 * 1000 };

static int check_output(store *s, int64_t id, size_t n, shoal_err *err)
{
    int64_t has = 0;
    int rc = one_number(s, "SELECT n_bytes FROM batches WHERE id = ?1", id, &has, err);
    if (rc < 0) return rc;
    return has + (int64_t)n < OUTPUT_MAX
               ? 0
               : err_set(err, SHOAL_ELIMIT, "the answers of one batch may take %d bytes", OUTPUT_MAX);
}

int store_batch_answer(store *s, int64_t id, int64_t n, bool ok, const buf *answer, int64_t most_bytes,
                       shoal_err *err)
{
    int64_t has = 0;
    int rc = store_begin(s, true, err);
    if (rc != 0) return rc;
    if (most_bytes) rc = store_batch_bytes(s, &has, err);
    if (rc == 0) rc = check_output(s, id, answer->len, err);
    if (rc == 0 && most_bytes && has + (int64_t)answer->len > most_bytes)
        rc = err_set(err, SHOAL_ELIMIT, "batches take %lld bytes, and batches.max_mb allows no more",
                     (long long)has);
    if (rc == 0) rc = put_answer(s, id, n, ok, answer, err);
    return end_transaction(s, rc, err);
}

/* ---- the end -------------------------------------------------------------------------------------- */

static batch_status end_of(const store_batch *b)
{
    return b->at[BATCH_CANCELLING]                                    ? BATCH_CANCELLED
           : b->n_lines && b->n_completed + b->n_failed == b->n_lines ? BATCH_COMPLETED
                                                                      : BATCH_EXPIRED;
}

/* Lines without an answer get one. */
static int answer_missing(store *s, const store_batch *b, const store_batch_end *e, shoal_err *err)
{
    int64_t after = 0, n = 0;
    batch_status ends = end_of(b);
    arena *mem = arena_new(0);
    buf answer = {0};
    int rc = mem ? 1 : err_nomem(err);
    while (rc == 1) {
        store_batch_line l;
        rc = store_batch_next(s, b->id, after, mem, &l, err);
        if (rc != 1) break;
        after = l.n;
        buf_clear(&answer);
        e->missing(e->user, b, ends, &l, &answer);
        int done = answer.failed ? err_nomem(err) : put_answer(s, b->id, l.n, false, &answer, err);
        if (done == 0) done = steps_add(s->steps, answer.len, err);
        if (done != 0) rc = done;
        n++;
    }
    if (rc == 0) rc = RUN(s, err, "UPDATE batches SET n_missing = ?2 WHERE id = ?1", b->id, n);
    buf_done(&answer);
    arena_free(mem);
    return rc;
}

static int copy_answers(store *s, sqlite3_blob *to, int64_t id, int64_t from, int64_t until, shoal_err *err)
{
    sqlite3_stmt *st;
    int64_t at = 0;
    int rc = store_prepare(
            s, &st, err,
            "SELECT answer FROM batch_lines WHERE batch = ?1 AND state BETWEEN ?2 AND ?3 ORDER BY n"),
        more = 0;
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_int64(st, 2, from);
    sqlite3_bind_int64(st, 3, until);
    while (rc == 0 && (more = store_step(s, st, err)) == 1) {
        const char *text = sqlite3_column_blob(st, 0);
        int n = sqlite3_column_bytes(st, 0);
        int code = n && !text ? SQLITE_NOMEM : n ? sqlite3_blob_write(to, text, n, (int)at) : SQLITE_OK;
        if (code == SQLITE_OK) code = sqlite3_blob_write(to, "\n", 1, (int)(at + n));
        at += n + 1;
        rc = code == SQLITE_OK ? steps_add(s->steps, (size_t)n, err) : database_fail(&s->file, code, err);
    }
    sqlite3_finalize(st);
    return rc == 0 && more < 0 ? more : rc;
}

static int insert_output(store *s, const store_batch *b, const char *name, int64_t n_bytes, int64_t now,
                         int64_t id, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err,
                           "INSERT INTO files(name, purpose, created, content, id, owner, expires)"
                           " VALUES(?1, 'batch_output', ?2, ?3, ?4, ?5, ?6)");
    if (rc != 0) return rc;
    store_bind_text(st, 1, name);
    sqlite3_bind_int64(st, 2, now);
    int code = sqlite3_bind_zeroblob64(st, 3, (sqlite3_uint64)n_bytes);
    sqlite3_bind_int64(st, 4, id);
    store_bind_text(st, 5, b->owner);
    sqlite3_bind_int64(st, 6, b->keep_s ? now + b->keep_s : 0);
    return store_finish(s, st, code == SQLITE_OK ? 0 : database_fail(&s->file, code, err), err);
}

/* The answers with these states as a file; *ret 0: there are none. */
static int write_answers(store *s, const store_batch *b, const char *name, int64_t from, int64_t until,
                         int64_t now, int64_t *ret, shoal_err *err)
{
    char sql[160];
    int64_t n_bytes = 0, id = store_draw_id();
    sqlite3_blob *to = NULL;
    sqlite3_snprintf(sizeof sql, sql,
                     "SELECT coalesce(sum(length(answer) + 1), 0) FROM batch_lines WHERE batch = ?1 AND state"
                     " BETWEEN %lld AND %lld",
                     (long long)from, (long long)until);
    int rc = one_number(s, sql, b->id, &n_bytes, err);
    *ret = 0;
    if (rc < 0 || n_bytes == 0) return rc < 0 ? rc : 0;
    rc = insert_output(s, b, name, n_bytes, now, id, err);
    if (rc != 0) return rc;
    int code = sqlite3_blob_open(s->file.db, "main", "files", "content", id, 1, &to);
    rc =
        code == SQLITE_OK ? copy_answers(s, to, b->id, from, until, err) : database_fail(&s->file, code, err);
    code = sqlite3_blob_close(to);
    if (rc == 0 && code != SQLITE_OK) rc = database_fail(&s->file, code, err);
    if (rc == 0) *ret = id;
    return rc;
}

/* Anthropic's results are one file; OpenAI's are what was answered, and what was not. */
static int finish(store *s, const store_batch *b, const store_batch_end *e, batch_status *ret, shoal_err *err)
{
    char set[160];
    int64_t output = 0, error = 0;
    bool one = b->dialect == BATCH_ANTHROPIC;
    batch_status ends = end_of(b);
    int rc = answer_missing(s, b, e, err);
    if (rc == 0) rc = write_answers(s, b, e->output_name, 1, one ? 2 : 1, e->now, &output, err);
    if (rc == 0 && !one) rc = write_answers(s, b, e->error_name, 2, 2, e->now, &error, err);
    if (rc == 0) rc = RUN(s, err, "DELETE FROM batch_lines WHERE batch = ?1", b->id);
    sqlite3_snprintf(
        sizeof set, set,
        "UPDATE batches SET status = %d, at%d = ?2, output = ?3, error = ?4, n_bytes = 0 WHERE id = ?1",
        (int)ends, (int)ends);
    if (rc == 0) rc = RUN(s, err, set, b->id, e->now, output, error);
    *ret = ends;
    return rc;
}

int store_batch_finish(store *s, int64_t id, const store_batch_end *e, batch_status *ret_ended,
                       shoal_err *err)
{
    store_batch b;
    arena *mem = arena_new(0);
    int rc = mem ? RUN(s, err, "UPDATE batches SET status = ?2, at2 = ?3 WHERE id = ?1 AND status IN (0, 1)",
                       id, BATCH_FINALIZING, e->now)
                 : err_nomem(err);
    if (rc == 0) rc = store_begin(s, true, err);
    if (rc == 0) {
        rc = get_any(s, id, mem, &b, err);
        if (rc == 0 && batch_status_ends(b.status))
            *ret_ended = b.status;
        else if (rc == 0)
            rc = finish(s, &b, e, ret_ended, err);
        rc = end_transaction(s, rc, err);
    }
    arena_free(mem);
    return rc;
}

/* ---- what is old ---------------------------------------------------------------------------------- */

#define OLD "status IN (3, 4, 5, 7) AND max(at3, at4, at5, at7) <= ?1 - ?2"

int store_batch_sweep(store *s, int64_t now, int64_t keep_s, int64_t *ret, shoal_err *err)
{
    static const char *const PARTS[] = {
        "DELETE FROM files WHERE expires > 0 AND expires <= ?1 AND ?2 >= 0 AND id NOT IN"
        " (SELECT input FROM batches WHERE " OPEN ")",
        "DELETE FROM files WHERE purpose IN ('batch', 'batch_output') AND created <= ?1 - ?2 AND id NOT IN"
        " (SELECT input FROM batches WHERE " OPEN ")",
        "DELETE FROM batch_lines WHERE batch IN (SELECT id FROM batches WHERE " OLD ")",
        "DELETE FROM batches WHERE " OLD,
    };
    int64_t n = 0;
    int rc = store_begin(s, true, err);
    if (rc != 0) return rc;
    for (size_t i = 0; rc == 0 && i < sizeof PARTS / sizeof *PARTS; i++) {
        rc = RUN(s, err, PARTS[i], now, keep_s);
        n += rc == 0 ? sqlite3_changes(s->file.db) : 0;
    }
    rc = end_transaction(s, rc, err);
    if (rc == 0) *ret = n;
    return rc;
}
