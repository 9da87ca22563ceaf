/* store_search.c: what searches ask of the store: words, filters, pieces, vectors. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "retrieve/codes.h"
#include "retrieve/query.h"
#include "retrieve/store_impl.h"

static void bind_filter(sqlite3_stmt *st, const filter *f)
{
    for (size_t i = 0; i < f->n; i++) {
        int at = FILTER_FIRST_PARAMETER + (int)i;
        const filter_value *v = &f->v[i];
        if (v->kind == FILTER_TEXT)
            store_bind_text(st, at, v->text);
        else if (v->kind == FILTER_INT)
            sqlite3_bind_int64(st, at, v->i);
        else
            sqlite3_bind_double(st, at, v->f);
    }
}

static const char *filter_sql(const filter *f)
{
    return f && f->sql.len ? f->sql.data : "";
}

/* ---- words ------------------------------------------------------------------------------------------ */

enum { POSTINGS_MAX = 100000 };

/* BM25 looks at every piece that has a word. In a large collection the rarest words are enough: as many as
 * have this many pieces together, and the rarest in any case. */
static void mark_common(query *q, const int64_t *n_pieces)
{
    int64_t sum = 0;
    size_t n = 0;
    bool taken[QUERY_WORDS_MAX] = {false};
    for (size_t i = 0; i < q->n; i++) n += !q->common[i];
    if (n == 0)
        memset(q->common, 0, sizeof q->common); /* nothing but function words: they are what is searched */
    if (n == 0) n = q->n;
    memcpy(taken, q->common, sizeof taken);
    for (size_t i = 0; i < n; i++) {
        size_t least = q->n;
        for (size_t k = 0; k < q->n; k++)
            if (!taken[k] && (least == q->n || n_pieces[k] < n_pieces[least])) least = k;
        taken[least] = true;
        sum += n_pieces[least];
        q->common[least] = i > 0 && sum > POSTINGS_MAX;
    }
}

static int find_common(store *s, const store_collection *c, query *q, shoal_err *err)
{
    sqlite3_stmt *st;
    int64_t n_pieces[QUERY_WORDS_MAX] = {0};
    if (c->n_pieces < POSTINGS_MAX / QUERY_WORDS_MAX) return 0;
    int rc = store_prepare(s, &st, err, "SELECT doc FROM vocabulary_%lld WHERE term = ?1", (long long)c->id);
    for (size_t i = 0; rc == 0 && i < q->n; i++) {
        store_bind_text(st, 1, q->words[i]);
        int row = store_step(s, st, err);
        if (row < 0) rc = row;
        if (row == 1) n_pieces[i] = sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
    }
    sqlite3_finalize(st);
    if (rc == 0) mark_common(q, n_pieces);
    return rc;
}

/* A word of the headings above a piece counts as several of its text: pages that mention everything, such as
 * lists of settings, otherwise rank above the page about it (bench/retrieval/README.md). */
#define TITLE_WEIGHT      "3.0"
#define BY_TITLE_AND_TEXT "rank MATCH 'bm25(" TITLE_WEIGHT ", 1.0)'"

/* Without a filter FTS5 sorts by itself and stops at k; with one the documents have to be looked at. */
static int prepare_words(store *s, sqlite3_stmt **ret, int64_t id, const filter *f, shoal_err *err)
{
    if (!*filter_sql(f))
        return store_prepare(s, ret, err,
                             "SELECT p.document, p.ordinal, w.rank FROM (SELECT rowid, rank FROM words_%lld"
                             " WHERE words_%lld MATCH ?1 AND " BY_TITLE_AND_TEXT
                             " ORDER BY rank LIMIT ?2) w JOIN pieces p ON p.id = w.rowid"
                             " ORDER BY w.rank, p.document, p.ordinal",
                             (long long)id, (long long)id);
    return store_prepare(
        s, ret, err,
        "SELECT p.document, p.ordinal, w.rank FROM words_%lld w JOIN pieces p ON p.id = w.rowid"
        " JOIN documents d ON d.id = p.document WHERE w.words_%lld MATCH ?1 AND w." BY_TITLE_AND_TEXT "%s"
        " ORDER BY w.rank, p.document, p.ordinal LIMIT ?2",
        (long long)id, (long long)id, filter_sql(f));
}

static int run_words(store *s, const store_collection *c, const char *match, const filter *f, found *out,
                     size_t k, shoal_err *err)
{
    sqlite3_stmt *st;
    size_t n = 0;
    int rc = prepare_words(s, &st, c->id, f, err), more = 0;
    if (rc != 0) return rc;
    store_bind_text(st, 1, match);
    sqlite3_bind_int64(st, 2, (sqlite3_int64)k);
    if (f) bind_filter(st, f);
    while (n < k && (more = store_step(s, st, err)) == 1) {
        out[n] = (found){.document = sqlite3_column_int64(st, 0),
                         .ordinal = (uint32_t)sqlite3_column_int64(st, 1),
                         .bm25 = (float)-sqlite3_column_double(st, 2),
                         .by_words = (unsigned)n + 1};
        out[n].score = out[n].bm25;
        n++;
    }
    sqlite3_finalize(st);
    return more < 0 ? more : (int)n;
}

