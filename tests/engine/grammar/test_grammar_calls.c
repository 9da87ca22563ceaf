/* Forced calls in each family's syntax: what the grammar lets through is what the parser reads, and a thought
 * may come before a form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "json/json.h"
#include "grammar/grammar_schema.h"
#include "grammar/grammar_tools.h"

static const char TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"set\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{"
    "\"level\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9},\"room\":{\"type\":\"string\",\"enum\":["
    "\"hall\","
    "\"attic\"]},\"note\":{\"type\":\"string\"}},\"required\":[\"level\"],\"additionalProperties\":false}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"any\"}}]";

/* 1: a whole reply, 0: the beginning of one, -1: none, -2: does not compile. */
static int verdict(const grammar_spec *spec, const char *text, shoal_err *err)
{
    nfa *a = nfa_new();
    int start = NFA_DEAD, result = -2;
    int rc = spec->kind == GRAMMAR_TOOLS ? tools_compile(a, spec, &start, err)
                                         : choices_compile(a, spec, &start, err);
    if (rc == 0 && spec->kind != GRAMMAR_TOOLS) start = thought_compile(a, spec, start);
    if (rc == 0 && nfa_seal(a)) {
        int config = nfa_begin(a, start);
        for (const char *p = text; *p && config != NFA_DEAD; p++) config = nfa_step(a, config, (uint8_t)*p);
        result = config == NFA_DEAD ? -1 : nfa_accepts(a, config);
    }
    nfa_free(a);
    return result;
}

typedef struct heard {
    buf calls;
    size_t n_text;
} heard;

static void on_text(void *user, const char *s, size_t n)
{
    ((heard *)user)->n_text += n;
}
static void on_begin(void *user, int i, const char *name)
{
    buf_printf(&((heard *)user)->calls, "%s", name);
}
static void on_args(void *user, int i, const char *s, size_t n)
{
    buf_append(&((heard *)user)->calls, s, n);
}

static void reads(const char *syntax, const char *text, const char *calls)
{
    heard h = {0};
    json_t *tools = NULL;
    toolcall_sink sink = {.user = &h, .text = on_text, .begin = on_begin, .arguments = on_args};
    assert_int_equal(json_parse(&tools, TOOLS, strlen(TOOLS), "tools", NULL), 0);
    toolcall_parser *p = toolcall_new(&sink, toolcall_find(syntax), tools);
    assert_int_equal(toolcall_push(p, text, strlen(text)), 0);
    assert_int_equal(toolcall_end(p, false), 0);
    buf_putc(&h.calls, '\0');
    if (h.n_text > 0 || strcmp(h.calls.data, calls) != 0)
        fail_msg("%s: %s was read as %s", syntax, text, h.calls.data);
    toolcall_free(p);
    json_decref(tools);
    buf_done(&h.calls);
}

