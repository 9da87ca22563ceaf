/* Score and ClassifyImage of real workers over a real Unix socket: trees, the LSTM and the small ViT. */
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
#include <math.h>

#include "../signal/scans.h"
#include "base/clock.h"
#include "base/file.h"
#include "json/json.h"
#include "logging/log.h"
#include "formats/csv.h"
#include "shoal/v1/worker.pb-c.h"
#include "grpc/grpc.h"
#include "worker/worker.h"

#define DATA  SHOAL_SOURCE_DIR "/tests/data/"
#define TREES DATA "sensors/trees"
#define LSTM  DATA "sensors/lstm"
#define VIT   DATA "hf/vit-tiny"

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
    (void)why;
    ((bench *)user)->connected = false;
}

static void bench_open(bench *b, const char *model)
{
    *b = (bench){0};
    log_setup(LOG_OFF, false);
    strcpy(b->dir, "/tmp/shoal-test-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    snprintf(b->address, sizeof b->address, "unix:%s/w.sock", b->dir);
    assert_int_equal(uv_loop_init(&b->loop), 0);
    worker_options o = {.model = {.name = "tiny", .path = model, .engine = {.n_threads = 2}},
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
    if (b->channel) grpc_channel_close(b->channel);
    worker_close(b->w, NULL, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    assert_int_equal(rmdir(b->dir), 0);
}

typedef struct reply {
    buf message;
    bool ended;
    int status;
    char why[512];
} reply;

static void on_message(void *user, const uint8_t *msg, size_t n)
{
    buf_append(&((reply *)user)->message, msg, n);
}

static void on_end(void *user, grpc_status status, const char *message)
{
    reply *r = user;
    assert_false(r->ended);
    r->ended = true;
    r->status = (int)status;
    snprintf(r->why, sizeof r->why, "%s", message ? message : "");
}

static grpc_client_call *begin(bench *b, const char *path, const ProtobufCMessage *m, reply *r,
                               uint64_t deadline_ns)
{
    size_t n = m ? protobuf_c_message_get_packed_size(m) : 0;
    uint8_t *bytes = malloc(n + 1);
    if (m) protobuf_c_message_pack(m, bytes);
    *r = (reply){0};
    grpc_client_events ev = {.user = r, .message = on_message, .end = on_end};
    grpc_client_call *c = grpc_call_start(b->channel, path, bytes, n, NULL, 0, deadline_ns, &ev);
    free(bytes);
    assert_non_null(c);
    return c;
}

static void wait_for(bench *b, reply *r)
{
    while (!r->ended) uv_run(&b->loop, UV_RUN_ONCE);
}

static Shoal__V1__ScoreRequest score_request(const void *text, size_t n)
{
    Shoal__V1__ScoreRequest q = SHOAL__V1__SCORE_REQUEST__INIT;
    q.csv = (ProtobufCBinaryData){.data = (uint8_t *)text, .len = n};
    return q;
}

#define SCORE "/shoal.v1.Worker/Score"
#define IMAGE "/shoal.v1.Worker/ClassifyImage"

static Shoal__V1__ScoreReply *score(bench *b, const void *text, size_t n)
{
    reply r;
    Shoal__V1__ScoreRequest q = score_request(text, n);
    begin(b, SCORE, &q.base, &r, 0);
    wait_for(b, &r);
    if (r.status != GRPC_OK) fail_msg("Score: %s", r.why);
    Shoal__V1__ScoreReply *m =
        shoal__v1__score_reply__unpack(NULL, r.message.len, (const uint8_t *)r.message.data);
    assert_non_null(m);
    assert_true(m->timing && m->timing->cpu_ms > 0);
    buf_done(&r.message);
    return m;
}

static void refuses(bench *b, const char *path, const ProtobufCMessage *q, int status, const char *part)
{
    reply r;
    begin(b, path, q, &r, 0);
    wait_for(b, &r);
    if (r.status != status || !strstr(r.why, part))
        fail_msg("%s: %s \"%s\", not %s with \"%s\"", path, grpc_status_name(r.status), r.why,
                 grpc_status_name(status), part);
    buf_done(&r.message);
}

static void refuses_text(bench *b, const char *text, size_t n, int status, const char *part)
{
    Shoal__V1__ScoreRequest q = score_request(text, n);
    refuses(b, SCORE, &q.base, status, part);
}

/* ---- trees ------------------------------------------------------------------------------------------ */

static void trees_describe_themselves(void **state)
{
    (void)state;
    bench b;
    reply r;
    bench_open(&b, TREES);
    begin(&b, "/shoal.v1.Worker/Describe", NULL, &r, 0);
    wait_for(&b, &r);
    Shoal__V1__ModelInfo *m =
        shoal__v1__model_info__unpack(NULL, r.message.len, (const uint8_t *)r.message.data);
    assert_non_null(m);
    assert_string_equal(m->task, "score");
    assert_string_equal(m->architecture, "lightgbm");
    assert_int_equal(m->n_labels, 3);
    assert_string_equal(m->labels[0], "normal");
    assert_int_equal(strlen(m->digest), 64);
    shoal__v1__model_info__free_unpacked(m, NULL);
    buf_done(&r.message);
    bench_close(&b);
}

static void put_reference(buf *out, const json_t *doc)
{
    const json_t *names = json_object_get(doc, "features"), *rows = json_object_get(doc, "rows");
    for (size_t i = 0; i < 20; i++)
        buf_printf(out, "%s%s", i ? ";" : "", json_string_value(json_array_get(names, i)));
    for (size_t r = 0; r < json_array_size(rows); r++)
        for (size_t i = 0; i < 20; i++)
            buf_printf(out, "%s%.17g", i ? ";" : "\r\n",
                       json_number_value(json_array_get(json_object_get(json_array_get(rows, r), "x"), i)));
}

static void trees_agree_with_the_reference(void **state)
{
    (void)state;
    bench b;
    json_t *doc = NULL;
    buf text = {0};
    assert_int_equal(json_parse_file(&doc, TREES "/expected.json", 1 << 20, NULL), 0);
    put_reference(&text, doc);
    bench_open(&b, TREES);
    Shoal__V1__ScoreReply *m = score(&b, text.data, text.len);
    assert_int_equal(m->n_rows, 50);
    assert_int_equal(m->n_read, 50);
    assert_int_equal(m->n_sensors, 0);
    for (size_t i = 0; i < m->n_rows; i++) {
        const json_t *want = json_array_get(json_object_get(doc, "rows"), i);
        assert_int_equal(m->rows[i]->n_scores, 3);
        assert_int_equal(m->rows[i]->n_raw, 3);
        assert_int_equal(m->rows[i]->row, i);
        size_t best = 0;
        for (size_t k = 0; k < 3; k++) {
            double p = json_number_value(json_array_get(json_object_get(want, "prob"), k));
            double raw = json_number_value(json_array_get(json_object_get(want, "raw"), k));
            assert_true(fabs(m->rows[i]->scores[k] - p) <= 1e-12);
            assert_true(fabs(m->rows[i]->raw[k] - raw) <= 1e-12 * (1 + fabs(raw)));
            if (m->rows[i]->scores[k] > m->rows[i]->scores[best]) best = k;
        }
        assert_string_equal(m->rows[i]->label, m->labels[best]);
    }
    shoal__v1__score_reply__free_unpacked(m, NULL);
    buf_done(&text);
    json_decref(doc);
    bench_close(&b);
}

static void hostile_texts_are_refused_and_the_worker_lives(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
        size_t n;
    } CASES[] = {
#define CASE(text, part) {text, part, sizeof(text) - 1}
        CASE("", "header"),
        CASE("\n\n\n", "header"),
        CASE("a,b\n1,2\n", "\"vibration\" is missing"),
        CASE("vibration,temperature,current,pressure\n1,2,3\n", "line 2"),
        CASE("vibration,temperature,current,pressure\n1,2,3,\"4\n", "line 2"),
        CASE("vibration,temperature,current,pressure\n1,2,3,1e999\n", "line 2"),
        CASE("vibration,temperature,current,pressure\n1,2,3,0x10\n", "line 2"),
        CASE("vibration,temperature,current,pressure\n1,2,3,\xff\n", "UTF-8"),
        CASE("vibration,temperature,current\0,pressure\n", "NUL"),
#undef CASE
    };
    bench b;
    bench_open(&b, TREES);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        refuses_text(&b, CASES[i].text, CASES[i].n, GRPC_INVALID_ARGUMENT, CASES[i].part);
    Shoal__V1__ScoreReply *m = score(&b, "vibration,temperature,current,pressure\n1,2,3,4\n", 47);
    assert_int_equal(m->n_rows, 0);
    assert_int_equal(m->n_read, 1);
    assert_int_equal(m->n_sensors, 1);
    shoal__v1__score_reply__free_unpacked(m, NULL);

    Shoal__V1__EmbedRequest embed = SHOAL__V1__EMBED_REQUEST__INIT;
    Shoal__V1__GenerateRequest generate = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__TextInput input = SHOAL__V1__TEXT_INPUT__INIT;
    Shoal__V1__TokenizeRequest tokenize = SHOAL__V1__TOKENIZE_REQUEST__INIT;
    Shoal__V1__ImageRequest image = SHOAL__V1__IMAGE_REQUEST__INIT;
    tokenize.input = &input;
    refuses(&b, "/shoal.v1.Worker/Embed", &embed.base, GRPC_UNIMPLEMENTED, "score");
    refuses(&b, "/shoal.v1.Worker/Generate", &generate.base, GRPC_UNIMPLEMENTED, "score");
    refuses(&b, "/shoal.v1.Worker/Tokenize", &tokenize.base, GRPC_UNIMPLEMENTED, "trees");
    refuses(&b, IMAGE, &image.base, GRPC_UNIMPLEMENTED, "score");
    bench_close(&b);
}

/* A row of 20 numbers in 40 bytes makes an answer of many times that. */
/* Of 200,000 rows and one thread ThreadSanitizer learns nothing. */
#ifndef __SANITIZE_THREAD__
static void answers_are_bounded(void **state)
{
    (void)state;
    bench b;
    json_t *doc = NULL;
    buf text = {0};
    assert_int_equal(json_parse_file(&doc, TREES "/expected.json", 1 << 20, NULL), 0);
    for (size_t i = 0; i < 20; i++)
        buf_printf(&text, "%s%s", i ? "," : "",
                   json_string_value(json_array_get(json_object_get(doc, "features"), i)));
    buf_putc(&text, '\n');
    for (size_t i = 0; i < 200000; i++) buf_puts(&text, "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1\n");
    bench_open(&b, TREES);
    refuses_text(&b, text.data, text.len, GRPC_OUT_OF_RANGE, "send fewer rows");
    buf_done(&text);
    json_decref(doc);
    bench_close(&b);
}
#endif

/* ---- the LSTM --------------------------------------------------------------------------------------- */

/* Under a sanitizer the first of the lines: the windows go the same way, one after the other. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { DEMO_LINES = 8000, DEMO_ROWS = 362, DEMO_FAULTS = 28 };
#else
enum { DEMO_LINES = 1 << 20, DEMO_ROWS = 3554, DEMO_FAULTS = 588 };
#endif

static void read_demo(buf *out)
{
    csv *c = NULL;
    shoal_err err;
    assert_int_equal(csv_open(&c, DATA "sensors/demo.csv.gz", &err), 0);
    for (size_t i = 0; i < csv_columns(c); i++) buf_printf(out, "%s%s", i ? "," : "", csv_name(c, i));
    for (size_t n = 0; n < DEMO_LINES && csv_next(c, &err) == 1; n++) {
        buf_putc(out, '\n');
        for (size_t i = 0; i < csv_columns(c); i++) buf_printf(out, "%s%s", i ? "," : "", csv_field(c, i));
    }
    csv_close(c);
}

static void networks_score_windows_and_calls_run_beside_each_other(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    enum { N = 2 };
#else
    enum { N = 3 };
#endif
    bench b;
    buf text = {0};
    reply r[N];
    read_demo(&text);
    bench_open(&b, LSTM);
    Shoal__V1__ScoreRequest q = score_request(text.data, text.len);
    for (int i = 0; i < N; i++) begin(&b, SCORE, &q.base, &r[i], 0);
    for (int i = 0; i < N; i++) wait_for(&b, &r[i]);
    for (int i = 0; i < N; i++) {
        Shoal__V1__ScoreReply *m =
            shoal__v1__score_reply__unpack(NULL, r[i].message.len, (const uint8_t *)r[i].message.data);
        assert_non_null(m);
        assert_int_equal(m->n_rows, DEMO_ROWS);
        assert_int_equal(m->n_sensors, 28);
        size_t faults = 0;
        for (size_t k = 0; k < m->n_rows; k++) faults += strcmp(m->rows[k]->label, "fault") == 0;
        assert_int_equal(faults, DEMO_FAULTS);
        shoal__v1__score_reply__free_unpacked(m, NULL);
    }
    for (int i = 0; i < N; i++) buf_done(&r[i].message);
    buf_done(&text);
    bench_close(&b);
}

static void callers_may_leave_and_workers_close_in_the_middle(void **state)
{
    (void)state;
    static const char *const MODELS[] = {LSTM, TREES};
    buf text = {0};
    read_demo(&text);
    Shoal__V1__ScoreRequest q = score_request(text.data, text.len);
    for (int k = 0; k < 2; k++) {
        bench b;
        reply r[4];
        bench_open(&b, MODELS[k]);
        grpc_client_call *gone = begin(&b, SCORE, &q.base, &r[0], 0);
        for (int i = 1; i < 4; i++) begin(&b, SCORE, &q.base, &r[i], 0);
        for (int i = 0; i < 5; i++) uv_run(&b.loop, UV_RUN_ONCE);
        grpc_client_cancel(gone);
        for (int i = 0; i < 5; i++) uv_run(&b.loop, UV_RUN_NOWAIT);
        bench_close(&b); /* the channel ends the calls, the worker waits for its threads */
        for (int i = 0; i < 4; i++) buf_done(&r[i].message);
    }
    buf_done(&text);
}

