/* toolcall_syntax.c: the table of call syntaxes, and which of them a template writes. Sources: the families'
 * published chat templates and model cards. */
#include <ctype.h>
#include <string.h>

#include "chat/toolcall.h"

enum { MARKER_REACH = 80 }; /* between a marker and the function's name stand no more bytes */

/* Of two rows that a template could mean, the first is taken. */
static const toolcall_syntax SYNTAXES[] = {
    {.name = "seed",
     .form = CALL_TAGS,
     .open = "<seed:tool_call>",
     .close = "</seed:tool_call>",
     .call = "<function=",
     .middle = ">",
     .end = "</function>",
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .tags = {.key = "<parameter=",
              .key_end = ">",
              .text_mark = "",
              .json_mark = "",
              .value = "",
              .value_end = "</parameter>",
              .wrap = "",
              .gap = "\n"},
     .sign = "<seed:tool_call>"},
    {.name = "qwen3-coder",
     .form = CALL_TAGS,
     .open = "<tool_call>",
     .close = "</tool_call>",
     .call = "<function=",
     .middle = ">",
     .end = "</function>",
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .tags = {.key = "<parameter=",
              .key_end = ">",
              .text_mark = "",
              .json_mark = "",
              .value = "",
              .value_end = "</parameter>",
              .wrap = "\n",
              .gap = "\n"},
     .sign = "<parameter=example_parameter_1>",
     .ends = {"<tool_call>\n<function=", "<function="}},
    {.name = "deepseek-v3.2",
     .form = CALL_TAGS,
     .open = "<｜DSML｜function_calls>",
     .close = "</｜DSML｜function_calls>",
     .call = "<｜DSML｜invoke name=\"",
     .middle = "\">",
     .end = "</｜DSML｜invoke>",
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .list = true,
     .tags = {.key = "<｜DSML｜parameter name=\"",
              .key_end = "\"",
              .text_mark = " string=\"true\"",
              .json_mark = " string=\"false\"",
              .value = ">",
              .value_end = "</｜DSML｜parameter>",
              .wrap = "",
              .gap = "\n"},
     .sign = "DSML｜function_calls"},
    {.name = "deepseek-v4",
     .form = CALL_TAGS,
     .open = "<｜DSML｜tool_calls>",
     .close = "</｜DSML｜tool_calls>",
     .call = "<｜DSML｜invoke name=\"",
     .middle = "\">",
     .end = "</｜DSML｜invoke>",
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .list = true,
     .tags = {.key = "<｜DSML｜parameter name=\"",
              .key_end = "\"",
              .text_mark = " string=\"true\"",
              .json_mark = " string=\"false\"",
              .value = ">",
              .value_end = "</｜DSML｜parameter>",
              .wrap = "",
              .gap = "\n"},
     .sign = "DSML｜",
     .ends = {"<｜DSML｜tool_calls>"}},
    {.name = "minimax-m2",
     .form = CALL_TAGS,
     .open = "<minimax:tool_call>",
     .close = "</minimax:tool_call>",
     .call = "<invoke name=\"",
     .middle = "\">",
     .end = "</invoke>",
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .list = true,
     .tags = {.key = "<parameter name=\"",
              .key_end = "\">",
              .text_mark = "",
              .json_mark = "",
              .value = "",
              .value_end = "</parameter>",
              .wrap = "",
              .gap = "\n"},
     .sign = "<minimax:tool_call>"},
    {.name = "minimax-m3",
     .form = CALL_TAGS,
     .open = "]<]minimax[>[<tool_call>",
     .close = "]<]minimax[>[</tool_call>",
     .call = "]<]minimax[>[<invoke name=\"",
     .middle = "\">",
     .end = "]<]minimax[>[</invoke>",
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .list = true,
     .tags = {.key = "]<]minimax[>[<",
              .key_end = ">",
              .text_mark = "",
              .json_mark = "",
              .value = "",
              .value_end = "]<]minimax[>[</%>",
              .wrap = "",
              .gap = ""},
     .sign = "]<]minimax[>["},
    {.name = "muse",
     .form = CALL_TAGS,
     .open = "<atem:function_calls>",
     .close = "</atem:function_calls>",
     .call = "<atem:invoke name=\"",
     .middle = "\">",
     .end = "</atem:invoke>",
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .list = true,
     .tags = {.key = "<atem:parameter name=\"",
              .key_end = "\">",
              .text_mark = "",
              .json_mark = "",
              .value = "",
              .value_end = "</atem:parameter>",
              .wrap = "",
              .gap = "\n"},
     .sign = "<atem:function_calls>"},
    {.name = "kimi-k3",
     .form = CALL_TAGS,
     .open = "<|open|>tools<|sep|>",
     .close = "<|close|>tools<|sep|>",
     .call = "<|open|>call tool=\"",
     .middle = "\" index=\"#\"<|sep|>",
     .end = "<|close|>call<|sep|>",
     .head = "",
     .tail = "",
     .between = "",
     .list = true,
     .tags = {.key = "<|open|>argument key=\"",
              .key_end = "\"",
              .text_mark = " type=\"string\"",
              .json_mark = " type=\"%\"",
              .value = "<|sep|>",
              .value_end = "<|close|>argument<|sep|>",
              .wrap = "",
              .gap = ""},
     .sign = "<|open|>tools"},
    {.name = "minicpm",
     .form = CALL_TAGS,
     .open = "<function name=\"",
     .close = "</function>",
     .call = "",
     .middle = "\">",
     .end = "",
     .head = "",
     .tail = "",
     .between = "\n",
     .tags = {.key = "<param name=\"",
              .key_end = "\">",
              .text_mark = "",
              .json_mark = "",
              .value = "",
              .value_end = "</param>",
              .wrap = "",
              .gap = ""},
     .sign = "<function name="},
    {.name = "glm-4.7",
     .form = CALL_TAGS,
     .open = "<tool_call>",
     .close = "</tool_call>",
     .call = "",
     .middle = "",
     .end = "",
     .head = "",
     .tail = "",
     .between = "",
     .tags = {.key = "<arg_key>",
              .key_end = "</arg_key>",
              .text_mark = "",
              .json_mark = "",
              .value = "<arg_value>",
              .value_end = "</arg_value>",
              .wrap = "",
              .gap = ""},
     .sign = "</arg_key><arg_value>",
     .ends = {"<tool_call>"}},
    {.name = "glm-4",
     .form = CALL_TAGS,
     .open = "<tool_call>",
     .close = "</tool_call>",
     .call = "",
     .middle = "\n",
     .end = "",
     .head = "",
     .tail = "",
     .between = "\n",
     .tags = {.key = "<arg_key>",
              .key_end = "</arg_key>",
              .text_mark = "",
              .json_mark = "",
              .value = "\n<arg_value>",
              .value_end = "</arg_value>",
              .wrap = "",
              .gap = "\n"},
     .sign = "<arg_key>",
     .ends = {"<tool_call>"}},
    {.name = "deepseek-v3.1",
     .form = CALL_ARGS,
     .open = "<｜tool▁calls▁begin｜>",
     .close = "<｜tool▁calls▁end｜>",
     .call = "<｜tool▁call▁begin｜>",
     .middle = "<｜tool▁sep｜>",
     .end = "<｜tool▁call▁end｜>",
     .head = "",
     .tail = "",
     .between = "",
     .list = true,
     .sign = "<｜tool▁call▁begin｜>tool_call_name"},
    {.name = "deepseek-r1",
     .form = CALL_ARGS,
     .open = "<｜tool▁calls▁begin｜>",
     .close = "<｜tool▁calls▁end｜>",
     .call = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .middle = "\n```json\n",
     .end = "\n```<｜tool▁call▁end｜>",
     .head = "",
     .tail = "",
     .between = "\n",
     .list = true,
     .sign = "<｜tool▁calls▁begin｜>"},
    {.name = "kimi-k2",
     .form = CALL_ARGS,
     .open = "<|tool_calls_section_begin|>",
     .close = "<|tool_calls_section_end|>",
     .call = "<|tool_call_begin|>functions.",
     .middle = ":#<|tool_call_argument_begin|>",
     .end = "<|tool_call_end|>",
     .head = "",
     .tail = "",
     .between = "",
     .list = true,
     .sign = "<|tool_calls_section_begin|>",
     .ends = {"<|tool_calls_section_begin|>", "<|tool_call_begin|>"}},
    {.name = "gpt-oss",
     .form = CALL_ARGS,
     .open = "<|channel|>commentary to=functions.",
     .close = "",
     .also = {"<|channel|>analysis to=functions.", "<|start|>assistant to=functions."},
     .first = "to=functions.",
     .call = "",
     .middle = " <|constrain|>json<|message|>",
     .end = "",
     .head = "",
     .tail = "",
     .between = NULL,
     .sign = "<|channel|>commentary"},
    {.name = "functionary-3.2",
     .form = CALL_ARGS,
     .open = "",
     .close = "",
     .also = {">>>"},
     .first = "",
     .call = "",
     .middle = "\n",
     .end = "",
     .head = "",
     .tail = "",
     .between = ">>>",
     .list = true,
     .sign = ">>>"},
    {.name = "functionary-3.1",
     .form = CALL_ARGS,
     .open = "<function=",
     .close = "</function>",
     .call = "",
     .middle = ">",
     .end = "",
     .head = "",
     .tail = "",
     .between = "",
     .sign = "<function=example_function_name>{"},
    {.name = "mistral-args",
     .form = CALL_ARGS,
     .open = "[TOOL_CALLS]",
     .close = "",
     .call = "",
     .middle = "[ARGS]",
     .end = "",
     .head = "",
     .tail = "",
     .between = "",
     .sign = "[ARGS]"},
    {.name = "function-gemma",
     .form = CALL_BRACES,
     .open = "<start_function_call>",
     .close = "<end_function_call>",
     .quote = "<escape>",
     .head = "",
     .tail = "",
     .between = "",
     .sign = "<start_function_call>"},
    {.name = "gemma-4",
     .form = CALL_BRACES,
     .open = "<|tool_call>",
     .close = "<tool_call|>",
     .quote = "<|\"|>",
     .head = "",
     .tail = "",
     .between = "",
     .sign = "<|tool_call>"},
    {.name = "cohere",
     .form = CALL_JSON,
     .open = "<|START_ACTION|>",
     .close = "<|END_ACTION|>",
     .head = "[\n    ",
     .tail = "\n]",
     .between = ",\n    ",
     .list = true,
     .id = "\"tool_call_id\": \"#\", ",
     .name_key = "tool_name",
     .arguments = "parameters",
     .sign = "<|START_ACTION|>"},
    {.name = "command-r",
     .form = CALL_JSON,
     .open = "Action:\n```json\n",
     .close = "```",
     .also = {"Action:```json\n"},
     .head = "[\n    ",
     .tail = "\n]\n",
     .between = ",\n    ",
     .list = true,
     .name_key = "tool_name",
     .arguments = "parameters",
     .sign = "Action:\\n```json"},
    {.name = "mistral",
     .form = CALL_JSON,
     .open = "[TOOL_CALLS]",
     .close = "",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .arguments = "arguments",
     .sign = "[TOOL_CALLS]"},
    {.name = "phi-4",
     .form = CALL_JSON,
     .open = "<|tool_call|>",
     .close = "<|/tool_call|>",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .arguments = "arguments",
     .sign = "<|tool|>"},
    {.name = "granite",
     .form = CALL_JSON,
     .open = "<|tool_call|>",
     .close = "",
     .also = {"<tool_call>"},
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .arguments = "arguments",
     .sign = "<|tool_call|>"},
    {.name = "nemotron-v2",
     .form = CALL_JSON,
     .open = "<TOOLCALL>",
     .close = "</TOOLCALL>",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .arguments = "arguments",
     .sign = "<TOOLCALL>"},
    {.name = "apriel",
     .form = CALL_JSON,
     .open = "<tool_calls>",
     .close = "</tool_calls>",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .arguments = "arguments",
     .sign = "<tool_calls>["},
    {.name = "minimax-m1",
     .form = CALL_JSON,
     .open = "<tool_calls>",
     .close = "</tool_calls>",
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .list = true,
     .arguments = "arguments",
     .sign = "<tool_calls>"},
    {.name = "gigachat-3",
     .form = CALL_JSON,
     .open = "<|message_sep|>\n\nfunction call<|role_sep|>\n",
     .close = "",
     .head = "",
     .tail = "",
     .between = NULL,
     .arguments = "arguments",
     .sign = "function call<|role_sep|>"},
    {.name = "gigachat-3.1",
     .form = CALL_JSON,
     .open = "<|function_call|>",
     .close = "",
     .head = "",
     .tail = "",
     .between = NULL,
     .arguments = "arguments",
     .sign = "<|function_call|>"},
    {.name = "firefunction",
     .form = CALL_JSON,
     .open = "functools",
     .close = "",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .arguments = "arguments",
     .sign = "functools["},
    {.name = "apertus",
     .form = CALL_KEYED,
     .open = "<|tools_prefix|>",
     .close = "<|tools_suffix|>",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .sign = "<|tools_prefix|>"},
    {.name = "lfm2",
     .form = CALL_PYTHON,
     .open = "<|tool_call_start|>",
     .close = "<|tool_call_end|>",
     .first = "[",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .sign = "<|tool_list_start|>",
     .thinking = "think"},
    {.name = "lfm2.5",
     .form = CALL_PYTHON,
     .open = "<|tool_call_start|>",
     .close = "<|tool_call_end|>",
     .first = "[",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .sign = "List of tools: [",
     .thinking = "think"},
    {.name = "hermes",
     .form = CALL_JSON,
     .open = "<tool_call>",
     .close = "</tool_call>",
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .arguments = "arguments",
     .sign = "<tool_call>"},
    {.name = "gemma",
     .form = CALL_PYTHON,
     .open = "```tool_code",
     .close = "```",
     .also = {"```json"},
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .list = true,
     .sign = "tool_code"},
    {.name = "smollm3-python",
     .form = CALL_PYTHON,
     .open = "<code>",
     .close = "</code>",
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .list = true,
     .sign = "<code>"},
    {.name = "llama-pythonic",
     .form = CALL_PYTHON,
     .open = "",
     .close = "",
     .also = {"<|python_tag|>"},
     .first = "",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .sign = "[func_name1("},
    {.name = "llama-json",
     .form = CALL_JSON,
     .open = "",
     .close = "",
     .also = {"<|python_tag|>"},
     .first = "",
     .head = "",
     .tail = "",
     .between = "; ",
     .list = true,
     .arguments = "parameters",
     .sign = "<|python_tag|>"},
};

