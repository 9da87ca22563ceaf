/* kserve.c: requests of KServe's clients, asked again in our own form. */
#include "compat/kserve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages/fields.h"
#include "dialects/kserve.h"
#include "messages/query.h"
#include "json/json.h"
#include "json/json_put.h"
#include "base/number.h"
#include "request/admission.h"
#include "ingress/redispatch.h"
#include "request/model_resolve.h"
#include "request/gateway_state.h"
#include "observe/readiness.h"
#include "request/routed.h"

typedef struct kserve_job kserve_job;

/* What becomes of our whole answer: 0, SHOAL_EPROTOCOL or SHOAL_ENOMEM, or the status of *e. */
typedef int (*kserve_form)(buf *out, kserve_job *j, const json_t *ours, api_error *e);

struct kserve_job {
    redispatch redispatch; /* first */
    kserve_form form;
    char model[128], version[64]; /* that the path names; version "": none */
    const char *served;           /* what the model is called here */
    kserve_ask ask;
    bool only_ready;  /* of the index */
    bool ends_empty;  /* a stream's last answer has no outputs (triton_enable_empty_final_response) */
    char broken[512]; /* why a stream ends early; "": it does not */
    buf out, tail;
    char n_json[24]; /* of an answer with a tail */
};

static void kserve_job_free(redispatch *a)
{
    kserve_job *j = (kserve_job *)a;
    kserve_ask_done(&j->ask);
    buf_done(&j->out);
    buf_done(&j->tail);
    free(j);
}

static void kserve_refuse(kserve_job *j, const api_error *e)
{
    request_error(redispatch_take(&j->redispatch), e);
}

/* The whole answer, with what is binary behind its JSON. */
static void kserve_answer(kserve_job *j)
{
    gateway_request *rq = redispatch_take(&j->redispatch);
    if (j->tail.len == 0) {
        request_json(rq, 200, &j->out);
        return;
    }
    snprintf(j->n_json, sizeof j->n_json, "%zu", j->out.len);
    request_add_header(rq, "inference-header-content-length", j->n_json);
    buf_join(&j->out, &j->tail);
    if (j->out.failed) {
        api_error e;
        api_error_nomem(&e);
        request_error(rq, &e);
        return;
    }
    request_text(rq, 200, "application/octet-stream", &j->out);
}

static void kserve_on_reply(redispatch *a, const redispatch_reply *r)
{
    kserve_job *j = (kserve_job *)a;
    api_error e = {0};
    if (r->status >= 400 || !r->json) {
        redispatch_fail(a, r);
        return;
    }
    int rc = j->form(&j->out, j, r->json, &e);
    if (rc == 0)
        kserve_answer(j);
    else if (e.status)
        kserve_refuse(j, &e);
    else
        redispatch_bad_answer(a, rc);
}

/* ---- an answer in pieces ------------------------------------------------------------------------- */

static void on_begin(redispatch *a)
{
    request_stream_begin(a->rq);
}

static void break_stream(kserve_job *j, const char *why)
{
    if (!*j->broken) buf_copy_str(j->broken, sizeof j->broken, why);
}

static void put_event(kserve_job *j, const kserve_tensors *t, bool last)
{
    api_error e = {0};
    buf none = {0};
    j->ask.reply_params = last ? "{\"triton_final_response\":true}" : "{\"triton_final_response\":false}";
    event_begin(&j->out, EVENT_DATA, NULL);
    if (kserve_put_answer(&j->out, &none, &j->ask, t, j->model, j->version, &e) != 0)
        break_stream(j, e.message);
    event_end(&j->out);
    buf_done(&none);
}

/* Of what breaks a stream nothing but the error is told. */
static void send_events(kserve_job *j)
{
    if (j->out.failed) break_stream(j, "out of memory");
    if (!*j->broken) request_stream_write(j->redispatch.rq, &j->out);
    buf_clear(&j->out);
}

