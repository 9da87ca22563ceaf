/* request.c: how a request ends: its answer's headers, its stream, and those who are told. */
#include "request/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "logging/log.h"
#include "access/browser.h"
#include "base/number.h"
#include "base/clock.h"
#include "request/admission.h"
#include "request/capacity.h"
#include "request/dialect.h"
#include "request/endpoint.h"
#include "request/call_notes.h"
#include "request/gateway_state.h"
#include "request/routed.h"
#include "request/sink.h"
#include "request/uploads.h"
#include "request/watch.h"
#include "sessions/session_thread.h"

#define HEADERS_MAX       26
#define STREAM_FULL_BYTES ((size_t)128 << 10)

enum { DRAWN_ID_BYTES = 8 };

/* What a page of an allowed origin may read of an answer. */
#define READABLE_HEADERS                                                                    \
    "age, x-request-id, traceparent, x-shoal-cache, x-shoal-cache-near, x-shoal-degraded, " \
    "x-shoal-restarted, "                                                                   \
    "x-shoal-ensemble, x-shoal-tool-syntax, x-shoal-route, x-shoal-model, retry-after, "    \
    "request-id, " ADMISSION_NAMES

typedef struct header_list {
    http_header items[HEADERS_MAX];
    size_t n;
    char retry_after[16], age[NUMBER_SIZE];
    admission_rates rates;
} header_list;

const char *request_owner(const gateway_request *rq, char out[REQUEST_OWNER_SIZE])
{
    const char *shown = rq->config->n_api_keys > 0 ? admission_credential(rq) : NULL;
    *out = '\0';
    if (rq->ingress->owner) return strncat(out, rq->ingress->owner, REQUEST_OWNER_SIZE - 1);
    if (!shown || !rq->key) return out;
    session_id id = session_id_of(shown, "documents", "");
    _Static_assert(REQUEST_OWNER_SIZE == 2 * sizeof id.bytes + 1, "hex of it");
    for (size_t i = 0; i < sizeof id.bytes; i++) snprintf(out + 2 * i, 3, "%02x", id.bytes[i]);
    return out;
}

void request_add_header(gateway_request *rq, const char *lower_name, const char *value)
{
    if (rq->n_more < REQUEST_MORE_MAX) rq->more[rq->n_more++] = (http_header){lower_name, value};
}

void request_on_body(gateway_request *rq, void (*on_body)(void *work, const uint8_t *bytes, size_t n),
                     void (*on_end)(void *work, int status, const char *why))
{
    rq->on_body = on_body;
    rq->on_body_end = on_end;
}

void request_on_deadline(gateway_request *rq, void (*fn)(void *work))
{
    if (!rq->deadline_ns) return;
    rq->on_deadline = fn;
    if (fn) watch_requests(rq->gateway);
}

int request_count_choices(gateway_request *rq, size_t n, api_error *e)
{
    size_t more = n > rq->n_counted ? n - rq->n_counted : 0;
    if (more == 0) return 0;
    if (capacity_check(rq, more, e) != 0) {
        buf_copy_str(e->param, sizeof e->param, "n");
        return e->status;
    }
    capacity_take(rq, more);
    return 0;
}

const char *request_shown_model(const gateway_request *rq, const char *model)
{
    return rq->alias ? rq->alias : model;
}

static void header_add(header_list *h, const char *name, const char *value)
{
    if (h->n < HEADERS_MAX) h->items[h->n++] = (http_header){name, value};
}

static bool id_is_fine(const char *s)
{
    size_t n = s ? strlen(s) : 0;
    if (n == 0 || n >= REQUEST_ID_SIZE) return false;
    for (; *s; s++)
        if (*s <= 0x20 || *s >= 0x7F) return false;
    return true;
}

void request_name(char ret[REQUEST_ID_SIZE], const char *given)
{
    if (id_is_fine(given)) {
        snprintf(ret, REQUEST_ID_SIZE, "%s", given);
        return;
    }
    uint8_t draw[DRAWN_ID_BYTES];
    rng_draw(draw, sizeof draw);
    for (size_t i = 0; i < 2 * sizeof draw; i++)
        ret[i] = "0123456789abcdef"[draw[i / 2] >> (4 * (~i & 1)) & 15];
    ret[2 * sizeof draw] = '\0';
}

