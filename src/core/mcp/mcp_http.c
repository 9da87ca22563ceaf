/* mcp_http.c: messages as HTTP requests (Streamable HTTP); see mcp_impl.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

#include "mcp/mcp_impl.h"

/* The value of a line of the head that begins with this name. */
static const char *value_of(const char *line, size_t n, const char *name, size_t *ret_n)
{
    size_t k = strlen(name);
    if (n <= k || strncasecmp(line, name, k) != 0 || line[k] != ':') return NULL;
    const char *at = line + k + 1, *end = line + n;
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    while (end > at && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ')) end--;
    *ret_n = (size_t)(end - at);
    return at;
}

static void on_head(void *user, const char *line, size_t n)
{
    mcp_rpc *r = user;
    size_t k;
    const char *v = value_of(line, n, "mcp-session-id", &k);
    bool visible = v && k < sizeof r->session;
    for (size_t i = 0; visible && i < k; i++) visible = v[i] > ' ' && v[i] < 127;
    if (visible) snprintf(r->session, sizeof r->session, "%.*s", (int)k, v);
    v = value_of(line, n, "content-type", &k);
    if (v) r->streams = k >= 17 && strncasecmp(v, "text/event-stream", 17) == 0;
}

/* Our answer, or something that is none; not 0: enough was heard. */
static int take(void *user, const char *data, size_t n)
{
    mcp_rpc *r = user;
    mcp_message m;
    r->fault = mcp_message_parse(&m, data, n, &r->why);
    if (r->fault) return r->fault;
    if (m.answers && m.id == r->id) {
        r->answer = m;
        r->answer_bytes = n;
        return 1;
    }
    json_decref(m.root);
    return 0;
}

static int on_data(void *user, int status, const char *data, size_t n)
{
    mcp_rpc *r = user;
    if (!r->streams || status >= 300) return buf_append(&r->body, data, n);
    int rc = mcp_events_push(&r->events, data, n, take, r);
    if (rc < 0 && !r->fault) r->fault = err_set(&r->why, rc, "an event is longer than max_kb allows");
    return rc;
}

static int judge(const mcp_rpc *r, const http_out_end *end, char *message, size_t size)
{
    switch (end->fault) {
    case HTTP_OUT_OK: break;
    case HTTP_OUT_NO_MEMORY: return SHOAL_ENOMEM;
    case HTTP_OUT_BODY_TOO_LONG:
        snprintf(message, size, "it sent more than %llu KiB, which its max_kb allows",
                 (unsigned long long)r->s->rule->max_bytes >> 10);
        return SHOAL_ELIMIT;
    default: snprintf(message, size, "it cannot be asked: %.256s", end->why); return SHOAL_EUNAVAILABLE;
    }
    if (end->status >= 200 && end->status < 300) return 0;
    snprintf(message, size, "it answers %d%s", end->status,
             end->status >= 300 && end->status < 400 ? ", a redirect, and those are not followed" : "");
    return SHOAL_EUNAVAILABLE;
}

static void on_done(void *user, const http_out_end *end)
{
    mcp_rpc *r = user;
    char message[400] = "";
    r->out = NULL;
    if (r->answer.root) {
        mcp_rpc_end(r, 0, "", false);
    } else if (r->fault) {
        mcp_rpc_end(r, r->fault, r->why.message, false);
    } else {
        int status = judge(r, end, message, sizeof message);
        bool lost = end->fault == HTTP_OUT_OK && end->status == 404 && *r->with;
        if (status == 0 && r->id && !r->streams && take(r, buf_text(&r->body), r->body.len) < 0)
            status = r->fault;
        if (status == 0 && r->id && !r->answer.root)
            status = err_set(&r->why, SHOAL_EPROTOCOL, "it did not answer the request that it was sent");
        mcp_rpc_end(r, status, *message ? message : r->why.message, lost);
    }
}

bool mcp_http_send(mcp_rpc *r, const buf *message)
{
    const mcp_server *s = r->s;
    buf headers = {0};
    memcpy(r->with, s->session, sizeof r->with);
    buf_join(&headers, &s->headers);
    buf_puts(&headers, "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n");
    if (*s->session) buf_printf(&headers, "Mcp-Session-Id: %s\r\n", s->session);
    if (*s->version) buf_printf(&headers, "MCP-Protocol-Version: %s\r\n", s->version);
    http_out_request q = {
        .url = s->rule->url,
        .headers = headers.data,
        .body = message->data,
        .n_body = message->len,
        .ca = s->rule->ca,
        .connect_s = 10,
        .until_ns = r->id ? 0 : clock_ns() + s->rule->timeout_ms * 1000000u, /* of a call its timer */
        .max_bytes = s->rule->max_bytes + MCP_LINE_SLACK,
        .head = on_head,
        .data = on_data,
        .done = on_done,
        .user = r};
    r->events.most_bytes = s->rule->max_bytes;
    r->out = headers.failed ? NULL : http_out_start(s->m->out, &q);
    buf_done(&headers);
    return r->out != NULL;
}
