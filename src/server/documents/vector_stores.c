/* vector_stores.c: see vector_stores.h. */
#include "documents/vector_stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages/query.h"
#include "base/clock.h"
#include "json/json.h"
#include "json/json_put.h"
#include "documents/collections_impl.h"

enum { NAME_SEGMENT = 2, FILE_SEGMENT = 4, FILES_DEFAULT = 100, STORES_DEFAULT = 100 };

/* ---- ids -------------------------------------------------------------------------------------------- */

#define DOCUMENT "doc-" /* of a document that was never uploaded as a file */

typedef struct file_id {
    char text[32];
} file_id;

static file_id id_of(int64_t file, int64_t document)
{
    file_id id;
    snprintf(id.text, sizeof id.text, "%s%lld", file ? INGEST_FILE : DOCUMENT,
             (long long)(file ? file : document));
    return id;
}

/* ---- vector stores ---------------------------------------------------------------------------------- */

static void put_store(buf *out, const store_collection *c)
{
    buf_putc(out, '{');
    json_put_text(out, "id", c->name);
    buf_printf(out, ",\"object\":\"vector_store\",\"created_at\":%lld,", (long long)c->created);
    json_put_text(out, "name", *c->title ? c->title : c->name);
    buf_printf(out,
               ",\"usage_bytes\":%lld,\"status\":\"completed\",\"last_active_at\":%lld,\"file_counts\":{\"in_"
               "progress\":0,"
               "\"completed\":%lld,\"failed\":0,\"cancelled\":0,\"total\":%lld},\"metadata\":%s}",
               (long long)c->n_bytes, (long long)c->created, (long long)c->n_documents,
               (long long)c->n_documents, c->metadata);
}

/* The beginning and the end of a list, whose first and last ids are in between. */
typedef struct id_list {
    buf *out;
    char first[STORE_NAME_MAX + 1], last[STORE_NAME_MAX + 1];
    const char *store_id;
    size_t n, most;
    bool more;
} id_list;

static void note_id(id_list *l, const char *id)
{
    if (l->n++ == 0)
        snprintf(l->first, sizeof l->first, "%s", id);
    else
        buf_putc(l->out, ',');
    snprintf(l->last, sizeof l->last, "%s", id);
}

static void end_list(const id_list *l)
{
    buf_putc(l->out, ']');
    if (l->n)
        buf_printf(l->out, ",\"first_id\":\"%s\",\"last_id\":\"%s\"", l->first,
                   l->last); /* ids need no escapes */
    buf_printf(l->out, ",\"has_more\":%s}", l->more ? "true" : "false");
}

static int list_store(void *user, const store_collection *c)
{
    id_list *l = user;
    l->more = l->n == l->most; /* one more, to know that there is one */
    if (l->more) return 0;
    note_id(l, c->name);
    put_store(l->out, c);
    return l->out->failed ? SHOAL_ENOMEM : 0;
}

static int work_list(documents_job *a, const executor_tools *t, shoal_err *err)
{
    id_list l = {.out = &a->body, .most = (size_t)a->limit};
    buf_puts(&a->body, "{\"object\":\"list\",\"data\":[");
    int rc = store_each(t->store, a->source ? a->source : "", l.most + 1, list_store, &l, err);
    end_list(&l);
    return rc;
}

/* ?after=ID&limit=N; in the order of their ids. */
void vector_stores_list(gateway_request *rq)
{
    documents_job *a = collections_answer_new(rq, work_list);
    if (a) collections_submit_list(a, STORES_DEFAULT);
}

static int work_create(documents_job *a, const executor_tools *t, shoal_err *err)
{
    int rc = store_create(t->store, &a->c, a->most, err);
    if (rc == 0) put_store(&a->body, &a->c);
    return rc;
}

/* {"type": "auto"}, or nothing. */
static bool is_auto(const json_t *chunking)
{
    const char *type = fields_text(fields_get(chunking, "type"));
    return !chunking || (type && strcmp(type, "auto") == 0);
}

static int refuse_expiry(api_error *e)
{
    return api_error_bad(e, "expires_after",
                         "\"expires_after\" is not offered: a vector store stays until it is deleted");
}

