/* openapi.c: the table of endpoints as paths and operations. See the OpenAPI Specification 3.1.0, section
 * 4.8. */
#include "endpoints/openapi.h"

#include <stdio.h>
#include <string.h>

#include "asset/asset.h"
#include "json/json.h"
#include "base/sha256.h"
#include "endpoints/pages.h"
#include "request/gateway_state.h"
#include "wire/coding.h"

#define COMPONENTS "docs/components.json"

typedef struct description {
    buf *out;
    const endpoint_table *table;
    const json_t *components;
    bool keyed;          /* the configuration has keys; without any none is asked for */
    const char *missing; /* a schema that a row names and components.json lacks */
} description;

static void put_key(buf *out, const char *key)
{
    json_put_string(out, key, strlen(key));
    buf_putc(out, ':');
}

static void openapi_put_text(buf *out, const char *key, const char *text)
{
    put_key(out, key);
    json_put_string(out, text, strlen(text));
}

/* ---- paths --------------------------------------------------------------------------------------- */

/* What a segment holds is named by the one before: of "files" it is a "file", of "batches" a "batch". */
static size_t name_length(const char *segment, const char *end)
{
    size_t n = (size_t)(end - segment);
    if (n > 4 && memcmp(end - 4, "ches", 4) == 0) return n - 2;
    return n > 1 && segment[n - 1] == 's' ? n - 1 : n;
}

/* The next parameter of the pattern at or behind *at, whose name is returned with its length; NULL: no more.
 * *ret_at: where it stands. */
static const char *next_parameter(const char *pattern, const char *at, const char **ret_at, size_t *ret_n)
{
    for (; *at; at++) {
        bool rest = *at == '/' && !at[1] && at > pattern;
        if (*at != '*' && !rest) continue;
        const char *end = *at == '*' ? at - 1 : at, *name = end;
        while (name > pattern && name[-1] != '/') name--;
        *ret_at = at;
        *ret_n = name_length(name, end);
        return name;
    }
    return NULL;
}

void openapi_put_path(buf *out, const char *pattern)
{
    const char *at, *from = pattern, *name;
    size_t n;
    while ((name = next_parameter(pattern, from, &at, &n))) {
        buf_append(out, from, (size_t)(at - from) + (*at == '/'));
        buf_printf(out, "{%.*s}", (int)n, name);
        from = at + 1;
    }
    buf_puts(out, from);
}

/* ---- parameters ---------------------------------------------------------------------------------- */

static void open_item(buf *out, char before)
{
    if (out->len && out->data[out->len - 1] != before) buf_putc(out, ',');
}

static void put_path_parameters(description *d, const endpoint *at)
{
    const char *place, *from = at->path, *name;
    size_t n;
    for (; (name = next_parameter(at->path, from, &place, &n)); from = place + 1) {
        open_item(d->out, '[');
        buf_printf(d->out, "{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,", (int)n, name);
        if (*place == '/') buf_puts(d->out, "\"description\":\"May hold slashes\",");
        buf_puts(d->out, "\"schema\":{\"type\":\"string\"}}");
    }
}

static const json_t *schema_of(description *d, const char *name)
{
    const json_t *s = json_object_get(json_object_get(d->components, "schemas"), name);
    if (!s) d->missing = name;
    return s;
}

static bool has_text(const json_t *list, const char *text)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) if (strcmp(json_string_value(v), text) == 0) return true;
    return false;
}

/* Of a GET or DELETE the schema's fields are those of the query. */
static void put_query_parameters(description *d, const endpoint *at)
{
    const json_t *schema = schema_of(d, at->request), *required = json_object_get(schema, "required");
    const char *name;
    json_t *v;
    json_object_foreach(json_object_get(schema, "properties"), name, v)
    {
        open_item(d->out, '[');
        buf_putc(d->out, '{');
        openapi_put_text(d->out, "name", name);
        buf_printf(d->out, ",\"in\":\"query\",\"required\":%s,\"schema\":",
                   has_text(required, name) ? "true" : "false");
        json_put(d->out, v);
        buf_putc(d->out, '}');
    }
}

static void put_shared_parameter(description *d, const char *name)
{
    open_item(d->out, '[');
    buf_printf(d->out, "{\"$ref\":\"#/components/parameters/%s\"}", name);
}

static bool is_post(const endpoint *at)
{
    return strcmp(at->method, "POST") == 0;
}

