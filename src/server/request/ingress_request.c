/* ingress_request.c: which requests the gateway lets in, by any transport. */
#include "request/ingress_request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "os/crash.h"
#include "base/number.h"
#include "request/admission.h"
#include "access/browser.h"
#include "request/capacity.h"
#include "request/endpoint.h"
#include "request/call_notes.h"
#include "request/gateway_state.h"
#include "request/sink.h"
#include "request/uploads.h"

enum { BODY_BYTES = 4 << 20 /* when the configuration says nothing */, DEADLINE_MAX_MS = 86400000 };

/* What it may take of something. */
static int read_budget(const gateway_request *rq, const char *header, double *ret, api_error *e)
{
    const char *s = request_header(rq, header);
    double v;
    if (!s) return 0;
    if (!number_double(s, &v) || !isfinite(v) || v <= 0)
        return api_error_bad(e, header, "%s must be a number over 0, such as 0.25", header);
    *ret = v;
    return 0;
}

/* How long it may take, how urgent it is, and what it may cost. */
static int set_urgency(gateway_request *rq, api_error *e)
{
    const char *s = request_header(rq, "x-shoal-deadline-ms");
    const char *latency = request_header(rq, "x-shoal-latency");
    if (latency && !route_latency_of(latency, &rq->latency))
        return api_error_bad(e, "x-shoal-latency", "x-shoal-latency must be realtime, interactive or batch");
    int rc = read_budget(rq, "x-shoal-max-cost", &rq->max_cost, e);
    if (rc == 0) rc = read_budget(rq, "x-shoal-max-energy-j", &rq->max_energy_j, e);
    if (rc != 0) return rc;
    bool is_reply = rq->endpoint && rq->endpoint->takes & ENDPOINT_REPLY;
    uint64_t ms = is_reply ? 0 : rq->config->default_deadline_ms;
    const ingress_request *in = rq->ingress;
    if (in->of && in->of->names_deadline) { /* it began when the client's own request came */
        rq->deadline_ns = in->of->deadline_ns;
        rq->names_deadline = true;
        return 0;
    }
    rq->names_deadline = s || in->has_timeout;
    if (rq->names_deadline) {
        if (s && (!number_u64(s, &ms) || ms > DEADLINE_MAX_MS))
            return api_error_bad(e, "x-shoal-deadline-ms",
                                 "x-shoal-deadline-ms must be whole milliseconds, 0 to %d, in digits alone",
                                 DEADLINE_MAX_MS);
        if (in->has_timeout && (!s || in->timeout_ms <= ms)) ms = in->timeout_ms;
        if (ms == 0)
            return api_error_set(e, 504, "timeout_error", "deadline_unmeetable", "x-shoal-deadline-ms",
                                 "a deadline of 0 ms cannot be met");
    }
    if (ms) rq->deadline_ns = rq->start_ns + ms * 1000000u;
    return 0;
}

static int set_wish(gateway_request *rq, api_error *e)
{
    shoal_err err;
    const char *control = request_header(rq, "cache-control");
    if (cache_directives_parse(&rq->directives, control, request_header(rq, "x-shoal-cache-tag"), &err) == 0)
        return set_urgency(rq, e);
    return api_error_bad(e, "x-shoal-cache-tag", "%s", err.message);
}

/* No browser comes by a Unix socket. */
static int check_browser(gateway_request *rq, api_error *e)
{
    const char *origin = request_header(rq, "origin");
    if (rq->ingress->local) return 0;
    browser_facts f = {.method = request_method(rq),
                       .host = request_header(rq, "host"),
                       .origin = request_header(rq, "origin"),
                       .fetch_site = request_header(rq, "sec-fetch-site"),
                       .fetch_dest = request_header(rq, "sec-fetch-dest"),
                       .fetch_mode = request_header(rq, "sec-fetch-mode"),
                       .content_type = request_header(rq, "content-type"),
                       .takes_forms = rq->endpoint && rq->endpoint->takes & ENDPOINT_FORMS};
    int status = browser_check(rq->config, &f, e);
    if (status == 403) rq->readable_origin = origin; /* the page may read why, and nothing else */
    return status;
}

/* A browser asks before it sends a page's request. The answer tells nothing about an origin that is not allowed:
 * the request itself is refused, so that the page can show why. */
static bool is_preflight(const gateway_request *rq)
{
    return !rq->endpoint && rq->allow && strcmp(request_method(rq), "OPTIONS") == 0 &&
           request_header(rq, "origin");
}

static int refuse_path(const gateway_request *rq, api_error *e)
{
    char meant[128];
    const char *path = request_path(rq);
    const endpoint *near =
        endpoint_near(rq->gateway->endpoints, request_method(rq), path, meant, sizeof meant);
    if (near)
        return api_error_set(e, 404, "invalid_request_error", "not_found", NULL,
                             "there is nothing at %.200s; did you mean %s %s?", path, near->method, meant);
    return api_error_set(
        e, 404, "invalid_request_error", "not_found", NULL,
        "there is nothing at %.200s; GET /openapi.json lists what there is, and /docs shows it", path);
}

