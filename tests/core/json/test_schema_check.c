/* schema_check.h: values that obey schemas and values that do not, and what cannot be told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "json/schema_check.h"

/* Each text is one JSON document; `broken` NULL where it obeys. */
typedef struct row {
    const char *schema, *value, *where, *broken;
} row;

static const row ROWS[] = {
    {"true", "1", "", NULL},
    {"false", "1", "", "false"},
    {"{\"type\":\"integer\"}", "1.0", "", NULL},
    {"{\"type\":[\"null\",\"integer\"]}", "1.5", "", "type"},
    {"{\"const\":{\"a\":[1,2]}}", "{\"a\":[1.0,2]}", "", NULL},
    {"{\"const\":{\"a\":1}}", "{\"a\":1,\"b\":1}", "", "const"},
    {"{\"const\":9007199254740993}", "9007199254740992.0", "", "const"},
    {"{\"const\":9007199254740992}", "9007199254740992.0", "", NULL},
    {"{\"enum\":[\"a\",null]}", "null", "", NULL},
    {"{\"enum\":[\"a\",null]}", "false", "", "enum"},
    {"{\"minimum\":2,\"maximum\":3}", "2", "", NULL},
    {"{\"minimum\":2,\"exclusiveMinimum\":true}", "2", "", "minimum"},
    {"{\"exclusiveMaximum\":3}", "3", "", "exclusiveMaximum"},
    {"{\"multipleOf\":0.01}", "8.52", "", NULL},
    {"{\"multipleOf\":0.01}", "8.525", "", "multipleOf"},
    {"{\"minLength\":2}", "\"\xc3\xa4\"", "", "minLength"},
    {"{\"maxLength\":1}", "\"\xc3\xa4\"", "", NULL},
    {"{\"pattern\":\"\\\\bon\\\\b\"}", "\"turn on\"", "", NULL},
    {"{\"pattern\":\"\\\\bon\\\\b\"}", "\"one\"", "", "pattern"},
    {"{\"pattern\":\"^a$\"}", "\"a\\n\"", "", "pattern"},
    {"{\"pattern\":\"^\\\\d$\"}", "\"\xd9\xa1\"", "", "pattern"}, /* an Arabic one is no \d of ECMA-262 */
    {"{\"pattern\":\"^\\\\u00e4$\"}", "\"\xc3\xa4\"", "", NULL},
    {"{\"pattern\":\"^\\\\u{1F600}$\"}", "\"\xF0\x9F\x98\x80\"", "", NULL},
    {"{\"pattern\":\"^\\\\s[\\\\s]$\"}", "\"\xC2\xA0\xE2\x80\xA9\"", "",
     NULL}, /* a blank that does not break, U+2029 */
    {"{\"pattern\":\"\\\\S\"}", "\"\xEF\xBB\xBF \"", "", "pattern"},
    {"{\"pattern\":\"^\\\\v$\"}", "\"\\n\"", "", "pattern"},
    {"{\"pattern\":\"^[^]$\"}", "\"]\"", "", NULL},
    {"{\"pattern\":\"[]\"}", "\"a\"", "", "pattern"},
    {"{\"prefixItems\":[{\"type\":\"null\"}],\"items\":false}", "[null]", "", NULL},
    {"{\"prefixItems\":[{\"type\":\"null\"}],\"items\":false}", "[null,1]", "/1", "false"},
    {"{\"items\":[{\"const\":1}],\"additionalItems\":{\"const\":2}}", "[1,2,3]", "/2", "const"},
    {"{\"uniqueItems\":true}", "[1,\"1\",[1],{\"a\":1}]", "", NULL},
    {"{\"uniqueItems\":true}", "[{\"a\":1,\"b\":2},{\"b\":2.0,\"a\":1}]", "", "uniqueItems"},
    {"{\"contains\":{\"const\":7}}", "[1,7]", "", NULL},
    {"{\"contains\":{\"const\":7}}", "[1]", "", "contains"},
    {"{\"contains\":{\"const\":7},\"minContains\":0}", "[1]", "", NULL},
    {"{\"contains\":{\"const\":7},\"maxContains\":1}", "[7,7]", "", "contains"},
    {"{\"minItems\":1}", "[]", "", "minItems"},
    {"{\"properties\":{\"a\":{\"items\":{\"type\":\"null\"}}}}", "{\"a\":[null,0]}", "/a/1", "type"},
    {"{\"required\":[\"a\"]}", "{\"b\":1}", "", "required"},
    {"{\"required\":[\"a\"]}", "[]", "", NULL},
    {"{\"properties\":{\"a\":true},\"patternProperties\":{\"^x\":{\"type\":\"null\"}},"
     "\"additionalProperties\":false}",
     "{\"a\":1,\"x1\":null}", "", NULL},
    {"{\"patternProperties\":{\"^x\":{\"type\":\"null\"}}}", "{\"x1\":1}", "/x1", "type"},
    {"{\"patternProperties\":{\"^x\":true},\"additionalProperties\":false}", "{\"y\":1}", "/y", "false"},
    {"{\"propertyNames\":{\"maxLength\":1}}", "{\"ab\":1}", "", "propertyNames"},
    {"{\"minProperties\":2}", "{\"ab\":1}", "", "minProperties"},
    {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "", "dependentRequired"},
    {"{\"dependentSchemas\":{\"a\":{\"maxProperties\":1}}}", "{\"a\":1,\"b\":1}", "", "maxProperties"},
    {"{\"dependencies\":{\"a\":[\"b\"]}}", "{\"a\":1,\"b\":1}", "", NULL},
    {"{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}", "3", "", "maximum"},
    {"{\"anyOf\":[{\"type\":\"null\"},{\"minimum\":1}]}", "1", "", NULL},
    {"{\"anyOf\":[{\"type\":\"null\"},{\"minimum\":1}]}", "0", "", "anyOf"},
    {"{\"oneOf\":[{\"minimum\":1},{\"minimum\":2}]}", "3", "", "oneOf"},
    {"{\"oneOf\":[{\"minimum\":1},{\"minimum\":2}]}", "1", "", NULL},
    {"{\"not\":{\"const\":1}}", "1", "", "not"},
    {"{\"if\":{\"minimum\":5},\"then\":{\"multipleOf\":2},\"else\":{\"const\":1}}", "6", "", NULL},
    {"{\"if\":{\"minimum\":5},\"then\":{\"multipleOf\":2},\"else\":{\"const\":1}}", "7", "", "multipleOf"},
    {"{\"if\":{\"minimum\":5},\"then\":{\"multipleOf\":2},\"else\":{\"const\":1}}", "2", "", "const"},
    {"{\"$ref\":\"#/$defs/a~1b\",\"$defs\":{\"a/"
     "b\":{\"properties\":{\"k\":{\"$ref\":\"#\"}},\"required\":[\"k\"]}}}",
     "{\"k\":{\"x\":1}}", "/k", "required"},
    {"{\"$id\":\"http://x/"
     "a\",\"$ref\":\"b#n\",\"$defs\":{\"q\":{\"$id\":\"b\",\"$anchor\":\"n\",\"const\":1}}}",
     "2", "", "const"},
    {"{\"$recursiveAnchor\":true,\"items\":{\"$recursiveRef\":\"#\"},\"maxItems\":1}", "[[1,2]]", "/0",
     "maxItems"},
    /* beside a reference, only newer drafts say anything */
    {"{\"$ref\":\"#/$defs/q\",\"maximum\":1,\"$defs\":{\"q\":{}}}", "2", "", "maximum"},
    {"{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"$ref\":\"#/definitions/"
     "q\",\"maximum\":1,\"definitions\":{\"q\":{}}}",
     "2", "", NULL},
    {"{\"format\":\"email\",\"x-other\":1}", "\"no mail\"", "", NULL},
    {"{\"properties\":{\"a\":{\"type\":\"integer\"}}}", "{\"a\":\"x\",\"b\":0,\"a\":1}", "", NULL},
    {"{\"properties\":{\"a\":{\"type\":\"integer\"}}}", "{\"a\":1,\"a\":\"x\"}", "/a", "type"},
};

