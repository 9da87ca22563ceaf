/* Chat templates and the splitter of tool calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json/json.h"
#include "chat/chat.h"

static const char conversation[] =
    "[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\" Hi \"},"
    "{\"role\":\"assistant\",\"content\":\"Hello\"},{\"role\":\"user\",\"content\":\"Bye\"}]";
static const char one_tool[] = "[{\"type\":\"function\",\"function\":{\"name\":\"light.on\",\"description\":"
                               "\"Caf\\u00e9\",\"parameters\":{\"x\":[1,2.5,true,null]}}}]";

/* Renders with bos "<s>" and eos "</s>"; the text or "ERROR: ..." is the caller's to free. */
static char *render(const char *source, const char *messages, const char *tools)
{
    chat_template *t = NULL;
    shoal_err err = {0};
    buf out = {0};
    json_t *m = NULL, *o = NULL;
    assert_int_equal(json_parse(&m, messages, strlen(messages), "messages", &err), 0);
    if (tools) assert_int_equal(json_parse(&o, tools, strlen(tools), "tools", &err), 0);
    int rc = chat_template_compile(&t, source, strlen(source), "template", &err);
    if (rc == 0)
        rc = chat_template_render(t, &(chat_input){.messages = m, .tools = o}, true, "<s>", "</s>", &out,
                                  NULL, &err);
    if (rc) {
        assert_int_equal(out.len, 0);
        buf_printf(&out, "ERROR: %s", err.message);
    }
    buf_putc(&out, '\0');
    chat_template_free(t);
    json_decref(m);
    json_decref(o);
    return buf_take(&out);
}

static void expect(const char *source, const char *messages, const char *tools, const char *want)
{
    char *got = render(source, messages, tools);
    if (strcmp(got, want)) fail_msg("template %s\n gave: %s\n want: %s", source, got, want);
    free(got);
}

/* Small expressions: {{ source }} must print want. */
static void prints(const char *source, const char *want)
{
    char t[1024];
    snprintf(t, sizeof t, "{{ %s }}", source);
    expect(t, conversation, one_tool, want);
}

static void chatml_renders_as_the_home_models_want(void **state)
{
    expect(
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
        "'<|im_end|>' "
        "+ '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
        conversation, NULL,
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n"
        "Hello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n");
}

static void llama3_style_renders(void **state)
{
    expect("{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
           "'<|start_header_id|>' + "
           "message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if "
           "loop.index0 == 0 "
           "%}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if "
           "add_generation_prompt %}"
           "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
           "[{\"role\":\"user\",\"content\":\" Hi \"}]", NULL,
           "<s><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_"
           "header_id|>\n\n");
}

static const char qwen[] =
    "{%- if tools %}\n"
    "    {{- '<|im_start|>system\\n' }}\n"
    "    {%- if messages[0]['role'] == 'system' %}\n"
    "        {{- messages[0]['content'] }}\n"
    "    {%- endif %}\n"
    "    {{- \"\\n\\n# Tools\\n<tools>\" }}\n"
    "    {%- for tool in tools %}\n"
    "        {{- \"\\n\" }}\n"
    "        {{- tool | tojson }}\n"
    "    {%- endfor %}\n"
    "    {{- \"\\n</tools><|im_end|>\\n\" }}\n"
    "{%- endif %}\n"
    "{%- for message in messages %}\n"
    "    {%- if (message.role == \"user\") or (message.role == \"assistant\" and not message.tool_calls) %}\n"
    "        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n"
    "    {%- elif message.role == \"assistant\" %}\n"
    "        {{- '<|im_start|>' + message.role }}\n"
    "        {%- for tool_call in message.tool_calls %}\n"
    "            {%- if tool_call.function is defined %}\n"
    "                {%- set tool_call = tool_call.function %}\n"
    "            {%- endif %}\n"
    "            {{- '\\n<tool_call>\\n{\"name\": \"' }}\n"
    "            {{- tool_call.name }}\n"
    "            {{- '\", \"arguments\": ' }}\n"
    "            {{- tool_call.arguments | tojson }}\n"
    "            {{- '}\\n</tool_call>' }}\n"
    "        {%- endfor %}\n"
    "        {{- '<|im_end|>\\n' }}\n"
    "    {%- elif message.role == \"tool\" %}\n"
    "        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != \"tool\") %}\n"
    "            {{- '<|im_start|>user' }}\n"
    "        {%- endif %}\n"
    "        {{- '\\n<tool_response>\\n' }}{{- message.content }}{{- '\\n</tool_response>' }}\n"
    "        {%- if loop.last or (messages[loop.index0 + 1].role != \"tool\") %}\n"
    "            {{- '<|im_end|>\\n' }}\n"
    "        {%- endif %}\n"
    "    {%- endif %}\n"
    "{%- endfor %}\n";

