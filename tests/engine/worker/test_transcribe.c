/* Transcribe over a real socket: segments as they are heard, refusals, and clients that leave in every phase.
 */
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

#include "base/file.h"
#include "logging/log.h"
#include "shoal/v1/worker.pb-c.h"
#include "grpc/grpc.h"
#include "worker/worker.h"

#define DATA  SHOAL_SOURCE_DIR "/tests/data/"
#define MODEL SHOAL_SOURCE_DIR "/models/home-ears.gguf"

typedef struct bench {
    uv_loop_t loop;
    char dir[64], address[128];
    worker *w;
    grpc_channel *channel;
    bool connected;
} bench;

static void on_connected(void *user)
{
    ((bench *)user)->connected = true;
}

static void on_disconnected(void *user, const char *why)
{
    ((bench *)user)->connected = false;
}

static void bench_open_as(bench *b, const char *model, size_t sound_bytes, bool no_vad)
{
    *b = (bench){0};
    log_setup(LOG_OFF, false);
    strcpy(b->dir, "/tmp/shoal-test-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    snprintf(b->address, sizeof b->address, "unix:%s/w.sock", b->dir);
    assert_int_equal(uv_loop_init(&b->loop), 0);
    worker_options o = {.model = {.name = "ears", .path = model, .engine = {.n_threads = 2}},
                        .address = b->address,
                        .arbiter_fd = -1,
                        .arbiter_slot = -1,
                        .sound_bytes = sound_bytes,
                        .no_vad = no_vad};
    shoal_err err = {0};
    if (worker_new(&b->w, &b->loop, &o, &err) != 0) fail_msg("worker_new: %s", err.message);
    grpc_channel_events ev = {.user = b, .connected = on_connected, .disconnected = on_disconnected};
    assert_int_equal(grpc_channel_new(&b->channel, &b->loop, b->address, &ev, &err), 0);
    while (!b->connected) uv_run(&b->loop, UV_RUN_ONCE);
}

static void bench_open_with(bench *b, const char *model, size_t sound_bytes)
{
    bench_open_as(b, model, sound_bytes, false);
}

static void bench_open(bench *b, const char *model)
{
    bench_open_as(b, model, 0, false);
}

static void bench_close(bench *b)
{
    grpc_channel_close(b->channel);
    worker_close(b->w, NULL, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    assert_int_equal(rmdir(b->dir), 0);
}

typedef struct reply {
    buf text;
    size_t n_segments, n_progress;
    char language[32];
    uint64_t last_ms, duration_ms;
    uint32_t n_windows, n_generated;
    bool ended;
    int status;
    char message[512];
} reply;

static void on_event(void *user, const uint8_t *msg, size_t n)
{
    reply *r = user;
    Shoal__V1__TranscribeEvent *ev = shoal__v1__transcribe_event__unpack(NULL, n, msg);
    assert_non_null(ev);
    if (ev->segment) {
        r->n_segments++;
        assert_true(ev->segment->start_ms >= r->last_ms && ev->segment->end_ms > ev->segment->start_ms);
        assert_true(ev->segment->n_ids > 0 && ev->segment->avg_logprob <= 0);
        r->last_ms = ev->segment->end_ms;
        buf_puts(&r->text, ev->segment->text);
    }
    if (ev->progress) {
        r->n_progress++;
        assert_true(ev->progress->done_ms <= ev->progress->duration_ms);
    }
    if (ev->done) {
        snprintf(r->language, sizeof r->language, "%s=%s", ev->done->language, ev->done->language_name);
        r->duration_ms = ev->done->duration_ms;
        r->n_windows = ev->done->n_windows;
        r->n_generated = ev->done->n_generated;
        assert_true(ev->done->cpu_ms > 0);
    }
    shoal__v1__transcribe_event__free_unpacked(ev, NULL);
}

static void on_end(void *user, grpc_status status, const char *message)
{
    reply *r = user;
    assert_false(r->ended);
    r->ended = true;
    r->status = (int)status;
    snprintf(r->message, sizeof r->message, "%s", message ? message : "");
}

static grpc_client_call *begin(bench *b, const Shoal__V1__TranscribeRequest *q, reply *r)
{
    size_t n = shoal__v1__transcribe_request__get_packed_size(q);
    uint8_t *bytes = malloc(n + 1);
    shoal__v1__transcribe_request__pack(q, bytes);
    *r = (reply){0};
    grpc_client_events ev = {.user = r, .message = on_event, .end = on_end};
    grpc_client_call *c =
        grpc_call_start(b->channel, "/shoal.v1.Worker/Transcribe", bytes, n, NULL, 0, 0, &ev);
    free(bytes);
    assert_non_null(c);
    return c;
}

static void ask(bench *b, const Shoal__V1__TranscribeRequest *q, reply *r)
{
    begin(b, q, r);
    while (!r->ended) uv_run(&b->loop, UV_RUN_ONCE);
}

static Shoal__V1__TranscribeRequest request(buf *file, const char *name)
{
    Shoal__V1__TranscribeRequest q = SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
    char path[512];
    snprintf(path, sizeof path, DATA "speech/wav/%s", name);
    assert_int_equal(file_read(file, path, 1 << 22, NULL), 0);
    q.audio.data = (uint8_t *)file->data;
    q.audio.len = file->len;
    return q;
}

static void a_file_becomes_text(void **state)
{
    bench b;
    reply r;
    buf file = {0};
    bench_open(&b, MODEL);
    Shoal__V1__TranscribeRequest q = request(&file, "05-heat-the-house-to-sixty-one-degrees.wav");
    for (int i = 0; i < 2; i++) { /* asked again: the same */
        ask(&b, &q, &r);
        assert_int_equal(r.status, GRPC_OK);
        assert_string_equal(r.text.data, " heat the house to sixty one degrees");
        assert_string_equal(r.language, "en=english");
        assert_int_equal(r.n_windows, 1);
        assert_int_equal(r.n_progress, 1);
        assert_int_equal(r.n_generated, 3 + 8);
        assert_in_range(r.duration_ms, 3000, 3500);
        buf_done(&r.text);
    }
    buf_done(&file);
    bench_close(&b);
}

/* As a gateway sends what it receives: the file in pieces, while it still comes. */
static void a_file_may_come_in_pieces(void **state)
{
    enum { PIECE = 5000 };
    bench b;
    reply r, left;
    buf file = {0};
    bench_open(&b, MODEL);
    Shoal__V1__TranscribeRequest whole = request(&file, "05-heat-the-house-to-sixty-one-degrees.wav");
    grpc_client_call *calls[2];
    reply *replies[2] = {&r, &left};
    for (int i = 0; i < 2; i++) {
        grpc_client_events ev = {.user = replies[i], .message = on_event, .end = on_end};
        *replies[i] = (reply){0};
        calls[i] = grpc_call_open(b.channel, "/shoal.v1.Worker/Transcribe", NULL, &ev);
    }
    for (size_t at = 0; at < whole.audio.len; at += PIECE) {
        Shoal__V1__TranscribeRequest q = SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
        uint8_t bytes[PIECE + 64];
        if (at == 0) q.language = "en";
        q.audio.data = whole.audio.data + at;
        q.audio.len = whole.audio.len - at < PIECE ? whole.audio.len - at : PIECE;
        size_t n = shoal__v1__transcribe_request__pack(&q, bytes);
        assert_int_equal(grpc_client_send(calls[0], bytes, n), 0);
        if (at < whole.audio.len / 2) assert_int_equal(grpc_client_send(calls[1], bytes, n), 0);
        uv_run(&b.loop, UV_RUN_NOWAIT);
    }
    grpc_client_cancel(calls[1]); /* half of a file, and nobody waits for it */
    grpc_client_half_close(calls[0]);
    while (!r.ended) uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(r.status, GRPC_OK);
    assert_string_equal(r.text.data, " heat the house to sixty one degrees");
    buf_done(&r.text);
    buf_done(&file);
    bench_close(&b);
}

static void pieces_are_refused_as_soon_as_they_are_wrong(void **state)
{
    bench b;
    reply r = {0}, none = {0}, noise = {0};
    grpc_client_events ev = {.user = &r, .message = on_event, .end = on_end}, ev_none = ev, ev_noise = ev;
    Shoal__V1__TranscribeRequest q = SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
    uint8_t bytes[64];
    ev_none.user = &none;
    ev_noise.user = &noise;
    bench_open(&b, MODEL);
    q.temperature = -1;
    grpc_client_call *c = grpc_call_open(b.channel, "/shoal.v1.Worker/Transcribe", NULL, &ev);
    grpc_client_send(c, bytes,
                     shoal__v1__transcribe_request__pack(&q, bytes)); /* and the audio would follow */
    grpc_client_half_close(grpc_call_open(b.channel, "/shoal.v1.Worker/Transcribe", NULL, &ev_none));
    c = grpc_call_open(b.channel, "/shoal.v1.Worker/Transcribe", NULL, &ev_noise);
    grpc_client_send(c, "\xff\xff\xff", 3);
    while (!r.ended || !none.ended || !noise.ended) uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(r.status, GRPC_INVALID_ARGUMENT);
    assert_non_null(strstr(r.message, "temperature"));
    assert_int_equal(none.status, GRPC_INVALID_ARGUMENT);
    assert_non_null(strstr(none.message, "audio is missing"));
    assert_int_equal(noise.status, GRPC_INVALID_ARGUMENT);
    bench_close(&b);
}

/* Made again, without the segments that another worker sent. */
static void a_transcription_goes_on_behind_the_segments_that_came(void **state)
{
    bench b;
    reply whole, rest;
    buf file = {0};
    bench_open(&b, MODEL);
    Shoal__V1__TranscribeRequest q = request(&file, "05-heat-the-house-to-sixty-one-degrees.wav");
    ask(&b, &q, &whole);
    assert_int_equal(whole.n_segments, 1);
    for (q.skip_segments = 0; q.skip_segments <= 2; q.skip_segments++) {
        ask(&b, &q, &rest);
        assert_int_equal(rest.status, GRPC_OK);
        assert_int_equal(rest.n_segments, q.skip_segments == 0);
        assert_int_equal(rest.n_generated, whole.n_generated);
        if (q.skip_segments == 0) assert_string_equal(rest.text.data, whole.text.data);
        buf_done(&rest.text);
    }
    buf_done(&whole.text);
    buf_done(&file);
    bench_close(&b);
}

static void expect(bench *b, const Shoal__V1__TranscribeRequest *q, int status, const char *part)
{
    reply r;
    ask(b, q, &r);
    if (r.status != status || !strstr(r.message, part))
        fail_msg("got %s \"%s\", wanted %s with \"%s\"", grpc_status_name(r.status), r.message,
                 grpc_status_name(status), part);
    assert_int_equal(r.n_segments, 0);
    buf_done(&r.text);
}

static void what_cannot_be_heard_is_refused(void **state)
{
    bench b;
    buf file = {0};
    bench_open(&b, MODEL);
    Shoal__V1__TranscribeRequest q = SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
    expect(&b, &q, GRPC_INVALID_ARGUMENT, "audio is missing");
    q.audio.data = (uint8_t *)"no sound at all, only these words of text";
    q.audio.len = 41;
    expect(&b, &q, GRPC_UNIMPLEMENTED, "");
    q = request(&file, "08-lights-on.wav");
    q.language = "klingon";
    expect(&b, &q, GRPC_INVALID_ARGUMENT, "klingon");
    q.language = "\xff";
    expect(&b, &q, GRPC_INVALID_ARGUMENT, "language");
    q.language = "";
    q.temperature = -1;
    expect(&b, &q, GRPC_INVALID_ARGUMENT, "temperature");
    q.temperature = 0;
    bench_close(&b);
    bench_open(&b, DATA "hf/bart");
    expect(&b, &q, GRPC_UNIMPLEMENTED, "transcribe");
    bench_close(&b);
    buf_done(&file);
}

static void more_than_a_few_at_once_are_refused(void **state)
{
    bench b;
    buf file = {0};
    reply r[12];
    size_t n_full = 0, n_ok = 0;
    bench_open(&b, MODEL);
    Shoal__V1__TranscribeRequest q = request(&file, "08-lights-on.wav");
    for (size_t i = 0; i < 12; i++) begin(&b, &q, &r[i]);
    for (size_t i = 0; i < 12; i++) {
        while (!r[i].ended) uv_run(&b.loop, UV_RUN_ONCE);
        n_full += r[i].status == GRPC_RESOURCE_EXHAUSTED;
        if (r[i].status == GRPC_OK) {
            n_ok++;
            assert_string_equal(r[i].text.data, " lights on");
        }
        buf_done(&r[i].text);
    }
    assert_int_equal(n_full + n_ok, 12);
    assert_true(n_ok >= 8);
    buf_done(&file);
    bench_close(&b);
}

/* As the request says, and else as the worker was told: silence is no window for the model, or one. */
static void silence_is_heard_where_it_is_asked_for(void **state)
{
    static const Shoal__V1__VoiceActivity says[] = {SHOAL__V1__VOICE_ACTIVITY__VAD_DEFAULT,
                                                    SHOAL__V1__VOICE_ACTIVITY__VAD_ON,
                                                    SHOAL__V1__VOICE_ACTIVITY__VAD_OFF};
    for (int no_vad = 0; no_vad < 2; no_vad++) {
        bench b;
        buf file = {0};
        bench_open_as(&b, MODEL, 0, no_vad);
        Shoal__V1__TranscribeRequest q = request(&file, "08-lights-on.wav");
        memset(file.data + 44, 0, file.len - 44);
        for (int i = 0; i < 3; i++) {
            reply r;
            q.vad = says[i];
            ask(&b, &q, &r);
            assert_int_equal(r.status, GRPC_OK);
            assert_int_equal(r.n_windows, i == 0 ? no_vad : i - 1);
            assert_int_equal(r.text.len, 0);
            buf_done(&r.text);
        }
        q.vad = 3;
        expect(&b, &q, GRPC_INVALID_ARGUMENT, "vad is 0, 1 or 2");
        bench_close(&b);
        buf_done(&file);
    }
}

/* One call holds what there is for a window of samples, and those not decided about; what the next one brings
 * has no room, until the first is over. One that needs more than there is at all is told so. */
static void sounds_share_a_bound_of_memory(void **state)
{
    enum { WINDOWS = (2 * 8 + 10) * 16000 * sizeof(float), PIECE = 50000 };
    bench b;
    buf file = {0};
    reply first = {0}, r;
    uint8_t bytes[PIECE + 64];
    bench_open_with(&b, MODEL, WINDOWS + 2 * PIECE);
    Shoal__V1__TranscribeRequest q = request(&file, "08-lights-on.wav"), piece = q;
    piece.audio.len = 1000;
    grpc_client_events ev = {.user = &first, .message = on_event, .end = on_end};
    grpc_client_call *c = grpc_call_open(b.channel, "/shoal.v1.Worker/Transcribe", NULL, &ev);
    grpc_client_send(c, bytes, shoal__v1__transcribe_request__pack(&piece, bytes));
    expect(&b, &q, GRPC_RESOURCE_EXHAUSTED, "MB for sounds in use");
    grpc_client_cancel(c);
    do { /* the worker learns of it by and by */
        ask(&b, &q, &r);
        assert_true(r.status == GRPC_OK || r.status == GRPC_RESOURCE_EXHAUSTED);
        if (r.status == GRPC_OK) assert_string_equal(r.text.data, " lights on");
        buf_done(&r.text);
    } while (r.status != GRPC_OK);
    for (int i = 0; i < 3; i++) { /* and nothing stays counted */
        ask(&b, &q, &r);
        assert_int_equal(r.status, GRPC_OK);
        buf_done(&r.text);
    }
    bench_close(&b);
    bench_open_with(&b, MODEL, WINDOWS / 2);
    expect(&b, &q, GRPC_OUT_OF_RANGE, "more than the");
    bench_close(&b);
    buf_done(&file);
}

/* Under ThreadSanitizer four of the twelve, of both kinds: a client is heard to the end in two of them. */
#ifdef __SANITIZE_THREAD__
#define EVERY_TURN 3
#else
#define EVERY_TURN 1
#endif

/* After so many turns of the loop the client cancels, or everything closes. */
static void clients_and_workers_may_leave_at_any_time(void **state)
{
    buf file = {0};
    Shoal__V1__TranscribeRequest q = request(&file, "05-heat-the-house-to-sixty-one-degrees.wav");
    for (int turns = 0; turns < 12; turns += EVERY_TURN) {
        bench b;
        reply r, left;
        bench_open(&b, MODEL);
        grpc_client_call *c = begin(&b, &q, &left);
        begin(&b, &q, &r);
        for (int i = 0; i < turns && !left.ended; i++) uv_run(&b.loop, UV_RUN_ONCE);
        if (!left.ended) grpc_client_cancel(c);
        if (turns % 2) {
            while (!r.ended) uv_run(&b.loop, UV_RUN_ONCE);
            assert_int_equal(r.status, GRPC_OK);
            assert_string_equal(r.text.data, " heat the house to sixty one degrees");
        }
        bench_close(&b);
        buf_done(&r.text);
        buf_done(&left.text);
    }
    buf_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_becomes_text),
        cmocka_unit_test(a_transcription_goes_on_behind_the_segments_that_came),
        cmocka_unit_test(a_file_may_come_in_pieces),
        cmocka_unit_test(pieces_are_refused_as_soon_as_they_are_wrong),
        cmocka_unit_test(what_cannot_be_heard_is_refused),
        cmocka_unit_test(more_than_a_few_at_once_are_refused),
        cmocka_unit_test(silence_is_heard_where_it_is_asked_for),
        cmocka_unit_test(sounds_share_a_bound_of_memory),
        cmocka_unit_test(clients_and_workers_may_leave_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