static int read_create(documents_job *a, const json_t *o, api_error *e)
{
    const char *title = "", *model = NULL;
    const json_t *files = fields_get(o, "file_ids");
    uint64_t drawn[2];
    int rc = fields_str(o, "name", &title, e);
    if (rc == 0) rc = fields_str(o, "model", &model, e);
    if (rc == 0) rc = fields_bool(o, "shared", &a->c.shared, e);
    if (rc == 0 && fields_get(o, "expires_after")) rc = refuse_expiry(e);
    if (rc == 0 && !is_auto(fields_get(o, "chunking_strategy")))
        rc = api_error_bad(e, "chunking_strategy",
                           "\"chunking_strategy\" is not offered: retrieval.chunk_tokens says how "
                           "long pieces are");
    if (rc == 0 && json_array_size(files) > 0)
        rc = api_error_bad(e, "file_ids", "file_ids: make the vector store first, then add each file to it");
    if (rc == 0) rc = collections_take_metadata(a, o, e);
    if (rc != 0) return rc;
    rng_bytes(drawn, sizeof drawn);
    snprintf(a->c.name, sizeof a->c.name, "vs_%016llx%08llx", (unsigned long long)drawn[0],
             (unsigned long long)(drawn[1] & 0xFFFFFFFFu));
    a->c.title = arena_strdup(a->mem, title);
    return a->c.title ? collections_choose(a, model, 0, e) : api_error_nomem(e);
}

void vector_stores_create(gateway_request *rq)
{
    api_error e;
    json_t *o = NULL;
    size_t len;
    const char *body = request_body(rq, &len);
    documents_job *a = collections_answer_new(rq, work_create);
    if (!a) return;
    int rc = len ? fields_parse(&o, body, len, &e) : 0; /* all of it may be left out */
    if (rc == 0) rc = read_create(a, o, &e);
    json_drop(o);
    if (rc != 0)
        collections_refuse(a, &e);
    else
        collections_submit(a, EXECUTOR_WRITES);
}

static int work_get(documents_job *a, const executor_tools *t, shoal_err *err)
{
    int rc = store_find(t->store, a->name, a->mem, &a->c, err);
    if (rc == 0) put_store(&a->body, &a->c);
    return rc;
}

void vector_stores_get(gateway_request *rq)
{
    documents_job *a = collections_answer_new(rq, work_get);
    if (a) collections_submit(a, EXECUTOR_READS);
}

static int work_update(documents_job *a, const executor_tools *t, shoal_err *err)
{
    int rc = store_change(t->store, a->name, a->c.title, a->c.metadata, err);
    return rc == 0 ? work_get(a, t, err) : rc;
}

/* What is not given stays as it is. */
static int read_update(documents_job *a, const json_t *o, api_error *e)
{
    const char *title = NULL;
    int rc = fields_str(o, "name", &title, e);
    if (rc == 0 && fields_get(o, "expires_after")) rc = refuse_expiry(e);
    if (rc == 0 && title && !(a->c.title = arena_strdup(a->mem, title))) rc = api_error_nomem(e);
    if (rc == 0 && fields_get(o, "metadata")) rc = collections_take_metadata(a, o, e);
    return rc;
}

/* Reads the body with `read`, and submits. */
static void submit_change(documents_job *a, int (*read)(documents_job *, const json_t *, api_error *))
{
    api_error e;
    json_t *o = NULL;
    size_t len;
    const char *body = request_body(a->rq, &len);
    int rc = fields_parse(&o, body, len, &e);
    if (rc == 0) rc = read(a, o, &e);
    json_drop(o);
    if (rc != 0)
        collections_refuse(a, &e);
    else
        collections_submit(a, EXECUTOR_WRITES);
}

void vector_stores_update(gateway_request *rq)
{
    documents_job *a = collections_answer_new(rq, work_update);
    if (a) submit_change(a, read_update);
}

static int work_delete(documents_job *a, const executor_tools *t, shoal_err *err)
{
    collections_put_deleted(&a->body, "vector_store", "id", a->name);
    return store_delete(t->store, a->name, err);
}

void vector_stores_delete(gateway_request *rq)
{
    documents_job *a = collections_answer_new(rq, work_delete);
    if (a) collections_submit(a, EXECUTOR_WRITES);
}

/* ---- files of a vector store ------------------------------------------------------------------------ */

