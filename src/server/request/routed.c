/* routed.c: a request's facts, its decision, and what remains of it; see routed.h. */
#include "request/routed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "messages/stream_id.h"
#include "logging/log.h"
#include "request/admission.h"
#include "request/model_resolve.h"
#include "request/endpoint.h"
#include "request/gateway_state.h"
#include "routes/language.h"

#define HEADER_MAX_BYTES 1000
#define PREFIX_BYTES     1024

enum { DECISION_DIGITS = 4 };

typedef struct routed_job {
    gateway_request *rq;
    const config_route *route;
    const char *does;
    uint8_t began[STREAM_MODEL_BYTES]; /* of the answer that is gone on with */
    resolve *resolve;
    resolve_done done;
    void (*drop)(void *work);
    void *work;
} routed_job;

typedef struct routed_start_job { /* of routed_start: what follows the decision */
    gateway_request *rq;
    const config_route *route;
    routed_done done;
    void (*drop)(void *work);
    void *work;
} routed_start_job;

const config_route *routed_find(const gateway_request *rq, const char *model)
{
    return model ? route_find(&rq->config->book, model) : NULL;
}

void routed_free(routed *r)
{
    if (!r) return;
    free(r->header);
    free(r);
}

/* ---- the view ------------------------------------------------------------------------------------ */

static int header_holds(void *user, const config_rule *r)
{
    const routed_job *j = user;
    for (size_t i = 0; i < r->n_header; i++) {
        const char *value = request_header(j->rq, r->header[i].name);
        if (!value || (r->header[i].value && !route_matches(value, r->header[i].value))) return 0;
    }
    return 1;
}

static bool routed_fits(void *user, const Shoal__V1__ModelInfo *info)
{
    return task_fits(((const routed_job *)user)->does, info->task, info->n_labels);
}

static bool began(void *user, const Shoal__V1__ModelInfo *info)
{
    const routed_job *j = user;
    uint8_t model[STREAM_MODEL_BYTES];
    stream_id_model(model, info->identity, "");
    return memcmp(model, j->began, sizeof model) == 0;
}

/* ---- facts --------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *s, size_t n)
{
    return s && n ? route_hash(s, n) : 0;
}

static uint64_t hash_text(const char *s)
{
    return s ? hash_of(s, strlen(s)) : 0;
}

static void fill_keys(route_facts *f, const gateway_request *rq, const routed_about *a)
{
    const char *session = request_header(rq, "x-shoal-session");
    size_t n = a->prefix ? a->n_prefix : a->n_text;
    f->keys[KEY_SESSION] = hash_text(session ? session : a->session);
    f->keys[KEY_USER] = hash_text(a->user ? a->user : f->api_key);
    f->keys[KEY_PREFIX] = hash_of(a->prefix ? a->prefix : a->text, n < PREFIX_BYTES ? n : PREFIX_BYTES);
    f->keys[KEY_REQUEST] = hash_text(rq->id);
}

static void fill_facts(route_facts *f, const gateway_request *rq, const routed_about *a)
{
    *f = (route_facts){.endpoint = a->endpoint ? a->endpoint : rq->endpoint->name,
                       .path = a->path ? a->path : request_path(rq),
                       .api_key = rq->key ? rq->key->rule->name : "",
                       .language = language_guess(a->text, a->n_text),
                       .n_bytes = a->n_bytes,
                       .n_tokens = a->n_bytes / 4,
                       .wants = a->wants,
                       .n_reply = a->n_reply,
                       .max_cost = rq->max_cost,
                       .max_energy_j = rq->max_energy_j,
                       .latency = rq->latency};
    fill_keys(f, rq, a);
}

/* A stream that goes on does so with the file that began it. A wrong id is stream_open's to refuse. */
static void fill_resumed(routed_job *j, route_facts *f, const routed_about *a)
{
    const char *id = a->streams ? request_header(j->rq, "last-event-id") : NULL;
    stream_id given;
    if (!id || !*id || stream_id_parse(&given, id, strlen(id), NULL) != 0) return;
    memcpy(j->began, given.model, sizeof j->began);
    f->resumes = true;
}

