/* chat_voice_server.c: a model of a running Shoal, over /v1/chat/completions, or a pipeline, over /v1/process
 * (docs/http.md). */
#include "repl/chat_voice.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "command/cli_process.h"
#include "command/sse_client.h"

enum { CALLS_MAX = 64, PACE_MS = 5 };

typedef struct far {
    chat_voice voice;
    served found;
    const char *key;
    sse_client stream;
    chat_heard heard;
    char session[33]; /* of a pipeline's lines */
    uint64_t begin_ns, first_ns, last_ns;
} far;

/* ---- asking -------------------------------------------------------------------------------------------- */

static int put_format(json_t *o, const cli_sampling *s, shoal_err *err)
{
    json_t *schema = NULL;
    if (s->json_object) json_object_set_new(o, "response_format", json_pack("{s:s}", "type", "json_object"));
    int rc = s->schema ? json_parse(&schema, s->schema, strlen(s->schema), "the schema", err) : 0;
    if (schema)
        json_object_set_new(o, "response_format",
                            json_pack("{s:s, s:{s:s, s:o}}", "type", "json_schema", "json_schema", "name",
                                      "reply", "schema", schema));
    return rc;
}

int chat_voice_ask(buf *out, const char *model, const chat_talk *t, const chat_settings *s, shoal_err *err)
{
    json_t *o = json_pack("{s:s, s:o, s:b, s:{s:b}}", "model", model, "messages", chat_talk_json(t), "stream",
                          1, "stream_options", "include_usage", 1);
    if (!o) return err_nomem(err);
    cli_sampling_put(o, &s->sampling);
    if (s->tools)
        json_object_set(o, "tools", s->tools);
    else /* calls of its own are shown, not carried out */
        json_object_set_new(o, "tool_choice", json_string("own"));
    int rc = put_format(o, &s->sampling, err);
    if (rc == 0) json_put(out, o);
    json_decref(o);
    return rc == 0 && out->failed ? err_nomem(err) : rc;
}

/* ---- hearing ------------------------------------------------------------------------------------------- */

static int hear_text(chat_heard *h, const json_t *text, buf *to, int (*show)(void *, const char *, size_t))
{
    size_t n = json_string_length(text);
    if (!json_is_string(text) || n == 0) return 0;
    h->n_pieces++;
    buf_append(to, json_string_value(text), n);
    return show(h->show->user, json_string_value(text), n);
}

static void chat_voice_server_join(json_t *o, const char *key, const char *more)
{
    const char *had = json_string_value(json_object_get(o, key));
    buf all = {0};
    buf_puts(&all, had ? had : "");
    buf_puts(&all, more);
    if (!all.failed) json_object_set_new(o, key, json_stringn(all.data ? all.data : "", all.len));
    buf_done(&all);
}

/* The call of that index, as it is so far. */
static json_t *call_at(chat_heard *h, size_t index)
{
    if (!h->calls) h->calls = json_array();
    while (h->calls && json_array_size(h->calls) <= index && index < CALLS_MAX)
        json_array_append_new(h->calls, json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", "", "type", "function",
                                                  "function", "name", "", "arguments", ""));
    return json_array_get(h->calls, index);
}

static void hear_call(chat_heard *h, const json_t *part)
{
    json_int_t index = json_integer_value(json_object_get(part, "index"));
    json_t *call = index >= 0 ? call_at(h, (size_t)index) : NULL;
    const json_t *f = json_object_get(part, "function");
    const char *id = json_string_value(json_object_get(part, "id"));
    const char *name = json_string_value(json_object_get(f, "name"));
    const char *arguments = json_string_value(json_object_get(f, "arguments"));
    if (!call) return;
    json_t *whole = json_object_get(call, "function");
    h->n_pieces++;
    if (id) json_object_set_new(call, "id", json_string(id));
    if (name && *name) {
        chat_voice_server_join(whole, "name", name);
        h->show->call(h->show->user, name);
    }
    if (arguments && *arguments) {
        chat_voice_server_join(whole, "arguments", arguments);
        h->show->arguments(h->show->user, arguments, strlen(arguments));
    }
}

