/* Devices of a home from Home Assistant's exports: names, areas and order, whatever is missing or odd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "serve/home_export.h"

static const char *const DOMAINS[] = {"lock", "light", "cover"};

/* The devices of these documents, as JSON with single quotes. */
static char *devices_of(const char *const *documents, size_t n)
{
    home_export x = {0};
    json_t *list = NULL;
    bool known;
    for (size_t i = 0; i < n; i++) {
        char text[2048];
        json_t *j = NULL;
        snprintf(text, sizeof text, "%s", documents[i]);
        for (char *c = text; (c = strchr(c, '\''));) *c = '"';
        assert_int_equal(json_parse(&j, text, strlen(text), "x", NULL), 0);
        home_export_add(&x, j, &known);
        json_decref(j);
    }
    assert_int_equal(home_export_devices(&x, DOMAINS, 3, &list, NULL), 0);
    char *ret = json_dumps(list, JSON_COMPACT);
    assert_non_null(ret);
    for (char *c = ret; (c = strchr(c, '"'));) *c = '\'';
    json_decref(list);
    home_export_done(&x);
    return ret;
}

static void check(const char *const *documents, size_t n, const char *want)
{
    char *got = devices_of(documents, n);
    assert_string_equal(got, want);
    free(got);
}

static void states_are_devices_in_the_order_of_domains(void **state)
{
    const char *const d[] = {
        "[{'entity_id':'light.a_b','state':'on','attributes':{'friendly_name':'Lamp'}},"
        "{'entity_id':'sensor.x','state':'3','attributes':{}},{'entity_id':'lock.door_2','state':'locked'},"
        "{'entity_id':'light.a_b','state':'off'}]"};
    check(d, 1,
          "[{'id':'lock.door_2','name':'Door "
          "2','state':'locked'},{'id':'light.a_b','name':'Lamp','state':'on'}]");
}

static void registries_tell_names_areas_and_what_is_hidden(void **state)
{
    const char *const d[] = {"{'key':'core.area_registry','data':{'areas':[{'id':'k','name':'Kitchen'},{'id':"
                             "'h','name':'Hall'}]}}",
                             "{'key':'core.device_registry','data':{'devices':[{'id':'d1','area_id':'h'}]}}",
                             "{'key':'core.entity_registry','data':{'entities':["
                             "{'entity_id':'light.one','name':null,'original_name':'Ceiling','area_id':'k','"
                             "aliases':['top',7,'']},"
                             "{'entity_id':'cover.two','name':'Blind','device_id':'d1'},"
                             "{'entity_id':'light.off','disabled_by':'user'},{'entity_id':'light.not','"
                             "hidden_by':'integration'}]}}"};
    check(d, 3,
          "[{'id':'light.one','name':'Ceiling','area':'Kitchen','aliases':['top']},"
          "{'id':'cover.two','name':'Blind','area':'Hall'}]");
    const char *const with_states[] = {
        d[0], d[1], d[2],
        "[{'entity_id':'cover.two','state':'open','attributes':{'friendly_name':'B'}},"
        "{'entity_id':'light.not','state':'on'}]"};
    check(with_states, 4, "[{'id':'cover.two','name':'Blind','state':'open','area':'Hall'}]");
}

static void units_are_those_of_attributes_else_of_the_home(void **state)
{
    const char *const d[] = {
        "{'unit_system':{'temperature':'°F','length':'mi'}}",
        "[{'entity_id':'light.a','state':'on','attributes':{'temperature_unit':'°C','temperature':3}},"
        "{'entity_id':'light.b','state':'on','attributes':{'unit_of_measurement':'W'}},"
        "{'entity_id':'light.c','state':'on','attributes':{'current_temperature':70}},"
        "{'entity_id':'light.d','state':'on','attributes':{'unit_of_measurement':'much too long a unit'}},"
        "{'entity_id':'light.e','state':'on','attributes':{'unit_of_measurement':7}}]"};
    check(d, 2,
          "[{'id':'light.a','name':'A','state':'on','unit':'°C'},{'id':'light.b','name':'B','state':'on',"
          "'unit':'W'},{'id':'light.c','name':'C','state':'on','unit':'°F'},"
          "{'id':'light.d','name':'D','state':'on'},{'id':'light.e','name':'E','state':'on'}]");
}

static void domains_without_words_are_counted(void **state)
{
    home_export x = {0};
    bool known;
    json_t *left = NULL;
    json_t *states =
        json_pack("[{s:s},{s:s},{s:s},{s:s},{s:s},{s:i}]", "entity_id", "light.a", "entity_id", "update.a",
                  "entity_id", "toaster.a", "entity_id", "update.b", "entity_id", ".x", "entity_id", 3);
    json_t *registry = json_pack("{s:s,s:{s:[{s:s,s:s}]}}", "key", "core.entity_registry", "data", "entities",
                                 "entity_id", "update.b", "hidden_by", "user");
    home_export_add(&x, states, &known);
    home_export_add(&x, registry, &known);
    assert_int_equal(home_export_left_out(&x, DOMAINS, 3, &left, NULL), 0);
    char *got = json_dumps(left, JSON_COMPACT);
    assert_string_equal(got, "{\"update\":1,\"toaster\":1}");
    free(got);
    json_decref(left);
    json_decref(states);
    json_decref(registry);
    home_export_done(&x);
}

static void what_is_odd_is_left_out(void **state)
{
    const char *const d[] = {"[{'entity_id':'light.'},{'entity_id':3},7,{'entity_id':'light.x\\u0007'},"
                             "{'entity_id':'lock.y','state':{},'attributes':[]}]",
                             "{'key':'core.entity_registry','data':[]}", "{'key':7}", "[]", "{}"};
    home_export x = {0};
    bool known = true;
    json_t *j = json_pack("{s:s}", "key", "core.config");
    home_export_add(&x, j, &known);
    assert_false(known);
    json_decref(j);
    check(d, 5, "[{'id':'lock.y','name':'Y'}]");
}

static void a_nul_ends_no_name(void **state)
{
    const char *const d[] = {
        "[{'entity_id':'light.a','state':'on\\u0000','attributes':{'friendly_name':'A\\u0000B'}},"
        "{'entity_id':'light.b\\u0000'}]",
        "{'key':'core.entity_registry','data':{'entities':[{'entity_id':'light.a','area_id':7,"
        "'aliases':['a\\u0000b',7,'lamp']}]}}"};
    check(d, 2, "[{'id':'light.a','name':'A','aliases':['lamp']}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_devices_in_the_order_of_domains),
        cmocka_unit_test(registries_tell_names_areas_and_what_is_hidden),
        cmocka_unit_test(what_is_odd_is_left_out),
        cmocka_unit_test(units_are_those_of_attributes_else_of_the_home),
        cmocka_unit_test(domains_without_words_are_counted),
        cmocka_unit_test(a_nul_ends_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
