/* worker.c: a worker's parts put together and taken down in order, and the process around them (signals, the
 * parent's death, malloc); see worker.h. Loop thread. */
#define _GNU_SOURCE
#include "worker/worker.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/crash.h"
#include "os/exit_guard.h"
#include "base/progress.h"
#include "base/sys.h"
#include "wire/loop.h"
#include "worker/service.h"
#include "worker/stuck.h"
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
    backend_close(&w->backend);
    if (w->arbiter) progress_publish(NULL);
    arbiter_close(w->arbiter);
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

/* No call is left: the backend's last events only free their jobs. Calls that block on other threads find it
 * stopped, and features that are being made there end first. */
static void worker_server_closed(void *user)
{
    worker *w = user;
    w->closing = true;
    worker_gate_close(w->gate);
    w->gate = NULL;
    backend_stop(&w->backend);
    if (w->blocking.n > 0) return;
    service_stage_close(w);
    if (w->bridge) bridge_deliver(w->bridge);
    if (w->sounds.n_jobs > 0)
        w->sounds.all_ended = close_bridge;
    else
        close_bridge(w);
}

void worker_blocking_ended(worker *w)
{
    worker_server_closed(w);
}

void worker_close(worker *w, void (*closed)(void *user), void *user)
{
    w->closed = closed;
    w->closed_user = user;
    w->draining = true;
    if (w->server)
        grpc_server_close(w->server, worker_server_closed, w);
    else
        worker_server_closed(w);
}

void worker_drain(worker *w, void (*done)(void *user), void *user)
{
    LOG(LOG_INFO, "worker", "draining", LOG_S("model", w->name));
    w->draining = true;
    service_health_drain(w);
    service_stage_drain(w);
    grpc_server_drain(w->server, done, user);
}

static int open_backend(worker *w, const backend_options *o, shoal_err *err)
{
    int rc = bridge_new(&w->bridge, w->loop, err);
    if (rc == 0) rc = service_generate_open(w, err);
    if (rc == 0) rc = backend_open(&w->backend, o, err);
    if (rc != 0) return rc;
    sha256_hex(&w->backend.digests.identity, w->digest);
    backend_env env = {.arbiter = w->arbiter, .burst = bridge_burst, .burst_user = w->bridge};
    rc = backend_start(&w->backend, o, &env, err);
    if (rc != 0) return rc;
    worker_identity(w->identity, w);
    return w->backend.ops->stage ? service_stage_open(w, o->engine.kv_type, err) : 0;
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

static int worker_listen_at(worker *w, const char *address, const worker_tls *tls, shoal_err *err)
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
    return rc == 0 ? worker_gate_listen(&w->gate, w->server, w->loop, address, tls, err) : rc;
}

static void note_number(const char *key, size_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", n);
    crash_fact(key, text);
}

static void note_facts(const worker *w, const char *isa)
{
    const backend_about *a = &w->backend.about;
    crash_fact("model", w->name);
    crash_fact("task", task_name(a->task));
    crash_fact("backend", w->backend.ops->name);
    crash_fact("digest", w->digest);
    crash_fact("model_version", a->version);
    crash_fact("quantisation", a->quantisation);
    crash_fact("isa", isa);
    note_number("threads", (size_t)a->n_threads);
    note_number("context", a->n_ctx);
    note_number("parallel", a->n_parallel);
}

static void log_start(const worker *w)
{
    const backend_about *a = &w->backend.about;
    size_t own = a->n_ctx && a->config ? a->config->n_ctx : 0;
    isa chosen = ISA_SCALAR;
    isa_choose(&chosen, NULL);
    note_facts(w, isa_name(chosen));
    LOG(LOG_INFO, "worker", "ready", LOG_S("model", w->name), LOG_S("task", task_name(a->task)),
        LOG_S("backend", w->backend.ops->name), LOG_S("digest", w->digest), LOG_S("identity", w->identity),
        LOG_S("version", a->version), LOG_S("quantisation", a->quantisation), LOG_S("isa", isa_name(chosen)),
        LOG_I("threads", a->n_threads), LOG_I("context", a->n_ctx), LOG_I("model_context", own),
        LOG_S("longer_by", a->longer_by), LOG_I("first_layer", w->layers.first),
        LOG_I("end_layer", w->layers.end), LOG_I("pid", getpid()), LOG_F("load_ms", w->load_ms));
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
    w->sounds.no_vad = o->no_vad;
    w->sounds.n_bytes_max = o->sound_bytes ? o->sound_bytes : WORKER_SOUND_BYTES;
    w->name = strdup(o->model.name);
    w->path = strdup(o->model.path);
    w->layers = o->model.layers;
    int rc = w->name && w->path ? join_others(w, o, err) : err_nomem(err);
    progress_begin();
    if (rc == 0) rc = open_backend(w, &o->model, err);
    if (rc == 0) rc = worker_listen_at(w, o->address, &o->tls, err);
    progress_end();
    if (rc != 0) {
        worker_close(w, NULL, NULL);
        return rc;
    }
    w->load_ms = clock_ms_since(start);
    meter_open(&w->meter);
    log_start(w);
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
    uv_timer_t look;
    uv_check_t turn;
    int parent_pid;
    bool stopping;
    stuck stuck;
} process;

