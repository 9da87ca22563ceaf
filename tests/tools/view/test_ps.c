/* The lines of shoal ps, from statuses that a server may send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>

#include "json/json.h"
#include "view/ps_view.h"
#include "view/request_view.h"

static json_t *models_of(const char *status)
{
    json_t *o = NULL;
    assert_int_equal(json_parse(&o, status, strlen(status), "status", NULL), 0);
    json_t *m = ps_view_models(o);
    json_decref(o);
    assert_non_null(m);
    return m;
}

static const char *lines_of(const char *status, size_t width)
{
    static char text[2048];
    buf out = {0};
    json_t *m = models_of(status);
    ps_view_put(&out, m, 1000, width);
    snprintf(text, sizeof text, "%s", out.data);
    buf_done(&out);
    json_decref(m);
    return text;
}

static void models_that_no_machine_has_are_listed_with_the_reason(void **state)
{
    const char *s =
        lines_of("{\"replicas\":[{\"model\":\"b\",\"node\":\"attic\",\"state\":\"failed\"}],\"missing\":["
                 "{\"model\":\"a\",\"reason\":\"it lacks a label\"},"
                 "{\"model\":\"b\",\"reason\":\"its worker failed\"}]}",
                 0);
    assert_string_equal(s, "MODEL            STATE    READY MACHINES      MEMORY BUSY QUEUE  TOK/S  SINCE\n"
                           "b                failed     0/1 attic           0 MB    0     0      -  -\n"
                           "  its worker failed\n"
                           "a                missing    0/0                 0 MB    0     0      -  -\n"
                           "  it lacks a label\n");
}

static void the_newest_report_of_a_crash_is_named(void **state)
{
    const char *s = lines_of(
        "{\"replicas\":[{\"model\":\"a\",\"state\":\"ready\",\"crashes\":2,\"crash_report\":\"02-w\"},"
        "{\"model\":\"a\",\"state\":\"ready\",\"crashes\":1,\"crash_report\":\"01-w\"}]}",
        0);
    assert_non_null(strstr(s, "-  -\n  crashed 3 times; the last report: shoal crash 02-w\n"));
}

static void long_names_move_no_column_of_a_pipe(void **state)
{
    const char *s = lines_of("{\"replicas\":[{\"model\":\"a\",\"state\":\"ready\"},"
                             "{\"model\":\"a-name-of-19-letters\",\"state\":\"ready\"}]}",
                             0);
    assert_string_equal(s,
                        "MODEL                STATE    READY MACHINES      MEMORY BUSY QUEUE  TOK/S  SINCE\n"
                        "a                    ready      1/1 here            0 MB    0     0      -  -\n"
                        "a-name-of-19-letters ready      1/1 here            0 MB    0     0      -  -\n");
}

static void replicas_are_summed_up_by_model(void **state)
{
    const char *s = lines_of(
        "{\"replicas\":["
        "{\"model\":\"a\",\"node\":\"\",\"state\":\"starting\",\"since\":990},"
        "{\"model\":\"b\",\"node\":\"attic\",\"state\":\"down\",\"reason\":\"gone\"},"
        "{\"model\":\"a\",\"node\":\"attic\",\"state\":\"ready\",\"since\":400,\"resident_bytes\":2000000,"
        "\"running\":2,\"waiting\":1,\"decode_tokens_per_s\":40},"
        "{\"model\":\"a\",\"node\":\"attic\",\"state\":\"ready\",\"since\":300,\"resident_bytes\":1000000,"
        "\"running\":1,\"waiting\":0,\"decode_tokens_per_s\":10}]}",
        0);
    assert_string_equal(s, "MODEL            STATE    READY MACHINES      MEMORY BUSY QUEUE  TOK/S  SINCE\n"
                           "a                ready      2/3 here +1         3 MB    3     1     50  11 min\n"
                           "b                down       0/1 attic           0 MB    0     0      -  -\n");
}

static void standbys_are_told_apart(void **state)
{
    static const char *const kept[] = {"standby", "ready"};
    for (size_t i = 0; i < 2; i++) {
        char json[400];
        snprintf(json, sizeof json,
                 "{\"replicas\":[{\"model\":\"a\",\"state\":\"%s\"},"
                 "{\"model\":\"a\",\"state\":\"%s\",\"standby\":true}]}",
                 i ? "down" : "ready", kept[i]);
        assert_non_null(strstr(lines_of(json, 0), "a                ready    1/1+1 here"));
    }
}

static void nothing_and_nonsense_are_a_heading(void **state)
{
    static const char *const odd[] = {"{}", "[]", "{\"replicas\":7}", "{\"replicas\":[]}"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_int_equal(strchr(lines_of(odd[i], 0), 10)[1], 0);
    assert_non_null(strstr(lines_of("{\"replicas\":[{},7,null,{\"model\":5}]}", 0), "0/4"));
}

static void lines_are_no_wider_than_the_terminal_and_hold_no_controls(void **state)
{
    for (size_t width = 1; width < 100; width++) {
        const char *s = lines_of(
            "{\"replicas\":[{\"model\":\"\\u001b[2Ja\\nb\\u00e4\\u00e4\\u00e4\",\"state\":\"ready\"}]}",
            width);
        size_t n_lines = 0, n = 0;
        for (; *s; s++) {
            assert_true((unsigned char)*s >= ' ' || *s == '\n');
            if (*s == '\n') {
                assert_true(n <= width);
                n = 0;
                n_lines++;
            } else if (((unsigned char)*s & 0xC0) != 0x80) {
                n++;
            }
        }
        assert_int_equal(n_lines, 2);
    }
}

static void times_are_told_in_one_unit(void **state)
{
    static const struct {
        long long s;
        const char *text;
    } cases[] = {{-5, "0 s"},       {119, "119 s"}, {120, "2 min"},
                 {7199, "119 min"}, {7200, "2 h"},  {172800, "2 d"}};
    char text[16];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ps_view_ago(text, cases[i].s);
        assert_string_equal(text, cases[i].text);
    }
    ps_view_ago(text, INT64_MAX);
    assert_true(strlen(text) < sizeof text);
}

/* ---- where a request's time went (request_view.h) --------------------------------------------------- */