static void forced_calls_are_in_the_models_syntax(void **state)
{
    static const struct {
        const char *syntax, *text, *calls, *bad; /* bad: begins no reply */
    } cases[] = {
        {"hermes", "<tool_call>\n{\"name\": \"set\", \"arguments\": {\"level\":3}}\n</tool_call>",
         "set{\"level\":3}", "<tool_call>\n{\"name\": \"set\", \"arguments\": {\"level\":30"},
        {"llama-json", "{\"name\": \"set\", \"parameters\": {\"level\":3}}", "set{\"level\":3}",
         "{\"name\": \"sit"},
        {"mistral",
         "[TOOL_CALLS][{\"name\": \"any\", \"arguments\": {}}, {\"name\": \"set\", \"arguments\": "
         "{\"level\":1,\"room\":\"attic\"}}]",
         "any{}set{\"level\":1,\"room\":\"attic\"}", "[TOOL_CALLS][]"},
        {"mistral-args", "[TOOL_CALLS]set[ARGS]{\"level\":3}[TOOL_CALLS]any[ARGS]{}", "set{\"level\":3}any{}",
         "[TOOL_CALLS]se["},
        {"granite", "<|tool_call|>[{\"name\": \"set\", \"arguments\": {\"level\":3}}]", "set{\"level\":3}",
         "<tool_call>"},
        {"phi-4", "<|tool_call|>[{\"name\": \"any\", \"arguments\": {\"x\":[1]}}]<|/tool_call|>",
         "any{\"x\":[1]}", "<|tool_call|>[{\"name\": \"any\", \"arguments\": {\"x\":[1]}}]<|tool"},
        {"lfm2",
         "<|tool_call_start|>[set(level=3, room=\"hall\"), any(k_1=[true, {\"a\": null}])]<|tool_call_end|>",
         "set{\"level\": 3, \"room\": \"hall\"}any{\"k_1\": [true, {\"a\": null}]}",
         "<|tool_call_start|>[set(room"},
        {"llama-pythonic", "[set(level=3, note=\"a\\\"b\"), set(level=0)]",
         "set{\"level\": 3, \"note\": \"a\\\"b\"}set{\"level\": 0}", "[set()"},
        {"gemma", "```tool_code\nset(level=9)\nany()\n```", "set{\"level\": 9}any{}",
         "```tool_code\nset(level=10"},
        {"smollm3-python", "<code>\nset(level=2)\n</code>", "set{\"level\": 2}", "<code>\nprint("},
        {"function-gemma",
         "<start_function_call>call:set{level:3,room:<escape>hall<escape>,note:<escape>a\"}<escape>}"
         "<end_function_call><start_function_call>call:any{x:[1,{y:<escape>z<escape>}]}<end_function_call>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a\\\"}\"}any{\"x\": [1, {\"y\": \"z\"}]}",
         "<start_function_call>call:set{level:3,room:<escape>cellar"},
        {"qwen3-coder",
         "<tool_call>\n<function=set>\n<parameter=level>\n3\n</parameter>\n<parameter=room>\nhall\n</"
         "parameter>\n<parameter=note>\na <b> & "
         "\"c\"\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=any>\n</function>\n</"
         "tool_call>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a <b> & \\\"c\\\"\"}any{}",
         "<tool_call>\n<function=set>\n<parameter=level>\n30\n</parameter>\n"},
        {"seed",
         "<seed:tool_call>\n<function=set>\n<parameter=level>3</parameter>\n<parameter=room>hall</"
         "parameter>\n<parameter=note>a <b> & "
         "\"c\"</parameter>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=any>\n</"
         "function>\n</seed:tool_call>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a <b> & \\\"c\\\"\"}any{}",
         "<seed:tool_call>\n<function=set>\n<parameter=level>30</parameter>\n"},
        {"deepseek-v3.2",
         "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"set\">\n<｜DSML｜parameter name=\"level\" "
         "string=\"false\">3</｜DSML｜parameter>\n<｜DSML｜parameter name=\"room\" "
         "string=\"true\">hall</｜DSML｜parameter>\n<｜DSML｜parameter name=\"note\" string=\"true\">a <b> & "
         "\"c\"</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke "
         "name=\"any\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a <b> & \\\"c\\\"\"}any{}",
         "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"set\">\n<｜DSML｜parameter name=\"level\" "
         "string=\"false\">30</｜DSML｜parameter>\n"},
        {"deepseek-v4",
         "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"set\">\n<｜DSML｜parameter name=\"level\" "
         "string=\"false\">3</｜DSML｜parameter>\n<｜DSML｜parameter name=\"room\" "
         "string=\"true\">hall</｜DSML｜parameter>\n<｜DSML｜parameter name=\"note\" string=\"true\">a <b> & "
         "\"c\"</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke "
         "name=\"any\">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a <b> & \\\"c\\\"\"}any{}",
         "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"set\">\n<｜DSML｜parameter name=\"level\" "
         "string=\"false\">30</｜DSML｜parameter>\n"},
        {"minimax-m2",
         "<minimax:tool_call>\n<invoke name=\"set\">\n<parameter name=\"level\">3</parameter>\n<parameter "
         "name=\"room\">hall</parameter>\n<parameter name=\"note\">a <b> & "
         "\"c\"</parameter>\n</invoke>\n<invoke name=\"any\">\n</invoke>\n</minimax:tool_call>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a <b> & \\\"c\\\"\"}any{}",
         "<minimax:tool_call>\n<invoke name=\"set\">\n<parameter name=\"level\">30</parameter>\n"},
        {"minimax-m3",
         "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke "
         "name=\"set\">]<]minimax[>[<level>3]<]minimax[>[</level>]<]minimax[>[<room>hall]<]minimax[>[</"
         "room>]<]minimax[>[<note>a <b> & "
         "\"c\"]<]minimax[>[</note>]<]minimax[>[</invoke>\n]<]minimax[>[<invoke "
         "name=\"any\">]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a <b> & \\\"c\\\"\"}any{}",
         "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke "
         "name=\"set\">]<]minimax[>[<level>30]<]minimax[>[</level>"},
        {"muse",
         "<atem:function_calls>\n<atem:invoke name=\"set\">\n<atem:parameter "
         "name=\"level\">3</atem:parameter>\n<atem:parameter "
         "name=\"room\">hall</atem:parameter>\n<atem:parameter name=\"note\">a <b> & "
         "\"c\"</atem:parameter>\n</atem:invoke>\n<atem:invoke "
         "name=\"any\">\n</atem:invoke>\n</atem:function_calls>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a <b> & \\\"c\\\"\"}any{}",
         "<atem:function_calls>\n<atem:invoke name=\"set\">\n<atem:parameter "
         "name=\"level\">30</atem:parameter>\n"},
        {"kimi-k3",
         "<|open|>tools<|sep|><|open|>call tool=\"set\" index=\"0\"<|sep|><|open|>argument key=\"level\" "
         "type=\"number\"<|sep|>3<|close|>argument<|sep|><|open|>argument key=\"room\" "
         "type=\"string\"<|sep|>hall<|close|>argument<|sep|><|open|>argument key=\"note\" "
         "type=\"string\"<|sep|>a <b> & \"c\"<|close|>argument<|sep|><|close|>call<|sep|><|open|>call "
         "tool=\"any\" index=\"1\"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a <b> & \\\"c\\\"\"}any{}",
         "<|open|>tools<|sep|><|open|>call tool=\"set\" index=\"0\"<|sep|><|open|>argument key=\"level\" "
         "type=\"number\"<|sep|>30<|close|>argument<|sep|>"},
        {"minicpm",
         "<function name=\"set\"><param name=\"level\">3</param><param name=\"room\">hall</param><param "
         "name=\"note\">a <b> & \"c\"</param></function>\n<function name=\"any\"></function>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a <b> & \\\"c\\\"\"}any{}",
         "<function name=\"set\"><param name=\"level\">30</param>"},
        {"glm-4.7",
         "<tool_call>set<arg_key>level</arg_key><arg_value>3</arg_value><arg_key>room</"
         "arg_key><arg_value>hall</arg_value><arg_key>note</arg_key><arg_value>a <b> & "
         "\"c\"</arg_value></tool_call><tool_call>any</tool_call>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a <b> & \\\"c\\\"\"}any{}",
         "<tool_call>set<arg_key>level</arg_key><arg_value>30</arg_value>"},
        {"glm-4",
         "<tool_call>set\n\n<arg_key>level</arg_key>\n<arg_value>3</arg_value>\n<arg_key>room</"
         "arg_key>\n<arg_value>hall</arg_value>\n<arg_key>note</arg_key>\n<arg_value>a <b> & "
         "\"c\"</arg_value>\n</tool_call>\n<tool_call>any\n\n</tool_call>",
         "set{\"level\": 3, \"room\": \"hall\", \"note\": \"a <b> & \\\"c\\\"\"}any{}",
         "<tool_call>set\n\n<arg_key>level</arg_key>\n<arg_value>30</arg_value>\n"},
        {"deepseek-v3.1",
         "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>set<｜tool▁sep｜>{\"level\":3}<｜tool▁call▁end｜><"
         "｜tool▁call▁begin｜>any<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
         "set{\"level\":3}any{}",
         "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>set<｜tool▁sep｜>{\"level\":30"},
        {"deepseek-r1",
         "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>set\n```json\n{\"level\":3}\n```<"
         "｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>any\n```json\n{}\n```<"
         "｜tool▁call▁end｜><｜tool▁calls▁end｜>",
         "set{\"level\":3}any{}",
         "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>set\n```json\n{\"level\":30"},
        {"kimi-k2",
         "<|tool_calls_section_begin|><|tool_call_begin|>functions.set:0<|tool_call_argument_begin|>{"
         "\"level\":3}<|tool_call_end|><|tool_call_begin|>functions.any:1<|tool_call_argument_begin|>{}<|"
         "tool_call_end|><|tool_calls_section_end|>",
         "set{\"level\":3}any{}",
         "<|tool_calls_section_begin|><|tool_call_begin|>functions.set:0<|tool_call_argument_begin|>{"
         "\"level\":30"},
        {"gpt-oss", "<|channel|>commentary to=functions.set <|constrain|>json<|message|>{\"level\":3}",
         "set{\"level\":3}",
         "<|channel|>commentary to=functions.set <|constrain|>json<|message|>{\"level\":30"},
        {"functionary-3.2", "set\n{\"level\":3}>>>any\n{}", "set{\"level\":3}any{}", "set\n{\"level\":30"},
        {"functionary-3.1", "<function=set>{\"level\":3}</function><function=any>{}</function>",
         "set{\"level\":3}any{}", "<function=set>{\"level\":30"},
        {"gemma-4",
         "<|tool_call>call:set{level:3,room:<|\"|>hall<|\"|>}<tool_call|><|tool_call>call:any{}<tool_call|>",
         "set{\"level\": 3, \"room\": \"hall\"}any{}", "<|tool_call>call:set{level:30"},
        {"cohere",
         "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"set\", \"parameters\": "
         "{\"level\":3}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"any\", \"parameters\": "
         "{}}\n]<|END_ACTION|>",
         "set{\"level\":3}any{}", "<|START_ACTION|>[\n    {\"level\""},
        {"command-r",
         "Action:\n```json\n[\n    {\"tool_name\": \"set\", \"parameters\": {\"level\":3}},\n    "
         "{\"tool_name\": \"any\", \"parameters\": {}}\n]\n```",
         "set{\"level\":3}any{}", "Action:\n```json\n[\n    {\"level\""},
        {"nemotron-v2",
         "<TOOLCALL>[{\"name\": \"set\", \"arguments\": {\"level\":3}}, {\"name\": \"any\", \"arguments\": "
         "{}}]</TOOLCALL>",
         "set{\"level\":3}any{}", "<TOOLCALL>[{\"level\""},
        {"apriel",
         "<tool_calls>[{\"name\": \"set\", \"arguments\": {\"level\":3}}, {\"name\": \"any\", \"arguments\": "
         "{}}]</tool_calls>",
         "set{\"level\":3}any{}", "<tool_calls>[{\"level\""},
        {"minimax-m1",
         "<tool_calls>\n{\"name\": \"set\", \"arguments\": {\"level\":3}}\n{\"name\": \"any\", "
         "\"arguments\": {}}\n</tool_calls>",
         "set{\"level\":3}any{}", "<tool_calls>\n{\"level\""},
        {"gigachat-3",
         "<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"set\", \"arguments\": {\"level\":3}}",
         "set{\"level\":3}", "<|message_sep|>\n\nfunction call<|role_sep|>\n{\"level\""},
        {"gigachat-3.1", "<|function_call|>{\"name\": \"set\", \"arguments\": {\"level\":3}}",
         "set{\"level\":3}", "<|function_call|>{\"level\""},
        {"firefunction",
         "functools[{\"name\": \"set\", \"arguments\": {\"level\":3}}, {\"name\": \"any\", \"arguments\": "
         "{}}]",
         "set{\"level\":3}any{}", "functools[{\"level\""},
        {"apertus", "<|tools_prefix|>[{\"set\": {\"level\":3}}, {\"any\": {}}]<|tools_suffix|>",
         "set{\"level\":3}any{}", "<|tools_prefix|>[{\"level\""},
        {"lfm2.5", "<|tool_call_start|>[set(level=3), any()]<|tool_call_end|>", "set{\"level\": 3}any{}",
         "<|tool_call_start|>[set(level=30"},
    };
    size_t n;
    toolcall_syntaxes(&n);
    assert_int_equal(n, sizeof cases / sizeof *cases); /* every row is here */
    for (size_t i = 0; i < n; i++) {
        shoal_err err = {0};
        grammar_spec spec = {.kind = GRAMMAR_TOOLS,
                             .tools_json = TOOLS,
                             .mode = TOOLS_REQUIRED,
                             .parallel = true,
                             .syntax = toolcall_find(cases[i].syntax)};
        int got = verdict(&spec, cases[i].text, &err);
        if (got != 1) fail_msg("%s: %s: %d %s", cases[i].syntax, cases[i].text, got, err.message);
        assert_int_equal(verdict(&spec, cases[i].bad, &err), -1);
        assert_int_equal(verdict(&spec, "", &err), 0);
        if (strcmp(cases[i].bad, "<tool_call>") != 0) assert_int_equal(verdict(&spec, "well", &err), -1);
        reads(cases[i].syntax, cases[i].text, cases[i].calls);
        spec.mode = TOOLS_AUTO;
        assert_int_equal(verdict(&spec, cases[i].text, &err), 1);
        assert_int_equal(verdict(&spec, "Well, no.", &err), 1);
    }
}