static int hear_delta(chat_heard *h, const json_t *delta)
{
    size_t i;
    json_t *part;
    int rc = hear_text(h, json_object_get(delta, "reasoning_content"), &h->said->thought, h->show->thought);
    if (rc == 0) rc = hear_text(h, json_object_get(delta, "content"), &h->said->text, h->show->text);
    if (rc == 0) rc = hear_text(h, json_object_get(delta, "refusal"), &h->said->text, h->show->text);
    json_array_foreach(json_object_get(delta, "tool_calls"), i, part) hear_call(h, part);
    return rc;
}

int chat_voice_hear(chat_heard *h, const char *data, size_t n)
{
    json_t *o = NULL;
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) {
        h->done = true;
        return 1;
    }
    if (json_parse(&o, data, n, "an event of the answer", &h->err) != 0) return 1;
    const json_t *error = json_object_get(o, "error");
    const char *why = json_string_value(json_object_get(error, "message"));
    if (error)
        err_set(&h->err, SHOAL_EUNAVAILABLE, "the server broke the reply off: %s", why ? why : "no reason");
    const json_t *choice = json_array_get(json_object_get(o, "choices"), 0);
    int rc = error ? 1 : hear_delta(h, json_object_get(choice, "delta"));
    const char *finish = json_string_value(json_object_get(choice, "finish_reason"));
    if (finish) snprintf(h->said->finish, sizeof h->said->finish, "%s", finish);
    const json_t *tokens = json_object_get(json_object_get(o, "usage"), "completion_tokens");
    if (json_is_integer(tokens) && json_integer_value(tokens) > 0)
        h->said->n_tokens = (size_t)json_integer_value(tokens);
    json_decref(o);
    return rc;
}

static int chat_voice_server_on_event(void *user, const sse_event *e)
{
    far *f = user;
    size_t before = f->heard.n_pieces;
    int rc = chat_voice_hear(&f->heard, e->data, e->n_data);
    if (f->heard.n_pieces > before) {
        f->last_ns = clock_ns();
        if (!f->first_ns) f->first_ns = f->last_ns;
    }
    return rc;
}

static double ms_between(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) / 1e6 : 0;
}

/* A stream that was broken off has told no count: then a piece is a token. */
static int chat_voice_server_take(chat_said *ret, far *f, shoal_err *err)
{
    if (ret->n_tokens == 0) ret->n_tokens = f->heard.n_pieces;
    ret->first_ms = ms_between(f->begin_ns, f->first_ns);
    ret->ms = ms_between(f->begin_ns, clock_ns());
    double rest = ms_between(f->first_ns, f->last_ns);
    if (rest >= PACE_MS && ret->n_tokens > 1) /* what came at once (kept answers) has no pace */
        ret->tokens_per_s = (double)(ret->n_tokens - 1) * 1e3 / rest;
    if (f->heard.calls) json_put(&ret->calls, f->heard.calls);
    return ret->text.failed || ret->thought.failed || ret->calls.failed ? err_nomem(err) : 0;
}

static int reply_far(chat_voice *v, const chat_talk *t, const chat_settings *s, const chat_show *show,
                     chat_said *ret, shoal_err *err)
{
    far *f = (far *)v;
    buf body = {0};
    f->heard = (chat_heard){.show = show, .said = ret};
    f->stream =
        (sse_client){.event = chat_voice_server_on_event, .user = f, .http.fd = -1, .stopped = v->stopped};
    f->begin_ns = clock_ns();
    f->first_ns = f->last_ns = 0;
    int rc = chat_voice_ask(&body, f->found.model, t, s, err);
    if (rc == 0)
        rc = sse_client_ask(&f->stream, &f->found.where, "/v1/chat/completions", body.data, f->key, err);
    if (rc == 0 && f->heard.err.code) {
        rc = f->heard.err.code;
        if (err) *err = f->heard.err;
    } else if (rc == 0 && !f->heard.done && !f->stream.enough) {
        rc = err_set(err, SHOAL_EUNAVAILABLE, "the server left in the middle of the reply");
    }
    if (rc == 0 || rc == SHOAL_ECANCELLED) {
        int taken = chat_voice_server_take(ret, f, err);
        if (taken != 0) rc = taken;
    }
    json_decref(f->heard.calls);
    buf_done(&body);
    return rc;
}

/* ---- a pipeline ---------------------------------------------------------------------------------------- */

/* The last line that the person said. */
static const char *last_line(const chat_talk *t)
{
    for (size_t i = t->n; i-- > 0;)
        if (strcmp(t->messages[i].role, "user") == 0) return t->messages[i].content;
    return "";
}

