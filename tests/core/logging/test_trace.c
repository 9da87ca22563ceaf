/* Traces: which headers are taken up, and what is made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "logging/trace.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"

static const char *take(const char *given)
{
    static char ret[TRACE_SIZE];
    trace_take(ret, given);
    return ret;
}

static void expect_form(const char *s)
{
    static const char SHAPE[] = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-0";
    assert_int_equal(strlen(s), TRACE_SIZE - 1);
    for (size_t i = 0; SHAPE[i]; i++) {
        if (SHAPE[i] == 'x')
            assert_non_null(strchr("0123456789abcdef", s[i]));
        else
            assert_int_equal(s[i], SHAPE[i]);
    }
}

static void traces_are_taken_up_with_a_span_of_our_own(void **state)
{
    static const char *const VALID[][2] = {
        {"00-" TRACE "-" SPAN "-01", "-01"},      {"00-" TRACE "-" SPAN "-00", "-00"},
        {"00-" TRACE "-" SPAN "-ff", "-03"},      {"cc-" TRACE "-" SPAN "-01", "-01"},
        {"01-" TRACE "-" SPAN "-02-more", "-02"},
    };
    for (size_t i = 0; i < sizeof VALID / sizeof *VALID; i++) {
        char id[TRACE_ID_SIZE];
        const char *s = take(VALID[i][0]);
        expect_form(s);
        trace_id(id, s);
        assert_string_equal(id, TRACE);
        assert_null(strstr(s, SPAN));
        assert_string_equal(s + 52, VALID[i][1]);
    }
}

static void traces_begin_anew_where_the_header_is_none(void **state)
{
    static const char *const BAD[] = {"new",
                                      "",
                                      "00-" TRACE "-" SPAN,
                                      "00-" TRACE "-" SPAN "-1",
                                      "00-" TRACE "-" SPAN "-0g",
                                      "00-" TRACE "-" SPAN "-01-more",
                                      "01-" TRACE "-" SPAN "-01more",
                                      "ff-" TRACE "-" SPAN "-01",
                                      "0-4" TRACE "-" SPAN "-01",
                                      "00-00000000000000000000000000000000-" SPAN "-01",
                                      "00-" TRACE "-0000000000000000-01",
                                      "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
                                      "00_" TRACE "-" SPAN "-01",
                                      "00-" TRACE "x" SPAN "-01"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        const char *s = take(BAD[i]);
        expect_form(s);
        assert_null(strstr(s, TRACE));
    }
    assert_string_equal(take(NULL), "");
}

static void traces_have_spans_that_differ(void **state)
{
    char first[TRACE_SIZE], id[TRACE_ID_SIZE];
    snprintf(first, sizeof first, "%s", take("new"));
    assert_string_not_equal(first, take("new"));
    assert_string_not_equal(first, take(first));
    trace_id(id, "");
    assert_string_equal(id, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(traces_are_taken_up_with_a_span_of_our_own),
                                       cmocka_unit_test(traces_begin_anew_where_the_header_is_none),
                                       cmocka_unit_test(traces_have_spans_that_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
