/* collections.c: collections and their documents: made, listed, deleted; see collections.h. */
#include "documents/collections.h"

#include <stdlib.h>
#include <string.h>

#include "messages/query.h"
#include "json/json.h"
#include "json/json_put.h"
#include "base/name.h"
#include "base/number.h"
#include "request/model_resolve.h"
#include "documents/collections_impl.h"

enum { NAME_SEGMENT = 2, ID_SEGMENT = 4, LIST_MAX = 1000, HEADERS_ROOM = 32 << 10 };

/* ---- work in a thread ------------------------------------------------------------------------------- */

void collections_error(api_error *e, int rc, const char *message, const call_result *failed)
{
    call_result r = {.status = rc, .message = message};
    if (failed)
        api_error_from_call(e, failed);
    else if (rc == SHOAL_ENOTFOUND)
        api_error_set(e, 404, "invalid_request_error", "not_found", NULL, "%s", message);
    else if (rc == SHOAL_EAUTH && strstr(message, "belongs to another API key"))
        api_error_set(e, 403, "invalid_request_error", "insufficient_permissions", NULL, "%s", message);
    else if (rc == SHOAL_EDIGEST)
        api_error_set(e, 409, "invalid_request_error", "model_changed", NULL, "%s", message);
    else if (rc == SHOAL_ELIMIT)
        api_error_set(e, 400, "invalid_request_error", "over_limit", NULL, "%s", message);
    else if (rc == SHOAL_EFORMAT)
        api_error_set(e, 500, "server_error", "store_damaged", NULL, "%s", message);
    else
        api_error_from_call(e, &r);
}

void collections_answer_free(documents_job *a)
{
    arena_free(a->mem);
    buf_done(&a->in);
    buf_done(&a->body);
    free(a);
}

void collections_refuse(documents_job *a, const api_error *e)
{
    gateway_request *rq = a->rq;
    collections_answer_free(a);
    request_error(rq, e);
}

const char *collections_segment(const gateway_request *rq, size_t i, arena *mem)
{
    const char *p = request_path(rq);
    for (; *p; i--) {
        size_t n = strcspn(++p, "/");
        if (i == 0) return arena_strndup(mem, p, n);
        p += n;
    }
    return arena_strdup(mem, "");
}

int64_t collections_id(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    int64_t id;
    if (strncmp(text, prefix, n) == 0) text += n;
    return number_i64(text, &id) && id > 0 ? id : 0;
}

documents_job *collections_answer_new(gateway_request *rq,
                                      int (*fn)(documents_job *, const executor_tools *, shoal_err *))
{
    return collections_answer_new_sized(rq, fn, sizeof(documents_job));
}

documents_job *collections_answer_new_sized(gateway_request *rq,
                                            int (*fn)(documents_job *, const executor_tools *, shoal_err *),
                                            size_t size)
{
    api_error e;
    documents_job *a = calloc(1, size);
    if (a) *a = (documents_job){.rq = rq, .fn = fn, .mem = arena_new(0), .limit = LIST_MAX};
    if (a) request_owner(rq, a->owner);
    if (a) a->most = (int64_t)rq->config->retrieval_collections;
    if (a && rq->config->limits.max_unsent > HEADERS_ROOM)
        a->most_answer = (int64_t)(rq->config->limits.max_unsent - HEADERS_ROOM);
    if (a && a->mem) a->name = collections_segment(rq, NAME_SEGMENT, a->mem);
    if (a && a->name) return a;
    if (a) collections_answer_free(a);
    api_error_nomem(&e);
    request_error(rq, &e);
    return NULL;
}

static void collections_on_gone(void *work)
{
    documents_job *a = work; /* the thread has it */
    executor *d = a->rq->gateway->executor;
    a->rq = NULL;
    executor_cancel(d, &a->job);
}

static int work(executor_job *j, const executor_tools *t, shoal_err *err)
{
    documents_job *a = (documents_job *)j;
    int rc = a->fn(a, t, err);
    return rc == 0 && a->body.failed ? err_nomem(err) : rc;
}

static void done(executor_job *j)
{
    documents_job *a = (documents_job *)j;
    gateway_request *rq = a->rq;
    api_error e;
    if (rq && j->rc == 0 && a->after_done)
        a->after_done(rq->gateway); /* of one that left, the next scan sees it */
    if (!rq) {
        collections_answer_free(a);
    } else if (j->rc != 0) {
        collections_error(&e, j->rc, j->err.message, NULL);
        collections_refuse(a, &e);
    } else {
        buf body = a->body;
        const char *type = a->type;
        a->body = (buf){0};
        collections_answer_free(a);
        if (type)
            request_text(rq, 200, type, &body);
        else
            request_json(rq, 200, &body);
        buf_done(&body);
    }
}