static void take_chunk(kserve_job *j, const json_t *chunk)
{
    kserve_tensors t = {0};
    bool last = false;
    if (json_array_size(json_object_get(chunk, "choices")) == 0) return;
    int rc = kserve_take_chunk(&t, chunk, &last);
    if (rc == 0) put_event(j, &t, last && !j->ends_empty);
    if (rc != 0) break_stream(j, rc == SHOAL_ENOMEM ? "out of memory" : "a chunk was not understood");
    kserve_done(&t);
}

static void kserve_on_event(redispatch *a, const event *e)
{
    kserve_job *j = (kserve_job *)a;
    json_t *chunk = NULL;
    int rc = json_parse(&chunk, e->data, e->n_data, "a chunk", NULL);
    if (rc != 0)
        break_stream(j, rc == SHOAL_ENOMEM ? "out of memory" : "a chunk was not understood");
    else if (json_object_get(chunk, "error"))
        break_stream(j, redispatch_message(chunk));
    else
        take_chunk(j, chunk);
    json_decref(chunk);
}

static void on_flush(redispatch *a)
{
    send_events((kserve_job *)a);
}

/* The final answer without outputs, for clients that ask for it. */
static void put_empty(kserve_job *j)
{
    const kserve_tensors none = {0};
    const json_t *outputs = j->ask.outputs;
    j->ask.outputs = NULL;
    put_event(j, &none, true);
    j->ask.outputs = outputs;
}

static void put_broken(kserve_job *j)
{
    event_begin(&j->out, EVENT_ERROR, NULL);
    buf_putc(&j->out, '{');
    json_put_text(&j->out, "error", j->broken);
    buf_putc(&j->out, '}');
    event_end(&j->out);
    request_stream_write(j->redispatch.rq, &j->out);
}

static void kserve_on_end(redispatch *a)
{
    kserve_job *j = (kserve_job *)a;
    if (!*j->broken && j->ends_empty) put_empty(j);
    send_events(j);
    if (*j->broken) put_broken(j);
    gateway_request *rq = redispatch_take(a);
    if (*j->broken) rq->error_code = "stream_failed";
    request_stream_end(rq);
}

static const redispatch_ops OPS = {.reply = kserve_on_reply,
                                   .begin = on_begin,
                                   .event = kserve_on_event,
                                   .flush = on_flush,
                                   .end = kserve_on_end,
                                   .free = kserve_job_free};

static kserve_job *kserve_job_new(gateway_request *rq, kserve_form form)
{
    kserve_job *j = calloc(1, sizeof *j);
    if (!j) {
        api_error e;
        api_error_nomem(&e);
        request_error(rq, &e);
        return NULL;
    }
    j->form = form;
    redispatch_init(&j->redispatch, rq, &OPS);
    return j;
}

static void kserve_fail(kserve_job *j, const api_error *e)
{
    kserve_refuse(j, e);
    redispatch_drop(&j->redispatch);
}

/* ---- whom a path names --------------------------------------------------------------------------- */

/* The segment at s, percent-encoding undone. */
static int read_segment(const char *s, char *ret, size_t size, api_error *e)
{
    char *text = NULL;
    int rc = query_segment(s, strcspn(s, "/"), &text, e);
    if (rc == 0 && strlen(text) >= size) rc = api_error_no_model(e, text);
    if (rc == 0) strcpy(ret, text);
    free(text);
    return rc;
}

/* Of ".../models/NAME" or ".../models/NAME/versions/VERSION/...". */
static int read_path(kserve_job *j, api_error *e)
{
    return kserve_read_name(j->redispatch.rq, j->model, sizeof j->model, j->version, sizeof j->version, e);
}

int kserve_read_name(const gateway_request *rq, char *ret_model, size_t model_size, char *ret_version,
                     size_t version_size, api_error *e)
{
    const char *name = strstr(request_path(rq), "/models/") + strlen("/models/");
    const char *version = strstr(name, "/versions/");
    int rc = read_segment(name, ret_model, model_size, e);
    *ret_version = '\0';
    if (rc == 0 && version) rc = read_segment(version + strlen("/versions/"), ret_version, version_size, e);
    return rc;
}

/* Of an ensemble what its first member is of those that are up: the others may answer without the rest. NULL:
 * a route, or what has not come up yet. */
