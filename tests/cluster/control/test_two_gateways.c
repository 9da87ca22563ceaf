/* Two gateways of one cluster, of which one has the CA, and machines that go from the one to the other. */
#include "control_hand.h"

#include "join/gateways.h"
#include "grpc/grpc.h"

static control *second;
static char second_state[128], first[32];
static bool second_closed;

static const member_entry *at_first(const char *name)
{
    return member_table_find(control_member_table(w.control), name);
}

static const member_entry *at_second(const char *name)
{
    return member_table_find(control_member_table(second), name);
}

/* The world, and a second gateway that follows the one with the CA. */
static int two_open(void **state)
{
    char text[TOKEN_TEXT_SIZE];
    shoal_err err;
    if (world_open(state) != 0) return -1;
    memcpy(first, w.address, sizeof first);
    world_token(ROLE_GATEWAY, text);
    snprintf(second_state, sizeof second_state, "%s/second", place);
    const control_options o = {.time = env_sim_env(w.sim),
                               .listen = "127.0.0.1:0",
                               .state = second_state,
                               .silence_ms = WORLD_SILENCE_MS};
    if (world_join("second", text, NULL, &err) != 0 || control_open(&second, &w.loop, &o, &err) != 0)
        return -1;
    second_closed = false;
    TURN_UNTIL(at_first("second") && at_first("second")->facts);
    return 0;
}

static void close_second(void)
{
    if (second) control_close(second, world_closed, &second_closed);
    second = NULL;
    TURN_UNTIL(second_closed);
}

static int two_close(void **state)
{
    close_second();
    memcpy(w.address, first, sizeof first);
    return world_close(state);
}

/* A power cut, as far as others see it; and that it is over. */
static void first_goes(void)
{
    bool closed = false;
    control_close(w.control, world_closed, &closed);
    w.control = NULL;
    TURN_UNTIL(closed);
}

static void first_returns(void)
{
    world_reopen(&(control_options){
        .time = env_sim_env(w.sim), .listen = first, .state = w.state, .silence_ms = WORLD_SILENCE_MS});
}

static void go_to_second(void)
{
    snprintf(w.address, sizeof w.address, "127.0.0.1:%d", control_port(second));
}

static void roam(machine_up *m, const char *name)
{
    char text[TOKEN_TEXT_SIZE];
    shoal_err err;
    *m = (machine_up){.dir = FOLDER_NONE, .roams = true};
    world_token(ROLE_NODE, text);
    if (world_join(name, text, &m->dir, &err) != 0) fail_msg("%s", err.message);
    up_start(m);
    TURN_UNTIL(m->n_attached == 1);
}

static bool has_heard(const machine_up *m, const char *name)
{
    const gateways *g = attach_gateways(m->a);
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->list[i].name, name) == 0) return true;
    return false;
}

/* It hears of the second from the first, goes there when the first is lost, and home when it is back: the
 * second places nothing. On the way home it is never away. */
static void a_machine_outlives_its_gateway_and_goes_home(void **state)
{
    machine_up m;
    roam(&m, "pi");
    TURN_UNTIL(has_heard(&m, "second") && folder_has(&m.dir, "gateways"));
    uint64_t epoch = at_first("pi")->epoch;
    assert_true(epoch > 0);
    first_goes();
    TURN_UNTIL(m.n_attached == 2);
    assert_int_equal(m.n_detached, 1);
    assert_true(at_second("pi") && at_second("pi")->epoch > epoch);
    epoch = at_second("pi")->epoch;
    first_returns();
    TURN_UNTIL(m.n_attached == 3);
    assert_int_equal(m.n_detached, 1);
    assert_string_equal(attach_address(m.a), first);
    assert_true(at_first("pi") && at_first("pi")->epoch > epoch);
    TURN_UNTIL(!at_second("pi"));
    up_stop(&m);
}

