/* ws_ingress.c: messages in, requests; answers out, messages. */
#include "ingress/ws_ingress.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/list.h"
#include "json/json_put.h"
#include "request/admission.h"
#include "ingress/http_ingress.h"
#include "request/endpoint.h"
#include "ingress/ingress.h"
#include "request/gateway_state.h"
#include "ingress/pool_job.h"
#include "ingress/envelope.h"
#include "http/websocket.h"

enum {
    CALLS_MAX = 128, /* requests of one WebSocket at a time */
    UNAUTHENTICATED_MS = INGRESS_UNAUTHENTICATED_MS,
    UNAUTHENTICATED_UNPACKED = 64 << 10, /* bytes that a packed message may become before a key is known */
    CANCELS_MAX = 200, /* of its requests within CANCELS_MS: it is closed, as HTTP/2's resets are */
    CANCELS_MS = 10000,
    UNAUTHORIZED_MAX = 10, /* answers of 401, as over HTTP */
    PING_MS = 30000,
    TICK_MS = 1000
};

enum { CODE_GOING_AWAY = 1001, CODE_NOT_TEXT = 1003, CODE_POLICY = 1008, CODE_TRY_AGAIN = 1013 };

typedef struct ws_call {
    ingress_request ingress; /* first */
    struct ws_socket *socket;
    list_node link; /* in the calls of socket */
    envelope ask;
    size_t held;         /* of its body: http_hold */
    bool entering, over; /* ingress_request_enter has not returned; the final call has come */
} ws_call;

/* A long message on its way through the pool. The socket reads no further until it is back. */
typedef struct ws_job {
    pool_job job;      /* first */
    ws_socket *socket; /* not once the job was left */
    buf text;
    size_t held; /* of it: http_hold */
    envelope ask;
    json_ahead body; /* of ask */
    api_error e;
    int rc;
} ws_job;

struct ws_socket {
    gateway *gateway;
    http_request *http; /* for the handshake's headers; it lives as long as this */
    websocket *ws;
    list_node calls;
    size_t n_calls;
    uint64_t begun_ms;
    bool is_known; /* it has shown a key, or needs none */
    uint64_t calm_since_ms;
    size_t n_cancels; /* since then */
    size_t n_unauthorized;
    ws_job *job;
    ws_socket *next, *prev;
};

/* ---- messages that go out ------------------------------------------------------------------------ */

static void open_message(buf *out, const char *id)
{
    buf_puts(out, "{\"id\":");
    if (*id)
        json_put_string(out, id, strlen(id));
    else
        buf_puts(out, "null");
}

/* A message that cannot be made would leave its request without an answer: the client is told by the end. */
static void send_message(ws_socket *s, buf *out)
{
    buf_putc(out, '}');
    if (out->failed)
        websocket_close(s->ws, 1011, "out of memory");
    else
        websocket_send(s->ws, true, out->data, out->len);
    buf_done(out);
}

static void put_headers(buf *out, const http_header *headers, size_t n)
{
    buf_puts(out, ",\"headers\":{");
    for (size_t i = 0; i < n; i++) {
        if (i) buf_putc(out, ',');
        json_put_string(out, headers[i].name, strlen(headers[i].name));
        buf_putc(out, ':');
        json_put_string(out, headers[i].value, strlen(headers[i].value));
    }
    buf_putc(out, '}');
}

static bool is_json(const http_header *headers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(headers[i].name, "content-type") == 0)
            return strncmp(headers[i].value, "application/json", 16) == 0;
    return false;
}

static void put_body(buf *out, bool json, const char *bytes, size_t n)
{
    if (n == 0) return;
    bool text = json || utf8_valid(bytes, n, NULL);
    buf_puts(out, text ? ",\"body\":" : ",\"body_base64\":\"");
    if (json) {
        buf_append(out, bytes, n);
    } else if (text) {
        json_put_string(out, bytes, n);
    } else {
        base64_encode(out, bytes, n);
        buf_putc(out, '"');
    }
}