static void a_deadline_that_has_passed_is_said(void **state)
{
    (void)state;
    bench b;
    buf text = {0};
    reply r;
    read_demo(&text);
    bench_open(&b, LSTM);
    Shoal__V1__ScoreRequest q = score_request(text.data, text.len);
    begin(&b, SCORE, &q.base, &r, clock_ns() + 1000000);
    wait_for(&b, &r);
    assert_int_equal(r.status, GRPC_DEADLINE_EXCEEDED);
    buf_done(&r.message);
    buf_done(&text);
    bench_close(&b);
}

/* ---- pictures --------------------------------------------------------------------------------------- */

static void pictures_are_classified_and_broken_ones_refused(void **state)
{
    (void)state;
    bench b;
    reply r;
    file_map map = {0};
    assert_int_equal(file_map_open(&map, DATA "signal/baseline.jpg", NULL), 0);
    Shoal__V1__ImageRequest q = SHOAL__V1__IMAGE_REQUEST__INIT;
    q.image = (ProtobufCBinaryData){.data = (uint8_t *)map.data, .len = map.len};
    bench_open(&b, VIT);
    begin(&b, IMAGE, &q.base, &r, 0);
    wait_for(&b, &r);
    if (r.status != GRPC_OK) fail_msg("%s", r.why);
    Shoal__V1__ClassifyReply *m =
        shoal__v1__classify_reply__unpack(NULL, r.message.len, (const uint8_t *)r.message.data);
    assert_true(m && m->n_results == 1 && m->results[0]->n_labels == 4 && m->results[0]->n_logits == 4);
    assert_true(m->timing && m->timing->cpu_ms > 0);
    double sum = 0;
    for (size_t i = 0; i < 4; i++) sum += (double)m->results[0]->labels[i]->score;
    assert_true(fabs(sum - 1) < 1e-5);
    assert_true(m->results[0]->labels[0]->score >= m->results[0]->labels[1]->score);
    shoal__v1__classify_reply__free_unpacked(m, NULL);
    buf_done(&r.message);
    q.image.len = map.len / 2;
    refuses(&b, IMAGE, &q.base, GRPC_INVALID_ARGUMENT, "");
    q.image.len = 0;
    refuses(&b, IMAGE, &q.base, GRPC_INVALID_ARGUMENT, "");
    /* A header that promises 65500 x 65500 pixels. */
    static const uint8_t BOMB[] = {0x89, 'P',  'N', 'G', 13,  10, 26, 10,   0,    0, 0,
                                   13,   'I',  'H', 'D', 'R', 0,  0,  0xff, 0xdc, 0, 0,
                                   0xff, 0xdc, 8,   2,   0,   0,  0,  0,    0,    0, 0};
    q.image = (ProtobufCBinaryData){.data = (uint8_t *)BOMB, .len = sizeof BOMB};
    reply bomb;
    begin(&b, IMAGE, &q.base, &bomb, 0);
    wait_for(&b, &bomb);
    assert_true(bomb.status == GRPC_INVALID_ARGUMENT || bomb.status == GRPC_OUT_OF_RANGE);
    buf_done(&bomb.message);
    refuses_text(&b, "a\n1\n", 4, GRPC_UNIMPLEMENTED, "classify-image");
    file_map_close(&map);
    bench_close(&b);
}

