/* Which requests a gateway without keys takes, as far as browsers go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "access/browser.h"

#define FORM "application/x-www-form-urlencoded"
#define JSON "application/json"

static const struct {
    browser_facts f; /* method, host, origin, fetch_site, content_type */
    int status;
} CASES[] = {
    /* the name we are called by */
    {{"GET", NULL, NULL, NULL, NULL, false, NULL, NULL}, 0},
    {{"GET", "127.0.0.1", NULL, NULL, NULL, false, NULL, NULL}, 0},
    {{"GET", "127.0.0.1:8080", NULL, NULL, NULL, false, NULL, NULL}, 0},
    {{"GET", "192.168.1.7:8080", NULL, NULL, NULL, false, NULL, NULL}, 0},
    {{"GET", "[::1]", NULL, NULL, NULL, false, NULL, NULL}, 0},
    {{"GET", "[::1]:8080", NULL, NULL, NULL, false, NULL, NULL}, 0},
    {{"GET", "localhost:8080", NULL, NULL, NULL, false, NULL, NULL}, 0},
    {{"GET", "LocalHost", NULL, NULL, NULL, false, NULL, NULL}, 0},
    {{"GET", "shoal.localhost:8080", NULL, NULL, NULL, false, NULL, NULL}, 0},
    {{"GET", "house.lan:8080", NULL, NULL, NULL, false, NULL, NULL}, 0}, /* listen */
    {{"GET", "shoal", NULL, NULL, NULL, false, NULL, NULL}, 0},          /* allow_hosts */
    {{"GET", "Shoal:8080", NULL, NULL, NULL, false, NULL, NULL}, 0},
    {{"GET", "", NULL, NULL, NULL, false, NULL, NULL}, 421},
    {{"GET", ":8080", NULL, NULL, NULL, false, NULL, NULL}, 421},
    {{"GET", "evil.example", NULL, NULL, NULL, false, NULL, NULL}, 421},
    {{"GET", "evil.example:8080", NULL, NULL, NULL, false, NULL, NULL}, 421},
    {{"GET", "127.0.0.1.evil.example", NULL, NULL, NULL, false, NULL, NULL}, 421},
    {{"GET", "127.0.0.1.", NULL, NULL, NULL, false, NULL, NULL}, 421},
    {{"GET", "localhost.evil.example", NULL, NULL, NULL, false, NULL, NULL}, 421},
    {{"GET", "evillocalhost", NULL, NULL, NULL, false, NULL, NULL}, 421},
    {{"GET", ".localhost", NULL, NULL, NULL, false, NULL, NULL}, 421},
    {{"GET", "shoal.evil.example", NULL, NULL, NULL, false, NULL, NULL}, 421},
    /* the page that asks */
    {{"GET", "localhost:8080", "http://localhost:8080", "same-origin", NULL, false, NULL, NULL}, 0},
    {{"GET", "localhost:8080", "https://app.example", "cross-site", NULL, false, NULL, NULL},
     0}, /* allow_origins */
    {{"GET", "localhost:8080", "http://dev.local:5173", "cross-site", NULL, false, NULL, NULL},
     0}, /* any port */
    {{"GET", "localhost:8080", "http://dev.local", "cross-site", NULL, false, NULL, NULL}, 0},
    {{"GET", "localhost:8080", "http://dev.local:", "cross-site", NULL, false, NULL, NULL}, 403},
    {{"GET", "localhost:8080", "http://dev.local:1.evil.example", "cross-site", NULL, false, NULL, NULL},
     403},
    {{"GET", "localhost:8080", "http://dev.local.evil.example", "cross-site", NULL, false, NULL, NULL}, 403},
    {{"GET", "localhost:8080", "https://dev.local:5173", "cross-site", NULL, false, NULL, NULL}, 403},
    {{"GET", "localhost:8080", "http://localhost:3000", "same-site", NULL, false, NULL, NULL}, 403},
    {{"GET", "localhost:8080", "https://app.example.evil", NULL, NULL, false, NULL, NULL}, 403},
    {{"GET", "localhost:8080", "https://evil.example", "cross-site", NULL, false, NULL, NULL}, 403},
    {{"GET", "localhost:8080", "null", "cross-site", NULL, false, NULL, NULL}, 403},
    {{"GET", "localhost:8080", "", NULL, NULL, false, NULL, NULL}, 403},
    {{"GET", NULL, "http://localhost", NULL, NULL, false, NULL, NULL}, 403},
    /* what it embeds */
    {{"GET", "localhost:8080", NULL, "same-origin", NULL, false, "image", NULL}, 0},
    {{"GET", "localhost:8080", NULL, "none", NULL, false, "document", NULL}, 0},
    {{"GET", "localhost:8080", NULL, "cross-site", NULL, false, "document", NULL}, 0}, /* a link */
    {{"GET", "localhost:8080", NULL, "cross-site", NULL, false, "image", NULL}, 403},
    {{"GET", "localhost:8080", NULL, "cross-site", NULL, false, "iframe", NULL}, 403},
    {{"GET", "localhost:8080", NULL, "cross-site", NULL, false, "empty", NULL}, 403},
    {{"GET", "localhost:8080", NULL, "cross-site", NULL, false, NULL, NULL}, 403},
    {{"GET", "localhost:8080", NULL, "same-site", NULL, false, "script", NULL}, 403},
    {{"HEAD", "localhost:8080", NULL, "cross-site", NULL, false, "empty", NULL}, 403},
    /* what it sends */
    {{"POST", "localhost", NULL, NULL, NULL, false, NULL, NULL}, 0},
    {{"POST", "localhost", NULL, NULL, FORM, false, NULL, NULL}, 0}, /* curl -d */
    {{"POST", "localhost", NULL, NULL, JSON, false, NULL, NULL}, 0},
    {{"POST", "localhost", "http://localhost", "same-origin", JSON "; charset=utf-8", false, NULL, NULL}, 0},
    {{"POST", "localhost", "http://localhost", "same-origin", "application/vnd.api+json", false, NULL, NULL},
     0},
    {{"POST", "localhost", "http://localhost", NULL, "Application/JSON", false, NULL, NULL}, 0},
    {{"POST", "localhost", "http://localhost", NULL, FORM, false, NULL, NULL}, 0},
    {{"POST", "localhost", "http://localhost", NULL, NULL, false, NULL, NULL}, 0},
    {{"POST", "localhost", "http://localhost", NULL, "application/jsonp", false, NULL, NULL}, 0},
    {{"POST", "localhost", NULL, "cross-site", FORM, false, NULL, NULL}, 415},
    {{"POST", "localhost", NULL, NULL, "text/plain", false, NULL, NULL}, 415},
    {{"POST", "localhost", NULL, NULL, "text/plain;charset=UTF-8", false, NULL, NULL}, 415},
    {{"POST", "localhost", NULL, NULL, "multipart/form-data; boundary=x", false, NULL, NULL}, 415},
    {{"POST", "localhost", "https://app.example", "cross-site", JSON, false, NULL, NULL}, 0},
    {{"POST", "localhost", "https://app.example", "cross-site", "text/plain", false, NULL, NULL}, 0},
    {{"POST", "localhost", "https://evil.example", "cross-site", "text/plain", false, NULL, NULL}, 403},
};

