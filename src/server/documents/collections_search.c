/* collections_search.c: POST /v1/collections/NAME/search, and what other searches share with it. */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "documents/collections.h"
#include "documents/collections_impl.h"
#include "request/admission.h"

enum { NAME_SEGMENT = 2 };

void collections_search_free(search_job *j)
{
    find_cancel(j->find);
    json_drop(j->root);
    free(j->collection);
    free(j);
}

static void collections_search_on_gone(void *work)
{
    collections_search_free(work);
}

static void on_found(void *user, const find_result *r)
{
    search_job *j = user;
    gateway_request *rq = j->rq;
    api_error e;
    j->find = NULL;
    if (r->status == 0) {
        j->answer(j, r);
        return;
    }
    collections_search_free(j);
    collections_error(&e, r->status, r->message, r->failed);
    request_error(rq, &e);
}

/* The question: the text itself, or the first of a list of one (OpenAI allows a list). */
static int collections_search_read_text(search_job *j, const search_keys *keys, api_error *e)
{
    const json_t *v = fields_get(j->root, keys->text);
    if (!v && keys->text_too) v = fields_get(j->root, keys->text_too);
    if (json_is_array(v) && json_array_size(v) == 1) v = json_array_get(v, 0);
    j->text = v ? fields_text(v) : NULL;
    if (!j->text || !*j->text)
        return api_error_bad(e, keys->text, "%s: must be the text to look for", keys->text);
    if (strlen(j->text) > FIND_TEXT_MAX)
        return api_error_bad(e, keys->text, "%s: is longer than %d bytes", keys->text, FIND_TEXT_MAX);
    return 0;
}

static int read_ask(search_job *j, const search_keys *keys, find_ask *ask, api_error *e)
{
    const char *mode = "hybrid";
    int rc = collections_search_read_text(j, keys, e);
    j->k = keys->k_default;
    if (rc == 0) rc = fields_int(j->root, keys->k, 1, SEARCH_K_MAX, &j->k, e);
    if (rc == 0) rc = fields_str(j->root, "mode", &mode, e);
    if (rc == 0) rc = fields_str(j->root, "rerank", &ask->rerank, e);
    if (rc == 0 && !find_mode_parse(mode, &ask->mode))
        rc = api_error_bad(e, "mode", "mode: must be hybrid, vector or text");
    const config_alias *alias = config_alias_find(j->rq->config, ask->rerank);
    if (alias) ask->rerank = alias->model;
    if (rc == 0 && ask->rerank) {
        bool known;
        calls_info(j->rq->calls, ask->rerank, &known);
        rc = admission_may_use(j->rq, ask->rerank, e);
        if (rc == 0 && !known) rc = api_error_no_model(e, ask->rerank);
    }
    ask->collection = j->collection;
    ask->text = j->text;
    ask->filters = fields_get(j->root, "filters");
    ask->k = (size_t)j->k;
    return rc;
}

static int collections_search_start(search_job *j, const search_keys *keys, api_error *e)
{
    gateway_request *rq = j->rq;
    size_t len;
    char owner[REQUEST_OWNER_SIZE];
    const char *body = request_body(rq, &len);
    shoal_err err = {0};
    call_context ctx = request_context(rq, "retrieval");
    find_ask ask = {.executor = rq->gateway->executor,
                    .calls = rq->calls,
                    .ctx = &ctx,
                    .owner = request_owner(rq, owner),
                    .user = j,
                    .done = on_found};
    int rc = fields_parse(&j->root, body, len, e);
    if (rc == 0) rc = read_ask(j, keys, &ask, e);
    if (rc != 0) return rc;
    rc = find_start(&j->find, &ask, &err);
    if (rc == SHOAL_ENOMEM) return api_error_nomem(e);
    return rc == 0 ? 0 : api_error_bad(e, "filters", "%s", err.message);
}

void collections_start_search(gateway_request *rq, const search_keys *keys,
                              void (*answer)(search_job *, const find_result *))
{
    api_error e;
    arena *mem = arena_new(0);
    const char *name = mem ? collections_segment(rq, NAME_SEGMENT, mem) : NULL;
    search_job *j = name ? calloc(1, sizeof *j) : NULL;
    if (j) *j = (search_job){.rq = rq, .collection = strdup(name), .answer = answer};
    arena_free(mem);
    int rc = j && j->collection ? collections_search_start(j, keys, &e) : api_error_nomem(&e);
    if (rc == 0) {
        request_watch(rq, collections_search_on_gone, j);
        return;
    }
    if (j) collections_search_free(j);
    request_error(rq, &e);
}

/* ---- our own form ----------------------------------------------------------------------------------- */

void collections_put_piece(buf *out, const store_piece *p)
{
    json_put_text(out, "source", p->source);
    buf_printf(out, ",\"document\":%lld,\"start\":%lld,\"end\":%lld,\"line\":%lld,", (long long)p->document,
               (long long)p->start, (long long)p->end, (long long)p->line);
    json_put_text(out, "title", p->title);
    buf_printf(out, ",\"metadata\":%s", p->metadata);
}

static void put_hit(buf *out, const search_hit *h)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "text", h->piece.text);
    buf_printf(out, ",\"score\":%.9g,", (double)h->found.score);
    collections_put_piece(out, &h->piece);
    if (h->found.by_meaning) buf_printf(out, ",\"cosine\":%.9g", (double)h->found.cosine);
    if (h->found.by_words) buf_printf(out, ",\"bm25\":%.9g", (double)h->found.bm25);
    buf_putc(out, '}');
}

static void collections_search_answer(search_job *j, const find_result *r)
{
    gateway_request *rq = j->rq;
    buf out = {0};
    buf_puts(&out, "{\"results\":[");
    for (size_t i = 0; i < r->n; i++) put_hit(&out, &r->v[i]);
    buf_putc(&out, ']');
    if (r->degraded) json_put_text(&out, "degraded", r->degraded);
    buf_putc(&out, '}');
    collections_search_free(j);
    request_json(rq, 200, &out);
    buf_done(&out);
}

void collections_search(gateway_request *rq)
{
    static const search_keys KEYS = {.text = "query", .text_too = "text", .k = "limit", .k_default = 5};
    collections_start_search(rq, &KEYS, collections_search_answer);
}
