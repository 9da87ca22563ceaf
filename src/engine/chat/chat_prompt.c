/* chat_prompt.c: a conversation and its tools -> token ids.
 *
 * Most templates render tools and calls themselves. For one that never looks at `tools`, the conversation
 * is rewritten first into what every template knows: the tools become part of the system message, in the
 * form that most models with tools were trained on (Hermes, Qwen), calls become the text that they were,
 * and results come from the user. A template that writes calls all the same (DeepSeek's) is left to write
 * them and their results, and only gets the tools. */
#include <string.h>

#include "json/json.h"
#include "chat/chat_impl.h"
#include "chat/toolcall_write.h"

/* ---- tools as plain text ------------------------------------------------------------------------- */

static const char HOW_TO_CALL[] =
    "\n</tools>\n\nTo call a function, reply with a JSON object of its name and arguments within <tool_call> "
    "tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>";

/* In another syntax: an example says how. */
static void put_example(buf *out, const toolcall_syntax *syntax)
{
    static const toolcall_call EXAMPLE = {"function-name", "{\"argument-name\": \"argument value\"}"};
    buf text = {0};
    buf_puts(
        out,
        "\n</tools>\n\nTo call a function, reply with its name and its arguments exactly in this form:\n");
    toolcall_write(&text, NULL, syntax, &EXAMPLE, 1);
    out->failed |= text.failed;
    if (!text.failed) buf_append(out, text.data, text.len);
    buf_done(&text);
}

/* syntax NULL: Hermes', which is described at length. */
static void put_tools(buf *out, const json_t *tools, const toolcall_syntax *syntax)
{
    size_t i;
    json_t *t;
    buf_puts(out, "# Tools\n\nYou may call these functions:\n<tools>");
    json_array_foreach(tools, i, t)
    {
        buf_putc(out, '\n');
        json_put(out, t);
    }
    if (syntax)
        put_example(out, syntax);
    else
        buf_puts(out, HOW_TO_CALL);
}

static const char *role_of(const json_t *m)
{
    return json_text_of(m, "role");
}

static bool is_result(const json_t *m)
{
    return strcmp(role_of(m), "tool") == 0 || strcmp(role_of(m), "function") == 0;
}

static void put_content(buf *out, const json_t *m)
{
    const json_t *c = json_object_get(m, "content");
    size_t i;
    json_t *part;
    if (json_is_string(c)) buf_append(out, json_string_value(c), json_string_length(c));
    json_array_foreach(c, i, part)
    {
        const json_t *text = json_object_get(part, "text");
        if (json_is_string(text)) buf_append(out, json_string_value(text), json_string_length(text));
    }
}

/* A tool's result must not end itself and go on as somebody else: its end tag becomes "< /tool_response". */
static void put_result(buf *out, const json_t *m)
{
    static const char END[] = "</tool_response";
    buf content = {0};
    put_content(&content, m);
    const char *s = buf_text(&content), *end = s + content.len, *at;
    while (s < end && (at = memchr(s, '<', (size_t)(end - s)))) {
        bool ends = (size_t)(end - at) >= sizeof END - 1 && memcmp(at, END, sizeof END - 1) == 0;
        buf_append(out, s, (size_t)(at + 1 - s));
        if (ends) buf_putc(out, ' ');
        s = at + 1;
    }
    buf_append(out, s, (size_t)(end - s));
    out->failed |= content.failed;
    buf_done(&content);
}

static void chat_prompt_put_json(buf *out, const json_t *v, const char *absent)
{
    if (v)
        json_put(out, v);
    else
        buf_puts(out, absent);
}

static void put_calls(buf *out, const json_t *m)
{
    size_t i;
    json_t *call;
    json_array_foreach(json_object_get(m, "tool_calls"), i, call)
    {
        const json_t *f = json_object_get(call, "function"), *args = json_object_get(f, "arguments");
        buf_puts(out, out->len ? "\n<tool_call>\n{\"name\": " : "<tool_call>\n{\"name\": ");
        chat_prompt_put_json(out, json_object_get(f, "name"), "\"\"");
        buf_puts(out, ", \"arguments\": ");
        if (json_is_string(args))
            buf_append(out, json_string_value(args), json_string_length(args));
        else
            chat_prompt_put_json(out, args, "{}");
        buf_puts(out, "}\n</tool_call>");
    }
}

/* thought (may be NULL): what the assistant thought, for templates that show it. */
static int append(json_t *to, const char *role, buf *text, const json_t *thought, shoal_err *err)
{
    json_t *m = text->failed ? NULL : json_object();
    bool ok = m && json_object_set_new(m, "role", json_string(role)) == 0 &&
              json_object_set_new(m, "content", json_stringn(text->data ? text->data : "", text->len)) == 0;
    buf_clear(text);
    if (ok && thought) ok = json_object_set(m, "reasoning_content", (json_t *)(uintptr_t)thought) == 0;
    if (ok && json_array_append(to, m) != 0) ok = false;
    json_decref(m);
    return ok ? 0 : err_nomem(err);
}

/* Message m in plain words. Results that follow each other are one message of the user's. */
static int flatten(json_t *to, const json_t *m, bool more_results, buf *text, shoal_err *err)
{
    bool result = is_result(m);
    if (result) buf_puts(text, text->len ? "\n<tool_response>\n" : "<tool_response>\n");
    if (result)
        put_result(text, m);
    else
        put_content(text, m);
    if (result) buf_puts(text, "\n</tool_response>");
    if (result && more_results) return 0;
    put_calls(text, m);
    return append(to, result ? "user" : role_of(m), text, json_object_get(m, "reasoning_content"), err);
}

/* A message that the template writes itself. Calls without a text have no content: some templates look at
 * that. */
