/* gRPC streams: requests and replies one by one, in either direction, and what holds them back. */
#include "grpc_world.h"

#include <arpa/inet.h>
#include <sys/socket.h>

enum { WINDOW = 256 << 10 }; /* what a stream's sender may be ahead of a server that rests */

static void messages_go_both_ways_while_the_call_is_open(void **state)
{
    world w;
    outcome o = {0};
    world_start(&w, NULL);
    world_open(&w, &o, "/s.S/Echo", NULL);
    RUN_UNTIL(&w, w.n_begun == 1); /* before any message */
    assert_int_equal(grpc_client_send(o.call, "one", 3), 0);
    RUN_UNTIL(&w, o.n_messages == 1);
    assert_int_equal(grpc_client_send(o.call, "", 0), 0);
    assert_int_equal(grpc_client_send(o.call, "three", 5), 0);
    RUN_UNTIL(&w, o.n_messages == 3);
    assert_int_equal(o.status, -1);
    assert_int_equal(w.n_ended, 0);
    grpc_client_half_close(o.call);
    assert_int_equal(grpc_client_send(o.call, "late", 4), SHOAL_EINVALID);
    RUN_UNTIL(&w, o.status >= 0);
    assert_int_equal(o.status, GRPC_OK);
    assert_string_equal(o.messages, "[one][][three]");
    assert_int_equal(w.n_cancelled, 0);
    world_stop(&w);
}

static void a_stream_of_requests_has_one_answer(void **state)
{
    world w;
    outcome many = {.n_to_send = 3000, .n_each = 1000}, none = {0}, big = {0};
    char *bytes = calloc(1, 1 << 20);
    world_start(&w, NULL);
    world_open(&w, &many, "/s.S/Sum", NULL);
    world_open(&w, &none, "/s.S/Sum", NULL);
    world_open(&w, &big, "/s.S/Sum", NULL);
    outcome_feed(&many);
    grpc_client_half_close(none.call);
    for (int i = 0; i < 3; i++) assert_int_equal(grpc_client_send(big.call, bytes, 1 << 20), 0);
    grpc_client_half_close(big.call);
    RUN_UNTIL(&w, many.status >= 0 && none.status >= 0 && big.status >= 0);
    assert_string_equal(many.messages, "[3000 messages, 3000000 bytes]");
    assert_string_equal(none.messages, "[0 messages, 0 bytes]");
    assert_string_equal(big.messages, "[3 messages, 3145728 bytes]");
    assert_true(many.n_drained > 5);
    free(bytes);
    world_stop(&w);
}

/* As of pipelined requests: however many have come, the others are served between. */
static void messages_of_a_connection_come_a_few_a_turn(void **state)
{
    enum { N = 2000, A_FEW = 16 };
    world w;
    outcome one = {.n_to_send = N, .n_each = 1}, two = {.n_to_send = N, .n_each = 1};
    size_t before = 0, most = 0;
    world_start(&w, NULL);
    world_open(&w, &one, "/s.S/Sum", NULL);
    world_open(&w, &two, "/s.S/Sum", NULL);
    outcome_feed(&one);
    outcome_feed(&two);
    while (one.status < 0 || two.status < 0) {
        uv_run(&w.loop, UV_RUN_ONCE);
        if (w.n_messages - before > most) most = w.n_messages - before;
        before = w.n_messages;
    }
    assert_string_equal(one.messages, "[2000 messages, 2000 bytes]");
    assert_string_equal(two.messages, "[2000 messages, 2000 bytes]");
    assert_in_range(most, 1, A_FEW);
    world_stop(&w);
}

/* Both ends hold back: neither ever has more than its mark and a message in memory. */
static void an_echo_of_megabytes_needs_little_memory(void **state)
{
    world w;
    outcome o = {.n_to_send = 2000, .n_each = 8000};
    world_start(&w, NULL);
    world_open(&w, &o, "/s.S/Echo", NULL);
    outcome_feed(&o);
    RUN_UNTIL(&w, o.status >= 0);
    assert_int_equal(o.status, GRPC_OK);
    assert_int_equal(o.n_messages, 2000);
    assert_int_equal(o.n_bytes, 16000000);
    assert_true(w.most_unsent <= GRPC_CALM_BYTES + 8005);
    world_stop(&w);
}

