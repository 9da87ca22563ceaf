/* run_served.c: the endpoint of a model's task (tasks/task.h) is asked with a text or a file. */
#define _GNU_SOURCE
#include "cli/ask/run_served.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "json/json.h"
#include "command/cli_model.h"
#include "command/cli_process.h"
#include "command/sse_client.h"
#include "cli/ask/task_print.h"
#include "tasks/task.h"

enum { FILE_MAX_BYTES = 128 << 20 };

/* Behind the reply of a model that writes. */
static void say_if_cut(const char *reason, long long n_tokens, const cli_sampling *sampling)
{
    if (strcmp(reason, "length") != 0) return;
    fflush(stdout);
    cli_sampling_say_cut(sampling, (size_t)n_tokens);
}

static const json_t *choice_of(const json_t *answer)
{
    return json_array_get(json_object_get(answer, "choices"), 0);
}

static long long tokens_of(const json_t *answer)
{
    return json_integer_value(json_object_get(json_object_get(answer, "usage"), "completion_tokens"));
}

/* ---- questions ----------------------------------------------------------------------------------------- */

static json_t *question(const task_endpoint *to, const served *at, const run_input *in)
{
    json_t *o = json_pack("{s:s, s:s}", "model", at->model, to->input, in->text);
    json_t *documents = to == &TASK_ENDPOINTS[ASK_RERANK] ? json_array() : NULL;
    for (size_t i = 0; documents && i < in->n_more; i++)
        json_array_append_new(documents, json_string(in->more[i]));
    if (documents) {
        json_object_set_new(o, "documents", documents);
        json_object_set_new(o, "return_documents", json_true());
    }
    if (to == &TASK_ENDPOINTS[ASK_COMPLETION]) cli_sampling_put(o, in->sampling);
    json_object_update(o, in->extra);
    return o;
}

static int ask_text(const task_endpoint *to, const served *at, const run_input *in, const char *key, buf *ret,
                    shoal_err *err)
{
    json_t *o = question(to, at, in);
    char *body = o ? json_dumps(o, JSON_COMPACT) : NULL;
    if (!o) err_set(err, SHOAL_EINVALID, "the text is not UTF-8");
    int rc = body ? cli_process_post_json(&at->where, to->path, body, key, ret, err)
             : o  ? err_nomem(err)
                  : SHOAL_EINVALID;
    free(body);
    json_decref(o);
    return rc;
}

/* A form with the model's name and the file. */
static int put_form(buf *out, char type[96], const served *at, const char *path, shoal_err *err)
{
    uint64_t drawn[2];
    char boundary[40]; /* drawn, so that no file holds it */
    const char *name = strrchr(path, '/');
    buf file = {0};
    rng_bytes(drawn, sizeof drawn);
    snprintf(boundary, sizeof boundary, "shoal%016llx%016llx", (unsigned long long)drawn[0],
             (unsigned long long)drawn[1]);
    snprintf(type, 96, "multipart/form-data; boundary=%s", boundary);
    int rc = file_read(&file, strcmp(path, "-") == 0 ? "/dev/stdin" : path, FILE_MAX_BYTES, err);
    name = name ? name + 1 : path;
    buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n%s\r\n", boundary,
               at->model);
    buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\n\r\n",
               boundary, strpbrk(name, "\"\r\n\\") ? "file" : name);
    buf_append(out, file.data ? file.data : "", file.len);
    buf_printf(out, "\r\n--%s--\r\n", boundary);
    buf_done(&file);
    return rc == 0 && out->failed ? err_nomem(err) : rc;
}

static int ask_file(const task_endpoint *to, const served *at, const run_input *in, const char *key, buf *ret,
                    shoal_err *err)
{
    buf body = {0}, headers = {0};
    char type[96];
    int status = 0, rc = put_form(&body, type, at, in->text, err);
    if (rc == 0) rc = cli_process_headers(&headers, key, err);
    http_ask ask = {
        .path = to->path, .body = body.data, .n_body = body.len, .type = type, .headers = headers.data};
    if (rc == 0) rc = http_client_once(&at->where, &ask, &status, ret, err);
    if (rc == SHOAL_EUNAVAILABLE) rc = cli_process_nobody(err);
    if (rc == 0 && status != 200) {
        json_t *why = NULL;
        json_parse(&why, ret->data ? ret->data : "", ret->len, "the answer", NULL);
        rc = cli_process_refused(status, why, err);
        json_decref(why);
    }
    buf_done(&body);
    buf_done(&headers);
    return rc;
}