static void put_entry(buf *out, const char *store_id, const store_document *d)
{
    buf_printf(out,
               "{\"id\":\"%s\",\"object\":\"vector_store.file\",\"usage_bytes\":%lld,\"created_at\":%lld,",
               id_of(d->file, d->id).text, (long long)d->n_bytes, (long long)d->created);
    json_put_text(out, "vector_store_id", store_id);
    buf_puts(out, ",\"status\":\"completed\",\"last_error\":null,");
    json_put_text(out, "filename", d->source);
    buf_printf(out, ",\"attributes\":%s}", d->metadata);
}

static int list_entry(void *user, const store_document *d)
{
    id_list *l = user;
    l->more = l->n == l->most; /* one more, to know that there is one */
    if (l->more) return 0;
    note_id(l, id_of(d->file, d->id).text);
    put_entry(l->out, l->store_id, d);
    return l->out->failed ? SHOAL_ENOMEM : 0;
}

/* One document, in one transaction with what is done to it. */
static int find_entry(documents_job *a, store *s, store_document *ret, shoal_err *err)
{
    int64_t file = strncmp(a->source, INGEST_FILE, strlen(INGEST_FILE)) == 0
                       ? collections_id(a->source, INGEST_FILE)
                       : 0;
    int64_t document =
        strncmp(a->source, DOCUMENT, strlen(DOCUMENT)) == 0 ? collections_id(a->source, DOCUMENT) : 0;
    int rc = store_find(s, a->name, a->mem, &a->c, err);
    if (rc != 0) return rc;
    return file ? store_document_of_file(s, a->c.id, file, a->mem, ret, err)
                : store_document_get(s, a->c.id, document, a->mem, ret, err);
}

static int work_files(documents_job *a, const executor_tools *t, shoal_err *err)
{
    id_list l = {.out = &a->body, .store_id = a->name, .most = (size_t)a->limit};
    store_document after = {.id = 0};
    int rc =
        a->source ? find_entry(a, t->store, &after, err) : store_find(t->store, a->name, a->mem, &a->c, err);
    buf_puts(&a->body, "{\"object\":\"list\",\"data\":[");
    if (rc == 0) rc = store_documents(t->store, a->c.id, after.id, l.most + 1, list_entry, &l, err);
    end_list(&l);
    return rc;
}

/* ?after=ID&limit=N; in the order in which they came. */
void vector_stores_files(gateway_request *rq)
{
    documents_job *a = collections_answer_new(rq, work_files);
    if (a) collections_submit_list(a, FILES_DEFAULT);
}

static int work_file(documents_job *a, const executor_tools *t, shoal_err *err)
{
    store_document d;
    int rc = find_entry(a, t->store, &d, err);
    if (rc == 0) put_entry(&a->body, a->name, &d);
    return rc;
}

/* As it was cut for the search: neighbours may share some text. */
static int work_file_content(documents_job *a, const executor_tools *t, shoal_err *err)
{
    store_document d;
    store_piece piece;
    int rc = find_entry(a, t->store, &d, err);
    buf_puts(&a->body, "{\"object\":\"vector_store.file_content.page\",\"data\":[");
    for (int64_t i = 0; rc == 0 && i < d.n_pieces; i++) {
        rc = store_piece_get(t->store, d.id, (uint32_t)i, a->mem, &piece, err);
        if (rc != 0) break;
        buf_puts(&a->body, i ? ",{\"type\":\"text\"," : "{\"type\":\"text\",");
        json_put_text(&a->body, "text", piece.text);
        buf_putc(&a->body, '}');
    }
    buf_puts(&a->body, "],\"has_more\":false,\"next_page\":null}");
    return rc;
}

static int work_file_delete(documents_job *a, const executor_tools *t, shoal_err *err)
{
    store_document d;
    int rc = store_begin(t->store, true, err);
    if (rc == 0) rc = find_entry(a, t->store, &d, err);
    if (rc == 0) rc = store_find_own(t->store, a->name, a->mem, &a->c, err);
    if (rc == 0) rc = store_document_delete(t->store, &a->c, d.id, err);
    collections_put_deleted(&a->body, "vector_store.file", "id", a->source);
    return rc == 0 ? store_commit(t->store, err) : rc;
}

