/* Messages in assembly, requests of WebSockets and unpacked bodies share limits.max_bodies_bytes with whole
 * bodies. */
#define _GNU_SOURCE
#include "flood_world.h"

#include "wire/coding.h"
#include "http/http_internal.h"

enum { LARGE = 100000, SMALL = 1000, ROOM = 2 * LARGE + LARGE / 2 };

static const gateway_config CONFIG = {.limits = {.max_body_bytes = 4 * LARGE, .max_bodies = ROOM}};

static size_t held(const world *w)
{
    return w->gw->server->body_bytes;
}

static void all_is_given_back(world *w)
{
    while (w->n_peers) peer_close(w, w->peers[0]);
    WORLD_UNTIL(w, w->gw->n_requests == 0 && held(w) == 0);
    world_close(w);
}

static void put_blanks(buf *out, size_t n)
{
    while (n-- > 0) buf_putc(out, ' ');
}

/* The first n bytes of a message of n + SMALL. */
static void ws_begin_message(peer *p, size_t n)
{
    put_frame_head(&p->out, 0x81, n + SMALL);
    put_blanks(&p->out, n);
}

static void messages_of_websockets_count_while_they_come(void **state)
{
    world w;
    peer p[2], more, small;
    world_open(&w, &CONFIG);
    for (int i = 0; i < 2; i++) {
        ws_dial(&w, &p[i], NULL);
        ws_begin_message(&p[i], LARGE);
    }
    WORLD_UNTIL(&w, held(&w) == 2 * LARGE);
    ws_dial(&w, &more, NULL);
    ws_begin_message(&more, LARGE);
    WORLD_UNTIL(&w, ws_was_closed(&more, 1013, "large requests take all of the memory"));
    WORLD_UNTIL(&w, held(&w) == 2 * LARGE);
    ws_dial(&w, &small, NULL);
    ws_begin_message(&small, SMALL);
    WORLD_UNTIL(&w, held(&w) == 2 * LARGE + SMALL);
    put_blanks(&small.out, SMALL);
    WORLD_UNTIL(&w, peer_has(&small, "\"status\":400"));
    assert_int_equal(held(&w), 2 * LARGE);
    put_blanks(&p[0].out, SMALL);
    WORLD_UNTIL(&w, peer_has(&p[0], "\"status\":400"));
    assert_int_equal(held(&w), LARGE);
    all_is_given_back(&w);
}

/* A request for "slow", whose text has n bytes. */
static void put_ask(buf *out, size_t n)
{
    buf_puts(out, "{\"model\":\"slow\",\"messages\":[{\"role\":\"user\",\"content\":\"");
    while (n-- > 0) buf_putc(out, 'a');
    buf_puts(out, "\"}]}");
}

static void envelope_slow(peer *p, const char *id, size_t n_text)
{
    buf text = {0};
    buf_printf(&text, "{\"id\":\"%s\",\"path\":\"/v1/chat/completions\",\"body\":", id);
    put_ask(&text, n_text);
    buf_putc(&text, '}');
    put_frame(&p->out, 0x81, text.data, text.len);
    buf_done(&text);
}

static void requests_of_websockets_count_until_they_are_answered(void **state)
{
    world w;
    peer p, more[2];
    world_open(&w, &CONFIG);
    ws_dial(&w, &p, NULL);
    for (int i = 0; i < 2; i++) ws_dial(&w, &more[i], NULL);
    envelope_slow(&p, "first", LARGE);
    envelope_slow(&p, "second", LARGE);
    WORLD_UNTIL(&w, w.gw->n_admitted == 2);
    assert_in_range(held(&w), 2 * LARGE, ROOM);
    envelope_slow(&more[0], "third", LARGE);
    WORLD_UNTIL(&w, ws_was_closed(&more[0], 1013, "large requests take all of the memory"));
    assert_int_equal(w.gw->n_admitted, 2);
    ws_say(&p, "{\"id\":\"first\",\"cancel\":true}");
    WORLD_UNTIL(&w, w.gw->n_admitted == 1);
    assert_in_range(held(&w), LARGE, LARGE + SMALL);
    envelope_slow(&more[1], "third", LARGE);
    WORLD_UNTIL(&w, w.gw->n_admitted == 2);
    world_put(&w, "slow/0", REPLICA_FAILED);
    WORLD_UNTIL(&w, peer_has(&p, "worker_unavailable") && peer_has(&more[1], "worker_unavailable"));
    assert_int_equal(held(&w), 0);
    all_is_given_back(&w);
}

