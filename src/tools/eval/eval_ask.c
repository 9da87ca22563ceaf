/* eval_ask.c: requests for pipelines and routes, and their answers in one form; see eval_ask.h. */
#include "eval/eval_ask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json_put.h"

enum { TOKENS_MAX = 160 };

/* ---- asking a route -------------------------------------------------------------------------------- */

static void put_devices(const json_t *context, buf *out)
{
    const json_t *list = json_object_get(context, "devices");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *d = json_array_get(list, i);
        const char *id = "", *name = "", *state = "";
        json_unpack((json_t *)d, "{s?s, s?s, s?s}", "id", &id, "name", &name, "state", &state);
        buf_printf(out, "%s%s '%s' = %s", i ? "\n" : "", id, name, state);
    }
}

static void put_system(const char *form, const json_t *context, buf *out)
{
    buf text = {0};
    const char *at = strstr(form, "{devices}");
    size_t before = at ? (size_t)(at - form) : strlen(form);
    buf_append(&text, form, before);
    if (at) put_devices(context, &text);
    if (at) buf_puts(&text, at + strlen("{devices}"));
    out->failed |= text.failed;
    buf_puts(out, "{\"role\":\"system\",\"content\":");
    json_put_string(out, text.data ? text.data : "", text.len);
    buf_puts(out, "},");
    buf_done(&text);
}

static void put_messages(const eval_asker *a, const eval_case *c, buf *out)
{
    if (c->messages) {
        json_put(out, c->messages);
        return;
    }
    buf_putc(out, '[');
    if (c->context) put_system(a->system ? a->system : EVAL_SYSTEM, c->context, out);
    buf_puts(out, "{\"role\":\"user\",\"content\":");
    json_put_string(out, c->input, strlen(c->input));
    buf_puts(out, "}]");
}

const char *eval_route_request(const eval_asker *a, const eval_case *c, buf *out)
{
    bool label = eval_expect_is_label(c->expect);
    buf_putc(out, '{');
    json_put_text(out, "model", a->route);
    if (label) {
        buf_puts(out, ",\"top_k\":1,\"input\":");
        json_put_string(out, c->input, strlen(c->input));
    } else {
        buf_printf(out,
                   ",\"temperature\":0,\"max_tokens\":%d,\"tool_choice\":\"own\"%s,\"messages\":", TOKENS_MAX,
                   a->wants_confidence ? ",\"logprobs\":true" : "");
        put_messages(a, c, out);
    }
    buf_putc(out, '}');
    return label ? "/v1/classify" : "/v1/chat/completions";
}

/* ---- its answer ------------------------------------------------------------------------------------ */

static json_t *call_of(const json_t *call)
{
    const json_t *f = json_object_get(call, "function");
    const char *text = json_string_value(json_object_get(f, "arguments"));
    json_t *arguments = NULL;
    if (text) json_parse(&arguments, text, strlen(text), "arguments", NULL);
    return json_pack("{s:O?, s:o?}", "name", json_object_get(f, "name"), "arguments", arguments);
}

static json_t *answer_of_chat(const json_t *message)
{
    const json_t *calls = json_object_get(message, "tool_calls"),
                 *content = json_object_get(message, "content");
    json_t *list = json_array(), *answer = json_object();
    int failed = !list || !answer;
    for (size_t i = 0; !failed && i < json_array_size(calls); i++)
        failed |= json_array_append_new(list, call_of(json_array_get(calls, i)));
    if (!failed && json_is_string(content)) failed |= json_object_set(answer, "text", (json_t *)content);
    if (!failed) failed |= json_object_set(answer, "tool_calls", list);
    json_decref(list);
    if (!failed) return answer;
    json_decref(answer);
    return NULL;
}

static double mean_probability(const json_t *tokens)
{
    double sum = 0;
    size_t n = json_array_size(tokens);
    for (size_t i = 0; i < n; i++)
        sum += exp(json_number_value(json_object_get(json_array_get(tokens, i), "logprob")));
    return n ? fmin(sum / (double)n, 1) : -1;
}

