/* worker_bench.h: a worker and a gRPC client in one loop, over a real Unix socket and with real tiny models.
 *
 *     bench b;
 *     reply r;
 *     bench_open(&b, DATA "llama-gqa", NULL);
 *     call(&b, "/shoal.v1.Worker/Generate", &request.base, &r);       // till it has ended
 *     reply_done(&r);
 *     bench_close(&b); */
#ifndef TESTS_WORKER_WORKER_BENCH_H
#define TESTS_WORKER_WORKER_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <math.h>

#include "base/clock.h"
#include "json/json.h"
#include "logging/log.h"
#include "grpc/health/v1/health.pb-c.h"
#include "shoal/v1/worker.pb-c.h"
#include "grpc/grpc.h"
#include "worker/worker.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/hf/"

typedef struct bench {
    uv_loop_t loop;
    char dir[64], address[128];
    worker *w;
    grpc_channel *channel;
    bool connected;
} bench;

static inline void on_connected(void *user)
{
    ((bench *)user)->connected = true;
}

static inline void on_disconnected(void *user, const char *why)
{
    ((bench *)user)->connected = false;
}

static inline worker_options options_for(bench *b, const char *model)
{
    return (worker_options){.model = {.name = "tiny", .path = model, .engine = {.n_threads = 2}},
                            .address = b->address,
                            .arbiter_fd = -1,
                            .arbiter_slot = -1};
}