static void what_begins_like_a_json_call_has_to_be_one(void **state)
{
    grammar_spec spec = {.kind = GRAMMAR_TOOLS, .tools_json = TOOLS, .syntax = toolcall_find("llama-json")};
    shoal_err err;
    assert_int_equal(verdict(&spec, "{\"name\": \"an", &err), 0);
    assert_int_equal(verdict(&spec, "{\"name\": \"other", &err), -1);
    assert_int_equal(verdict(&spec, "{\"rooms\": 3}", &err), 1);
    assert_int_equal(verdict(&spec, "Use {\"name\": \"other\"}", &err), 1);
}

/* Conditions that a syntax cannot hold are refused by their place, so that the worker can relax the tool. */
static void what_cannot_be_held_is_refused(void **state)
{
    static const struct {
        const char *syntax, *parameters, *says;
    } cases[] = {
        {"function-gemma", "{\"properties\":{\"a\":{\"type\":\"string\",\"minLength\":3}}}",
         "tools/0/function/parameters/properties/a"},
        {"function-gemma", "{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}}",
         "tools/0/function/parameters/properties/a"},
        {"lfm2", "{\"anyOf\":[{\"required\":[\"a\"]}]}", "tools/0/function/parameters"},
        {"lfm2", "{\"properties\":{\"a b\":{}}}", "tools/0/function/parameters/properties/a b"},
        {"lfm2", "{\"properties\":{},\"required\":[\"a\"]}", "tools/0/function/parameters"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char tools[256];
        snprintf(tools, sizeof tools, "[{\"function\":{\"name\":\"f\",\"parameters\":%s}}]",
                 cases[i].parameters);
        shoal_err err = {0};
        grammar_spec spec = {.kind = GRAMMAR_TOOLS,
                             .tools_json = tools,
                             .mode = TOOLS_REQUIRED,
                             .syntax = toolcall_find(cases[i].syntax)};
        assert_int_equal(verdict(&spec, "", &err), -2);
        assert_int_equal(err.code, SHOAL_EUNSUPPORTED);
        if (!strstr(err.message, cases[i].says)) fail_msg("%s", err.message);
    }
    grammar_spec spec = {.kind = GRAMMAR_TOOLS,
                         .tools_json = "[{\"function\":{\"name\":\"two words\"}}]",
                         .syntax = toolcall_find("lfm2")};
    shoal_err err;
    assert_int_equal(verdict(&spec, "", &err), -2);
    assert_non_null(strstr(err.message, "two words"));
}

/* Texts between tags are held to their conditions without the quotes of JSON, and what may be of several
 * types is any text. */
static void texts_between_tags_are_held_to_their_schema(void **state)
{
    static const char OPEN[] = "<tool_call>\n<function=f>\n<parameter=v>\n",
                      CLOSE[] = "\n</parameter>\n</function>\n</tool_call>";
    static const struct {
        const char *schema, *good, *bad;
    } cases[] = {
        {"{\"type\":\"string\",\"pattern\":\"^[a-z]+$\"}", "abc", "a1"},
        {"{\"type\":\"string\",\"format\":\"date\"}", "2026-11-28", "28.11.2026"},
        {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}", "\xc3\xa4<b", "<"},
        {"{\"type\":\"string\",\"maxLength\":40}", "<b>\"x\"</b>", "</parameter> and on"},
        {"{\"type\":\"string\",\"enum\":[\"on\",\"off\"]}", "off", "of"},
        {"{\"type\":\"string\"}", "a\nb\n", NULL},
        {"{\"type\":[\"string\",\"null\"]}", "null", NULL},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}],\"default\":null}", "well", NULL},
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", "[1, 2]", "[1, x"},
        {"{\"type\":\"boolean\"}", "true", "yes"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}",
         "{\"a\": \"</parameter>\"}", "{}"},
        {"true", "anything", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char tools[1024], text[1024];
        shoal_err err = {0};
        snprintf(tools, sizeof tools,
                 "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
                 "\"properties\":{\"v\":%s},\"required\":[\"v\"]}}}]",
                 cases[i].schema);
        grammar_spec spec = {.kind = GRAMMAR_TOOLS,
                             .tools_json = tools,
                             .mode = TOOLS_REQUIRED,
                             .syntax = toolcall_find("qwen3-coder")};
        snprintf(text, sizeof text, "%s%s%s", OPEN, cases[i].good, CLOSE);
        int got = verdict(&spec, text, &err);
        if (got != 1) fail_msg("%s: %s: %d %s", cases[i].schema, text, got, err.message);
        if (!cases[i].bad) continue;
        snprintf(text, sizeof text, "%s%s%s", OPEN, cases[i].bad, CLOSE);
        if (verdict(&spec, text, &err) != -1) fail_msg("%s: %s", cases[i].schema, text);
    }
}