json_t *eval_route_answer(const json_t *body, double *ret_said, size_t *ret_n_tokens)
{
    const json_t *choice = json_array_get(json_object_get(body, "choices"), 0);
    const json_t *best =
        json_array_get(json_object_get(json_array_get(json_object_get(body, "data"), 0), "labels"), 0);
    const json_t *usage = json_object_get(body, "usage"), *score = json_object_get(best, "score");
    json_int_t n = json_integer_value(json_object_get(usage, "completion_tokens"));
    *ret_n_tokens = n > 0 ? (size_t)n : 0;
    *ret_said = json_is_number(score) ? json_number_value(score) : -1;
    if (choice) *ret_said = mean_probability(json_object_get(json_object_get(choice, "logprobs"), "content"));
    if (choice) return answer_of_chat(json_object_get(choice, "message"));
    if (best) return json_pack("{s:O?}", "text", json_object_get(best, "label"));
    return json_object(); /* judged as an answer without content */
}

bool eval_is_escalated(const char *trace)
{
    return strstr(trace, " < ") || strstr(trace, "failed") || strstr(trace, "escalated");
}

/* ---- judging --------------------------------------------------------------------------------------- */

/* The answer in one line: text, then calls. */
static char *one_line(const eval_answer *a)
{
    buf b = {0};
    json_t *calls = eval_answer_calls(a);
    const char *text = eval_answer_text(a);
    json_put_string(&b, text, strlen(text));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        buf_putc(&b, ' ');
        json_put(&b, json_array_get(calls, i));
    }
    json_decref(calls);
    return buf_take(&b);
}

static int eval_ask_judge(const eval_asker *a, const eval_case *c, double ms, eval_result *ret,
                          shoal_err *err)
{
    char trace[384];
    json_t *body = NULL;
    const buf *b = &a->http->body;
    eval_result r = {.c = c, .ms = ms, .said = -1};
    json_parse(&body, b->data, b->len, "the answer",
               NULL); /* not JSON: judged as an answer without content */
    if (a->route && a->http->status == 200) {
        json_t *common = eval_route_answer(body, &r.said, &r.n_tokens);
        json_decref(body);
        if (!(body = common)) return err_nomem(err);
    }
    http_client_header(a->http, "x-shoal-ensemble", trace, sizeof trace);
    eval_answer answer = {.status = a->http->status, .body = body};
    buf why = {0};
    buf_puts(&why, "");
    r.escalated = eval_is_escalated(trace);
    r.verdict = eval_judge(c->expect, c->input, &answer, &why);
    r.got = one_line(&answer);
    r.why = buf_take(&why);
    json_decref(body);
    *ret = r;
    return r.got && r.why ? 0 : err_nomem(err);
}

int eval_put_headers(const cli_list *list, buf *out, shoal_err *err)
{
    buf_puts(out, "cache-control: no-cache\r\n");
    for (size_t i = 0; i < list->n; i++) {
        if (!strchr(list->v[i], ':') || strpbrk(list->v[i], "\r\n"))
            return err_set(err, SHOAL_EINVALID, "--header wants \"NAME: VALUE\", not \"%s\"", list->v[i]);
        buf_printf(out, "%s\r\n", list->v[i]);
    }
    return out->failed ? err_nomem(err) : 0;
}

int eval_ask(const eval_asker *a, const eval_case *c, eval_result *ret, shoal_err *err)
{
    buf body = {0};
    const char *path = "/v1/process";
    if (a->route)
        path = eval_route_request(a, c, &body);
    else
        eval_case_put_request(c, a->pipeline, &body);
    http_ask r = {.path = path, .body = body.data, .headers = a->headers};
    uint64_t start = clock_ns();
    int rc = body.failed ? err_nomem(err) : http_client_exchange(a->http, &r, err);
    double ms = clock_ms_since(start);
    buf_done(&body);
    return rc ? rc : eval_ask_judge(a, c, ms, ret, err);
}
