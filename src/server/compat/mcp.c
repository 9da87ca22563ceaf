/* mcp.c: see mcp.h. */
#include "compat/mcp.h"

#include <stdlib.h>
#include <string.h>

#include "compat/mcp_tools.h"
#include "ingress/redispatch.h"
#include "json/json.h"
#include "json/json_put.h"
#include "messages/fields.h"

/* 2026-07-28 has no handshake: each request says version and method in headers, and again in params._meta. Before it a
 * session began with initialize. 2025-03-26 had messages in batches, which nobody sends unasked. */
static const char *const VERSIONS[] = {"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"};
enum { N_VERSIONS = sizeof VERSIONS / sizeof *VERSIONS, N_WITHOUT_HANDSHAKE = 1 };
#define VERSION_KEY      "io.modelcontextprotocol/protocolVersion"
#define CAPABILITIES_KEY "io.modelcontextprotocol/clientCapabilities"
#define SERVER_INFO      "{\"name\":\"shoal\",\"title\":\"Shoal\",\"version\":\"" SHOAL_VERSION "\"}"
#define CAPABILITIES     "\"capabilities\":{\"tools\":{\"listChanged\":false}}"
#define CACHED \
    "\"ttlMs\":5000,\"cacheScope\":\"private\"" /* models come and go; who asks decides what there is */

/* JSON-RPC 2.0, section 5.1, and MCP's own */
enum {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600,
    RPC_NO_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_HEADERS = -32020,
    RPC_VERSION = -32022
};

/* A request. */
typedef struct rpc {
    gateway_request *rq;
    const json_t *id, *params; /* params NULL: none */
    const char *method;
    bool sessionless; /* of a version without a handshake, where a status of HTTP goes with an error */
} rpc;

typedef struct mcp_job {
    redispatch redispatch; /* first */
    json_t *id;            /* of the request */
    const mcp_tool *tool;  /* that is called; NULL: tools are listed */
    json_t *models;        /* once they are here */
} mcp_job;

/* ---- answers ------------------------------------------------------------------------------------- */

