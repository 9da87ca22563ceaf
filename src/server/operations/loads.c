/* loads.c: see loads.h. */
#include "operations/loads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "messages/query.h"
#include "json/json.h"
#include "json/json_put.h"
#include "operations/status.h"
#include "request/endpoint.h"
#include "request/gateway_state.h"
#include "request/model_resolve.h"
#include "gateway/model_manager.h"
#include "http/http.h"

typedef struct load_job {
    gateway_request *rq;
    model_manager_ticket *ticket;
    bool streams, lines;
    bool deletes; /* DELETE says so in OpenAI's words */
    char model[96];
} load_job;

/* ---- what is told -------------------------------------------------------------------------------------- */

static void put_news(buf *out, const model_manager_progress *n)
{
    buf_printf(out, "{\"status\":\"%s\"", model_manager_step_name(n->step));
    if (*n->model) buf_puts(out, ",\"model\":");
    if (*n->model) json_put_string(out, n->model, strlen(n->model));
    if (n->step == MODEL_MANAGER_FETCHING && *n->file) {
        json_put_text(out, "file", n->file);
        if (n->total) buf_printf(out, ",\"total\":%llu", (unsigned long long)n->total);
        buf_printf(out, ",\"completed\":%llu", (unsigned long long)n->fetched);
    }
    if (*n->sha256) buf_printf(out, ",\"sha256\":\"%.64s\"", n->sha256);
    if (n->n_replicas) buf_printf(out, ",\"replicas\":%u,\"ready\":%u", n->n_replicas, n->n_ready);
    buf_putc(out, '}');
}

static void loads_say(load_job *j, event_kind kind, const buf *what)
{
    if (!what->failed) request_event(j->rq, &(event){.kind = kind, .data = what->data, .n_data = what->len});
}

static void told(void *user, const model_manager_progress *n)
{
    load_job *j = user;
    buf out = {0};
    if (!j->streams || request_stream_is_full(j->rq)) return; /* who reads slowly hears less */
    put_news(&out, n);
    loads_say(j, EVENT_DATA, &out);
    buf_done(&out);
}

/* ---- the answer ---------------------------------------------------------------------------------------- */

static void put_result(buf *out, const load_job *j, const model_manager_progress *n)
{
    const char *name = j->deletes ? j->model : n->model;
    if (n->step == MODEL_MANAGER_READY && !j->deletes) {
        status_put_model(out, j->rq, name);
        return;
    }
    buf_putc(out, '{');
    json_put_text(out, "id", name);
    buf_puts(out, ",\"object\":\"model\",");
    if (j->deletes)
        buf_printf(out, "\"deleted\":true,\"files\":%u,\"bytes\":%llu}", n->n_removed,
                   (unsigned long long)n->total);
    else
        buf_puts(out, "\"state\":\"unloaded\"}");
}

static void end_stream(load_job *j, const model_manager_progress *n, const api_error *e)
{
    buf out = {0};
    if (e)
        api_error_put(&out, e);
    else
        put_news(&out, n);
    loads_say(j, e ? EVENT_ERROR : EVENT_DATA, &out);
    buf_done(&out);
    request_event(j->rq, &EVENT_FINAL);
    if (e) j->rq->error_code = e->code;
    request_stream_end(j->rq);
}

static void ended(void *user, const model_manager_progress *n, const api_error *e)
{
    load_job *j = user;
    buf out = {0};
    request_watch(j->rq, NULL, NULL);
    if (j->streams) {
        end_stream(j, n, e);
    } else if (e) {
        request_error(j->rq, e);
    } else {
        put_result(&out, j, n);
        request_json(j->rq, 200, &out);
    }
    buf_done(&out);
    free(j);
}

static void gone(void *work)
{
    load_job *j = work;
    j->rq->gateway->model_manager->leave(j->ticket);
    free(j);
}

/* It took longer than the client would wait: the work goes on, and asking again joins it. */
static void too_late(void *work)
{
    load_job *j = work;
    gateway_request *rq = j->rq;
    api_error e;
    api_error_set(&e, 504, "timeout_error", "deadline", NULL,
                  "it is not done yet, and goes on; ask again, or look at GET /v1/models");
    request_watch(rq, NULL, NULL);
    request_on_deadline(rq, NULL);
    if (j->streams) {
        rq->gateway->model_manager->leave(j->ticket);
        end_stream(j, NULL, &e);
        free(j);
    } else {
        gone(j);
        request_error(rq, &e);
    }
}

/* ---- the question -------------------------------------------------------------------------------------- */

static load_job *loads_job_new(gateway_request *rq, bool streams)
{
    const char *accept = request_header(rq, "accept");
    load_job *j = calloc(1, sizeof *j);
    if (!j) return NULL;
    j->rq = rq;
    j->streams = streams;
    j->lines = accept && strstr(accept, "application/x-ndjson") && rq->ingress->ops->takes_lines;
    return j;
}

/* The ticket is there, or e says why not; then false, and j is gone. A deadline counts only where the client named one: a download takes
 * longer than any answer. */
static bool wait_for(load_job *j, const api_error *e)
{
    gateway_request *rq = j->rq;
    if (!j->ticket) {
        free(j);
        request_error(rq, e);
        return false;
    }
    request_watch(rq, gone, j);
    if (rq->names_deadline) request_on_deadline(rq, too_late);
    if (j->streams && j->lines) request_lines_begin(rq);
    if (j->streams && !j->lines) request_stream_begin(rq);
    return true;
}

