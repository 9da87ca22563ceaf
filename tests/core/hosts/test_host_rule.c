/* Hosts of the configuration: which URLs, paths and headers can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "hosts/host_rule.h"

static void urls_name_one_place(void **state)
{
    static const char *const good[] = {"https://api.lan",  "http://127.0.0.1:8123", "https://a-b_c.d:1/v1/x",
                                       "http://[::1]:80/", "https://api.lan/",      "https://[2001:db8::7]"};
    static const char *const bad[] = {"ftp://a",
                                      "https://",
                                      "api.lan",
                                      "https://u:p@a",
                                      "https://a:0",
                                      "https://a:65536",
                                      "https://a:",
                                      "https://a?x=1",
                                      "https://a/#x",
                                      "https://a/../b",
                                      "https://a/ b",
                                      "https://a b",
                                      "file:///etc/passwd",
                                      "https://[::1",
                                      "https://a:80:80",
                                      "http://a\nb",
                                      "https://a/%2e%2e/b",
                                      "https://ä.de",
                                      "gopher://a"};
    shoal_err err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (host_url_check(good[i], &err)) fail_msg("%s: %s", good[i], err.message);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!host_url_check(bad[i], &err)) fail_msg("taken: %s", bad[i]);
}

static void paths_stay_below_the_url(void **state)
{
    static const char *const good[] = {"/",     "/a/b?c=d&e=..", "/...",   "/a..b/.c",
                                       "/a//b", "/a%2Fb",        "/?/../x"};
    static const char *const bad[] = {
        "",       "a",         "/..",         "/../a",           "/a/..",  "/a/../b", "/.",
        "/a/./b", "/%2e%2e/b", "/a/%2E./b",   "/.%2e?x",         "/a b",   "/a#b",    "/a\r\nX: y",
        "/ä",     "/a\\b",     "/a%2F..%2Fb", "/a%5c%2E%2e%5Cb", "/a%2f.", "/%2f../x"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!host_path_ok(good[i])) fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (host_path_ok(bad[i])) fail_msg("taken: %s", bad[i]);
}

static void headers_do_not_make_the_request(void **state)
{
    assert_true(host_header_name_ok("authorization") && host_header_name_ok("X-Api_Key"));
    assert_false(host_header_name_ok("Host") || host_header_name_ok("content-length") ||
                 host_header_name_ok("a b") || host_header_name_ok("") || host_header_name_ok("a:") ||
                 host_header_name_ok("Transfer-Encoding"));
    assert_true(host_header_value_ok("Bearer x"));
    assert_false(host_header_value_ok("") || host_header_value_ok("a\r\nb: c") ||
                 host_header_value_ok("a\x7f"));
}

static void methods_are_those_that_are_allowed(void **state)
{
    const char *some[] = {"POST", "DELETE"};
    host_rule r = {.name = "a"}, s = {.name = "b", .methods = some, .n_methods = 2}, both[] = {r, s};
    assert_true(host_allows(&r, HOST_GET) && !host_allows(&r, HOST_POST));
    assert_true(host_allows(&s, HOST_POST) && host_allows(&s, HOST_DELETE) && !host_allows(&s, HOST_GET));
    assert_ptr_equal(host_find(both, 2, "b"), &both[1]);
    assert_null(host_find(both, 2, "c"));
    assert_true(host_method_known("PATCH") && !host_method_known("get") && !host_method_known("CONNECT"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_name_one_place),
        cmocka_unit_test(paths_stay_below_the_url),
        cmocka_unit_test(headers_do_not_make_the_request),
        cmocka_unit_test(methods_are_those_that_are_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