/* A call may begin within the thought that the prompt opened, and is held to the tools there, too. */
static void a_call_may_end_a_thought(void **state)
{
    shoal_err err = {0};
    grammar_spec spec = {.kind = GRAMMAR_TOOLS,
                         .tools_json = TOOLS,
                         .mode = TOOLS_AUTO,
                         .thinking = thinking_named("think"),
                         .in_thought = true,
                         .syntax = toolcall_find("qwen3-coder")};
    assert_int_equal(verdict(&spec, "Hm. <tool_call> it is", &err), 0);
    assert_int_equal(verdict(&spec, "Hm. </think> Yes.", &err), 1);
    assert_int_equal(
        verdict(&spec,
                "Hm.\n<tool_call>\n<function=set>\n<parameter=level>\n3\n</parameter>\n</function>\n"
                "</tool_call>",
                &err),
        1);
    assert_int_equal(verdict(&spec, "Hm.\n<tool_call>\n<function=sit>", &err), -1);
    spec.syntax = toolcall_find("kimi-k2");
    assert_int_equal(
        verdict(&spec, "Hm<|tool_call_begin|>functions.any:12<|tool_call_argument_begin|>{}", &err), 0);
    assert_int_equal(verdict(&spec, "Hm<|tool_calls_section_begin|><|tool_call_begin|>functions.no", &err),
                     -1);
    spec.syntax = toolcall_find("hermes"); /* there a call within a thought is none */
    assert_int_equal(verdict(&spec, "Hm.\n<tool_call>\n{\"name\": \"no", &err), 0);
}

