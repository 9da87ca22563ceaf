/* Files as hubs deliver them: what is not the file at all is said to be so, and Python's constants become JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "json/hub_file.h"

static void rewritten(const char *from, const char *to)
{
    buf text = {0};
    buf_puts(&text, from);
    assert_int_equal(hub_file_plain_json(&text), 0);
    assert_string_equal(text.len ? text.data : "", to);
    buf_done(&text);
}

static void hub_file_rewrites_what_python_writes(void **state)
{
    rewritten("{\"a\": [0.0, Infinity], \"b\": -Infinity, \"c\": NaN}",
              "{\"a\": [0.0, 1.7976931348623157e308], \"b\": -1.7976931348623157e308, \"c\": null}");
    rewritten("\xEF\xBB\xBF{\"a\": 1}", "{\"a\": 1}");
    rewritten("{\"NaN\": \"\\\" Infinity\", \"b\": -1}", "{\"NaN\": \"\\\" Infinity\", \"b\": -1}");
    rewritten("\"\\", "\"\\");
    rewritten("-", "-");
    rewritten("", "");
}

static void checked(const char *text, const char *said)
{
    shoal_err err = {0};
    int rc = hub_file_check(text, strlen(text), "m/config.json", &err);
    assert_int_equal(rc, said ? SHOAL_EFORMAT : 0);
    if (said && !strstr(err.message, said)) fail_msg("%s", err.message);
}

static void hub_file_names_what_is_not_the_file(void **state)
{
    checked("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull");
    checked("<!DOCTYPE html>\n<html>", "is an HTML page");
    checked("\xEF\xBB\xBF\r\n <html lang=\"en\">", "is an HTML page");
    checked("GGUF", NULL);
    checked("{\"version\": \"https://git-lfs.github.com/spec/v1\"}", NULL);
    checked("<", NULL);
    checked("", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hub_file_rewrites_what_python_writes),
        cmocka_unit_test(hub_file_names_what_is_not_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