/* What it has heard outlives it: started again while its gateway is gone, it finds the other. */
static void a_machine_remembers_what_it_has_heard(void **state)
{
    machine_up m;
    roam(&m, "pi");
    TURN_UNTIL(has_heard(&m, "second"));
    attach_close(m.a, world_closed, &m.closed);
    TURN_UNTIL(m.closed);
    first_goes();
    m.n_attached = 0;
    m.closed = false;
    up_start(&m);
    TURN_UNTIL(m.n_attached == 1);
    assert_non_null(at_second("pi"));
    up_stop(&m);
    first_returns();
}

/* The gateway that was told knows the one that told it, also when a machine came to it alone. */
static void a_follower_tells_of_the_one_it_follows(void **state)
{
    machine_up m;
    go_to_second();
    roam(&m, "pi"); /* whose join it passed on */
    TURN_UNTIL(has_heard(&m, "boss"));
    close_second();
    TURN_UNTIL(m.n_attached == 2);
    assert_non_null(at_first("pi"));
    up_stop(&m);
}

/* It is not followed to a gateway of another cluster, whoever told of it. */
static void a_gateway_of_another_cluster_is_no_refuge(void **state)
{
    machine_up m;
    char path[160], text[TOKEN_TEXT_SIZE], state_path[128];
    ca *other;
    control *foreign;
    shoal_err err;
    bool closed = false;
    snprintf(state_path, sizeof state_path, "%s/foreign", place);
    snprintf(path, sizeof path, "%s/ca", state_path);
    folder f = FOLDER_NONE;
    assert_int_equal(folder_open(&f, state_path, true, NULL), 0);
    folder_close(&f);
    assert_int_equal(ca_init(path, "home", today(), NULL), 0);
    assert_int_equal(ca_open(&other, path, NULL), 0);
    const control_options o = {
        .time = env_sim_env(w.sim), .listen = "127.0.0.1:0", .state = state_path, .name = "evil"};
    if (control_open(&foreign, &w.loop, &o, &err) != 0) fail_msg("%s", err.message);
    close_second();
    world_token(ROLE_NODE, text);
    m = (machine_up){.dir = FOLDER_NONE, .roams = true};
    assert_int_equal(world_join("pi", text, &m.dir, NULL), 0);
    int n = snprintf(text, sizeof text, "evil 127.0.0.1:%d\n", control_port(foreign));
    assert_int_equal(folder_write(&m.dir, "gateways", 0644, text, (size_t)n, NULL), 0);
    up_start(&m);
    TURN_UNTIL(m.n_attached == 1);
    assert_true(has_heard(&m, "evil"));
    first_goes();
    TURN_UNTIL(m.n_detached >= 3); /* to the foreign gateway, and back, and again */
    assert_int_equal(m.n_attached, 1);
    assert_int_equal(member_table_count(control_member_table(foreign)), 0);
    first_returns();
    TURN_UNTIL(m.n_attached == 2);
    up_stop(&m);
    control_close(foreign, world_closed, &closed);
    TURN_UNTIL(closed);
    ca_close(other);
}

/* ---- what the one with the CA alone can do --------------------------------------------------------- */

static void a_certificate_is_renewed_through_the_other_gateway(void **state)
{
    machine_up m;
    char before[CERT_SERIAL_SIZE], after[CERT_SERIAL_SIZE];
    go_to_second();
    up_join(&m, "pi");
    serial_of(&m.dir, before);
    m.ahead_s = 21 * DAY;
    TURN_UNTIL(m.n_attached == 2);
    m.ahead_s = 0;
    assert_int_equal(m.n_detached, 0);
    serial_of(&m.dir, after);
    assert_string_not_equal(before, after);
    assert_non_null(at_second("pi"));
    up_stop(&m);
}

static void without_the_ca_that_is_said(void **state)
{
    char text[TOKEN_TEXT_SIZE];
    shoal_err err;
    go_to_second();
    world_token(ROLE_NODE, text);
    first_goes();
    assert_int_equal(world_join("pi", text, NULL, &err), SHOAL_EUNAVAILABLE);
    assert_true(says(&err, "this gateway has no CA, and the one that has, at"));
    first_returns();
    TURN_UNTIL(at_first("second") && at_first("second")->facts);
    if (world_join("pi", text, NULL, &err) != 0) fail_msg("%s", err.message); /* the token is still good */
}

