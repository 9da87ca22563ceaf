/* Templates in the shape of each family (tests/data/templates): exact prompts (Jinja 2 gives the same with
 * the settings of transformers), the syntax of calls that is seen from them, whether they think; and the
 * calls that they write are read back. Those of the templates that print today's date get it as a variable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "json/json.h"
#include "chat/chat.h"

#define DIR SHOAL_SOURCE_DIR "/tests/data/templates/"

static json_t *families(void)
{
    buf text = {0};
    json_t *v = NULL;
    shoal_err err = {0};
    assert_int_equal(file_read(&text, DIR "cases.json", 1 << 20, &err), 0);
    if (json_parse(&v, text.data, text.len, "cases.json", &err)) fail_msg("%s", err.message);
    buf_done(&text);
    return v;
}

static const char *string_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static chat_template *load(const json_t *family)
{
    char path[512];
    buf source = {0};
    shoal_err err = {0};
    chat_template *t = NULL;
    snprintf(path, sizeof path, DIR "%s.jinja", string_of(family, "template"));
    if (file_read(&source, path, 1 << 20, &err) ||
        chat_template_compile(&t, source.data, source.len, string_of(family, "template"), &err))
        fail_msg("%s", err.message);
    buf_done(&source);
    return t;
}

static int render(const chat_template *t, const json_t *c, buf *out, shoal_err *err)
{
    chat_input in = {.messages = json_object_get(c, "messages"),
                     .tools = json_object_get(c, "tools"),
                     .kwargs = json_object_get(c, "kwargs")};
    int rc = chat_template_render(t, &in, true, "<s>", "</s>", out, NULL, err);
    buf_putc(out, '\0');
    return rc;
}

static void prompts_are_exact(void **state)
{
    json_t *all = families(), *family, *c;
    size_t i, k;
    json_array_foreach(all, i, family)
    {
        chat_template *t = load(family);
        json_array_foreach(json_object_get(family, "cases"), k, c)
        {
            buf out = {0};
            shoal_err err = {0};
            const char *refused = string_of(c, "refused"), *want = string_of(c, "prompt"),
                       *name = string_of(family, "template");
            int rc = render(t, c, &out, &err);
            if (refused && (rc != SHOAL_EINVALID || !strstr(err.message, refused)))
                fail_msg("%s, case %zu: %d %s", name, k, rc, err.message);
            if (!refused && (rc || strcmp(out.data, want)))
                fail_msg("%s, case %zu: %s\n gave: %s\n want: %s", name, k, rc ? err.message : "", out.data,
                         want);
            buf_done(&out);
        }
        chat_template_free(t);
    }
    assert_true(json_array_size(all) >= 17);
    json_decref(all);
}

static void syntax_and_thoughts_are_seen(void **state)
{
    json_t *all = families(), *family;
    size_t i;
    json_array_foreach(all, i, family)
    {
        chat_template *t = load(family);
        const char *name = string_of(family, "template"), *thinks = string_of(family, "thinks");
        const thinking_form *form = chat_template_thinking(t);
        const char *calls = chat_template_calls(t, NULL)->name;
        if (strcmp(calls, string_of(family, "calls")) != 0) fail_msg("%s: calls seem to be %s", name, calls);
        if (!thinks != !form || (form && strcmp(form->open, thinks) != 0)) fail_msg("%s: thoughts", name);
        chat_template_free(t);
    }
    json_decref(all);
}

/* ---- back from text ------------------------------------------------------------------------------ */

static void on_text(void *user, const char *s, size_t n) {}
static void on_begin(void *user, int i, const char *name)
{
    buf_printf(user, "%s[\"%s\",", i ? "," : "", name);
}
static void on_args(void *user, int i, const char *s, size_t n)
{
    buf_append(user, s, n);
}
static void on_end(void *user, int i)
{
    buf_putc(user, ']');
}

/* All calls of a conversation as [name, arguments] pairs. */
static json_t *calls_of(const json_t *messages)
{
    json_t *out = json_array(), *m, *call;
    size_t i, k;
    json_array_foreach(messages, i, m) json_array_foreach(json_object_get(m, "tool_calls"), k, call)
    {
        json_t *f = json_object_get(call, "function");
        json_array_append_new(
            out, json_pack("[O,O]", json_object_get(f, "name"), json_object_get(f, "arguments")));
    }
    return out;
}