static void a_handler_that_rests_holds_its_client_back(void **state)
{
    world w;
    outcome o = {0}, other = {0};
    char kilobyte[1024] = "k";
    size_t n = 0;
    int rc;
    world_start(&w, NULL);
    w.rests = true;
    world_open(&w, &o, "/s.S/Rest", &(grpc_call_options){.max_unsent = 100000});
    do {
        while ((rc = grpc_client_send(o.call, kilobyte, sizeof kilobyte)) == 0) n++;
        world_turns(&w, 20);
    } while (grpc_client_unsent(o.call) < 90000);
    assert_int_equal(rc, SHOAL_EFULL);
    assert_true(n * 1029 <= WINDOW + 100000);
    assert_int_equal(w.n_messages, 0);
    world_unary_call(&w, &other, "x", 1); /* others go on */
    RUN_UNTIL(&w, other.status >= 0);
    assert_int_equal(other.status, GRPC_OK);
    grpc_client_half_close(o.call);
    world_wake(&w);
    assert_int_equal(w.n_messages, 0); /* not from inside the call */
    RUN_UNTIL(&w, o.status >= 0);
    assert_int_equal(o.status, GRPC_OK);
    assert_int_equal(w.n_messages, n);
    world_stop(&w);
}

/* More than the server keeps for one connection: its window shuts, and opens again. */
static void many_resting_handlers_shut_the_connection_and_lose_nothing(void **state)
{
    enum { N = 48 };
    world w;
    outcome *o = calloc(N, sizeof *o), other = {0};
    world_start(&w, NULL);
    w.rests = true;
    for (int i = 0; i < N; i++) {
        o[i] = (outcome){.n_to_send = 40, .n_each = 10000};
        world_open(&w, &o[i], "/s.S/Rest", NULL);
        outcome_feed(&o[i]);
    }
    RUN_UNTIL(&w, w.n_begun == N);
    world_turns(&w, 2000);
    size_t left = 0;
    for (int i = 0; i < N; i++) left += o[i].n_sent * 10005 - grpc_client_unsent(o[i].call);
    assert_true(left > 4 << 20);
    assert_true(left <= (8 << 20) + (1 << 20) + WINDOW); /* kept, the connection's window, one stream's */
    assert_int_equal(w.n_messages, 0);
    world_wake(&w);
    for (int i = 0; i < N; i++) {
        RUN_UNTIL(&w, o[i].status >= 0);
        assert_string_equal(o[i].messages, "[40 messages, 400000 bytes]");
    }
    world_unary_call(&w, &other, "x", 1);
    RUN_UNTIL(&w, other.status >= 0);
    free(o);
    world_stop(&w);
}

static void a_client_that_rests_holds_its_server_back(void **state)
{
    world w;
    outcome o = {0};
    world_start(&w, NULL);
    w.n_flood = 4000;
    world_open(&w, &o, "/s.S/Flood", NULL);
    grpc_client_pause(o.call, true);
    RUN_UNTIL(&w, w.n_begun == 1);
    world_turns(&w, 500);
    assert_int_equal(o.n_messages, 0);
    assert_true(w.n_flooded < 300); /* a window of 64 KiB, the mark of 64 KiB, and what is in the frames */
    grpc_client_pause(o.call, false);
    RUN_UNTIL(&w, o.status >= 0);
    assert_int_equal(o.status, GRPC_OK);
    assert_int_equal(o.n_messages, 4000);
    world_stop(&w);
}