static json_t *request_of(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);
    assert_non_null(v);
    return v;
}

static void check_span(const json_t *spans, size_t i, const char *name, int depth, double ms, double self_ms)
{
    const json_t *s = json_array_get(spans, i);
    assert_string_equal(json_string_value(json_object_get(s, "name")), name);
    assert_int_equal(json_integer_value(json_object_get(s, "depth")), depth);
    assert_true(json_number_value(json_object_get(s, "ms")) == ms);
    double self = json_number_value(json_object_get(s, "self_ms"));
    if (self < self_ms - 1e-9 || self > self_ms + 1e-9)
        fail_msg("%s itself: %g, not %g", name, self, self_ms);
}

/* In order of their beginning below their parents; what ran side by side counts once. */
static void spans_are_a_tree(void **state)
{
    (void)state;
    json_t *r =
        request_of("{\"id\":\"x\",\"ms\":30,\"endpoint\":\"process\",\"spans\":["
                   "{\"id\":\"c\",\"parent\":\"r\",\"name\":\"stage b\",\"start_ms\":4,\"ms\":20},"
                   "{\"id\":\"r\",\"parent\":\"clients\",\"name\":\"process\",\"start_ms\":0,\"ms\":30},"
                   "{\"id\":\"d\",\"parent\":\"c\",\"name\":\"generate\",\"model\":\"m\",\"replica\":\"m/"
                   "0\",\"start_ms\":5,\"ms\":18},"
                   "{\"id\":\"a\",\"parent\":\"r\",\"name\":\"stage a\",\"start_ms\":2,\"ms\":10}]}");
    json_t *v = request_view_json(r), *spans = json_object_get(v, "spans");
    assert_int_equal(json_array_size(spans), 4);
    check_span(spans, 0, "process", 0, 30, 30 - 22);
    check_span(spans, 1, "stage a", 1, 10, 10);
    check_span(spans, 2, "stage b", 1, 20, 2);
    check_span(spans, 3, "generate m on m/0", 2, 18, 18);
    buf out = {0};
    assert_int_equal(request_view_put(&out, r, 80, NULL), 0);
    assert_non_null(strstr(out.data, "26.7 %"));
    assert_null(strstr(out.data, "traceparent"));
    buf_done(&out);
    json_decref(v);
    json_decref(r);
}

static void sums_stand_in_for_spans(void **state)
{
    (void)state;
    json_t *r = request_of(
        "{\"id\":\"x\",\"ms\":12,\"endpoint\":\"chat_completions\",\"status\":200,\"model\":\"a\\u001b[2J\","
        "\"queue_ms\":1,\"prefill_ms\":2,\"decode_ms\":5,\"total_ms\":10}");
    json_t *v = request_view_json(r), *spans = json_object_get(v, "spans");
    assert_int_equal(json_array_size(spans), 5);
    check_span(spans, 0, "chat_completions", 0, 12, 2);
    check_span(spans, 1, "model call", 1, 10, 2);
    check_span(spans, 4, "decode", 2, 5, 5);
    buf out = {0};
    assert_int_equal(request_view_put(&out, r, 60, NULL), 0);
    assert_non_null(strstr(out.data, "traceparent"));
    assert_null(strchr(out.data, 0x1b));
    buf_done(&out);
    json_decref(v);
    json_decref(r);
    static const char *const odd[] = {
        "{}", "{\"ms\":1,\"spans\":[{}]}", "{\"ms\":1,\"total_ms\":9,\"queue_ms\":50}",
        "{\"ms\":1,\"spans\":[{\"id\":\"a\",\"parent\":\"b\"},{\"id\":\"b\",\"parent\":\"a\"}]}",
        "{\"spans\":[{\"id\":\"a\",\"parent\":\"a\",\"ms\":1e300},7]}"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        r = request_of(odd[i]);
        buf any = {0};
        assert_int_equal(request_view_put(&any, r, 40, NULL), 0);
        v = request_view_json(r);
        assert_non_null(v);
        json_decref(v);
        buf_done(&any);
        json_decref(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_that_no_machine_has_are_listed_with_the_reason),
        cmocka_unit_test(the_newest_report_of_a_crash_is_named),
        cmocka_unit_test(long_names_move_no_column_of_a_pipe),
        cmocka_unit_test(replicas_are_summed_up_by_model),
        cmocka_unit_test(standbys_are_told_apart),
        cmocka_unit_test(nothing_and_nonsense_are_a_heading),
        cmocka_unit_test(lines_are_no_wider_than_the_terminal_and_hold_no_controls),
        cmocka_unit_test(times_are_told_in_one_unit),
        cmocka_unit_test(spans_are_a_tree),
        cmocka_unit_test(sums_stand_in_for_spans),
    };
    return cmocka_run_group_tests_name("ps_view", tests, NULL, NULL);
}