static void qwen_style_renders_tools_and_calls(void **state)
{
    expect(
        qwen,
        "[{\"role\":\"user\",\"content\":\"on\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{"
        "\"function\":"
        "{\"name\":\"f\",\"arguments\":{\"a\":1}}}]},{\"role\":\"tool\",\"content\":\"ok\"}]",
        one_tool,
        "<|im_start|>system\n\n\n# Tools\n<tools>\n{\"type\": \"function\", \"function\": {\"name\": "
        "\"light.on\", "
        "\"description\": \"Caf\xC3\xA9\", \"parameters\": {\"x\": [1, 2.5, true, "
        "null]}}}\n</tools><|im_end|>\n"
        "<|im_start|>user\non<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{\"name\": \"f\", "
        "\"arguments\": {\"a\": "
        "1}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nok\n</tool_response><|im_end|>\n");
}

static void mistral_style_raises_and_uses_namespaces(void **state)
{
    static const char source[] =
        "{%- set ns = namespace(index=0) %}{{ bos_token }}{%- for message in messages %}\n"
        "{%- if (message['role'] == 'user') != (ns.index % 2 == 0) %}{{ raise_exception('roles must "
        "alternate') }}"
        "{%- endif %}{%- set ns.index = ns.index + 1 %}\n"
        "{%- if message.role == 'user' %}{{ ' [INST] ' ~ message.content ~ ' [/INST]' }}"
        "{%- else %}{{ ' ' ~ message.content ~ eos_token }}{% endif %}{%- endfor %}";
    expect(source, "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"}]", NULL,
           "<s> [INST] a [/INST] b</s>");
    expect(source, "[{\"role\":\"assistant\",\"content\":\"b\"}]", NULL,
           "ERROR: template: line 2: the template refuses: roles must alternate");
}

static void refusals_do_not_tell_where_the_template_lies(void **state)
{
    static const char source[] = "{{ raise_exception('one turn alone') }}";
    chat_template *t = NULL;
    shoal_err err = {0};
    buf out = {0};
    json_t *m = json_array();
    assert_int_equal(
        chat_template_compile(&t, source, strlen(source), "/srv/models/m/chat_template.jinja", &err), 0);
    assert_int_not_equal(
        chat_template_render(t, &(chat_input){.messages = m}, true, "", "", &out, NULL, &err), 0);
    assert_string_equal(err.message, "chat_template.jinja: line 1: the template refuses: one turn alone");
    chat_template_free(t);
    json_decref(m);
    buf_done(&out);
}

