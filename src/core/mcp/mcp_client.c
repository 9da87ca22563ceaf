/* mcp_client.c: servers, their handshake, and calls; see mcp_client.h.
 *
 * A call ends from its timer alone, never within what brought its answer: so whoever hears of it may start another one, or
 * free the client. */
#include "mcp/mcp_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "hosts/hosts.h"
#include "json/json.h"
#include "json/json_put.h"
#include "logging/log.h"
#include "mcp/mcp_impl.h"

enum { PAGES_MAX = 16, CONNECTIONS_MAX = 64, PER_HOST_MAX = 16, ENV_FILE_MAX = 65536 };
enum { LATE_MAX = 3, TIMER_SLACK_MS = 20 };
#define VERSION "2025-06-18"
/* With a handshake, and with tools as this client knows them. */
static const char *const VERSIONS[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

struct mcp_call {
    list_node link;   /* in the server's */
    uv_timer_t timer; /* until it begins, until it is too late, or until its end is told */
    mcp_server *s;
    mcp_ask ask;
    char *arguments;
    mcp_rpc *rpc;
    bool waits, ended, again; /* for the handshake; its end is known; it was sent a second time */
    json_t *result;
    unsigned n_pages;
    size_t list_bytes; /* of the pages so far */
    int status;
    char message[480];
    char refusal[48]; /* for the log: the words of the server may quote what it was sent. "": none */
    uint64_t start_ns;
};

/* ---- exchanges ---------------------------------------------------------------------------------------- */

static void rpc_free(mcp_rpc *r)
{
    list_take(&r->link);
    http_out_cancel(r->out);
    mcp_events_done(&r->events);
    buf_done(&r->body);
    json_decref(r->answer.root);
    free(r);
}

void mcp_rpc_cancel(mcp_rpc *r)
{
    if (r) rpc_free(r);
}

static void close_session(mcp_server *s);

void mcp_rpc_end(mcp_rpc *r, int status, const char *message, bool lost)
{
    char said[400];
    const mcp_message *a = &r->answer;
    if (r->opens) memcpy(r->s->session, r->session, sizeof r->session);
    /* Not that of another call, which has opened a new one since. */
    if (lost && r != r->s->opening && strcmp(r->with, r->s->session) == 0) close_session(r->s);
    if (status == 0 && a->error) {
        snprintf(said, sizeof said, "it refused: %.300s", a->error);
        status = SHOAL_EPROTOCOL;
        message = said;
    }
    list_take(&r->link); /* done may cancel all that are left */
    list_init(&r->link);
    r->done(r->user, status, message, status ? NULL : a->result, lost);
    rpc_free(r);
}

static void put_message(buf *out, int64_t id, const char *method, const char *params)
{
    buf_puts(out, "{\"jsonrpc\":\"2.0\"");
    if (id) buf_printf(out, ",\"id\":%lld", (long long)id);
    json_put_text(out, "method", method);
    if (params) buf_printf(out, ",\"params\":%s", params);
    buf_putc(out, '}');
}

mcp_rpc *mcp_rpc_send(mcp_server *s, bool notification, const char *method, const char *params,
                      void (*done)(void *user, int status, const char *message, const json_t *result,
                                   bool lost),
                      void *user)
{
    mcp_rpc *r = calloc(1, sizeof *r);
    buf message = {0};
    if (!r) return NULL;
    *r = (mcp_rpc){.s = s, .id = notification ? 0 : ++s->last_id, .done = done, .user = user};
    list_put(&s->rpcs, &r->link);
    put_message(&message, r->id, method, params);
    bool sent = !message.failed &&
                (s->rule->url ? mcp_http_send(r, &message) : s->program && mcp_stdio_send(s, &message) == 0);
    buf_done(&message);
    if (sent) return r;
    rpc_free(r);
    return NULL;
}

/* ---- calls' ends -------------------------------------------------------------------------------------- */

static void on_call_closed(uv_handle_t *h)
{
    free(h->data);
}

static void call_free(mcp_call *c)
{
    list_take(&c->link);
    mcp_rpc_cancel(c->rpc);
    json_decref(c->result);
    free(c->arguments);
    uv_close((uv_handle_t *)&c->timer, on_call_closed);
}

static void call_over(mcp_call *c)
{
    mcp_client *m = c->s->m;
    double ms = clock_ms_since(c->start_ns);
    mcp_end end = {c->status, c->message, c->status ? NULL : c->result, ms};
    LOG(c->status ? LOG_WARN : LOG_INFO, "mcp", c->ask.tool ? "called" : "listed",
        LOG_S("server", c->s->rule->name), LOG_S("tool", c->ask.tool ? c->ask.tool : ""),
        LOG_S("error", *c->refusal ? c->refusal : c->message), LOG_F("ms", ms),
        LOG_S("request_id", c->ask.request_id ? c->ask.request_id : ""));
    if (m->note) m->note(m->user, c->s->rule->name, c->ask.tool, c->status, ms);
    void (*done)(void *, const mcp_end *) = c->ask.done;
    void *user = c->ask.user;
    json_t *result = json_incref(c->result);
    mcp_call kept = *c; /* for message and result during `done` */
    call_free(c);
    end.message = kept.message;
    end.result = end.status ? NULL : result;
    done(user, &end);
    json_decref(result);
}

static void on_timer(uv_timer_t *t);

static void end_later(mcp_call *c, int status, const char *message)
{
    if (c->ended) return;
    c->ended = true;
    c->waits = false;
    c->status = status;
    mcp_rpc_cancel(c->rpc);
    c->rpc = NULL;
    if (status)
        snprintf(c->message, sizeof c->message, "MCP server '%.64s': %.400s", c->s->rule->name, message);
    uv_timer_start(&c->timer, on_timer, 0, 0);
}

/* ---- the handshake ------------------------------------------------------------------------------------ */

static void call_send(mcp_call *c);

static void close_session(mcp_server *s)
{
    s->state = MCP_CLOSED;
    *s->session = *s->version = '\0';
    mcp_rpc_cancel(s->opening);
    s->opening = NULL;
}

static void fail_waiting(mcp_server *s, int status, const char *message)
{
    close_session(s);
    mcp_stdio_stop(s);
    list_each (c, &s->calls, mcp_call, link)
        if (c->waits) end_later(c, status, message);
}

void mcp_server_broken(mcp_server *s, int status, const char *message)
{
    close_session(s);
    mcp_stdio_stop(s);
    list_each (c, &s->calls, mcp_call, link)
        if (c->waits || c->rpc) end_later(c, status, message);
}

static void end_row(mcp_late *l)
{
    *l = (mcp_late){.last_ns = clock_ns()};
}

static void on_initialized(void *user, int status, const char *message, const json_t *result, bool lost)
{
    mcp_server *s = user;
    s->opening = NULL;
    if (status) {
        fail_waiting(s, status, message);
        return;
    }
    s->state = MCP_OPEN;
    end_row(&s->unanswered);
    list_each (c, &s->calls, mcp_call, link)
        if (c->waits) call_send(c);
}

static bool is_spoken(const char *version)
{
    for (size_t i = 0; i < sizeof VERSIONS / sizeof *VERSIONS; i++)
        if (version && strcmp(VERSIONS[i], version) == 0) return true;
    return false;
}

static void on_initialize(void *user, int status, const char *message, const json_t *result, bool lost)
{
    mcp_server *s = user;
    const char *version = json_string_value(json_object_get(result, "protocolVersion"));
    s->opening = NULL;
    if (status == 0 && !is_spoken(version)) {
        status = SHOAL_EPROTOCOL;
        message = "it speaks a version of MCP that is not spoken here";
    }
    if (status == 0) {
        snprintf(s->version, sizeof s->version, "%s", version);
        s->opening = mcp_rpc_send(s, true, "notifications/initialized", NULL, on_initialized, s);
        if (!s->opening) status = SHOAL_ENOMEM, message = "out of memory";
    }
    if (status)
        fail_waiting(s, status, message);
    else if (!s->rule->url)
        mcp_rpc_end(s->opening, 0, "", false); /* a line that is written, and nothing answers it */
}

static void open_session(mcp_server *s)
{
    static const char PARAMS[] =
        "{\"protocolVersion\":\"" VERSION "\",\"capabilities\":{},\"clientInfo\":{\"name\":"
        "\"shoal\",\"title\":\"Shoal\",\"version\":\"" SHOAL_VERSION "\"}}";
    shoal_err err = {0};
    if (s->state != MCP_CLOSED) return;
    int rc = s->rule->url || s->program ? 0 : mcp_stdio_start(s, &err);
    if (rc == 0) {
        s->state = MCP_OPENING;
        s->opening_ns = clock_ns();
        s->opening = mcp_rpc_send(s, false, "initialize", PARAMS, on_initialize, s);
        if (s->opening)
            s->opening->opens = true;
        else
            rc = err_nomem(&err);
    }
    if (rc) fail_waiting(s, rc, err.message);
}

/* ---- calls -------------------------------------------------------------------------------------------- */

/* The time of a handshake is its own: who waits for it may have less. */
static bool is_stuck(const mcp_server *s)
{
    return s->state == MCP_OPENING &&
           clock_ms_since(s->opening_ns) + TIMER_SLACK_MS >= (double)s->rule->timeout_ms;
}

static void call_go(mcp_call *c)
{
    if (c->s->state == MCP_OPEN) {
        call_send(c);
        return;
    }
    if (is_stuck(c->s)) fail_waiting(c->s, SHOAL_EDEADLINE, "it did not answer the handshake in time");
    c->waits = true;
    open_session(c->s);
}

/* One more page of tools, n_bytes of JSON. SHOAL_E... */
static int add_page(mcp_call *c, const json_t *page, size_t n_bytes, shoal_err *err)
{
    const mcp_rule *r = c->s->rule;
    json_t *tools = json_object_get(page, "tools");
    c->list_bytes += n_bytes;
    if (!json_is_array(tools)) return err_set(err, SHOAL_EPROTOCOL, "its list of tools is none");
    if (json_array_size(tools) + mcp_tools_count(c->result) > r->max_tools)
        return err_set(err, SHOAL_ELIMIT, "it lists more than %llu tools, the most that its max_tools allows",
                       (unsigned long long)r->max_tools);
    if (c->list_bytes > r->tools_bytes)
        return err_set(err, SHOAL_ELIMIT,
                       "its list of tools is longer than %llu KiB, the most that its tools_kb allows",
                       (unsigned long long)r->tools_bytes >> 10);
    if (++c->n_pages > PAGES_MAX)
        return err_set(err, SHOAL_ELIMIT, "its list of tools has more than %d pages", PAGES_MAX);
    if (!c->result && !(c->result = json_pack("{s:[]}", "tools"))) return err_nomem(err);
    return json_array_extend(json_object_get(c->result, "tools"), tools) ? err_nomem(err) : 0;
}

static void forget_pages(mcp_call *c)
{
    json_decref(c->result);
    c->result = NULL;
    c->n_pages = 0;
    c->list_bytes = 0;
}

static void send_list(mcp_call *c, const char *cursor);

static void on_answer(void *user, int status, const char *message, const json_t *result, bool lost)
{
    mcp_call *c = user;
    const json_t *error = json_object_get(c->rpc->answer.root, "error");
    size_t n_bytes = c->rpc->answer_bytes;
    shoal_err err = {0};
    if (error)
        snprintf(c->refusal, sizeof c->refusal, "it refused, code %lld",
                 (long long)json_integer_value(json_object_get(error, "code")));
    c->rpc = NULL;
    if (c->ask.tool) end_row(&c->s->unanswered);
    if (lost && !c->again) { /* it forgot the session, and did nothing */
        c->again = true;
        forget_pages(c);
        call_go(c);
        return;
    }
    if (status == 0 && c->ask.tool) {
        c->result = json_incref((json_t *)(uintptr_t)result);
    } else if (status == 0) {
        status = add_page(c, result, n_bytes, &err);
        message = err.message;
        if (status == 0 && mcp_next_cursor(result)) {
            send_list(c, mcp_next_cursor(result));
            return;
        }
    }
    end_later(c, status, message);
}

static void sent(mcp_call *c)
{
    if (!c->rpc)
        end_later(c, c->s->rule->url ? SHOAL_ENOMEM : SHOAL_EUNAVAILABLE, "it takes no more requests");
}

static void send_list(mcp_call *c, const char *cursor)
{
    buf params = {0};
    buf_putc(&params, '{');
    if (cursor) json_put_text(&params, "cursor", cursor);
    buf_putc(&params, '}');
    if (!params.failed) c->rpc = mcp_rpc_send(c->s, false, "tools/list", params.data, on_answer, c);
    buf_done(&params);
    sent(c);
}

static void call_send(mcp_call *c)
{
    buf params = {0};
    c->waits = false;
    if (!c->ask.tool) {
        send_list(c, NULL);
        return;
    }
    buf_putc(&params, '{');
    json_put_text(&params, "name", c->ask.tool);
    buf_printf(&params, ",\"arguments\":%s}", c->arguments);
    if (!params.failed) c->rpc = mcp_rpc_send(c->s, false, "tools/call", params.data, on_answer, c);
    buf_done(&params);
    sent(c);
}

/* What becomes of a notice is nobody's concern. */
static void on_told(void *user, int status, const char *message, const json_t *result, bool lost) {}

static void tell_cancelled(mcp_call *c)
{
    char params[64];
    buf message = {0};
    if (!c->rpc) return;
    snprintf(params, sizeof params, "{\"requestId\":%lld}", (long long)c->rpc->id);
    if (c->s->rule->url && strcmp(c->rpc->with, c->s->session) == 0)
        mcp_rpc_send(c->s, true, "notifications/cancelled", params, on_told, NULL);
    if (c->s->rule->url || !c->s->program) return;
    put_message(&message, 0, "notifications/cancelled", params);
    if (!message.failed) mcp_stdio_send(c->s, &message);
    buf_done(&message);
}

/* A call's own deadline may be short, and calls that run at once end together. So the calls in a row must have taken the
 * rule's timeout, too, and what was before the program last did better does not count. */
static bool are_too_many(mcp_late *l, const mcp_call *c)
{
    if (l->n++ == 0) l->since_ns = c->start_ns > l->last_ns ? c->start_ns : l->last_ns;
    return l->n >= LATE_MAX && clock_ms_since(l->since_ns) + TIMER_SLACK_MS >= (double)c->s->rule->timeout_ms;
}

/* NULL: the program is to run on. It may list its tools and let every call of them hang. */
static const char *why_to_end_program(const mcp_call *c)
{
    if (!c->rpc || c->s->rule->url) return NULL;
    bool silent = are_too_many(&c->s->unheard, c), hangs = c->ask.tool && are_too_many(&c->s->unanswered, c);
    return silent  ? "its program says nothing any more"
           : hangs ? "its program answers no calls of tools any more"
                   : NULL;
}

/* The next call starts it again. */
static void end_program(mcp_server *s, const char *why)
{
    LOG(LOG_WARN, "mcp", "program_ended", LOG_S("server", s->rule->name), LOG_S("error", why));
    mcp_server_broken(s, SHOAL_EUNAVAILABLE, why);
}

static void too_late(mcp_call *c)
{
    char message[120];
    snprintf(message, sizeof message, "it did not answer within %.0f ms", clock_ms_since(c->start_ns));
    tell_cancelled(c);
    bool waited = c->waits;
    const char *why = why_to_end_program(c);
    end_later(c, SHOAL_EDEADLINE, message);
    if (waited && is_stuck(c->s)) fail_waiting(c->s, SHOAL_EDEADLINE, message);
    if (why) end_program(c->s, why);
}

static uint64_t time_left_ms(const mcp_call *c)
{
    uint64_t ms = c->s->rule->timeout_ms, now = clock_ns();
    if (!c->ask.deadline_ns) return ms;
    uint64_t left = c->ask.deadline_ns > now ? (c->ask.deadline_ns - now) / 1000000u : 0;
    return left < ms ? left : ms;
}

static void on_late(uv_timer_t *t)
{
    too_late(t->data);
}

static void on_timer(uv_timer_t *t)
{
    mcp_call *c = t->data;
    if (c->ended) {
        call_over(c);
        return;
    }
    if (time_left_ms(c) == 0) {
        too_late(c);
        return;
    }
    uv_timer_start(&c->timer, on_late, time_left_ms(c), 0);
    call_go(c);
}

mcp_call *mcp_start(mcp_client *m, const mcp_ask *a)
{
    mcp_server *s = m->servers;
    while (strcmp(s->rule->name, a->server) != 0) s++; /* the configuration was checked */
    mcp_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (mcp_call){
        .s = s, .ask = *a, .start_ns = clock_ns(), .arguments = strdup(a->arguments ? a->arguments : "{}")};
    if (!c->arguments) {
        free(c);
        return NULL;
    }
    uv_timer_init(m->loop, &c->timer);
    c->timer.data = c;
    list_put(&s->calls, &c->link);
    uv_timer_start(&c->timer, on_timer, 0, 0);
    return c;
}

void mcp_cancel(mcp_call *c)
{
    if (!c) return;
    tell_cancelled(c);
    call_free(c);
}

/* ---- what a program says ------------------------------------------------------------------------------ */

/* It may ask whether we are there; it can ask nothing else. */
static void answer_server(mcp_server *s, const mcp_message *m)
{
    const json_t *id = json_object_get(m->root, "id");
    buf out = {0};
    if (!id) return;
    buf_puts(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    json_put(&out, id);
    buf_puts(&out, strcmp(m->method, "ping") == 0 ? ",\"result\":{}}"
                                                  : ",\"error\":{\"code\":-32601,\"message\":\"this client "
                                                    "offers tools to models, and nothing else\"}}");
    if (!out.failed) mcp_stdio_send(s, &out);
    buf_done(&out);
}

void mcp_server_heard(mcp_server *s, const char *text, size_t n)
{
    mcp_message m;
    shoal_err err;
    end_row(&s->unheard);
    int rc = mcp_message_parse(&m, text, n, &err);
    if (rc != 0) {
        mcp_server_broken(s, rc, err.message);
        return;
    }
    if (!m.answers) answer_server(s, &m);
    mcp_rpc *of = NULL;
    list_each (r, &s->rpcs, mcp_rpc, link)
        if (m.answers && r->id == m.id) of = r;
    if (!of) { /* of a call that was given up: it is slow, and does not hang */
        if (m.answers) end_row(&s->unanswered);
        json_decref(m.root);
        return;
    }
    of->answer = m;
    of->answer_bytes = n;
    if (n > s->rule->max_bytes) {
        json_decref(m.root);
        of->answer = (mcp_message){0};
        mcp_rpc_end(of, SHOAL_ELIMIT, "it sent more than max_kb allows", false);
    } else {
        mcp_rpc_end(of, 0, "", false);
    }
}

/* ---- life --------------------------------------------------------------------------------------------- */

const mcp_rule *mcp_server_rule(const mcp_client *m, const char *server)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->servers[i].rule->name, server) == 0) return m->servers[i].rule;
    return NULL;
}

