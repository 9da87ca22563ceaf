/* worker.c: a worker's parts put together and taken down in order, and the process around them (signals, the
 * parent's death, malloc); see worker.h. Loop thread. */
#define _GNU_SOURCE
#include "worker/worker.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/exit_guard.h"
#include "base/progress.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "infer/context_plan.h"
#include "model/packed/regroup.h"
#include "wire/loop.h"
#include "worker/service.h"
#include "worker/worker_identity.h"

enum {
    MAX_FDS = 256, /* its model, its listener, and a few connections of gateways */
    STAGE_KEEPALIVE_MS = 1000,
    STAGE_ANSWER_MS = 2000,
    GATEWAY_KEEPALIVE_MS = 10000,
};

static const grpc_method methods[] = {
    {"/shoal.v1.Worker/Describe", service_describe},
    {"/shoal.v1.Worker/Generate", service_generate},
    {"/shoal.v1.Worker/Likelihood", service_likelihood},
    {"/shoal.v1.Worker/Classify", service_classify},
    {"/shoal.v1.Worker/Tag", service_tag},
    {"/shoal.v1.Worker/Embed", service_embed},
    {"/shoal.v1.Worker/DetectSpeech", service_detect},
    {"/shoal.v1.Worker/Score", service_score},
    {"/shoal.v1.Worker/ClassifyImage", service_classify_image},
    {"/shoal.v1.Worker/FillMask", service_fill_mask},
    {"/shoal.v1.Worker/Tokenize", service_tokenize},
    {"/shoal.v1.Worker/Detokenize", service_detokenize},
    {"/shoal.v1.Worker/Render", service_render},
    {"/shoal.v1.Worker/GetStats", service_stats},
    {"/grpc.health.v1.Health/Check", service_health_check},
    {"/grpc.health.v1.Health/Watch", service_health_watch},
};

/* ---- the worker in a loop ---------------------------------------------------------------------- */

static void worker_free(worker *w)
{
    service_generate_close(w);
    service_transcribe_close(w);
    voice_free(w->voice);
    if (w->arbiter) progress_publish(NULL);
    arbiter_close(w->arbiter);
    intake_done(&w->intake);
    model_free(w->model);
    buf_done(&w->scratch);
    if (w->socket) unlink(w->socket);
    free(w->socket);
    free(w->name);
    free(w->path);
    free(w);
}

static void bridge_closed(void *user)
{
    worker *w = user;
    void (*closed)(void *) = w->closed;
    void *closed_user = w->closed_user;
    worker_free(w);
    if (closed) closed(closed_user);
}

static void close_bridge(worker *w)
{
    if (w->bridge)
        bridge_close(w->bridge, bridge_closed, w);
    else
        bridge_closed(w);
}

/* No call is left: the engine's last events only free their jobs. Those that block on other threads find the
 * engine stopped, and features that are being made there end first. */
static void server_closed(void *user)
{
    worker *w = user;
    if (w->n_blocking > 0) {
        if (w->engine) engine_stop(w->engine);
        w->closing = true;
        return;
    }
    engine_free(w->engine);
    w->engine = NULL;
    stage_link_close(w->link);
    service_stage_close(w);
    if (w->bridge) bridge_deliver(w->bridge);
    if (w->n_hearing > 0)
        w->heard_all = close_bridge;
    else
        close_bridge(w);
}

void service_score_ended(worker *w)
{
    server_closed(w);
}

void worker_close(worker *w, void (*closed)(void *user), void *user)
{
    w->closed = closed;
    w->closed_user = user;
    w->draining = true;
    if (w->server)
        grpc_server_close(w->server, server_closed, w);
    else
        server_closed(w);
}

void worker_drain(worker *w, void (*done)(void *user), void *user)
{
    LOG(LOG_INFO, "worker", "draining", LOG_S("model", w->name));
    w->draining = true;
    service_health_drain(w);
    service_stage_drain(w);
    grpc_server_drain(w->server, done, user);
}

