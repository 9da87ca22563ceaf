/* Joining and staying attached, over TLS, and everybody who must stay out. */
#include "control_hand.h"

#include "logging/log_limit.h"
#include "control/attach_limit.h"
#include "grpc/grpc.h"

static const member_entry *entry(const char *name)
{
    return member_table_find(control_member_table(w.control), name);
}

static void a_machine_joins_attaches_and_reports(void **state)
{
    machine_up m;
    up_join(&m, "pi");
    TURN_UNTIL(entry("pi") && entry("pi")->load && entry("pi")->rtt_ms > 0);
    assert_string_equal(entry("pi")->facts->site, "house");
    assert_int_equal(entry("pi")->facts->n_cores, 4);
    assert_string_equal(entry("pi")->facts->labels[0], "attic");
    up_stop(&m);
    TURN_UNTIL(!entry("pi"));
}

static void a_token_is_good_once_over_the_wire_too(void **state)
{
    char text[TOKEN_TEXT_SIZE];
    shoal_err err;
    folder dir = FOLDER_NONE;
    world_token(ROLE_NODE, text);
    assert_int_equal(world_join("one", text, NULL, &err), 0);
    assert_int_equal(world_join("two", text, &dir, &err), SHOAL_EAUTH);
    assert_true(says(&err, "is used by one"));
    assert_false(folder_has(&dir, "member.pem"));
    folder_close(&dir);
}

/* A server that is not of the token's cluster is not told the token. */
static void a_token_is_not_said_to_another_cluster(void **state)
{
    char text[TOKEN_TEXT_SIZE], path[128];
    ca *other;
    shoal_err err;
    snprintf(path, sizeof path, "%s/other", place);
    assert_int_equal(ca_init(path, "home", today(), NULL), 0);
    assert_int_equal(ca_open(&other, path, NULL), 0);
    assert_int_equal(ca_token(other, &(ca_token_ask){0}, today(), text, NULL), 0);
    assert_true(world_join("pi", text, NULL, &err) != 0);
    assert_true(says(&err, "its CA has another key"));
    ca_close(other);
}

static void a_name_that_is_taken_is_refused(void **state)
{
    char text[TOKEN_TEXT_SIZE];
    shoal_err err;
    machine_up m;
    up_join(&m, "pi");
    world_token(ROLE_NODE, text);
    assert_int_equal(world_join("thief", text, NULL, &err), 0);
    world_token(ROLE_NODE, text);
    assert_int_equal(world_join("thief", text, NULL, &err), SHOAL_EAUTH);
    assert_true(says(&err, "is taken"));
    assert_non_null(entry("pi"));
    up_stop(&m);
}

static void a_gateways_certificate_attaches_nothing(void **state)
{
    machine_up m = {.dir = FOLDER_NONE};
    char text[TOKEN_TEXT_SIZE];
    shoal_err err;
    attach *a;
    world_token(ROLE_GATEWAY, text);
    assert_int_equal(world_join("second", text, &m.dir, &err), 0);
    Shoal__V1__NodeFacts f = SHOAL__V1__NODE_FACTS__INIT;
    attach_options o = {.time = env_sim_env(w.sim), .address = w.address, .dir = &m.dir, .facts = &f};
    assert_int_equal(attach_open(&a, &w.loop, &o, &err), SHOAL_EAUTH);
    assert_true(says(&err, "is a gateway's certificate"));
    folder_close(&m.dir);
}

