/* DetectSpeech over a real socket, with a detector of random weights: its own probabilities, what is refused,
 * and clients that leave. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../speech/vad_model_file.h"
#include "base/file.h"
#include "logging/log.h"
#include "shoal/v1/worker.pb-c.h"
#include "signal/audio.h"
#include "speech/vad_model.h"
#include "grpc/grpc.h"
#include "worker/worker.h"

#define WAV SHOAL_SOURCE_DIR "/tests/data/speech/wav/08-lights-on.wav"

typedef struct bench {
    uv_loop_t loop;
    char dir[64], address[128], file[128];
    worker *w;
    grpc_channel *channel;
    bool connected;
    buf weights, wav;
} bench;

static void on_connected(void *user)
{
    ((bench *)user)->connected = true;
}

static void on_disconnected(void *user, const char *why)
{
    ((bench *)user)->connected = false;
}

static void bench_open(bench *b)
{
    *b = (bench){0};
    log_setup(LOG_OFF, false);
    strcpy(b->dir, "/tmp/shoal-test-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    snprintf(b->address, sizeof b->address, "unix:%s/w.sock", b->dir);
    snprintf(b->file, sizeof b->file, "%s/voice.safetensors", b->dir);
    make_file(&b->weights, SIZE_MAX, NULL, NULL);
    FILE *f = fopen(b->file, "wb");
    assert_int_equal(fwrite(b->weights.data, 1, b->weights.len, f), b->weights.len);
    fclose(f);
    assert_int_equal(file_read(&b->wav, WAV, 1 << 22, NULL), 0);
    assert_int_equal(uv_loop_init(&b->loop), 0);
    worker_options o = {.model = {.name = "voice", .path = b->file, .engine = {.n_threads = 1}},
                        .address = b->address,
                        .arbiter_fd = -1,
                        .arbiter_slot = -1};
    shoal_err err = {0};
    if (worker_new(&b->w, &b->loop, &o, &err) != 0) fail_msg("worker_new: %s", err.message);
    grpc_channel_events ev = {.user = b, .connected = on_connected, .disconnected = on_disconnected};
    assert_int_equal(grpc_channel_new(&b->channel, &b->loop, b->address, &ev, &err), 0);
    while (!b->connected) uv_run(&b->loop, UV_RUN_ONCE);
}

static void bench_close(bench *b)
{
    grpc_channel_close(b->channel);
    worker_close(b->w, NULL, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    assert_int_equal(unlink(b->file), 0);
    assert_int_equal(rmdir(b->dir), 0);
    buf_done(&b->weights);
    buf_done(&b->wav);
}

typedef struct reply {
    buf bytes;
    bool ended;
    int status;
    char message[512];
} reply;

static void on_message(void *user, const uint8_t *msg, size_t n)
{
    buf_append(&((reply *)user)->bytes, msg, n);
}

static void on_end(void *user, grpc_status status, const char *message)
{
    reply *r = user;
    r->ended = true;
    r->status = (int)status;
    snprintf(r->message, sizeof r->message, "%s", message ? message : "");
}

static grpc_client_call *begin(bench *b, const char *method, const ProtobufCMessage *q, reply *r)
{
    char path[64];
    size_t n = protobuf_c_message_get_packed_size(q);
    uint8_t *bytes = malloc(n + 1);
    protobuf_c_message_pack(q, bytes);
    *r = (reply){0};
    snprintf(path, sizeof path, "/shoal.v1.Worker/%s", method);
    grpc_client_events ev = {.user = r, .message = on_message, .end = on_end};
    grpc_client_call *c = grpc_call_start(b->channel, path, bytes, n, NULL, 0, 0, &ev);
    free(bytes);
    assert_non_null(c);
    return c;
}

static void ask(bench *b, const char *method, const ProtobufCMessage *q, reply *r)
{
    begin(b, method, q, r);
    while (!r->ended) uv_run(&b->loop, UV_RUN_ONCE);
}

static Shoal__V1__DetectSpeechRequest request(const bench *b)
{
    Shoal__V1__DetectSpeechRequest q = SHOAL__V1__DETECT_SPEECH_REQUEST__INIT;
    q.audio.data = (uint8_t *)b->wav.data;
    q.audio.len = b->wav.len;
    return q;
}

static void a_sound_has_its_probabilities(void **state)
{
    bench b;
    reply r;
    vad_model *v;
    sound *x = NULL;
    float *p;
    size_t n;
    bench_open(&b);
    Shoal__V1__DetectSpeechRequest q = request(&b);
    q.probabilities = true;
    q.threshold = 0.01; /* random weights say about the same all the time: it is all speech */
    ask(&b, "DetectSpeech", &q.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    Shoal__V1__DetectSpeechReply *m =
        shoal__v1__detect_speech_reply__unpack(NULL, r.bytes.len, (uint8_t *)r.bytes.data);
    assert_int_equal(sound_open(&x, b.wav.data, b.wav.len, NULL, NULL), 0);
    assert_int_equal(vad_model_parse(&v, b.weights.data, b.weights.len, "made", NULL), 0);
    assert_int_equal(vad_model_all(v, x, &p, &n, NULL), 0);
    assert_int_equal(m->n_probabilities, n);
    assert_memory_equal(m->probabilities, p, n * sizeof *p);
    assert_int_equal(m->n_segments, 1);
    assert_true(m->timing && m->timing->cpu_ms > 0);
    assert_true(m->segments[0]->start_ms == 0 && m->segments[0]->end_ms <= m->duration_ms);
    shoal__v1__detect_speech_reply__free_unpacked(m, NULL);
    free(p);
    sound_free(x);
    vad_model_free(v);
    buf_done(&r.bytes);
    bench_close(&b);
}