static int load_trees(worker *w, const worker_options *o, sha256_digest *ret_digest, shoal_err *err)
{
    if (o->regroup || o->engine.kv_type != KV_AS_WEIGHTS || o->n_adapters > 0)
        return intake_refuse_of_trees(o->path, err);
    int rc = intake_open_trees(&w->intake, o->path, err);
    w->task = TASK_SCORE;
    w->version = w->quantisation = "";
    return rc == 0 ? scorer_digest(w->intake.trees, ret_digest, err) : rc;
}

/* Equal ones mean the same by every id. */
static int digest_vocabulary(const tokenizer *t, char ret_hex[65], shoal_err *err)
{
    sha256 *h = sha256_new();
    sha256_digest d;
    if (!h) return err_nomem(err);
    for (size_t i = 0, n = tokenizer_vocab_size(t); i < n; i++) {
        size_t len = 0;
        bool special = false;
        const char *text = tokenizer_bytes(t, (int32_t)i, &len, &special);
        uint64_t head = (uint64_t)len << 1 | special;
        sha256_add(h, &head, sizeof head);
        if (text) sha256_add(h, text, len);
    }
    sha256_end(h, &d);
    sha256_hex(&d, ret_hex);
    return 0;
}

/* A syntax that is guessed is better known before calls are missed. */
static void tell_tool_syntax(const worker *w)
{
    const chat_template *t = model_chat_template(w->model);
    if (!t) return;
    if (chat_template_calls_source(t) == CALLS_UNKNOWN)
        LOG(LOG_WARN, "worker", "tool_syntax_unknown", LOG_S("model", w->name),
            LOG_S(
                "notice",
                "the chat template has tools, but writes calls in no syntax that is known: calls are read as "
                "<tool_call>{\"name\": ..., \"arguments\": ...}</tool_call>, others stay text"));
    else
        LOG(LOG_INFO, "worker", "tool_syntax", LOG_S("model", w->name),
            LOG_S("syntax", chat_template_calls_label(t, NULL)));
}

static int load_network(worker *w, const worker_options *o, sha256_digest *ret_digest, shoal_err *err)
{
    model_options mo = {.expect_sha256 = o->sha256,
                        .no_tokenizer = o->layers.first > 0,
                        .regroup = o->regroup,
                        .store = &o->store};
    int rc = model_open(&w->model, o->path, &mo, err);
    if (rc == 0) rc = model_check_text(w->model, err);
    if (rc == 0) rc = model_digest(w->model, ret_digest, err);
    if (rc != 0) return rc;
    w->task = model_get_config(w->model)->task;
    w->version = model_version(w->model);
    w->quantisation = model_file_type(w->model);
    const tokenizer *t = model_tokenizer(w->model);
    if (t && (rc = digest_vocabulary(t, w->vocabulary, err)) != 0) return rc;
    if (model_notice(w->model))
        LOG(LOG_WARN, "worker", "model_notice", LOG_S("model", w->name),
            LOG_S("notice", model_notice(w->model)));
    tell_tool_syntax(w);
    return 0;
}

static int load(worker *w, const worker_options *o, shoal_err *err)
{
    sha256_digest digest;
    int rc = (scorer_holds(o->path) ? load_trees : load_network)(w, o, &digest, err);
    if (rc != 0) return rc;
    w->facts = model_facts_of(w->model, o->path);
    sha256_hex(&digest, w->digest);
    if (w->model && (rc = regroup_identity(w->model, &digest, err)) != 0) return rc;
    /* A folder is not one file that model_open could compare. */
    if (o->sha256 && strcasecmp(o->sha256, w->digest) != 0)
        return err_set(err, SHOAL_EDIGEST, "%s: its SHA-256 is %s, but %s is pinned", o->path, w->digest,
                       o->sha256);
    sha256_hex(&digest, w->digest); /* answers of regrouped weights are told apart from the others */
    return 0;
}

static int start_stage(worker *w, const worker_options *o, shoal_err *err)
{
    stage_options so = {.part = o->layers,
                        .n_threads = w->n_threads,
                        .n_ctx = o->engine.n_ctx,
                        .max_batch = o->engine.max_batch,
                        .kv_bytes = o->engine.kv_bytes,
                        .kv_type = o->engine.kv_type,
                        .arbiter = w->arbiter};
    if (o->n_stages > 0 || o->n_adapters > 0)
        return err_set(err, SHOAL_EINVALID,
                       "a stage of layers %zu:%zu has no stages and no adapters of its own", o->layers.first,
                       o->layers.end);
    return service_stage_open(w, &so, err);
}

