/* service_info.c: what this worker is and how it is: Describe, GetStats, health. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "grpc/health/v1/health.pb-c.h"
#include "shoal/v1/worker.pb-c.h"
#include "worker/service.h"
#include "worker/worker_identity.h"

static bool info_generates(const backend_about *a)
{
    return a->task == TASK_GENERATE || a->task == TASK_SEQ2SEQ;
}

static void describe_sampling(const backend_about *a, Shoal__V1__ModelInfo *m, Shoal__V1__Sampling *sampling)
{
    if (!a->sampling.said || !info_generates(a)) return;
#define DESCRIBE(field, min, max) sampling->field = a->sampling.field;
    SAMPLING_TABLE(DESCRIBE)
#undef DESCRIBE
    sampling->unsaid = SAMPLING_ALL & ~a->sampling.said;
    m->sampling = sampling;
}

static void info_describe_network(const backend_about *a, Shoal__V1__ModelInfo *m)
{
    const chat_template *t = a->chat_template;
    if (a->config) m->n_vocab = (uint32_t)a->config->n_vocab;
    if (a->config) m->n_embd = (uint32_t)a->config->n_embd;
    m->n_ctx = (uint32_t)a->n_ctx;
    m->n_ctx_model = a->config ? (uint32_t)a->config->n_ctx : 0;
    m->longer_by = (char *)a->longer_by;
    m->default_chat_template = a->default_chat_template;
    m->has_chat_template = t != NULL;
    if (!t) return;
    m->reasons = chat_template_thinking(t) != NULL;
    m->tool_syntax = (char *)chat_template_calls_label(t, NULL);
    m->template_reads_clock = chat_template_reads_clock(t);
}

typedef struct adapter_list {
    char name[WORKER_ADAPTERS_MAX][64], digest[WORKER_ADAPTERS_MAX][65];
    char *names[WORKER_ADAPTERS_MAX], *digests[WORKER_ADAPTERS_MAX];
} adapter_list;

static size_t list_adapters(const worker *w, adapter_list *l)
{
    size_t n = 0;
    const backend *b = &w->backend;
    if (!b->ops->adapter) return 0;
    for (; n < WORKER_ADAPTERS_MAX && b->ops->adapter(b->state, n, l->name[n], l->digest[n]); n++) {
        l->names[n] = l->name[n];
        l->digests[n] = l->digest[n];
    }
    return n;
}

enum { COLUMNS_MAX = 4096 };

/* What a row of a model that scores is made of: readings where it takes windows of them, else features. */
static size_t list_columns(const series_spec *spec, char ***ret)
{
    size_t n = !spec ? 0 : spec->n_channels ? spec->n_channels : spec->n_features;
    if (n == 0 || n > COLUMNS_MAX) return 0;
    *ret = (char **)(spec->n_channels ? spec->channels : spec->names);
    return *ret ? n : 0;
}

typedef struct token_texts {
    char bos[128], eos[128];
} token_texts;

static void info_put_token(const tokenizer *t, int32_t id, char ret[128])
{
    size_t n = 0;
    const char *s = tokenizer_piece(t, id, &n);
    snprintf(ret, 128, "%.*s", s ? (int)n : 0, s ? s : "");
}

/* What only few ask for. */
static void describe_texts(const backend_about *a, Shoal__V1__ModelInfo *m, token_texts *texts)
{
    const tokenizer *t = a->tokenizer;
    if (a->chat_template) m->chat_template = (char *)chat_template_source(a->chat_template);
    if (!t) return;
    info_put_token(t, tokenizer_bos(t), texts->bos);
    info_put_token(t, tokenizer_eos(t), texts->eos);
    m->bos_token = texts->bos;
    m->eos_token = texts->eos;
}

/* An empty message, as most are, asks for nothing more. */
static int read_describe(const uint8_t *msg, size_t n, bool *ret_texts, shoal_err *err)
{
    ProtobufCMessage *r = NULL;
    *ret_texts = false;
    if (n == 0) return 0;
    int rc = service_call_unpack(&shoal__v1__describe_request__descriptor, msg, n, &r, err);
    if (rc != 0) return rc;
    *ret_texts = ((Shoal__V1__DescribeRequest *)r)->texts;
    protobuf_c_message_free_unpacked(r, NULL);
    return 0;
}

