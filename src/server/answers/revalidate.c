/* revalidate.c: see revalidate.h. */
#include "answers/revalidate.h"

#include <stdlib.h>
#include <string.h>

#include "request/endpoint.h"
#include "request/gateway_state.h"

#define HEADERS_MAX 96
#define DEADLINE_MS 30000

typedef struct revalidation {
    ingress_request ingress; /* first */
    gateway *g;
    const cache_value *audited;
    arena *mem;
    const char *method, *path, *query;
    http_header headers[HEADERS_MAX];
    size_t n_headers;
    buf body;
} revalidation;

static revalidation *revalidation_of(const ingress_request *in)
{
    return (revalidation *)(uintptr_t)in;
}

static void revalidation_free(revalidation *x)
{
    x->g->n_background--;
    cache_value_unref(x->audited);
    arena_free(x->mem);
    buf_done(&x->body);
    free(x);
}

/* ---- what it says -------------------------------------------------------------------------------- */

static const char *revalidate_method(const ingress_request *in)
{
    return revalidation_of(in)->method;
}

static const char *revalidate_path(const ingress_request *in)
{
    return revalidation_of(in)->path;
}

static const char *revalidate_query(const ingress_request *in)
{
    return revalidation_of(in)->query;
}

static const char *revalidate_header(const ingress_request *in, const char *lower_name)
{
    const revalidation *x = revalidation_of(in);
    for (size_t i = 0; i < x->n_headers; i++)
        if (strcmp(x->headers[i].name, lower_name) == 0) return x->headers[i].value;
    return NULL;
}

static const char *revalidate_body(const ingress_request *in, size_t *ret_len)
{
    const revalidation *x = revalidation_of(in);
    if (ret_len) *ret_len = x->body.len;
    return x->body.data ? x->body.data : "";
}

/* ---- what it hears ------------------------------------------------------------------------------- */

static void revalidate_pause_body(ingress_request *in, bool paused) {}

static void revalidate_reply(ingress_request *in, int status, const http_header *headers, size_t n,
                             const void *bytes, size_t len)
{
    revalidation_free(revalidation_of(in));
}

static void revalidate_begin(ingress_request *in, int status, const http_header *headers, size_t n) {}

static void drop_event(ingress_request *in, const event *e) {}

static void revalidate_end(ingress_request *in)
{
    revalidation_free(revalidation_of(in));
}

static size_t revalidate_unsent(const ingress_request *in)
{
    return 0;
}

static const ingress_request_ops REVALIDATION = {.method = revalidate_method,
                                                 .path = revalidate_path,
                                                 .query = revalidate_query,
                                                 .header = revalidate_header,
                                                 .body = revalidate_body,
                                                 .pause = revalidate_pause_body,
                                                 .reply = revalidate_reply,
                                                 .begin = revalidate_begin,
                                                 .event = drop_event,
                                                 .end = revalidate_end,
                                                 .unsent = revalidate_unsent,
                                                 .drop = revalidate_end};

/* ---- the start ----------------------------------------------------------------------------------- */

static const char *revalidate_keep(revalidation *x, const char *s)
{
    return arena_strndup(x->mem, s, strlen(s));
}

static bool revalidate_say(revalidation *x, const char *name, const char *value)
{
    if (!value || revalidate_header(&x->ingress, name)) return true;
    http_header h = {revalidate_keep(x, name), revalidate_keep(x, value)};
    if (!h.name || !h.value || x->n_headers == HEADERS_MAX) return false;
    x->headers[x->n_headers++] = h;
    return true;
}

