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
#include "base/json.h"
#include "text/chat.h"

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
    };
    return cmocka_run_group_tests_name("families", tests, NULL, NULL);
}