void collections_submit(documents_job *a, executor_queue queue)
{
    a->job = (executor_job){.work = work, .done = done, .queue = queue, .owner = a->owner};
    request_watch(a->rq, collections_on_gone, a);
    executor_submit(a->rq->gateway->executor, &a->job);
}

/* ---- JSON ------------------------------------------------------------------------------------------- */

void collections_put_collection(buf *out, const store_collection *c)
{
    buf_putc(out, '{');
    json_put_text(out, "name", c->name);
    buf_puts(out, ",\"object\":\"collection\",");
    json_put_text(out, "title", c->title);
    json_put_text(out, "model", c->model);
    buf_printf(out,
               ",\"dimensions\":%u,\"chunk_bytes\":%u,\"documents\":%lld,\"chunks\":%lld,\"bytes\":%lld,"
               "\"created\":%lld,%s\"metadata\":%s}",
               c->dims, c->piece_bytes, (long long)c->n_documents, (long long)c->n_pieces,
               (long long)c->n_bytes, (long long)c->created,
               !c->owned   ? ""
               : c->shared ? "\"shared\":true,"
                           : "\"shared\":false,",
               c->metadata);
}

static void put_document(buf *out, const store_document *d)
{
    buf_printf(out, "{\"id\":%lld,\"object\":\"document\",", (long long)d->id);
    json_put_text(out, "source", d->source);
    buf_printf(
        out,
        ",\"type\":\"%s\",\"digest\":\"%s\",\"bytes\":%lld,\"chunks\":%lld,\"created\":%lld,\"metadata\":%s}",
        d->type, d->digest, (long long)d->n_bytes, (long long)d->n_pieces, (long long)d->created,
        d->metadata);
}

void collections_put_deleted(buf *out, const char *what, const char *key, const char *name)
{
    buf_putc(out, '{');
    json_put_text(out, key, name);
    buf_printf(out, ",\"object\":\"%s.deleted\",\"deleted\":true}", what);
}

/* ---- collections ------------------------------------------------------------------------------------ */

typedef struct name_list {
    buf *out;
    int64_t n, most;
    char last[STORE_NAME_MAX + 1];
} name_list;

static int list_one(void *user, const store_collection *c)
{
    name_list *l = user;
    if (l->n++ == l->most) return 0; /* one more, to know that there is one */
    json_put_key(l->out, NULL);      /* a comma behind another */
    collections_put_collection(l->out, c);
    strcpy(l->last, c->name);
    return l->out->failed ? SHOAL_ENOMEM : 0;
}

static int work_list(documents_job *a, const executor_tools *t, shoal_err *err)
{
    name_list l = {.out = &a->body, .most = a->limit};
    buf_puts(&a->body, "{\"object\":\"list\",\"data\":[");
    if (a->body.failed) return err_nomem(err);
    int rc = store_each(t->store, a->source ? a->source : "", (size_t)a->limit + 1, list_one, &l, err);
    buf_printf(&a->body, "],\"has_more\":%s", l.n > l.most ? "true" : "false");
    if (*l.last) buf_printf(&a->body, ",\"last_id\":\"%s\"", l.last); /* names need no escapes */
    buf_putc(&a->body, '}');
    return rc;
}

/* Lists are ascending and read forwards, whatever OpenAI's default is; another wish is not ignored. */
static int refuse_order(const char *query, api_error *e)
{
    char *order = NULL, *before = NULL;
    int rc = query_value(query, "order", &order, e);
    if (rc == 0) rc = query_value(query, "before", &before, e);
    if (rc == 0 && order && strcmp(order, "asc") != 0)
        rc = api_error_bad(e, "order", "\"order\": lists are ascending here: leave it out, or send asc");
    if (rc == 0 && before) rc = api_error_bad(e, "before", "\"before\" is not offered: page with \"after\"");
    free(order);
    free(before);
    return rc;
}

void collections_submit_list(documents_job *a, int64_t limit_default)
{
    api_error e;
    char *after = NULL;
    const char *query = request_query(a->rq);
    a->limit = limit_default;
    int rc = query_number(query, "limit", 1, LIST_MAX, &a->limit, &e);
    if (rc == 0) rc = query_value(query, "after", &after, &e);
    if (rc == 0) rc = refuse_order(query, &e);
    if (rc == 0 && after && !(a->source = arena_strdup(a->mem, after))) rc = api_error_nomem(&e);
    free(after);
    if (rc != 0)
        collections_refuse(a, &e);
    else
        collections_submit(a, EXECUTOR_READS);
}