static void the_server_may_end_before_the_client_has(void **state)
{
    world w;
    outcome refused = {.n_to_send = 100, .n_each = 10000}, first = {0}, paused = {0};
    world_start(&w, NULL);
    world_open(&w, &refused, "/s.S/Refuse", NULL);
    world_open(&w, &first, "/s.S/First", NULL);
    world_open(&w, &paused, "/s.S/First", NULL);
    outcome_feed(&refused);
    for (int i = 0; i < 3; i++) assert_int_equal(grpc_client_send(first.call, "abc", 3), 0);
    grpc_client_send(paused.call, "p", 1);
    grpc_client_pause(paused.call, true);
    RUN_UNTIL(&w, refused.status >= 0 && first.status >= 0);
    assert_int_equal(refused.status, GRPC_PERMISSION_DENIED);
    assert_string_equal(refused.message, "not you");
    assert_int_equal(first.status, GRPC_ABORTED);
    assert_string_equal(first.messages, "[abc]");
    world_turns(&w, 20);
    assert_int_equal(paused.status, -1);
    grpc_client_send(paused.call, "q", 1); /* into a stream that is over: as if it had been under way */
    grpc_client_pause(paused.call, false);
    RUN_UNTIL(&w, paused.status >= 0);
    assert_string_equal(paused.messages, "[p]");
    assert_int_equal(paused.status, GRPC_ABORTED);
    assert_int_equal(w.n_cancelled, 0);
    world_stop(&w);
}

static void a_call_may_be_cancelled_from_any_event(void **state)
{
    world w;
    outcome o[4] = {{.act = CANCEL_ON_MESSAGE}, {.act = CANCEL_ON_METADATA}, {.act = CANCEL_ON_DRAINED}, {0}};
    world_start(&w, NULL);
    for (int i = 0; i < 4; i++) {
        world_open(&w, &o[i], i == 1 ? "/s.S/Meta" : "/s.S/Echo", NULL);
        grpc_client_send(o[i].call, "x", 1);
    }
    RUN_UNTIL(&w, o[0].status == 99 && o[1].status == 99 && o[2].status == 99 && o[3].n_messages);
    grpc_client_cancel(o[3].call);
    RUN_UNTIL(&w, w.n_cancelled == 3); /* Meta does not count them */
    outcome last = {.act = CLOSE_ON_MESSAGE};
    world_open(&w, &last, "/s.S/Echo", NULL);
    grpc_client_send(last.call, "x", 1);
    RUN_UNTIL(&w, last.status >= 0);
    assert_int_equal(last.status, GRPC_CANCELLED);
    RUN_UNTIL(&w, w.n_cancelled == 4);
    world_stop(&w);
}

static void deadlines_and_lost_links_end_open_streams(void **state)
{
    world w;
    outcome late = {0}, lost = {0};
    world_start(&w, NULL);
    world_open(&w, &lost, "/s.S/Echo", NULL);
    RUN_UNTIL(&w, w.n_begun == 1);
    for (uint64_t ms = 20; w.n_begun == 1; ms *= 4) { /* until the server has heard of one before its end */
        late = (outcome){0};
        world_open(&w, &late, "/s.S/Echo", &(grpc_call_options){.deadline_ns = clock_ns() + ms * 1000000});
        RUN_UNTIL(&w, late.status >= 0);
        assert_int_equal(late.status, GRPC_DEADLINE_EXCEEDED);
    }
    RUN_UNTIL(&w, w.n_cancelled == w.n_begun - 1);
    assert_int_equal(lost.status, -1);
    grpc_server_close(w.server, world_closed, &w);
    w.server = NULL;
    RUN_UNTIL(&w, lost.status >= 0 && w.n_cancelled == w.n_begun);
    assert_int_equal(lost.status, GRPC_UNAVAILABLE);
    world_stop(&w);
}