size_t request_refusal_headers(gateway *g, const char *origin, bool anthropic, http_header *ret)
{
    size_t n = 0;
    if (anthropic) ret[n++] = (http_header){"request-id", g->refused_id};
    ret[n++] = (http_header){"x-request-id", g->refused_id};
    if (browser_allows_origins(g->config)) ret[n++] = (http_header){"vary", "origin"};
    if (!browser_origin_is_allowed(g->config, origin)) return n;
    ret[n++] = (http_header){"access-control-allow-origin", origin};
    ret[n++] = (http_header){"access-control-expose-headers", READABLE_HEADERS};
    return n;
}

static unsigned dialect_here(const gateway_request *rq)
{
    unsigned at = rq->endpoint ? rq->endpoint->takes : dialect_of(rq->gateway->endpoints, request_path(rq));
    return at | (request_header(rq, "anthropic-version") ? ENDPOINT_ANTHROPIC : 0);
}

static void common_headers(header_list *h, const gateway_request *rq, const char *content_type)
{
    h->n = 0;
    if (content_type) header_add(h, "content-type", content_type);
    header_add(h, "x-request-id", rq->id);
    if (dialect_here(rq) & ENDPOINT_ANTHROPIC) header_add(h, "request-id", rq->id);
    if (*rq->trace) header_add(h, "traceparent", rq->trace);
    if (rq->cache_state) header_add(h, "x-shoal-cache", rq->cache_state);
    if (*rq->near_note) header_add(h, "x-shoal-cache-near", rq->near_note);
    if (rq->age_s) { /* RFC 9111, section 5.1 */
        number_write_u64(h->age, rq->age_s);
        header_add(h, "age", h->age);
    }
    if (*rq->degraded.wanted) header_add(h, "x-shoal-degraded", rq->degraded.wanted);
    if (rq->facts.n_restarts) header_add(h, "x-shoal-restarted", rq->facts.move_cause);
    if (*rq->ensemble) header_add(h, "x-shoal-ensemble", rq->ensemble);
    if (*rq->tool_syntax) header_add(h, "x-shoal-tool-syntax", rq->tool_syntax);
    if (rq->routed) header_add(h, "x-shoal-route", rq->routed->header);
    if (rq->alias && *rq->model) header_add(h, "x-shoal-model", rq->model);
    admission_put_rates(&h->rates, rq);
    for (size_t i = 0; i < h->rates.n; i++) header_add(h, h->rates.at[i].name, h->rates.at[i].value);
    for (size_t i = 0; i < rq->n_more; i++) header_add(h, rq->more[i].name, rq->more[i].value);
    if (rq->readable_origin || browser_allows_origins(rq->config)) header_add(h, "vary", "origin");
    if (!rq->readable_origin) return;
    header_add(h, "access-control-allow-origin", rq->readable_origin);
    header_add(h, "access-control-expose-headers", READABLE_HEADERS);
}

void request_finish(gateway_request *rq, int status, const char *error_code)
{
    gateway *g = rq->gateway;
    routed_tell_span(rq);
    for (const request_sink *const *s = g->sinks; *s; s++) (*s)->finish(rq, status, error_code);
    if (rq->prev)
        rq->prev->next = rq->next;
    else
        g->requests = rq->next;
    if (rq->next) rq->next->prev = rq->prev;
    call_notes_remove(rq);
    g->n_requests--;
    g->n_admitted -= rq->n_counted;
    uploads_end(rq);
    routed_free(rq->routed);
    settings_unref(rq->settings);
    json_decref(rq->variant);
    free(rq->asked);
    span_list_done(&rq->spans);
    free(rq->asked_path);
    free(rq->asked_host);
    free(rq);
}

static void reply_request(gateway_request *rq, int status, const header_list *h, const void *body, size_t len)
{
    rq->ingress->rq = NULL;
    rq->ingress->ops->reply(rq->ingress, status, h->items, h->n, body, len);
}