static void ws_ingress_answer(ws_socket *s, const char *id, int status, const http_header *headers, size_t n,
                              const void *body, size_t len)
{
    buf out = {0};
    open_message(&out, id);
    buf_printf(&out, ",\"status\":%d", status);
    put_headers(&out, headers, n);
    put_body(&out, is_json(headers, n), body, len);
    send_message(s, &out);
    if (status == 401 && ++s->n_unauthorized == UNAUTHORIZED_MAX)
        websocket_close(s->ws, CODE_POLICY, "ten requests came without a valid API key");
}

static void ws_ingress_refuse(ws_socket *s, const char *id, const api_error *e)
{
    buf body = {0};
    const http_header h = {"content-type", "application/json"};
    request_count_refused(s->gateway, e);
    api_error_put(&body, e);
    ws_ingress_answer(s, id, e->status, &h, 1, body.data, body.failed ? 0 : body.len);
    buf_done(&body);
}

static void send_event(ws_socket *s, const char *id, const event *e)
{
    buf out = {0};
    open_message(&out, id);
    if (e->n_id) json_put_text_n(&out, "event_id", e->id, e->n_id);
    if (e->n_name) json_put_text_n(&out, "event", e->name, e->n_name);
    buf_puts(&out, ",\"data\":");
    buf_append(&out, e->data, e->n_data);
    send_message(s, &out);
}

/* ---- a request ----------------------------------------------------------------------------------- */

static ws_call *call_of(const ingress_request *in)
{
    return (ws_call *)in;
}

static void ws_ingress_call_free(ws_call *c)
{
    ws_socket *s = c->socket;
    list_take(&c->link);
    if (--s->n_calls == 0) http_set_idle(s->http, true);
    http_hold(s->http, &c->held, 0);
    envelope_done(&c->ask);
    free(c);
}

static void call_end(ws_call *c)
{
    ws_socket *s = c->socket;
    c->over = true;
    if (!c->entering) ws_ingress_call_free(c);
    if (s->gateway->draining && s->n_calls == 0)
        websocket_close(s->ws, CODE_GOING_AWAY, "the server is shutting down");
}

static const char *ws_ingress_method(const ingress_request *in)
{
    return call_of(in)->ask.method;
}

static const char *ws_ingress_path(const ingress_request *in)
{
    return call_of(in)->ask.path;
}

static const char *ws_ingress_query(const ingress_request *in)
{
    return call_of(in)->ask.query;
}

/* Where a page comes from is the browser's word, not the message's. */
static const char *ws_ingress_header(const ingress_request *in, const char *name)
{
    const ws_call *c = call_of(in);
    bool of_handshake =
        strcmp(name, "host") == 0 || strcmp(name, "origin") == 0 || strncmp(name, "sec-fetch-", 10) == 0;
    if (of_handshake) return http_header_get(c->socket->http, name);
    const char *own = envelope_header(&c->ask, name);
    if (own) return own;
    return strcmp(name, "content-type") == 0 && c->ask.body.len ? "application/json" : NULL;
}

static const char *ws_ingress_body(const ingress_request *in, size_t *ret_len)
{
    const buf *b = &call_of(in)->ask.body;
    if (ret_len) *ret_len = b->len;
    return b->len ? b->data : "";
}

static void ws_ingress_pause_body(ingress_request *in, bool paused) {} /* it is all here */

static void ws_ingress_reply(ingress_request *in, int status, const http_header *headers, size_t n,
                             const void *bytes, size_t len)
{
    ws_call *c = call_of(in);
    ws_ingress_answer(c->socket, c->ask.id, status, headers, n, bytes, len);
    call_end(c);
}

static void ws_ingress_begin(ingress_request *in, int status, const http_header *headers, size_t n)
{
    const ws_call *c = call_of(in);
    buf out = {0};
    open_message(&out, c->ask.id);
    buf_printf(&out, ",\"status\":%d", status);
    put_headers(&out, headers, n);
    buf_puts(&out, ",\"stream\":true");
    send_message(c->socket, &out);
}