static void a_second_gateway_stands_on_its_certificate(void **state)
{
    char text[TOKEN_TEXT_SIZE], path[128];
    shoal_err err;
    control *second = NULL;
    bool closed = false;
    world_token(ROLE_GATEWAY, text);
    assert_int_equal(world_join("second", text, NULL, &err), 0);
    snprintf(path, sizeof path, "%s/second", place);
    const control_options o = {
        .time = env_sim_env(w.sim), .listen = "127.0.0.1:0", .state = path, .silence_ms = WORLD_SILENCE_MS};
    if (control_open(&second, &w.loop, &o, &err) != 0) fail_msg("%s", err.message);
    assert_string_equal(control_name(second), "second");
    /* It cannot sign: it passes on what asks for that. */
    TURN_UNTIL(entry("second") && entry("second")->facts);
    char first[sizeof w.address];
    memcpy(first, w.address, sizeof first);
    snprintf(w.address, sizeof w.address, "127.0.0.1:%d", control_port(second));
    world_token(ROLE_NODE, text);
    if (world_join("kit", text, NULL, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(world_join("cat", text, NULL, &err), SHOAL_EAUTH);
    assert_true(says(&err, "is used by kit"));
    /* A machine that joined at the first attaches at the second: its certificate is the cluster's. */
    memcpy(w.address, first, sizeof first);
    machine_up m;
    up_join(&m, "pi");
    attach_close(m.a, world_closed, &m.closed);
    TURN_UNTIL(m.closed);
    snprintf(w.address, sizeof w.address, "127.0.0.1:%d", control_port(second));
    m.closed = false;
    up_start(&m);
    TURN_UNTIL(member_table_find(control_member_table(second), "pi"));
    up_stop(&m);
    control_close(second, world_closed, &closed);
    TURN_UNTIL(closed);
}

static void a_nodes_certificate_opens_no_gate(void **state)
{
    char text[TOKEN_TEXT_SIZE], path[128];
    shoal_err err;
    control *g;
    world_token(ROLE_NODE, text);
    assert_int_equal(world_join("pi", text, NULL, &err), 0);
    snprintf(path, sizeof path, "%s/pi", place);
    assert_int_equal(
        control_open(&g, &w.loop,
                     &(control_options){.time = env_sim_env(w.sim), .listen = "127.0.0.1:0", .state = path},
                     &err),
        SHOAL_EAUTH);
    assert_true(says(&err, "is a node's certificate"));
}

/* ---- those who use gRPC by hand ------------------------------------------------------------------ */

static void a_guest_may_enrol_and_nothing_else(void **state)
{
    static const char *const paths[] = {"/shoal.v1.Cluster/Attach", "/shoal.v1.Join/Renew"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        hand h;
        hand_connect(&h, NULL);
        assert_true(h.connected);
        grpc_client_half_close(hand_call(&h, paths[i], "", 0));
        TURN_UNTIL(h.ended);
        assert_int_equal(h.status, GRPC_UNAUTHENTICATED);
        assert_int_equal(h.n_messages, 0);
        hand_close(&h);
    }
}

static bool revoked_there(const char *state, const char *serial)
{
    folder f = FOLDER_NONE;
    credential c = {0};
    bool yes = folder_open(&f, state, false, NULL) == 0 && credential_load(&c, &f, NULL) == 0 &&
               trust_serial_is_revoked(c.trust, serial);
    credential_done(&c);
    folder_close(&f);
    return yes;
}

/* A gateway without the CA follows the one with it: what is revoked there is refused here. */
static void a_second_gateway_hears_of_revocations(void **state)
{
    char text[TOKEN_TEXT_SIZE], path[128], first[sizeof w.address], serial[CERT_SERIAL_SIZE];
    shoal_err err;
    control *second;
    bool closed = false;
    machine_up m;
    up_join(&m, "pi");
    serial_of(&m.dir, serial);
    attach_close(m.a, world_closed, &m.closed);
    TURN_UNTIL(m.closed);
    world_token(ROLE_GATEWAY, text);
    assert_int_equal(world_join("second", text, NULL, &err), 0);
    snprintf(path, sizeof path, "%s/second", place);
    const control_options o = {
        .time = env_sim_env(w.sim), .listen = "127.0.0.1:0", .state = path, .silence_ms = WORLD_SILENCE_MS};
    assert_int_equal(control_open(&second, &w.loop, &o, &err), 0);
    TURN_UNTIL(entry("second") && entry("second")->facts);
    assert_int_equal(entry("second")->role, ROLE_GATEWAY);
    memcpy(first, w.address, sizeof first);
    snprintf(w.address, sizeof w.address, "127.0.0.1:%d", control_port(second));
    m.closed = false;
    m.n_attached = 0;
    up_start(&m);
    TURN_UNTIL(m.n_attached == 1);
    assert_int_equal(ca_revoke(w.ca, "pi", today(), NULL, NULL), 0);
    TURN_UNTIL(m.n_detached >= 2);
    assert_non_null(strstr(m.why, "revoked"));
    assert_null(member_table_find(control_member_table(second), "pi"));
    assert_true(revoked_there(path, serial));
    up_stop(&m);
    memcpy(w.address, first, sizeof first);
    /* It is a member like others: put out, it is told so, and opens no listener again. */
    assert_int_equal(ca_revoke(w.ca, "second", today(), NULL, NULL), 0);
    TURN_UNTIL(!entry("second"));
    control_close(second, world_closed, &closed);
    TURN_UNTIL(closed);
}

/* Whoever revokes the gateway on its own machine gets it a new certificate: it has the CA. */
static void a_gateway_with_the_ca_outlives_its_certificate(void **state)
{
    machine_up m;
    up_join(&m, "pi");
    assert_int_equal(ca_revoke(w.ca, "boss", today(), NULL, NULL), 0);
    TURN_UNTIL(m.n_detached >= 1);
    TURN_UNTIL(m.n_attached >= 2);
    assert_non_null(entry("pi"));
    up_stop(&m);
}

static void nonsense_ends_the_one_who_says_it(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } rows[] = {{"", 0},                                   /* no hello */
                {"\xff\xff\xff", 3},                       /* no message */
                {"\x0a\x03\x12\x01\n", 5},                 /* a site with a line end */
                {"\x12\x09\x11\0\0\0\0\0\0\xf0\xbf", 11}}; /* a load before hello */
    char text[TOKEN_TEXT_SIZE];
    machine_up good;
    up_join(&good, "good");
    world_token(ROLE_NODE, text);
    assert_int_equal(world_join("bad", text, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hand h;
        hand_connect(&h, "bad");
        hand_call(&h, "/shoal.v1.Cluster/Attach", rows[i].bytes, rows[i].n);
        TURN_UNTIL(h.ended);
        assert_int_not_equal(h.status, GRPC_OK);
        assert_null(entry("bad"));
        hand_close(&h);
    }
    assert_non_null(entry("good"));
    assert_int_equal(good.n_detached, 0);
    up_stop(&good);
}

/* What it has to say waits on its own side; others are heard in the meantime. */
static void who_talks_without_end_is_heard_slowly(void **state)
{
    enum { N = 1000, SIZE = 8192 };
    static uint8_t padded[SIZE] = {0x12, 0x00, 0xFA, 0x07, 0xFA, 0x3F}; /* a load, and bytes of field 127 */
    char text[TOKEN_TEXT_SIZE];
    machine_up good;
    hand h;
    up_join(&good, "good");
    world_token(ROLE_NODE, text);
    assert_int_equal(world_join("chatty", text, NULL, NULL), 0);
    hand_connect(&h, "chatty");
    grpc_client_call *c = hand_call(&h, "/shoal.v1.Cluster/Attach", "\x0a\0", 2);
    TURN_UNTIL(entry("chatty") && entry("chatty")->facts);
    for (int i = 0; i < N; i++) grpc_client_send(c, padded, sizeof padded);
    TURN_UNTIL(entry("chatty")->load);
    uint64_t before = entry("good")->heard_ns;
    TURN_UNTIL(entry("good")->heard_ns != before);
    assert_true(grpc_client_unsent(c) > 0);
    assert_false(h.ended);
    assert_non_null(entry("chatty"));
    assert_int_equal(good.n_detached, 0);
    hand_close(&h);
    TURN_UNTIL(!entry("chatty"));
    up_stop(&good);
}

/* One that begins and leaves without end is sent away for a while; the others notice nothing of it. */
static void who_attaches_without_end_is_refused(void **state)
{
    char text[TOKEN_TEXT_SIZE];
    machine_up good;
    hand h;
    bool refused = false;
    up_join(&good, "good");
    world_token(ROLE_NODE, text);
    assert_int_equal(world_join("restless", text, NULL, NULL), 0);
    hand_connect(&h, "restless");
    for (int i = 0; i < 4 * ATTACH_LIMIT_BURST && !refused; i++) {
        h.ended = false;
        grpc_client_call *c = hand_call(&h, "/shoal.v1.Cluster/Attach", "\x0a\0", 2);
        TURN_UNTIL(h.ended || (entry("restless") && entry("restless")->facts));
        refused = h.ended;
        if (refused) break;
        grpc_client_cancel(c);
        TURN_UNTIL(!entry("restless"));
    }
    assert_true(refused);
    assert_int_equal(h.status, GRPC_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(h.why, "attaches too often; try again in"));
    assert_null(entry("restless"));
    hand_close(&h);
    uint64_t before = entry("good")->heard_ns;
    TURN_UNTIL(entry("good")->heard_ns != before);
    assert_int_equal(good.n_detached, 0);
    up_stop(&good);
}

static void an_attach_limit_gives_back_what_was_spent(void **state)
{
    static attach_limit t;
    char name[16];
    for (int i = 0; i < ATTACH_LIMIT_BURST; i++) assert_int_equal(attach_limit_pass(&t, "pi", 1000), 0);
    assert_int_equal(attach_limit_pass(&t, "pi", 1000), ATTACH_LIMIT_REFILL_MS);
    assert_int_equal(attach_limit_pass(&t, "pi", 1600), ATTACH_LIMIT_REFILL_MS - 600);
    assert_int_equal(attach_limit_pass(&t, "pj", 1600), 0);
    assert_int_equal(attach_limit_pass(&t, "pi", 1000 + ATTACH_LIMIT_REFILL_MS), 0);
    assert_true(attach_limit_pass(&t, "pi", 1000 + ATTACH_LIMIT_REFILL_MS) > 0);
    for (int i = 0; i < 4096; i++) { /* a whole cluster that comes back */
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(attach_limit_pass(&t, name, 900000), 0);
    }
}

/* They hold a few places of one address; who is attached stays so. */
static void half_open_connections_hold_few_places(void **state)
{
    enum { N = 200 };
    static int fds[N];
    machine_up m;
    up_join(&m, "pi");
    for (int i = 0; i < N; i++) {
        fds[i] = unauthenticated_connect(w.address, i % 2);
        uv_run(&w.loop, UV_RUN_NOWAIT);
    }
    TURN_UNTIL(unauthenticated_cut(fds, N) >= N - CONTROL_UNAUTHENTICATED_MAX);
    uint64_t before = entry("pi")->heard_ns;
    TURN_UNTIL(entry("pi")->heard_ns != before);
    assert_int_equal(m.n_detached, 0);
    for (int i = 0; i < N; i++) close(fds[i]);
    up_stop(&m);
}

/* Whoever can connect can be refused: of one address a few lines are written, the others counted. */
static void refusals_do_not_flood_the_log(void **state)
{
    enum { N = 40 };
    static char text[16384];
    FILE *f = tmpfile();
    int kept = dup(2), n_lines = 0;
    dup2(fileno(f), 2);
    log_setup(LOG_WARN, false);
    for (int i = 0; i < N; i++) {
        int fd = unauthenticated_connect(w.address, false);
        assert_int_equal(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
        TURN_UNTIL(unauthenticated_cut(&fd, 1) == 1);
        close(fd);
    }
    dup2(kept, 2);
    close(kept);
    log_setup(LOG_OFF, false);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    for (const char *at = text; (at = strstr(at, "event=connection_refused from=127.0.0.1")); at++) n_lines++;
    assert_int_equal(n_lines, LOG_LIMIT_LINES);
}

/* A node that asks for certificates without end gets a few. */
static void who_renews_without_end_is_refused(void **state)
{
    Shoal__V1__RenewRequest m = SHOAL__V1__RENEW_REQUEST__INIT;
    uint8_t packed[512];
    char text[TOKEN_TEXT_SIZE];
    shoal_err err;
    hand h;
    int n_signed = 0;
    buf der = {0};
    world_token(ROLE_NODE, text);
    assert_int_equal(world_join("greedy", text, NULL, &err), 0);
    EVP_PKEY_free(new_request("greedy", &der));
    m.request.data = (uint8_t *)der.data;
    m.request.len = der.len;
    size_t n = shoal__v1__renew_request__pack(&m, packed);
    hand_connect(&h, "greedy");
    for (h.status = GRPC_OK; h.status == GRPC_OK && n_signed < 1000; n_signed++) {
        h.ended = false;
        grpc_client_half_close(hand_call(&h, "/shoal.v1.Join/Renew", packed, n));
        TURN_UNTIL(h.ended);
    }
    assert_int_equal(n_signed, CA_RENEWALS_A_DAY);
    assert_non_null(strstr(h.why, "try again tomorrow"));
    hand_close(&h);
    buf_done(&der);
}

/* ---- two machines with one identity -------------------------------------------------------------- */

/* The disk of a machine was copied: the one that is attached stays, the other is told why it cannot, and
 * people can see both addresses. When the first has gone the second comes in. */
static void a_copy_of_a_machine_that_is_attached_is_refused(void **state)
{
    machine_up first, copy = {.dir = FOLDER_NONE};
    char path[256];
    buf json = {0};
    up_join(&first, "twin");
    snprintf(path, sizeof path, "%s/twin", place);
    assert_int_equal(folder_open(&copy.dir, path, false, NULL), 0);
    up_start(&copy);
    TURN_UNTIL(copy.n_detached == 2); /* it tries again, and is refused again */
    assert_non_null(strstr(copy.why, "another machine is attached as twin, from 127.0.0.1"));
    assert_non_null(strstr(copy.why, "join with a token of its own"));
    assert_int_equal(copy.n_attached, 0);
    assert_int_equal(first.n_attached, 1);
    assert_int_equal(first.n_detached, 0);
    member_table_put_entry(entry("twin"), clock_ns(), &json);
    assert_non_null(strstr(json.data, "\"from\":\"127.0.0.1\",\"also_from\":\"127.0.0.1\",\"also_s\":"));
    buf_done(&json);
    up_stop(&first);
    TURN_UNTIL(copy.n_attached == 1);
    up_stop(&copy);
}

/* One that lost its power has said nothing since: what comes back after it is the same machine. */
static void a_machine_that_comes_back_after_a_loss_of_power_takes_its_name(void **state)
{
    char text[TOKEN_TEXT_SIZE], path[256];
    machine_up back = {.dir = FOLDER_NONE};
    hand h;
    world_token(ROLE_NODE, text);
    assert_int_equal(world_join("lightless", text, NULL, NULL), 0);
    hand_connect(&h, "lightless");
    hand_call(&h, "/shoal.v1.Cluster/Attach", "\x0a\0\x38\x07",
              4); /* hello of instance 7, which never answers */
    TURN_UNTIL(entry("lightless") && entry("lightless")->facts);
    snprintf(path, sizeof path, "%s/lightless", place);
    assert_int_equal(folder_open(&back.dir, path, false, NULL), 0);
    up_start(&back);
    TURN_UNTIL(back.n_attached == 1);
    assert_int_equal(back.n_detached, 0);
    TURN_UNTIL(h.ended);
    assert_int_equal(h.status, GRPC_ABORTED);
    assert_true(entry("lightless")->twice_ns == 0);
    hand_close(&h);
    up_stop(&back);
}

/* A rival leaves, or says nothing, or more than one comes: the one that is attached hears nothing of it. */
static void rivals_that_leave_or_are_many_disturb_nobody(void **state)
{
    machine_up m;
    hand a, b;
    up_join(&m, "wanted");
    hand_connect(&a, "wanted");
    hand_connect(&b, "wanted");
    hand_call(&a, "/shoal.v1.Cluster/Attach", "", 0); /* no hello, which is wrong */
    TURN_UNTIL(a.ended);
    assert_int_equal(a.status, GRPC_INVALID_ARGUMENT);
    const grpc_client_events ev = {.user = &a, .end = hand_end};
    a.ended = false;
    grpc_client_call *c = grpc_call_open(a.ch, "/shoal.v1.Cluster/Attach", NULL, &ev); /* says nothing yet */
    grpc_client_call *d;
    do { /* until the other is known to wait */
        b.ended = false;
        d = hand_call(&b, "/shoal.v1.Cluster/Attach", "\x0a\0\x38\x09", 4);
        TURN_UNTIL(b.ended);
    } while (b.status != GRPC_RESOURCE_EXHAUSTED);
    (void)d;
    grpc_client_cancel(c);
    hand_close(&a);
    b.ended = false;
    uint64_t before = entry("wanted")->heard_ns;
    TURN_UNTIL(entry("wanted")->heard_ns != before);
    hand_call(&b, "/shoal.v1.Cluster/Attach", "\x0a\0\x38\x09", 4);
    TURN_UNTIL(b.ended);
    assert_int_equal(b.status, GRPC_FAILED_PRECONDITION);
    hand_close(&b);
    assert_int_equal(m.n_detached, 0);
    up_stop(&m);
}

/* The one that is attached leaves while a rival waits for it, which has not said yet who it is. */
static void a_rival_gets_the_name_when_the_one_that_is_attached_leaves(void **state)
{
    static const char path[] = "/shoal.v1.Cluster/Attach";
    machine_up m;
    hand a, third = {.ended = false};
    up_join(&m, "left");
    hand_connect(&a, "left");
    grpc_client_call *rival =
        grpc_call_open(a.ch, path, NULL, &(grpc_client_events){.user = &a, .end = hand_end});
    grpc_call_open(a.ch, path, NULL, &(grpc_client_events){.user = &third, .end = hand_end});
    TURN_UNTIL(third.ended); /* of one connection: the rival was heard before */
    assert_non_null(strstr(third.why, "several machines attach by this name at once"));
    const void *holder = entry("left")->session;
    up_stop(&m);
    TURN_UNTIL(entry("left") && entry("left")->session != holder);
    assert_int_equal(grpc_client_send(rival, "\x0a\0\x38\x08", 4), 0);
    TURN_UNTIL(entry("left")->facts);
    assert_int_equal(entry("left")->instance, 8);
    assert_false(a.ended);
    hand_close(&a);
}

static int world_open_impatient(void **state)
{
    return world_open_with(state, 1500);
}

static void who_says_nothing_is_lost(void **state)
{
    char text[TOKEN_TEXT_SIZE];
    hand h;
    world_token(ROLE_NODE, text);
    assert_int_equal(world_join("mute", text, NULL, NULL), 0);
    hand_connect(&h, "mute");
    hand_call(&h, "/shoal.v1.Cluster/Attach", "\x0a\0", 2);
    TURN_UNTIL(entry("mute") && entry("mute")->facts);
    TURN_UNTIL(h.ended);
    assert_int_equal(h.status, GRPC_ABORTED);
    assert_null(entry("mute"));
    hand_close(&h);
}

static void guessing_tokens_is_slow(void **state)
{
    Shoal__V1__EnrolRequest m = SHOAL__V1__ENROL_REQUEST__INIT;
    uint8_t packed[512];
    char text[TOKEN_TEXT_SIZE];
    bool refused = false;
    hand h;
    world_token(ROLE_NODE, text);
    text[20] = text[20] == '0' ? '1' : '0';
    m.token = text;
    buf der = {0};
    EVP_PKEY_free(new_request("guesser", &der));
    m.request.data = (uint8_t *)der.data;
    m.request.len = der.len;
    size_t n = shoal__v1__enrol_request__pack(&m, packed);
    hand_connect(&h, NULL);
    for (int i = 0; i < 20 && !refused; i++) {
        h.ended = false;
        grpc_client_half_close(hand_call(&h, "/shoal.v1.Join/Enrol", packed, n));
        TURN_UNTIL(h.ended);
        assert_int_not_equal(h.status, GRPC_OK);
        refused = h.status == GRPC_RESOURCE_EXHAUSTED;
    }
    assert_true(refused);
    assert_non_null(strstr(h.why, "try again in"));
    hand_close(&h);
    buf_done(&der);
    world_token(ROLE_NODE, text); /* whose token is right is told the same, waits and comes in */
    assert_int_equal(world_join("patient", text, NULL, NULL), 0);
}

static void what_a_gateway_says_of_waiting_is_understood(void **state)
{
    assert_int_equal(join_retry_ms("too many are joining at once; try again in 1 s"), 1000);
    assert_int_equal(join_retry_ms("the gateway says: try again in 14 s; or not"), 14000);
    assert_int_equal(join_retry_ms("try again in 99999999999999999999999 s"), JOIN_RETRY_MAX_MS);
    assert_int_equal(join_retry_ms("try again in 301 s"), JOIN_RETRY_MAX_MS);
    assert_int_equal(join_retry_ms("the token is used up"), 0);
    assert_int_equal(join_retry_ms("try again in a while"), 0);
    assert_int_equal(join_retry_ms(""), 0);
}

/* ---- time ---------------------------------------------------------------------------------------- */

static void the_revoked_are_detached_and_refused_and_others_are_not(void **state)
{
    machine_up bad, good;
    up_join(&bad, "bad");
    up_join(&good, "good");
    assert_int_equal(ca_revoke(w.ca, "bad", today(), NULL, NULL), 0);
    TURN_UNTIL(bad.n_detached == 1);
    assert_non_null(strstr(bad.why, "revoked"));
    assert_null(entry("bad"));
    TURN_UNTIL(bad.n_detached >= 3); /* it tries again, and again */
    assert_non_null(strstr(bad.why, "revoked"));
    assert_int_equal(bad.n_attached, 1);
    assert_non_null(entry("good"));
    assert_int_equal(good.n_detached, 0);
    /* The list has reached the others, on disk as well. */
    TURN_UNTIL(folder_has(&good.dir, "crl.pem"));
    up_stop(&bad);
    up_stop(&good);
}

static void a_certificate_is_renewed_without_being_away(void **state)
{
    machine_up m;
    char before[CERT_SERIAL_SIZE], after[CERT_SERIAL_SIZE];
    up_join(&m, "pi");
    serial_of(&m.dir, before);
    uint64_t since = entry("pi")->since_ns;
    m.ahead_s = 21 * DAY;
    TURN_UNTIL(m.n_attached == 2);
    m.ahead_s = 0;
    assert_int_equal(m.n_detached, 0);
    assert_true(entry("pi") && entry("pi")->since_ns == since);
    serial_of(&m.dir, after);
    assert_string_not_equal(before, after);
    /* The old key is worth nothing more to the machine; revoking the name means both. */
    size_t n;
    assert_int_equal(ca_revoke(w.ca, "pi", today(), &n, NULL), 0);
    assert_int_equal(n, 2);
    TURN_UNTIL(m.n_detached == 1);
    up_stop(&m);
}

static void a_gateway_that_comes_back_finds_its_machines(void **state)
{
    machine_up m;
    bool closed = false;
    up_join(&m, "pi");
    control_close(w.control, world_closed, &closed);
    TURN_UNTIL(closed && m.n_detached >= 1);
    world_reopen(&(control_options){
        .time = env_sim_env(w.sim), .listen = w.address, .state = w.state, .silence_ms = WORLD_SILENCE_MS});
    assert_string_equal(control_name(w.control), "boss"); /* from its certificate */
    TURN_UNTIL(m.n_attached == 2);
    assert_non_null(entry("pi"));
    up_stop(&m);
}

static void pauses_grow_and_differ(void **state)
{
    for (unsigned n = 0; n < 100; n++) {
        assert_true(attach_pause_ms(n, 0) >= 125);
        assert_true(attach_pause_ms(n, 0.999) <= 10000);
        assert_true(attach_pause_ms(n, 0.9) > attach_pause_ms(n, 0.1));
        assert_true(attach_pause_ms(n + 1, 0.5) >= attach_pause_ms(n, 0.5));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)
    const struct CMUnitTest tests[] = {
        TEST(a_machine_joins_attaches_and_reports),
        TEST(a_token_is_good_once_over_the_wire_too),
        TEST(a_token_is_not_said_to_another_cluster),
        TEST(a_name_that_is_taken_is_refused),
        TEST(a_gateways_certificate_attaches_nothing),
        TEST(a_second_gateway_stands_on_its_certificate),
        TEST(a_nodes_certificate_opens_no_gate),
        TEST(a_guest_may_enrol_and_nothing_else),
        TEST(a_second_gateway_hears_of_revocations),
        TEST(a_gateway_with_the_ca_outlives_its_certificate),
        TEST(nonsense_ends_the_one_who_says_it),
        TEST(who_talks_without_end_is_heard_slowly),
        TEST(who_attaches_without_end_is_refused),
        TEST(half_open_connections_hold_few_places),
        TEST(who_renews_without_end_is_refused),
        TEST(refusals_do_not_flood_the_log),
        cmocka_unit_test_setup_teardown(who_says_nothing_is_lost, world_open_impatient, world_close),
        TEST(a_copy_of_a_machine_that_is_attached_is_refused),
        TEST(a_machine_that_comes_back_after_a_loss_of_power_takes_its_name),
        TEST(rivals_that_leave_or_are_many_disturb_nobody),
        TEST(a_rival_gets_the_name_when_the_one_that_is_attached_leaves),
        TEST(guessing_tokens_is_slow),
        TEST(what_a_gateway_says_of_waiting_is_understood),
        TEST(the_revoked_are_detached_and_refused_and_others_are_not),
        TEST(a_certificate_is_renewed_without_being_away),
        TEST(a_gateway_that_comes_back_finds_its_machines),
        cmocka_unit_test(pauses_grow_and_differ),
        cmocka_unit_test(an_attach_limit_gives_back_what_was_spent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
