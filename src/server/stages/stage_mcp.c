/* stage_mcp.c: generate stages whose model calls tools of MCP servers (mcp/mcp_client.h).
 *
 * The servers are asked which tools they have; those that the configuration allows are offered. The reply's grammar allows
 * calls of these alone, with arguments of their schemas, and what was called is checked once more against what was offered:
 * then the server is asked, and its answer, cut to a bound, stands in the conversation as data of a tool. After mcp_rounds
 * calls no tool is offered any more, and the reply is text. A server that does not answer fails the stage. */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "json/schema_check.h"
#include "mcp/mcp_answer.h"
#include "stages/stage_write.h"

enum { ROUNDS = 4 };
#define CHOICE(name) SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__##name

typedef struct stage_mcp {
    buf messages;    /* of the conversation, without the last ']' */
    json_t *tools;   /* as they are offered: OpenAI's array */
    json_t *servers; /* of each, its server's name */
    json_t *calls;   /* for the trace */
    unsigned i_server, round;
    uint64_t deadline_ns;
    size_t i_tool; /* that is called */
    uint32_t n_prompt, n_generated;
    buf arguments;
} stage_mcp;

void stage_mcp_done(stage_run *s)
{
    stage_mcp *m = s->tools_of;
    buf_done(&m->messages);
    buf_done(&m->arguments);
    json_decref(m->tools);
    json_decref(m->servers);
    json_decref(m->calls);
    s->tools_of = NULL;
}

static void fail(stage_run *s, int status, const char *message)
{
    call_result r = process_alone(s->stage, status, message);
    process_settle(s, &r);
}

static call_context context(const stage_run *s)
{
    call_context ctx = s->run->ctx;
    ctx.why = buf_text(&s->why);
    ctx.deadline_ns = s->tools_of->deadline_ns;
    return ctx;
}

/* ---- which tools there are ----------------------------------------------------------------------------- */

static bool is_offered(const stage_mcp *m, const char *name, size_t *ret)
{
    for (*ret = 0; *ret < json_array_size(m->tools); ++*ret) {
        const json_t *f = json_object_get(json_array_get(m->tools, *ret), "function");
        if (strcmp(json_text_of(f, "name"), name) == 0) return true;
    }
    return false;
}

static int offer(stage_mcp *m, const char *server, const mcp_tool *t)
{
    json_t *tool = json_pack("{s:s, s:{s:s, s:s, s:O}}", "type", "function", "function", "name", t->name,
                             "description", t->description, "parameters", t->schema);
    int rc = tool ? json_array_append_new(m->tools, tool) : -1;
    if (rc == 0) rc = json_array_append_new(m->servers, json_string(server));
    return rc == 0 ? 0 : SHOAL_ENOMEM;
}

/* The server's tools in the order of the configuration do not matter: grammars are sets. SHOAL_E... */
static int take_tools(stage_run *s, const char *server, const json_t *result, char *why, size_t size)
{
    stage_mcp *m = s->tools_of;
    const mcp_rule *rule = mcp_server_rule(s->run->in->mcp, server);
    mcp_tool t;
    size_t n = 0, at;
    for (size_t i = 0; i < mcp_tools_count(result); i++) {
        if (!mcp_tool_at(result, i, rule, &t)) continue;
        if (is_offered(m, t.name, &at)) {
            snprintf(why, size, "MCP server '%.64s': its tool '%.64s' has the name of another one", server,
                     t.name);
            return SHOAL_EPROTOCOL;
        }
        if (offer(m, server, &t) != 0) return SHOAL_ENOMEM;
        n++;
    }
    if (n > 0) return 0;
    snprintf(why, size, "MCP server '%.64s': it has none of the tools that mcp_servers[].tools allows",
             server);
    return SHOAL_EUNAVAILABLE;
}

static int generate(stage_run *s);
static int ask_tools(stage_run *s);

static void go_on(stage_run *s, int rc)
{
    if (rc) fail(s, rc, *s->err.message ? s->err.message : "out of memory");
}

static void on_tools(void *user, const mcp_end *e)
{
    stage_run *s = user;
    stage_mcp *m = s->tools_of;
    char why[200] = "out of memory";
    s->mcp = NULL;
    int rc = e->status ? e->status : take_tools(s, s->stage->mcp[m->i_server], e->result, why, sizeof why);
    if (rc) {
        fail(s, rc, e->status ? e->message : why);
        return;
    }
    m->i_server++;
    go_on(s, m->i_server < s->stage->n_mcp ? ask_tools(s) : generate(s));
}