static const model_manager *model_manager_of(gateway_request *rq)
{
    api_error e;
    if (rq->gateway->model_manager) return rq->gateway->model_manager;
    api_error_set(&e, 403, "invalid_request_error", "not_allowed", NULL,
                  "this gateway starts no workers of its own");
    request_error(rq, &e);
    return NULL;
}

static int read_load(gateway_request *rq, arena *mem, config_load_request *ret, api_error *e)
{
    size_t n;
    const char *body = request_body(rq, &n);
    json_t *o = NULL;
    shoal_err err;
    int rc = json_parse_request(&o, body, n, "the body", &err);
    if (rc == 0) rc = config_load_request_parse(ret, mem, o, &err);
    json_drop(o);
    if (rc == 0) return 0;
    if (rc == SHOAL_ENOMEM) return api_error_nomem(e);
    char field[sizeof e->param];
    size_t k = strcspn(err.message, ":");
    snprintf(field, sizeof field, "%.*s", k < sizeof field ? (int)k : 0, err.message);
    return api_error_bad(e, strchr(field, ' ') ? NULL : field, "%s", err.message);
}

void loads_load(gateway_request *rq)
{
    const model_manager *k = model_manager_of(rq);
    arena *mem = k ? arena_new(0) : NULL;
    config_load_request wanted = {0};
    api_error e;
    if (!k) return;
    int status = mem ? read_load(rq, mem, &wanted, &e) : api_error_nomem(&e);
    load_job *j = status == 0 ? loads_job_new(rq, wanted.stream) : NULL;
    if (!j) {
        if (status == 0) api_error_nomem(&e);
        request_error(rq, &e);
    } else {
        model_manager_watch w = {.news = told, .done = ended, .user = j};
        wanted.any_path = rq->ingress->own;
        wanted.reader = rq->ingress->user;
        char base[NAME_BYTES_MAX + 1];
        if (wanted.what) wanted.what = name_without_latest(base, wanted.what);
        j->ticket = k->load(k->user, &wanted, &w, &e);
        static const model_manager_progress first = {
            .step = MODEL_MANAGER_RESOLVING, .model = "", .file = "", .sha256 = ""};
        if (wait_for(j, &e)) told(j, &first);
    }
    arena_free(mem);
}

typedef struct unload_ask {
    const char *model;
    bool drain, force, stream;
} unload_ask;

static int read_unload(const json_t *o, unload_ask *ret, shoal_err *err)
{
    static const char *const keys[] = {"model", "drain", "force", "stream"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)o, key, value)
    {
        size_t i = 0;
        while (i < 4 && strcmp(keys[i], key) != 0) i++;
        if (i == 4)
            return err_set(err, SHOAL_EINVALID,
                           "there is no key '%.40s' here; the keys are model, drain, force, stream", key);
    }
    int rc = json_get_str(o, "model", &ret->model, err);
    if (rc == 0) rc = json_get_bool(o, "drain", &ret->drain, err);
    if (rc == 0) rc = json_get_bool(o, "force", &ret->force, err);
    if (rc == 0) rc = json_get_bool(o, "stream", &ret->stream, err);
    if (rc == 0 && !ret->model) rc = err_set(err, SHOAL_EINVALID, "model: which one?");
    return rc;
}

void loads_unload(gateway_request *rq)
{
    const model_manager *k = model_manager_of(rq);
    size_t n;
    json_t *o = NULL;
    unload_ask ask = {.drain = true};
    shoal_err err;
    api_error e;
    if (!k) return;
    const char *body = request_body(rq, &n);
    int rc = json_parse_request(&o, body, n, "the body", &err);
    if (rc == 0 && !json_is_object(o)) rc = err_set(&err, SHOAL_EINVALID, "the body must be a JSON object");
    if (rc == 0) rc = read_unload(o, &ask, &err);
    load_job *j = rc == 0 ? loads_job_new(rq, ask.stream) : NULL;
    if (j) {
        model_manager_watch w = {.news = told, .done = ended, .user = j};
        unsigned how = (ask.force ? MODEL_MANAGER_FORCE : 0) | (ask.drain ? 0 : MODEL_MANAGER_AT_ONCE);
        char base[NAME_BYTES_MAX + 1];
        j->ticket = k->unload(k->user, name_without_latest(base, ask.model), how, &w, &e);
        wait_for(j, &e);
    } else {
        if (rc == 0 || rc == SHOAL_ENOMEM)
            api_error_nomem(&e);
        else
            api_error_bad(&e, NULL, "%s", err.message);
        request_error(rq, &e);
    }
    json_drop(o);
}

void loads_delete(gateway_request *rq)
{
    const model_manager *k = model_manager_of(rq);
    api_error e;
    char *name = NULL;
    if (!k) return;
    const char *at = request_path(rq) + strlen(rq->endpoint->path);
    int status = query_segment(at, strlen(at), &name, &e); /* of several segments, too */
    load_job *j = status == 0 ? loads_job_new(rq, false) : NULL;
    if (!j) {
        if (status == 0) api_error_nomem(&e);
        free(name);
        request_error(rq, &e);
        return;
    }
    j->deletes = true;
    snprintf(j->model, sizeof j->model, "%s", name);
    model_manager_watch w = {.news = told, .done = ended, .user = j};
    unsigned how = strcmp(request_query(rq), "force=true") == 0 ? MODEL_MANAGER_FORCE : 0;
    if (model_resolve_variant(rq, name)) {
        model_resolve_alias(rq, name);
        j->ticket = k->vary(k->user, rq->variant_name, NULL, &w, &e);
    } else {
        j->ticket = k->remove(k->user, name, how, &w, &e);
    }
    free(name);
    wait_for(j, &e);
}
