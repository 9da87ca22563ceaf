/* Which gateway a machine tries next, in time that is an argument, and what it believes of what it is told.
 */
#include "../trust/trust_fixture.h"

#include "join/attach.h"
#include "join/gateways.h"

static gateways of(const char *text)
{
    gateways g = {.roams = true};
    assert_int_equal(gateways_give(&g, text, NULL), 0);
    return g;
}

static bool tell(gateways *g, const char *name, const char *address)
{
    Shoal__V1__Gateway one = SHOAL__V1__GATEWAY__INIT, *list[] = {&one};
    Shoal__V1__Gateways m = SHOAL__V1__GATEWAYS__INIT;
    one.name = (char *)name;
    one.address = (char *)address;
    m.others = list;
    m.n_others = 1;
    return gateways_hear(g, &m);
}

static void addresses_are_given_in_a_list(void **state)
{
    static const char *const bad[] = {"",           ",",
                                      "a",          "a:",
                                      ":7080",      "a:0",
                                      "a:99999",    "a b:",
                                      "a:1,b",      "unix:/x",
                                      "a:1,/b",     "http://a:1",
                                      "a:1 \x01:2", "a:1,a:2,a:3,a:4,a:5,a:6,a:7,a:8,a:9"};
    shoal_err err;
    gateways g = of("a:1, b:2\n[::1]:3,a:1\n");
    assert_int_equal(g.n, 3);
    assert_int_equal(g.n_given, 3);
    assert_string_equal(g.list[1].address, "b:2");
    assert_string_equal(g.list[2].address, "[::1]:3");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (gateways_give(&g, bad[i], &err) != SHOAL_EINVALID) fail_msg("'%s' was taken", bad[i]);
    assert_int_equal(g.n, 3);
    tell(&g, "c", "c:4");
    assert_int_equal(gateways_give(&g, "b:2", NULL), 0); /* others go, what was told stays */
    assert_int_equal(g.n, 2);
    assert_string_equal(g.list[1].address, "c:4");
}

/* A gateway that had been there for long is lost: the next is tried at once. Behind that the pauses grow, and
 * all have their turn. */
static void the_next_is_tried_at_once_and_then_all_in_turn(void **state)
{
    gateways g = of("a:1");
    uint64_t at_ms = 0;
    assert_true(tell(&g, "b", "b:1"));
    assert_true(tell(&g, "c", "c:1"));
    assert_string_equal(gateways_address(&g), "a:1");
    assert_false(gateways_settle(&g, "b:1", "b"));
    assert_int_equal(gateways_lost(&g, 3600000, 0.5), 0);
    assert_string_equal(gateways_address(&g), "c:1");
    static const char *const turn[] = {"a:1", "b:1", "c:1", "a:1", "b:1", "c:1", "a:1", "b:1"};
    for (unsigned i = 0; i < 8; i++) {
        uint64_t wait = gateways_lost(&g, 0, 0.5);
        assert_int_equal(wait, attach_pause_ms(i, 0.5));
        assert_string_equal(gateways_address(&g), turn[i]);
        at_ms += wait;
    }
    assert_true(at_ms < 31000); /* 0.19 + 0.38 + 0.75 + 1.5 + 3 + 6 + 7.5 + 7.5 s */
    gateways_settle(&g, "b:1", "b");
    assert_int_equal(gateways_lost(&g, GATEWAYS_LASTED_MS, 0.5), 0);
    assert_int_equal(gateways_lost(&g, 0, 0.5), attach_pause_ms(0, 0.5));
}

/* Two that let it in and send it away again are not asked a thousand times a second. */
static void a_link_that_did_not_last_was_a_failure(void **state)
{
    gateways g = of("a:1,b:1");
    uint64_t ms = 0;
    for (int i = 0; i < 20; i++) ms += gateways_lost(&g, 100, 0);
    assert_true(ms > 60000);
}

static void a_machine_with_one_gateway_waits_for_it(void **state)
{
    gateways g = of("a:1");
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(gateways_lost(&g, i == 0 ? 3600000 : 0, 0.3), attach_pause_ms(i, 0.3));
        assert_string_equal(gateways_address(&g), "a:1");
    }
}

static void a_gateway_follows_those_that_were_given_alone(void **state)
{
    gateways g = of("a:1");
    g.roams = false;
    tell(&g, "b", "b:1");
    assert_int_equal(gateways_lost(&g, 3600000, 0.3), attach_pause_ms(0, 0.3));
    assert_string_equal(gateways_address(&g), "a:1");
}

