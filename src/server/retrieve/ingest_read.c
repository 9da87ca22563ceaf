/* ingest_read.c: the thread's part of an ingestion: what is asked, what of it is new, and its pieces. */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/number.h"
#include "base/sha256.h"
#include "retrieve/filter.h"
#include "retrieve/ingest_impl.h"

bool ingest_is_new(const ingest_document *d)
{
    return d->outcome.status == INGEST_ADDED || d->outcome.status == INGEST_REPLACED;
}

void ingest_fail_document(ingest_document *d, const char *why)
{
    snprintf(d->error, sizeof d->error, "%s", why);
    d->outcome.status = INGEST_FAILED;
    d->outcome.error = d->error;
    d->outcome.n_pieces = 0;
    pieces_done(&d->cut);
    plain_done(&d->plain);
}

void ingest_documents_done(ingest *in)
{
    for (size_t i = 0; i < in->n; i++) {
        ingest_document *d = &in->v[i];
        plain_done(&d->plain);
        pieces_done(&d->cut);
        free(d->metadata);
        free(d->scales);
        free(d->codes);
    }
    free(in->v);
    in->v = NULL;
    in->n = 0;
}

/* ---- the request ------------------------------------------------------------------------------------ */

/* The first of the keys that is there: a text. *ret stays as it was without any. */
static int ingest_read_text_of(const json_t *o, const char *const *keys, const char **ret, size_t *ret_n,
                               size_t i, shoal_err *err)
{
    for (; *keys; keys++) {
        const json_t *v = json_object_get(o, *keys);
        if (!v || json_is_null(v)) continue;
        if (!json_is_string(v))
            return err_set(err, SHOAL_EINVALID, "documents[%zu].%s must be a text", i, *keys);
        *ret = json_string_value(v);
        *ret_n = json_string_length(v);
        return 0;
    }
    return 0;
}

static int read_metadata(ingest_document *d, const json_t *o, size_t i, shoal_err *err)
{
    const json_t *m = json_object_get(o, "metadata");
    buf text = {0};
    if (!m || json_is_null(m)) m = json_object_get(o, "attributes");
    if (m && !json_is_null(m) && !json_is_object(m))
        return err_set(err, SHOAL_EINVALID, "documents[%zu].metadata must be an object", i);
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)m, key, v) if (filter_is_inexact(v)) return err_set(
        err, SHOAL_EINVALID,
        "documents[%zu].metadata: '%.64s' is beyond 2^63, where numbers are not exact: write it as a text", i,
        key);
    if (m && !json_is_null(m))
        json_put(&text, m);
    else
        buf_puts(&text, "{}");
    bool too_long = text.len > STORE_METADATA_MAX;
    d->metadata = buf_take(&text);
    buf_done(&text);
    if (!d->metadata) return err_nomem(err);
    return too_long ? err_set(err, SHOAL_ELIMIT, "documents[%zu].metadata is longer than %d bytes", i,
                              STORE_METADATA_MAX)
                    : 0;
}

static int read_type(ingest_document *d, const json_t *o, size_t i, shoal_err *err)
{
    const json_t *v = json_object_get(o, "type");
    d->type = PLAIN_TEXT;
    if (!v || json_is_null(v)) {
        plain_type_of(d->source, &d->type);
        return 0;
    }
    if (!json_is_string(v) || !plain_type_parse(json_string_value(v), &d->type))
        return err_set(err, SHOAL_EINVALID, "documents[%zu].type must be text, markdown, html or csv", i);
    return 0;
}

/* "file_id": "file-12", which was uploaded before. */
static int ingest_read_read_file(ingest *in, ingest_document *d, const json_t *o, store *s, size_t i,
                                 shoal_err *err)
{
    const char *id = json_string_value(json_object_get(o, "file_id"));
    store_file f;
    if (!id) return 0;
    if (strncmp(id, INGEST_FILE, strlen(INGEST_FILE)) != 0 ||
        !number_i64(id + strlen(INGEST_FILE), &d->file) || d->file <= 0)
        return err_set(err, SHOAL_ENOTFOUND, "documents[%zu].file_id: there is no file '%.64s'", i, id);
    int rc = store_file_get(s, d->file, in->mem, &f, &d->text, err);
    if (rc != 0) return rc;
    d->source = f.name;
    d->n_text = (size_t)f.n_bytes;
    return 0;
}