/* Ollama's DELETE has a body, too. */
static bool has_body(const endpoint *at)
{
    bool deletes = strcmp(at->method, "DELETE") == 0;
    return at->request && (is_post(at) || (deletes && at->takes & ENDPOINT_OLLAMA));
}

static void put_parameters(description *d, const endpoint *at)
{
    static const char *const OF_WORK[] = {"Deadline",  "Latency",      "MaxCost",
                                          "MaxEnergy", "CacheControl", "CacheTag"};
    buf_puts(d->out, ",\"parameters\":[");
    put_path_parameters(d, at);
    if (at->request && !has_body(at)) put_query_parameters(d, at);
    put_shared_parameter(d, "RequestId");
    put_shared_parameter(d, "Traceparent");
    for (size_t i = 0; at->admitted && is_post(at) && i < sizeof OF_WORK / sizeof *OF_WORK; i++)
        put_shared_parameter(d, OF_WORK[i]);
    buf_putc(d->out, ']');
}

/* ---- bodies -------------------------------------------------------------------------------------- */

static void put_media(description *d, const char *type, const char *schema)
{
    open_item(d->out, '{');
    put_key(d->out, type);
    if (schema && schema_of(d, schema))
        buf_printf(d->out, "{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}", schema);
    else
        buf_puts(d->out, schema ? "{}" : "{\"schema\":{\"type\":\"string\"}}");
}

/* Media types beside JSON that a body may have. */
static void put_raw(description *d, const json_t *schema)
{
    const json_t *type;
    size_t i;
    json_array_foreach(json_object_get(schema, "x-raw"), i, type) put_media(d, json_string_value(type), NULL);
}

static void put_request(description *d, const endpoint *at)
{
    const json_t *schema = schema_of(d, at->request), *form = json_object_get(schema, "x-form");
    buf_puts(d->out, ",\"requestBody\":{\"required\":true,\"content\":{");
    if (json_object_get(schema, "properties")) put_media(d, "application/json", at->request);
    if (form && schema_of(d, json_string_value(form)))
        put_media(d, "multipart/form-data", json_string_value(form));
    put_raw(d, schema);
    buf_puts(d->out, "}}");
}

/* A stream's media type says how its events follow each other; OpenAPI 3.1 has no word for their schema. */
static void put_stream(description *d, const endpoint *at)
{
    bool lines = at->takes & ENDPOINT_OLLAMA;
    open_item(d->out, '{');
    buf_printf(d->out, "\"%s\":{\"schema\":{\"type\":\"string\",\"description\":\"%s\"}",
               lines ? "application/x-ndjson" : "text/event-stream",
               lines ? "Lines of JSON" : "Server-sent events, each of whose data is JSON");
    if (schema_of(d, at->events))
        buf_printf(d->out, ",\"x-itemSchema\":{\"$ref\":\"#/components/schemas/%s\"}", at->events);
    buf_putc(d->out, '}');
}

/* Of a list "text/html, text/plain". */
static void put_media_types(description *d, const char *types)
{
    char type[64];
    for (const char *s = types; *s; s += strspn(s, ", ")) {
        size_t n = strcspn(s, ",");
        snprintf(type, sizeof type, "%.*s", (int)n, s);
        put_media(d, type, NULL);
        s += n;
    }
}

static void openapi_put_answer(description *d, const endpoint *at)
{
    if (at->takes & ENDPOINT_TUNNEL) {
        buf_puts(d->out, "\"101\":{\"description\":\"The connection is a WebSocket now\"}");
        return;
    }
    bool is_type = at->answer && strchr(at->answer, '/');
    if (!at->answer && !at->events) {
        buf_puts(d->out, "\"200\":{\"description\":\"It is done; there is no body\"}");
        return;
    }
    buf_puts(d->out, "\"200\":{\"description\":\"The answer\",\"headers\":{\"x-request-id\":{\"$ref\":"
                     "\"#/components/headers/RequestId\"}},\"content\":{");
    if (at->answer && is_type) put_media_types(d, at->answer);
    if (at->answer && !is_type) put_media(d, "application/json", at->answer);
    if (at->answer && !is_type) put_raw(d, schema_of(d, at->answer));
    if (at->events) put_stream(d, at);
    buf_puts(d->out, "}}");
}