int run_served(const served *at, const run_input *in, const char *key, shoal_err *err)
{
    const task_endpoint *to = task_print(at->task, NULL) ? task_endpoint_of(at->task) : NULL;
    buf text = {0};
    json_t *answer = NULL;
    if (!to)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s is for \"%s\", which shoal run does not know; see docs/http.md", at->model,
                       at->task);
    if (to == &TASK_ENDPOINTS[ASK_RERANK] && in->n_more == 0)
        return err_set(err, SHOAL_EINVALID, "%s orders documents: shoal run %s QUERY DOCUMENT...", at->model,
                       at->model);
    int rc = (to->input ? ask_text : ask_file)(to, at, in, key, &text, err);
    if (rc == 0) rc = json_parse(&answer, text.data ? text.data : "", text.len, "the answer", err);
    if (rc == 0 && in->json)
        cli_printf("%s\n", text.data);
    else if (rc == 0)
        task_print(at->task, in->extra ? json_array_get(json_object_get(answer, "data"), 0) : answer);
    if (in->sampling)
        say_if_cut(json_text_of(choice_of(answer), "finish_reason"), tokens_of(answer), in->sampling);
    json_decref(answer);
    buf_done(&text);
    return rc;
}

/* ---- a text as it comes -------------------------------------------------------------------------------- */

typedef struct streamed {
    shoal_err err;
    char finish[16];
    long long n_tokens;
    bool done, begun;
} streamed;

static int run_served_on_event(void *user, const sse_event *e)
{
    streamed *s = user;
    json_t *o = NULL;
    if (sse_is_done(e)) {
        s->done = true;
        return 1;
    }
    if (json_parse(&o, e->data, e->n_data, "an event of the answer", &s->err) != 0) return 1;
    const json_t *error = json_object_get(o, "error"), *choice = choice_of(o);
    const json_t *text = json_object_get(choice, "text");
    const char *finish = json_text_of(choice, "finish_reason");
    if (error)
        err_set(&s->err, SHOAL_EUNAVAILABLE, "the server broke the reply off: %s",
                json_text_of(error, "message"));
    size_t n = json_string_length(text);
    s->begun |= n > 0;
    bool unread = n && (cli_write(json_string_value(text), n) != 0 || fflush(stdout) != 0);
    if (*finish) snprintf(s->finish, sizeof s->finish, "%s", finish);
    if (tokens_of(o) > 0) s->n_tokens = tokens_of(o);
    json_decref(o);
    return error || unread;
}

int run_served_stream(const served *at, const run_input *in, const char *key, shoal_err *err)
{
    const task_endpoint *to = &TASK_ENDPOINTS[ASK_COMPLETION];
    streamed s = {0};
    sse_client c = {.event = run_served_on_event, .user = &s, .http.fd = -1};
    json_t *o = question(to, at, in);
    if (!o) return err_set(err, SHOAL_EINVALID, "the text is not UTF-8");
    json_object_set_new(o, "stream", json_true());
    json_object_set_new(o, "stream_options", json_pack("{s:b}", "include_usage", 1));
    char *body = json_dumps(o, JSON_COMPACT);
    int rc = body ? sse_client_ask(&c, &at->where, to->path, body, key, err) : err_nomem(err);
    if (rc == 0 && s.err.code)
        rc = err_set(err, s.err.code, "%s", s.err.message);
    else if (rc == 0 && !s.done && !ferror(stdout))
        rc = err_set(err, SHOAL_EUNAVAILABLE, "the server left in the middle of the reply");
    if (rc == 0 || s.begun) cli_printf("\n");
    if (rc == 0) say_if_cut(s.finish, s.n_tokens, in->sampling);
    free(body);
    json_decref(o);
    return rc;
}