static void schema_check_tells_what_obeys(void **state)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const row *r = &ROWS[i];
        char key[64];
        schema_verdict v;
        json_t *schema = json_loads(r->schema, JSON_DECODE_ANY, NULL);
        assert_non_null(schema);
        schema_check_text(&v, schema, r->value, strlen(r->value));
        snprintf(key, sizeof key, "(\"%s\")", r->broken ? r->broken : "");
        bool right = v.outcome == (r->broken ? SCHEMA_BROKEN : SCHEMA_OBEYED) &&
                     (!r->broken || strstr(v.why, key)) && strcmp(v.where, r->where) == 0;
        if (!right) fail_msg("%s of %s: %d at '%s': %s", r->value, r->schema, (int)v.outcome, v.where, v.why);
        json_decref(schema);
    }
}

static void schema_check_does_not_guess(void **state)
{
    static const char *const SCHEMAS[] = {
        "{\"unevaluatedProperties\":false}",
        "{\"$ref\":\"other.json\"}",
        "{\"$ref\":\"#/$defs/none\"}",
        "{\"$ref\":\"#\"}", /* round and round */
        "{\"pattern\":\"(\"}",
        "{\"pattern\":\"^(a+)+$\"}", /* too much work for this text */
        "{\"anyOf\":[{\"$dynamicRef\":\"#x\"},true]}",
        "{\"items\":{},\"$recursiveRef\":\"#\",\"$defs\":{\"a\":{\"$id\":\"u:x\"}}}",
        "{\"properties\":7,\"items\":7,\"not\":7}",
    };
    static const char TEXT[] = "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"";
    for (size_t i = 0; i < sizeof SCHEMAS / sizeof *SCHEMAS; i++) {
        schema_verdict v;
        buf out = {0};
        json_t *schema = json_loads(SCHEMAS[i], 0, NULL);
        schema_check_text(&v, schema, TEXT, strlen(TEXT));
        if (v.outcome != SCHEMA_UNKNOWN) fail_msg("%s: %d %s", SCHEMAS[i], (int)v.outcome, v.why);
        schema_verdict_put(&out, &v);
        assert_non_null(strstr(out.data, "{\"valid\":null,\"at\":"));
        buf_done(&out);
        json_decref(schema);
    }
}