static inline void bench_dir(bench *b)
{
    *b = (bench){0};
    log_setup(LOG_OFF, false);
    strcpy(b->dir, "/tmp/shoal-test-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    snprintf(b->address, sizeof b->address, "unix:%s/w.sock", b->dir);
    assert_int_equal(uv_loop_init(&b->loop), 0);
}

/* Behind bench_dir. */
static inline void bench_start(bench *b, const worker_options *o)
{
    shoal_err err = {0};
    if (worker_new(&b->w, &b->loop, o, &err) != 0) fail_msg("worker_new: %s", err.message);
    grpc_channel_events ev = {.user = b, .connected = on_connected, .disconnected = on_disconnected};
    assert_int_equal(grpc_channel_new(&b->channel, &b->loop, b->address, &ev, &err), 0);
    while (!b->connected) uv_run(&b->loop, UV_RUN_ONCE);
}

static inline void bench_open(bench *b, const char *model, const engine_options *eo)
{
    bench_dir(b);
    worker_options o = options_for(b, model);
    if (eo) o.model.engine = *eo;
    bench_start(b, &o);
}

static inline void bench_close(bench *b)
{
    if (b->channel) grpc_channel_close(b->channel);
    if (b->w) worker_close(b->w, NULL, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    assert_int_not_equal(access(b->address + 5, F_OK), 0);
    assert_int_equal(rmdir(b->dir), 0);
}

/* ---- one call ---------------------------------------------------------------------------------- */

typedef struct reply {
    buf first; /* the first message, packed */
    size_t n_messages, n_deltas;
    size_t n_waits; /* signs of life before the first delta */
    int32_t ids[512];
    size_t n_ids, n_logprobs, n_bad_logprobs, n_judged;
    double log_prob, said; /* of the prompt's tokens, and of the reply's */
    buf text;
    buf calls; /* name(arguments), one after the other */
    size_t n_calls;
    char finish[16];
    uint32_t n_stop;
    buf thought;
    uint32_t n_prompt, n_read, n_generated, n_reasoning; /* n_read: n_prompt as the end has it */
    double mean_prob;
    bool ended;
    int status;
    char message[512];
} reply;

static inline void reply_done(reply *r)
{
    buf_done(&r->first);
    buf_done(&r->text);
    buf_done(&r->thought);
    buf_done(&r->calls);
}

static inline void on_end(void *user, grpc_status status, const char *message)
{
    reply *r = user;
    assert_false(r->ended);
    r->ended = true;
    r->status = (int)status;
    snprintf(r->message, sizeof r->message, "%s", message ? message : "");
}

static inline void on_message(void *user, const uint8_t *msg, size_t n)
{
    reply *r = user;
    if (r->n_messages++ == 0) buf_append(&r->first, msg, n);
}

static inline void on_event(void *user, const uint8_t *msg, size_t n)
{
    reply *r = user;
    Shoal__V1__GenerateEvent *ev = shoal__v1__generate_event__unpack(NULL, n, msg);
    assert_non_null(ev);
    if (r->n_messages++ == 0) assert_non_null(ev->started);
    if (ev->started) r->n_prompt = ev->started->n_prompt;
    if (ev->progress && r->n_deltas == 0) r->n_waits++;
    if (ev->delta) {
        r->n_deltas++;
        for (size_t i = 0; i < ev->delta->n_ids && r->n_ids < 512; i++)
            r->ids[r->n_ids++] = ev->delta->ids[i];
        for (size_t i = 0; i < ev->delta->n_logprobs; i++) {
            const Shoal__V1__TokenLogprob *p = ev->delta->logprobs[i];
            if (ev->delta->n_ids == 0) { /* of the prompt: all in one */
                assert_int_equal(isnan(p->logprob), i == 0);
                assert_int_equal(r->n_logprobs, 0);
                r->n_judged++;
                r->log_prob += i > 0 ? (double)p->logprob : 0;
                continue;
            }
            r->n_logprobs++;
            r->said += (double)p->logprob;
            r->n_bad_logprobs += p->logprob > 0 || p->n_top != 2 || p->top[0]->logprob < p->top[1]->logprob;
        }
        if (ev->delta->reasoning.len) assert_int_equal(r->text.len, 0); /* thoughts come first */
        buf_append(&r->thought, ev->delta->reasoning.data, ev->delta->reasoning.len);
        buf_append(&r->text, ev->delta->text.data, ev->delta->text.len);
        for (size_t i = 0; i < ev->delta->n_tool_calls; i++) {
            const Shoal__V1__ToolCallDelta *d = ev->delta->tool_calls[i];
            if (*d->name && r->n_calls++ > 0) buf_putc(&r->calls, ' ');
            buf_puts(&r->calls, d->name);
            buf_puts(&r->calls, d->arguments);
        }
    }
    if (ev->done) {
        snprintf(r->finish, sizeof r->finish, "%s", ev->done->finish);
        r->n_stop = ev->done->n_stop;
        r->n_read = ev->done->n_prompt;
        r->n_generated = ev->done->n_generated;
        r->n_reasoning = ev->done->n_reasoning;
        r->mean_prob = ev->done->mean_prob;
    }
    shoal__v1__generate_event__free_unpacked(ev, NULL);
}

static inline grpc_client_call *begin(bench *b, const char *path, const ProtobufCMessage *m, reply *r,
                                      uint64_t deadline_ns)
{
    size_t n = m ? protobuf_c_message_get_packed_size(m) : 0;
    uint8_t *bytes = calloc(1, n + 1);
    if (m) protobuf_c_message_pack(m, bytes);
    bool stream = strstr(path, "Generate") != NULL;
    grpc_client_events ev = {.user = r, .message = stream ? on_event : on_message, .end = on_end};
    http_header meta = {"x-request-id", "test-1"};
    grpc_client_call *c = grpc_call_start(b->channel, path, bytes, n, &meta, 1, deadline_ns, &ev);
    free(bytes);
    assert_non_null(c);
    return c;
}

static inline void call(bench *b, const char *path, const ProtobufCMessage *m, reply *r)
{
    *r = (reply){0};
    begin(b, path, m, r, 0);
    while (!r->ended) uv_run(&b->loop, UV_RUN_ONCE);
}

static inline void expect_refusal(bench *b, const char *path, const ProtobufCMessage *m, int status,
                                  const char *part)
{
    reply r;
    call(b, path, m, &r);
    if (r.status != status || !strstr(r.message, part))
        fail_msg("%s: got %s \"%s\", wanted %s with \"%s\"", path, grpc_status_name(r.status), r.message,
                 grpc_status_name(status), part);
    reply_done(&r);
}

/* ---- what the reference says ------------------------------------------------------------------- */

static inline json_t *expected(const char *model)
{
    char path[512];
    json_t *j = NULL;
    snprintf(path, sizeof path, DATA "%s/expected.json", model);
    assert_int_equal(json_parse_file(&j, path, 1 << 22, NULL), 0);
    return j;
}

static inline size_t read_ids(const json_t *a, int32_t *out, size_t cap)
{
    size_t n = json_array_size(a);
    assert_true(n <= cap);
    for (size_t i = 0; i < n; i++) out[i] = (int32_t)json_integer_value(json_array_get(a, i));
    return n;
}

typedef struct reference {
    json_t *doc;
    int32_t ids[256], greedy[256];
    size_t n_ids, n_greedy;
} reference;

static inline void reference_load(reference *f)
{
    f->doc = expected("llama-gqa");
    const json_t *p = json_array_get(json_object_get(f->doc, "prompts"), 0);
    f->n_ids = read_ids(json_object_get(p, "ids"), f->ids, 256);
    f->n_greedy = read_ids(json_object_get(p, "greedy_ids"), f->greedy, 256);
}

static inline Shoal__V1__GenerateRequest request_for(reference *f)
{
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    q.ids = f->ids;
    q.n_ids = f->n_ids;
    q.max_tokens = (uint32_t)f->n_greedy;
    q.ignore_eos = true;
    return q;
}

#endif