static int read_words(ingest *in, ingest_document *d, const json_t *o, store *s, size_t i, shoal_err *err)
{
    static const char *const SOURCES[] = {"source", "filename", "name", NULL};
    static const char *const TEXTS[] = {"text", "content", NULL};
    size_t n_source = 0;
    int rc = ingest_read_read_file(in, d, o, s, i, err);
    if (rc == 0) rc = ingest_read_text_of(o, SOURCES, &d->source, &n_source, i, err);
    if (rc == 0 && !d->file) rc = ingest_read_text_of(o, TEXTS, &d->text, &d->n_text, i, err);
    if (rc != 0) return rc;
    if (!d->source || !*d->source || strlen(d->source) > STORE_SOURCE_MAX ||
        (n_source && strlen(d->source) != n_source))
        return err_set(err, SHOAL_EINVALID, "documents[%zu].source must name the document in 1 to %d bytes",
                       i, STORE_SOURCE_MAX);
    return d->text
               ? 0
               : err_set(err, SHOAL_EINVALID, "documents[%zu].text is missing: what the document says", i);
}

static int read_document(ingest *in, ingest_document *d, const json_t *o, store *s, size_t i, shoal_err *err)
{
    if (!json_is_object(o)) return err_set(err, SHOAL_EINVALID, "documents[%zu] must be an object", i);
    int rc = read_words(in, d, o, s, i, err);
    if (rc != 0) return rc;
    d->outcome = (ingest_outcome){.source = d->source, .n_bytes = d->n_text, .file = d->file, .error = ""};
    rc = read_type(d, o, i, err);
    if (rc == 0) rc = read_metadata(d, o, i, err);
    d->outcome.metadata = d->metadata;
    return rc;
}

/* One source twice in a request would be put twice in no order that anybody named. */
static int check_twice(const ingest *in, size_t i, shoal_err *err)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(in->v[k].source, in->v[i].source) == 0)
            return err_set(err, SHOAL_EINVALID, "documents[%zu] and documents[%zu] have one source, '%.100s'",
                           k, i, in->v[i].source);
    return 0;
}

static int ingest_read_parse(ingest *in, store *s, shoal_err *err)
{
    int rc = json_parse(&in->root, in->body.data, in->body.len, "the body", err);
    if (rc != 0)
        return rc == SHOAL_EFORMAT ? err_set(err, SHOAL_EINVALID, "the body is no JSON: %s", err->message)
                                   : rc;
    const json_t *list = json_object_get(in->root, "documents");
    bool one = !list && json_is_object(in->root);
    in->n = 0;
    size_t n = one ? 1 : json_array_size(list);
    if (n == 0 || n > INGEST_DOCUMENTS_MAX)
        return err_set(err, SHOAL_EINVALID, "\"documents\" must be a list of 1 to %d documents",
                       INGEST_DOCUMENTS_MAX);
    in->v = calloc(n, sizeof *in->v);
    if (!in->v) return err_nomem(err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        in->n++;
        rc = read_document(in, &in->v[i], one ? in->root : json_array_get(list, i), s, i, err);
        if (rc == 0) rc = check_twice(in, i, err);
    }
    return rc;
}

/* ---- what is new, and its pieces -------------------------------------------------------------------- */

int ingest_digest(plain_type type, const char *metadata, const char *text, size_t n, char ret_hex[65],
                  steps *steps, shoal_err *err)
{
    sha256 *h = sha256_new();
    sha256_digest digest;
    int rc = 0;
    if (!h) return err_nomem(err);
    sha256_add_text(h, plain_type_name(type));
    sha256_add_text(h, metadata);
    for (size_t at = 0, part; rc == 0 && at < n; at += part) {
        part = n - at < STEPS_PER_CHECK ? n - at : STEPS_PER_CHECK;
        sha256_add(h, text + at, part);
        rc = steps_add(steps, part, err);
    }
    sha256_end(h, &digest);
    sha256_hex(&digest, ret_hex);
    return rc;
}

static int ingest_read_cut(ingest_document *d, steps *steps, shoal_err *err)
{
    pieces_done(&d->cut);
    int rc = pieces_cut(&d->cut, &d->plain, d->piece_bytes, d->piece_bytes / 5, steps, err);
    d->outcome.n_pieces = d->cut.n;
    d->n_asked = d->n_embedded = 0;
    d->too_long = false;
    return rc;
}