static void schema_check_ends(void **state)
{
    schema_verdict v;
    buf value = {0};
    json_t *schema = json_loads("{\"uniqueItems\":true}", 0, NULL);
    buf_puts(&value, "[0");
    for (int i = 1; i < 3000; i++) buf_printf(&value, ",%d", i);
    buf_putc(&value, ']');
    schema_check_text(&v, schema, value.data, value.len);
    assert_int_equal(v.outcome, SCHEMA_UNKNOWN); /* 4.5 million pairs */
    schema_check_text(&v, schema, "[1", 2);
    assert_int_equal(v.outcome, SCHEMA_BROKEN);
    assert_string_equal(v.why, "it is no JSON document");
    buf_done(&value);
    json_decref(schema);
}

/* A list of n equal texts. */
static void put_list(buf *out, const char *text, int n)
{
    for (int i = 0; i < n; i++) buf_printf(out, "%s%s", i ? "," : "[", text);
    buf_putc(out, ']');
}

/* n references to one definition, each of which fails. */
static json_t *referring(int n, const char *definition)
{
    buf b = {0};
    buf_puts(&b, "{\"anyOf\":");
    put_list(&b, "{\"$ref\":\"#/$defs/r\"}", n);
    buf_printf(&b, ",\"$defs\":{\"r\":%s}}", definition);
    json_t *schema = json_loads(b.data, 0, NULL);
    buf_done(&b);
    assert_non_null(schema);
    return schema;
}

static void assert_too_much(int n, const char *definition, const char *value)
{
    schema_verdict v;
    json_t *schema = referring(n, definition);
    schema_check_text(&v, schema, value, strlen(value));
    if (v.outcome != SCHEMA_UNKNOWN || !strstr(v.why, "too much work"))
        fail_msg("%d times %.60s: %d %s", n, definition, (int)v.outcome, v.why);
    json_decref(schema);
}

/* What one schema asks for counts, however few schemas there are. */
static void schema_check_counts_the_work_within(void **state)
{
    static const struct {
        const char *head, *item, *tail;
    } LISTS[] = {{"{\"type\":", "\"\"", "}"},
                 {"{\"not\":{},\"required\":", "\"a\"", "}"},
                 {"{\"not\":{},\"dependencies\":{\"a\":", "\"a\"", "}}"}};
    buf b = {0};
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        buf_clear(&b);
        buf_puts(&b, LISTS[i].head);
        put_list(&b, LISTS[i].item, 700);
        buf_printf(&b, "%s", LISTS[i].tail);
        assert_too_much(900, b.data, "{\"a\":1}");
    }
    buf_clear(&b);
    buf_printf(&b, "\"%0*d\"", 40000, 0);
    assert_too_much(900, "{\"minLength\":50000}", b.data);
    buf_clear(&b);
    buf_printf(&b, "{\"pattern\":\"%0*d\"}", 4000, 0);
    assert_too_much(100, b.data, "\"a\"");
    assert_too_much(900, "{\"pattern\":\"(?:(?:bc){40}){40}\"}", "\"a\"");
    buf_clear(&b); /* below PCRE2's own limit at each place, and square in the text's length */
    buf_printf(&b, "\"%0*d\"", 1600, 0);
    assert_too_much(20, "{\"pattern\":\"(0|1)*[xy]\"}", b.data);
    assert_too_much(20, "{\"pattern\":\"[01]*[02]*[xy]\"}", b.data);
    buf_done(&b);
}

static void schema_check_ends_soon(void **state)
{
    buf b = {0};
    buf_puts(&b, "{\"type\":");
    put_list(&b, "\"\"", 700000);
    buf_putc(&b, '}');
    assert_too_much(90000, b.data, "1");
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schema_check_tells_what_obeys),
        cmocka_unit_test(schema_check_does_not_guess),
        cmocka_unit_test(schema_check_ends),
        cmocka_unit_test(schema_check_counts_the_work_within),
        cmocka_unit_test(schema_check_ends_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
