/* Clients that send much in little time: no turn of the gateway's loop does more than a few of it, others are
 * served between, and who overdoes it is told so. */
#define _GNU_SOURCE
#include "flood_world.h"

/* Of one connection: a read, and the requests or messages that a turn takes; each message is parsed once. */
enum {
    TURN_MESSAGES = 16,
    READ_BYTES = 65536,
    CONN_TURN_BYTES = READ_BYTES + TURN_MESSAGES * (3 * LOOP_WORK_MESSAGE_BYTES + 1024)
};

static void put_start(buf *out, int id)
{
    buf text = {0};
    buf_printf(&text, "{\"id\":\"%d\",\"path\":\"/v1/chat/completions\",\"body\":" WORLD_CHAT "}", id);
    put_frame(out, 0x81, text.data, text.len);
    buf_done(&text);
}

static void put_cancel(buf *out, int id)
{
    buf text = {0};
    buf_printf(&text, "{\"id\":\"%d\",\"cancel\":true}", id);
    put_frame(out, 0x81, text.data, text.len);
    buf_done(&text);
}

/* Looks at each byte once: it is asked every turn, and megabytes come. A client whose test takes minutes
 * answers no ping for as long, and is closed. */
static size_t count_answers(peer *p)
{
    static const char MARK[] = "\"status\":";
    const size_t length = sizeof MARK - 1;
    while (p->got.len >= p->counted_to + length) {
        const char *from = p->got.data + p->counted_to,
                   *at = memmem(from, p->got.len - p->counted_to, MARK, length);
        p->n_answers += at != NULL;
        p->counted_to = at ? (size_t)(at - p->got.data) + length : p->got.len - length + 1;
    }
    return p->n_answers;
}

