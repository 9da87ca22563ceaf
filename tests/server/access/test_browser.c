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
    {{"GET", NULL, NULL, NULL, NULL, false, NULL}, 0},
    {{"GET", "127.0.0.1", NULL, NULL, NULL, false, NULL}, 0},
    {{"GET", "127.0.0.1:8080", NULL, NULL, NULL, false, NULL}, 0},
    {{"GET", "192.168.1.7:8080", NULL, NULL, NULL, false, NULL}, 0},
    {{"GET", "[::1]", NULL, NULL, NULL, false, NULL}, 0},
    {{"GET", "[::1]:8080", NULL, NULL, NULL, false, NULL}, 0},
    {{"GET", "localhost:8080", NULL, NULL, NULL, false, NULL}, 0},
    {{"GET", "LocalHost", NULL, NULL, NULL, false, NULL}, 0},
    {{"GET", "shoal.localhost:8080", NULL, NULL, NULL, false, NULL}, 0},
    {{"GET", "house.lan:8080", NULL, NULL, NULL, false, NULL}, 0}, /* listen */
    {{"GET", "shoal", NULL, NULL, NULL, false, NULL}, 0},          /* allow_hosts */
    {{"GET", "Shoal:8080", NULL, NULL, NULL, false, NULL}, 0},
    {{"GET", "", NULL, NULL, NULL, false, NULL}, 421},
    {{"GET", ":8080", NULL, NULL, NULL, false, NULL}, 421},
    {{"GET", "evil.example", NULL, NULL, NULL, false, NULL}, 421},
    {{"GET", "evil.example:8080", NULL, NULL, NULL, false, NULL}, 421},
    {{"GET", "127.0.0.1.evil.example", NULL, NULL, NULL, false, NULL}, 421},
    {{"GET", "127.0.0.1.", NULL, NULL, NULL, false, NULL}, 421},
    {{"GET", "localhost.evil.example", NULL, NULL, NULL, false, NULL}, 421},
    {{"GET", "evillocalhost", NULL, NULL, NULL, false, NULL}, 421},
    {{"GET", ".localhost", NULL, NULL, NULL, false, NULL}, 421},
    {{"GET", "shoal.evil.example", NULL, NULL, NULL, false, NULL}, 421},
    /* the page that asks */
    {{"GET", "localhost:8080", "http://localhost:8080", "same-origin", NULL, false, NULL}, 0},
    {{"GET", "localhost:8080", "https://app.example", "cross-site", NULL, false, NULL},
     0}, /* allow_origins */
    {{"GET", "localhost:8080", "http://localhost:3000", "same-site", NULL, false, NULL}, 403},
    {{"GET", "localhost:8080", "https://app.example.evil", NULL, NULL, false, NULL}, 403},
    {{"GET", "localhost:8080", "https://evil.example", "cross-site", NULL, false, NULL}, 403},
    {{"GET", "localhost:8080", "null", "cross-site", NULL, false, NULL}, 403},
    {{"GET", "localhost:8080", "", NULL, NULL, false, NULL}, 403},
    {{"GET", NULL, "http://localhost", NULL, NULL, false, NULL}, 403},
    /* what it embeds */
    {{"GET", "localhost:8080", NULL, "same-origin", NULL, false, "image"}, 0},
    {{"GET", "localhost:8080", NULL, "none", NULL, false, "document"}, 0},
    {{"GET", "localhost:8080", NULL, "cross-site", NULL, false, "document"}, 0}, /* a link */
    {{"GET", "localhost:8080", NULL, "cross-site", NULL, false, "image"}, 403},
    {{"GET", "localhost:8080", NULL, "cross-site", NULL, false, "iframe"}, 403},
    {{"GET", "localhost:8080", NULL, "cross-site", NULL, false, "empty"}, 403},
    {{"GET", "localhost:8080", NULL, "cross-site", NULL, false, NULL}, 403},
    {{"GET", "localhost:8080", NULL, "same-site", NULL, false, "script"}, 403},
    {{"HEAD", "localhost:8080", NULL, "cross-site", NULL, false, "empty"}, 403},
    /* what it sends */
    {{"POST", "localhost", NULL, NULL, NULL, false, NULL}, 0},
    {{"POST", "localhost", NULL, NULL, FORM, false, NULL}, 0}, /* curl -d */
    {{"POST", "localhost", NULL, NULL, JSON, false, NULL}, 0},
    {{"POST", "localhost", "http://localhost", "same-origin", JSON "; charset=utf-8", false, NULL}, 0},
    {{"POST", "localhost", "http://localhost", "same-origin", "application/vnd.api+json", false, NULL}, 0},
    {{"POST", "localhost", "http://localhost", NULL, "Application/JSON", false, NULL}, 0},
    {{"POST", "localhost", "http://localhost", NULL, FORM, false, NULL}, 415},
    {{"POST", "localhost", "http://localhost", NULL, NULL, false, NULL}, 415},
    {{"POST", "localhost", "http://localhost", NULL, "application/jsonp", false, NULL}, 415},
    {{"POST", "localhost", NULL, "cross-site", FORM, false, NULL}, 415},
    {{"POST", "localhost", NULL, NULL, "text/plain", false, NULL}, 415},
    {{"POST", "localhost", NULL, NULL, "text/plain;charset=UTF-8", false, NULL}, 415},
    {{"POST", "localhost", NULL, NULL, "multipart/form-data; boundary=x", false, NULL}, 415},
    {{"POST", "localhost", "https://app.example", "cross-site", JSON, false, NULL}, 0},
    {{"POST", "localhost", "https://app.example", "cross-site", "text/plain", false, NULL}, 415},
};

static const char *hosts[] = {"shoal"}, *origins[] = {"https://app.example"};
static config_key keys[1];

static void browser_check_keeps_pages_out(void **state)
{
    gateway_config c = {.listen = "house.lan:8080",
                        .allow_hosts = hosts,
                        .n_allow_hosts = 1,
                        .allow_origins = origins,
                        .n_allow_origins = 1};
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

static void browser_check_asks_nothing_where_pages_cannot_come(void **state)
{
    gateway_config keyed = {.api_keys = keys, .n_api_keys = 1};
    browser_facts f = {"POST", "evil.example", "https://evil.example", "cross-site", "text/plain", false,
                       NULL};
    api_error e;
    assert_int_equal(browser_check(&keyed, &f, &e), 0);
    assert_false(browser_origin_is_allowed(&keyed, f.origin));
    assert_false(browser_origin_is_allowed(&keyed, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(browser_check_keeps_pages_out),
        cmocka_unit_test(browser_check_asks_nothing_where_pages_cannot_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