static void write_event(ingress_request *in, const event *e)
{
    const ws_call *c = call_of(in);
    bool is_told = e->kind == EVENT_DATA || e->kind == EVENT_ERROR;
    if (is_told && e->n_data) send_event(c->socket, c->ask.id, e);
}

static void ws_ingress_end(ingress_request *in)
{
    ws_call *c = call_of(in);
    buf out = {0};
    open_message(&out, c->ask.id);
    buf_puts(&out, ",\"end\":true");
    send_message(c->socket, &out);
    call_end(c);
}

static size_t ws_ingress_unsent(const ingress_request *in)
{
    return websocket_unsent(call_of(in)->socket->ws);
}

static void ws_ingress_drop(ingress_request *in)
{
    ws_ingress_call_free(call_of(in));
}

static const ingress_request_ops WS_OPS = {.method = ws_ingress_method,
                                           .path = ws_ingress_path,
                                           .query = ws_ingress_query,
                                           .header = ws_ingress_header,
                                           .body = ws_ingress_body,
                                           .pause = ws_ingress_pause_body,
                                           .reply = ws_ingress_reply,
                                           .begin = ws_ingress_begin,
                                           .event = write_event,
                                           .end = ws_ingress_end,
                                           .unsent = ws_ingress_unsent,
                                           .drop = ws_ingress_drop};

static ws_call *find_call(const ws_socket *s, const char *id)
{
    list_each (c, &s->calls, ws_call, link)
        if (strcmp(c->ask.id, id) == 0) return c;
    return NULL;
}

static bool knows(const ws_socket *s, const char *shown)
{
    return admission_knows(s->gateway, shown);
}

/* It has shown a key, or needs none: its messages may be as long as bodies are. */
static void welcome(ws_socket *s)
{
    s->is_known = true;
    if (auth_count(s->gateway->settings->auth) > 0) http_set_known(s->http);
    websocket_limit_unpacked(s->ws, ingress_request_max_bytes(s->gateway));
}

/* Endpoints that take a body as it comes get it at once. */
static void ws_ingress_enter(ws_call *c)
{
    c->entering = true;
    ingress_request_enter(c->socket->gateway, &c->ingress);
    const gateway_request *rq = c->over ? NULL : c->ingress.rq;
    if (rq && rq->endpoint->takes & ENDPOINT_PIECES && c->ask.body.len)
        rq->on_body(rq->work, (const uint8_t *)c->ask.body.data, c->ask.body.len);
    rq = c->over ? NULL : c->ingress.rq;
    if (rq && rq->endpoint->takes & ENDPOINT_PIECES) rq->on_body_end(rq->work, 0, NULL);
    c->entering = false;
    if (c->over) ws_ingress_call_free(c);
}

static uint64_t now_ms(const gateway *g)
{
    return env_now_ns(&g->time) / 1000000;
}

/* ---- messages that come in ----------------------------------------------------------------------- */

static void count_cancel(ws_socket *s)
{
    uint64_t now = now_ms(s->gateway);
    if (now - s->calm_since_ms > CANCELS_MS) {
        s->calm_since_ms = now;
        s->n_cancels = 0;
    }
    if (++s->n_cancels > CANCELS_MAX)
        websocket_close(s->ws, CODE_POLICY, "more than 200 requests were cancelled within ten seconds");
}

static void ws_ingress_cancel(ws_socket *s, envelope *a)
{
    count_cancel(s);
    ws_call *c = find_call(s, a->id);
    if (c) {
        ingress_request_leave(&c->ingress);
        call_end(c);
    }
    envelope_done(a);
}

