/* responses.h: what "input" comes to as messages, and items that are named by their ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "dialects/response_items.h"
#include "dialects/responses.h"

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

static void responses_take_a_text_as_a_message_of_the_user(void **state)
{
    buf out = {0};
    response_spec *s =
        read_ok("{\"model\":\"m\",\"input\":[{\"role\":\"assistant\",\"content\":\"y\"},\"x\"]}");
    assert_added(s, "[{\"role\":\"assistant\",\"content\":\"y\"},{\"role\":\"user\",\"content\":\"x\"}]");
    response_items_put(&out, s, "ab");
    assert_non_null(strstr(
        out.data, "{\"id\":\"msg_ab_in1\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"user\","
                  "\"content\":[{\"type\":\"input_text\",\"text\":\"x\"}]}"));
    buf_done(&out);
    response_spec_free(s);
}

static void refused(const char *input, const char *message)
{
    char body[256];
    response_spec *s = NULL;
    api_error e = {0};
    snprintf(body, sizeof body, "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"a\"},%s]}",
             input);
    assert_int_equal(response_spec_parse(&s, body, strlen(body), &e), 400);
    assert_string_equal(e.param, "input");
    assert_string_equal(e.message, message);
}

static void responses_name_the_part_that_is_wrong(void **state)
{
#define USER "{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\"},"
    refused(
        USER "{\"type\":\"input_image\",\"image_url\":\"x\"}]}",
        "input[1].content[1]: models here read text alone, and this part is of type \"input_image\": send "
        "parts of type \"input_text\"");
    refused(USER "{\"type\":\"input_text\"}]}", "input[1].content[1]: \"text\" must be a string");
    refused(USER "3]}", "input[1].content[1]: must be an object with a \"type\"");
    refused("{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":[{\"type\":\"input_file\"}]}",
            "input[1].output[0]: models here read text alone, and this part is of type \"input_file\": send "
            "parts of type \"input_text\"");
    response_spec *s =
        read_ok("{\"model\":\"m\",\"input\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"refusal\","
                "\"refusal\":\"no\"},{\"type\":\"output_text\",\"text\":\"a\",\"annotations\":[]}]}]}");
    assert_added(s, "[{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"no\"},"
                    "{\"type\":\"text\",\"text\":\"a\"}]}]");
    response_spec_free(s);
}

static void responses_name_their_own_fields_in_errors(void **state)
{
    static const char *const CASES[][4] = {
        {"response_format", "response_format.json_schema.schema must be a JSON schema object", "text.format",
         "text.format.schema must be a JSON schema object"},
        {"response_format", "response_format.type must be text", "text.format",
         "text.format.type must be text"},
        {"reasoning_effort", "\\\"reasoning_effort\\\" must be low", "reasoning.effort",
         "\\\"reasoning.effort\\\" must be low"},
        {"max_completion_tokens", "\\\"max_completion_tokens\\\" is 0", "max_output_tokens",
         "\\\"max_output_tokens\\\" is 0"},
        {"tools", "tools[0].function.name must be", "tools", "tools[0].name must be"},
        {"tools", "tools/0/function/parameters: at", "tools", "tools/0/parameters: at"},
        {"temperature", "reasoning_effort.function.name", "temperature", "reasoning_effort.function.name"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        api_error e;
        char message[128], wanted[256];
        buf out = {0};
        size_t n = 0;
        for (const char *at = CASES[i][1]; *at; at++)
            if (*at != '\\') message[n++] = *at;
        message[n] = '\0';
        api_error_bad(&e, CASES[i][0], "%s", message);
        response_put_error(&out, &e);
        snprintf(wanted, sizeof wanted,
                 "{\"error\":{\"message\":\"%s\",\"type\":\"invalid_request_error\",\"param\":\"%s\","
                 "\"code\":null}}",
                 CASES[i][3], CASES[i][2]);
        assert_string_equal(out.data, wanted);
        buf_done(&out);
    }
}

static void responses_keep_the_schema_of_a_json_object(void **state)
{
    response_spec *s = read_ok("{\"model\":\"m\",\"input\":\"a\",\"text\":{\"format\":{\"type\":"
                               "\"json_object\",\"schema\":{\"type\":\"object\"}}}}");
    char *text = json_dumps(json_object_get(s->chat, "response_format"), JSON_COMPACT);
    assert_string_equal(text, "{\"type\":\"json_object\",\"schema\":{\"type\":\"object\"}}");
    free(text);
    response_spec_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses_put_the_items_of_others_where_they_are_named),
        cmocka_unit_test(responses_take_a_text_as_a_message_of_the_user),
        cmocka_unit_test(responses_say_which_item_is_not_there),
        cmocka_unit_test(responses_name_the_part_that_is_wrong),
        cmocka_unit_test(responses_name_their_own_fields_in_errors),
        cmocka_unit_test(responses_keep_the_schema_of_a_json_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
