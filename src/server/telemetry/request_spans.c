/* request_spans.c: what a request took its time for, as OTLP spans; see telemetry_impl.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "request/endpoint.h"
#include "request/routed.h"
#include "telemetry/telemetry_impl.h"

enum { NAME_BYTES = 192, HOST_BYTES = 256 };

/* What operations of the conventions our endpoints and tasks are; others keep their own names. */
static const char *operation_of(const char *name)
{
    static const struct {
        const char *ours, *theirs;
    } ROWS[] = {{"chat_completions", "chat"},
                {"ollama_chat", "chat"},
                {"responses", "chat"},
                {"messages", "chat"},
                {"completions", "text_completion"},
                {"ollama_generate", "text_completion"},
                {"embed", "embeddings"},
                {"ollama_embed", "embeddings"},
                {"generate", "generate_content"},
                {"vote", "generate_content"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (strcmp(ROWS[i].ours, name) == 0) return ROWS[i].theirs;
    return name;
}

typedef struct writing {
    struct telemetry *t;
    otlp_span span;    /* what all spans of the request have in common */
    int64_t offset_ns; /* from the loop's clock to 1970 */
} writing;

static uint64_t unix_ns(const writing *w, uint64_t ns)
{
    return (uint64_t)((int64_t)ns + w->offset_ns);
}

static void put(writing *w, const otlp_span *s)
{
    buf *item = otlp_exporter_item(w->t->x);
    otlp_put_span(item, w->t->s.protocol, s);
    otlp_exporter_add(w->t->x, OTLP_TRACES, item);
}

/* "chat home-chat-s" of a call, as the conventions have it; "stage intent", "ensemble home-cascade". */
static void name_span(char ret[NAME_BYTES], const span *s)
{
    if (s->kind == SPAN_CALL)
        snprintf(ret, NAME_BYTES, "%s %s", operation_of(s->name), span_find(s, "model"));
    else if (s->kind == SPAN_PHASE)
        snprintf(ret, NAME_BYTES, "%s", s->name);
    else
        snprintf(ret, NAME_BYTES, "%s %s", span_kind_name(s->kind), s->name);
}

static void put_recorded(writing *w, const span *s)
{
    char name[NAME_BYTES];
    sem_list list;
    sem_begin(&list, w->t->s.semconv);
    otlp_span o = w->span;
    const char *error = span_find(s, "error");
    name_span(name, s);
    if (s->kind == SPAN_CALL) {
        sem_text(&list, SEM_OPERATION, operation_of(s->name));
        sem_text(&list, SEM_PROVIDER, "shoal");
    }
    for (size_t i = 0; i < s->n_attributes; i++)
        sem_recorded(&list, s->kind, s->attributes[i].key, span_value(s, i));
    o.id = s->id;
    o.parent = s->parent;
    o.name = name;
    o.kind = s->kind == SPAN_CALL ? OTLP_CLIENT : OTLP_INTERNAL;
    o.start_ns = unix_ns(w, s->start_ns);
    o.end_ns = unix_ns(w, s->end_ns);
    o.failed = *error && strcmp(error, "SHOAL_ECANCELLED") != 0;
    o.attributes = list.items;
    o.n_attributes = list.n;
    put(w, &o);
}

/* "host", "host:80", "[::1]:80" apart. */
static void set_address(sem_list *l, const char *given, char host[HOST_BYTES])
{
    const char *colon = given ? strrchr(given, ':') : NULL;
    uint64_t port;
    if (!given) return;
    if (colon && strchr(colon, ']')) colon = NULL;
    size_t n = colon ? (size_t)(colon - given) : strlen(given);
    if (*given == '[' && n > 1 && given[n - 1] == ']') {
        given++;
        n -= 2;
    }
    if (n >= HOST_BYTES) return;
    memcpy(host, given, n);
    host[n] = '\0';
    sem_text(l, SEM_ADDRESS, host);
    if (colon && number_u64(colon + 1, &port) && port <= UINT16_MAX) sem_int(l, SEM_PORT, (int64_t)port);
}

static void set_http(sem_list *l, const gateway_request *rq, int status, char host[HOST_BYTES])
{
    sem_text(l, SEM_METHOD, rq->endpoint ? rq->endpoint->method : NULL);
    sem_text(l, SEM_ROUTE, rq->endpoint ? rq->endpoint->path : NULL);
    sem_text(l, SEM_PATH, rq->asked_path);
    sem_text(l, SEM_SCHEME, rq->gateway->tls ? "https" : "http");
    set_address(l, rq->asked_host, host);
    sem_int(l, SEM_STATUS, status);
}

static void set_models(sem_list *l, const gateway_request *rq)
{
    if (!rq->endpoint || !rq->endpoint->admitted) return;
    sem_text(l, SEM_OPERATION, operation_of(rq->endpoint->name));
    sem_text(l, SEM_PROVIDER, "shoal");
    sem_text(l, SEM_REQUEST_MODEL, rq->routed ? rq->routed->route->name : rq->alias ? rq->alias : rq->model);
    sem_text(l, SEM_RESPONSE_MODEL, rq->model);
    if (rq->n_prompt_tokens) sem_int(l, SEM_INPUT, (int64_t)rq->n_prompt_tokens);
    if (rq->n_generated_tokens) sem_int(l, SEM_OUTPUT, (int64_t)rq->n_generated_tokens);
}

static void set_ours(sem_list *l, const gateway_request *rq)
{
    sem_text(l, SEM_REQUEST_ID, rq->id);
    sem_text(l, SEM_PIPELINE, rq->pipeline);
    sem_text(l, SEM_REPLICA, rq->facts.replica);
    sem_text(l, SEM_CACHE, rq->cache_state);
    sem_text(l, SEM_DEGRADED, rq->degraded.wanted);
    sem_bool(l, SEM_STREAMED, rq->streaming);
    if (rq->facts.n_moves) sem_int(l, SEM_MOVES, rq->facts.n_moves);
    if (rq->spans.n_lost) sem_int(l, SEM_LOST, (int64_t)rq->spans.n_lost);
}

/* A stream fails behind its 200; a client that leaves, or asks wrongly, is no failure of ours. */
static bool has_failed(int status, const char *error_code)
{
    return status >= 500 || (error_code && status < 400);
}

static void put_request(writing *w, const gateway_request *rq, int status, const char *error_code)
{
    char name[NAME_BYTES], code[NUMBER_SIZE], host[HOST_BYTES];
    sem_list list;
    sem_begin(&list, w->t->s.semconv);
    otlp_span o = w->span;
    const endpoint *at = rq->endpoint;
    snprintf(name, sizeof name, "%s%s%s", at ? at->method : "HTTP", at ? " " : "", at ? at->path : "");
    number_write_i64(code, status);
    set_http(&list, rq, status, host);
    set_models(&list, rq);
    set_ours(&list, rq);
    o.failed = has_failed(status, error_code);
    if (o.failed || error_code) sem_text(&list, SEM_ERROR, error_code ? error_code : code);
    o.id = trace_span(rq->trace);
    o.parent = rq->trace_parent;
    o.remote_parent = rq->trace_parent && !rq->is_inner;
    o.name = name;
    o.kind = rq->is_inner ? OTLP_INTERNAL : OTLP_SERVER;
    o.start_ns = unix_ns(w, rq->start_ns);
    o.end_ns = unix_ns(w, request_now_ns(rq));
    o.attributes = list.items;
    o.n_attributes = list.n;
    put(w, &o);
}

/* The flag of the trace's parent counts; a trace that begins here may also be kept for how it ended. */
static bool is_exported(const struct telemetry *t, const gateway_request *rq, int status,
                        const char *error_code)
{
    if (trace_is_sampled(rq->trace)) return true;
    return (t->s.keep_failed && has_failed(status, error_code)) ||
           (t->s.slow_ms && request_ms(rq) >= (double)t->s.slow_ms);
}

void telemetry_put_spans(struct telemetry *t, gateway_request *rq, int status, const char *error_code)
{
    const env *e = &rq->gateway->time;
    writing w = {.t = t, .offset_ns = env_wall_ns(e) - (int64_t)env_now_ns(e)};
    if (!rq->is_recorded || !is_exported(t, rq, status, error_code)) return;
    if (!trace_bytes(w.span.trace, rq->trace)) return;
    w.span.sampled = trace_is_sampled(rq->trace);
    for (size_t i = 0; i < rq->spans.n; i++) put_recorded(&w, &rq->spans.spans[i]);
    put_request(&w, rq, status, error_code);
}