static int read_headers(mcp_server *s, size_t i_rule, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < s->rule->n_headers && !rc; i++) {
        shoal_err why;
        rc = host_header_put(&s->headers, &s->rule->headers[i], &why);
        if (rc == SHOAL_ENOMEM) return err_nomem(err);
        if (rc) rc = err_set(err, rc, "mcp_servers[%zu].headers[%zu].file: %s", i_rule, i, why.message);
    }
    if (!rc && s->rule->ca && !file_exists(s->rule->ca))
        rc = err_set(err, SHOAL_EINVALID, "mcp_servers[%zu].ca: %s: there is no such file", i_rule,
                     s->rule->ca);
    return rc;
}

/* NULL: out of memory, or there is no such variable. */
static char *variable(const char *name, const char *value)
{
    buf b = {0};
    if (!value) return NULL;
    buf_printf(&b, "%s=%s", name, value);
    return buf_take(&b);
}

static int read_variable(char **ret, const host_header *from, size_t i_rule, size_t i, shoal_err *err)
{
    buf text = {0};
    shoal_err why;
    int rc = from->file ? file_read(&text, from->file, ENV_FILE_MAX, &why) : 0;
    if (rc && rc != SHOAL_ENOMEM)
        rc = err_set(err, SHOAL_EINVALID, "mcp_servers[%zu].env[%zu].file: %s", i_rule, i, why.message);
    if (text.data) text.data[strcspn(text.data, "\r\n")] = '\0';
    if (!rc && !(*ret = variable(from->name, from->file ? buf_text(&text) : from->value)))
        rc = err_nomem(err);
    buf_done(&text);
    return rc;
}

