/* files.c: /v1/files: what is uploaded to become documents; see vector_stores.h. */
#include <stdlib.h>
#include <string.h>

#include "json/json_put.h"
#include "messages/query.h"
#include "documents/collections_impl.h"
#include "documents/vector_stores.h"

enum { ID_SEGMENT = 2, LIST_DEFAULT = 1000 };

void files_put(buf *out, const store_file *f)
{
    buf_printf(out, "{\"id\":\"%s%lld\",\"object\":\"file\",\"bytes\":%lld,\"created_at\":%lld,", INGEST_FILE,
               (long long)f->id, (long long)f->n_bytes, (long long)f->created);
    json_put_text(out, "filename", f->name);
    json_put_text(out, "purpose", f->purpose);
    if (f->expires) buf_printf(out, ",\"expires_at\":%lld", (long long)f->expires);
    buf_puts(out, ",\"status\":\"processed\"}");
}

typedef struct file_list {
    buf *out;
    int64_t n, most, first, last;
} file_list;

static int list_file(void *user, const store_file *f)
{
    file_list *l = user;
    if (l->n++ == l->most) return 0; /* one more, to know that there is one */
    if (l->n == 1)
        l->first = f->id;
    else
        buf_putc(l->out, ',');
    l->last = f->id;
    files_put(l->out, f);
    return l->out->failed ? SHOAL_ENOMEM : 0;
}

static int64_t file_id(const char *text)
{
    return strncmp(text, INGEST_FILE, strlen(INGEST_FILE)) == 0 ? collections_id(text, INGEST_FILE) : 0;
}

static int work_list(documents_job *a, const executor_tools *t, shoal_err *err)
{
    file_list l = {.out = &a->body, .most = a->limit};
    int64_t after = a->source ? file_id(a->source) : 0;
    if (a->source && !after) return err_set(err, SHOAL_ENOTFOUND, "after: there is no such file");
    buf_puts(&a->body, "{\"object\":\"list\",\"data\":[");
    int rc = store_files(t->store, after, a->purpose, (size_t)a->limit + 1, list_file, &l, err);
    buf_putc(&a->body, ']');
    if (l.n)
        buf_printf(&a->body, ",\"first_id\":\"%s%lld\",\"last_id\":\"%s%lld\"", INGEST_FILE,
                   (long long)l.first, INGEST_FILE, (long long)l.last);
    buf_printf(&a->body, ",\"has_more\":%s}", l.n > l.most ? "true" : "false");
    return rc;
}

/* ?after=ID&limit=N&purpose=P; oldest first. */
void files_list(gateway_request *rq)
{
    api_error e;
    char *purpose = NULL;
    documents_job *a = collections_answer_new(rq, work_list);
    if (!a) return;
    int rc = query_value(request_query(rq), "purpose", &purpose, &e);
    if (rc == 0 && purpose && !(a->purpose = arena_strdup(a->mem, purpose))) rc = api_error_nomem(&e);
    free(purpose);
    if (rc != 0)
        collections_refuse(a, &e);
    else
        collections_submit_list(a, LIST_DEFAULT);
}

/* ---- one file --------------------------------------------------------------------------------------- */

static int work_get(documents_job *a, const executor_tools *t, shoal_err *err)
{
    store_file f;
    int rc = store_file_get(t->store, a->id, a->mem, &f, NULL, err);
    if (rc == 0) files_put(&a->body, &f);
    return rc;
}

int collections_get_file(documents_job *a, const executor_tools *t, int64_t id, store_file *ret,
                         const char **ret_content, shoal_err *err)
{
    int rc = store_file_get(t->store, id, a->mem, ret, NULL, err);
    if (rc == 0 && a->most_answer && ret->n_bytes > a->most_answer)
        rc = err_set(err, SHOAL_ELIMIT,
                     "the file has %lld bytes, and an answer may have %lld: raise limits.max_unsent_bytes",
                     (long long)ret->n_bytes, (long long)a->most_answer);
    return rc == 0 ? store_file_get(t->store, id, a->mem, ret, ret_content, err) : rc;
}

static int work_content(documents_job *a, const executor_tools *t, shoal_err *err)
{
    store_file f;
    const char *content;
    int rc = collections_get_file(a, t, a->id, &f, &content, err);
    if (rc == 0) buf_append(&a->body, content, (size_t)f.n_bytes);
    a->type = "application/octet-stream";
    return rc;
}

static int work_delete(documents_job *a, const executor_tools *t, shoal_err *err)
{
    buf_printf(&a->body, "{\"id\":\"%s%lld\",\"object\":\"file\",\"deleted\":true}", INGEST_FILE,
               (long long)a->id);
    return store_file_delete(t->store, a->id, err);
}

static void one_file(gateway_request *rq, int (*fn)(documents_job *, const executor_tools *, shoal_err *),
                     executor_queue queue)
{
    api_error e;
    documents_job *a = collections_answer_new(rq, fn);
    if (!a) return;
    a->id = file_id(a->name);
    if (a->id) {
        collections_submit(a, queue);
        return;
    }
    api_error_set(&e, 404, "invalid_request_error", "not_found", NULL, "there is no such file");
    collections_refuse(a, &e);
}

void files_get(gateway_request *rq)
{
    one_file(rq, work_get, EXECUTOR_READS);
}

void files_content(gateway_request *rq)
{
    one_file(rq, work_content, EXECUTOR_READS);
}

void files_delete(gateway_request *rq)
{
    one_file(rq, work_delete, EXECUTOR_WRITES);
}