static int ws_ingress_start(ws_socket *s, envelope *a, api_error *e)
{
    if (find_call(s, a->id))
        return api_error_set(e, 409, "invalid_request_error", "id_in_use", "id",
                             "the request %s is still being answered", a->id);
    if (s->n_calls >= CALLS_MAX)
        return api_error_set(e, 429, "rate_limit_error", "too_many_requests", NULL,
                             "%d requests of this WebSocket are being answered, which is the limit",
                             CALLS_MAX);
    size_t held = 0;
    int status = http_hold(s->http, &held, a->body.len);
    ws_call *c = status == 0 ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        http_hold(s->http, &held, 0);
        return status ? api_error_from_status(e, status, http_hold_why(status)) : api_error_nomem(e);
    }
    *c = (ws_call){.ingress = {.ops = &WS_OPS,
                               .local = http_over_unix(s->http),
                               .connection = http_connection(s->http),
                               .from = http_from(s->http),
                               .key = a->key ? a->key : admission_shown_over_http(s->http),
                               .has_timeout = a->has_timeout,
                               .timeout_ms = a->timeout_ms},
                   .socket = s,
                   .ask = *a,
                   .held = held};
    list_put(&s->calls, &c->link);
    s->n_calls++;
    http_set_idle(s->http, false);
    if (!s->is_known && knows(s, c->ingress.key)) welcome(s);
    ws_ingress_enter(c);
    return 0;
}

/* rc: of envelope_parse, which has filled a or e. */
static void take_ask(ws_socket *s, envelope *a, int rc, api_error *e)
{
    if (rc == 0 && a->cancels) {
        ws_ingress_cancel(s, a);
        return;
    }
    if (rc == 0) rc = ws_ingress_start(s, a, e);
    if (rc == 0) return;
    ws_ingress_refuse(s, a->id, e);
    envelope_done(a);
}

static void job_run(pool_job *job)
{
    ws_job *j = (ws_job *)job;
    j->rc = envelope_parse(&j->ask, j->text.data, j->text.len, &j->e);
    const buf *body = &j->ask.body;
    if (j->rc == 0 && body->len && *body->data == '{') json_ahead_run(&j->body, body->data, body->len);
}

static void job_done(pool_job *job)
{
    ws_job *j = (ws_job *)job;
    ws_socket *s = j->job.left ? NULL : j->socket;
    if (s) {
        s->job = NULL;
        buf_done(&j->text); /* its body is a copy */
        http_hold(s->http, &j->held, 0);
        json_ahead_offer(&j->body);
        take_ask(s, &j->ask, j->rc, &j->e);
        json_ahead_offer(NULL);
        websocket_pause(s->ws, false);
    } else {
        envelope_done(&j->ask);
    }
    json_ahead_done(&j->body);
    buf_done(&j->text);
    free(j);
}

/* False: there is no memory for it. */
static bool parse_later(ws_socket *s, const void *bytes, size_t n)
{
    ws_job *j = calloc(1, sizeof *j);
    if (!j) return false;
    j->socket = s;
    if (buf_append(&j->text, bytes, n) != 0 ||
        pool_job_start(&j->job, s->gateway->loop, n > POOL_TURN_BYTES, job_run, job_done) != 0) {
        buf_done(&j->text);
        free(j);
        return false;
    }
    s->job = j;
    http_hold(s->http, &j->held, n); /* it was not too much in assembly */
    websocket_pause(s->ws, true);
    return true;
}

static void ws_ingress_on_message(void *user, bool is_text, const void *bytes, size_t n)
{
    ws_socket *s = user;
    envelope a = {0};
    api_error e = {0};
    if (!is_text) {
        websocket_close(s->ws, CODE_NOT_TEXT, "messages are JSON in text frames");
        return;
    }
    if (n > JSON_AHEAD_BYTES && parse_later(s, bytes, n)) return;
    int rc = envelope_parse(&a, bytes, n, &e);
    take_ask(s, &a, rc, &e);
}

/* ---- a WebSocket --------------------------------------------------------------------------------- */

static void stop_timer(gateway *g)
{
    g->time.timer_free(g->ws_timer);
    g->ws_timer = NULL;
}

static void ws_ingress_on_closed(void *user, unsigned code)
{
    ws_socket *s = user;
    gateway *g = s->gateway;
    pool_job_leave(s->job ? &s->job->job : NULL);
    for (ws_call *c; (c = list_first(&s->calls, ws_call, link));) {
        ingress_request_leave(&c->ingress);
        ws_ingress_call_free(c);
    }
    if (s->prev)
        s->prev->next = s->next;
    else
        g->sockets = s->next;
    if (s->next) s->next->prev = s->prev;
    websocket_free(s->ws);
    free(s);
    if (!g->sockets) stop_timer(g);
}