/* ---- the end ------------------------------------------------------------------------------------- */

static void log_decision(const route_book *book, const char *request_id, const config_route *route,
                         const resolved *r)
{
    buf line = {0};
    replay_put(&line, book, r->facts, r->evidence, r->decision);
    LOG(LOG_INFO, "route", "decision", LOG_S("route", route->name),
        LOG_S("model", r->decision->n ? r->decision->steps[0].model : ""), LOG_F("ms", r->ms),
        LOG_S("replay", line.failed ? "" : line.data), LOG_S("request_id", request_id));
    buf_done(&line);
}

static void routed_count(gateway *g, const config_route *route, const resolved *r)
{
    const decide_note *first = r->decision->n ? &r->decision->steps[0] : NULL;
    metrics_add(g->metrics, METRIC_ROUTED, 1, route->name, first ? first->model : "",
                first ? decide_why_name(first->why) : "nobody");
    metrics_observe_s(g->metrics, METRIC_ROUTE_S, r->ms / 1000, route->name, NULL);
}

void routed_heard(void *user, const call_order *o, const config_route *route, const resolved *r)
{
    const settings *s = user;
    routed_count(s->gateway, route, r);
    log_decision(&s->config->book, o->request_id, route, r);
}

/* Those who answer when the first step's replicas are gone: plain models, as a request for an adapter is
 * nobody else's. */
static void add_stand_ins(routed *to, const decision *d)
{
    if (strchr(d->steps[0].model, ':')) return;
    for (size_t i = 1; i < d->n; i++)
        if (!strchr(d->steps[i].model, ':')) to->stand_ins[to->n_stand_ins++] = d->steps[i].model;
}

/* It began when the decision did. */
static void note_span(routed *to, const gateway_request *rq, const resolved *r)
{
    call_spans below, at = {&rq->gateway->observer, trace_span(rq->trace)};
    if (!rq->is_recorded) return;
    to->span = call_spans_begin(&below, &at);
    to->start_ns = request_now_ns(rq) - (uint64_t)(r->ms * 1e6);
    to->ms = r->ms;
    to->why = decide_why_name(r->decision->steps[0].why);
    buf_copy_str(to->model, sizeof to->model, r->decision->steps[0].model);
}

void routed_tell_span(gateway_request *rq)
{
    const routed *r = rq->routed;
    char ms[NUMBER_SIZE];
    if (!r || !r->span) return;
    span s = {.kind = SPAN_ROUTE,
              .id = r->span,
              .parent = trace_span(rq->trace),
              .start_ns = r->start_ns,
              .end_ns = request_now_ns(rq)};
    span_name(&s, r->route->name);
    span_set(&s, "model", r->model);
    span_set(&s, "reason", r->why);
    number_write(ms, r->ms, DECISION_DIGITS);
    span_set(&s, "decision_ms", ms);
    span_list_add(&rq->spans, &s);
}

static int remember(gateway_request *rq, const config_route *route, const resolved *r)
{
    buf header = {0};
    routed *to = calloc(1, sizeof *to);
    decide_put_header(&header, &rq->config->book, r->decision, r->facts);
    if (header.len > HEADER_MAX_BYTES) header.data[header.len = HEADER_MAX_BYTES] = '\0';
    if (!to || header.failed) {
        free(to);
        buf_done(&header);
        return SHOAL_ENOMEM;
    }
    const config_route *last = r->decision->steps[0].route; /* the target's own route says how it is kept */
    *to = (routed){.route = route, .header = buf_take(&header), .key = r->facts->keys[last->key]};
    note_span(to, rq, r);
    to->order = last->order == ROUTER_BY_HASH && to->key == 0 ? ROUTER_BY_TIME : last->order;
    add_stand_ins(to, r->decision);
    routed_free(rq->routed);
    rq->routed = to;
    return 0;
}