static void a_websocket_that_starts_and_cancels_has_a_few_messages_a_turn(void **state)
{
    enum { SOCKETS = 8, PAIRS = 190 };
    world w;
    peer p[SOCKETS], other;
    size_t after = 0;
    world_open(&w, &(gateway_config){0});
    for (int s = 0; s < SOCKETS; s++) ws_dial(&w, &p[s], NULL);
    peer_dial(&w, &other);
    peer_puts(&other, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    WORLD_UNTIL(&w, peer_has(&other, "{\"status\":\"ok\"}"));
    for (int s = 0; s < SOCKETS; s++)
        for (int i = 0; i < PAIRS; i++) {
            put_start(&p[s].out, i);
            put_cancel(&p[s].out, i);
        }
    for (int s = 0; s < SOCKETS; s++) ws_say(&p[s], "{\"id\":\"last\",\"path\":\"/healthz\"}");
    for (int s = 0; s < SOCKETS; s++) peer_move(&p[s]);
    buf_clear(&other.got);
    loop_work_reset();
    peer_puts(&other, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    peer_move(&other);
    WORLD_UNTIL(&w, peer_has(&other, "{\"status\":\"ok\"}"));
    assert_in_range(w.n_turns, 1, 4); /* not after the thousands of messages before it */
    for (int s = 0; s < SOCKETS; s++) after += count_answers(&p[s]);
    assert_int_equal(after, 0);
    for (int s = 0; s < SOCKETS; s++) WORLD_UNTIL(&w, peer_has(&p[s], "\"id\":\"last\""));
    assert_in_range(loop_work_get()->max_bytes, LOOP_WORK_MESSAGE_BYTES, SOCKETS * CONN_TURN_BYTES);
    WORLD_UNTIL(&w, w.gw->n_requests == 0);
    world_close(&w);
}

static void a_websocket_that_cancels_too_often_is_told_so(void **state)
{
    enum { TOO_MANY = 201 };
    world w;
    peer p, slow_down;
    world_open(&w, &(gateway_config){0});
    ws_dial(&w, &slow_down, NULL);
    for (int i = 1; i < TOO_MANY; i++) put_cancel(&slow_down.out, i);
    ws_say(&slow_down, "{\"id\":\"last\",\"path\":\"/healthz\"}");
    WORLD_UNTIL(&w, peer_has(&slow_down, "\"id\":\"last\"")); /* 200 are not too many */
    ws_dial(&w, &p, NULL);
    for (int i = 0; i < TOO_MANY; i++) put_cancel(&p.out, i);
    WORLD_UNTIL(&w, ws_was_closed(&p, 1008, "more than 200 requests were cancelled"));
    world_close(&w);
}

static void who_shows_no_key_ten_times_is_closed(void **state)
{
    world w;
    keyed k;
    peer ws, http;
    world_open(&w, keyed_config(&k, (gateway_config){0}));
    ws_dial(&w, &ws, NULL);
    for (int i = 0; i < 30; i++) ws_say(&ws, "{\"id\":\"1\",\"path\":\"/v1/models\"}");
    WORLD_UNTIL(&w, ws_was_closed(&ws, 1008, "ten requests came without a valid API key"));
    assert_int_equal(peer_count(&ws, "\"status\":401"), 10);
    peer_dial(&w, &http);
    for (int i = 0; i < 30; i++) peer_puts(&http, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n");
    WORLD_UNTIL(&w, http.eof);
    assert_int_equal(peer_count(&http, "HTTP/1.1 401"), 10);
    assert_int_equal(peer_count(&http, "Connection: close"), 1);
    world_close(&w);
}

/* A client that reads gets all its answers, however many requests it sends at once; one that does not is not
 * read from any more, and hears why it is closed if there is a way. */
static void a_websocket_with_ten_thousand_requests_gets_ten_thousand_answers(void **state)
{
    enum { N = 10000 };
    world w;
    peer p;
    world_open(&w, &(gateway_config){0});
    ws_dial(&w, &p, NULL);
    loop_work_reset();
    for (int i = 0; i < N; i++) ws_say(&p, "{\"id\":\"a\",\"path\":\"/nothing\"}");
    WORLD_UNTIL(&w, count_answers(&p) >= N);
    assert_int_equal(count_answers(&p), N);
    assert_in_range(loop_work_get()->max_bytes, 1, CONN_TURN_BYTES);
    world_close(&w);
}

static void what_a_websocket_sends_waits_while_its_answers_are_not_read(void **state)
{
    enum { N = 10000 };
    world w;
    peer p;
    world_open(&w, &(gateway_config){0});
    ws_dial(&w, &p, NULL);
    p.rests = true;
    for (int i = 0; i < N; i++) ws_say(&p, "{\"id\":\"a\",\"path\":\"/docs\"}");
    for (int i = 0; i < 500; i++) world_turn(&w);
    assert_true(p.out_at < p.out.len || w.gw->n_requests == 0);
    p.rests = false;
    WORLD_UNTIL(&w, count_answers(&p) >= N || p.eof);
    assert_int_equal(count_answers(&p), N);
    world_close(&w);
}

/* ---- the share of one connection ------------------------------------------------------------------ */

typedef struct way {
    void (*dial)(world *w, peer *p);
    void (*ask)(peer *p, int id);
    size_t (*answers)(peer *p);
} way;

static void dial_ws(world *w, peer *p)
{
    ws_dial(w, p, NULL);
}

static void ask_ws(peer *p, int id)
{
    put_start(&p->out, id);
}

static void ask_h2(peer *p, int id)
{
    h2_post(p, 2 * (unsigned)id + 1, "/v1/chat/completions", "application/json", WORLD_CHAT,
            strlen(WORLD_CHAT));
}

static void ask_grpc(peer *p, int id)
{
    static const char message[] = "\0\0\0\0\12\12\4slow\22\2hi"; /* model: "slow", input: "hi" */
    h2_post(p, 2 * (unsigned)id + 1, "/shoal.v1.Shoal/Embed", "application/grpc", message,
            sizeof message - 1);
}

static const way WAYS[] = {
    {dial_ws, ask_ws, count_answers}, {h2_dial, ask_h2, h2_answers}, {h2_dial, ask_grpc, h2_answers}};

enum { MOST = 64, RESERVED_FROM = MOST - MOST / 4, OTHERS = 8 };

/* What each client gets that comes after the first, who has RESERVED_FROM: a quarter of what it leaves free. */
static const size_t SHARES[OTHERS] = {3, 2, 2, 2, 1, 1, 1, 1};

/* MOST requests on a connection of its own, of which so many are taken. */
static void ask_all(world *w, const way *by, peer *p, size_t n_taken)
{
    size_t before = w->gw->n_admitted;
    by->dial(w, p);
    for (int i = 0; i < MOST; i++) by->ask(p, i);
    WORLD_UNTIL(w, by->answers(p) + (w->gw->n_admitted - before) == MOST);
    assert_int_equal(w->gw->n_admitted - before, n_taken);
}

static void connections_leave_a_quarter_of_the_places_to_others(void **state)
{
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        world w;
        peer p[1 + OTHERS], other;
        size_t n_taken = RESERVED_FROM;
        world_open(&w, &(gateway_config){.max_requests = MOST});
        ask_all(&w, &WAYS[i], &p[0], RESERVED_FROM);
        for (int k = 0; k < OTHERS; n_taken += SHARES[k++]) ask_all(&w, &WAYS[i], &p[1 + k], SHARES[k]);
        peer_dial(&w, &other);
        peer_puts(
            &other,
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
        buf_printf(&other.out, "Content-Length: %zu\r\n\r\n%s", strlen(WORLD_CHAT), WORLD_CHAT);
        WORLD_UNTIL(&w, w.gw->n_admitted == n_taken + 1);
        for (int k = 0; k <= OTHERS; k++) peer_close(&w, &p[k]);
        WORLD_UNTIL(&w, w.gw->n_admitted == 1);
        ask_all(&w, &WAYS[i], &p[0], RESERVED_FROM - 1); /* the places of those that have left */
        world_close(&w);
    }
}

static size_t count_all(peer *p, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += count_answers(&p[i]);
    return sum;
}

/* Of several keys each is a client, however many connections it uses. */
static void one_key_leaves_a_quarter_of_the_places_to_others(void **state)
{
    enum { SOCKETS = 8 };
    keyed k;
    world w;
    peer p[SOCKETS], other;
    const gateway_config *c = keyed_config(&k, (gateway_config){.max_requests = MOST});
    config_key keys[2] = {k.key, k.key};
    char entry[80] = "sha256:";
    sha256_digest d;
    sha256_of("second", 6, &d);
    sha256_hex(&d, entry + 7);
    keys[1].sha256 = entry;
    k.config.api_keys = keys;
    k.config.n_api_keys = 2;
    world_open(&w, c);
    for (int s = 0; s < SOCKETS; s++) {
        ws_dial(&w, &p[s], "sesame");
        for (int i = 0; i < MOST / SOCKETS; i++) put_start(&p[s].out, i);
    }
    ws_dial(&w, &other, "second");
    WORLD_UNTIL(&w, w.gw->n_admitted + count_all(p, SOCKETS) == MOST);
    assert_int_equal(w.gw->n_admitted, RESERVED_FROM);
    for (int i = 0; i < MOST; i++) put_start(&other.out, i);
    WORLD_UNTIL(&w, count_answers(&other) == MOST - SHARES[0]);
    assert_int_equal(w.gw->n_admitted, RESERVED_FROM + SHARES[0]);
    world_close(&w);
}

/* What is refused before it is a request is counted as requests are that are refused. */
static void refusals_without_a_request_are_counted(void **state)
{
    world w;
    peer http, ws;
    world_open(&w, &(gateway_config){0});
    const metrics *m = w.gw->metrics;
    peer_dial(&w, &http);
    peer_puts(&http, "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    WORLD_UNTIL(&w, peer_has(&http, "HTTP/1.1 400"));
    assert_int_equal(metrics_get(m, METRIC_REQUESTS, "none", "", "400"), 1);
    assert_int_equal(metrics_get(m, METRIC_ERRORS, "none", "invalid_request_error", NULL), 1);
    ws_dial(&w, &ws, NULL);
    ws_say(&ws, "{\"id\":\"1\",\"way\":\"/healthz\"}");
    WORLD_UNTIL(&w, peer_has(&ws, "\"status\":400"));
    assert_int_equal(metrics_get(m, METRIC_REQUESTS, "none", "", "400"), 2);
    assert_int_equal(metrics_get(m, METRIC_ERRORS, "none", "invalid_request_error", NULL), 2);
    peer_close(&w, &http);
    peer_close(&w, &ws);
    world_close(&w);
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_without_a_request_are_counted),
        cmocka_unit_test(a_websocket_that_starts_and_cancels_has_a_few_messages_a_turn),
        cmocka_unit_test(a_websocket_that_cancels_too_often_is_told_so),
        cmocka_unit_test(who_shows_no_key_ten_times_is_closed),
        cmocka_unit_test(a_websocket_with_ten_thousand_requests_gets_ten_thousand_answers),
        cmocka_unit_test(what_a_websocket_sends_waits_while_its_answers_are_not_read),
        cmocka_unit_test(connections_leave_a_quarter_of_the_places_to_others),
        cmocka_unit_test(one_key_leaves_a_quarter_of_the_places_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