void request_reply(gateway_request *rq, int status, const char *content_type, const http_header *more,
                   size_t n_more, const void *body, size_t len)
{
    header_list h;
    common_headers(&h, rq, content_type);
    for (size_t i = 0; i < n_more; i++) header_add(&h, more[i].name, more[i].value);
    reply_request(rq, status, &h, body, len);
    request_finish(rq, status, NULL);
}

void request_text(gateway_request *rq, int status, const char *content_type, const buf *body)
{
    request_reply(rq, status, content_type, NULL, 0, body->data, body->len);
}

/* The same object with one member more. */
static void answer_degraded(gateway_request *rq, int status, const buf *body)
{
    buf more = {0};
    buf_append(&more, body->data, body->len - 1);
    buf_putc(&more, ',');
    degraded_put(&more, &rq->degraded);
    buf_putc(&more, '}');
    rq->degraded.told = true;
    request_json(rq, status, &more);
    buf_done(&more);
}

void request_json(gateway_request *rq, int status, const buf *body)
{
    bool is_object = !body->failed && body->len > 2 && body->data[body->len - 1] == '}';
    if (*rq->degraded.wanted && !rq->degraded.told && is_object) {
        answer_degraded(rq, status, body);
        return;
    }
    if (!body->failed) {
        request_text(rq, status, "application/json", body);
        return;
    }
    api_error e;
    api_error_nomem(&e);
    request_error(rq, &e);
}

/* What the page wants to send, where that is a list of names: clients bring headers of their own
 * (x-stainless-...), and whoever may ask may ask with them. */