/* What the first of those that were passed over lacked. */
static void nobody(const routed_start_job *j, const resolved *r, api_error *e)
{
    buf why = {0};
    bool unfit = r->decision->n_skipped > 0;
    for (size_t i = 0; i < r->decision->n_skipped; i++) {
        const decide_note *n = &r->decision->skipped[i];
        bool its_own =
            n->why == DECIDE_UNFIT || n->why == DECIDE_NO || n->why == DECIDE_EMPTY || n->why == DECIDE_OVER;
        if (!its_own) unfit = false;
        if (i > 0 && i < 4) buf_puts(&why, "; ");
        if (i < 4) decide_put_why(&why, &j->rq->config->book, n, r->facts);
    }
    api_error_set(e, unfit ? 400 : 503, unfit ? "invalid_request_error" : "service_unavailable",
                  "route_has_nobody", "model", "the route %s has nobody for this request: %.400s",
                  j->route->name, why.data ? why.data : "no rule holds, and there is no fallback");
    if (!unfit) e->retry_after_s = 1;
    buf_done(&why);
}

static void on_resolved(void *user, const resolved *r)
{
    routed_job j = *(routed_job *)user;
    free(user);
    request_watch(j.rq, NULL, NULL);
    j.done(j.work, r);
}

static void routed_on_gone(void *work)
{
    routed_job *j = work;
    resolve_cancel(j->resolve);
    j->drop(j->work);
    free(j);
}

/* ---- the start ----------------------------------------------------------------------------------- */

static int start_routed(routed_job *j, const routed_about *a, api_error *e)
{
    gateway_request *rq = j->rq;
    call_context ctx = request_context(rq, "route");
    resolve_ask ask = {.route = j->route,
                       .deadline_ns = rq->deadline_ns,
                       .text = a->text,
                       .n_text = a->n_text,
                       .task = a->task,
                       .user = j,
                       .header_holds = header_holds,
                       .fits = routed_fits,
                       .began = began,
                       .ctx = ctx};
    fill_facts(&ask.facts, rq, a);
    fill_resumed(j, &ask.facts, a);
    request_watch(rq, routed_on_gone, j);
    int rc =
        resolve_start(&j->resolve, rq->calls, &rq->gateway->time, &rq->config->book, &ask, on_resolved, j);
    if (rc == 0) return 0;
    request_watch(rq, NULL, NULL);
    return api_error_nomem(e);
}

int routed_resolve(gateway_request *rq, const config_route *route, const routed_about *about,
                   resolve_done done, void (*drop)(void *work), void *work, api_error *e)
{
    routed_job *j = calloc(1, sizeof *j);
    if (!j) return api_error_nomem(e);
    *j =
        (routed_job){.rq = rq, .route = route, .does = about->does, .done = done, .drop = drop, .work = work};
    int rc = start_routed(j, about, e);
    if (rc != 0) free(j);
    return rc;
}

static void on_decided(void *user, const resolved *r)
{
    routed_start_job j = *(routed_start_job *)user;
    api_error e;
    const char *model = r->what == DECIDE_DONE ? r->decision->steps[0].model : NULL;
    free(user);
    if (r->status == 0) {
        routed_count(j.rq->gateway, j.route, r);
        log_decision(&j.rq->config->book, j.rq->id, j.route, r);
    }
    if (r->status != 0) {
        api_error_nomem(&e);
        model = NULL;
    } else if (!model) {
        nobody(&j, r, &e);
    } else if (remember(j.rq, j.route, r) != 0) {
        api_error_nomem(&e);
        model = NULL;
    }
    j.done(j.work, model, &e);
}

static void drop_start(void *user)
{
    routed_start_job *j = user;
    j->drop(j->work);
    free(j);
}

void routed_start(gateway_request *rq, const config_route *route, const routed_about *about, routed_done done,
                  void (*drop)(void *work), void *work)
{
    api_error e;
    routed_start_job *j = malloc(sizeof *j);
    int rc = j ? admission_may_use(rq, route->name, &e) : api_error_nomem(&e);
    if (rc == 0) {
        *j = (routed_start_job){rq, route, done, drop, work};
        rc = routed_resolve(rq, route, about, on_decided, drop_start, j, &e);
    }
    if (rc == 0) return;
    free(j);
    done(work, NULL, &e);
}