static int ask_tools(stage_run *s)
{
    const stage_mcp *m = s->tools_of;
    mcp_ask ask = {.server = s->stage->mcp[m->i_server],
                   .deadline_ns = m->deadline_ns,
                   .request_id = s->run->ctx.request_id,
                   .user = s,
                   .done = on_tools};
    s->mcp = mcp_start(s->run->in->mcp, &ask);
    return s->mcp ? 0 : SHOAL_ENOMEM;
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

static unsigned rounds_of(const config_stage *st)
{
    return st->mcp_rounds ? st->mcp_rounds : ROUNDS;
}

/* What was called and what came of it, as the conversation goes on. */
static void add_turn(stage_mcp *m, const char *name, const char *text, size_t n)
{
    buf *b = &m->messages;
    buf_puts(b, ",{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{");
    buf_printf(b, "\"id\":\"call_%u\",\"type\":\"function\",\"function\":{", m->round);
    json_put_text(b, "name", name);
    json_put_text_n(b, "arguments", buf_text(&m->arguments), m->arguments.len);
    buf_printf(b, "}}]},{\"role\":\"tool\",\"tool_call_id\":\"call_%u\"", m->round);
    json_put_text(b, "name", name);
    json_put_text_n(b, "content", text, n);
    buf_putc(b, '}');
}

static void trace(stage_run *s, const char *name, const char *server, const char *outcome, double ms)
{
    process_run *r = s->run;
    json_t *c = json_object();
    process_put(r, c, "server", json_string(server));
    process_put(r, c, "tool", json_string(name));
    process_put(r, c, "outcome", json_string(outcome));
    process_put(r, c, "ms", process_rounded(ms));
    process_add(r, s->tools_of->calls, c);
}

/* The next round, behind what this one called. */
static int next_round(stage_run *s, const char *name, const char *text, size_t n)
{
    stage_mcp *m = s->tools_of;
    add_turn(m, name, text, n);
    m->round++;
    buf_clear(&s->text);
    return m->messages.failed ? SHOAL_ENOMEM : generate(s);
}

static const json_t *function_at(const stage_mcp *m, size_t i)
{
    return json_object_get(json_array_get(m->tools, i), "function");
}

static void on_result(void *user, const mcp_end *e)
{
    stage_run *s = user;
    stage_mcp *m = s->tools_of;
    const char *name = json_text_of(function_at(m, m->i_tool), "name");
    const char *server = json_string_value(json_array_get(m->servers, m->i_tool));
    const mcp_rule *rule = mcp_server_rule(s->run->in->mcp, server);
    buf text = {0};
    shoal_err why = {0};
    char said[400];
    bool is_error = false;
    s->mcp = NULL;
    int rc =
        e->status ? e->status : mcp_result_text(&text, e->result, (size_t)rule->text_bytes, &is_error, &why);
    trace(s, name, server, rc ? "failed" : is_error ? "error" : "ok", e->ms);
    snprintf(said, sizeof said, "MCP server '%.64s': %.300s", server, why.message);
    if (rc)
        fail(s, rc, e->status ? e->message : said);
    else
        go_on(s, next_round(s, name, buf_text(&text), text.len));
    buf_done(&text);
}

static int ask_tool(stage_run *s)
{
    const stage_mcp *m = s->tools_of;
    mcp_ask ask = {.server = json_string_value(json_array_get(m->servers, m->i_tool)),
                   .tool = json_text_of(function_at(m, m->i_tool), "name"),
                   .arguments = buf_text(&m->arguments),
                   .deadline_ns = m->deadline_ns,
                   .request_id = s->run->ctx.request_id,
                   .user = s,
                   .done = on_result};
    s->mcp = mcp_start(s->run->in->mcp, &ask);
    return s->mcp ? 0 : SHOAL_ENOMEM;
}

/* The arguments are not what the tool's schema says: the model hears so, and the server hears nothing. */
static int refuse_arguments(stage_run *s, const schema_verdict *v)
{
    const stage_mcp *m = s->tools_of;
    char said[400];
    const char *name = json_text_of(function_at(m, m->i_tool), "name");
    snprintf(said, sizeof said, "Error: the arguments do not fit the tool's schema: %s%s%s", v->where,
             *v->where ? ": " : "", v->why);
    trace(s, name, json_string_value(json_array_get(m->servers, m->i_tool)), "refused", 0);
    return next_round(s, name, said, strlen(said));
}

/* The model called something. */
static int take_call(stage_run *s)
{
    stage_mcp *m = s->tools_of;
    tool_call *c = &s->tools[0];
    schema_verdict v;
    if (!is_offered(m, buf_text(&c->name), &m->i_tool))
        return err_set(&s->err, SHOAL_EPROTOCOL, "the model called a tool that was not offered");
    buf_clear(&m->arguments);
    buf_puts(&m->arguments, c->arguments.len ? c->arguments.data : "{}");
    if (m->arguments.failed) return SHOAL_ENOMEM;
    schema_check_text(&v, json_object_get(function_at(m, m->i_tool), "parameters"), m->arguments.data,
                      m->arguments.len);
    if (v.out_of_memory) return SHOAL_ENOMEM;
    return v.outcome == SCHEMA_OBEYED ? ask_tool(s) : refuse_arguments(s, &v);
}

static void forget_calls(stage_run *s)
{
    for (size_t i = 0; i < s->n_tools; i++) {
        buf_done(&s->tools[i].name);
        buf_done(&s->tools[i].arguments);
    }
    s->n_tools = 0;
}

static void on_event(void *user, const Shoal__V1__GenerateEvent *ev)
{
    stage_run *s = user;
    stage_mcp *m = s->tools_of;
    calls_generate_events all = stage_writing(s);
    all.event(user, ev);
    if (!ev->done) return;
    m->n_prompt += s->n_prompt;
    m->n_generated += s->n_generated;
}

static void on_end(void *user, const call_result *r)
{
    stage_run *s = user;
    stage_mcp *m = s->tools_of;
    s->call = NULL;
    if (r->status == 0 && s->n_tools && !stage_calls_are_whole(s)) {
        process_settle_broken(s, r, "the reply ended within a call: give it more max_tokens");
        return;
    }
    if (r->status || !s->n_tools) {
        s->n_prompt = m->n_prompt;
        s->n_generated = m->n_generated;
        s->details = json_object();
        process_put(s->run, s->details, "mcp", json_incref(m->calls));
        calls_generate_events all = stage_writing(s);
        all.end(user, r);
        return;
    }
    int rc = take_call(s);
    forget_calls(s);
    go_on(s, rc);
}

/* The conversation so far, with the tools as long as there are rounds left. */
static int generate(stage_run *s)
{
    stage_mcp *m = s->tools_of;
    const config_stage *st = s->stage;
    call_context ctx = context(s);
    bool calls = m->round < rounds_of(st), first = m->round == 0;
    buf messages = {0}, tools = {0};
    buf_join(&messages, &m->messages);
    buf_putc(&messages, ']');
    json_put(&tools, m->tools);
    Shoal__V1__Sampling sampling = stage_sampling(st);
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    req.messages_json = messages.data;
    req.max_tokens = stage_max_tokens(st);
    req.sampling = &sampling;
    req.adapter = process_adapter(s);
    req.tool_choice = !calls ? CHOICE(TOOL_NONE)
                      : first && st->tool_choice && strcmp(st->tool_choice, "required") == 0
                          ? CHOICE(TOOL_REQUIRED)
                          : CHOICE(TOOL_AUTO);
    req.parse_tool_calls = calls;
    if (calls) req.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__TOOLS;
    if (calls) req.tools_json = tools.data;
    calls_generate_events ev = {.user = s, .event = on_event, .end = on_end};
    if (!messages.failed && !tools.failed)
        s->call = calls_generate(s->run->calls, st->model, &req, &ctx, &ev);
    buf_done(&messages);
    buf_done(&tools);
    return s->call ? 0 : SHOAL_ENOMEM;
}

int stage_mcp_start(stage_run *s, const call_context *ctx, buf *messages)
{
    stage_mcp *m = s->tools_of = arena_alloc(s->memory, sizeof *m);
    if (!m) return SHOAL_ENOMEM;
    m->messages = *messages;
    *messages = (buf){0};
    m->deadline_ns = ctx->deadline_ns;
    m->tools = json_array();
    m->servers = json_array();
    m->calls = json_array();
    return m->tools && m->servers && m->calls ? ask_tools(s) : SHOAL_ENOMEM;
}