enum { N_SYNTAXES = sizeof SYNTAXES / sizeof *SYNTAXES };

const toolcall_syntax *toolcall_syntaxes(size_t *ret_n)
{
    *ret_n = N_SYNTAXES;
    return SYNTAXES;
}

const toolcall_syntax *toolcall_find(const char *name)
{
    for (size_t i = 0; i < N_SYNTAXES; i++)
        if (strcmp(SYNTAXES[i].name, name) == 0) return &SYNTAXES[i];
    return NULL;
}

static bool toolcall_syntax_holds(const char *s, size_t n, const char *what)
{
    size_t len = strlen(what);
    for (size_t i = 0; n >= len && i <= n - len; i++)
        if (memcmp(s + i, what, len) == 0) return true;
    return false;
}

bool toolcall_shows(const toolcall_syntax *syntax, const char *s, size_t n)
{
    const toolcall_tags *t = &syntax->tags;
    const char *const all[] = {syntax->open,   syntax->close, syntax->also[0], syntax->also[1], syntax->call,
                               syntax->middle, syntax->end,   syntax->quote,   syntax->head,    syntax->tail,
                               syntax->first,  t->key,        t->key_end,      t->text_mark,    t->json_mark,
                               t->value,       t->value_end};
    char text[64];
    if (n == 0 || n >= sizeof text) return false;
    memcpy(text, s, n);
    text[n] = '\0';
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] && strstr(all[i], text)) return true;
    return false;
}