/* The first LARGE bytes of a message of gRPC, in frames that fit in the windows that HTTP/2 begins with. */
static void grpc_begin_message(world *w, peer *p)
{
    enum { FRAMES = 10 };
    const size_t before = held(w);
    const uint8_t head[] = {0, 0, (uint8_t)(2 * LARGE >> 16), (uint8_t)(2 * LARGE >> 8),
                            (uint8_t)(2 * LARGE)};
    buf data = {0};
    h2_dial(w, p);
    h2_put_frame(&p->out, H2_SETTINGS, H2_ACK, 0, NULL, 0);
    h2_put_head(&p->out, H2_END_HEADERS, 1, "POST", "/shoal.v1.Shoal/Transcribe", "application/grpc");
    buf_append(&data, head, sizeof head);
    for (int i = 0; i < FRAMES; i++) {
        put_blanks(&data, LARGE / FRAMES - data.len);
        h2_put_frame(&p->out, H2_DATA, 0, 1, data.data, data.len);
        buf_clear(&data);
        WORLD_UNTIL(w, held(w) >= before + (size_t)(i + 1) * (LARGE / FRAMES) || h2_answers(p) == 1);
    }
    buf_done(&data);
}

static void messages_of_grpc_streams_count_while_they_come(void **state)
{
    world w;
    peer p[3], more;
    world_open(&w, &CONFIG);
    for (int i = 0; i < 3; i++) grpc_begin_message(&w, &p[i]);
    WORLD_UNTIL(&w, held(&w) == 2 * LARGE);
    assert_int_equal(h2_answers(&p[0]) + h2_answers(&p[1]), 0);
    assert_int_equal(h2_answers(&p[2]), 1);
    peer_close(&w, &p[0]);
    WORLD_UNTIL(&w, held(&w) == LARGE);
    grpc_begin_message(&w, &more);
    assert_int_equal(held(&w), 2 * LARGE);
    all_is_given_back(&w);
}

static void post_packed(peer *p, size_t n_text)
{
    buf plain = {0}, packed = {0};
    put_ask(&plain, n_text);
    assert_int_equal(coding_pack(CODING_GZIP, plain.data, plain.len, &packed), 0);
    buf_printf(&p->out,
               "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n"
               "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
               packed.len);
    buf_append(&p->out, packed.data, packed.len);
    buf_done(&plain);
    buf_done(&packed);
}

static void packed_bodies_count_as_what_they_become(void **state)
{
    world w;
    peer p[2], more;
    world_open(&w, &CONFIG);
    for (int i = 0; i < 2; i++) {
        peer_dial(&w, &p[i]);
        post_packed(&p[i], LARGE);
    }
    WORLD_UNTIL(&w, w.gw->n_admitted == 2 && held(&w) >= 2 * LARGE);
    peer_dial(&w, &more);
    post_packed(&more, LARGE);
    WORLD_UNTIL(&w, peer_has(&more, "HTTP/1.1 503"));
    assert_true(peer_has(&more, "large requests take all of the memory"));
    world_put(&w, "slow/0", REPLICA_FAILED);
    for (int i = 0; i < 2; i++) WORLD_UNTIL(&w, peer_has(&p[i], "worker_unavailable"));
    WORLD_UNTIL(&w, held(&w) == 0);
    all_is_given_back(&w);
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_websockets_count_while_they_come),
        cmocka_unit_test(requests_of_websockets_count_until_they_are_answered),
        cmocka_unit_test(messages_of_grpc_streams_count_while_they_come),
        cmocka_unit_test(packed_bodies_count_as_what_they_become),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
