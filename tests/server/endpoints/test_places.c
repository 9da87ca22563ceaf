/* A full table of connections: whatever those do that cost their clients nothing, a new client is served, and
 * an answer that is being made goes on. */
#define _GNU_SOURCE
#include "flood_world.h"

enum { PLACES = 48 };

/* ---- what the places are filled with ---------------------------------------------------------------- */

static void be_silent(world *w, peer *p)
{
    peer_dial(w, p);
}

static void be_half_a_head(world *w, peer *p)
{
    peer_dial(w, p);
    peer_puts(p, "GET / HTTP/1.1\r\nHost: loc");
}

static void be_half_a_body(world *w, peer *p)
{
    peer_dial(w, p);
    peer_puts(p, "POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
}

static void be_half_an_upload(world *w, peer *p)
{
    peer_dial(w, p);
    peer_puts(p, "POST /v1/audio/transcriptions?model=slow HTTP/1.1\r\nHost: localhost\r\n"
                 "Content-Type: audio/wav\r\nContent-Length: 1000\r\n\r\nRIFF");
}

static void be_idle(world *w, peer *p)
{
    peer_dial(w, p);
    peer_puts(p, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    WORLD_UNTIL(w, peer_has(p, "ok") || p->eof);
}

static void be_half_a_second_head(world *w, peer *p)
{
    be_idle(w, p);
    peer_puts(p, "GET / HTTP/1.1\r\n");
}

static void be_a_websocket(world *w, peer *p)
{
    ws_dial(w, p, NULL);
}

static void be_a_preface(world *w, peer *p)
{
    h2_dial(w, p);
}

static void be_half_a_header_block(world *w, peer *p)
{
    be_a_preface(w, p);
    h2_put_head(&p->out, H2_END_STREAM, 1, "GET", "/healthz", NULL);
}

static void be_a_watch(world *w, peer *p)
{
    be_a_preface(w, p);
    h2_post(p, 1, "/grpc.health.v1.Health/Watch", "application/grpc", "\0\0\0\0\0", 5);
    WORLD_UNTIL(w, peer_has(p, "application/grpc") || p->got.len > 100 || p->eof);
}

static void be_a_reflection(world *w, peer *p)
{
    be_a_preface(w, p);
    h2_put_head(&p->out, H2_END_HEADERS, 1, "POST",
                "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "application/grpc");
}

static const struct {
    const char *name;
    void (*be)(world *w, peer *p);
} KINDS[] = {
    {"silent", be_silent},
    {"half a head", be_half_a_head},
    {"half a body", be_half_a_body},
    {"half an upload", be_half_an_upload},
    {"idle", be_idle},
    {"half a second head", be_half_a_second_head},
    {"WebSocket", be_a_websocket},
    {"HTTP/2 preface", be_a_preface},
    {"half a header block", be_half_a_header_block},
    {"watch", be_a_watch},
    {"reflection", be_a_reflection},
};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

/* ---- tests --------------------------------------------------------------------------------------- */

/* A client that asks for what waits for a worker, and is not left until that is there. */
static void ask_and_wait(world *w, peer *p, const char *key)
{
    peer_dial(w, p);
    peer_puts(p, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nx-shoal-deadline-ms: 600000\r\n");
    if (key) buf_printf(&p->out, "Authorization: Bearer %s\r\n", key);
    buf_printf(&p->out, "Content-Length: %zu\r\n\r\n" WORLD_CHAT, strlen(WORLD_CHAT));
    size_t before = w->gw->n_admitted;
    WORLD_UNTIL(w, w->gw->n_admitted == before + 1);
}

static void expect_its_answer(world *w, peer *p)
{
    assert_false(p->eof);
    world_put(w, "slow/0", REPLICA_FAILED);
    WORLD_UNTIL(w, peer_has(p, "HTTP/1.1 503") || p->eof);
    assert_true(peer_has(p, "worker_unavailable"));
}

static void fill_the_table(size_t kind, const gateway_config *config, const char *key)
{
    world w;
    static peer fill[2 * PLACES];
    peer busy, news[8];
    world_open(&w, config);
    ask_and_wait(&w, &busy, key);
    for (size_t i = 0; i < 2 * PLACES; i++) {
        KINDS[kind].be(&w, &fill[i]);
        for (int k = 0; k < 3; k++) world_turn(&w);
    }
    for (size_t i = 0; i < sizeof news / sizeof *news; i++) {
        peer_dial(&w, &news[i]);
        peer_puts(&news[i], "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n");
        if (key) buf_printf(&news[i].out, "Authorization: Bearer %s\r\n", key);
        peer_puts(&news[i], "\r\n");
        WORLD_UNTIL(&w, peer_has(&news[i], "\r\n\r\n") || news[i].eof);
        if (!peer_has(&news[i], "HTTP/1.1 200"))
            fail_msg("%s: new client %zu is not served", KINDS[kind].name, i);
    }
    expect_its_answer(&w, &busy);
    world_close(&w);
}

static void new_clients_are_served_when_the_table_is_full(void **state)
{
    for (size_t kind = 0; kind < N_KINDS; kind++)
        fill_the_table(kind, &(gateway_config){.limits.max_connections = PLACES, .max_uploads = PLACES},
                       NULL);
}

static void with_keys_new_clients_are_served_when_the_table_is_full(void **state)
{
    keyed k;
    for (size_t kind = 0; kind < N_KINDS; kind++)
        fill_the_table(
            kind, keyed_config(&k, (gateway_config){.limits.max_connections = PLACES, .max_uploads = PLACES}),
            "sesame");
}

/* Where keys are needed, those who show none have a quarter of the places, and known clients keep theirs. */
static void unauthenticated_clients_have_a_quarter_of_the_places(void **state)
{
    world w;
    keyed k;
    static peer known[PLACES / 2], fill[2 * PLACES];
    size_t n_left = 0;
    world_open(&w,
               keyed_config(&k, (gateway_config){.limits.max_connections = PLACES, .max_uploads = PLACES}));
    for (size_t i = 0; i < PLACES / 2; i++) {
        peer_dial(&w, &known[i]);
        peer_puts(&known[i],
                  "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sesame\r\n\r\n");
        WORLD_UNTIL(&w, peer_has(&known[i], "HTTP/1.1 200"));
    }
    for (size_t i = 0; i < 2 * PLACES; i++) be_idle(&w, &fill[i]);
    for (int i = 0; i < 20; i++) world_turn(&w);
    for (size_t i = 0; i < 2 * PLACES; i++) n_left += !fill[i].eof;
    assert_in_range(n_left, 1, PLACES / 4);
    for (size_t i = 0; i < PLACES / 2; i++) assert_false(known[i].eof);
    world_close(&w);
}

static void who_gives_way_is_told(void **state)
{
    world w;
    static peer sockets[PLACES + 1];
    peer watch, half;
    world_open(&w, &(gateway_config){.limits.max_connections = PLACES, .max_uploads = PLACES});
    be_a_watch(&w, &watch);
    be_half_a_head(&w, &half);
    for (size_t i = 0; i < PLACES; i++) be_a_websocket(&w, &sockets[i]);
    WORLD_UNTIL(&w, watch.eof); /* GOAWAY, then the end */
    be_a_websocket(&w, &sockets[PLACES]);
    WORLD_UNTIL(&w, ws_was_closed(&sockets[0], 1013, "others want this connection's place"));
    world_close(&w);
}

/* Found by the clock of the loop, so the test waits for it. */
static void unauthenticated_clients_have_five_seconds(void **state)
{
    world w;
    keyed k;
    peer half, idle, socket;
    world_open(&w, keyed_config(&k, (gateway_config){.limits.request_timeout_ms = 600000}));
    be_half_a_head(&w, &half);
    be_idle(&w, &idle);
    ws_dial(&w, &socket, NULL);
    for (int i = 0; i < 600 && !(half.eof && idle.eof && socket.eof); i++) {
        world_turn(&w);
        usleep(50000);
    }
    assert_true(peer_has(&half, "HTTP/1.1 408"));
    assert_true(idle.eof);
    assert_true(ws_was_closed(&socket, 1008, "no request with a valid API key came"));
    world_close(&w);
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_clients_are_served_when_the_table_is_full),
        cmocka_unit_test(with_keys_new_clients_are_served_when_the_table_is_full),
        cmocka_unit_test(unauthenticated_clients_have_a_quarter_of_the_places),
        cmocka_unit_test(who_gives_way_is_told),
        cmocka_unit_test(unauthenticated_clients_have_five_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