/* All that may decide the answer or who gives it: of the rest, nothing is said. */
static bool copy_headers(revalidation *x, const gateway_request *rq)
{
    static const char *const NAMES[] = {
        "authorization",       "x-api-key",   "api-key",           "content-type",    "host",
        "x-request-id",        "traceparent", "x-shoal-cache-tag", "x-shoal-session", "x-shoal-max-cost",
        "x-shoal-max-energy-j"};
    const route_book *b = &rq->config->book;
    bool plain = !rq->routed; /* else how urgent it was may have decided who answers */
    x->ingress.has_timeout = plain || rq->ingress->has_timeout;
    x->ingress.timeout_ms = plain ? DEADLINE_MS : rq->ingress->timeout_ms;
    bool ok =
        revalidate_say(x, "x-shoal-latency", plain ? "batch" : request_header(rq, "x-shoal-latency")) &&
        (plain || revalidate_say(x, "x-shoal-deadline-ms", request_header(rq, "x-shoal-deadline-ms"))) &&
        revalidate_say(x, "x-request-id", rq->id);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        ok = ok && revalidate_say(x, NAMES[i], request_header(rq, NAMES[i]));
    for (size_t i = 0; i < b->n_routes; i++)
        for (size_t k = 0; k < b->routes[i].n_rules; k++)
            for (size_t n = 0; n < b->routes[i].rules[k].n_header; n++) {
                const char *name = b->routes[i].rules[k].header[n].name;
                ok = ok && revalidate_say(x, name, request_header(rq, name));
            }
    return ok;
}

static bool copy_key(revalidation *x, const gateway_request *rq)
{
    const ingress_request *in = rq->ingress;
    return (!in->key || (x->ingress.key = revalidate_keep(x, in->key))) &&
           (!in->key_digest || (x->ingress.key_digest = revalidate_keep(x, in->key_digest))) &&
           (!in->owner || (x->ingress.owner = revalidate_keep(x, in->owner)));
}

static revalidation *revalidation_new(const gateway_request *rq, background_kind kind)
{
    revalidation *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    *x = (revalidation){.ingress = {.ops = &REVALIDATION, .background = kind, .local = rq->ingress->local},
                        .g = rq->gateway,
                        .mem = arena_new(2048)};
    x->g->n_background++;
    size_t len;
    const char *bytes = request_body(rq, &len);
    bool ok = x->mem && (x->method = revalidate_keep(x, request_method(rq))) &&
              (x->path = revalidate_keep(x, request_path(rq))) &&
              (x->query = revalidate_keep(x, request_query(rq))) && copy_key(x, rq) && copy_headers(x, rq) &&
              buf_append(&x->body, bytes, len) == 0;
    if (ok) return x;
    revalidation_free(x);
    return NULL;
}

const cache_value *revalidate_take_audited(gateway_request *rq)
{
    revalidation *x = rq->background ? revalidation_of(rq->ingress) : NULL;
    const cache_value *v = x ? x->audited : NULL;
    if (x) x->audited = NULL;
    return v;
}

bool revalidate_can(const gateway_request *rq)
{
    return !rq->background && !rq->keeps && !(rq->endpoint->takes & ENDPOINT_PIECES);
}

static bool revalidate_has_room(const gateway *g)
{
    size_t most = g->config->max_requests;
    return !g->draining && g->n_background < REVALIDATIONS_MAX && !(most && g->n_admitted >= most);
}

bool revalidate_start(gateway_request *rq, background_kind kind, const cache_value *audited)
{
    revalidation *x =
        revalidate_can(rq) && revalidate_has_room(rq->gateway) ? revalidation_new(rq, kind) : NULL;
    if (!x) return false;
    x->audited = audited ? cache_value_ref(audited) : NULL;
    ingress_request_enter(rq->gateway, &x->ingress);
    return true;
}

void revalidate_cancel_all(gateway *g)
{
    gateway_request *rq = g->requests;
    while (rq) {
        revalidation *x = rq->background ? revalidation_of(rq->ingress) : NULL;
        if (x) {
            ingress_request_leave(&x->ingress);
            revalidation_free(x);
        }
        rq = x ? g->requests : rq->next; /* its end may have been another's, too */
    }
}
