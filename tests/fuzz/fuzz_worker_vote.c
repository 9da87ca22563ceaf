/* Any bytes as the messages of a stream of Vote, or as the one message of Generate or Likelihood, to a real
 * worker with a tiny model: every call ends once, in a status or as what its method replies.
 *
 * The first byte chooses the method and how the client goes on: a message is so many bytes behind a length of
 * two. In a vote each ballot of the worker is answered by the next of them and then by what the worker said
 * itself, so that whatever began well comes to an end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cur.h"
#include "logging/log.h"
#include "memory.h"
#include "shoal/v1/worker.pb-c.h"
#include "grpc/grpc.h"
#include "wire/loop.h"
#include "worker/worker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    VOTES = 0,
    GENERATES = 1,
    JUDGES = 2,
    METHOD_BITS = 3,
    LEAVES = 0x20,
    HALF_CLOSES = 0x40,
    BURSTS = 0x80
};
enum { BALLOTS_MAX = 64 }; /* more are no news */
static const char *const METHODS[] = {"/shoal.v1.Worker/Vote", "/shoal.v1.Worker/Generate",
                                      "/shoal.v1.Worker/Likelihood", "/shoal.v1.Worker/Vote"};

/* Opened by the first input and kept to the end. */
static struct {
    uv_loop_t loop;
    worker *w;
    grpc_channel *channel;
    char dir[32], address[64];
    bool opened, connected, away, lost; /* away: sent away, or never taken in; lost: without memory for it */
} bench;

static void on_connected(void *user)
{
    bench.connected = true;
}

/* Who leaves hundreds of calls within a second is sent away, and may come again. */
static void on_disconnected(void *user, const char *why)
{
    bench.connected = false;
    bench.away = true;
}

static bool connect_again(void)
{
    if (bench.connected) return true;
    bench.away = false;
    if (grpc_channel_connect(bench.channel) != 0) return false;
    while (!bench.connected && !bench.away) uv_run(&bench.loop, UV_RUN_ONCE);
    return bench.connected;
}

static void open_worker(void)
{
    snprintf(bench.address, sizeof bench.address, "unix:%s/w", bench.dir);
    worker_options o = {.model = {.name = "tiny",
                                  .path = SHOAL_SOURCE_DIR "/tests/data/hf/llama-gqa",
                                  .engine = {.n_threads = 1, .n_ctx = 48, .kv_bytes = 1 << 20}},
                        .address = bench.address,
                        .arbiter_fd = -1,
                        .arbiter_slot = -1};
    grpc_channel_events ev = {.connected = on_connected, .disconnected = on_disconnected};
    shoal_err err = {0};
    if (worker_new(&bench.w, &bench.loop, &o, &err) ||
        grpc_channel_new(&bench.channel, &bench.loop, bench.address, &ev, &err)) {
        fprintf(stderr, "%s\n", err.message);
        bench.lost = !holds(false);
    }
    while (!bench.connected && !bench.away && !bench.lost) uv_run(&bench.loop, UV_RUN_ONCE);
    if (!bench.connected) bench.lost = !holds(false);
}

static void close_bench(void)
{
    if (bench.channel) grpc_channel_close(bench.channel);
    if (bench.w) worker_close(bench.w, NULL, NULL);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&bench.loop)) abort();
    unlink(bench.address + strlen("unix:"));
    rmdir(bench.dir);
}

static void open_bench(void)
{
    strcpy(bench.dir, "/tmp/shoal-fuzz-XXXXXX");
    log_setup(LOG_OFF, false);
    bench.opened = true;
    if (!mkdtemp(bench.dir)) abort();
    bench.lost = !holds(loop_open(&bench.loop, 256, NULL) == 0);
    if (bench.lost) { /* there is no loop that could be closed */
        rmdir(bench.dir);
        return;
    }
    open_worker();
    atexit(close_bench);
}

/* ---- one call ------------------------------------------------------------------------------------ */

typedef struct client {
    grpc_client_call *call;
    cur rest; /* messages that are still to be sent */
    unsigned method;
    bool half_closes, closed, ended, mute; /* mute: without memory to vote, for which the worker would wait */
    size_t n_messages, n_ballots;
    grpc_status status;
} client;

/* The next message of the input; false: there is none. */
static bool next_message(client *c, const uint8_t **ret, size_t *ret_n)
{
    if (cur_left(&c->rest) == 0) return false;
    size_t left = cur_left(&c->rest), n = left;
    if (left >= 2) {
        const uint8_t *len = cur_take(&c->rest, 2);
        n = (size_t)len[0] | (size_t)len[1] << 8;
        left -= 2;
    }
    *ret_n = n < left ? n : left;
    *ret = cur_take(&c->rest, *ret_n);
    return true;
}

