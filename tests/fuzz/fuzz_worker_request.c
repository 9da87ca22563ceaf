/* Any bytes as the message of any call, to real workers with tiny models: every call ends once, in a
 * status or as what its method replies. The first byte chooses worker and method, of the first or of the
 * second kind, and whether the client leaves early. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "logging/log.h"
#include "memory.h"
#include "shoal/v1/worker.pb-c.h"
#include "grpc/grpc.h"
#include "wire/loop.h"
#include "worker/worker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const MODELS[] = {"hf/llama-gqa",  "hf/bert-intent", "hf/bert-ner", "hf/minilm-embed",
                                     "sensors/trees", "sensors/lstm",   "hf/vit-tiny"};
static const char *const METHODS[] = {"/shoal.v1.Worker/Generate", "/shoal.v1.Worker/Classify",
                                      "/shoal.v1.Worker/Tag",      "/shoal.v1.Worker/Embed",
                                      "/shoal.v1.Worker/Tokenize", "/shoal.v1.Worker/Describe",
                                      "/shoal.v1.Worker/Render",   "/shoal.v1.Worker/Detokenize"};
static const char *const METHODS_TOO[] = {"/shoal.v1.Worker/Score",    "/shoal.v1.Worker/ClassifyImage",
                                          "/shoal.v1.Worker/Describe", "/shoal.v1.Worker/GetStats",
                                          "/shoal.v1.Worker/Tokenize", "/shoal.v1.Worker/Generate",
                                          "/shoal.v1.Worker/Classify", "/grpc.health.v1.Health/Check"};
enum { N_MODELS = sizeof MODELS / sizeof *MODELS, N_TEXT = 4, SECOND_KIND = 0x40, LEAVE_EARLY = 0x80 };

/* Opened by the first input and kept to the end: loading a model costs more than a thousand calls. */
static struct {
    uv_loop_t loop;
    worker *workers[N_MODELS];
    grpc_channel *channels[N_MODELS];
    size_t n_connected;
    bool opened, lost; /* lost: without memory for it */
} bench;

static void on_connected(void *user)
{
    bench.n_connected++;
}

static void on_disconnected(void *user, const char *why)
{
    fprintf(stderr, "disconnected: %s\n", why);
    bench.lost = !holds(false);
}

static void open_worker(const char *dir, size_t i)
{
    char path[512], address[256];
    snprintf(path, sizeof path, SHOAL_SOURCE_DIR "/tests/data/%s", MODELS[i]);
    snprintf(address, sizeof address, "unix:%s/w", dir);
    worker_options o = {.model = {.name = MODELS[i],
                                  .path = path,
                                  .engine = {.n_threads = 1, .n_ctx = 48, .kv_bytes = 1 << 20}},
                        .address = address,
                        .arbiter_fd = -1,
                        .arbiter_slot = -1};
    grpc_channel_events ev = {.connected = on_connected, .disconnected = on_disconnected};
    shoal_err err = {0};
    if (worker_new(&bench.workers[i], &bench.loop, &o, &err) ||
        grpc_channel_new(&bench.channels[i], &bench.loop, address, &ev, &err)) {
        fprintf(stderr, "%s\n", err.message);
        bench.lost = !holds(false);
    }
    while (bench.n_connected <= i && !bench.lost) uv_run(&bench.loop, UV_RUN_ONCE);
    unlink(address + strlen("unix:")); /* nobody else comes, and a crash leaves nothing behind */
}

static void close_bench(void)
{
    for (size_t i = 0; i < N_MODELS; i++)
        if (bench.channels[i]) grpc_channel_close(bench.channels[i]);
    for (size_t i = 0; i < N_MODELS; i++)
        if (bench.workers[i]) worker_close(bench.workers[i], NULL, NULL);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&bench.loop)) abort();
}

static void open_bench(void)
{
    char dir[] = "/tmp/shoal-fuzz-XXXXXX";
    log_setup(LOG_OFF, false);
    bench.opened = true;
    if (!mkdtemp(dir)) abort();
    bench.lost = !holds(loop_open(&bench.loop, 256, NULL) == 0);
    if (bench.lost) return;
    for (size_t i = 0; i < N_MODELS && !bench.lost; i++) open_worker(dir, i);
    rmdir(dir);
    atexit(close_bench);
}

typedef struct reply {
    bool stream, ended;
    size_t n_messages;
    grpc_status status;
} reply;

static void on_message(void *user, const uint8_t *msg, size_t n)
{
    reply *r = user;
    r->n_messages++;
    if (!r->stream) return;
    Shoal__V1__GenerateEvent *ev = shoal__v1__generate_event__unpack(NULL, n, msg);
    if (holds(ev) && (r->n_messages == 1) != (ev->started != NULL)) abort();
    if (ev) shoal__v1__generate_event__free_unpacked(ev, NULL);
}

static void on_end(void *user, grpc_status status, const char *message)
{
    reply *r = user;
    if (r->ended) abort();
    r->ended = true;
    r->status = status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    if (!bench.opened) open_bench();
    if (bench.lost) return 0;
    bool second = data[0] & SECOND_KIND;
    const char *method = (second ? METHODS_TOO : METHODS)[data[0] & 7];
    size_t which = data[0] >> 3 & 3;
    if (second) which = N_TEXT + which % (N_MODELS - N_TEXT);
    reply r = {.stream = strstr(method, "Generate") != NULL};
    grpc_client_events ev = {.user = &r, .message = on_message, .end = on_end};
    grpc_client_call *c = grpc_call_start(bench.channels[which], method, data + 1, size - 1, NULL, 0, 0, &ev);
    if (!holds(c)) return 0;
    for (int i = 0; i < 3 && !r.ended; i++) uv_run(&bench.loop, UV_RUN_NOWAIT);
    if (data[0] & LEAVE_EARLY && !r.ended) {
        grpc_client_cancel(c);
        return 0;
    }
    while (!r.ended) uv_run(&bench.loop, UV_RUN_ONCE);
    /* A worker that is healthy never blames itself for what a client sent. */
    holds(r.status != GRPC_INTERNAL && r.status != GRPC_UNKNOWN && r.status != GRPC_UNAVAILABLE);
    if (r.status == GRPC_OK && r.n_messages == 0) abort();
    return 0;
}
