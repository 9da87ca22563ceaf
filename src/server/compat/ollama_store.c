/* ollama_store.c: see ollama_store.h. */
#include "compat/ollama_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/ollama.h"
#include "compat/ollama.h"
#include "compat/ollama_variants.h"
#include "request/gateway_state.h"
#include "gateway/model_manager.h"

typedef struct store_job {
    gateway_request *rq;
    const model_manager *model_manager;
    model_manager_ticket *ticket;
    ollama_ask ask;
} store_job;

static void gone(void *work)
{
    store_job *j = work;
    j->model_manager->leave(j->ticket);
    free(j);
}

static void ollama_store_say(const store_job *j, buf *line)
{
    bool is_told = j->ask.stream && !line->failed && line->len > 0;
    if (is_told) request_event(j->rq, &(event){.data = line->data, .n_data = line->len});
    buf_done(line);
}

static void say_status(const store_job *j, const char *status)
{
    buf line = {0};
    ollama_put_status(&line, status);
    ollama_store_say(j, &line);
}

/* ---- the question ---------------------------------------------------------------------------------- */

static store_job *ollama_store_job_new(gateway_request *rq, ollama_kind kind)
{
    size_t n;
    const char *bytes = request_body(rq, &n);
    json_t *none;
    api_error e;
    store_job *j = calloc(1, sizeof *j);
    int rc = j ? ollama_read(&j->ask, kind, bytes, n, &none, &e) : api_error_nomem(&e);
    if (rc == 0 && !rq->gateway->model_manager)
        rc = api_error_set(&e, 403, "invalid_request_error", "not_allowed", NULL,
                           "this gateway starts no workers of its own");
    if (rc == 0 && j->ask.stream && !rq->ingress->ops->takes_lines)
        rc = api_error_bad(&e, "stream", "lines are streamed over HTTP alone; ask for \"stream\": false");
    if (rc != 0) {
        free(j);
        request_error(rq, &e);
        return NULL;
    }
    j->rq = rq;
    j->model_manager = rq->gateway->model_manager;
    return j;
}

static void wait_for(store_job *j, const api_error *e)
{
    gateway_request *rq = j->rq;
    if (j->ticket) {
        request_watch(rq, gone, j);
    } else {
        free(j);
        request_error(rq, e);
    }
}

/* ---- fetching -------------------------------------------------------------------------------------- */

static void on_news(void *user, const model_manager_progress *n)
{
    store_job *j = user;
    buf line = {0};
    if (n->step != MODEL_MANAGER_FETCHING || !*n->file || request_stream_is_full(j->rq)) return;
    ollama_put_progress(&line, n->file, n->sha256, n->total, n->fetched);
    ollama_store_say(j, &line);
}

static void end_well(store_job *j)
{
    buf out = {0};
    if (!j->ask.stream) {
        ollama_put_status(&out, "success");
        buf_putc(&out, '\n');
        request_json(j->rq, 200, &out);
        buf_done(&out);
    } else {
        say_status(j, "verifying sha256 digest"); /* each file's was right, or it had not got its name */
        say_status(j, "writing manifest");
        say_status(j, "success");
        request_stream_end(j->rq);
    }
    free(j);
}

static void on_fetched(void *user, const model_manager_progress *n, const api_error *e)
{
    store_job *j = user;
    buf line = {0};
    request_watch(j->rq, NULL, NULL);
    if (!e) {
        end_well(j);
        return;
    }
    if (j->ask.stream) {
        ollama_put_error(&line, e->message);
        ollama_store_say(j, &line);
        j->rq->error_code = e->code;
        request_stream_end(j->rq);
    } else {
        request_error(j->rq, e);
    }
    free(j);
}

void ollama_pull(gateway_request *rq)
{
    store_job *j = ollama_store_job_new(rq, OLLAMA_PULL);
    model_manager_watch w = {.news = on_news, .done = on_fetched, .user = j};
    char reference[sizeof j->ask.model + 16];
    api_error e = {0};
    bool served;
    if (!j) return;
    const model_manager *k = j->model_manager;
    calls_info(rq->calls, j->ask.model, &served);
    served = served || ollama_find_alias(rq, j->ask.model);
    if (!served && ollama_reference(j->ask.model, reference, sizeof reference))
        j->ticket = k->fetch(k->user, reference, &w, &e);
    else if (!served)
        api_error_bad(&e, "model", "the model's name is too long");
    /* What lies there already needs nobody's leave. */
    bool here = served || (!j->ticket && e.status == 403 && k->find(k->user, j->ask.model));
    if (j->ask.stream && (j->ticket || here)) request_lines_begin(rq);
    if (j->ticket || here) say_status(j, "pulling manifest");
    if (here)
        end_well(j);
    else
        wait_for(j, &e);
}

/* ---- removing -------------------------------------------------------------------------------------- */

static void on_removed(void *user, const model_manager_progress *n, const api_error *e)
{
    store_job *j = user;
    buf out = {0};
    request_watch(j->rq, NULL, NULL);
    buf_puts(&out, "{}");
    if (e)
        request_error(j->rq, e);
    else
        request_json(j->rq, 200, &out);
    buf_done(&out);
    free(j);
}

void ollama_delete(gateway_request *rq)
{
    store_job *j = ollama_store_job_new(rq, OLLAMA_DELETE);
    model_manager_watch w = {.done = on_removed, .user = j};
    api_error e;
    if (!j) return;
    const model_manager *k = j->model_manager;
    if (!ollama_is_known(rq, j->ask.model) && ollama_variant_find(rq, j->ask.model))
        j->ticket = k->vary(k->user, j->ask.model, NULL, &w, &e);
    else
        j->ticket = k->remove(k->user, j->ask.model, MODEL_MANAGER_UNLOAD, &w, &e);
    wait_for(j, &e);
}
