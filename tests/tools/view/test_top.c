/* The lines of `shoal top`, and its JSON, from two looks at a gateway's status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/utf8.h"
#include "view/top_view.h"

static const char BEFORE[] =
    "{\"status\":\"ready\",\"version\":\"1.2.3\",\"requests_in_flight\":1,\"moves\":2,\"nodes\":[],"
    "\"replicas\":["
    "{\"id\":\"a/0\",\"state\":\"ready\",\"generated_tokens\":100,\"prompt_tokens\":10},"
    "{\"id\":\"gone/0\",\"state\":\"ready\",\"generated_tokens\":1,\"prompt_tokens\":1},"
    "{\"id\":\"b/0\",\"state\":\"ready\",\"generated_tokens\":500,\"prompt_tokens\":10}]}";
static const char NOW[] =
    "{\"status\":\"not_ready\",\"version\":\"1.2.3\",\"requests_in_flight\":7,\"moves\":5,\"degraded\":1,"
    "\"nodes\":[{\"name\":\"pi\",\"site\":\"cellar\",\"cores\":4,\"load\":0.5,\"memory_free_bytes\":"
    "3221225472,"
    "\"on_battery\":true}],"
    "\"replicas\":[{\"id\":\"a/"
    "0\",\"node\":\"pi\",\"state\":\"ready\",\"generated_tokens\":300,\"prompt_tokens\":30,"
    "\"running\":2,\"waiting\":3,\"calls\":5,\"kv_pages\":200,\"kv_pages_used\":50,\"resident_bytes\":"
    "1048576},"
    "{\"id\":\"b/0\",\"node\":\"\",\"state\":\"ready\",\"generated_tokens\":20,\"prompt_tokens\":2},"
    "{\"id\":\"c/0\",\"node\":\"\",\"state\":\"failed\",\"reason\":\"no \\u001b[31mfile\\n\"}]}";

static char *view(const char *before, size_t width, size_t height)
{
    json_t *b = before ? json_loads(before, 0, NULL) : NULL, *n = json_loads(NOW, 0, NULL);
    buf out = {0};
    top_view_put(&out, n, b, 2, width, height);
    json_decref(b);
    json_decref(n);
    return buf_take(&out);
}

static const char *line_of(const char *all, const char *start)
{
    const char *s = strstr(all, start);
    if (!s) fail_msg("no line '%s' in:\n%s", start, all);
    return s;
}

static bool has(const char *line, const char *what)
{
    const char *at = strstr(line, what);
    return at && at < line + strcspn(line, "\n");
}

static void standbys_are_counted_apart(void **state)
{
    json_t *n = json_loads("{\"replicas\":[{\"id\":\"a/0\",\"state\":\"ready\"},"
                           "{\"id\":\"a/1\",\"state\":\"standby\",\"standby\":true}]}",
                           0, NULL);
    buf out = {0};
    top_view_put(&out, n, NULL, 2, 0, 0);
    assert_true(has(out.data, "replicas 1/1 (+1 standby)") && has(line_of(out.data, "a/1"), " standby "));
    json_decref(n);
    buf_done(&out);
}

static void rates_are_what_grew(void **state)
{
    char *s = view(BEFORE, 0, 0);
    assert_true(has(s, "not_ready") && has(s, "replicas 2/3") && has(s, "moves 5 (+3)") &&
                has(s, "degraded 1"));
    assert_true(has(s, "tokens/s 100.0"));
    const char *a = line_of(s, "a/0"), *b = line_of(s, "b/0"), *pi = line_of(s, "pi ");
    assert_true(has(a, " 100.0 ") && has(a, " 10.0 ") && has(a, " 25%") && has(a, " 1.0M"));
    assert_true(has(b, " - ")); /* a worker that began anew counts from zero */
    assert_true(has(pi, "cellar") && has(pi, " 100.0 ") && has(pi, "battery") && has(pi, " 3.0G"));
    free(s);
}

static void one_look_knows_no_rates(void **state)
{
    char *s = view(NULL, 0, 0);
    assert_true(has(s, "tokens/s -  ") && !has(s, "(+"));
    assert_true(has(line_of(s, "a/0"), " - "));
    free(s);
}

