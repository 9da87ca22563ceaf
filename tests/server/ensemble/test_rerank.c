/* What candidates are worth by each rule, which order that gives, and what requests and answers are read as.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../text_bytes.h"
#include "ensemble/rerank.h"

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static size_t weigh(rerank_by rule, const char *question, const rerank_needs *p, const char *const *s,
                    double *worth)
{
    rerank_text t[RERANK_CANDIDATES_MAX] = {{0}};
    size_t n = 0;
    for (; s[n]; n++) t[n] = (rerank_text){s[n], strlen(s[n])};
    Shoal__V1__GenerateRequest r = SHOAL__V1__GENERATE_REQUEST__INIT;
    rerank_asked asked;
    if (*question == '[')
        r.messages_json = (char *)(uintptr_t)question;
    else
        r.text = (char *)(uintptr_t)question;
    assert_int_equal(rerank_asked_init(&asked, &r), 0);
    assert_int_equal(rerank_by_rule(rule, &asked, p, t, n, worth), 0);
    rerank_asked_done(&asked);
    return n;
}

static void expect(rerank_by rule, const char *question, const rerank_needs *p, const char *const *s,
                   const double *want)
{
    double worth[RERANK_CANDIDATES_MAX];
    size_t n = weigh(rule, question, p, s, worth);
    for (size_t i = 0; i < n; i++)
        if (worth[i] != want[i] && fabs(worth[i] - want[i]) > 1e-12)
            fail_msg("'%s' is worth %g, not %g", s[i], worth[i], want[i]);
}

static void lengths_are_of_characters(void **state)
{
    expect(RERANK_LONGEST, "", NULL,
           TEXTS("aber",
                 "\xC3\xBC"
                 "ber",
                 "  "),
           (double[]){4, 4, -INFINITY});
    expect(RERANK_SHORTEST, "", NULL, TEXTS("aber", "ja", ""), (double[]){-4, -2, -INFINITY});
}

static void most_of_them_are_right(void **state)
{
    expect(RERANK_MAJORITY, "", NULL,
           TEXTS("No.", "The lamp is on.", " the  LAMP is on", "42", "the lamp is on!"),
           (double[]){.2, .6, .6, .2, .6});
    expect(RERANK_MAJORITY, "", NULL, TEXTS("", ""), (double[]){-INFINITY, -INFINITY});
    expect(RERANK_MAJORITY, "", NULL, TEXTS("?", "x"), (double[]){.5, .5});
}

static void words_are_the_questions(void **state)
{
    const char *q = "Which lamp is on? The lamp!";
    expect(RERANK_WORDS, q, NULL, TEXTS("the lamp IS on, lamp", "lampshade", "which", "?"),
           (double[]){.8, 0, .2, 0});
    expect(RERANK_WORDS, "", NULL, TEXTS("a", "b"), (double[]){1, 1});
    char many[RERANK_WORDS_MAX * 8] = "";
    for (int i = 0; i < RERANK_WORDS_MAX + 9; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "w%d ", i);
    expect(RERANK_WORDS, many, NULL, TEXTS(many, "w0"), (double[]){1, 1.0 / RERANK_WORDS_MAX});
}

static void json_is_whole_or_none(void **state)
{
    expect(RERANK_JSON, "", NULL, TEXTS("{\"a\": 1}", "[]", "{\"a\": 1", "1", "{} and more", "\xff"),
           (double[]){1, 1, 0, 0, 0, 0});
}

static void json_may_have_to_be_of_a_schema(void **state)
{
    static const char SCHEMA[] = "{\"type\":\"object\",\"required\":[\"level\"],"
                                 "\"properties\":{\"level\":{\"type\":\"integer\"}}}";
    verify_schema *s;
    shoal_err err;
    assert_int_equal(verify_schema_parse(&s, SCHEMA, sizeof SCHEMA - 1, "test", &err), 0);
    expect(RERANK_JSON, "", &(rerank_needs){.schema = s},
           TEXTS("{\"level\": 3}", "{\"level\": \"3\"}", "{}", "3", "level", " "),
           (double[]){1, 0, 0, 0, 0, -INFINITY});
    verify_schema_free(s);
}

static void patterns_match_or_do_not(void **state)
{
    regex *p;
    assert_int_equal(regex_compile(&p, "^\\d+ (lamps|doors)$", NULL), 0);
    expect(RERANK_PATTERN, "", &(rerank_needs){.pattern = p},
           TEXTS("two lamps", "2 lamps", "2 doors", "\xff"), (double[]){0, 1, 1, 0});
    regex_free(p);
}

static void of_equals_the_first_is_best(void **state)
{
    size_t order[5];
    rerank_order((double[]){1, 3, -INFINITY, 3, 2}, 5, order);
    assert_memory_equal(order, ((size_t[]){1, 3, 4, 0, 2}), sizeof order);
    rerank_order((double[]){7, 7, 7, 7, 7}, 5, order);
    assert_memory_equal(order, ((size_t[]){0, 1, 2, 3, 4}), sizeof order);
    rerank_order(NULL, 0, order);
}

static void rules_are_found_by_their_names(void **state)
{
    rerank_by rule;
    for (int i = 0; i < RERANK_N_RULES; i++) {
        assert_true(rerank_rule_find(rerank_rule_name((rerank_by)i), &rule));
        assert_int_equal(rule, i);
    }
    assert_false(rerank_rule_find("best", &rule));
}

static void asks(const char *messages, const char *text, const char *want, const char *context)
{
    Shoal__V1__GenerateRequest r = SHOAL__V1__GENERATE_REQUEST__INIT;
    rerank_asked a;
    r.messages_json = (char *)(uintptr_t)messages;
    r.text = (char *)(uintptr_t)text;
    assert_int_equal(rerank_asked_init(&a, &r), 0);
    assert_string_equal(a.question.data, want);
    assert_string_equal(a.context.data, context);
    rerank_asked_done(&a);
}

static void the_question_is_what_the_user_said_last(void **state)
{
    asks("[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"},"
         "{\"role\":\"assistant\",\"content\":\"c\"}]",
         "", "b", "a\nc\n");
    asks("[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"x\":1},{\"text\":\"b\"}]}]",
         "", "ab", "");
    asks("[{\"role\":\"system\",\"content\":\"a\"}]", "", "", "a\n");
    asks("[{\"role\":7,\"content\":9},3]", "", "", "\n\n");
    asks("{", "", "", "");
    asks("", "a prompt", "a prompt", "");
    asks("", "", "", "");
}

static void names_stand_elsewhere_too(void **state)
{
    static const char HOME[] = "[{\"role\":\"system\",\"content\":\"fan.attic 'Attic Fan' = off\"},"
                               "{\"role\":\"user\",\"content\":\"Please start the attic fan\"}]";
    expect(RERANK_NAMES, HOME, NULL, TEXTS("Starting Attic Fan.", "{\"target\": \"fan.hall\"}", "No.", " "),
           (double[]){1, .5, 0, -INFINITY});
    expect(RERANK_NAMES, "nothing else is there", NULL, TEXTS("a", ""), (double[]){1, -INFINITY});
}

static void calls_of_tools_are_part_of_an_answer(void **state)
{
    Shoal__V1__ToolCallDelta c = SHOAL__V1__TOOL_CALL_DELTA__INIT, *list[] = {&c};
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    rerank_reader r = {0};
    size_t n;
    assert_string_equal(rerank_read_all(&r, &n), "");
    d.text = text_bytes("Yes.");
    rerank_read(&r, &d);
    d.text = text_bytes("");
    d.tool_calls = list;
    d.n_tool_calls = 1;
    c.name = "turn\"on";
    rerank_read(&r, &d);
    c.name = "";
    c.arguments = "{\"a\":";
    rerank_read(&r, &d);
    c.arguments = "1}";
    rerank_read(&r, &d);
    c.index = 1;
    c.name = "stop";
    c.arguments = "{}";
    rerank_read(&r, &d);
    static const char WANT[] = "Yes.\n{\"name\": \"turn\\\"on\", \"arguments\": {\"a\":1}}\n"
                               "{\"name\": \"stop\", \"arguments\": {}}";
    assert_string_equal(rerank_read_all(&r, &n), WANT);
    assert_int_equal(n, sizeof WANT - 1);
    assert_string_equal(rerank_read_all(&r, &n), WANT);
    rerank_reader_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_of_characters),
        cmocka_unit_test(most_of_them_are_right),
        cmocka_unit_test(words_are_the_questions),
        cmocka_unit_test(json_is_whole_or_none),
        cmocka_unit_test(json_may_have_to_be_of_a_schema),
        cmocka_unit_test(patterns_match_or_do_not),
        cmocka_unit_test(of_equals_the_first_is_best),
        cmocka_unit_test(rules_are_found_by_their_names),
        cmocka_unit_test(the_question_is_what_the_user_said_last),
        cmocka_unit_test(names_stand_elsewhere_too),
        cmocka_unit_test(calls_of_tools_are_part_of_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
