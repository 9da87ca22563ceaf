/* Calls in each family's syntax, however the stream is cut; and thoughts apart from answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json/json.h"
#include "chat/thinking.h"
#include "chat/toolcall.h"

typedef struct record {
    buf text, calls;
} record;

static void on_text(void *user, const char *s, size_t n)
{
    buf_append(&((record *)user)->text, s, n);
}
static void on_begin(void *user, int i, const char *name)
{
    buf_printf(&((record *)user)->calls, "%d:%s(", i, name);
}
static void on_args(void *user, int i, const char *s, size_t n)
{
    buf_append(&((record *)user)->calls, s, n);
}
static void on_end(void *user, int i)
{
    buf_puts(&((record *)user)->calls, ")");
}

static json_t *offered(void)
{
    return json_pack("[{s:{s:s}},{s:{s:s}}]", "function", "name", "f", "function", "name", "get.x_1");
}

/* Push s cut at a and b; text and calls must be as given. */
static void split_gives(const char *syntax, const json_t *tools, const char *s, size_t a, size_t b,
                        const char *text, const char *calls)
{
    record r = {0};
    size_t n = strlen(s);
    toolcall_sink sink = {
        .user = &r, .text = on_text, .begin = on_begin, .arguments = on_args, .end = on_end};
    toolcall_parser *p = toolcall_new(&sink, toolcall_find(syntax), tools);
    assert_int_equal(toolcall_push(p, s, a), 0);
    assert_int_equal(toolcall_push(p, s + a, b - a), 0);
    assert_int_equal(toolcall_push(p, s + b, n - b), 0);
    assert_int_equal(toolcall_end(p, false), 0);
    buf_putc(&r.text, '\0');
    buf_putc(&r.calls, '\0');
    if (strcmp(r.text.data, text) || strcmp(r.calls.data, calls))
        fail_msg("%s: \"%s\" cut at %zu and %zu gave text \"%s\" calls \"%s\"", syntax, s, a, b, r.text.data,
                 r.calls.data);
    toolcall_free(p);
    buf_done(&r.text);
    buf_done(&r.calls);
}

static void gives(const char *syntax, const char *s, const char *text, const char *calls)
{
    json_t *tools = offered();
    for (size_t a = 0; a <= strlen(s); a++)
        for (size_t b = a; b <= strlen(s); b++) split_gives(syntax, tools, s, a, b, text, calls);
    json_decref(tools);
}

static void hermes_calls(void **state)
{
    gives("hermes",
          "On it.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}\"}}\n</tool_call>\n<tool_call>\n"
          "{\"name\": \"get.x_1\", \"arguments\": {}}\n</tool_call>",
          "On it.", "0:f({\"a\": \"}\"})1:get.x_1({})");
    gives("hermes", "<tool_call>{\"name\":\"f\",\"arguments\":{}, \"id\": \"</tool_call>\"}</tool_call> done",
          " done", "0:f({})");
}

static void llama_calls_begin_the_reply(void **state)
{
    gives("llama-json", "{\"name\": \"f\", \"parameters\": {\"a\": [1]}}", "", "0:f({\"a\": [1]})");
    gives("llama-json", "<|python_tag|>{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}", "",
          "0:f({})");
    gives("llama-json", "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"get.x_1\", \"parameters\": {}}",
          "", "0:f({})1:get.x_1({})");
    gives("llama-json", "It is {\"name\": \"f\", \"parameters\": {}}",
          "It is {\"name\": \"f\", \"parameters\": {}}", "");
    gives("llama-json", "{\"rooms\": 3}", "{\"rooms\": 3}", "");
    gives("llama-json", "<|python_tag|>print(1)", "<|python_tag|>print(1)", "");
    gives("llama-pythonic", "[f(a=1, b='x'), get.x_1()]", "", "0:f({\"a\": 1, \"b\": \"x\"})1:get.x_1({})");
    gives("llama-pythonic", "[1, 2] are numbers", "[1, 2] are numbers", "");
    gives("llama-pythonic", "f(x) is a function", "f(x) is a function", "");
}