static void describe_backend(const backend_about *a, Shoal__V1__ModelInfo *m)
{
    m->task = (char *)task_name(a->task);
    m->architecture = (char *)a->architecture;
    m->version = (char *)a->version;
    m->quantisation = (char *)a->quantisation;
    m->vocabulary = (char *)a->vocabulary;
    m->exact_resume = a->exact_resume;
    m->labels = (char **)a->labels;
    m->n_labels = a->n_labels;
    m->n_columns = list_columns(a->rows, &m->columns);
    m->n_threads = (uint32_t)a->n_threads;
    m->n_parallel = (uint32_t)a->n_parallel;
    m->n_parameters = a->facts.n_parameters;
    m->file_bytes = a->facts.file_bytes;
    m->file_time_s = a->facts.file_time_s;
    info_describe_network(a, m);
}

void service_describe(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    worker *w = user;
    const backend_about *about = &w->backend.about;
    isa chosen = ISA_SCALAR;
    isa_choose(&chosen, NULL);
    Shoal__V1__ModelInfo m = SHOAL__V1__MODEL_INFO__INIT;
    Shoal__V1__Sampling sampling = SHOAL__V1__SAMPLING__INIT;
    Shoal__V1__Capabilities can = worker_capabilities(w);
    adapter_list l;
    m.adapters = l.names;
    m.adapter_digests = l.digests;
    m.n_adapters = m.n_adapter_digests = list_adapters(w, &l);
    m.name = w->name;
    m.digest = w->digest;
    m.identity = w->identity;
    m.capabilities = &can;
    if (w->backend.ops->device) m.device = (char *)w->backend.ops->device;
    m.isa = (char *)isa_name(chosen);
    m.pid = (uint32_t)getpid();
    m.load_ms = w->load_ms;
    describe_backend(about, &m);
    describe_sampling(about, &m, &sampling);
    token_texts texts;
    bool more;
    shoal_err err;
    int rc = read_describe(msg, n, &more, &err);
    if (more) describe_texts(about, &m, &texts);
    if (rc == 0)
        service_call_reply(w, c, &m.base);
    else
        grpc_call_end(c, grpc_status_from_err(rc), err.message);
}

/* Backends that have nothing to count leave that to the services. */
static engine_stats get_stats(const worker *w)
{
    const backend *b = &w->backend;
    engine_stats s = {.n_running = w->blocking.n + w->sounds.n_jobs,
                      .n_requests = w->blocking.n_scored,
                      .n_failed = w->blocking.n_failed,
                      .n_cancelled = w->blocking.n_cancelled};
    if (b->ops->stats)
        b->ops->stats(b->state, &s);
    else if (w->stage_host)
        service_stage_stats(w, &s);
    return s;
}

static void info_put_stats(const worker *w, Shoal__V1__Stats *m)
{
    engine_stats s = get_stats(w);
    m->n_running = (uint32_t)s.n_running;
    m->n_waiting = (uint32_t)s.n_waiting;
    m->queue_ms = s.queue_ms;
    m->kv_pages_used = s.kv_pages_used;
    m->kv_pages_kept = s.kv_pages_kept;
    m->kv_pages_total = s.kv_pages_total;
    m->n_requests = s.n_requests;
    m->n_failed = s.n_failed;
    m->n_cancelled = s.n_cancelled;
    m->n_prompt_tokens = s.n_prompt_tokens;
    m->n_generated_tokens = s.n_generated_tokens;
    m->n_steps = s.n_steps;
    m->prefill_tokens_per_s = s.prefill_tokens_per_s;
    m->decode_tokens_per_s = s.decode_tokens_per_s;
    m->step_ms = s.step_ms;
    m->prefill_fixed_ms = s.prefill_cost.fixed_ms;
    m->prefill_token_ms = s.prefill_cost.unit_ms;
    m->prefill_reach = s.prefill_cost.reach;
    m->decode_fixed_ms = s.decode_cost.fixed_ms;
    m->decode_stream_ms = s.decode_cost.unit_ms;
}

