/* ollama.c: requests of Ollama's clients, asked again in our own form. */
#include "endpoints/ollama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/ollama.h"
#include "base/clock.h"
#include "gateway/endpoint.h"
#include "gateway/event.h"
#include "gateway/gateway_internal.h"

typedef struct ollama_job ollama_job;

/* What becomes of our whole answer. */
typedef int (*ollama_form)(buf *out, const ollama_job *j, const json_t *ours, const ollama_times *t);

struct ollama_job {
    door door;           /* first: of our own request */
    gateway_request *rq; /* Ollama's; NULL: answered */
    ollama_ask ask;
    ollama_form form; /* of answers that come whole; NULL: it is a stream */
    char path[160];
    buf body, out;
    ollama_run run;
    uint64_t start_ns, first_ns; /* first: of its reply; 0: none came yet */
    bool entering, over;
    char error[512]; /* that a stream ended with */
};

static void job_free(ollama_job *j)
{
    buf_done(&j->body);
    buf_done(&j->out);
    ollama_run_done(&j->run);
    free(j);
}

/* Our request has ended. */
static void job_end(ollama_job *j)
{
    j->over = true;
    if (!j->entering) job_free(j);
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

static gateway_request *take_request(ollama_job *j)
{
    gateway_request *rq = j->rq;
    j->rq = NULL;
    request_watch(rq, NULL, NULL);
    return rq;
}

static void answer_error(gateway_request *rq, int status, const char *message)
{
    api_error e;
    api_error_from_status(&e, status, message);
    request_error(rq, &e);
}

/* ---- our request's door -------------------------------------------------------------------------- */

static ollama_job *job_of(const door *d)
{
    return (ollama_job *)d;
}

static const char *method(const door *d)
{
    return job_of(d)->body.len ? "POST" : "GET";
}

static const char *path(const door *d)
{
    return job_of(d)->path;
}

static const char *query(const door *d)
{
    return "";
}

static const char *header(const door *d, const char *name)
{
    if (strcmp(name, "content-type") == 0) return "application/json";
    return strcmp(name, "last-event-id") == 0 ? NULL : request_header(job_of(d)->rq, name);
}

static const char *body(const door *d, size_t *ret_len)
{
    const buf *b = &job_of(d)->body;
    if (ret_len) *ret_len = b->len;
    return b->len ? b->data : "";
}

static void pause_body(door *d, bool paused) {}

static const char *message_of(const json_t *ours)
{
    const char *s = json_string_value(json_object_get(json_object_get(ours, "error"), "message"));
    return s ? s : "it could not be answered";
}

static void answer_whole(ollama_job *j, const json_t *ours)
{
    ollama_times t = times_of(j);
    int rc = j->form ? j->form(&j->out, j, ours, &t) : SHOAL_EPROTOCOL;
    if (rc == 0)
        request_json(take_request(j), 200, &j->out);
    else
        answer_error(take_request(j), 500,
                     rc == SHOAL_ENOMEM ? "out of memory" : "the answer was not understood");
}

static void reply(door *d, int status, const http_header *headers, size_t n, const void *bytes, size_t len)
{
    ollama_job *j = job_of(d);
    json_t *ours = NULL;
    int rc = json_parse(&ours, bytes, len, "the answer", NULL);
    if (rc == SHOAL_ENOMEM)
        answer_error(take_request(j), 500, "out of memory");
    else if (status >= 400 || rc != 0)
        answer_error(take_request(j), status >= 400 ? status : 500, message_of(ours));
    else
        answer_whole(j, ours);
    json_decref(ours);
    job_end(j);
}

static void begin(door *d, int status, const http_header *headers, size_t n)
{
    ollama_job *j = job_of(d);
    if (j->ask.stream) request_lines_begin(j->rq);
}

static void take_event(ollama_job *j, const event *e)
{
    json_t *chunk = NULL;
    if (e->n_data == 0 || e->data[0] == '[') return;
    int rc = json_parse(&chunk, e->data, e->n_data, "a chunk", NULL);
    if (rc == 0 && json_object_get(chunk, "error"))
        snprintf(j->error, sizeof j->error, "%s", message_of(chunk));
    else if (rc == 0)
        rc = ollama_take(&j->run, chunk);
    if (rc != 0 && !*j->error)
        snprintf(j->error, sizeof j->error, "%s",
                 rc == SHOAL_ENOMEM ? "out of memory" : "a chunk was not understood");
    json_decref(chunk);
}

static void send_lines(ollama_job *j)
{
    request_stream_write(j->rq, &j->out);
    buf_clear(&j->out);
}

static void events(door *d, const char *bytes, size_t n)
{
    ollama_job *j = job_of(d);
    event e;
    while (event_next(&bytes, &n, &e)) take_event(j, &e);
    if (!j->first_ns && (j->run.text.len || j->run.thinking.len || j->run.n_calls)) j->first_ns = clock_ns();
    if (!j->ask.stream) return;
    ollama_times t = times_of(j);
    ollama_put_line(&j->out, &j->ask, &j->run, &t);
    send_lines(j);
}

static void end(door *d)
{
    ollama_job *j = job_of(d);
    gateway_request *rq;
    ollama_times t = times_of(j);
    if (*j->error)
        ollama_put_error(&j->out, j->error);
    else
        ollama_put_last(&j->out, &j->ask, &j->run, &t);
    if (j->ask.stream) {
        send_lines(j);
        rq = take_request(j);
        if (*j->error) rq->error_code = "stream_failed";
        request_stream_end(rq);
    } else {
        rq = take_request(j);
        request_text(rq, *j->error || j->out.failed ? 500 : 200, "application/json", &j->out);
    }
    job_end(j);
}

static size_t unsent(const door *d)
{
    return request_unsent(job_of(d)->rq);
}

static void drop(door *d)
{
    ollama_job *j = job_of(d);
    if (j->rq) request_watch(take_request(j), NULL, NULL); /* it is dropped itself */
    job_free(j);
}

static const door_ops OLLAMA_DOOR = {.method = method,
                                     .path = path,
                                     .query = query,
                                     .header = header,
                                     .body = body,
                                     .pause = pause_body,
                                     .reply = reply,
                                     .begin = begin,
                                     .events = events,
                                     .end = end,
                                     .unsent = unsent,
                                     .drop = drop};

/* ---- Ollama's request ---------------------------------------------------------------------------- */

/* Its client has left, or the gateway goes. */
static void on_gone(void *work)
{
    ollama_job *j = work;
    if (j->door.rq) door_leave(&j->door); /* which may still read what was asked */
    j->rq = NULL;
    job_end(j);
}

static ollama_job *job_new(gateway_request *rq, ollama_form form)
{
    ollama_job *j = calloc(1, sizeof *j);
    if (!j) {
        answer_error(rq, 500, "out of memory");
        return NULL;
    }
    *j = (ollama_job){.door.ops = &OLLAMA_DOOR, .rq = rq, .form = form, .start_ns = rq->start_ns};
    request_watch(rq, on_gone, j);
    return j;
}

static void enter(ollama_job *j, const char *path)
{
    snprintf(j->path, sizeof j->path, "%s", path);
    j->entering = true;
    door_enter(j->rq->gateway, &j->door, clock_ns());
    j->entering = false;
    if (j->over) job_free(j);
}

static void fail(ollama_job *j, const api_error *e)
{
    answer_error(take_request(j), e->status, e->message);
    job_free(j);
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
    if (rc == 0 && ours && json_put(&j->body, ours) != 0) rc = api_error_nomem(&e);
    json_decref(ours);
    if (rc == 0 && j->ask.loads) {
        j->ask.stream = false;
        j->form = put_loaded;
        buf_done(&j->body);
    }
    if (rc == 0 && j->ask.stream && !rq->door->ops->takes_lines)
        rc = api_error_bad(&e, "stream", "lines are streamed over HTTP alone; ask for \"stream\": false");
    if (rc != 0) {
        fail(j, &e);
        return;
    }
    request_note_model(rq, j->ask.model, "", "");
    char shown[sizeof j->path];
    snprintf(shown, sizeof shown, "/v1/models/%s", j->ask.model);
    enter(j, kind == OLLAMA_SHOW || j->ask.loads ? shown : j->ask.path);
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
    if (j) enter(j, "/v1/models");
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