static void one_entry(gateway_request *rq, int (*fn)(documents_job *, const executor_tools *, shoal_err *),
                      executor_queue queue)
{
    api_error e;
    documents_job *a = collections_answer_new(rq, fn);
    if (!a) return;
    a->source = collections_segment(rq, FILE_SEGMENT, a->mem);
    if (a->source) {
        collections_submit(a, queue);
        return;
    }
    api_error_nomem(&e);
    collections_refuse(a, &e);
}

void vector_stores_file(gateway_request *rq)
{
    one_entry(rq, work_file, EXECUTOR_READS);
}

void vector_stores_file_content(gateway_request *rq)
{
    one_entry(rq, work_file_content, EXECUTOR_READS);
}

void vector_stores_file_delete(gateway_request *rq)
{
    one_entry(rq, work_file_delete, EXECUTOR_WRITES);
}

static int work_attributes(documents_job *a, const executor_tools *t, shoal_err *err)
{
    store_document d;
    const char *metadata = a->c.metadata; /* which find_entry reads over */
    int rc = store_begin(t->store, true, err);
    if (rc == 0) rc = find_entry(a, t->store, &d, err);
    if (rc == 0) rc = store_find_own(t->store, a->name, a->mem, &a->c, err);
    if (rc == 0) rc = store_document_change(t->store, &a->c, d.id, metadata, err);
    d.metadata = metadata;
    if (rc == 0) put_entry(&a->body, a->name, &d);
    return rc == 0 ? store_commit(t->store, err) : rc;
}

static int read_attributes(documents_job *a, const json_t *o, api_error *e)
{
    if (!fields_get(o, "attributes")) return api_error_bad(e, "attributes", "\"attributes\" is missing");
    return collections_take_object(a, o, "attributes", e);
}

void vector_stores_file_update(gateway_request *rq)
{
    api_error e;
    documents_job *a = collections_answer_new(rq, work_attributes);
    if (!a) return;
    a->source = collections_segment(rq, FILE_SEGMENT, a->mem);
    if (a->source) {
        submit_change(a, read_attributes);
        return;
    }
    api_error_nomem(&e);
    collections_refuse(a, &e);
}

/* The one document that was put. */
static void put_added(buf *out, const ingest_result *r, const char *store_id)
{
    const ingest_outcome *o = &r->v[0];
    store_document d = {.id = o->id,
                        .file = o->file,
                        .source = o->source,
                        .metadata = o->metadata,
                        .n_bytes = (int64_t)o->n_bytes,
                        .created = o->created};
    put_entry(out, store_id, &d);
}

void vector_stores_add(gateway_request *rq)
{
    collections_ingest(rq, put_added);
}

/* ---- search ----------------------------------------------------------------------------------------- */

static void put_result(buf *out, const search_hit *h)
{
    buf_printf(out, "{\"file_id\":\"%s\",", id_of(h->piece.file, h->piece.document).text);
    json_put_text(out, "filename", h->piece.source);
    buf_printf(out, ",\"score\":%.9g,\"attributes\":%s,\"content\":[{\"type\":\"text\",",
               (double)h->found.score, h->piece.metadata);
    json_put_text(out, "text", h->piece.text);
    buf_puts(out, "}]}");
}

static double threshold_of(const search_job *j)
{
    const json_t *v = json_object_get(fields_get(j->root, "ranking_options"), "score_threshold");
    return json_is_number(v) ? json_number_value(v) : -1;
}

static void vector_stores_answer(search_job *j, const find_result *r)
{
    gateway_request *rq = j->rq;
    buf out = {0};
    double least = threshold_of(j);
    size_t n = 0;
    buf_puts(&out, "{\"object\":\"vector_store.search_results.page\",\"search_query\":[");
    json_put_string(&out, j->text, strlen(j->text));
    buf_puts(&out, "],\"data\":[");
    for (size_t i = 0; i < r->n; i++) {
        if ((double)r->v[i].found.score < least) continue;
        if (n++) buf_putc(&out, ',');
        put_result(&out, &r->v[i]);
    }
    buf_puts(&out, "],\"has_more\":false,\"next_page\":null}");
    collections_search_free(j);
    request_json(rq, 200, &out);
    buf_done(&out);
}

void vector_stores_search(gateway_request *rq)
{
    static const search_keys KEYS = {.text = "query", .k = "max_num_results", .k_default = 10};
    collections_start_search(rq, &KEYS, vector_stores_answer);
}