const char *toolcall_marker(const toolcall_syntax *syntax)
{
    return *syntax->open ? syntax->open : syntax->also[0];
}

/* ---- which of them a template writes --------------------------------------------------------------- */

/* What stands behind the function's name tells the forms that have brackets. */
static bool form_of(const char *after, size_t n, toolcall_form *ret)
{
    while (n > 0 && isspace((unsigned char)*after)) after++, n--;
    if (n == 0) return false;
    bool quote = *after == '"' || *after == '\'';
    if (!quote && *after != '(' && *after != '[' && *after != '{') return false;
    *ret = quote ? CALL_JSON : *after == '(' ? CALL_PYTHON : *after == '[' ? CALL_ARGS : CALL_BRACES;
    return true;
}

/* Where `marker` ends that stands before text[at], 0 when none is near. */
static size_t marker_before(const char *text, size_t at, const char *marker)
{
    size_t len = strlen(marker);
    for (size_t end = at; len > 0 && end >= len && at - end <= MARKER_REACH; end--)
        if (memcmp(text + end - len, marker, len) == 0) return end;
    return 0;
}

/* A list of calls in brackets, or not, as the row has it. */
static bool bracket_fits(const toolcall_syntax *s, const char *text, size_t end)
{
    const char *head = s->head;
    while (isspace((unsigned char)*head)) head++;
    while (isspace((unsigned char)text[end])) end++;
    return (*head == '[') == (text[end] == '[');
}

