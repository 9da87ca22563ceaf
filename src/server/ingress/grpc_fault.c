/* grpc_fault.c: the mapping of errors. Numbers of messages are those of google/rpc/status.proto and
 * error_details.proto. */
#include "ingress/grpc_fault.h"

#include <stdio.h>
#include <string.h>

#include "base/proto_wire.h"
#include "base/utf8.h"
#include "json/json.h"

static const struct {
    int http;
    grpc_status status;
} STATUSES[] = {
    {400, GRPC_INVALID_ARGUMENT},    {401, GRPC_UNAUTHENTICATED},    {403, GRPC_PERMISSION_DENIED},
    {404, GRPC_NOT_FOUND},           {405, GRPC_UNIMPLEMENTED},      {408, GRPC_DEADLINE_EXCEEDED},
    {409, GRPC_FAILED_PRECONDITION}, {413, GRPC_RESOURCE_EXHAUSTED}, {415, GRPC_INVALID_ARGUMENT},
    {422, GRPC_INVALID_ARGUMENT},    {429, GRPC_RESOURCE_EXHAUSTED}, {431, GRPC_RESOURCE_EXHAUSTED},
    {499, GRPC_CANCELLED},           {501, GRPC_UNIMPLEMENTED},      {502, GRPC_UNAVAILABLE},
    {503, GRPC_UNAVAILABLE},         {504, GRPC_DEADLINE_EXCEEDED},
};

grpc_status grpc_status_of_http(int http_status)
{
    for (size_t i = 0; i < sizeof STATUSES / sizeof *STATUSES; i++)
        if (STATUSES[i].http == http_status) return STATUSES[i].status;
    return http_status >= 400 && http_status < 500 ? GRPC_FAILED_PRECONDITION : GRPC_INTERNAL;
}

static const struct {
    const char *type;
    int http;
} TYPES[] = {
    {"invalid_request_error", 400}, {"rate_limit_error", 429},     {"timeout_error", 504},
    {"service_unavailable", 503},   {"authentication_error", 401}, {"permission_error", 403},
};

static int http_of_type(const char *type)
{
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (strcmp(TYPES[i].type, type) == 0) return TYPES[i].http;
    return 500;
}

/* ---- details ------------------------------------------------------------------------------------- */

static void put_any(buf *out, const char *type, const buf *value)
{
    buf any = {0};
    proto_put_text(&any, 1, type);
    proto_put_bytes(&any, 2, value->data, value->len);
    proto_put_bytes(out, 3, any.data, any.len);
    if (any.failed || value->failed) out->failed = true;
    buf_done(&any);
}

static void put_pair(buf *info, const char *key, const char *value)
{
    buf pair = {0};
    if (!*value) return;
    proto_put_text(&pair, 1, key);
    proto_put_text(&pair, 2, value);
    proto_put_bytes(info, 3, pair.data, pair.len);
    if (pair.failed) info->failed = true;
    buf_done(&pair);
}

typedef struct said {
    const char *message, *type, *code, *param;
    int http, retry_after_s;
} said;

static void put_info(buf *out, const said *s)
{
    buf info = {0};
    char http[12];
    snprintf(http, sizeof http, "%d", s->http);
    proto_put_text(&info, 1, *s->code ? s->code : s->type);
    proto_put_text(&info, 2, "shoal");
    put_pair(&info, "type", s->type);
    put_pair(&info, "param", s->param);
    put_pair(&info, "http_status", http);
    put_any(out, "type.googleapis.com/google.rpc.ErrorInfo", &info);
    buf_done(&info);
}

static void put_retry(buf *out, int seconds)
{
    buf retry = {0}, delay = {0};
    proto_put_number(&delay, 1, (uint64_t)seconds);
    proto_put_bytes(&retry, 1, delay.data, delay.len);
    if (delay.failed) retry.failed = true;
    put_any(out, "type.googleapis.com/google.rpc.RetryInfo", &retry);
    buf_done(&delay);
    buf_done(&retry);
}

static void grpc_fault_fill(grpc_fault *ret, const said *s)
{
    buf out = {0};
    *ret = (grpc_fault){.status = strcmp(s->code, "out_of_memory") == 0 ? GRPC_RESOURCE_EXHAUSTED
                                                                        : grpc_status_of_http(s->http)};
    buf_puts(&ret->message, s->message);
    proto_put_number(&out, 1, ret->status);
    proto_put_text(&out, 2, s->message);
    put_info(&out, s);
    if (s->retry_after_s > 0) put_retry(&out, s->retry_after_s);
    if (out.failed || base64_encode(&ret->details, out.data, out.len) != 0) buf_done(&ret->details);
    buf_done(&out);
}

void grpc_fault_from_json(grpc_fault *ret, int http_status, const json_t *body, int retry_after_s)
{
    const json_t *e = json_object_get(body, "error");
    said s = {.message = json_text_of(e, "message"),
              .type = json_text_of(e, "type"),
              .code = json_text_of(e, "code"),
              .param = json_text_of(e, "param"),
              .http = http_status,
              .retry_after_s = retry_after_s};
    api_error own;
    if (json_is_string(e)) s.message = json_string_value(e); /* as KServe's endpoints say it */
    if (!*s.message) s.message = "it could not be answered";
    if (s.http == 0) s.http = http_of_type(s.type);
    if (!*s.type) {
        api_error_from_status(&own, s.http, s.message);
        s.type = own.type;
        s.code = own.code ? own.code : "";
    }
    grpc_fault_fill(ret, &s);
}

void grpc_fault_from_body(grpc_fault *ret, int http_status, const char *body, size_t n, int retry_after_s)
{
    json_t *v = NULL;
    if (n && json_parse(&v, body, n, "the answer", NULL) != 0) v = NULL;
    grpc_fault_from_json(ret, http_status, v, retry_after_s);
    json_decref(v);
}

void grpc_fault_from_error(grpc_fault *ret, const api_error *e)
{
    said s = {.message = e->message,
              .type = e->type,
              .code = e->code ? e->code : "",
              .param = e->param,
              .http = e->status,
              .retry_after_s = e->retry_after_s};
    grpc_fault_fill(ret, &s);
}

void grpc_fault_done(grpc_fault *f)
{
    buf_done(&f->message);
    buf_done(&f->details);
    *f = (grpc_fault){0};
}