/* What the worker voted, as if it were the mean of all. */
static void send_back(client *c, const Shoal__V1__Ballot *b)
{
    Shoal__V1__GenerateRequest more = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__Ballot mean = *b;
    buf out = {0};
    more.ballot = &mean;
    size_t n = shoal__v1__generate_request__get_packed_size(&more);
    c->mute |= !holds(buf_reserve(&out, n) == 0);
    if (!c->mute) {
        shoal__v1__generate_request__pack(&more, (uint8_t *)out.data);
        c->mute = !holds(grpc_client_send(c->call, out.data, n) != SHOAL_ENOMEM);
    }
    buf_done(&out);
}

static void answer_ballot(client *c, const Shoal__V1__Ballot *b)
{
    const uint8_t *msg;
    size_t n;
    if (c->closed || ++c->n_ballots > BALLOTS_MAX) return;
    bool more = next_message(c, &msg, &n);
    if (more) grpc_client_send(c->call, msg, n);
    if (more || !c->half_closes) {
        send_back(c, b);
        return;
    }
    c->closed = true;
    grpc_client_half_close(c->call);
}

static void on_message(void *user, const uint8_t *msg, size_t n)
{
    client *c = user;
    c->n_messages++;
    if (c->method == JUDGES) return;
    Shoal__V1__GenerateEvent *ev = shoal__v1__generate_event__unpack(NULL, n, msg);
    c->mute |= !ev;
    if (holds(ev) && (c->n_messages == 1) != (ev->started != NULL)) abort();
    if (ev && ev->ballot && c->method != GENERATES) answer_ballot(c, ev->ballot);
    if (ev) shoal__v1__generate_event__free_unpacked(ev, NULL);
}

static void on_end(void *user, grpc_status status, const char *message)
{
    client *c = user;
    if (c->ended) abort();
    c->ended = true;
    c->status = status;
}

/* The first message, or all of them without waiting for the worker's. */
static void send_first(client *c, bool bursts)
{
    const uint8_t *msg;
    size_t n;
    while (next_message(c, &msg, &n)) {
        c->mute |= !holds(grpc_client_send(c->call, msg, n) != SHOAL_ENOMEM);
        if (!bursts) return;
    }
}

static bool begin(client *c, const uint8_t *data, size_t size, bool bursts)
{
    grpc_client_events ev = {.user = c, .message = on_message, .end = on_end};
    if (c->method == GENERATES || c->method == JUDGES) {
        c->call = grpc_call_start(bench.channel, METHODS[c->method], data, size, NULL, 0, 0, &ev);
        return holds(c->call);
    }
    c->call = grpc_call_open(bench.channel, METHODS[c->method], NULL, &ev);
    if (!holds(c->call)) return false;
    c->rest = cur_over(data, size);
    send_first(c, bursts);
    if (c->n_messages == 0 && c->half_closes && cur_left(&c->rest) == 0) {
        c->closed = true;
        grpc_client_half_close(c->call);
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    if (!bench.opened) open_bench();
    if (bench.lost || !holds(connect_again())) return 0;
    client c = {.method = data[0] & METHOD_BITS, .half_closes = data[0] & HALF_CLOSES};
    if (!begin(&c, data + 1, size - 1, data[0] & BURSTS)) return 0;
    for (int i = 0; i < 3 && !c.ended; i++) uv_run(&bench.loop, UV_RUN_NOWAIT);
    bool stuck = size == 1 && (c.method == VOTES || c.method == 3) && !c.closed; /* nothing was asked */
    if ((data[0] & LEAVES || stuck) && !c.ended) {
        grpc_client_cancel(c.call);
        return 0;
    }
    while (!c.ended) {
        uv_run(&bench.loop, UV_RUN_ONCE);
        if ((c.n_ballots <= BALLOTS_MAX && !c.mute) || c.ended) continue;
        grpc_client_cancel(c.call);
        return 0;
    }
    /* A worker that is healthy never blames itself for what a client sent. */
    if (!bench.connected) return 0;
    holds(c.status != GRPC_INTERNAL && c.status != GRPC_UNKNOWN && c.status != GRPC_UNAVAILABLE);
    if (c.status == GRPC_OK && c.n_messages == 0) abort();
    return 0;
}
