/* grammar_relax.h: what goes of a schema that cannot be enforced, by the refusals of the compiler itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "grammar/automaton/grammar_nfa.h"
#include "grammar/grammar_relax.h"
#include "grammar/grammar_schema.h"

static int compile(const json_t *schema, shoal_err *err)
{
    int start;
    nfa *a = nfa_new();
    assert_non_null(a);
    int rc = schema_compile_json(a, schema, "json_schema", 0, &start, err);
    nfa_free(a);
    return rc;
}

static void relax_leaves_what_can_be_enforced(void **state)
{
    static const char *const CASES[][2] = {
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"uniqueItems\":true}",
         "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}"},
        {"{\"properties\":{\"a~/"
         "b\":{\"type\":\"string\",\"not\":{\"uniqueItems\":true},\"pattern\":\"\\\\p{L}\"}}}",
         "{\"properties\":{\"a~/b\":{\"type\":\"string\"}}}"},
        {"{\"items\":{\"type\":\"null\"},\"oneOf\":[{\"items\":{\"maxItems\":1}},{\"items\":{\"maxItems\":2}}"
         "]}",
         "{\"items\":{\"type\":\"null\"},\"anyOf\":[{\"items\":{\"maxItems\":1}},{\"items\":{\"maxItems\":2}}"
         "]}"},
        {"{\"anyOf\":[{\"type\":\"object\",\"unevaluatedItems\":false,\"patternProperties\":{\"(?<=x)\":true}"
         "},{\"type\":"
         "\"null\"}]}",
         "{\"anyOf\":[{\"type\":\"object\"},{\"type\":\"null\"}]}"},
        {"{\"type\":\"object\",\"patternProperties\":{\"(?<=x)\":true},\"additionalProperties\":false}",
         "{\"type\":\"object\"}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        shoal_err err = {0};
        json_t *schema = json_loads(CASES[i][0], 0, NULL);
        int rc;
        while ((rc = compile(schema, &err)) == SHOAL_EUNSUPPORTED)
            assert_true(schema_relax(schema, &err, false));
        assert_int_equal(rc, 0);
        char *left = json_dumps(schema, JSON_COMPACT);
        assert_string_equal(left, CASES[i][1]);
        free(left);
        json_decref(schema);
    }
}

static void relax_keeps_names_of_properties(void **state)
{
    static const char *const CASES[][3] = {
        {"{\"properties\":{\"not\":{\"type\":\"string\"}}}", "#/properties/not",
         "{\"properties\":{\"not\":{}}}"},
        {"{\"properties\":{\"properties\":{\"not\":1}}}", "#/properties/properties/not",
         "{\"properties\":{\"properties\":{}}}"},
        {"{\"items\":[{\"not\":1}]}", "#/items/0", "{\"items\":[{}]}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        shoal_err err;
        json_t *schema = json_loads(CASES[i][0], 0, NULL);
        err_set(&err, SHOAL_EUNSUPPORTED, "json_schema: at \"%s\": cannot be enforced", CASES[i][1]);
        assert_true(schema_relax(schema, &err, false));
        char *left = json_dumps(schema, JSON_COMPACT);
        assert_string_equal(left, CASES[i][2]);
        free(left);
        json_decref(schema);
    }
}

static void relax_takes_a_keyword_from_everywhere(void **state)
{
    static const char SCHEMA[] =
        "{\"properties\":{\"a\":{\"not\":{}},\"not\":{\"not\":{}},\"b\":{\"items\":[{\"not\":{}},true]}}}";
    static const char LEFT[] = "{\"properties\":{\"a\":{},\"not\":{},\"b\":{\"items\":[{},true]}}}";
    shoal_err err;
    json_t *schema = json_loads(SCHEMA, 0, NULL);
    err_set(&err, SHOAL_EUNSUPPORTED, "json_schema: at \"#/properties/a/not\": no");
    assert_true(schema_relax(schema, &err, true));
    char *left = json_dumps(schema, JSON_COMPACT);
    assert_string_equal(left, LEFT);
    free(left);
    json_decref(schema);
}

static void relax_leaves_data_and_what_is_denied(void **state)
{
    static const char *const CASES[][2] = {
        {"{\"pattern\":\"p\",\"const\":{\"pattern\":1}}", "{\"const\":{\"pattern\":1}}"},
        {"{\"pattern\":\"p\",\"items\":{\"enum\":[{\"pattern\":1}],\"pattern\":\"q\"}}",
         "{\"items\":{\"enum\":[{\"pattern\":1}]}}"},
        {"{\"pattern\":\"p\",\"default\":{\"pattern\":1},\"examples\":[{\"pattern\":1}]}",
         "{\"default\":{\"pattern\":1},\"examples\":[{\"pattern\":1}]}"},
        {"{\"pattern\":\"p\",\"not\":{\"pattern\":\"q\"},\"if\":{\"pattern\":\"q\"}}",
         "{\"not\":{\"pattern\":\"q\"},\"if\":{\"pattern\":\"q\"}}"},
        {"{\"pattern\":\"p\",\"properties\":{\"const\":{\"pattern\":\"q\"}}}",
         "{\"properties\":{\"const\":{}}}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        shoal_err err;
        json_t *schema = json_loads(CASES[i][0], 0, NULL);
        err_set(&err, SHOAL_EUNSUPPORTED, "json_schema: at \"#/pattern\": no");
        assert_true(schema_relax(schema, &err, true));
        char *left = json_dumps(schema, JSON_COMPACT);
        assert_string_equal(left, CASES[i][1]);
        free(left);
        json_decref(schema);
    }
}

static void relax_says_when_the_pointer_leads_nowhere(void **state)
{
    static const char *const SAID[] = {"json_schema: too large",      "json_schema: at \"#\": no",
                                       "json_schema: at \"#/b\": no", "json_schema: at \"#/a/b/c\": no",
                                       "json_schema: at \"#/a",       "json_schema: at \"#/\": no"};
    for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++) {
        shoal_err err;
        json_t *schema = json_loads("{\"a\":1}", 0, NULL);
        err_set(&err, SHOAL_EUNSUPPORTED, "%s", SAID[i]);
        assert_false(schema_relax(schema, &err, false));
        assert_int_equal(json_object_size(schema), 1);
        json_decref(schema);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relax_leaves_what_can_be_enforced),
        cmocka_unit_test(relax_keeps_names_of_properties),
        cmocka_unit_test(relax_takes_a_keyword_from_everywhere),
        cmocka_unit_test(relax_leaves_data_and_what_is_denied),
        cmocka_unit_test(relax_says_when_the_pointer_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
