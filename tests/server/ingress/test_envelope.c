/* What a message of a transport says: its key, its deadline and its correlation are members of the envelope. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ingress/envelope.h"

static int parse(envelope *a, const char *text)
{
    api_error e = {0};
    return envelope_parse(a, text, strlen(text), &e);
}

static void an_envelope_has_key_deadline_and_correlation(void **state)
{
    envelope a;
    assert_int_equal(
        parse(&a, "{\"id\":\"7\",\"path\":\"/v1/chat?x=1\",\"body\":{},\"headers\":{\"Authorization\":"
                  "\"Bearer sk-1\",\"X-Shoal-Deadline-Ms\":\"250\"}}"),
        0);
    assert_string_equal(a.id, "7");
    assert_string_equal(a.key, "sk-1");
    assert_true(a.has_timeout);
    assert_int_equal(a.timeout_ms, 250);
    assert_string_equal(a.method, "POST");
    assert_string_equal(a.path, "/v1/chat");
    assert_string_equal(a.query, "x=1");
    envelope_done(&a);
}

static void an_envelope_says_nothing_that_its_message_does_not(void **state)
{
    static const char *const WITHOUT[] = {
        "{\"id\":\"1\",\"path\":\"/a\"}", "{\"id\":\"1\",\"path\":\"/a\",\"headers\":{\"x\":\"y\"}}",
        "{\"id\":\"1\",\"path\":\"/a\",\"headers\":{\"x-shoal-deadline-ms\":\"soon\"}}",
        "{\"id\":\"1\",\"path\":\"/a\",\"headers\":{\"x-shoal-deadline-ms\":\"86400001\"}}",
        "{\"id\":\"1\",\"cancel\":true}"};
    for (size_t i = 0; i < sizeof WITHOUT / sizeof *WITHOUT; i++) {
        envelope a;
        assert_int_equal(parse(&a, WITHOUT[i]), 0);
        assert_null(a.key);
        assert_false(a.has_timeout);
        envelope_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_envelope_has_key_deadline_and_correlation),
        cmocka_unit_test(an_envelope_says_nothing_that_its_message_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
