/* References of JSON schemas become pointers into them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "json/json.h"
#include "json/json_refs.h"

static json_t *parse(const char *text)
{
    json_t *v = NULL;
    shoal_err err = {0};
    if (json_parse(&v, text, strlen(text), "schema", &err)) fail_msg("%s: %s", text, err.message);
    return v;
}

static void references_become_pointers(void **state)
{
    static const struct {
        const char *schema, *want;
    } cases[] = {
        {"{\"$ref\":\"#a\",\"$defs\":{\"x\":{\"$anchor\":\"a\"}}}",
         "{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"$anchor\":\"a\"}}}"},
        {"{\"$id\":\"http://x/y/a\",\"items\":{\"$ref\":\"b\"},\"$defs\":{\"x\":{\"$id\":\"b\"}}}",
         "{\"$id\":\"http://x/y/a\",\"items\":{\"$ref\":\"#/$defs/x\"},\"$defs\":{\"x\":{\"$id\":\"b\"}}}"},
        {"{\"$id\":\"http://x/y/a\",\"items\":{\"$ref\":\"/z#q\"},\"$defs\":{\"x\":{\"$id\":\"http://x/"
         "z\",\"not\":{\"$anchor\":\"q\"}}}}",
         "{\"$id\":\"http://x/y/a\",\"items\":{\"$ref\":\"#/$defs/x/not\"},\"$defs\":{\"x\":{\"$id\":\"http:/"
         "/x/z\",\"not\":{\"$anchor\":"
         "\"q\"}}}}"},
        /* a pointer begins at the nearest "$id" */
        {"{\"$defs\":{\"x\":{\"$id\":\"b\",\"$ref\":\"#/$defs/y\",\"$defs\":{\"y\":{}}}}}",
         "{\"$defs\":{\"x\":{\"$id\":\"b\",\"$ref\":\"#/$defs/x/$defs/y\",\"$defs\":{\"y\":{}}}}}"},
        {"{\"$ref\":\"u:x#/not\",\"$defs\":{\"a/b~%\":{\"$id\":\"u:x\",\"not\":{}}}}",
         "{\"$ref\":\"#/$defs/a~1b~0%25/not\",\"$defs\":{\"a/b~%\":{\"$id\":\"u:x\",\"not\":{}}}}"},
        {"{\"items\":{\"$dynamicRef\":\"#n\"},\"$dynamicAnchor\":\"n\"}",
         "{\"items\":{\"$ref\":\"#\"},\"$dynamicAnchor\":\"n\"}"},
        {"{\"$recursiveAnchor\":true,\"items\":{\"$recursiveRef\":\"#\"}}",
         "{\"$recursiveAnchor\":true,\"items\":{\"$ref\":\"#\"}}"},
        {"{\"$schema\":\"http://json-schema.org/draft-04/schema#\",\"id\":\"http://x/"
         "\",\"items\":{\"$ref\":\"k\"},\"definitions\":{\"d\":"
         "{\"id\":\"k\"}}}",
         "{\"$schema\":\"http://json-schema.org/draft-04/schema#\",\"id\":\"http://x/"
         "\",\"items\":{\"$ref\":\"#/definitions/d\"},"
         "\"definitions\":{\"d\":{\"id\":\"k\"}}}"},
        /* what is no schema, and what leads elsewhere or to several places, stays */
        {"{\"const\":{\"$ref\":\"#a\"},\"properties\":{\"$anchor\":{\"$anchor\":\"a\"}}}", NULL},
        {"{\"$ref\":\"#none\"}", NULL},
        {"{\"$ref\":\"http://elsewhere/a\"}", NULL},
        {"{\"items\":{\"$dynamicRef\":\"#n\"},\"$dynamicAnchor\":\"n\",\"$defs\":{\"x\":{\"$dynamicAnchor\":"
         "\"n\"}}}",
         NULL},
        {"{\"$ref\":\"#/$defs/x\",\"$id\":\"http://x\",\"$defs\":{\"x\":{}}}", NULL},
        {"true", NULL},
        {"[{\"$ref\":3,\"$id\":[],\"$anchor\":{}}]", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *schema = parse(cases[i].schema), *before = json_deep_copy(schema),
               *got = json_refs_resolve(schema);
        json_t *want = parse(cases[i].want ? cases[i].want : cases[i].schema);
        char *text = json_dumps(got, JSON_COMPACT | JSON_ENCODE_ANY);
        if (!json_equal(got, want)) fail_msg("%s becomes %s", cases[i].schema, text);
        assert_true(json_equal(schema, before));
        free(text);
        json_decref(schema);
        json_decref(before);
        json_decref(want);
        json_decref(got);
    }
}

static void pointers_are_followed(void **state)
{
    static const struct {
        const char *ref, *want;
    } cases[] = {{"#", "{\"a/b\":[7,{\"~\":8}],\"%41\":9}"},
                 {"#/a~1b/0", "7"},
                 {"#/a%2Fb/0", "7"},
                 {"#/a~1b/1/~0", "8"},
                 {"#/%2541", "9"},
                 {"#/a~1b/2", NULL},
                 {"#/none/x", NULL},
                 {"#a", NULL},
                 {"a", NULL},
                 {"", NULL}};
    json_t *root = parse(cases[0].want);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *want = NULL;
        if (cases[i].want) want = json_loads(cases[i].want, JSON_DECODE_ANY, NULL);
        const json_t *got = json_refs_follow(root, cases[i].ref);
        if (want ? !json_equal(got, want) : got != NULL) fail_msg("%s", cases[i].ref);
        json_decref(want);
    }
    json_decref(root);
}

static void old_drafts_are_told(void **state)
{
    static const char *const OLD[] = {"3", "4", "6", "7"};
    for (size_t i = 0; i < 4; i++) {
        json_t *s = json_pack("{s:s++}", "$schema", "http://json-schema.org/draft-0", OLD[i], "/schema#");
        assert_true(json_refs_stand_alone(s));
        json_decref(s);
    }
    json_t *now = json_pack("{s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema");
    assert_false(json_refs_stand_alone(now));
    json_decref(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_become_pointers),
        cmocka_unit_test(pointers_are_followed),
        cmocka_unit_test(old_drafts_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
