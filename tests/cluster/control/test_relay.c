/* The relay: gateways reach the worker they name, and nobody else does. */
#include "control_world.h"

#include "join/relay.h"
#include "grpc/grpc.h"

typedef struct scene {
    grpc_server *worker;
    relay *relay;
    tls_context *at_relay, *at_client;
    grpc_channel *ch;
    char socket[160];
    char address[32];
    bool connected, lost, nodes_too;
    char why[320];
    size_t n_bytes;
    int n_ended, status;
} scene;

static scene s;

/* ---- the worker: an echo, and a source of as many bytes as are asked for -------------------------- */

static void on_echo(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    grpc_call_send(c, msg, n);
    grpc_call_end(c, GRPC_OK, NULL);
}

static void on_flood(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    static uint8_t piece[65536];
    for (size_t i = 0; i < sizeof piece; i++) piece[i] = (uint8_t)(i * 7);
    for (int i = 0; i < 160; i++) grpc_call_send(c, piece, sizeof piece); /* 10 MiB */
    grpc_call_end(c, GRPC_OK, NULL);
}

static const grpc_method methods[] = {{"/t.T/Echo", on_echo}, {"/t.T/Flood", on_flood}};

static const char *find(void *user, const tls_identity *who, const char *name, const char **ret_why)
{
    if (strcmp(who->unit, "gateway") != 0) {
        *ret_why = strcmp(name, "models") == 0 ? NULL : "only gateways call workers";
        return *ret_why ? NULL : s.socket;
    }
    return strcmp(name, "w0") == 0 ? s.socket : strcmp(name, "gone") == 0 ? "unix:/nowhere/x.sock" : NULL;
}

static bool gateways_alone(void *user, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    snprintf(why, TLS_WHY_BYTES, "it is no gateway");
    return s.nodes_too || strcmp(who->unit, "gateway") == 0;
}

static tls_context *context(tls_side side, const char *member_name)
{
    char cert[256], root[256];
    shoal_err err;
    tls_context *t;
    snprintf(cert, sizeof cert, "%s/%s/member.pem", place, member_name);
    snprintf(root, sizeof root, "%s/%s/ca.crt", place, member_name);
    tls_options o = {.cert_file = cert, .key_file = cert, .ca_file = root};
    if (side == TLS_SERVER) o.admit = gateways_alone;
    if (tls_context_new(&t, side, &o, &err) != 0) fail_msg("%s", err.message);
    return t;
}

static int scene_open(void **state)
{
    char text[TOKEN_TEXT_SIZE];
    memset(&s, 0, sizeof s);
    if (world_open(state) != 0) return -1;
    world_token(ROLE_NODE, text);
    if (world_join("pi", text, NULL, NULL) != 0) return -1;
    world_token(ROLE_GATEWAY, text);
    if (world_join("second", text, NULL, NULL) != 0) return -1;
    snprintf(s.socket, sizeof s.socket, "unix:%s/w0.sock", place);
    http_limits limits = {.max_write_backlog = 64 << 20};
    if (grpc_server_new(&s.worker, &w.loop, methods, 2, NULL, &limits, NULL) != 0) return -1;
    if (grpc_server_listen(s.worker, s.socket, NULL) != 0) return -1;
    s.at_relay = context(TLS_SERVER, "pi");
    relay_options o = {.listen = "127.0.0.1:0", .tls = s.at_relay, .find = find, .time = env_sim_env(w.sim)};
    if (relay_open(&s.relay, &w.loop, &o, NULL) != 0) return -1;
    snprintf(s.address, sizeof s.address, "127.0.0.1:%d", relay_port(s.relay));
    return 0;
}

static int scene_close(void **state)
{
    bool relay_closed = false, worker_closed = false;
    if (s.ch) grpc_channel_close(s.ch);
    relay_close(s.relay, world_closed, &relay_closed);
    grpc_server_close(s.worker, world_closed, &worker_closed);
    TURN_UNTIL(relay_closed && worker_closed);
    tls_context_unref(s.at_relay);
    tls_context_unref(s.at_client);
    return world_close(state);
}

/* ---- a gateway ------------------------------------------------------------------------------------ */

static void on_connected(void *user)
{
    s.connected = true;
}

static void on_lost(void *user, const char *why)
{
    s.lost = true;
    snprintf(s.why, sizeof s.why, "%s", why);
}

static void connect_as(const char *member_name, const char *worker)
{
    shoal_err err;
    if (s.ch) grpc_channel_close(s.ch);
    tls_context_unref(s.at_client);
    s.connected = s.lost = false;
    s.at_client = context(TLS_CLIENT, member_name);
    const grpc_channel_events ev = {.connected = on_connected, .disconnected = on_lost};
    const grpc_channel_options o = {.tls = s.at_client, .server_name = "pi", .sni = worker};
    if (grpc_channel_open(&s.ch, &w.loop, s.address, &o, &ev, &err) != 0) fail_msg("%s", err.message);
    TURN_UNTIL(s.connected || s.lost);
}