static int append_as_it_is(json_t *to, const json_t *m, shoal_err *err)
{
    const json_t *content = json_object_get(m, "content");
    bool empty = !content || (json_is_string(content) && json_string_length(content) == 0);
    json_t *own = json_copy((json_t *)(uintptr_t)m);
    int rc = own ? 0 : err_nomem(err);
    if (rc == 0 && empty && json_object_get(m, "tool_calls") &&
        json_object_set_new(own, "content", json_null()) != 0)
        rc = err_nomem(err);
    if (rc == 0 && json_array_append(to, own) != 0) rc = err_nomem(err);
    json_decref(own);
    return rc;
}

static void put_both(buf *text, const json_t *m, const json_t *tools, const toolcall_syntax *syntax,
                     bool content_first)
{
    if (content_first) put_content(text, m);
    if (content_first) buf_puts(text, "\n\n");
    put_tools(text, tools, syntax);
    if (!content_first) buf_puts(text, "\n\n");
    if (!content_first) put_content(text, m);
}

/* syntax: of the calls that the template writes itself, or NULL. `carrier` is the role that bears the tools:
 * its first message gets them, before its own text when that is the user's. A new reference in *ret. */
static int rewrite(json_t **ret, const json_t *messages, const json_t *tools, const toolcall_syntax *syntax,
                   const char *carrier, shoal_err *err)
{
    json_t *out = json_array();
    size_t i, n = json_array_size(messages);
    json_t *m;
    buf text = {0};
    bool system = strcmp(carrier, "system") == 0, told = json_array_size(tools) == 0;
    int rc = out ? 0 : err_nomem(err);
    if (rc == 0 && !told && system &&
        (n == 0 || strcmp(role_of(json_array_get(messages, 0)), carrier) != 0)) {
        put_tools(&text, tools, syntax);
        rc = append(out, "system", &text, NULL, err);
        told = true;
    }
    json_array_foreach(messages, i, m)
    {
        bool here = rc == 0 && !told && strcmp(role_of(m), carrier) == 0;
        if (here) {
            put_both(&text, m, tools, syntax, system);
            rc = append(out, carrier, &text, NULL, err);
            told = true;
        } else if (rc == 0 && syntax) {
            rc = append_as_it_is(out, m, err);
        } else if (rc == 0) {
            rc = flatten(out, m, i + 1 < n && is_result(json_array_get(messages, i + 1)), &text, err);
        }
    }
    buf_done(&text);
    if (rc == 0)
        *ret = out;
    else
        json_decref(out);
    return rc;
}

/* Is there anything that a template without tools would drop? */
static bool has_tool_talk(const json_t *messages, const json_t *tools)
{
    size_t i;
    json_t *m;
    if (json_array_size(tools) > 0) return true;
    json_array_foreach(messages, i, m) if (is_result(m) || json_object_get(m, "tool_calls")) return true;
    return false;
}

/* ---- the prompt ---------------------------------------------------------------------------------- */

static const char *token_text(const tokenizer *t, int32_t id, char *out, size_t cap)
{
    size_t len = 0;
    const char *s = id >= 0 ? tokenizer_piece(t, id, &len) : NULL;
    if (!s || len >= cap) return NULL;
    memcpy(out, s, len);
    out[len] = '\0';
    return out;
}

int chat_render(const chat_template *c, const tokenizer *t, const chat_input *in, bool add_generation_prompt,
                buf *text, buf *marks, shoal_err *err)
{
    char bos[128], eos[128];
    return chat_template_render(c, in, add_generation_prompt,
                                token_text(t, tokenizer_bos(t), bos, sizeof bos),
                                token_text(t, tokenizer_eos(t), eos, sizeof eos), text, marks, err);
}

static int render_rewritten(const chat_template *c, const tokenizer *t, const chat_input *in,
                            const char *carrier, buf *text, buf *marks, shoal_err *err)
{
    json_t *plain = NULL;
    const toolcall_syntax *own = chat_template_calls(c, in->kwargs);
    if (strcmp(own->name, "hermes") == 0) own = NULL;
    int rc = rewrite(&plain, in->messages, in->tools, own, carrier, err);
    chat_input out = {.messages = plain, .kwargs = in->kwargs, .clock = in->clock};
    if (rc == 0) rc = chat_render(c, t, &out, true, text, marks, err);
    json_decref(plain);
    return rc;
}

int chat_prompt_render(const chat_template *c, const tokenizer *t, const chat_input *in, buf *text,
                       buf *marks, shoal_err *err)
{
    bool plain = !chat_template_reads_tools(c) && has_tool_talk(in->messages, in->tools);
    if (!plain) return chat_render(c, t, in, true, text, marks, err);
    int rc = render_rewritten(c, t, in, "system", text, marks, err);
    /* Some templates refuse a system message: then the user's first message bears the tools. */
    if (rc == SHOAL_EINVALID && json_array_size(in->tools) > 0)
        rc = render_rewritten(c, t, in, "user", text, marks, err);
    return rc;
}

int chat_prompt_encode(const chat_template *c, const tokenizer *t, const chat_input *in, encoding *ret,
                       bool *ret_thinks, shoal_err *err)
{
    buf text = {0}, marks = {0};
    const thinking_form *form = chat_template_thinking(c);
    int rc = chat_prompt_render(c, t, in, &text, &marks, err);
    if (rc == 0 && ret_thinks)
        *ret_thinks =
            form && text.len > 0 && thinking_is_open(form, text.data, text.len, (const uint8_t *)marks.data);
    if (rc == 0) rc = tokenizer_encode_chat(t, text.data, text.len, (const uint8_t *)marks.data, ret, err);
    buf_done(&text);
    buf_done(&marks);
    return rc;
}
