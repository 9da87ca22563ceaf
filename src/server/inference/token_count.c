/* token_count.c: the prompt that a chat, a response or a message would have, rendered and counted without generating.
 * Two requests of our own after each other: /apply-template, then /tokenize. */
#include <stdlib.h>
#include <string.h>

#include "dialects/anthropic.h"
#include "dialects/responses.h"
#include "json/json.h"
#include "json/json_put.h"
#include "messages/fields.h"
#include "inference/sessions.h"
#include "ingress/redispatch.h"
#include "request/gateway_state.h"
#include "request/model_resolve.h"

typedef struct count_job {
    redispatch redispatch; /* first */
    char *model;           /* the request's, or the only one for the task; malloc'd */
    const char *object;    /* what the answer is called; NULL: it has no name */
    bool rendered;         /* what is awaited are the tokens */
} count_job;

static void count_job_free(redispatch *a)
{
    count_job *j = (count_job *)a;
    free(j->model);
    free(j);
}

static void count_tokens(count_job *j, const json_t *ours)
{
    const json_t *prompt = json_object_get(ours, "prompt");
    buf *body = &j->redispatch.body;
    j->rendered = true;
    buf_clear(body);
    buf_putc(body, '{');
    json_put_text(body, "model", j->model);
    buf_puts(body, ",\"add_special\":false,\"parse_special\":true");
    json_put_text_n(body, "content", json_string_value(prompt), json_string_length(prompt));
    buf_putc(body, '}');
    if (body->failed)
        redispatch_bad_answer(&j->redispatch, SHOAL_ENOMEM);
    else
        redispatch_ask(&j->redispatch, "POST", "/tokenize");
}

static void put_count(buf *out, const count_job *j, size_t n)
{
    buf_putc(out, '{');
    json_put_filled(out, "object", j->object);
    json_put_key(out, "input_tokens");
    buf_printf(out, "%zu}", n);
}

static void count_on_reply(redispatch *a, const redispatch_reply *r)
{
    count_job *j = (count_job *)a;
    buf out = {0};
    if (r->status >= 400 || !r->json) {
        redispatch_fail(a, r);
    } else if (!j->rendered) {
        count_tokens(j, r->json);
    } else {
        put_count(&out, j, json_array_size(json_object_get(r->json, "tokens")));
        request_json(redispatch_take(a), 200, &out);
        buf_done(&out);
    }
}

static void count_on_event(redispatch *a, const event *e) {}

static void count_on_end(redispatch *a)
{
    redispatch_bad_answer(a, SHOAL_EPROTOCOL); /* no stream is asked for */
}

static const redispatch_ops OPS = {
    .reply = count_on_reply, .event = count_on_event, .end = count_on_end, .free = count_job_free};

/* Of several models the request must name one, as elsewhere in OpenAI's API. */
static int choose_model(gateway_request *rq, count_job *j, json_t *chat, api_error *e)
{
    const Shoal__V1__ModelInfo *info;
    const char *name = NULL;
    int rc = fields_str(chat, "model", &name, e);
    if (rc == 0 && !(name && *name)) rc = model_resolve(rq, "generate", &name, &info, e);
    if (rc == 0 && !(j->model = strdup(name))) rc = api_error_nomem(e);
    return rc == 0 ? fields_put(chat, "model", json_string(j->model), e) : rc;
}

/* A kept conversation would have to be loaded first. */
static int refuse_session(const gateway_request *rq, const json_t *chat, api_error *e)
{
    const char *named = request_header(rq, "x-shoal-session");
    if (!fields_get(chat, "session") && !(named && *named)) return 0;
    return api_error_bad(e, "session", "the messages of a session are not counted: send all messages");
}

/* Answers with the number of tokens of chat, a chat request, which is taken. */
static void count_chat(gateway_request *rq, json_t *chat, const char *object)
{
    api_error e = {0};
    count_job *j = calloc(1, sizeof *j);
    int rc = j ? refuse_session(rq, chat, &e) : api_error_nomem(&e);
    if (rc == 0) rc = choose_model(rq, j, chat, &e);
    if (rc != 0) {
        if (j) free(j->model);
        free(j);
        json_drop(chat);
        request_error(rq, &e);
        return;
    }
    j->object = object;
    redispatch_init(&j->redispatch, rq, &OPS);
    json_put(&j->redispatch.body, chat);
    json_drop(chat);
    if (!j->redispatch.body.failed) {
        redispatch_ask(&j->redispatch, "POST", "/apply-template");
        return;
    }
    redispatch_bad_answer(&j->redispatch, SHOAL_ENOMEM);
    redispatch_drop(&j->redispatch);
}

/* ---- requests ------------------------------------------------------------------------------------ */

void sessions_count_chat(gateway_request *rq)
{
    size_t len;
    const char *body = request_body(rq, &len);
    json_t *chat = NULL;
    api_error e;
    if (fields_parse(&chat, body, len, &e) == 0)
        count_chat(rq, chat, "chat.completion.input_tokens");
    else
        request_error(rq, &e);
}

void sessions_count_messages(gateway_request *rq)
{
    size_t len;
    const char *body = request_body(rq, &len);
    json_t *chat = NULL;
    api_error e;
    if (anthropic_read(&chat, ANTHROPIC_COUNT, body, len, &e) == 0)
        count_chat(rq, chat, NULL);
    else
        request_error(rq, &e);
}

/* A kept conversation and references to its items would have to be loaded first. */
static int response_count_check(const response_spec *s, api_error *e)
{
    if (s->previous)
        return api_error_bad(e, "previous_response_id",
                             "\"previous_response_id\" is not counted: send the items in "
                             "\"input\"");
    return s->added ? 0
                    : api_error_bad(e, "input", "references to items are not counted: send the items whole");
}

/* The messages as the model's template gets them, and the tools. */
static int fill_response(json_t *chat, const response_spec *s, api_error *e)
{
    static const fields_name SAME[] = {{"tools", "tools"}, {"tool_choice", "tool_choice"}};
    static const fields_name MODEL[] = {{"model", "model"}};
    json_t *messages = json_array();
    int rc = fields_put(chat, "messages", messages, e);
    if (rc == 0 && s->instructions && *s->instructions)
        rc =
            fields_append(messages, json_pack("{s:s, s:s}", "role", "system", "content", s->instructions), e);
    if (rc == 0 && json_array_extend(messages, s->added) != 0) rc = api_error_nomem(e);
    if (rc == 0) rc = fields_rename(chat, s->root, MODEL, 1, e);
    return rc == 0 ? fields_rename(chat, s->chat, SAME, sizeof SAME / sizeof *SAME, e) : rc;
}

void sessions_count(gateway_request *rq)
{
    size_t len;
    const char *body = request_body(rq, &len);
    api_error e = {0};
    response_spec *s = NULL;
    json_t *chat = json_object();
    int rc = chat ? response_spec_parse(&s, body, len, &e) : api_error_nomem(&e);
    if (rc == 0) rc = response_count_check(s, &e);
    if (rc == 0) rc = fill_response(chat, s, &e);
    response_spec_free(s);
    if (rc == 0) {
        count_chat(rq, chat, "response.input_tokens");
        return;
    }
    json_drop(chat);
    request_error(rq, &e);
}
