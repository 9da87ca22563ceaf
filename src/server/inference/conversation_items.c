/* conversation_items.c: items that a request refers to by their ids, taken from the responses that hold them; see
 * conversation.h. One response is loaded after the other. */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "inference/conversation.h"
#include "request/gateway_state.h"

/* The object that a stored turn has as text; NULL where none is kept. New reference. */
static int read_response(json_t **ret, const session_job *j, shoal_err *err)
{
    json_t *turn = NULL;
    *ret = NULL;
    if (j->n_turns == 0) return 0;
    int rc = json_parse(&turn, j->text.data, strlen(j->text.data), "a stored response", err);
    const json_t *text = rc == 0 ? json_object_get(turn, "response") : NULL;
    if (text)
        rc = json_parse(ret, json_string_value(text), json_string_length(text), "a stored response", err);
    json_decref(turn);
    return rc;
}

static void on_loaded(session_job *j)
{
    conversation *k = j->user;
    json_t *response = NULL;
    char name[RESPONSE_ID_BYTES];
    api_error e;
    int status = 0;
    if (k) {
        k->job = NULL;
        if (j->rc == 0) j->rc = read_response(&response, j, &j->err);
        if (j->rc != 0)
            status = conversation_error(&e, j);
        else if (response_spec_reference(k->response, name))
            status = response_spec_resolve(k->response, name, response, &e);
        json_decref(response);
    }
    session_job_done(j);
    free(j);
    if (k && status)
        k->loaded(k, &e);
    else if (k)
        conversation_load_items(k);
}

static void load_named(conversation *k, const char *name)
{
    api_error e;
    k->job = calloc(1, sizeof *k->job);
    if (!k->job) {
        api_error_nomem(&e);
        k->loaded(k, &e);
        return;
    }
    *k->job = (session_job){.what = SESSION_LOAD, .done = on_loaded, .user = k};
    k->job->id = conversation_id(k->rq, "response", name);
    session_thread_submit(k->rq->gateway->session_thread, k->job);
}

void conversation_load_items(conversation *k)
{
    char name[RESPONSE_ID_BYTES];
    api_error e;
    if (response_spec_reference(k->response, name)) {
        load_named(k, name);
        return;
    }
    int status = response_spec_read_input(k->response, &e);
    if (status == 0) {
        k->added = json_incref(k->response->added);
        conversation_load(k);
    } else {
        k->loaded(k, &e);
    }
}
