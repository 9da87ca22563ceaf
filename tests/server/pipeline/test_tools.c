/* What a stage's tools are for the devices of a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "json/json.h"
#include "pipeline/pipeline_tools.h"

static const config_device DEVICES[] = {
    {.id = "light.kitchen", .name = "Kitchen Light", .state = "", .area = "kitchen"},
    {.id = "fan.kitchen", .name = "Fan", .state = "", .area = "kitchen"},
    {.id = "light.hall", .name = "Hall \"big\"", .state = ""},
};

static void expect(const char *parameters, const char *named, size_t n_devices, const char *json)
{
    stage_tool tools[] = {{.name = "f", .parameters = parameters}, {.name = "g", .description = "any"}};
    config_stage st = {.tools = tools, .n_tools = 2, .tool_choice = named};
    json_t *got = NULL;
    buf text = {0};
    shoal_err err;
    if (pipeline_check_tools(&st, "", &err) != 0) fail_msg("%s: %s", parameters, err.message);
    assert_int_equal(pipeline_offer_tools(&got, &st, DEVICES, n_devices, &err), 0);
    json_put(&text, got);
    assert_string_equal(text.data, json);
    buf_done(&text);
    json_decref(got);
}

#define F(p) "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"strict\":true,\"parameters\":" p "}}"
#define G    "{\"type\":\"function\",\"function\":{\"name\":\"g\",\"strict\":true,\"description\":\"any\"}}"

static void devices_become_values(void **state)
{
    expect(
        "{\"properties\":{\"a\":{\"enum_of\":\"devices\"}}}", NULL, 3,
        "[" F("{\"properties\":{\"a\":{\"enum\":[\"light.kitchen\",\"fan.kitchen\",\"light.hall\"]}}}") "," G
                                                                                                        "]");
    expect(
        "{\"properties\":{\"a\":{\"enum_of\":\"light.*\",\"type\":\"string\"}}}", "f", 3,
        "[" F(
            "{\"properties\":{\"a\":{\"type\":\"string\",\"enum\":[\"light.kitchen\",\"light.hall\"]}}}") "]");
    expect("{\"properties\":{\"a\":{\"enum_of\":\"areas\"}},\"required\":[\"a\"]}", "required", 3,
           "[" F("{\"properties\":{\"a\":{\"enum\":[\"kitchen\"]}},\"required\":[\"a\"]}") "," G "]");
    expect("{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"enum_of\":\"names\"}}}}", "f", 3,
           "[" F("{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"enum\":[\"Kitchen "
                 "Light\",\"Fan\",\"Hall "
                 "\\\"big\\\"\"]}}}}") "]");
}

static void what_no_device_is_for_is_not_offered(void **state)
{
    expect("{\"properties\":{\"a\":{\"enum_of\":\"lock.*\"},\"b\":{\"type\":\"integer\"}}}", "f", 3,
           "[" F("{\"properties\":{\"b\":{\"type\":\"integer\"}}}") "]");
    expect("{\"properties\":{\"a\":{\"enum_of\":\"lock.*\"}},\"required\":[\"a\"]}", NULL, 3, "[" G "]");
    expect("{\"properties\":{\"a\":{\"enum_of\":\"lock.*\"}},\"required\":[\"a\"]}", "f", 3, "[]");
    expect("{\"properties\":{\"a\":{\"properties\":{\"b\":{\"enum_of\":\"devices\"}},\"required\":[\"b\"]}},"
           "\"required\":[\"a\"]}",
           NULL, 0, "[" G "]");
}

static void all_tools_are_there_to_be_looked_at(void **state)
{
    stage_tool tool = {.name = "f",
                       .parameters = "{\"properties\":{\"a\":{\"enum_of\":\"x.*\"}},\"required\":[\"a\"]}"};
    config_stage st = {.tools = &tool, .n_tools = 1};
    json_t *got = NULL;
    assert_int_equal(pipeline_all_tools(&got, &st, NULL), 0);
    assert_int_equal(json_array_size(got), 1);
    json_decref(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_become_values),
        cmocka_unit_test(what_no_device_is_for_is_not_offered),
        cmocka_unit_test(all_tools_are_there_to_be_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
