/* kserve_about.c: Triton's extensions that show a model and the server; see kserve_about.h.
 * Source: Triton's protocol documents extension_model_configuration, extension_statistics, extension_trace,
 * extension_logging and extension_shared_memory. */
#include "compat/kserve_about.h"

#include <string.h>

#include "messages/fields.h"
#include "dialects/kserve.h"
#include "json/json.h"
#include "json/json_put.h"
#include "compat/kserve.h"
#include "request/admission.h"
#include "request/endpoint.h"
#include "request/gateway_state.h"
#include "request/routed.h"

typedef struct named { /* the model of a path */
    char model[128], version[64];
    const char *served;               /* what it is called here */
    const Shoal__V1__ModelInfo *info; /* NULL: a route or an ensemble */
} named;

static int read_named(gateway_request *rq, named *ret, api_error *e)
{
    int rc = kserve_read_name(rq, ret->model, sizeof ret->model, ret->version, sizeof ret->version, e);
    if (rc == 0) rc = kserve_find_model(rq, ret->model, ret->version, &ret->served, &ret->info, e);
    if (rc != 0 || ret->info || routed_find(rq, ret->served)) return rc;
    e->retry_after_s = 1;
    return api_error_set(e, 503, "service_unavailable", "model_not_ready", "model",
                         "the model %.64s is not up yet", ret->model);
}

static void kserve_about_answer(gateway_request *rq, int rc, buf *out, const api_error *e)
{
    if (rc == 0)
        request_json(rq, 200, out);
    else
        request_error(rq, e);
    buf_done(out);
}

/* ---- configuration ------------------------------------------------------------------------------- */

static void put_tensors(buf *out, const char *key, const kserve_slot *slots, size_t n)
{
    buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        const kserve_slot *s = &slots[i];
        const char *type = s->type == KSERVE_BYTES ? "STRING" : kserve_type_name(s->type);
        buf_printf(out, "%s{\"name\":\"%s\",\"data_type\":\"TYPE_%s\",\"dims\":[", i ? "," : "", s->name,
                   type);
        for (size_t k = 0; k < s->n_dims; k++)
            buf_printf(out, "%s%lld", k ? "," : "", (long long)s->shape[k]);
        buf_puts(out, "]}");
    }
    buf_putc(out, ']');
}

static size_t count_replicas(const gateway_request *rq, const char *model)
{
    size_t n = 0;
    for (size_t i = 0; i < registry_count(rq->registry); i++)
        n += strcmp(registry_at(rq->registry, i)->model, model) == 0;
    return n;
}

static void put_config(buf *out, const gateway_request *rq, const named *m)
{
    kserve_face f = {0};
    (void)kserve_face_of(m->info, &f); /* what is not served in tensors has none */
    buf_putc(out, '{');
    json_put_text(out, "name", m->model);
    buf_puts(
        out,
        ",\"platform\":\"shoal\",\"backend\":\"shoal\",\"version_policy\":{\"latest\":{\"num_versions\":1}},"
        "\"max_batch_size\":0");
    put_tensors(out, "input", f.in, f.n_in);
    put_tensors(out, "output", f.out, f.n_out);
    buf_puts(out, ",\"instance_group\":[{");
    json_put_text(out, "name", m->model);
    buf_printf(out, ",\"kind\":\"KIND_CPU\",\"count\":%zu}],\"model_transaction_policy\":{\"decoupled\":%s}}",
               count_replicas(rq, m->served), kserve_streams(m->info) ? "true" : "false");
}

void kserve_config(gateway_request *rq)
{
    named m = {.info = NULL};
    buf out = {0};
    api_error e = {0};
    int rc = read_named(rq, &m, &e);
    if (rc == 0) put_config(&out, rq, &m);
    kserve_about_answer(rq, rc, &out, &e);
}

/* ---- statistics ---------------------------------------------------------------------------------- */

static void put_duration(buf *out, const char *name, uint64_t count, double seconds)
{
    buf_printf(out, ",\"%s\":{\"count\":%llu,\"ns\":%.0f}", name, (unsigned long long)count,
               seconds > 0 ? seconds * 1e9 : 0);
}

/* Failed requests for the model. Those of other dialects are asked again as ours, and counted there. */
static uint64_t count_failed(const metrics *m, const char *model)
{
    const char *const *labels;
    double n = 0;
    for (size_t i = 0; (labels = metrics_labels(m, METRIC_REQUESTS, i)); i++) {
        bool is_again = strncmp(labels[0], "kserve_", 7) == 0 || strncmp(labels[0], "ollama_", 7) == 0 ||
                        strncmp(labels[0], "llama_", 6) == 0;
        if (!is_again && strcmp(labels[1], model) == 0 && labels[2][0] >= '4')
            n += metrics_get(m, METRIC_REQUESTS, labels[0], labels[1], labels[2]);
    }
    return (uint64_t)n;
}