static const Shoal__V1__ModelInfo *info_of(const gateway_request *rq, const char *name, bool *ret_known)
{
    const Shoal__V1__ModelInfo *info = calls_info(rq->calls, name, ret_known);
    const config_ensemble *many = info ? NULL : config_ensemble_find(rq->config, name);
    for (size_t i = 0; many && !info && i < many->n_members; i++)
        info = calls_info(rq->calls, many->members[i].model, NULL);
    return info;
}

int kserve_find_model(gateway_request *rq, const char *model, const char *version, const char **ret_served,
                      const Shoal__V1__ModelInfo **ret, api_error *e)
{
    char name[128];
    bool known;
    *ret_served = model = model_resolve_alias(rq, model);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(model, ":"), model); /* without its adapter */
    const Shoal__V1__ModelInfo *info = info_of(rq, name, &known);
    if (admission_may_use(rq, model, e) != 0) return e->status;
    if (!known) return api_error_no_model(e, model);
    if (*version && info && strcmp(version, info->version) != 0)
        return api_error_set(e, 404, "invalid_request_error", "model_not_found", "version",
                             "the model %.64s has no version %.64s: it is %.64s", name, version,
                             info->version);
    *ret = info;
    return 0;
}

/* What is there by that name; *ret NULL: as info_of. */
static int find_model_kserve(kserve_job *j, const Shoal__V1__ModelInfo **ret, api_error *e)
{
    return kserve_find_model(j->redispatch.rq, j->model, j->version, &j->served, ret, e);
}

/* Routes have no replicas of their own, so nothing is known of them. */
static int await_model(kserve_job *j, const Shoal__V1__ModelInfo *info, api_error *e)
{
    if (info || routed_find(j->redispatch.rq, j->served)) return 0;
    api_error_set(e, 503, "service_unavailable", "model_not_ready", "model", "the model %.64s is not up yet",
                  j->model);
    e->retry_after_s = 1;
    return e->status;
}

/* ---- the server ---------------------------------------------------------------------------------- */

static void reply_text(gateway_request *rq, int status, const char *json)
{
    request_json(rq, status, &(buf){.data = (char *)json, .len = strlen(json)});
}

void kserve_server(gateway_request *rq)
{
    reply_text(rq, 200,
               "{\"name\":\"shoal\",\"version\":\"" SHOAL_VERSION
               "\",\"extensions\":[\"binary_tensor_data\",\"model_repository\",\"model_configuration\","
               "\"statistics\",\"trace\",\"logging\"]}");
}

void kserve_live(gateway_request *rq)
{
    reply_text(rq, 200, "{\"live\":true}");
}

static void tell_ready(gateway_request *rq, const char *name, bool ready)
{
    buf out = {0};
    buf_putc(&out, '{');
    if (name) {
        json_put_text(&out, "name", name);
        buf_putc(&out, ',');
    }
    buf_printf(&out, "\"ready\":%s}", ready ? "true" : "false");
    request_json(rq, ready ? 200 : 400, &out); /* the protocol: 4xx says no */
    buf_done(&out);
}

void kserve_ready(gateway_request *rq)
{
    tell_ready(rq, NULL, registry_all_ready(rq->registry) && !rq->gateway->withdrawn);
}

/* ---- a model ------------------------------------------------------------------------------------- */

static void put_slots(buf *out, const char *key, const kserve_slot *slots, size_t n)
{
    buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%s{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[", i ? "," : "", slots[i].name,
                   kserve_type_name(slots[i].type));
        for (size_t k = 0; k < slots[i].n_dims; k++)
            buf_printf(out, "%s%lld", k ? "," : "", (long long)slots[i].shape[k]);
        buf_puts(out, "]}");
    }
    buf_putc(out, ']');
}

static void put_metadata(buf *out, const kserve_job *j, const Shoal__V1__ModelInfo *info)
{
    kserve_face f = {0};
    (void)kserve_face_of(info, &f); /* what is not served in tensors has none */
    buf_putc(out, '{');
    json_put_text(out, "name", j->model);
    buf_puts(out, ",\"versions\":[");
    if (info && *info->version) json_put_string(out, info->version, strlen(info->version));
    buf_puts(out, "],\"platform\":\"shoal\"");
    put_slots(out, "inputs", f.in, f.n_in);
    put_slots(out, "outputs", f.out, f.n_out);
    buf_putc(out, '}');
}