static json_t *calls_in(const toolcall_syntax *syntax, const json_t *tools, const char *text)
{
    buf out = {0};
    json_t *v = NULL;
    shoal_err err = {0};
    toolcall_sink sink = {
        .user = &out, .text = on_text, .begin = on_begin, .arguments = on_args, .end = on_end};
    toolcall_parser *p = toolcall_new(&sink, syntax, tools);
    buf_putc(&out, '[');
    assert_int_equal(toolcall_push(p, text, strlen(text)), 0);
    assert_int_equal(toolcall_end(p, false), 0);
    buf_putc(&out, ']');
    if (json_parse(&v, out.data, out.len, "calls", &err))
        fail_msg("%s: %.*s", err.message, (int)out.len, out.data);
    toolcall_free(p);
    buf_done(&out);
    return v;
}

/* What a template writes for a call, the parser of its syntax reads: the whole prompt is taken for a reply,
 * in which the template's instructions are text. A syntax without markers calls at a reply's beginning only.
 */
static void calls_are_read_back(void **state)
{
    json_t *all = families(), *family, *c;
    size_t i, k, n_checked = 0;
    json_array_foreach(all, i, family)
    {
        chat_template *t = load(family);
        const toolcall_syntax *syntax = chat_template_calls(t, NULL);
        json_array_foreach(json_object_get(family, "cases"), k, c)
        {
            json_t *want = calls_of(json_object_get(c, "messages"));
            const char *text = string_of(c, "prompt");
            if (text && *syntax->open && json_array_size(want) > 0) {
                json_t *got = calls_in(syntax, json_object_get(c, "tools"), text);
                if (!json_equal(got, want)) fail_msg("%s, case %zu", string_of(family, "template"), k);
                json_decref(got);
                n_checked++;
            }
            json_decref(want);
        }
        chat_template_free(t);
    }
    assert_true(n_checked >= 16);
    json_decref(all);
}

/* SmolLM3 has two lists of tools: what OpenAI's `tools` are is the first, the other is asked for by name. */
static void python_tools_change_the_syntax(void **state)
{
    json_t *family = json_pack("{s:s}", "template", "smollm3"),
           *kwargs = json_pack("{s:[s]}", "python_tools", "def f()");
    chat_template *t = load(family);
    assert_string_equal(chat_template_calls(t, NULL)->name, "hermes");
    assert_string_equal(chat_template_calls(t, kwargs)->name, "smollm3-python");
    chat_template_free(t);
    json_decref(family);
    json_decref(kwargs);
}

/* LFM2.5 and gpt-oss have another name for what OpenAI's clients send as reasoning_content. */
static void thoughts_reach_templates_by_their_own_name(void **state)
{
    static const char SOURCE[] =
        "{% for message in messages %}<think>{{ message.thinking }}</think>{{ message.content }}"
        "{% endfor %}";
    shoal_err err = {0};
    chat_template *t = NULL;
    buf out = {0};
    json_t *c = json_pack("{s:[{s:s,s:s,s:s}]}", "messages", "role", "assistant", "content", "b",
                          "reasoning_content", "a");
    assert_int_equal(chat_template_compile(&t, SOURCE, sizeof SOURCE - 1, "t", &err), 0);
    assert_int_equal(render(t, c, &out, &err), 0);
    assert_string_equal(out.data, "<think>a</think>b");
    buf_done(&out);
    chat_template_free(t);
    json_decref(c);
}

static const char *rendered(const char *source, const char *conversation, buf *out)
{
    shoal_err err = {0};
    chat_template *t = NULL;
    json_t *c = NULL;
    buf_clear(out);
    if (chat_template_compile(&t, source, strlen(source), "t", &err)) fail_msg("%s", err.message);
    assert_int_equal(json_parse(&c, conversation, strlen(conversation), "conversation", &err), 0);
    if (render(t, c, out, &err)) fail_msg("%s", err.message);
    chat_template_free(t);
    json_decref(c);
    return out->data;
}

