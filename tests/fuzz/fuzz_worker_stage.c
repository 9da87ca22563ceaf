/* Any bytes as the messages of a first stage, to a real stage of a tiny model: the stream ends once, in a
 * status that is the first stage's own fault or as it should. The first byte says whether it is opened as it
 * must be, how rows travel, and whether the first stage leaves early; then each message has two bytes of
 * length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "logging/log.h"
#include "memory.h"
#include "model/model.h"
#include "shoal/v1/stage.pb-c.h"
#include "grpc/grpc.h"
#include "wire/loop.h"
#include "worker/worker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MODEL SHOAL_SOURCE_DIR "/tests/data/hf/lfm2-conv"
enum { OPENED = 1, WIRE_SHIFT = 1, LEAVE_EARLY = 8, MESSAGES_MAX = 64 };

/* Opened by the first input and kept to the end. */
static struct {
    uv_loop_t loop;
    worker *worker;
    grpc_channel *channel;
    char digest[65], dir[32];
    bool opened, dials, connected, lost; /* lost: without memory for it */
    unsigned n_lost;                     /* connections in a row that did not come to be */
} bench;

static void on_connected(void *user)
{
    bench.connected = true;
    bench.dials = false;
    bench.n_lost = 0;
}

/* The stage hangs up on a first stage that leaves hundreds of streams early within seconds, as it should: the
 * next input has a new connection. */
static void on_disconnected(void *user, const char *why)
{
    bench.connected = bench.dials = false;
    if (++bench.n_lost > 1) bench.lost = !holds(false);
}

static void be_connected(void)
{
    while (!bench.connected && !bench.lost) {
        if (!bench.dials) bench.lost = !holds(grpc_channel_connect(bench.channel) == 0);
        bench.dials = true;
        if (!bench.lost) uv_run(&bench.loop, UV_RUN_ONCE);
    }
}

static void find_digest(void)
{
    model *m;
    sha256_digest d;
    bench.lost = !holds(model_open(&m, MODEL, &(model_options){.no_tokenizer = true}, NULL) == 0);
    if (bench.lost) return;
    bench.lost = !holds(model_digest(m, &d, NULL) == 0);
    if (!bench.lost) sha256_hex(&d, bench.digest);
    model_free(m);
}

static void close_bench(void)
{
    if (bench.channel) grpc_channel_close(bench.channel);
    if (bench.worker) worker_close(bench.worker, NULL, NULL);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&bench.loop)) abort();
    rmdir(bench.dir); /* the worker has taken its socket away */
}

static void open_bench(void)
{
    char dir[] = "/tmp/shoal-fuzz-XXXXXX", address[64];
    log_setup(LOG_OFF, false);
    bench.opened = true;
    find_digest();
    if (bench.lost) return;
    if (!mkdtemp(dir)) abort();
    bench.lost = !holds(loop_open(&bench.loop, 256, NULL) == 0);
    if (bench.lost) return;
    atexit(close_bench);
    snprintf(address, sizeof address, "unix:%s/w", dir);
    worker_options o = {
        .model = {.name = "stage",
                  .path = MODEL,
                  .layers = {1, 3},
                  .engine = {.n_threads = 1, .n_ctx = 48, .max_batch = 4, .kv_bytes = 1 << 18}},
        .address = address,
        .arbiter_fd = -1,
        .arbiter_slot = -1};
    grpc_channel_events ev = {.connected = on_connected, .disconnected = on_disconnected};
    bench.lost = !holds(worker_new(&bench.worker, &bench.loop, &o, NULL) == 0 &&
                        grpc_channel_new(&bench.channel, &bench.loop, address, &ev, NULL) == 0);
    if (!bench.lost) be_connected();
    snprintf(bench.dir, sizeof bench.dir, "%s", dir);
}

typedef struct stream {
    bool ended;
    size_t n_replies;
    grpc_status status;
    char why[128];
} stream;

static void on_message(void *user, const uint8_t *msg, size_t n)
{
    stream *s = user;
    bool first = s->n_replies++ == 0;
    Shoal__V1__StageReply *m = shoal__v1__stage_reply__unpack(NULL, n, msg);
    if (!holds(m)) return;
    if (first != (m->what_case == SHOAL__V1__STAGE_REPLY__WHAT_READY)) abort();
    shoal__v1__stage_reply__free_unpacked(m, NULL);
}

static void on_end(void *user, grpc_status status, const char *message)
{
    stream *s = user;
    if (s->ended) abort();
    s->ended = true;
    s->status = status;
    snprintf(s->why, sizeof s->why, "%s", message ? message : "");
}

static void send_open(grpc_client_call *c, int wire)
{
    uint8_t bytes[128];
    Shoal__V1__StageRequest m = SHOAL__V1__STAGE_REQUEST__INIT;
    Shoal__V1__StageOpen o = SHOAL__V1__STAGE_OPEN__INIT;
    o.digest = bench.digest;
    o.wire = (Shoal__V1__StageWire)wire;
    m.what_case = SHOAL__V1__STAGE_REQUEST__WHAT_OPEN;
    m.open = &o;
    (void)grpc_client_send(c, bytes, protobuf_c_message_pack(&m.base, bytes));
}

/* A connection that the stage has said goodbye on takes no more streams, and then there is a new one. */
static grpc_client_call *open_stream(const grpc_client_events *ev)
{
    grpc_client_call *c = NULL;
    for (int i = 0; i < 1000 && !c && !bench.lost; i++) {
        c = grpc_call_open(bench.channel, "/shoal.v1.Stage/Run", NULL, ev);
        if (!c) uv_run(&bench.loop, UV_RUN_NOWAIT);
        be_connected();
    }
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    if (!bench.opened) open_bench();
    if (!bench.lost) be_connected();
    if (bench.lost) return 0;
    stream s = {0};
    grpc_client_events ev = {.user = &s, .message = on_message, .end = on_end};
    grpc_client_call *c = open_stream(&ev);
    if (!holds(c)) return 0;
    if (data[0] & OPENED) send_open(c, data[0] >> WIRE_SHIFT & 3);
    size_t at = 1, n_sent = 0;
    for (; at + 2 <= size && n_sent < MESSAGES_MAX && !s.ended; n_sent++) {
        size_t n = data[at] | (size_t)data[at + 1] << 8;
        at += 2;
        if (n > size - at) n = size - at;
        (void)grpc_client_send(c, data + at, n);
        at += n;
        uv_run(&bench.loop, UV_RUN_NOWAIT);
    }
    for (int i = 0; i < 3 && !s.ended; i++) uv_run(&bench.loop, UV_RUN_NOWAIT);
    if (data[0] & LEAVE_EARLY && !s.ended) {
        grpc_client_cancel(c);
        uv_run(&bench.loop, UV_RUN_NOWAIT);
        return 0;
    }
    if (!s.ended) grpc_client_half_close(c);
    while (!s.ended) uv_run(&bench.loop, UV_RUN_ONCE);
    /* UNAVAILABLE: the stream before, which left early, is still there. */
    if (s.status != GRPC_OK && s.status != GRPC_INVALID_ARGUMENT && s.status != GRPC_UNAVAILABLE)
        fprintf(stderr, "status %d: %s\n", (int)s.status, s.why);
    holds(s.status == GRPC_OK || s.status == GRPC_INVALID_ARGUMENT || s.status == GRPC_UNAVAILABLE);
    return 0;
}