/* A program has what it needs to run, and nothing of this process. */
static int read_env(mcp_server *s, size_t i_rule, shoal_err *err)
{
    static const char *const NAMES[] = {"PATH", "HOME", "LANG"};
    size_t n = 0;
    int rc = 0;
    s->env = calloc(s->rule->n_env + 4, sizeof *s->env);
    if (!s->env) return err_nomem(err);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (getenv(NAMES[i]) && (s->env[n] = variable(NAMES[i], getenv(NAMES[i])))) n++;
    for (size_t i = 0; i < s->rule->n_env && !rc; i++)
        rc = read_variable(&s->env[n++], &s->rule->env[i], i_rule, i, err);
    return rc;
}

int mcp_open(mcp_client **ret, uv_loop_t *loop, const mcp_rule *rules, size_t n, mcp_note_fn *note,
             void *user, shoal_err *err)
{
    const http_out_options o = {.connections_max = CONNECTIONS_MAX, .per_host_max = PER_HOST_MAX};
    mcp_client *m = calloc(1, sizeof *m);
    if (!m) return err_nomem(err);
    *m = (mcp_client){.loop = loop, .note = note, .user = user, .servers = calloc(n + 1, sizeof *m->servers)};
    int rc = m->servers ? 0 : err_nomem(err);
    for (; !rc && m->n < n; m->n++) {
        mcp_server *s = &m->servers[m->n];
        *s = (mcp_server){.m = m, .rule = &rules[m->n]};
        list_init(&s->rpcs);
        list_init(&s->calls);
        rc = s->rule->url ? read_headers(s, m->n, err) : read_env(s, m->n, err);
    }
    if (!rc) rc = http_out_open(&m->out, loop, &o, err);
    if (rc)
        mcp_free(m);
    else
        *ret = m;
    return rc;
}

static void server_free(mcp_server *s)
{
    for (mcp_call *c; (c = list_first(&s->calls, mcp_call, link));) call_free(c);
    close_session(s);
    mcp_stdio_stop(s);
    for (mcp_rpc *r; (r = list_first(&s->rpcs, mcp_rpc, link));) rpc_free(r);
    buf_done(&s->headers);
    for (char **e = s->env; e && *e; e++) free(*e);
    free(s->env);
}

void mcp_free(mcp_client *m)
{
    if (!m) return;
    for (size_t i = 0; i < m->n; i++) server_free(&m->servers[i]);
    http_out_close(m->out);
    free(m->servers);
    free(m);
}