void collections_list(gateway_request *rq)
{
    documents_job *a = collections_answer_new(rq, work_list);
    if (a) collections_submit_list(a, LIST_MAX);
}

static int work_get(documents_job *a, const executor_tools *t, shoal_err *err)
{
    int rc = store_find(t->store, a->name, a->mem, &a->c, err);
    if (rc == 0) collections_put_collection(&a->body, &a->c);
    return rc;
}

void collections_get(gateway_request *rq)
{
    documents_job *a = collections_answer_new(rq, work_get);
    if (a) collections_submit(a, EXECUTOR_READS);
}

static int work_create(documents_job *a, const executor_tools *t, shoal_err *err)
{
    int rc = store_create(t->store, &a->c, a->most, err);
    if (rc == 0) collections_put_collection(&a->body, &a->c);
    return rc;
}

/* Some two bytes a token leave room for words that the vocabulary does not have. */
static uint32_t piece_bytes_for(const Shoal__V1__ModelInfo *info)
{
    uint32_t n = info && info->n_ctx ? info->n_ctx * 2 : 256;
    return n < 128 ? 128 : n > 1200 ? 1200 : n;
}

int collections_choose(documents_job *a, const char *model, int64_t piece_bytes, api_error *e)
{
    const Shoal__V1__ModelInfo *info = NULL;
    bool none = model && (!*model || strcmp(model, "none") == 0);
    if (!none) model = model_resolve_alias(a->rq, model);
    int rc = none ? 0 : model_resolve(a->rq, "embed", &model, &info, e);
    if (rc != 0) return rc;
    a->c.model = none ? "" : arena_strdup(a->mem, model);
    if (!a->c.model) return api_error_nomem(e);
    a->c.piece_bytes = piece_bytes ? (uint32_t)piece_bytes : none ? 800 : piece_bytes_for(info);
    a->c.created = request_date_s(a->rq);
    return 0;
}

int collections_take_metadata(documents_job *a, const json_t *o, api_error *e)
{
    return collections_take_object(a, o, "metadata", e);
}

int collections_take_object(documents_job *a, const json_t *o, const char *key, api_error *e)
{
    const json_t *m = fields_get(o, key);
    buf text = {0};
    if (m && !json_is_object(m)) return api_error_bad(e, key, "%s: must be an object", key);
    if (m)
        json_put(&text, m);
    else
        buf_puts(&text, "{}");
    bool too_long = text.len > STORE_METADATA_MAX;
    a->c.metadata = text.failed ? NULL : arena_strndup(a->mem, text.data, text.len);
    buf_done(&text);
    if (too_long) return api_error_bad(e, key, "%s: is longer than %d bytes", key, STORE_METADATA_MAX);
    return a->c.metadata ? 0 : api_error_nomem(e);
}

static int read_create(documents_job *a, const json_t *o, api_error *e)
{
    const char *name = NULL, *title = "", *model = NULL;
    int64_t piece_bytes = 0;
    int rc = fields_str(o, "name", &name, e);
    if (rc == 0) rc = fields_str(o, "title", &title, e);
    if (rc == 0) rc = fields_str(o, "model", &model, e);
    if (rc == 0) rc = fields_bool(o, "shared", &a->c.shared, e);
    if (rc == 0) rc = fields_int(o, "chunk_bytes", PIECE_BYTES_MIN * 2, PIECE_BYTES_MAX, &piece_bytes, e);
    if (rc == 0) rc = collections_take_metadata(a, o, e);
    if (rc != 0) return rc;
    if (!name || !name_is_fine(name, strlen(name)))
        return api_error_bad(e, "name", "name: must be there, has 1 to %d bytes, " NAME_RULE, NAME_BYTES_MAX);
    strcpy(a->c.name, name);
    a->c.title = arena_strdup(a->mem, title);
    return a->c.title ? collections_choose(a, model, piece_bytes, e) : api_error_nomem(e);
}

void collections_create(gateway_request *rq)
{
    api_error e;
    json_t *o = NULL;
    size_t len;
    const char *body = request_body(rq, &len);
    documents_job *a = collections_answer_new(rq, work_create);
    if (!a) return;
    int rc = fields_parse(&o, body, len, &e);
    if (rc == 0) rc = read_create(a, o, &e);
    json_drop(o);
    if (rc != 0)
        collections_refuse(a, &e);
    else
        collections_submit(a, EXECUTOR_WRITES);
}

