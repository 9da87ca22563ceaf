/* sessions_stored.c: what is kept, shown and deleted: /v1/sessions/NAME and /v1/responses/ID; see sessions.h.
 */
#include <stdlib.h>
#include <string.h>

#include "messages/query.h"
#include "dialects/response_items.h"
#include "json/json.h"
#include "json/json_put.h"
#include "request/endpoint.h"
#include "request/gateway_state.h"
#include "inference/sessions.h"
#include "trust/key.h"

typedef struct stored_job { /* outlives its request */
    session_job job;        /* first */
    gateway_request *rq;    /* NULL: the client has left */
    char *name;
    bool response;
    bool lists_input; /* of a response the items of its input, */
    response_page page;
} stored_job;

static void free_job(stored_job *j)
{
    session_job_done(&j->job);
    free(j->name);
    response_page_done(&j->page);
    free(j);
}

static void sessions_stored_on_gone(void *work)
{
    stored_job *j = work;
    j->rq = NULL;
}

static int not_found(const stored_job *j, api_error *e)
{
    return api_error_set(e, 404, "invalid_request_error",
                         j->response ? "response_not_found" : "session_not_found", NULL,
                         "there is no %s %.200s (any more)", j->response ? "response" : "session", j->name);
}

/* The stored object of a response; of one that was kept as a session's turn there is none. */
static int put_response(buf *out, stored_job *j, shoal_err *err)
{
    json_t *turn = NULL;
    int rc = json_parse(&turn, j->job.text.data, strlen(j->job.text.data), "a stored response", err);
    const json_t *r = json_object_get(turn, "response");
    if (rc == 0 && !json_is_string(r))
        rc = err_set(err, SHOAL_EFORMAT, "a stored response is damaged: delete it");
    if (rc == 0) buf_append(out, json_string_value(r), json_string_length(r));
    json_decref(turn);
    return rc;
}

/* A response that was kept by an older version has none. */
static int put_input(buf *out, const stored_job *j, api_error *e, shoal_err *err)
{
    json_t *turn = NULL;
    int rc = json_parse(&turn, j->job.text.data, strlen(j->job.text.data), "a stored response", err);
    if (rc == 0) response_items_put_page(out, json_object_get(turn, "input"), &j->page, e);
    json_decref(turn);
    return rc;
}

static int put_session(buf *out, stored_job *j, shoal_err *err)
{
    json_t *messages = json_array();
    const char *at = j->job.text.data;
    int rc = messages ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < j->job.n_turns; i++, at += strlen(at) + 1)
        rc = conversation_read_turn(messages, at, strlen(at), NULL, err);
    buf_putc(out, '{');
    json_put_text(out, "id", j->name);
    buf_printf(out, ",\"object\":\"session\",\"turns\":%zu,\"messages\":", j->job.n_turns);
    if (rc == 0) json_put(out, messages);
    buf_putc(out, '}');
    json_decref(messages);
    return rc;
}

static void put_deleted(buf *out, const stored_job *j)
{
    buf_putc(out, '{');
    json_put_text(out, "id", j->name);
    buf_printf(out, ",\"object\":\"%s\",\"deleted\":true}", j->response ? "response" : "session.deleted");
}

static void done(session_job *job)
{
    stored_job *j = (stored_job *)job;
    gateway_request *rq = j->rq;
    bool loads = job->what == SESSION_LOAD;
    api_error e = {0};
    buf out = {0};
    if (!rq) {
        free_job(j);
        return;
    }
    request_watch(rq, NULL, NULL);
    if (job->rc == 0 && !(loads ? job->n_turns > 0 : job->found))
        not_found(j, &e);
    else if (job->rc == 0 && !loads)
        put_deleted(&out, j);
    else if (job->rc == 0 && j->lists_input)
        job->rc = put_input(&out, j, &e, &job->err);
    else if (job->rc == 0)
        job->rc = j->response ? put_response(&out, j, &job->err) : put_session(&out, j, &job->err);
    if (job->rc != 0) conversation_error(&e, job);
    free_job(j);
    if (e.status)
        request_error(rq, &e);
    else
        request_json(rq, 200, &out);
    buf_wipe(&out);
}

/* The path's third segment. */
static int read_name(const gateway_request *rq, char **ret, api_error *e)
{
    const char *at = strchr(strchr(request_path(rq) + 1, '/') + 1, '/') + 1;
    return query_segment(at, strcspn(at, "/"), ret, e);
}

static void start_reading(gateway_request *rq, session_job_what what, bool response, bool lists_input)
{
    api_error e;
    stored_job *j = calloc(1, sizeof *j);
    int status = j ? conversation_is_on(rq, &e) : api_error_nomem(&e);
    if (status == 0) status = read_name(rq, &j->name, &e);
    if (status == 0 && lists_input) status = response_page_read(&j->page, request_query(rq), &e);
    if (status != 0) {
        if (j) free_job(j);
        request_error(rq, &e);
        return;
    }
    j->rq = rq;
    j->response = response;
    j->lists_input = lists_input;
    j->job = (session_job){.what = what, .done = done};
    j->job.id = conversation_id(rq, response ? "response" : "session", j->name);
    request_watch(rq, sessions_stored_on_gone, j);
    session_thread_submit(rq->gateway->session_thread, &j->job);
}

static void sessions_stored_start(gateway_request *rq, session_job_what what, bool response)
{
    start_reading(rq, what, response, false);
}

void sessions_response_input(gateway_request *rq)
{
    start_reading(rq, SESSION_LOAD, true, true);
}

void sessions_get(gateway_request *rq)
{
    sessions_stored_start(rq, SESSION_LOAD, false);
}

void sessions_delete(gateway_request *rq)
{
    sessions_stored_start(rq, SESSION_DROP, false);
}

void sessions_response(gateway_request *rq)
{
    sessions_stored_start(rq, SESSION_LOAD, true);
}

void sessions_forget(gateway_request *rq)
{
    sessions_stored_start(rq, SESSION_DROP, true);
}