/* Of the request's fields these name something that may not be there. */
static bool names_something(description *d, const endpoint *at)
{
    static const char *const FIELDS[] = {"model", "name", "pipeline", "file_id", "previous_response_id"};
    const json_t *schema = at->request ? schema_of(d, at->request) : NULL;
    const json_t *form = json_object_get(schema, "x-form");
    const json_t *forms = form ? schema_of(d, json_string_value(form)) : NULL;
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (json_object_get(json_object_get(schema, "properties"), FIELDS[i]) ||
            json_object_get(json_object_get(forms, "properties"), FIELDS[i]))
            return true;
    return strchr(at->path, '*') || at->path[strlen(at->path) - 1] == '/';
}

/* What only this endpoint answers: "statuses" of components.json. */
static bool answers_too(description *d, const endpoint *at, int status)
{
    size_t i;
    const json_t *v;
    json_array_foreach(json_object_get(json_object_get(d->components, "statuses"), at->name), i,
                       v) if (json_integer_value(v) == status) return true;
    return false;
}

/* Those that ask another endpoint in its own form pass on what that one answers. */
static bool does_work(const endpoint *at)
{
    return at->admitted || (is_post(at) && at->takes & (ENDPOINT_OLLAMA | ENDPOINT_KSERVE | ENDPOINT_LLAMA |
                                                        ENDPOINT_ANTHROPIC));
}

static void put_responses(description *d, const endpoint *at)
{
    bool body = has_body(at), names = names_something(d, at), works = does_work(at);
    const struct {
        bool comes;
        int status;
    } ERRORS[] = {{at->request || names, 400},
                  {at->needs_key, 401},
                  {at->needs_key, 403},
                  {names, 404},
                  {false, 409},
                  {body, 413},
                  {body, 415},
                  {false, 422},
                  {works, 429},
                  {false, 500},
                  {false, 501},
                  {false, 502},
                  {works, 503},
                  {works, 504},
                  {false, 507}};
    const char *form = at->takes & (ENDPOINT_OLLAMA | ENDPOINT_KSERVE) ? "PlainError"
                       : at->takes & ENDPOINT_LLAMA                    ? "LlamaError"
                       : at->takes & ENDPOINT_ANTHROPIC                ? "AnthropicError"
                       : at->takes & ENDPOINT_RPC                      ? "RpcError"
                                                                       : "Error";
    buf_puts(d->out, ",\"responses\":{");
    openapi_put_answer(d, at);
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].comes || answers_too(d, at, ERRORS[i].status))
            buf_printf(d->out, ",\"%d\":{\"$ref\":\"#/components/responses/%s\"}", ERRORS[i].status, form);
    buf_printf(d->out, ",\"default\":{\"$ref\":\"#/components/responses/%s\"}}", form);
}

/* ---- the document -------------------------------------------------------------------------------- */

/* A row's name; several that do the same have one, and an operation one of its own. */
static void put_operation_id(description *d, const endpoint *at)
{
    size_t n = 1;
    for (const endpoint *e = d->table->rows; e < at; e++) n += strcmp(e->name, at->name) == 0;
    buf_printf(d->out, n > 1 ? "\"operationId\":\"%s_%zu\"" : "\"operationId\":\"%s\"", at->name, n);
}

static void put_operation(description *d, const endpoint *at)
{
    open_item(d->out, '{');
    buf_printf(d->out, "\"%s\":{", strcmp(at->method, "GET") == 0 ? "get" : is_post(at) ? "post" : "delete");
    put_operation_id(d, at);
    buf_putc(d->out, ',');
    openapi_put_text(d->out, "summary", at->summary);
    buf_puts(d->out, ",\"tags\":[");
    json_put_string(d->out, at->tag, strlen(at->tag));
    buf_putc(d->out, ']');
    if (at->needs_key)
        buf_puts(d->out, d->keyed ? ",\"security\":[{\"key\":[]}]" : ",\"security\":[{},{\"key\":[]}]");
    put_parameters(d, at);
    if (has_body(at)) put_request(d, at);
    put_responses(d, at);
    buf_putc(d->out, '}');
}

static bool is_first_of_path(const endpoint_table *t, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(t->rows[k].path, t->rows[i].path) == 0) return false;
    return true;
}

