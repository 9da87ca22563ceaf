/* toolcall.h: the ways in which models write calls of tools, and reading them from a streamed reply.
 *
 * Every family of models has a syntax of its own, one row of a table (docs/http.md lists all):
 *
 *     hermes          <tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>  (Qwen, Granite 4, ...)
 *     llama-json      {"name": "f", "parameters": {"a": 1}}                            at the very beginning
 *     mistral-args    [TOOL_CALLS]f[ARGS]{"a": 1}
 *     lfm2            <|tool_call_start|>[f(a=1)]<|tool_call_end|>
 *     qwen3-coder     <tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>
 *
 * Which one a model uses is seen from its chat template (chat_template_calls). The same row tells the grammar
 * (grammar/grammar_tools.h) what to write when a call is wanted.
 *
 *     toolcall_parser *p = toolcall_new(&sink, toolcall_find("lfm2"), tools);
 *     toolcall_push(p, piece, n) ...; toolcall_end(p, false); toolcall_free(p);
 *
 * One thread at a time. */
#ifndef CHAT_TOOLCALL_H
#define CHAT_TOOLCALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef enum {
    CALL_JSON,   /* {"name": "f", "arguments": {...}} */
    CALL_KEYED,  /* {"f": {...}} */
    CALL_ARGS,   /* f[ARGS]{...} */
    CALL_PYTHON, /* f(a=1, b="x") */
    CALL_BRACES, /* call:f{a:1,b:<escape>x<escape>} */
    CALL_TAGS,   /* <function=f><parameter=a>1</parameter></function> */
} toolcall_form;

/* How arguments are written that stand between tags of their own (CALL_TAGS). A text stands there as it is,
 * other values as JSON:
 *
 *     key a key_end [text_mark or json_mark] value wrap 1 wrap value_end gap
 *     <parameter=  a  >                            \n  1  \n  </parameter>  \n */
typedef struct toolcall_tags {
    const char *key, *key_end;
    const char *text_mark, *json_mark; /* what says whether the value is a text; "%": the value's JSON type */
    const char *value, *value_end;
    const char *wrap, *gap; /* white space: around a value, and behind each argument and the name */
} toolcall_tags;

/* "#" in what is written is the call's number (any digits are read). */
typedef struct toolcall_syntax {
    const char *name;
    toolcall_form form;
    const char *open;    /* marker before calls; "": a call is what the reply begins with */
    const char *close;   /* marker behind them, or "" */
    const char *also[2]; /* other opening markers, read but never written */
    const char *first;   /* a reply that begins with this calls without a marker; NULL: none does */
    const char *call;    /* CALL_ARGS, CALL_TAGS: before a name ... */
    const char *middle;  /* ... behind it ... */
    const char *end;     /* ... and behind the call */
    const char *quote;   /* CALL_BRACES: around texts */
    const char *head;    /* written behind open ... */
    const char *tail;    /* ... and before close */
    const char *between; /* written between two calls; NULL: a reply has one at most */
    bool list;           /* the markers stand around all calls, else around each */
    const char *id;      /* CALL_JSON: written before the name's key, or NULL */
    /* CALL_JSON: the keys of the name (NULL: "name") and of the arguments. */
    const char *name_key, *arguments;
    toolcall_tags tags;
    const char *sign;    /* a template that holds this is of the family, where no call of its shows it */
    const char *ends[3]; /* calls may begin within a thought, which these end */
    /* The models' thoughts (thinking_named), though a template does not show them; or NULL. */
    const char *thinking;
} toolcall_syntax;

/* The table, and a row by its name (NULL: there is none). The first row is "hermes". */
const toolcall_syntax *toolcall_syntaxes(size_t *ret_n);
const toolcall_syntax *toolcall_find(const char *name);
/* The syntax of the call of `name` that a template wrote into text; NULL when it is not there or is unknown.
 * answer: where in the text an answer would begin (0: not known), since a call without a marker stands there.
 */
const toolcall_syntax *toolcall_recognise(const char *text, size_t n, const char *name, size_t answer);
/* Is s[0..n) a part of one of its markers? Asked about control tokens, whose text is not shown else. */
bool toolcall_shows(const toolcall_syntax *syntax, const char *s, size_t n);
/* What a call is certain to begin with, for replies that must not call; NULL: nothing is. */
const char *toolcall_marker(const toolcall_syntax *syntax);

/* Splits a streamed reply into plain text and tool calls. Text that might still become a marker is held back;
 * JSON arguments stream as they arrive, those of other forms come translated to JSON when a call is whole.
 * White space between the text and the first marker is dropped. What is broken comes out as text, and so does
 * a call of a function that is not among `tools`, or that `may` does not let begin. Values between tags
 * become what the function's schema says: "5" is a text where it wants one, and a number where it wants that.
 */
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

/* tools is OpenAI's array, of which a reference is kept; NULL: any name will do, if the syntax has a marker
 * and it stands before it. NULL when out of memory. */
toolcall_parser *toolcall_new(const toolcall_sink *sink, const toolcall_syntax *syntax, const json_t *tools);
bool toolcall_is_open(const toolcall_parser *p); /* within a call: its end is still to come */
int toolcall_push(toolcall_parser *p, const char *s, size_t n);
/* Flushes what is held back. cut: the reply ends because it got too long. Of a call that it was within, the
 * name and the arguments so far come out, or nothing: no part of a marker is text then. */
int toolcall_end(toolcall_parser *p, bool cut);
int toolcall_count(const toolcall_parser *p);
void toolcall_free(toolcall_parser *p);

/* toolcall_args.c: the text between a call's brackets as a JSON object: `a=1, b="x"` of CALL_PYTHON or
 * `a:1,b:<escape>x<escape>` of CALL_BRACES. False when it is neither, or would be no
 * JSON object that every parser takes; out->failed when memory is short. */
bool toolcall_arguments(buf *out, const toolcall_syntax *syntax, const char *s, size_t n);
/* The same of arguments that were cut: as much of the object as is certain. */
void toolcall_arguments_part(buf *out, const toolcall_syntax *syntax, const char *s, size_t n);
/* toolcall_value.c: the value of one argument, as text between tags, as JSON: what parameters (a function's
 * JSON schema, or NULL) say of `key` decides what it is. is_text: 1 a text, 0 none, -1 not known. */
void toolcall_value(buf *out, const toolcall_syntax *syntax, const json_t *parameters, const char *key,
                    int is_text, const char *s, size_t n);
/* JSON, or a Python literal, as JSON; false: it is neither. */
bool toolcall_literal(buf *out, const char *s, size_t n);

#endif