static void mistral_calls(void **state)
{
    gives("mistral",
          "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"abcdefghi\"}, "
          "{\"name\": \"get.x_1\", \"arguments\": {}}]",
          "", "0:f({\"a\": 1})1:get.x_1({})");
    gives("mistral-args", "Ok[TOOL_CALLS]f[ARGS]{\"a\": \"]\"}[TOOL_CALLS]get.x_1[CALL_ID]a1[ARGS]{}", "Ok",
          "0:f({\"a\": \"]\"})1:get.x_1({})");
    gives("mistral-args", "[TOOL_CALLS]no[ARGS]{}", "[TOOL_CALLS]no[ARGS]{}", "");
}

static void granite_and_phi_calls(void **state)
{
    gives("granite", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]", "", "0:f({\"a\": 1})");
    gives("granite", "<tool_call>[{\"name\": \"f\", \"arguments\": {}}]", "", "0:f({})");
    gives("phi-4",
          "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"f\", \"arguments\": "
          "{}}]<|/tool_call|>end",
          "end", "0:f({})1:f({})");
}

static void gemma_calls(void **state)
{
    gives("gemma", "Let me see.\n```tool_code\nf(a=\"x\")\n```", "Let me see.", "0:f({\"a\": \"x\"})");
    gives("gemma", "```json\n{\"name\": \"f\", \"parameters\": {}}\n```", "", "0:f({})");
    gives("gemma", "```python\nf(a=1)\n```", "```python\nf(a=1)\n```", "");
    gives("gemma", "````tool_code\nf()\n```", "`", "0:f({})");
    gives("function-gemma",
          "<start_function_call>call:f{a:<escape>x}\"y<escape>,b:2,c:[true]}<end_function_call>"
          "<start_function_call>call:get.x_1{}<end_function_call>",
          "", "0:f({\"a\": \"x}\\\"y\", \"b\": 2, \"c\": [true]})1:get.x_1({})");
}

static void pythonic_calls(void **state)
{
    gives("lfm2",
          "<|tool_call_start|>[f(a=\"b\\\"c\", n=None), get.x_1(z={'k': (1, -2.5)})]<|tool_call_end|>Done.",
          "Done.", "0:f({\"a\": \"b\\\"c\", \"n\": null})1:get.x_1({\"z\": {\"k\": [1, -2.5]}})");
    gives("smollm3-python", "<code>\nf(a=1)\nget.x_1()\n</code>", "", "0:f({\"a\": 1})1:get.x_1({})");
    gives("smollm3-python", "<code>\nx = f(a=1)\n</code>", "<code>\nx = f(a=1)\n</code>", "");
    gives("lfm2", "<|tool_call_start|>[f(a=1, a=2)]", "<|tool_call_start|>[f(a=1, a=2)]", "");
    gives("lfm2", "<|tool_call_start|>[f(1)]<|tool_call_end|>", "<|tool_call_start|>[f(1)]<|tool_call_end|>",
          "");
    gives("lfm2", "<|tool_call_start|>[f(a=g())]", "<|tool_call_start|>[f(a=g())]", "");
}

static void what_was_not_offered_is_text(void **state)
{
    gives("hermes", "<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>",
          "<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>", "");
    gives("llama-json", "{\"name\": \"g\", \"parameters\": {}}", "{\"name\": \"g\", \"parameters\": {}}", "");
    gives("lfm2", "<|tool_call_start|>[ff(a=1)]", "<|tool_call_start|>[ff(a=1)]", "");
    gives("granite",
          "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {}}]",
          "{\"name\": \"g\", \"arguments\": {}}]", "0:f({})");
    split_gives("hermes", NULL, "<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>", 3, 9, "",
                "0:g({})");
    split_gives("gemma", NULL, "```json\n{\"name\":\"g\",\"arguments\":{}}\n```", 3, 9,
                "```json\n{\"name\":\"g\",\"arguments\":{}}\n```", "");
    split_gives("llama-json", NULL, "{\"name\": \"g\", \"parameters\": {}}", 3, 9,
                "{\"name\": \"g\", \"parameters\": {}}", "");
}

/* ---- other families ------------------------------------------------------------------------------ */

/* A function whose arguments are of every type. */
static json_t *typed(void)
{
    static const char TOOLS[] = "[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
                                "\"properties\":{\"s\":{\"type\":\"string\"},"
                                "\"i\":{\"type\":\"integer\"},\"b\":{\"type\":\"boolean\"},\"l\":{\"type\":"
                                "\"array\",\"items\":{\"$ref\":\"#/$defs/o\"}},"
                                "\"o\":{\"$ref\":\"#/$defs/"
                                "o\"},\"u\":{\"type\":[\"null\",\"string\"]},\"e\":{\"enum\":[\"x\",\"y\"]},"
                                "\"n\":{\"anyOf\":[{\"type\":\"number\"},{\"type\":\"null\"}]}},\"$defs\":{"
                                "\"o\":{\"type\":\"object\",\"properties\":{"
                                "\"k\":{\"type\":\"integer\"}}}}}}},{\"function\":{\"name\":\"get.x_1\"}}]";
    json_t *v = NULL;
    assert_int_equal(json_parse(&v, TOOLS, strlen(TOOLS), "tools", NULL), 0);
    return v;
}

static void typed_gives(const char *syntax, const char *s, const char *text, const char *calls)
{
    json_t *tools = typed();
    for (size_t a = 0; a <= strlen(s); a++)
        for (size_t b = a; b <= strlen(s) && b <= a + 3; b++)
            split_gives(syntax, tools, s, a, b, text, calls);
    json_decref(tools);
}

static void values_between_tags_get_the_schemas_type(void **state)
{
    typed_gives(
        "qwen3-coder",
        "Well.\n<tool_call>\n<function=f>\n<parameter=s>\n5\n</parameter>\n<parameter=i>\n5\n</parameter>\n"
        "<parameter=u>\nnull\n</parameter>\n<parameter=e>\nx\n</parameter>\n</function>\n</tool_call>",
        "Well.", "0:f({\"s\": \"5\", \"i\": 5, \"u\": null, \"e\": \"x\"})");
    typed_gives("qwen3-coder",
                "<function=f>\n<parameter=s>\n a \"b\"\n\n</parameter>\n<parameter=b>\nTrue\n</parameter>\n"
                "<parameter=s>\nagain\n</parameter>\n</function>\n</tool_call> done",
                " done", "0:f({\"s\": \" a \\\"b\\\"\\n\", \"b\": true})");
    typed_gives(
        "seed",
        "<seed:tool_call>\n<function=f>\n<parameter=s>if (a </b>) {\n}\n</parameter>\n<parameter=o>{\"k\": 1}"
        "</parameter>\n</function>\n</seed:tool_call>",
        "", "0:f({\"s\": \"if (a </b>) {\\n}\\n\", \"o\": {\"k\": 1}})");
    typed_gives(
        "glm-4.7",
        "<tool_call>f<arg_key>n</arg_key><arg_value>-2.5</arg_value><arg_key>u</arg_key><arg_value>12 St"
        "</arg_value></tool_call><tool_call>get.x_1</tool_call>",
        "", "0:f({\"n\": -2.5, \"u\": \"12 St\"})1:get.x_1({})");
    typed_gives(
        "glm-4",
        "<tool_call>f\n<arg_key>i</arg_key>\n<arg_value>1</arg_value>\n</tool_call>\n<tool_call>get.x_1\n"
        "<arg_key>any</arg_key>\n<arg_value>[1, {\"a\": \"b\"}]</arg_value>\n</tool_call>",
        "", "0:f({\"i\": 1})1:get.x_1({\"any\": [1, {\"a\": \"b\"}]})");
    typed_gives("deepseek-v3.2",
                "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"u\" "
                "string=\"true\">null"
                "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"i\" string=\"false\">7</｜DSML｜parameter>\n"
                "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
                "", "0:f({\"u\": \"null\", \"i\": 7})");
    typed_gives(
        "minimax-m3",
        "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<l>]<]minimax[>[<item>"
        "]<]minimax[>[<k>1]<]minimax[>[</k>]<]minimax[>[</item>]<]minimax[>[<item>]<]minimax[>[<k>2"
        "]<]minimax[>[</k>]<]minimax[>[</item>]<]minimax[>[</l>]<]minimax[>[<s>a]<]minimax[>[</s>"
        "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        "", "0:f({\"l\": [{\"k\": 1}, {\"k\": 2}], \"s\": \"a\"})");
    typed_gives("minicpm",
                "<function name=\"f\"><param name=\"s\"><![CDATA[<a> </param>]]></param></function>\n"
                "<function name=\"get.x_1\"></function>",
                "", "0:f({\"s\": \"<a> </param>\"})1:get.x_1({})");
    typed_gives("kimi-k3",
                "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument key=\"i\" "
                "type=\"number\""
                "<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
                "", "0:f({\"i\": 1})");
}

static void names_and_arguments_between_markers(void **state)
{
    gives(
        "kimi-k2",
        "Ok<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": 1}"
        "<|tool_call_end|><|tool_call_begin|>functions.get.x_1:1<|tool_call_argument_begin|>{}<|tool_call_"
        "end|>"
        "<|tool_calls_section_end|>",
        "Ok", "0:f({\"a\": 1})1:get.x_1({})");
    gives("kimi-k2",
          "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}"
          "<|tool_call_begin|>functions.get.x_1:1<|tool_call_argument_begin|>{}",
          "", "0:f({})1:get.x_1({})");
    gives("deepseek-v3.1",
          "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": "
          "\"}\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
          "", "0:f({\"a\": \"}\"})");
    gives("deepseek-r1",
          "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```<"
          "｜tool▁call▁end｜>"
          "<｜tool▁calls▁end｜>",
          "", "0:f({})");
    gives("gpt-oss", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}", "",
          "0:f({\"a\": 1})");
    gives("gpt-oss", "to=functions.f<|channel|>commentary json<|message|>{}", "", "0:f({})");
    gives("functionary-3.1", "<function=f>{\"a\": 1}</function> ok", " ok", "0:f({\"a\": 1})");
    gives("functionary-3.2", "f\n{\"a\": 1}>>>get.x_1\n{}", "", "0:f({\"a\": 1})1:get.x_1({})");
    gives("functionary-3.2", "f is a function\n{}", "f is a function\n{}", "");
    gives("cohere",
          "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {\"a\": "
          "1}},\n    "
          "{\"tool_call_id\": \"1\", \"tool_name\": \"get.x_1\", \"parameters\": {}}\n]<|END_ACTION|>",
          "", "0:f({\"a\": 1})1:get.x_1({})");
    gives("command-r", "Action:\n```json\n[{\"tool_name\": \"f\", \"parameters\": {}}]\n```", "", "0:f({})");
    gives("apertus", "<|tools_prefix|>[{\"f\": {\"a\": 1}}, {\"get.x_1\": {}}]<|tools_suffix|>", "",
          "0:f({\"a\": 1})1:get.x_1({})");
    gives("gigachat-3",
          "Hm.<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"f\", \"arguments\": {}}", "Hm.",
          "0:f({})");
    gives("firefunction", " functools[{\"name\": \"f\", \"arguments\": {}}]", "", "0:f({})");
    gives("gemma-4", "<|tool_call>call:f{a:<|\"|>x}y<|\"|>,b:{c:[1,true]}}<tool_call|>", "",
          "0:f({\"a\": \"x}y\", \"b\": {\"c\": [1, true]}})");
    gives("lfm2.5", "[f(a=1), get.x_1()]", "", "0:f({\"a\": 1})1:get.x_1({})");
    gives("lfm2.5", "[link](https://example.org) and [f]", "[link](https://example.org) and [f]", "");
}

/* "\n" within a text of Python is a line end, as Python has it; the models' own parsers read it so. */
static void escapes_in_python_texts_are_pythons(void **state)
{
    gives("lfm2", "<|tool_call_start|>[f(a=\"x\\ny\\tz\", b='\\\\n')]<|tool_call_end|>", "",
          "0:f({\"a\": \"x\\ny\\u0009z\", \"b\": \"\\\\n\"})");
}

/* ---- replies that are cut -------------------------------------------------------------------------- */

static void cut_gives(const char *syntax, const char *s, const char *text, const char *calls)
{
    json_t *tools = typed();
    for (size_t cut = 1; cut <= strlen(s); cut++) {
        record r = {0};
        toolcall_sink sink = {
            .user = &r, .text = on_text, .begin = on_begin, .arguments = on_args, .end = on_end};
        toolcall_parser *p = toolcall_new(&sink, toolcall_find(syntax), tools);
        for (size_t at = 0; at < strlen(s); at += cut)
            assert_int_equal(toolcall_push(p, s + at, strlen(s) - at < cut ? strlen(s) - at : cut), 0);
        assert_int_equal(toolcall_end(p, true), 0);
        buf_putc(&r.text, '\0');
        buf_putc(&r.calls, '\0');
        if (strcmp(r.text.data, text) || strcmp(r.calls.data, calls))
            fail_msg("%s: \"%s\" in pieces of %zu gave text \"%s\" calls \"%s\"", syntax, s, cut, r.text.data,
                     r.calls.data);
        toolcall_free(p);
        buf_done(&r.text);
        buf_done(&r.calls);
    }
    json_decref(tools);
}

static void a_cut_call_shows_its_name_and_arguments_so_far(void **state)
{
    cut_gives("hermes", "Ok.\n<tool_c", "Ok.", "");
    cut_gives("hermes", "<tool_call>\n{\"name\": \"f\", \"argu", "", "0:f()");
    cut_gives("hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"a", "", "0:f({\"s\": \"a)");
    cut_gives("hermes", "<tool_call>\n{\"na", "", "");
    cut_gives("qwen3-coder", "<tool_call>\n<function=f>\n<parameter=s>\nabc\n</parameter>\n<parameter=i>\n1",
              "", "0:f({\"s\": \"abc\")");
    cut_gives("qwen3-coder", "<tool_call>\n<functi", "", "");
    cut_gives("qwen3-coder", "<tool_call>\n<function=f", "", "");
    cut_gives("glm-4", "<tool_call>f\n<arg_key>i", "", "0:f()");
    cut_gives("lfm2", "<|tool_call_start|>[f(s=\"a\", i=", "", "0:f({\"s\": \"a\", \"i\": )");
    cut_gives("gemma-4", "<|tool_call>call:f{s:<|\"|>a<|\"|>,i", "", "0:f({\"s\": \"a\", \"i\")");
    cut_gives("kimi-k2", "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_arg", "",
              "0:f()");
    cut_gives("gpt-oss", "<|channel|>commentary to=functions.f <|constr", "", "0:f()");
    cut_gives("cohere", "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"f\", ", "",
              "0:f()");
    cut_gives("apertus", "<|tools_prefix|>[{\"f\": ", "", "0:f()");
    cut_gives("deepseek-r1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```js", "",
              "0:f()");
    cut_gives("llama-json", "{\"name\": \"f\", \"par", "", "0:f()");
    cut_gives("hermes", "5 < 6 and", "5 < 6 and", "");
}

/* A reply of blanks, of brackets, or of a call without an end takes time in proportion to its length. */
static void long_replies_are_no_work(void **state)
{
    enum { N = 1 << 20 };
    size_t n;
    const toolcall_syntax *all = toolcall_syntaxes(&n);
    json_t *tools = offered();
    char *s = malloc(N);
    for (size_t i = 0; i < n; i++) {
        for (int kind = 0; kind < 3; kind++) {
            record r = {0};
            toolcall_sink sink = {
                .user = &r, .text = on_text, .begin = on_begin, .arguments = on_args, .end = on_end};
            toolcall_parser *p = toolcall_new(&sink, &all[i], tools);
            memset(s, kind == 0 ? ' ' : kind == 1 ? '[' : '(', N);
            if (kind == 2) assert_int_equal(toolcall_push(p, all[i].open, strlen(all[i].open)), 0);
            if (kind == 2) assert_int_equal(toolcall_push(p, "f(a=", 4), 0);
            assert_int_equal(toolcall_push(p, s, N), 0);
            assert_int_equal(toolcall_end(p, false), 0);
            if (r.text.len < N) fail_msg("%s, %d: %zu of %d bytes", all[i].name, kind, r.text.len, N);
            assert_int_equal(r.calls.len, 0);
            toolcall_free(p);
            buf_done(&r.text);
        }
    }
    free(s);
    json_decref(tools);
}

/* ---- thoughts ------------------------------------------------------------------------------------ */

static void thinks(const char *form, bool open, const char *s, const char *thought, const char *answer)
{
    for (size_t cut = 1; cut <= strlen(s); cut++) {
        thinking t;
        thinking_parts p;
        buf a = {0}, b = {0};
        assert_int_equal(thinking_init(&t, thinking_find(form), open, NULL), 0);
        for (size_t at = 0; at < strlen(s); at += cut) {
            thinking_push(&t, s + at, strlen(s) - at < cut ? strlen(s) - at : cut, &p);
            buf_append(&a, p.thought, p.n_thought);
            buf_append(&b, p.answer, p.n_answer);
        }
        thinking_end(&t, NULL, 0, &p);
        buf_append(&a, p.thought, p.n_thought);
        buf_append(&b, p.answer, p.n_answer);
        buf_putc(&a, '\0');
        buf_putc(&b, '\0');
        if (strcmp(a.data, thought) || strcmp(b.data, answer))
            fail_msg("\"%s\" in pieces of %zu: thought \"%s\", answer \"%s\"", s, cut, a.data, b.data);
        thinking_done(&t);
        buf_done(&a);
        buf_done(&b);
    }
}

static void thoughts_come_apart_from_answers(void **state)
{
    thinks("<think>", false, "<think>\nIt is\n\noff.\n</think>\n\nYes. ", "It is\n\noff.", "Yes. ");
    thinks("<think>", false, "\n<think>a</thin</think>b<think>c</think>", "a</thin", "b<think>c</think>");
    thinks("<think>", false, " plain < <think>", "", " plain < <think>");
    thinks("<think>", false, "  ", "", "  ");
    thinks("<think>", false, "<thi", "", "<thi");
    thinks("<think>", true, "\nHm.\n</think>\nYes.", "Hm.", "Yes.");
    thinks("<think>", true, "cut short </th", "cut short </th", "");
    thinks("<think>", false, "<think>\n\n</think>\n\nYes.", "", "Yes.");
    thinks("[THINK]", false, "[THINK]x[/THINK]y", "x", "y");
    thinks("Here is my response:", false, "Here is my thought process: x\nHere is my response: y", "x", "y");
    thinks("no markers", false, "<think>x</think>y", "", "<think>x</think>y");
}

/* thinks() for a form by its name, with the markers of calls that end a thought. */
static void form_thinks(const char *name, bool open, const char *const *ends, const char *s,
                        const char *thought, const char *answer)
{
    for (size_t cut = 1; cut <= strlen(s); cut++) {
        thinking t;
        thinking_parts p;
        buf a = {0}, b = {0};
        assert_int_equal(thinking_init(&t, thinking_named(name), open, ends), 0);
        for (size_t at = 0; at < strlen(s); at += cut) {
            thinking_push(&t, s + at, strlen(s) - at < cut ? strlen(s) - at : cut, &p);
            buf_append(&a, p.thought, p.n_thought);
            buf_append(&b, p.answer, p.n_answer);
        }
        thinking_end(&t, NULL, 0, &p);
        buf_append(&a, p.thought, p.n_thought);
        buf_append(&b, p.answer, p.n_answer);
        buf_putc(&a, '\0');
        buf_putc(&b, '\0');
        if (strcmp(a.data, thought) || strcmp(b.data, answer))
            fail_msg("%s: \"%s\" in pieces of %zu: thought \"%s\", answer \"%s\"", name, s, cut, a.data,
                     b.data);
        thinking_done(&t);
        buf_done(&a);
        buf_done(&b);
    }
}

static void frames_of_answers_are_dropped(void **state)
{
    form_thinks(
        "gpt-oss", false, NULL,
        "<|channel|>analysis<|message|>Off.<|end|><|start|>assistant<|channel|>final<|message|>Yes, <it> is.",
        "Off.", "Yes, <it> is.");
    form_thinks(
        "gpt-oss", false, NULL,
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>Now<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>b<|end|><|start|>assistant<|channel|>commentary "
        "to=functions.f <|constrain|>json<|message|>{}",
        "ab", "Now<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}");
    form_thinks("gpt-oss", false, NULL,
                "<|start|>assistant<|channel|>commentary to=python<|message|>print(1)<|end|>", "", "");
    form_thinks("gpt-oss", false, NULL, "<|channel|>fin", "", ""); /* cut within a frame */
    form_thinks("cohere", false, NULL,
                "<|START_THINKING|>x<|END_THINKING|>\n<|START_RESPONSE|> y <|END_RESPONSE|>", "x", "y ");
    form_thinks("gemma-4", false, NULL,
                "<|channel><|channel>thought\nx<channel|>y<|channel>thought\n<channel|>z", "x", "yz");
    form_thinks("minimax-m3", false, NULL, "</mm:think>y", "", "y");
    form_thinks("seed", false, NULL, "<seed:think>x</seed:think>\ny", "x", "y");
    form_thinks("apriel", true, NULL, "\nx\n[BEGIN FINAL RESPONSE]\ny", "x", "y");
    form_thinks("functionary", false, NULL, "all\nHello, all\n", "", "Hello, all\n");
}

static void a_call_may_end_a_thought(void **state)
{
    static const char *const ends[] = {"<tool_call>\n<function=", NULL};
    form_thinks("think", true, ends, "Hm <tool_call> hm.\n<tool_call>\n<function=f>", "Hm <tool_call> hm.",
                "<tool_call>\n<function=f>");
    form_thinks("think", true, NULL, "Hm.\n<tool_call>\n<function=f>", "Hm.\n<tool_call>\n<function=f>", "");
}

static void only_the_template_opens_thoughts(void **state)
{
    const thinking_form *f = thinking_find("{{ '</think>' }}");
    static const char prompt[] = "assistant\n<think>\n";
    uint8_t marks[sizeof prompt - 1] = {0};
    assert_true(thinking_is_open(f, prompt, sizeof prompt - 1, marks));
    marks[12] = 1;
    assert_false(thinking_is_open(f, prompt, sizeof prompt - 1, marks));
    assert_false(thinking_is_open(f, "<think>\n\n</think>\n\n", 19, NULL));
    assert_null(thinking_find("{{ messages }}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hermes_calls),
        cmocka_unit_test(llama_calls_begin_the_reply),
        cmocka_unit_test(mistral_calls),
        cmocka_unit_test(granite_and_phi_calls),
        cmocka_unit_test(gemma_calls),
        cmocka_unit_test(pythonic_calls),
        cmocka_unit_test(what_was_not_offered_is_text),
        cmocka_unit_test(values_between_tags_get_the_schemas_type),
        cmocka_unit_test(names_and_arguments_between_markers),
        cmocka_unit_test(escapes_in_python_texts_are_pythons),
        cmocka_unit_test(a_cut_call_shows_its_name_and_arguments_so_far),
        cmocka_unit_test(long_replies_are_no_work),
        cmocka_unit_test(thoughts_come_apart_from_answers),
        cmocka_unit_test(frames_of_answers_are_dropped),
        cmocka_unit_test(a_call_may_end_a_thought),
        cmocka_unit_test(only_the_template_opens_thoughts),
    };
    return cmocka_run_group_tests_name("toolcall", tests, NULL, NULL);
}
