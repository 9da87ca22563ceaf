/* WebSockets over real connections, with frames made by hand: what is said comes back, what is wrong is
 * closed with the code that RFC 6455 7.4 has for it. */
#include "wire_fixture.h"

#include "http/websocket.h"
#include "http/websocket_deflate.h"

typedef struct talk {
    fixture *f;
    websocket *ws;
    http_request *r;
    uv_timer_t tick;
    unsigned code;
} talk;

static _Atomic unsigned closed_with;
static atomic_int n_ended, n_pieces; /* n_pieces: of what clients said, that the server has taken in */
static atomic_int n_ticks;           /* of all sockets */
static uint64_t ping_ms, message_ms;
static _Atomic uint64_t test_ms; /* where there are pings, time stands still until the test moves it */

static void tick_closed(uv_handle_t *h)
{
    talk *t = h->data;
    websocket_free(t->ws);
    free(t);
}

static void on_tick(uv_timer_t *timer)
{
    talk *t = timer->data;
    websocket_tick(t->ws, ping_ms || message_ms ? test_ms : uv_now(timer->loop));
    atomic_fetch_add(&n_ticks, 1);
}

static _Atomic size_t unpacked_max; /* 0: as it is */
static _Atomic size_t message_max = 70000;

static void on_message(void *user, bool is_text, const void *bytes, size_t n)
{
    talk *t = user;
    if (n == 4 && memcmp(bytes, "quit", 4) == 0)
        websocket_close(t->ws, 1001, "as you wish");
    else
        websocket_send(t->ws, is_text, bytes, n);
}

static void talk_end(talk *t)
{
    uv_handle_t *h = (uv_handle_t *)&t->tick;
    if (!uv_is_closing(h)) uv_close(h, tick_closed);
}

static void on_closed(void *user, unsigned code)
{
    talk *t = user;
    closed_with = code;
    assert_string_equal(http_header_get(t->r, "host"),
                        "x"); /* whoever is told may still read what was asked */
    atomic_fetch_add(&n_ended, 1);
    talk_end(t);
}

static http_intake intake(void *user, const http_request *r)
{
    return websocket_is_asked(r) ? HTTP_TUNNEL : HTTP_WHOLE;
}

static void on_request(void *user, http_request *r)
{
    fixture *f = user;
    talk *t = calloc(1, sizeof *t);
    t->f = f;
    t->r = r;
    http_set_data(r, t);
    websocket_limits l = {
        .max_message_bytes = message_max, .message_ms = message_ms, .min_rate = 10, .ping_ms = ping_ms};
    websocket_events ev = {.user = t, .message = on_message, .closed = on_closed};
    shoal_err err;
    if (!websocket_is_asked(r)) {
        http_respond(r, 426, NULL, 0, NULL, 0);
        free(t);
    } else if (websocket_accept(&t->ws, r, &l, &ev, &err) != 0) {
        free(t);
    } else {
        uv_timer_init(&f->loop, &t->tick);
        t->tick.data = t;
        if (unpacked_max) websocket_limit_unpacked(t->ws, unpacked_max);
        on_tick(&t->tick); /* it has heard of its client at the time of the handshake, no later */
        uv_timer_start(&t->tick, on_tick, 5, 5);
    }
}

static void on_body(void *user, http_request *r, const uint8_t *bytes, size_t n)
{
    websocket_receive(((talk *)http_data(r))->ws, bytes, n);
    atomic_fetch_add(&n_pieces, 1);
}

static void on_body_end(void *user, http_request *r, int status, const char *why)
{
    websocket_shut(((talk *)http_data(r))->ws);
}

static void on_gone(void *user, http_request *r)
{
    atomic_fetch_add(&((fixture *)user)->n_gone, 1);
    talk *t = http_data(r);
    websocket_shut(t->ws);
}

static const http_handler handler = {.on_request = on_request,
                                     .on_gone = on_gone,
                                     .intake = intake,
                                     .on_body = on_body,
                                     .on_body_end = on_body_end};

#define ASK_WITH(version, key)                                                   \
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
    "Sec-WebSocket-Version: " version "\r\nSec-WebSocket-Key: " key "\r\n\r\n"
#define ASK ASK_WITH("13", "dGhlIHNhbXBsZSBub25jZQ==") /* the example of RFC 6455 1.3 */

#define ASK_PACKED                                                                  \
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"    \
    "Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Version: 13\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static const char *ask = ASK; /* what check opens with */

