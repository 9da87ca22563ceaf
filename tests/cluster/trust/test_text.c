/* Names, URIs, tokens as text, and how often an unauthenticated peer may try. */
#include "trust/guard.h"
#include "trust_fixture.h"

static void names_are_host_names_in_small_letters(void **state)
{
    static const char *const good[] = {"a", "kitchen-pi", "rack2.lab", "0", "x--y", "a.b.c"};
    static const char *const bad[] = {"",     "-a",   "a-",     "a..b", ".a", "a.",  "a.-b", "a-.b", "Pi",
                                      "a_b",  "a/b",  "a b",    "a,b",  "ä",  "a\n", "a:b",  "*",    "a\"b",
                                      "a%00", "a\\b", "../etc", "a=b",  "#a", "a+b", "a;b",  "a<b"};
    char longest[65];
    memset(longest, 'a', sizeof longest);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(identity_name_ok(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        shoal_err err;
        assert_false(identity_name_ok(bad[i], strlen(bad[i])));
        assert_int_equal(identity_name_check(bad[i], strlen(bad[i]), "node", &err), SHOAL_EINVALID);
    }
    assert_true(identity_name_ok(longest, 63));
    assert_false(identity_name_ok(longest, 64));
    assert_false(identity_name_ok("a\0b", 3));
}

static void a_refused_name_is_shown_without_what_a_terminal_obeys(void **state)
{
    shoal_err err;
    identity_name_check("\x1b[2Jx\0y", 7, "node", &err);
    assert_true(says(&err, "\"?[2Jx?y\""));
}

static void a_host_name_becomes_a_name(void **state)
{
    static const char *const pairs[][2] = {{"Kitchen-Pi.local", "kitchen-pi.local"},
                                           {"my_box", "my-box"},
                                           {"..a..b..", "a.b"},
                                           {"", "node"},
                                           {"---", "node"},
                                           {"\xc3\xa9t\xc3\xa9", "t"}};
    char name[IDENTITY_NAME_SIZE], host[200];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        identity_name_from_host(name, pairs[i][0]);
        assert_string_equal(name, pairs[i][1]);
    }
    memset(host, 'h', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    host[62] = '.'; /* the cut must not end with it */
    identity_name_from_host(name, host);
    assert_true(identity_name_ok(name, strlen(name)));
}

static void an_identity_is_one_uri(void **state)
{
    static const char *const bad[] = {"",
                                      "shoal://",
                                      "shoal:///node/a",
                                      "shoal://home/node/",
                                      "shoal://home/node",
                                      "shoal://home/king/a",
                                      "shoal://home/node/a/b",
                                      "shoal://home/node/a/",
                                      "shoal://home/Node/a",
                                      "http://home/node/a",
                                      "shoal://home//a",
                                      "shoal://home/node/a?x",
                                      "shoal://home/node/a%2fb"};
    identity id = {.cluster = "home", .name = "pi", .role = ROLE_GATEWAY}, back = {0};
    char uri[IDENTITY_URI_SIZE];
    identity_format(uri, &id);
    assert_string_equal(uri, "shoal://home/gateway/pi");
    assert_true(identity_parse(&back, uri, strlen(uri)));
    assert_memory_equal(&back, &id, sizeof id);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(identity_parse(&back, bad[i], strlen(bad[i])));
    assert_false(identity_parse(&back, "shoal://home/node/a\0x", 21));
    assert_memory_equal(&back, &id, sizeof id); /* untouched */
}

static void the_longest_identity_fits(void **state)
{
    identity id = {.role = ROLE_GATEWAY}, back;
    char uri[IDENTITY_URI_SIZE];
    memset(id.cluster, 'c', sizeof id.cluster - 1);
    memset(id.name, 'n', sizeof id.name - 1);
    identity_format(uri, &id);
    assert_true(identity_parse(&back, uri, strlen(uri)));
    assert_string_equal(back.name, id.name);
}

static void a_token_is_read_back(void **state)
{
    sha256_digest pin = {{1, 2, 3}}, kept;
    token t, back;
    char text[TOKEN_TEXT_SIZE], padded[TOKEN_TEXT_SIZE + 8];
    token_draw(&t, &pin);
    token_format(text, &t);
    assert_int_equal(strlen(text), TOKEN_TEXT_SIZE - 1);
    snprintf(padded, sizeof padded, " \t%s\r\n", text);
    assert_int_equal(token_parse(&back, padded, strlen(padded), NULL), 0);
    assert_memory_equal(&back, &t, sizeof t);
    token_secret_digest(&t, &kept);
    assert_true(token_secret_is(&back, &kept));
    back.secret[15] ^= 1;
    assert_false(token_secret_is(&back, &kept));
}

static void a_damaged_token_is_none(void **state)
{
    sha256_digest pin = {{0}};
    token t, back;
    char text[TOKEN_TEXT_SIZE];
    shoal_err err;
    token_draw(&t, &pin);
    token_format(text, &t);
    for (size_t n = 0; n < sizeof text - 1; n++)
        assert_int_equal(token_parse(&back, text, n, &err), SHOAL_EINVALID);
    assert_null(strstr(err.message, t.id)); /* it may be nearly right: not into a log */
    for (size_t i = 0; i < sizeof text - 1; i++) {
        char c = text[i];
        text[i] = c == '.' ? '0' : 'G';
        assert_int_equal(token_parse(&back, text, sizeof text - 1, &err), SHOAL_EINVALID);
        text[i] = c;
    }
}

/* ---- guard ------------------------------------------------------------------------------------- */

static void a_source_waits_longer_after_each_failure(void **state)
{
    guard g = {0};
    uint64_t now = 5000, last = 0;
    for (int i = 0; i < GUARD_FREE; i++) {
        assert_int_equal(guard_wait_ms(&g, "10.0.0.1", now), 0);
        guard_failed(&g, "10.0.0.1", now);
    }
    assert_int_equal(guard_wait_ms(&g, "10.0.0.1", now), 0);
    for (int i = 0; i < 40; i++) {
        guard_failed(&g, "10.0.0.1", now);
        uint64_t wait = guard_wait_ms(&g, "10.0.0.1", now);
        assert_int_equal(wait, last == 0                  ? GUARD_FIRST_MS
                               : last * 2 < GUARD_MOST_MS ? last * 2
                                                          : GUARD_MOST_MS);
        assert_true(guard_wait_ms(&g, "10.0.0.1", now + wait - 1) > 0);
        assert_int_equal(guard_wait_ms(&g, "10.0.0.1", now + wait), 0);
        assert_int_equal(guard_wait_ms(&g, "10.0.0.2", now + wait), 0);
        now += last = wait;
    }
    now += GUARD_FORGET_MS + GUARD_MOST_MS;
    guard_failed(&g, "10.0.0.1", now);
    assert_int_equal(guard_wait_ms(&g, "10.0.0.1", now), 0); /* forgotten */
}

static void one_host_is_one_source_whatever_its_last_64_bits(void **state)
{
    guard g = {0};
    char address[64];
    for (int i = 0; i < GUARD_FREE + 1; i++) {
        snprintf(address, sizeof address, "2001:db8:1:2::%x", i + 1);
        guard_failed(&g, address, 1000);
    }
    assert_true(guard_wait_ms(&g, "2001:db8:1:2:ffff::1", 1000) > 0);
    assert_int_equal(guard_wait_ms(&g, "2001:db8:1:3::1", 1000), 0);
}

/* However many addresses an attacker has, in a day it tries so often and no more. */
static void all_sources_together_are_bounded(void **state)
{
    static guard g;
    char address[64];
    uint64_t n = 0, end = 3600 * 1000;
    for (uint64_t now = 1; now < end; now += 5) {
        snprintf(address, sizeof address, "10.%u.%u.%u", (unsigned)(now >> 16 & 255),
                 (unsigned)(now >> 8 & 255), (unsigned)(now & 255));
        if (guard_wait_ms(&g, address, now)) continue;
        guard_failed(&g, address, now);
        n++;
    }
    assert_true(n <= GUARD_BURST + GUARD_PER_S * 3600 + 1);
    assert_true(n >= GUARD_PER_S * 3600 / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_host_names_in_small_letters),
        cmocka_unit_test(a_refused_name_is_shown_without_what_a_terminal_obeys),
        cmocka_unit_test(a_host_name_becomes_a_name),
        cmocka_unit_test(an_identity_is_one_uri),
        cmocka_unit_test(the_longest_identity_fits),
        cmocka_unit_test(a_token_is_read_back),
        cmocka_unit_test(a_damaged_token_is_none),
        cmocka_unit_test(a_source_waits_longer_after_each_failure),
        cmocka_unit_test(one_host_is_one_source_whatever_its_last_64_bits),
        cmocka_unit_test(all_sources_together_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
