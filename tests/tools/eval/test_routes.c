/* `shoal eval --route`: requests and answers of models, the short form of cases, intervals, and the reports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "eval/eval_ask.h"
#include "eval/eval_routes.h"

static json_t *parse(const char *text)
{
    json_t *v = NULL;
    shoal_err err = {0};
    if (json_parse(&v, text, strlen(text), "test", &err)) fail_msg("%s: %s", text, err.message);
    return v;
}

/* ---- cases ----------------------------------------------------------------------------------------- */

static int read_text(eval_cases *ret, const char *text, shoal_err *err)
{
    char path[] = "/tmp/shoal_eval_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    *ret = (eval_cases){0};
    int rc = eval_cases_read(ret, path, NULL, err);
    unlink(path);
    return rc;
}

static void asks(const eval_case *c, const char *path, const char *want)
{
    buf out = {0};
    eval_asker a = {.route = "r"};
    assert_string_equal(eval_route_request(&a, c, &out), path);
    json_t *got = parse(out.data), *wanted = parse(want);
    if (!json_equal(got, wanted)) fail_msg("%s, not %s", out.data, want);
    json_decref(got);
    json_decref(wanted);
    buf_done(&out);
}

static void a_case_asks_a_model_by_what_it_expects(void **state)
{
    eval_cases c;
    shoal_err err = {0};
    int rc =
        read_text(&c,
                  "{\"text\":\"wake me\",\"expected\":\"alarm_set\"}\n"
                  "{\"prompt\":\"2+2?\",\"expected\":[\"4\",\"four\"]}\n"
                  "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":"
                  "\"hi\"}],\"expected\":{\"name\":\"a\",\"arguments\":{}}}\n"
                  "{\"input\":\"on\",\"context\":{\"devices\":[{\"id\":\"l.a\",\"name\":\"A\",\"state\":"
                  "\"on\"},{\"id\":\"l.b\"}]},\"expect\":{\"kind\":\"fallback\"}}\n",
                  &err);
    if (rc) fail_msg("%s", err.message);
    asks(&c.v[0], "/v1/classify", "{\"model\":\"r\",\"top_k\":1,\"input\":\"wake me\"}");
    asks(&c.v[1], "/v1/chat/completions",
         "{\"model\":\"r\",\"temperature\":0,\"max_tokens\":160,\"tool_choice\":\"own\",\"messages\":[{"
         "\"role\":\"user\",\"content\":"
         "\"2+2?\"}]}");
    asks(&c.v[2], "/v1/chat/completions",
         "{\"model\":\"r\",\"temperature\":0,\"max_tokens\":160,\"tool_choice\":\"own\",\"messages\":[{"
         "\"role\":\"system\","
         "\"content\":\"s\"},{\"role\":\"user\",\"content\":\"hi\"}]}");
    asks(&c.v[3], "/v1/chat/completions",
         "{\"model\":\"r\",\"temperature\":0,\"max_tokens\":160,\"tool_choice\":\"own\",\"messages\":[{"
         "\"role\":\"system\","
         "\"content\":\"You are Shoal, a helper that runs this home. Devices:\\nl.a 'A' = on\\nl.b '' = \"},"
         "{\"role\":\"user\",\"content\":\"on\"}]}");
    assert_string_equal(c.v[2].input, "hi");
    eval_cases_done(&c);
}