static void rpc_begin(buf *out, const json_t *id)
{
    buf_puts(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    if (id)
        json_put(out, id);
    else
        buf_puts(out, "null");
}

static void rpc_error(gateway_request *rq, int status, const json_t *id, int code, const char *message)
{
    buf out = {0};
    rpc_begin(&out, id);
    buf_printf(&out, ",\"error\":{\"code\":%d", code);
    json_put_text(&out, "message", message);
    if (code == RPC_VERSION) {
        json_put_open(&out, "data", '{');
        json_put_texts(&out, "supported", VERSIONS, N_VERSIONS);
        json_put_text(&out, "requested", request_header(rq, "mcp-protocol-version"));
        buf_putc(&out, '}');
    }
    buf_puts(&out, "}}");
    request_json(rq, status, &out);
    buf_done(&out);
}

static void refuse(const rpc *c, int code, const char *message)
{
    int status = c->sessionless ? code == RPC_NO_METHOD ? 404 : 400 : 200;
    rpc_error(c->rq, status, c->id, code, message);
}

static void put_result(buf *out, const char *text, size_t n, bool is_error)
{
    buf_puts(out, ",\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\"");
    json_put_text_n(out, "text", text, n);
    buf_puts(out, "}]");
    json_put_bool(out, "isError", is_error);
}

/* For the model that called: it may do better. */
static void tool_error(gateway_request *rq, const json_t *id, const char *message)
{
    buf out = {0};
    rpc_begin(&out, id);
    put_result(&out, message, strlen(message), true);
    buf_puts(&out, "}}");
    request_json(rq, 200, &out);
    buf_done(&out);
}

/* ---- calls and lists ----------------------------------------------------------------------------- */

static void mcp_job_free(redispatch *a)
{
    mcp_job *j = (mcp_job *)a;
    json_decref(j->id);
    json_decref(j->models);
    free(j);
}

static void tell_called(mcp_job *j, const redispatch_reply *r)
{
    buf out = {0}, text = {0};
    rpc_begin(&out, j->id);
    mcp_tool_put_text(&text, j->tool, r->json);
    if (text.failed)
        out.failed = true;
    else
        put_result(&out, text.len ? text.data : "", text.len, false);
    json_put_key(&out, "structuredContent");
    json_put_digits(&out, r->json, ANSWER_DIGITS);
    buf_puts(&out, "}}");
    request_json(redispatch_take(&j->redispatch), 200, &out);
    buf_done(&text);
    buf_done(&out);
}

static void tell_listed(mcp_job *j, const json_t *pipelines)
{
    buf out = {0};
    rpc_begin(&out, j->id);
    buf_puts(&out, ",\"result\":{\"resultType\":\"complete\"," CACHED ",\"tools\":[");
    mcp_tools_put(&out, j->models, pipelines);
    buf_puts(&out, "]}}");
    request_json(redispatch_take(&j->redispatch), 200, &out);
    buf_done(&out);
}

static void mcp_on_reply(redispatch *a, const redispatch_reply *r)
{
    mcp_job *j = (mcp_job *)a;
    bool fine = r->status < 400 && json_is_object(r->json);
    if (!fine && r->lacks_memory) {
        redispatch_bad_answer(a, SHOAL_ENOMEM);
    } else if (!fine && j->tool) {
        tool_error(redispatch_take(a), j->id, redispatch_message(r->json));
    } else if (!fine) {
        rpc_error(redispatch_take(a), r->status < 400 ? 502 : r->status, j->id, RPC_INTERNAL,
                  redispatch_message(r->json));
    } else if (j->tool) {
        tell_called(j, r);
    } else if (!j->models) {
        j->models = json_incref((json_t *)r->json);
        redispatch_ask(a, "GET", "/v1/pipelines");
    } else {
        tell_listed(j, r->json);
    }
}

static void mcp_on_event(redispatch *a, const event *e) {}

static void mcp_on_end(redispatch *a)
{
    redispatch_bad_answer(a, SHOAL_EPROTOCOL); /* no stream is asked for */
}

static const redispatch_ops OPS = {
    .reply = mcp_on_reply, .event = mcp_on_event, .end = mcp_on_end, .free = mcp_job_free};

static mcp_job *mcp_job_new(gateway_request *rq, const json_t *id)
{
    mcp_job *j = calloc(1, sizeof *j);
    if (!j) {
        rpc_error(rq, 500, id, RPC_INTERNAL, "out of memory");
        return NULL;
    }
    j->id = json_incref((json_t *)id);
    redispatch_init(&j->redispatch, rq, &OPS);
    return j;
}

static void list_tools(const rpc *c)
{
    mcp_job *j = mcp_job_new(c->rq, c->id);
    if (j) redispatch_ask(&j->redispatch, "GET", "/v1/models");
}

static void call_tool(const rpc *c)
{
    const char *name = json_string_value(json_object_get(c->params, "name")), *method;
    const json_t *arguments = json_object_get(c->params, "arguments");
    const mcp_tool *t = name ? mcp_tool_find(name) : NULL;
    api_error e = {0};
    char said[200], path[256];
    snprintf(said, sizeof said, "there is no tool \"%.100s\"; tools/list has all", name ? name : "");
    if (!t || (arguments && !json_is_object(arguments))) {
        refuse(c, RPC_PARAMS, t ? "\"arguments\" must be an object" : said);
        return;
    }
    buf body = {0};
    mcp_job *j = NULL;
    if (mcp_tool_request(t, arguments, &method, path, sizeof path, &body, &e) != 0)
        tool_error(c->rq, c->id, e.message);
    else
        j = mcp_job_new(c->rq, c->id);
    if (j) {
        j->tool = t;
        j->redispatch.body = body;
        body = (buf){0};
        redispatch_ask(&j->redispatch, method, path);
    }
    buf_done(&body);
}

/* ---- what needs nobody else ---------------------------------------------------------------------- */

static size_t version_index(const char *wanted)
{
    size_t i = 0;
    while (wanted && i < N_VERSIONS && strcmp(VERSIONS[i], wanted) != 0) i++;
    return wanted ? i : N_VERSIONS;
}

static void put_instructions(buf *out)
{
    json_put_text(out, "instructions",
                  "Small models on this machine: they classify, tag, embed, rank and write short texts in "
                  "milliseconds. Check what the tool chat says before you rely on it.");
}

static void initialize(const rpc *c)
{
    size_t i = version_index(json_string_value(json_object_get(c->params, "protocolVersion")));
    buf out = {0};
    rpc_begin(&out, c->id);
    json_put_open(&out, "result", '{');
    json_put_text(&out, "protocolVersion",
                  VERSIONS[i >= N_WITHOUT_HANDSHAKE && i < N_VERSIONS ? i : N_WITHOUT_HANDSHAKE]);
    buf_puts(&out, "," CAPABILITIES ",\"serverInfo\":" SERVER_INFO);
    put_instructions(&out);
    buf_puts(&out, "}}");
    request_json(c->rq, 200, &out);
    buf_done(&out);
}

static void discover(const rpc *c)
{
    buf out = {0};
    rpc_begin(&out, c->id);
    json_put_open(&out, "result", '{');
    json_put_texts(&out, "supportedVersions", VERSIONS, N_VERSIONS);
    buf_puts(&out, ",\"resultType\":\"complete\"," CACHED "," CAPABILITIES
                   ",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":" SERVER_INFO "}");
    put_instructions(&out);
    buf_puts(&out, "}}");
    request_json(c->rq, 200, &out);
    buf_done(&out);
}

static void ping(const rpc *c)
{
    buf out = {0};
    rpc_begin(&out, c->id);
    buf_puts(&out, ",\"result\":{}}");
    request_json(c->rq, 200, &out);
    buf_done(&out);
}

typedef enum era { ANY_ERA, WITH_HANDSHAKE, WITHOUT_HANDSHAKE } era;

static const struct {
    const char *name;
    era of;
    void (*handle)(const rpc *c);
} METHODS[] = {{"tools/call", ANY_ERA, call_tool},
               {"tools/list", ANY_ERA, list_tools},
               {"initialize", WITH_HANDSHAKE, initialize},
               {"ping", WITH_HANDSHAKE, ping},
               {"server/discover", WITHOUT_HANDSHAKE, discover}};
enum { N_METHODS = sizeof METHODS / sizeof *METHODS };

/* ---- messages ------------------------------------------------------------------------------------ */

static bool header_is(const rpc *c, const char *header, const char *value)
{
    const char *h = request_header(c->rq, header);
    return h && value && strcmp(h, value) == 0;
}

/* What a proxy reads in the headers is what is done. NULL: it is. */
static const char *mismatch(const rpc *c)
{
    const json_t *meta = json_object_get(c->params, "_meta");
    const char *name = json_string_value(json_object_get(c->params, "name"));
    if (!header_is(c, "mcp-protocol-version", json_string_value(json_object_get(meta, VERSION_KEY))))
        return "the header MCP-Protocol-Version is not what params._meta says";
    if (!header_is(c, "mcp-method", c->method)) return "the header Mcp-Method is not the method";
    if (strcmp(c->method, "tools/call") == 0 && !header_is(c, "mcp-name", name))
        return "the header Mcp-Name is not the name of the tool";
    return NULL;
}

static void answer_method(const rpc *c)
{
    char said[160];
    const json_t *meta = json_object_get(c->params, "_meta");
    era not_this = c->sessionless ? WITH_HANDSHAKE : WITHOUT_HANDSHAKE;
    if (c->params && !json_is_object(c->params)) {
        refuse(c, RPC_PARAMS, "\"params\" must be an object");
        return;
    }
    if (c->sessionless && (!json_object_get(meta, VERSION_KEY) || !json_object_get(meta, CAPABILITIES_KEY))) {
        refuse(c, RPC_PARAMS, "params._meta lacks " VERSION_KEY " or " CAPABILITIES_KEY);
        return;
    }
    if (c->sessionless && mismatch(c)) {
        refuse(c, RPC_HEADERS, mismatch(c));
        return;
    }
    for (size_t i = 0; i < N_METHODS; i++) {
        if (strcmp(METHODS[i].name, c->method) != 0 || METHODS[i].of == not_this) continue;
        METHODS[i].handle(c);
        return;
    }
    snprintf(said, sizeof said, "there is no method \"%.80s\": this server offers tools", c->method);
    refuse(c, RPC_NO_METHOD, said);
}

/* A response of the client, or a message that wants none: nothing is left to say. */
static bool wants_no_answer(const json_t *m)
{
    return !json_object_get(m, "id") ||
           (!json_object_get(m, "method") && (json_object_get(m, "result") || json_object_get(m, "error")));
}

static void answer_message(gateway_request *rq, const json_t *m, bool sessionless)
{
    const char *version = json_string_value(json_object_get(m, "jsonrpc"));
    rpc c = {.rq = rq,
             .id = json_object_get(m, "id"),
             .params = json_object_get(m, "params"),
             .method = json_string_value(json_object_get(m, "method")),
             .sessionless = sessionless};
    bool named = !c.id || json_is_string(c.id) || json_is_number(c.id);
    if (json_is_array(m))
        rpc_error(rq, 400, NULL, RPC_INVALID, "batches are not taken: send one message in a request");
    else if (!version || strcmp(version, "2.0") != 0 || !named)
        rpc_error(rq, 400, NULL, RPC_INVALID, "the body must be a message of JSON-RPC 2.0");
    else if (wants_no_answer(m))
        request_reply(rq, 202, NULL, NULL, 0, NULL, 0);
    else if (!c.method)
        rpc_error(rq, 400, c.id, RPC_INVALID, "\"method\" is missing");
    else
        answer_method(&c);
}

void mcp_handle(gateway_request *rq)
{
    size_t len;
    const char *body = request_body(rq, &len), *version = request_header(rq, "mcp-protocol-version");
    json_t *m = NULL;
    shoal_err err;
    int rc = json_parse(&m, body, len, "body", &err);
    if (rc == SHOAL_ENOMEM)
        rpc_error(rq, 500, NULL, RPC_INTERNAL, err.message);
    else if (rc != 0)
        rpc_error(rq, 400, NULL, RPC_PARSE, err.message);
    else if (version && version_index(version) == N_VERSIONS)
        rpc_error(rq, 400, json_object_get(m, "id"), RPC_VERSION,
                  "this version of MCP is not spoken here; data.supported has those that are");
    else
        answer_message(rq, m, version_index(version) < N_WITHOUT_HANDSHAKE);
    json_decref(m);
}