/* Only a lack of memory, and the end of all, is everybody's. */
static int ingest_read_read_text(ingest *in, ingest_document *d, shoal_err *err)
{
    shoal_err own = {0};
    d->piece_bytes = in->c.piece_bytes;
    int rc = plain_read(&d->plain, d->type, d->text, d->n_text, "the document", &in->job.steps, &own);
    if (rc == 0) rc = ingest_read_cut(d, &in->job.steps, &own);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc == SHOAL_ECANCELLED) return err_set(err, rc, "%s", own.message);
    if (rc != 0) ingest_fail_document(d, own.message);
    return 0;
}

static int look_up(ingest *in, ingest_document *d, store *s, shoal_err *err)
{
    store_document there;
    arena *mem = arena_new(0);
    int rc = mem ? ingest_digest(d->type, d->metadata, d->text, d->n_text, d->digest, &in->job.steps, err)
                 : err_nomem(err);
    if (rc == 0) {
        rc = store_document_find(s, in->c.id, d->source, mem, &there, err);
        d->outcome.status = INGEST_ADDED;
        if (rc == 0 && strcmp(there.digest, d->digest) == 0 && there.file == d->file) {
            d->outcome.status = INGEST_UNCHANGED;
            d->outcome.id = there.id;
            d->outcome.created = there.created;
            d->outcome.n_pieces = (size_t)there.n_pieces;
        } else if (rc == SHOAL_ENOTFOUND) {
            rc = 0;
        }
    }
    arena_free(mem);
    return rc;
}

int ingest_read(executor_job *j, const executor_tools *t, shoal_err *err)
{
    ingest *in = (ingest *)j; /* its first member */
    int rc = ingest_read_parse(in, t->store, err);
    if (rc == 0) rc = store_find_own(t->store, in->collection_name, in->mem, &in->c, err);
    for (size_t i = 0; rc == 0 && i < in->n; i++) {
        rc = look_up(in, &in->v[i], t->store, err);
        if (rc == 0 && ingest_is_new(&in->v[i])) rc = ingest_read_read_text(in, &in->v[i], err);
    }
    return rc;
}

int ingest_recut(executor_job *j, const executor_tools *t, shoal_err *err)
{
    ingest *in = (ingest *)j;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < in->n; i++) {
        ingest_document *d = &in->v[i];
        if (!d->too_long) continue;
        bool shortest = d->piece_bytes <= PIECE_BYTES_MIN;
        d->piece_bytes = d->piece_bytes / 2 > PIECE_BYTES_MIN ? d->piece_bytes / 2 : PIECE_BYTES_MIN;
        if (shortest) {
            ingest_fail_document(d, "the model cannot read even the shortest piece of it");
            d->too_long = false;
        } else {
            rc = ingest_read_cut(d, &j->steps, err);
        }
    }
    return rc;
}

/* ---- putting ---------------------------------------------------------------------------------------- */

static int write_document(ingest *in, ingest_document *d, store *s, shoal_err *err)
{
    store_document row = {.source = d->source,
                          .type = plain_type_name(d->type),
                          .digest = d->digest,
                          .metadata = d->metadata,
                          .n_bytes = (int64_t)d->n_text,
                          .created = in->created,
                          .file = d->file};
    store_content what = {.text = d->plain.text.data ? d->plain.text.data : "",
                          .cut = &d->cut,
                          .scales = d->scales,
                          .codes = d->codes,
                          .dims = in->dims,
                          .model_digest = in->model_digest};
    bool replaced;
    int rc = store_put(s, &in->c, &row, &what, &replaced, err);
    d->outcome.id = row.id;
    d->outcome.created = row.created;
    d->outcome.status = replaced ? INGEST_REPLACED : INGEST_ADDED;
    return rc;
}

int ingest_write(executor_job *j, const executor_tools *t, shoal_err *err)
{
    ingest *in = (ingest *)j;
    int64_t before = in->c.id;
    int rc = store_begin(t->store, true, err);
    if (rc == 0) rc = store_find_own(t->store, in->collection_name, in->mem, &in->c, err);
    if (rc == 0 && in->c.id != before)
        rc = err_set(err, SHOAL_EUNAVAILABLE,
                     "the collection '%s' was made anew meanwhile; send the documents again",
                     in->collection_name);
    for (size_t i = 0; rc == 0 && i < in->n; i++)
        if (ingest_is_new(&in->v[i])) rc = write_document(in, &in->v[i], t->store, err);
    return rc == 0 ? store_commit(t->store, err) : rc;
}