static int link_stages(worker *w, const worker_options *o, shoal_err *err)
{
    const model_config *c = model_get_config(w->model);
    int rc = stage_check_part(c, o->layers, err);
    if (rc != 0) return rc;
    if (o->n_stages == 0)
        return o->layers.end == c->n_layer
                   ? 0
                   : err_set(err, SHOAL_EINVALID,
                             "layers %zu:%zu of %zu need the addresses of the others (--stage)",
                             o->layers.first, o->layers.end, c->n_layer);
    stage_link_options lo = {.addresses = o->stages,
                             .n = o->n_stages,
                             .digest = w->digest,
                             .name = w->name,
                             .part = o->layers,
                             .n_layer = c->n_layer,
                             .n_embd = c->n_embd,
                             .wire = o->wire,
                             .kv_type = o->engine.kv_type,
                             .member = o->member};
    return stage_link_open(&w->link, &lo, err);
}

static int start_engine(worker *w, const worker_options *o, shoal_err *err)
{
    engine_options eo = o->engine;
    w->n_threads = eo.n_threads > 0 ? eo.n_threads : sys_core_count();
    eo.n_threads = w->n_threads;
    eo.arbiter = w->arbiter;
    int rc = bridge_new(&w->bridge, w->loop, err);
    eo.burst = bridge_burst;
    eo.burst_user = w->bridge;
    if (rc == 0) rc = service_generate_open(w, err);
    if (rc == 0) rc = service_transcribe_open(w, err);
    if (rc == 0) rc = service_detect_open(w, o->path, err);
    if (rc || w->voice) return rc;
    if (o->layers.first > 0) return start_stage(w, o, err);
    if (o->layers.end > 0 || o->n_stages > 0) rc = link_stages(w, o, err);
    if (rc != 0) return rc;
    if (w->link) eo.shards = stage_link_shards(w->link);
    rc = engine_new(&w->engine, w->model, &eo, err);
    if (rc == 0) rc = intake_open(&w->intake, o->path, w->model, w->engine, err);
    if (rc == 0 && w->intake.notice)
        LOG(LOG_WARN, "worker", "model_notice", LOG_S("model", w->name), LOG_S("notice", w->intake.notice));
    for (size_t i = 0; rc == 0 && i < o->n_adapters; i++)
        rc = engine_adapter_load(w->engine, o->adapters[i].name, o->adapters[i].path, 1, err);
    return rc;
}

/* Trees take turns on one core with nobody: a row is scored in microseconds. */
static int start_model(worker *w, const worker_options *o, shoal_err *err)
{
    w->n_threads = 1;
    if (!w->model) return 0;
    w->sampling = model_get_config(w->model)->sampling;
    sampling_override(&w->sampling, &o->sampling);
    return start_engine(w, o, err);
}

/* A gateway or a first stage whose machine lost its power closes nothing. The connection of a first stage
 * keeps the next one out (service_stage.c), so that it is found soon; calls of a gateway cost no more than
 * their computing, and a gateway that stood still for some seconds should find them again. */
static void set_keepalive(const worker *w, http_limits *ret)
{
    bool strict = w->layers.first > 0;
    ret->keepalive_ms = strict ? STAGE_KEEPALIVE_MS : GATEWAY_KEEPALIVE_MS;
    ret->keepalive_timeout_ms = strict ? STAGE_ANSWER_MS : GATEWAY_KEEPALIVE_MS;
}

