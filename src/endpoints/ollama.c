/* ollama.c: requests of Ollama's clients, asked again in our own form. */
#include "endpoints/ollama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/ollama.h"
#include "base/clock.h"
#include "gateway/again.h"

typedef struct ollama_job ollama_job;

/* What becomes of our whole answer. */
typedef int (*ollama_form)(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t);

struct ollama_job {
    again again; /* first */
    ollama_ask ask;
    ollama_form form; /* of answers that come whole; NULL: it is a stream */
    buf out;
    ollama_run run;
    uint64_t start_ns, first_ns; /* first: of its reply; 0: none came yet */
    char error[512];             /* that a stream ended with */
};

static void job_free(again *a)
{
    ollama_job *j = (ollama_job *)a;
    buf_done(&j->out);
    ollama_run_done(&j->run);
    free(j);
}

static ollama_times times_of(const ollama_job *j)
{
    struct timespec t;
    uint64_t now = clock_ns(), first = j->first_ns ? j->first_ns : now;
    clock_gettime(CLOCK_REALTIME, &t);
    return (ollama_times){.unix_us = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000,
                          .total_ns = now - j->start_ns,
                          .prompt_ns = first - j->start_ns,
                          .reply_ns = now - first};
}

/* ---- our answer ---------------------------------------------------------------------------------- */

static void on_reply(again *a, const again_reply *r)
{
    ollama_job *j = (ollama_job *)a;
    if (r->status >= 400 || !r->json) {
        again_fail(a, r);
        return;
    }
    ollama_times t = times_of(j);
    int rc = j->form ? j->form(&j->out, j, r->json, &t) : SHOAL_EPROTOCOL;
    if (rc == 0)
        request_json(again_take(a), 200, &j->out);
    else
        again_bad_answer(a, rc);
}

static void on_begin(again *a)
{
    if (((ollama_job *)a)->ask.stream) request_lines_begin(a->rq);
}

static void on_event(again *a, const event *e)
{
    ollama_job *j = (ollama_job *)a;
    json_t *chunk = NULL;
    int rc = json_parse(&chunk, e->data, e->n_data, "a chunk", NULL);
    if (rc == 0 && json_object_get(chunk, "error"))
        snprintf(j->error, sizeof j->error, "%s", again_message(chunk));
    else if (rc == 0)
        rc = ollama_take(&j->run, chunk);
    if (rc != 0 && !*j->error)
        snprintf(j->error, sizeof j->error, "%s",
                 rc == SHOAL_ENOMEM ? "out of memory" : "a chunk was not understood");
    json_decref(chunk);
}

static void send_lines(ollama_job *j)
{
    request_stream_write(j->again.rq, &j->out);
    buf_clear(&j->out);
}

static void on_flush(again *a)
{
    ollama_job *j = (ollama_job *)a;
    if (!j->first_ns && (j->run.text.len || j->run.thinking.len || j->run.n_calls)) j->first_ns = clock_ns();
    if (!j->ask.stream) return;
    ollama_times t = times_of(j);
    ollama_put_line(&j->out, &j->ask, &j->run, &t);
    send_lines(j);
}

static void on_end(again *a)
{
    ollama_job *j = (ollama_job *)a;
    gateway_request *rq;
    ollama_times t = times_of(j);
    if (*j->error)
        ollama_put_error(&j->out, j->error);
    else
        ollama_put_last(&j->out, &j->ask, &j->run, &t);
    if (j->ask.stream) {
        send_lines(j);
        rq = again_take(a);
        if (*j->error) rq->error_code = "stream_failed";
        request_stream_end(rq);
    } else {
        rq = again_take(a);
        request_text(rq, *j->error || j->out.failed ? 500 : 200, "application/json", &j->out);
    }
}

static const again_ops OPS = {.reply = on_reply,
                              .begin = on_begin,
                              .event = on_event,
                              .flush = on_flush,
                              .end = on_end,
                              .free = job_free};

/* ---- Ollama's request ---------------------------------------------------------------------------- */

static ollama_job *job_new(gateway_request *rq, ollama_form form)
{
    ollama_job *j = calloc(1, sizeof *j);
    if (!j) {
        api_error e;
        api_error_nomem(&e);
        request_error(rq, &e);
        return NULL;
    }
    j->form = form;
    j->start_ns = rq->start_ns;
    again_init(&j->again, rq, &OPS);
    return j;
}

static void fail(ollama_job *j, const api_error *e)
{
    again_error(&j->again, e->status, e->message);
    again_drop(&j->again);
}

static int put_loaded(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t)
{
    ollama_put_loaded(out, &j->ask, t);
    return out->failed ? SHOAL_ENOMEM : 0;
}

static void ask(gateway_request *rq, ollama_kind kind, ollama_form form)
{
    size_t n;
    const char *bytes = request_body(rq, &n);
    json_t *ours = NULL;
    api_error e = {0};
    ollama_job *j = job_new(rq, form);
    if (!j) return;
    int rc = ollama_read(&j->ask, kind, bytes, n, &ours, &e);
    if (rc == 0 && ours && json_put(&j->again.body, ours) != 0) rc = api_error_nomem(&e);
    json_decref(ours);
    if (rc == 0 && j->ask.loads) {
        j->ask.stream = false;
        j->form = put_loaded;
        buf_done(&j->again.body);
    }
    if (rc == 0 && j->ask.stream && !rq->door->ops->takes_lines)
        rc = api_error_bad(&e, "stream", "lines are streamed over HTTP alone; ask for \"stream\": false");
    if (rc != 0) {
        fail(j, &e);
        return;
    }
    request_note_model(rq, j->ask.model, "", "");
    bool shows = kind == OLLAMA_SHOW || j->ask.loads;
    char shown[sizeof j->ask.model + 16];
    snprintf(shown, sizeof shown, "/v1/models/%s", j->ask.model);
    again_ask(&j->again, shows ? "GET" : "POST", shows ? shown : j->ask.path);
}

static int put_vectors(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t)
{
    return ollama_put_vectors(out, &j->ask, ours, t);
}

static int put_tags(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t)
{
    return ollama_put_models(out, ours, false, t);
}

static int put_running(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t)
{
    return ollama_put_models(out, ours, true, t);
}

static int put_shown(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t)
{
    return ollama_put_model(out, ours, t);
}

void ollama_chat(gateway_request *rq)
{
    ask(rq, OLLAMA_CHAT, NULL);
}

void ollama_generate(gateway_request *rq)
{
    ask(rq, OLLAMA_GENERATE, NULL);
}

void ollama_embed(gateway_request *rq)
{
    ask(rq, OLLAMA_EMBED, put_vectors);
}

void ollama_embeddings(gateway_request *rq)
{
    ask(rq, OLLAMA_EMBEDDINGS, put_vectors);
}

void ollama_show(gateway_request *rq)
{
    ask(rq, OLLAMA_SHOW, put_shown);
}

static void list(gateway_request *rq, ollama_form form)
{
    ollama_job *j = job_new(rq, form);
    if (j) again_ask(&j->again, "GET", "/v1/models");
}

void ollama_tags(gateway_request *rq)
{
    list(rq, put_tags);
}

void ollama_ps(gateway_request *rq)
{
    list(rq, put_running);
}

void ollama_version(gateway_request *rq)
{
    buf out = {0};
    buf_printf(&out, "{\"version\":\"%s\"}", SHOAL_VERSION);
    request_json(rq, 200, &out);
    buf_done(&out);
}