static const char *wanted_headers(const gateway_request *rq)
{
    static const char NAMES[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_, ";
    const char *wanted = request_header(rq, "access-control-request-headers");
    size_t n = wanted ? strlen(wanted) : 0;
    return n > 0 && n <= 2048 && strspn(wanted, NAMES) == n ? wanted : NULL;
}

static const char *error_code_of(const api_error *e)
{
    return e->code ? e->code : e->type;
}

void request_count_refused(gateway *g, const api_error *e)
{
    char status[NUMBER_SIZE];
    number_write_i64(status, e->status);
    metrics_add(g->metrics, METRIC_REQUESTS, 1, "none", "", status);
    metrics_add(g->metrics, METRIC_ERRORS, 1, "none", error_code_of(e), NULL);
}

void request_preflight(gateway_request *rq)
{
    header_list h;
    const char *wanted = wanted_headers(rq);
    common_headers(&h, rq, NULL);
    header_add(&h, "access-control-allow-methods", rq->allow);
    header_add(&h, "access-control-allow-headers",
               wanted ? wanted
                      : "authorization, x-api-key, api-key, content-type, cache-control, last-event-id, "
                        "x-request-id, x-shoal-deadline-ms, x-shoal-latency, x-shoal-max-cost, "
                        "x-shoal-max-energy-j, x-shoal-session, x-shoal-cache-tag");
    if (request_header(rq, "access-control-request-private-network"))
        header_add(&h, "access-control-allow-private-network", "true");
    header_add(&h, "access-control-max-age", "600");
    reply_request(rq, 204, &h, NULL, 0);
    request_finish(rq, 204, NULL);
}

/* A deadline that was missed: how long it was, and where it was set. */
static const api_error *tell_deadline(const gateway_request *rq, const api_error *e, api_error *more)
{
    bool told = strstr(e->message, "_ms") || strstr(e->message, "-ms");
    if (!e->code || strcmp(e->code, "deadline_exceeded") != 0 || told || !rq->deadline_ns) return e;
    *more = *e;
    snprintf(more->message, sizeof more->message, "%.400s: it was %llu ms, by %s", e->message,
             (unsigned long long)((rq->deadline_ns - rq->start_ns) / 1000000),
             rq->names_deadline ? "the request (x-shoal-deadline-ms)" : "deadline_ms of the configuration");
    return more;
}

/* After a stream has begun its status line is gone: the error becomes the stream's last event. */
static void error_in_stream(gateway_request *rq, const api_error *e)
{
    buf b = {0};
    unsigned dialect = dialect_here(rq);
    const char *name = dialect_error_event(dialect);
    dialect_put_error(&b, dialect, e, rq->id);
    const char *text = b.failed ? dialect_no_memory(dialect) : b.data;
    rq->error_code = error_code_of(e);
    request_event(
        rq,
        &(event){
            .kind = EVENT_ERROR, .name = name, .n_name = strlen(name), .data = text, .n_data = strlen(text)});
    buf_done(&b);
    request_stream_end(rq);
}

void request_error(gateway_request *rq, const api_error *e)
{
    api_error more;
    e = tell_deadline(rq, e, &more);
    if (rq->streaming) {
        error_in_stream(rq, e);
        return;
    }
    buf body = {0};
    header_list h;
    dialect_put_error(&body, dialect_here(rq), e, rq->id);
    const char *no_memory = dialect_no_memory(dialect_here(rq));
    common_headers(&h, rq, "application/json");
    if (e->retry_after_s) {
        snprintf(h.retry_after, sizeof h.retry_after, "%d", e->retry_after_s);
        header_add(&h, "retry-after", h.retry_after);
    }
    if (e->status == 504)
        header_add(&h, "x-should-retry", "false"); /* OpenAI's clients would, and wait as long again */
    if (e->status == 401) header_add(&h, "www-authenticate", "Bearer");
    if (e->code && strcmp(e->code, "unsupported_encoding") == 0) /* RFC 9110 15.5.16 */
        header_add(&h, "accept-encoding", "gzip, deflate, zstd");
    if (e->status == 405 && rq->allow) header_add(&h, "allow", rq->allow);
    reply_request(rq, e->status, &h, body.failed ? no_memory : body.data,
                  body.failed ? strlen(no_memory) : body.len);
    buf_done(&body);
    request_finish(rq, e->status, error_code_of(e));
}

static void request_begin(gateway_request *rq, const char *content_type)
{
    header_list h;
    common_headers(&h, rq, content_type);
    header_add(&h, "cache-control", "no-cache");
    rq->streaming = true;
    rq->ingress->ops->begin(rq->ingress, 200, h.items, h.n);
}

void request_stream_begin(gateway_request *rq)
{
    request_begin(rq, "text/event-stream; charset=utf-8");
}

static bool is_of_same_client(const gateway_request *a, const gateway_request *b)
{
    if (a->key || b->key) return a->key == b->key;
    return strcmp(a->ingress->from ? a->ingress->from : "", b->ingress->from ? b->ingress->from : "") == 0;
}

size_t request_count_like(const gateway_request *rq)
{
    size_t n = 0;
    for (const gateway_request *other = rq->gateway->requests; other; other = other->next)
        n += other != rq && other->streaming && other->endpoint == rq->endpoint &&
             is_of_same_client(rq, other);
    return n;
}

void request_lines_begin(gateway_request *rq)
{
    rq->ingress->lines = true;
    request_begin(rq, "application/x-ndjson");
}

void request_stream_write(gateway_request *rq, const buf *events)
{
    const char *at = events->data;
    size_t n = events->len;
    event e;
    while (n > 0 && event_next(&at, &n, &e)) rq->ingress->ops->event(rq->ingress, &e);
    if (events->len > 0 && rq->ingress->ops->flush) rq->ingress->ops->flush(rq->ingress);
}

void request_event(gateway_request *rq, const event *e)
{
    rq->ingress->ops->event(rq->ingress, e);
    if (rq->ingress->ops->flush) rq->ingress->ops->flush(rq->ingress);
}

/* Well below where the connection would be closed. */
static size_t full_bytes(const gateway_request *rq)
{
    size_t closed_at = rq->config->limits.max_write_backlog;
    return closed_at && closed_at / 4 < STREAM_FULL_BYTES ? closed_at / 4 : STREAM_FULL_BYTES;
}

bool request_stream_is_full(const gateway_request *rq)
{
    return request_unsent(rq) > full_bytes(rq);
}

void request_on_room(gateway_request *rq, void (*fn)(void *work))
{
    rq->on_room = fn;
    rq->room_bytes = full_bytes(rq) / 4;
    if (fn) watch_requests(rq->gateway);
}

void request_stream_end(gateway_request *rq)
{
    const char *code = rq->error_code;
    rq->ingress->rq = NULL;
    rq->ingress->ops->end(rq->ingress);
    request_finish(rq, 200, code);
}