/* A client sends back the ids that it was given, or none: the template sees those that it takes, the same for
 * a call and its result. */
static void ids_of_calls_take_the_templates_form(void **state)
{
    static const char MISTRAL[] =
        "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if not c.id is defined or c.id|length != "
        "9 %}"
        "{{ raise_exception('ids') }}{% endif %}[TOOL_CALLS]{{ c.function.name }}[ARGS]{} {{ c.id }};{% "
        "endfor %}"
        "{% if m.role == 'tool' %}{{ m.tool_call_id }};{% endif %}{% endfor %}{{ tools | length if tools }}";
    static const char KIMI[] =
        "{% for m in messages %}{% for c in m.tool_calls or [] "
        "%}<|tool_calls_section_begin|><|tool_call_begin|>"
        "{{ c.id }}<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>{% endfor %}"
        "{% if m.role == 'tool' %}{{ m.tool_call_id }};{% endif %}{% endfor %}{{ tools | length if tools }}";
    static const char WITH_IDS[] = "{\"messages\":[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":["
                                   "{\"id\":\"call_a\",\"function\":{\"name\":\"f\",\"arguments\":{}}},"
                                   "{\"id\":\"call_b\",\"function\":{\"name\":\"g\",\"arguments\":{}}}]},"
                                   "{\"role\":\"tool\",\"tool_call_id\":\"call_b\",\"content\":\"B\"},"
                                   "{\"role\":\"tool\",\"tool_call_id\":\"call_a\",\"content\":\"A\"}]}";
    static const char WITHOUT[] = "{\"messages\":[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":["
                                  "{\"function\":{\"name\":\"f\",\"arguments\":{}}}]},"
                                  "{\"role\":\"tool\",\"tool_name\":\"f\",\"content\":\"A\"}]}";
    static const char NINE[] = "{\"messages\":[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":["
                               "{\"id\":\"abcDEF123\",\"function\":{\"name\":\"f\",\"arguments\":{}}}]},"
                               "{\"role\":\"tool\",\"tool_call_id\":\"abcDEF123\",\"content\":\"A\"}]}";
    buf out = {0};
    char a[16], b[16], c[16], d[16];
    assert_int_equal(sscanf(rendered(MISTRAL, WITH_IDS, &out),
                            "[TOOL_CALLS]f[ARGS]{} %9[^;];[TOOL_CALLS]g[ARGS]{} %9[^;];%9[^;];%9[^;];", a, b,
                            c, d),
                     4);
    assert_string_equal(b, c);
    assert_string_equal(a, d);
    assert_string_not_equal(a, b);
    assert_int_equal(strlen(a), 9);
    assert_int_equal(sscanf(rendered(MISTRAL, WITHOUT, &out), "[TOOL_CALLS]f[ARGS]{} %9[^;];%9[^;];", a, b),
                     2);
    assert_string_equal(a, b);
    assert_string_equal(rendered(MISTRAL, NINE, &out), "[TOOL_CALLS]f[ARGS]{} abcDEF123;abcDEF123;");
    assert_non_null(strstr(rendered(KIMI, WITH_IDS, &out), "<|tool_call_begin|>functions.g:1<|"));
    assert_non_null(strstr(out.data, "functions.g:1;functions.f:0;"));
    buf_done(&out);
}

/* Templates of our own, as short as a family's: what is seen from them, and what the reader makes of a call
 * that they write. */
static void the_syntax_is_seen_from_a_call(void **state)
{
    static const struct {
        const char *call, *syntax;
    } rows[] = {
        {"<tool_call>\n<function={{ n }}>\n<parameter=key>\nvalue\n</parameter>\n</function>\n</tool_call>",
         "qwen3-coder"},
        {"<seed:tool_call>\n<function={{ n "
         "}}>\n<parameter=key>value</parameter>\n</function>\n</seed:tool_call>",
         "seed"},
        {"<tool_call>{{ n }}\n<arg_key>key</arg_key>\n<arg_value>value</arg_value>\n</tool_call>", "glm-4"},
        {"<tool_call>{{ n }}<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>", "glm-4.7"},
        {"<minimax:tool_call>\n<invoke name=\"{{ n }}\">\n<parameter "
         "name=\"key\">value</parameter>\n</invoke>\n"
         "</minimax:tool_call>",
         "minimax-m2"},
        {"<|tool_calls_section_begin|><|tool_call_begin|>functions.{{ n }}:0<|tool_call_argument_begin|>{}"
         "<|tool_call_end|><|tool_calls_section_end|>",
         "kimi-k2"},
        {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ n "
         "}}<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
         "deepseek-v3.1"},
        {"<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"{{ n }}\", \"parameters\": "
         "{}}]<|END_ACTION|>",
         "cohere"},
        {"<|tools_prefix|>[{\"{{ n }}\": {}}]<|tools_suffix|>", "apertus"},
        {"<TOOLCALL>[{\"name\": \"{{ n }}\", \"arguments\": {}}]</TOOLCALL>", "nemotron-v2"},
        {"<tool_calls>[{\"name\": \"{{ n }}\", \"arguments\": {}}]</tool_calls>", "apriel"},
        {"<tool_calls>\n{\"name\": \"{{ n }}\", \"arguments\": {}}\n</tool_calls>", "minimax-m1"},
        {"<function={{ n }}>{}</function>", "functionary-3.1"},
        {"<|tool_call>call:{{ n }}{key:<|\"|>value<|\"|>}<tool_call|>", "gemma-4"},
        {"{\"name\": \"{{ n }}\", \"parameters\": {}}", "llama-json"},
        {"<|mystery|>{\"name\": \"{{ n }}\", \"parameters\": {}}<|/mystery|>", "unknown"},
        {"", "unknown"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf source = {0};
        shoal_err err = {0};
        chat_template *t = NULL;
        buf_printf(&source,
                   "{{ tools | length if tools }}{%% for m in messages %%}|{{ m.content }}{%% for c in "
                   "m.tool_calls or [] "
                   "%%}{%% set n = c.function.name %%}%s{%% endfor %%}{%% endfor %%}",
                   rows[i].call);
        if (chat_template_compile(&t, source.data, source.len, "t", &err)) fail_msg("%s", err.message);
        const char *got = chat_template_calls_label(t, NULL);
        if (strcmp(got, rows[i].syntax) != 0) fail_msg("%s: %s, not %s", rows[i].call, got, rows[i].syntax);
        chat_template_free(t);
        buf_done(&source);
    }
}

static void a_template_without_tools_is_taught(void **state)
{
    static const char SOURCE[] = "{% for m in messages %}{{ m.content }}{% endfor %}";
    shoal_err err = {0};
    chat_template *t = NULL;
    assert_int_equal(chat_template_compile(&t, SOURCE, sizeof SOURCE - 1, "t", &err), 0);
    assert_int_equal(chat_template_calls_source(t), CALLS_ADDED);
    assert_string_equal(chat_template_calls_label(t, NULL), "hermes (added)");
    chat_template_free(t);
}

static void variables_cannot_hide_the_request(void **state)
{
    json_t *family = json_pack("{s:s}", "template", "qwen3");
    json_t *c = json_pack("{s:[{s:s,s:s}],s:{s:[]}}", "messages", "role", "user", "content", "a", "kwargs",
                          "messages");
    chat_template *t = load(family);
    buf out = {0};
    shoal_err err = {0};
    assert_int_equal(render(t, c, &out, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "\"messages\" cannot be given"));
    buf_done(&out);
    chat_template_free(t);
    json_decref(family);
    json_decref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_are_exact),
        cmocka_unit_test(syntax_and_thoughts_are_seen),
        cmocka_unit_test(calls_are_read_back),
        cmocka_unit_test(python_tools_change_the_syntax),
        cmocka_unit_test(thoughts_reach_templates_by_their_own_name),
        cmocka_unit_test(variables_cannot_hide_the_request),
        cmocka_unit_test(ids_of_calls_take_the_templates_form),
        cmocka_unit_test(the_syntax_is_seen_from_a_call),
        cmocka_unit_test(a_template_without_tools_is_taught),
    };
    return cmocka_run_group_tests_name("families", tests, NULL, NULL);
}