void kserve_model(gateway_request *rq)
{
    kserve_job *j = kserve_job_new(rq, NULL);
    const Shoal__V1__ModelInfo *info = NULL;
    api_error e = {0};
    if (!j) return;
    int rc = read_path(j, &e);
    if (rc == 0) rc = find_model_kserve(j, &info, &e);
    if (rc == 0) rc = await_model(j, info, &e);
    if (rc == 0) {
        put_metadata(&j->out, j, info);
        kserve_answer(j);
        redispatch_drop(&j->redispatch);
    } else {
        kserve_fail(j, &e);
    }
}

void kserve_model_ready(gateway_request *rq)
{
    kserve_job *j = kserve_job_new(rq, NULL);
    const Shoal__V1__ModelInfo *info;
    api_error e = {0};
    char why[READINESS_WHY_SIZE];
    if (!j) return;
    int rc = read_path(j, &e);
    if (rc == 0) rc = find_model_kserve(j, &info, &e);
    if (rc == 0) {
        const gateway *g = rq->gateway;
        bool ready = readiness_of(g, j->served, why) == READINESS_READY && !g->withdrawn;
        tell_ready(redispatch_take(&j->redispatch), j->model, ready);
        redispatch_drop(&j->redispatch);
    } else {
        kserve_fail(j, &e);
    }
}

/* ---- inference ----------------------------------------------------------------------------------- */

/* How much of the body is JSON; without the header all of it. */
static int read_length(const gateway_request *rq, size_t n, size_t *ret, api_error *e)
{
    const char *s = request_header(rq, "inference-header-content-length");
    uint64_t v = n;
    if (s && (!number_u64(s, &v) || v > n))
        return api_error_bad(
            e, "inference-header-content-length",
            "Inference-Header-Content-Length must be a number of bytes, at most the body's %zu", n);
    *ret = (size_t)v;
    return 0;
}

static int put_inferred(buf *out, kserve_job *j, const json_t *ours, api_error *e)
{
    const Shoal__V1__ModelInfo *info = NULL;
    kserve_tensors t = {0};
    int rc = find_model_kserve(j, &info, e);
    if (rc == 0) rc = kserve_take_ours(&t, &j->ask.in, info, ours);
    if (rc == 0)
        rc = kserve_put_answer(out, &j->tail, &j->ask, &t, j->model, info ? info->version : j->version, e);
    kserve_done(&t);
    return rc;
}

/* Of Accept: a client that takes events gets text as it is written. */
static bool takes_events(const gateway_request *rq)
{
    const char *s = request_header(rq, "accept");
    return s && strstr(s, "text/event-stream");
}

/* Text that is written piece by piece is told so: our body is asked to stream, and answers are JSON alone. */
static int ask_stream(kserve_job *j, const Shoal__V1__ModelInfo *info, api_error *e)
{
    bool stream = false;
    int rc = kserve_wants_stream(&j->ask.in, info, &stream, e);
    if (rc == 0) rc = fields_bool(j->ask.params, "triton_enable_empty_final_response", &j->ends_empty, e);
    if (rc != 0 || !stream) return rc;
    buf *body = &j->redispatch.body;
    body->len--; /* the closing brace */
    buf_puts(body, ",\"stream\":true}");
    j->ask.no_binary = true;
    if (!*j->version && info) buf_copy_str(j->version, sizeof j->version, info->version);
    return body->failed ? api_error_nomem(e) : 0;
}