static void close_handles(process *p)
{
    for (size_t i = 0; i < N_SIGNALS; i++) uv_close((uv_handle_t *)&p->signals[i], NULL);
    uv_close((uv_handle_t *)&p->look, NULL);
    uv_close((uv_handle_t *)&p->turn, NULL);
}

static void drained(void *user)
{
    process *p = user;
    exit_guard_stopping(EXIT_GRACE_MS, 0);
    worker_close(p->worker, NULL, NULL);
    close_handles(p);
}

static void worker_signalled(uv_signal_t *h, int signum)
{
    process *p = h->data;
    /* Those reach the whole group: the parent has them too, and decides when we stop. */
    if (p->parent_pid > 0 && signum != SIGUSR1) return;
    if (p->stopping) _exit(128 + signum);
    p->stopping = true;
    worker_drain(p->worker, drained, p);
}

/* Whoever started it, an orchestrator say, sees that its port is open, and no more. So it ends, with a crash report. */
static void end_if_stuck(process *p)
{
    bool works = progress_works();
    stuck_sample now = {.now_ns = clock_ns(),
                        .progress = progress_count(),
                        .run_delay_ns = works ? sys_run_delay_sum_ns() : 0,
                        .works = works};
    if (!stuck_look(&p->stuck, &now)) return;
    LOG(LOG_ERROR, "worker", "hangs", LOG_S("model", p->worker ? p->worker->name : ""),
        LOG_S("reason", "its threads get on with nothing"), LOG_I("ms", STUCK_MS));
    abort();
}

static void look_around(uv_timer_t *t)
{
    process *p = t->data;
    if (p->parent_pid > 0 && getppid() != p->parent_pid) _exit(1);
    if (p->parent_pid <= 0) end_if_stuck(p); /* else the agent looks */
    log_tell_repeats(false);
}

static void worker_note_turn(uv_check_t *c)
{
    progress_tick();
}

static void watch_process(process *p)
{
    uv_check_init(&p->loop, &p->turn);
    uv_check_start(&p->turn, worker_note_turn);
    for (size_t i = 0; i < N_SIGNALS; i++) {
        uv_signal_init(&p->loop, &p->signals[i]);
        p->signals[i].data = p;
        uv_signal_start(&p->signals[i], worker_signalled, SIGNALS[i]);
    }
    if (p->parent_pid <= 0) /* else the parent decides, and kills what does not end */
        exit_guard_start(
            &(exit_guard){.component = "worker", .stop_ms = DRAIN_MAX_MS, .cut_ms = EXIT_GRACE_MS});
    uv_timer_init(&p->loop, &p->look);
    p->look.data = p;
    uv_timer_start(&p->look, look_around, 500, 500);
}

/* A worker never outlives the process that started it: it would hold memory and cores for nobody. The
 * kernel's word is instant; the timer is for kernels without it, the check for a parent already gone. */
static bool worker_tie_to_parent(int parent_pid)
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
    case SHOAL_EAUTH: /* it may not be read: nothing that another start changes */
    case SHOAL_EDIGEST: return EXIT_FILE;
    case SHOAL_EUNSUPPORTED:
    case SHOAL_EINVALID: return EX_CONFIG;
    default: return 1;
    }
}

static int failed_start(const worker_options *o, const shoal_err *err)
{
    LOG(LOG_ERROR, "worker", "cannot_start", LOG_S("model", o->model.name), LOG_S("path", o->model.path),
        LOG_S("error", shoal_err_name(err->code)), LOG_S("message", err->message));
    if (write(STDOUT_FILENO, err->message, strlen(err->message)) < 0) { /* the log line has it as well */
    }
    return exit_code_for(err->code);
}

int worker_run(const worker_options *o)
{
    if (!worker_tie_to_parent(o->parent_pid)) return 1;
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
    log_tell_repeats(true);
    if (code == 0) LOG(LOG_INFO, "worker", "stopped", LOG_S("model", o->model.name));
    return code;
}