static void references_reach_the_definitions(void **state)
{
    grammar_spec spec = {.kind = GRAMMAR_TOOLS,
                         .tools_json =
                             "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"a\":{"
                             "\"$ref\":\"#/$defs/x\"}},\"$defs\":{\"x\":{\"enum\":[7]}}}}}]",
                         .mode = TOOLS_REQUIRED,
                         .syntax = toolcall_find("lfm2")};
    shoal_err err;
    assert_int_equal(verdict(&spec, "<|tool_call_start|>[f(a=7)]<|tool_call_end|>", &err), 1);
    assert_int_equal(verdict(&spec, "<|tool_call_start|>[f()]<|tool_call_end|>", &err), 1);
    assert_int_equal(verdict(&spec, "<|tool_call_start|>[f(a=8", &err), -1);
}

static void a_thought_may_come_before_a_form(void **state)
{
    const char *const texts[] = {"yes", "no"};
    grammar_spec spec = {
        .kind = GRAMMAR_CHOICES, .choices = texts, .n_choices = 2, .thinking = thinking_find("<think>")};
    shoal_err err;
    assert_int_equal(verdict(&spec, "yes", &err), 1);
    assert_int_equal(verdict(&spec, "<think>\nyes? </thin </think>\n\nno", &err), 1);
    assert_int_equal(verdict(&spec, "<think>maybe", &err), 0);
    assert_int_equal(verdict(&spec, "<think>maybe</think>maybe", &err), -1);
    assert_int_equal(verdict(&spec, "maybe", &err), -1);
    spec.in_thought = true;
    assert_int_equal(verdict(&spec, "maybe</</think>yes", &err), 1);
    assert_int_equal(verdict(&spec, "yes", &err), 0);
}