void kserve_infer(gateway_request *rq)
{
    kserve_job *j = kserve_job_new(rq, put_inferred);
    const Shoal__V1__ModelInfo *info = NULL;
    const char *path = NULL;
    api_error e = {0};
    size_t n, n_json = 0;
    if (!j) return;
    const char *body = request_body(rq, &n);
    int rc = read_path(j, &e);
    if (rc == 0) rc = find_model_kserve(j, &info, &e);
    if (rc == 0) rc = await_model(j, info, &e);
    if (rc == 0) rc = read_length(rq, n, &n_json, &e);
    if (rc == 0) rc = kserve_ask_read(&j->ask, body, n, n_json, &e);
    if (rc == 0)
        rc = kserve_ask_ours(&j->ask.in, j->ask.params, rq->variant ? rq->variant_name : j->served, info,
                             &path, &j->redispatch.body, &e);
    if (rc == 0 && takes_events(rq)) rc = ask_stream(j, info, &e);
    if (rc != 0) {
        kserve_fail(j, &e);
        return;
    }
    request_note_model(rq, j->served, info ? info->version : "", info ? info->quantisation : "");
    redispatch_ask(&j->redispatch, "POST", path);
}

/* ---- the repository ------------------------------------------------------------------------------ */

/* Ensembles and routes, which have no state, are there. */
static const char *state_of(const json_t *m)
{
    const char *state = json_text_of(m, "state");
    if (!*state || strcmp(state, "ready") == 0) return "READY";
    return strcmp(state, "starting") == 0 ? "LOADING" : "UNAVAILABLE";
}

static int put_index(buf *out, kserve_job *j, const json_t *ours, api_error *e)
{
    const json_t *data = json_object_get(ours, "data");
    json_t *m;
    size_t i;
    bool first = true;
    if (!json_is_array(data)) return SHOAL_EPROTOCOL;
    buf_putc(out, '[');
    json_array_foreach(data, i, m)
    {
        bool ready = strcmp(state_of(m), "READY") == 0;
        if (j->only_ready && !ready) continue;
        buf_puts(out, first ? "{" : ",{");
        first = false;
        json_put_text(out, "name", json_text_of(m, "id"));
        json_put_text(out, "version", json_text_of(m, "version"));
        buf_printf(out, ",\"state\":\"%s\",", state_of(m));
        json_put_text(out, "reason",
                      ready                        ? ""
                      : *json_text_of(m, "reason") ? json_text_of(m, "reason")
                                                   : json_text_of(m, "state"));
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
    return out->failed ? SHOAL_ENOMEM : 0;
}

/* A body that says nothing is as none. */
static int read_object(const gateway_request *rq, json_t **ret, api_error *e)
{
    size_t n;
    const char *body = request_body(rq, &n);
    *ret = NULL;
    return n ? fields_parse(ret, body, n, e) : 0;
}

void kserve_index(gateway_request *rq)
{
    kserve_job *j = kserve_job_new(rq, put_index);
    json_t *asked = NULL;
    api_error e = {0};
    if (!j) return;
    int rc = read_object(rq, &asked, &e);
    if (rc == 0) rc = fields_bool(asked, "ready", &j->only_ready, &e);
    json_drop(asked);
    if (rc == 0)
        redispatch_ask(&j->redispatch, "GET", "/v1/models");
    else
        kserve_fail(j, &e);
}

static int put_nothing(buf *out, kserve_job *j, const json_t *ours, api_error *e)
{
    return buf_puts(out, "{}");
}

static void order(gateway_request *rq, const char *path)
{
    kserve_job *j = kserve_job_new(rq, put_nothing);
    json_t *asked = NULL;
    api_error e = {0};
    if (!j) return;
    int rc = read_path(j, &e);
    if (rc == 0) rc = read_object(rq, &asked, &e); /* its parameters are Triton's own */
    json_drop(asked);
    if (rc != 0) {
        kserve_fail(j, &e);
        return;
    }
    buf *body = &j->redispatch.body;
    buf_putc(body, '{');
    json_put_text(body, "model", j->model);
    buf_putc(body, '}');
    if (body->failed) {
        api_error_nomem(&e);
        kserve_fail(j, &e);
        return;
    }
    redispatch_ask(&j->redispatch, "POST", path);
}

void kserve_load(gateway_request *rq)
{
    order(rq, "/v1/models/load");
}

void kserve_unload(gateway_request *rq)
{
    order(rq, "/v1/models/unload");
}