static int admit(gateway_request *rq, api_error *e)
{
    gateway *g = rq->gateway;
    if (check_browser(rq, e) != 0 && !(e->status == 403 && is_preflight(rq))) return e->status;
    if (is_preflight(rq)) {
        rq->readable_origin = request_header(rq, "origin");
        return 0;
    }
    if (!rq->endpoint) {
        if (rq->allow)
            return api_error_set(e, 405, "invalid_request_error", "method_not_allowed", NULL,
                                 "%.16s is not allowed here; use %s", request_method(rq), rq->allow);
        return refuse_path(rq, e);
    }
    if (admission_check(rq, e) != 0) return e->status;
    if (!rq->endpoint->admitted) return set_urgency(rq, e);
    if (g->draining) {
        api_error_set(e, 503, "service_unavailable", "draining", NULL,
                      "the server is shutting down; send the request again elsewhere or later");
        e->retry_after_s = 1;
        return e->status;
    }
    if (capacity_check(rq, 1, e) != 0) return e->status;
    return set_wish(rq, e) == 0 ? admission_begin(rq, e) : e->status;
}

static gateway_request *request_new(gateway *g, ingress_request *in)
{
    gateway_request *rq = malloc(sizeof *rq);
    if (!rq) return NULL;
    *rq = (gateway_request){.gateway = g,
                            .settings = settings_ref(g->settings),
                            .calls = g->settings->calls,
                            .registry = g->registry,
                            .cache = g->cache,
                            .metrics = g->metrics,
                            .config = g->config,
                            .ingress = in,
                            .background = in->background,
                            .start_ns = env_now_ns(&g->time) - in->age_ns,
                            .next = g->requests};
    if (g->requests) g->requests->prev = rq;
    g->requests = rq;
    g->n_requests++;
    call_notes_add(rq);
    in->rq = rq;
    return rq;
}

/* Its trace: that of the request on whose behalf it is made, the client's, or one that begins here. */
static void trace_request(gateway_request *rq)
{
    const request_tracing *t = &rq->gateway->tracing;
    const gateway_request *of = rq->ingress->of;
    const char *given = of ? (*of->trace ? of->trace : NULL) : request_header(rq, "traceparent");
    /* Probes and lists come every second or so. */
    bool works = rq->endpoint && (rq->endpoint->admitted || strcmp(rq->endpoint->method, "POST") == 0);
    bool begins = !given && t->on && works;
    trace_take(rq->trace, given);
    rq->trace_parent = trace_span(given);
    if (begins) trace_begin(rq->trace, t->sample);
    rq->is_recorded = trace_is_sampled(rq->trace) || (begins && t->all) || (of && of->is_recorded);
    rq->is_traced = given && (of ? of->is_traced : trace_is_sampled(rq->trace));
    rq->is_inner = of != NULL;
    if (!rq->is_recorded) return;
    const char *host = request_header(rq, "host");
    rq->asked_path = strdup(request_path(rq));
    rq->asked_host = host ? strdup(host) : NULL;
}

void ingress_request_enter(gateway *g, ingress_request *in)
{
    gateway_request *rq = request_new(g, in);
    if (!rq) {
        api_error e;
        api_error_nomem(&e);
        e.status = 503;
        request_count_refused(g, &e);
        in->ops->reply(in, 503, NULL, 0, NULL, 0);
        return;
    }
    request_name(rq->id, request_header(rq, "x-request-id"));
    const char *origin = request_header(rq, "origin");
    if (browser_origin_is_allowed(rq->config, origin)) rq->readable_origin = origin;
    rq->endpoint = endpoint_find(rq->gateway->endpoints, request_method(rq), request_path(rq), &rq->allow);
    trace_request(rq);
    api_error e = {0};
    int refused = admit(rq, &e);
    rq->is_unauthenticated = !rq->key && !admission_knows(g, admission_credential(rq));
    if (refused) {
        request_error(rq, &e);
        return;
    }
    if (!rq->endpoint) {
        request_preflight(rq);
        return;
    }
    if (rq->endpoint->admitted && in->body_follows) {
        if (uploads_begin(rq, &e) != 0) {
            request_error(rq, &e);
            return;
        }
    } else if (rq->endpoint->admitted) {
        capacity_take(rq, 1);
    }
    int rc = in->ops->unpack ? in->ops->unpack(in, &e) : 0;
    if (rc != INGRESS_LATER) ingress_request_resume(in, rc ? &e : NULL);
}

size_t ingress_request_max_bytes(const gateway *g)
{
    size_t most = g->config->limits.max_body_bytes;
    return most ? most : BODY_BYTES;
}

void ingress_request_resume(ingress_request *in, const api_error *e)
{
    gateway_request *rq = in->rq;
    if (e) {
        request_error(rq, e);
        return;
    }
    for (const request_sink *const *s = rq->gateway->sinks; *s; s++)
        if ((*s)->begin) (*s)->begin(rq);
    crash_enter(rq->endpoint->name, rq->id);
    rq->endpoint->handle(rq); /* which may end rq */
    crash_leave();
}

void ingress_request_leave(ingress_request *in)
{
    gateway_request *rq = in->rq;
    void (*on_gone)(void *) = rq->on_gone;
    in->rq = NULL;
    rq->on_gone = NULL;
    if (on_gone) on_gone(rq->work);
    request_finish(rq, 499, "client_gone");
}
