/* toolcall_syntax.c: the table of call syntaxes, and which of them a template writes. Sources: the families'
 * published chat templates and model cards. */
#include <ctype.h>
#include <string.h>

#include "text/toolcall.h"

enum { MARKER_REACH = 80 }; /* between a marker and the function's name stand no more bytes */

/* Of two rows that a template could mean, the first is taken. */
static const toolcall_syntax SYNTAXES[] = {
    {.name = "hermes",
     .form = CALL_JSON,
     .open = "<tool_call>",
     .close = "</tool_call>",
     .head = "\n",
     .tail = "\n",
     .between = "\n",
     .arguments = "arguments",
     .sign = "<tool_call>"},
    {.name = "function-gemma",
     .form = CALL_BRACES,
     .open = "<start_function_call>",
     .close = "<end_function_call>",
     .middle = "<escape>",
     .head = "",
     .tail = "",
     .between = "",
     .sign = "<start_function_call>"},
    {.name = "mistral-args",
     .form = CALL_ARGS,
     .open = "[TOOL_CALLS]",
     .close = "",
     .middle = "[ARGS]",
     .head = "",
     .tail = "",
     .between = "",
     .sign = "[ARGS]"},
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
     .also = "<tool_call>",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .arguments = "arguments",
     .sign = "<|tool_call|>"},
    {.name = "lfm2",
     .form = CALL_PYTHON,
     .open = "<|tool_call_start|>",
     .close = "<|tool_call_end|>",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .sign = "<|tool_list_start|>"},
    {.name = "gemma",
     .form = CALL_PYTHON,
     .open = "```tool_code",
     .close = "```",
     .also = "```json",
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
     .also = "<|python_tag|>",
     .head = "[",
     .tail = "]",
     .between = ", ",
     .list = true,
     .sign = "[func_name1("},
    {.name = "llama-json",
     .form = CALL_JSON,
     .open = "",
     .close = "",
     .also = "<|python_tag|>",
     .head = "",
     .tail = "",
     .between = "; ",
     .list = true,
     .arguments = "parameters",
     .sign = "<|python_tag|>"},
};

const toolcall_syntax *toolcall_syntaxes(size_t *ret_n)
{
    *ret_n = sizeof SYNTAXES / sizeof *SYNTAXES;
    return SYNTAXES;
}

const toolcall_syntax *toolcall_find(const char *name)
{
    for (size_t i = 0; i < sizeof SYNTAXES / sizeof *SYNTAXES; i++)
        if (strcmp(SYNTAXES[i].name, name) == 0) return &SYNTAXES[i];
    return NULL;
}

/* What stands behind the function's name tells the form. */
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

static bool holds(const char *s, size_t n, const char *what)
{
    size_t len = strlen(what);
    for (size_t i = 0; n >= len && i <= n - len; i++)
        if (memcmp(s + i, what, len) == 0) return true;
    return false;
}

/* The row of this form whose marker stands nearest before the name, and whose close follows; the first of
 * such. Without a marker it is the row that has none. */
static const toolcall_syntax *nearest(toolcall_form form, const char *text, size_t n, size_t at)
{
    const toolcall_syntax *best = NULL, *bare = NULL;
    size_t best_end = 0;
    for (size_t i = 0; i < sizeof SYNTAXES / sizeof *SYNTAXES; i++) {
        const toolcall_syntax *s = &SYNTAXES[i];
        if (s->form != form) continue;
        if (!*s->open) bare = s;
        size_t end = marker_before(text, at, s->open);
        if (end == 0 || end <= best_end) continue;
        if (*s->close && !holds(text + at, n - at, s->close)) continue;
        best = s;
        best_end = end;
    }
    if (best || form != CALL_JSON) return best ? best : bare;
    /* "<tool_call>[...]" without an end is Granite's older way. */
    return marker_before(text, at, "<tool_call>") ? toolcall_find("granite") : bare;
}

const toolcall_syntax *toolcall_recognise(const char *text, size_t n, const char *name)
{
    size_t len = strlen(name);
    for (size_t at = 0; n >= len && at <= n - len; at++) {
        toolcall_form form;
        if (memcmp(text + at, name, len) != 0) continue;
        if (!form_of(text + at + len, n - at - len, &form)) continue;
        return nearest(form, text, n, at);
    }
    return NULL;
}