static void on_tick(void *user)
{
    gateway *g = user;
    uint64_t now = now_ms(g);
    g->time.timer_start(g->ws_timer, TICK_MS);
    for (ws_socket *s = g->sockets, *next; s; s = next) {
        next = s->next;
        if (!s->is_known && now - s->begun_ms > UNAUTHENTICATED_MS)
            websocket_close(s->ws, CODE_POLICY, "no request with a valid API key came");
        websocket_tick(s->ws, now);
    }
}

static int start_timer(gateway *g)
{
    if (g->ws_timer) return 0;
    g->ws_timer = g->time.timer_new(g->time.user, on_tick, g);
    if (!g->ws_timer) return SHOAL_ENOMEM;
    g->time.timer_start(g->ws_timer, TICK_MS);
    return 0;
}

static ws_socket *socket_new(gateway *g, http_request *http)
{
    http_limits h = http_ingress_limits(g->config);
    websocket_limits l = {.max_message_bytes = ingress_request_max_bytes(g),
                          .message_ms = h.request_timeout_ms,
                          .min_rate = h.min_body_rate,
                          .ping_ms = PING_MS};
    ws_socket *s = calloc(1, sizeof *s);
    websocket_events ev = {.user = s, .message = ws_ingress_on_message, .closed = ws_ingress_on_closed};
    if (s) list_init(&s->calls);
    if (!s || start_timer(g) != 0) {
        http_respond(http, 503, NULL, 0, NULL, 0);
        free(s);
        return NULL;
    }
    if (websocket_accept(&s->ws, http, &l, &ev, NULL) == 0) return s;
    if (!g->sockets) stop_timer(g);
    free(s);
    return NULL;
}

void ws_ingress_handle(gateway_request *rq)
{
    gateway *g = rq->gateway;
    http_request *http = http_ingress_take(rq->ingress);
    if (!http) {
        api_error e;
        api_error_set(&e, 426, "invalid_request_error", "upgrade_required", NULL,
                      "WebSockets are spoken here: ask for one (docs/http.md)");
        request_error(rq, &e);
        return;
    }
    request_finish(rq, 101, NULL);
    ws_socket *s = socket_new(g, http);
    if (!s) return;
    s->gateway = g;
    s->http = http;
    s->begun_ms = now_ms(g);
    websocket_limit_unpacked(s->ws, UNAUTHENTICATED_UNPACKED);
    if (knows(s, admission_shown_over_http(http))) welcome(s);
    s->next = g->sockets;
    if (s->next) s->next->prev = s;
    g->sockets = s;
    http_set_data(http, s);
    http_set_idle(http, true);
}

/* ---- the ingress --------------------------------------------------------------------------------- */

static void tunnel_receive(http_request *http, const uint8_t *bytes, size_t n)
{
    websocket_receive(((ws_socket *)http_data(http))->ws, bytes, n);
}

static void tunnel_shut(http_request *http)
{
    websocket_shut(((ws_socket *)http_data(http))->ws);
}

static void tunnel_evict(http_request *http)
{
    websocket_close(((ws_socket *)http_data(http))->ws, CODE_TRY_AGAIN,
                    "others want this connection's place; connect again");
}

static int open_ws(gateway *g, shoal_err *err)
{
    static const http_tunnel TUNNEL = {.receive = tunnel_receive, .shut = tunnel_shut, .evict = tunnel_evict};
    g->http_tunnel = &TUNNEL;
    return 0;
}

/* Close each as soon as it has no request. */
static void drain_ws(gateway *g)
{
    for (ws_socket *s = g->sockets; s; s = s->next)
        if (s->n_calls == 0) websocket_close(s->ws, CODE_GOING_AWAY, "the server is shutting down");
}

static void close_ws(gateway *g)
{
    while (g->sockets) websocket_shut(g->sockets->ws);
    stop_timer(g);
}

const ingress WEBSOCKET_INGRESS = {
    .name = "websocket", .open = open_ws, .drain = drain_ws, .close = close_ws};