static void put_paths(description *d)
{
    const endpoint_table *t = d->table;
    for (size_t i = 0; i < t->n; i++) {
        if (!is_first_of_path(t, i)) continue;
        open_item(d->out, '{');
        buf_putc(d->out, '"');
        openapi_put_path(d->out, t->rows[i].path);
        buf_puts(d->out, "\":{");
        for (size_t k = i; k < t->n; k++)
            if (strcmp(t->rows[k].path, t->rows[i].path) == 0) put_operation(d, &t->rows[k]);
        buf_putc(d->out, '}');
    }
}

static void put_components(description *d)
{
    const char *key;
    json_t *v;
    buf_puts(d->out, "},\"components\":{");
    json_object_foreach((json_t *)d->components, key, v)
    {
        if (strcmp(key, "tags") == 0 || strcmp(key, "statuses") == 0) continue;
        open_item(d->out, '{');
        put_key(d->out, key);
        json_put(d->out, v);
    }
    buf_puts(d->out, "},\"tags\":");
    json_put(d->out, json_object_get(d->components, "tags"));
    buf_putc(d->out, '}');
}

int openapi_put(buf *out, const endpoint_table *t, bool keyed, const char **ret_missing, shoal_err *err)
{
    const asset *a = asset_find(COMPONENTS);
    json_t *components = NULL;
    int rc = a ? json_parse(&components, (const char *)a->bytes, a->n, COMPONENTS, err)
               : err_set(err, SHOAL_ENOTFOUND, "there is no asset %s", COMPONENTS);
    if (rc != 0) return rc;
    description d = {.out = out, .table = t, .components = components, .keyed = keyed};
    buf_puts(out, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Shoal\",\"version\":\"" SHOAL_VERSION
                  "\",\"summary\":\"Clusters of small language models\"},\"servers\":[{\"url\":\"/\"}],"
                  "\"paths\":{");
    put_paths(&d);
    put_components(&d);
    json_decref(components);
    if (ret_missing) *ret_missing = d.missing;
    return out->failed ? err_nomem(err) : 0;
}

/* ---- GET /openapi.json --------------------------------------------------------------------------- */

/* Whether keys are asked for may change when the configuration is read again. */
static int openapi_make(gateway *g, bool keyed, shoal_err *err)
{
    char digest[65];
    sha256_digest d;
    if (g->openapi.len && g->openapi_keyed == keyed) return 0;
    buf_clear(&g->openapi);
    for (int i = 0; i < 2; i++) buf_done(&g->openapi_packed[i]);
    g->openapi_keyed = keyed;
    int rc = openapi_put(&g->openapi, g->endpoints, keyed, NULL, err);
    if (rc != 0) {
        buf_done(&g->openapi);
        return rc;
    }
    sha256_of(g->openapi.data, g->openapi.len, &d);
    sha256_hex(&d, digest);
    snprintf(g->openapi_etag, sizeof g->openapi_etag, "\"%.32s\"", digest);
    return 0;
}

/* Packed once for all who ask: it is longer than what is packed for one answer (coding_worth). NULL: without memory. */
static const buf *packed(gateway *g, coding c)
{
    buf *p = &g->openapi_packed[c == CODING_ZSTD];
    if (p->len || coding_pack(c, g->openapi.data, g->openapi.len, p) == 0) return p;
    buf_done(p);
    return NULL;
}

void openapi_handle(gateway_request *rq)
{
    gateway *g = rq->gateway;
    shoal_err err;
    api_error e = {0};
    char weak[48];
    if (openapi_make(g, rq->config->n_api_keys > 0, &err) != 0) {
        api_error_set(&e, 500, "server_error", NULL, NULL, "%s", err.message);
        request_error(rq, &e);
        return;
    }
    snprintf(weak, sizeof weak, "W/%s", g->openapi_etag); /* packed or plain, it is the same document */
    coding c = rq->ingress->ops->unpack ? coding_choose(request_header(rq, "accept-encoding"), CODING_ALL)
                                        : CODING_NONE;
    const http_header more[] = {{"etag", weak},
                                {"cache-control", "no-cache"},
                                {"vary", "accept-encoding"},
                                {"content-encoding", coding_name(c)}};
    const buf *as = c ? packed(g, c) : NULL;
    if (pages_client_has(rq, g->openapi_etag))
        request_reply(rq, 304, NULL, more, 2, NULL, 0);
    else if (as)
        request_reply(rq, 200, "application/json", more, 4, as->data, as->len);
    else
        request_reply(rq, 200, "application/json", more, 2, g->openapi.data, g->openapi.len);
}