static void expressions_follow_python(void **state)
{
    prints("1 + 2 * 3 - 4 // 3", "6");
    prints("-7 // 2 ~ ' ' ~ -7 % 3 ~ ' ' ~ 2 ** 3 ~ ' ' ~ 7 / 2", "-4 2 8 3.5");
    prints("[1, 'a', none, true, 1.0]", "[1, 'a', None, True, 1.0]");
    prints("{'a': 1, 'b': {'c': []}}", "{'a': 1, 'b': {'c': []}}");
    prints("{'a': {'b': 1}}", "{'a': {'b': 1}}");
    prints("messages[::-1][0].content", "Bye");
    prints("messages[1:]|length ~ 'abcdef'[1:-1:2]", "3bd");
    prints("'x' if messages|length > 10 else 'y'", "y");
    prints("'a' in 'cat' and 'b' not in ['c'] and 'role' in messages[0]", "True");
    prints("nothing is defined or not (none is none and 3 is odd)", "False");
    prints("2 is divisibleby 2", "True");
    prints("messages|map(attribute='role')|unique|join(', ')", "system, user, assistant");
    prints("messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list", "[' Hi ', 'Bye']");
    prints("messages|rejectattr('role', 'eq', 'user')|list|length", "2");
    prints("[3, 1, 2]|sort(reverse=true)", "[3, 2, 1]");
    prints("' x '.strip() + 'a,b'.split(',')[1] + 'Ab'.lower() + 'ab'|upper", "xbabAB");
    prints("{'k': 'v'}.get('z', 'd') ~ {'k': 'v'}.items()|list", "d[['k', 'v']]");
    prints("missing|default('d') ~ ''|default('e', true)", "de");
    prints("range(3)|list ~ range(5, 1, -2)|list", "[0, 1, 2][5, 3]");
    prints("{'a': [1, {}]}|tojson(indent=2)", "{\n  \"a\": [\n    1,\n    {}\n  ]\n}");
    prints("'<b>'|e", "&lt;b&gt;");
    prints("3.14159|round(2) ~ ' ' ~ '12'|int + 1", "3.14 13");
    prints("'a\\nb'|indent(2)", "a\n  b");
    prints("not true == false", "True");
}

static void statements_scope_as_jinja_does(void **state)
{
    expect("{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}", "[]", NULL,
           "231");
    expect("{% for i in [] %}a{% else %}none{% endfor %}", "[]", NULL, "none");
    expect("{% for i in range(9) if i is even %}{% if i == 6 %}{% break %}{% endif %}{% if i == 2 %}{% "
           "continue %}"
           "{% endif %}{{ i }}{{ loop.first }}{% endfor %}",
           "[]", NULL, "0True4False");
    expect("{% macro f(a, b='z') %}[{{ a }}{{ b }}]{% endmacro %}{{ f('x') }}{{ f('x', b='y') }}", "[]", NULL,
           "[xz][xy]");
    expect("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}", "[]", NULL, "a1b2");
    expect("{% set t %}in{{ 1 }}{% endset %}{{ t|upper }}", "[]", NULL, "IN1");
    expect("{% generation %}x{% endgeneration %}{# gone #}y", "[]", NULL, "xy");
}