/* Of several gateways the first that answers; and a token that is wrong is wrong at all of them. */
static void joining_asks_the_next_where_nobody_answers(void **state)
{
    char text[TOKEN_TEXT_SIZE], alone[32];
    shoal_err err;
    folder dir = FOLDER_NONE;
    buf kept = {0};
    memcpy(alone, w.address, sizeof alone);
    snprintf(w.address, sizeof w.address, "127.0.0.1:1,%.20s", alone);
    world_token(ROLE_NODE, text);
    if (world_join("pi", text, &dir, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(folder_read(&dir, "gateway", 64, false, &kept, NULL), 0);
    assert_string_equal(kept.data, w.address); /* all that were named */
    buf_done(&kept);
    folder_close(&dir);
    assert_int_equal(world_join("cat", text, NULL, &err), SHOAL_EAUTH);
}

/* A gateway that asks for a machine's certificate without the machine gets none. */
static void a_gateway_renews_for_nobody_who_has_not_signed(void **state)
{
    char text[TOKEN_TEXT_SIZE];
    shoal_err err;
    hand h;
    folder dir = FOLDER_NONE;
    credential own = {0};
    buf der = {0}, other = {0}, cert = {0}, right = {0}, wrong = {0}, another = {0};
    EVP_PKEY *thief = NULL;
    world_token(ROLE_NODE, text);
    if (world_join("pi", text, &dir, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(credential_load(&own, &dir, NULL), 0);
    assert_int_equal(key_new(&thief, NULL), 0);
    assert_int_equal(key_request(thief, "pi", &der, NULL), 0);
    assert_int_equal(key_request(own.key, "pi", &other, NULL), 0);
    assert_int_equal(cert_put_pem(&cert, own.cert, NULL), 0);
    assert_int_equal(buf_putc(&cert, '\0'), 0);
    assert_int_equal(key_sign(own.key, JOIN_RENEW, der.data, der.len, &right, NULL), 0);
    assert_int_equal(key_sign(thief, JOIN_RENEW, der.data, der.len, &wrong, NULL), 0);
    assert_int_equal(key_sign(own.key, "another purpose", der.data, der.len, &another, NULL), 0);
    const struct {
        const buf *request, *signature;
        bool good;
    } rows[] = {{&der, &wrong, false},
                {&other, &right, false},
                {&der, &another, false},
                {&der, &cert, false},
                {&der, &right, true}};
    hand_connect(&h, "second");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Shoal__V1__RenewRequest m = SHOAL__V1__RENEW_REQUEST__INIT;
        uint8_t packed[8192];
        m.request =
            (ProtobufCBinaryData){.data = (uint8_t *)rows[i].request->data, .len = rows[i].request->len};
        m.certificate = cert.data;
        m.signature =
            (ProtobufCBinaryData){.data = (uint8_t *)rows[i].signature->data, .len = rows[i].signature->len};
        h.ended = false;
        grpc_client_half_close(
            hand_call(&h, "/" JOIN_RENEW, packed, shoal__v1__renew_request__pack(&m, packed)));
        TURN_UNTIL(h.ended);
        if ((h.status == GRPC_OK) != rows[i].good) fail_msg("row %zu: %d %s", i, h.status, h.why);
        if (!rows[i].good) assert_int_equal(h.status, GRPC_UNAUTHENTICATED);
    }
    hand_close(&h);
    buf *all[] = {&der, &other, &cert, &right, &wrong, &another};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) buf_done(all[i]);
    EVP_PKEY_free(thief);
    credential_done(&own);
    folder_close(&dir);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, two_open, two_close)
    const struct CMUnitTest tests[] = {
        TEST(a_machine_outlives_its_gateway_and_goes_home),
        TEST(a_machine_remembers_what_it_has_heard),
        TEST(a_follower_tells_of_the_one_it_follows),
        TEST(a_gateway_of_another_cluster_is_no_refuge),
        TEST(a_certificate_is_renewed_through_the_other_gateway),
        TEST(without_the_ca_that_is_said),
        TEST(joining_asks_the_next_where_nobody_answers),
        TEST(a_gateway_renews_for_nobody_who_has_not_signed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