static void hear_live(void *user, const char *text, size_t n)
{
    far *f = user;
    if (!f->first_ns) f->first_ns = clock_ns();
    f->heard.n_pieces++;
    f->heard.show->text(f->heard.show->user, text, n);
}

/* A call as OpenAI writes it, for the talk; and to the person. */
static void hear_meant(chat_heard *h, const json_t *call, size_t index)
{
    const char *name = json_string_value(json_object_get(call, "name"));
    buf arguments = {0};
    json_put(&arguments, json_object_get(call, "arguments"));
    json_t *part = json_pack("{s:i, s:{s:s, s:s}}", "index", (int)index, "function", "name", name ? name : "",
                             "arguments", arguments.failed ? "{}" : buf_text(&arguments));
    if (part) hear_call(h, part);
    json_decref(part);
    buf_done(&arguments);
}

static void hear_answer(far *f, const json_t *answer)
{
    const json_t *calls = json_object_get(answer, "tool_calls"), *one;
    const json_t *text = json_object_get(answer, "text");
    const json_t *tokens = json_object_get(json_object_get(answer, "usage"), "completion_tokens");
    size_t i;
    if (json_is_string(text))
        buf_append(&f->heard.said->text, json_string_value(text), json_string_length(text));
    json_array_foreach(calls, i, one) hear_meant(&f->heard, one, i);
    one = json_object_get(answer, "tool_call");
    if (!calls && json_is_object(one)) hear_meant(&f->heard, one, 0);
    f->heard.said->n_tokens = (size_t)json_integer_value(tokens);
    f->heard.n_pieces = f->heard.said->n_tokens;
    snprintf(f->heard.said->finish, sizeof f->heard.said->finish, "%s",
             f->heard.calls ? "tool_calls" : "stop");
}

/* Over /v1/process, which shows what the pipeline would do where nobody offers functions. The lines are of one session, so
 * that "yes" answers a question. */
static int reply_pipeline(chat_voice *v, const chat_talk *t, const chat_settings *s, const chat_show *show,
                          chat_said *ret, shoal_err *err)
{
    far *f = (far *)v;
    buf body = {0};
    json_t *answer = NULL;
    bool formed = s->sampling.schema || s->sampling.json_object; /* which it does not give */
    if (chat_talk_system(t) || s->tools || formed) return reply_far(v, t, s, show, ret, err);
    f->heard = (chat_heard){.show = show, .said = ret};
    f->begin_ns = clock_ns();
    f->first_ns = f->last_ns = 0;
    cli_process_ask ask = {.text = last_line(t),
                           .pipeline = f->found.model,
                           .session = f->session,
                           .key = f->key,
                           .live = hear_live,
                           .user = f};
    int rc = cli_process_send(&f->found.where, &ask, &body, err);
    if (rc == 0) rc = json_parse(&answer, buf_text(&body), body.len, "the answer", err);
    if (rc == 0) hear_answer(f, answer);
    if (rc == 0) rc = chat_voice_server_take(ret, f, err);
    json_decref(f->heard.calls);
    json_decref(answer);
    buf_done(&body);
    return rc;
}

/* ---- opening it ---------------------------------------------------------------------------------------- */

static void stop_far(chat_voice *v)
{
    sse_client_stop(&((far *)v)->stream);
}

static void close_far(chat_voice *v)
{
    free(v);
}

static void draw_session(far *f)
{
    uint64_t drawn[2];
    rng_bytes(drawn, sizeof drawn);
    snprintf(f->session, sizeof f->session, "%016llx%016llx", (unsigned long long)drawn[0],
             (unsigned long long)drawn[1]);
}

int chat_voice_server(chat_voice **ret, const served *found, const char *key, shoal_err *err)
{
    if (*found->task && strcmp(found->task, "generate") != 0)
        return chat_voice_refuse(found->model, found->task, err);
    far *f = calloc(1, sizeof *f);
    if (!f) return err_nomem(err);
    *f = (far){.found = *found, .key = key, .stream.http.fd = -1};
    if (found->pipeline) draw_session(f);
    f->voice = (chat_voice){.model = f->found.model,
                            .where = f->found.url,
                            .use = f->found.use,
                            .plain = found->is_plain,
                            .pipeline = found->pipeline,
                            .reply = found->pipeline ? reply_pipeline : reply_far,
                            .stop = stop_far,
                            .close = close_far};
    *ret = &f->voice;
    return 0;
}