/* ---- whatever a model writes ------------------------------------------------------------------------- */

static const char *const PIECES[] = {
    "\n",
    " ",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ", ",
    ",",
    "; ",
    "\"",
    "set",
    "any",
    "sit",
    "s",
    "text",
    "{\"name\": \"",
    "{\"name\":\"",
    "{ \"name\": \"",
    "\", \"arguments\": ",
    "\", \"parameters\": ",
    "\",\"parameters\":",
    "{\"level\":3}",
    "{\"level\":30}",
    "{\"level\":3,\"more\":1}",
    "{}",
    "level=3",
    "level=30",
    "level:3",
    "level:30",
    "{\"name\": \"set\", \"arguments\": {\"level\":30}}",
    "{\"name\": \"set\", \"parameters\": {\"level\":30}}",
    "{\"parameters\": {\"level\": 30}, \"name\": \"set\"}",
    "{\"name\":\"set\",\"parameters\":{\"level\":3}}",
    "{\"name\": \"\\u0073et\", \"parameters\": {\"level\":30}}",
    "set(level=30)",
    "set(level=3)",
    "any(a=1)",
    "set[ARGS]{\"level\":30}",
    "call:set{level:30}",
    "call:set{level:3}",
    "[ARGS]",
    "<escape>",
    "\xC3\xA9",
};
enum { N_PIECES = sizeof PIECES / sizeof *PIECES, TEXTS = 30000 };