static void white_space_is_trimmed_like_transformers(void **state)
{
    expect("a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "[]", NULL, "a\n  b\nc");
    expect("a \n {{- 1 -}} \n b", "[]", NULL, "a1b");
    expect("a {# x #}\nb", "[]", NULL, "a b");
}

static void parts_are_flattened_to_text(void **state)
{
    expect("{{ messages[0].content }}",
           "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":"
           "\"b\"}]}]",
           NULL, "ab");
}

/* Sixty doublings of one list are sixty lists and 2^60 pairs to compare. */
static void comparing_shared_lists_is_bounded(void **state)
{
    static const char *const compare[] = {"ns.s == ns.t",
                                          "ns.s in [ns.t]",
                                          "[ns.s] == [ns.t]",
                                          "ns.s is eq(ns.t)",
                                          "{'a': ns.s} != {'a': ns.t}",
                                          "[ns.s, ns.t] | unique | length"};
    for (size_t i = 0; i < sizeof compare / sizeof *compare; i++) {
        char source[256];
        snprintf(source, sizeof source,
                 "{%% set ns = namespace(s=[1], t=[1]) %%}{%% for i in range(60) %%}{%% set ns.s = [ns.s, "
                 "ns.s] %%}"
                 "{%% set ns.t = [ns.t, ns.t] %%}{%% endfor %%}{{ %s }}",
                 compare[i]);
        char *got = render(source, conversation, NULL);
        if (!strstr(got, "runs for too long")) fail_msg("%s gave %s", compare[i], got);
        free(got);
    }
}

static void bad_templates_are_refused_with_their_line(void **state)
{
    expect("\n{{ 1 + }}", "[]", NULL, "ERROR: template: line 2: an expression is expected here");
    expect("{{ x | nosuch }}", "[]", NULL, "ERROR: template: line 1: filter \"nosuch\" is not supported");
    expect(
        "{% include 'x' %}", "[]", NULL,
        "ERROR: template: line 1: \"include\" reads another template, and a chat template stands alone: put "
        "its text here");
    expect("{% if x %}", "[]", NULL, "ERROR: template: line 1: a block has no end");
    expect("{% for i in range(1000000) %}{% for j in range(1000000) %}{% endfor %}{% endfor %}", "[]", NULL,
           "ERROR: template: line 1: the template needs more than 67108864 bytes");
    expect("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "[]", NULL,
           "ERROR: template: line 1: the template nests too deep");
    char deep[3000];
    memset(deep, '(', sizeof deep);
    memcpy(deep, "{{", 2);
    deep[sizeof deep - 1] = '\0';
    expect(deep, "[]", NULL, "ERROR: template: line 1: nested too deep");
}

/* ---- tool calls ---- */

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

/* Push s cut at a and b; text and calls must be as given. */
static void split_gives(const char *s, size_t a, size_t b, const char *text, const char *calls)
{
    record r = {0};
    size_t n = strlen(s);
    toolcall_sink sink = {
        .user = &r, .text = on_text, .begin = on_begin, .arguments = on_args, .end = on_end};
    toolcall_parser *p = toolcall_new(&sink, toolcall_find("hermes"), NULL);
    assert_int_equal(toolcall_push(p, s, a), 0);
    assert_int_equal(toolcall_push(p, s + a, b - a), 0);
    assert_int_equal(toolcall_push(p, s + b, n - b), 0);
    assert_int_equal(toolcall_end(p, false), 0);
    buf_putc(&r.text, '\0');
    buf_putc(&r.calls, '\0');
    if (strcmp(r.text.data, text) || strcmp(r.calls.data, calls))
        fail_msg("\"%s\" cut at %zu and %zu gave text \"%s\" calls \"%s\"", s, a, b, r.text.data,
                 r.calls.data);
    toolcall_free(p);
    buf_done(&r.text);
    buf_done(&r.calls);
}

static void any_split_gives_the_same_calls(void **state)
{
    static const char *const cases[][3] = {
        {"Sure.\n<tool_call>\n{\"name\": \"a.b\", \"arguments\": {\"x\": \"}\\\"\"}}\n</tool_call>", "Sure.",
         "0:a.b({\"x\": \"}\\\"\"})"},
        {"<tool_call>{\"arguments\":{\"k\":[1,{}]},\"name\":\"f\"}</tool_call> "
         "<tool_call>\n{\"name\":\"g\",\"arguments\":{}}\n</tool_call>",
         "", "0:f({\"k\":[1,{}]})1:g({})"},
        {"a < b <tool <<tool_call> nonsense </tool_call> c ",
         "a < b <tool <<tool_call> nonsense </tool_call> c ", ""},
        {"x  <tool_call>{\"name\": 3}</tool_call>", "x  <tool_call>{\"name\": 3}</tool_call>", ""},
        {"cut <tool_call>{\"name\": \"f\", \"arguments\": {\"a", "cut", "0:f({\"a)"},
        {"plain \n", "plain \n", ""},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t a = 0; a <= strlen(cases[c][0]); a++)
            for (size_t b = a; b <= strlen(cases[c][0]); b++)
                split_gives(cases[c][0], a, b, cases[c][1], cases[c][2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chatml_renders_as_the_home_models_want),
        cmocka_unit_test(llama3_style_renders),
        cmocka_unit_test(qwen_style_renders_tools_and_calls),
        cmocka_unit_test(mistral_style_raises_and_uses_namespaces),
        cmocka_unit_test(refusals_do_not_tell_where_the_template_lies),
        cmocka_unit_test(expressions_follow_python),
        cmocka_unit_test(statements_scope_as_jinja_does),
        cmocka_unit_test(white_space_is_trimmed_like_transformers),
        cmocka_unit_test(parts_are_flattened_to_text),
        cmocka_unit_test(comparing_shared_lists_is_bounded),
        cmocka_unit_test(bad_templates_are_refused_with_their_line),
        cmocka_unit_test(any_split_gives_the_same_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