static int listen_at(worker *w, const char *address, shoal_err *err)
{
    if (strncmp(address, "unix:", 5) == 0) {
        w->socket = strdup(address + 5);
        if (!w->socket) return err_nomem(err);
        unlink(w->socket); /* what a killed predecessor left */
    }
    /* The only peers are gateways of this site: their limits on clients' bodies are the ones that count. */
    http_limits limits = {.max_body_bytes = 160u << 20, /* a sound file */
                          .max_streams = 1024,
                          .max_resets = SIZE_MAX, /* clients of gateways leave as they like */
                          .idle_timeout_ms = UINT32_MAX,
                          .max_write_backlog = 64u << 20};
    set_keepalive(w, &limits);
    int rc = grpc_server_new(&w->server, w->loop, methods, sizeof methods / sizeof *methods, w, &limits, err);
    if (rc == 0) rc = grpc_server_add_streams(w->server, &service_transcribe, 1, w, err);
    if (rc == 0) rc = grpc_server_add_streams(w->server, &service_vote, 1, w, err);
    if (rc == 0)
        rc = grpc_server_add_streams(w->server, service_stage_methods, SERVICE_N_STAGE_METHODS, w, err);
    return rc == 0 ? grpc_server_listen(w->server, address, err) : rc;
}

static void log_start(const worker *w, const engine_options *o)
{
    size_t served = w->engine ? engine_ctx(w->engine) : 0,
           own = served ? model_get_config(w->model)->n_ctx : 0;
    isa chosen = ISA_SCALAR;
    isa_choose(&chosen, NULL);
    LOG(LOG_INFO, "worker", "ready", LOG_S("model", w->name), LOG_S("task", task_name(w->task)),
        LOG_S("digest", w->digest), LOG_S("identity", w->identity), LOG_S("version", w->version),
        LOG_S("quantisation", w->quantisation), LOG_S("isa", isa_name(chosen)),
        LOG_I("threads", w->n_threads), LOG_I("context", served), LOG_I("model_context", own),
        LOG_S("longer_by", own ? context_plan_key(w->model, o, served) : ""),
        LOG_I("first_layer", w->layers.first), LOG_I("end_layer", w->layers.end), LOG_I("pid", getpid()),
        LOG_F("load_ms", w->load_ms));
}

/* Before it loads anything: from then on the agent sees whether it gets on. */
static int join_others(worker *w, const worker_options *o, shoal_err *err)
{
    if (o->arbiter_fd < 0) return 0;
    int rc = arbiter_join(&w->arbiter, o->arbiter_fd, o->arbiter_slot, err);
    if (rc == 0) progress_publish(arbiter_progress(w->arbiter, o->arbiter_slot));
    return rc;
}

int worker_new(worker **ret, uv_loop_t *loop, const worker_options *o, shoal_err *err)
{
    uint64_t start = clock_ns();
    worker *w = calloc(1, sizeof *w);
    if (!w) return err_nomem(err);
    w->loop = loop;
    w->pool.loop = loop;
    w->no_vad = o->no_vad;
    w->sound_bytes_max = o->sound_bytes ? o->sound_bytes : WORKER_SOUND_BYTES;
    w->name = strdup(o->name);
    w->path = strdup(o->path);
    w->layers = o->layers;
    int rc = w->name && w->path ? join_others(w, o, err) : err_nomem(err);
    progress_begin();
    if (rc == 0) rc = load(w, o, err);
    if (rc == 0) rc = start_model(w, o, err);
    if (rc == 0) worker_identity(w->identity, w, o);
    w->resumes_exactly = worker_resumes_exactly(o);
    if (rc == 0) rc = listen_at(w, o->address, err);
    progress_end();
    if (rc != 0) {
        worker_close(w, NULL, NULL);
        return rc;
    }
    w->load_ms = clock_ms_since(start);
    meter_open(&w->meter);
    log_start(w, &o->engine);
    *ret = w;
    return 0;
}

/* ---- the process around it --------------------------------------------------------------------- */

