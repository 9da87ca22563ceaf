/* toolcall.h: the ways in which models write calls of tools, and reading them from a streamed reply.
 *
 * Every family of models has a syntax of its own, one row of a table:
 *
 *     hermes          <tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>       (Qwen, Granite 4,
 * ...) llama-json      {"name": "f", "parameters": {"a": 1}}                   at the reply's very beginning
 *     mistral-args    [TOOL_CALLS]f[ARGS]{"a": 1}
 *     lfm2            <|tool_call_start|>[f(a=1)]<|tool_call_end|>
 *
 * Which one a model uses is seen from its chat template (chat_template_calls). The same row tells the grammar
 * (grammar/grammar_tools.h) what to write when a call is wanted.
 *
 *     toolcall_parser *p = toolcall_new(&sink, toolcall_find("lfm2"), tools);
 *     toolcall_push(p, piece, n) ...; toolcall_end(p); toolcall_free(p);
 *
 * One thread at a time. */
#ifndef TEXT_TOOLCALL_H
#define TEXT_TOOLCALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef enum {
    CALL_JSON,   /* {"name": "f", "arguments": {...}} */
    CALL_PYTHON, /* f(a=1, b="x") */
    CALL_ARGS,   /* f[ARGS]{...} */
    CALL_BRACES, /* call:f{a:1,b:<escape>x<escape>} */
} toolcall_form;

typedef struct toolcall_syntax {
    const char *name;
    toolcall_form form;
    const char *open;      /* marker before calls; "": a call is what the reply begins with */
    const char *close;     /* marker behind them, or "" */
    const char *also;      /* another opening marker, read but never written; NULL: none */
    const char *middle;    /* marker within a call: between name and arguments, or around texts; or NULL */
    const char *head;      /* written behind open ... */
    const char *tail;      /* ... and before close */
    const char *between;   /* written between two calls */
    bool list;             /* the markers stand around all calls, else around each */
    const char *arguments; /* CALL_JSON: the key of the arguments */
    const char *sign;      /* a template that holds this is of the family, where no call of its shows it */
} toolcall_syntax;

/* The table, and a row by its name (NULL: there is none). The first row is "hermes". */
const toolcall_syntax *toolcall_syntaxes(size_t *ret_n);
const toolcall_syntax *toolcall_find(const char *name);
/* The syntax of the call of `name` that a template wrote into text; NULL when it is not there or is unknown.
 */
const toolcall_syntax *toolcall_recognise(const char *text, size_t n, const char *name);

/* Splits a streamed reply into plain text and tool calls. Text that might still become a marker is held back;
 * JSON arguments stream as they arrive, those of other forms come translated to JSON when a call is whole.
 * White space between the text and the first marker is dropped. What is broken comes out as text, and so does
 * a call of a function that is not among `tools`, or that `may` does not let begin. */
typedef struct toolcall_parser toolcall_parser;
typedef struct toolcall_sink {
    void *user;
    void (*text)(void *user, const char *s, size_t n);
    /* index counts calls from 0; called once a call, before its arguments */
    void (*begin)(void *user, int index, const char *name);
    /* a piece of the arguments' JSON text */
    void (*arguments)(void *user, int index, const char *json, size_t n);
    void (*end)(void *user, int index);
    /* May this call begin, whose arguments are whole? Asked of calls that a grammar of calls did not lead to:
     * they stand behind the other marker, or begin a reply without one. NULL: all may. */
    bool (*may)(void *user, const char *name, const char *json, size_t n);
} toolcall_sink;

/* tools is OpenAI's array, read during the call only; NULL: any name will do, if the syntax has a marker
 * and it stands before it.
 * NULL when out of memory. */
toolcall_parser *toolcall_new(const toolcall_sink *sink, const toolcall_syntax *syntax, const json_t *tools);
bool toolcall_is_open(const toolcall_parser *p); /* within a call: its end is still to come */
int toolcall_push(toolcall_parser *p, const char *s, size_t n);
int toolcall_end(toolcall_parser *p); /* flushes what is held back */
int toolcall_count(const toolcall_parser *p);
void toolcall_free(toolcall_parser *p);

/* toolcall_args.c: the text between a call's brackets as a JSON object: `a=1, b="x"` of CALL_PYTHON or
 * `a:1,b:<escape>x<escape>` of CALL_BRACES. False when it is neither, or would be no
 * JSON object that every parser takes; out->failed when memory is short. */
bool toolcall_arguments(buf *out, toolcall_form form, const char *s, size_t n);

#endif
