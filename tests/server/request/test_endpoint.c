/* The search in a table of endpoints: what a path finds, what it allows, and what was meant by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "request/endpoint.h"

static const endpoint ROWS[] = {
    {.method = "GET", .path = "/"},
    {.method = "POST", .path = "/v1/chat/completions"},
    {.method = "GET", .path = "/v1/collections/*"},
    {.method = "DELETE", .path = "/v1/collections/*"},
    {.method = "POST", .path = "/v1/collections/*/search"},
    {.method = "GET", .path = "/v1/models"},
    {.method = "GET", .path = "/v1/models/"},
};
static const endpoint_table TABLE = {ROWS, sizeof ROWS / sizeof *ROWS};

static const char *find(const char *method, const char *path)
{
    const char *allow;
    const endpoint *at = endpoint_find(&TABLE, method, path, &allow);
    return at ? at->path : allow ? allow : "nothing";
}

static void endpoints_are_found_by_their_pattern(void **state)
{
    assert_string_equal(find("GET", "/"), "/");
    assert_string_equal(find("HEAD", "/"), "/");
    assert_string_equal(find("GET", "/v1/collections/home"), "/v1/collections/*");
    assert_string_equal(find("POST", "/v1/collections/home/search"), "/v1/collections/*/search");
    assert_string_equal(find("GET", "/v1/models/org/name:q4"), "/v1/models/");
    assert_string_equal(find("GET", "/v1/models/"), "nothing");
    assert_string_equal(find("GET", "/v1/collections/"), "nothing");
    assert_string_equal(find("GET", "//"), "nothing");
    assert_string_equal(find("GET", ""), "nothing");
    assert_string_equal(find("PATCH", "/v1/collections/home"), "GET, HEAD, DELETE");
}

static const char *meant(const char *method, const char *path)
{
    static char out[128];
    const endpoint *at = endpoint_near(&TABLE, method, path, out, sizeof out);
    return at ? out : "nothing";
}

static void endpoints_near_a_path_are_those_that_were_meant(void **state)
{
    assert_string_equal(meant("POST", "/v1/chat/completion"), "/v1/chat/completions");
    assert_string_equal(meant("POST", "/chat/completions"), "/v1/chat/completions");
    assert_string_equal(meant("POST", "/v1/v1/chat/completions"), "/v1/chat/completions");
    assert_string_equal(meant("POST", "/v1/chat/completions/"), "/v1/chat/completions");
    assert_string_equal(meant("GET", "/v1/model"), "/v1/models");
    assert_string_equal(meant("GET", "/v1/model/smol"), "/v1/models/smol");
    assert_string_equal(meant("GET", "/v1/collection/my home"), "/v1/collections/my home");
    assert_string_equal(meant("POST", "/v1/collections/home/serch"), "/v1/collections/home/search");
    assert_string_equal(meant("POST", "/v1/chat/complete"), "/v1/chat/completions");
    assert_string_equal(meant("GET", "/v2/something/else"), "nothing");
    assert_string_equal(meant("POST", "/v1/models/home/serch"), "nothing");
    assert_string_equal(meant("GET", "/v1/nodes/smol"), "nothing");
    assert_string_equal(meant("GET", "/v2/models/smol"), "nothing");
    assert_string_equal(meant("GET", "/v1"), "nothing");
    assert_string_equal(meant("GET", "/v1/collections/"), "nothing");
    assert_string_equal(meant("GET", ""), "nothing");
    assert_string_equal(meant("GET", "/ab"), "nothing");
}

static void endpoints_near_a_path_may_have_any_length(void **state)
{
    char path[512];
    for (size_t n = 1; n < sizeof path - 1; n++) {
        memset(path, n % 2 ? '/' : 'a', n);
        path[0] = '/';
        path[n] = '\0';
        meant("GET", path);
        memcpy(path, "/v1/model/", n < 10 ? n : 10);
        const char *said = meant("GET", path);
        if (n > 96) assert_string_equal(said, "nothing");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(endpoints_are_found_by_their_pattern),
                                       cmocka_unit_test(endpoints_near_a_path_are_those_that_were_meant),
                                       cmocka_unit_test(endpoints_near_a_path_may_have_any_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