/* {"f": {...}}: a quoted name behind the brackets themselves. */
static bool is_keyed(const char *text, size_t at)
{
    if (at == 0 || text[--at] != '"') return false;
    while (at > 0 && isspace((unsigned char)text[at - 1])) at--;
    return at > 0 && text[at - 1] == '{';
}

static bool is_form(const toolcall_syntax *s, toolcall_form form, const char *text, size_t at)
{
    if (s->form != CALL_KEYED) return s->form == form;
    return form == CALL_JSON && is_keyed(text, at);
}

/* The row of this form whose marker stands nearest before the name, and whose close follows; the first of
 * such. */
static const toolcall_syntax *nearest(toolcall_form form, const char *text, size_t n, size_t at)
{
    const toolcall_syntax *best = NULL;
    size_t best_end = 0;
    for (size_t i = 0; i < N_SYNTAXES; i++) {
        const toolcall_syntax *s = &SYNTAXES[i];
        if (!is_form(s, form, text, at)) continue;
        size_t end = marker_before(text, at, s->open);
        if (end == 0 || end <= best_end) continue;
        if (*s->close && !toolcall_syntax_holds(text + at, n - at, s->close)) continue;
        if (form == CALL_JSON && *s->close && !bracket_fits(s, text, end)) continue;
        best = s;
        best_end = end;
    }
    /* "<tool_call>[...]" without an end is Granite's older way. */
    if (!best && form == CALL_JSON && marker_before(text, at, "<tool_call>")) return toolcall_find("granite");
    return best;
}

