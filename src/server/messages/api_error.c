/* api_error.c: failures as HTTP statuses and OpenAI's error object; see api_error.h. Two tables say it all:
 * OUTCOMES for model calls, ROWS for what the HTTP server refuses by itself. */
#include "messages/api_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"

static void api_error_fill(api_error *e, int status, const char *type, const char *code, const char *param)
{
    *e = (api_error){.status = status, .type = type, .code = code};
    snprintf(e->param, sizeof e->param, "%s", param ? param : "");
}

int api_error_set(api_error *e, int status, const char *type, const char *code, const char *param,
                  const char *fmt, ...)
{
    api_error_fill(e, status, type, code, param);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->message, sizeof e->message, fmt, ap);
    va_end(ap);
    return status;
}

int api_error_bad(api_error *e, const char *param, const char *fmt, ...)
{
    api_error_fill(e, 400, "invalid_request_error", NULL, param);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->message, sizeof e->message, fmt, ap);
    va_end(ap);
    return e->status;
}

int api_error_nomem(api_error *e)
{
    return api_error_set(e, 500, "server_error", "out_of_memory", NULL, "out of memory");
}

int api_error_no_model(api_error *e, const char *model)
{
    return api_error_set(e, 404, "invalid_request_error", "model_not_found", "model",
                         "the model '%.64s' does not exist here; GET /v1/models lists those that do", model);
}

/* How a SHOAL_E... of a model call looks over HTTP. retry_after_s 0: sending it again would not help. */
static const struct outcome {
    int code, status;
    const char *type, *name;
    int retry_after_s;
} OUTCOMES[] = {
    {SHOAL_EINVALID, 400, "invalid_request_error", NULL, 0},
    {SHOAL_EFORMAT, 400, "invalid_request_error", NULL, 0},
    {SHOAL_ELIMIT, 400, "invalid_request_error", "context_length_exceeded", 0},
    {SHOAL_EUNSUPPORTED, 400, "invalid_request_error", "unsupported", 0},
    {SHOAL_ENOTFOUND, 404, "invalid_request_error", "model_not_found", 0},
    {SHOAL_EFULL, 429, "rate_limit_error", "queue_full", 1},
    {SHOAL_EDEADLINE, 504, "timeout_error", "deadline_exceeded", 0},
    {SHOAL_EUNAVAILABLE, 503, "service_unavailable", "worker_unavailable", 1},
    {SHOAL_ECANCELLED, 503, "service_unavailable", "cancelled", 1},
};

static bool api_error_begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* Where a worker's refusal begins with the part of the request that it is about (grammar/grammar.c,
 * grammar_schema.h), OpenAI's name for that. */
static const char *param_of(const char *message)
{
    if (api_error_begins(message, "json_schema:")) return "response_format";
    return api_error_begins(message, "tools/") ? "tools" : NULL;
}

static bool is_about_a_form(const char *message)
{
    return param_of(message) || api_error_begins(message, "the form of the reply") ||
           api_error_begins(message, "the schema ") ||
           api_error_begins(message, "the reply nests too deeply for its schema");
}

int api_error_from_call(api_error *e, const call_result *r)
{
    if (r->fault == CALL_FAULT_KILLS)
        return api_error_set(e, 422, "invalid_request_error", "request_stops_workers", NULL, "%s",
                             r->message);
    if (r->fault == CALL_FAULT_UNLIKE) {
        api_error_set(e, 503, "service_unavailable", "restart_required", NULL, "%s", r->message);
        e->retry_after_s = 1;
        return e->status;
    }
    for (size_t i = 0; i < sizeof OUTCOMES / sizeof *OUTCOMES; i++) {
        const struct outcome *o = &OUTCOMES[i];
        if (o->code != r->status) continue;
        const char *code =
            o->code == SHOAL_ELIMIT && is_about_a_form(r->message) ? "schema_too_complex" : o->name;
        api_error_set(e, o->status, o->type, code, param_of(r->message), "%s", r->message);
        e->retry_after_s = r->lasting ? 0 : o->retry_after_s;
        return e->status;
    }
    return api_error_set(e, 500, "server_error", "internal_error", NULL, "%s", r->message);
}

int api_error_from_status(api_error *e, int status, const char *message)
{
    static const struct {
        int status;
        const char *type, *code;
    } ROWS[] = {
        {401, "invalid_request_error", "invalid_api_key"},
        {404, "invalid_request_error", "not_found"},
        {405, "invalid_request_error", "method_not_allowed"},
        {408, "invalid_request_error", "request_timeout"},
        {413, "invalid_request_error", "request_too_large"},
        {429, "rate_limit_error", "too_many_requests"},
        {431, "invalid_request_error", "headers_too_large"},
        {503, "service_unavailable", "overloaded"},
    };
    const char *type = status >= 500 ? "server_error" : "invalid_request_error", *code = NULL;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (ROWS[i].status != status) continue;
        type = ROWS[i].type;
        code = ROWS[i].code;
    }
    api_error_set(e, status, type, code, NULL, "%s", message);
    if (status == 429 || status == 503) e->retry_after_s = 1;
    return status;
}

static void put_member(buf *out, const char *key, const char *value)
{
    buf_printf(out, "\"%s\":", key);
    if (value && *value)
        json_put_string(out, value, strlen(value));
    else
        buf_puts(out, "null");
}

void api_error_put(buf *out, const api_error *e)
{
    buf_puts(out, "{\"error\":{\"message\":");
    json_put_string(out, e->message, strlen(e->message));
    buf_putc(out, ',');
    put_member(out, "type", e->type);
    buf_putc(out, ',');
    put_member(out, "param", e->param);
    buf_putc(out, ',');
    put_member(out, "code", e->code);
    buf_puts(out, "}}");
}

/* Writes text[cap] anew, with `to` for each `from`; what does not fit is cut. */
static void replace(char *text, size_t cap, const char *from, const char *to)
{
    buf out = {0};
    const char *at = text;
    for (const char *hit; (hit = strstr(at, from)) != NULL; at = hit + strlen(from)) {
        buf_append(&out, at, (size_t)(hit - at));
        buf_puts(&out, to);
    }
    buf_puts(&out, at);
    if (!out.failed) snprintf(text, cap, "%s", out.data);
    buf_done(&out);
}

void api_error_rename(api_error *e, const api_error_name *rows, size_t n)
{
    const api_error before = *e;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(before.param, rows[i].param, strlen(rows[i].param)) != 0) continue;
        replace(e->message, sizeof e->message, rows[i].from, rows[i].to);
        replace(e->param, sizeof e->param, rows[i].from, rows[i].to);
    }
}