/* A client's frame: masked, as it must be. */
static void put_frame(buf *out, unsigned first, const void *bytes, size_t n)
{
    static const uint8_t mask[4] = {1, 2, 3, 4};
    const uint8_t *p = bytes;
    uint8_t head[4] = {(uint8_t)first, (uint8_t)(0x80 | (n < 126 ? n : 126)), (uint8_t)(n >> 8), (uint8_t)n};
    if (n > 65535) {
        uint8_t long_head[10] = {(uint8_t)first,     0x80 | 127,        0,         0, 0, 0, 0,
                                 (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
        buf_append(out, long_head, 10);
    } else {
        buf_append(out, head, n < 126 ? 2 : 4);
    }
    buf_append(out, mask, 4);
    for (size_t i = 0; i < n; i++) buf_append(out, &(uint8_t){p[i] ^ mask[i % 4]}, 1);
}

/* All that comes back behind the handshake's head, till the server closes or all of `want` is there. */
static void check(const char *frames, size_t n_frames, const char *want, size_t n_want)
{
    fixture f = {.handler = &handler};
    buf sent = {0}, got = {0};
    char bytes[4096];
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    buf_puts(&sent, ask);
    buf_append(&sent, frames, n_frames);
    send_bytes(fd, sent.data, sent.len);
    const char *body = NULL;
    for (ssize_t n = 1; n > 0 && (!body || (size_t)(got.data + got.len - body) < n_want);) {
        n = recv(fd, bytes, sizeof bytes, 0);
        if (n > 0) buf_append(&got, bytes, (size_t)n);
        body = got.len ? strstr(got.data, "\r\n\r\n") : NULL;
        if (body) body += 4;
    }
    assert_non_null(strstr(got.data, "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    if ((size_t)(got.data + got.len - body) != n_want || memcmp(body, want, n_want) != 0) {
        for (size_t i = 0; i < n_frames && i < 16; i++) print_error("%02x ", (unsigned char)frames[i]);
        fail_msg("%zd bytes come back, not %zu", got.data + got.len - body, n_want);
    }
    close(fd);
    fixture_stop(&f);
    buf_done(&sent);
    buf_done(&got);
}

static void check_frame(unsigned first, const void *bytes, size_t n, const char *want, size_t n_want)
{
    buf b = {0};
    put_frame(&b, first, bytes, n);
    check(b.data, b.len, want, n_want);
    buf_done(&b);
}
#define CHECK(first, bytes, want) check_frame(first, bytes, sizeof(bytes) - 1, want, sizeof(want) - 1)

static void what_is_said_comes_back(void **state)
{
    CHECK(0x81, "hello", "\x81\x05hello");
    CHECK(0x82, "\0\1\2", "\x82\x03\0\1\2");
    CHECK(0x81, "", "\x81\x00");
    CHECK(0x89, "are you there",
          "\x8a\x0d"
          "are you there"); /* ping, pong */
    CHECK(0x8a, "unasked", "");
}

static void pieces_become_one_message(void **state)
{
    buf b = {0};
    put_frame(&b, 0x01, "in ", 3);
    put_frame(&b, 0x89, "!", 1); /* control frames may come between */
    put_frame(&b, 0x00, "three ", 6);
    put_frame(&b, 0x80, "pieces", 6);
    check(b.data, b.len, "\x8a\x01!\x81\x0fin three pieces", 20);
    buf_done(&b);
    char *big = malloc(70000), *want = malloc(70010);
    memset(big, 'x', 70000);
    memcpy(want, "\x82\x7f\0\0\0\0\0\x01\x11\x70", 10);
    memcpy(want + 10, big, 70000);
    check_frame(0x82, big, 70000, want, 70010);
    free(big);
    free(want);
}

static void what_is_wrong_is_closed_with_its_code(void **state)
{
    CHECK(0x88,
          "\x03\xe8"
          "bye",
          "\x88\x05\x03\xe8"
          "bye"); /* 1000: their goodbye, and ours */
    CHECK(0x81, "quit",
          "\x88\x0d\x03\xe9"
          "as you wish");                                              /* 1001 */
    CHECK(0x81, "\xff\xfe", "\x88\x02\x03\xef");                       /* 1007 */
    CHECK(0xc1, "rsv", "\x88\x02\x03\xea");                            /* 1002: no extension was agreed on */
    CHECK(0x83, "what", "\x88\x02\x03\xea");                           /* nor this opcode */
    CHECK(0x80, "of what", "\x88\x02\x03\xea");                        /* nothing to go on with */
    check("\x81\x02hi", 4, "\x88\x02\x03\xea", 4);                     /* not masked */
    check("\x82\xff\0\0\0\0\0\2\0\0maskx", 15, "\x88\x02\x03\xf1", 4); /* 1009: 128 KiB */
}

static void put_fragments(buf *out, size_t n)
{
    for (size_t i = 0; i < n; i++) put_frame(out, (i == 0 ? 1u : 0u) | (i + 1 == n ? 0x80u : 0u), "a", 1);
}

/* Each fragment takes memory beside its bytes: at most 1,024 and one for each 64 bytes that a message may
 * have. */
static void a_message_has_so_many_fragments(void **state)
{
    enum { MOST = 1024 + 70000 / 64 };
    char want[4 + MOST] = {(char)0x81, 126, MOST >> 8, (char)(MOST & 255)};
    const char many_1009[] = "\x88\x29\x03\xf1"
                             "the message comes in too many fragments";
    buf b = {0}, twice = {0};
    memset(want + 4, 'a', MOST);
    put_fragments(&b, MOST);
    check(b.data, b.len, want, sizeof want);
    put_fragments(&twice, MOST / 2); /* the second message is counted by itself */
    put_fragments(&twice, MOST + 1);
    char *both = malloc(MOST / 2 + 4 + sizeof many_1009 - 1);
    memcpy(both, (char[]){(char)0x81, 126, MOST / 2 >> 8, (char)(MOST / 2 & 255)}, 4);
    memset(both + 4, 'a', MOST / 2);
    memcpy(both + 4 + MOST / 2, many_1009, sizeof many_1009 - 1);
    check(twice.data, twice.len, both, MOST / 2 + 4 + sizeof many_1009 - 1);
    buf_done(&b);
    for (size_t i = 0; i < 10000; i++) put_frame(&b, i == 0 ? 1 : 0, "", 0);
    check(b.data, b.len, many_1009, sizeof many_1009 - 1);
    free(both);
    buf_done(&b);
    buf_done(&twice);
}

/* What is packed and what it becomes are bounded each by itself. */
static void how_far_a_message_is_unpacked(void **state)
{
    char many[3000];
    buf packed = {0};
    memset(many, 'a', sizeof many);
    ask = ASK_PACKED;
    assert_int_equal(websocket_deflate_pack(many, sizeof many, 15, &packed), 0);
    buf echo = {0}; /* it comes back packed alike */
    buf_append(&echo, (const uint8_t[]){0xc1, (uint8_t)packed.len}, 2);
    buf_append(&echo, packed.data, packed.len);
    assert_true(packed.len < 126);
    check_frame(0xc1, packed.data, packed.len, echo.data, echo.len);
    unpacked_max = 3000;
    check_frame(0xc1, packed.data, packed.len, echo.data, echo.len);
    unpacked_max = 2999;
    const char long_1009[] = "\x88\x3b\x03\xf1"
                             "the message is longer than 2999 bytes once it is unpacked";
    check_frame(0xc1, packed.data, packed.len, long_1009, sizeof long_1009 - 1);
    buf_done(&echo);
    unpacked_max = 0;
    ask = ASK;
    buf_done(&packed);
}

/* What is so long that the loop would stand still meanwhile goes out as it is. */
static void long_messages_are_not_packed(void **state)
{
    size_t n = (256 << 10) + 1;
    char *big = malloc(n), *want = malloc(n + 10);
    memset(big, 'x', n);
    memcpy(want, "\x82\x7f\0\0\0\0\0\x04\0\x01", 10);
    memcpy(want + 10, big, n);
    ask = ASK_PACKED;
    message_max = n;
    check_frame(0x82, big, n, want, n + 10);
    message_max = 70000;
    ask = ASK;
    free(big);
    free(want);
}

static void only_a_whole_handshake_is_one(void **state)
{
    static const struct {
        const char *sent, *want;
    } cases[] = {
        {ASK_WITH("8", "dGhlIHNhbXBsZSBub25jZQ=="), "HTTP/1.1 426 Upgrade Required"},
        {ASK_WITH("13", "short"), "HTTP/1.1 400"},
        {ASK_WITH("13", "dGhlIHNhbXBsZSBub25jZQ=x"), "HTTP/1.1 400"},
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 426"},
    };
    fixture f = {.handler = &handler};
    fixture_start(&f, NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = fixture_exchange(&f, cases[i].sent);
        if (!strstr(got, cases[i].want)) fail_msg("%zu: %s", i, got);
        free(got);
    }
    fixture_stop(&f);
}

/* A client that answers pings stays; one that is silent goes. The time moves when the server has the pong. */
static void the_silent_are_found(void **state)
{
    fixture f = {.handler = &handler};
    ping_ms = 40;
    test_ms = 1000;
    n_ended = n_pieces = 0;
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    buf pong = {0};
    put_frame(&pong, 0x8a, "", 0);
    send_bytes(fd, ASK, sizeof ASK - 1);
    free(read_until(fd, "\r\n\r\n"));
    for (int i = 0; i < 4; i++) {
        char ping[2];
        test_ms += ping_ms;
        assert_int_equal(recv(fd, ping, 2, MSG_WAITALL), 2);
        assert_memory_equal(ping, "\x89\0", 2);
        assert_int_equal(n_ended, 0);
        send_bytes(fd, pong.data, pong.len);
        assert_true(wait_for(&n_pieces, i + 1));
    }
    char ping[2];
    test_ms += ping_ms;
    assert_int_equal(recv(fd, ping, 2, MSG_WAITALL), 2);
    assert_int_equal(n_ended, 0);
    test_ms += ping_ms; /* the fifth is not answered */
    assert_true(wait_for(&n_ended, 1));
    assert_int_equal(closed_with, 1006);
    close(fd);
    fixture_stop(&f);
    buf_done(&pong);
    ping_ms = 0;
}

#define PONG "\x8a\x01?"

static void want_bytes(int fd, const char *want, size_t n)
{
    char got[128];
    ssize_t got_n = recv(fd, got, n, MSG_WAITALL);
    assert_int_equal(got_n, n);
    assert_memory_equal(got, want, n);
}

static int connect_and_ask(fixture *f)
{
    int fd = fixture_connect(f);
    send_bytes(fd, ASK, sizeof ASK - 1);
    free(read_until(fd, "\r\n\r\n"));
    return fd;
}

/* Each of the three sockets has its own. */
static void tick_all(void)
{
    int at = n_ticks;
    assert_true(wait_for(&n_ticks, at + 12));
}

/* 10 bytes a second. */
static void slow_messages_are_ended(void **state)
{
    static const char slow[] = "\x88\x1e\x03\xf0"
                               "the message comes too slowly";
    fixture f = {.handler = &handler};
    buf first = {0}, more = {0}, ping = {0};
    put_frame(&first, 0x01, "a", 1);
    put_frame(&more, 0x00, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 29);
    put_frame(&ping, 0x89, "?", 1);
    message_ms = 1000;
    test_ms = 1000;
    n_ended = 0;
    fixture_start(&f, NULL, NULL);
    int fast = connect_and_ask(&f), lazy = connect_and_ask(&f), none = connect_and_ask(&f);
    send_bytes(fast, first.data, first.len);
    send_bytes(fast, ping.data, ping.len);
    want_bytes(fast, PONG, 3);
    send_bytes(lazy, first.data, first.len);
    send_bytes(lazy, ping.data, ping.len);
    want_bytes(lazy, PONG, 3);
    tick_all();
    send_bytes(fast, more.data, more.len);
    send_bytes(fast, ping.data, ping.len);
    want_bytes(fast, PONG, 3);
    test_ms += 1001;
    want_bytes(lazy, slow, sizeof slow - 1);
    tick_all();
    assert_int_equal(n_ended, 1);
    test_ms += 900;
    tick_all();
    assert_int_equal(n_ended, 1);
    test_ms += 200;
    want_bytes(fast, slow, sizeof slow - 1);
    test_ms += 100000;
    tick_all();
    assert_int_equal(n_ended, 2); /* who says nothing is not slow */
    close(fast);
    close(lazy);
    close(none);
    fixture_stop(&f);
    message_ms = 0;
    buf_done(&first);
    buf_done(&more);
    buf_done(&ping);
}

static void who_goes_without_a_word_is_said_to_be_gone(void **state)
{
    n_ended = 0;
    fixture f = {.handler = &handler};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    send_bytes(fd, ASK, sizeof ASK - 1);
    free(read_until(fd, "\r\n\r\n"));
    close(fd);
    assert_true(wait_for(&n_ended, 1));
    assert_int_equal(closed_with, 1006);
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_comes_back),
        cmocka_unit_test(pieces_become_one_message),
        cmocka_unit_test(what_is_wrong_is_closed_with_its_code),
        cmocka_unit_test(a_message_has_so_many_fragments),
        cmocka_unit_test(how_far_a_message_is_unpacked),
        cmocka_unit_test(long_messages_are_not_packed),
        cmocka_unit_test(only_a_whole_handshake_is_one),
        cmocka_unit_test(the_silent_are_found),
        cmocka_unit_test(slow_messages_are_ended),
        cmocka_unit_test(who_goes_without_a_word_is_said_to_be_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
