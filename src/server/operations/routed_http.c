/* routed_http.c: POST /v1/route, which decides and calls nobody but for the domain, and routes as models. Of
 * an ensemble it tells how its members come to an answer.
 *
 *     {"route":"auto","input":"turn off the light","endpoint":"chat_completions","wants":["tools"]}
 *     {"object":"shoal.route","route":"auto","steps":[{"model":"home-chat-s","why":"rule devices: ...",...}],
 *      "skipped":[...],"facts":{...},"ms":0.41} */
#include <stdlib.h>
#include <string.h>

#include "messages/fields.h"
#include "base/name.h"
#include "json/json.h"
#include "json/json_put.h"
#include "config/ensemble_words.h"
#include "request/admission.h"
#include "request/model_resolve.h"
#include "request/endpoint.h"
#include "request/gateway_state.h"
#include "request/routed.h"

/* ---- what a route would come to ------------------------------------------------------------------ */

typedef struct explain_job {
    gateway_request *rq;
    json_t *root;
    const config_route *route;
    const config_ensemble *ensemble; /* in its place */
} explain_job;

static void routed_http_job_free(void *work)
{
    explain_job *j = work;
    json_drop(j->root);
    free(j);
}

static void routed_http_answer(gateway_request *rq, const resolved *r)
{
    const route_book *b = &rq->config->book;
    buf out = {0};
    decide_put_json(&out, b, r->decision, r->facts);
    buf_puts(&out, ",\"object\":\"shoal.route\",\"facts\":");
    replay_put(&out, b, r->facts, r->evidence, r->decision);
    buf_printf(&out, ",\"ms\":%.3f}", r->ms);
    request_json(rq, 200, &out);
    buf_done(&out);
}

static void answer_ensemble(gateway_request *rq, const config_ensemble *e)
{
    buf out = {0};
    ensemble_words_put(&out, e);
    buf_printf(&out, ",\"ms\":%.3f}", request_ms(rq));
    request_json(rq, 200, &out);
    buf_done(&out);
}

static void on_explained(void *work, const resolved *r)
{
    explain_job *j = work;
    gateway_request *rq = j->rq;
    api_error e;
    if (r->status == 0) {
        routed_http_answer(rq, r);
    } else {
        api_error_nomem(&e);
        request_error(rq, &e);
    }
    routed_http_job_free(j);
}

static int read_wants(unsigned *ret, const json_t *root, api_error *e)
{
    const json_t *list = json_object_get(root, "wants");
    *ret = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        unsigned bit = name ? route_want_of(name) : 0;
        if (!bit)
            return api_error_bad(e, "wants",
                                 "wants[%zu] is none of stream, json, json_schema, tools, logprobs", i);
        *ret |= bit;
    }
    return 0;
}

/* In place of the header: what the request may take. */
static int read_most(const json_t *root, const char *key, double *ret, api_error *e)
{
    const json_t *v = json_object_get(root, key);
    if (!v) return 0;
    *ret = json_number_value(v);
    return *ret > 0 ? 0 : api_error_bad(e, key, "\"%s\" must be a number over 0", key);
}

static int read_request(explain_job *j, routed_about *about, api_error *e)
{
    gateway_request *rq = j->rq;
    size_t len;
    int64_t deadline_ms = 0;
    const char *body = request_body(rq, &len), *name = NULL, *input = "", *endpoint = "chat_completions";
    const char *latency = NULL;
    int rc = fields_parse(&j->root, body, len, e);
    if (rc == 0) rc = fields_str(j->root, "route", &name, e);
    if (rc == 0) rc = fields_str(j->root, "input", &input, e);
    if (rc == 0) rc = fields_str(j->root, "endpoint", &endpoint, e);
    *about = (routed_about){.text = input, .n_text = strlen(input), .n_bytes = strlen(input)};
    if (rc == 0) rc = fields_str(j->root, "session", &about->session, e);
    if (rc == 0) rc = fields_str(j->root, "user", &about->user, e);
    if (rc == 0) rc = fields_str(j->root, "latency", &latency, e);
    if (rc == 0 && latency && !route_latency_of(latency, &rq->latency))
        rc = api_error_bad(e, "latency", "\"latency\" must be realtime, interactive or batch");
    if (rc == 0) rc = fields_int(j->root, "deadline_ms", 1, 86400000, &deadline_ms, e);
    if (rc == 0) rc = read_most(j->root, "max_cost", &rq->max_cost, e);
    if (rc == 0) rc = read_most(j->root, "max_energy_j", &rq->max_energy_j, e);
    if (rc == 0) rc = read_wants(&about->wants, j->root, e);
    if (rc == 0 && deadline_ms) rq->deadline_ns = rq->start_ns + (uint64_t)deadline_ms * 1000000u;
    if (rc != 0) return rc;
    if (!name && rq->config->book.n_routes == 1) name = rq->config->book.routes[0].name;
    if (!name) return api_error_bad(e, "route", "\"route\" must name a route");
    char base[NAME_BYTES_MAX + 1];
    name = name_without_latest(base, model_resolve_alias(rq, name));
    if ((rc = admission_may_use(rq, name, e)) != 0) return rc;
    j->route = routed_find(rq, name);
    j->ensemble = config_ensemble_find(rq->config, name);
    if (j->ensemble) return 0;
    if (!j->route) return api_error_bad(e, "route", "there is no route '%.64s' here", name);
    const task_endpoint *at = task_endpoint_named(endpoint);
    if (!at || !at->routed || !at->does)
        return api_error_bad(e, "endpoint", "'%.64s' is no endpoint that routes serve", endpoint);
    about->does = at->does;
    about->task = at->call;
    about->endpoint = at->name;
    about->path = at->path;
    return 0;
}

void routed_explain(gateway_request *rq)
{
    api_error e;
    routed_about about;
    explain_job *j = calloc(1, sizeof *j);
    int rc = j ? 0 : api_error_nomem(&e);
    if (rc == 0) {
        j->rq = rq;
        rc = read_request(j, &about, &e);
    }
    if (rc == 0 && j->ensemble) {
        answer_ensemble(rq, j->ensemble);
        routed_http_job_free(j);
        return;
    }
    if (rc == 0) rc = routed_resolve(rq, j->route, &about, on_explained, routed_http_job_free, j, &e);
    if (rc == 0) return;
    if (j) routed_http_job_free(j);
    request_error(rq, &e);
}

/* ---- routes as models ---------------------------------------------------------------------------- */

enum { NAMES_MAX = 128 };

typedef struct name_list {
    const char *names[NAMES_MAX];
    size_t n;
} name_list;

static void add_name(void *user, const char *name)
{
    name_list *l = user;
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->names[i], name) == 0) return;
    if (l->n < NAMES_MAX) l->names[l->n++] = name;
}

void routed_put_model(buf *out, const config_route *r)
{
    name_list names = {0};
    buf_putc(out, '{');
    json_put_text(out, "id", r->name);
    buf_puts(out, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"shoal-route\",\"state\":\"ready\","
                  "\"task\":\"route\"");
    buf_puts(out, ",\"routes_to\":[");
    route_each(r, add_name, &names);
    for (size_t i = 0; i < names.n; i++) json_put_text(out, NULL, names.names[i]);
    buf_puts(out, "]}");
}

void routed_put_models(buf *out, const gateway_request *rq, bool *first)
{
    const route_book *b = &rq->config->book;
    for (size_t i = 0; i < b->n_routes; i++) {
        if (!admission_shows(rq, b->routes[i].name)) continue;
        if (!*first) buf_putc(out, ',');
        *first = false;
        routed_put_model(out, &b->routes[i]);
    }
}