/* Does `pattern`, in which "#" are digits, begin s? */
static bool matches(const char *s, size_t n, const char *pattern)
{
    size_t i = 0;
    for (; *pattern; pattern++) {
        if (*pattern == '#') {
            while (i < n && isdigit((unsigned char)s[i])) i++;
        } else if (i == n || s[i++] != *pattern) {
            return false;
        }
    }
    return true;
}

static bool toolcall_syntax_ends_with(const char *s, size_t n, const char *what)
{
    size_t len = strlen(what);
    return n >= len && memcmp(s + n - len, what, len) == 0;
}

/* Is text[at] a name as this row (CALL_ARGS, CALL_TAGS) writes one, with `key` as its first argument? */
static bool toolcall_syntax_fits(const toolcall_syntax *s, const char *text, size_t n, size_t at, size_t name)
{
    const char *before = *s->call ? s->call : s->open, *after = text + at + name;
    size_t left = n - at - name;
    if (!*before || !toolcall_syntax_ends_with(text, at, before)) return false;
    if (!*s->call || !*s->open || marker_before(text, at - strlen(before), s->open)) {
        buf first = {0};
        buf_puts(&first, s->middle);
        if (s->form == CALL_TAGS) buf_puts(&first, s->tags.gap);
        if (s->form == CALL_TAGS) buf_puts(&first, s->tags.key);
        if (s->form == CALL_ARGS) buf_putc(&first, '{');
        buf_putc(&first, '\0');
        bool ok = !first.failed && matches(after, left, first.data);
        buf_done(&first);
        return ok;
    }
    return false;
}

static const toolcall_syntax *tagged(const char *text, size_t n, size_t at, size_t name)
{
    for (size_t i = 0; i < N_SYNTAXES; i++) {
        const toolcall_syntax *s = &SYNTAXES[i];
        if ((s->form == CALL_ARGS || s->form == CALL_TAGS) && toolcall_syntax_fits(s, text, n, at, name))
            return s;
    }
    return NULL;
}

/* A call without a marker begins where an answer would. */
static const toolcall_syntax *bare(toolcall_form form, const char *text, size_t at, size_t answer)
{
    size_t from = answer;
    if (form != CALL_JSON && form != CALL_PYTHON) return NULL;
    if (answer == 0 || at < answer || at - answer > MARKER_REACH) return NULL;
    for (bool more = true; more;) {
        while (isspace((unsigned char)text[from])) from++;
        more = at - from > 14 && memcmp(text + from, "<|python_tag|>", 14) == 0;
        if (more) from += 14;
    }
    bool begins = text[from] == '{' || text[from] == '[' || from == at;
    return begins ? toolcall_find(form == CALL_JSON ? "llama-json" : "llama-pythonic") : NULL;
}

const toolcall_syntax *toolcall_recognise(const char *text, size_t n, const char *name, size_t answer)
{
    size_t len = strlen(name);
    for (size_t at = 0; n >= len && at <= n - len; at++) {
        toolcall_form form;
        if (memcmp(text + at, name, len) != 0) continue;
        const toolcall_syntax *found = tagged(text, n, at, len);
        if (!found && form_of(text + at + len, n - at - len, &form)) {
            found = nearest(form, text, n, at);
            if (!found) found = bare(form, text, at, answer);
            if (found) return found;
        }
        if (found) return found;
    }
    return NULL;
}
