/* responses.h: what "input" comes to as messages, and items that are named by their ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "api/responses.h"

static response_spec *read_ok(const char *body)
{
    response_spec *s = NULL;
    api_error e = {0};
    if (response_spec_parse(&s, body, strlen(body), &e) != 0) fail_msg("%s\n%s", body, e.message);
    return s;
}

static void assert_added(const response_spec *s, const char *wanted)
{
    char *text = json_dumps(s->added, JSON_COMPACT);
    assert_string_equal(text, wanted);
    free(text);
}

#define ASKED                                                                    \
    "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"a\"},"         \
    "{\"type\":\"item_reference\",\"id\":\"rs_ab12\"},{\"id\":\"fc_ab12_1\"},"   \
    "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"done\"}," \
    "{\"type\":\"item_reference\",\"id\":\"msg_cd34\"}]}"

static void responses_put_the_items_of_others_where_they_are_named(void **state)
{
    char name[RESPONSE_ID_BYTES];
    api_error e;
    response_spec *s = read_ok(ASKED);
    assert_null(s->added);
    assert_true(response_spec_reference(s, name));
    assert_string_equal(name, "resp_ab12");
    json_t *one =
        json_loads("{\"output\":[{\"type\":\"reasoning\",\"id\":\"rs_ab12\"},"
                   "{\"type\":\"function_call\",\"id\":\"fc_ab12_1\",\"call_id\":\"c\",\"name\":\"f\","
                   "\"arguments\":\"{}\"}]}",
                   0, NULL);
    assert_int_equal(response_spec_resolve(s, name, one, &e), 0);
    assert_true(response_spec_reference(s, name));
    assert_string_equal(name, "resp_cd34");
    json_t *two = json_loads("{\"output\":[{\"type\":\"message\",\"id\":\"msg_cd34\",\"role\":\"assistant\","
                             "\"content\":[{\"type\":\"output_text\",\"text\":\"b\"}]}]}",
                             0, NULL);
    assert_int_equal(response_spec_resolve(s, name, two, &e), 0);
    assert_false(response_spec_reference(s, name));
    assert_int_equal(response_spec_read_input(s, &e), 0);
    assert_added(
        s, "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":"
           "[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
           "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"done\"},"
           "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"b\"}]}]");
    json_decref(one);
    json_decref(two);
    response_spec_free(s);
}

static void responses_say_which_item_is_not_there(void **state)
{
    char name[RESPONSE_ID_BYTES];
    api_error e;
    response_spec *s = read_ok(ASKED);
    assert_true(response_spec_reference(s, name));
    assert_int_equal(response_spec_resolve(s, name, NULL, &e), 404);
    assert_string_equal(e.param, "input");
    assert_non_null(strstr(e.message, "input[1]: there is no item rs_ab12"));
    response_spec_free(s);
    static const char *const NAMES[][2] = {
        {"x", "resp_"}, {"", "resp_"}, {"msg_", "resp_"}, {"_a_b_c", "resp_a"}};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        json_t *body = json_pack("{s:s, s:[{s:s, s:s}]}", "model", "m", "input", "type", "item_reference",
                                 "id", NAMES[i][0]);
        char *text = json_dumps(body, 0);
        s = read_ok(text);
        assert_true(response_spec_reference(s, name));
        assert_string_equal(name, NAMES[i][1]);
        response_spec_free(s);
        free(text);
        json_decref(body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses_put_the_items_of_others_where_they_are_named),
        cmocka_unit_test(responses_say_which_item_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