/* Sixty-four scans over four megapixels: said, and not decoded. Pictures of clients that left are not,
 * either, and one that is asked for meanwhile has its answer. */
static void what_takes_too_much_work_is_refused(void **state)
{
    enum { N = 12 };
    bench b;
    reply r[N], small;
    grpc_client_call *calls[N];
    file_map map;
    Shoal__V1__ImageRequest q = SHOAL__V1__IMAGE_REQUEST__INIT;
    bench_open(&b, VIT);
    buf many = make_scans(2048, 64), heavy = make_scans(1000, 12);
    q.image = (ProtobufCBinaryData){.data = (uint8_t *)many.data, .len = many.len};
    refuses(&b, IMAGE, &q.base, GRPC_OUT_OF_RANGE, "send it smaller, or not progressive");
    q.image = (ProtobufCBinaryData){.data = (uint8_t *)heavy.data, .len = heavy.len};
    for (size_t i = 0; i < N; i++) calls[i] = begin(&b, IMAGE, &q.base, &r[i], 0);
    for (size_t i = 0; i < N; i++) grpc_client_cancel(calls[i]);
    assert_int_equal(file_map_open(&map, DATA "signal/rgb.png", NULL), 0);
    q.image = (ProtobufCBinaryData){.data = (uint8_t *)map.data, .len = map.len};
    begin(&b, IMAGE, &q.base, &small, 0);
    wait_for(&b, &small);
    if (small.status != GRPC_OK) fail_msg("%s", small.why);
    buf_done(&small.message);
    file_map_close(&map);
    buf_done(&many);
    buf_done(&heavy);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_describe_themselves),
        cmocka_unit_test(trees_agree_with_the_reference),
        cmocka_unit_test(hostile_texts_are_refused_and_the_worker_lives),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(answers_are_bounded),
#endif
        cmocka_unit_test(networks_score_windows_and_calls_run_beside_each_other),
        cmocka_unit_test(callers_may_leave_and_workers_close_in_the_middle),
        cmocka_unit_test(a_deadline_that_has_passed_is_said),
        cmocka_unit_test(pictures_are_classified_and_broken_ones_refused),
        cmocka_unit_test(what_takes_too_much_work_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