static void on_message(void *user, const uint8_t *msg, size_t n)
{
    for (size_t i = 0; i < n && n == 65536; i += 97) assert_int_equal(msg[i], (uint8_t)(i * 7));
    s.n_bytes += n;
}

static void on_end(void *user, grpc_status status, const char *message)
{
    s.n_ended++;
    s.status = (int)status;
}

static grpc_client_call *ask(const char *path)
{
    const grpc_client_events ev = {.message = on_message, .end = on_end};
    grpc_client_call *c = grpc_call_start(s.ch, path, "hello", 5, NULL, 0, 0, &ev);
    assert_non_null(c);
    return c;
}

static void a_gateway_reaches_the_worker_it_names(void **state)
{
    connect_as("second", "w0");
    if (!s.connected) fail_msg("%s", s.why);
    for (int i = 1; i <= 50; i++) {
        ask("/t.T/Echo");
        TURN_UNTIL(s.n_ended == i);
        assert_int_equal(s.status, GRPC_OK);
    }
    assert_int_equal(s.n_bytes, 250);
    assert_int_equal(relay_count(s.relay), 1);
}

static void nobody_else_does(void **state)
{
    connect_as("pi", "w0"); /* a node, and even this one */
    assert_false(s.connected);
    assert_true(s.lost);
}

static void echo_works(void)
{
    int n = s.n_ended;
    ask("/t.T/Echo");
    TURN_UNTIL(s.n_ended == n + 1);
    assert_int_equal(s.status, GRPC_OK);
}

static void count_nothing(void *user) {}

static void count_lost(void *user, const char *why)
{
    ++*(int *)user;
}

/* What nodes may name is `find`'s to say, and they take no gateway's place. */
static void nodes_reach_what_is_theirs_and_crowd_nobody_out(void **state)
{
    enum { N = RELAY_NODES_MAX + 8 };
    grpc_channel *many[N];
    s.nodes_too = true;
    connect_as("pi", "models");
    assert_true(s.connected);
    echo_works();
    connect_as("pi", "w0");
    TURN_UNTIL(s.lost);
    connect_as("second", "models"); /* no such worker */
    TURN_UNTIL(s.lost);
    tls_context *node = context(TLS_CLIENT, "pi");
    const grpc_channel_options o = {.tls = node, .server_name = "pi", .sni = "models"};
    int n_lost = 0;
    const grpc_channel_events ev = {.user = &n_lost, .connected = count_nothing, .disconnected = count_lost};
    for (int i = 0; i < N; i++)
        assert_int_equal(grpc_channel_open(&many[i], &w.loop, s.address, &o, &ev, NULL), 0);
    TURN_UNTIL(n_lost >= N - RELAY_NODES_MAX);
    connect_as("second", "w0");
    assert_true(s.connected);
    echo_works();
    for (int i = 0; i < N; i++) grpc_channel_close(many[i]);
    tls_context_unref(node);
}

static void a_name_that_no_worker_has_leads_nowhere(void **state)
{
    static const char *const names[] = {"w1", "gone", "pi"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        connect_as("second", names[i]);
        TURN_UNTIL(s.lost);
        TURN_UNTIL(relay_count(s.relay) == 0);
    }
    connect_as("second", "w0"); /* and others still get in */
    ask("/t.T/Echo");
    TURN_UNTIL(s.n_ended == 1);
    assert_int_equal(s.status, GRPC_OK);
}

/* SNI says no path, and nothing that is too long for a name. */
static void odd_names_lead_nowhere(void **state)
{
    static char longest[256];
    memset(longest, 'w', sizeof longest - 1);
    const char *const names[] = {"../w0",         "w0/",  "/w0",      "w0 ",  "W0",
                                 "unix:/nowhere", "%s%n", "\xff\xfe", longest};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        connect_as("second", names[i]);
        TURN_UNTIL(s.lost);
        TURN_UNTIL(relay_count(s.relay) == 0);
    }
    connect_as("second", NULL); /* no SNI but the node's own name */
    TURN_UNTIL(s.lost);
    connect_as("second", "w0");
    ask("/t.T/Echo");
    TURN_UNTIL(s.n_ended == 1);
    assert_int_equal(s.status, GRPC_OK);
}

/* They hold a few places of one address, and who comes through meanwhile is served. */
static void half_open_connections_hold_few_places(void **state)
{
    enum { N = 200 };
    static int fds[N];
    connect_as("second", "w0");
    for (int i = 0; i < N; i++) {
        fds[i] = unauthenticated_connect(s.address, i % 2);
        uv_run(&w.loop, UV_RUN_NOWAIT);
    }
    TURN_UNTIL(unauthenticated_cut(fds, N) >= N - RELAY_UNAUTHENTICATED_MAX);
    assert_true(relay_count(s.relay) <= RELAY_UNAUTHENTICATED_MAX + 1);
    ask("/t.T/Echo");
    TURN_UNTIL(s.n_ended == 1);
    assert_int_equal(s.status, GRPC_OK);
    for (int i = 0; i < N; i++) close(fds[i]);
    TURN_UNTIL(relay_count(s.relay) == 1);
    connect_as("second", "w0"); /* and a newcomer too */
    assert_true(s.connected);
}