/* A poll comes every 200 ms: while nothing works, only this thread can have waited for a core, and a look at all of
 * them every second, as the meter has it, is enough. */
static void look_at_process(worker *w, const Shoal__V1__Stats *m)
{
    uint64_t read_ns = w->meter.read_ns;
    meter_read(&w->meter, clock_ns());
    bool works =
        m->n_running || m->n_waiting || m->n_steps != w->seen.n_steps || m->n_requests != w->seen.n_requests;
    if (works || w->meter.read_ns != read_ns) {
        w->seen.n_steps = m->n_steps;
        w->seen.n_requests = m->n_requests;
        w->seen.rss_bytes = sys_rss_bytes(0);
        w->seen.run_delay_ns = sys_run_delay_ns();
    } else {
        uint64_t own = sys_thread_run_delay_ns();
        if (own > w->seen.run_delay_ns) w->seen.run_delay_ns = own;
    }
}

void service_stats(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    worker *w = user;
    Shoal__V1__Stats m = SHOAL__V1__STATS__INIT;
    info_put_stats(w, &m);
    look_at_process(w, &m);
    m.rss_bytes = w->seen.rss_bytes;
    m.run_delay_ms = w->seen.run_delay_ns / 1000000;
    m.cpu_s = w->meter.cpu_s;
    m.energy_j = w->meter.joules;
    service_call_reply(w, c, &m.base);
}

/* ---- grpc.health.v1 ---------------------------------------------------------------------------- */

typedef Grpc__Health__V1__HealthCheckResponse health_response;
typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus serving_status;
#define STATUS(s) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##s

static health_response response(serving_status s)
{
    health_response m = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    m.status = s;
    return m;
}

/* "" means the server as a whole. */
static serving_status status_of(const worker *w, const char *service)
{
    if (*service && strcmp(service, "shoal.v1.Worker") != 0) return STATUS(SERVICE_UNKNOWN);
    return w->draining ? STATUS(NOT_SERVING) : STATUS(SERVING);
}

/* False when the call was ended because its message could not be read. */
static bool asked_status(worker *w, grpc_call *c, const uint8_t *msg, size_t n, serving_status *ret)
{
    ProtobufCMessage *m;
    shoal_err err;
    int rc = service_call_unpack(&grpc__health__v1__health_check_request__descriptor, msg, n, &m, &err);
    if (rc != 0) {
        grpc_call_end(c, grpc_status_from_err(rc), err.message);
        return false;
    }
    *ret = status_of(w, ((Grpc__Health__V1__HealthCheckRequest *)m)->service);
    protobuf_c_message_free_unpacked(m, NULL);
    return true;
}

void service_health_check(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    serving_status s;
    if (!asked_status(user, c, msg, n, &s)) return;
    if (s == STATUS(SERVICE_UNKNOWN)) {
        grpc_call_end(c, GRPC_NOT_FOUND, "there is no such service here");
        return;
    }
    health_response m = response(s);
    service_call_reply(user, c, &m.base);
}

static void watcher_gone(void *user, grpc_call *c)
{
    worker *w = user;
    for (size_t i = 0; i < w->n_watchers; i++)
        if (w->watchers[i] == c) {
            w->watchers[i] = w->watchers[--w->n_watchers];
            return;
        }
}

void service_health_watch(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    worker *w = user;
    serving_status s;
    if (!asked_status(w, c, msg, n, &s)) return;
    if (w->n_watchers == MAX_HEALTH_WATCHERS) {
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "too many health watchers");
        return;
    }
    health_response m = response(s);
    if (w->draining || service_call_send(w, c, &m.base) != 0) {
        grpc_call_end(c, GRPC_UNAVAILABLE, "shutting down");
        return;
    }
    w->watchers[w->n_watchers++] = c;
    grpc_call_on_cancel(c, watcher_gone, w);
}

void service_health_drain(worker *w)
{
    health_response m = response(STATUS(NOT_SERVING));
    while (w->n_watchers > 0) {
        grpc_call *c = w->watchers[--w->n_watchers];
        service_call_send(w, c, &m.base);
        grpc_call_end(c, GRPC_UNAVAILABLE, "shutting down");
    }
}
