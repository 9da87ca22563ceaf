/* chat_calls.c: in which syntax a template's models call tools.
 *
 * Names of models lie, and templates are edited. So a conversation with a call is rendered, and the syntax is
 * recognised in what came out (toolcall_recognise). Templates differ in what they take: some want arguments
 * as text, some refuse what ends in a result, some write calls only where there is no content. Where no call
 * shows, a sign in the source decides. Where that does not either, the syntax is unknown, and that is told
 * (chat_template_calls_source). For templates that do not read `tools` chat_prompt.c adds them to the system
 * message, in the syntax of the calls that they write (DeepSeek's do), or Hermes'. */
#include <string.h>

#include "chat/chat_impl.h"

#define CALLED   "shoal_probe"
#define ANSWERED "shoal_answer"

/* An id of nine letters and digits is what Mistral's templates want. */
static json_t *probe(bool text_arguments, bool result, bool no_content)
{
    json_t *arguments =
        text_arguments ? json_string("{\"key\": \"value\"}") : json_pack("{s:s}", "key", "value");
    json_t *m = json_pack("[{s:s,s:s},{s:s,s:s,s:[{s:s,s:s,s:{s:s,s:o}}]}]", "role", "user", "content", "Go.",
                          "role", "assistant", "content", "", "tool_calls", "id", "abcDEF123", "type",
                          "function", "function", "name", CALLED, "arguments", arguments);
    json_t *r = json_pack("{s:s,s:s,s:s,s:s}", "role", "tool", "content", "Done.", "tool_call_id",
                          "abcDEF123", "name", CALLED);
    if (m && r && result && json_array_append(m, r) != 0) {
        json_decref(m);
        m = NULL;
    }
    json_decref(r);
    if (m && no_content) json_object_set_new(json_array_get(m, 1), "content", json_null());
    return m;
}

/* The offered tool has another name, so that its description is not taken for a call. */
static json_t *offered(void)
{
    return json_pack("[{s:s,s:{s:s,s:s,s:{s:s,s:{s:{s:s,s:s}},s:[s]}}}]", "type", "function", "function",
                     "name", "other_tool", "description", "Another.", "parameters", "type", "object",
                     "properties", "key", "type", "string", "description", "A key.", "required", "key");
}

static int render_probe(const chat_template *t, json_t *messages, buf *out)
{
    shoal_err err;
    chat_input in = {.messages = messages, .tools = offered(), .steps = CHAT_PROBE_STEPS};
    int rc = in.messages && in.tools ? 0 : SHOAL_ENOMEM;
    if (rc == 0) rc = chat_template_render(t, &in, false, "", "", out, NULL, &err);
    buf_putc(out, '\0');
    json_decref(messages);
    json_decref((json_t *)in.tools);
    return out->failed ? SHOAL_ENOMEM : rc;
}

/* Where an answer stands behind the same question, if what is before it is what `called` begins with; else 0.
 */
static int find_answer(const chat_template *t, const buf *called, size_t *ret)
{
    buf out = {0};
    json_t *m = json_pack("[{s:s,s:s},{s:s,s:s}]", "role", "user", "content", "Go.", "role", "assistant",
                          "content", ANSWERED);
    int rc = render_probe(t, m, &out);
    const char *at = rc == 0 ? strstr(out.data, ANSWERED) : NULL;
    size_t n = at ? (size_t)(at - out.data) : 0;
    *ret = n > 0 && n < called->len && memcmp(out.data, called->data, n) == 0 ? n : 0;
    buf_done(&out);
    return rc;
}

static int chat_calls_look(const chat_template *t, bool text_arguments, bool result, bool no_content,
                           const toolcall_syntax **ret)
{
    buf out = {0};
    size_t answer = 0;
    int rc = render_probe(t, probe(text_arguments, result, no_content), &out);
    if (rc == 0 && find_answer(t, &out, &answer) == SHOAL_ENOMEM) rc = SHOAL_ENOMEM;
    if (rc == 0) *ret = toolcall_recognise(out.data, out.len - 1, CALLED, answer);
    buf_done(&out);
    return rc;
}

static const toolcall_syntax *by_sign(const char *source)
{
    size_t n;
    const toolcall_syntax *all = toolcall_syntaxes(&n);
    for (size_t i = 0; i < n; i++)
        if (strstr(source, all[i].sign)) return &all[i];
    return NULL;
}

int chat_calls_find(const chat_template *t, const toolcall_syntax **ret, calls_source *ret_source)
{
    const toolcall_syntax *found = NULL;
    bool reads = chat_template_reads_tools(t), shows = strstr(chat_template_source(t), "tool_calls") != NULL;
    for (int i = 0; i < 8 && !found && (reads || shows); i++)
        if (chat_calls_look(t, i & 1, !(i & 2), i & 4, &found) == SHOAL_ENOMEM) return SHOAL_ENOMEM;
    if (!found && reads) found = by_sign(chat_template_source(t));
    *ret_source = !reads ? CALLS_ADDED : found ? CALLS_OF_TEMPLATE : CALLS_UNKNOWN;
    *ret = found ? found : toolcall_find("hermes");
    return 0;
}