static const int SIGNALS[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
#define N_SIGNALS (sizeof SIGNALS / sizeof *SIGNALS)
enum { DRAIN_MAX_MS = 86400000, EXIT_GRACE_MS = 5000 };

typedef struct process {
    uv_loop_t loop;
    worker *worker;
    uv_signal_t signals[N_SIGNALS];
    uv_timer_t parent_check;
    uv_check_t turn;
    int parent_pid;
    bool stopping;
} process;

static void close_handles(process *p)
{
    for (size_t i = 0; i < N_SIGNALS; i++) uv_close((uv_handle_t *)&p->signals[i], NULL);
    uv_close((uv_handle_t *)&p->parent_check, NULL);
    uv_close((uv_handle_t *)&p->turn, NULL);
}

static void drained(void *user)
{
    process *p = user;
    exit_guard_stopping(EXIT_GRACE_MS, 0);
    worker_close(p->worker, NULL, NULL);
    close_handles(p);
}

static void signalled(uv_signal_t *h, int signum)
{
    process *p = h->data;
    /* Those reach the whole group: the parent has them too, and decides when we stop. */
    if (p->parent_pid > 0 && signum != SIGUSR1) return;
    if (p->stopping) _exit(128 + signum);
    p->stopping = true;
    worker_drain(p->worker, drained, p);
}

static void check_parent(uv_timer_t *t)
{
    process *p = t->data;
    if (getppid() != p->parent_pid) _exit(1);
}

static void note_turn(uv_check_t *c)
{
    progress_tick();
}

static void watch_process(process *p)
{
    uv_check_init(&p->loop, &p->turn);
    uv_check_start(&p->turn, note_turn);
    for (size_t i = 0; i < N_SIGNALS; i++) {
        uv_signal_init(&p->loop, &p->signals[i]);
        p->signals[i].data = p;
        uv_signal_start(&p->signals[i], signalled, SIGNALS[i]);
    }
    if (p->parent_pid <= 0) /* else the parent decides, and kills what does not end */
        exit_guard_start(
            &(exit_guard){.component = "worker", .stop_ms = DRAIN_MAX_MS, .cut_ms = EXIT_GRACE_MS});
    uv_timer_init(&p->loop, &p->parent_check);
    p->parent_check.data = p;
    if (p->parent_pid > 0) uv_timer_start(&p->parent_check, check_parent, 500, 500);
}

/* A worker never outlives the process that started it: it would hold memory and cores for nobody. The
 * kernel's word is instant; the timer is for kernels without it, the check for a parent already gone. */
static bool tie_to_parent(int parent_pid)
{
    if (parent_pid <= 0) return true;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return getppid() == parent_pid;
}

/* Many models share a small machine: one malloc arena instead of one a thread keeps each resident
 * set near what is really in use, and freed load buffers go back to the kernel. */
static void tune_memory(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, 256 << 10);
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
}

enum { EXIT_FILE = 79 }; /* agent/agent.h: WORKER_EXIT_FILE */

static int exit_code_for(int rc)
{
    switch (rc) {
    case SHOAL_EFORMAT:
    case SHOAL_ENOTFOUND:
    case SHOAL_EDIGEST: return EXIT_FILE;
    case SHOAL_EUNSUPPORTED:
    case SHOAL_EINVALID: return EX_CONFIG;
    default: return 1;
    }
}

static int failed_start(const worker_options *o, const shoal_err *err)
{
    LOG(LOG_ERROR, "worker", "cannot_start", LOG_S("model", o->name), LOG_S("path", o->path),
        LOG_S("error", shoal_err_name(err->code)), LOG_S("message", err->message));
    if (write(STDOUT_FILENO, err->message, strlen(err->message)) < 0) { /* the log line has it as well */
    }
    return exit_code_for(err->code);
}

int worker_run(const worker_options *o)
{
    if (!tie_to_parent(o->parent_pid)) return 1;
    tune_memory();
    process p = {.parent_pid = o->parent_pid};
    shoal_err err;
    int code = 0;
    if (loop_open(&p.loop, MAX_FDS, &err) != 0) return failed_start(o, &err);
    watch_process(&p);
    if (worker_new(&p.worker, &p.loop, o, &err) != 0) {
        code = failed_start(o, &err);
        close_handles(&p);
    } else {
        malloc_trim(0); /* the loader's buffers */
    }
    progress_run_loop();
    uv_run(&p.loop, UV_RUN_DEFAULT);
    uv_loop_close(&p.loop);
    if (code == 0) LOG(LOG_INFO, "worker", "stopped", LOG_S("model", o->name));
    return code;
}
