/* A generate stage with tools: what goes to the model, and what becomes of its calls. */
#include "fake_calls.h"

#include "json/json.h"
#include "stages/stages.h"

static const char YAML[] =
    "models: [{name: m}]\n"
    "pipelines:\n"
    "  - name: p\n"
    "    devices: [{id: light.a, name: A}, {id: light.b, name: B}]\n"
    "    stages:\n"
    "      - name: act\n"
    "        kind: generate\n"
    "        model: m\n"
    "        tools:\n"
    "          - name: on\n"
    "            parameters: {type: object, properties: {target: {enum_of: 'light.*'}}, required: [target]}\n"
    "          - name: off\n"
    "            parameters: {type: object, properties: {target: {enum_of: 'fan.*'}}, required: [target]}\n"
    "        %s\n";

typedef struct bench {
    fake_calls b;
    gateway_config *config;
    process_input in;
    process_run *run;
    int n_done;
    char message[200];
    json_t *answer;
} bench;

static void on_done(void *user, const process_outcome *o)
{
    bench *t = user;
    t->n_done++;
    t->answer = process_outcome_json(o);
    if (o->failed) snprintf(t->message, sizeof t->message, "%s: %s", o->failed->name, o->failure->message);
}

static bench *start(const char *more, const char *body)
{
    bench *t = calloc(1, sizeof *t);
    buf yaml = {0};
    shoal_err err = {0};
    api_error e = {0};
    buf_printf(&yaml, YAML, more);
    if (config_parse(&t->config, &SERVER_STAGES, yaml.data, yaml.len, "t.yaml", &err))
        fail_msg("%s", err.message);
    if (process_parse(&t->in, t->config, body, strlen(body), &e)) fail_msg("%s", e.message);
    call_context ctx = {.request_id = "r1"};
    t->in.time = fake_time();
    assert_int_equal(process_run_start(&t->run, &t->in, fake_calls_init(&t->b), &ctx, on_done, t, NULL), 0);
    fake_turns();
    buf_done(&yaml);
    return t;
}

static void stop(bench *t)
{
    if (!t->n_done) process_run_cancel(t->run);
    fake_calls_done(&t->b);
    json_decref(t->answer);
    process_input_done(&t->in);
    config_free(t->config);
    free(t);
}

static void expect_json(const json_t *got, const char *json)
{
    buf text = {0};
    json_put(&text, got);
    assert_string_equal(text.data, json);
    buf_done(&text);
}

#define CHOICE(name) SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__##name

static void the_devices_of_the_request_are_the_values(void **state)
{
    bench *t = start("tool_choice: required", "{\"input\":\"x\"}");
    assert_int_equal(t->b.calls[0].tool_choice, CHOICE(TOOL_REQUIRED));
    assert_string_equal(
        t->b.calls[0].tools,
        "[{\"type\":\"function\",\"function\":{\"name\":\"on\",\"strict\":true,\"parameters\":{\"type\":"
        "\"object\",\"properties\":{\"target\":{\"enum\":[\"light.a\",\"light.b\"]}},\"required\":["
        "\"target\"]}}}]");
    say_call(&t->b.calls[0], "", "on", "{\"target\":", 0);
    say_call(&t->b.calls[0], "", "", "\"light.b\"}", 0);
    end_reply(&t->b.calls[0], 0.9);
    expect_json(json_object_get(t->answer, "calls"),
                "[{\"name\":\"on\",\"arguments\":{\"target\":\"light.b\"}}]");
    expect_json(json_object_get(json_array_get(json_object_get(t->answer, "trace"), 0), "calls"),
                "[{\"name\":\"on\",\"arguments\":{\"target\":\"light.b\"}}]");
    expect_json(json_object_get(t->answer, "tool_call"),
                "{\"name\":\"on\",\"arguments\":{\"target\":\"light.b\"}}");
    stop(t);
    t = start("tool_choice: 'off'", "{\"input\":\"x\",\"devices\":[{\"id\":\"fan.c\",\"name\":\"C\"}]}");
    assert_int_equal(t->b.calls[0].tool_choice, CHOICE(TOOL_NAMED));
    assert_non_null(strstr(t->b.calls[0].tools, "\"enum\":[\"fan.c\"]"));
    stop(t);
}

static void text_without_a_call_is_an_answer_without_calls(void **state)
{
    bench *t = start("parallel_tool_calls: true", "{\"input\":\"x\"}");
    assert_int_equal(t->b.calls[0].tool_choice, CHOICE(TOOL_AUTO));
    say_call(&t->b.calls[0], "No.", NULL, NULL, 0);
    end_reply(&t->b.calls[0], 0.9);
    expect_json(json_object_get(t->answer, "calls"), "[]");
    stop(t);
}

static void without_a_device_nothing_can_be_called(void **state)
{
    static const char BODY[] = "{\"input\":\"x\",\"devices\":[{\"id\":\"lock.c\",\"name\":\"C\"}]}";
    bench *t = start("max_tokens: 9", BODY);
    assert_int_equal(t->b.calls[0].tool_choice, CHOICE(TOOL_NONE));
    assert_string_equal(t->b.calls[0].tools, "");
    stop(t);
    t = start("tool_choice: required", BODY);
    assert_int_equal(t->b.n, 0);
    assert_int_equal(t->n_done, 1);
    assert_non_null(strstr(t->message, "act: it has to call a tool, and none is for the devices"));
    stop(t);
    t = start("tool_choice: none", "{\"input\":\"x\"}");
    assert_int_equal(t->b.calls[0].tool_choice, CHOICE(TOOL_NONE));
    stop(t);
}

static void half_a_call_is_none(void **state)
{
    bench *t = start("tool_choice: required", "{\"input\":\"x\"}");
    say_call(&t->b.calls[0], "", "on", "{\"target\":", 0);
    end_reply(&t->b.calls[0], 0.9);
    assert_non_null(strstr(t->message, "act: the reply ended within a call: give it more max_tokens"));
    stop(t);
    t = start("optional: true", "{\"input\":\"x\"}");
    say_call(&t->b.calls[0], "", "on", "{\"target\":", 0);
    end_reply(&t->b.calls[0], 0.9);
    expect_json(json_object_get(t->answer, "calls"), "[]");
    stop(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_devices_of_the_request_are_the_values),
        cmocka_unit_test(text_without_a_call_is_an_answer_without_calls),
        cmocka_unit_test(without_a_device_nothing_can_be_called),
        cmocka_unit_test(half_a_call_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
