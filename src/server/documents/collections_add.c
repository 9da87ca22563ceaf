/* collections_add.c: documents come in over HTTP; see retrieve/ingest.h. */
#include <stdlib.h>
#include <string.h>

#include "documents/collections.h"
#include "documents/collections_impl.h"
#include "json/json_put.h"
#include "access/auth.h"

enum { NAME_SEGMENT = 2 };

typedef struct add_job {
    gateway_request *rq;
    auth_use *use; /* of its key, where it is counted; NULL: it has none */
    ingest *in;
    char *collection;
    void (*put)(buf *out, const ingest_result *r, const char *collection);
} add_job;

static void add_free(add_job *j)
{
    ingest_cancel(j->in);
    if (j->use) j->use->n_indexing--;
    free(j->collection);
    free(j);
}

static void collections_add_on_gone(void *work)
{
    add_free(work);
}

/* What was put of it stays. */
static void on_late(void *work)
{
    add_job *j = work;
    gateway_request *rq = j->rq;
    api_error e;
    api_error_set(
        &e, 504, "timeout_error", "deadline_exceeded", NULL,
        "the deadline passed while the documents were read; send fewer in a request, or allow more time");
    add_free(j);
    request_error(rq, &e);
}

/* Nothing came in, and there was something: the first reason is everybody's. */
static bool all_failed(const ingest_result *r, const char **ret_why)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].status != INGEST_FAILED) return false;
    *ret_why = r->v[0].error;
    return true;
}

static void collections_add_refuse(gateway_request *rq, const ingest_result *r, const char *why)
{
    api_error e;
    if (r->status == 0)
        api_error_set(&e, 400, "invalid_request_error", "no_document_read", "documents", "%s", why);
    else
        collections_error(&e, r->status, r->message, r->failed);
    request_error(rq, &e);
}

static void on_done(void *user, const ingest_result *r)
{
    add_job *j = user;
    gateway_request *rq = j->rq;
    const char *why = NULL;
    buf body = {0};
    j->in = NULL;
    if (r->status == 0 && !all_failed(r, &why)) {
        j->put(&body, r, j->collection);
        add_free(j);
        request_json(rq, 200, &body);
    } else {
        add_free(j);
        collections_add_refuse(rq, r, why);
    }
    buf_done(&body);
}

static void put_outcome(buf *out, const ingest_outcome *o)
{
    json_put_open(out, NULL, '{');
    if (o->id) buf_printf(out, "\"id\":%lld,", (long long)o->id);
    json_put_text(out, "source", o->source);
    buf_printf(out, ",\"status\":\"%s\",\"chunks\":%zu,\"bytes\":%zu", ingest_status_word(o->status),
               o->n_pieces, o->n_bytes);
    if (*o->error) json_put_text(out, "error", o->error);
    buf_putc(out, '}');
}

static void put_outcomes(buf *out, const ingest_result *r, const char *collection)
{
    size_t of[INGEST_FAILED + 1] = {0};
    buf_puts(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < r->n; i++) {
        put_outcome(out, &r->v[i]);
        of[r->v[i].status]++;
    }
    buf_putc(out, ']');
    for (size_t i = 0; i <= INGEST_FAILED; i++)
        buf_printf(out, ",\"%s\":%zu", ingest_status_word((ingest_status)i), of[i]);
    buf_putc(out, '}');
}

/* One key leaves places for others. */
static int count_in(add_job *j, api_error *e)
{
    const gateway_request *rq = j->rq;
    auth_use *use = rq->key ? rq->key->use : NULL;
    if (use && use->n_indexing >= rq->config->retrieval_indexing) {
        api_error_set(e, 429, "rate_limit_error", "rate_limit_exceeded", NULL,
                      "%zu requests of this API key bring documents already, which is the limit "
                      "(retrieval.max_indexing); try again when one has its answer",
                      use->n_indexing);
        e->retry_after_s = 1;
        return e->status;
    }
    if (use) use->n_indexing++;
    j->use = use;
    return 0;
}

static int collections_add_start(add_job *j, api_error *e)
{
    gateway_request *rq = j->rq;
    size_t n;
    char owner[REQUEST_OWNER_SIZE];
    int rc = count_in(j, e);
    if (rc != 0) return rc;
    const char *body = request_body(rq, &n);
    call_context ctx = request_context(rq, "documents");
    arena *mem = arena_new(0);
    const char *name = mem ? collections_segment(rq, NAME_SEGMENT, mem) : NULL;
    j->collection = name ? strdup(name) : NULL;
    arena_free(mem);
    ingest_ask ask = {.executor = rq->gateway->executor,
                      .calls = rq->calls,
                      .ctx = &ctx,
                      .owner = request_owner(rq, owner),
                      .collection = j->collection,
                      .body = body,
                      .n_body = n,
                      .created = request_date_s(rq),
                      .user = j,
                      .done = on_done};
    j->in = j->collection ? ingest_start(&ask) : NULL;
    return j->in ? 0 : api_error_nomem(e);
}

void collections_ingest(gateway_request *rq,
                        void (*put)(buf *out, const ingest_result *r, const char *collection))
{
    api_error e;
    add_job *j = calloc(1, sizeof *j);
    if (j) *j = (add_job){.rq = rq, .put = put};
    int rc = j ? collections_add_start(j, &e) : api_error_nomem(&e);
    if (rc == 0) {
        request_watch(rq, collections_add_on_gone, j);
        request_on_deadline(rq, on_late);
        return;
    }
    if (j) add_free(j);
    request_error(rq, &e);
}

void collections_add(gateway_request *rq)
{
    collections_ingest(rq, put_outcomes);
}