/* Who shows no certificate is cut in time, and who has shown one stays. */
static void who_comes_no_further_is_cut(void **state)
{
    connect_as("second", "w0");
    int fd = unauthenticated_connect(s.address, 0);
    TURN_UNTIL(relay_count(s.relay) == 2);
    env_sim_run(w.sim, RELAY_HANDSHAKE_MS + 1000);
    TURN_UNTIL(relay_count(s.relay) == 1);
    assert_int_equal(unauthenticated_cut(&fd, 1), 1);
    close(fd);
    echo_works();
}

/* One that opens connections without end gets its share; another gateway still comes in. */
static void a_gateway_that_takes_all_places_gets_its_share(void **state)
{
    enum { SHARE = 4, N = 12 };
    grpc_channel *held[N];
    char text[TOKEN_TEXT_SIZE];
    bool closed = false;
    int n_in = 0;
    relay_close(s.relay, world_closed, &closed);
    TURN_UNTIL(closed);
    relay_options o = {.listen = "127.0.0.1:0",
                       .tls = s.at_relay,
                       .find = find,
                       .share_max = SHARE,
                       .time = env_sim_env(w.sim)};
    assert_int_equal(relay_open(&s.relay, &w.loop, &o, NULL), 0);
    snprintf(s.address, sizeof s.address, "127.0.0.1:%d", relay_port(s.relay));
    for (int i = 0; i < N; i++) {
        connect_as("second", "w0");
        n_in += s.connected;
        assert_int_equal(s.lost, i >= SHARE);
        held[i] = s.ch;
        s.ch = NULL;
    }
    assert_int_equal(n_in, SHARE);
    TURN_UNTIL(relay_count(s.relay) == SHARE);
    world_token(ROLE_GATEWAY, text);
    assert_int_equal(world_join("third", text, NULL, NULL), 0);
    connect_as("third", "w0");
    ask("/t.T/Echo");
    TURN_UNTIL(s.n_ended == 1);
    assert_int_equal(s.status, GRPC_OK);
    for (int i = 0; i < N; i++) grpc_channel_close(held[i]);
    TURN_UNTIL(relay_count(s.relay) == 1);
    connect_as("second", "w0"); /* and the first again, when it has let go */
    ask("/t.T/Echo");
    TURN_UNTIL(s.n_ended == 2);
    assert_int_equal(s.status, GRPC_OK);
}

/* A gateway that asks for thousands of streams at once gets as many as the worker gives it, one after the
 * other. */
static void thousands_of_streams_are_served_or_refused(void **state)
{
    enum { N = 3000 };
    connect_as("second", "w0");
    for (int i = 0; i < N; i++) ask("/t.T/Echo");
    TURN_UNTIL(s.n_ended == N);
    assert_int_equal(relay_count(s.relay), 1);
    s.n_ended = 0;
    ask("/t.T/Echo");
    TURN_UNTIL(s.n_ended == 1);
    assert_int_equal(s.status, GRPC_OK);
}

static void much_comes_whole_to_one_who_pauses(void **state)
{
    connect_as("second", "w0");
    grpc_client_call *c = ask("/t.T/Flood");
    TURN_UNTIL(s.n_bytes > 0);
    grpc_client_pause(c, true);
    for (int i = 0; i < 200; i++) uv_run(&w.loop, UV_RUN_NOWAIT);
    assert_int_equal(s.n_ended, 0);
    grpc_client_pause(c, false);
    TURN_UNTIL(s.n_ended == 1);
    assert_int_equal(s.n_bytes, 160 * 65536);
    assert_int_equal(s.status, GRPC_OK);
}

static void a_worker_that_dies_ends_its_calls(void **state)
{
    bool closed = false;
    connect_as("second", "w0");
    grpc_client_call *c = ask("/t.T/Flood");
    TURN_UNTIL(s.n_bytes > 0);
    grpc_client_pause(c, true);
    grpc_server_close(s.worker, world_closed, &closed);
    TURN_UNTIL(s.lost && closed);
    TURN_UNTIL(relay_count(s.relay) == 0);
    assert_int_equal(s.n_ended, 1);
    assert_int_not_equal(s.status, GRPC_OK);
    assert_int_equal(grpc_server_new(&s.worker, &w.loop, methods, 2, NULL, NULL, NULL), 0); /* for the end */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)
    const struct CMUnitTest tests[] = {
        TEST(nodes_reach_what_is_theirs_and_crowd_nobody_out),
        TEST(a_gateway_reaches_the_worker_it_names),
        TEST(nobody_else_does),
        TEST(a_name_that_no_worker_has_leads_nowhere),
        TEST(much_comes_whole_to_one_who_pauses),
        TEST(a_worker_that_dies_ends_its_calls),
        TEST(odd_names_lead_nowhere),
        TEST(half_open_connections_hold_few_places),
        TEST(who_comes_no_further_is_cut),
        TEST(thousands_of_streams_are_served_or_refused),
        TEST(a_gateway_that_takes_all_places_gets_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