static void messages_have_their_limits_at_both_ends(void **state)
{
    world w;
    outcome over = {0}, reply = {0};
    char *bytes = calloc(1, (1 << 20) + 1);
    world_start(&w, NULL);
    world_open(&w, &over, "/s.S/Sum", NULL);
    assert_int_equal(grpc_client_send(over.call, bytes, (1 << 20) + 1), 0);
    RUN_UNTIL(&w, over.status >= 0);
    assert_int_equal(over.status, GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(w.n_cancelled, 1);
    world_open(&w, &reply, "/s.S/Echo", &(grpc_call_options){.max_message = 10});
    grpc_client_send(reply.call, "0123456789", 10);
    RUN_UNTIL(&w, reply.n_messages == 1);
    grpc_client_send(reply.call, "0123456789a", 11);
    RUN_UNTIL(&w, reply.status >= 0);
    assert_int_equal(reply.status, GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(reply.n_messages, 1);
    RUN_UNTIL(&w, w.n_cancelled == 2);
    free(bytes);
    world_stop(&w);
}

static void metadata_goes_both_ways(void **state)
{
    world w;
    outcome o = {0};
    http_header ask[] = {{"x-ask", "why"}, {"x-left-out", NULL}};
    world_start(&w, NULL);
    world_open(&w, &o, "/s.S/Meta", &(grpc_call_options){.metadata = ask, .n_metadata = 2});
    RUN_UNTIL(&w, strstr(o.metadata, "x-head=why"));
    assert_int_equal(o.status, -1);
    grpc_client_half_close(o.call);
    RUN_UNTIL(&w, o.status >= 0);
    assert_non_null(strstr(o.metadata, "x-tail=t"));
    assert_null(strstr(o.metadata, "grpc-status"));
    assert_string_equal(o.message, "done");
    world_stop(&w);
}

static void drain_waits_for_open_streams(void **state)
{
    world w;
    outcome o = {0};
    world_start(&w, NULL);
    world_open(&w, &o, "/s.S/Echo", NULL);
    grpc_client_send(o.call, "a", 1);
    RUN_UNTIL(&w, o.n_messages == 1);
    grpc_server_drain(w.server, world_closed, &w);
    world_turns(&w, 20);
    assert_false(w.closed);
    assert_null(grpc_call_open(w.ch, "/s.S/Echo", NULL, &(grpc_client_events){0}));
    grpc_client_send(o.call, "b", 1);
    RUN_UNTIL(&w, o.n_messages == 2);
    grpc_client_half_close(o.call);
    RUN_UNTIL(&w, o.status >= 0 && w.closed);
    assert_int_equal(o.status, GRPC_OK);
    world_stop(&w);
}

/* ---- is anybody there? ----------------------------------------------------------------------- */

/* A peer whose end of a link has gone silent, as behind a cut cable: it accepts, reads, and says nothing. */
typedef struct deaf {
    int listener, fd, port;
} deaf;

static void deaf_start(deaf *d)
{
    struct sockaddr_in sa = {.sin_family = AF_INET};
    socklen_t n = sizeof sa;
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    d->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(d->listener, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(listen(d->listener, 1), 0);
    getsockname(d->listener, (struct sockaddr *)&sa, &n);
    d->port = ntohs(sa.sin_port);
}

static void a_client_notices_a_server_that_has_gone_silent(void **state)
{
    world w;
    deaf d;
    outcome o = {0};
    shoal_err err = {0};
    grpc_channel_options opt = {.keepalive_ms = 20, .keepalive_timeout_ms = 20};
    grpc_channel_events ev = {.user = &w, .connected = world_connected, .disconnected = world_disconnected};
    deaf_start(&d);
    world_open_loop(&w);
    snprintf(w.address, sizeof w.address, "127.0.0.1:%d", d.port);
    assert_int_equal(grpc_channel_open(&w.ch, &w.loop, w.address, &opt, &ev, &err), 0);
    RUN_UNTIL(&w, w.n_connected);
    world_open(&w, &o, "/s.S/Echo", NULL);
    RUN_UNTIL(&w, w.n_disconnected);
    assert_int_equal(o.status, GRPC_UNAVAILABLE);
    assert_non_null(strstr(o.message, "answers no ping"));
    close(d.listener);
    world_stop(&w);
}

static void a_server_notices_a_client_that_has_gone_silent(void **state)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    world w;
    http_limits l = {.keepalive_ms = 20, .keepalive_timeout_ms = 20};
    struct sockaddr_in sa = {.sin_family = AF_INET};
    char bytes[256];
    world_start(&w, &l);
    sa.sin_port = htons((uint16_t)grpc_server_port(w.server));
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(send(fd, hello, sizeof hello - 1, 0), sizeof hello - 1);
    bool pinged = false;
    for (ssize_t n = 1; n != 0; uv_run(&w.loop, UV_RUN_ONCE)) {
        n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        for (ssize_t i = 0; i + 9 <= n; i++) pinged |= memcmp(bytes + i, "\0\0\10\6\0\0\0\0\0", 9) == 0;
    }
    assert_true(pinged);
    close(fd);
    world_stop(&w);
}

/* Quiet, but alive: pings are answered, and nobody is cut off. */
static void a_quiet_link_stays(void **state)
{
    world w;
    outcome o = {0};
    shoal_err err = {0};
    http_limits l = {.keepalive_ms = 5, .keepalive_timeout_ms = 5000};
    grpc_channel_options opt = {.keepalive_ms = 5, .keepalive_timeout_ms = 5000};
    grpc_channel_events ev = {.user = &w, .connected = world_connected, .disconnected = world_disconnected};
    world_start(&w, &l);
    grpc_channel_close(w.ch);
    assert_int_equal(grpc_channel_open(&w.ch, &w.loop, w.address, &opt, &ev, &err), 0);
    RUN_UNTIL(&w, w.n_connected == 2);
    world_open(&w, &o, "/s.S/Echo", NULL);
    for (uint64_t until = clock_ns() + 300000000u; clock_ns() < until;) uv_run(&w.loop, UV_RUN_ONCE);
    grpc_client_send(o.call, "still", 5);
    RUN_UNTIL(&w, o.n_messages == 1);
    assert_int_equal(w.n_disconnected, 0);
    grpc_client_cancel(o.call);
    world_stop(&w);
}

/* ---- a server that breaks the rules ---------------------------------------------------------- */

/* SETTINGS, then so many of these frames, then silence. */
static void flooded_by(const char *frame, size_t n_frame, int n, const char *why)
{
    world w;
    deaf d;
    shoal_err err = {0};
    buf bytes = {0};
    grpc_channel_events ev = {.user = &w, .connected = world_connected, .disconnected = world_disconnected};
    deaf_start(&d);
    world_open_loop(&w);
    snprintf(w.address, sizeof w.address, "127.0.0.1:%d", d.port);
    assert_int_equal(grpc_channel_new(&w.ch, &w.loop, w.address, &ev, &err), 0);
    d.fd = accept(d.listener, NULL, NULL);
    RUN_UNTIL(&w, w.n_connected);
    buf_append(&bytes, "\0\0\0\4\0\0\0\0\0", 9);
    for (int i = 0; i < n; i++) buf_append(&bytes, frame, n_frame);
    for (size_t at = 0; at < bytes.len && !w.n_disconnected;) {
        ssize_t sent = send(d.fd, bytes.data + at, bytes.len - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) at += (size_t)sent;
        uv_run(&w.loop, UV_RUN_NOWAIT);
    }
    RUN_UNTIL(&w, w.n_disconnected);
    if (!strstr(w.why, why)) fail_msg("\"%s\" instead of \"%s\"", w.why, why);
    buf_done(&bytes);
    close(d.fd);
    close(d.listener);
    world_stop(&w);
}

static void a_server_that_floods_is_left(void **state)
{
    flooded_by("\0\0\10\6\1\0\0\0\0abcdefgh", 17, 5000, "floods"); /* PING acknowledgements */
    flooded_by("\0\0\10\6\0\0\0\0\0abcdefgh", 17, 500000, "");     /* PINGs, to be answered */
    flooded_by("\0\0\0\4\0\0\0\0\0", 9, 500000, "");               /* SETTINGS, as well */
    flooded_by("\0\0\5\0\0\0\0\0\1hello", 14, 1,
               "broke the rules of HTTP/2"); /* DATA of a stream never begun */
    flooded_by("\377\377\377\0\0\0\0\0\1", 9, 1, "broke the rules of HTTP/2"); /* a frame beyond every size */
}

/* ---- deadlines -------------------------------------------------------------------------------- */

/* With a timeout that only the server knows of: our own client would end the call itself. */
static void open_with_timeout(world *w, outcome *o, const char *timeout)
{
    http_header h = {"grpc-timeout", timeout};
    world_open(w, o, "/s.S/Sum", &(grpc_call_options){.metadata = &h, .n_metadata = 1});
    grpc_client_send(o->call, "a", 1);
}

static void a_server_ends_calls_at_their_deadline(void **state)
{
    world w;
    outcome patient = {0}, late = {0}, next = {0};
    world_start(&w, NULL);
    open_with_timeout(&w, &patient, "1H");
    open_with_timeout(&w, &late, "40m");
    RUN_UNTIL(&w, late.status >= 0);
    assert_int_equal(late.status, GRPC_DEADLINE_EXCEEDED);
    assert_string_equal(late.message, "the deadline was missed");
    assert_int_equal(w.n_cancelled, 1); /* its handler has let go */
    assert_int_equal(patient.status, -1);
    open_with_timeout(&w, &next, "1H");
    grpc_client_half_close(next.call);
    grpc_client_half_close(patient.call);
    RUN_UNTIL(&w, next.status >= 0 && patient.status >= 0);
    assert_int_equal(patient.status, GRPC_OK);
    assert_int_equal(next.status, GRPC_OK);
    world_stop(&w);
}

/* In whatever order they came, and with clients that leave in between. */
static void many_deadlines_each_end_their_own_call(void **state)
{
    enum { N = 60 };
    static outcome all[N];
    world w;
    int n_late = 0, n_left = 0, n_well = 0;
    memset(all, 0, sizeof all);
    world_start(&w, NULL);
    for (int i = 0; i < N; i++) {
        char timeout[16];
        snprintf(timeout, sizeof timeout, "%dm", 30 + (i * 37) % N);
        open_with_timeout(&w, &all[i], i % 3 == 2 ? "2H" : timeout);
    }
    RUN_UNTIL(&w, w.n_begun == N);
    for (int i = 2; i < N; i += 6) {
        grpc_client_cancel(all[i].call);
        all[i].status = 99;
    }
    for (int i = 5; i < N; i += 6) grpc_client_half_close(all[i].call);
    for (int i = 0; i < N; i++) RUN_UNTIL(&w, all[i].status >= 0);
    for (int i = 0; i < N; i++) {
        n_late += all[i].status == GRPC_DEADLINE_EXCEEDED;
        n_left += all[i].status == 99;
        n_well += all[i].status == GRPC_OK;
    }
    assert_int_equal(n_late, N * 2 / 3);
    assert_int_equal(n_left, N / 6);
    assert_int_equal(n_well, N / 6);
    RUN_UNTIL(&w, w.n_cancelled == n_late + n_left);
    world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_go_both_ways_while_the_call_is_open),
        cmocka_unit_test(a_stream_of_requests_has_one_answer),
        cmocka_unit_test(messages_of_a_connection_come_a_few_a_turn),
        cmocka_unit_test(an_echo_of_megabytes_needs_little_memory),
        cmocka_unit_test(a_handler_that_rests_holds_its_client_back),
        cmocka_unit_test(many_resting_handlers_shut_the_connection_and_lose_nothing),
        cmocka_unit_test(a_client_that_rests_holds_its_server_back),
        cmocka_unit_test(the_server_may_end_before_the_client_has),
        cmocka_unit_test(a_call_may_be_cancelled_from_any_event),
        cmocka_unit_test(deadlines_and_lost_links_end_open_streams),
        cmocka_unit_test(messages_have_their_limits_at_both_ends),
        cmocka_unit_test(metadata_goes_both_ways),
        cmocka_unit_test(drain_waits_for_open_streams),
        cmocka_unit_test(a_client_notices_a_server_that_has_gone_silent),
        cmocka_unit_test(a_server_notices_a_client_that_has_gone_silent),
        cmocka_unit_test(a_quiet_link_stays),
        cmocka_unit_test(a_server_that_floods_is_left),
        cmocka_unit_test(a_server_ends_calls_at_their_deadline),
        cmocka_unit_test(many_deadlines_each_end_their_own_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
