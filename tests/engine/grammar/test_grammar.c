/* grammar: which bytes and tokens a JSON schema allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "base/file.h"
#include "grammar/grammar.h"
#include "grammar/automaton/grammar_nfa.h"
#include "grammar/grammar_schema.h"
#include "grammar/grammar_tools.h"

/* 1: a whole document, 0: the start of one, -1: not allowed, -2: the schema is refused, or for an empty text
 * admits nothing */
static int verdict_with(unsigned flags, const char *schema, const char *text)
{
    nfa *a = nfa_new();
    int start, result = -2;
    shoal_err err = {0};
    if (schema_compile(a, schema, flags, &start, &err) == 0 && nfa_seal(a)) {
        int config = nfa_begin(a, start);
        if (config == NFA_DEAD && !*text) config = -2;
        for (const char *p = text; *p && config >= 0; p++) config = nfa_step(a, config, (uint8_t)*p);
        result = config < 0 ? config : nfa_accepts(a, config);
    }
    nfa_free(a);
    return result;
}

static int verdict(const char *schema, const char *text)
{
    return verdict_with(0, schema, text);
}

/* Lengths beside a format: some of its texts are enough, and each is as long as it must be. */
static void formats_have_lengths(void **state)
{
#define TWENTY "aaaaaaaaaaaaaaaaaaaa"
#define SIXTY  TWENTY TWENTY TWENTY
#define URI    "\"https://shoal.example/" SIXTY SIXTY "?q=1#top\""
#define LONG   SIXTY "aaa"
    static const struct {
        const char *schema, *text;
        int want;
    } cases[] = {
        {"{\"format\":\"uri\",\"minLength\":1,\"maxLength\":2083}", URI, 1},
        {"{\"format\":\"uri\",\"maxLength\":255}", URI, 1},
        {"{\"format\":\"uri\",\"maxLength\":200}", URI, 1},
        {"{\"format\":\"uri\",\"maxLength\":100}", URI, -1},
        {"{\"format\":\"email\",\"maxLength\":254}", "\"first.last+tag@mail.shoal.example\"", 1},
        {"{\"format\":\"email\",\"maxLength\":320}", "\"" SIXTY "@" SIXTY ".co.uk\"", 1},
        {"{\"format\":\"email\",\"maxLength\":320}", "\"" SIXTY "aaaaa", -1},
        {"{\"format\":\"email\",\"minLength\":6,\"maxLength\":100}", "\"first.last@mail.shoal.example\"", 1},
        {"{\"format\":\"email\",\"minLength\":6,\"maxLength\":100}", "\"a@b.c\"", -1},
        {"{\"format\":\"email\",\"minLength\":100}", "\"" SIXTY "@" SIXTY ".com\"", 1},
        {"{\"format\":\"hostname\",\"minLength\":250}", "\"" LONG "." LONG "." LONG "." SIXTY "\"", 1},
        {"{\"format\":\"hostname\",\"minLength\":250}", "\"" LONG "." LONG "." LONG "." TWENTY "\"", -1},
        {"{\"format\":\"hostname\",\"minLength\":2,\"maxLength\":20}", "\"a.shoal.example\"", 1},
        {"{\"format\":\"hostname\",\"maxLength\":255}", "\"a.shoal.example\"", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int got = verdict(cases[i].schema, cases[i].text);
        if (got != cases[i].want) fail_msg("%s %s: %d", cases[i].schema, cases[i].text, got);
    }
}

static void expect_error(const char *schema, int code, const char *says)
{
    nfa *a = nfa_new();
    int start;
    shoal_err err = {0};
    int rc = schema_compile(a, schema, 0, &start, &err);
    nfa_free(a);
    if (rc != code || !strstr(err.message, says)) fail_msg("%s: %d %s", schema, rc, err.message);
}

/* Whatever is refused is refused where it stands, and for what it is. */
static void errors_say_where_and_why(void **state)
{
    expect_error("{\"properties\":{\"a\":{\"format\":\"uri\",\"minLength\":900}}}", SHOAL_ELIMIT,
                 "\"#/properties/a\"");
    expect_error("{\"properties\":{\"a\":{\"const\":18446744073709551615}}}", SHOAL_EUNSUPPORTED,
                 "\"#/properties/a/const\": it has a number that is not between");
    expect_error("{\"properties\":{\"a\":{\"enum\":[1,{\"b\":[-9223372036854775809]}]}}}", SHOAL_EUNSUPPORTED,
                 "\"#/properties/a/enum\"");
    expect_error("{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,9223372036854775808]}}",
                 SHOAL_EUNSUPPORTED, "\"#/items/enum\"");
    expect_error("{\"type\":\"integer\",\"minimum\":1000000000000000000}", SHOAL_EUNSUPPORTED,
                 "\"#/minimum\": \"minimum\" leaves only numbers of more than 18 digits");
    expect_error("{\"type\":\"integer\",\"maximum\":-1000000000000000000}", SHOAL_EUNSUPPORTED, "18 digits");
    assert_int_equal(verdict("{\"const\":9223372036854775807}", "9223372036854775807"), 1);
    assert_int_equal(verdict("{\"type\":\"integer\",\"minimum\":999999999999999999}", "999999999999999999"),
                     1);
    assert_int_equal(verdict("{\"type\":\"integer\",\"minimum\":999999999999999999}", "99999999999999999"),
                     0);
    assert_int_equal(verdict("{\"type\":\"integer\",\"maximum\":-999999999999999999}", "-999999999999999999"),
                     1);
}

/* 1 and 1.0 are one value, wherever they stand. */
static void equal_numbers_are_one_item(void **state)
{
#define DIFFERENT(values) \
    "{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":2,\"items\":{\"enum\":" values "}}"
    static const struct {
        const char *schema, *text;
        int want;
    } cases[] = {
        {DIFFERENT("[1,1.0]"), "", -2},
        {DIFFERENT("[0,-0.0]"), "", -2},
        {DIFFERENT("[{\"x\":1},{\"x\":1.0}]"), "", -2},
        {DIFFERENT("[[1,2],[1.0,2]]"), "", -2},
        {DIFFERENT("[1,1.0,2]"), "[1,2]", 1},
        {DIFFERENT("[[1,2],[2,1]]"), "[[1,2],[2,1]]", 1},
        {DIFFERENT("[9007199254740993,9007199254740992.0]"), "[9007199254740993,9007199254740992]", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int got = verdict(cases[i].schema, cases[i].text);
        if (got != cases[i].want) fail_msg("%s %s: %d", cases[i].schema, cases[i].text, got);
    }
}

/* What a closed schema takes, and what an open one does. */
static void open_schemas_take_other_properties(void **state)
{
    static const char AB[] =
        "{\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"object\",\"properties\":"
        "{\"c\":{\"type\":\"null\"}}}},\"required\":[\"a\"]}",
                      CLOSED[] = "{\"properties\":{\"a\":{}},\"additionalProperties\":false}",
                      EITHER[] = "{\"oneOf\":[{\"properties\":{\"a\":{}},\"required\":[\"a\"]},"
                                 "{\"properties\":{\"b\":{\"multipleOf\":0.5}},\"required\":[\"b\"]}]}",
                      COUNTED[] = "{\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"minProperties\":2}",
                      AT_MOST[] = "{\"properties\":{\"a\":{}},\"maxProperties\":2}";
    static const struct {
        const char *schema, *text;
        int closed, open;
    } cases[] = {
        {AB, "{\"a\":1}", 1, 1},
        {AB, "{\"a\":1,\"x\":[2]}", -1, 1},
        {AB, "{\"x\":2,\"a\":1}", -1, 1},
        {AB, "{\"x\":2,\"a\":1,\"y\":{},\"b\":{\"d\":1},\"z\":{}}", -1, 1},
        {AB, "{\"x\":2}", -1, -1},
        {AB, "{\"a\":\"1\"", -1, -1},
        {AB, "{\"x\":2,\"a\":true", -1, -1},
        {AB, "{\"a\":1,\"b\":{\"c\":2", -1, -1},
        {CLOSED, "{\"x\"", -1, -1},
        {EITHER, "{\"a\":1}", 1, 1},
        {EITHER, "{\"a\":1,\"b\"", -1, -1}, /* both branches would hold */
        {COUNTED, "{\"a\":1,\"c\":1}", 1, 1},
        {COUNTED, "{\"a\":1}", -1, -1},
        {COUNTED, "{\"x\":1", -1, -1}, /* it might come twice, which counts once */
        {AT_MOST, "{\"a\":1,\"x\":1}", -1, 1},
        {AT_MOST, "{\"x\":1,\"y\":1}", -1, 1},
        {AT_MOST, "{\"x\":1,\"a\":1,\"y\"", -1, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned open = 0; open < 2; open++) {
            int want = open ? cases[i].open : cases[i].closed;
            int got = verdict_with(open ? SCHEMA_OPEN : 0, cases[i].schema, cases[i].text);
            if (got != want) fail_msg("%s %s (open %u): %d", cases[i].schema, cases[i].text, open, got);
        }
}

#define UNIQUE(items, more) "{\"type\":\"array\",\"uniqueItems\":true,\"items\":" items more "}"
#define TEN                 "{\"enum\":[0,1,2,3,4,5,6,7,8,9]}"
#define FORTY                                                                                               \
    "{\"enum\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33," \
    "34,35,36,37,38,39,40]}"

static void items_of_few_values_differ(void **state)
{
    static const struct {
        const char *schema, *text;
        int want;
    } cases[] = {
        {UNIQUE("{\"type\":\"boolean\"}", ""), "[true,false]", 1},
        {UNIQUE("{\"type\":\"boolean\"}", ""), "[]", 1},
        {UNIQUE("{\"type\":\"boolean\"}", ""), "[true,t", -1},
        {UNIQUE("{\"type\":\"boolean\"}", ""), "[false,true,", -1},
        {UNIQUE("{\"type\":[\"boolean\",\"null\"]}", ""), "[null,true,false]", 1},
        {UNIQUE("{\"type\":[\"boolean\",\"null\"]}", ""), "[null,n", -1},
        {UNIQUE("{\"type\":\"boolean\"}", ",\"minItems\":3"), "", -2},
        {UNIQUE("{\"type\":\"integer\",\"minimum\":-1,\"exclusiveMaximum\":3}", ""), "[2,-1,0,1]", 1},
        {UNIQUE("{\"type\":\"integer\",\"minimum\":-1,\"exclusiveMaximum\":3}", ""), "[2,0,2", -1},
        {UNIQUE("{\"type\":\"integer\",\"minimum\":-1,\"exclusiveMaximum\":3}", ""), "[3", -1},
        {UNIQUE("{\"type\":\"integer\",\"minimum\":0.5,\"maximum\":40,\"multipleOf\":10}", ""),
         "[40,10,30,20]", 1},
        {UNIQUE("{\"type\":\"integer\",\"minimum\":0.5,\"maximum\":40,\"multipleOf\":10}", ""), "[40,10,4",
         -1},
        {UNIQUE("{\"type\":\"integer\",\"minimum\":0}", ""), "", -2},
        {UNIQUE("{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000}", ""), "", -2},
        {UNIQUE("{\"type\":\"number\",\"minimum\":0,\"maximum\":1}", ""), "", -2},
        {UNIQUE("{\"anyOf\":[{\"type\":\"null\"},{\"const\":7}]}", ""), "[7,null]", 1},
        {UNIQUE("{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\"}]}", ""), "", -2},
        {UNIQUE(TEN, ""), "[9,8,7,6,5,4,3,2,1,0]", 1},
        {UNIQUE(TEN, ""), "[9,8,7,9", -1},
        {UNIQUE(TEN, ",\"minItems\":2"), "[9]", -1},
        {UNIQUE(FORTY, ""), "", -2},
        {UNIQUE(FORTY, ",\"maxItems\":2"), "[40,1]", 1},
        {UNIQUE(FORTY, ",\"maxItems\":2"), "[4,40]", 1},
        {UNIQUE(FORTY, ",\"maxItems\":2"), "[4,4]", -1},
        {UNIQUE(FORTY, ",\"maxItems\":2"), "[40,40", -1},
        {UNIQUE(FORTY, ",\"maxItems\":2"), "[40,1,", -1},
        {UNIQUE(FORTY, ",\"maxItems\":2,\"minItems\":2"), "[17,23]", 1},
        {UNIQUE("{\"type\":\"string\"}", ",\"maxItems\":2"), "", -2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int got = verdict(cases[i].schema, cases[i].text);
        if (got != cases[i].want) fail_msg("%s %s: %d", cases[i].schema, cases[i].text, got);
    }
}

/* What the order of properties is must not depend on where the schema lies in memory: a reply may go on on
 * another machine. */
static void order_is_that_of_the_schema(void **state)
{
    for (int swapped = 0; swapped < 2; swapped++) {
        json_t *of[2] = {json_pack("{s:{s:{}}, s:[s]}", "properties", "a", "required", "a"),
                         json_pack("{s:{s:{}}, s:[s]}", "properties", "b", "required", "b")};
        json_t *first = of[swapped], *second = of[!swapped];
        json_t *schema = json_pack("{s:[{s:{s:o}}, {s:{s:o}}]}", "allOf", "properties", "x", first,
                                   "properties", "x", second);
        nfa *a = nfa_new();
        shoal_err err = {0};
        int start;
        assert_int_equal(schema_compile_json(a, schema, "x", 0, &start, &err), 0);
        assert_true(nfa_seal(a));
        for (int b_first = 0; b_first < 2; b_first++) {
            const char *text = b_first ? "{\"x\":{\"b\":1,\"a\":2}}" : "{\"x\":{\"a\":1,\"b\":2}}";
            int config = nfa_begin(a, start);
            for (const char *p = text; *p; p++) config = nfa_step(a, config, (uint8_t)*p);
            assert_int_equal(nfa_accepts(a, config), b_first == swapped);
        }
        nfa_free(a);
        json_decref(schema);
    }
}

static void any_object_is_json(void **state)
{
    static const struct {
        const char *text;
        int want;
    } cases[] = {
        {"{}", 1},
        {"{\"a\": 1}", 1},
        {"{\"a\":[1,2,{\"b\":null}],\"c\":\"x\\n\\u00e9\"}", 1},
        {"{\"a\"", 0},
        {"[", -1},
        {"{\"a\":01}", -1},
        {"{\"a\":-0.5e+3}", 1},
        {"{\"a\":1,}", -1},
        {"{a:1}", -1},
        {"{\"\x01", -1},
        {"{\"\xC3\xA9\":true}", 1},
        {"{\"\xC3\"", -1},
        {"{\"\\ud800", -1},
        {"{\n  \"a\": false\n}", 1},
        {"{}}", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (verdict(NULL, cases[i].text) != cases[i].want)
            fail_msg("%s: %d", cases[i].text, verdict(NULL, cases[i].text));
}

static const char *const light =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4},"
    "\"on\":{\"type\":\"boolean\"},\"level\":{\"type\":\"integer\",\"minimum\":0},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\",3]},\"minItems\":1,\"maxItems\":2}},"
    "\"required\":[\"name\",\"level\"],\"additionalProperties\":false}";

static void schema_is_enforced(void **state)
{
    static const struct {
        const char *text;
        int want;
    } cases[] = {
        {"{\"name\": \"x\", \"level\": 3}", 1},
        {"{\"name\":\"x\",\"on\":true,\"level\":0,\"tags\":[\"a\",3]}", 1},
        {"{\"level\":3", -1},
        {"{\"name\":\"\"", -1},
        {"{\"name\":\"abcde", -1},
        {"{\"name\":\"x\",\"on\":true}", -1},
        {"{\"name\":\"x\",\"level\":-", -1},
        {"{\"name\":\"x\",\"level\":3,\"tags\":[]", -1},
        {"{\"name\":\"x\",\"level\":3,\"tags\":[\"a\",\"b\",", -1},
        {"{\"name\":\"x\",\"level\":3,\"other\"", -1},
        {"{\"name\":\"\xF0\x9F\x98\x80\",\"level\":12}", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (verdict(light, cases[i].text) != cases[i].want)
            fail_msg("%s: %d", cases[i].text, verdict(light, cases[i].text));
}

/* More values than a configuration has room for threads. */
static void long_enums_keep_every_value(void **state)
{
    buf schema = {0};
    buf_puts(&schema, "{\"enum\":[1,12,\"a\"");
    for (int i = 0; i < 5000; i++) buf_printf(&schema, ",\"a%05d\"", i);
    buf_puts(&schema, "]}");
    static const char *const values[] = {"1", "12", "\"a\"", "\"a00000\"", "\"a02500\"", "\"a04999\""};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (verdict(schema.data, values[i]) != 1) fail_msg("%s is not allowed", values[i]);
    assert_int_equal(verdict(schema.data, "\"a0"), 0);
    assert_int_equal(verdict(schema.data, "\"a05"), -1);
    assert_int_equal(verdict(schema.data, "13"), -1);
    buf_done(&schema);
}

static void schemas_may_refer_to_themselves(void **state)
{
    const char *list =
        "{\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"number\"},"
        "\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/node\"},{\"type\":\"null\"}]}},"
        "\"required\":[\"v\",\"next\"]}},\"$ref\":\"#/$defs/node\"}";
    assert_int_equal(verdict(list, "{\"v\":1,\"next\":{\"v\":2.5,\"next\":null}}"), 1);
    assert_int_equal(verdict(list, "{\"v\":1,\"next\":3"), -1);
    /* A reference that never reads a byte says nothing; one that can never end admits nothing. */
    assert_int_equal(verdict("{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/a\"}},\"$ref\":\"#/$defs/a\"}", "1"), -2);
    assert_int_equal(verdict("{\"$defs\":{\"a\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/a\"},"
                             "\"minItems\":1}},\"$ref\":\"#/$defs/a\"}",
                             "["),
                     -1);
}

/* Keywords beside a choice, a reference or a list of values hold as well. */
static void what_stands_beside_counts(void **state)
{
    static const struct {
        const char *schema, *text;
        int want;
    } cases[] = {
        {"{'type':'object','required':['a'],'properties':{'a':{'type':'null'}},'anyOf':[{'type':'string'}]}",
         "", -2},
        {"{'type':['string','null'],'anyOf':[{'type':'string'},{'type':'object'}]}", "n", -1},
        {"{'type':'object','properties':{'a':{'type':'null'},'b':{'type':'null'}},'anyOf':[{'required':['a']}"
         ","
         "{'required':['b']}]}",
         "{}", -1},
        {"{'type':'object','properties':{'a':{'type':'null'},'b':{'type':'null'}},'anyOf':[{'required':['a']}"
         ","
         "{'required':['b']}]}",
         "{'b':null}", 1},
        {"{'$defs':{'s':{'type':'string'}},'$ref':'#/$defs/s','maxLength':1}", "'ab", -1},
        {"{'$defs':{'s':{'type':'string'}},'$ref':'#/$defs/s','description':'x'}", "'ab'", 1},
        {"{'type':'integer','enum':[1,'a',2.5]}", "1", 1},
        {"{'type':'integer','enum':[1,'a',2.5]}", "'a", -1},
        {"{'enum':[1,5,9],'minimum':2,'maximum':8}", "5", 1},
        {"{'enum':[1,5,9],'minimum':2,'maximum':8}", "9", -1},
        {"{'const':'abc','maxLength':2}", "", -2},
        {"{'const':{'a':[1,{'b':2}],'c':{}}}", "{'a':[1,{'b':2}],'c':{}}", 1},
        {"{'const':{'a':[1,{'b':2}],'c':{}}}", "{'a': [1, {'b': 2}], 'c': {}}", 1},
        {"{'const':{'a':[1,{'b':2}],'c':{}}}", "{\n  'a': [\n    1,\n    {'b': 2}\n  ],\n  'c': {}\n}", 1},
        {"{'const':{'a':[1,{'b':2}],'c':{}}}", "{'a': [1, {'b': 3", -1},
        {"{'const':{'a':1}}", "{'a':  ", -1},
        {"{'not':{'type':'string'}}", "'a", -1},
        {"{'not':{'type':'string'}}", "3", 1},
        {"{'not':{'type':['object','array']},'type':['object','null']}", "{", -1},
        {"{'not':{'enum':['a','b.c',1,null]}}", "'ab'", 1},
        {"{'not':{'enum':['a','b.c',1,null]}}", "'b.c'", -1},
        {"{'not':{'enum':['a','b.c',1,null]}}", "'bxc'", 1},
        {"{'not':{'enum':['a','b.c',1,null]}}", "1", 0},
        {"{'not':{'enum':['a','b.c',1,null]}}", "1.5", 1},
        {"{'not':{'enum':['a','b.c',1,null]}}", "n", -1},
        {"{'not':{'const':true}}", "false", 1},
        {"{'not':{'const':true}}", "t", -1},
        {"{'type':'string','not':{'const':''}}", "''", -1},
        {"{'type':'object','additionalProperties':true,'not':{'const':{}}}", "{}", -1},
        {"{'type':'string','not':{'pattern':'^a|b$'}}", "'ax", -1},
        {"{'type':'string','not':{'pattern':'^a|b$'}}", "'xb'", -1},
        {"{'type':'string','not':{'pattern':'^a|b$'}}", "'xbx'", 1},
        {"{'type':'integer','not':{'minimum':5}}", "5", -1},
        {"{'type':'integer','not':{'minimum':5}}", "4", 1},
        {"{'type':'string','not':{'minLength':2}}", "'ab", -1},
        {"{'properties':{'a':true,'b':true},'not':{'required':['a','b']}}", "{'a':1,'b'", -1},
        {"{'properties':{'a':true,'b':true},'not':{'required':['a','b']}}", "{'b':1}", 1},
        {"{'properties':{'a':{'enum':[1,2]}},'not':{'properties':{'a':{'const':1}}}}", "{'a':1", -1},
        {"{'properties':{'a':{'enum':[1,2]}},'not':{'properties':{'a':{'const':1}}}}", "{}", -1},
        {"{'properties':{'a':{'enum':[1,2]}},'not':{'properties':{'a':{'const':1}}}}", "{'a':2}", 1},
        {"{'not':{'anyOf':[{'type':'null'},{'not':{'type':'integer'}}]}}", "7", 1},
        {"{'not':{'anyOf':[{'type':'null'},{'not':{'type':'integer'}}]}}", "'", -1},
        {"{'type':'array','not':{'contains':{'type':'null'}}}", "[null", -1},
        {"{'type':'array','not':{'contains':{'type':'null'}}}", "[1, 'x']", 1},
        {"{'allOf':[{'properties':{'a':{}}}],'properties':{'b':{}},'unevaluatedProperties':false}",
         "{\"b\":1,\"a\":2}", 1},
        {"{'allOf':[{'properties':{'a':{}}}],'properties':{'b':{}},'unevaluatedProperties':false}",
         "{\"c\":1", -1},
        {"{'type':'object','required':['z'],'properties':{'a':{}},'unevaluatedProperties':{'type':'null'}}",
         "{\"a\":1,\"z\":null}", 1},
        {"{'type':'object','required':['z'],'properties':{'a':{}},'unevaluatedProperties':{'type':'null'}}",
         "{\"z\":1", -1},
        {"{'type':'object','required':['z'],'properties':{'a':{}},'unevaluatedProperties':{'type':'null'}}",
         "{\"z\":null,\"y\":null}", 1},
        {"{'type':'array','prefixItems':[{'type':'null'}],'minItems':1,'unevaluatedItems':false}", "[null]",
         1},
        {"{'type':'array','prefixItems':[{'type':'null'}],'minItems':1,'unevaluatedItems':false}", "[null,1",
         -1},
        {"{'contains':{'const':1}}", "[]", -1},
        {"{'contains':{'const':1}}", "[2,1,3,1]", 1},
        {"{'contains':{'const':1}}", "[2,3]", -1},
        {"{'contains':{'const':1},'maxItems':2}", "[2,3", -1},
        {"{'items':{'type':'integer'},'contains':{'minimum':5},'minContains':2,'maxContains':3}", "[9,8,7]",
         1},
        {"{'items':{'type':'integer'},'contains':{'minimum':5},'minContains':2,'maxContains':3}", "[9,1]",
         -1},
        {"{'items':{'type':'integer'},'contains':{'minimum':5},'minContains':2,'maxContains':3}", "[9,8,7,1]",
         1},
        {"{'items':{'type':'integer'},'contains':{'minimum':5},'minContains':2,'maxContains':3}", "[9,8,7,6]",
         -1},
        {"{'contains':{'type':'null'},'minContains':0}", "[]", 1},
        {"{'type':'array','contains':{'not':{}}}", "[", -1},
        {"{'$defs':{'n':{'minimum':3}},'type':'integer','not':{'$ref':'#/$defs/n'}}", "2", 1},
        {"{'$defs':{'n':{'minimum':3}},'type':'integer','not':{'$ref':'#/$defs/n'}}", "4", -1},
        {"{'properties':{'k':{'enum':['a','b']},'x':{'type':'integer'}},'required':['k'],"
         "'if':{'properties':{'k':{'const':'a'}}},'then':{'required':['x']},'else':{'properties':{'x':false}}"
         "}",
         "{'k':'a'}", -1},
        {"{'properties':{'k':{'enum':['a','b']},'x':{'type':'integer'}},'required':['k'],"
         "'if':{'properties':{'k':{'const':'a'}}},'then':{'required':['x']},'else':{'properties':{'x':false}}"
         "}",
         "{'k':'a','x':1}", 1},
        {"{'properties':{'k':{'enum':['a','b']},'x':{'type':'integer'}},'required':['k'],"
         "'if':{'properties':{'k':{'const':'a'}}},'then':{'required':['x']},'else':{'properties':{'x':false}}"
         "}",
         "{'k':'b','x'", -1},
        {"{'properties':{'a':true,'b':true},'dependentRequired':{'a':['b']}}", "{'a':1}", -1},
        {"{'properties':{'a':true,'b':true},'dependentRequired':{'a':['b']}}", "{'a':1,'b':1}", 1},
        {"{'properties':{'a':true,'b':true},'dependentRequired':{'a':['b']}}", "{'b':1}", 1},
        {"{'properties':{'a':true,'b':true},'dependencies':{'a':{'properties':{'b':{'type':'null'}}}}}",
         "{'a':1,'b':1", -1},
        {"{'properties':{'a':true,'b':true},'dependencies':{'a':{'properties':{'b':{'type':'null'}}}}}",
         "{'b':1}", 1},
        {"{'oneOf':[{'type':'integer'},{'type':'number','minimum':2}]}", "1", 1},
        {"{'oneOf':[{'type':'integer'},{'type':'number','minimum':2}]}", "2", -1},
        {"{'properties':{'a':true,'b':true},'oneOf':[{'required':['a']},{'required':['b']}]}", "{'a':1}", 1},
        {"{'properties':{'a':true,'b':true},'oneOf':[{'required':['a']},{'required':['b']}]}", "{'b':1}", 1},
        {"{'properties':{'a':true,'b':true},'oneOf':[{'required':['a']},{'required':['b']}]}", "{'a':1,", -1},
        {"{'properties':{'a':true,'b':true},'oneOf':[{'required':['a']},{'required':['b']}]}", "{}", -1},
        {"{'patternProperties':{'^S_':{'type':'string'},'^I_':{'type':'integer'}}}", "{'S_1':'x', 'I_':1}",
         1},
        {"{'patternProperties':{'^S_':{'type':'string'},'^I_':{'type':'integer'}}}", "{'S_1':1", -1},
        {"{'patternProperties':{'^S_':{'type':'string'}}}", "{'X", -1},
        {"{'patternProperties':{'^S_':{'type':'string'}}}", "{}", 1},
        {"{'patternProperties':{'^S_':{'type':'string'}},'additionalProperties':{'type':'integer'}}",
         "{'X':1}", 1},
        {"{'patternProperties':{'^S_':{'type':'string'}},'additionalProperties':{'type':'integer'}}",
         "{'X':'", -1},
        {"{'patternProperties':{'a':{'minimum':2},'b':{'type':'integer'}}}", "{'ab':3}", 1},
        {"{'patternProperties':{'a':{'minimum':2},'b':{'type':'integer'}}}", "{'ab':1}", -1},
        {"{'patternProperties':{'a':{'minimum':2},'b':{'type':'integer'}}}", "{'b':1}", 1},
        {"{'properties':{'ab':{'maximum':9}},'patternProperties':{'a':{'type':'integer'}},'"
         "additionalProperties':false}",
         "{'ab':5,'a':12}", 1},
        {"{'properties':{'ab':{'maximum':9}},'patternProperties':{'a':{'type':'integer'}},'"
         "additionalProperties':false}",
         "{'ab':12", -1},
        {"{'properties':{'ab':{'maximum':9}},'patternProperties':{'a':{'type':'integer'}},'"
         "additionalProperties':false}",
         "{'b'", -1},
        {"{'patternProperties':{'^x':false},'additionalProperties':true}", "{'x", -1},
        {"{'patternProperties':{'^x':false},'additionalProperties':true}", "{'yx':[1]}", 1},
        {"{'allOf':[{'patternProperties':{'^x':true}},{'additionalProperties':false}]}", "{'x", -1},
        {"{'patternProperties':{'^x':{'type':'null'}},'required':['x1']}", "{}", -1},
        {"{'patternProperties':{'^x':{'type':'null'}},'required':['x1']}", "{'x1':null,'x2':null}", 1},
        {"{'const':{'xy':1},'patternProperties':{'^x':{'type':'string'}}}", "", -2},
        {"{'const':{'xy':'1'},'patternProperties':{'^x':{'type':'string'}},'additionalProperties':false}",
         "{'xy':'1'}", 1},
        {"{'enum':[[1,2],[1,3],{'x':'y'},[1]]}", "[1, 3]", 1},
        {"{'enum':[[1,2],[1,3],{'x':'y'},[1]]}", "[1 ", -1},
        {"{'enum':[[1,2],[1,3],{'x':'y'},[1]]}", "[1]", 1},
        {"{'enum':[[1,2],[1,3],{'x':'y'},[1]]}", "[1, 4", -1},
        {"{'allOf':[{'type':'number'},{'type':'integer'}],'exclusiveMaximum':3}", "2", 1},
        {"{'allOf':[{'type':'number'},{'type':'integer'}],'exclusiveMaximum':3}", "3", -1},
        {"{'type':'string','pattern':'^a','minLength':3,'format':'colour'}", "'ab'", -1},
        {"{'type':'string','pattern':'^a','minLength':3,'format':'colour'}", "'abc'", 1},
        {"{'properties':{'a':{'type':'string'},'b':{'type':'null'}},'required':['b'],"
         "'additionalProperties':{'type':'integer'}}",
         "{'b':null,'a':1", -1},
        {"{'properties':{'a':{'type':'string'},'b':{'type':'null'}},'required':['b'],"
         "'additionalProperties':{'type':'integer'}}",
         "{'b':null,'\\u0061':1", -1},
        {"{'properties':{'a':{'type':'string'},'b':{'type':'null'}},'required':['b'],"
         "'additionalProperties':{'type':'integer'}}",
         "{'a':'x','b':null,'aa':1,'bb':2}", 1},
        {"{'oneOf':[{'type':'string'},{'type':'null'}]}", "null", 1},
        {"{'format':'time'}", "'12:30'", -1},
        {"{'format':'time','pattern':'^[0-9:]{5}$'}", "'12:30'", 1},
        {"{'type':'string','not':{}}", "", -2},
        {"{'items':false}", "[]", 1},
        {"{'items':false}", "[1", -1},
        {"{'prefixItems':[{'type':'null'}],'items':{'type':'boolean'},'minItems':1}", "[null,true,false]", 1},
        {"{'prefixItems':[{'type':'null'}]}", "[null,", -1},
        {"{'type':'object','properties':{}}", "{}", 1},
        {"{'type':'object','properties':{}}", "{'", -1},
        {"{'type':'object'}", "{'a':[1]}", 1},
        {"{'type':'string','pattern':'^\\\\s.$'}", "'\\n\\''", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char schema[512], text[64];
        for (size_t k = 0; k <= strlen(cases[i].schema); k++)
            schema[k] = cases[i].schema[k] == '\'' ? '"' : cases[i].schema[k];
        for (size_t k = 0; k <= strlen(cases[i].text); k++)
            text[k] = cases[i].text[k] == '\'' ? '"' : cases[i].text[k];
        int got = verdict(schema, text);
        if (got != cases[i].want) fail_msg("%s: %s: %d", schema, text, got);
    }
}

/* Alternatives that admit nothing must not push those aside that do. */
static void impossible_alternatives_take_no_room(void **state)
{
    buf schema = {0};
    buf_puts(&schema, "{\"anyOf\":[");
    for (int i = 0; i < 1100; i++)
        buf_printf(&schema, "{\"type\":\"array\",\"minItems\":%d,\"items\":false},", i + 1);
    buf_puts(&schema, "true]}");
    assert_int_equal(verdict(schema.data, "{\"a\":[1]}"), 1);
    assert_int_equal(verdict(schema.data, "[[[[]]]]"), 1);
    buf_done(&schema);
}

/* Work is counted in edges of the automaton, which no machine makes more or less of. */
static void strings_that_differ_in_length_cost_no_more_than_one(void **state)
{
    buf schema = {0};
    buf_puts(&schema, "{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"null\"}");
    for (int i = 1; i < 334; i++)
        buf_printf(&schema, ",{\"type\":\"string\",\"minLength\":%d,\"maxLength\":%d}", i / 2, i);
    buf_puts(&schema, "]}}");
    nfa *a = nfa_new();
    shoal_err err = {0};
    int start;
    assert_int_equal(schema_compile(a, schema.data, 0, &start, &err), 0);
    assert_true(nfa_seal(a));
    int config = nfa_begin(a, start);
    /* A fifth of it is enough; one thread a length took some hundred times as much. */
    const uint64_t most = 500000;
    nfa_allow(a, most);
    for (int i = 0; i < 300 && config >= 0; i++) {
        for (int b = 0; b < 256; b++) nfa_step(a, config, (uint8_t)b); /* as a mask does */
        config = nfa_step(a, config, (uint8_t)(i < 2 ? "[\""[i] : 'x'));
    }
    assert_true(config >= 0);
    assert_int_equal(nfa_stopped(a), NFA_FINE);
    nfa_free(a);
    buf_done(&schema);
}

static void unsupported_keywords_are_named(void **state)
{
    static const struct {
        const char *schema, *pointer;
        int rc;
    } cases[] = {
        {"{\"properties\":{\"a/b\":{\"type\":\"string\",\"pattern\":\"(a)\\\\1\"}}}",
         "#/properties/a~1b/pattern", SHOAL_EUNSUPPORTED},
        {"{\"type\":\"string\",\"pattern\":\"(?:a(?=b))+\"}", "lookahead", SHOAL_EUNSUPPORTED},
        {"{\"type\":\"string\",\"pattern\":\"(?<=a)b\"}", "lookbehind", SHOAL_EUNSUPPORTED},
        {"{\"type\":\"string\",\"pattern\":\"a(?<!b)\"}", "lookbehind", SHOAL_EUNSUPPORTED},
        {"{\"type\":\"string\",\"pattern\":\"a(b\"}", "without its", SHOAL_EINVALID},
        {"{\"type\":\"string\",\"pattern\":\"((((a{1000}){1000}){1000}){1000})\"}", "too complex",
         SHOAL_ELIMIT},
        {"{\"type\":\"string\",\"pattern\":\"(a|b)*a(a|b){30}\"}", "too complex", SHOAL_ELIMIT},
        {"{\"type\":\"integer\",\"multipleOf\":1234567}", "#/multipleOf", SHOAL_EUNSUPPORTED},
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"uniqueItems\":true}", "#/uniqueItems",
         SHOAL_EUNSUPPORTED},
        {"{\"anyOf\":[{\"not\":{\"uniqueItems\":true}}]}", "#/anyOf/0/not\": \"uniqueItems\"",
         SHOAL_EUNSUPPORTED},
        {"{\"not\":{\"properties\":{\"a\":{\"items\":{\"type\":\"null\"}}}}}", "#/not\": \"items\"",
         SHOAL_EUNSUPPORTED},
        {"{\"not\":{\"const\":{\"a\":1}}}", "#/not\": \"const\"", SHOAL_EUNSUPPORTED},
        {"{\"not\":3}", "#/not", SHOAL_EINVALID},
        {"{\"if\":{\"multipleOf\":2},\"then\":{\"type\":\"null\"}}", "#/if\": \"multipleOf\"",
         SHOAL_EUNSUPPORTED},
        {"{\"dependentRequired\":{\"a\":3}}", "#/dependentRequired", SHOAL_EINVALID},
        {"{\"$defs\":{\"a\":{\"not\":{\"$ref\":\"#/$defs/a\"}}},\"$ref\":\"#/$defs/a\"}", "#/",
         SHOAL_EINVALID},
        {"{\"items\":{\"patternProperties\":{\"(?<=a)\":true}}}", "#/items/patternProperties",
         SHOAL_EUNSUPPORTED},
        {"{\"patternProperties\":{\"a(\":true}}", "#/patternProperties", SHOAL_EINVALID},
        {"{\"patternProperties\":[]}", "#/patternProperties", SHOAL_EINVALID},
        {"{\"patternProperties\":{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1}}",
         "#/patternProperties", SHOAL_ELIMIT},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\",\"multipleOf\":2}]}", "#/oneOf",
         SHOAL_EUNSUPPORTED},
        {"{\"type\":\"object\",\"minProperties\":5,\"additionalProperties\":true}", "#/minProperties",
         SHOAL_EUNSUPPORTED},
        {"{\"unevaluatedProperties\":false,\"not\":{\"required\":[\"a\"]}}", "#/unevaluatedProperties",
         SHOAL_EUNSUPPORTED},
        {"{\"allOf\":[{\"unevaluatedItems\":false},{\"prefixItems\":[{}]}]}", "#/allOf/0/unevaluatedItems",
         SHOAL_EUNSUPPORTED},
        {"{\"contains\":{},\"unevaluatedItems\":false}", "#/contains", SHOAL_EUNSUPPORTED},
        {"{\"contains\":{},\"minContains\":99}", "#/contains", SHOAL_ELIMIT},
        {"{\"const\":{},\"unevaluatedProperties\":false}", "#/unevaluatedProperties", SHOAL_EUNSUPPORTED},
        {"{\"type\":\"thing\"}", "#/type", SHOAL_EINVALID},
        {"{\"$ref\":\"#/$defs/none\"}", "#/$ref", SHOAL_EINVALID},
        {"{\"$ref\":\"other.json\"}", "#/$ref", SHOAL_EINVALID},
        {"{\"enum\":[]}", "#/enum", SHOAL_EINVALID},
        {"nonsense", "JSON", SHOAL_EINVALID},
        {"[]", "#", SHOAL_EINVALID},
        {"{\"type\":\"object\",\"required\":[3]}", "#/required", SHOAL_EINVALID},
        {"{\"type\":\"string\",\"minLength\":-5}", "#/minLength", SHOAL_EINVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nfa *a = nfa_new();
        shoal_err err = {0};
        int start;
        int rc = schema_compile(a, cases[i].schema, 0, &start, &err);
        if (rc != cases[i].rc) fail_msg("%s: %d %s", cases[i].schema, rc, err.message);
        if (!strstr(err.message, cases[i].pointer)) fail_msg("%s: %s", cases[i].schema, err.message);
        nfa_free(a);
    }
}

/* The same as verdict() for a form that is no schema; -2 when it does not compile. */
static int form_verdict(const grammar_spec *spec, const char *text, shoal_err *err)
{
    nfa *a = nfa_new();
    int start, result = -2;
    int rc = spec->kind == GRAMMAR_TOOLS ? tools_compile(a, spec, &start, err)
                                         : choices_compile(a, spec, &start, err);
    if (rc == 0 && nfa_seal(a)) {
        int config = nfa_begin(a, start);
        for (const char *p = text; *p && config != NFA_DEAD; p++) config = nfa_step(a, config, (uint8_t)*p);
        result = config == NFA_DEAD ? -1 : nfa_accepts(a, config);
    }
    nfa_free(a);
    return result;
}

static const char *const two_tools =
    "[{\"type\":\"function\",\"function\":{\"name\":\"light.turn_on\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"target\":{\"type\":\"string\"}},\"required\":[\"target\"],"
    "\"additionalProperties\":false}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"light.turn\"}}]";

#define CALL_ON   "<tool_call>\n{\"name\": \"light.turn_on\", \"arguments\": {\"target\":\"x\"}}\n</tool_call>"
#define CALL_TURN "<tool_call>\n{\"name\": \"light.turn\", \"arguments\": {}}\n</tool_call>"

static void only_offered_tools_are_called(void **state)
{
    static const struct {
        int mode;
        bool parallel;
        const char *name, *text;
        int want;
    } cases[] = {
        {TOOLS_AUTO, true, NULL, "", 1},
        {TOOLS_AUTO, true, NULL, "it is < on", 1},
        {TOOLS_AUTO, true, NULL, "well <tool<tool_call", 1},
        {TOOLS_AUTO, true, NULL, "well " CALL_ON, 1},
        {TOOLS_AUTO, true, NULL, "<<tool_<tool_call>\n{\"name\": \"light.turn_off", -1},
        {TOOLS_AUTO, true, NULL, "well <tool_call> ", -1},
        {TOOLS_AUTO, true, NULL, CALL_ON "\n" CALL_TURN, 1},
        {TOOLS_AUTO, true, NULL, CALL_ON "\n", 0},
        {TOOLS_AUTO, true, NULL, CALL_ON " and", -1},
        {TOOLS_AUTO, false, NULL, CALL_ON "\n", -1},
        {TOOLS_REQUIRED, true, NULL, "", 0},
        {TOOLS_REQUIRED, true, NULL, "well", -1},
        {TOOLS_REQUIRED, true, NULL, CALL_TURN "\n" CALL_TURN, 1},
        {TOOLS_REQUIRED, false, NULL, CALL_TURN, 1},
        {TOOLS_REQUIRED, true, NULL, "<tool_call>\n{\"name\": \"light.turn\", \"arguments\": []", -1},
        {TOOLS_REQUIRED, true, NULL, "<tool_call>\n{\"name\": \"light.turn_on\", \"arguments\": {}", -1},
        {TOOLS_NAMED, true, "light.turn", CALL_TURN, 1},
        {TOOLS_NAMED, true, "light.turn", CALL_TURN "\n", -1},
        {TOOLS_NAMED, true, "light.turn", "<tool_call>\n{\"name\": \"light.turn_", -1},
        {TOOLS_NAMED, true, "light.turn_on", CALL_ON, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grammar_spec spec = {.kind = GRAMMAR_TOOLS,
                             .tools_json = two_tools,
                             .mode = cases[i].mode,
                             .tool_name = cases[i].name,
                             .parallel = cases[i].parallel};
        shoal_err err = {0};
        int got = form_verdict(&spec, cases[i].text, &err);
        if (got != cases[i].want) fail_msg("case %zu, %s: %d %s", i, cases[i].text, got, err.message);
    }
}

static void tools_that_cannot_be_called_are_refused(void **state)
{
    static const struct {
        const char *tools, *name, *says;
    } cases[] = {
        {"[]", NULL, "offers no function"},
        {"{}", NULL, "array"},
        {"[", NULL, "not JSON"},
        {"[{\"function\":{}}]", NULL, "tools/0"},
        {"[{\"function\":{\"name\":\"a\"}}]", "b", "\"b\" is not among"},
        {"[{\"function\":{\"name\":\"a\",\"parameters\":{\"type\":\"thing\"}}}]", NULL, "parameters"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grammar_spec spec = {.kind = GRAMMAR_TOOLS,
                             .tools_json = cases[i].tools,
                             .mode = cases[i].name ? TOOLS_NAMED : TOOLS_REQUIRED,
                             .tool_name = cases[i].name};
        shoal_err err = {0};
        assert_int_equal(form_verdict(&spec, "", &err), -2);
        assert_int_equal(err.code, SHOAL_EINVALID);
        if (!strstr(err.message, cases[i].says)) fail_msg("%s", err.message);
    }
}

static void a_choice_is_one_of_the_texts(void **state)
{
    const char *const texts[] = {"turn on light.kitchen", "turn on light.kitchen_2", "no\n\"way\""};
    grammar_spec spec = {.kind = GRAMMAR_CHOICES, .choices = texts, .n_choices = 3};
    shoal_err err = {0};
    for (size_t i = 0; i < 3; i++) assert_int_equal(form_verdict(&spec, texts[i], &err), 1);
    assert_int_equal(form_verdict(&spec, "turn", &err), 0);
    assert_int_equal(form_verdict(&spec, "turn off", &err), -1);
    assert_int_equal(form_verdict(&spec, "turn on light.kitchen_2 ", &err), -1);
    spec.n_choices = 0;
    assert_int_equal(form_verdict(&spec, "", &err), -2);
}

/* gpt2's, with the marks of tool calls as control tokens behind its own when `marks`. */
static tokenizer *load_tokenizer(bool marks)
{
    const char *path = SHOAL_SOURCE_DIR "/tests/data/tokenizers/gpt2/tokenizer.json";
    buf text = {0};
    tokenizer *t = NULL;
    shoal_err err = {0};
    if (file_read(&text, path, 64 << 20, &err) != 0) fail_msg("%s", err.message);
    if (marks) {
        const char *tokens = "{\"id\":576,\"content\":\"<tool_call>\",\"special\":true},"
                             "{\"id\":577,\"content\":\"</tool_call>\",\"special\":true},";
        buf more = {0};
        const char *list = strstr(text.data, "\"added_tokens\": [");
        if (!list) list = strstr(text.data, "\"added_tokens\":[");
        assert_non_null(list);
        list = strchr(list, '[') + 1;
        buf_append(&more, text.data, (size_t)(list - text.data));
        buf_puts(&more, tokens);
        buf_puts(&more, list);
        buf_done(&text);
        text = more;
    }
    if (tokenizer_from_json(&t, text.data, text.len, NULL, 0, path, &err) != 0) fail_msg("%s", err.message);
    buf_done(&text);
    return t;
}

/* gpt2's with these control tokens, whose ids begin at 576; the list ends in NULL. */
static tokenizer *tokenizer_with(const char *const *control)
{
    const char *path = SHOAL_SOURCE_DIR "/tests/data/tokenizers/gpt2/tokenizer.json";
    buf text = {0}, more = {0};
    tokenizer *t = NULL;
    shoal_err err = {0};
    if (file_read(&text, path, 64 << 20, &err) != 0) fail_msg("%s", err.message);
    const char *list = strstr(text.data, "\"added_tokens\"");
    assert_non_null(list);
    list = strchr(list, '[') + 1;
    buf_append(&more, text.data, (size_t)(list - text.data));
    for (int id = 576; *control; control++, id++)
        buf_printf(&more, "{\"id\":%d,\"content\":\"%s\",\"special\":true},", id, *control);
    buf_puts(&more, list);
    if (tokenizer_from_json(&t, more.data, more.len, NULL, 0, path, &err) != 0) fail_msg("%s", err.message);
    buf_done(&text);
    buf_done(&more);
    return t;
}

typedef struct controlled {
    tokenizer *t;
    const char *const *control;
    grammar *g;
    float *logits;
    size_t n_vocab;
} controlled;

static bool next_is_allowed(const controlled *c, int32_t id)
{
    int32_t eos = 0;
    for (size_t i = 0; i < c->n_vocab; i++) c->logits[i] = 0;
    return grammar_mask(c->g, c->logits, c->n_vocab, &eos, 1) && isfinite(c->logits[id]);
}

/* The piece as a control token, if it is one, else as text. */
static void take_piece(const controlled *c, const char *syntax, const char *piece)
{
    encoding e = {0};
    shoal_err err = {0};
    int32_t id = 576;
    for (const char *const *k = c->control; *k; k++, id++) {
        bool is = strcmp(*k, piece) == 0, allowed = is ? next_is_allowed(c, id) : false;
        if (is && !allowed) fail_msg("%s: %s is not allowed", syntax, piece);
        if (!is) continue;
        assert_true(grammar_accept(c->g, id));
        return;
    }
    assert_int_equal(tokenizer_encode(c->t, piece, strlen(piece), NULL, 0, 0, 0, &e, &err), 0);
    for (size_t i = 0; i < e.n; i++) {
        if (!next_is_allowed(c, e.ids[i]))
            fail_msg("%s: token %zu of \"%s\" is not allowed", syntax, i, piece);
        assert_true(grammar_accept(c->g, e.ids[i]));
    }
    encoding_done(&e);
}

/* Markers of several control tokens and text: each token comes where the marker goes on with it, and nowhere
 * else. */
static void markers_of_several_control_tokens(void **state)
{
    static const struct {
        /* wrong: not allowed as the first token */
        const char *syntax, *thinking, *control[8], *pieces[24], *wrong;
    } cases[] = {
        {"gpt-oss",
         "gpt-oss",
         {"<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|constrain|>"},
         {"<|channel|>", "analysis", "<|message|>", "Hm.", "<|end|>", "<|start|>", "assistant", "<|channel|>",
          "commentary to=functions.light.turn_on ", "<|constrain|>", "json", "<|message|>",
          "{\"target\":\"x\"}"},
         "<|message|>"},
        {"deepseek-v3.1",
         "think",
         {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
          "<｜tool▁calls▁end｜>"},
         {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "light.turn", "<｜tool▁sep｜>", "{}",
          "<｜tool▁call▁end｜>", "<｜tool▁call▁begin｜>", "light.turn_on", "<｜tool▁sep｜>",
          "{\"target\":\"x\"}", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"},
         "<｜tool▁sep｜>"},
        {"kimi-k2",
         NULL,
         {"<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>",
          "<|tool_call_end|>", "<|tool_calls_section_end|>"},
         {"<|tool_calls_section_begin|>", "<|tool_call_begin|>", "functions.light.turn:0",
          "<|tool_call_argument_begin|>", "{}", "<|tool_call_end|>", "<|tool_calls_section_end|>"},
         "<|tool_call_end|>"},
        {"qwen3-coder",
         "think",
         {"<tool_call>", "</tool_call>"},
         {"<tool_call>",
          "\n<function=light.turn_on>\n<parameter=target>\na <b> \"c\"\n</parameter>\n</function>\n",
          "</tool_call>"},
         "</tool_call>"},
        {"gemma-4",
         "gemma-4",
         {"<|tool_call>", "<tool_call|>", "<|\\\"|>"},
         {"<|tool_call>", "call:light.turn{}", "<tool_call|>"},
         "<tool_call|>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grammar_spec spec = {.kind = GRAMMAR_TOOLS,
                             .tools_json = two_tools,
                             .mode = TOOLS_REQUIRED,
                             .parallel = true,
                             .syntax = toolcall_find(cases[i].syntax),
                             .thinking = cases[i].thinking ? thinking_named(cases[i].thinking) : NULL};
        shoal_err err = {0};
        grammar_vocab *v = NULL;
        controlled c = {.control = cases[i].control};
        c.t = tokenizer_with(c.control);
        c.n_vocab = tokenizer_vocab_size(c.t);
        c.logits = malloc(c.n_vocab * sizeof *c.logits);
        assert_int_equal(grammar_vocab_new(&v, c.t, &err), 0);
        if (grammar_new(&c.g, v, &spec, &err)) fail_msg("%s: %s", cases[i].syntax, err.message);
        for (int32_t k = 0; c.control[k]; k++)
            if (strcmp(c.control[k], cases[i].wrong) == 0) assert_false(next_is_allowed(&c, 576 + k));
        for (const char *const *p = cases[i].pieces; *p; p++) take_piece(&c, cases[i].syntax, *p);
        if (!grammar_complete(c.g)) fail_msg("%s: not complete", cases[i].syntax);
        grammar_free(c.g);
        grammar_vocab_free(v);
        free(c.logits);
        tokenizer_free(c.t);
    }
}

/* Draw tokens among those the mask leaves, mostly closing ones so that the walk ends. */
static void random_walk_stays_valid(void **state)
{
    tokenizer *t = load_tokenizer(false);
    size_t n_vocab = tokenizer_vocab_size(t);
    int32_t eos = (int32_t)n_vocab - 1;
    float *logits = malloc(n_vocab * sizeof *logits);
    grammar_vocab *v = NULL;
    shoal_err err = {0};
    assert_int_equal(grammar_vocab_new(&v, t, &err), 0);
    for (uint64_t seed = 0; seed < 40; seed++) {
        grammar *g = NULL;
        buf out = {0};
        assert_int_equal(
            grammar_new(&g, v, &(grammar_spec){.kind = GRAMMAR_JSON_SCHEMA, .schema = light}, &err), 0);
        bool ended = false;
        for (uint64_t pos = 0; pos < 400 && !ended; pos++) {
            for (size_t i = 0; i < n_vocab; i++) logits[i] = (float)rng_uniform(seed * 1000 + pos, i);
            grammar_mask(g, logits, n_vocab, &eos, 1);
            size_t best = 0;
            for (size_t i = 1; i < n_vocab; i++)
                if (logits[i] > logits[best]) best = i;
            assert_true(isfinite(logits[best]));
            ended = (int32_t)best == eos;
            if (ended) break;
            assert_true(grammar_accept(g, (int32_t)best));
            tokenizer_decode(t, (const int32_t[]){(int32_t)best}, 1, false, &out);
        }
        assert_true(ended && grammar_complete(g));
        json_t *doc = NULL;
        if (json_parse(&doc, out.data, out.len, "walk", &err) != 0) fail_msg("%s: %s", err.message, out.data);
        assert_true(json_is_integer(json_object_get(doc, "level")));
        assert_true(json_is_string(json_object_get(doc, "name")));
        json_decref(doc);
        buf_done(&out);
        grammar_free(g);
    }
    grammar_vocab_free(v);
    free(logits);
    tokenizer_free(t);
}

/* ---- with a vocabulary ------------------------------------------------------------------------ */

typedef struct rig {
    tokenizer *t;
    grammar_vocab *v;
    grammar *g;
    float *logits;
    size_t n_vocab;
    int32_t eos;
} rig;

static void rig_open(rig *r, const grammar_spec *spec, bool marks)
{
    shoal_err err = {0};
    *r = (rig){.t = load_tokenizer(marks)};
    r->n_vocab = tokenizer_vocab_size(r->t);
    r->eos = 0;
    r->logits = calloc(r->n_vocab, sizeof *r->logits);
    assert_int_equal(grammar_vocab_new(&r->v, r->t, &err), 0);
    if (grammar_new(&r->g, r->v, spec, &err)) fail_msg("%s", err.message);
}

static void rig_close(rig *r)
{
    grammar_free(r->g);
    grammar_vocab_free(r->v);
    free(r->logits);
    tokenizer_free(r->t);
}

/* Which token is this text? */
static int32_t token(const rig *r, const char *text)
{
    for (size_t id = 0; id < r->n_vocab; id++) {
        size_t n = 0;
        bool special;
        const char *s = tokenizer_bytes(r->t, (int32_t)id, &n, &special);
        if (s && n == strlen(text) && memcmp(s, text, n) == 0) return (int32_t)id;
    }
    fail_msg("no token is %s", text);
    return -1;
}

static bool allows(rig *r, const char *text)
{
    memset(r->logits, 0, r->n_vocab * sizeof *r->logits);
    assert_true(grammar_mask(r->g, r->logits, r->n_vocab, &r->eos, 1));
    return isfinite(r->logits[text ? token(r, text) : r->eos]);
}

static void a_number_may_go_on_or_end(void **state)
{
    rig r;
    rig_open(&r,
             &(grammar_spec){.kind = GRAMMAR_JSON_SCHEMA, .schema = "{\"type\":\"integer\",\"maximum\":35}"},
             false);
    assert_false(allows(&r, NULL));
    assert_true(grammar_accept(r.g, token(&r, "3")));
    assert_true(grammar_complete(r.g) && !grammar_ended(r.g));
    assert_true(allows(&r, NULL) && allows(&r, "5"));
    assert_false(allows(&r, "6"));
    assert_true(grammar_accept(r.g, token(&r, "5")));
    assert_true(grammar_ended(r.g));
    assert_true(allows(&r, NULL));
    rig_close(&r);
}

static void nesting_too_deeply_is_an_error(void **state)
{
    rig r;
    rig_open(&r,
             &(grammar_spec){.kind = GRAMMAR_JSON_SCHEMA,
                             .schema =
                                 "{\"$defs\":{\"a\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/a\"}}},"
                                 "\"$ref\":\"#/$defs/a\"}"},
             false);
    int depth = 0;
    for (; depth < 1000 && grammar_mask(r.g, r.logits, r.n_vocab, &r.eos, 1); depth++)
        assert_true(grammar_accept(r.g, token(&r, "[")));
    assert_in_range(depth, 60, 999);
    assert_int_equal(grammar_error(r.g)->code, SHOAL_ELIMIT);
    assert_false(grammar_complete(r.g));
    assert_false(grammar_accept(r.g, token(&r, "]")));
    rig_close(&r);
}

/* What the mask says of a token is what its bytes say, one after the other: strings have short cuts, by the
 * kinds of characters that they have room for and for places of long ones that are alike. */
static void masks_are_what_the_bytes_say(void **state)
{
    static const char *const schemas[] = {
        "{\"type\":\"string\",\"maxLength\":4}",
        "{\"type\":\"string\",\"pattern\":\"^[a-m ]*$\",\"maxLength\":5}",
        "{\"type\":\"string\"}",
        "{\"anyOf\":[{\"type\":\"string\",\"pattern\":\"^.{2}$\"},{\"enum\":[\"theme\",\"there\"]}]}",
        "{\"type\":\"string\",\"minLength\":6,\"maxLength\":300}",
        "{\"type\":\"string\",\"minLength\":40,\"maxLength\":70}",
        "{\"anyOf\":[{\"type\":\"string\",\"maxLength\":200},{\"type\":\"string\",\"minLength\":8,"
        "\"maxLength\":90}]}",
        "{\"type\":\"string\",\"pattern\":\"^[0-9A-Za-z \\u00e9\\u4e16]*$\"}",
        "{\"type\":\"string\",\"pattern\":\"^[^\\u4e17]*$\"}",
        "{\"type\":\"string\",\"pattern\":\"^\\\\w+( .*)?$\"}"};
    rig r;
    for (size_t k = 0; k < sizeof schemas / sizeof *schemas; k++) {
        rig_open(&r, &(grammar_spec){.kind = GRAMMAR_JSON_SCHEMA, .schema = schemas[k]}, false);
        nfa *a = nfa_new();
        shoal_err err = {0};
        int start, at;
        assert_int_equal(schema_compile(a, schemas[k], 0, &start, &err), 0);
        assert_true(nfa_seal(a));
        at = nfa_begin(a, start);
        for (const char *text = "\"the \xC3\xA9 caf\xE4\xB8\x96 is on 1 and on and on and on and on"; *text;
             text++) {
            memset(r.logits, 0, r.n_vocab * sizeof *r.logits);
            assert_true(grammar_mask(r.g, r.logits, r.n_vocab, &r.eos, 1));
            for (size_t id = 1; id < r.n_vocab; id++) {
                size_t n = 0;
                bool special;
                const char *s = tokenizer_bytes(r.t, (int32_t)id, &n, &special);
                int to = at;
                for (size_t i = 0; i < n; i++) to = nfa_step(a, to, (uint8_t)s[i]);
                /* The form allows one line end behind the document, which the schema does not know. */
                if (n > 1 && s[n - 1] == '\n') continue;
                if (isfinite(r.logits[id]) != (to != NFA_DEAD)) fail_msg("%s: %.*s", schemas[k], (int)n, s);
            }
            char one[2] = {*text, '\0'};
            at = nfa_step(a, at, (uint8_t)*text);
            if (!grammar_accept(r.g, token(&r, one))) break;
        }
        nfa_free(a);
        rig_close(&r);
    }
}

/* Each bracket may begin any of six kinds of array, each of which may hold any of the six. */
static void too_many_alternatives_are_an_error(void **state)
{
    rig r;
    buf schema = {0};
    buf_puts(&schema, "{\"$defs\":{\"a\":{\"anyOf\":[{\"type\":\"null\"}");
    for (int i = 1; i <= 6; i++)
        buf_printf(&schema, ",{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/a\"},\"minItems\":%d}", i);
    buf_puts(&schema, "]}},\"$ref\":\"#/$defs/a\"}");
    rig_open(&r, &(grammar_spec){.kind = GRAMMAR_JSON_SCHEMA, .schema = schema.data}, false);
    int depth = 0;
    for (; depth < 50 && grammar_mask(r.g, r.logits, r.n_vocab, &r.eos, 1); depth++)
        assert_true(grammar_accept(r.g, token(&r, "[")));
    assert_in_range(depth, 2, 10);
    assert_int_equal(grammar_error(r.g)->code, SHOAL_ELIMIT);
    assert_false(grammar_complete(r.g));
    rig_close(&r);
    buf_done(&schema);
}

/* A text, one token a character. */
static void spell(rig *r, const char *text)
{
    for (; *text; text++) {
        char one[2] = {*text, '\0'};
        if (!allows(r, one)) fail_msg("not allowed: %s", text);
        assert_true(grammar_accept(r->g, token(r, one)));
    }
}

static void control_tokens_begin_and_end_calls(void **state)
{
    rig r;
    rig_open(&r, &(grammar_spec){.kind = GRAMMAR_TOOLS, .tools_json = two_tools, .mode = TOOLS_AUTO}, true);
    assert_true(allows(&r, "<tool_call>") && allows(&r, "<") && allows(&r, "w") && allows(&r, NULL));
    assert_false(allows(&r, "</tool_call>"));
    spell(&r, "well ");
    assert_true(grammar_accept(r.g, token(&r, "<tool_call>")));
    assert_false(allows(&r, NULL) || allows(&r, "<"));
    spell(&r, "\n{\"name\": \"light.turn_on\", \"arguments\": {\"target\": \"x");
    /* Within a string their bytes are text and the tokens are not. */
    assert_true(allows(&r, "<"));
    assert_false(allows(&r, "<tool_call>") || allows(&r, "</tool_call>"));
    assert_false(grammar_accept(r.g, token(&r, "</tool_call>")));
    spell(&r, "\"}}\n");
    assert_true(allows(&r, "</tool_call>") && allows(&r, "<"));
    assert_true(grammar_accept(r.g, token(&r, "</tool_call>")));
    assert_true(grammar_ended(r.g) && allows(&r, NULL));
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_have_lengths),
        cmocka_unit_test(errors_say_where_and_why),
        cmocka_unit_test(equal_numbers_are_one_item),
        cmocka_unit_test(any_object_is_json),
        cmocka_unit_test(items_of_few_values_differ),
        cmocka_unit_test(open_schemas_take_other_properties),
        cmocka_unit_test(order_is_that_of_the_schema),
        cmocka_unit_test(schema_is_enforced),
        cmocka_unit_test(long_enums_keep_every_value),
        cmocka_unit_test(schemas_may_refer_to_themselves),
        cmocka_unit_test(what_stands_beside_counts),
        cmocka_unit_test(impossible_alternatives_take_no_room),
        cmocka_unit_test(strings_that_differ_in_length_cost_no_more_than_one),
        cmocka_unit_test(unsupported_keywords_are_named),
        cmocka_unit_test(only_offered_tools_are_called),
        cmocka_unit_test(tools_that_cannot_be_called_are_refused),
        cmocka_unit_test(a_choice_is_one_of_the_texts),
        cmocka_unit_test(a_number_may_go_on_or_end),
        cmocka_unit_test(nesting_too_deeply_is_an_error),
        cmocka_unit_test(masks_are_what_the_bytes_say),
        cmocka_unit_test(too_many_alternatives_are_an_error),
        cmocka_unit_test(control_tokens_begin_and_end_calls),
        cmocka_unit_test(markers_of_several_control_tokens),
        cmocka_unit_test(random_walk_stays_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