static void expect(bench *b, const char *method, const ProtobufCMessage *q, int status, const char *part)
{
    reply r;
    ask(b, method, q, &r);
    if (r.status != status || !strstr(r.message, part))
        fail_msg("got %s \"%s\", wanted %s with \"%s\"", grpc_status_name(r.status), r.message,
                 grpc_status_name(status), part);
    buf_done(&r.bytes);
}

static void other_calls_are_refused(void **state)
{
    bench b;
    bench_open(&b);
    Shoal__V1__DetectSpeechRequest q = SHOAL__V1__DETECT_SPEECH_REQUEST__INIT;
    Shoal__V1__GenerateRequest g = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__EmbedRequest e = SHOAL__V1__EMBED_REQUEST__INIT;
    Shoal__V1__TranscribeRequest t = SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
    Shoal__V1__TokenizeRequest k = SHOAL__V1__TOKENIZE_REQUEST__INIT;
    Shoal__V1__DescribeRequest d = SHOAL__V1__DESCRIBE_REQUEST__INIT;
    Shoal__V1__StatsRequest s = SHOAL__V1__STATS_REQUEST__INIT;
    Shoal__V1__TextInput text = SHOAL__V1__TEXT_INPUT__INIT;
    text.text = "hello";
    k.input = &text;
    g.text = "hello";
    expect(&b, "DetectSpeech", &q.base, GRPC_INVALID_ARGUMENT, "audio is missing");
    q = request(&b);
    q.threshold = 7;
    expect(&b, "DetectSpeech", &q.base, GRPC_INVALID_ARGUMENT, "");
    q.audio.len = 20;
    expect(&b, "DetectSpeech", &q.base, GRPC_INVALID_ARGUMENT, "");
    expect(&b, "Generate", &g.base, GRPC_UNIMPLEMENTED, "vad");
    expect(&b, "Embed", &e.base, GRPC_UNIMPLEMENTED, "vad");
    expect(&b, "Transcribe", &t.base, GRPC_UNIMPLEMENTED, "vad");
    expect(&b, "Tokenize", &k.base, GRPC_UNIMPLEMENTED, "reads no text");
    expect(&b, "Describe", &d.base, GRPC_OK, "");
    expect(&b, "GetStats", &s.base, GRPC_OK, "");
    bench_close(&b);
}

static void clients_may_leave(void **state)
{
    for (int turns = 0; turns < 6; turns++) {
        bench b;
        reply r;
        bench_open(&b);
        Shoal__V1__DetectSpeechRequest q = request(&b);
        grpc_client_call *c = begin(&b, "DetectSpeech", &q.base, &r);
        for (int i = 0; i < turns && !r.ended; i++) uv_run(&b.loop, UV_RUN_ONCE);
        if (!r.ended && turns % 2) grpc_client_cancel(c);
        bench_close(&b);
        buf_done(&r.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_has_its_probabilities),
        cmocka_unit_test(other_calls_are_refused),
        cmocka_unit_test(clients_may_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