static int work_delete(documents_job *a, const executor_tools *t, shoal_err *err)
{
    int rc = store_delete(t->store, a->name, err);
    collections_put_deleted(&a->body, "collection", "name", a->name);
    return rc;
}

void collections_delete(gateway_request *rq)
{
    documents_job *a = collections_answer_new(rq, work_delete);
    if (a) collections_submit(a, EXECUTOR_WRITES);
}

/* ---- documents -------------------------------------------------------------------------------------- */

typedef struct document_list {
    buf *out;
    int64_t n, most, last;
} document_list;

static int list_document(void *user, const store_document *d)
{
    document_list *l = user;
    if (l->n++ == l->most) return 0; /* one more, to know that there is one */
    json_put_key(l->out, NULL);      /* a comma behind another */
    put_document(l->out, d);
    l->last = d->id;
    return l->out->failed ? SHOAL_ENOMEM : 0;
}

static int work_documents(documents_job *a, const executor_tools *t, shoal_err *err)
{
    document_list l = {.out = &a->body, .most = a->limit};
    int rc = store_find(t->store, a->name, a->mem, &a->c, err);
    buf_puts(&a->body, "{\"object\":\"list\",\"data\":[");
    if (a->body.failed) rc = err_nomem(err);
    if (rc == 0)
        rc = store_documents(t->store, a->c.id, a->after, (size_t)a->limit + 1, list_document, &l, err);
    buf_printf(&a->body, "],\"has_more\":%s,\"last_id\":%lld}", l.n > l.most ? "true" : "false",
               (long long)l.last);
    return rc;
}

void collections_documents(gateway_request *rq)
{
    api_error e;
    documents_job *a = collections_answer_new(rq, work_documents);
    if (!a) return;
    int rc = query_number(request_query(rq), "after", 0, INT64_MAX, &a->after, &e);
    if (rc == 0) rc = query_number(request_query(rq), "limit", 1, LIST_MAX, &a->limit, &e);
    if (rc != 0)
        collections_refuse(a, &e);
    else
        collections_submit(a, EXECUTOR_READS);
}

static int work_document(documents_job *a, const executor_tools *t, shoal_err *err)
{
    store_document d;
    int rc = store_find(t->store, a->name, a->mem, &a->c, err);
    if (rc == 0) rc = store_document_get(t->store, a->c.id, a->id, a->mem, &d, err);
    if (rc == 0) put_document(&a->body, &d);
    return rc;
}

static int work_document_delete(documents_job *a, const executor_tools *t, shoal_err *err)
{
    store_document d = {.id = a->id, .source = ""};
    int rc = store_begin(t->store, true, err);
    if (rc == 0) rc = store_find_own(t->store, a->name, a->mem, &a->c, err);
    if (rc == 0 && a->source) rc = store_document_find(t->store, a->c.id, a->source, a->mem, &d, err);
    if (rc == 0) rc = store_document_delete(t->store, &a->c, d.id, err);
    if (rc == 0) rc = store_commit(t->store, err);
    char id[24];
    snprintf(id, sizeof id, "%lld", (long long)d.id);
    collections_put_deleted(&a->body, "document", "id", id);
    return rc;
}

/* /documents/ID */
static void one_document(gateway_request *rq, int (*fn)(documents_job *, const executor_tools *, shoal_err *),
                         executor_queue queue)
{
    api_error e;
    documents_job *a = collections_answer_new(rq, fn);
    const char *id = a ? collections_segment(rq, ID_SEGMENT, a->mem) : NULL;
    if (!a) return;
    a->id = id ? collections_id(id, "") : 0;
    if (a->id) {
        collections_submit(a, queue);
        return;
    }
    api_error_set(&e, 404, "invalid_request_error", "not_found", NULL,
                  "there is no such document in the collection");
    collections_refuse(a, &e);
}

void collections_document(gateway_request *rq)
{
    one_document(rq, work_document, EXECUTOR_READS);
}

void collections_document_delete(gateway_request *rq)
{
    one_document(rq, work_document_delete, EXECUTOR_WRITES);
}

void collections_remove(gateway_request *rq)
{
    api_error e;
    char *source = NULL;
    documents_job *a = collections_answer_new(rq, work_document_delete);
    if (!a) return;
    int rc = query_value(request_query(rq), "source", &source, &e);
    if (rc == 0 && !source) rc = api_error_bad(&e, "source", "?source= must name the document to delete");
    if (rc == 0 && !(a->source = arena_strdup(a->mem, source))) rc = api_error_nomem(&e);
    free(source);
    if (rc != 0)
        collections_refuse(a, &e);
    else
        collections_submit(a, EXECUTOR_WRITES);
}