static const char *hosts[] = {"shoal"}, *origins[] = {"https://app.example", "http://dev.local:*"};
static config_key keys[1];

static void browser_check_keeps_pages_out(void **state)
{
    gateway_config c = {.listen = "house.lan:8080",
                        .allow_hosts = hosts,
                        .n_allow_hosts = 1,
                        .allow_origins = origins,
                        .n_allow_origins = 2};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const browser_facts *f = &CASES[i].f;
        api_error e = {0};
        int got = browser_check(&c, f, &e);
        if (got != CASES[i].status)
            fail_msg("%s host %s origin %s type %s: wanted %d, got %d", f->method, f->host ? f->host : "-",
                     f->origin ? f->origin : "-", f->content_type ? f->content_type : "-", CASES[i].status,
                     got);
        assert_int_equal(e.status, got);
    }
}

/* With keys, only what the browser would keep from its page is refused. */
static void browser_check_with_keys_refuses_unreadable_fetches(void **state)
{
    gateway_config keyed = {
        .api_keys = keys, .n_api_keys = 1, .allow_origins = origins, .n_allow_origins = 2};
    browser_facts f = {
        "POST", "evil.example", "https://evil.example", "cross-site", "text/plain", false, NULL, NULL};
    api_error e;
    assert_int_equal(browser_check(&keyed, &f, &e), 0);
    assert_false(browser_origin_is_allowed(&keyed, f.origin));
    assert_false(browser_origin_is_allowed(&keyed, NULL));
    f.fetch_mode = "cors";
    assert_int_equal(browser_check(&keyed, &f, &e), 403);
    f.origin = "https://app.example";
    assert_int_equal(browser_check(&keyed, &f, &e), 0);
    f = (browser_facts){"POST", "inside", "https://proxied.example", "same-origin", JSON, false,
                        NULL,   "cors"};
    assert_int_equal(browser_check(&keyed, &f, &e), 0);
}

static void browser_allows_this_machine_by_default(void **state)
{
    static const struct {
        const char *listen, *also, *origin;
        bool allowed;
    } cases[] = {
        {NULL, NULL, "http://localhost:3000", true},
        {NULL, NULL, "https://localhost", true},
        {"127.0.0.1:9000", NULL, "http://127.0.0.1:5173", true},
        {"[::1]:9000", "unix:/run/shoal.sock", "http://[::1]:5173", true},
        {"localhost:9000", NULL, "HTTP://LocalHost:1", true},
        {NULL, NULL, "https://app.example", false},
        {NULL, NULL, "http://localhost.evil.example", false},
        {NULL, NULL, "http://192.168.1.7:3000", false},
        {NULL, NULL, "null", false},
        {"0.0.0.0:8080", NULL, "http://localhost:3000", false},
        {":8080", NULL, "http://localhost:3000", false},
        {"127.0.0.1:8080", "192.168.1.7:8080", "http://localhost:3000", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config_listen also = {.address = cases[i].also};
        gateway_config c = {
            .listen = cases[i].listen, .also_listen = &also, .n_also_listen = cases[i].also ? 1 : 0};
        if (browser_origin_is_allowed(&c, cases[i].origin) != cases[i].allowed)
            fail_msg("listen %s, origin %s: wanted %d", cases[i].listen ? cases[i].listen : "-",
                     cases[i].origin, cases[i].allowed);
    }
    const char *any[] = {"*"};
    gateway_config all = {.listen = ":8080", .allow_origins = any, .n_allow_origins = 1};
    assert_true(browser_origin_is_allowed(&all, "https://app.example"));
    assert_true(browser_origin_is_allowed(&all, "null"));
    all.allow_origins = origins; /* a list replaces the default */
    all.listen = NULL;
    assert_false(browser_origin_is_allowed(&all, "http://localhost:3000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(browser_check_keeps_pages_out),
        cmocka_unit_test(browser_check_with_keys_refuses_unreadable_fetches),
        cmocka_unit_test(browser_allows_this_machine_by_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