/* Under `name`, of model calls since the gateway started, by the stages that /metrics tells of. */
static void put_model_stats(buf *out, const metrics *m, const char *name, const char *model,
                            const char *version)
{
    uint64_t n = metrics_seen(m, METRIC_STAGE_S, model, "total");
    double total = metrics_get(m, METRIC_STAGE_S, model, "total", NULL);
    double queue = metrics_get(m, METRIC_STAGE_S, model, "queue", NULL);
    uint64_t hits = (uint64_t)metrics_get(m, METRIC_CACHE, "model", model, "hit");
    uint64_t misses = (uint64_t)metrics_get(m, METRIC_CACHE, "model", model, "miss");
    buf_putc(out, '{');
    json_put_text(out, "name", name);
    json_put_text(out, "version", version);
    buf_printf(out, ",\"last_inference\":%.0f,\"inference_count\":%llu,\"execution_count\":%llu",
               metrics_get(m, METRIC_LAST_CALL, model, NULL, NULL) * 1000, (unsigned long long)n,
               (unsigned long long)n);
    buf_printf(out, ",\"inference_stats\":{\"success\":{\"count\":%llu,\"ns\":%.0f}", (unsigned long long)n,
               total * 1e9);
    put_duration(out, "fail", count_failed(m, model), 0);
    put_duration(out, "queue", metrics_seen(m, METRIC_STAGE_S, model, "queue"), queue);
    put_duration(out, "compute_input", n, 0);
    put_duration(out, "compute_infer", n, total - queue);
    put_duration(out, "compute_output", n, 0);
    put_duration(out, "cache_hit", hits, 0);
    put_duration(out, "cache_miss", misses, 0);
    buf_puts(out, "},\"response_stats\":{},\"batch_stats\":[],\"memory_usage\":[]}");
}

void kserve_stats(gateway_request *rq)
{
    named m = {.info = NULL};
    buf out = {0};
    api_error e = {0};
    int rc = read_named(rq, &m, &e);
    buf_puts(&out, "{\"model_stats\":[");
    if (rc == 0) put_model_stats(&out, rq->metrics, m.model, m.served, m.info ? m.info->version : "");
    buf_puts(&out, "]}");
    kserve_about_answer(rq, rc, &out, &e);
}

void kserve_stats_all(gateway_request *rq)
{
    buf out = {0};
    const char *comma = "";
    buf_puts(&out, "{\"model_stats\":[");
    for (size_t i = 0; i < registry_count_models(rq->registry); i++) {
        const char *model = registry_model_at(rq->registry, i)->model;
        const Shoal__V1__ModelInfo *info = calls_info(rq->calls, model, NULL);
        if (!admission_shows(rq, model)) continue;
        buf_puts(&out, comma);
        put_model_stats(&out, rq->metrics, model, model, info ? info->version : "");
        comma = ",";
    }
    buf_puts(&out, "]}");
    kserve_about_answer(rq, 0, &out, NULL);
}

/* ---- settings ------------------------------------------------------------------------------------ */

/* An empty object, or none, asks; members would set. */
static int refuse_changes(const gateway_request *rq, const char *what, api_error *e)
{
    size_t n;
    const char *body = request_body(rq, &n);
    json_t *asked = NULL;
    int rc = n ? fields_parse(&asked, body, n, e) : 0;
    if (rc == 0 && json_object_size(asked) > 0)
        rc = api_error_bad(
            e, NULL, "%s cannot be changed by requests: shoal.yaml and the command line say them", what);
    json_drop(asked);
    return rc;
}

void kserve_trace(gateway_request *rq)
{
    named m = {.info = NULL};
    buf out = {0};
    api_error e = {0};
    int rc = strstr(request_path(rq), "/models/") ? read_named(rq, &m, &e) : 0;
    if (rc == 0) rc = refuse_changes(rq, "trace settings", &e);
    buf_puts(&out,
             "{\"trace_level\":[\"OFF\"],\"trace_rate\":\"0\",\"trace_count\":\"0\",\"log_frequency\":\"0\","
             "\"trace_file\":\"\",\"trace_mode\":\"triton\"}");
    kserve_about_answer(rq, rc, &out, &e);
}

void kserve_logging(gateway_request *rq)
{
    buf out = {0};
    api_error e = {0};
    int rc = refuse_changes(rq, "log settings", &e);
    buf_puts(&out, "{\"log_file\":\"\",\"log_info\":true,\"log_warning\":true,\"log_error\":true,"
                   "\"log_verbose_level\":0,\"log_format\":\"default\"}");
    kserve_about_answer(rq, rc, &out, &e);
}

/* ---- shared memory ------------------------------------------------------------------------------- */

/* Of one region: there is none. */
void kserve_memory_status(gateway_request *rq)
{
    buf out = {0};
    api_error e = {0};
    int rc = strstr(request_path(rq), "/region/")
                 ? api_error_set(&e, 404, "invalid_request_error", "not_found", "name",
                                 "no shared memory region is registered: none are offered here")
                 : 0;
    buf_puts(&out, "[]");
    kserve_about_answer(rq, rc, &out, &e);
}

void kserve_memory_register(gateway_request *rq)
{
    api_error e = {0};
    api_error_bad(&e, NULL, "shared memory is not offered: send tensors in the request");
    request_error(rq, &e);
}

/* Clients do this before they begin, to be sure. */
void kserve_memory_unregister(gateway_request *rq)
{
    buf out = {0};
    buf_puts(&out, "{}");
    kserve_about_answer(rq, 0, &out, NULL);
}