static void short_cases_that_say_two_things_are_refused(void **state)
{
    static const char *const bad[][2] = {
        {"{\"text\":\"a\",\"input\":\"b\",\"expected\":\"c\"}", "one of"},
        {"{\"messages\":[],\"expected\":\"c\"}", "role user"},
        {"{\"messages\":7,\"expected\":\"c\"}", "role user"},
        {"{\"text\":\"a\",\"expected\":\"c\",\"expect\":{\"kind\":\"fallback\"}}", "not both"},
        {"{\"text\":\"a\",\"expected\":7}", "must be a text"},
        {"{\"text\":\"a\"}", "expect.kind"},
        {"{\"text\":3,\"expected\":\"a\"}", "input"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        eval_cases c;
        shoal_err err = {0};
        assert_true(read_text(&c, bad[i][0], &err) < 0);
        if (!strstr(err.message, bad[i][1])) fail_msg("%s: %s", bad[i][0], err.message);
        eval_cases_done(&c);
    }
}

/* ---- answers --------------------------------------------------------------------------------------- */

static void answers_of_models_become_those_of_pipelines(void **state)
{
    static const struct {
        const char *body, *want;
        double said;
        size_t n_tokens;
    } cases[] = {
        {"{\"data\":[{\"labels\":[{\"label\":\"x\",\"score\":0.5}]}]}", "{\"text\":\"x\"}", 0.5, 0},
        {"{\"choices\":[{\"message\":{\"content\":\"hi\"},\"logprobs\":{\"content\":[{\"logprob\":0},"
         "{\"logprob\":-800}]}}],\"usage\":{\"completion_tokens\":2}}",
         "{\"text\":\"hi\",\"tool_calls\":[]}", 0.5, 2},
        {"{\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[{\"function\":{\"name\":\"f\","
         "\"arguments\":\"{\\\"a\\\": 1}\"}}]},\"logprobs\":null}]}",
         "{\"tool_calls\":[{\"name\":\"f\",\"arguments\":{\"a\":1}}]}", -1, 0},
        {"{\"choices\":[{\"message\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{\"}}, 3]}}]}",
         "{\"tool_calls\":[{\"name\":null,\"arguments\":null},{\"name\":null,\"arguments\":null}]}", -1, 0},
        {"[]", "{}", -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double said;
        size_t n_tokens;
        json_t *body = parse(cases[i].body), *want = parse(cases[i].want);
        json_t *got = eval_route_answer(body, &said, &n_tokens);
        assert_non_null(got);
        if (!json_equal(got, want)) fail_msg("%s is not read as %s", cases[i].body, cases[i].want);
        assert_true(said == cases[i].said && n_tokens == cases[i].n_tokens);
        json_decref(body);
        json_decref(want);
        json_decref(got);
    }
    assert_true(eval_is_escalated("a 0.382 < 0.600, b"));
    assert_false(eval_is_escalated("a 0.700 >= 0.600"));
    assert_false(eval_is_escalated("arithmetic mean of a 1, b 2"));
    assert_true(eval_is_escalated("a devices: it says nothing, escalated, b passed"));
    assert_false(eval_is_escalated("a devices: it says nothing, repaired"));
    assert_false(eval_is_escalated(""));
}

static void texts_and_labels_are_judged(void **state)
{
    static const struct {
        const char *expect, *text;
        bool right;
    } cases[] = {
        {"{\"kind\":\"text\",\"text\":[\"Yes, Lamp is on.\"]}", "yes lamp is on", true},
        {"{\"kind\":\"text\",\"text\":[\"no\",\"Yes, Lamp is on.\"]}", "Yes, Lamp is on. Really", false},
        {"{\"kind\":\"text\",\"text\":[\"Yes, Lamp is on.\"]}", "Lamp is on.", false},
        {"{\"kind\":\"label\",\"label\":[\"alarm_set\"]}", "alarm_set", true},
        {"{\"kind\":\"label\",\"label\":[\"alarm_set\"]}", "Alarm Set", false},
        {"{\"kind\":\"label\",\"label\":[\"a\",\"b\"]}", "b", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *expect = parse(cases[i].expect), *body = json_pack("{s:s}", "text", cases[i].text);
        buf why = {0};
        assert_int_equal(eval_expect_check(expect, NULL), 0);
        eval_verdict v = eval_judge(expect, "", &(eval_answer){.status = 200, .body = body}, &why);
        if ((v == EVAL_RIGHT) != cases[i].right) fail_msg("%s to %s", cases[i].text, cases[i].expect);
        buf_done(&why);
        json_decref(expect);
        json_decref(body);
    }
}

/* ---- numbers --------------------------------------------------------------------------------------- */

static bool is_near(double a, double b)
{
    return a - b < 5e-4 && b - a < 5e-4;
}

/* The first three are in textbooks. */
static void shares_have_wilsons_interval(void **state)
{
    eval_interval i = eval_wilson(81, 263);
    assert_true(is_near(i.low, 0.2553) && is_near(i.high, 0.3662)); /* Newcombe, 1998 */
    i = eval_wilson(0, 20);
    assert_true(i.low == 0 && is_near(i.high, 0.1611));
    i = eval_wilson(1, 29);
    assert_true(is_near(i.low, 0.0061) && is_near(i.high, 0.1718));
    i = eval_wilson(5, 5);
    assert_true(i.low > 0.5 && i.high == 1);
    i = eval_wilson(0, 0);
    assert_true(i.low == 0 && i.high == 1);
}

static void a_difference_is_found_where_there_is_one(void **state)
{
    enum { N = 400 };
    bool a[N], b[N], same[N];
    for (size_t i = 0; i < N; i++) {
        a[i] = rng_uniform(1, i) < 0.8;
        b[i] = a[i] && rng_uniform(2, i) < 0.9; /* a tenth of those is lost */
    }
    for (size_t i = 0; i < N; i++) same[i] = a[(i + 1) % N]; /* as often, elsewhere */
    eval_interval lost = eval_difference(a, b, N), none = eval_difference(a, a, N),
                  other = eval_difference(a, same, N), less = eval_difference(b, a, N);
    assert_true(lost.low > 0.03 && lost.high < 0.14 && less.high < -0.03);
    assert_true(none.low == 0 && none.high == 0);
    assert_true(other.low < 0 && other.high > 0);
    assert_true(eval_difference(a, b, 0).high == 0);
}

static void routes_are_told_apart(void **state)
{
    eval_result one[4] = {{.verdict = EVAL_RIGHT, .ms = 1, .n_tokens = 10},
                          {.verdict = EVAL_RIGHT, .ms = 2, .n_tokens = 10, .escalated = true},
                          {.verdict = EVAL_RIGHT, .ms = 3, .n_tokens = 20},
                          {.verdict = EVAL_WRONG, .ms = 9, .n_tokens = 20}};
    eval_result two[4] = {{.verdict = EVAL_WRONG}, {.verdict = EVAL_SILENT}, {.verdict = EVAL_HARMFUL}};
    eval_route routes[] = {{"one", {one, 4}}, {"two \"x\"", {two, 4}}};
    buf out = {0};
    assert_int_equal(eval_routes_put(routes, 2, &out, NULL), 0);
    assert_non_null(strstr(out.data, "one                      4     75.0"));
    assert_non_null(strstr(out.data, "one against two \"x\": +50.0 points, 95 %: "));
    buf_clear(&out);
    assert_int_equal(eval_routes_put_json(routes, 2, &out, NULL), 0);
    *strchr(out.data, '\n') = '\0';
    json_t *first = parse(out.data), *second = parse(out.data + strlen(out.data) + 1);
    assert_true(json_number_value(json_object_get(first, "accuracy")) == 0.75);
    assert_true(json_number_value(json_object_get(first, "escalated")) == 0.25);
    assert_true(json_number_value(json_object_get(first, "p50_ms")) == 3);
    assert_true(json_number_value(json_object_get(first, "p95_ms")) == 9);
    assert_int_equal(json_integer_value(json_object_get(first, "n")), 4);
    assert_string_equal(json_string_value(json_object_get(second, "route")), "two \"x\"");
    json_decref(first);
    json_decref(second);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_case_asks_a_model_by_what_it_expects),
        cmocka_unit_test(short_cases_that_say_two_things_are_refused),
        cmocka_unit_test(answers_of_models_become_those_of_pipelines),
        cmocka_unit_test(texts_and_labels_are_judged),
        cmocka_unit_test(shares_have_wilsons_interval),
        cmocka_unit_test(a_difference_is_found_where_there_is_one),
        cmocka_unit_test(routes_are_told_apart),
    };
    return cmocka_run_group_tests_name("eval_routes", tests, NULL, NULL);
}