typedef struct judged {
    const json_t *tools;
    char name[32];
    buf args;
    size_t n_calls, n_refused;
} judged;

static const json_t *schema_of(const judged *j, const char *name)
{
    size_t i;
    json_t *tool;
    json_array_foreach(j->tools, i, tool)
    {
        const json_t *f = json_object_get(tool, "function");
        const json_t *parameters = json_object_get(f, "parameters");
        if (strcmp(json_string_value(json_object_get(f, "name")), name) == 0)
            return parameters ? parameters : json_true();
    }
    return NULL;
}

static bool fits(const judged *j, const char *name, const char *json, size_t n)
{
    json_t *args = NULL;
    const json_t *schema = schema_of(j, name);
    bool ok = schema && json_parse(&args, json, n, "arguments", NULL) == 0 &&
              (!json_is_object(schema) || schema_admits(schema, args));
    json_decref(args);
    return ok;
}

static bool judged_may(void *user, const char *name, const char *json, size_t n)
{
    judged *j = user;
    bool ok = fits(j, name, json, n);
    j->n_refused += !ok;
    return ok;
}

static void judged_begin(void *user, int i, const char *name)
{
    judged *j = user;
    snprintf(j->name, sizeof j->name, "%s", name);
    buf_clear(&j->args);
}

static void judged_args(void *user, int i, const char *s, size_t n)
{
    buf_append(&((judged *)user)->args, s, n);
}

