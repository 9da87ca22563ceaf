/* gRPC: its bytes, and calls between our server and our client over a Unix socket, on one loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "grpc/grpc.h"
#include "grpc/grpc_frame.h"
#include "grpc/grpc_gzip.h"

/* ---- bytes ----------------------------------------------------------------------------------- */

static void frames_survive_any_split(void **state)
{
    static const uint8_t bytes[] = {0, 0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'z'};
    for (size_t step = 1; step <= sizeof bytes; step++) {
        grpc_reader r = {.max_message = 10};
        char seen[32] = "";
        for (size_t at = 0; at < sizeof bytes; at += step) {
            const uint8_t *msg;
            size_t n;
            grpc_reader_feed(&r, bytes + at, sizeof bytes - at < step ? sizeof bytes - at : step);
            while (grpc_reader_next(&r, &msg, &n) == 1)
                snprintf(seen + strlen(seen), 16, "[%.*s]", (int)n, msg);
        }
        assert_string_equal(seen, "[abc][][z]");
        assert_true(grpc_reader_is_empty(&r));
        grpc_reader_done(&r);
    }
}

static int next_of(const void *bytes, size_t n)
{
    grpc_reader r = {.max_message = 10};
    const uint8_t *msg;
    size_t n_msg;
    grpc_reader_feed(&r, bytes, n);
    int rc = grpc_reader_next(&r, &msg, &n_msg);
    grpc_reader_done(&r);
    return rc;
}

static void frames_are_bounded_and_checked(void **state)
{
    assert_int_equal(next_of("\0\0\0\0\013", 5), SHOAL_ELIMIT);
    assert_int_equal(next_of("\0\377\377\377\377", 5), SHOAL_ELIMIT);
    assert_int_equal(next_of("\1\0\0\0\1", 5), SHOAL_EUNSUPPORTED);
    assert_int_equal(next_of("\2\0\0\0\1", 5), SHOAL_EPROTOCOL);
    assert_int_equal(next_of("\0\0\0\0", 4), 0);
}

/* One frame of what gzip makes of n bytes, read by a reader that takes so many unpacked. */
static int unpacked(const void *bytes, size_t n, size_t max, size_t cut, bool tail)
{
    grpc_reader r = {.max_message = max, .takes_gzip = true};
    buf packed = {0}, framed = {0};
    uint8_t head[GRPC_FRAME_HEAD];
    const uint8_t *msg;
    size_t n_msg = 0;
    assert_int_equal(grpc_gzip(&packed, bytes, n), 0);
    packed.len -= cut;
    if (tail) buf_putc(&packed, 'x');
    grpc_frame_head(head, packed.len, true);
    buf_append(&framed, head, sizeof head);
    buf_append(&framed, packed.data, packed.len);
    grpc_reader_feed(&r, framed.data, framed.len);
    int rc = grpc_reader_next(&r, &msg, &n_msg);
    if (rc == 1) {
        assert_int_equal(n_msg, n);
        assert_memory_equal(msg, bytes, n);
        assert_int_equal(grpc_reader_next(&r, &msg, &n_msg), 0);
    }
    grpc_reader_done(&r);
    buf_done(&packed);
    buf_done(&framed);
    return rc;
}

static void compressed_messages_are_unpacked_within_bounds(void **state)
{
    static const char zeros[100000];
    assert_int_equal(unpacked("hello", 5, 100, 0, false), 1);
    assert_int_equal(unpacked("", 0, 100, 0, false), 1);
    assert_int_equal(unpacked(zeros, sizeof zeros, sizeof zeros, 0, false), 1);
    assert_int_equal(unpacked(zeros, sizeof zeros, sizeof zeros - 1, 0, false), SHOAL_ELIMIT);
    assert_int_equal(unpacked(zeros, sizeof zeros, sizeof zeros, 1, false), SHOAL_EPROTOCOL);
    assert_int_equal(unpacked("hello", 5, 100, 20, false), SHOAL_EPROTOCOL);
    assert_int_equal(unpacked("hello", 5, 100, 0, true), SHOAL_EPROTOCOL);
}

static void codings_are_found_in_lists(void **state)
{
    assert_true(grpc_coding_is_in("identity, gzip", "gzip") && grpc_coding_is_in("GZIP", "gzip"));
    assert_false(grpc_coding_is_in("gzipped,x-gzip", "gzip") || grpc_coding_is_in(NULL, "gzip") ||
                 grpc_coding_is_in("", "gzip") || grpc_coding_is_in(" , ,", "gzip"));
}