static void what_is_told_is_looked_over_and_bounded(void **state)
{
    static const char *const bad[][2] = {
        {"", "b:1"},    {"B", "b:1"},     {"b", ""},        {"b", "b"},         {"b", ":1"},
        {"b", "b:1\n"}, {"b", "b:1,c:1"}, {"b", "b:1 c:1"}, {"b", "unix:/x"},   {"b", "b:1/c"},
        {"b", "b:0"},   {"b\n", "b:1"},   {"b", "a:1"},     {"b", "\xC3\xBC:1"}};
    char name[16], address[32];
    gateways g = of("a:1");
    gateways_settle(&g, "a:1", "a");
    assert_string_equal(g.list[0].name, "a");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (tell(&g, bad[i][0], bad[i][1])) fail_msg("%s at %s was believed", bad[i][0], bad[i][1]);
    assert_false(tell(&g, "a", "elsewhere:1")); /* a person says where that one is */
    assert_true(tell(&g, "b", "b:1"));
    assert_false(tell(&g, "b", "b:1"));
    assert_true(tell(&g, "b", "b:2")); /* it has moved */
    assert_int_equal(g.n, 2);
    gateways_settle(&g, "b:2", "b");
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "x%d", i);
        snprintf(address, sizeof address, "x%d:1", i);
        assert_true(tell(&g, name, address));
    }
    assert_int_equal(g.n, GATEWAYS_MAX);
    assert_string_equal(g.list[0].address, "a:1");
    assert_string_equal(gateways_address(&g), "b:2"); /* where it is attached, it stays */
    assert_string_equal(g.list[GATEWAYS_MAX - 1].name, "x99");
}

/* The same gateway under the address that was told, and under the one that was given. */
static void a_gateway_is_known_once(void **state)
{
    gateways g = of("boss.lan:1");
    tell(&g, "boss", "10.0.0.1:1");
    tell(&g, "b", "10.0.0.2:1");
    assert_int_equal(g.n, 3);
    assert_true(gateways_settle(&g, "boss.lan:1", "boss"));
    assert_int_equal(g.n, 2);
    assert_string_equal(g.list[1].name, "b");
    assert_true(gateways_is_home(&g));
    assert_false(tell(&g, "boss", "10.0.0.1:1"));
    gateways_settle(&g, "10.0.0.2:1", "b");
    assert_false(gateways_is_home(&g));
}

static void what_was_told_is_kept_in_a_file(void **state)
{
    static const char *const bad[] = {"b",        "b \n",    "b b:1",    "b b:1\nc",
                                      "b  b:1\n", "B b:1\n", "b b:1 \n", "\n"};
    folder dir = FOLDER_NONE;
    shoal_err err;
    gateways g = of("a:1"), h = of("a:1");
    assert_int_equal(folder_open(&dir, place, true, NULL), 0);
    assert_int_equal(gateways_read(&h, &dir, &err), 0); /* there is none */
    assert_int_equal(h.n, 1);
    tell(&g, "b", "b:1");
    tell(&g, "c", "[fe80::1]:7080");
    assert_int_equal(gateways_write(&g, &dir, &err), 0);
    assert_int_equal(gateways_read(&h, &dir, &err), 0);
    assert_int_equal(h.n, 3);
    assert_string_equal(h.list[2].name, "c");
    assert_string_equal(h.list[2].address, "[fe80::1]:7080");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        h = of("a:1");
        assert_int_equal(folder_write(&dir, "gateways", 0644, bad[i], strlen(bad[i]), NULL), 0);
        if (gateways_read(&h, &dir, &err) != SHOAL_EINVALID) fail_msg("'%s' was read", bad[i]);
        assert_int_equal(h.n, 1);
    }
    folder_close(&dir);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_given_in_a_list),
        cmocka_unit_test(the_next_is_tried_at_once_and_then_all_in_turn),
        cmocka_unit_test(a_link_that_did_not_last_was_a_failure),
        cmocka_unit_test(a_machine_with_one_gateway_waits_for_it),
        cmocka_unit_test(a_gateway_follows_those_that_were_given_alone),
        cmocka_unit_test(what_is_told_is_looked_over_and_bounded),
        cmocka_unit_test(a_gateway_is_known_once),
        TEST(what_was_told_is_kept_in_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