static void judged_end(void *user, int i)
{
    judged *j = user;
    if (!fits(j, j->name, j->args.data, j->args.len))
        fail_msg("a call of %s%.*s", j->name, (int)j->args.len, j->args.data);
    j->n_calls++;
}

static uint64_t draw(uint64_t *seed, uint64_t n)
{
    *seed = rng_mix(*seed + 1);
    return *seed % n;
}

/* Of pieces, of which every third is one of the syntax's own. */
static void draw_text(const toolcall_syntax *s, uint64_t *seed, buf *out)
{
    const char *own[] = {s->open,
                         s->close,
                         s->also[0] ? s->also[0] : "",
                         s->head,
                         s->tail,
                         s->middle  ? s->middle
                         : s->quote ? s->quote
                                    : "",
                         s->call ? s->call : "",
                         s->end ? s->end : "",
                         s->tags.key ? s->tags.key : "",
                         s->tags.value_end ? s->tags.value_end : ""};
    buf_clear(out);
    buf_puts(out, "");
    for (uint64_t left = 1 + draw(seed, 10); left > 0; left--)
        buf_puts(out, draw(seed, 3) ? PIECES[draw(seed, N_PIECES)] : own[draw(seed, 10)]);
}

static void judge_syntax(const toolcall_syntax *syntax, const json_t *tools)
{
    grammar_spec spec = {.kind = GRAMMAR_TOOLS, .tools_json = TOOLS, .syntax = syntax, .parallel = true};
    nfa *a = nfa_new();
    int start = NFA_DEAD;
    size_t n_replies = 0;
    judged j = {.tools = tools};
    toolcall_sink sink = {
        .user = &j, .begin = judged_begin, .arguments = judged_args, .end = judged_end, .may = judged_may};
    buf text = {0};
    assert_int_equal(tools_compile(a, &spec, &start, NULL), 0);
    assert_true(nfa_seal(a));
    for (uint64_t i = 0; i < TEXTS; i++) {
        uint64_t seed = i;
        draw_text(syntax, &seed, &text);
        int config = nfa_begin(a, start);
        for (const char *p = text.data; *p && config != NFA_DEAD; p++)
            config = nfa_step(a, config, (uint8_t)*p);
        if (config == NFA_DEAD || !nfa_accepts(a, config)) continue;
        n_replies++;
        toolcall_parser *p = toolcall_new(&sink, syntax, tools);
        for (size_t at = 0; at < text.len; at += 5)
            assert_int_equal(toolcall_push(p, text.data + at, text.len - at < 5 ? text.len - at : 5), 0);
        assert_int_equal(toolcall_end(p, false), 0);
        toolcall_free(p);
    }
    print_message("%s: %zu replies, %zu calls, %zu refused\n", syntax->name, n_replies, j.n_calls,
                  j.n_refused);
    assert_true(n_replies > 100);
    buf_done(&text);
    buf_done(&j.args);
    nfa_free(a);
}

/* Where text may come as well: what the grammar lets through calls nothing but what is offered, as it is
 * offered. */
static void no_reply_calls_what_is_not_offered(void **state)
{
    size_t n;
    const toolcall_syntax *all = toolcall_syntaxes(&n);
    json_t *tools = NULL;
    assert_int_equal(json_parse(&tools, TOOLS, strlen(TOOLS), "tools", NULL), 0);
    for (size_t i = 0; i < n; i++) judge_syntax(&all[i], tools);
    json_decref(tools);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forced_calls_are_in_the_models_syntax),
        cmocka_unit_test(what_begins_like_a_json_call_has_to_be_one),
        cmocka_unit_test(what_cannot_be_held_is_refused),
        cmocka_unit_test(texts_between_tags_are_held_to_their_schema),
        cmocka_unit_test(a_call_may_end_a_thought),
        cmocka_unit_test(references_reach_the_definitions),
        cmocka_unit_test(a_thought_may_come_before_a_form),
        cmocka_unit_test(no_reply_calls_what_is_not_offered),
    };
    return cmocka_run_group_tests_name("grammar_calls", tests, NULL, NULL);
}