static void timeouts_parse_and_format(void **state)
{
    uint64_t ns = 0;
    char text[16];
    assert_true(grpc_timeout_parse("250m", &ns));
    assert_true(ns == 250000000u);
    assert_true(grpc_timeout_parse("99999999H", &ns));
    assert_true(ns == UINT64_MAX);
    static const char *const bad[] = {"", "5", "m", "-5m", "123456789m", "5x", "5mm", " 5m"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(grpc_timeout_parse(bad[i], &ns));
    for (uint64_t t = 1; t < 1ull << 62; t = t * 7 + 3) {
        grpc_timeout_format(t, text);
        assert_true(grpc_timeout_parse(text, &ns));
        assert_true(ns >= t);
    }
}

static void messages_are_percent_encoded(void **state)
{
    buf wire = {0}, back = {0};
    const char *text = "100 % of h\xc3\xa9ron\n\x7f";
    grpc_message_encode(&wire, text);
    assert_string_equal(wire.data, "100 %25 of h%C3%A9ron%0A%7F");
    grpc_message_decode(&back, wire.data);
    assert_string_equal(back.data, text);
    buf_clear(&back);
    grpc_message_decode(&back, "a%2 %zz %00 %");
    assert_string_equal(back.data, "a%2 %zz %00 %");
    buf_done(&wire);
    buf_done(&back);
}

static void statuses_map_both_ways(void **state)
{
    for (int code = -15; code <= 0; code++) {
        int back = grpc_status_to_err(grpc_status_from_err(code));
        bool folded = code == SHOAL_ENOMEM || code == SHOAL_EFORMAT || code == SHOAL_EIO;
        if (!folded && back != code)
            fail_msg("%s came back as %s", shoal_err_name(code), shoal_err_name(back));
    }
    assert_string_equal(grpc_status_name(GRPC_UNAVAILABLE), "UNAVAILABLE");
    assert_string_equal(grpc_status_name(77), "UNKNOWN");
}

/* ---- calls ----------------------------------------------------------------------------------- */

typedef struct world {
    uv_loop_t loop;
    uv_timer_t guard;
    grpc_server *server;
    grpc_channel *ch;
    char path[64], address[80];
    int n_connected, n_disconnected, n_cancelled, n_held, n_server_calls, closed;
    grpc_call *held;
    char seen_metadata[64];
    uint64_t seen_deadline;
} world;

typedef struct outcome {
    world *w;
    grpc_client_call *call;
    char messages[256];
    size_t n_messages, n_bytes;
    int status; /* -1: open */
    char message[128];
    bool cancel_on_message, close_on_message;
} outcome;

static void on_unary(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    world *w = user;
    const char *m = grpc_call_metadata(c, "x-request-id");
    w->n_server_calls++;
    snprintf(w->seen_metadata, sizeof w->seen_metadata, "%s", m ? m : "-");
    w->seen_deadline = grpc_call_deadline_ns(c);
    grpc_call_send(c, msg, n);
    grpc_call_end(c, GRPC_OK, NULL);
}

static void on_count(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    for (char k = '1'; k <= '5'; k++) grpc_call_send(c, &k, 1);
    grpc_call_end(c, GRPC_OK, "counted");
}

static void on_fail(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    grpc_call_end(c, GRPC_NOT_FOUND, "no h\xc3\xa9ron, 100 %");
}

static void on_cancel(void *user, grpc_call *c)
{
    world *w = user;
    w->n_cancelled++;
    w->held = NULL;
}

static void on_hold(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    world *w = user;
    w->held = c;
    w->n_held++;
    grpc_call_on_cancel(c, on_cancel, w);
    grpc_call_send(c, "held", 4);
}

static const grpc_method methods[] = {
    {"/t.T/Unary", on_unary}, {"/t.T/Count", on_count}, {"/t.T/Fail", on_fail}, {"/t.T/Hold", on_hold}};

static void on_connected(void *user)
{
    ((world *)user)->n_connected++;
}
static void on_disconnected(void *user, const char *why)
{
    ((world *)user)->n_disconnected++;
}
static void on_server_closed(void *user)
{
    ((world *)user)->closed = 1;
}

static void on_guard(uv_timer_t *t)
{
    fprintf(stderr, "the test hangs\n");
    abort();
}

static void turn(world *w)
{
    uv_run(&w->loop, UV_RUN_ONCE);
}

#define RUN_UNTIL(w, condition) \
    while (!(condition)) turn(w)

static void world_listen(world *w, const http_limits *l)
{
    shoal_err err = {0};
    assert_int_equal(grpc_server_new(&w->server, &w->loop, methods, 4, w, l, &err), 0);
    if (grpc_server_listen(w->server, w->address, &err) != 0) fail_msg("%s", err.message);
}

static void world_start(world *w, const http_limits *l)
{
    shoal_err err = {0};
    memset(w, 0, sizeof *w);
    uv_loop_init(&w->loop);
    uv_timer_init(&w->loop, &w->guard);
    uv_timer_start(&w->guard, on_guard, 60000, 0);
    snprintf(w->path, sizeof w->path, "/tmp/shoal-test-%d.sock", (int)getpid());
    snprintf(w->address, sizeof w->address, "unix:%s", w->path);
    world_listen(w, l);
    grpc_channel_events ev = {.user = w, .connected = on_connected, .disconnected = on_disconnected};
    if (grpc_channel_new(&w->ch, &w->loop, w->address, &ev, &err) != 0) fail_msg("%s", err.message);
    RUN_UNTIL(w, w->n_connected == 1);
    assert_true(grpc_channel_is_connected(w->ch));
}

static void world_stop(world *w)
{
    grpc_channel_close(w->ch);
    grpc_server_close(w->server, on_server_closed, w);
    uv_close((uv_handle_t *)&w->guard, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    assert_true(w->closed || !w->server);
    assert_int_not_equal(access(w->path, F_OK), 0);
}

static void on_message(void *user, const uint8_t *msg, size_t n)
{
    outcome *o = user;
    snprintf(o->messages + strlen(o->messages), sizeof o->messages - strlen(o->messages), "[%.*s]",
             (int)(n < 16 ? n : 16), (const char *)msg);
    o->n_messages++;
    o->n_bytes += n;
    if (o->cancel_on_message) {
        grpc_client_cancel(o->call);
        o->status = 99;
    }
    if (o->close_on_message) {
        grpc_channel_close(o->w->ch);
        o->w->ch = NULL;
    }
}

static void on_end(void *user, grpc_status status, const char *message)
{
    outcome *o = user;
    assert_int_equal(o->status, -1);
    o->status = (int)status;
    snprintf(o->message, sizeof o->message, "%s", message);
}

static void start(world *w, outcome *o, const char *path, const void *msg, size_t n, uint64_t deadline_ns)
{
    grpc_client_events ev = {.user = o, .message = on_message, .end = on_end};
    http_header id = {"x-request-id", "r-7"};
    o->w = w;
    o->status = -1;
    o->call = grpc_call_start(w->ch, path, msg, n, &id, 1, deadline_ns, &ev);
    assert_non_null(o->call);
}

static void echoes_a_unary_call(void **state)
{
    world w;
    outcome o = {0};
    world_start(&w, NULL);
    struct stat st;
    assert_int_equal(stat(w.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    uint64_t minute_ns = 60000000000u, deadline = clock_ns() + minute_ns;
    start(&w, &o, "/t.T/Unary", "hello", 5, deadline);
    RUN_UNTIL(&w, o.status >= 0);
    assert_int_equal(o.status, GRPC_OK);
    assert_string_equal(o.messages, "[hello]");
    assert_string_equal(w.seen_metadata, "r-7");
    assert_true(w.seen_deadline >= deadline && w.seen_deadline < deadline + minute_ns);
    world_stop(&w);
}

static void streams_and_reports_errors(void **state)
{
    world w;
    outcome count = {0}, fails = {0}, unknown = {0}, empty = {0};
    world_start(&w, NULL);
    start(&w, &count, "/t.T/Count", "", 0, 0);
    start(&w, &fails, "/t.T/Fail", "", 0, 0);
    start(&w, &unknown, "/t.T/Nope", "", 0, 0);
    start(&w, &empty, "/t.T/Unary", "", 0, 0);
    RUN_UNTIL(&w, count.status >= 0 && fails.status >= 0 && unknown.status >= 0 && empty.status >= 0);
    assert_string_equal(count.messages, "[1][2][3][4][5]");
    assert_string_equal(count.message, "counted");
    assert_int_equal(fails.status, GRPC_NOT_FOUND);
    assert_string_equal(fails.message, "no h\xc3\xa9ron, 100 %");
    assert_int_equal(unknown.status, GRPC_UNIMPLEMENTED);
    assert_string_equal(empty.messages, "[]");
    world_stop(&w);
}

static void carries_many_and_large_messages(void **state)
{
    enum { N = 64, BIG = 3 << 20 };
    world w;
    outcome many[N] = {{0}}, big = {0};
    char *bytes = calloc(1, BIG);
    world_start(&w, NULL);
    start(&w, &big, "/t.T/Unary", bytes, BIG, 0);
    for (int i = 0; i < N; i++) start(&w, &many[i], "/t.T/Unary", &"abcdefgh"[i % 8], 1, 0);
    RUN_UNTIL(&w, big.status >= 0);
    assert_int_equal(big.status, GRPC_OK);
    assert_true(big.n_bytes == BIG);
    for (int i = 0; i < N; i++) {
        RUN_UNTIL(&w, many[i].status >= 0);
        assert_true(many[i].messages[1] == "abcdefgh"[i % 8]);
    }
    free(bytes);
    world_stop(&w);
}

static void refuses_a_message_over_the_limit(void **state)
{
    http_limits l = {.max_body_bytes = 1000};
    char bytes[2000] = {0};
    world w;
    outcome fits = {0}, over = {0}, far_over = {0};
    char *huge = calloc(1, 1 << 20);
    world_start(&w, &l);
    start(&w, &fits, "/t.T/Unary", bytes, 1000, 0);
    start(&w, &over, "/t.T/Unary", bytes, 1001, 0);
    start(&w, &far_over, "/t.T/Unary", huge, 1 << 20, 0);
    RUN_UNTIL(&w, fits.status >= 0 && over.status >= 0 && far_over.status >= 0);
    assert_int_equal(fits.status, GRPC_OK);
    assert_int_equal(over.status, GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(far_over.status, GRPC_RESOURCE_EXHAUSTED);
    free(huge);
    world_stop(&w);
}

/* A call that was over before the server heard of it is no such call: then one with more time. */
static void a_missed_deadline_ends_the_call_on_both_sides(void **state)
{
    world w;
    world_start(&w, NULL);
    for (uint64_t ms = 30; w.n_held == 0; ms *= 4) {
        outcome o = {0};
        start(&w, &o, "/t.T/Hold", "", 0, clock_ns() + ms * 1000000);
        RUN_UNTIL(&w, o.status >= 0);
        assert_int_equal(o.status, GRPC_DEADLINE_EXCEEDED);
    }
    RUN_UNTIL(&w, w.n_cancelled == w.n_held);
    world_stop(&w);
}

static void cancel_stops_the_server_and_says_nothing_more(void **state)
{
    world w;
    outcome o = {0}, inside = {.cancel_on_message = true}, early = {0};
    world_start(&w, NULL);
    start(&w, &o, "/t.T/Hold", "", 0, 0);
    RUN_UNTIL(&w, o.n_messages == 1);
    grpc_client_cancel(o.call);
    RUN_UNTIL(&w, w.n_cancelled == 1);
    start(&w, &inside, "/t.T/Count", "", 0, 0);
    RUN_UNTIL(&w, inside.n_messages == 1);
    start(&w, &early, "/t.T/Count", "", 0, 0);
    grpc_client_cancel(early.call); /* before anything was sent */
    outcome after = {0};
    start(&w, &after, "/t.T/Unary", "x", 1, 0);
    RUN_UNTIL(&w, after.status >= 0);
    assert_int_equal(o.status, -1);
    assert_int_equal(early.status, -1);
    assert_int_equal(early.n_messages, 0);
    assert_int_equal(inside.n_messages, 1);
    assert_int_equal(after.status, GRPC_OK);
    world_stop(&w);
}

/* A server whose peer passes on what its own clients do does not take their leaving for an attack. */
static void calls_given_up_by_the_hundred_spare_the_others(void **state)
{
    enum { N = 600, AT_ONCE = 50 };
    static outcome gone[N];
    const http_limits l = {.max_resets = SIZE_MAX};
    world w;
    outcome held = {0}, after = {0};
    world_start(&w, &l);
    start(&w, &held, "/t.T/Hold", "", 0, 0);
    RUN_UNTIL(&w, held.n_messages == 1);
    for (int i = 0; i < N; i += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++) {
            gone[i + k] = (outcome){.cancel_on_message = true};
            start(&w, &gone[i + k], "/t.T/Hold", "", 0, 0);
        }
        RUN_UNTIL(&w, w.n_cancelled == i + AT_ONCE);
    }
    start(&w, &after, "/t.T/Unary", "x", 1, 0);
    RUN_UNTIL(&w, after.status >= 0);
    assert_int_equal(after.status, GRPC_OK);
    assert_int_equal(held.status, -1);
    assert_int_equal(w.n_disconnected, 0);
    world_stop(&w);
}

static void a_paused_call_holds_the_server_back_and_loses_nothing(void **state)
{
    world w;
    outcome o = {0};
    char kilobyte[1024] = "k";
    world_start(&w, NULL);
    start(&w, &o, "/t.T/Hold", "", 0, 0);
    RUN_UNTIL(&w, o.n_messages == 1);
    grpc_client_pause(o.call, true);
    for (int i = 0; i < 200; i++) grpc_call_send(w.held, kilobyte, sizeof kilobyte);
    size_t all = grpc_call_unsent(w.held);
    RUN_UNTIL(&w, grpc_call_unsent(w.held) < all);
    for (int i = 0; i < 5; i++) { /* others on the connection go on, whatever waits for this one */
        outcome other = {0};
        start(&w, &other, "/t.T/Unary", kilobyte, sizeof kilobyte, 0);
        RUN_UNTIL(&w, other.status >= 0);
        assert_int_equal(other.status, GRPC_OK);
    }
    assert_int_equal(o.n_messages, 1);
    assert_true(grpc_call_unsent(w.held) > 100 * 1024);
    grpc_call_end(w.held, GRPC_OK, NULL);
    grpc_client_pause(o.call, false);
    assert_int_equal(o.n_messages, 1); /* nothing comes from inside the call */
    RUN_UNTIL(&w, o.status >= 0);
    assert_int_equal(o.status, GRPC_OK);
    assert_int_equal(o.n_messages, 201);
    assert_int_equal(o.n_bytes, 4 + 200 * 1024);
    world_stop(&w);
}

/* Its last byte has come, and nobody has seen the first. */
static void a_call_that_ends_while_paused_is_delivered_afterwards(void **state)
{
    world w;
    outcome counted = {0}, cancelled = {0}, late = {0}, other = {0};
    world_start(&w, NULL);
    start(&w, &counted, "/t.T/Count", "", 0, 0);
    start(&w, &cancelled, "/t.T/Count", "", 0, 0);
    start(&w, &late, "/t.T/Count", "", 0, clock_ns() + 300000000u);
    grpc_client_pause(counted.call, true);
    grpc_client_pause(cancelled.call, true);
    grpc_client_pause(late.call, true);
    start(&w, &other, "/t.T/Unary", "", 0, 0);
    RUN_UNTIL(&w, other.status >= 0 && late.status >= 0);
    assert_int_equal(late.status, GRPC_DEADLINE_EXCEEDED);
    assert_int_equal(counted.status, -1);
    assert_int_equal(counted.n_messages + cancelled.n_messages + late.n_messages, 0);
    grpc_client_cancel(cancelled.call);
    grpc_client_pause(counted.call, false);
    RUN_UNTIL(&w, counted.status >= 0);
    assert_int_equal(counted.status, GRPC_OK);
    assert_string_equal(counted.messages, "[1][2][3][4][5]");
    assert_int_equal(cancelled.status, -1);
    world_stop(&w);
}

static void losing_the_server_ends_calls_and_the_channel_may_reconnect(void **state)
{
    world w;
    outcome o = {0}, again = {0};
    world_start(&w, NULL);
    start(&w, &o, "/t.T/Hold", "", 0, 0);
    RUN_UNTIL(&w, o.n_messages == 1);
    grpc_server_close(w.server, on_server_closed, &w);
    RUN_UNTIL(&w, w.n_disconnected == 1 && w.closed);
    assert_int_equal(o.status, GRPC_UNAVAILABLE);
    assert_int_equal(w.n_cancelled, 1);
    assert_false(grpc_channel_is_connected(w.ch));
    assert_null(grpc_call_start(w.ch, "/t.T/Unary", "", 0, NULL, 0, 0, &(grpc_client_events){0}));
    grpc_channel_connect(w.ch); /* nobody listens */
    RUN_UNTIL(&w, w.n_disconnected == 2);
    w.closed = 0;
    world_listen(&w, NULL);
    grpc_channel_connect(w.ch);
    RUN_UNTIL(&w, w.n_connected == 2);
    start(&w, &again, "/t.T/Unary", "x", 1, 0);
    RUN_UNTIL(&w, again.status >= 0);
    assert_int_equal(again.status, GRPC_OK);
    world_stop(&w);
}

static void closing_the_channel_cancels_its_calls(void **state)
{
    world w;
    outcome o = {0}, inside = {.close_on_message = true};
    world_start(&w, NULL);
    start(&w, &o, "/t.T/Hold", "", 0, 0);
    RUN_UNTIL(&w, o.n_messages == 1);
    start(&w, &inside, "/t.T/Count", "", 0, 0);
    RUN_UNTIL(&w, inside.status >= 0);
    assert_int_equal(o.status, GRPC_CANCELLED);
    assert_int_equal(inside.status, GRPC_CANCELLED);
    RUN_UNTIL(&w, w.n_cancelled == 1);
    assert_int_equal(w.n_disconnected, 0);
    world_stop(&w);
}

static void on_drained(void *user)
{
    ((world *)user)->n_server_calls = 1000;
}

static void drain_lets_running_calls_finish(void **state)
{
    world w;
    outcome o = {0};
    world_start(&w, NULL);
    start(&w, &o, "/t.T/Hold", "", 0, 0);
    RUN_UNTIL(&w, o.n_messages == 1);
    grpc_server_drain(w.server, on_drained, &w);
    for (int i = 0; i < 5; i++) uv_run(&w.loop, UV_RUN_NOWAIT);
    assert_null(grpc_call_start(w.ch, "/t.T/Unary", "", 0, NULL, 0, 0, &(grpc_client_events){0}));
    assert_int_equal(o.status, -1);
    grpc_call_send(w.held, "last", 4);
    grpc_call_end(w.held, GRPC_OK, NULL);
    RUN_UNTIL(&w, w.n_server_calls == 1000 && w.n_disconnected == 1);
    assert_int_equal(o.status, GRPC_OK);
    assert_string_equal(o.messages, "[held][last]");
    world_stop(&w);
}

static void listens_only_where_it_may(void **state)
{
    world w;
    shoal_err err = {0};
    grpc_server *second;
    char file[64], address[80];
    world_start(&w, NULL);
    assert_int_equal(grpc_server_new(&second, &w.loop, methods, 4, &w, NULL, &err), 0);
    assert_int_equal(grpc_server_listen(second, w.address, &err), SHOAL_EIO); /* in use: not stolen */
    snprintf(file, sizeof file, "/tmp/shoal-test-%d.txt", (int)getpid());
    snprintf(address, sizeof address, "unix:%s", file);
    fclose(fopen(file, "w"));
    assert_int_equal(grpc_server_listen(second, address, &err), SHOAL_EINVALID);
    assert_int_equal(access(file, F_OK), 0);
    unlink(file);
    static const char *const bad[] = {"", "nonsense", "host:", "host:99999", "unix:", "::1:80", "host:1x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(grpc_server_listen(second, bad[i], &err), SHOAL_EINVALID);
    grpc_server_close(second, NULL, NULL);
    world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_survive_any_split),
        cmocka_unit_test(frames_are_bounded_and_checked),
        cmocka_unit_test(compressed_messages_are_unpacked_within_bounds),
        cmocka_unit_test(codings_are_found_in_lists),
        cmocka_unit_test(timeouts_parse_and_format),
        cmocka_unit_test(messages_are_percent_encoded),
        cmocka_unit_test(statuses_map_both_ways),
        cmocka_unit_test(echoes_a_unary_call),
        cmocka_unit_test(streams_and_reports_errors),
        cmocka_unit_test(carries_many_and_large_messages),
        cmocka_unit_test(refuses_a_message_over_the_limit),
        cmocka_unit_test(a_missed_deadline_ends_the_call_on_both_sides),
        cmocka_unit_test(cancel_stops_the_server_and_says_nothing_more),
        cmocka_unit_test(calls_given_up_by_the_hundred_spare_the_others),
        cmocka_unit_test(a_paused_call_holds_the_server_back_and_loses_nothing),
        cmocka_unit_test(a_call_that_ends_while_paused_is_delivered_afterwards),
        cmocka_unit_test(losing_the_server_ends_calls_and_the_channel_may_reconnect),
        cmocka_unit_test(closing_the_channel_cancels_its_calls),
        cmocka_unit_test(drain_lets_running_calls_finish),
        cmocka_unit_test(listens_only_where_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
