/* Tools of the Model Context Protocol: what a call asks of us, and which are offered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "compat/mcp_tools.h"
#include "json/json.h"

static json_t *parsed(const char *text)
{
    json_t *v = NULL;
    shoal_err err;
    if (json_parse(&v, text, strlen(text), "test", &err) != 0) fail_msg("%s: %s", text, err.message);
    return v;
}

static void assert_asks(const char *tool, const char *arguments, const char *want)
{
    char path[256], got[600];
    const char *method;
    api_error e = {0};
    buf body = {0};
    json_t *a = parsed(arguments);
    if (mcp_tool_request(mcp_tool_find(tool), a, &method, path, sizeof path, &body, &e) != 0)
        fail_msg("%s", e.message);
    snprintf(got, sizeof got, "%s %s %s", method, path, body.len ? body.data : "");
    assert_string_equal(got, want);
    buf_done(&body);
    json_decref(a);
}

static void calls_are_requests_of_ours(void **state)
{
    assert_asks("classify", "{\"input\":\"hi\",\"top_k\":2}",
                "POST /v1/classify {\"input\":\"hi\",\"top_k\":2}");
    assert_asks("process", "{\"input\":\"on\",\"pipeline\":\"home\",\"stream\":true}",
                "POST /v1/process {\"input\":\"on\",\"pipeline\":\"home\"}");
    assert_asks(
        "chat", "{\"prompt\":\"hi\",\"system\":\"be kind\",\"max_tokens\":3}",
        "POST /v1/chat/completions {\"max_tokens\":3,\"messages\":[{\"role\":\"system\",\"content\":\"be "
        "kind\"},{\"role\":\"user\",\"content\":\"hi\"}]}");
    assert_asks("collections", "{}", "GET /v1/collections ");
    assert_asks("search", "{\"collection\":\"a.b-c\",\"query\":\"q\"}",
                "POST /v1/collections/a.b-c/search {\"query\":\"q\"}");
}

static void assert_refused(const char *tool, const char *arguments, const char *why)
{
    char path[256];
    const char *method;
    api_error e = {0};
    buf body = {0};
    json_t *a = arguments ? parsed(arguments) : NULL;
    assert_int_equal(mcp_tool_request(mcp_tool_find(tool), a, &method, path, sizeof path, &body, &e), 400);
    if (!strstr(e.message, why)) fail_msg("%s", e.message);
    buf_done(&body);
    json_decref(a);
}

static void what_is_missing_is_named(void **state)
{
    assert_refused("classify", "{}", "needs the argument \"input\"");
    assert_refused("classify", NULL, "needs the argument \"input\"");
    assert_refused("rerank", "{\"query\":\"q\"}", "\"documents\"");
    assert_refused("chat", "{\"prompt\":7}", "prompt");
    assert_refused("chat", "{\"prompt\":\"hi\",\"system\":[]}", "system");
}

/* A name of a collection is one segment of a path, and no query. */
static void a_collection_cannot_name_another_path(void **state)
{
    static const char *const NAMES[] = {"\"..\"", "\"a/b\"",     "\"a?b\"", "\"a%2fb\"",
                                        "\"\"",   "\".hidden\"", "\"a b\"", "7"};
    char arguments[80];
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        snprintf(arguments, sizeof arguments, "{\"collection\":%s,\"query\":\"q\"}", NAMES[i]);
        assert_refused("search", arguments, "collection");
    }
    assert_null(mcp_tool_find("files"));
}

static void tools_fit_what_is_served(void **state)
{
    json_t *models = parsed("{\"data\":[{\"id\":\"kinds\",\"task\":\"classify\",\"labels\":[\"a\",\"b\"]},"
                            "{\"id\":\"chat-s\",\"task\":\"generate\"},{\"id\":\"other\"},{}]}");
    json_t *pipelines = parsed("{\"data\":[]}"), *tool;
    buf out = {0};
    size_t i;
    buf_putc(&out, '[');
    mcp_tools_put(&out, models, pipelines);
    buf_putc(&out, ']');
    json_t *list = parsed(out.data);
    static const char *const WANT[] = {"chat", "classify", "answer"};
    assert_int_equal(json_array_size(list), 3);
    json_array_foreach(list, i, tool)
    {
        const json_t *schema = json_object_get(tool, "inputSchema");
        assert_string_equal(json_string_value(json_object_get(tool, "name")), WANT[i]);
        assert_string_equal(json_string_value(json_object_get(schema, "type")), "object");
        assert_true(json_array_size(json_object_get(schema, "required")) > 0);
    }
    const json_t *properties =
        json_object_get(json_object_get(json_array_get(list, 1), "inputSchema"), "properties");
    const json_t *names = json_object_get(json_object_get(properties, "model"), "enum");
    assert_int_equal(json_array_size(names), 1);
    assert_string_equal(json_string_value(json_array_get(names, 0)), "kinds");
    assert_non_null(json_object_get(properties, "top_k"));
    json_decref(list);
    json_decref(models);
    json_decref(pipelines);
    buf_done(&out);
}

static void the_point_of_an_answer_is_its_text(void **state)
{
    json_t *chat = parsed("{\"choices\":[{\"message\":{\"content\":\"hello\"}}]}"),
           *classes = parsed("{\"data\":[]}");
    buf out = {0};
    mcp_tool_put_text(&out, mcp_tool_find("chat"), chat);
    assert_string_equal(out.data, "hello");
    buf_clear(&out);
    mcp_tool_put_text(&out, mcp_tool_find("classify"), classes);
    assert_string_equal(out.data, "{\"data\":[]}");
    buf_done(&out);
    json_decref(chat);
    json_decref(classes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_requests_of_ours),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_collection_cannot_name_another_path),
        cmocka_unit_test(tools_fit_what_is_served),
        cmocka_unit_test(the_point_of_an_answer_is_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