static void lines_stay_within_the_window(void **state)
{
    for (size_t height = 2; height < 10; height++) {
        for (size_t width = 1; width < 120; width += 7) {
            char *s = view(BEFORE, width, height);
            size_t n = 0;
            for (const char *at = s; *at; at += strcspn(at, "\n") + 1, n++) {
                assert_true(utf8_columns(at, strcspn(at, "\n")) <= width);
                assert_int_equal(strcspn(at, "\x1b\r\t"), strlen(at)); /* what others wrote moves no cursor */
            }
            assert_true(n <= height);
            free(s);
        }
    }
    char *s = view(BEFORE, 0, 5);
    line_of(s, "... 3 more lines");
    free(s);
}

static bool is_word_of(const char *all, const char *word, size_t n)
{
    for (const char *at = all; *at; at += strcspn(at, " \n"), at += strspn(at, " \n"))
        if (strcspn(at, " \n") == n && memcmp(at, word, n) == 0) return true;
    return false;
}

/* Columns give way where there are too many of them; what is shown is shown whole. */
static void a_terminal_of_80_columns_cuts_no_word(void **state)
{
    static const char replica[] =
        "{\"id\":\"%s/0\",\"node\":\"%s\",\"state\":\"starting\",\"reason\":\"its file is "
        "read, which takes a while where the disk is slow or busy\"}";
    static const char *const names[] = {"a", "home-chat-s", "gemma-3-270m-it-qat-q4_0-unquantized"};
    static const char *const nodes[] = {"", "pi", "attic-server"};
    for (size_t i = 0; i < 9; i++) {
        char json[600];
        buf wide = {0}, narrow = {0};
        int n = snprintf(json, sizeof json, "{\"version\":\"1.2.3\",\"status\":\"ready\",\"replicas\":[");
        n += snprintf(json + n, sizeof json - (size_t)n, replica, names[i / 3], nodes[i % 3]);
        snprintf(json + n, sizeof json - (size_t)n, "]}");
        json_t *now = json_loads(json, 0, NULL);
        top_view_put(&wide, now, NULL, 1, 0, 0);
        top_view_put(&narrow, now, NULL, 1, 80, 0);
        for (const char *at = narrow.data; *at; at += strcspn(at, "\n") + 1)
            assert_true(utf8_columns(at, strcspn(at, "\n")) <= 80);
        for (const char *at = narrow.data; *at; at += strcspn(at, " \n"), at += strspn(at, " \n"))
            if (!is_word_of(wide.data, at, strcspn(at, " \n")))
                fail_msg("cut: %.20s in\n%s", at, narrow.data);
        assert_true(is_word_of(narrow.data, "busy", 4) && is_word_of(narrow.data, "MEM", 3));
        json_decref(now);
        buf_done(&wide);
        buf_done(&narrow);
    }
}

static void json_has_rates_or_null(void **state)
{
    json_t *b = json_loads(BEFORE, 0, NULL), *n = json_loads(NOW, 0, NULL), *all = top_view_json(n, b, 2);
    json_t *list = json_object_get(all, "replicas");
    assert_true(json_real_value(json_object_get(all, "tokens_per_s")) == 100);
    assert_true(json_real_value(json_object_get(json_array_get(list, 0), "prompt_tokens_per_s")) == 10);
    assert_true(json_is_null(json_object_get(json_array_get(list, 1), "tokens_per_s")));
    json_decref(all);
    json_t *none = json_object(); /* anything else is no crash */
    all = top_view_json(none, NULL, 0);
    json_decref(none);
    assert_true(json_is_null(json_object_get(all, "tokens_per_s")));
    json_decref(all);
    json_decref(b);
    json_decref(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_what_grew),
        cmocka_unit_test(standbys_are_counted_apart),
        cmocka_unit_test(one_look_knows_no_rates),
        cmocka_unit_test(lines_stay_within_the_window),
        cmocka_unit_test(a_terminal_of_80_columns_cuts_no_word),
        cmocka_unit_test(json_has_rates_or_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
