/* A model that a running server is asked to load: what may be said of it, and who would miss it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "config/config_load_request.h"

static int parse(config_load_request *l, arena *mem, const char *text, shoal_err *err)
{
    json_t *o = NULL;
    int rc = json_parse(&o, text, strlen(text), "the body", err);
    if (rc == 0) rc = config_load_request_parse(l, mem, o, err);
    json_decref(o);
    return rc;
}

static void load_reads_the_keys_of_a_model(void **state)
{
    config_load_request l;
    shoal_err err;
    arena *mem = arena_new(0);
    assert_int_equal(parse(&l, mem,
                           "{\"path\":\"a \\u00fc/b.gguf\",\"name\":\"b\",\"replicas\":2,\"threads\":3,"
                           "\"context\":64,\"kv_mb\":8,\"kv_type\":\"f16\",\"regroup\":\"s8_128\",\"keep\":"
                           "true,\"stream\":true}",
                           &err),
                     0);
    assert_string_equal(l.as.path, "a \xc3\xbc/b.gguf");
    assert_string_equal(l.as.name, "b");
    assert_null(l.what);
    assert_int_equal(l.as.replicas, 2);
    assert_int_equal(l.as.context, 64);
    assert_string_equal(tuning_kv_type_words[l.as.tuning.kv_type], "f16");
    json_t *again = config_load_request_json(&l);
    assert_string_equal(json_string_value(json_object_get(again, "kv_type")), "f16");
    assert_string_equal(tuning_regroup_words[l.as.tuning.regroup], "s8_128");
    assert_string_equal(json_string_value(json_object_get(again, "regroup")), "s8_128");
    json_decref(again);
    assert_true(l.keep && l.stream);
    assert_true(l.keep_alive_s == LOAD_REQUEST_STAYS);
    arena_free(mem);
}

static void load_says_what_is_wrong(void **state)
{
    static const char *const cases[][2] = {
        {"{}", "model: say which model"},
        {"[]", "the body must be a JSON object"},
        {"{\"model\":\"a\",\"path\":\"b\"}", "model: say which model"},
        {"{\"model\":\"\"}", "model: must not be empty"},
        {"{\"model\":1.5,\"replica\":2}", "there is no key 'replica' here; did you mean 'replicas'?"},
        {"{\"model\":\"a\",\"replicas\":0}", "replicas: must be a whole number from 1 to 64"},
        {"{\"model\":\"a\",\"replicas\":65}", "replicas: "},
        {"{\"model\":\"a\",\"replicas\":\"2\"}", "replicas: "},
        {"{\"model\":\"a\",\"name\":\"b/c\"}",
         "name: 'b/c' may hold letters, digits, '-', '_' and '.' only, and begins with a letter, a digit or "
         "'_', such as b-c; aliases"},
        {"{\"model\":\"a\",\"name\":\"..\\u0001\"}",
         "name: '..\x01' may hold letters, digits, '-', '_' and '.' only, and begins with a letter, a digit "
         "or '_'; aliases"},
        {"{\"model\":\"a\",\"sha256\":\"zz\"}", "sha256: "},
        {"{\"model\":\"a\",\"keep\":1}", "keep: "},
        {"{\"model\":\"a\",\"kv_type\":\"q8\"}", "kv_type: 'q8' is none of"},
        {"{\"model\":\"a\",\"regroup\":\"q8_0\"}", "regroup: 'q8_0' is none of"},
        {"{\"model\":[\"a\"]}", "model: must be a text"},
        {"{\"model\":\"a\",\"keep_alive_s\":0}", "keep_alive_s: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config_load_request l;
        shoal_err err = {0};
        arena *mem = arena_new(0);
        assert_int_equal(parse(&l, mem, cases[i][0], &err), SHOAL_EINVALID);
        if (strncmp(err.message, cases[i][1], strlen(cases[i][1])) != 0)
            fail_msg("%s: %s, not %s", cases[i][0], err.message, cases[i][1]);
        arena_free(mem);
    }
}

static void load_written_is_read_again(void **state)
{
    config_load_request l, again;
    shoal_err err;
    arena *mem = arena_new(0);
    assert_int_equal(
        parse(&l, mem, "{\"model\":\"hf:a/b:Q4\",\"max_batch\":4,\"keep\":true,\"keep_alive_s\":9}", &err),
        0);
    json_t *o = config_load_request_json(&l);
    assert_int_equal(config_load_request_parse(&again, mem, o, &err), 0);
    assert_string_equal(again.what, "hf:a/b:Q4");
    assert_int_equal(again.as.tuning.max_batch, 4);
    assert_int_equal(again.keep_alive_s, 9);
    assert_true(again.keep);
    json_decref(o);
    arena_free(mem);
}

static void load_names_who_uses_a_model(void **state)
{
    static const char text[] =
        "models:\n- name: a\n- name: b\n- name: c\n- name: d\n  fallback: [c]\n- name: e\n"
        "ensembles:\n- {name: both, kind: vote, members: [{model: a}, {model: b}]}\n"
        "routes:\n- {name: fast, fallback: [e]}\n";
    static const char *const users[][2] = {{"a", "the ensemble both"},
                                           {"b", "the ensemble both"},
                                           {"c", "the model d, which falls back to it,"},
                                           {"d", ""},
                                           {"e", "the route fast"},
                                           {"nobody", ""}};
    gateway_config *c;
    shoal_err err;
    char who[128];
    if (config_parse(&c, NULL, text, strlen(text), "x.yaml", &err) != 0) fail_msg("%s", err.message);
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        config_load_request_user(c, users[i][0], who, sizeof who);
        assert_string_equal(who, users[i][1]);
    }
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_reads_the_keys_of_a_model),
        cmocka_unit_test(load_says_what_is_wrong),
        cmocka_unit_test(load_written_is_read_again),
        cmocka_unit_test(load_names_who_uses_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
