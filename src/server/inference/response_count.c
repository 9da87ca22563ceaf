/* response_count.c: POST /v1/responses/input_tokens: the prompt that a response would have, rendered and
 * counted without generating. Two requests of our own after each other: /apply-template, then /tokenize. */
#include <stdlib.h>
#include <string.h>

#include "dialects/responses.h"
#include "json/json.h"
#include "inference/sessions.h"
#include "ingress/redispatch.h"
#include "request/gateway_state.h"
#include "request/model_resolve.h"

typedef struct count_job {
    redispatch redispatch; /* first */
    response_spec *spec;
    char *model;   /* the spec's, or the only one for the task; malloc'd */
    bool rendered; /* what is awaited are the tokens */
} count_job;

static void response_count_job_free(redispatch *a)
{
    count_job *j = (count_job *)a;
    response_spec_free(j->spec);
    free(j->model);
    free(j);
}

static void put_model(buf *out, const count_job *j)
{
    buf_puts(out, "{\"model\":");
    json_put_string(out, j->model, strlen(j->model));
}

/* The messages as the model's template gets them, and the tools. */
static void put_conversation(buf *out, const count_job *j)
{
    const json_t *tools = json_object_get(j->spec->chat, "tools"),
                 *choice = json_object_get(j->spec->chat, "tool_choice");
    const char *instructions = j->spec->instructions;
    json_t *m;
    size_t i;
    put_model(out, j);
    buf_puts(out, ",\"messages\":[");
    if (instructions && *instructions) {
        buf_puts(out, "{\"role\":\"system\",\"content\":");
        json_put_string(out, instructions, strlen(instructions));
        buf_puts(out, "},");
    }
    json_array_foreach(j->spec->added, i, m)
    {
        if (i) buf_putc(out, ',');
        json_put(out, m);
    }
    buf_putc(out, ']');
    if (tools) buf_puts(out, ",\"tools\":");
    if (tools) json_put(out, tools);
    if (choice) buf_puts(out, ",\"tool_choice\":");
    if (choice) json_put(out, choice);
    buf_putc(out, '}');
}

static void count_tokens(count_job *j, const json_t *ours)
{
    const json_t *prompt = json_object_get(ours, "prompt");
    buf *body = &j->redispatch.body;
    j->rendered = true;
    buf_clear(body);
    put_model(body, j);
    buf_puts(body, ",\"add_special\":false,\"parse_special\":true,\"content\":");
    json_put_string(body, json_is_string(prompt) ? json_string_value(prompt) : "",
                    json_string_length(prompt));
    buf_putc(body, '}');
    if (body->failed)
        redispatch_bad_answer(&j->redispatch, SHOAL_ENOMEM);
    else
        redispatch_ask(&j->redispatch, "POST", "/tokenize");
}

static void response_count_on_reply(redispatch *a, const redispatch_reply *r)
{
    count_job *j = (count_job *)a;
    buf out = {0};
    if (r->status >= 400 || !r->json) {
        redispatch_fail(a, r);
    } else if (!j->rendered) {
        count_tokens(j, r->json);
    } else {
        buf_printf(&out, "{\"object\":\"response.input_tokens\",\"input_tokens\":%zu}",
                   json_array_size(json_object_get(r->json, "tokens")));
        request_json(redispatch_take(a), 200, &out);
        buf_done(&out);
    }
}

static void response_count_on_event(redispatch *a, const event *e) {}

static void response_count_on_end(redispatch *a)
{
    redispatch_bad_answer(a, SHOAL_EPROTOCOL); /* no stream is asked for */
}

static const redispatch_ops OPS = {.reply = response_count_on_reply,
                                   .event = response_count_on_event,
                                   .end = response_count_on_end,
                                   .free = response_count_job_free};

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

/* A response of several models' must name one, as elsewhere in OpenAI's API. */
static int choose_model(gateway_request *rq, count_job *j, api_error *e)
{
    const Shoal__V1__ModelInfo *info;
    const char *name = json_string_value(json_object_get(j->spec->root, "model"));
    int rc = name && *name ? 0 : model_resolve(rq, "generate", &name, &info, e);
    if (rc == 0 && !(j->model = strdup(name))) rc = api_error_nomem(e);
    return rc;
}

void sessions_count(gateway_request *rq)
{
    size_t len;
    const char *body = request_body(rq, &len);
    api_error e = {0};
    count_job *j = calloc(1, sizeof *j);
    int rc = j ? response_spec_parse(&j->spec, body, len, &e) : api_error_nomem(&e);
    if (rc == 0) rc = response_count_check(j->spec, &e);
    if (rc == 0) rc = choose_model(rq, j, &e);
    if (rc != 0) {
        if (j) response_spec_free(j->spec);
        if (j) free(j->model);
        free(j);
        request_error(rq, &e);
        return;
    }
    redispatch_init(&j->redispatch, rq, &OPS);
    put_conversation(&j->redispatch.body, j);
    if (!j->redispatch.body.failed) {
        redispatch_ask(&j->redispatch, "POST", "/apply-template");
        return;
    }
    redispatch_bad_answer(&j->redispatch, SHOAL_ENOMEM);
    redispatch_drop(&j->redispatch);
}
