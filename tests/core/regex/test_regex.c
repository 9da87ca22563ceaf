/* Patterns of a configuration over any text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "regex/regex.h"

static void patterns_are_found_in_utf8(void **state)
{
    regex *p = NULL;
    assert_int_equal(regex_compile(&p, "(?i)\\bLICHT\\b|größe", NULL), 0);
    assert_int_equal(regex_find(p, "mach das licht an", 17), REGEX_FOUND);
    assert_int_equal(regex_find(p, "GRÖSSE", strlen("GRÖSSE")), REGEX_NONE);
    assert_int_equal(regex_find(p, "GRÖßE", strlen("GRÖßE")), REGEX_FOUND);
    assert_int_equal(regex_find(p, "", 0), REGEX_NONE);
    assert_int_equal(regex_find(p, "licht \xff", 7), REGEX_NONE); /* no UTF-8 */
    regex_free(p);
}

static void a_wrong_pattern_says_where(void **state)
{
    regex *p = NULL;
    shoal_err err;
    assert_int_equal(regex_compile(&p, "a(b", &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "at byte 3 of 'a(b': "));
    assert_null(p);
}

static void no_text_holds_a_pattern_up(void **state)
{
    static char text[40000];
    regex *p = NULL;
    memset(text, 'a', sizeof text - 1);
    assert_int_equal(regex_compile(&p, "(a+)+$|(a|aa)+b", NULL), 0);
    text[REGEX_BYTES - 1] = '!';
    assert_int_equal(regex_find(p, text, sizeof text - 1), REGEX_GAVE_UP);
    regex_free(p);
    assert_int_equal(regex_compile(&p, "needle", NULL), 0);
    memcpy(text + REGEX_BYTES, "needle", 6); /* beyond what is looked at */
    assert_int_equal(regex_find(p, text, sizeof text - 1), REGEX_NONE);
    memcpy(text + REGEX_BYTES - 6, "needle", 6);
    assert_int_equal(regex_find(p, text, sizeof text - 1), REGEX_FOUND);
    regex_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_found_in_utf8),
        cmocka_unit_test(a_wrong_pattern_says_where),
        cmocka_unit_test(no_text_holds_a_pattern_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