int store_words(store *s, const store_collection *c, const char *text, const filter *f, found *out, size_t k,
                shoal_err *err)
{
    buf match = {0};
    query *q = malloc(sizeof *q);
    if (!q) return err_nomem(err);
    query_parse(q, text, strlen(text));
    int rc = find_common(s, c, q, err);
    if (rc == 0) query_put(&match, q);
    if (match.failed) rc = err_nomem(err);
    if (rc == 0 && match.len) rc = run_words(s, c, match.data, f, out, k, err);
    buf_done(&match);
    free(q);
    return rc;
}

/* ---- filters ---------------------------------------------------------------------------------------- */

int store_filtered(store *s, const store_collection *c, const filter *f, int64_t **ret, size_t *ret_n,
                   shoal_err *err)
{
    sqlite3_stmt *st;
    buf ids = {0};
    int rc =
            store_prepare(s, &st, err, "SELECT d.id FROM documents d WHERE d.collection = ?1%s ORDER BY d.id",
                          filter_sql(f)),
        more = 0;
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, c->id);
    bind_filter(st, f);
    while ((more = store_step(s, st, err)) == 1) {
        int64_t id = sqlite3_column_int64(st, 0);
        if (buf_append(&ids, &id, sizeof id) != 0) break;
    }
    sqlite3_finalize(st);
    if (ids.failed) rc = err_nomem(err);
    if (more < 0) rc = more;
    *ret_n = rc == 0 ? ids.len / sizeof(int64_t) : 0;
    *ret = NULL;
    if (rc == 0 && ids.len) *ret = (int64_t *)(void *)buf_take(&ids);
    buf_done(&ids);
    return rc;
}

/* ---- pieces and vectors ----------------------------------------------------------------------------- */

int store_piece_get(store *s, int64_t document, uint32_t ordinal, arena *mem, store_piece *ret,
                    shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(
        s, &st, err,
        "SELECT d.source, d.metadata, p.title, p.text, p.start, p.end, p.line, d.file FROM pieces p"
        " JOIN documents d ON d.id = p.document WHERE p.document = ?1 AND p.ordinal = ?2");
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, document);
    sqlite3_bind_int64(st, 2, ordinal);
    rc = store_step(s, st, err);
    if (rc == 1) {
        *ret = (store_piece){.source = store_text(st, 0, mem),
                             .metadata = store_text(st, 1, mem),
                             .title = store_text(st, 2, mem),
                             .text = store_text(st, 3, mem),
                             .document = document,
                             .start = sqlite3_column_int64(st, 4),
                             .end = sqlite3_column_int64(st, 5),
                             .line = sqlite3_column_int64(st, 6),
                             .file = sqlite3_column_int64(st, 7)};
        rc = ret->source && ret->metadata && ret->title && ret->text ? 0 : err_nomem(err);
    } else if (rc == 0) {
        rc = err_set(err, SHOAL_ENOTFOUND, "the piece is gone");
    }
    sqlite3_finalize(st);
    return rc;
}

int store_vectors(store *s, const store_collection *c, int64_t after,
                  int (*fn)(void *user, int64_t document, const void *scales, const int8_t *codes, size_t n),
                  void *user, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(
            s, &st, err,
            "SELECT v.document, v.n, v.codes FROM documents d JOIN vectors v ON v.document = d.id"
            " WHERE d.collection = ?1 AND d.id > ?2 ORDER BY d.id"),
        more = 0;
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, c->id);
    sqlite3_bind_int64(st, 2, after);
    while (rc == 0 && (more = store_step(s, st, err)) == 1) {
        int64_t n = sqlite3_column_int64(st, 1);
        const char *blob = sqlite3_column_blob(st, 2);
        size_t bytes = (size_t)sqlite3_column_bytes(st, 2), row = sizeof(float) + c->dims;
        if (n <= 0 || c->dims > CODES_DIMS_MAX || bytes / row != (size_t)n || bytes % row != 0) {
            rc = err_set(err, SHOAL_EFORMAT, "%s: the vectors of a document are damaged", s->file.path);
            break;
        }
        rc = fn(user, sqlite3_column_int64(st, 0), blob, (const int8_t *)blob + (size_t)n * sizeof(float),
                (size_t)n);
    }
    sqlite3_finalize(st);
    return rc == 0 && more < 0 ? more : rc;
}

int store_ids(store *s, int64_t collection, int (*fn)(void *user, int64_t id), void *user, shoal_err *err)
{
    sqlite3_stmt *st;
    int rc = store_prepare(s, &st, err, "SELECT id FROM documents WHERE collection = ?1 ORDER BY id"),
        more = 0;
    if (rc != 0) return rc;
    sqlite3_bind_int64(st, 1, collection);
    while (rc == 0 && (more = store_step(s, st, err)) == 1) rc = fn(user, sqlite3_column_int64(st, 0));
    sqlite3_finalize(st);
    return rc == 0 && more < 0 ? more : rc;
}
